"""A storage root in object storage: how it is read and changed."""
