"""The progress of a run. :mod:`pressmark.reports` exports it too, but takes longer to import."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Progress"]


class Progress(NamedTuple):
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

    def plus(self, items: int, bytes: int = 0, failed: int = 0) -> Progress:
        """Return this progress with more done."""
        return self._replace(items=self.items + items, bytes=self.bytes + bytes, failed=self.failed + failed)
