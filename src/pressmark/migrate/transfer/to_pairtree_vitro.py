"""Objects of any store into a Pairtree or a Vitro store."""

from __future__ import annotations

import os

from pressmark.fs.names import decode_fs, encode_fs
from pressmark.migrate.transfer.direction import Copied, Way, names, note_left_out
from pressmark.migrate.transfer.failures import TransferError
from pressmark.migrate.transfer.in_flight import InFlight
from pressmark.migrate.transfer.reading import check_unchanged
from pressmark.stores.pairtree.pairtree_store import PairtreeStore
from pressmark.stores.vitro.vitro_store import VitroStore

__all__ = ["IntoPairtree", "IntoVitro"]


class IntoPairtree(Way):
    """Puts objects into encapsulating directories, which keep the names that they have in a Pairtree."""

    destination: PairtreeStore

    def begin(self, item: InFlight, replace: bool = False) -> bool:
        entry = item.entry
        if self.options.renames() and not replace and entry.encapsulation is not None:
            content = self.content(entry)
            # A link that is renamed leads elsewhere, if it is relative.
            if content.top is not None and not os.path.islink(content.top):
                self._rename(item, content.top, len(content.files))
                return True
        content = self.content(entry)
        self.note_time(item, content)
        copied = Copied(item, content)
        # A directory is copied with those in it that are empty.
        source = content.top if content.top is not None else names(content)
        self.destination.put(
            entry.id,
            source,
            replace=replace,
            mode=self.mode,
            links=self.options.links if content.top is not None else "follow",  # type: ignore[arg-type]
            encapsulation=content.encapsulation,
            check=lambda _new: check_unchanged(content),
            algorithms=copied.algorithms,
            on_file=copied.file,
            on_event=copied.event,
        )
        copied.finish()
        if item.mode == "hardlink":
            self.note_time(item, content)  # a second name is a change of status
        note_left_out(item, content, self.options.to)
        return True

    def _rename(self, item: InFlight, top: bytes, files: int) -> None:
        item.files, item.bytes = files, item.entry.bytes
        self.destination.adopt(item.entry.id, top, item.entry.encapsulation)
        item.mode = "rename"


class IntoVitro(Way):
    """Puts objects that are one file."""

    destination: VitroStore

    def begin(self, item: InFlight, replace: bool = False) -> bool:
        entry = item.entry
        content = self.content(entry)
        if len(content.files) != 1:
            what = f"it has {len(content.files)} files, and a Vitro object is one"
            raise TransferError("refused_name", "not-one-file", f"{what}; migrate it to another kind of store")
        ((name, path),) = content.files
        if b"/" in name:
            what = f"its file {decode_fs(name)!r} is in a directory, and a Vitro object is one file"
            raise TransferError("refused_name", "not-one-file", f"{what}; migrate it to another kind of store")
        logical = decode_fs(name)
        self.note_time(item, content)
        copied = Copied(item, content)
        self.destination.put(
            entry.id,
            {logical: path},
            replace=replace,
            mode=self.mode,
            links="follow",  # one that is refused was refused when the source was looked at
            algorithms=copied.algorithms,
            # It is stored under another spelling of its name.
            on_file=lambda _stored, outcome: copied.file(encode_fs(logical), outcome),
            on_event=copied.event,
        )
        copied.finish()
        if item.mode == "hardlink":
            self.note_time(item, content)
        note_left_out(item, content, self.options.to)
        return True
