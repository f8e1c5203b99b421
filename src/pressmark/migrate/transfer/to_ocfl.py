"""The transfer of objects of any store to an OCFL storage root, each as version 1 of a new object, or as the next
version of an existing object."""

from __future__ import annotations

import os
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from pressmark.buckets.address import absolute
from pressmark.fixity.hasher import CHANGED
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.migrate.entry import Entry, TransferError
from pressmark.migrate.object_digest import ALGORITHM, FileDigests, object_digest
from pressmark.migrate.options import Options
from pressmark.migrate.transfer.content import Content, check_unchanged
from pressmark.migrate.transfer.direction import Direction, Storing
from pressmark.migrate.transfer.places import read_files
from pressmark.migrate.transfer.reading import locate_target
from pressmark.stores.exceptions import object_errors, store_errors
from pressmark.stores.ocfl.root import OcflRoot

if TYPE_CHECKING:
    from pressmark.stores.ocfl.ocfl_object import OcflObject

__all__ = ["BulkDirection", "ToOcfl"]


class BulkDirection(Direction):
    """Prepares objects in a staging directory, and moves many at a time into an OCFL storage root."""

    destination: OcflRoot

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.paths: dict[str, bytes | None] = {}
        self._base = os.fsencode(absolute(self.destination.root))

    def prepare(self, entries: Sequence[Entry]) -> None:
        identifiers = [entry.id for entry in entries]
        with store_errors(self.destination.root):
            self.writer.find_elsewhere()
            self.paths = dict(zip(identifiers, self.writer.look_up(identifiers), strict=True))

    def check_free(self, entry: Entry) -> None:
        """Check the path of an object before anything is written; an empty directory there is allowed.

        :raises ObjectError: the path is occupied
        """
        self.writer.refuse_elsewhere(entry.id)
        with object_errors(self.destination.root, entry.id):
            is_taken = self.writer.is_taken(encode_fs(entry.target))
        if is_taken:
            self.writer.check_absent(entry.id, encode_fs(entry.target))

    def finish_target(self, entry: Entry) -> None:
        """Finish a version of the object at the path of the new one that a killed run left unfinished."""
        with object_errors(self.destination.root, entry.id):
            self.writer.finish_version(encode_fs(entry.target))


class ToOcfl(BulkDirection):
    """Writes objects as version 1, or changed objects as the next version."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._also = () if self.destination.algorithm == ALGORITHM else (ALGORITHM,)

    def begin(self, entry: Entry, replace: bool = False) -> Storing:
        content = self.content(entry)
        self.record_entries(entry, content)
        self.check_free(entry)
        staged = self.writer.begin_new(
            entry.id,
            content.sources(),
            self.paths.get(entry.id),
            fixity={algorithm: block for algorithm, block in content.known.items() if block},
            also=self._also,
            check=lambda _staged: check_unchanged(content),
        )
        yield staged
        self.writer.end(staged)
        copy = staged.copy
        digests = {logical: outcome.digests[ALGORITHM] for logical, outcome in copy.outcomes.items()}
        entry.files, entry.bytes = copy.files, copy.size
        entry.digest, entry.mode = object_digest(digests), copy.mode
        self.record_copied(entry, content)
        self.items[entry.id] = entry
        return False

    def read_target(self, entry: Entry) -> list[FileDigests]:
        self.finish_target(entry)
        return super().read_target(entry)

    def replace(self, entry: Entry, content: Content, ours: FileDigests, _theirs: list[FileDigests]) -> Storing:
        """Write the files that differ as a new version of the object at the path."""
        from pressmark.stores.ocfl.differences import compare_states  # not needed for a new object

        yield from ()  # the version is written at once
        found = cast("OcflObject", locate_target(self.destination, entry))
        algorithm = str(found.inventory["digestAlgorithm"])
        if algorithm != ALGORITHM:
            files = ((decode_fs(name), path) for name, path in content.files)
            ours = read_files(content.place, files, (ALGORITHM, algorithm))
            if ours.whole != entry.digest:
                raise TransferError("source_invalid", CHANGED, "changed while it was read; migrate it again")
        self.check_names(entry, content.files)
        # The files that do not change were read above: others may have replaced the object meanwhile.
        check_unchanged(content)
        changes = compare_states(found.digests, {name: one[algorithm] for name, one in ours.digests.items()})
        new = {*changes.added, *changes.changed}
        known = {**content.known, ALGORITHM: {name: one[ALGORITHM] for name, one in ours.digests.items()}}
        self.destination.update(
            entry.id,
            add={name: path for name, path in content.by_name().items() if name in new},
            remove=changes.removed,
            rename=dict(changes.renamed),
            copy_mode=self.mode,
            links="follow",  # the reader has refused links
            fixity={name: digests for name, block in known.items() if (digests := _only(new, block))},
            base=found.version,
        )
        entry.mode = "copy" if new else None
        self.record_copied(entry, content)
        return True


def _only(names: Container[str], digests: Mapping[str, str]) -> dict[str, str]:
    """Return the digests of some files."""
    return {name: digest for name, digest in digests.items() if name in names}
