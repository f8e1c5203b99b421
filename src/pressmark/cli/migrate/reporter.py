"""Progress of a migration: objects, bytes, rate, time left."""

from __future__ import annotations

import time

from pressmark.cli.common.progress import ProgressOutput, Reporter, View, format_bytes, format_count
from pressmark.reports import Progress

__all__ = ["PHASES", "ProgressReporter", "view_of"]

# The phases in words.
PHASES = {
    "plan": "planning",
    "run": "migrating",
    "remove": "removing sources",
    "prune": "removing empty directories",
    "merge": "merging rows",
    "verify": "verifying",
}


class ProgressReporter(Reporter):
    """Shows the progress of a migration; a context manager.

    :ivar phase: the current phase; empty before the first one
    :ivar last: the last event
    """

    def __init__(self, output: ProgressOutput) -> None:
        super().__init__(output)
        self.phase = ""
        self.last: Progress | None = None
        self._first = Progress()
        self._since = self._begin

    def on_event(self, event: Progress) -> None:
        """Record an event."""
        if event.stage != self.phase:
            # Objects of an earlier call do not count for the rate.
            self.phase, self._since = event.stage, time.monotonic()
            self._first = event if event.of_items is not None else Progress(event.stage)
        self.last = event
        self.resume()

    def view(self) -> View:
        """Return the current progress."""
        last = self.last
        return View("planning") if last is None else view_of(last, self._first, time.monotonic() - self._since)


def view_of(event: Progress, first: Progress, seconds: float) -> View:
    """Return the progress of a phase.

    :param first: the progress when the phase began
    :param seconds: since then
    """
    objects, size = event.items - first.items, event.bytes - first.bytes
    if event.of_items is None:
        text = f"{format_count(event.items, 'object')}, {format_bytes(event.bytes)}"
    else:
        text = f"{event.items:,} of {format_count(event.of_items, 'object')}"
        text += f", {format_bytes(event.bytes)} of {format_bytes(event.of_bytes or 0)}"
        if not objects and event.items < event.of_items:
            # Processes take a moment to start, and a large object to be copied.
            text += ", waiting for the first object"
    if seconds > 0 and objects > 0:
        text += f", {objects / seconds:,.0f}/s"
        if size > 0:
            text += f", {format_bytes(size / seconds)}/s"
    if event.failed:
        text += f", {event.failed:,} failed"
    return View(PHASES[event.stage], text, event.items, event.of_items, _left(event, objects, size, seconds))


def _left(event: Progress, objects: int, size: int, seconds: float) -> float | None:
    """Return the estimated seconds left: by objects or by bytes, whichever is longer."""
    if event.of_items is None or objects <= 0:
        return None
    left = max(0, event.of_items - event.items) * seconds / objects
    if size > 0 and event.of_bytes:
        left = max(left, max(0, event.of_bytes - event.bytes) * seconds / size)
    return left
