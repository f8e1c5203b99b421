"""The transfer of objects of any store to a folder of bags.

An object that is a valid bag is stored as that bag, byte for byte, if the folder finds it by its identifier. Any other
object becomes the payload of a new bag, recorded in :data:`~pressmark.migrate.transfer.bag_content.WRAPPED`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping

from pressmark.errors import ObjectError
from pressmark.fixity import hash_file
from pressmark.fixity.outcomes import Outcome
from pressmark.fs.names import decode_fs
from pressmark.migrate.entry import Entry
from pressmark.migrate.object_digest import FileDigests, compare
from pressmark.migrate.transfer.bag_content import WRAPPED, check_bag, is_bag
from pressmark.migrate.transfer.content import Content, check_unchanged
from pressmark.migrate.transfer.direction import CopyRecorder, Direction, Storing
from pressmark.stores.bags.bag_folder import BagFolder
from pressmark.stores.staging_writer import Staged

__all__ = ["ToBags"]


class ToBags(Direction):
    """Creates bags, or adopts objects that are bags."""

    destination: BagFolder

    def begin(self, entry: Entry, replace: bool = False) -> Storing:
        content = self.content(entry)
        verbatim = self.options.source_kind == "bags"
        if verbatim or is_bag(content):
            try:
                return (yield from self._adopt(entry, content, replace))
            except ObjectError as error:
                if verbatim or error.kind != "improper":
                    raise
        return (yield from self._wrap(entry, content, replace))

    def _adopt(self, entry: Entry, content: Content, replace: bool) -> Storing:
        """Store the bag itself."""
        self.record_entries(entry, content)
        copied = CopyRecorder(entry, content)
        rename = self.renames and not replace
        at = self.source_path(entry) if self.options.source_kind == "bags" else content.top
        if content.place.is_remote:
            at = None

        def check(bag: bytes) -> None:
            if not rename:
                copied.finish()
            if stat.S_ISDIR(os.stat(bag).st_mode):
                # With recorded digests, the bytes were compared while they were copied.
                check_bag(bag, "complete" if content.known else "full", "valid")
            if not rename:
                check_unchanged(content)

        source = content.by_name() if at is None else at
        with self.writing(entry, replace) as writer:
            copying = {"algorithms": copied.algorithms, "on_file": copied.file}
            serialized = at is None and not is_bag(content)
            adopted = writer.adopt(entry.id, source, rename=rename, serialized=serialized, check=check, **copying)
            entry.mode = yield from adopted
        if not rename:
            self.record_copied(entry, content)
        return replace

    def _wrap(self, entry: Entry, content: Content, replace: bool) -> Storing:
        """Store the object as the payload of a new bag."""
        encapsulation = entry.encapsulation or ""
        wrapped = f"{self.options.source_kind} {encapsulation}".rstrip()
        copied = CopyRecorder(entry, content)
        found: list[FileDigests] = []
        listed: list[tuple[bytes, Mapping[str, str]]] = []

        def note(name: bytes, outcome: Outcome) -> None:
            assert outcome.digests is not None
            listed.append((name, outcome.digests))

        def check(staged: Staged) -> None:
            found.append(_payload(staged.path, listed, copied.algorithms))
            compare(found[0], content.known)
            check_unchanged(content)

        info = {WRAPPED: wrapped} if encapsulation.isprintable() and encapsulation == encapsulation.strip() else {}
        is_stored = yield from self.store(entry, content, replace, info=info, check=check, on_file=note)
        (read,) = found
        entry.files = len(read.digests)
        entry.bytes = sum(one.st_size for one in content.statuses())
        entry.digest = read.whole
        return is_stored


def _payload(bag: bytes, listed: Iterable[tuple[bytes, Mapping[str, str]]], algorithms: tuple[str, ...]) -> FileDigests:
    """Return the digests of a new bag's payload, from those that its manifests list."""
    digests: dict[str, dict[str, str]] = {}
    for name, known in listed:
        found = dict(known)
        missing = tuple(one for one in algorithms if one not in found)
        if missing:
            found.update(hash_file(os.path.join(bag, b"data", name), missing, threads=1))
        digests[decode_fs(name)] = found
    return FileDigests(digests)
