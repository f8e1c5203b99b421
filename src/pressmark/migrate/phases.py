"""The events of a migration as it is planned and runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

__all__ = ["PHASES", "MigrationProgress", "OnEvent"]

#: What a migration does, one after the other; of a plan only ``plan``, and ``remove`` and ``prune`` only with ``move``.
PHASES = ("plan", "run", "remove", "prune", "merge", "verify")


class MigrationProgress(NamedTuple):
    """An event: so much is done, given every now and then and when a phase is over.

    :ivar phase: one of :data:`PHASES`
    :ivar objects: that are done
    :ivar bytes: of them
    :ivar of_objects: how many there are, where that is known
    :ivar of_bytes: how many they have, where that is known
    :ivar by_status: how many objects have which status
    """

    phase: str
    objects: int
    bytes: int
    of_objects: int | None = None
    of_bytes: int | None = None
    by_status: Mapping[str, int] = {}


OnEvent = Callable[[MigrationProgress], object]
