"""Progress of a run: a display on a terminal, a line now and then in a log, and failures in between."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Self

import click

from pressmark.cli.common.console import say, say_lines
from pressmark.cli.common.files import InputStream, OutputStream
from pressmark.errors import IdentifierError, PathError, quoted

if TYPE_CHECKING:
    from pressmark.cli.common.display import Display
    from pressmark.layouts import LineCounts

__all__ = [
    "PROGRESS",
    "LineProgress",
    "ProgressMode",
    "Reporter",
    "format_duration",
    "progress_mode",
]

# Seconds before the display appears: a shorter one would only flicker, and cost the import of rich.
DISPLAY_AFTER = 1.0
LOG_EVERY = 10.0  # seconds
# Failures are printed in groups: the display is drawn again after each.
FAILURES_AT_ONCE = 256

PROGRESS = click.option(
    "--progress/--no-progress",
    default=None,
    help="Show or hide progress on stderr: a display on a terminal, otherwise a line every 10 seconds (default: show,"
    " unless data are printed to the terminal).",
)


class ProgressMode(Enum):
    """How progress is shown."""

    DISPLAY = "display"
    LOG = "log"
    NONE = "none"


def progress_mode(wanted: bool | None, sink: OutputStream) -> ProgressMode:
    """Return how to show progress.

    :param wanted: ``--progress`` or ``--no-progress``; :data:`None` if neither is given
    """
    if wanted is False or sys.stderr is None:
        return ProgressMode.NONE
    terminal = sys.stderr.isatty()
    if terminal and not sink.terminal and os.environ.get("TERM") != "dumb":
        return ProgressMode.DISPLAY
    # Data on the terminal show the progress; lines between them would disturb.
    return ProgressMode.LOG if wanted or not (terminal and sink.terminal) else ProgressMode.NONE


class Reporter:
    """Shows the progress of a run on stderr, and its failures; a context manager.

    :param size: total of a progress bar with percentage, if known from the start
    :param transient: remove the display at the end

    :ivar failed: number of failures
    """

    def __init__(self, mode: ProgressMode, size: int | None = None, *, transient: bool = False) -> None:
        self.failed = 0
        self._mode = mode
        self._size = size
        self._transient = transient
        self._pending: list[str] = []
        self._display: Display | None = None
        self._begin = time.monotonic()
        self._next_log = self._begin + LOG_EVERY

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.hide()

    def hide(self) -> None:
        """Write the lines that wait, and end the display until progress is shown again."""
        self.flush()
        if self._display is not None:
            self._display.stop()
            self._display = None

    def fail(self, text: str) -> None:
        """Count a failure and report it."""
        self.failed += 1
        self.report(text)

    def report(self, text: str) -> None:
        """Write ``text`` as a line, soon."""
        self._pending.append(text)
        if len(self._pending) >= FAILURES_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Write the lines that wait."""
        if self._pending:
            texts, self._pending = self._pending, []
            (say_lines if self._display is None else self._display.say_lines)(texts)

    def show(self, now: float, text: Callable[[], str], done: int = 0, total: int | None = None) -> None:
        """Show progress in the display, or as a line of a log if one is due.

        :param now: :func:`time.monotonic`
        :param text: called if progress is shown
        :param done: position of the bar
        :param total: end of the bar, if known
        """
        if self._mode is ProgressMode.LOG:
            if self.is_log_due(now):
                say(text())
        elif self._mode is ProgressMode.DISPLAY and self.is_long(now):
            if self._display is None:
                # rich takes longer to import than the rest of a short run.
                from pressmark.cli.common.display import Display

                self._display = Display(self._size, self._transient)
            self._display.update(done, text(), total)

    def is_long(self, now: float) -> bool:
        """Return whether the run has lasted long enough for a display."""
        return now - self._begin >= DISPLAY_AFTER

    def is_log_due(self, now: float) -> bool:
        """Return whether a line of the log is due, and schedule the next one if so."""
        if self._mode is not ProgressMode.LOG or now < self._next_log:
            return False
        self._next_log = now + LOG_EVERY
        return True


def format_duration(seconds: float) -> str:
    """Return a duration as hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class LineProgress(Reporter):
    """The reporter of a run over the items of ``source``.

    :param noun: what the items are, in the plural
    :param null: items are delimited by NUL, and numbered instead of being on lines
    """

    def __init__(self, mode: ProgressMode, source: InputStream, noun: str, null: bool) -> None:
        super().__init__(mode, source.size)
        self._source = source
        self._noun = noun
        self._null = null

    def failure_text(self, error: IdentifierError | PathError) -> str:
        """Return the line for a failed item, without the name of the program."""
        number = (error.index or 0) + 1
        place = f"{self._source.name}: item {number}" if self._null else f"{self._source.name}:{number}"
        return f"{place}: {quoted(error.item)}: {error.reason}"

    def on_failure(self, error: IdentifierError | PathError) -> None:
        """Report an item that failed."""
        self.fail(self.failure_text(error))

    def on_progress(self, counts: LineCounts) -> None:
        """Report failures, and progress if it is time."""
        self.flush()
        now = time.monotonic()
        self.show(now, lambda: self._text(counts, now - self._begin), self._source.bytes_read)

    def _text(self, counts: LineCounts, seconds: float) -> str:
        text = f"{counts.items:,} {self._noun}, {counts.items / seconds:,.0f} a second"
        if counts.failed:
            text += f", {counts.failed:,} failed"
        read, size = self._source.bytes_read, self._source.size
        # The display has columns for these.
        if self._mode is ProgressMode.LOG and size and read:
            left = max(0, size - read) * seconds / read
            text += f", {min(100, 100 * read // size)} %, {format_duration(left)} left"
        return text
