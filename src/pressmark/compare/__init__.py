"""Layouts compared on one's own identifiers, before a petabyte is written under one of them."""

from __future__ import annotations

from pressmark.compare.comparison import Comparison, Progress, compare
from pressmark.compare.growth import growth, hashed_directories
from pressmark.compare.result import (
    FORMAT,
    KINDS,
    Clashes,
    Costs,
    Depth,
    Directories,
    Distribution,
    FanOut,
    FirstSegments,
    Group,
    Growth,
    LargeDirectory,
    LayoutResult,
    Lengths,
    Locality,
    Named,
    Probe,
    ProbeTimes,
    Refused,
    Throughput,
    from_record,
)
from pressmark.compare.sharding import CompareLayouts, collect, compare_sharded, identifiers_of

__all__ = [
    "FORMAT",
    "KINDS",
    "Clashes",
    "CompareLayouts",
    "Comparison",
    "Costs",
    "Depth",
    "Directories",
    "Distribution",
    "FanOut",
    "FirstSegments",
    "Group",
    "Growth",
    "LargeDirectory",
    "LayoutResult",
    "Lengths",
    "Locality",
    "Named",
    "Probe",
    "ProbeTimes",
    "Progress",
    "Refused",
    "Throughput",
    "collect",
    "compare",
    "compare_sharded",
    "from_record",
    "growth",
    "hashed_directories",
    "identifiers_of",
]
