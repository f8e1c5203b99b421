"""The size and names of whole trees: both implementations, and a naive measure of the same files."""

from __future__ import annotations

import os
import socket
import struct
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from support.implementations import Implementation
from support.turns import in_one_turn

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")

Size = tuple[int, int, int, int]
STAMP = struct.Struct("=5q")
Stamps = dict[bytes, tuple[int, ...]]
FILES = {"a.xml": 1000, "sub/deeper/c": 0, "sub/d": 4096, "sub/e": 4097, ".hidden": 1, "\u00e9/f": 3, "sub.txt": 70_000}


def make(top: Path, files: dict[str, int]) -> Path:
    """Create files of the given sizes below a directory."""
    for number, (name, size) in enumerate(files.items()):
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
        # Some times are beyond 64 bits of nanoseconds since 1970.
        os.utime(path, ns=(0, (number - 2) * 5_000_000_000_123_456_789))
    return top


def measured(implementation: Implementation, tops: Sequence[bytes]) -> tuple[list[Size | None], list[Stamps]]:
    """Return the size of each tree, and the names of its files with their stamps."""
    kernels = implementation.kernels
    sizes, names, stamps = in_one_turn(lambda: kernels.tree_sizes(kernels.ByteColumn.from_texts(list(tops))[0]))
    assert len(names) == len(stamps) == len(sizes) == len(tops)
    found = []
    for index in range(len(names)):
        assert names[index][-1:] in (b"", b"\0")
        found.append(dict(zip(names[index].split(b"\0")[:-1], STAMP.iter_unpack(stamps[index]), strict=True)))
    return sizes, found


def stamp(status: os.stat_result) -> tuple[int, ...]:
    """Return the size and the times of a file."""
    return (status.st_size, *divmod(status.st_mtime_ns, 10**9), *divmod(status.st_ctime_ns, 10**9))


def naive(top: bytes) -> tuple[Size, Stamps]:
    """Measure a tree of regular files, one after another."""
    found = [
        (os.path.relpath(os.path.join(folder, name), top), os.lstat(os.path.join(folder, name)))
        for folder, _folders, files in os.walk(top)
        for name in files
    ]
    statuses = [status for _name, status in found]
    size = (
        len(found),
        sum(status.st_size for status in statuses),
        sum((status.st_size + 4095) // 4096 * 4096 for status in statuses),
        len({os.path.dirname(name) for name, _status in found}),
    )
    return size, {name: stamp(status) for name, status in found}


def test_sizes(implementation: Implementation, tmp_path: Path) -> None:
    """Each tree of several is measured as one file after another is."""
    make(tmp_path / "one", FILES)
    make(tmp_path / "two", {"x": 5})
    make(tmp_path / "deep", {"d/" * 400 + "file": 9})
    make(tmp_path / "many", {f"{number:0250}": 1 for number in range(300)})
    tops = [os.fsencode(tmp_path / name) for name in ("one", "two", "deep", "many", "one")]
    for top, size, stamps in zip(tops, *measured(implementation, tops), strict=True):
        assert (size, stamps) == naive(top)
    assert measured(implementation, []) == ([], [])


def link(top: Path) -> None:
    (top / "sub" / "link").symlink_to("d")


def dangling(top: Path) -> None:
    (top / "link").symlink_to("nowhere")


def folder_link(top: Path) -> None:
    (top / "link").symlink_to("sub")


def empty(top: Path) -> None:
    (top / "sub" / "deeper" / "empty").mkdir()


def pipe(top: Path) -> None:
    os.mkfifo(top / "sub" / "pipe")


def bound(top: Path) -> None:
    before = os.getcwd()
    os.chdir(top)  # the address of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as opened:
            opened.bind("socket")
    finally:
        os.chdir(before)


@pytest.mark.parametrize("change", [link, dangling, folder_link, empty, pipe, bound])
def test_unusual_trees_are_deferred(
    implementation: Implementation, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    """A link, a special file or an empty directory defers its tree, and no other."""
    make(tmp_path / "one", FILES)
    make(tmp_path / "two", FILES)
    change(tmp_path / "one")
    sizes, names = measured(implementation, [os.fsencode(tmp_path / name) for name in ("one", "two")])
    assert (sizes[0], names[0]) == (None, {})
    assert sizes[1] is not None
    assert len(names[1]) == len(FILES)


def test_unreadable_trees_are_deferred(implementation: Implementation, tmp_path: Path) -> None:
    """What is no directory is deferred, also where a part of the path is one."""
    make(tmp_path / "one", FILES)
    (tmp_path / "empty").mkdir()
    top = os.fsencode(tmp_path)
    paths = [b"", top + b"/nowhere", top + b"/one/a.xml", top + b"/empty", top + b"/one\0", top + b"/one\0/x"]
    assert measured(implementation, paths) == ([None] * len(paths), [{}] * len(paths))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="needs a user without all rights")
def test_closed_directories_are_deferred(implementation: Implementation, tmp_path: Path) -> None:
    """A directory that cannot be read defers its tree."""
    make(tmp_path / "one", FILES)
    (tmp_path / "one" / "sub").chmod(0)
    try:
        assert measured(implementation, [os.fsencode(tmp_path / "one")]) == ([None], [{}])
    finally:
        (tmp_path / "one" / "sub").chmod(0o700)


NAMES = st.binary(min_size=1, max_size=6).filter(lambda name: name not in (b".", b"..") and not {0, 47} & set(name))
TREES = st.recursive(
    st.sampled_from([None, None, None, "link"]), lambda inner: st.dictionaries(NAMES, inner, max_size=4), max_leaves=20
).filter(lambda tree: isinstance(tree, dict))


def build(folder: bytes, tree: dict[bytes, object]) -> None:
    os.makedirs(folder, exist_ok=True)
    for name, below in tree.items():
        path = os.path.join(folder, name)
        if isinstance(below, dict):
            build(path, below)
        elif below is None:
            with open(path, "wb") as file:
                file.write(name * len(name))
        else:
            os.symlink(b"x", path)


@given(st.lists(TREES, max_size=4))
def test_implementations_agree(pair: tuple[Implementation, Implementation], trees: list[dict[bytes, object]]) -> None:
    """Both implementations agree on any trees, also on the order of the names."""
    with tempfile.TemporaryDirectory() as folder:
        tops = [os.path.join(os.fsencode(folder), b"%d" % number) for number in range(len(trees))]
        for top, tree in zip(tops, trees, strict=True):
            build(top, tree)
        native, pure = (measured(implementation, tops) for implementation in pair)
        assert native == pure
        assert [*map(list, native[1])] == [*map(list, pure[1])]
        for top, size, stamps in zip(tops, *native, strict=True):
            if size is not None:
                assert (size, stamps) == naive(top)
