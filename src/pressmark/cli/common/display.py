"""A progress bar on a terminal, drawn by rich."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn

from pressmark.cli.common.console import PROGRAM, one_line

__all__ = ["Display"]


class Display:
    """A progress bar on stderr, with lines above it.

    :param size: total, for percentage and time left; :data:`None` if it is unknown or comes with :meth:`update`
    :param transient: remove the bar at the end
    """

    def __init__(self, size: int | None, transient: bool = False) -> None:
        self._console = Console(stderr=True)
        columns: list[ProgressColumn] = [BarColumn(), TextColumn("{task.description}", markup=False)]
        if size:
            columns += [TaskProgressColumn(), TimeRemainingColumn()]
        # Nothing else writes to the terminal: all lines are printed by say_lines.
        self._bar = Progress(
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
