"""A folder of bags: each bag, a directory or a serialized bag, is an object.

::

    <root>/
    ├── .pressmark-bags.json     how identifiers are found, if specified on creation
    ├── .pressmark-work/         during a change: see :mod:`pressmark.fs.staging`
    │   └── index                of many bags: see :mod:`pressmark.stores.bags.bag_index`
    ├── ark+=13030=xt12t3/       a bag
    └── scans/2019.tar.gz        a serialized bag; bags may be in directories

=========== ==========================================================================================================
identifiers source of a bag's identifier
=========== ==========================================================================================================
external    its only ``External-Identifier``; if missing, the name of its directory. New bags are named after the
            cleaned identifier (Pairtree, section 3)
name        the name of its directory, or its path if it is in a directory
layout      the path of its directory, if the layout has an inverse; otherwise its ``External-Identifier``
=========== ==========================================================================================================

New bags are directories. A serialized bag is listed, checked, returned as one file, and removed, but never changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, ClassVar, Literal

from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.writing.options import CreateOptions
from pressmark.buckets.address import find_key, is_address
from pressmark.buckets.bucket import Bucket
from pressmark.errors import IdentifierError, ObjectError, StoreError, quoted_path
from pressmark.fixity.outcomes import Outcome
from pressmark.fs.durable import exists, flush_directory, is_directory
from pressmark.fs.moves import prune_empty_parents, rename_new, replace_directory, restore
from pressmark.fs.names import decode_fs, encode_fs, first_link, is_blocked, is_case_insensitive, too_long
from pressmark.fs.staging import RunDirectory
from pressmark.fs.trees import longest_inside, scan
from pressmark.layouts import Layout, as_layout, layout as layout_by_name
from pressmark.option_names import option
from pressmark.progress_event import Progress
from pressmark.reports import Report
from pressmark.stores.bags import archives
from pressmark.stores.bags.bag_object import BagObject
from pressmark.stores.bags.folder_config import UNFINISHED, check_identifiers, read_config, write_config
from pressmark.stores.bags.new_bag import BagCopy, is_writable_identifier
from pressmark.stores.bags.repair import discard, repair
from pressmark.stores.bags.walk import (
    IDENTIFIER,
    REPLACED,
    BagWalk,
    is_bag,
    is_bag_directory,
    is_reserved,
    record_of,
)
from pressmark.stores.exceptions import object_errors, store_errors
from pressmark.stores.object_sources import SourceCopy, check_source
from pressmark.stores.objects import (
    CopyMode,
    Digests,
    ObjectSource,
    Path,
    RecordedFiles,
    StoreObject,
    encode_path,
)
from pressmark.stores.recheck import Item
from pressmark.stores.staging_writer import Staged, StagingWriter, make_above
from pressmark.stores.store_change import Removal, above
from pressmark.stores.walked_store import StoreWalk, WalkedStore

__all__ = ["BagFolder", "BagWriter"]


READ_ONLY = "a folder of bags is only read in object storage; create bags with pressmark bag create"


class BagFolder(WalkedStore):
    """An existing folder of bags, and the bags in it; :meth:`create` creates one.

    The bags are listed in the order of the bytes of their names, by one thread; only tag files are read, and the first
    path of each identifier is kept in memory to find duplicates.

    :param path: the directory that contains the bags, or an address in object storage, where they are only read
    :param identifiers: ``external``, ``name`` or ``layout``; :data:`None` for the folder's own setting, otherwise
        ``layout`` with a layout and ``external`` without
    :param layout: maps identifiers to the paths of bags; a layout or its name
    :param algorithms: algorithms of the manifests of new bags; also an attribute
    :param info: more elements for the bag-info.txt of new bags
    :param ignore: globs of names to ignore outside of bags
    :raises StoreError: not a folder of bags, or not readable
    """

    kind: ClassVar[str] = "bags"
    unfinished_names = UNFINISHED
    durable = True
    is_reserved = staticmethod(is_reserved)
    walk: BagWalk

    def __init__(
        self,
        path: Path,
        *,
        identifiers: Literal["external", "name", "layout"] | None = None,
        layout: Layout | str | None = None,
        algorithms: Iterable[str] = ("sha512",),
        info: Mapping[str, str] | None = None,
        ignore: Sequence[str] = (),
    ) -> None:
        self._base = encode_path(path, remote=True)
        self.root = os.fsdecode(self._base)
        self._is_remote = is_address(self._base)
        self.bucket: Bucket | None = find_key(self._base)[0] if self._is_remote else None
        if not self._is_remote:
            with store_errors(self._base):
                if not is_directory(self._base):
                    what = "not a directory" if exists(self._base) else "No such file or directory"
                    raise StoreError(self._base, f"{what}; specify the directory that contains the bags")
                if is_bag_directory(self._base):
                    raise StoreError(self._base, "the directory is a bag; specify the directory that contains it")
        layout = as_layout(layout)
        said = read_config(self._base)
        #: Whether the caller has specified the layout.
        self.layout_is_given: bool = layout is not None
        if layout is None and identifiers in (None, "layout"):
            layout = said[1]
        self.identifiers = identifiers or ("layout" if layout is not None else said[0])
        check_identifiers(self._base, self.identifiers, layout)
        self.layout = layout_by_name("0002") if self.identifiers == "name" else layout
        self.algorithms = tuple(algorithms)
        self._info = dict(info or {})
        kind = BagWalk
        if self._is_remote:
            from pressmark.stores.bags.remote_walk import RemoteBagWalk as kind  # most folders are local
        self.walk = kind(self._base, self.identifiers, self.layout, ignore)

    @classmethod
    def create(
        cls,
        path: Path,
        layout: Layout | str | None = None,
        *,
        identifiers: Literal["external", "name", "layout"] | None = None,
        algorithms: Iterable[str] = ("sha512",),
        info: Mapping[str, str] | None = None,
        ignore: Sequence[str] = (),
    ) -> BagFolder:
        """Create an empty folder in a directory that is empty or does not exist, and open it.

        Missing directories above it are created.

        The parameters are those of the class.

        :raises StoreError: the directory is not empty or cannot be written, or ``identifiers`` does not fit the layout
        """
        base = encode_path(path, remote=True)
        if is_address(base):
            raise StoreError(base, "a folder of bags is only read in object storage; use a local path")
        layout = as_layout(layout)
        wanted = identifiers or ("layout" if layout is not None else "external")
        check_identifiers(base, wanted, layout)
        with store_errors(base):
            cls._create_directory(base)
            write_config(base, wanted, layout)
        return cls(path, identifiers=identifiers, layout=layout, algorithms=algorithms, info=info, ignore=ignore)

    def _refuse_remote(self) -> None:
        """Refuse a change.

        :raises StoreError: the folder is in object storage
        """
        if self._is_remote:
            raise StoreError(self._base, READ_ONLY)

    def _run_directory(self) -> RunDirectory:
        self._refuse_remote()
        return super()._run_directory()

    # --- all bags -----------------------------------------------------------------------------------------------------

    def check(
        self,
        *,
        ids: Iterable[str | bytes] | None = None,
        match: Sequence[str] | str = (),
        digests: Digests = False,
        threads: int | None = None,
        progress: Progress | None = None,
        ignore: Sequence[str] = (),
    ) -> Report:
        """Validate every bag, or the selected ones, and return one report with paths relative to the folder.

        Serialized bags are validated only with ``digests``, without being unpacked; otherwise they are reported as
        unchecked, a warning.

        :param digests: verify checksums; otherwise only completeness
        :raises StoreError: a temporary file for large manifests of serialized bags cannot be written
        """
        from pressmark.stores.bags.check import check  # only a check needs it

        walk = self.walk.with_options(ignore)
        is_whole = ids is None and not match
        selected = None if is_whole else partial(self._selected_objects, walk, ids, match, threads)
        return check(walk, self._reads_digests(digests), threads, progress, selected)

    def examine(self, record: StoreObject, digests: bool, report: Report, ignore: Sequence[str] = ()) -> list[Item]:
        from pressmark.stores.bags.check import examined  # only a check needs it

        return examined(self.walk.with_options(ignore), record, digests, 1, report)

    def repair(self, *, dry_run: bool = False, progress: Progress | None = None, ignore: Sequence[str] = ()) -> Report:
        """Repair the folder without changing bags, and report the remaining problems.

        =========== ==========================================================================================
        ``finish``  an interrupted replacement is completed
        ``prune``   empty directories are removed
        ``remove``  temporary directories of killed runs, and an outdated index, are removed
        =========== ==========================================================================================
        """
        self._refuse_remote()
        return repair(self, self.walk.with_options(ignore), dry_run, progress)

    # --- one bag ------------------------------------------------------------------------------------------------------

    def _existing_path(self, identifier: str | bytes) -> str | None:
        with object_errors(self.root, identifier):
            path = self._look_up(_text(identifier))
            if not self._is_remote:
                self.walk.index.save()
        return None if path is None else decode_fs(path)

    def _look_up_all(self, walk: StoreWalk, ids: Iterable[str | bytes], strict: bool) -> Iterator[Item]:
        if not self._is_remote:
            return super()._look_up_all(walk, ids, strict)
        from pressmark.stores.bags.remote_walk import RemoteBagWalk, selected_bags  # most folders are local

        assert isinstance(walk, RemoteBagWalk)
        return selected_bags(walk, ids, self._missing, strict)

    def get(self, id: str | bytes) -> BagObject:
        path = self._existing_path(id)
        if path is None:
            raise self._missing(id)
        return self._bag(_text(id), path)

    def locate(self, record: StoreObject) -> BagObject:
        path = encode_fs(record.path)
        if self._is_remote:
            return self._bag(record.id or "", record.path)
        with object_errors(self.root, record.id or ""):
            if not exists(os.path.join(self._base, path)) or first_link(self._base, path) is not None:
                raise ObjectError(self.root, record.id or "", "missing", f"nothing found at {quoted_path(record.path)}")
        return self._bag(record.id or "", record.path)

    def _bag(self, identifier: str, path: str) -> BagObject:
        if self._is_remote:
            from pressmark.stores.bags.remote_walk import RemoteBag

            with object_errors(self.root, identifier):
                address = os.path.join(self.walk.base, encode_fs(path))
                return RemoteBag(self.root, identifier, address, not self.walk.is_tree(encode_fs(path)))
        full = os.path.abspath(os.path.join(self._base, encode_fs(path)))
        with object_errors(self.root, identifier):
            return BagObject(self.root, identifier, full, not is_directory(full))

    def _missing(self, identifier: str | bytes, path: str | None = None) -> ObjectError:
        what = "no bag with this identifier found"
        if self._is_remote:
            return ObjectError(self.root, identifier, "missing", what)
        with suppress(IdentifierError, ObjectError):
            link = first_link(self._base, encode_fs(self.walk.path_for(identifier)))
            if link is not None:
                what += f": {quoted_path(link)} is a symbolic link, which is not followed; replace it with its target"
        return ObjectError(self.root, identifier, "missing", what)

    def at(self, path: str) -> StoreObject | None:
        return self.walk.record_at(path.rstrip("/"))

    def _look_up(self, identifier: str, *, soon: bool = False) -> bytes | None:
        """Return the path of the bag with an identifier; :data:`None` if it does not exist.

        :param soon: bags that other programs have just added need not be found
        :raises ObjectError: of kind ``duplicate-id``, or a bag cannot be read
        :raises IdentifierError: the identifier has no path in the folder
        """
        paths = self.walk.find(identifier, soon)
        if len(paths) > 1:
            raise self._duplicate(identifier, list(map(decode_fs, paths)))
        return paths[0] if paths else None

    def refuse_misplaced(self) -> None:
        """Check that new bags have a path; see :mod:`pressmark.stores.placement`.

        :raises StoreError: a bag is not where the layout puts it
        """
        if self.layout is not None and self.identifiers == "layout" and not self.layout_is_given:
            with store_errors(self._base):
                self.walk.first_objects.refuse_misplaced(self.root, self.layout)

    def put(
        self,
        id: str | bytes,
        source: ObjectSource,
        *,
        replace: bool = False,
        copy_mode: CopyMode = "auto",
        links: Literal["refuse", "follow"] = "refuse",
        exclude: Sequence[str] | str = (),
        one_file_system: bool = False,
        compare: bool = False,
        info: Mapping[str, str] | None = None,
    ) -> StoreObject:
        """Create a bag atomically from a source, with the identifier as its ``External-Identifier``.

        A bag is replaced in one step if the system can exchange two names (Linux).

        :param info: more elements for this bag's bag-info.txt
        :raises ObjectError: nothing was stored; ``kind`` is the reason
        :raises IdentifierError: the identifier has no path in this folder
        """
        options = {"info": info} if info else {}
        return self._put(id, source, replace, copy_mode, links, exclude, one_file_system, compare, **options)

    def _writer(
        self, mode: CopyMode, links: str = "refuse", replace: bool = False, *, durable_names: bool = True
    ) -> BagWriter:
        self._refuse_remote()
        return BagWriter(self, mode, links, replace, durable_names=durable_names)

    def _elements(self, identifier: str, path: bytes) -> list[tuple[str, str]]:
        """Return the elements of a new bag's bag-info.txt."""
        elements = [(label, value) for label, value in self._info.items() if label.lower() != IDENTIFIER.lower()]
        if is_writable_identifier(identifier):
            return [(IDENTIFIER, identifier), *elements]
        if self.layout is not None and self.walk.implied_identifier(path) == identifier:
            return elements
        raise IdentifierError(identifier, None, f"cannot be written as an {IDENTIFIER} on one line of text")

    def withdraw(
        self, removal: Removal, identifier: str | bytes | StoreObject, check: Callable[[], object] | None
    ) -> list[bytes]:
        record = identifier if isinstance(identifier, StoreObject) else None
        if isinstance(identifier, StoreObject):
            identifier = identifier.id or identifier.path
        name = _text(identifier)

        def find() -> bytes | None:
            if record is None:
                return self._look_up(name)
            return encode_fs(record.path) if self.at(record.path) is not None else None

        if find() is None:
            raise self._missing(identifier)
        to = removal.new_path()
        with removal.staging.lock():
            path = find()
            if path is None:
                raise self._missing(identifier)
            if check is not None:
                check()
            # First, because otherwise the old bag would be found when the new one is gone.
            self._sweep(removal.staging, path)
            os.rename(os.path.join(self._base, path), to)
            self.walk.index.forget(path)
            prune_empty_parents(self._base, os.path.dirname(path), strict=False)
        self.walk.index.save()
        return above(self._base, path)

    def _sweep(self, staging: RunDirectory, path: bytes) -> None:
        """Remove the old bag that a killed run has left beside the new one."""
        aside = os.path.join(self._base, path + REPLACED)
        if is_directory(aside) and is_bag(scan(aside, follow=False)):
            discard(staging, aside)

    def recorded_files(self, record: StoreObject) -> RecordedFiles:
        from pressmark.stores.bags.bag_object import recorded_files  # not needed for a put

        path = encode_fs(record.path)
        if self.at(record.path) is None:
            raise self._missing(record.id or record.path)
        with object_errors(self.root, record.id or record.path):
            return RecordedFiles(path, *recorded_files(os.path.join(self._base, path)))


@dataclass(slots=True)
class _StagedBag(Staged):
    """A bag ready to be published.

    :ivar info: its first elements of bag-info.txt; :data:`None` for an existing bag
    :ivar old: the path of the bag that it replaces; :data:`None` without one
    """

    info: list[tuple[str, str]] | None = None
    old: bytes | None = None


class BagWriter(StagingWriter[_StagedBag]):
    """Write bags to a folder.

    :param store: the folder
    :param mode: as for :meth:`BagFolder.put`, like ``links`` and ``replace``
    :param durable_names: as for :class:`StagingWriter`
    """

    _store: BagFolder

    def __init__(
        self, store: BagFolder, mode: CopyMode, links: str, replace: bool = False, *, durable_names: bool = True
    ) -> None:
        super().__init__(store, store.walk.base, mode, links, replace, durable_names=durable_names)
        self._is_case_insensitive = is_case_insensitive(self._base)
        self._stored = 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._store.walk.index.save(soon=self._stored < 2)
        super().__exit__(kind, error, trace)

    def begin(  # type: ignore[override]  # it has no other options
        self,
        identifier: str | bytes,
        source: ObjectSource,
        destination: bytes | None = None,
        *,
        links: str | None = None,
        info: Mapping[str, str] | None = None,
        check: Callable[[Any], object] | None = None,
        on_file: Callable[[bytes, Outcome], object] | None = None,
    ) -> _StagedBag:
        """Return a new bag; see :meth:`StagingWriter.begin`.

        :param links: replaces the option of the writer
        :param info: as for :meth:`BagFolder.put`
        :param check: as for :class:`Staged`
        :param on_file: as for :class:`BagCopy`
        """
        store = self._store
        destination = encode_fs(store.walk.path_for(identifier))
        elements = [*store._elements(_text(identifier), destination), *(info or {}).items()]
        with object_errors(self._name, identifier):
            check_source(source)
            old = self._old_in_turn(identifier, destination)
            new = self.new_path()
            follow = links or self._links
            options = CreateOptions.from_arguments(store.algorithms, elements, follow, (), None, "parallel", None)
            copy = BagCopy(source, new, options, on_file)
        return _StagedBag(identifier, destination, new, copy, check, info=elements, old=old)

    def _complete(self, staged: _StagedBag) -> None:
        assert isinstance(staged.copy, BagCopy)
        staged.copy.finish()
        self._refuse_too_long(staged, staged.copy.longest)

    def adopt(
        self,
        identifier: str | bytes,
        bag: bytes | Mapping[str, Path],
        *,
        rename: bool = False,
        serialized: bool = False,
        check: Callable[[bytes], object] | None = None,
        **copying: Any,
    ) -> Generator[Staged, None, str | None]:
        """Store an existing bag, a directory or a serialized bag; return how it was transferred.

        This is a generator. It yields the bag when :meth:`copy` is to copy its files, and goes on when they are copied.

        :param bag: base directory or file of the bag; or a mapping of all names in it to files
        :param rename: move the bag, which is on the same file system, without copying it
        :param serialized: the mapping has the file of a serialized bag
        :param check: called with the path of the bag; an exception discards it
        :param copying: ``algorithms`` and ``on_file`` of :class:`~pressmark.stores.object_sources.SourceCopy`
        :raises ObjectError: the bag cannot be stored; of kind ``improper``: it has a different identifier
        :raises IdentifierError: the identifier has no path in the folder
        """
        destination = encode_fs(self._store.walk.path_for(identifier))
        file = b""
        if isinstance(bag, bytes) and not os.path.isdir(bag):
            file = os.path.basename(bag)
        elif serialized:
            file = encode_fs(next(iter(bag)))  # type: ignore[arg-type]
        if file:
            destination += file[len(archives.stem(file) or file) :]
        with object_errors(self._name, identifier), self._staged(identifier, destination) as staged:
            if rename and isinstance(bag, bytes):
                staged.path, staged.mode = bag, "rename"
            else:
                copy = staged.copy = SourceCopy(bag, staged.path, "refuse", **copying)
                yield staged
                copy.raise_error()
                staged.mode = copy.mode
                if isinstance(bag, Mapping) and not serialized:
                    os.makedirs(os.path.join(staged.path, b"data"), exist_ok=True)  # a bag without payload
                if file:
                    staged.path = os.path.join(staged.path, file)
            own = self._store.walk.identifier_of(staged.path, destination)
            if own != _text(identifier):
                what = f"the bag has a different identifier, {own!r}; correct its External-Identifier"
                raise ObjectError(self._name, identifier, "improper", what)
            if check is not None:
                check(staged.path)
            self._refuse_too_long(staged, longest_inside(staged.path))
        return staged.mode

    @contextmanager
    def _staged(self, identifier: str | bytes, destination: bytes) -> Iterator[_StagedBag]:
        """Yield a bag to write to a new path, which then waits to be published.

        :param destination: path of a new bag
        :raises ObjectError: a bag cannot be stored there
        """
        old = self._old_in_turn(identifier, destination)
        new = self.new_path()
        staged = _StagedBag(identifier, destination, new, old=old)
        try:
            yield staged
        except BaseException:
            self._discard(new)
            raise
        self._waiting.append(staged)

    def _refuse_too_long(self, staged: _StagedBag, longest: bytes) -> None:
        # It may replace a bag at another path, and may be put aside under a longer name.
        reason = too_long(self._base, max(staged.destination, staged.old or b"", key=len) + REPLACED + longest)
        if reason is not None:
            raise ObjectError(self._name, staged.identifier, "bad-name", f"{reason}; use shorter file names")

    def _old_in_turn(self, identifier: str | bytes, path: bytes) -> bytes | None:
        """Return the result of :meth:`_old`; after an error, look again while no run moves anything."""
        try:
            return self._old(identifier, path)
        except ObjectError as error:
            if error.kind == "exists":
                raise
            with self.staging.lock():
                return self._old(identifier, path)

    def _old(self, identifier: str | bytes, path: bytes) -> bytes | None:
        """Return the path of the bag to replace; :data:`None` without one.

        :param path: path for a new bag
        :raises ObjectError: of kind ``exists``, unless bags are replaced; or something else is at the path
        """
        store, name = self._store, _text(identifier)
        is_simple = store.layout is None and not self._is_case_insensitive
        if is_simple and not exists(os.path.join(self._base, path)) and store.walk.index.lacks(name):
            return None  # otherwise archives are looked for by name
        old = store._look_up(name, soon=True)
        if old is None and self._replaces:
            store.refuse_misplaced()
        self._refuse(identifier, path, old)
        return old

    def _move(self, staged: _StagedBag, known: set[bytes]) -> None:
        old = self._old(staged.identifier, staged.destination)
        if old is None:
            make_above(self._base, staged.destination, known)
            rename_new(staged.path, os.path.join(self._base, staged.destination))
        else:
            staged.destination = self._replace(staged.identifier, staged.path, old)
        self._stored += 1
        if self._store.layout is None:
            # Before the next run takes the lock, and may remove it.
            self._store.walk.index.note(_text(staged.identifier), staged.destination)

    def _refuse(self, identifier: str | bytes, path: bytes, old: bytes | None) -> None:
        """Check that a bag can be stored at ``path``.

        :raises ObjectError: the object cannot be stored
        """
        if old is not None:
            if not self._replaces:
                reason = f"bag exists at {quoted_path(old)}; use another identifier, or {option('replace', True)}"
                raise ObjectError(self._name, identifier, "exists", reason)
            # Checked only once, because another run may be removing it.
            if is_blocked(os.path.join(self._base, old)):
                reason = (
                    f"serialized bag exists at {quoted_path(old)}; use another identifier, or move it out of the folder"
                )
                raise ObjectError(self._name, identifier, "exists", reason)
            return
        parts = path.split(b"/")
        for depth in range(1, len(parts)):
            above = b"/".join(parts[:depth])
            full = os.path.join(self._base, above)
            if not exists(full):
                break
            if not is_directory(full) or os.path.islink(full):
                reason = f"{quoted_path(above)}, a parent of its path, is not a directory; move it out of the folder"
                raise ObjectError(self._name, identifier, "collision", reason)
            if is_bag(scan(full, follow=False)):
                reason = f"path {quoted_path(path)} is inside the bag {quoted_path(above)}; use another layout"
                raise ObjectError(self._name, identifier, "collision", reason)
        self._refuse_other_case(identifier, path)
        full = os.path.join(self._base, path)
        if exists(full):
            if is_directory(full) and not is_bag(scan(full, follow=False)):
                reason = f"path {quoted_path(path)} contains other objects or files; use another layout"
            else:
                reason = f"path {quoted_path(path)} is occupied by another object; move that object first"
            raise ObjectError(self._name, identifier, "collision", reason)

    def _replace(self, identifier: str | bytes, new: bytes, old: bytes) -> bytes:
        """Replace the old bag; return the path of the new one."""
        path = old.removesuffix(REPLACED)
        full = os.path.join(self._base, path)
        aside = full + REPLACED
        if old == path:
            self._store._sweep(self.staging, path)
        elif not restore(aside, full):
            reason = f"path {quoted_path(path)} is occupied by another object; move that object first"
            raise ObjectError(self._name, identifier, "collision", reason)
        if replace_directory(new, full, aside) == aside:
            os.rename(aside, self.staging / b"replaced")
        flush_directory(os.path.dirname(full))
        return path

    def publish(self) -> Iterator[StoreObject | ObjectError]:
        yield from super().publish()
        self._store.walk.index.save()

    def _record(self, staged: _StagedBag) -> StoreObject:
        if staged.info is None:
            record = self._store.walk.record_at(decode_fs(staged.destination))
            return record or record_of(_text(staged.identifier), staged.destination, ())
        if self._store.layout is None:
            return record_of(_text(staged.identifier), staged.destination, ())
        identifier, problems = self._store.walk.identified(staged.destination, BagInfo(staged.info), staged.destination)
        return record_of(identifier, staged.destination, problems)


def _text(identifier: str | bytes) -> str:
    return decode_fs(identifier) if isinstance(identifier, bytes) else identifier
