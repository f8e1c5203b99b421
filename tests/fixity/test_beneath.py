"""Paths beneath a directory: files there are read as usual, and nothing outside is opened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pressmark.errors import FileError
from pressmark.fixity import Ledger, Outcome, hash_file, hash_files, hasher as hasher_module, open_directory, walk
from pressmark.fixity.hasher import READ_SIZE
from pressmark.fs import beneath as ways_module
from pressmark.fs.beneath import KEPT
from pressmark.progress_event import EventListener
from support.implementations import Implementation, use
from support.replacing import Opened, exchanging

from .conftest import environment
from .test_faults import FILES
from .trees import HOSTILE, content, expected, make, sha512

pytestmark = pytest.mark.skipif(not ways_module.HAS_DESCRIPTORS, reason="needs POSIX files")

TRIES = 3000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A directory other than the current one, with files at several depths."""
    root = tmp_path / "root"
    make(root)
    for depth in range(1, 2 * KEPT + 3):
        folder = root.joinpath(*["d"] * depth)
        folder.mkdir()
        (folder / "file").write_bytes(content(depth, 100 * depth))
    make(root / "d" / "e" / "f")
    return root


@pytest.fixture(params=["descriptor", "name"])
def reach(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The reference to a directory: a descriptor, or a path as on Windows."""
    if request.param == "name":
        for module in (ways_module, hasher_module):
            monkeypatch.setattr(module, "HAS_DESCRIPTORS", False)
    return str(request.param)


def relative(outcomes: Iterator[Outcome], root: Path) -> list[Outcome]:
    return [outcome._replace(path=os.path.relpath(outcome.path, root)) for outcome in outcomes]


@pytest.mark.parametrize("names", [["sha512"], ["md5", "blake3"], ["sha3-256"]], ids="+".join)
@pytest.mark.parametrize("read", ["parallel", "sequential"])
def test_the_same_as_without(
    implementation: Implementation, root: Path, names: list[str], read: str, reach: str
) -> None:
    """Outcomes equal those of absolute paths, for text and bytes, and no descriptor leaks."""
    wanted = relative(hash_files(walk(root), names, threads=2), root)
    before = len(os.listdir("/dev/fd"))
    with open_directory(root) as beneath:
        paths = list(walk(".", beneath=beneath))
        assert list(hash_files(paths, names, threads=2, read=read, beneath=beneath)) == wanted
        encoded = walk(b"", beneath=beneath)
        assert [o.path for o in hash_files(encoded, names, beneath=beneath)] == paths
        assert list(walk("d/e", beneath=beneath)) == [path for path in paths if str(path).startswith("d/e/")]
        # Another order: no file shares a directory with the one before.
        turned = sorted(wanted, key=lambda outcome: outcome.path[::-1])
        assert list(hash_files([outcome.path for outcome in turned], names, read=read, beneath=beneath)) == turned
    assert len(os.listdir("/dev/fd")) == before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names are bytes on Linux")
def test_names_are_bytes(implementation: Implementation, tmp_path: Path) -> None:
    """Any file name works beneath a directory."""
    for name in HOSTILE:
        with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:
            file.write(name)
    with open_directory(tmp_path) as beneath:
        for root in (b".", "."):
            outcomes = list(hash_files(walk(root, beneath=beneath), ["md5"], beneath=beneath))
            assert [os.fsencode(outcome.path) for outcome in outcomes] == sorted(HOSTILE)
            for outcome in outcomes:
                assert outcome.digests == {"md5": expected(os.fsencode(outcome.path), "md5")}


REFUSED: dict[str, tuple[str, str]] = {
    "to-file": ("link", "symbolic link not followed"),
    "to-outside": ("link", "symbolic link not followed"),
    "to-nowhere": ("link", "symbolic link not followed"),
    "to-itself": ("link", "symbolic link not followed"),
    "to-directory": ("link", "symbolic link not followed"),
    "to-directory/file": ("link", "symbolic link in path"),
    "d/up/file": ("link", "symbolic link in path"),
    "d/up/d/up/outside/secret": ("link", "symbolic link in path"),
    "to-above/outside/secret": ("link", "symbolic link in path"),
    "to-nowhere/x": ("link", "symbolic link in path"),
    "../outside/secret": ("bad-name", "path contains '..'; expected a path beneath the directory"),
    "d/../file": ("bad-name", "path contains '..'; expected a path beneath the directory"),
    "d/..": ("bad-name", "path contains '..'; expected a path beneath the directory"),
    "nowhere/../../outside/secret": (
        "bad-name",
        "path contains '..'; expected a path beneath the directory",
    ),
    "/etc/hostname": ("bad-name", "path is absolute; expected a path beneath the directory"),
    "//d/file": ("bad-name", "path is absolute; expected a path beneath the directory"),
    "": ("bad-name", "path is empty"),
    ".": ("bad-name", "path does not end with a file name"),
    "d/": ("bad-name", "path does not end with a file name"),
    "d/file/": ("bad-name", "path does not end with a file name"),
    "d/.": ("bad-name", "path does not end with a file name"),
    "a\0b": ("bad-name", "path contains a NUL"),
    "d/a\0b/c": ("bad-name", "path contains a NUL"),
    "x/" * 2047 + "xx": ("bad-name", os.strerror(36)),
    "d/" + "x" * 256: ("bad-name", os.strerror(36)),
    "x" * 256 + "/y": ("bad-name", os.strerror(36)),
    "nowhere": ("missing", os.strerror(2)),
    "nowhere/x": ("missing", os.strerror(2)),
    "d/file/x": ("missing", os.strerror(20)),
    "d": ("directory", "directory instead of a file"),
    "d/pipe": ("fifo", "named pipe not opened"),
}


@pytest.fixture
def hostile(root: Path, tmp_path: Path) -> Path:
    """The same with links and a named pipe among the files."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"secret")
    for name, target in {
        "to-file": "d/file",
        "to-outside": "../outside/secret",
        "to-nowhere": "nowhere",
        "to-itself": "to-itself",
        "to-directory": "d",
        "to-above": "..",
        "d/up": "..",
    }.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "d" / "pipe")
    return root


def test_refused_paths(implementation: Implementation, hostile: Path, reach: str) -> None:
    """Links, also in the middle of a path, and paths that lead out fail; other files have their digests."""
    paths = [path for refused in REFUSED for path in ("d/file", refused)]
    known = {os.strerror(36), os.strerror(2), os.strerror(20)}
    with open_directory(hostile) as beneath:
        for given in (paths, [os.fsencode(path) for path in paths]):
            outcomes = list(hash_files(given, ["sha512"], threads=2, beneath=beneath))
            assert [outcome.path for outcome in outcomes] == paths
            for outcome, refused in zip(outcomes[1::2], REFUSED, strict=True):
                kind, message = REFUSED[refused]
                if reach == "name" and message in known:
                    continue  # an equivalent path; the platform that needs this has its own
                assert (outcome.digests, outcome.kind, outcome.message) == (None, kind, message), refused
            digests = {"sha512": sha512(hostile / "d" / "file")}
            assert [outcome.digests for outcome in outcomes[::2]] == [digests] * len(REFUSED)


def test_redundant_segments(implementation: Implementation, root: Path, reach: str) -> None:
    """Redundant path segments are accepted."""
    digests = {"md5": expected(content(1, 100), "md5")}
    with open_directory(root) as beneath:
        for path in ("./d/file", "d//file", "d/./file", ".//./d///file"):
            assert [o.digests for o in hash_files([path], ["md5"], beneath=beneath)] == [digests]
            assert hash_file(path, ["md5"], beneath=beneath) == digests


def test_one_file(hostile: Path, reach: str) -> None:
    """hash_file refuses the same paths as hash_files."""
    with open_directory(hostile) as beneath:
        for path in ("to-file", "to-directory/file", "../outside/secret"):
            with pytest.raises(FileError) as caught:
                hash_file(path, beneath=beneath)
            assert (caught.value.kind, caught.value.reason) == REFUSED[path]


def test_walk(hostile: Path, reach: str) -> None:
    """The walk follows no link, lists or skips each, and refuses to start outside."""
    with open_directory(hostile) as beneath:
        found = {item.path: item.kind for item in walk(".", beneath=beneath) if isinstance(item, Outcome)}
        links = dict.fromkeys(["d/up", "to-above", "to-directory", "to-file", "to-itself", "to-nowhere"], "link")
        assert found == {"d/pipe": "fifo", "to-outside": "link", **links}
        skipped = [item for item in walk(".", links="skip", beneath=beneath) if isinstance(item, Outcome)]
        assert [item.path for item in skipped] == ["d/pipe"]
        for top in ("..", "/", "to-above", "to-directory/e", "nowhere", "d/file"):
            assert list(walk(top, beneath=beneath)) == [top]


def test_references_to_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory is a descriptor here and a path on Windows; anything else is refused."""
    with pytest.raises(ValueError, match="expected the descriptor of a directory"):
        hash_files([], beneath=os.fspath(tmp_path))
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(NotADirectoryError), open_directory(tmp_path / "file"):
        pass
    monkeypatch.setattr(hasher_module, "HAS_DESCRIPTORS", False)
    monkeypatch.setattr(ways_module, "HAS_DESCRIPTORS", False)
    with pytest.raises(ValueError, match="expected the path of a directory"):
        hash_files([], beneath=3)
    with pytest.raises(NotADirectoryError), open_directory(tmp_path / "file"):
        pass


def test_a_directory_in_the_place_of_another(
    implementation: Implementation, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cached descriptor expires: a directory that replaces another one is read."""
    monkeypatch.setattr(ways_module, "MOMENT", 0.0)

    def paths() -> Iterator[str]:
        yield "d/e/f/00001-1"
        (root / "d" / "e").rename(root / "old")
        (root / "d" / "e" / "f").mkdir(parents=True)
        (root / "d" / "e" / "f" / "00001-1").write_bytes(b"new")
        yield from ["d/e/f/00001-1"] * 3

    with open_directory(root) as beneath:
        outcomes = [next(hash_files([path], ["md5"], beneath=beneath)) for path in paths()]
        found = list(hash_files(["d/e/f/00001-1"] * 600, ["sha3-256"], beneath=beneath))
    assert [outcome.digests for outcome in outcomes[1:]] == [{"md5": expected(b"new", "md5")}] * 3
    assert {str(outcome.digests) for outcome in found} == {str({"sha3-256": expected(b"new", "sha3-256")})}


def test_ledger(implementation: Implementation, root: Path, tmp_path: Path) -> None:
    """A ledger records files by their paths beneath, and they are not read again."""
    outcomes = []
    with open_directory(root) as beneath:
        for turn in range(2):
            with Ledger(tmp_path / "ledger", ["sha512"], [os.path.abspath(root)]) as ledger:
                events: list[object] = []
                found = hash_files(
                    walk(".", beneath=beneath),
                    ["sha512"],
                    progress=EventListener(events.append),
                    ledger=ledger,
                    beneath=beneath,
                )
                outcomes.append(list(found))
                assert (events[-1].bytes == 0) == (turn == 1)  # type: ignore[attr-defined]
    assert outcomes[0] == outcomes[1]


# --- race conditions ----------------------------------------------------------------------------------------------


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs inotify")
@pytest.mark.parametrize("algorithm", ["sha512", "sha3-256"])
def test_nothing_outside_is_ever_opened(implementation: Implementation, tmp_path: Path, algorithm: str) -> None:
    """While a directory alternates with a link, thousands of reads open files inside it, or nothing."""
    inside, outside = tmp_path / "root" / "a" / "b", tmp_path / "outside"
    names = ["small", "large"]
    for folder, byte in ((inside, b"i"), (outside, b"o")):
        folder.mkdir(parents=True)
        for name, size in zip(names, (1000, READ_SIZE + 1), strict=True):
            (folder / name).write_bytes(byte * size)
    wanted = {name: hash_file(inside / name, [algorithm]) for name in names}
    opened = Opened(outside)
    os.close(os.open(outside / "small", os.O_RDONLY))
    assert opened.count() == 1  # the counter works
    turn, done = exchanging(inside, outside), threading.Event()

    def exchange() -> None:
        while not done.is_set():
            turn()

    thread = threading.Thread(target=exchange)
    thread.start()
    kinds: dict[str | None, int] = {}
    tries = TRIES
    try:
        with open_directory(tmp_path / "root") as beneath:
            # On a busy machine, one of both may be in place for a long time.
            while tries > 0 or (tries > -100 * TRIES and not {None, "link"} <= kinds.keys()):
                paths = [f"a/b/{name}" for name in ["small"] * 19 + ["large"]] * 10
                for outcome in hash_files(paths, [algorithm], threads=2, beneath=beneath):
                    tries -= 1
                    kinds[outcome.kind] = kinds.get(outcome.kind, 0) + 1
                    if outcome.ok:
                        assert outcome.digests == wanted[os.path.basename(outcome.path)]
                    else:
                        assert outcome.kind in ("link", "changed-while-read"), outcome
                list(walk(".", beneath=beneath))
    finally:
        done.set()
        thread.join()
    assert opened.count() == 0
    assert {None, "link"} <= kinds.keys(), kinds
    opened.close()


SCRIPT = """
import json, sys
from pressmark.fixity import hash_files, open_directory, walk
with open_directory("files") as beneath:
    for outcome in hash_files(walk(".", beneath=beneath), sys.argv[1].split(","), 2, beneath=beneath):
        print(json.dumps([outcome.path, outcome.digests, outcome.message]))
    for outcome in hash_files([*sys.argv[2:], *["d/plain"] * 40], sys.argv[1].split(","), 2, beneath=beneath):
        print(json.dumps([outcome.path, outcome.digests, outcome.message]))
"""


@pytest.mark.parametrize("old_kernel", ["", "yes"], ids=["openat2", "steps"])
@pytest.mark.parametrize("algorithm", ["sha512", "sha3-256"])
def test_changes_and_failures(
    implementation: Implementation, faults: str, tmp_path: Path, algorithm: str, old_kernel: str
) -> None:
    """Changes to a file during its read are detected beneath a directory, too, with old and new kernels."""
    folder = tmp_path / "files"
    (folder / "d").mkdir(parents=True)
    (folder / "d" / "plain").write_bytes(b"plain")
    (folder / "to-d").symlink_to("d")
    said: dict[str, str | None] = {"d/plain": None, "to-d": "symbolic link not followed"}
    for turn in range(8):
        for number, (name, (size, message)) in enumerate(FILES.items()):
            (folder / f"{name}-{turn}").write_bytes(content(number, size))
            said[f"{name}-{turn}"] = message
    variables = {"LD_PRELOAD": faults, "PRESSMARK_IMPLEMENTATION": str(implementation)}
    if old_kernel:
        variables["OLD_KERNEL"] = old_kernel
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, algorithm, "to-d/plain", "d/plain/x", "./d//plain", "x/y"],
        cwd=tmp_path,
        env=environment(**variables),
        capture_output=True,
        check=False,
    )
    assert done.stderr == b""
    found = [json.loads(line) for line in done.stdout.splitlines()]
    first, second = found[: len(said)], found[len(said) :]
    assert {path: message for path, _digests, message in first} == {path: text or "" for path, text in said.items()}
    plain = {algorithm: expected(b"plain", algorithm)}
    assert second == [
        ["to-d/plain", None, "symbolic link in path"],
        ["d/plain/x", None, os.strerror(20)],
        ["./d//plain", plain, ""],
        ["x/y", None, os.strerror(2)],
        *[["d/plain", plain, ""]] * 40,
    ]


def test_implementations_agree(pair: tuple[Implementation, ...], hostile: Path) -> None:
    """Both implementations give equal outcomes for all files of a walk and for all refusals."""
    found = []
    with open_directory(hostile) as beneath:
        for implementation in pair:
            with use(implementation):
                paths = [*walk(".", beneath=beneath), *REFUSED]
                found.append(list(hash_files(paths, ["sha512", "blake3"], threads=2, beneath=beneath)))
    assert found[0] == found[1]
