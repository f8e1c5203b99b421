"""The events of a call, for tests that look at more than the counts of its progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pressmark.progress_event import EventListener
from pressmark.reports import Problem

__all__ = ["listening"]


def listening(
    on_event: Callable[[Any], object] = lambda _event: None, on_problem: Callable[[Any], object] = lambda _problem: None
) -> EventListener:
    """Return the progress of a call that passes its problems to one function, and all other events to another."""
    return EventListener(lambda event: (on_problem if isinstance(event, Problem) else on_event)(event))
