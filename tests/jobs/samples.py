"""Jobs whose workers fail as a test requests; importable in every worker."""

from __future__ import annotations

import errno
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from pressmark.errors import StoreError
from pressmark.jobs import WorkFolder
from pressmark.jobs.chunks import Chunk
from pressmark.jobs.receipts import Receipt
from pressmark.jobs.workdir import Job, job_key
from pressmark.option_names import option


def plan(count: int) -> list[Chunk]:
    return [Chunk(f"{number:03d}", "numbers", "", number * 10, number * 10 + 10, 10) for number in range(count)]


@dataclass(frozen=True)
class Numbers:
    """Writes the numbers of its chunk. A word in the file ``<work folder>/do-<chunk>`` selects a fault.

    ``kill``: the worker is killed once, before anything is written; ``poison``: killed each time; ``kill-late``: killed
    once between output and receipt; ``kill-half``: killed once in the middle of the output; ``busy``: one transient
    error; ``eio``: a transient error each time; ``bad``: a permanent error; ``gone``: a store that cannot be used;
    ``option``: one that names an option;
    ``slow``: waits until the file ``go`` exists; ``stuck``: the same, and does not end when it is interrupted;
    ``reports``: reports three items, too; ``interrupt``: Ctrl-C.
    """

    factor: int = 1

    @property
    def key(self) -> str:
        return job_key("numbers", {"factor": self.factor})

    def roots(self) -> tuple[str, ...]:
        return ()

    def run(self, chunk: Chunk, work: WorkFolder) -> Receipt:
        order = work.path / f"do-{chunk.id}"
        what = order.read_text() if order.exists() else ""
        if what in ("kill", "kill-late", "kill-half", "busy"):
            order.unlink()
        if what in ("kill", "poison"):
            os.kill(os.getpid(), signal.SIGKILL)
        if what in ("busy", "eio"):
            raise OSError(errno.EIO, "the disk fails")
        if what == "bad":
            raise UnsendableError(chunk.id, "of no use")
        if what == "gone":
            raise StoreError("s3://books", "no request was answered")
        if what == "option":
            raise ValueError(option("replace", True))
        if what == "interrupt":
            raise KeyboardInterrupt
        try:
            self._wait(what, chunk, work)
        except KeyboardInterrupt:
            if what != "stuck":
                (work.path / f"cleaned-{chunk.id}").touch()
                raise
            self._wait(what, chunk, work)
        name = f"{chunk.id}.txt"
        with work.writing(name) as file:
            for number in range(chunk.start, chunk.stop):
                if what == "kill-half" and number == chunk.start + 5:
                    file._file.flush()
                    os.kill(os.getpid(), signal.SIGKILL)
                file.write(b"%d\n" % (number * self.factor))
        if what == "kill-late":
            os.kill(os.getpid(), signal.SIGKILL)
        count = chunk.stop - chunk.start
        return Receipt(
            chunk.id, self.key, count, chunk.nbytes, by_status={"ok": count}, output=name, sha256=file.sha256
        )

    def _wait(self, what: str, chunk: Chunk, work: WorkFolder) -> None:
        (work.path / f"began-{chunk.id}").touch()
        while what in ("slow", "stuck", "reports") and not (work.path / "go").exists():
            time.sleep(0.01)
            if what == "reports":
                work.report(chunk.id, 3, 30)


class UnsendableError(Exception):
    """An exception that cannot be unpickled."""

    def __init__(self, chunk: str, why: str) -> None:
        super().__init__(f"{chunk}: {why}")


def work_folder(folder: Path, count: int, job: Job | None = None, **orders: str) -> WorkFolder:
    """Create a work folder of ``count`` chunks; ``c003="kill"`` selects a fault for chunk 003."""
    work = WorkFolder.create(folder, job or Numbers(), plan(count), {"factor": getattr(job, "factor", 1)})
    for chunk, what in orders.items():
        (work.path / f"do-{chunk[1:]}").write_text(what)
    return work


def check_numbers(work: WorkFolder, count: int, factor: int = 1) -> None:
    """Assert that every number is present once, receipts match outputs, and no other file exists."""
    import hashlib

    numbers = []
    named = set()
    for receipt in work.receipts():
        assert receipt.output is not None
        data = work.output_path(receipt.output).read_bytes()
        assert hashlib.sha256(data).hexdigest() == receipt.sha256
        numbers += [int(line) for line in data.splitlines()]
        named.add(receipt.output)
    assert numbers == [number * factor for number in range(count * 10)]
    assert set(os.listdir(work.path / "output")) == named
    assert sorted(os.listdir(work.path / "receipts")) == [f"{number:03d}.json" for number in range(count)]
    assert list(work.remaining()) == []
