"""Progress of a run: a display on a terminal, or regular lines in a log, with failures in between."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Self

from pressmark.cli.common import console
from pressmark.cli.common.console import Failure, one_line, write_lines
from pressmark.cli.common.files import OutputStream
from pressmark.progress_event import ProgressEvent
from pressmark.summaries import format_bytes
from pressmark.threads import started

if TYPE_CHECKING:
    from pressmark.cli.common.display import Display
    from pressmark.fixity.outcomes import Fetched, Outcome

__all__ = [
    "ProgressMode",
    "ProgressOutput",
    "Reporter",
    "View",
    "format_bytes",
    "format_count",
    "format_duration",
    "format_rate",
    "progress_mode",
]

# Seconds before the display appears: a shorter one would only flicker, and cost the import of rich.
DISPLAY_AFTER = 0.7
DRAW_EVERY = 0.2  # seconds
LOG_EVERY = 30.0  # seconds
FLUSH_EVERY = 0.1  # seconds
# Lines are written in groups: the display is drawn again after each.
LINES_AT_ONCE = 256


class ProgressMode(Enum):
    """How progress is shown."""

    DISPLAY = "display"
    LOG = "log"
    NONE = "none"


class ProgressOutput(NamedTuple):
    """How progress is shown, and the output that may go to the same terminal."""

    mode: ProgressMode
    sink: OutputStream | None = None


def progress_mode(wanted: bool | None, sink: OutputStream, *, data: bool = False) -> ProgressOutput:
    """Return how to show progress.

    :param wanted: ``--progress`` or ``--quiet``; :data:`None` if neither is given
    :param data: the output is data, such as a manifest; otherwise results, such as the problems of a bag
    """
    if wanted is False or sys.stderr is None:
        return ProgressOutput(ProgressMode.NONE)
    terminal = sys.stderr.isatty()
    shows_data = data and sink.terminal
    if terminal and not shows_data and os.environ.get("TERM") != "dumb":
        return ProgressOutput(ProgressMode.DISPLAY, sink)
    # Data on the terminal show the progress; lines between them would disturb.
    return ProgressOutput(ProgressMode.LOG if wanted or not (terminal and shows_data) else ProgressMode.NONE)


class View(NamedTuple):
    """The progress at one moment.

    :ivar stage: name of the current step, if the run has several
    :ivar text: counts and rates
    :ivar done: position of the bar
    :ivar total: end of the bar; :data:`None` if it is unknown
    :ivar left: estimate of the remaining seconds
    """

    stage: str = ""
    text: str = ""
    done: float = 0
    total: float | None = None
    left: float | None = None

    def parts(self, seconds: float) -> tuple[str, float, float | None, str, str]:
        """Return the parts of the progress display of a run that has lasted ``seconds``."""
        times = format_duration(seconds)
        if self.left is not None:
            times += f", {format_duration(self.left)} left"
        if self.total:
            times = f"{min(100, int(100 * self.done / self.total)):3} %  {times}"
        return self.stage, self.done, self.total, times, self.text

    def line(self) -> str:
        """Return the view as one line of a log."""
        pieces = [self.text] if self.text else []
        if self.total:
            pieces.append(f"{min(100, int(100 * self.done / self.total))} %")
        if self.left is not None:
            pieces.append(f"{format_duration(self.left)} left")
        return ": ".join(filter(None, [self.stage, ", ".join(pieces)])) or "running"


class Reporter:
    """Shows the progress of a run on stderr, and failures above it; a context manager.

    A thread draws the display, so it is also updated while a single file or step takes long. Output to the same
    terminal is written above the display.

    :param noun: the noun of the counted items, in the singular
    :param stages: the words of the stages, by their names in events; with a noun if other items are counted
    :param paths: yields the files once more, for the background thread that adds up their sizes: the total of events
        without a stage. Each :class:`Outcome` is skipped. :data:`None` if only events report a total
    :param count: yields the numbers of items in the parts of a list, for a background thread that adds them up
    :param on_pause: called a few times a second, to write pending results
    :ivar stages: as given, and changeable
    :ivar failed: number of failures that were reported
    :ivar excluded: number of files and directories that are left out
    :ivar done: the progress of the stage so far
    """

    def __init__(
        self,
        output: ProgressOutput,
        noun: str = "file",
        stages: Mapping[str, str | tuple[str, str]] | None = None,
        *,
        paths: Callable[[], Iterable[str | bytes | Fetched | Outcome]] | None = None,
        count: Callable[[], Iterable[int]] | None = None,
        on_pause: Callable[[], object] = lambda: None,
    ) -> None:
        self.failed = self.excluded = 0
        self.done = ProgressEvent()
        self._mode, self._sink = output
        self._noun = noun
        self.stages = dict(stages or {})
        self._paths = paths
        self._count = count
        self._on_pause = on_pause
        # Of the stage: what earlier runs have done, and what was done before it began, which counts for no rate.
        self._before = self._first = ProgressEvent()
        self._is_hidden = False
        self._sizing: _Sum | None = None
        self._counting: _Sum | None = None
        self._next_flush = 0.0
        self._pending: deque[str | bytes] = deque()
        self._lock = threading.RLock()
        self._display: Display | None = None
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()
        self._begin = self._since = time.monotonic()

    def __enter__(self) -> Self:
        self.resume()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.hide()
        self._is_hidden = False

    def resume(self) -> None:
        """Show progress, also after :meth:`hide`; not before the run has lasted for a while."""
        self._is_hidden = False
        if self._thread is None and self._mode is not ProgressMode.NONE:
            self._ended.clear()
            thread = threading.Thread(target=self._run, name="pressmark-progress", daemon=True)
            if started(thread):
                self._thread = thread

    def hide(self) -> None:
        """Write the waiting lines, and end the display until the next event."""
        self._is_hidden = True
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with self._lock:
            if self._display is not None:
                self._display.stop()
                self._display = None
                self._redirect(False)
        self.flush()
        for adding in (self._sizing, self._counting):
            if adding is not None:
                adding.stop()

    # --- what happens -------------------------------------------------------------------------------------------------

    def on_event(self, event: object) -> None:
        """Record the progress, and write failures and results. Events other than :class:`ProgressEvent` are ignored."""
        if not isinstance(event, ProgressEvent):
            return
        if event.stage != self.done.stage:
            self._before = ProgressEvent(event.stage)
            # What an earlier call has done of all items counts for no rate.
            self._first = event if event.of_items is not None else self._before._replace(of_bytes=event.of_bytes)
            self._since = time.monotonic()
        before, size = self._before, self._first.of_bytes if event.of_bytes is None else event.of_bytes
        done = event.plus(before.items, before.bytes, before.failed)
        self.done = done if done.of_bytes == size else done._replace(of_bytes=size)
        if self._is_hidden:
            self.resume()
        now = time.monotonic()
        if now >= self._next_flush:  # each of many small bags sends an event
            self._next_flush = now + FLUSH_EVERY
            self.flush()
            self._on_pause()

    def next_run(self) -> None:
        """Add the counts of the next events, which start at zero again, to those so far."""
        self._before = self.done

    def report_excluded(self, paths: list[str] | list[str | bytes]) -> None:
        """Count and report files and directories that are left out, and empty the list."""
        self.excluded += len(paths)
        for path in paths:
            self.report(f"excluded: {one_line(os.fsdecode(path))}")
        paths.clear()

    def fail(self, text: str) -> None:
        """Count a failure and report it."""
        self.failed += 1
        self.report(text)

    def report(self, text: str) -> None:
        """Write ``text`` as a line on stderr, soon."""
        self._add(text)

    def flush(self) -> None:
        """Write the waiting lines; the thread writes them above the display."""
        with self._lock:
            if self._display is None:
                self._write_pending()

    def clear(self) -> None:
        """Erase the display until it is drawn again: the reader of a pipe may write to the same terminal."""
        with self._lock:
            if self._display is not None and self._sink is not None and self._sink.is_pipe():
                self._display.stop()

    def view(self) -> View:
        """Return the current progress; called in the thread that shows it."""
        event, first, seconds = self.done, self._first, time.monotonic() - self._since
        items, size = event.items - first.items, event.bytes - first.bytes
        sizing = None if event.stage else self._sizing
        of_bytes = event.of_bytes if sizing is None else sizing.total
        of_items = event.of_items if self._counting is None else self._counting.total
        stage, noun = self.stages.get(event.stage, ""), self._noun
        if isinstance(stage, tuple):
            stage, noun = stage
        text = format_count(event.items, noun)
        if of_items is not None:
            text = f"{event.items:,} of {format_count(of_items, noun)}"
        if event.bytes or of_bytes:
            text += f", {format_bytes(event.bytes)}" + ("" if of_bytes is None else f" of {format_bytes(of_bytes)}")
        if of_items is not None and not items and event.items < of_items:
            # Processes take a moment to start, and a large object to be copied.
            text += f", waiting for the first {noun}"
        # Of large files, only the size tells how fast the run is.
        if seconds > 0 and items > 0 and (size <= 0 or items >= 10 * seconds):
            text += f", {items / seconds:,.0f}/s"
        if seconds > 0 and size > 0:
            text += f", {format_bytes(size / seconds)}/s"
        if event.failed:
            text += f", {event.failed:,} failed"
        # The sizes of files tell more than their number, where they were added up.
        by_bytes = of_items is None or (sizing is not None and of_bytes is not None)
        done, total = (event.bytes, of_bytes) if by_bytes else (event.items, of_items)
        lefts = [
            max(0, of - at) * seconds / new
            for of, at, new in ((of_bytes, event.bytes, size), (of_items, event.items, items))
            if of and new > 0
        ]
        return View(stage, text, done, total, max(lefts, default=None))

    def on_long(self) -> None:
        """Add up the sizes of the files, and the items. Called in the thread, once: a short run needs no estimate."""
        paths, count = self._paths, self._count
        if paths is not None:
            self._sizing = _Sum(lambda: _sizes(paths()))
        if count is not None:
            self._counting = _Sum(count)

    # --- the thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        # The terminal may be gone.
        with contextlib.suppress(OSError, ValueError, Failure):
            if self._ended.wait(max(0.0, self._begin + DISPLAY_AFTER - time.monotonic())):
                return
            self.on_long()
            if self._mode is ProgressMode.LOG:
                while not self._ended.wait(LOG_EVERY - (time.monotonic() - self._begin) % LOG_EVERY):
                    write_lines([self.view().line()])
                return
            # rich takes longer to import than a short run.
            from pressmark.cli.common.display import Display

            with self._lock:
                self._display = Display(lambda: self.view().parts(time.monotonic() - self._begin))
                self._redirect(True)
            while not self._ended.wait(DRAW_EVERY):
                self._draw()

    def _draw(self) -> None:
        """Write the waiting lines above the display, and draw it again."""
        with self._lock:
            if self._display is None:
                return
            if not self._pending:
                self._display.draw()
                return
            with self._display.erased():
                self._write_pending()

    def _redirect(self, on: bool) -> None:
        """Collect all lines to stderr, and output to the same terminal, while the display is shown."""
        console.redirect = self._add_lines if on else None
        if self._sink is not None and self._sink.terminal:
            self._sink.redirect = self._add if on else None

    def _add_lines(self, texts: list[str]) -> None:
        for text in texts:
            self._add(text)

    def _add(self, line: str | bytes) -> None:
        self._pending.append(line)
        if len(self._pending) >= LINES_AT_ONCE:
            (self.flush if self._display is None else self._draw)()

    def _write_pending(self) -> None:
        texts: list[str] = []
        while self._pending:
            line = self._pending.popleft()
            if isinstance(line, str):
                texts.append(line)
                continue
            write_lines(texts)
            texts = []
            assert self._sink is not None
            self._sink.write_now(line)
        write_lines(texts)


def format_duration(seconds: float) -> str:
    """Return a duration as hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def format_count(count: int, noun: str) -> str:
    """Return ``count`` with its ``noun``, given in the singular: ``1 file``, ``1,000 files``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def format_rate(size: int, seconds: float) -> list[str]:
    """Return the rate in a list, to be joined with other figures; empty for runs of less than a second."""
    return [f"{format_bytes(size / seconds)}/s"] if seconds >= 1 else []


class _Sum:
    """Adds up numbers in a background thread.

    :param numbers: yields them
    :ivar total: their sum; :data:`None` until it is known
    """

    def __init__(self, numbers: Callable[[], Iterable[int]]) -> None:
        self.total: int | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._run, args=[numbers], name="pressmark-totals", daemon=True)
        started(self._thread)

    def stop(self) -> None:
        """Stop the thread."""
        self._stopped = True
        if self._thread.ident is not None:  # it was started
            self._thread.join()

    def _run(self, numbers: Callable[[], Iterable[int]]) -> None:
        total = 0
        try:
            for number in numbers():
                if self._stopped:
                    return
                total += number
        except Exception:
            return  # no estimate
        self.total = total


def _sizes(paths: Iterable[str | bytes | Fetched | Outcome]) -> Iterator[int]:
    """Yield the size of each file; an error is reported by the run."""
    for path in paths:
        if isinstance(path, (str, bytes)):
            with contextlib.suppress(OSError, ValueError):
                yield os.stat(path).st_size
