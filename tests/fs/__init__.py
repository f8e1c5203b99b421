"""Tests of what touches a disk, and knows nothing of preservation."""
