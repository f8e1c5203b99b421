"""Throughput of this machine and build: every layout, every digest, and a folder of files.

``pressmark bench`` prints the rates, each compared with plain Python.

>>> from pressmark.bench import default_layouts
>>> list(default_layouts())[:3]
['pairtree', 'vitro', '0002']
"""

from __future__ import annotations

from pressmark.bench.digests import DigestRates, Files, Rates, bench_digest, bench_files, first_read, sample_files
from pressmark.bench.layouts import LayoutRates, bench_layout, default_layouts

__all__ = [
    "DigestRates",
    "Files",
    "LayoutRates",
    "Rates",
    "bench_digest",
    "bench_files",
    "bench_layout",
    "default_layouts",
    "first_read",
    "sample_files",
]
