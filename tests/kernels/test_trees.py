"""Trees in memory: both implementations, and a naive reading of the same files."""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import os
import shutil
import socket
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pressmark._kernels.records import Other, Tree, Wanted
from support.effort import LONG
from support.implementations import Implementation
from support.preloading import preloadable, run_preloaded
from support.replacing import Opened, exchanging
from support.turns import in_one_turn
from support.users import OTHER, as_user

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")

TESTS = Path(__file__).parents[1]
SCRIPT = Path(__file__).with_name("read_trees.py")
EXAMPLES = settings(max_examples=5000 if LONG else settings.default.max_examples)  # type: ignore[union-attr]
FILE_COLUMNS = ("states", "errors", "sizes", "mtimes", "ctimes", "inodes", "modes", "links")
FOLDER_COLUMNS = ("folder_mtimes", "folder_ctimes", "folder_inodes", "folder_modes")
NOTHING = (0, 0, 0, 0)
DEFAULT = Wanted()

# A tree: its facts, its files and directories with their columns, the empty ones, linked files, and all other entries.
Seen = tuple[Any, ...]


def seen(batch: Any) -> list[Seen]:
    """Return all that a batch has, tree by tree; check that its numbers are complete."""
    files, directories = itertools.count(), itertools.count()
    columns = [getattr(batch, name) for name in FILE_COLUMNS]
    folder_columns = [getattr(batch, name) for name in FOLDER_COLUMNS]
    found = []
    for tree in batch.trees:
        assert list(tree.files.values()) == list(itertools.islice(files, len(tree.files)))
        numbers = itertools.repeat(-1) if tree.state == "rest" else directories
        assert list(tree.directories.values()) == list(itertools.islice(numbers, len(tree.directories)))
        rows = {
            path: (*(column[number] for column in columns), batch.content(number))
            for path, number in tree.files.items()
        }
        folders = {
            path: tuple(column[number] for column in folder_columns)
            for path, number in tree.directories.items()
            if number >= 0
        }
        found.append((tuple(tree[:7]), list(rows.items()), list(folders.items()), tree.empty, tree.linked, tree.others))
    count = next(files)
    assert {len(column) for column in columns} == {count}
    assert {len(column) for column in folder_columns} == {next(directories)}
    with pytest.raises(IndexError):
        batch.content(count)
    return found


def read(implementation: Implementation, top: bytes, names: list[bytes], wanted: Wanted = DEFAULT) -> list[Seen]:
    """Read all names in one call, and return all that was read."""
    batch = in_one_turn(lambda: implementation.kernels.read_trees(top, names, wanted))
    assert batch.begun == len(names)
    return seen(batch)


def without(path: bytes, state: str, error: int = 0) -> Seen:
    """Return a tree without entries."""
    return ((path, state, error, *NOTHING), [], [], [], [], [])


# --- a naive reading --------------------------------------------------------------------------------------------------


def naive(place: bytes, path: bytes, wanted: Wanted) -> Seen:
    """Read a tree that does not change with ``os.walk``, without any limit, and then apply the limits."""
    entries: list[tuple[bytes, os.stat_result]] = []
    for folder, folders, files in os.walk(place):
        above = folder[len(place) + 1 :]
        if not above:
            folders[:] = [name for name in folders if name != wanted.skip]
            files = [name for name in files if name != wanted.skip]
        for name in folders + files:
            entries.append((os.path.join(above, name), os.lstat(os.path.join(folder, name))))
        if not wanted.inside:
            break
    entries.sort(key=lambda entry: entry[0].replace(b"/", b"\0"))
    shown: Callable[[bytes], Any] = (lambda one: one.decode("utf-8", "surrogateescape")) if wanted.text else bytes
    rows, folders_found, empty, linked, others = [], [], [], [], []
    total = deepest = 0
    is_large = len(entries) > wanted.entries
    for inside, status in entries:
        facts = (status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_mode)
        if stat.S_ISREG(status.st_mode):
            state, content = "unwanted", None
            is_first = (os.path.basename(inside) + b"/").startswith(wanted.prefixes)
            if is_first or wanted.content == "all":
                most = min(status.st_size, wanted.first) if is_first and wanted.first else status.st_size
                state = "large"
                if most <= wanted.file:
                    state, total = "whole", total + most
                    content = Path(os.fsdecode(os.path.join(place, inside))).read_bytes()[:most]
            row = (state, 0, status.st_size, *facts, status.st_nlink, content)
            is_seen = is_first or wanted.content != "names"
            rows.append((shown(inside), row if is_seen else ("unwanted", *(0,) * 7, None)))
            linked += [shown(inside)] if is_seen and status.st_nlink > 1 else []
        elif stat.S_ISDIR(status.st_mode):
            folders_found.append((shown(inside), facts if wanted.inside or wanted.content != "names" else NOTHING))
            deepest = max(deepest, inside.count(b"/") + 1)
            if wanted.inside and not os.listdir(os.path.join(place, inside)):
                empty.append(shown(inside))
        else:
            others.append(Other(shown(inside), "link" if stat.S_ISLNK(status.st_mode) else "special", 0))
        if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
            is_large |= not all(-(1 << 63) <= time < 1 << 63 for time in facts[:2])
    if is_large or total > wanted.total or (wanted.inside and deepest > wanted.depth):
        return without(path, "large")
    top = os.stat(place)
    facts = (path, "whole", 0, top.st_dev, top.st_ino, top.st_mode, top.st_mtime_ns)  # type: ignore[assignment]
    return (facts, rows, folders_found, empty, linked, others)


def naive_below(place: bytes, path: bytes, wanted: Wanted, level: int = 0) -> Iterator[Seen]:
    """Read the trees below a directory: each begins at the first directory with a marker."""
    try:
        if not stat.S_ISDIR(os.lstat(place).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "")
        names = sorted(name for name in os.listdir(place) if name != wanted.skip)
    except OSError as error:
        yield without(path, "unreadable", error.errno or 0)
        return
    kinds = {name: stat.S_IFMT(os.lstat(os.path.join(place, name)).st_mode) for name in names}
    may_clash = len(names) > 1 and any(set(name) & {*range(65, 91), *range(128, 256)} for name in names)
    if any(kind == stat.S_IFREG and name.startswith(wanted.marker) for name, kind in kinds.items()):
        yield naive(place, path, wanted)
    elif set(kinds.values()) != {stat.S_IFDIR} or level >= wanted.depth or (wanted.clashes and may_clash):
        yield without(path, "odd")
    else:
        for name in names:
            yield from naive_below(os.path.join(place, name), os.path.join(path, name), wanted, level + 1)


NAMES = st.binary(min_size=1, max_size=4).filter(lambda name: name not in (b".", b"..") and not {0, 47} & set(name))
FEW_NAMES = st.sampled_from([b"a", b"b", b"B", b"b.", b"\xc3\xa9", b"0=x", b"skip"])
LEAVES = st.one_of(st.binary(max_size=12), st.sampled_from(["link", "pipe", "hard"]))


def any_trees(names: st.SearchStrategy[bytes], leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy of trees: contents, kinds of other entries, and directories."""
    return st.recursive(leaves, lambda inner: st.dictionaries(names, inner, max_size=4), max_leaves=20).filter(
        lambda tree: isinstance(tree, dict)
    )


def any_wanted(names: st.SearchStrategy[bytes], **more: Any) -> st.SearchStrategy[Wanted]:
    """Return a strategy of what is wanted; half of the limits are out of reach."""
    more = {"marker": st.just(b""), "clashes": st.just(False), "budget": st.just(1 << 40), **more}
    return st.builds(
        Wanted,
        skip=st.one_of(st.just(b""), names),
        content=st.sampled_from(["names", "none", "open", "all"]),
        prefixes=st.lists(names.map(lambda name: name[:1]) | names.map(lambda name: name + b"/"), max_size=2).map(
            tuple
        ),
        first=st.integers(0, 4),
        entries=st.one_of(st.just(4096), st.integers(0, 8)),
        depth=st.one_of(st.just(64), st.integers(0, 3)),
        total=st.one_of(st.just(1 << 20), st.integers(0, 40)),
        file=st.one_of(st.just(1 << 20), st.integers(0, 12)),
        text=st.booleans(),
        twice=st.booleans(),
        inside=st.sampled_from([True, True, False]),
        **more,
    )


def build(folder: bytes, tree: dict[bytes, Any], common: bytes) -> None:
    """Create a tree; hard links lead to a common file."""
    os.makedirs(folder, exist_ok=True)
    for name, below in tree.items():
        path = os.path.join(folder, name)
        if isinstance(below, dict):
            build(path, below, common)
        elif below == "link":
            os.symlink(b"/", path)
        elif below == "pipe":
            os.mkfifo(path)
        elif below == "hard":
            os.link(common, path)
        else:
            Path(os.fsdecode(path)).write_bytes(below)


@EXAMPLES
@pytest.mark.long
@given(st.lists(any_trees(NAMES, LEAVES), max_size=4), any_wanted(NAMES))
def test_any_trees(implementations: list[Implementation], trees: list[dict[bytes, Any]], wanted: Wanted) -> None:
    """Both implementations read the same from any trees, and the naive reading too."""
    with tempfile.TemporaryDirectory() as folder:
        top = os.fsencode(folder)
        Path(folder, "common").write_bytes(b"common")
        names = [b"%d" % number for number in range(len(trees))]
        for name, tree in zip(names, trees, strict=True):
            build(os.path.join(top, name), tree, os.path.join(top, b"common"))
        expected = [naive(os.path.join(top, name), name, wanted) for name in names]
        for implementation in implementations:
            assert read(implementation, top, names, wanted) == expected
            paths = [os.path.join(top, name) for name in names]
            found = read(implementation, b"", paths, wanted)
            assert [(path, *one[0][1:]) for path, one in zip(paths, expected, strict=True)] == [one[0] for one in found]
            assert [one[1:] for one in found] == [one[1:] for one in expected]


@EXAMPLES
@pytest.mark.long
@given(
    any_trees(FEW_NAMES, st.one_of(st.sampled_from([b"", b"x"]), LEAVES)),
    any_wanted(
        FEW_NAMES, marker=st.just(b"0="), clashes=st.booleans(), budget=st.one_of(st.just(99), st.integers(0, 6))
    ),
)
def test_any_trees_below_directories(
    implementations: list[Implementation], tree: dict[bytes, Any], wanted: Wanted
) -> None:
    """With a marker, trees begin where it is; what exceeds the budget is left, and can be read by further calls."""
    if wanted.budget < 99:
        wanted = wanted._replace(depth=64)  # a further call counts directories from its names
    with tempfile.TemporaryDirectory() as folder:
        top = os.path.join(os.fsencode(folder), b"top")
        Path(folder, "common").write_bytes(b"common")
        build(top, tree, os.path.join(os.fsencode(folder), b"common"))
        names = [*sorted(os.listdir(top)), b"missing"]
        expected = [seen for name in names for seen in naive_below(os.path.join(top, name), name, wanted)]
        for implementation in implementations:
            left, found, calls = names, [], 0
            while left:
                batch = implementation.kernels.read_trees(top, left, wanted)
                assert batch.begun
                left = left[batch.begun :]
                rest = [tree for tree in batch.trees if tree.state == "rest"]
                calls += 1
                found += seen(batch)[: len(batch.trees) - len(rest)]
                # They are the last, those of the innermost directory first.
                assert rest == batch.trees[len(batch.trees) - len(rest) :]
                left = [os.path.join(one.path, name) for one in rest for name in one.directories] + left
            assert found == expected
            assert calls >= len(expected) / max(1, wanted.budget)


# --- limits -----------------------------------------------------------------------------------------------------------


def nested(top: Path, depth: int) -> Path:
    """Create directories below each other, one file in the last."""
    last = top.joinpath(*["d"] * depth)
    last.mkdir(parents=True)
    (last / "file").write_bytes(b"x")
    return top


@pytest.mark.parametrize("excess", [0, 1])
def test_default_limits(
    implementation: Implementation, tmp_path: Path, excess: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tree at a limit is whole, above it large; a file above the limit of files has no content."""
    monkeypatch.setattr("pressmark._kernels.pure.trees.TURN", 60)  # seconds, on a busy machine
    nested(tmp_path / "deep", 64 + excess)
    (tmp_path / "many").mkdir()
    for number in range(4095 + excess):
        (tmp_path / "many" / f"{number}").touch()
    (tmp_path / "many" / "d").mkdir()
    (tmp_path / "bytes").mkdir()
    for number in range(4):
        (tmp_path / "bytes" / f"{number}").write_bytes(bytes(1 << 20))
    (tmp_path / "bytes" / "last").write_bytes(bytes(excess))
    (tmp_path / "file").mkdir()
    (tmp_path / "file" / "file").write_bytes(bytes((1 << 20) + excess))
    for name in (b"deep", b"many", b"bytes"):
        (found,) = read(implementation, os.fsencode(tmp_path), [name])
        assert found == (
            without(name, "large") if excess else naive(tmp_path.joinpath(name.decode()).__bytes__(), name, Wanted())
        )
    (found,) = read(implementation, os.fsencode(tmp_path), [b"file"])
    assert [row[0] for _path, row in found[1]] == ["large" if excess else "whole"]


@pytest.mark.parametrize("depth", [256, 257])
def test_the_largest_depth(implementation: Implementation, tmp_path: Path, depth: int) -> None:
    """No more than 256 directories are open at a time, whatever is wanted."""
    nested(tmp_path / "deep", depth)
    (found,) = read(implementation, os.fsencode(tmp_path), [b"deep"], Wanted(depth=1 << 40))
    assert found[0][1] == ("whole" if depth == 256 else "large")
    (found,) = read(implementation, os.fsencode(tmp_path), [b"deep"], Wanted(depth=1 << 40, marker=b"file"))
    assert found[0][1] == ("whole" if depth == 256 else "odd")
    shutil.rmtree(tmp_path / "deep")


def test_times_beyond_64_bits(implementation: Implementation, tmp_path: Path) -> None:
    """A tree with a time that does not fit is large; the first and last times that fit are exact."""
    times = [-(1 << 63) - 1, -(1 << 63), -1, (1 << 63) - 1, 1 << 63]
    for number, time in enumerate(times):
        for name in ("file", "folder", "top"):
            tree = tmp_path / f"{number}-{name}"
            (tree / "folder").mkdir(parents=True)
            (tree / "file").touch()
            path = tree / name if name != "top" else tree
            os.utime(path, ns=(0, time))
            if path.stat().st_mtime_ns != time:
                pytest.skip("the file system stores no such times")
    names = sorted(os.listdir(os.fsencode(tmp_path)))
    found = read(implementation, os.fsencode(tmp_path), names, Wanted(content="open"))
    assert [one[0][1] for one in found] == [
        name for name in ("large", "whole", "whole", "whole", "large") for _ in "123"
    ]
    for one, name in zip(found, names, strict=True):
        if one[0][1] == "whole":
            assert one == naive(os.path.join(os.fsencode(tmp_path), name), name, Wanted(content="open"))


def test_a_call_returns_after_a_mebibyte(implementation: Implementation, tmp_path: Path) -> None:
    """A call begins no name when it has read so much, but reads the tree that it has begun."""
    for number in range(4):
        (tmp_path / f"{number}").mkdir()
        for name in ("a", "b"):
            (tmp_path / f"{number}" / name).write_bytes(bytes(300_000))
    names = [b"0", b"1", b"2", b"3"]
    read_trees = implementation.kernels.read_trees
    batch = in_one_turn(lambda: read_trees(os.fsencode(tmp_path), names, Wanted()))
    assert (batch.begun, len(batch.trees), len(batch.sizes)) == (2, 2, 4)
    batch = in_one_turn(lambda: read_trees(os.fsencode(tmp_path), names, Wanted(content="open")))
    assert batch.begun == 4
    batch = in_one_turn(lambda: read_trees(os.fsencode(tmp_path), names, Wanted(budget=3)))
    assert batch.begun == 2
    batch = in_one_turn(lambda: read_trees(os.fsencode(tmp_path), names, Wanted(budget=0)))
    assert batch.begun == 1
    assert read_trees(os.fsencode(tmp_path), [], Wanted()).trees == []


# --- what cannot be read ----------------------------------------------------------------------------------------------


def test_names(implementation: Implementation, tmp_path: Path) -> None:
    """A name leads nowhere but to a directory below the top; without a top, a path may be a link."""
    nested(tmp_path / "outside", 1)
    nested(tmp_path / "top" / "a", 1)
    (tmp_path / "top" / "link").symlink_to("a")
    (tmp_path / "link").symlink_to("top")
    (tmp_path / "top" / "out").symlink_to(tmp_path / "outside")
    top, plain = os.fsencode(tmp_path / "top"), Wanted()
    errors = {
        b"../outside": errno.EINVAL,
        b"a/../a": errno.EINVAL,
        b"..": errno.EINVAL,
        b"a\0b": errno.EINVAL,
        b"missing": errno.ENOENT,
        b"missing/a": errno.ENOENT,
        b"a/d/file": errno.ENOTDIR,
        b"a/d/file/x": errno.ENOTDIR,
        b"x" * 256: errno.ENAMETOOLONG,
        b"x" * 300 + b"/a": errno.ENAMETOOLONG,
        os.fsencode(tmp_path / "outside"): errno.ENOENT,
    }
    assert read(implementation, top, list(errors), plain) == [
        without(*one[:1], "unreadable", one[1]) for one in errors.items()
    ]
    # A link: the system reports that it is no directory, or a loop.
    for found in read(implementation, top, [b"link", b"link/d", b"out", b"out/d"], plain):
        assert found[0][1:3] in [
            ("unreadable", errno.ENOTDIR),
            ("unreadable", errno.ELOOP),
            ("unreadable", errno.EMLINK),
        ]
    for name in (b"a", b"/a", b"./a/", b"a//", b"a/d", b"a/./d", b"", b".", b"/"):
        place = os.path.join(top, name.strip(b"/"))
        expected = [naive(place.rstrip(b"/."), name, plain)]
        assert read(implementation, top, [name], plain) == expected
        assert read(implementation, os.fsencode(tmp_path / "link"), [name], plain) == expected
    path = os.fsencode(tmp_path / "top" / "link")
    assert read(implementation, b"", [path], plain) == [naive(top + b"/a", path, plain)]
    paths = {
        b"": errno.ENOENT,
        top + b"/missing": errno.ENOENT,
        top + b"/a/d/file": errno.ENOTDIR,
        b"a\0": errno.EINVAL,
    }
    assert read(implementation, b"", list(paths)) == [without(*one[:1], "unreadable", one[1]) for one in paths.items()]
    assert read(implementation, top + b"/missing", [b"a", b"b"]) == [
        without(name, "unreadable", errno.ENOENT) for name in (b"a", b"b")
    ]


def test_sockets_and_devices(implementation: Implementation, tmp_path: Path) -> None:
    """Special files are never opened; a directory on another file system is not read."""
    before = os.getcwd()
    os.chdir(tmp_path)  # the address of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as opened:
            opened.bind("socket")
    finally:
        os.chdir(before)
    (found,) = read(implementation, b"", [os.fsencode(tmp_path)])
    assert found[5] == [Other(b"socket", "special", 0)]
    if not os.path.isdir("/dev/shm") or os.stat("/dev").st_dev == os.stat("/dev/shm").st_dev:
        pytest.skip("no other file system below a small one")
    for inside in (True, False):
        (found,) = read(implementation, b"", [b"/dev"], Wanted(inside=inside, entries=1 << 20))
        assert Other(b"null", "special", 0) in found[5]
        assert Other(b"shm", "device", 0) in found[5]
        assert not any(path.startswith(b"shm") for path, _row in found[1] + found[2])


def test_closed_files_and_directories(implementation: Implementation, open_folder: Path) -> None:
    """A directory that cannot be read is another entry; a file has a number, and its size if possible."""
    top = open_folder / "top"
    for name in ("closed", "list-only", "open"):
        (top / name).mkdir(parents=True)
        (top / name / "file").write_bytes(b"text")
    (top / "open" / "file").chmod(0)
    (top / "closed").chmod(0)
    (top / "list-only").chmod(0o744)
    (open_folder / "closed").mkdir(mode=0o700)
    for path in (top, top / "open"):
        path.chmod(0o755)
    denied = errno.EACCES

    def check() -> None:
        for content, state in ("all", "unreadable"), ("open", "unreadable"), ("none", "unwanted"):
            (found,) = read(implementation, b"", [b"top"], Wanted(content=content))
            rows = [(path, *row[:3], row[-1]) for path, row in found[1]]
            assert rows == [
                (b"list-only/file", "unreadable", denied, 0, None),
                (b"open/file", state, denied if state == "unreadable" else 0, 4, None),
            ]
            assert [path for path, _row in found[2]] == [b"list-only", b"open"]
            assert found[5] == [Other(b"closed", "closed", denied)]
        assert read(implementation, os.fsencode("."), [b"closed"]) == [without(b"closed", "unreadable", denied)]

    if os.geteuid() == 0:
        as_user(OTHER, open_folder, check)
        return
    before = os.getcwd()
    os.chdir(open_folder)
    (top / "list-only").chmod(0o444)
    (open_folder / "closed").chmod(0)
    try:
        check()
    finally:
        os.chdir(before)
        for path in (top / "closed", top / "list-only", open_folder / "closed"):
            path.chmod(0o700)


# --- what changes while it is read ------------------------------------------------------------------------------------


def lines_of(implementation: Implementation, library: str, top: Path, wanted: Wanted, **variables: str) -> list[Any]:
    """Read a directory in another process with a preloaded library; return what each call read."""
    options = json.dumps(
        {key: value for key, value in wanted._asdict().items() if not isinstance(value, (bytes, tuple))}
    )
    output = run_preloaded(library, SCRIPT, str(implementation), str(top), options, **variables)
    return [json.loads(line) for line in output.splitlines()]


def test_files_that_change(implementation: Implementation, tmp_path: Path) -> None:
    """A file that is found to change has no content; without a second look, one with another time is not found."""
    library = preloadable(TESTS / "fixity" / "faults.c", tmp_path)
    states = {
        "append-x": "changing",
        "append-empty": "changing",
        "chmod-x": "whole",
        "delete-x": "whole",
        "eio-x": "unreadable",
        "plain-x": "whole",
        "replace-x": "whole",
        "rewrite-x": "changing",
        "truncate-x": "changing",
    }
    for twice in (True, False):
        top = tmp_path / f"{twice}"
        (top / "tree").mkdir(parents=True)
        for name in states:
            (top / "tree" / name).write_bytes(b"" if name.endswith("empty") else b"text of a file")
        (line,) = lines_of(implementation, library, top, Wanted(twice=twice))
        ((_path, state, files, folders, others),) = line["trees"]
        assert (state, folders, others) == ("whole", [], [])
        expected = states if twice else {**states, "rewrite-x": "whole"}
        assert {name: found for name, found, _error, _content in files} == expected
        assert {name: content for name, _state, _error, content in files} == {
            name: "text of a file" if expected[name] == "whole" else "" for name in states
        }
        assert [error for _name, _state, error, _content in files] == [5 if name == "eio-x" else 0 for name in states]


def test_a_slow_disk(implementation: Implementation, tmp_path: Path) -> None:
    """A call returns in time: it leaves a tree that is slow to the next one, where it may be large."""
    library = preloadable(TESTS / "cli" / "slow.c", tmp_path)
    # Opening and reading a file takes 40 ms.
    sizes = {"a": 1, "b": 1, "c": 4, "d": 9, "e": 1, "f": 1, "g": 1, "h": 1}
    for name, count in sizes.items():
        (tmp_path / "top" / name).mkdir(parents=True)
        for number in range(count):
            (tmp_path / "top" / name / f"slow-{number}").write_bytes(b"x")
    lines = lines_of(implementation, library, tmp_path / "top", Wanted(), DELAY="20000")
    assert len(lines) >= 5
    assert all(line["seconds"] < 0.4 for line in lines)
    found = {tree[0]: (tree[1], len(tree[2])) for line in lines for tree in line["trees"]}
    # A busy machine may be slower still.
    assert found.pop("c") in [("whole", 4), ("large", 0)]
    assert found == {name: ("large", 0) if name == "d" else ("whole", 1) for name in sizes if name != "c"}


def test_entries_without_types(implementation: Implementation, tmp_path: Path) -> None:
    """On a file system that does not store types in directories, each entry is asked for its own."""
    library = preloadable(Path(__file__).with_name("untyped.c"), tmp_path)
    nested(tmp_path / "top" / "tree", 2)
    (tmp_path / "top" / "tree" / "link").symlink_to("d")
    os.mkfifo(tmp_path / "top" / "tree" / "pipe")
    (line,) = lines_of(implementation, library, tmp_path / "top", Wanted())
    assert line["trees"] == [
        ["tree", "whole", [["d/d/file", "whole", 0, "x"]], ["d", "d/d"], [["link", "link"], ["pipe", "special"]]]
    ]


def repeatedly(action: Callable[[], object]) -> tuple[threading.Thread, threading.Event]:
    """Start a thread that repeats an action until an event is set."""
    done = threading.Event()

    def run() -> None:
        while not done.is_set():
            action()

    thread = threading.Thread(target=run)
    thread.start()
    return thread, done


def test_a_file_that_grows(implementation: Implementation, tmp_path: Path) -> None:
    """What is read of a growing file is what it was when it had its size, or nothing."""
    path = tmp_path / "grows"
    pattern = bytes(range(256)) * 1024
    states = set()
    with open(path, "wb", buffering=0) as file:
        position = itertools.count()

        def grow() -> None:
            at = next(position) * 100 % len(pattern)
            if at < 100:
                file.truncate(0)
                file.seek(0)
                at = 0
            file.write(pattern[file.tell() : file.tell() + 100])

        thread, done = repeatedly(grow)
        try:
            least = 20_000 if LONG else 2000
            for number in range(100 * least):
                if number >= least and "changing" in states:
                    break
                batch = implementation.kernels.read_trees(b"", [os.fsencode(tmp_path)], Wanted())
                content = batch.content(0)
                states.add(batch.states[0])
                assert (content is None) == (batch.states[0] == "changing")
                if content is not None:
                    assert content == pattern[: batch.sizes[0]]
        finally:
            done.set()
            thread.join()
    assert "changing" in states


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs inotify")
@pytest.mark.parametrize(
    "wanted", [Wanted(), Wanted(content="open"), Wanted(marker=b"0=")], ids=["all", "open", "marker"]
)
def test_nothing_outside_is_ever_opened(implementation: Implementation, tmp_path: Path, wanted: Wanted) -> None:
    """While a directory alternates with a link, thousands of reads find what is inside it, or another entry."""
    inside, outside = tmp_path / "top" / "a" / "b" / "c", tmp_path / "outside"
    for folder, name in (inside, "0=in"), (outside, "0=out"), (outside / "c", "0=out"):
        folder.mkdir(parents=True)
        (folder / name).write_bytes(os.fsencode(name))
    # Replaced: a directory in a tree, or with a marker above it; one in a name; the last one of a name; a file.
    cases = (inside, [b"a"]), (inside.parent, [b"a/b/c"]), (inside, [b"a/b/c"]), (inside / "0=in", [b"a/b/c"])
    for here, names in cases:
        opened = Opened(outside)
        os.close(os.open(outside / "0=out", os.O_RDONLY))
        assert opened.count() == 1  # the counter works
        link = tmp_path / "link"
        turn = exchanging(here, outside / "0=out" if here.is_file() else outside, link)
        thread, done = repeatedly(turn)
        results = set()
        try:
            for tries in range(200_000):
                batch = implementation.kernels.read_trees(os.fsencode(tmp_path / "top"), names, wanted)
                results.add(str([(tree.state, *tree.files, *tree.others) for tree in batch.trees]))
                assert not any(b"0=out" in path for tree in batch.trees for path in tree.files)
                assert all(batch.content(number) in (None, b"0=in") for number in range(len(batch.sizes)))
                # On a busy machine, one of both may be in place for a long time.
                if tries > (20_000 if LONG else 1500) and len(results) > 1:
                    break
        finally:
            done.set()
            thread.join()
        assert opened.count() == 0
        assert len(results) > 1
        if here.is_symlink():
            turn()
        link.unlink()
        opened.close()


# --- batches ----------------------------------------------------------------------------------------------------------


def test_digests(implementation: Implementation, tmp_path: Path) -> None:
    """The digests of whole contents, in lanes or by a function, computed once."""
    for number in range(40):
        (tmp_path / f"{number:02}").write_bytes(bytes(number * 7))
    (tmp_path / "50").write_bytes(bytes(3000))
    (tmp_path / "first").write_bytes(b"first and more")
    wanted = Wanted(file=2000, prefixes=(b"f",), first=5)
    batch = implementation.kernels.read_trees(b"", [os.fsencode(tmp_path)], wanted)
    assert batch.content(41) == b"first"
    for algorithm in ("sha512", "md5", "sha256"):
        expected = [hashlib.new(algorithm, bytes(number * 7)).hexdigest() for number in range(40)] + [None, None]
        assert batch.digests(algorithm) == expected
        assert batch.digests(algorithm) is batch.digests(algorithm, len)
    assert batch.digests("sizes", lambda content: f"{len(content)}") == [*(f"{7 * n}" for n in range(40)), None, None]
    with pytest.raises(KeyError):
        batch.digests("unknown")
    empty = implementation.kernels.read_trees(b"", [], Wanted())
    assert (empty.trees, empty.begun, empty.digests("sha512")) == ([], 0, [])


@given(st.lists(st.one_of(st.none(), st.binary(max_size=200)), max_size=20))
def test_batches_from_elsewhere(implementations: list[Implementation], contents: list[bytes | None]) -> None:
    """A batch of given contents is like one that was read."""
    tree = Tree(b"a", "whole", 0, *NOTHING, {b"%d" % n: n for n in range(len(contents))}, {}, [], [], [])
    sizes = [7 if content is None else len(content) for content in contents]
    expected = [None if content is None else hashlib.sha512(content).hexdigest() for content in contents]
    for implementation in implementations:
        batch = implementation.kernels.TreeBatch.of([tree], contents, sizes)
        assert (batch.begun, batch.trees, batch.sizes) == (1, [tree], sizes)
        assert [batch.content(number) for number in range(len(contents))] == contents
        assert batch.states == ["unwanted" if content is None else "whole" for content in contents]
        assert batch.digests("sha512") == expected
        assert [len(getattr(batch, name)) for name in FILE_COLUMNS] == [len(contents)] * len(FILE_COLUMNS)
        for number in (-1, len(contents)):
            with pytest.raises(IndexError):
                batch.content(number)


def test_wrong_arguments(implementation: Implementation) -> None:
    """An unknown word is refused before anything is read."""
    with pytest.raises(ValueError, match=r"some|tuple"):
        implementation.kernels.read_trees(b"", [b"/"], Wanted(content="some"))
    with pytest.raises(TypeError):
        implementation.kernels.read_trees(b"", ["/"], Wanted())
    assert implementation.kernels.read_trees(b"", [b"/missing"], Wanted()).trees[0].state == "unreadable"
