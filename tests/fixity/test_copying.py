"""Copies, clones and hard links: correct content and digests, with one read."""

from __future__ import annotations

import errno
import io
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from fixity.trees import SIZES, content, expected, make
from pressmark.errors import AlgorithmError, BagError
from pressmark.fixity import Outcome, copying, hasher
from pressmark.fixity.copying import Copying, copy_files
from pressmark.fixity.hasher import LARGE, OpenOptions, transfer
from pressmark.fixity.outcomes import Content, require_written
from pressmark.fixity.pool import hash_tasks
from pressmark.progress_event import EventListener
from pressmark.reports import ProgressEvent
from pressmark.threads import Cancelled, Threads
from support.implementations import PURE, Implementation, use

MODES = ("copy", "hardlink", "auto")


Task = tuple[int, bytes, bytes]


def jobs(paths: list[str], folder: Path) -> list[Task]:
    """Return the tasks that copy files into a folder; their keys are numbers."""
    folder.mkdir(exist_ok=True)
    return [
        (number, os.fsencode(path), os.fsencode(folder / os.path.basename(path))) for number, path in enumerate(paths)
    ]


def copied(tasks: list[Task], *how: Any, **options: Any) -> list[Outcome]:
    """Copy files, and return their outcomes; each has the key of its task."""
    found = list(copy_files(tasks, *how, **options))
    assert [key for key, _outcome in found] == [key for key, _source, _target in tasks]
    return [outcome for _key, outcome in found]


def one_copy(
    source: Path, target: Path, names: tuple[str, ...] = ("md5",), threads: int = 1, **options: Any
) -> Outcome:
    """Copy a file without the kernels."""
    how = OpenOptions(False)
    with how.opener() as opener:
        return transfer(os.fsencode(source), names, how, opener, threads, copy=os.fsencode(target), **options)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("read", ["parallel", "sequential"])
def test_every_size(implementation: Implementation, tmp_path: Path, mode: str, read: str) -> None:
    """The copy has the content of the original, and the outcome its digests in the given order."""
    paths = make(tmp_path / "s")
    wanted = jobs(paths, tmp_path / "t")
    outcomes = copied(wanted, ("sha512", "md5"), mode=mode, read=read, threads=3)
    for size, (number, source, target), outcome in zip(SIZES, wanted, outcomes, strict=True):
        data = content(number, size)
        assert outcome.path == os.fsdecode(source)
        assert Path(os.fsdecode(target)).read_bytes() == data
        assert outcome.digests == {name: expected(data, name) for name in ("sha512", "md5")}
        assert (outcome.size, outcome.mtime_ns) == (size, os.stat(source).st_mtime_ns)


@pytest.mark.parametrize("names", [("sha512",), ("sha512", "md5", "blake3"), ("xxh64",), ()])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_large_file(tmp_path: Path, names: tuple[str, ...], threads: int) -> None:
    """A file copied by several threads, with a short last block."""
    data = content(1, 1 << 20) * (LARGE >> 20) + b"end"
    (tmp_path / "s").write_bytes(data)
    counted: list[int] = []
    outcome = one_copy(tmp_path / "s", tmp_path / "t", names, threads, on_bytes=counted.append)
    assert outcome.digests == {name: expected(data, name) for name in names}
    assert (tmp_path / "t").read_bytes() == data
    assert sum(counted) == len(data)


def test_each_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is read once for any number of digests, and a small one in one call."""
    paths = make(tmp_path / "s", (10, 200_000))
    sizes: list[int] = []
    real = hasher._readinto

    def read(file: Any, buffer: memoryview) -> int:
        sizes.append(real(file, buffer))
        return sizes[-1]

    monkeypatch.setattr(hasher, "_readinto", read)
    with use(PURE):
        list(copy_files(jobs(paths, tmp_path / "t"), ("sha512", "md5", "sha1"), threads=1))
    assert sorted(sizes) == [10, 200_000]


def test_events(tmp_path: Path) -> None:
    """Events announce the copy mode and the progress."""
    paths = make(tmp_path / "s", (10, 20, 30))
    events: list[Any] = []
    list(copy_files(jobs(paths, tmp_path / "t"), ("md5",), progress=EventListener(events.append)))
    assert events[0] == Copying("copy")
    assert events[-1] == ProgressEvent(items=3, bytes=60)
    assert list(copy_files([], ("md5",), mode="auto")) == []
    with pytest.raises(AlgorithmError):
        list(copy_files([], ("none",)))


@pytest.mark.parametrize("mode", MODES)
def test_originals_that_fail(tmp_path: Path, mode: str) -> None:
    """A failing original is an outcome in its place, and the others are copied."""
    paths = make(tmp_path / "s", (10, 20))
    (tmp_path / "s" / "link").symlink_to(paths[0])
    os.mkfifo(tmp_path / "s" / "pipe")
    (tmp_path / "s" / "folder").mkdir()
    names = ("link", "pipe", "folder", "nothing")
    given = [paths[0], *(str(tmp_path / "s" / name) for name in names), paths[1]]
    outcomes = copied(jobs(given, tmp_path / "t"), ("md5",), mode=mode)
    assert [outcome.kind for outcome in outcomes] == [None, "link", "fifo", "directory", "missing", None]
    assert [outcome.path for outcome in outcomes] == given
    assert sorted(os.listdir(tmp_path / "t")) == ["00000-10", "00001-20"]


@pytest.mark.parametrize("mode", MODES)
def test_links_that_are_followed(tmp_path: Path, mode: str) -> None:
    """The target of a link is copied, not the link."""
    (path,) = make(tmp_path / "s", (10,))
    (tmp_path / "l").symlink_to(path)
    (outcome,) = copied(jobs([str(tmp_path / "l")], tmp_path / "t"), ("md5",), mode=mode, links="follow")
    assert outcome.ok
    assert not (tmp_path / "t" / "l").is_symlink()
    assert (tmp_path / "t" / "l").read_bytes() == content(0, 10)


def test_hard_links(tmp_path: Path) -> None:
    """A hard link is the same file; if the system refuses it, the error names the remedy."""
    (path,) = make(tmp_path / "s", (10,))
    list(copy_files(jobs([path], tmp_path / "t"), ("md5",), mode="hardlink"))
    assert os.path.samefile(path, tmp_path / "t" / "00000-10")
    other = next((place for place in ("/dev/shm", "/proc/self") if os.stat(place).st_dev != os.stat(path).st_dev), None)
    if other == "/dev/shm":
        job = (0, os.fsencode(path), b"/dev/shm/pressmark-test-%d" % os.getpid())
        with pytest.raises(
            BagError, match=r"cannot be hard-linked \(Invalid cross-device link\); use copy_mode='copy'"
        ):
            list(copy_files([job], ("md5",), mode="hardlink"))


def test_clones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clones are read only to be hashed; where cloning is impossible, auto copies and reflink fails."""
    paths = make(tmp_path / "s", (10, 20_000))
    asked: list[tuple[int, int]] = []

    def ficlone(source: int, target: int) -> None:
        asked.append((source, target))
        os.write(target, os.pread(source, 1 << 20, 0))

    monkeypatch.setattr(copying, "_ficlone", ficlone)
    for mode in ("reflink", "auto"):
        asked.clear()
        events: list[Any] = []
        outcomes = copied(jobs(paths, tmp_path / mode), ("md5",), mode=mode, progress=EventListener(events.append))
        assert events[0] == Copying("reflink")
        assert [outcome.digests for outcome in outcomes] == [
            {"md5": expected(content(number, size), "md5")} for number, size in enumerate((10, 20_000))
        ]
        assert len(asked) == (2 if mode == "reflink" else 3)
        assert os.stat(tmp_path / mode / "00000-10").st_mtime_ns == os.stat(paths[0]).st_mtime_ns

    def cannot(_source: int, _target: int) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(copying, "_ficlone", cannot)
    with pytest.raises(BagError, match=r"cannot be cloned \(Operation not supported\); use copy_mode='auto'"):
        list(copy_files(jobs(paths, tmp_path / "no"), ("md5",), mode="reflink"))
    assert os.listdir(tmp_path / "no") == []
    list(copy_files(jobs(paths, tmp_path / "no"), ("md5",), mode="auto"))
    assert len(os.listdir(tmp_path / "no")) == 2
    # A first file that cannot be read does not show whether the others can be cloned.
    missing, *others = jobs(["nothing", *paths], tmp_path / "unknown")
    found = copied([missing, *others], ("md5",), mode="auto")
    assert [outcome.kind for outcome in found] == ["missing", None, None]


def test_copies_that_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that cannot be written is an outcome with its own path, and the other files are copied."""
    paths = make(tmp_path / "s", (10, 20, 30))
    wanted = jobs(paths, tmp_path / "t")
    mine = tmp_path / "t" / "00001-20"
    mine.write_bytes(b"mine")
    for mode in ("copy", "hardlink"):
        for names in (("md5",), ()):
            first, failed, last = copied(wanted, names, mode=mode)
            assert (first.ok, first.path, last.ok) == (True, os.fsdecode(wanted[0][1]), True)
            assert failed == Outcome(
                os.fsdecode(mine), None, None, None, None, "not-written", "File exists", number=errno.EEXIST
            )
            require_written(first)
            with pytest.raises(FileExistsError) as raised:
                require_written(failed)
            assert raised.value.filename == os.fsdecode(mine)
            for name in ("00000-10", "00002-30"):
                (tmp_path / "t" / name).unlink()
    assert mine.read_bytes() == b"mine"

    def full(_descriptor: int, _data: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with use(PURE):
        found = copied(jobs(paths, tmp_path / "u"), ("md5",))
    assert [(one.kind, one.number, one.message) for one in found] == [
        ("not-written", errno.ENOSPC, os.strerror(errno.ENOSPC))
    ] * 3
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("pressmark")]


def test_timeouts_of_the_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A timeout of the file system is an ordinary failure."""
    paths = make(tmp_path / "s", (10,))

    def late(_descriptor: int, _data: object) -> int:
        raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))

    monkeypatch.setattr(os, "write", late)
    with use(PURE):
        (outcome,) = copied(jobs(paths, tmp_path / "t"), ("md5",))
    assert (outcome.kind, outcome.number) == ("not-written", errno.ETIMEDOUT)


@pytest.mark.parametrize("size", [10, LARGE])
@pytest.mark.parametrize("what", ["longer", "shorter", "touched"])
def test_originals_that_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, what: str) -> None:
    """An original that changes during the copy has no digest."""
    path = tmp_path / "s"
    path.write_bytes(bytes(size))
    real = hasher._readinto
    done = False

    def read(file: Any, buffer: memoryview) -> int:
        nonlocal done
        if not done:
            done = True
            if what == "longer":
                with open(path, "ab") as grown:
                    grown.write(b"x" * 10)
            elif what == "shorter":
                os.truncate(path, 5)
            else:
                os.utime(path, (1, 1))
        return real(file, buffer)

    monkeypatch.setattr(hasher, "_readinto", read)
    outcome = one_copy(path, tmp_path / "t")
    assert (outcome.digests, outcome.kind) == (None, "changed-while-read")
    assert (tmp_path / "t").exists() == (size == LARGE)


def test_an_endlessly_growing_original(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copying an endlessly growing file ends."""
    path = tmp_path / "s"
    path.write_bytes(b"begin")
    monkeypatch.setattr(hasher, "_readinto", lambda _file, buffer: len(buffer))
    outcome = one_copy(path, tmp_path / "t")
    assert outcome.kind == "changed-while-read"


def test_ending_early(tmp_path: Path) -> None:
    """Closing the generator ends the run at once, even inside a file, with its threads."""
    paths = make(tmp_path / "s", (10,) * 50)
    running = copy_files(jobs(paths, tmp_path / "t"), ("md5",), threads=2)
    key, outcome = next(running)
    assert (key, outcome.ok) == (0, True)
    running.close()
    made = sorted(os.listdir(tmp_path / "t"))
    for thread in threading.enumerate():
        if thread.name.startswith("pressmark"):
            thread.join(60)
            assert not thread.is_alive()
    assert sorted(os.listdir(tmp_path / "t")) == made


def contents() -> list[tuple[Content, bytes | None]]:
    """Return content of every kind, and its bytes, or None if it cannot be read."""
    data = content(1, 3_000_000)
    closed, ended = io.BytesIO(data), io.BytesIO(data)
    closed.close()
    ended.read()
    return [
        (Content(b"few", "bytes"), b"few"),
        (Content(memoryview(data).cast("I"), b"view"), data),
        (Content(b"", "empty"), b""),
        (Content(io.BytesIO(data), "open"), data),
        (Content(closed, "closed"), None),
        (Content(ended, "ended"), None),
        (Content(io.StringIO("text"), "text"), None),
    ]


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("mode", [*MODES, None])
def test_content(implementation: Implementation, tmp_path: Path, mode: str | None, many: bool) -> None:
    """Bytes and open files are sources like files, in their places, to be hashed (None) or copied."""
    (path,) = make(tmp_path / "s", (200_000,))
    given = contents()
    sources: list[Any] = [one for one, _data in given]
    sources[3:3] = [os.fsencode(path)] * (300 if many else 1)
    if mode is None:
        found = list(hash_tasks(enumerate(sources), ("md5",)))
    else:
        (tmp_path / "t").mkdir()
        folder = os.fsencode(tmp_path / "t")
        tasks = [(number, source, b"%b/%d" % (folder, number)) for number, source in enumerate(sources)]
        found = list(copy_files(tasks, ("md5",), mode=mode))
    assert [key for key, _outcome in found] == list(range(len(sources)))
    for number, outcome in found:
        if isinstance(sources[number], bytes):
            data: bytes | None = content(0, 200_000)
            assert outcome.path == os.fsdecode(sources[number])
        else:
            data = next(data for one, data in given if one is sources[number])
            assert outcome.path == os.fsdecode(sources[number].name)
        assert outcome.digests == (None if data is None else {"md5": expected(data, "md5")})
        if data is not None and mode is not None:
            assert (tmp_path / "t" / str(number)).read_bytes() == data
            assert outcome.size == len(data)
    assert [outcome.message for _key, outcome in found if not outcome.ok] == [
        "cannot be read: I/O operation on closed file.",
        "the file is at its end, so that nothing is left to read; open it again, or call seek(0) first",
        "the file is not open in binary mode; specify an open binary file",
    ]


def test_content_that_cannot_be_written(tmp_path: Path) -> None:
    """Content never overwrites a file."""
    (tmp_path / "t").write_bytes(b"mine")
    ((_key, outcome),) = copy_files([("key", Content(b"other"), os.fsencode(tmp_path / "t"))], ("md5",))
    assert (outcome.kind, outcome.path) == ("not-written", str(tmp_path / "t"))
    assert (tmp_path / "t").read_bytes() == b"mine"


def test_status(tmp_path: Path) -> None:
    """Permission bits and times are kept; setuid, setgid and sticky bits are not."""
    path = tmp_path / "s"
    path.write_bytes(b"x")
    os.chmod(path, 0o6751)
    os.utime(path, ns=(1_234_567_891, 2_345_678_912))
    assert one_copy(path, tmp_path / "t").ok
    status = os.stat(tmp_path / "t")
    assert stat.S_IMODE(status.st_mode) == 0o751
    assert status.st_mtime_ns == 2_345_678_912


def test_a_copy_that_is_not_needed(tmp_path: Path) -> None:
    """A run in a thread ends within a large file when its result is no longer needed."""
    with (tmp_path / "large").open("wb") as file:
        file.truncate(64 << 30)
    begun = threading.Event()

    def copy() -> list[object]:
        tasks = [("large", os.fsencode(tmp_path / "large"))]
        return list(hash_tasks(tasks, ("sha512",), progress=EventListener(lambda _event: begun.set())))

    with Threads(1, "test") as pool:
        running = pool.submit(copy)
        assert begun.wait(60)
    assert isinstance(running.exception(), Cancelled)
