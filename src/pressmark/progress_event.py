"""The progress of a run: the object of the caller, and the events that change it.

:mod:`pressmark.reports` exports the events too, but takes longer to import.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from pressmark.errors import Cancelled

__all__ = ["EventListener", "Progress", "ProgressEvent", "ProgressOfCalls"]


class ProgressEvent(NamedTuple):
    """An event: the progress of a run. It is sent a few times per second, and when a stage begins.

    :ivar stage: the name of the current stage, as documented with the call; empty if the call has no stages
    :ivar items: files, objects, identifiers or layouts done in this stage, including those that failed
    :ivar bytes: bytes read or written in this stage, including those of unfinished files
    :ivar failed: items that failed, or problems that were found
    :ivar of_items: number of all items of this stage; :data:`None` if it is unknown
    :ivar of_bytes: size of all items of this stage; :data:`None` if it is unknown
    """

    stage: str = ""
    items: int = 0
    bytes: int = 0
    failed: int = 0
    of_items: int | None = None
    of_bytes: int | None = None

    def plus(self, items: int, bytes: int = 0, failed: int = 0) -> ProgressEvent:
        """Return this progress with more done."""
        done = self.items + items, self.bytes + bytes, self.failed + failed
        return ProgressEvent(self.stage, *done, self.of_items, self.of_bytes)


class Progress:
    """The progress of one call, which changes it while it runs; another thread may read it, and cancel the call.

    >>> import io
    >>> import pressmark
    >>> progress = pressmark.Progress()
    >>> layout = pressmark.layout("pairtree")
    >>> layout.map_file(io.BytesIO(b"a\\nb\\n"), io.BytesIO(), progress=progress).items
    2
    >>> progress.done, progress.bytes
    (2, 4)

    :param on_change: called with this object after each change, a few times per second, in the thread of the call
    :ivar stage: the name of the current stage, as documented with the call; empty if the call has no stages
    :ivar done: files, objects, identifiers or layouts done in this stage, including those that failed
    :ivar total: number of all items of this stage; :data:`None` if it is unknown
    :ivar bytes: bytes read or written in this stage, including those of unfinished files
    :ivar total_bytes: size of all items of this stage; :data:`None` if it is unknown
    :ivar failed: items that failed, or problems that were found
    """

    def __init__(self, on_change: Callable[[Progress], object] | None = None) -> None:
        self.stage = ""
        self.done = 0
        self.total: int | None = None
        self.bytes = 0
        self.total_bytes: int | None = None
        self.failed = 0
        self._on_change = on_change
        self._is_cancelled = False

    def __repr__(self) -> str:
        total = "" if self.total is None else f" of {self.total:,}"
        failed = f", {self.failed:,} failed" if self.failed else ""
        return f"<Progress {self.stage and self.stage + ': '}{self.done:,}{total} done, {self.bytes:,} bytes{failed}>"

    def cancel(self) -> None:
        """End the call at its next change: it raises :exc:`pressmark.Cancelled` and leaves what Ctrl-C would leave."""
        self._is_cancelled = True

    def __call__(self, event: object) -> None:
        """Record an event of the call; those that are not :class:`ProgressEvent` change nothing."""
        if isinstance(event, ProgressEvent):
            self.stage, self.done, self.bytes, self.failed, self.total, self.total_bytes = event
            if self._on_change is not None:
                self._on_change(self)
        self._refuse_cancelled()

    def _refuse_cancelled(self) -> None:
        if self._is_cancelled:
            raise Cancelled


class EventListener(Progress):
    """The progress of a call that passes all its events to a function: problems when they are found, and others.

    :param function: called with each event, in the thread of the call
    """

    def __init__(self, function: Callable[[Any], object]) -> None:
        super().__init__()
        self._function = function

    def __call__(self, event: object) -> None:
        self._function(event)
        self._refuse_cancelled()


class ProgressOfCalls:
    """The progress of calls that run one after another, as that of one call.

    :param progress: receives the events of all calls; :data:`None` without one
    :param before: what was done before; its totals are those of all calls together
    """

    def __init__(self, progress: Callable[[ProgressEvent], object] | None, before: ProgressEvent) -> None:
        self._progress = progress
        self._done = before

    def next(self) -> Progress | None:
        """Return the progress of the next call."""
        progress, first = self._progress, self._done
        if progress is None:
            return None

        def add(event: ProgressEvent) -> None:
            self._done = first.plus(event.items, event.bytes, event.failed)
            progress(self._done)

        return EventListener(add)
