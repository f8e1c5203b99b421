"""Paths of many objects on many systems: which paths a system rejects, and which collide."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pressmark.paths.collisions import Clash, Member, PathIndex, Totals
    from pressmark.paths.directories import Tree
    from pressmark.paths.folding import folded
    from pressmark.paths.lengths import PathLengths
    from pressmark.paths.systems import PROFILES, Profile, Refusal, Refusals, advice, refusal, refusals

__all__ = [
    "PROFILES",
    "Clash",
    "Member",
    "PathIndex",
    "PathLengths",
    "Profile",
    "Refusal",
    "Refusals",
    "Totals",
    "Tree",
    "advice",
    "folded",
    "refusal",
    "refusals",
]

# The module of each name, imported when the name is first used.
_MODULES = {
    "PROFILES": "systems",
    "Clash": "collisions",
    "Member": "collisions",
    "PathIndex": "collisions",
    "PathLengths": "lengths",
    "Profile": "systems",
    "Refusal": "systems",
    "Refusals": "systems",
    "Totals": "collisions",
    "Tree": "directories",
    "advice": "systems",
    "folded": "folding",
    "refusal": "systems",
    "refusals": "systems",
}


def __getattr__(name: str) -> Any:
    """Import a part of the package when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    return globals()[name]
