"""The directories of stores, on a disk and in a bucket, as walks and look-ups read them."""
