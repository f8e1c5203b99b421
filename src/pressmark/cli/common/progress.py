"""What happens meanwhile: a display on a terminal, a line now and then in a log, and failures in between."""

from __future__ import annotations

import os
import sys
import time
from enum import Enum
from typing import TYPE_CHECKING, Any

from pressmark.cli.common.console import PROGRAM, one_line, say, say_lines
from pressmark.cli.common.files import Sink, Source
from pressmark.errors import IdentifierError, PathError, quoted

if TYPE_CHECKING:
    from pressmark.layouts import LineCounts

__all__ = ["DISPLAY_AFTER", "FAILURES_AT_ONCE", "LOG_EVERY", "Display", "Manner", "Progress", "duration", "manner_of"]

# A display that is gone before it is read only flickers, and costs the import of rich.
DISPLAY_AFTER = 1.0  # seconds
LOG_EVERY = 10.0  # seconds
# Failures are written this many at once: a display is drawn again below each of its prints.
FAILURES_AT_ONCE = 256


class Manner(Enum):
    """How progress is shown."""

    DISPLAY = "display"
    LOG = "log"
    NONE = "none"


def manner_of(wanted: bool | None, sink: Sink) -> Manner:
    """Return how to show progress: as ``--progress`` or ``--no-progress`` says, or for :data:`None` as it fits."""
    if wanted is False or sys.stderr is None:
        return Manner.NONE
    terminal = sys.stderr.isatty()
    if terminal and not sink.terminal and os.environ.get("TERM") != "dumb":
        return Manner.DISPLAY
    # Whoever watches the data itself on a terminal sees it grow; lines in between would only disturb.
    return Manner.LOG if wanted or not (terminal and sink.terminal) else Manner.NONE


class Progress:
    """Tells of one run from ``source``; a context manager that leaves nothing unsaid.

    :param noun: what the items are, in the plural
    :param null: items are delimited by NUL, and numbered instead of being on lines
    """

    def __init__(self, manner: Manner, source: Source, noun: str, null: bool) -> None:
        self.failed = 0
        self._manner = manner
        self._source = source
        self._noun = noun
        self._null = null
        self._held: list[str] = []
        self._display: Display | None = None
        self._begin = time.monotonic()
        self._next_log = self._begin + LOG_EVERY

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._tell_failures()
        if self._display is not None:
            self._display.stop()

    def failure_text(self, error: IdentifierError | PathError) -> str:
        """Return the line for a failing item, without the program's name."""
        number = (error.index or 0) + 1
        place = f"{self._source.name}: item {number}" if self._null else f"{self._source.name}:{number}"
        return f"{place}: {quoted(error.item)}: {error.reason}"

    def on_failure(self, error: IdentifierError | PathError) -> None:
        """Take note of an item that was left out or left empty."""
        self.failed += 1
        self._held.append(self.failure_text(error))
        if len(self._held) >= FAILURES_AT_ONCE:
            self._tell_failures()

    def on_progress(self, counts: LineCounts) -> None:
        """Tell what has failed, and where it is time, how far the run is."""
        self._tell_failures()
        if self._manner is Manner.NONE:
            return
        now = time.monotonic()
        if self._manner is Manner.LOG:
            if now >= self._next_log:
                self._next_log = now + LOG_EVERY
                say(self._log_line(counts, now - self._begin))
        elif now - self._begin >= DISPLAY_AFTER:
            if self._display is None:
                self._display = Display(self._source.size)
            self._display.update(self._source.bytes_read, self._counted(counts, now - self._begin))

    def _tell_failures(self) -> None:
        if self._held:
            texts, self._held = self._held, []
            if self._display is None:
                say_lines(texts)
            else:
                self._display.say_lines(texts)

    def _counted(self, counts: LineCounts, seconds: float) -> str:
        text = f"{counts.items:,} {self._noun}, {counts.items / seconds:,.0f} a second"
        return f"{text}, {counts.failed:,} failed" if counts.failed else text

    def _log_line(self, counts: LineCounts, seconds: float) -> str:
        line = self._counted(counts, seconds)
        read = self._source.bytes_read
        if self._source.size and read:
            left = max(0, self._source.size - read) * seconds / read
            line += f", {min(100, 100 * read // self._source.size)} %, {duration(left)} left"
        return line


def duration(seconds: float) -> str:
    """Return a duration as hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Display:
    """A bar on stderr, with lines above it.

    :param size: of what is to be done; :data:`None` where it is not known, or :meth:`update` says it
    :param transient: the bar vanishes in the end
    """

    def __init__(self, size: int | None, transient: bool = False) -> None:
        # Here and not above: rich takes longer to import than all the rest of a short run.
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._console: Any = Console(stderr=True)
        columns: list[Any] = [BarColumn(), TextColumn("{task.description}", markup=False)]
        if size:
            columns += [TaskProgressColumn(), TimeRemainingColumn()]
        # Nothing else writes to the terminal: data goes elsewhere, and every line comes through say_lines.
        self._bar: Any = RichProgress(
            *columns, console=self._console, transient=transient, redirect_stdout=False, redirect_stderr=False
        )
        self._task = self._bar.add_task("", total=size or None)
        self._bar.start()

    def update(self, done: int, text: str, size: int | None = None) -> None:
        self._bar.update(self._task, completed=done, description=text, total=size)

    def say_lines(self, texts: list[str]) -> None:
        lines = "\n".join(f"{PROGRAM}: {one_line(text)}" for text in texts)
        # As they are: neither wrapped, nor coloured, nor read as markup.
        self._console.print(lines, soft_wrap=True, markup=False, highlight=False, emoji=False)

    def stop(self) -> None:
        self._bar.stop()
