"""Objects of any store into an OCFL storage root, each as version 1 of a new object."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from pressmark.errors import ObjectError
from pressmark.fs.durable import can_flush_filesystem
from pressmark.fs.names import encode_fs
from pressmark.migrate.object_digest import ALGORITHM, object_digest
from pressmark.migrate.options import Options
from pressmark.migrate.planning.entry import Entry
from pressmark.migrate.transfer.direction import Way, names, note_left_out
from pressmark.migrate.transfer.in_flight import InFlight
from pressmark.migrate.transfer.reading import Content, check_unchanged
from pressmark.stores import Store
from pressmark.stores.ocfl.bulk_writer import WrittenSmall
from pressmark.stores.ocfl.object_writer import Written
from pressmark.stores.ocfl.root import OcflRoot

__all__ = ["IntoOcfl"]


class IntoOcfl(Way):
    """Writes objects aside, and moves them in many at a time."""

    destination: OcflRoot

    def __init__(self, options: Options, source: Store, destination: OcflRoot) -> None:
        super().__init__(options, source, destination)
        self._base = os.fsencode(destination.root)
        self._bulk_writer = destination.bulk_writer(durable_places=not can_flush_filesystem())
        self._items: list[InFlight] = []
        self._places: dict[str, bytes | None] = {}
        self._also = () if destination.algorithm == ALGORITHM else (ALGORITHM,)

    def __enter__(self) -> IntoOcfl:
        self._bulk_writer.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._bulk_writer.__exit__(*error)

    def prepare(self, entries: Sequence[Entry]) -> None:
        identifiers = [entry.id for entry in entries]
        self._places = dict(zip(identifiers, self.destination.places(identifiers), strict=True))

    def begin(self, item: InFlight, replace: bool = False) -> bool:
        entry = item.entry
        if not replace and self._begin_small(item):
            return False
        content = self.content(entry)
        self.note_time(item, content)
        known = {algorithm: block for algorithm, block in content.known.items() if block}
        if replace:
            self._replace(item, content, known)
            return True
        if os.path.lexists(os.path.join(self._base, encode_fs(entry.target))):
            # So that nothing is written for nothing; an empty directory is in nobody's way.
            self.destination.check_place_free(entry.id, encode_fs(entry.target))
        staged = self._bulk_writer.stage(
            entry.id,
            content.files,
            place=self._places.get(entry.id),
            mode=self.mode,
            links=self.options.links,
            fixity=known,
            also=self._also,
            check=lambda _new: check_unchanged(content),
        )
        written = staged.written
        assert isinstance(written, Written)
        digests: dict[str, str] = {}
        size = 0
        for logical, outcome in written.outcomes.items():
            assert outcome.digests is not None
            digests[logical] = outcome.digests[ALGORITHM]
            size += outcome.size or 0
        item.files, item.bytes = len(digests), size
        item.digest, item.mode = object_digest(digests), staged.mode
        note_left_out(item, content, self.options.to)
        self._items.append(item)
        return False

    def _begin_small(self, item: InFlight) -> bool:
        """Write an object of a few small files aside; return whether it was one, and nothing was in its way."""
        entry = item.entry
        place = self._places.get(entry.id)
        if place is None or self._also:
            return False
        above, name = self.reader.encapsulated(entry)
        if name and self.target_names is not None:
            self.content(entry)  # for the names alone
        staged = self._bulk_writer.stage_small(entry.id, above, name, place, self.mode) if name else None
        if staged is None:
            return False
        written = staged.written
        assert isinstance(written, WrittenSmall)
        item.files, item.bytes = len(written.digests), written.size
        item.digest, item.mode = object_digest(written.digests), staged.mode
        if self.options.move:
            item.changed = written.changed
        self._items.append(item)
        return True

    def _replace(self, item: InFlight, content: Content, known: dict[str, dict[str, str]]) -> None:
        """Write the object as a new version of the one that is there."""
        read = self.of_source(item.entry)
        item.files = len(read.digests)
        item.bytes = sum(os.stat(path).st_size for _name, path in content.files)
        self.destination.put(
            item.entry.id,
            names(content),
            replace=True,
            mode=self.mode,
            links="follow",  # those that are refused were refused when the source was looked at
            fixity={**known, ALGORITHM: {name: one[ALGORITHM] for name, one in read.digests.items()}},
        )
        item.digest, item.mode = read.whole, "copy"
        note_left_out(item, content, self.options.to)

    def settle(self) -> Iterator[tuple[InFlight, ObjectError | None]]:
        items, self._items = self._items, []
        for item, (_staged, error) in zip(items, self._bulk_writer.commit(), strict=True):
            yield item, error

    def waiting(self) -> int:
        return len(self._items)
