"""The events of a migration."""

from __future__ import annotations

from collections.abc import Callable

from pressmark.reports import Progress

__all__ = ["PHASES", "OnEvent"]

#: The phases of a migration: ``plan`` while planning, ``remove`` and ``prune`` only with ``move``.
PHASES = ("plan", "run", "remove", "prune", "merge", "verify")


OnEvent = Callable[[Progress], object]
