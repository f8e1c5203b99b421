"""Progress of a run: a display on a terminal, a line now and then in a log, and failures in between."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from enum import Enum
from typing import Any, Self

import click

from pressmark.cli.common.console import PROGRAM, one_line, say, say_lines
from pressmark.cli.common.files import Sink

__all__ = [
    "PROGRESS",
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


def progress_mode(wanted: bool | None, sink: Sink) -> ProgressMode:
    """Return how to show progress.

    :param wanted: ``--progress`` or ``--no-progress``; :data:`None` if neither is given
    """
    if wanted is False or sys.stderr is None:
        return ProgressMode.NONE
    terminal = sys.stderr.isatty()
    if terminal and not sink.terminal and os.environ.get("TERM") != "dumb":
        return ProgressMode.DISPLAY
    # Data on the terminal are progress enough; lines between them would disturb.
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
        :param total: its end, if known
        """
        if self._mode is ProgressMode.LOG:
            if self.is_log_due(now):
                say(text())
        elif self._mode is ProgressMode.DISPLAY and self.is_long(now):
            if self._display is None:
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


class Display:
    """A progress bar on stderr, with lines above it.

    :param size: total, for percentage and time left; :data:`None` if it is unknown or comes with :meth:`update`
    :param transient: remove the bar at the end
    """

    def __init__(self, size: int | None, transient: bool = False) -> None:
        # Imported here: rich takes longer to import than the rest of a short run.
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._console: Any = Console(stderr=True)
        columns: list[Any] = [BarColumn(), TextColumn("{task.description}", markup=False)]
        if size:
            columns += [TaskProgressColumn(), TimeRemainingColumn()]
        # Nothing else writes to the terminal: all lines are printed by say_lines.
        self._bar: Any = RichProgress(
            *columns, console=self._console, transient=transient, redirect_stdout=False, redirect_stderr=False
        )
        self._task = self._bar.add_task("", total=size or None)
        self._bar.start()

    def update(self, done: int, text: str, size: int | None = None) -> None:
        self._bar.update(self._task, completed=done, description=text, total=size)

    def say_lines(self, texts: list[str]) -> None:
        lines = "\n".join(f"{PROGRAM}: {one_line(text)}" for text in texts)
        # Neither wrapped, nor coloured, nor parsed as markup.
        self._console.print(lines, soft_wrap=True, markup=False, highlight=False, emoji=False)

    def stop(self) -> None:
        self._bar.stop()
