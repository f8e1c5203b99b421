"""Paths of many objects on systems of many kinds: which are refused, and which clash with others."""

from __future__ import annotations

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
