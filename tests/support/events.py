"""Stages of a run: their names, and actions when one begins."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby

from pressmark.reports import ProgressEvent

__all__ = ["at", "stages"]


def stages(events: Iterable[object]) -> list[str]:
    """Return the stages of a run, in order."""
    return [stage for stage, _events in groupby(event.stage for event in events if isinstance(event, ProgressEvent))]


def at(stage: str, action: Callable[[], object]) -> Callable[[object], None]:
    """Return a listener that calls a function when a run reaches a stage."""
    reached = False

    def listen(event: object) -> None:
        nonlocal reached
        if isinstance(event, ProgressEvent) and event.stage == stage and not reached:
            reached = True
            action()

    return listen
