"""Many objects into a Vitro store: see :mod:`pressmark.stores.staging_writer`."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import NamedTuple

from pressmark.fs.durable import exists
from pressmark.fs.moves import rename_new
from pressmark.fs.names import decode_fs, encode_fs, is_case_insensitive
from pressmark.fs.run_directories import RunDirectory
from pressmark.stores.exceptions import object_errors
from pressmark.stores.object_sources import SourceCopier
from pressmark.stores.staging_writer import StagingWriter, make_above
from pressmark.stores.store import CopyMode, ObjectSource, StoreObject
from pressmark.stores.vitro.vitro_reader import ROOT
from pressmark.stores.vitro.vitro_store import VitroStore

__all__ = ["VitroWriter"]


class _Staged(NamedTuple):
    """An object ready to be published: see :class:`pressmark.stores.staging_writer.Staged`."""

    identifier: str | bytes
    place: bytes
    path: bytes


class VitroWriter(StagingWriter[_Staged]):
    """Write many objects to a Vitro store.

    :param store: the store
    :param mode: as for :meth:`VitroStore.put`, like ``links``
    """

    def __init__(self, store: VitroStore, mode: CopyMode, links: str) -> None:
        super().__init__(store.root, store._tree, durable=store._durable)
        self._store = store
        self._links = links
        self._copier = SourceCopier(mode, links)
        self._is_case_insensitive = False

    def _run_directory(self) -> AbstractContextManager[RunDirectory]:
        return RunDirectory(self._store._work_directory())

    def prepare(self, identifier: str | bytes, source: ObjectSource) -> int:
        store = self._store
        store.refuse_changes()
        place = store.layout.map_id(identifier)
        with object_errors(store.root, identifier):
            stored, content = store._new_file(identifier, place, source, self._links)
            # Everything else is checked when the object is published.
            if exists(os.path.join(self._base, encode_fs(place))):
                store._refuse(identifier, place, stored, False)
            new = self.new_path()
            try:
                size = self._copier.copy_file(content, new)
                if size is None:
                    folder = self.new_path()
                    size = self._copier.copy({decode_fs(stored): content}, folder)[0]
                    store._refuse_directory(identifier, os.path.join(folder, stored))
                    os.rename(os.path.join(folder, stored), new)
                    os.rmdir(folder)
            except BaseException:
                self._discard(new)
                raise
        self._waiting.append(_Staged(identifier, encode_fs(place) + b"/" + stored, new))
        return size

    def _begin_turn(self) -> None:
        self._store._settle()
        self._is_case_insensitive = is_case_insensitive(self._base)

    def _move(self, staged: _Staged, known: set[bytes]) -> None:
        try:
            if not self._is_case_insensitive and make_above(self._base, staged.place, known):
                rename_new(staged.path, self._base + b"/" + staged.place)
                return
        except NotADirectoryError:
            pass  # reported in detail
        place, stored = os.path.split(staged.place)
        self._store._refuse(staged.identifier, decode_fs(place), stored, False)
        self._store._move_in(staged.path, decode_fs(place), stored)

    def _record(self, staged: _Staged) -> StoreObject:
        place, stored = os.path.split(staged.place)
        return self._store._object(decode_fs(place), encode_fs(ROOT) + b"/" + place, [stored], None)
