"""The walk of a Vitro store: every object, and every name outside of objects; the names of files; and the journal of a
file that is replaced by one with another name.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from pressmark.errors import IdentifierError, ObjectError, PathError, quoted_path
from pressmark.fs.atomic import Replacement
from pressmark.fs.beneath import read_regular
from pressmark.fs.durable import flush_directory
from pressmark.fs.moves import rename_new
from pressmark.fs.names import decode_fs, encode_fs, is_junk, is_partial
from pressmark.fs.staging import LOCK
from pressmark.fs.trees import DirectoryEntry
from pressmark.layouts import Vitro
from pressmark.reports import Problem
from pressmark.stores.directories.store_directory import StoreDirectory
from pressmark.stores.objects import StoreObject
from pressmark.stores.problems import problem
from pressmark.stores.recheck import Item, unreadable_file
from pressmark.stores.vitro.namespaces import NAMESPACES
from pressmark.stores.walked_store import StoreWalk

__all__ = ["ROOT", "WORK_DIRECTORY", "Renaming", "Walk"]

ROOT = "file_storage_root"
WORK_DIRECTORY = b"file_storage_pressmark"
# In the work directory, while an object's file is replaced by one with another name.
JOURNAL = b"renaming"
SHOWN_NAMES = 5
# Problems of objects that Vitro does not find or create.
_IMPROPER = {"bad-file-name", "files-several", "hidden", "not-canonical", "undecodable", "unknown-prefix"}


class Renaming(NamedTuple):
    """A file that gets new content and a new name: the content is replaced atomically, and then the file is renamed.

    :ivar directory: directory of the file, relative to file_storage_root
    :ivar inode: inode of the new content
    """

    directory: str
    old: str
    new: str
    inode: int


class Walk(StoreWalk):
    """A walk of a store. Symbolic links are reported and not followed.

    :param directory: the directory that contains file_storage_root
    :param layout: layout that decodes the paths; also an attribute
    :param ignore: globs of names to ignore
    :ivar tree: the directory file_storage_root
    :ivar tree_directory: what is in it
    """

    work_name = WORK_DIRECTORY

    def __init__(self, directory: StoreDirectory, layout: Vitro, ignore: Sequence[str] = ()) -> None:
        self.directory = directory
        self.tree_directory = directory.below(encode_fs(ROOT))
        super().__init__(directory.path(b""), self.tree_directory.path(b""), ignore)
        self.is_read_only = directory.is_remote
        self.layout = layout

    def items(self, threads: int | None = None) -> Iterator[Item]:
        yield from self._beside()
        yield from self._items_from("")

    def again(self, item: Item) -> list[Item]:
        found = self._items_from(decode_fs(encode_fs(item.path)).removeprefix(ROOT).lstrip("/"))
        if isinstance(item, StoreObject):
            # The walk finds everything else there and below.
            return [one for one in islice(found, 1) if encode_fs(one.path) == encode_fs(item.path)]
        return list(found)

    def _items_from(self, directory: str) -> Iterator[Item]:
        """Yield everything in and below a directory; in an object's directory, the object first."""
        with self.tree_directory.ahead() as source:
            yield from self._items_of(source, directory)

    def _items_of(self, source: StoreDirectory, directory: str) -> Iterator[Item]:
        renaming = self.renaming()
        # Directories still to be read, the next one last.
        directories = [directory]
        while directories:
            directory = directories.pop()
            path = encode_fs(f"{ROOT}/{directory}" if directory else ROOT)
            try:
                entries = source.scan(encode_fs(directory))
            except FileNotFoundError:
                continue  # removed since its name was read
            except OSError as error:
                yield problem("unreadable", path, error.strerror or str(error))
                continue
            kept = [entry for entry in entries if not self.is_ignored(decode_fs(entry.name))]
            junk = [entry.name for entry in kept if entry.is_junk]
            if junk:
                kept = [entry for entry in kept if not entry.is_junk]
            if not directory:
                kept = [entry for entry in kept if not self._is_work_directory(self.tree, entry)]
            files = [entry.name for entry in kept if entry.kind == "file"]
            if files and not directory:
                for name in files:
                    yield problem("file-in-root", path + b"/" + name)
            elif files:
                record = self.object(directory, files, renaming)
                if self.readable:
                    record = record._replace(
                        problems=(*record.problems, *self._unreadable_in(source, directory, files))
                    )
                yield record  # first: see again
            for name in junk:
                yield problem("junk", path + b"/" + name)
            for entry in kept:
                if entry.kind == "link":
                    yield problem("link", path + b"/" + entry.name, section="")
                elif entry.kind == "special":
                    yield problem("special-file", path + b"/" + entry.name, section="")
            if directory and not entries:
                yield problem("empty", path, "an empty directory", section="")
            below = [decode_fs(entry.name) for entry in kept if entry.kind == "directory"]
            directories += [f"{directory}/{name}" if directory else name for name in reversed(below)]

    def object(self, directory: str, files: Sequence[bytes], renaming: Renaming | None) -> StoreObject:
        """Return the object in a directory.

        :param files: the names of its files
        :param renaming: the recorded renaming
        """
        path = encode_fs(f"{ROOT}/{directory}")
        identifier, problems = self._identified(directory, path)
        if len(files) > 1:
            problems.append(problem("files-several", path, f"{len(files)} files: {_listed(files)}"))
        elif is_partial(files[0]):
            problems.append(problem("partial", path, section=""))
        for name in files:
            problems += self._named(name, path)
        if renaming is not None and renaming.directory == directory:
            problems.append(problem("unfinished", path))
        if identifier is not None and {found.kind for found in problems} & {"hidden", "not-canonical"}:
            canonical = self._canonical(identifier)
            if canonical and canonical != directory and self.files(canonical):
                message = f"{quoted_path(f'{ROOT}/{canonical}')} has the same identifier"
                message += "; compare both, and move one out of the store"
                problems.append(problem("duplicate-id", path, message, section="", found=f"{ROOT}/{canonical}"))
        proper = not any(found.kind in _IMPROPER for found in problems)
        return StoreObject(identifier, decode_fs(path), proper, None, tuple(problems))

    def unreadable(self, record: StoreObject) -> list[Problem]:
        directory = record.path.removeprefix(f"{ROOT}/")
        try:
            return self._unreadable_in(self.tree_directory, directory, self.files(directory))
        except OSError as error:
            return [problem("unreadable", encode_fs(record.path), error.strerror or str(error))]

    def _unreadable_in(self, source: StoreDirectory, directory: str, files: Sequence[bytes]) -> list[Problem]:
        root = encode_fs(f"{ROOT}/")
        paths = [encode_fs(f"{directory}/") + name for name in files]
        return [found for path in paths for found in unreadable_file(source.why_unreadable(path), root + path)]

    def _identified(self, directory: str, path: bytes) -> tuple[str | None, list[Problem]]:
        """Return the identifier of a directory, and the problems of both."""
        try:
            return self.layout.unmap_path(directory), []
        except PathError as error:
            why = error.reason
        prefix = directory.replace("/", "")[:2]
        if prefix[1:] == "~" and prefix[0] not in self.layout.namespaces:
            return None, [problem("unknown-prefix", path, f"no namespace has the prefix {prefix[0]!r}")]
        try:
            identifier = Vitro().unmap_path(directory)
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
        return [problem("bad-file-name", where, f"Vitro expects the name {quoted_path(expected)}", expected=expected)]

    def _beside(self) -> Iterator[Problem]:
        """Yield everything beside file_storage_root that is not part of Vitro, and leftovers of interrupted runs."""
        staging = self.work_directory.removeprefix(os.path.join(self.base, b""))
        for left, kind in self.directory.leftovers(staging):
            yield problem(kind, os.path.join(staging, left))
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            # A symbolic link there is not followed.
            for entry in [] if self.directory.is_link(staging) else self.directory.scan(staging):
                if entry.kind != "directory" and entry.name not in (LOCK, JOURNAL, JOURNAL + b".new"):
                    yield problem("beside", os.path.join(staging, entry.name))
        for entry in self.directory.scan(b""):
            known = entry.name in (NAMESPACES, encode_fs(ROOT)) or self._is_work_directory(self.base, entry)
            if not known and not self.is_ignored(decode_fs(entry.name)):
                yield problem("beside", entry.name)

    def _is_work_directory(self, directory: bytes, entry: DirectoryEntry) -> bool:
        """Return whether an entry of a directory is the store's work directory."""
        return entry.kind == "directory" and os.path.join(directory, entry.name) == self.work_directory

    # --- one object ---------------------------------------------------------------------------------------------------

    def record_at(self, directory: str) -> StoreObject | None:
        files = self.files(directory)
        return self.object(directory, files, self.renaming()) if files else None

    def only_file(self, identifier: str | bytes, directory: str) -> bytes:
        """Return the name of an object's one file.

        :raises ObjectError: the object has no file, or several
        """
        files = self.files(directory)
        if not files:
            raise self.missing(identifier, directory)
        if len(files) > 1:
            reason = f"the object has {len(files)} files at {quoted_path(f'{ROOT}/{directory}')} ({_listed(files)})"
            reason += "; move the others out of it"
            raise ObjectError(self.root, identifier, "ambiguous", reason)
        return files[0]

    def missing(self, identifier: str | bytes, directory: str) -> ObjectError:
        """Return the error that a directory has no object."""
        reason = f"object not found at {quoted_path(f'{ROOT}/{directory}')}"
        link = self.link(directory)
        if link is not None:
            reason += f": {quoted_path(link)} is a symbolic link, which is not followed"
            reason += "; replace the link with its target"
        return ObjectError(self.root, identifier, "missing", reason)

    def files(self, directory: str) -> list[bytes]:
        """Return the names of the files in an object's directory; none if the directory does not exist.

        Files of operating systems do not count beside others. Alone, they may have been stored under the identifier.
        """
        entries = [one for one in self._entries(directory) if one.kind == "file"]
        files = [one.name for one in entries if not self.is_ignored(decode_fs(one.name))]
        return [name for name in files if not is_junk(name)] or files

    def link(self, directory: str) -> str | None:
        """Return the path of the first symbolic link above a directory; links are not followed."""
        link = self.tree_directory.first_link(encode_fs(directory))
        return None if link is None else f"{ROOT}/{decode_fs(link)}"

    def _entries(self, directory: str) -> list[DirectoryEntry]:
        try:
            return self.tree_directory.scan_beneath(encode_fs(directory))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            if error.errno == errno.ELOOP or self.tree_directory.is_absent(encode_fs(directory)):
                return []
            raise

    # --- interrupted renamings ----------------------------------------------------------------------------------------

    def renaming(self, folder: bytes | None = None) -> Renaming | None:
        """Return the recorded renaming, if any.

        :param folder: the work directory, if it is known
        :raises OSError: the record cannot be read
        """
        if self.is_read_only:
            return None
        try:
            data = read_regular(os.path.join(folder or self.work_directory, JOURNAL))
            return Renaming(*json.loads(data))
        except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
            return None

    def name_of(self, directory: str, stored: bytes, renaming: Renaming | None) -> bytes:
        """Return the name that a file has, or is about to get."""
        if renaming is not None and renaming.directory == directory and encode_fs(renaming.old) == stored:
            with contextlib.suppress(FileNotFoundError):
                if os.stat(os.path.join(self.tree, encode_fs(directory), stored)).st_ino == renaming.inode:
                    return encode_fs(renaming.new)
        return stored

    def finish(self, folder: bytes, durable: bool) -> None:
        """Complete the recorded renaming; the caller holds the lock.

        :param folder: the work directory
        :param durable: flush the new name
        """
        names = os.listdir(folder)  # almost always without a record
        renaming = self.renaming(folder) if JOURNAL in names else None
        if renaming is not None:
            path = os.path.join(self.tree, encode_fs(renaming.directory))
            old = encode_fs(renaming.old)
            if self.name_of(renaming.directory, old, renaming) != old:
                rename_new(os.path.join(path, old), os.path.join(path, encode_fs(renaming.new)))
                if durable:
                    flush_directory(path)
        for name in {JOURNAL, JOURNAL + b".new"}.intersection(names):
            os.unlink(os.path.join(folder, name))

    def note(self, renaming: Renaming, durable: bool) -> None:
        """Record a renaming, so that the next run completes it after a kill.

        :param durable: flush the record
        """
        path = os.path.join(self.work_directory, JOURNAL)
        with Replacement(path, part=path + b".new", durable=durable) as file:
            file.write(json.dumps(renaming).encode())


def _listed(names: Sequence[bytes]) -> str:
    shown_names = ", ".join(repr(decode_fs(name)) for name in names[:SHOWN_NAMES])
    return shown_names + (", …" if len(names) > SHOWN_NAMES else "")
