"""Sizes of files in one call: those of os.stat for regular files, -1 for any other path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pressmark._kernels.pure.files import Engine as PureEngine
from pressmark.fixity import hash_files
from pressmark.fixity.hasher import OpenOptions
from pressmark.fs.beneath import HAS_DESCRIPTORS
from support.implementations import Implementation, native_is_missing, use

pytestmark = [
    pytest.mark.skipif(not HAS_DESCRIPTORS, reason="needs POSIX files"),
    pytest.mark.skipif(native_is_missing(), reason="needs a native build"),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c.x").write_bytes(b"12345")
    (tmp_path / "a" / "empty").touch()
    (tmp_path / "a" / "...").write_bytes(b"123")
    (tmp_path / "x").write_bytes(b"1")
    (tmp_path / "link").symlink_to("x")
    (tmp_path / "folder").symlink_to("a")
    (tmp_path / "nowhere").symlink_to("gone")
    os.mkfifo(tmp_path / "fifo")
    return tmp_path


def sizes(paths: list[bytes], *, follow: bool, beneath: int | None = None) -> list[int]:
    from pressmark._kernels.native._digests import Engine

    options = OpenOptions(follow=follow, beneath=beneath)
    return Engine((), (), (), (), options.flags, False, beneath).file_sizes(paths)


PATHS = {b"a/b/c.x": 5, b"a/empty": 0, b"a/...": 3, b"x": 1}
OTHERS = [b"", b"a", b"fifo", b"nowhere", b"gone", b"a/gone", b"x/y", b"x\0", b"\0", b"a/b/" + b"n" * 300, b"n/" * 3000]


def test_anywhere(root: Path) -> None:
    """Links are followed if the options say so."""
    paths = [*PATHS, *OTHERS, b"link", b"folder/empty"]
    at = [path and os.path.join(os.fsencode(root), path) for path in paths]
    wanted = [*PATHS.values(), *[-1] * len(OTHERS)]
    assert sizes(at, follow=True) == [*wanted, 1, 0]
    assert sizes(at, follow=False) == [*wanted, -1, 0]
    assert sizes([], follow=True) == []
    assert PureEngine((), (), (), (), 0, False).file_sizes(at) == [-1] * len(at)


def test_beneath(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Beneath a directory, no link is followed, and only plain paths have a size."""
    outside = tmp_path_factory.mktemp("outside") / "file"
    outside.write_bytes(b"outside")
    (root / "out").symlink_to(outside.parent)
    unplain = [b"./x", b"a//empty", b"a/../x", b"../" + os.fsencode(root.name) + b"/x", b"a/./empty", b"x/", b"/x"]
    linked = [b"link", b"folder/empty", b"folder/b/c.x", b"out/file", os.fsencode(outside)]
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    before = os.listdir("/dev/fd")
    try:
        paths = [*PATHS, *OTHERS, *unplain, *linked, *PATHS]
        wanted = [*PATHS.values(), *[-1] * (len(paths) - 2 * len(PATHS)), *PATHS.values()]
        assert sizes(paths, follow=False, beneath=descriptor) == wanted
        assert os.listdir("/dev/fd") == before
    finally:
        os.close(descriptor)


def test_one_call_for_many_files(implementation: Implementation, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outcomes do not depend on who examined a file: kinds, messages and statuses are those of os.stat."""
    examined: list[object] = []
    examine = hash_files.__globals__["examine"]
    monkeypatch.setitem(
        hash_files.__globals__, "examine", lambda path, *others: examined.append(path) or examine(path, *others)
    )
    paths = [str(root / name) for name in ("x", "a/empty", "fifo", "nowhere", "gone", "a", "link")]
    with use(implementation):
        outcomes = list(hash_files(paths, ["md5"], threads=2))
    assert [outcome.kind for outcome in outcomes] == [None, None, "fifo", "dangling-link", "missing", "directory", None]
    others = [paths[index] for index in (2, 3, 4, 5)]
    assert examined == (paths if implementation.name == "pure" else others)
