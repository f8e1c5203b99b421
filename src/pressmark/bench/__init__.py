"""Throughput of this machine and build: every layout through every door, every digest, and a folder of your own.

Each figure stands beside that of the loop that one writes without this library. ``pressmark bench`` prints them.

>>> from pressmark.bench import cases
>>> cases()[0].title
'pairtree'
"""

from __future__ import annotations

from pressmark.bench.digests import DigestRates, Files, Rates, bench_digest, bench_files, first_read, sample_files
from pressmark.bench.layouts import Case, LayoutRates, bench_layout, cases

__all__ = [
    "Case",
    "DigestRates",
    "Files",
    "LayoutRates",
    "Rates",
    "bench_digest",
    "bench_files",
    "bench_layout",
    "cases",
    "first_read",
    "sample_files",
]
