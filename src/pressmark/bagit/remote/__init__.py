"""Bags in object storage."""
