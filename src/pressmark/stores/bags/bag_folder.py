"""Changes to a folder of bags: put, adopt, replace and remove bags."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any, Literal

from pressmark.bagit.bag import create as create_bag
from pressmark.bagit.bag_directory import STAGING, BagDirectory
from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.bag_tags import read_tag_files
from pressmark.bagit.changes import Notice
from pressmark.bagit.writing.options import CreateOptions
from pressmark.bagit.writing.preflight import why_unlistable
from pressmark.bagit.writing.write import build_bag
from pressmark.errors import BagError, IdentifierError, ObjectError, StoreError
from pressmark.fixity import Outcome
from pressmark.fs.atomic import replace_file
from pressmark.fs.durable import exists, flush_directory, is_directory
from pressmark.fs.moves import prune_empty_parents, rename_new, replace_directory, restore
from pressmark.fs.names import decode_fs, encode_fs, existing_spelling, is_blocked, is_case_insensitive, too_long
from pressmark.fs.removal import remove_tree
from pressmark.fs.staging import RunDirectory
from pressmark.fs.trees import longest_inside, scan
from pressmark.layouts import Layout
from pressmark.reports import Report
from pressmark.stores.bags import archives
from pressmark.stores.bags.bag_folder_reader import (
    CONFIG,
    IDENTIFIER,
    REPLACED,
    WORK_DIRECTORY,
    BagFolderReader,
    check_identifiers,
    is_bag,
    is_writable_identifier,
    record_of,
)
from pressmark.stores.bags.repair import discard, repair
from pressmark.stores.bags.small_bag import SmallBag, write_small_bag
from pressmark.stores.exceptions import SourceError, object_errors, store_errors
from pressmark.stores.object_sources import (
    SourceCopier,
    check_source,
    copy_source,
    identities_above,
    refuse_within,
)
from pressmark.stores.objects import (
    CopyMode,
    ObjectSource,
    OnEvent,
    OnProblem,
    Path,
    RecordedFiles,
    StoreObject,
    encode_path,
)
from pressmark.stores.staging_writer import Staged, StagingWriter, make_above
from pressmark.stores.store_change import Removal, above

__all__ = ["BagFolder", "BagWriter"]

# Problems of file names that no manifest can contain.
_OF_NAMES = frozenset({"name-clash", "path-unsafe"})


class BagFolder(BagFolderReader):
    """An existing folder of bags that can be changed; :meth:`create` creates one; see :class:`BagFolderReader`."""

    durable = True

    @classmethod
    def create(
        cls,
        path: Path,
        layout: Layout | None = None,
        *,
        identifiers: Literal["external", "name", "layout"] | None = None,
        **options: Any,
    ) -> BagFolder:
        """Create an empty folder in a directory that is empty or does not exist, and open it.

        :param layout: maps identifiers to the paths of bags
        :param options: arguments of the class
        :raises StoreError: the directory is not empty or cannot be written, or ``identifiers`` does not fit the layout
        """
        base = encode_path(path)
        wanted = identifiers or ("layout" if layout is not None else "external")
        check_identifiers(base, wanted, layout)
        config = {"identifiers": wanted, "layout": layout.config() if layout is not None else None}
        with store_errors(base):
            os.makedirs(base, exist_ok=True)
            strangers = sorted(set(os.listdir(base)) - cls.unfinished_names)
            if strangers:
                raise StoreError(
                    base, f"the directory contains {decode_fs(strangers[0])!r}; specify an empty or new directory"
                )
            new = os.path.join(base, CONFIG)
            replace_file(new, json.dumps(config, indent=2).encode() + b"\n", part=new + b".new")
        return cls(path, identifiers=identifiers, layout=layout, **options)

    def put(
        self,
        identifier: str | bytes,
        source: ObjectSource,
        *,
        replace: bool = False,
        mode: CopyMode = "auto",
        links: Literal["refuse", "follow"] = "refuse",
        exclude: Sequence[str] | str = (),
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
        return self._put(identifier, source, replace, mode, links, exclude, compare, **options)

    def writer(
        self, mode: CopyMode, links: str = "refuse", replace: bool = False, *, durable_places: bool = True
    ) -> BagWriter:
        return BagWriter(self, mode, links, replace, durable_places=durable_places)

    def _own_identifier(self, path: bytes, place: bytes) -> str | None:
        """Return the identifier that a bag would have at ``place``."""
        if not os.path.isdir(path):
            stem = archives.stem(os.path.basename(place)) or os.path.basename(place)
            info = archives.describe(path).info
            return self._identified(os.path.join(os.path.dirname(place), stem), info, place)[0]
        with BagDirectory(path) as base:
            bag, _ = read_tag_files(base, [])
        return self._identified(place, bag.info, place)[0]

    def _elements(self, identifier: str, place: bytes) -> list[tuple[str, str]]:
        """Return the elements of a new bag's bag-info.txt."""
        elements = [(label, value) for label, value in self._info.items() if label.lower() != IDENTIFIER.lower()]
        if is_writable_identifier(identifier):
            return [(IDENTIFIER, identifier), *elements]
        if self.layout is not None and self._from_place(place) == identifier:
            return elements
        raise IdentifierError(identifier, None, f"cannot be written as an {IDENTIFIER} on one line of text")

    def _refuse(self, identifier: str | bytes, place: bytes, old: bytes | None, replace: bool) -> None:
        """Check that a bag can be stored at ``place``.

        :raises ObjectError: the object cannot be stored
        """
        if old is not None:
            if not replace:
                reason = f"bag exists at {decode_fs(old)}; use another identifier, or --replace"
                raise ObjectError(self.root, identifier, "exists", reason)
            # Checked only once, because another run may be removing it.
            if is_blocked(os.path.join(self._base, old)):
                reason = (
                    f"serialized bag exists at {decode_fs(old)}; use another identifier, or move it out of the folder"
                )
                raise ObjectError(self.root, identifier, "exists", reason)
            return
        parts = place.split(b"/")
        for depth in range(1, len(parts)):
            above = b"/".join(parts[:depth])
            path = os.path.join(self._base, above)
            if not exists(path):
                break
            if not is_directory(path) or os.path.islink(path) or is_bag(scan(path, follow=False)):
                reason = f"{decode_fs(above)} is not a directory of bags; use another layout"
                raise ObjectError(self.root, identifier, "collision", reason)
        if is_case_insensitive(self._base):
            clash = existing_spelling(self._base, place)
            if clash is not None:
                reason = f"{decode_fs(clash)!r} differs only in case, which this file system ignores"
                raise ObjectError(self.root, identifier, "collision", f"{reason}; use a case-sensitive file system")
        if exists(os.path.join(self._base, place)):
            reason = f"path {decode_fs(place)} is occupied by another object; move that object first"
            raise ObjectError(self.root, identifier, "collision", reason)

    def _make(
        self,
        identifier: str | bytes,
        source: ObjectSource,
        new: bytes,
        info: list[tuple[str, str]],
        mode: str,
        links: str,
        on_event: Callable[[object], object] | None,
    ) -> None:
        refused_for: set[str] = set()

        def note(event: object) -> None:
            if isinstance(event, Notice) and event.problem.severity == "error":
                refused_for.add(event.problem.kind)
            elif on_event is not None:
                on_event(event)

        try:
            if isinstance(source, Mapping):
                copy_source(source, new, mode=mode, links=links, on_event=on_event)
                if exists(os.path.join(new, STAGING)):  # it would be taken for our own and removed
                    reason = f"{decode_fs(STAGING)!r} is reserved for changes of the bag; rename the file"
                    raise SourceError("bad-name", reason)
                create_bag(new, None, self.algorithms, info, nested=True, on_event=note)
                # A remaining staging directory would look like an interrupted change.
                remove_tree(os.path.join(new, STAGING))
            else:
                given = os.fsencode(source)
                refuse_within(given, new)
                fault = None if is_directory(given) else why_unlistable(os.path.basename(given))
                if fault is not None:
                    raise SourceError("bad-name", f"{decode_fs(given)}: {fault}")
                folder = new + b"-parts"
                options = CreateOptions.from_arguments(self.algorithms, info, links, (), None, "parallel", None)
                try:
                    os.rename(build_bag(given, folder, options, mode, True, note), new)
                finally:
                    remove_tree(folder)
        except BagError as error:
            if isinstance(error.__cause__, OSError):
                raise error.__cause__ from None
            if refused_for and refused_for <= _OF_NAMES:
                kind = "bad-name"
            else:
                kind = "unreadable" if "file-unreadable" in refused_for else "source"
            raise ObjectError(self.root, identifier, kind, str(error)) from None

    def _replace(self, staging: RunDirectory, identifier: str | bytes, new: bytes, old: bytes) -> bytes:
        """Replace the old bag; return the path of the new one."""
        place = old.removesuffix(REPLACED)
        path = os.path.join(self._base, place)
        aside = path + REPLACED
        if old == place:
            self._sweep(staging, place)
        elif not restore(aside, path):
            reason = f"path {decode_fs(place)} is occupied by another object; move that object first"
            raise ObjectError(self.root, identifier, "collision", reason)
        if replace_directory(new, path, aside) == aside:
            os.rename(aside, staging / b"replaced")
        flush_directory(os.path.dirname(path))
        return place

    def _sweep(self, staging: RunDirectory, place: bytes) -> None:
        """Remove the old bag that a killed run has left beside the new one."""
        aside = os.path.join(self._base, place + REPLACED)
        if is_directory(aside) and is_bag(scan(aside, follow=False)):
            discard(staging, aside)

    def run_directory(self) -> RunDirectory:
        """Return a private directory for changes; see :class:`pressmark.stores.store_change.ChangedStore`."""
        return RunDirectory(os.path.join(self._base, WORK_DIRECTORY))

    def withdraw(
        self, removal: Removal, identifier: str | bytes | StoreObject, check: Callable[[], object] | None
    ) -> list[bytes]:
        """Move an object out of the store; see :class:`pressmark.stores.store_change.ChangedStore`."""
        record = identifier if isinstance(identifier, StoreObject) else None
        if isinstance(identifier, StoreObject):
            identifier = identifier.id or identifier.path
        name = _text(identifier)

        def find() -> bytes | None:
            if record is None:
                return self._find(name)
            return encode_fs(record.path) if self.at(record.path) is not None else None

        if find() is None:
            raise self._missing(identifier)
        to = removal.new_path()
        with removal.staging.lock():
            place = find()
            if place is None:
                raise self._missing(identifier)
            if check is not None:
                check()
            # First, because otherwise the old bag would be found when the new one is gone.
            self._sweep(removal.staging, place)
            os.rename(os.path.join(self._base, place), to)
            self._index.forget(place)
            prune_empty_parents(self._base, os.path.dirname(place), strict=False)
        self._index.save()
        return above(self._base, place)

    def recorded_files(self, record: StoreObject) -> RecordedFiles:
        from pressmark.stores.bags.bag_object import recorded_files  # not needed for a put

        place = encode_fs(record.path)
        if self.at(record.path) is None:
            raise self._missing(record.id or record.path)
        with object_errors(self.root, record.id or record.path):
            return RecordedFiles(place, *recorded_files(os.path.join(self._base, place)))

    def check(
        self,
        *,
        digests: bool = False,
        threads: int | None = None,
        on_event: OnEvent | None = None,
        on_problem: OnProblem | None = None,
        ignore: Sequence[str] = (),
    ) -> Report:
        """Validate every bag, and return one report with paths relative to the folder.

        Serialized bags are validated only with ``digests``, without being unpacked; otherwise they are reported as
        unchecked, a warning.

        :param digests: verify checksums; otherwise only completeness
        :raises StoreError: a temporary file for large manifests of serialized bags cannot be written
        """
        from pressmark.stores.bags.check import check

        return check(self, digests=digests, threads=threads, on_event=on_event, on_problem=on_problem, ignore=ignore)

    def repair(self, *, dry_run: bool = False, on_event: OnEvent | None = None, ignore: Sequence[str] = ()) -> Report:
        """Repair the folder without changing bags, and report the remaining problems.

        =========== ==========================================================================================
        ``finish``  an interrupted replacement is completed
        ``prune``   empty directories are removed
        ``remove``  temporary directories of killed runs, and an outdated index, are removed
        =========== ==========================================================================================
        """
        return repair(self, dry_run=dry_run, on_event=on_event, ignore=ignore)


# --- many objects -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _StagedBag(Staged):
    """A bag ready to be published.

    :ivar info: its first elements of bag-info.txt; :data:`None` for an existing bag
    """

    info: list[tuple[str, str]] | None


class BagWriter(StagingWriter[_StagedBag]):
    """Write bags to a folder.

    :param store: the folder
    :param mode: as for :meth:`BagFolder.put`, like ``links`` and ``replace``
    :param durable_places: as for :class:`StagingWriter`
    """

    _store: BagFolder

    def __init__(
        self, store: BagFolder, mode: CopyMode, links: str, replace: bool = False, *, durable_places: bool = True
    ) -> None:
        super().__init__(store, store._base, durable_places=durable_places, replace=replace)
        self._links = links
        self._copier = SourceCopier(mode, store.copied_devices)
        self._is_case_insensitive = is_case_insensitive(self._base)
        self._stored = 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._store._index.save(soon=self._stored < 2)
        super().__exit__(kind, error, trace)

    @cached_property
    def _above(self) -> frozenset[tuple[int, int]]:
        return identities_above(self.staging.path)

    def prepare(
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

        :param links: replaces the option of the writer
        :param info: as for :meth:`BagFolder.put`
        :param check: called with the path of the bag and, if they are known, its facts; an exception discards the bag
        :param on_event: called with the events of copying
        :raises ObjectError: the bag cannot be stored; it leaves no files
        :raises IdentifierError: the identifier has no path in the folder
        """
        store = self._store
        place = encode_fs(store._place(identifier))
        name = _text(identifier)
        elements = [*store._elements(name, place), *(info or {}).items()]
        with object_errors(store.root, identifier):
            check_source(source)
            old = self._old_in_turn(identifier, name, place)
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
                self._refuse_too_long(identifier, place, old, longest)
            except BaseException:
                self._discard(new)
                raise
        self._waiting.append(_StagedBag(identifier, place, new, elements))
        return size

    def adopt(
        self,
        identifier: str | bytes,
        bag: bytes | Mapping[str, Path],
        *,
        mode: str,
        check: Callable[[bytes], object] | None = None,
        algorithms: tuple[str, ...] = (),
        on_file: Callable[[bytes, Outcome], object] | None = None,
        on_event: Callable[[object], object] | None = None,
    ) -> None:
        """Copy an existing bag, a directory or a serialized bag, to the private directory; or publish it without
        copying it.

        :param bag: base directory or file of the bag; or a mapping of all names in it to files
        :param mode: as for :meth:`BagFolder.put`; or ``rename`` to move a bag on the same file system
        :param check: called with the path of the bag; an exception discards it
        :param algorithms: algorithms of the digests that ``on_file`` receives
        :param on_file: called with name and outcome of each copied file; an exception discards the bag
        :param on_event: called with the events of copying
        :raises ObjectError: the bag cannot be stored; of kind ``improper``: it has a different identifier
        :raises IdentifierError: the identifier has no path in the folder
        """
        store = self._store
        place = encode_fs(store._place(identifier))
        file = b""
        if isinstance(bag, bytes) and not os.path.isdir(bag):
            file = os.path.basename(bag)
            place += file[len(archives.stem(file) or file) :]
        with object_errors(store.root, identifier):
            old = self._old_in_turn(identifier, _text(identifier), place)
            made, new = bag, b""
            try:
                if mode != "rename" or isinstance(made, Mapping):
                    new = self.new_path()
                    copy_source(bag, new, mode=mode, algorithms=algorithms, on_file=on_file, on_event=on_event)
                    made = os.path.join(new, file) if file else new
                    if isinstance(bag, Mapping):
                        os.makedirs(os.path.join(made, b"data"), exist_ok=True)  # a bag without payload
                own = store._own_identifier(made, place)
                if own != _text(identifier):
                    what = f"the bag has a different identifier, {own!r}; correct its External-Identifier"
                    raise ObjectError(store.root, identifier, "improper", what)
                if check is not None:
                    check(made)
                self._refuse_too_long(identifier, place, old, longest_inside(made))
            except BaseException:
                if new:
                    self._discard(new)
                raise
        self._waiting.append(_StagedBag(identifier, place, made, None))

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

    def _refuse_too_long(self, identifier: str | bytes, place: bytes, old: bytes | None, longest: bytes) -> None:
        # It may replace a bag at another path, and may be put aside under a longer name.
        reason = too_long(self._base, max(place, old or b"", key=len) + REPLACED + longest)
        if reason is not None:
            raise ObjectError(self._store.root, identifier, "bad-name", f"{reason}; use shorter file names")

    def _old_in_turn(self, identifier: str | bytes, name: str, place: bytes) -> bytes | None:
        """Return the result of :meth:`_old`; after an error, look again while no run moves anything."""
        try:
            return self._old(identifier, name, place)
        except ObjectError as error:
            if error.kind == "exists":
                raise
            with self.staging.lock():
                return self._old(identifier, name, place)

    def _old(self, identifier: str | bytes, name: str, place: bytes) -> bytes | None:
        """Return the path of the bag to replace; :data:`None` without one.

        :param place: path for a new bag
        :raises ObjectError: of kind ``exists``, unless bags are replaced; or something else is at the path
        """
        store = self._store
        is_simple = store.layout is None and not self._is_case_insensitive
        if is_simple and not exists(os.path.join(self._base, place)) and store._index.lacks(name):
            return None  # otherwise archives are looked for by name
        old = store._find(name, soon=True)
        if old is None and self._replaces:
            store.refuse_misplaced()
        store._refuse(identifier, place, old, self._replaces)
        return old

    def _move(self, staged: _StagedBag, known: set[bytes]) -> None:
        name = _text(staged.identifier)
        old = self._old(staged.identifier, name, staged.place)
        if old is None:
            make_above(self._base, staged.place, known)
            rename_new(staged.path, os.path.join(self._base, staged.place))
        else:
            staged.place = self._store._replace(self.staging, staged.identifier, staged.path, old)
        self._stored += 1
        if self._store.layout is None:
            # Before the next run takes the lock, and may remove it.
            self._store._index.note(name, staged.place)

    def publish(self) -> Iterator[StoreObject | ObjectError]:
        yield from super().publish()
        self._store._index.save()

    def _record(self, staged: _StagedBag) -> StoreObject:
        if staged.info is None:
            found = self._store.at(decode_fs(staged.place))
            return found or record_of(_text(staged.identifier), staged.place, ())
        if self._store.layout is None:
            return record_of(_text(staged.identifier), staged.place, ())
        identifier, problems = self._store._identified(staged.place, BagInfo(staged.info), staged.place)
        return record_of(identifier, staged.place, problems)


def _text(identifier: str | bytes) -> str:
    return decode_fs(identifier) if isinstance(identifier, bytes) else identifier
