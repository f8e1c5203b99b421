"""A storage root on a local disk: how it is read and changed."""
