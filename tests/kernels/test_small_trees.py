"""Directories of small files: copied in one call, and left alone if anything is unusual."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from pressmark.fixity.hasher import OpenOptions
from support.implementations import PURE, Implementation

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")

FLAGS = OpenOptions(follow=False).flags
FILES = {
    b"a.xml": b"<mets/>",
    b"b.zip": bytes(range(256)) * 64,
    b"c'<&~ ": b"x" * 127,
    b"sub/deeper/c": b"c",
    b"sub/d": b"d" * 1000,
    b"d/" * 15 + b"file": b"deep",
    b"sub.txt": b"before sub/ by its bytes",
}


def make(top: Path, files: dict[bytes, bytes]) -> None:
    """Create files below a directory, each with different times."""
    for number, (name, data) in enumerate(files.items()):
        path = os.path.join(os.fsencode(top), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, 0o640)
        os.utime(path, ns=(1_600_000_000_000_000_000, 1_500_000_000_000_000_000 + number))


def written(implementation: Implementation, source: Path, into: Path) -> Any:
    """Copy a directory."""
    folders = tuple(map(os.fsencode, (into, into / "v1", into / "v1" / "content")))
    return implementation.kernels.copy_small_tree(os.fsencode(source), folders, FLAGS)


@pytest.mark.parametrize("count", [1, 2, len(FILES)])
def test_all_files_are_written(implementation: Implementation, tmp_path: Path, count: int) -> None:
    """Names, bytes, permission bits, times and digests are those of the source; the files are sorted by name."""
    files = dict(list(FILES.items())[-count:])
    source, into = tmp_path / "source", tmp_path / "into"
    make(source, files)
    found = written(implementation, source, into)
    if implementation == PURE:
        assert found is None
        assert not into.exists()
        return
    assert found == [(name, hashlib.sha512(files[name]).hexdigest(), len(files[name])) for name in sorted(files)]
    for name in files:
        original = os.stat(os.path.join(os.fsencode(source), name))
        copy = os.path.join(os.fsencode(into), b"v1/content", name)
        with open(copy, "rb") as file:
            assert file.read() == files[name]
        assert stat.S_IMODE(os.stat(copy).st_mode) == 0o640
        assert os.stat(copy).st_mtime_ns == original.st_mtime_ns
    assert [path.name for path in into.iterdir()] == ["v1"]
    assert [path.name for path in (into / "v1").iterdir()] == ["content"]


def test_trees_left_to_the_shared_code(implementation: Implementation, tmp_path: Path) -> None:
    """Links, pipes, empty or missing files, too many or too large ones, and names that JSON escapes are not copied."""
    outside = tmp_path / "outside"
    outside.write_bytes(b"secret")

    def tried(name: str, prepare: Any) -> None:
        source, into = tmp_path / name / "source", tmp_path / f"into {name}"
        make(source, {b"file": b"data"})
        prepare(source)
        assert written(implementation, source, into) is None, name
        assert not into.exists(), name

    tried("link", lambda top: (top / "link").symlink_to(outside))
    tried("folder link", lambda top: (top / "link").symlink_to(tmp_path, target_is_directory=True))
    tried("fifo", lambda top: os.mkfifo(top / "pipe"))
    tried("empty", lambda top: (top / "empty").touch())
    tried("empty folder", lambda top: (top / "folder").mkdir())
    tried("large", lambda top: (top / "large").write_bytes(bytes(16385)))
    tried("many", lambda top: make(top, {b"%d" % number: b"%d" % number for number in range(15)}))
    tried("much", lambda top: make(top, {b"%d" % number: bytes(16000) for number in range(9)}))
    tried("long names", lambda top: make(top, {b"%d" % n + b"n" * 250 + b"/" + b"m" * 250: b"x" for n in range(9)}))
    tried("deep", lambda top: make(top, {b"d/" * 16 + b"file": b"x"}))
    tried("twice", lambda top: make(top, {b"again": b"data"}))
    for number, name in enumerate((b'"', b"\\", b"\n", b"\x7f", b"caf\xc3\xa9", b"\xff", b"sub/\t")):
        tried(f"name {number}", lambda top, name=name: make(top, {name: b"other"}))
    assert written(implementation, tmp_path / "missing" / "source", tmp_path / "into") is None
    source = tmp_path / "alone" / "source"
    make(source, FILES)
    for name in ("way", "plain", "pipe"):
        (tmp_path / name).mkdir()
    (tmp_path / "way" / "source").symlink_to(source, target_is_directory=True)
    (tmp_path / "plain" / "source").write_bytes(b"data")
    os.mkfifo(tmp_path / "pipe" / "source")
    for name in ("way", "plain", "pipe"):
        assert written(implementation, tmp_path / name / "source", tmp_path / "into") is None
    assert not (tmp_path / "into").exists()
    assert outside.read_bytes() == b"secret"
    if implementation != PURE:
        assert written(implementation, source, tmp_path / "into") is not None


def test_nothing_is_overwritten(implementation: Implementation, tmp_path: Path) -> None:
    """An existing folder is not changed, and invalid paths are rejected."""
    source, into = tmp_path / "alone" / "source", tmp_path / "into"
    make(source, FILES)
    make(into / "v1", {b"a.xml": b"kept"})
    assert written(implementation, source, into) is None
    assert {path.name for path in into.rglob("*")} == {"v1", "a.xml"}
    assert (into / "v1" / "a.xml").read_bytes() == b"kept"
    copy, above = implementation.kernels.copy_small_tree, os.fsencode(source)
    new = os.fsencode(tmp_path / "new")
    folders = (new, new + b"/1", new + b"/2")
    for place in (above + b"\0", above[:-6] + b"other"):
        assert copy(place, folders, FLAGS) is None
    assert copy(above, (new, new + b"\0", new), FLAGS) is None
    if implementation != PURE:
        for count in (0, 9):
            with pytest.raises(ValueError, match="folders"):
                copy(above, (new,) * count, FLAGS)
