"""A storage root in memory, and its files by paths like those of :mod:`pathlib`."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, NoReturn, TypeVar

import pytest

from pressmark import _kernels
from pressmark.fixity import Outcome
from pressmark.fixity.algorithms import ALGORITHMS
from pressmark.fixity.outcomes import Content, failed_outcome
from pressmark.fs.names import too_long
from pressmark.fs.trees import DirectoryEntry, Tree
from pressmark.stores.object_sources import Copier, SourceCopy
from pressmark.stores.ocfl.declarations import outdated_names

Key = TypeVar("Key")


class Files:
    """Files and directories by their paths: content, or :data:`None`; each directory is in it."""

    def __init__(self) -> None:
        self.entries: dict[bytes, bytes | None] = {b"": None}
        # Of each file as it was written.
        self.numbers: dict[bytes, int] = {}
        self._next = count(1)

    def get(self, path: bytes) -> bytes | None:
        """Return the content of a file, or :data:`None` for a directory."""
        if path not in self.entries:
            above = path
            while above:
                above = os.path.dirname(above)
                if self.entries.get(above) is not None:
                    raise NotADirectoryError(20, os.strerror(20), path)
            raise FileNotFoundError(2, os.strerror(2), path)
        return self.entries[path]

    def read(self, path: bytes) -> bytes:
        data = self.get(path)
        if data is None:
            raise IsADirectoryError(21, os.strerror(21), path)
        return data

    def below(self, path: bytes) -> list[bytes]:
        """Return a path and all below it."""
        head = path + b"/" if path else b""
        return [one for one in self.entries if one == path or one.startswith(head)]

    def names(self, path: bytes) -> list[bytes]:
        if self.get(path) is not None:
            raise NotADirectoryError(20, os.strerror(20), path)
        head = path + b"/" if path else b""
        found = {one[len(head) :] for one in self.entries if one != path and one.startswith(head)}
        return sorted(one for one in found if b"/" not in one)

    def put(self, path: bytes, data: bytes | None) -> None:
        if self.get(os.path.dirname(path)) is not None:
            raise NotADirectoryError(20, os.strerror(20), path)
        self.entries[path] = data
        self.numbers[path] = next(self._next)

    def make(self, path: bytes) -> None:
        """Create a directory and those above it."""
        if path and path not in self.entries:
            self.make(os.path.dirname(path))
            self.put(path, None)

    def move(self, old: bytes, new: bytes) -> None:
        self.get(old)
        for path in self.below(old):
            self.entries[new + path[len(old) :]] = self.entries.pop(path)
            self.numbers[new + path[len(old) :]] = self.numbers.pop(path)

    def remove(self, path: bytes) -> None:
        for one in self.below(path):
            del self.entries[one], self.numbers[one]

    def prune(self, path: bytes) -> None:
        """Remove a directory and those above it while they are empty."""
        while path and not self.names(path):
            self.remove(path)
            path = os.path.dirname(path)


class MemoryStorage:
    """A :class:`~pressmark.stores.ocfl.storage.Storage` in memory."""

    siblings = 64
    walkers = 64
    has_links = True
    first = 100
    work_directory = None

    def __init__(self, files: Files | None = None, inside: bytes = b"") -> None:
        self.files = files or Files()
        self._inside = inside

    @classmethod
    def of(cls, folder: Path) -> MemoryStorage:
        """Return a copy of a directory."""
        files = Files()
        for path in sorted(folder.rglob("*")):
            files.put(os.fsencode(path.relative_to(folder)), path.read_bytes() if path.is_file() else None)
        return cls(files)

    def key(self, path: bytes) -> bytes:
        return (self._inside + path).rstrip(b"/")

    # --- read ---------------------------------------------------------------------------------------------------------

    def below(self, path: bytes) -> MemoryStorage:
        return MemoryStorage(self.files, os.path.join(self._inside, path, b""))

    def path(self, relative: bytes) -> bytes:
        return b"/memory/" + self.key(relative)

    def scan(self, directory: bytes) -> list[DirectoryEntry]:
        top = self.key(directory)
        entries = self.files.entries
        return [
            DirectoryEntry(name, "directory" if entries[os.path.join(top, name)] is None else "file", False)
            for name in self.files.names(top)
        ]

    def all_entries(self) -> None:
        return None

    def first_directories(self) -> list[bytes]:
        return [entry.name for entry in self.scan(b"") if entry.kind == "directory"]

    def trees(
        self, directory: bytes, names: Sequence[bytes], _reads: str, *, marker: bytes = b"", **_options: Any
    ) -> Any:
        """Return objects, and directories that contain anything else."""
        trees: list[Tree] = []
        contents: list[bytes] = []
        entries, above = self.files.entries, self.key(directory)
        for name in names:
            top = os.path.join(above, name)
            below = [one for one in sorted(self.files.below(top)) if one != top]
            tops = [top]
            if marker:
                tops = sorted({os.path.dirname(one) for one in below if os.path.basename(one).startswith(marker)})
            is_plain = all(
                any((one + b"/").startswith(each + b"/") or each.startswith(one + b"/") for each in tops)
                for one in (top, *below)
            )
            if not is_plain or any(entries[one] is None and not self.files.names(one) for one in (top, *below)):
                trees.append(Tree(name, "odd", 0, 0, 0, 0, 0, {}, {}, [], [], []))
                continue
            for each in tops:
                files: dict[str, int] = {}
                directories: dict[str, int] = {}
                for one in below:
                    if one.startswith(each + b"/"):
                        path, data = os.fsdecode(one[len(each) + 1 :]), entries[one]
                        if data is None:
                            directories[path] = 0
                        else:
                            files[path] = len(contents)
                            contents.append(data)
                inside = os.path.relpath(each, above or b".")
                trees.append(Tree(inside, "whole", 0, 0, 0, 0, 0, files, directories, [], [], []))
        return _kernels.active.TreeBatch.of(trees, contents)

    def exists(self, path: bytes) -> bool:
        return self.key(path) in self.files.entries

    def status(self, path: bytes) -> os.stat_result:
        data = self.files.get(self.key(path))
        kind, number = stat.S_IFDIR if data is None else stat.S_IFREG, self.files.numbers.get(self.key(path), 0)
        return os.stat_result((kind | 0o755, number, 1, 1, 0, 0, len(data or b""), 0, 0, 0))

    def why_unreadable(self, file: bytes) -> OSError | None:
        return None if self.exists(file) else FileNotFoundError(2, os.strerror(2), file)

    def open(self, file: bytes) -> tuple[BinaryIO, os.stat_result]:
        return io.BytesIO(self.read(file)), self.status(file)

    def read(self, file: bytes, limit: int = -1) -> bytes:
        data = self.files.read(self.key(file))
        return data if limit < 0 else data[:limit]

    def sources(self, files: Iterable[tuple[Key, bytes]]) -> Iterator[tuple[Key, Content]]:
        return ((key, Content(self.read(file), file)) for key, file in files)

    def hash_tasks(
        self, tasks: Iterable[tuple[Key, bytes]], algorithms: tuple[str, ...], threads: int
    ) -> Iterator[tuple[Key, Outcome]]:
        for key, file in tasks:
            try:
                yield key, outcome_of(file, self.read(file), algorithms)
            except FileNotFoundError:
                yield key, failed_outcome(file, "missing")

    def too_long(self, path: bytes) -> str | None:
        return too_long(b"/memory", path)

    def is_absent(self, path: bytes) -> bool:
        return not self.exists(path)

    def first_link(self, _path: bytes) -> bytes | None:
        return None

    def is_decided(self, _path: bytes, _version: bytes) -> bool:
        return False

    def removals(self) -> tuple[()]:
        return ()

    def leftovers(self) -> tuple[()]:
        return ()

    def is_leftover(self, _path: bytes, _version: bytes = b"") -> bool:
        return False

    # --- change -------------------------------------------------------------------------------------------------------

    @contextmanager
    def changes(self, _durable: bool) -> Iterator[MemoryChanges]:
        changes = MemoryChanges(self)
        try:
            yield changes
        finally:
            self.files.remove(changes.path)

    @contextmanager
    def scratch(self) -> Iterator[bytes]:
        with TemporaryDirectory() as folder:
            yield os.fsencode(folder)


def outcome_of(path: bytes, data: bytes, algorithms: Iterable[str]) -> Outcome:
    digests = {}
    for name in algorithms:
        hasher = ALGORITHMS[name].make(1)
        hasher.update(data)
        digests[name] = hasher.hexdigest()
    return Outcome(path, digests, len(data), None, None)


def read_content(content: bytes | Content) -> bytes:
    if isinstance(content, Content):
        return b"".join(map(bytes, content.blocks(1 << 20)))
    return Path(os.fsdecode(content)).read_bytes()


class MemoryChanges:
    """:class:`~pressmark.stores.ocfl.storage.Changes` of a root in memory. What is prepared has names beside the root's
    files, as long as the changes last.
    """

    _numbers = count()
    together = 1
    alone = False

    def __init__(self, storage: MemoryStorage) -> None:
        self.path = b"*changes"
        self._storage = storage
        self._files = storage.files

    def lock(self, *, wait: bool = True) -> nullcontext[None]:
        return nullcontext()

    def claimed(self, _path: bytes) -> nullcontext[None]:
        return nullcontext()

    def begin(self, _path: bytes = b"") -> bytes:
        return self.path + b"/%d" % next(self._numbers)

    def look_up(self, paths: Sequence[bytes]) -> None: ...

    def is_free(self, path: bytes) -> bool:
        return not self._storage.exists(path)

    def make(self, directory: bytes) -> None:
        self._files.make(directory)

    def copy(self, copies: Sequence[SourceCopy], _copier: Copier, _together: int | None = None) -> Iterator[SourceCopy]:
        for copy in copies:
            try:
                for key, content, target in copy.tasks():
                    copy.mode = "copy"
                    copy.add(key, self._copied(content, target, copy.algorithms))
            except Exception as error:
                copy.error = error
            yield copy

    def _copied(self, content: bytes | Content, target: bytes, algorithms: Iterable[str]) -> Outcome:
        try:
            data = read_content(content)
        except OSError as error:
            return failed_outcome(target, "missing" if isinstance(error, FileNotFoundError) else "unreadable")
        self._files.put(target, data)
        return outcome_of(target, data, algorithms)

    def added(self, file: bytes, digests: Mapping[str, str]) -> None: ...

    def write(self, new: bytes, files: Mapping[bytes, bytes | None]) -> None:
        self._files.make(self.path)
        for name, data in files.items():
            self._files.put(os.path.join(new, name).rstrip(b"/"), data)

    def drop(self, file: bytes) -> None:
        self._files.remove(file)

    def prune(self, directory: bytes) -> None:
        if not self._files.names(directory):
            self._files.remove(directory)

    def is_prepared(self, new: bytes) -> bool:
        return new in self._files.entries

    def discard(self, new: bytes) -> None:
        self._files.remove(new)

    def clear(self, _path: bytes) -> bool:
        return False

    def remove_leftover(self, _path: bytes, _objects: Sequence[bytes]) -> bool:
        return False

    def recover(self, _path: bytes) -> bool:
        return False

    def publish(self, new: bytes, path: bytes, known: set[bytes], *, replace_empty: bool = False) -> None:
        is_there = path in self._files.entries
        if is_there and (not replace_empty or self._files.get(path) is not None or self._files.names(path)):
            raise FileExistsError(17, os.strerror(17), path)
        above = os.path.dirname(path)
        while above:
            if self._files.entries.get(above) is not None:
                raise NotADirectoryError(20, os.strerror(20), path)
            if above + b"/inventory.json" in self._files.entries:
                raise FileExistsError(17, os.strerror(17), path)
            above = os.path.dirname(above)
        self._files.make(os.path.dirname(path))
        self._files.move(new, path)

    def publish_version(
        self, new: bytes, path: bytes, version: bytes, sidecar: bytes, _data: bytes, declared: bytes = b""
    ) -> None:
        self.adopt_version(os.path.join(new, version), path)
        self.publish_inventory(new, path, sidecar, declared)

    def adopt(self, new: bytes, digests: Mapping[str, Mapping[str, str]]) -> None: ...

    def adopt_version(self, directory: bytes, path: bytes) -> None:
        target = os.path.join(path, os.path.basename(directory))
        if target in self._files.entries:
            raise FileExistsError(17, os.strerror(17), target)
        self._files.move(directory, target)

    def publish_inventory(self, new: bytes, path: bytes, sidecar: bytes, declared: bytes = b"") -> None:
        for name in (b"inventory.json", sidecar, *filter(None, [declared])):
            self._files.move(os.path.join(new, name), os.path.join(path, name))
        for name in outdated_names(sidecar, declared) if declared else ():
            self.remove(os.path.join(path, name))

    def remove(self, path: bytes) -> None:
        if path in self._files.entries:
            self._files.remove(path)

    def flush(self, *paths: bytes) -> None: ...

    def put(self, path: bytes, data: bytes) -> None:
        self._files.put(path, data)

    def remove_empty(self, path: bytes, stop: bytes, removed: list[bytes], *, strict: bool) -> None:
        while path not in (b"", stop) and not (path in self._files.entries and self._files.names(path)):
            if path in self._files.entries:
                self._files.remove(path)
                removed.append(path)
            path = os.path.dirname(path)

    def withdraw(self, path: bytes) -> list[bytes]:
        self._files.remove(path)
        self._files.prune(os.path.dirname(path))
        return []


def about_the_disk() -> NoReturn:
    """Leave out a test that needs what only a disk has, such as links."""
    pytest.skip("about the disk")


class MemoryPath:
    """A path in a storage in memory, with the methods of :class:`pathlib.Path` that tests use."""

    def __init__(self, files: Files, path: PurePosixPath) -> None:
        self._files = files
        self._path = path
        self.name = path.name

    @property
    def key(self) -> bytes:
        return b"" if self.name == "" else os.fsencode(self._path)

    @property
    def parents(self) -> list[MemoryPath]:
        return [MemoryPath(self._files, path) for path in self._path.parents]

    @property
    def parent(self) -> MemoryPath:
        return self.parents[0] if self.name else about_the_disk()

    def __truediv__(self, name: str) -> MemoryPath:
        return MemoryPath(self._files, self._path / name)

    def __repr__(self) -> str:
        return f"MemoryPath({str(self._path)!r})"

    def relative_to(self, other: MemoryPath) -> PurePosixPath:
        return self._path.relative_to(other._path)

    def exists(self) -> bool:
        return self.key in self._files.entries

    def is_file(self) -> bool:
        return self._files.entries.get(self.key) is not None

    def is_dir(self) -> bool:
        return self.exists() and not self.is_file()

    def iterdir(self) -> Iterator[MemoryPath]:
        return (self / os.fsdecode(name) for name in self._files.names(self.key))

    def rglob(self, _pattern: str) -> Iterator[MemoryPath]:
        for path in self.iterdir() if self.is_dir() else ():
            yield path
            yield from path.rglob("*")

    def glob(self, pattern: str) -> Iterator[MemoryPath]:
        return (path for path in self.rglob("*") if path._path.match(str(self._path / pattern)))

    def read_bytes(self) -> bytes:
        return self._files.read(self.key)

    def write_bytes(self, data: bytes) -> None:
        self._files.put(self.key, data)

    def read_text(self) -> str:
        return self.read_bytes().decode()

    def write_text(self, text: str) -> None:
        self.write_bytes(text.encode())

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        if parents or exist_ok:
            self._files.make(self.key)
        else:
            self._files.put(self.key, None)

    def rename(self, new: MemoryPath | Path) -> None:
        self._files.move(self.key, new.key if isinstance(new, MemoryPath) else about_the_disk())

    def unlink(self) -> None:
        self._files.remove(self.key)

    rmdir = unlink

    def __fspath__(self) -> str:
        about_the_disk()

    def symlink_to(self, _target: object, _is_directory: bool = False) -> None:
        about_the_disk()

    def stat(self) -> os.stat_result:
        about_the_disk()

    hardlink_to = symlink_to
