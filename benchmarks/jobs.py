"""What a chunk costs beside its work, and mapping and hashing in chunks: local workers, and a Dask cluster here.

    python benchmarks/jobs.py [COUNT] [--folder DIRECTORY]

Runs COUNT (1,000) chunks that do nothing with threads, processes and two Dask workers on the loopback interface, then
maps a million identifiers in chunks and hashes some files, and prints milliseconds a chunk and items a second. Every
number must be in the receipts.
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
from pressmark import fixity, jobs
from pressmark.errors import JobError

WORKERS = 2


@dataclasses.dataclass(frozen=True)
class Nothing:
    """A job whose chunks do nothing."""

    key: str = jobs.job_key("nothing", {})

    def run(self, chunk: jobs.Chunk, work: jobs.WorkFolder) -> jobs.Receipt:
        """Say that it is done."""
        return jobs.Receipt(chunk.id, self.key, n=1, by_status={"ok": 1})


def numbers(count: int) -> Iterator[jobs.Chunk]:
    """Give chunks of nothing."""
    return (jobs.Chunk(f"{number:06d}", "nothing", "", number, number + 1, 0) for number in range(count))


def seconds(
    folder: Path, job: Any, chunks: Callable[[], Iterator[jobs.Chunk]], run: Callable[..., Any], n: int
) -> float:
    """Return how long a run takes, without its plan."""
    shutil.rmtree(folder, ignore_errors=True)
    work = jobs.WorkFolder.create(folder, job, chunks())
    start = time.perf_counter()
    summary = run(job, work)
    taken = time.perf_counter() - start
    assert (summary.ok, summary.n) == (True, n), summary
    return taken


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=1000)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.folder)))
        runs: dict[str, Callable[..., Any]] = {
            "threads": lambda job, work: jobs.run_local(job, work, WORKERS, True),
            "processes": lambda job, work: jobs.run_local(job, work, WORKERS),
        }
        try:
            from distributed import LocalCluster

            cluster = stack.enter_context(
                LocalCluster(n_workers=WORKERS, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
            )
            client = stack.enter_context(jobs.dask_client(cluster.scheduler_address))
            runs["dask"] = lambda job, work: jobs.run_dask(job, work, client)
        except (ModuleNotFoundError, JobError) as error:
            print(f"without Dask: {error}")
        identifiers = folder / "identifiers.txt"
        identifiers.write_text("".join(f"ark:/13960/t{number:07d}\n" for number in range(1_000_000)))
        tree = folder / "tree"
        for number in range(2000):
            path = tree / f"{number // 100:02d}" / str(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"%d" % number * 8000)
        mapping = pressmark.layouts.MapIds(pressmark.layout("0003"))
        hashing = fixity.HashFiles(str(tree))
        kinds: list[tuple[str, Any, Callable[[], Iterator[jobs.Chunk]], int]] = [
            ("a chunk of nothing", Nothing(), lambda: numbers(options.count), options.count),
            ("1,000,000 identifiers, 0003", mapping, lambda: mapping.plan(identifiers, nbytes=1 << 20), 1_000_000),
            ("2,000 files of 30 kB, sha512", hashing, lambda: hashing.plan(folder / "work", files=100), 2000),
        ]
        for name, run in runs.items():
            seconds(folder / "work", Nothing(), lambda: numbers(WORKERS), run, WORKERS)  # imports
            for what, job, chunks, n in kinds:
                taken = seconds(folder / "work", job, chunks, run, n)
                print(f"{name:10} {what:30} {taken:7.2f} s  {1000 * taken / n:8.3f} ms each  {n / taken:12,.0f} /s")


if __name__ == "__main__":
    main()
