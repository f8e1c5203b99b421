"""Serialize bags: create and pack archives, and unpack them. Archives are read by :mod:`pressmark.bagit.archive`."""
