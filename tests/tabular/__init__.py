"""Tests of :mod:`pressmark.tabular`."""
