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
import errno
import json
import os
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, ClassVar, NamedTuple

from pressmark.errors import IdentifierError, ObjectError, PathError, StoreError
from pressmark.fs.beneath import read_regular
from pressmark.fs.durable import exists, flush_directory, why_unreadable
from pressmark.fs.moves import rename_new
from pressmark.fs.names import decode_fs, encode_fs, first_link, glob_matcher, is_absent, is_junk
from pressmark.fs.staging import LOCK, kind_of_leftover
from pressmark.fs.trees import DirectoryEntry, scan, scan_beneath
from pressmark.layouts import Vitro
from pressmark.reports import Problem, Report
from pressmark.stores.exceptions import object_errors, store_errors
from pressmark.stores.objects import OnEvent, OnProblem, Path, StoreObject, encode_path
from pressmark.stores.problems import problem
from pressmark.stores.readability import unreadable_file
from pressmark.stores.recheck import Item, RunningReport, abandoned, settled, settled_objects
from pressmark.stores.store import Store
from pressmark.stores.stored_object import StoredObject, is_same_version, status_of
from pressmark.stores.vitro.namespaces import NAMESPACES, read_namespaces

__all__ = ["JOURNAL", "ROOT", "WORK_DIRECTORY", "Renaming", "VitroObject", "VitroReader"]

ROOT = "file_storage_root"
WORK_DIRECTORY = b"file_storage_pressmark"
# In the work directory, while an object's file is replaced by one with another name.
JOURNAL = b"renaming"
PROGRESS_EVERY = 1_000  # objects
SHOWN_NAMES = 5
# Problems that a running change also causes for a moment.
_PASSING = {"bad-file-name", "duplicate-id", "empty", "files-several", "unfinished", "unreadable"}
# Problems of objects that Vitro does not find or create.
_IMPROPER = {"bad-file-name", "files-several", "hidden", "not-canonical", "undecodable", "unknown-prefix"}


class VitroObject(StoredObject):
    """An object of a Vitro store: one file.

    :ivar name: the file's decoded name
    :ivar file: absolute path of the file
    """

    def __init__(self, store: str, identifier: str, directory: bytes, stored: bytes, name: str) -> None:
        super().__init__(store, identifier, directory, (stored,), "refuse")
        self.name = name
        self.file = os.path.join(directory, stored)

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield the file's name and path.

        :raises ObjectError: of kind ``changed``
        """
        yield self.name, self.file
        self.confirm()

    def was_seen(self) -> bool:
        """Return whether the status of the file could be read when the object was looked up."""
        return self._seen[self.file] is not None

    def is_current(self) -> bool:
        """Return whether the file is still the one that was looked up."""
        return is_same_version(status_of(self.file), self._seen[self.file])

    def _open(self, name: str) -> BinaryIO:
        file = self._opened(self.file, self.file) if name == self.name else None
        if file is None:
            raise ObjectError(
                self._store, self.id, "missing", f"file {name!r} not found in the object; its file is {self.name!r}"
            )
        return file


class Renaming(NamedTuple):
    """A file that gets new content and a new name: the content is replaced atomically, and then the file is renamed.

    :ivar place: directory of the file, relative to file_storage_root
    :ivar inode: inode of the new content
    """

    place: str
    old: str
    new: str
    inode: int


class VitroReader(Store):
    """An existing Vitro store, and the objects in it.

    Symbolic links in the store are reported and not followed. Vitro itself does not lock the store: stop it during
    changes.

    :param path: the directory that contains file_storage_root
    :param encoding: character encoding of the namespaces file
    :param ignore: globs of names to ignore in the whole store, such as ``.DS_Store``
    :param durable: flush everything before a change is made
    :ivar namespaces: the namespace of each prefix
    :ivar namespaces_problems: the problems of the namespaces file; after an error, the store is read-only
    :raises StoreError: not a Vitro store, or not readable
    """

    kind: ClassVar[str] = "vitro"
    unfinished_names = frozenset({NAMESPACES, WORK_DIRECTORY})
    layout: Vitro

    def __init__(
        self, path: Path, *, encoding: str = "utf-8", ignore: Sequence[str] = (), durable: bool = True
    ) -> None:
        self._base = _base_of(path)
        self._tree = os.path.join(self._base, encode_fs(ROOT))
        self.root = os.fsdecode(self._base)
        self._encoding = encoding
        self._ignore = tuple(ignore)
        self.durable = durable
        self._read()

    def _read(self) -> None:
        file = read_namespaces(self._base, self._encoding)
        self.namespaces, self.namespaces_problems = file
        self._doubt = file.doubt
        self.layout = Vitro(self.namespaces)

    def refuse_changes(self) -> None:
        """Raise an error if the store is known to be read-only.

        :raises StoreError: the namespaces file is ambiguous, so that the paths of objects are uncertain
        """
        if self._doubt is not None:
            raise StoreError(os.path.join(self._base, NAMESPACES), f"the store is read-only: {self._doubt}")

    def _work_directory(self) -> bytes:
        """Return the work directory: beside the tree, or within it on another file system."""
        same = os.stat(self._base).st_dev == os.stat(self._tree).st_dev
        return os.path.join(self._base if same else self._tree, WORK_DIRECTORY)

    # --- all objects --------------------------------------------------------------------------------------------------

    def objects(
        self, *, threads: int | None = None, on_problem: OnProblem | None = None, ignore: Sequence[str] = ()
    ) -> Iterator[StoreObject]:
        """Yield every object lazily, in the order of the bytes of the directories' names.

        Files and directories outside of objects are passed to ``on_problem``.

        :param threads: no effect; directories are read one after another
        :param ignore: globs of names to ignore, in addition to those of the store
        """
        return self._objects(ignore, on_problem)

    def _objects(
        self, ignore: Sequence[str], on_problem: OnProblem | None, *, readable: bool = False
    ) -> Iterator[StoreObject]:
        with store_errors(self._base):
            second_look = partial(self._second_look, ignore, readable)
            yield from settled_objects(self._walk(ignore, readable=readable), second_look, on_problem)

    def _second_look(self, ignore: Sequence[str], readable: bool, item: Item) -> list[Item]:
        """Return the item of a walk, or the items in its place if another run was changing it."""
        problems = item.problems if isinstance(item, StoreObject) else (item,)
        if not any(one.kind in _PASSING for one in problems):
            return [item]
        ignored = glob_matcher((*self._ignore, *ignore))
        place = decode_fs(encode_fs(item.path)).removeprefix(ROOT).lstrip("/")

        def again() -> list[Item]:
            found = self._walk_from(place, ignored, readable)
            if isinstance(item, StoreObject):
                # The walk finds everything else there and below.
                return [one for one in islice(found, 1) if encode_fs(one.path) == encode_fs(item.path)]
            return list(found)

        return settled(item, again, self._work_directory())

    def _walk(self, ignore: Sequence[str] = (), *, readable: bool = False) -> Iterator[Item]:
        """Yield objects and problems in order.

        :param readable: also report files that cannot be read
        """
        ignored = glob_matcher((*self._ignore, *ignore))
        yield from self._beside(ignored)
        yield from self._walk_from("", ignored, readable)

    def _walk_from(self, place: str, ignored: Any, readable: bool) -> Iterator[Item]:
        """Yield everything at and below a place; in an object's directory, the object first."""
        renaming = self._renaming()
        # Places still to be read, the next one last.
        places = [place]
        while places:
            place = places.pop()
            path = encode_fs(f"{ROOT}/{place}" if place else ROOT)
            try:
                entries = scan(os.path.join(self._tree, encode_fs(place)), follow=False)
            except FileNotFoundError:
                continue  # removed since its name was read
            except OSError as error:
                yield problem("unreadable", path, error.strerror or str(error))
                continue
            kept = [entry for entry in entries if not ignored(decode_fs(entry.name))]
            for entry in kept:
                if entry.is_junk:
                    yield problem("junk", path + b"/" + entry.name)
            kept = [entry for entry in kept if not entry.is_junk]
            if not place:
                kept = [entry for entry in kept if not self._is_work_directory(self._tree, entry)]
            files = [entry.name for entry in kept if entry.kind == "file"]
            if files and not place:
                for name in files:
                    yield problem("file-in-root", path + b"/" + name)
            elif files:
                record = self._object(place, path, files, renaming)
                if readable:
                    record = record._replace(problems=(*record.problems, *self._unreadable_in(place, files)))
                yield record
            for entry in kept:
                if entry.kind == "link":
                    yield problem("link", path + b"/" + entry.name, section="")
                elif entry.kind == "special":
                    yield problem("special-file", path + b"/" + entry.name, section="")
            if place and not entries:
                yield problem("empty", path, "an empty directory", section="")
            below = [decode_fs(entry.name) for entry in kept if entry.kind == "directory"]
            places += [f"{place}/{name}" if place else name for name in reversed(below)]

    def _object(self, place: str, path: bytes, files: Sequence[bytes], renaming: Renaming | None) -> StoreObject:
        identifier, problems = self._identified(place, path)
        if len(files) > 1:
            problems.append(problem("files-several", path, f"{len(files)} files: {_listed(files)}"))
        for name in files:
            problems += self._named(name, path)
        if renaming is not None and renaming.place == place:
            problems.append(problem("unfinished", path))
        if identifier is not None and {found.kind for found in problems} & {"hidden", "not-canonical"}:
            canonical = self._canonical(identifier)
            if canonical and canonical != place and self._files(canonical):
                message = f"{ROOT}/{canonical} has the same identifier; compare both, and move one out of the store"
                problems.append(problem("duplicate-id", path, message, section="", found=f"{ROOT}/{canonical}"))
        proper = not any(found.kind in _IMPROPER for found in problems)
        return StoreObject(identifier, decode_fs(path), proper, None, tuple(problems))

    def unreadable(self, record: StoreObject) -> list[Problem]:
        """Return a problem for each unreadable file of an object of :meth:`objects`; none if the object no longer
        exists."""
        place = record.path.removeprefix(f"{ROOT}/")
        try:
            return self._unreadable_in(place, self._files(place))
        except OSError as error:
            return [problem("unreadable", encode_fs(record.path), error.strerror or str(error))]

    def _unreadable_in(self, place: str, files: Sequence[bytes]) -> list[Problem]:
        paths = [encode_fs(f"{ROOT}/{place}/") + name for name in files]
        return [
            found for path in paths for found in unreadable_file(why_unreadable(os.path.join(self._base, path)), path)
        ]

    def _identified(self, place: str, path: bytes) -> tuple[str | None, list[Problem]]:
        """Return the identifier of a place, and the problems of both."""
        try:
            return self.layout.unmap_path(place), []
        except PathError as error:
            why = error.reason
        prefix = place.replace("/", "")[:2]
        if prefix[1:] == "~" and prefix[0] not in self.namespaces:
            return None, [problem("unknown-prefix", path, f"no namespace has the prefix {prefix[0]!r}")]
        try:
            identifier = Vitro().unmap_path(place)
        except PathError:
            return None, [problem("undecodable", path, why, section="")]
        # It was stored before its namespace was declared.
        canonical = f"{ROOT}/{self.layout.map_id(identifier)}"
        message = f"its namespace was declared later; Vitro expects the object at {canonical}"
        return identifier, [problem("hidden", path, message, expected=canonical)]

    def _canonical(self, identifier: str) -> str | None:
        try:
            return self.layout.map_id(identifier)
        except IdentifierError:
            return None

    def _named(self, stored: bytes, path: bytes) -> list[Problem]:
        """Return the problems of a file's name."""
        where = path + b"/" + stored
        try:
            expected = self.layout.encode_filename(self.layout.decode_filename(stored))
        except (PathError, IdentifierError) as error:
            return [problem("bad-file-name", where, error.reason)]
        if encode_fs(expected) == stored:
            return []
        return [problem("bad-file-name", where, f"Vitro expects the name {expected!r}", expected=expected)]

    def _beside(self, ignored: Any) -> Iterator[Problem]:
        """Yield everything beside file_storage_root that is not part of Vitro, and leftovers of interrupted runs."""
        staging = self._work_directory()
        for left in abandoned(staging):
            yield problem(kind_of_leftover(left), os.path.relpath(left, self._base))
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            # A link in its place is not followed.
            for entry in [] if os.path.islink(staging) else scan(staging, follow=False):
                if entry.kind != "directory" and entry.name not in (LOCK, JOURNAL, JOURNAL + b".new"):
                    yield problem("beside", os.path.relpath(os.path.join(staging, entry.name), self._base))
        for entry in scan(self._base, follow=False):
            known = entry.name in (NAMESPACES, encode_fs(ROOT)) or self._is_work_directory(self._base, entry)
            if not known and not ignored(decode_fs(entry.name)):
                yield problem("beside", entry.name)

    def _is_work_directory(self, directory: bytes, entry: DirectoryEntry) -> bool:
        """Return whether an entry of a directory is the store's work directory."""
        return entry.kind == "directory" and os.path.join(directory, entry.name) == self._work_directory()

    def check(
        self,
        *,
        digests: bool = False,
        threads: int | None = None,
        on_event: OnEvent | None = None,
        on_problem: OnProblem | None = None,
        ignore: Sequence[str] = (),
    ) -> Report:
        """Walk the whole store and return a report of all problems.

        Files are only checked for being readable. A Vitro store contains no digests, so ``digests`` has no effect.
        """
        run = RunningReport(on_event, on_problem, PROGRESS_EVERY)
        run.add(self.namespaces_problems)
        for record in self._objects(ignore, run.add_item, readable=True):
            run.add_item(record)
        return run.finish()

    # --- one object ---------------------------------------------------------------------------------------------------

    def get(self, identifier: str | bytes) -> VitroObject:
        """Return an object, even if it is hidden.

        :raises ObjectError: of kind ``missing``: the store has no such object; of kind ``duplicate-id``: it has two; of
            kind ``ambiguous``: the object has several files
        :raises IdentifierError: the identifier has no path in this store
        """
        return self._stored(identifier, self._existing_place(identifier) or self.layout.map_id(identifier))

    def _existing_place(self, identifier: str | bytes | StoreObject) -> str | None:
        """Return the directory of the object with an identifier, hidden or not; :data:`None` without such an object.

        :param identifier: or a record, whose directory is returned
        :raises ObjectError: of kind ``duplicate-id``: two objects have the identifier
        :raises IdentifierError: the identifier has no path in this store
        """
        if isinstance(identifier, StoreObject):
            return identifier.path.removeprefix(f"{ROOT}/")
        place = self.layout.map_id(identifier)
        with object_errors(self.root, identifier):
            found = [one for one in (place, *self._hidden_places([identifier])) if one is not None and self._files(one)]
        if len(found) > 1:
            raise self._duplicate(identifier, [f"{ROOT}/{one}" for one in found])
        return found[0] if found else None

    def _hidden_places(self, identifiers: Sequence[str | bytes]) -> list[str | None]:
        """Return the directories that objects had before their namespaces were declared; :data:`None` for others."""
        if not self.namespaces:
            return [None] * len(identifiers)
        places = Vitro().map_ids(identifiers, on_error="none")
        now = self.layout.map_ids(identifiers, on_error="none")
        return [before if before != place else None for before, place in zip(places, now, strict=True)]

    def find(self, identifier: str | bytes) -> StoreObject:
        place = self._existing_place(identifier)
        record = None if place is None else self._record_at(place)
        if record is None:
            raise self._missing(identifier, self.layout.map_id(identifier))
        return record

    def at(self, path: str) -> StoreObject | None:
        place = path.removeprefix(f"{ROOT}/").rstrip("/")
        if place == path.rstrip("/") or {"", ".", ".."} & set(place.split("/")):
            return None
        return self._record_at(place)

    def _record_at(self, place: str) -> StoreObject | None:
        """Return the record that the walk yields for a directory."""
        files = self._files(place)
        return self._object(place, encode_fs(f"{ROOT}/{place}"), files, self._renaming()) if files else None

    def locate(self, record: StoreObject) -> VitroObject:
        """Return the object of a record of :meth:`objects`, even if it is not at the path of its identifier."""
        return self._stored(record.id or "", record.path.removeprefix(ROOT).lstrip("/"))

    def _stored(self, identifier: str | bytes, place: str) -> VitroObject:
        shown_id = decode_fs(identifier) if isinstance(identifier, bytes) else identifier
        directory = os.path.abspath(os.path.join(self._tree, encode_fs(place)))
        with object_errors(self.root, identifier):
            while True:
                stored = self._only_file(identifier, place)
                found = VitroObject(self.root, shown_id, directory, stored, decode_fs(stored))
                renaming = self._renaming()
                # A file without a status is either gone or not accessible.
                if found.is_current() and (found.was_seen() or stored in self._files(place)):
                    break  # neither replaced nor renamed meanwhile
            with contextlib.suppress(PathError):
                found.name = self.layout.decode_filename(self._name_of(place, stored, renaming))
        return found

    def _only_file(self, identifier: str | bytes, place: str) -> bytes:
        """Return the name of an object's one file.

        :raises ObjectError: the object has no file, or several
        """
        files = self._files(place)
        if not files:
            raise self._missing(identifier, place)
        if len(files) > 1:
            reason = (
                f"the object has {len(files)} files at {ROOT}/{place} ({_listed(files)}); move the others out of it"
            )
            raise ObjectError(self.root, identifier, "ambiguous", reason)
        return files[0]

    def _missing(self, identifier: str | bytes, place: str) -> ObjectError:
        reason = f"object not found at {ROOT}/{place}"
        link = self._link(place)
        if link is not None:
            reason += f": {link} is a symbolic link, which is not followed; replace the link with its target"
        return ObjectError(self.root, identifier, "missing", reason)

    def _files(self, place: str, ignore: Sequence[str] = ()) -> list[bytes]:
        """Return the names of the files in an object's directory; none if the directory does not exist.

        Files of operating systems do not count beside others. Alone, they may have been stored under the identifier.
        """
        ignored = glob_matcher((*self._ignore, *ignore))
        files = [one.name for one in self._entries(place) if one.kind == "file" and not ignored(decode_fs(one.name))]
        return [name for name in files if not is_junk(name)] or files

    def _link(self, place: str) -> str | None:
        """Return the path of the first symbolic link above a place; links are not followed."""
        link = first_link(self._tree, encode_fs(place))
        return None if link is None else f"{ROOT}/{decode_fs(link)}"

    def _entries(self, place: str) -> list[DirectoryEntry]:
        try:
            return scan_beneath(self._tree, encode_fs(place))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            if error.errno == errno.ELOOP or is_absent(self._tree, encode_fs(place)):
                return []
            raise

    # --- interrupted renamings ----------------------------------------------------------------------------------------

    def _renaming(self) -> Renaming | None:
        """Return the recorded renaming, if any.

        :raises OSError: the record cannot be read
        """
        try:
            data = read_regular(os.path.join(self._work_directory(), JOURNAL))
            return Renaming(*json.loads(data))
        except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
            return None

    def _name_of(self, place: str, stored: bytes, renaming: Renaming | None) -> bytes:
        """Return the name that a file has, or is about to get."""
        if renaming is not None and renaming.place == place and encode_fs(renaming.old) == stored:
            with contextlib.suppress(FileNotFoundError):
                if os.stat(os.path.join(self._tree, encode_fs(place), stored)).st_ino == renaming.inode:
                    return encode_fs(renaming.new)
        return stored

    def _settle(self) -> None:
        """Complete the recorded renaming; the caller holds the lock."""
        renaming = self._renaming()
        if renaming is not None:
            directory = os.path.join(self._tree, encode_fs(renaming.place))
            old = encode_fs(renaming.old)
            if self._name_of(renaming.place, old, renaming) != old:
                rename_new(os.path.join(directory, old), os.path.join(directory, encode_fs(renaming.new)))
                if self.durable:
                    flush_directory(directory)
        for name in (JOURNAL, JOURNAL + b".new"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self._work_directory(), name))


def _listed(names: Sequence[bytes]) -> str:
    shown_names = ", ".join(repr(decode_fs(name)) for name in names[:SHOWN_NAMES])
    return shown_names + (", …" if len(names) > SHOWN_NAMES else "")


def _base_of(path: Path) -> bytes:
    """Return the directory that contains file_storage_root, from that or from file_storage_root itself."""
    given = encode_path(path)
    with store_errors(given):
        if not os.path.isdir(given):
            what = "not a directory" if exists(given) else "No such file or directory"
            raise StoreError(given, f"{what}; specify the directory that contains {ROOT}")
        tree = os.path.join(given, encode_fs(ROOT))
        if not exists(tree) and os.path.basename(os.path.abspath(given)) == encode_fs(ROOT):
            given = os.path.dirname(os.path.abspath(given))
            tree = os.path.join(given, encode_fs(ROOT))
        has_names = exists(os.path.join(given, NAMESPACES))
        if not exists(tree):
            if has_names:
                raise StoreError(given, f"{ROOT} is missing; restore it")
            raise StoreError(
                given, f"not a Vitro store, because {ROOT} is missing; specify a directory that contains it"
            )
        if not os.path.isdir(tree):
            raise StoreError(given, f"{ROOT} is not a directory; restore it")
        if not has_names:
            names = decode_fs(NAMESPACES)
            raise StoreError(
                given, f"{names} is missing; restore it, or create an empty file if no namespace was declared"
            )
        if (error := why_unreadable(tree)) is not None:
            raise error
    return given
