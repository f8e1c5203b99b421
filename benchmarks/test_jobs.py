"""Run jobs in chunks with threads, processes and Dask: what a chunk costs."""

from __future__ import annotations

import dataclasses
import functools
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from benchmarks.conftest import Measure
from pressmark import jobs

WORKERS, CHUNKS = 2, 100


@dataclasses.dataclass(frozen=True)
class Nothing:
    """A job whose chunks do nothing."""

    key: str = jobs.job_key("nothing", {})

    def run(self, chunk: jobs.Chunk, work: jobs.WorkFolder) -> jobs.Receipt:
        return jobs.Receipt(chunk.id, self.key, n=1, by_status={"ok": 1})


@pytest.fixture(scope="session")
def runner() -> Iterator[Callable[[str], Callable[..., Any]]]:
    """Return a function that runs a job with a kind of workers; Dask has a cluster on the loopback interface."""
    with ExitStack() as stack:

        @functools.cache
        def made(name: str) -> Callable[..., Any]:
            if name != "dask":
                return lambda job, work: jobs.run_local(job, work, WORKERS, name == "threads")
            from distributed import LocalCluster

            cluster = stack.enter_context(
                LocalCluster(n_workers=WORKERS, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
            )
            client = stack.enter_context(jobs.dask_client(cluster.scheduler_address))
            return lambda job, work: jobs.run_dask(job, work, client)

        yield made


@pytest.mark.filterwarnings("default")  # of distributed
@pytest.mark.parametrize("name", ["threads", "processes", "dask"])
def test_empty_chunks(
    measure: Measure, runner: Callable[[str], Callable[..., Any]], memory: Path, scaled: Callable[[int], int], name: str
) -> None:
    count, folder = scaled(CHUNKS), memory / "job"
    made: list[jobs.WorkFolder] = []

    def before() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        chunks = (jobs.Chunk(f"{number:06d}", "nothing", "", number, number + 1, 0) for number in range(count))
        made.append(jobs.WorkFolder.create(folder, Nothing(), chunks))

    def check(summary: Any) -> None:
        assert (summary.ok, summary.n) == (True, count)

    run = runner(name)
    measure.once(
        "run empty chunks", lambda: run(Nothing(), made[-1]), before=before, check=check, rounds=3, chunks=count
    )
