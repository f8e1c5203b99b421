"""Pairtree: a tree of directories of two characters, where each object is at the path of its identifier.

The specification is draft-kunze-pairtree-01. Open points follow the related specification of December 2008 ("Pairtrees
for Collection Storage"); in particular, a directory of one character ends every ppath.

Changes are staged in the store's work directory (:mod:`pressmark.fs.staging`), which exists next to
``pairtree_root`` while a run is active. An interrupted change of an object leaves a name that begins with
``pairtree_pressmark`` in its last directory; the next change of the object, or a repair, completes it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

from pressmark.buckets.address import is_address
from pressmark.errors import ObjectError, StoreError, quoted, quoted_path
from pressmark.fs.durable import exists, flush_directory
from pressmark.fs.moves import TRIES, make_parents, prune_empty_parents, rename_new, replace_directory
from pressmark.fs.names import decode_fs, encode_fs, too_long
from pressmark.fs.trees import longest_inside
from pressmark.layouts import Layout, Pairtree, as_layout, pairtree_dialects as dialects
from pressmark.option_names import option
from pressmark.progress_event import Progress
from pressmark.reports import Problem, Report
from pressmark.stores.directories.store_directory import LocalDirectory, open_directory
from pressmark.stores.exceptions import object_errors, store_errors
from pressmark.stores.object_sources import SourceCopy, check_source
from pressmark.stores.objects import CopyMode, ObjectSource, Path, StoreObject, encode_path
from pressmark.stores.pairtree.object_directory import (
    OBJECT,
    REPAIRING,
    REPLACED,
    RESERVED,
    ROOT,
    Contents,
    Folder,
    InterruptedObject,
    encapsulate,
    replaced_names,
    take_back,
)
from pressmark.stores.pairtree.spellings import Spellings
from pressmark.stores.pairtree.version_files import (
    UNFINISHED,
    encoded_prefix,
    prefix_of,
    version_problems,
    write_prefix,
    write_version,
)
from pressmark.stores.pairtree.walk import Walk
from pressmark.stores.store_change import Removal, above
from pressmark.stores.stored_object import StoredObject
from pressmark.stores.walked_store import CopyingWriter, StagedCopy, StoreWalk, WalkedStore

if TYPE_CHECKING:
    from pressmark.stores.directories.bucket_directory import BucketDirectory

__all__ = ["PairtreeStore", "PairtreeWriter"]

_READ_ONLY = (
    "a Pairtree in object storage is read-only: an object of several files cannot be stored in one step; "
    "use an OCFL storage root"
)


class PairtreeStore(WalkedStore):
    """An existing Pairtree, and the objects in it; :meth:`create` creates one.

    The objects are listed in the order of the bytes of the ppaths' names. A check reports files that cannot be read; a
    Pairtree contains no digests, so ``digests`` has no effect. An object is found even if its ppath is not canonical.

    If the encapsulating directory of an object is a symbolic link, removing the object removes the link and keeps its
    target. Behind a link above it, nothing is removed: an error of kind ``link``. Objects below it are kept.

    :param path: the directory that contains ``pairtree_root``, or ``pairtree_root`` itself; or an address in object
        storage, such as ``s3://bucket/prefix``, where the store is read-only
    :param encapsulation: how encapsulating directories of new objects are named; see :class:`pressmark.Pairtree`
    :param prefix_required: refuse identifiers that do not begin with the tree's prefix
    :param links: ``"follow"`` symbolic links in the tree, or ``"refuse"`` them: report them and do not follow
    :param dialect: the dialect of a tree written by another program, see ``pairtree_dialects``; such a tree is
        read-only
    :param ignore: globs of names to ignore in the whole tree, such as ``.DS_Store``
    :param durable: flush everything before a change is made; otherwise a crash of the system (not of the program) may
        lose new objects
    :ivar prefix: the common prefix of all identifiers of the tree
    :raises StoreError: not a Pairtree, or not readable
    """

    kind: ClassVar[str] = "pairtree"
    unfinished_names = UNFINISHED
    progress_every = 10_000
    layout: Pairtree
    walk: Walk
    # Of a store for many identifiers.
    _spellings: Spellings | None = None

    def __init__(
        self,
        path: Path,
        *,
        encapsulation: str | Callable[[str], str] = "id",
        prefix_required: bool = True,
        links: Literal["follow", "refuse"] = "follow",
        dialect: str | None = None,
        ignore: Sequence[str] = (),
        durable: bool = True,
    ) -> None:
        if links not in ("follow", "refuse"):
            raise ValueError(f"links={links!r}: expected follow or refuse")
        if dialect is not None and dialect not in dialects.DIALECTS:
            raise ValueError(f"dialect={dialect!r}: expected one of {', '.join(dialects.DIALECTS)}")
        directory = open_directory(path, ROOT, "Pairtree")
        self._base = directory.path(b"")
        self.bucket = directory.bucket
        self.root = os.fsdecode(self._base)
        self.prefix: str = prefix_of(directory)
        self.layout = Pairtree(self.prefix, encapsulation, prefix_required)
        self.dialect = dialect
        self._follow = links == "follow"
        self.durable = durable
        self.walk = Walk(directory, self.layout, dialect=dialect, follow=self._follow, ignore=ignore)

    @classmethod
    def create(
        cls,
        path: Path,
        layout: Layout | str | None = None,
        *,
        prefix: str | None = None,
        encapsulation: str | Callable[[str], str] | None = None,
        prefix_required: bool | None = None,
        links: Literal["follow", "refuse"] = "follow",
        ignore: Sequence[str] = (),
        durable: bool = True,
    ) -> PairtreeStore:
        """Create an empty Pairtree in a directory that is empty or does not exist, and open it.

        Missing directories above it are created.

        The other parameters are those of the class.

        :param layout: a :class:`pressmark.Pairtree` or its name, with settings such as ``pairtree:prefix=ark:/13030/``;
            the values of the parameters that are :data:`None`
        :param prefix: the common prefix of all identifiers, omitted from paths (section 4)
        :raises StoreError: the directory is not empty, or cannot be written
        :raises LayoutConfigError: unknown layout
        """
        base = encode_path(path, remote=True)
        if is_address(base):
            raise StoreError(base, _READ_ONLY)
        pairtree = as_layout(layout) or Pairtree()
        if not isinstance(pairtree, Pairtree):
            raise StoreError(base, f"a Pairtree uses the layout pairtree, not {pairtree.name}")
        pairtree.check_plain()
        prefix = pairtree.prefix if prefix is None else prefix
        data = encoded_prefix(base, prefix)  # like the next line, before anything is created
        pairtree = Pairtree(
            prefix,
            pairtree.encapsulation if encapsulation is None else encapsulation,
            pairtree.prefix_required if prefix_required is None else prefix_required,
        )
        with store_errors(base):
            cls._create_directory(base)
            if prefix_of(LocalDirectory(base)) not in ("", prefix):
                raise StoreError(
                    base, f"the directory contains the prefix of another tree, whose {ROOT} is missing; restore it"
                )
            write_version(base)
            write_prefix(base, data)
            # Last, because this makes the directory a Pairtree.
            os.mkdir(os.path.join(base, encode_fs(ROOT)))
            flush_directory(base)
        return cls(
            path,
            encapsulation=pairtree.encapsulation,
            prefix_required=pairtree.prefix_required,
            links=links,
            ignore=ignore,
            durable=durable,
        )

    # --- all objects --------------------------------------------------------------------------------------------------

    def own_problems(self) -> list[Problem]:
        return version_problems(self.walk.directory)

    def dialects(self, *, threads: int | None = None) -> dict[str, int]:
        """Detect the dialect of a tree: return the number of objects that each dialect may have written.

        ``spec`` counts canonical ppaths; ``unknown`` counts ppaths of unknown dialects. An object that several dialects
        write in the same way counts for each.
        """
        counts: Counter[str] = Counter()
        for record in self.objects(threads=threads):
            kinds = {found.kind for found in record.problems}
            if not kinds & {"not-canonical", "undecodable", "empty-id", "ambiguous"}:
                counts["spec" if self.dialect is None else self.dialect] += 1
            if kinds & {"not-canonical", "undecodable", "not-utf8"}:
                found = dialects.recognised(record.path.removeprefix(f"{ROOT}/"))
                counts.update(found or (["unknown"] if "not-utf8" not in kinds else []))
        return dict(sorted(counts.items()))

    def repair(self, *, dry_run: bool = False, progress: Progress | None = None, ignore: Sequence[str] = ()) -> Report:
        """Encapsulate all objects, complete interrupted changes, and remove empty ppaths.

        The files of an object that is not properly encapsulated are moved to a directory ``obj`` beside them;
        identifiers, ppaths and contents do not change (section 2). A second repair changes nothing. Ambiguous problems
        are reported and not changed.

        :param dry_run: report the changes without making them
        :param progress: can cancel the repair between two changes
        """
        from pressmark.stores.pairtree.repair import repair  # only a repair needs it

        if not dry_run or self.walk.is_read_only:
            self.refuse_changes()
        return repair(self, self.walk.with_options(ignore, readable=True), dry_run, progress)

    # --- one object ---------------------------------------------------------------------------------------------------

    def _ppath(self, identifier: str | bytes) -> str:
        if self.dialect is None:
            return self.layout.map_id(identifier)
        self.layout.map_id(identifier)  # refuses invalid identifiers
        whole = decode_fs(identifier) if isinstance(identifier, bytes) else identifier
        return dialects.path(self.dialect, whole.removeprefix(self.prefix))

    def _existing_path(self, identifier: str | bytes | StoreObject, spellings: Spellings | None = None) -> str | None:
        """Return the ppath of the object with an identifier, in whatever spelling; :data:`None` without such an object.

        :param identifier: or a record, whose path is returned
        :raises ObjectError: of kind ``duplicate-id``: several objects have the identifier
        :raises IdentifierError: the identifier has no path in a Pairtree
        """
        if isinstance(identifier, StoreObject):
            ppath = identifier.path.removeprefix(ROOT).lstrip("/")
            with object_errors(self.root, identifier.id or identifier.path):
                return ppath if self.walk.is_object(ppath) else None
        ppath = self._ppath(identifier)
        with object_errors(self.root, identifier):
            ppaths = [ppath] if self._is_listed(ppath) and self.walk.is_object(ppath) else []
            # A path of a dialect has one spelling.
            if self.dialect is None:
                others = (spellings or self._spellings or Spellings(self.walk.tree_directory)).others(ppath)
                ppaths += [other for other in others if self.walk.is_object(other)]
        if len(ppaths) > 1:
            raise self._duplicate(identifier, [f"{ROOT}/{one}" for one in ppaths])
        return ppaths[0] if ppaths else None

    def _with_walk(self, walk: StoreWalk) -> Self:
        store = super()._with_walk(walk)
        if not store.walk.is_read_only:
            store._spellings = Spellings(store.walk.tree_directory, keeps=True)
        return store

    def _is_listed(self, ppath: str) -> bool:
        """Return whether a ppath is not the one of another identifier, on a file system that ignores case."""
        return self.walk.tree_directory.other_spelling(encode_fs(ppath)) is None

    def at(self, path: str) -> StoreObject | None:
        ppath = path.removeprefix(f"{ROOT}/").rstrip("/")
        *above, last = ppath.split("/")
        if ppath == path.rstrip("/") or not all(len(name) == 2 for name in above) or not 1 <= len(last) <= 2:
            return None
        return None if {".", ".."} & {*above, last} else self.walk.record_at(ppath)

    def get(self, id: str | bytes) -> StoredObject:
        return self._stored(id, self._existing_path(id))

    def locate(self, record: StoreObject) -> StoredObject:
        return self._stored(record.id or "", record.path.removeprefix(ROOT).lstrip("/"))

    def _stored(self, identifier: str | bytes, ppath: str | None) -> StoredObject:
        if ppath is None:
            raise self._missing(identifier)
        # Making each path absolute would take a tenth of the time for small objects.
        tree = self.walk.tree if os.path.isabs(self.walk.tree) else os.path.abspath(self.walk.tree)
        directory = os.path.join(tree, encode_fs(ppath)) if ppath else tree
        with object_errors(self.root, identifier):
            for _ in range(TRIES):
                entries = self.walk.contents(ppath)
                if entries is None or REPLACED not in entries.ours or self.walk.is_read_only:
                    replaced = []
                    break
                # The object may have been moved between the two checks.
                replaced = replaced_names(directory)
                names = {entry.name for entry in entries.members}
                if (names or replaced) and names.isdisjoint(replaced):
                    break
            if entries is None:
                raise self._missing(identifier, ppath)
            shown_id = decode_fs(identifier) if isinstance(identifier, bytes) else identifier
            if self.walk.is_read_only:
                return self._in_bucket(shown_id, ppath, entries)
            if replaced or REPAIRING in entries.ours:
                return self._between(shown_id, directory, entries, replaced)
            if not entries.members:
                raise self._missing(identifier, ppath)
            links = "follow" if self._follow else "refuse"
            if ppath and entries.is_one_directory:
                return StoredObject(self.root, shown_id, os.path.join(directory, entries.members[0].name), None, links)
            return StoredObject(self.root, shown_id, directory, [entry.name for entry in entries.members], links)

    def _in_bucket(self, identifier: str, ppath: str, entries: Contents) -> StoredObject:
        """Return an object in object storage."""
        from pressmark.stores.directories.bucket_object import BucketObject  # only in object storage

        if entries.ours:
            what = (
                "an interrupted change has left its files in several directories; repair a copy of the store on a disk"
            )
            raise ObjectError(self.root, identifier, "improper", what)
        if not entries.members:
            raise self._missing(identifier, ppath)
        names = [entry.name for entry in entries.members]
        directory = cast("BucketDirectory", self.walk.directory)
        path = encode_fs(f"{ROOT}/{ppath}" if ppath else ROOT)
        if ppath and entries.is_one_directory:
            return BucketObject(self.root, identifier, directory, path + b"/" + names[0])
        return BucketObject(self.root, identifier, directory, path, names)

    def _between(self, identifier: str, directory: bytes, entries: Contents, replaced: list[bytes]) -> StoredObject:
        """Return an object between two steps of a change.

        :param directory: the last directory of its ppath, with the content ``entries``
        :param replaced: the names of the object that were put aside
        """
        links = "follow" if self._follow else "refuse"
        aside = os.path.join(directory, REPLACED)
        members = [entry.name for entry in entries.members]
        if REPAIRING in entries.ours or members:
            # The object is complete, in several directories.
            parts: list[Folder] = [(directory, members)]
            parts += [(os.path.join(directory, REPAIRING), None)] if REPAIRING in entries.ours else []
            parts += [(aside, replaced)] if replaced else []
            return InterruptedObject(self.root, identifier, directory, parts, links)
        if len(replaced) == 1 and os.path.isdir(os.path.join(aside, replaced[0])):
            return StoredObject(self.root, identifier, os.path.join(aside, replaced[0]), None, links)
        return StoredObject(self.root, identifier, aside, replaced, links)

    def _missing(self, identifier: str | bytes, ppath: str | None = None) -> ObjectError:
        ppath = self._ppath(identifier) if ppath is None else ppath
        return ObjectError(self.root, identifier, "missing", f"object not found at {quoted_path(f'{ROOT}/{ppath}')}")

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
        encapsulation: str | None = None,
    ) -> StoreObject:
        """Store an object atomically in an encapsulating directory.

        A replaced object keeps the name of its encapsulating directory. It is replaced in one step if the system can
        exchange two names (Linux).

        :param encapsulation: the name of the encapsulating directory, instead of the store's choice
        :raises ObjectError: nothing was stored; ``kind`` is the reason
        :raises IdentifierError: the identifier has no path in this tree
        """
        options = {"encapsulation": encapsulation} if encapsulation is not None else {}
        return self._put(id, source, replace, copy_mode, links, exclude, one_file_system, compare, **options)

    def _writer(
        self, mode: CopyMode, links: str = "refuse", replace: bool = False, *, durable_names: bool = True
    ) -> PairtreeWriter:
        self.refuse_changes()
        return PairtreeWriter(self, mode, links, replace, durable_names=durable_names)

    def refuse_changes(self) -> None:
        if self.walk.is_read_only:
            raise StoreError(self.root, _READ_ONLY)
        if self.dialect is not None:
            raise StoreError(self.root, f"a tree in the dialect {self.dialect} is read-only; migrate it to a new tree")

    def withdraw(
        self, removal: Removal, identifier: str | bytes | StoreObject, check: Callable[[], object] | None
    ) -> list[bytes]:
        self.refuse_changes()
        ppath = self._existing_path(identifier)
        recorded = None
        if isinstance(identifier, StoreObject):
            recorded, identifier = identifier.path.removeprefix(f"{ROOT}/"), identifier.id or identifier.path
        if ppath is None:
            raise self._missing(identifier, recorded)
        walk, encoded = self.walk, encode_fs(ppath)
        directory = os.path.join(walk.tree, encoded)
        walk.refuse_links(identifier, ppath)
        to = removal.new_path()
        with removal.staging.lock():
            try:
                entries = walk.finish(identifier, ppath)
            except FileNotFoundError:
                raise self._missing(identifier, ppath) from None
            if not entries.members:
                raise self._missing(identifier, ppath)
            if check is not None:
                check()
            if len(entries.members) > 1:
                # Then it can be removed in one step.
                encapsulate(directory, entries.members)
            name = OBJECT if len(entries.members) > 1 else entries.members[0].name
            os.rename(os.path.join(directory, name), to)
            prune_empty_parents(walk.tree, encoded, strict=False)
        return above(walk.tree, os.path.join(encoded, name))


class PairtreeWriter(CopyingWriter):
    """Write objects to a Pairtree.

    :param store: the tree
    :param mode: as for :meth:`PairtreeStore.put`, like ``links`` and ``replace``
    """

    _store: PairtreeStore
    _walk: Walk

    def __init__(
        self, store: PairtreeStore, mode: CopyMode, links: str, replace: bool, *, durable_names: bool = True
    ) -> None:
        super().__init__(store, mode, links, replace, durable_names=durable_names)
        self._spellings = Spellings(self._walk.tree_directory, keeps=True)

    def begin(
        self,
        identifier: str | bytes,
        source: ObjectSource,
        destination: bytes | None = None,
        *,
        encapsulation: str | None = None,
        links: str | None = None,
        check: Callable[[Any], object] | None = None,
        **copying: Any,
    ) -> StagedCopy:
        """Return a new object; see :meth:`StagingWriter.begin`.

        :param encapsulation: the name of the encapsulating directory, instead of the store's choice
        :param links: replaces the option of the writer
        :param check: as for :class:`Staged`
        :param copying: options of :class:`~pressmark.stores.object_sources.SourceCopy`
        """
        above = (destination or b"").rpartition(b"/")[0]
        if destination is None or encapsulation is not None or exists(self._base + b"/" + above):
            destination = encode_fs("/".join(self._destination(identifier, encapsulation)))
        with object_errors(self._name, identifier):
            check_source(source)
            new = self.new_path()
        copy = SourceCopy(source, new, links or self._links, **copying)
        return StagedCopy(identifier, destination, new, copy, check)

    def _complete(self, staged: StagedCopy) -> None:
        assert staged.copy is not None
        staged.longest = staged.copy.longest
        self._refuse_too_long(staged.identifier, staged.destination + staged.longest)

    def adopt(self, identifier: str | bytes, directory: bytes, encapsulation: str | None = None) -> None:
        """Publish a directory on the same file system as an encapsulating directory, without copying it.

        :raises ObjectError: it cannot be stored; ``kind`` is the reason
        :raises IdentifierError: the identifier has no path in this tree
        """
        ppath, name = self._destination(identifier, encapsulation)
        with object_errors(self._name, identifier):
            longest = longest_inside(directory)
        staged = StagedCopy(identifier, encode_fs(f"{ppath}/{name}"), directory, longest=longest)
        self._identify([staged])
        self._waiting.append(staged)

    def _destination(self, identifier: str | bytes, encapsulation: str | None) -> tuple[str, str]:
        """Return the ppath of an object to store: that of the existing object, in whatever spelling, or a new one.

        :return: also the name of its encapsulating directory
        :raises ObjectError: of kind ``exists``, unless objects are replaced; or of kind ``duplicate-id``
        """
        ppath, name = self._new_destination(identifier, encapsulation)
        with object_errors(self._name, identifier):
            existing = self._store._existing_path(identifier, self._spellings)
            if existing is None:
                return ppath, name
            if not self._replaces:
                raise self._exists(identifier, existing)
            self._walk.refuse_links(identifier, existing)
            return existing, name

    def _new_destination(self, identifier: str | bytes, encapsulation: str | None) -> tuple[str, str]:
        """Return the ppath of a new object, and the name of its encapsulating directory."""
        ppath, _, name = self._store.layout.object_path(identifier).rpartition("/")
        if encapsulation is not None:
            name = encapsulation
            if not _encapsulates(encode_fs(name)):
                reason = f"{quoted(name)} cannot be the name of an encapsulating directory"
                way_out = "use a name of at least three characters that does not begin with pairtree"
                raise ObjectError(self._name, identifier, "bad-name", f"{reason}; {way_out}")
        too_much = too_long(self._base, encode_fs(f"{ppath}/{name}"))
        if too_much:
            raise ObjectError(self._name, identifier, "bad-name", f"{too_much}; use a shorter identifier")
        return ppath, name

    def _paths(self, objects: Sequence[tuple[str | bytes, ObjectSource]]) -> list[str | None]:
        paths = self._store.layout.object_paths([identifier for identifier, _source in objects])
        others = self._spellings.others
        with store_errors(self._base):
            # An object that may exist in another spelling is looked for one by one.
            return [None if path and any(others(path.rpartition("/")[0])) else path for path in paths]

    def _move_checked(self, staged: StagedCopy) -> None:
        identifier = staged.identifier
        encoded, _, name = staged.destination.rpartition(b"/")
        ppath = decode_fs(encoded)
        directory = os.path.join(self._base, encoded)
        link = self._walk.link(ppath)
        if link is not None:
            reason = f"{quoted_path(link)} is a symbolic link that is not followed; replace the link with its target"
            raise ObjectError(self._name, identifier, "collision", reason)
        self._refuse_other_case(identifier, encoded)
        try:
            make_parents(self._base, encoded)
            entries = self._walk.finish(identifier, ppath)
            if not entries.members:
                self._refuse_too_long(identifier, staged.destination + staged.longest)
                rename_new(staged.path, os.path.join(directory, name))
            elif self._replaces:
                self._walk.refuse_links(identifier, ppath)
                name = entries.members[0].name if entries.is_one_directory else OBJECT
                self._refuse_too_long(identifier, b"%b/%b" % (encoded, name) + staged.longest)
                if not entries.is_one_directory:
                    encapsulate(directory, entries.members)
                self._replace(staged.path, directory, name)
            else:
                raise self._exists(identifier, ppath)
        except BaseException as error:
            prune_empty_parents(self._base, encoded, strict=False)
            if isinstance(error, NotADirectoryError):
                reason = "its ppath is blocked by a file; repair the store first"
                raise ObjectError(self._name, identifier, "collision", reason) from None
            raise
        staged.destination = b"%b/%b" % (encoded, name)

    def _exists(self, identifier: str | bytes, ppath: str) -> ObjectError:
        how = f"use another identifier, or {option('replace', True)}"
        reason = f"object exists at {quoted_path(f'{ROOT}/{ppath}')}; {how}"
        return ObjectError(self._name, identifier, "exists", reason)

    def _refuse_too_long(self, identifier: str | bytes, path: bytes) -> None:
        reason = too_long(self._base, path)
        if reason is not None:
            raise ObjectError(self._name, identifier, "bad-name", f"{reason}; use a shorter identifier or file names")

    def _replace(self, new: bytes, directory: bytes, name: bytes) -> None:
        """Replace the old object, which is moved to the staging directory."""
        old = os.path.join(directory, name)
        aside = os.path.join(directory, REPLACED)
        try:
            # It keeps its name, which shows the next run whether the new object is in place.
            left = replace_directory(new, old, os.path.join(aside, name))
        except BaseException:
            if exists(aside):
                take_back(directory)
            raise
        if left != new:
            os.rename(aside, self.staging / b"replaced")

    def _record(self, staged: StagedCopy) -> StoreObject:
        ppath, _, name = decode_fs(staged.destination).rpartition("/")
        if staged.text is None or not staged.text.isascii():
            identifier, problems = self._walk.identified(ppath)
            return StoreObject(identifier, f"{ROOT}/{ppath}", True, name, tuple(problems))
        return StoreObject(staged.text, f"{ROOT}/{ppath}", True, name, ())


def _encapsulates(name: bytes) -> bool:
    """Return whether a directory of this name can be an encapsulating directory."""
    return len(decode_fs(name)) > 2 and not name.startswith(RESERVED) and b"/" not in name and b"\0" not in name
