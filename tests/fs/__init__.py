"""Tests of the modules that touch a disk and know nothing of preservation."""
