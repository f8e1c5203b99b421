"""Work folders: complete plans and receipts, one scheduler at a time, no mix of runs."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pressmark import jobs
from pressmark.errors import JobError
from pressmark.jobs import WorkFolder
from pressmark.jobs.chunks import LEAST, PARTS, SMALL, Chunk, ChunkBuilder
from pressmark.jobs.receipts import FailedChunk, Receipt
from pressmark.jobs.run import run_chunk, unseen
from support.processes import PACKAGE

from .samples import Numbers, check_numbers, plan, work_folder


def done(work: WorkFolder, count: int, job: Numbers | None = None) -> None:
    """Do the first chunks in this process."""
    job = job or Numbers()
    for chunk in plan(count):
        assert isinstance(run_chunk(job, chunk, work.for_workers(job)), Receipt)


def test_contents_of_a_folder(tmp_path: Path) -> None:
    """A reopened folder has the plan, the key and the parameters of its creation."""
    work = work_folder(tmp_path / "work", 3)
    again = WorkFolder.open(work.path)
    assert list(again.chunks()) == list(again.remaining()) == plan(3)
    assert (again.job_key, again.plan_sha256, again.parameters) == (Numbers().key, work.plan_sha256, {"factor": 1})
    done(work, 2)
    assert [chunk.id for chunk in again.remaining()] == ["002"]
    assert again.summary()[:6] == (3, 2, 20, 20, 0, {"ok": 20})
    # No database on a shared disk, whose locks may not work.
    assert not [name for name in os.listdir(work.path) if "sqlite" in name or name.endswith((".db", "-wal"))]


def test_plans_are_streamed(tmp_path: Path) -> None:
    """Chunks are written as they are planned, and a plan may write listings to the folder meanwhile."""

    def chunks() -> Iterator[Chunk]:
        (tmp_path / "work" / "listing").write_text("x")
        yield from plan(2)

    work = WorkFolder.create(tmp_path / "work", Numbers(), chunks())
    assert (work.path / "listing").exists()


def test_an_unfinished_plan_is_not_a_run(tmp_path: Path) -> None:
    """A failed plan leaves no run, and can be repeated."""

    def chunks() -> Iterator[Chunk]:
        yield from plan(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        WorkFolder.create(tmp_path, Numbers(), chunks())
    with pytest.raises(JobError, match=r"no run found \(run.json is missing\)"):
        WorkFolder.open(tmp_path)
    assert list(work_folder(tmp_path, 2).chunks()) == plan(2)


@pytest.mark.parametrize(
    ("chunk", "reason"),
    [
        (Chunk("../x", "k", "", 0, 1, 0), "invalid chunk id '../x'"),
        (Chunk("a.b", "k", "", 0, 1, 0), "invalid chunk id 'a.b'"),
        (Chunk("a", "k", "", 2, 1, 0), "start 2, stop 1"),
        (Chunk("a", "k", "", 0, True, 0), "stop is True"),
        (Chunk("A0", "k", "", 0, 1, 0), "duplicate chunk id 'A0'"),
    ],
)
def test_invalid_chunk_ids(tmp_path: Path, chunk: Chunk, reason: str) -> None:
    """A chunk's id names its receipt: it must be a file name, and differ from others in more than case."""
    with pytest.raises(ValueError, match=reason):
        WorkFolder.create(tmp_path, Numbers(), [Chunk("a0", "k", "", 0, 1, 0), chunk])


# --- refusals -----------------------------------------------------------------------------------------------------


def test_a_second_run_in_the_same_folder(tmp_path: Path) -> None:
    """An existing run is not overwritten, nor are foreign outputs."""
    work_folder(tmp_path / "work", 1)
    with pytest.raises(JobError, match=r"a run exists here; resume it"):
        work_folder(tmp_path / "work", 1)
    (tmp_path / "other" / "output").mkdir(parents=True)
    (tmp_path / "other" / "output" / "mine.txt").touch()
    with pytest.raises(JobError, match="output is not empty"):
        work_folder(tmp_path / "other", 1)


def test_other_parameters(tmp_path: Path) -> None:
    """A run is not continued with other parameters, and the error names them."""
    work = work_folder(tmp_path / "work", 2)
    with pytest.raises(JobError, match="a different job or parameters"):
        jobs.run_local(Numbers(2), work, 1, processes=False)
    with pytest.raises(JobError, match=r"started with different parameters \(factor\)"):
        work.check(Numbers(2), {"factor": 2})
    assert not os.listdir(work.path / "output")


def test_another_plan(tmp_path: Path) -> None:
    """A run with a modified plan is not continued."""
    work = work_folder(tmp_path / "work", 2)
    path = work.path / "plan.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"stop":10', b'"stop":11'))
    with pytest.raises(JobError, match=r"plan\.jsonl has changed since the run started"):
        WorkFolder.open(work.path)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"format": 1}', b'{"format": 1, "plan_sha256": ""}'])
def test_a_damaged_run(tmp_path: Path, text: bytes) -> None:
    """A truncated run.json is reported as damaged."""
    work = work_folder(tmp_path / "work", 1)
    (work.path / "run.json").write_bytes(text)
    with pytest.raises(JobError, match=r"run\.json is damaged"):
        WorkFolder.open(work.path)


# --- receipts -----------------------------------------------------------------------------------------------------


def test_receipts_are_read_back() -> None:
    """A receipt is read back equal from a file."""
    receipt = Receipt("a", "key", 3, 4, 1, {"ok": 2, "failed": 1}, "a.txt", "00", seconds=1.5)
    assert Receipt.parse(receipt.text()) == receipt
    assert Receipt.from_record(json.loads(json.dumps(receipt.record()))) == receipt


def test_damaged_receipts_do_not_count(tmp_path: Path) -> None:
    """The chunk of a truncated or damaged receipt is done again."""
    work = work_folder(tmp_path / "work", 1)
    done(work, 1)
    path = work.path / "receipts" / "000.json"
    whole = path.read_bytes()
    damaged = [whole[:cut] for cut in range(len(whole) - 1)]
    damaged += [whole.replace(b'"n":10', b'"n":90'), b"null", b"[]", b"\xff\xfe", whole + whole, b'{"chunk": "000"}']
    for text in damaged:
        path.write_bytes(text)
        assert work.receipt("000") is None, text
    assert jobs.run_local(Numbers(), work, 1, processes=False).ok
    check_numbers(work, 1)


def test_a_receipt_without_its_output(tmp_path: Path) -> None:
    """A receipt without its output does not count."""
    work = work_folder(tmp_path / "work", 2)
    done(work, 2)
    next((work.path / "output").glob("001.*")).unlink()
    assert [chunk.id for chunk in work.remaining()] == ["001"]
    assert jobs.run_local(Numbers(), work, 1, processes=False).ok
    check_numbers(work, 2)


def test_a_receipt_of_another_run(tmp_path: Path) -> None:
    """A receipt of another job, or of another chunk, is refused."""
    for name, job, chunk in (("a", Numbers(2), "000"), ("b", Numbers(), "001")):
        other = work_folder(tmp_path / f"other-{name}", 2, job)
        done(other, 2, job)
        work = work_folder(tmp_path / name, 2)
        (work.path / "receipts" / "000.json").write_bytes((other.path / "receipts" / f"{chunk}.json").read_bytes())
        with pytest.raises(JobError, match="receipt of another run"):
            jobs.run_local(Numbers(), work, 1, processes=False)


def test_a_chunk_that_is_done_twice(tmp_path: Path) -> None:
    """A chunk given to a second worker returns the first receipt: totals are not changed."""
    work = work_folder(tmp_path / "work", 1)
    job, chunk = Numbers(), plan(1)[0]
    first = run_chunk(job, chunk, work.for_workers(job))
    assert run_chunk(job, chunk, work.for_workers(job)) == first
    assert work.summary().n == 10
    check_numbers(work, 1)


def test_a_chunk_that_is_done_twice_at_once(tmp_path: Path) -> None:
    """Of several workers on one chunk, one receipt counts, and only its output stays."""
    work = work_folder(tmp_path / "work", 1, c000="slow")
    job, chunk = Numbers(), plan(1)[0]
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(run_chunk(job, chunk, work.for_workers(job))))
        for _number in range(6)
    ]
    for thread in threads:
        thread.start()
    (work.path / "go").touch()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert set(map(repr, found)) == {repr(work.receipt("000"))}
    check_numbers(work, 1)


def test_a_late_worker(tmp_path: Path) -> None:
    """A late worker finds another worker's receipt, and removes its own output."""
    work = work_folder(tmp_path / "work", 1)
    job, chunk = Numbers(), plan(1)[0]
    late = WorkFolder.at(work.for_workers(job))
    receipt = job.run(chunk, late)
    done(work, 1)
    assert len(os.listdir(work.path / "output")) == 2
    assert late.write_receipt(receipt) == work.receipt("000")
    check_numbers(work, 1)


def test_names_of_temporary_files(tmp_path: Path) -> None:
    """Names of temporary files differ between attempts, on any machine."""
    work = work_folder(tmp_path / "work", 1)
    with work.writing("000.txt") as one, work.writing("000.txt") as two:
        names = [name for name in os.listdir(work.path / "output") if name.endswith(".tmp")]
        assert len(set(names)) == 2
        assert all(re.fullmatch(r"\.pressmark-[0-9a-f]{32}\.tmp", name) for name in names)
        one.write(b"1")
        two.write(b"2")
    assert (work.path / "output" / "000.txt").read_bytes() == b"1"
    assert os.listdir(work.path / "output") == ["000.txt"]


def test_order_of_flushes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is flushed before it gets its name, and the name before the receipt is written."""
    work = work_folder(tmp_path / "work", 1)
    folder = work.for_workers(Numbers())
    calls: list[str] = []

    def noted(name: str, real: Any) -> Any:
        def call(*arguments: Any) -> Any:
            calls.append(name)
            return real(*arguments)

        return call

    for name in ("fsync", "replace", "link"):
        monkeypatch.setattr(os, name, noted(name, getattr(os, name)))
    run_chunk(Numbers(), plan(1)[0], folder)
    directories = ["fsync"] if os.name != "nt" else []
    assert calls == ["fsync", "replace", *directories, "fsync", "link", *directories]


def test_failed_writing_leaves_nothing(tmp_path: Path) -> None:
    """A failed job leaves neither output nor receipt."""
    work = work_folder(tmp_path / "work", 1, c000="bad")
    failed = run_chunk(Numbers(), plan(1)[0], work.for_workers(Numbers()))
    assert isinstance(failed, FailedChunk)
    assert failed[:3] == ("000", "UnsendableError", "000: of no use")

    def lines() -> Iterator[bytes]:
        yield b"x"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        work.write_output("000.txt", lines())
    assert os.listdir(work.path / "output") == os.listdir(work.path / "receipts") == []


def test_leftovers_are_removed(tmp_path: Path) -> None:
    """The next scheduler removes leftovers of killed workers, and outputs without receipt at the end."""
    work = work_folder(tmp_path / "work", 2)
    orphans = [".001.json.node7-4711-0123abcd.tmp", ".000.0123456789ab.txt.node7-4711-0123.tmp"]
    for folder in ("receipts", "output"):
        for name in orphans:
            (work.path / folder / name).write_bytes(b"{")
    (work.path / "output" / "000.0123456789ab.txt").write_bytes(b"half of it")
    assert jobs.run_local(Numbers(), work, 1, processes=False, stop=lambda: True).stopped == "stop"
    # Its worker may be alive, and about to write its receipt.
    assert os.listdir(work.path / "output") == ["000.0123456789ab.txt"]
    assert os.listdir(work.path / "receipts") == []
    assert jobs.run_local(Numbers(), work, 1, processes=False).ok
    check_numbers(work, 2)


def test_no_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system without hard links, receipts are renamed into place."""

    def refuse(*_arguments: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    test_a_chunk_that_is_done_twice(tmp_path)
    test_a_late_worker(tmp_path / "late")


# --- one scheduler ------------------------------------------------------------------------------------------------

HOLD = """
import sys
from pressmark.jobs import WorkFolder
with WorkFolder.open(sys.argv[1]).held():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_two_schedulers(tmp_path: Path) -> None:
    """A second scheduler is refused during the first one, even with force, and accepted after it."""
    work = work_folder(tmp_path / "work", 1)
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(work.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(JobError, match=rf"in use by process {process.pid} on "):
            jobs.run_local(Numbers(), work, 1, processes=False)
        assert os.listdir(work.path / "receipts") == []
        process.kill()
    assert jobs.run_local(Numbers(), work, 1, processes=False).ok


def test_a_scheduler_on_another_machine(tmp_path: Path) -> None:
    """A lock of another machine counts, although it cannot be tested; the error names the remedy."""
    work = work_folder(tmp_path / "work", 1)
    (work.path / "driver.lock").write_text('["elsewhere", 12]')
    with pytest.raises(JobError, match=r"in use by process 12 on elsewhere; .+ remove driver.lock if"):
        jobs.run_local(Numbers(), work, 1, processes=False)
    (work.path / "driver.lock").unlink()
    assert jobs.run_local(Numbers(), work, 1, processes=False).ok


def test_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system without locks, the recorded owner counts."""
    fcntl = pytest.importorskip("fcntl")
    work = work_folder(tmp_path / "work", 1)

    def refuse(*_arguments: object) -> None:
        raise OSError(errno.ENOLCK, "no locks here")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with work.held():
        with pytest.raises(JobError, match="in use by process"):
            jobs.run_local(Numbers(), WorkFolder.open(work.path), 1, processes=False)
        with work.held():
            pass
    (work.path / "driver.lock").write_text(json.dumps([os.uname().nodename, 2**22 + 1]))
    assert jobs.run_local(Numbers(), work, 1, processes=False).ok


# --- what workers access ------------------------------------------------------------------------------------------


class Rooted(Numbers):
    """A job that reads a directory beside its work folder."""

    root = ""

    def roots(self) -> tuple[str, ...]:
        return (type(self).root,)


class Elsewhere(ThreadPoolExecutor):
    """Workers with another work folder at the same path."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        job, chunk, folder = args
        return super().submit(fn, job, chunk, folder._replace(nonce="other"))


@pytest.mark.parametrize("damaged", [b"", b"0123", b"\xff"])
def test_a_damaged_nonce_is_named(tmp_path: Path, damaged: bytes) -> None:
    """A damaged nonce is reported with its expected content, not as another folder."""
    path = work_folder(tmp_path / "work", 1).path
    whole = (path / "nonce").read_bytes()
    (path / "nonce").write_bytes(damaged)
    with pytest.raises(JobError, match=f"nonce is damaged; write exactly {whole.decode()} to it"):
        WorkFolder.open(path)
    (path / "nonce").write_bytes(whole)
    assert WorkFolder.open(path).path == path


def test_workers_without_access(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker with another or empty work folder or root refuses work; the run ends and names the machine."""
    root = tmp_path / "root"
    (root / "x").mkdir(parents=True)
    (root / "declaration").touch()
    monkeypatch.setattr(Rooted, "root", str(root))
    work = work_folder(tmp_path / "work", 3)
    folder = work.for_workers(Rooted())
    assert unseen(folder) is None
    assert unseen(folder._replace(path=str(tmp_path / "elsewhere"))) == f"the work folder {tmp_path / 'elsewhere'}"
    other = work_folder(tmp_path / "other", 1)
    assert "another folder has this path" in (unseen(folder._replace(path=str(other.path))) or "")
    (root / "x").rmdir()
    assert unseen(folder) is None
    (root / "declaration").unlink()
    assert unseen(folder) == f"the content of {root} (is it mounted?)"
    root.rmdir()
    assert unseen(folder) == str(root)
    failed = run_chunk(Rooted(), plan(1)[0], folder)
    assert isinstance(failed, FailedChunk)
    assert failed.fatal
    assert failed.reason.startswith("worker on ")
    assert os.listdir(work.path / "output") == []
    with pytest.raises(JobError, match="the run needs this directory"):
        jobs.run_local(Rooted(), work, 1, processes=False)
    with Elsewhere(1) as pool, pytest.raises(JobError, match=r"worker on .+ does not see the work folder"):
        jobs.run_executor(Numbers(), work, pool, 1)
    assert os.listdir(work.path / "receipts") == []
    old = run_chunk(Numbers(), plan(1)[0], folder._replace(roots=(), version="0.0"))
    assert isinstance(old, FailedChunk)
    assert "install the same version" in old.reason


# --- chunks of listings -------------------------------------------------------------------------------------------


def test_chunks_end_where_directories_do() -> None:
    """A chunk ends with a directory unless that is too large; nothing is omitted."""
    builder = ChunkBuilder("paths", "listing", 3, 100)
    entries = [("a", 1)] * 5 + [("b", 1)] * 2 + [("c", 90)] + [("d", 20)] + [("e", 1)] * 13
    found = [builder.add(10, nbytes, directory) for directory, nbytes in entries]
    chunks = [chunk for chunk in [*found, builder.rest()] if chunk is not None]
    assert [(chunk.start // 10, chunk.stop // 10) for chunk in chunks] == [(0, 5), (5, 8), (8, 14), (14, 20), (20, 22)]
    assert [chunk.nbytes for chunk in chunks] == [5, 92, 25, 6, 2]
    assert builder.rest() is None
    with pytest.raises(ValueError, match="expected 1 or more"):
        ChunkBuilder("paths", "listing", 0)


def test_small_listings_have_many_chunks() -> None:
    """Chunks grow with the listing: none is much larger than its part of those before, or than the limit."""
    assert PARTS == 4
    least, least_bytes = (small // 8 for small in SMALL)
    builder = ChunkBuilder("paths", "listing", 10 * least, workers=2)
    found = [builder.add(1, 1, number) for number in range(100 * least)]
    counts = [chunk.stop - chunk.start for chunk in [*found, builder.rest()] if chunk is not None]
    assert counts[:8] == [least] * 8
    assert counts == [*sorted(counts[:-1]), counts[-1]]
    assert all(most <= max(least, sum(counts[:number]) // 8) for number, most in enumerate(counts))
    assert max(counts) == 10 * least
    builder = ChunkBuilder("paths", "listing", workers=2)
    sizes = [builder.add(1, least_bytes // 4, number) for number in range(64)]
    assert [chunk.nbytes for chunk in sizes if chunk is not None][:8] == [least_bytes] * 8
    builder = ChunkBuilder("paths", "listing", 3, workers=2)
    assert [chunk.stop for chunk in (builder.add(1, 1, number) for number in range(10)) if chunk] == [3, 6, 9]


@pytest.mark.parametrize(("workers", "chunks"), [(1, 2), (2, 4), (8, 16), (64, 20)])
def test_a_small_listing_keeps_all_workers_busy(workers: int, chunks: int) -> None:
    """The size of a chunk is that of the work and the number of workers; a chunk is never tiny."""
    builder = ChunkBuilder("paths", "listing", workers=workers)
    found = [chunk for number in range(2000) if (chunk := builder.add(1, 1, number)) is not None]
    assert len(found) + 1 == chunks
    assert min(chunk.stop - chunk.start for chunk in found) >= LEAST[0]


def test_a_file_is_remembered_among_many_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers look for the files of a root, however many directories are beside them."""
    root = tmp_path / "root"
    for number in range(1500):
        (root / f"{number:04}").mkdir(parents=True)
    (root / "declared").touch()
    monkeypatch.setattr(Rooted, "root", str(root))
    [(path, names)] = work_folder(tmp_path / "work", 1).for_workers(Rooted()).roots
    assert path == str(root)
    assert "declared" in names
