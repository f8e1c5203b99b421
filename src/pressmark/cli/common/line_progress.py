"""Progress of a run over the items of one input."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pressmark.cli.common.files import Source
from pressmark.cli.common.progress import ProgressMode, Reporter, format_duration
from pressmark.errors import IdentifierError, PathError, quoted

if TYPE_CHECKING:
    from pressmark.layouts import LineCounts

__all__ = ["LineProgress"]


class LineProgress(Reporter):
    """The reporter of a run over the items of ``source``.

    :param noun: what the items are, in the plural
    :param null: items are delimited by NUL, and numbered instead of being on lines
    """

    def __init__(self, mode: ProgressMode, source: Source, noun: str, null: bool) -> None:
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
