"""Run jobs in chunks with threads, processes and Dask: the cost of a chunk, and mapping and hashing in chunks.

Runs --count empty chunks with two threads, two processes and two Dask workers on the loopback interface, then maps a
million identifiers and hashes 2,000 files in chunks. Every item must be in the receipts.
"""

from __future__ import annotations

import argparse
import dataclasses
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pressmark
from benchmarks.report import Report
from pressmark import fixity, jobs
from pressmark.errors import JobError

COUNT = 1000
WORKERS = 2


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--identifiers", type=int, default=1_000_000)
    parser.add_argument("--files", type=int, default=2000)


@dataclasses.dataclass(frozen=True)
class Nothing:
    """A job whose chunks do nothing."""

    key: str = jobs.job_key("nothing", {})

    def run(self, chunk: jobs.Chunk, work: jobs.WorkFolder) -> jobs.Receipt:
        return jobs.Receipt(chunk.id, self.key, n=1, by_status={"ok": 1})


def run(options: argparse.Namespace, report: Report) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.folder)))
        runners: dict[str, Callable[..., Any]] = {
            "threads": lambda job, work: jobs.run_local(job, work, WORKERS, True),
            "processes": lambda job, work: jobs.run_local(job, work, WORKERS),
        }
        try:
            from distributed import LocalCluster

            cluster = stack.enter_context(
                LocalCluster(n_workers=WORKERS, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
            )
            client = stack.enter_context(jobs.dask_client(cluster.scheduler_address))
            runners["dask"] = lambda job, work: jobs.run_dask(job, work, client)
        except (ModuleNotFoundError, JobError) as error:
            report.print(f"- Dask is not available: {error}", "")
        kinds = work_to_do(options, folder)
        report.heads("workers", " chunks", "s", "ms each", "items/s")
        for name, runner in runners.items():
            timed_run(folder / "work", Nothing(), lambda: empty_chunks(WORKERS), runner, WORKERS)  # imports
            for what, job, chunks, count in kinds:
                seconds = timed_run(folder / "work", job, chunks, runner, count)
                facts[f"{name}, {what}"] = seconds
                report.row(name, what, f"{seconds:.2f}", f"{1000 * seconds / count:.3f}", f"{count / seconds:,.0f}")
    return {"seconds": facts}


def work_to_do(
    options: argparse.Namespace, folder: Path
) -> list[tuple[str, Any, Callable[[], Iterator[jobs.Chunk]], int]]:
    """Return titles, jobs, their chunks, and their numbers of items."""
    identifiers = folder / "identifiers.txt"
    identifiers.write_text("".join(f"ark:/13960/t{number:07d}\n" for number in range(options.identifiers)))
    tree = folder / "tree"
    for number in range(options.files):
        path = tree / f"{number // 100:02d}" / str(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d" % number * 8000)
    mapping = pressmark.layouts.MapIds(pressmark.layout("0003"))
    hashing = fixity.HashFiles(str(tree))
    return [
        ("an empty chunk", Nothing(), lambda: empty_chunks(options.count), options.count),
        (
            f"{options.identifiers:,} identifiers, 0003",
            mapping,
            lambda: mapping.plan(identifiers, nbytes=1 << 20),
            options.identifiers,
        ),
        (
            f"{options.files:,} files of 30 kB, sha512",
            hashing,
            lambda: hashing.plan(folder / "work", files=100),
            options.files,
        ),
    ]


def empty_chunks(count: int) -> Iterator[jobs.Chunk]:
    return (jobs.Chunk(f"{number:06d}", "nothing", "", number, number + 1, 0) for number in range(count))


def timed_run(
    folder: Path, job: Any, chunks: Callable[[], Iterator[jobs.Chunk]], runner: Callable[..., Any], count: int
) -> float:
    """Return the seconds of a run, without its plan."""
    shutil.rmtree(folder, ignore_errors=True)
    work = jobs.WorkFolder.create(folder, job, chunks())
    begin = time.perf_counter()
    summary = runner(job, work)
    seconds = time.perf_counter() - begin
    assert (summary.ok, summary.n) == (True, count), summary
    return seconds
