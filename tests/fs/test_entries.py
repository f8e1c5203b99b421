"""Directory entries and their kinds."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pressmark.fs.entries import kind_of_entry, scan
from support.trees import write


@pytest.fixture
def folder(tmp_path: Path) -> bytes:
    return os.fsencode(tmp_path)


def test_scanning(folder: bytes, tmp_path: Path) -> None:
    """Entries are sorted by the bytes of their names, with their kinds and link targets."""
    write(tmp_path, {"file": b"", "dir/": None, b"\xff": b"", "A": b""})
    for name, target in (("l-dir", "dir"), ("l-file", "file"), ("l-none", "none"), ("l-self", "l-self")):
        (tmp_path / name).symlink_to(target)
    os.mkfifo(tmp_path / "pipe")
    assert scan(folder) == [
        *((b"A", "file", False), (b"dir", "directory", False), (b"file", "file", False), (b"l-dir", "directory", True)),
        *((b"l-file", "file", True), (b"l-none", "dangling", True), (b"l-self", "dangling", True)),
        *((b"pipe", "special", False), (b"\xff", "file", False)),
    ]
    assert {entry.kind for entry in scan(folder, follow=False) if entry.is_link} == {"link"}


class _Unknown:
    """An entry without a type in the directory, on a disk that then fails."""

    name = b"name"
    path = b"/nowhere/name"

    def __init__(self, is_link: bool) -> None:
        self._is_link = is_link

    def is_symlink(self) -> bool:
        return self._is_link

    def is_dir(self) -> bool:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    is_file = is_dir


def test_inaccessible_entries_are_not_special_files() -> None:
    """An entry whose status cannot be read does not count as a special file, which might be moved away."""
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        kind_of_entry(_Unknown(False))  # type: ignore[arg-type]
    assert kind_of_entry(_Unknown(True), follow=True) == "dangling"  # type: ignore[arg-type]
