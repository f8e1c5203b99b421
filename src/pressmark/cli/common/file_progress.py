"""Progress of a run over files: bytes, rate, time left."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable

from pressmark.cli.common.console import one_line
from pressmark.cli.common.progress import ProgressOutput, Reporter, View, seconds_left
from pressmark.fixity import Outcome
from pressmark.progress_event import Progress

__all__ = ["FileProgress", "format_bytes", "format_count", "format_rate"]

FLUSH_EVERY = 0.1  # seconds
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def format_bytes(count: float) -> str:
    """Return a size in decimal units: ``1.5 MB``."""
    power = 0
    while count >= 999.5 and power < len(_UNITS) - 1:
        count /= 1000
        power += 1
    return f"{count:.0f} {_UNITS[0]}" if power == 0 else f"{count:.3g} {_UNITS[power]}"


def format_count(count: int, noun: str) -> str:
    """Return ``count`` with its ``noun``, given in the singular: ``1 file``, ``1,000 files``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def format_rate(size: int, seconds: float) -> list[str]:
    """Return the rate in a list, to be joined with other figures; empty for runs of less than a second."""
    return [f"{format_bytes(size / seconds)}/s"] if seconds >= 1 else []


class FileProgress(Reporter):
    """The reporter of a run over files or objects.

    :param paths: yields the files once more, for the background thread that adds up their sizes; each :class:`Outcome`
        is skipped. :data:`None` if only :meth:`stage` reports a total
    :param on_pause: called a few times a second, to write pending results
    :param noun: the noun of the counted items, in the singular
    """

    def __init__(
        self,
        output: ProgressOutput,
        paths: Callable[[], Iterable[str | bytes | Outcome]] | None,
        on_pause: Callable[[], object] = lambda: None,
        *,
        noun: str = "file",
    ) -> None:
        super().__init__(output)
        self.files = self.excluded = 0
        self._paths = paths
        self._on_pause = on_pause
        self._noun = noun
        self._before = self._now = Progress()
        self._sizing: _Sizing | None = None
        self._stage = ""
        self._expected: int | None = None
        self._stage_begin = self._begin
        self._next_flush = 0.0

    @property
    def done(self) -> Progress:
        """What was read so far."""
        return self._now

    def hide(self) -> None:
        """Write the waiting lines, and end the display."""
        super().hide()
        if self._sizing is not None:
            self._sizing.stop()

    def next_run(self) -> None:
        """Add the counts of the next events, which start at zero again, to those so far."""
        self._before = self._now

    def stage(self, text: str, expected: int | None = None) -> None:
        """Start a stage of the run.

        :param text: name of the stage
        :param expected: total of the stage in bytes, if known
        """
        self._before = self._now = Progress()
        self._stage, self._expected, self._stage_begin = text, expected, time.monotonic()

    def on_event(self, event: object) -> None:
        """Record the progress, and write failures and results. Events other than :class:`Progress` are ignored."""
        if not isinstance(event, Progress):
            return
        self._now = self._before.plus(event.items, event.bytes, event.failed)
        now = time.monotonic()
        if now >= self._next_flush:  # each of many small bags sends an event
            self._next_flush = now + FLUSH_EVERY
            self.flush()
            self._on_pause()

    def on_excluded(self, path: str | bytes) -> None:
        """Count and report a file or directory that is left out."""
        self.excluded += 1
        self.report(f"excluded: {one_line(os.fsdecode(path))}")

    def on_long(self) -> None:
        """Add up the sizes of the files. Not from the start: a short run needs no estimate."""
        if self._paths is not None:
            self._sizing = _Sizing(self._paths)

    def view(self) -> View:
        """Return the current progress."""
        counts, seconds = self._now, time.monotonic() - self._stage_begin
        total = self._sizing.total if self._sizing else self._expected
        text = format_count(counts.items, self._noun)
        if counts.bytes or total:
            text += f", {format_bytes(counts.bytes)}"
        if total is not None:
            text += f" of {format_bytes(total)}"
        if seconds and (counts.items or counts.bytes):
            rate = f"{counts.items / seconds:,.0f}" if not counts.bytes else format_bytes(counts.bytes / seconds)
            text += f", {rate}/s"
        if counts.failed:
            text += f", {counts.failed:,} failed"
        return View(self._stage, text, counts.bytes, total, seconds_left(counts.bytes, total, seconds))


class _Sizing:
    """Adds up the sizes of files in a background thread.

    :ivar total: bytes of all files; :data:`None` until it is known
    """

    def __init__(self, paths: Callable[[], Iterable[str | bytes | Outcome]]) -> None:
        self.total: int | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._run, args=[paths], name="pressmark-sizes", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread."""
        self._stopped = True
        self._thread.join()

    def _run(self, paths: Callable[[], Iterable[str | bytes | Outcome]]) -> None:
        total = 0
        try:
            for path in paths():
                if self._stopped:
                    return
                if not isinstance(path, Outcome):
                    try:
                        total += os.stat(path).st_size
                    except (OSError, ValueError):
                        continue  # reported by the run
        except Exception:
            return  # no estimate
        self.total = total
