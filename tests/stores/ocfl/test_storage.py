"""Walk, check and objects work on any storage, shown with one in memory."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TypeVar

import pytest

from pressmark import _kernels
from pressmark.errors import ObjectError
from pressmark.fixity import Outcome
from pressmark.fs.trees import DirectoryEntry, Tree
from pressmark.stores.ocfl.check import Check
from pressmark.stores.ocfl.storage import LocalStorage, Storage

from .samples import create, kinds, source

Key = TypeVar("Key")


class MemoryStorage:
    """The files of a directory as they were when it was loaded."""

    def __init__(self, folder: Path) -> None:
        self.files = {os.fsencode(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    def below(self, place: bytes) -> MemoryStorage:
        inside = MemoryStorage(Path(os.devnull))
        head = place + b"/"
        inside.files = {name.removeprefix(head): data for name, data in self.files.items() if name.startswith(head)}
        return inside

    def path(self, place: bytes) -> bytes:
        return b"/memory/" + place

    def scan(self, directory: bytes) -> list[DirectoryEntry]:
        head = directory + b"/" if directory else b""
        found = {}
        for name in self.files:
            if name.startswith(head):
                first, slash, _rest = name.removeprefix(head).partition(b"/")
                found[first] = DirectoryEntry(first, "directory" if slash else "file", False)
        if not found:
            raise FileNotFoundError(2, "No such file or directory", directory)
        return sorted(found.values())

    def first_directories(self) -> list[bytes]:
        return [entry.name for entry in self.scan(b"") if entry.kind == "directory"]

    def trees(self, place: bytes, names: Sequence[bytes], _reads: str, *, marker: bytes = b"", **_options: Any) -> Any:
        """Return objects, and directories that contain anything else."""
        trees: list[Tree] = []
        contents: list[bytes] = []
        for name in names:
            below = sorted(key for key in self.files if key.startswith(os.path.join(place, name, b"")))
            tops = [os.path.join(place, name)]
            if marker:
                tops = sorted({os.path.dirname(key) for key in below if os.path.basename(key).startswith(marker)})
            if not all(any(key.startswith(top + b"/") for top in tops) for key in below):
                tops = []
                trees.append(Tree(name, "odd", 0, 0, 0, 0, 0, {}, {}, [], [], []))
            for top in tops:
                files: dict[str, int] = {}
                directories: dict[str, int] = {}
                for key in below:
                    if key.startswith(top + b"/"):
                        path = os.fsdecode(key[len(top) + 1 :])
                        files[path] = len(contents)
                        contents.append(self.files[key])
                        directories.update(dict.fromkeys(map(os.fspath, list(PurePosixPath(path).parents)[:-1]), 0))
                path_inside = os.path.relpath(top, place or b".")
                trees.append(Tree(path_inside, "whole", 0, 0, 0, 0, 0, files, directories, [], [], []))
        return _kernels.active.TreeBatch.of(trees, contents)

    def exists(self, place: bytes) -> bool:
        return any(name == place or name.startswith(place + b"/") for name in self.files)

    def status(self, place: bytes) -> os.stat_result:
        data = self.read(place)
        number = int.from_bytes(hashlib.sha256(data).digest()[:4], "big")
        return os.stat_result((stat.S_IFREG | 0o644, number, 1, 1, 0, 0, len(data), 0, 0, 0))

    def why_unreadable(self, file: bytes) -> OSError | None:
        return None if file in self.files else FileNotFoundError(2, "No such file or directory", file)

    def open(self, file: bytes) -> tuple[BinaryIO, os.stat_result]:
        return io.BytesIO(self.read(file)), self.status(file)

    def read(self, file: bytes, limit: int = -1) -> bytes:
        if file not in self.files:
            raise FileNotFoundError(2, "No such file or directory", file)
        return self.files[file] if limit < 0 else self.files[file][:limit]

    def hash_tasks(
        self, tasks: Iterable[tuple[Key, bytes]], algorithms: tuple[str, ...], threads: int
    ) -> Iterator[tuple[Key, Outcome]]:
        for key, file in tasks:
            data = self.read(file)
            digests = {name: hashlib.new(name, data).hexdigest() for name in algorithms}
            yield key, Outcome(file, digests, len(data), None, None)

    def publish(self, new: bytes, place: bytes) -> None:
        raise OSError(30, "Read-only file system", place)

    def add(self, new: bytes, place: bytes) -> None:
        raise OSError(30, "Read-only file system", place)

    def replace(self, new: bytes, place: bytes) -> None:
        raise OSError(30, "Read-only file system", place)

    def flush(self, directory: bytes) -> None:
        raise OSError(30, "Read-only file system", directory)

    def withdraw(self, place: bytes, to: bytes) -> None:
        raise OSError(30, "Read-only file system", place)


def test_a_root_in_memory(tmp_path: Path) -> None:
    """A root in memory is read only through its storage: the directory is deleted."""
    root = create(tmp_path / "root")
    identifiers = ["info:a/1", "info:a/2", "info:b/3"]
    for identifier in identifiers:
        root.put(identifier, source(tmp_path / "in"))
    root.put(identifiers[0], source(tmp_path / "other", {"a.txt": b"other"}), replace=True)
    on_disk = [record.id for record in root.objects()]
    memory = MemoryStorage(tmp_path / "root")
    root.storage = memory
    shutil.rmtree(tmp_path / "root")

    assert [record.id for record in root.objects(threads=1)] == on_disk
    assert [record.id for record in root.objects(threads=3)] == on_disk
    report = root.check(digests=True, threads=1)
    assert (kinds(report), report.counts) == ([], {"objects": 3, "files": 7, "bytes": 23})
    with root.get(identifiers[0]).open("a.txt") as file:
        assert file.read() == b"other"
    with pytest.raises(ObjectError) as caught:
        root.get("info:c/4")
    assert caught.value.kind == "missing"

    place = root.place(identifiers[1])
    memory.files[place + b"/v1/content/a.txt"] = b"oNe"
    del memory.files[root.place(identifiers[2]) + b"/inventory.json.sha512"]
    memory.files[place + b"/v1/content/extra"] = b""
    found = Check(root, None, None, None).report(True, 1, ())
    assert kinds(found) == ["content-extra", "content-mismatch", "sidecar-missing"]


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links and named pipes")
def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    """A symbolic link is not followed, and a named pipe is not opened."""
    (tmp_path / "file").write_bytes(b"data")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    storage: Storage = LocalStorage(os.fsencode(tmp_path))
    assert storage.read(b"file", 2) == b"da"
    for name in (b"link", b"pipe", b"."):
        with pytest.raises(OSError, match=r"symbolic link|named pipe|[Dd]irectory"):
            storage.read(name)
    assert stat.S_ISLNK(storage.status(b"link").st_mode)
