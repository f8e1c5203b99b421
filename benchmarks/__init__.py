"""Benchmarks of Pressmark: ``python -m benchmarks`` lists the suites."""
