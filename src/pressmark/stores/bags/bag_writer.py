"""Storing many bags in a folder of bags: see :mod:`pressmark.stores.staging_writer`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import NamedTuple, Self

from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.writing.options import CreateOptions
from pressmark.errors import ObjectError
from pressmark.fs.durable import exists
from pressmark.fs.moves import rename_new
from pressmark.fs.names import decode_fs, encode_fs, is_case_insensitive, too_long
from pressmark.fs.staging import RunDirectory
from pressmark.fs.trees import longest_inside
from pressmark.stores.bags.bag_folder import BagFolder
from pressmark.stores.bags.bag_folder_reader import REPLACED, WORK_DIRECTORY, record_of
from pressmark.stores.bags.small_bag import SmallBag, write_small_bag
from pressmark.stores.exceptions import object_errors
from pressmark.stores.object_sources import SourceCopier, check_source, identities_above, refuse_within
from pressmark.stores.staging_writer import StagingWriter, make_above
from pressmark.stores.store import CopyMode, ObjectSource, StoreObject

__all__ = ["BagWriter"]


class _Staged(NamedTuple):
    """A bag ready to be published: see :class:`pressmark.stores.staging_writer.Staged`.

    :ivar info: its first elements of bag-info.txt
    """

    identifier: str | bytes
    place: bytes
    path: bytes
    info: list[tuple[str, str]]


class BagWriter(StagingWriter[_Staged]):
    """Write many bags to a folder.

    :param store: the folder
    :param mode: as for :meth:`BagFolder.put`, like ``links``
    :param durable_places: as for :class:`StagingWriter`
    """

    def __init__(self, store: BagFolder, mode: CopyMode, links: str, *, durable_places: bool = True) -> None:
        super().__init__(store.root, store._base, durable=True, durable_places=durable_places)
        self._store = store
        self._links = links
        self._copier = SourceCopier(mode, links)
        self._is_case_insensitive = is_case_insensitive(self._base)
        self._above: frozenset[tuple[int, int]] = frozenset()
        self._stored = 0

    def __enter__(self) -> Self:
        self._store._index.open()
        super().__enter__()
        self._above = identities_above(self._staging.path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._store._index.save(soon=False, stored=self._stored)
        super().__exit__(kind, error, trace)

    def _run_directory(self) -> AbstractContextManager[RunDirectory]:
        return RunDirectory(os.path.join(self._base, WORK_DIRECTORY))

    def prepare(self, identifier: str | bytes, source: ObjectSource) -> int:
        return self.stage(identifier, source)

    def stage(
        self,
        identifier: str | bytes,
        source: ObjectSource,
        *,
        links: str | None = None,
        info: Mapping[str, str] | None = None,
        check: Callable[[bytes, SmallBag | None], object] | None = None,
        on_event: Callable[[object], object] | None = None,
    ) -> int:
        """Write a bag to the private directory, and return the size of its payload.

        :param links: replaces the option of the writer; the others as for :meth:`BagFolder.put`
        :param check: called with the path of the bag and, if they are known, its facts; an exception discards the bag
        :raises ObjectError: the bag cannot be stored; it leaves no files
        :raises IdentifierError: the identifier has no path in the folder
        """
        store = self._store
        place = encode_fs(store._place(identifier))
        name = _text(identifier)
        elements = [*store._elements(name, place), *(info or {}).items()]
        with object_errors(store.root, identifier):
            check_source(source)
            self._check_free(identifier, name, place)
            new = self.new_path()

            def note(event: object) -> None:
                self._copier.note(source, event)
                if on_event is not None:
                    on_event(event)

            try:
                written = self._make(identifier, source, new, elements, links or self._links, note)
                if check is not None:
                    check(new, written if isinstance(written, SmallBag) else None)
                size, longest = written[:2]
                reason = too_long(self._base, place + REPLACED + longest)
                if reason is not None:
                    raise ObjectError(store.root, identifier, "bad-name", f"{reason}; use shorter file names")
            except BaseException:
                self._discard(new)
                raise
        self._waiting.append(_Staged(identifier, place, new, elements))
        return size

    def _make(
        self,
        identifier: str | bytes,
        source: ObjectSource,
        new: bytes,
        info: list[tuple[str, str]],
        links: str,
        on_event: Callable[[object], object],
    ) -> SmallBag | tuple[int, bytes]:
        """Write a bag, and return the size of its payload and the longest path in it."""
        mode = self._copier.mode_of(source)
        if isinstance(source, (str, os.PathLike)):
            given = os.fsencode(source)
            refuse_within(given, new, self._above)
            options = CreateOptions.from_arguments(self._store.algorithms, info, "refuse", (), None, "parallel", None)
            written = write_small_bag(given, new, options, mode, on_event)
            if written is not None:
                return written
        self._store._make(identifier, source, new, info, mode, links, on_event)
        data = os.path.join(new, b"data")
        sizes = (os.lstat(os.path.join(top, name)).st_size for top, _names, files in os.walk(data) for name in files)
        return sum(sizes), longest_inside(new)

    def _check_free(self, identifier: str | bytes, name: str, place: bytes) -> None:
        """Check that there is no bag with an identifier, nor anything at its path.

        :raises ObjectError: there is
        """
        store = self._store
        is_simple = store.layout is None and not self._is_case_insensitive
        # The index has every bag, but only looks at the folder now and then without a watch.
        if not is_simple or exists(self._base + b"/" + place) or store._index.places(name, soon=True):
            store._refuse(identifier, place, store._find(name, soon=True), False)

    def _move(self, staged: _Staged, known: set[bytes]) -> None:
        name = _text(staged.identifier)
        self._check_free(staged.identifier, name, staged.place)
        make_above(self._base, staged.place, known)
        rename_new(staged.path, os.path.join(self._base, staged.place))
        self._stored += 1
        if self._store.layout is None:
            self._store._index.note(name, staged.place)

    def publish(self) -> Iterator[StoreObject | ObjectError]:
        yield from super().publish()
        self._store._index.save()

    def _record(self, staged: _Staged) -> StoreObject:
        if self._store.layout is None:
            return record_of(_text(staged.identifier), staged.place, ())
        identifier, problems = self._store._identified(staged.place, BagInfo(staged.info), staged.place)
        return record_of(identifier, staged.place, problems)


def _text(identifier: str | bytes) -> str:
    return decode_fs(identifier) if isinstance(identifier, bytes) else identifier
