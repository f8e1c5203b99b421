"""Compare layouts on your own identifiers before you choose one."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pressmark.compare.comparison import Comparison, ComparisonProgress, compare
    from pressmark.compare.growth import hashed_directories, predict_growth
    from pressmark.compare.job import CompareLayouts, collect, compare_in_chunks, open_identifiers
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
    "open_identifiers",
    "predict_growth",
]

# The module of each name, imported on first use: a comparison in one process does not need the jobs.
_MODULES = {
    "CollisionGroup": "result",
    "Collisions": "result",
    "CompareLayouts": "job",
    "Comparison": "comparison",
    "ComparisonProgress": "comparison",
    "Costs": "result",
    "Depth": "result",
    "Directories": "result",
    "Distribution": "result",
    "Example": "result",
    "FORMAT": "result",
    "FanOut": "result",
    "FirstSegments": "result",
    "Growth": "result",
    "KINDS": "result",
    "LargeDirectory": "result",
    "LayoutResult": "result",
    "Lengths": "result",
    "Locality": "result",
    "Occurrences": "result",
    "Probe": "result",
    "ProbeTimes": "result",
    "Throughput": "result",
    "collect": "job",
    "compare": "comparison",
    "compare_in_chunks": "job",
    "from_record": "result",
    "hashed_directories": "growth",
    "predict_growth": "growth",
    "open_identifiers": "job",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name in _MODULES:
        found = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
