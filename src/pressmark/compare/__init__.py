"""Compare layouts on your own identifiers before you choose one."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pressmark.compare import report
    from pressmark.compare.comparison import Comparison, ComparisonProgress, compare
    from pressmark.compare.growth import hashed_directories, predict_growth
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
        Occurrences,
        Probe,
        ProbeTimes,
        Throughput,
    )

__all__ = [
    "FORMAT",
    "KINDS",
    "CollisionGroup",
    "Collisions",
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
    "Occurrences",
    "Probe",
    "ProbeTimes",
    "Throughput",
    "compare",
    "hashed_directories",
    "predict_growth",
    "report",
]

# The module of each name that is not in ``result``, imported on first use.
_MODULES = {
    "Comparison": "comparison",
    "ComparisonProgress": "comparison",
    "compare": "comparison",
    "hashed_directories": "growth",
    "predict_growth": "growth",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "report":
        return importlib.import_module(f"{__name__}.report")
    found = getattr(importlib.import_module(f"{__name__}.{_MODULES.get(name, 'result')}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
