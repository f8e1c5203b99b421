"""Throughput of this machine and build: every layout through every door, every digest, and a folder of your own.

Each figure stands beside that of the loop that one writes without this library. ``pressmark bench`` prints them.

>>> from pressmark.bench import CASES
>>> CASES[0].title
'pairtree'
"""

from __future__ import annotations

from pressmark.bench.digests import DigestRates, Files, Rates, bench_digest, bench_files, first_read, sample_files
from pressmark.bench.layouts import CASES, Case, LayoutRates, bench_layout

__all__ = [
    "CASES",
    "Case",
    "DigestRates",
    "Files",
    "LayoutRates",
    "Rates",
    "bench_digest",
    "bench_files",
    "bench_layout",
    "first_read",
    "sample_files",
]
