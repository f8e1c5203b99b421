"""Benchmarks of Pressmark: see ``README.md``."""
