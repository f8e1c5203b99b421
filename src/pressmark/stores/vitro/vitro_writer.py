"""Storing many objects in a Vitro store: see :mod:`pressmark.stores.staging_writer`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager

from pressmark.fs.durable import exists
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.fs.staging import RunDirectory
from pressmark.layouts import Vitro
from pressmark.stores.exceptions import object_errors
from pressmark.stores.staging_writer import CopyingWriter, StagedCopy
from pressmark.stores.store import CopyMode, ObjectSource, StoreObject
from pressmark.stores.vitro.vitro_reader import ROOT
from pressmark.stores.vitro.vitro_store import VitroStore

__all__ = ["VitroWriter"]


class VitroWriter(CopyingWriter):
    """Write many objects to a Vitro store.

    :param store: the store
    :param mode: as for :meth:`VitroStore.put`, like ``links``
    """

    _is_directory = False

    def __init__(self, store: VitroStore, mode: CopyMode, links: str) -> None:
        super().__init__(store.root, store._tree, durable=store._durable, mode=mode, links=links)
        self._store = store

    def _run_directory(self) -> AbstractContextManager[RunDirectory]:
        return RunDirectory(self._store._work_directory())

    def prepare(self, identifier: str | bytes, source: ObjectSource) -> int:
        store = self._store
        store.refuse_changes()
        place = store._existing_place(identifier) or store.layout.map_id(identifier)
        with object_errors(store.root, identifier):
            stored, content = store._new_file(identifier, place, source, self._links)
            # Everything else is checked when the object is published.
            if exists(os.path.join(self._base, encode_fs(place))):
                store._refuse(identifier, place, stored, False)

            def copy(new: bytes) -> tuple[int, bytes]:
                folder = self.new_path()
                size = self._copier.copy({decode_fs(stored): content}, folder)[0]
                store._refuse_directory(identifier, os.path.join(folder, stored))
                os.rename(os.path.join(folder, stored), new)
                os.rmdir(folder)
                return size, b""

            return self._stage(identifier, encode_fs(place) + b"/" + stored, copy)

    @property
    def _layout(self) -> Vitro:
        return self._store.layout

    def _paths(self, objects: Sequence[tuple[str | bytes, ObjectSource]]) -> list[str | None]:
        self._store.refuse_changes()
        # Sources without a path are not copied here.
        names = [os.path.basename(os.fsencode(s)) if isinstance(s, (str, os.PathLike)) else b"" for _, s in objects]
        identifiers = [identifier for identifier, _source in objects]
        hidden = self._store._hidden_places(identifiers)
        # A hidden object is looked for one by one.
        return [
            None if before is not None and exists(os.path.join(self._base, encode_fs(before))) else path
            for path, before in zip(self._layout.object_paths(identifiers, names), hidden, strict=True)
        ]

    def _begin_turn(self) -> None:
        self._store._settle()
        super()._begin_turn()

    def _move_checked(self, staged: StagedCopy) -> None:
        place, stored = os.path.split(staged.place)
        self._store._refuse(staged.identifier, decode_fs(place), stored, False)
        self._store._move_in(staged.path, decode_fs(place), stored, flush=False)

    def _record(self, staged: StagedCopy) -> StoreObject:
        place, stored = os.path.split(staged.place)
        if staged.text is None:
            return self._store._object(decode_fs(place), encode_fs(ROOT) + b"/" + place, [stored], None)
        return StoreObject(staged.text, f"{ROOT}/{decode_fs(place)}", True, None, ())
