"""Hashing one file or many: reference digests, in order, with any engine."""

from __future__ import annotations

import os
import random
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from pressmark import _kernels
from pressmark.errors import AlgorithmError, FileError
from pressmark.fixity import (
    ALGORITHMS,
    Outcome,
    hash_file,
    hash_files,
    hash_tasks,
    hasher as hasher_module,
    pool as pool_module,
    read_ahead,
    scheduling,
    walk,
)
from pressmark.fixity.hasher import OpenOptions, transfer
from pressmark.progress_event import EventListener
from pressmark.reports import ProgressEvent
from support.implementations import NATIVE, Implementation, native_is_missing, use
from support.processes import run_python

from .trees import SIZES, content, expected, make

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")

COMBINATIONS = [
    *([name] for name in ALGORITHMS),
    ["sha512", "sha256", "md5"],
    ["blake3", "sha512", "xxh64"],
    ["sha3-256", "blake2s"],
    list(ALGORITHMS),
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return make(tmp_path_factory.mktemp("tree"))


def check(outcomes: list[Outcome], paths: list[str], names: list[str]) -> None:
    assert [outcome.path for outcome in outcomes] == paths
    for number, (outcome, size) in enumerate(zip(outcomes, SIZES, strict=True)):
        data = content(number, size)
        assert outcome.digests == {name: expected(data, name) for name in names}
        assert list(outcome.digests or ()) == names
        status = os.stat(outcome.path)
        assert (outcome.size, outcome.mtime_ns, outcome.inode) == (size, status.st_mtime_ns, status.st_ino)
        assert (outcome.ok, outcome.kind, outcome.message) == (True, None, "")


@pytest.mark.parametrize("names", COMBINATIONS, ids=lambda names: "+".join(names) if len(names) < 9 else "all")
def test_all_sizes(implementation: Implementation, tree: list[str], names: list[str]) -> None:
    """At every block and buffer boundary, each digest equals the library's, with two threads or five."""
    check(list(hash_files(tree, names, threads=2)), tree, names)
    check(list(hash_files(tree, names, threads=5, read="sequential")), tree, names)


def levels() -> list[str]:
    if native_is_missing():
        return []
    digests = __import__("pressmark._kernels.native._digests", fromlist=["levels"])
    known: list[str] = digests.levels()
    return known[: known.index(digests.best_level()) + 1]


@pytest.mark.parametrize("level", levels())
@pytest.mark.parametrize("name", ["md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha512/256", "blake2b-160"])
def test_every_level(level: str, name: str, tree: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes of every level equal hashlib, also where the plan would not use them."""
    from pressmark._kernels.native import _digests as digests

    before = digests.level()
    # All files use lanes: normally their number decides.
    monkeypatch.setattr(scheduling.Plan, "serial_files", lambda self, sizes, waiting: 0)
    monkeypatch.setattr(pool_module, "plan", scheduling.Plan)  # made anew
    monkeypatch.setitem(scheduling.SERIAL_RATES, name, 0.001)
    monkeypatch.setitem(scheduling.WITHOUT_EXTENSIONS, name, 0.001)
    digests.use_level(level)
    try:
        with use(NATIVE):
            assert bool(pool_module.plan([name], 1).lanes) == (_kernels.active.lane_count(name) > 1)
            for threads in (1, 3):
                check(list(hash_files(tree, [name], threads=threads)), tree, [name])
            check(list(hash_files(tree, [name, "blake2s"], threads=2)), tree, [name, "blake2s"])
    finally:
        digests.use_level(before)


@pytest.mark.parametrize("name", ["blake3", "xxh32", "xxh64", "xxh3-64", "xxh128"])
def test_small_files_need_no_hasher(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A native build hashes small files with fast libraries in one call each, and larger ones in parts."""
    if native_is_missing():
        pytest.skip("needs a native build")
    algorithm = ALGORITHMS[name]
    made: list[int] = []
    counting = algorithm._replace(make=lambda threads: made.append(threads) or algorithm.make(threads))
    monkeypatch.setitem(ALGORITHMS, name, counting)
    sizes = (0, 1, 4096, 16_384, 16_385, 65_536, 65_537)
    paths = make(tmp_path / "t", sizes * 20)
    with use(NATIVE):
        outcomes = list(hash_files(paths, [name], threads=2))
    assert len(made) == 1 + 20  # the first one is made to find out whether the algorithm is available
    wanted = [{name: expected(content(number, size), name)} for number, size in enumerate(sizes * 20)]
    assert [outcome.digests for outcome in outcomes] == wanted


def test_random_trees_are_the_same(pair: tuple[Implementation, ...], tmp_path: Path) -> None:
    """Both implementations give equal outcomes, failures included, on trees of random sizes."""
    draw = random.Random(11)
    for turn in range(4):
        folder = tmp_path / str(turn)
        make(folder, tuple(int(2 ** draw.uniform(0, 19)) for _ in range(60)))
        (folder / "00010-dangling").symlink_to("nowhere")
        (folder / "00020-loop").symlink_to("00020-loop")
        (folder / "00030-up").symlink_to(".")
        names = draw.sample(list(ALGORITHMS), 3)
        found = []
        for implementation in pair:
            with use(implementation):
                found.append(list(hash_files(walk(folder), names, threads=2)))
        assert found[0] == found[1]
        assert [outcome.kind for outcome in found[0] if not outcome.ok] == [
            "dangling-link",
            "link-loop",
            "directory-loop",
        ]


def test_one_file(tree: list[str]) -> None:
    """hash_file equals hash_files; the default is SHA-512."""
    for number, path in enumerate(tree):
        data = content(number, SIZES[number])
        assert hash_file(path) == {"sha512": expected(data, "sha512")}
        assert hash_file(os.fsencode(path), ["MD5", "blake3"]) == {
            "md5": expected(data, "md5"),
            "blake3": expected(data, "blake3"),
        }


LARGE_SIZE = (1 << 20) + 12345


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lower the size from which a file is large."""
    monkeypatch.setattr(hasher_module, "LARGE", 1 << 18)
    monkeypatch.setattr(read_ahead, "READ_SIZE", 1 << 16)
    path = tmp_path / "large"
    path.write_bytes(content(1, LARGE_SIZE))
    return path


@pytest.mark.parametrize("names", [["blake3"], ["sha512", "blake3", "md5", "xxh128"]], ids="+".join)
def test_a_large_file_on_several_threads(implementation: Implementation, large: Path, names: list[str]) -> None:
    """A large file hashed by threads of its own has the same digest."""
    wanted = {name: expected(content(1, LARGE_SIZE), name) for name in names}
    assert hash_file(large, names, threads=4) == wanted
    assert [outcome.digests for outcome in hash_files([large], names, threads=4)] == [wanted]


@pytest.mark.parametrize("size", [0, 4096, LARGE_SIZE // 2, LARGE_SIZE + 4096])
def test_a_large_file_that_changes(implementation: Implementation, large: Path, size: int) -> None:
    """A large file that shrinks or grows during the read has no digest; the next file has one."""
    reported: list[int] = []

    def cut(done: int) -> None:
        reported.append(done)
        if len(reported) == 1:
            os.truncate(large, size)

    manner = OpenOptions()
    with manner.opener() as opener:
        outcome = transfer(str(large), ["blake3"], manner, opener, 2, cut)
    assert (outcome.digests, outcome.kind) == (None, "changed-while-read")
    assert all(done > 0 for done in reported)
    large.write_bytes(content(8, LARGE_SIZE))
    (outcome,) = hash_files([large], ["blake3"], threads=2)
    assert outcome.digests == {"blake3": expected(content(8, LARGE_SIZE), "blake3")}


@pytest.mark.parametrize("without", [False, True], ids=["preadv", "seek"])
def test_reading_ahead(large: Path, monkeypatch: pytest.MonkeyPatch, without: bool) -> None:
    """Other threads read a large file while this one hashes it; this one reads, too, if it would wait."""
    if without:
        monkeypatch.delattr(os, "preadv", raising=False)
    readers: set[str] = set()
    begun = threading.Event()
    read_at = read_ahead.read_at

    def reading(*given: Any) -> int:
        reader = threading.current_thread().name
        readers.add(reader)
        if reader == "MainThread":
            assert begun.wait(60)
        begun.set()
        return read_at(*given)

    monkeypatch.setattr(read_ahead, "read_at", reading)
    for name in ("blake3", "sha512", "xxh128"):
        begun.clear()
        readers.clear()
        assert hash_file(large, [name], threads=3) == {name: expected(content(1, LARGE_SIZE), name)}
        assert "pressmark-read" in readers <= {"pressmark-read", "MainThread"}


@pytest.mark.parametrize("error", [OSError(5, "x"), MemoryError()], ids=["error of the file", "memory"])
@pytest.mark.parametrize("reader", ["pressmark-read", "MainThread"])
def test_a_failure_while_reading_ahead(
    large: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, reader: str
) -> None:
    """A failure of a thread that reads is the file's, or ends the run; no thread stays behind."""
    read_at = read_ahead.read_at
    failed = threading.Event()

    def failing(*given: Any) -> int:
        if threading.current_thread().name == reader:
            failed.set()
            raise error
        assert failed.wait(60)
        return read_at(*given)

    monkeypatch.setattr(read_ahead, "read_at", failing)
    if isinstance(error, MemoryError):
        with pytest.raises(MemoryError):
            hash_file(large, ["blake3"], threads=2)
    else:
        with pytest.raises(FileError) as caught:
            hash_file(large, ["blake3", "sha512"], threads=2)
        assert caught.value.kind == "io-error"
    assert not [thread for thread in threading.enumerate() if thread.name == "pressmark-read"]


# In another process: pytest has handlers, too.
HANDLERS = """
import sys
from pressmark.fixity import hasher, read_ahead

def caught():
    with open("/proc/self/status", encoding="ascii") as status:
        mask = next(line.split()[1] for line in status if line.startswith("SigCgt:"))
    # The C library keeps signals from 32 on for its threads.
    return int(mask, 16) & 0x7FFFFFFF

hasher.LARGE, read_ahead.READ_SIZE = 1 << 18, 1 << 16
before, seen = caught(), []
manner = hasher.OpenOptions()
with manner.opener() as opener:
    assert hasher.transfer({path!r}, ["blake3"], manner, opener, 2, lambda _: seen.append(caught())).ok
assert len(seen) > 0 and set(seen) == {{before}}, (before, seen)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="signal handlers are listed in /proc")
def test_no_signal_handler(implementation: Implementation, large: Path) -> None:
    """Hashing installs no signal handlers."""
    done = run_python(HANDLERS.format(path=str(large)), implementation=implementation.name)
    assert (done.returncode, done.stderr) == (0, "")


def test_invalid_arguments(tmp_path: Path) -> None:
    """Invalid arguments are refused before anything is read."""
    with pytest.raises(AlgorithmError):
        hash_files([], ["nope"])
    with pytest.raises(ValueError, match="links="):
        hash_files([], links="maybe")
    with pytest.raises(ValueError, match="read="):
        hash_files([], read="never")
    with pytest.raises(ValueError, match="threads="):
        hash_files([], threads=-1)
    with pytest.raises(ValueError, match="links="):
        hash_file(tmp_path, links="skip")
    assert list(hash_files([])) == []


def test_lazy_and_bounded(implementation: Implementation, tmp_path: Path) -> None:
    """An endless iterable is read at most a few thousand paths ahead; leaving ends the threads."""
    path = tmp_path / "x"
    path.write_bytes(b"x")
    taken = 0

    def endless() -> Iterator[Path]:
        nonlocal taken
        while True:
            taken += 1
            yield path

    outcomes = hash_files(endless(), ["md5"], threads=2)
    assert [outcome.ok for outcome in islice(outcomes, 3)] == [True] * 3
    assert taken <= pool_module.LOOK_AHEAD
    outcomes.close()  # type: ignore[attr-defined]


def test_order_with_a_slow_first_file(implementation: Implementation, tmp_path: Path) -> None:
    """Results are in input order although the first file is by far the largest."""
    paths = make(tmp_path / "t", (8 << 20, *([100] * 3000)))
    assert [outcome.path for outcome in hash_files(paths, ["md5"], threads=2)] == paths


def test_events(implementation: Implementation, tree: list[str]) -> None:
    """The last progress counts all files and bytes."""
    events: list[Any] = []
    list(hash_files([*tree, "nowhere"], ["sha512"], threads=2, progress=EventListener(events.append)))
    assert events[-1] == ProgressEvent(items=len(tree) + 1, bytes=sum(SIZES), failed=1)


def test_an_error_of_the_iterable_is_passed_on(implementation: Implementation, tree: list[str]) -> None:
    """An exception of the iterable is raised by the run, and no thread stays behind."""

    def broken() -> Iterator[str]:
        yield from tree
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(hash_files(broken(), ["md5"], threads=2))


def test_a_failing_worker_ends_the_run(
    implementation: Implementation, tree: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception in a worker is raised to the consumer; it is neither a hang nor a file's failure."""

    class Broken:
        def update(self, data: object) -> None:
            raise ZeroDivisionError

        def hexdigest(self) -> str:
            return ""

    algorithm = ALGORITHMS["sha3-256"]
    calls = iter([algorithm.make(1)])
    broken = type(algorithm)(algorithm.name, 32, "SHA3-256", lambda threads: next(calls, Broken()))
    monkeypatch.setitem(ALGORITHMS, "sha3-256", broken)
    with pytest.raises(ZeroDivisionError):
        list(hash_files(tree, ["sha512", "sha3-256"], threads=2))


# --- unreadable files ---------------------------------------------------------------------------------------------


def fifo(path: Path) -> Path:
    os.mkfifo(path)
    return path


def bound(path: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(path.parent)  # the path of a socket must be short
        try:
            server.bind(path.name)
        finally:
            os.chdir(here)
    return path


def link(path: Path, target: str) -> Path:
    path.symlink_to(target)
    return path


FAULTS: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "missing": (lambda folder: folder / "nowhere", "missing", "No such file or directory"),
    "below a file": (lambda folder: folder / "file" / "x", "missing", "Not a directory"),
    "dangling": (lambda folder: link(folder / "a", "nowhere"), "dangling-link", "dangling symbolic link"),
    "loop": (lambda folder: link(folder / "a", "a"), "link-loop", os.strerror(40)),
    "directory": (lambda folder: folder, "directory", "directory instead of a file"),
    "fifo": (lambda folder: fifo(folder / "a"), "fifo", "named pipe not opened"),
    "fifo behind a link": (
        lambda folder: link(folder / "b", fifo(folder / "a").name),
        "fifo",
        "named pipe not opened",
    ),
    "socket": (lambda folder: bound(folder / "a"), "socket", "socket not opened"),
    "device": (lambda folder: "/dev/zero", "device", "device not opened"),
    "NUL": (lambda folder: "a\0b", "bad-name", "path contains a NUL"),
    "long": (lambda folder: folder / ("x" * 5000), "bad-name", os.strerror(36)),
}


@posix
@pytest.mark.parametrize("fault", FAULTS)
def test_unreadable_files(implementation: Implementation, tmp_path: Path, fault: str) -> None:
    """Each unreadable file has its own kind and message, nothing blocks, and other files have digests."""
    (tmp_path / "file").write_bytes(b"abc")
    make_it, kind, message = FAULTS[fault]
    path = os.fspath(make_it(tmp_path))  # type: ignore[call-overload]
    outcomes = list(hash_files([tmp_path / "file", path, tmp_path / "file"], ["md5"], threads=2))
    assert [outcome.ok for outcome in outcomes] == [True, False, True]
    assert (outcomes[1].path, outcomes[1].digests) == (path, None)
    assert (outcomes[1].kind, outcomes[1].message) == (kind, message)
    with pytest.raises(FileError) as caught:
        hash_file(path, ["md5"])
    assert (caught.value.path, caught.value.kind, caught.value.reason) == (path, kind, message)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_permission(implementation: Implementation, tmp_path: Path) -> None:
    """A file without read permission is reported as such."""
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "a").chmod(0)
    assert [outcome.kind for outcome in hash_files([tmp_path / "a"])] == ["permission"]


@posix
def test_links_refused(implementation: Implementation, tmp_path: Path) -> None:
    """With links refused, any link is a failure."""
    (tmp_path / "file").write_bytes(b"abc")
    paths = [link(tmp_path / name, target) for name, target in (("a", "file"), ("b", "nowhere"), ("c", "c"))]
    outcomes = list(hash_files([*paths, tmp_path / "file"], ["md5"], links="refuse"))
    assert [outcome.kind for outcome in outcomes] == ["link", "link", "link", None]
    assert outcomes[0].message == "symbolic link not followed"


@pytest.mark.parametrize("threads", [1, 3])
def test_keys(implementation: Implementation, tmp_path: Path, threads: int) -> None:
    """Each outcome comes with the key of its task, which can be anything, also for failures and given outcomes."""
    paths: list[Any] = [*make(tmp_path, (5, 300_000, 0) * 300), str(tmp_path / "missing")]
    given = Outcome("given", {"md5": "known"}, 3, None, None)
    tasks = [([number], path) for number, path in enumerate(paths)]
    tasks[500:500] = [([-1], given)]
    found = list(hash_tasks(iter(tasks), ["md5"], threads))
    assert [key for key, _outcome in found] == [key for key, _path in tasks]
    assert found[500] == ([-1], given)
    assert [outcome.path for _key, outcome in found] == [*paths[:500], "given", *paths[500:]]
    assert [outcome.kind for _key, outcome in found] == [None] * (len(paths)) + ["missing"]


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="needs /proc")
def test_virtual_files(implementation: Implementation) -> None:
    """A virtual file of size zero has the digest of its content."""
    data = Path("/proc/version").read_bytes()
    outcomes = list(hash_files(["/proc/version"] * 20, ["md5"], threads=1))
    assert [outcome.digests for outcome in outcomes] == [{"md5": expected(data, "md5")}] * 20
    assert outcomes[0].size == len(data)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names are bytes on Linux")
def test_names_are_bytes(implementation: Implementation, tmp_path: Path) -> None:
    """Names that are not UTF-8 work as text and as bytes, and are returned as text."""
    name = os.path.join(os.fsencode(tmp_path), b"\xff\xfe\n")
    with open(name, "wb") as file:
        file.write(b"abc")
    paths = [name, os.fsdecode(name)] * 10
    assert [(o.path, o.ok) for o in hash_files(paths, ["md5"], threads=2)] == [(paths[1], True)] * 20


@pytest.mark.parametrize("read", ["parallel", "sequential"])
@pytest.mark.parametrize("names", [["sha512"], ["blake3", "sha3-256"]])
def test_few_small_files_start_no_thread(
    implementation: Implementation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], read: str
) -> None:
    """A few small files are hashed by the iterating thread; more files, or larger ones, by others."""
    started: list[object] = []
    start = pool_module.started
    monkeypatch.setattr(pool_module, "started", lambda thread: started.append(thread) or start(thread))
    paths = [str(tmp_path / name) for name in ("small", "empty", "none", "again")]
    for path, size in ((paths[0], 10_000), (paths[1], 0), (paths[3], 70_000)):
        Path(path).write_bytes(content(1, size))
    outcomes = list(hash_files(paths, names, threads=2, read=read))
    assert [outcome.digests for outcome in outcomes[:2]] == [
        {name: expected(content(1, size), name) for name in names} for size in (10_000, 0)
    ]
    assert outcomes[2].kind == "missing"
    assert outcomes[3].ok
    assert not started
    assert all(outcome.ok for outcome in hash_files(paths[:1] * 20, names, threads=2, read=read))
    assert started
