"""Stages of a run: their names, actions when one begins, and functions that receive events."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

from pressmark.progress_event import EventListener
from pressmark.reports import Problem, ProgressEvent

__all__ = ["at", "listening", "stages"]


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


def listening(
    on_event: Callable[[Any], object] = lambda _event: None, on_problem: Callable[[Any], object] = lambda _problem: None
) -> EventListener:
    """Return the progress of a call that passes its problems to one function, and all other events to another."""
    return EventListener(lambda event: (on_problem if isinstance(event, Problem) else on_event)(event))
