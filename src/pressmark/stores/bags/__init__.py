"""Folders of bags: each bag is an object."""
