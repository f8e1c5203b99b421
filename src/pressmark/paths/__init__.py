"""Paths of many objects on many systems: which paths a system rejects, and which collide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pressmark.lazy import face

if TYPE_CHECKING:
    from pressmark.paths.collisions import (
        Collision as Collision,
        Member as Member,
        PathIndex as PathIndex,
        Totals as Totals,
    )
    from pressmark.paths.directories import Tree as Tree
    from pressmark.paths.folding import folded as folded
    from pressmark.paths.lengths import PathLengths as PathLengths
    from pressmark.paths.systems import (
        PROFILES as PROFILES,
        NameViolation as NameViolation,
        NameViolations as NameViolations,
        Profile as Profile,
        advice as advice,
        name_violation as name_violation,
        name_violations as name_violations,
    )

__all__, __getattr__, __dir__ = face(
    __name__,
    {
        ".collisions": "Collision Member PathIndex Totals",
        ".directories": "Tree",
        ".folding": "folded",
        ".lengths": "PathLengths",
        ".systems": "PROFILES NameViolation NameViolations Profile advice name_violation name_violations",
    },
)
