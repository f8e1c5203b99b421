"""Vitro file storage."""
