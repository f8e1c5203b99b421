"""Compare layouts on your own identifiers before you choose one."""

from __future__ import annotations

from pressmark.compare.comparison import Comparison, ComparisonProgress, compare
from pressmark.compare.growth import hashed_directories, predict_growth
from pressmark.compare.job import CompareLayouts, collect, compare_in_chunks, read_identifiers
from pressmark.compare.result import (
    FORMAT,
    KINDS,
    CollisionGroup,
    Collisions,
    Costs,
    Depth,
    Directories,
    Distribution,
    Example,
    FanOut,
    FirstSegments,
    Growth,
    LargeDirectory,
    LayoutResult,
    Lengths,
    Locality,
    Occurrences,
    Probe,
    ProbeTimes,
    Throughput,
    from_record,
)

__all__ = [
    "FORMAT",
    "KINDS",
    "CollisionGroup",
    "Collisions",
    "CompareLayouts",
    "Comparison",
    "ComparisonProgress",
    "Costs",
    "Depth",
    "Directories",
    "Distribution",
    "Example",
    "FanOut",
    "FirstSegments",
    "Growth",
    "LargeDirectory",
    "LayoutResult",
    "Lengths",
    "Locality",
    "Occurrences",
    "Probe",
    "ProbeTimes",
    "Throughput",
    "collect",
    "compare",
    "compare_in_chunks",
    "from_record",
    "hashed_directories",
    "predict_growth",
    "read_identifiers",
]
