"""Progress of a run over files: bytes, rate, time left."""

from __future__ import annotations

import operator
import os
import threading
import time
from collections.abc import Callable, Iterable

from pressmark.cli.common.console import say
from pressmark.cli.common.progress import ProgressMode, Reporter, format_duration
from pressmark.fixity import Outcome, Progress

__all__ = ["FileProgress", "format_bytes", "format_count", "format_rate"]

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
    :param transient: remove the display at the end: the run reports its result itself
    :param noun: the noun of the counted items, in the singular
    """

    def __init__(
        self,
        mode: ProgressMode,
        paths: Callable[[], Iterable[str | bytes | Outcome]] | None,
        on_pause: Callable[[], object] = lambda: None,
        *,
        transient: bool = False,
        noun: str = "file",
    ) -> None:
        super().__init__(mode, transient=transient)
        self.files = 0
        self._paths = paths
        self._on_pause = on_pause
        self._noun = noun
        self._before = self._now = Progress(0, 0, 0)
        self._sizing: _Sizing | None = None
        self._stage = ""
        self._expected: int | None = None
        self._stage_begin = self._begin

    def __exit__(self, *exception: object) -> None:
        if self._sizing is not None:
            self._sizing.stop()
        super().__exit__(*exception)

    def next_run(self) -> None:
        """Add the counts of the next events, which start at zero again, to those so far."""
        self._before = self._now

    def stage(self, text: str, expected: int | None = None) -> None:
        """Start a stage of the run.

        :param text: name of the stage
        :param expected: total of the stage in bytes, if known
        """
        self._stage = f"{text}: "
        self._expected = expected
        self._stage_begin = time.monotonic()
        self._before = self._now = Progress(0, 0, 0)
        if self._display is not None:
            self._display.update(0, text, expected)
        elif self.is_log_due(self._stage_begin):
            say(text)

    def on_event(self, event: object) -> None:
        """Report failures, and progress if it is time. Events other than :class:`Progress` are ignored."""
        if not isinstance(event, Progress):
            return
        counts = self._now = Progress(*map(operator.add, self._before, event))
        self.flush()
        self._on_pause()
        now = time.monotonic()
        if self._mode is ProgressMode.NONE or not self.is_long(now):
            return
        if self._sizing is None and self._paths is not None:
            # Not from the start: a short run needs no estimate.
            self._sizing = _Sizing(self._paths)
        total = self._sizing.total if self._sizing else self._expected
        self.show(now, lambda: self._text(counts, now - self._stage_begin, total), counts.bytes, total)

    def _text(self, event: Progress, seconds: float, total: int | None) -> str:
        text = f"{self._stage}{format_count(event.files, self._noun)}"
        if event.bytes or total:
            text += f", {format_bytes(event.bytes)}"
        if total is not None:
            text += f" of {format_bytes(total)}"
        if seconds:
            text += f", {format_bytes(event.bytes / seconds)}/s" if event.bytes else f", {event.files / seconds:,.0f}/s"
        if total and event.bytes:
            text += f", {format_duration(max(0, total - event.bytes) * seconds / event.bytes)} left"
        return f"{text}, {event.failed:,} failed" if event.failed else text


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
