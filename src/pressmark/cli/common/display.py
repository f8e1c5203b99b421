"""A progress bar on a terminal, drawn by rich."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

__all__ = ["Display"]

_LONGEST = 60  # columns of the bar


class Display:
    """A bar and a line of counts on stderr, which fit any width.

    :param parts: returns the step, the position of the bar and its end (:data:`None` if unknown), the times, the counts
    """

    def __init__(self, parts: Callable[[], tuple[str, float, float | None, str, str]]) -> None:
        self._parts = parts
        self._console = Console(stderr=True)
        # The caller draws it, and writes everything else above it.
        self._live = Live(
            get_renderable=self._lines,
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start(refresh=True)

    def draw(self) -> None:
        """Draw the current progress."""
        if self._live.is_started:
            self._live.refresh()
        else:
            self._live.start(refresh=True)

    def stop(self) -> None:
        """Erase the display, until it is drawn again."""
        self._live.stop()

    @contextmanager
    def erased(self) -> Iterator[None]:
        """Erase the display for the duration of the block."""
        self._live.stop()
        try:
            yield
        finally:
            self._live.start(refresh=True)

    def _lines(self) -> RenderableType:
        step, done, total, times, counts = self._parts()
        # Some terminals wrap a line that fills the last column.
        width = self._console.width - 1
        room = width - len(times) - 1 - (len(step) + 1 if step else 0)
        bar = ProgressBar(total=total or None, completed=min(done, total or 0), width=max(4, min(_LONGEST, room)))
        first = Table.grid(padding=(0, 1, 0, 0))
        first.add_row(*([Text(step, no_wrap=True)] if step else []), bar, Text(times, no_wrap=True))
        second = Text(counts, no_wrap=True)
        second.truncate(width, overflow="ellipsis")
        return Group(first, second)
