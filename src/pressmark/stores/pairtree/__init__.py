"""Pairtrees, version 0.1."""
