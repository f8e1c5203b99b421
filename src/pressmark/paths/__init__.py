"""Paths of many objects on many systems: which paths a system rejects, and which collide."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pressmark.paths.collisions import Collision, Member, PathIndex, Totals
    from pressmark.paths.directories import Tree
    from pressmark.paths.folding import folded
    from pressmark.paths.lengths import PathLengths
    from pressmark.paths.systems import (
        PROFILES,
        NameViolation,
        NameViolations,
        Profile,
        advice,
        name_violation,
        name_violations,
    )

__all__ = [
    "PROFILES",
    "Collision",
    "Member",
    "NameViolation",
    "NameViolations",
    "PathIndex",
    "PathLengths",
    "Profile",
    "Totals",
    "Tree",
    "advice",
    "folded",
    "name_violation",
    "name_violations",
]

# The module of each name, imported when the name is first used.
_MODULES = {
    "PROFILES": "systems",
    "Collision": "collisions",
    "Member": "collisions",
    "PathIndex": "collisions",
    "PathLengths": "lengths",
    "Profile": "systems",
    "NameViolation": "systems",
    "NameViolations": "systems",
    "Totals": "collisions",
    "Tree": "directories",
    "advice": "systems",
    "folded": "folding",
    "name_violation": "systems",
    "name_violations": "systems",
}


def __getattr__(name: str) -> Any:
    """Import a part of the package when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)
