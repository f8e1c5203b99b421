"""Run jobs in chunks with threads, processes and Dask: what a chunk costs, and hashing and storing in chunks."""

from __future__ import annotations

import dataclasses
import functools
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from benchmarks.conftest import Measure
from pressmark import fixity, jobs, stores
from pressmark.jobs.chunks import Chunk
from pressmark.jobs.receipts import Receipt
from pressmark.jobs.workdir import Job, job_key

WORKERS, CHUNKS = 2, 100
# What plans the chunks of a job, given its work folder.
Plan = Callable[[Path], Iterable[Chunk]]
# A job, its plan, and the number of its items; and what measures it.
Work = tuple[Job, Plan, int]
Run = Callable[..., None]


@dataclasses.dataclass(frozen=True)
class Nothing:
    """A job whose chunks do nothing."""

    key: str = job_key("nothing", {})

    def run(self, chunk: Chunk, work: jobs.WorkFolder) -> Receipt:
        return Receipt(chunk.id, self.key, n=1, by_status={"ok": 1})


@pytest.fixture(scope="module")
def runner() -> Iterator[Callable[[str], Callable[..., Any]]]:
    """Return a function that runs a job with a kind of workers; Dask has a cluster on the loopback interface."""
    with ExitStack() as stack:

        @functools.cache
        def made(name: str) -> Callable[..., Any]:
            if name != "dask":
                return lambda job, work: jobs.run_local(job, work, WORKERS, processes=name == "processes")
            from distributed import LocalCluster

            cluster = stack.enter_context(
                LocalCluster(n_workers=WORKERS, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
            )
            client = stack.enter_context(jobs.dask_client(cluster.scheduler_address))
            return lambda job, work: jobs.run_dask(job, work, client)

        yield made


@pytest.fixture(scope="session")
def files(memory: Path, scaled: Callable[[int], int]) -> Work:
    tree, count = memory / "hashed in chunks", scaled(1000)
    for number in range(count):
        path = tree / f"{number // 100:02d}" / str(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d" % number * 8000)
    hashing = fixity.HashFiles(str(tree))
    return hashing, lambda folder: hashing.plan(folder, files=100), count


@pytest.fixture
def run(measure: Measure, runner: Callable[[str], Callable[..., Any]], memory: Path) -> Run:
    """Return a function that measures the run of a job, without its plan."""

    def measured(group: str, workers: str, job: Job, plan: Plan, count: int, unit: str) -> None:
        folder, start = memory / "job", runner(workers)
        made: list[jobs.WorkFolder] = []

        def before() -> None:
            shutil.rmtree(folder, ignore_errors=True)
            made.append(jobs.WorkFolder.create(folder, job, plan(folder)))

        def check(summary: Any) -> None:
            assert (summary.ok, summary.n) == (True, count)

        amounts: dict[str, Any] = {unit: count}
        measure.once(group, lambda: start(job, made[-1]), before=before, check=check, rounds=3, **amounts)

    return measured


pytestmark = [
    pytest.mark.filterwarnings("default"),  # of distributed
    pytest.mark.parametrize(
        "workers",
        [
            "threads",
            pytest.param("processes", marks=pytest.mark.unsteady),
            pytest.param("dask", marks=pytest.mark.unsteady),
        ],
    ),
]


def test_empty_chunks(run: Run, scaled: Callable[[int], int], workers: str) -> None:
    count = scaled(CHUNKS)

    def plan(_folder: Path) -> Iterator[Chunk]:
        return (Chunk(f"{number:06d}", "nothing", "", number, number + 1, 0) for number in range(count))

    run("run empty chunks", workers, Nothing(), plan, count, "chunks")


def test_hash(run: Run, files: Work, workers: str) -> None:
    run("hash 40 KB sha512, in chunks", workers, *files, "files")


@pytest.mark.parametrize("kind", ["ocfl", "bags"])
def test_put(run: Run, memory: Path, scaled: Callable[[int], int], workers: str, kind: str) -> None:
    sources, root, count = memory / "stored in chunks", memory / f"{kind} in chunks", scaled(2000)
    pairs = [(f"object-{number}", sources / str(number)) for number in range(count)]
    for number, (_name, source) in enumerate(pairs):
        source.mkdir(parents=True, exist_ok=True)
        (source / "file").write_bytes(b"%d" % number * 2000)
    user = {"name": "Benchmark", "address": "https://example.org/benchmark"}
    job = stores.PutObjects(str(root), kind, options={"user": user} if kind == "ocfl" else {})

    def plan(folder: Path) -> Iterator[Chunk]:
        shutil.rmtree(root, ignore_errors=True)
        stores.create(kind, root, "0003" if kind == "ocfl" else None)
        return job.plan(folder, pairs, size=250)

    run(f"put 8 KB, {kind}, in chunks", workers, job, plan, count, "objects")
