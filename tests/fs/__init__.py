"""Tests of the file system layer."""
