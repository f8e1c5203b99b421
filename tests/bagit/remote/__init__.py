"""Tests of bags in object storage."""
