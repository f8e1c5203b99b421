"""Storing many objects in a Pairtree: see :mod:`pressmark.stores.staging_writer`."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

from pressmark.errors import ObjectError
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.fs.staging import RunDirectory
from pressmark.layouts import Pairtree
from pressmark.stores.exceptions import object_errors, store_errors
from pressmark.stores.object_sources import check_source
from pressmark.stores.pairtree.pairtree_store import PairtreeStore
from pressmark.stores.pairtree.spellings import Spellings
from pressmark.stores.pairtree.walk import ROOT
from pressmark.stores.staging_writer import CopyingWriter, StagedCopy
from pressmark.stores.store import CopyMode, ObjectSource, StoreObject

__all__ = ["PairtreeWriter"]


class PairtreeWriter(CopyingWriter):
    """Write many objects to a Pairtree.

    :param store: the tree
    :param mode: as for :meth:`PairtreeStore.put`, like ``links``
    """

    _is_directory = True

    def __init__(self, store: PairtreeStore, mode: CopyMode, links: str) -> None:
        super().__init__(store.root, store._tree, durable=store._durable, mode=mode, links=links)
        self._store = store
        self._spellings = Spellings(self._base, keeps=True)

    def _run_directory(self) -> AbstractContextManager[RunDirectory]:
        return RunDirectory(self._store._work_directory(""))

    def prepare(self, identifier: str | bytes, source: ObjectSource) -> int:
        store = self._store
        place, name = store._new_place(identifier, None)
        with object_errors(store.root, identifier):
            check_source(source)
            existing = store._existing_place(identifier, self._spellings)
            if existing is not None:
                raise store._exists(identifier, existing)

            def copy(new: bytes) -> tuple[int, bytes]:
                size, longest = self._copier.copy(source, new)
                store._refuse_too_long(identifier, place, name, longest)
                return size, longest

            return self._stage(identifier, encode_fs(f"{place}/{name}"), copy)

    @property
    def _layout(self) -> Pairtree:
        return self._store.layout

    def _paths(self, objects: Sequence[tuple[str | bytes, ObjectSource]]) -> list[str | None]:
        found = self._layout.object_paths([identifier for identifier, _source in objects])
        others = self._spellings.others
        with store_errors(self._base):
            # An object that may exist in another spelling is looked for one by one.
            return [None if path and any(others(path.rpartition("/")[0])) else path for path in found]

    def _move_checked(self, staged: StagedCopy) -> None:
        place, name = map(decode_fs, os.path.split(staged.place))
        self._store._move_in(
            self._staging, staged.identifier, staged.path, place, name, staged.longest, replace=False, flush=False
        )

    def publish(self) -> Iterator[StoreObject | ObjectError]:
        for staged, error in self.commit():
            if error is None:
                yield self._record(staged)
            else:
                is_elsewhere = getattr(error.__cause__, "errno", None) == errno.EXDEV
                yield self._put_elsewhere(staged) if is_elsewhere else error

    def _put_elsewhere(self, staged: StagedCopy) -> StoreObject | ObjectError:
        """Copy an object to another file system within the tree."""
        try:
            return self._store.put(staged.identifier, os.fsdecode(staged.path), mode="copy")
        except ObjectError as error:
            return error

    def _record(self, staged: StagedCopy) -> StoreObject:
        place, name = map(decode_fs, os.path.split(staged.place))
        if staged.text is None or not staged.text.isascii():
            return self._store._proper(place, name)
        return StoreObject(staged.text, f"{ROOT}/{place}", True, name, ())
