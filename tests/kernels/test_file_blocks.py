"""Blocks of files in one call: digests and copies of small regular files, sizes of larger ones, -1 for other paths."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from fixity.trees import HOSTILE, content, expected
from pressmark.fixity import ALGORITHMS, Outcome, hash_files
from pressmark.fixity.hasher import OpenOptions
from pressmark.fixity.manifests import manifest_lines
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


def blocks(
    paths: list[bytes],
    names: list[str],
    most: int,
    *,
    copies: list[bytes] | None = None,
    follow: bool = True,
    beneath: int | None = None,
    walked: bool = False,
) -> Any:
    """Return the block of the files, hashed and copied by this thread."""
    from pressmark._kernels.native._digests import Engine

    options = OpenOptions(follow=follow, beneath=beneath)
    lanes = [name for name in names if _digests().lane_count(name)]
    serials = [name for name in names if name not in lanes]
    engine = Engine(
        names,
        lanes,
        [(name, ALGORITHMS[name].make) for name in serials],
        [(name, ALGORITHMS[name].one_shot(), 2 * ALGORITHMS[name].size) for name in serials],
        options.flags,
        False,
        beneath,
        walked=walked,
    )
    engine.submit_block(-2, b"\0".join([b"" if b"\0" in path else path for path in paths]), len(paths), copies, most)
    assert engine.work(False) is None
    [(ticket, block)] = engine.collect(1.0)
    assert ticket == -2
    return block


def _digests() -> Any:
    from pressmark._kernels.native import _digests

    return _digests


def sizes(paths: list[bytes], *, follow: bool, beneath: int | None = None) -> list[int]:
    left = blocks(paths, [], -1, follow=follow, beneath=beneath).left()
    assert [index for index, _size in left] == list(range(len(paths)))
    return [size for _index, size in left]


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


@pytest.mark.parametrize("follow", [True, False])
def test_walked_files(root: Path, follow: bool) -> None:
    """Files that a walk has found are opened at once; whatever is in their place by now is treated as if it had not."""
    (root / "large").write_bytes(bytes(100))
    (root / "null").symlink_to("/dev/null")
    names = [*PATHS, *OTHERS, b"link", b"null", b"folder/empty", b"folder/b", b"large"]
    paths = [name and os.path.join(os.fsencode(root), name) for name in names * 2]
    before = os.listdir("/dev/fd")
    walked, examined = (blocks(paths, ["md5"], 50, follow=follow, walked=walked) for walked in (True, False))
    assert os.listdir("/dev/fd") == before
    assert walked.results(paths, tuple) == examined.results(paths, tuple)
    assert walked.left() == examined.left()
    assert walked.failed() == examined.failed()
    assert walked.done == 2 * (len(PATHS) + 1 + follow)


def test_links_of_a_walk(root: Path) -> None:
    """A link may lead to a device or a named pipe, which is not opened: whoever waits for a reader keeps waiting."""
    (root / "to-fifo").symlink_to("fifo")
    path = os.fsencode(root / "to-fifo")
    descriptors: list[int] = []
    writer = threading.Thread(target=lambda: descriptors.append(os.open(root / "fifo", os.O_WRONLY)))
    writer.start()
    writer.join(0.1)  # it waits
    try:
        for _ in range(100):
            assert blocks([path, path], ["md5"], 50, walked=True).left() == [(0, -1), (1, -1)]
        writer.join(0.1)
        assert descriptors == []
    finally:
        os.close(os.open(root / "fifo", os.O_RDONLY | os.O_NONBLOCK))
        writer.join()
        os.close(descriptors[0])


MOST = 20_000
NAMES = [["sha512"], ["md5", "blake3"], ["xxh128"], ["blake2b-160", "sha3-256", "sha1", "xxh32"]]


@pytest.mark.parametrize("names", NAMES, ids="+".join)
def test_results(tmp_path: Path, names: list[str]) -> None:
    """Small files have the digests of the libraries, for few and many files; larger ones have a size."""
    files = [(number, size) for number in range(30) for size in (0, 1, 127, 4096, MOST, MOST + 1)]
    for number, size in files:
        (tmp_path / f"{number}-{size}").write_bytes(content(number, size))
    for count in (1, 6, len(files)):
        paths = [os.fsencode(tmp_path / f"{number}-{size}") for number, size in files[:count]]
        block = blocks(paths, names, MOST)
        wanted = []
        for (number, size), path in zip(files, paths, strict=False):
            status = os.stat(path)
            digests = {name: expected(content(number, size), name) for name in names}
            is_small = size <= MOST
            times = status.st_mtime_ns, status.st_ctime_ns
            found = (path, digests, size, times[0], status.st_ino, None, "", times[1], 0)
            wanted.append(found if is_small else None)
        assert block.results(paths, Outcome) == wanted
        assert {type(result) for result in block.results(paths, Outcome) if result} == {Outcome}
        assert [list(result[1]) for result in block.results(paths, Outcome) if result] == [names] * block.done
        assert block.left() == [(index, MOST + 1) for index, result in enumerate(wanted) if result is None]
        assert block.failed() == []
        assert block.done == count - len(block.left())


def lines(block: Any, names: list[str], format: str) -> Any:
    return block.lines([ALGORITHMS[name].tag.encode() for name in names] if format == "bsd" else None)


@pytest.mark.parametrize("names", NAMES, ids="+".join)
def test_lines(tmp_path: Path, names: list[str]) -> None:
    """The lines of a block are those of its outcomes; none if a name needs escapes or a file has no digest."""
    for name in HOSTILE:
        with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:
            file.write(name)
    plain = [name for name in HOSTILE if not set(name) & set(b"\\\n\r")]
    paths = [os.path.join(os.fsencode(tmp_path), name) for name in plain]
    block = blocks(paths, names, MOST)
    outcomes = block.results(paths, Outcome)
    for format in ("coreutils", "bsd") if len(names) == 1 else ("bsd",):
        assert lines(block, names, format) == manifest_lines(outcomes, format)
        for more in (tmp_path / "back\\slash", tmp_path / "new\nline", tmp_path / "return\r", tmp_path / "gone"):
            assert lines(blocks([*paths, os.fsencode(more)], names, MOST), names, format) is None


def test_unreadable_files(root: Path) -> None:
    """An error of opening or reading is returned; virtual files, which have no size, are left."""
    block = blocks([os.fsencode(root / "link"), os.fsencode(root / "x")], ["md5"], MOST, follow=False)
    assert (block.done, block.left(), block.failed()) == (1, [(0, -1)], [])
    if os.path.exists("/proc/self/mem"):
        block = blocks([b"/proc/self/status", b"/proc/self/mem"], ["md5"], MOST)
        assert block.left() == [(0, 0)]
        assert [(index, error) for index, _size, _mtime, _inode, error, *_ in block.failed()] == [(1, errno.EIO)]


@pytest.mark.parametrize("names", [[], ["sha512"], ["md5", "blake3"]], ids="+".join)
def test_copies(tmp_path: Path, names: list[str]) -> None:
    """Small files are copied with permission bits and times; larger ones and invalid names are left."""
    sizes = [0, 1, 4096, MOST, MOST + 1] * 30
    for folder in ("from", "to"):
        (tmp_path / folder).mkdir()
    paths, copies = [], []
    for number, size in enumerate(sizes):
        path = tmp_path / "from" / str(number)
        path.write_bytes(content(number, size))
        path.chmod(0o4751)
        os.utime(path, ns=(1_234_567_891, 2_345_678_912))
        paths.append(os.fsencode(path))
        copies.append(os.fsencode(tmp_path / "to" / str(number)))
    copies[1] += b"\0"
    block = blocks(paths, names, MOST, copies=copies)
    assert block.left() == [(1, -1), *((index, MOST + 1) for index, size in enumerate(sizes) if size > MOST)]
    assert block.failed() == []
    assert block.done == len(sizes) - len(block.left())
    left = {index for index, _size in block.left()}
    for number, (size, result) in enumerate(zip(sizes, block.results(paths, Outcome), strict=True)):
        copy = tmp_path / "to" / str(number)
        assert copy.exists() == (result is not None) == (number not in left)
        if result is not None:
            assert copy.read_bytes() == content(number, size)
            assert result[1] == {name: expected(content(number, size), name) for name in names}
            status = copy.stat()
            assert (stat.S_IMODE(status.st_mode), status.st_mtime_ns) == (0o751, 2_345_678_912)


def test_copies_that_fail(root: Path) -> None:
    """Nothing is overwritten, the errno of a copy is returned, and the other files are copied."""
    (root / "there").write_bytes(b"mine")
    names = (b"x", b"a/b/c.x", b"a/empty", b"a/...")
    paths = [os.path.join(os.fsencode(root), name) for name in names]
    copies = [os.path.join(os.fsencode(root), name) for name in (b"there", b"new", b"no/folder", b"new")]
    block = blocks(paths, ["md5"], MOST, copies=copies)
    assert block.failed() == [(0, errno.EEXIST, None), (2, errno.ENOENT, None), (3, errno.EEXIST, None)]
    assert (block.done, block.left()) == (1, [])
    assert (root / "there").read_bytes() == b"mine"
    assert (root / "new").read_bytes() == b"12345"
    with pytest.raises(ValueError, match="each copy"):
        blocks(paths, ["md5"], MOST, copies=copies[:2])


@pytest.mark.parametrize("kind", [os.fsencode, os.fsdecode])
def test_files_of_the_same_directory(
    root: Path, implementations: list[Implementation], monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    """The second file is opened in its directory: the outcomes are those of its path, whatever that looks like."""
    monkeypatch.chdir(root)
    names = ["b/c.x", "empty", "...", "missing", "b", "b/", "b/..", "b/../empty", "", "\udcff", "a\0b"]
    directories = ["a/", "./a//", "folder/", f"{root}/a/", "x/", "missing/", "", "/", "a/b/../", "y" * 4090 + "/"]
    paths = [kind(directory + name) for directory in directories for name in names * 2]
    found = []
    for implementation in implementations:
        with use(implementation):
            found.append(list(hash_files(paths, ["md5", "sha512"], threads=1)))
    assert found[0] == found[-1]
    assert [outcome.path for outcome in found[0]] == [os.fsdecode(path) for path in paths]
    assert sum(outcome.ok for outcome in found[0]) == 2 * 4 * 4 + 2 * 4
