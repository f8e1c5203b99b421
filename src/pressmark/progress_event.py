"""How far a run is. :mod:`pressmark.reports` has the event too; this module imports nothing that is slow to import."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Progress"]


class Progress(NamedTuple):
    """An event: how far a run is. Sent a few times per second, and when a stage begins.

    :ivar stage: what is done now, a word that the call documents; empty if it has no stages
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
