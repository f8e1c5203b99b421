"""Vitro file storage: the directory of an object is its identifier in groups of three characters, and its one file is
the object.

::

    <root>/
    ├── file_storage_namespaces.properties   prefixes of namespaces: see :mod:`pressmark.stores.vitro.namespaces`
    ├── file_storage_pressmark/              during a change: see :mod:`pressmark.fs.staging`
    └── file_storage_root/
        └── a~n/342/4/myPhoto.jpg

The directory of an object may also contain directories of other objects. It never contains any other file, not even for
a moment, because Vitro interprets every file there as the file of the object.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pressmark.buckets.address import is_address
from pressmark.errors import IdentifierError, ObjectError, PathError, StoreError, quoted, quoted_path
from pressmark.fixity.outcomes import Content, Outcome
from pressmark.fs.atomic import replace_file
from pressmark.fs.beneath import real_path
from pressmark.fs.durable import exists, flush_directory
from pressmark.fs.moves import make_parents, prune_empty_parents, rename_new
from pressmark.fs.names import decode_fs, encode_fs, is_blocked, too_long
from pressmark.fs.staging import RunDirectory
from pressmark.fs.trees import scan
from pressmark.layouts import Layout, Vitro, as_layout
from pressmark.option_names import option
from pressmark.progress_event import Progress
from pressmark.reports import Problem, Report
from pressmark.stores.directories.store_directory import LocalDirectory, open_directory
from pressmark.stores.exceptions import SourceError, object_errors, store_errors
from pressmark.stores.object_sources import SourceCopy, Task, check_source, is_content
from pressmark.stores.objects import CopyMode, Data, ObjectSource, Path, StoreObject, encode_path
from pressmark.stores.store_change import Removal, above
from pressmark.stores.vitro.namespaces import NAMESPACES, read_namespaces, render, with_declared
from pressmark.stores.vitro.vitro_object import VitroObject
from pressmark.stores.vitro.walk import ROOT, WORK_DIRECTORY, Renaming, Walk
from pressmark.stores.walked_store import CopyingWriter, StagedCopy, WalkedStore

if TYPE_CHECKING:
    from pressmark.stores.directories.bucket_directory import BucketDirectory

__all__ = ["VitroObject", "VitroStore", "VitroWriter"]

_READ_ONLY = (
    "a Vitro store in object storage is read-only: a file and its name cannot be replaced in one step; "
    "use an OCFL storage root"
)


class VitroStore(WalkedStore):
    """An existing Vitro store, and the objects in it; :meth:`create` creates one.

    Symbolic links in the store are reported and not followed. Vitro itself does not lock the store: stop it during
    changes. The objects are listed in the order of the bytes of the directories' names, by one thread. A check reports
    files that cannot be read; a Vitro store contains no digests, so ``digests`` has no effect. An object is found even
    if it is hidden; one with several files is an error of kind ``ambiguous``.

    The source of an object is one file: its path, a directory that contains only this file, or a mapping with its name
    in the object. Names may contain any characters up to U+00FF. An existing file is replaced in one step, even if it
    has a different name.

    :param path: the directory that contains file_storage_root; or an address in object storage, such as
        ``s3://bucket/prefix``, where the store is read-only
    :param encoding: character encoding of the namespaces file
    :param ignore: globs of names to ignore in the whole store, such as ``.DS_Store``
    :param durable: flush everything before a change is made
    :ivar namespaces: the namespace of each prefix
    :ivar namespaces_problems: the problems of the namespaces file; after an error, the store is read-only
    :raises StoreError: not a Vitro store, or not readable
    """

    kind: ClassVar[str] = "vitro"
    namespaces: dict[str, str]
    namespaces_problems: Sequence[Problem]
    unfinished_names = frozenset({NAMESPACES, WORK_DIRECTORY})
    progress_every = 1_000
    layout: Vitro
    walk: Walk

    def __init__(
        self, path: Path, *, encoding: str = "utf-8", ignore: Sequence[str] = (), durable: bool = True
    ) -> None:
        self._directory = open_directory(path, ROOT, "Vitro store", NAMESPACES)
        self._base = self._directory.path(b"")
        self.bucket = self._directory.bucket
        self.root = os.fsdecode(self._base)
        self._encoding = encoding
        self.durable = durable
        self._read()
        self.walk = Walk(self._directory, self.layout, ignore)

    def _read(self) -> None:
        try:
            file = read_namespaces(self._directory, self._encoding)
        except StoreError as error:
            if isinstance(error.__cause__, FileNotFoundError) and not self._directory.is_link(NAMESPACES):
                way_out = "restore it, or create an empty file if no namespace was declared"
                raise StoreError(self._base, f"{decode_fs(NAMESPACES)} is missing; {way_out}") from None
            raise
        self.namespaces, self.namespaces_problems = file
        self._doubt = file.doubt
        self.layout = Vitro(self.namespaces)
        self._undeclared = Vitro()  # the layout before any namespace was declared

    def refuse_changes(self) -> None:
        """Raise an error if the store is known to be read-only.

        :raises StoreError: the store is in object storage; or the namespaces file is ambiguous, so that the paths of
            objects are uncertain
        """
        if self._directory.is_remote:
            raise StoreError(self.root, _READ_ONLY)
        if self._doubt is not None:
            raise StoreError(os.path.join(self._base, NAMESPACES), f"the store is read-only: {self._doubt}")

    @classmethod
    def create(
        cls,
        path: Path,
        layout: Layout | str | None = None,
        *,
        namespaces: Iterable[str] = (),
        encoding: str = "utf-8",
        ignore: Sequence[str] = (),
        durable: bool = True,
    ) -> VitroStore:
        """Create an empty Vitro store in a directory that is empty or does not exist, and open it.

        Missing directories above it are created.

        The other parameters are those of the class.

        :param layout: a :class:`pressmark.Vitro` whose prefixes and namespaces are used, or its name
        :param namespaces: additional namespaces; each gets the first free letter (section "Namespaces")
        :raises StoreError: the directory is not empty or cannot be written, or a namespace is invalid
        :raises LayoutConfigError: unknown layout
        """
        from_layout: Mapping[str, str] = {}
        layout = as_layout(layout)
        if layout is not None:
            if not isinstance(layout, Vitro):
                raise StoreError(encode_path(path), f"a Vitro store uses the layout vitro, not {layout.name}")
            from_layout = dict(layout.namespaces)
        base = encode_path(path, remote=True)
        if is_address(base):
            raise StoreError(base, _READ_ONLY)
        # Namespaces of the layout are checked like declared ones.
        with_declared(base, {}, from_layout.values())
        wanted = with_declared(base, from_layout, namespaces)
        with store_errors(base):
            cls._create_directory(base)
            if exists(os.path.join(base, NAMESPACES)) and read_namespaces(LocalDirectory(base)).namespaces != wanted:
                raise StoreError(
                    base, f"the directory contains the namespaces of another store, whose {ROOT} is missing; restore it"
                )
            with RunDirectory(os.path.join(base, WORK_DIRECTORY)) as staging, staging.lock():
                _write(staging, base, wanted, "utf-8")
                # Last, because this makes the directory a store.
                os.mkdir(os.path.join(base, encode_fs(ROOT)))
            flush_directory(base)
        return cls(path, encoding=encoding, ignore=ignore, durable=durable)

    def declare(self, *namespaces: str) -> None:
        """Declare namespaces that the store does not have; each gets the first free letter.

        Existing objects in a new namespace become hidden: :meth:`check` lists them, :meth:`repair` moves them.

        :raises StoreError: a namespace is invalid, or no letter is available; nothing was written
        """
        if self._directory.is_remote:
            self.refuse_changes()
        with store_errors(self._base), self._run_directory() as staging, staging.lock():
            self._read()  # another run may have declared namespaces
            self.refuse_changes()
            wanted = with_declared(self._base, self.namespaces, namespaces)
            if wanted != self.namespaces:
                _write(staging, self._base, wanted, self._encoding)
            self._read()
            self.walk.layout = self.layout

    # --- all objects --------------------------------------------------------------------------------------------------

    def own_problems(self) -> Sequence[Problem]:
        return self.namespaces_problems

    def repair(self, *, dry_run: bool = False, progress: Progress | None = None, ignore: Sequence[str] = ()) -> Report:
        """Repair unambiguous problems, and report the remaining ones.

        =========== ==========================================================================================
        ``finish``  an interrupted change is completed
        ``move``    an object hidden by a namespace is moved to its current path, if that is free
        ``prune``   empty directories are removed
        ``remove``  temporary directories of killed runs are removed
        ``rename``  a file is renamed as Vitro encodes its name, if the new name is free
        =========== ==========================================================================================

        Identifiers, decoded file names and contents do not change. A second repair changes nothing.
        """
        from pressmark.stores.vitro.repair import repair  # only a repair needs it

        self.refuse_changes()
        with store_errors(self._base):
            return repair(self, self.walk.with_options(ignore), dry_run, progress)

    # --- one object ---------------------------------------------------------------------------------------------------

    def get(self, id: str | bytes) -> VitroObject:
        return self._stored(id, self._existing_path(id) or self.layout.map_id(id))

    def _existing_path(self, identifier: str | bytes | StoreObject) -> str | None:
        """Return the directory of the object with an identifier, hidden or not; :data:`None` without such an object.

        :param identifier: or a record, whose directory is returned
        :raises ObjectError: of kind ``duplicate-id``: two objects have the identifier
        :raises IdentifierError: the identifier has no path in this store
        """
        if isinstance(identifier, StoreObject):
            return identifier.path.removeprefix(f"{ROOT}/")
        directory = self.layout.map_id(identifier)
        with object_errors(self.root, identifier):
            candidates = (directory, *self._hidden_directories([identifier]))
            existing = [one for one in candidates if one is not None and self.walk.files(one)]
        if len(existing) > 1:
            raise self._duplicate(identifier, [f"{ROOT}/{one}" for one in existing])
        return existing[0] if existing else None

    def _hidden_directories(self, identifiers: Sequence[str | bytes]) -> list[str | None]:
        """Return the directories that objects had before their namespaces were declared; :data:`None` for others."""
        if not self.namespaces:
            return [None] * len(identifiers)
        directories = self._undeclared.map_ids(identifiers, on_error="none")
        now = self.layout.map_ids(identifiers, on_error="none")
        return [before if before != directory else None for before, directory in zip(directories, now, strict=True)]

    def at(self, path: str) -> StoreObject | None:
        directory = path.removeprefix(f"{ROOT}/").rstrip("/")
        if directory == path.rstrip("/") or {"", ".", ".."} & set(directory.split("/")):
            return None
        return self.walk.record_at(directory)

    def locate(self, record: StoreObject) -> VitroObject:
        return self._stored(record.id or "", record.path.removeprefix(ROOT).lstrip("/"))

    def _stored(self, identifier: str | bytes, directory: str) -> VitroObject:
        shown_id = decode_fs(identifier) if isinstance(identifier, bytes) else identifier
        if self._directory.is_remote:
            return self._in_bucket(identifier, shown_id, encode_fs(directory))
        path = os.path.abspath(os.path.join(self.walk.tree, encode_fs(directory)))
        with object_errors(self.root, identifier):
            while True:
                stored = self.walk.only_file(identifier, directory)
                vitro_object = VitroObject(self.root, shown_id, path, stored, decode_fs(stored))
                renaming = self.walk.renaming()
                # A file without a status is either gone or not accessible.
                if vitro_object.is_current() and (vitro_object.was_seen() or stored in self.walk.files(directory)):
                    break  # neither replaced nor renamed meanwhile
            with contextlib.suppress(PathError):
                vitro_object.name = self.layout.decode_filename(self.walk.name_of(directory, stored, renaming))
        return vitro_object

    def _in_bucket(self, identifier: str | bytes, shown_id: str, directory: bytes) -> VitroObject:
        """Return an object in object storage."""
        from pressmark.stores.vitro.bucket_vitro_object import BucketVitroObject  # only in object storage

        with object_errors(self.root, identifier):
            stored = self.walk.only_file(identifier, decode_fs(directory))
        name = decode_fs(stored)
        with contextlib.suppress(PathError):
            name = self.layout.decode_filename(stored)
        return BucketVitroObject(
            self.root,
            shown_id,
            cast("BucketDirectory", self._directory),
            encode_fs(ROOT) + b"/" + directory,
            stored,
            name,
        )

    def _missing(self, identifier: str | bytes, directory: str | None = None) -> ObjectError:
        return self.walk.missing(identifier, self.layout.map_id(identifier) if directory is None else directory)

    def _writer(
        self, mode: CopyMode, links: str = "refuse", replace: bool = False, *, durable_names: bool = True
    ) -> VitroWriter:
        self.refuse_changes()
        return VitroWriter(self, mode, links, replace, durable_names=durable_names)

    def withdraw(
        self, removal: Removal, identifier: str | bytes | StoreObject, check: Callable[[], object] | None
    ) -> list[bytes]:
        self.refuse_changes()
        directory = self._existing_path(identifier)
        if isinstance(identifier, StoreObject):
            identifier = identifier.id or identifier.path
        if directory is None:
            raise self._missing(identifier)
        self.walk.only_file(identifier, directory)
        to = removal.new_path()
        with removal.staging.lock():
            self.walk.finish(removal.staging.folder, self.durable)
            if check is not None:
                check()
            stored = os.path.join(encode_fs(directory), self.walk.only_file(identifier, directory))
            os.rename(os.path.join(self.walk.tree, stored), to)
            prune_empty_parents(self.walk.tree, encode_fs(directory), strict=False)
        return above(self.walk.tree, stored)


class _FileCopy(SourceCopy):
    """A source of one file, which is copied to a new file, not into a directory."""

    def tasks(self) -> Iterator[Task]:
        assert isinstance(self.source, Mapping)
        name, content = next(iter(self.source.items()))
        key = encode_fs(name)
        if is_content(content):
            yield key, Content(cast("Data", content), key), self.target
            return
        yield key, real_path(os.fsencode(content)), self.target  # type: ignore[arg-type]

    def add(self, key: Any, outcome: Outcome) -> None:
        if outcome.kind == "directory":
            raise SourceError("source", "not a regular file, which a Vitro object is; specify a file")
        super().add(key, outcome)


class VitroWriter(CopyingWriter):
    """Write objects to a Vitro store.

    :param store: the store
    :param mode: as for :meth:`VitroStore.put`, like ``links`` and ``replace``
    """

    _store: VitroStore
    _walk: Walk

    def begin(
        self,
        identifier: str | bytes,
        source: ObjectSource,
        destination: bytes | None = None,
        *,
        links: str | None = None,
        check: Callable[[Any], object] | None = None,
        **copying: Any,
    ) -> StagedCopy:
        """Return a new object; see :meth:`StagingWriter.begin`.

        :param links: replaces the option of the writer
        :param check: as for :class:`Staged`
        :param copying: options of :class:`~pressmark.stores.object_sources.SourceCopy`
        """
        store = self._store
        store.refuse_changes()
        content: Any = source
        with object_errors(self._name, identifier):
            if destination is not None and isinstance(source, (str, os.PathLike)) and os.path.isfile(source):
                check_source(source)
                above, stored = os.path.split(destination)
            else:
                directory = store._existing_path(identifier) or store.layout.map_id(identifier)
                stored, content = self._new_file(identifier, directory, source, links or self._links)
                above = encode_fs(directory)
            # Everything else is checked when the object is published.
            if exists(os.path.join(self._base, above)):
                self._refuse(identifier, decode_fs(above), stored)
            new = self.new_path()
        copy = _FileCopy({decode_fs(stored): content}, new, links or self._links, **copying)
        return StagedCopy(identifier, above + b"/" + stored, new, copy, check)

    def _new_file(self, identifier: str | bytes, directory: str, source: ObjectSource, links: str) -> tuple[bytes, Any]:
        """Return the stored name of the one file of a source, and its path or content.

        :raises ObjectError: the source is not one file, or its name cannot be stored
        """
        name, content = self._source(identifier, source, links)
        try:
            stored = encode_fs(self._store.layout.object_path(identifier, name).rpartition("/")[2])
        except IdentifierError as error:
            reason = f"file name {quoted(error.id)}: {error.reason}; rename the file"
            raise ObjectError(self._name, identifier, "bad-name", reason) from None
        reason = too_long(self._base, encode_fs(directory) + b"/" + stored) or ""
        if reason:
            raise ObjectError(self._name, identifier, "bad-name", f"{reason}; use a shorter identifier or file name")
        return stored, content

    def _source(self, identifier: str | bytes, source: ObjectSource, links: str) -> tuple[str, Any]:
        """Return name and path of the one file of a source, or its content."""
        check_source(source)
        count = 1
        if isinstance(source, Mapping):
            count = len(source)
            if count == 1:
                return next(
                    (decode_fs(name) if isinstance(name, bytes) else name, content) for name, content in source.items()
                )
        else:
            path = os.fsencode(source)
            if not os.path.isdir(path):
                return decode_fs(os.path.basename(path)), os.fsdecode(path)
            entries = scan(path, follow=False)
            count = len(entries)
            # Links inside the source are followed only on request.
            if count == 1 and (entries[0].kind == "file" or (entries[0].kind == "link" and links == "follow")):
                return decode_fs(entries[0].name), os.fsdecode(os.path.join(path, entries[0].name))
        what = (
            f"the source contains {count} names"
            if count != 1
            else f"{quoted_path(entries[0].name)} in the source is not a regular file"
        )
        raise ObjectError(
            self._name, identifier, "source", f"{what}, but a Vitro object is one file; specify that file"
        )

    def _paths(self, objects: Sequence[tuple[str | bytes, ObjectSource]]) -> list[str | None]:
        self._store.refuse_changes()
        # Sources without a path are not copied here.
        names = [os.path.basename(os.fsencode(s)) if isinstance(s, (str, os.PathLike)) else b"" for _, s in objects]
        identifiers = [identifier for identifier, _source in objects]
        hidden = self._store._hidden_directories(identifiers)
        # A hidden object is looked for one by one.
        return [
            None if before is not None and exists(os.path.join(self._base, encode_fs(before))) else path
            for path, before in zip(self._store.layout.object_paths(identifiers, names), hidden, strict=True)
        ]

    def _begin_turn(self) -> None:
        self._walk.finish(self.staging.folder, self._durable)
        super()._begin_turn()

    def _move_checked(self, staged: StagedCopy) -> None:
        directory, stored = os.path.split(staged.destination)
        self._refuse(staged.identifier, decode_fs(directory), stored)
        self._publish_file(staged.path, decode_fs(directory), stored)

    def _refuse(self, identifier: str | bytes, directory: str, stored: bytes) -> None:
        """Check that a file can be stored, before anything is written.

        :raises ObjectError: the object cannot be stored
        """
        at = self._base
        for name in encode_fs(directory).split(b"/"):
            at = os.path.join(at, name)
            if is_blocked(at):
                shorter = decode_fs(os.path.relpath(at, self._walk.base))
                reason = f"{shorter} is a file of another object, but must be a directory; rename that file"
                raise ObjectError(self._name, identifier, "collision", reason)
        link = self._walk.link(directory)
        if link is not None:
            reason = f"{quoted_path(link)} is a symbolic link, which is not followed; replace the link with its target"
            raise ObjectError(self._name, identifier, "collision", reason)
        self._refuse_other_case(identifier, encode_fs(directory))
        target = os.path.join(at, stored)
        if os.path.isdir(target) or os.path.islink(target):
            where = quoted_path(f"{ROOT}/{directory}/{decode_fs(stored)}")
            reason = f"{where} exists and is a directory of other objects or a link"
            raise ObjectError(self._name, identifier, "collision", f"{reason}; rename the file")
        files = self._walk.files(directory)
        if len(files) > 1:
            self._walk.only_file(identifier, directory)
        if files and not self._replaces:
            how = f"use another identifier, or {option('replace', True)}"
            reason = f"object exists at {quoted_path(f'{ROOT}/{directory}')}; {how}"
            raise ObjectError(self._name, identifier, "exists", reason)

    def _publish_file(self, new: bytes, directory: str, stored: bytes) -> None:
        """Publish a staged file, in place of the existing one. Its name is not flushed."""
        target = os.path.join(self._base, encode_fs(directory))
        files = self._walk.files(directory)
        try:
            if not files:
                make_parents(self._base, encode_fs(directory))
                rename_new(new, os.path.join(target, stored))
            elif files == [stored]:
                os.replace(new, os.path.join(target, stored))
            else:
                # First the content, then the name: the object is one complete file at every moment.
                renaming = Renaming(directory, decode_fs(files[0]), decode_fs(stored), os.stat(new).st_ino)
                self._walk.note(renaming, self._durable)
                os.replace(new, os.path.join(target, files[0]))
                self._walk.finish(self.staging.folder, self._durable)
        except BaseException:
            prune_empty_parents(self._base, encode_fs(directory), strict=False)
            raise

    def _record(self, staged: StagedCopy) -> StoreObject:
        directory, stored = os.path.split(staged.destination)
        if staged.text is None:
            return self._walk.object(decode_fs(directory), [stored], None)
        return StoreObject(staged.text, f"{ROOT}/{decode_fs(directory)}", True, None, ())


def _write(staging: RunDirectory, base: bytes, namespaces: Mapping[str, str], encoding: str) -> None:
    """Write the namespaces file atomically."""
    path = os.path.join(base, NAMESPACES)
    try:
        data = render(namespaces).encode(encoding)
    except UnicodeEncodeError:
        raise StoreError(path, f"a namespace cannot be written in {encoding}") from None
    replace_file(path, data, part=staging / NAMESPACES)
