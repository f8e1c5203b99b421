"""The events of a migration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

__all__ = ["PHASES", "MigrationProgress", "OnEvent"]

#: The phases of a migration: ``plan`` while planning, ``remove`` and ``prune`` only with ``move``.
PHASES = ("plan", "run", "remove", "prune", "merge", "verify")


class MigrationProgress(NamedTuple):
    """The progress of a phase, reported regularly and at its end.

    :ivar phase: one of :data:`PHASES`
    :ivar objects: number of processed objects
    :ivar bytes: total size of the processed objects
    :ivar of_objects: number of all objects, if known
    :ivar of_bytes: total size of all objects, if known
    :ivar by_status: number of objects with each status
    """

    phase: str
    objects: int
    bytes: int
    of_objects: int | None = None
    of_bytes: int | None = None
    by_status: Mapping[str, int] = {}


OnEvent = Callable[[MigrationProgress], object]
