"""The transfer of objects of any store to a Pairtree or a Vitro store."""

from __future__ import annotations

import os

from pressmark.errors import quoted_path
from pressmark.fs.names import decode_fs
from pressmark.migrate.entry import Entry, TransferError
from pressmark.migrate.transfer.content import check_unchanged
from pressmark.migrate.transfer.direction import CopyRecorder, Direction, Storing
from pressmark.stores.pairtree.pairtree_store import PairtreeStore
from pressmark.stores.vitro.vitro_store import VitroStore

__all__ = ["ToPairtree", "ToVitro"]


class ToPairtree(Direction):
    """Stores objects in encapsulating directories; those from a Pairtree keep their names."""

    destination: PairtreeStore

    def begin(self, entry: Entry, replace: bool = False) -> Storing:
        content = self.content(entry)
        top = content.top if entry.encapsulation is not None else None
        # Renaming a relative link would change its target.
        if top is not None and self.renames and not replace and not os.path.islink(top):
            self.writer.adopt(entry.id, top, entry.encapsulation)
            entry.mode = "rename"
            self.items[entry.id] = entry
            return False
        copied = CopyRecorder(entry, content)

        def check(_staged: object) -> None:
            copied.finish()
            check_unchanged(content)

        stored = self.store(
            entry,
            content,
            replace,
            encapsulation=content.encapsulation,
            check=check,
            algorithms=copied.algorithms,
            on_file=copied.file,
        )
        return (yield from stored)


class ToVitro(Direction):
    """Stores objects of one file."""

    destination: VitroStore

    def begin(self, entry: Entry, replace: bool = False) -> Storing:
        content = self.content(entry)
        if len(content.files) != 1:
            what = f"the object has {len(content.files)} files, but a Vitro object is a single file"
            raise TransferError("refused_name", "not-one-file", f"{what}; migrate it to another kind of store")
        ((name, path),) = content.files
        if b"/" in name:
            what = f"the file {quoted_path(name)} is in a directory, but a Vitro object is a single file"
            raise TransferError("refused_name", "not-one-file", f"{what}; migrate it to another kind of store")
        copied = CopyRecorder(entry, content)
        stored = self.store(
            entry,
            content,
            replace,
            {decode_fs(name): content.source(path)},
            check=lambda _staged: copied.finish(),
            algorithms=copied.algorithms,
            # The stored name is encoded.
            on_file=lambda _stored, outcome: copied.file(name, outcome),
        )
        return (yield from stored)
