"""Local Dask clusters: workers and scheduler are killed, and nothing is lost or duplicated."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pressmark import jobs
from pressmark.errors import JobError
from pressmark.jobs import WorkFolder
from pressmark.option_names import as_flags
from support.processes import PACKAGE

from .samples import Numbers, check_numbers, work_folder

distributed: Any = pytest.importorskip("distributed")

TESTS = Path(__file__).parents[1]
# Unclosed threads and sockets, and deprecations, are Dask's own.
pytestmark = [
    pytest.mark.dask,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Two workers, each restarted by its nanny."""
    folder = str(tmp_path_factory.mktemp("dask"))
    path = os.pathsep.join([str(PACKAGE.parent), str(TESTS)])
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
        local_directory=folder,
        env={"PYTHONPATH": path},
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    with jobs.dask_client(cluster.scheduler_address) as client:
        client.wait_for_workers(2, timeout=60)  # a test before may have killed one
        yield client


def test_workers_name_options_as_their_caller(tmp_path: Path, client: Any) -> None:
    """The workers of a command name flags, those of Python keywords, in the same processes."""
    for flags, expected in ((True, "--replace"), (False, "replace=True")):
        work = work_folder(tmp_path / f"work-{flags}", 3, c001="option")
        with as_flags(flags):
            summary = jobs.run_dask(Numbers(), work, client)
        assert [one.reason for one in summary.failed] == [expected]


def test_a_run_and_the_same_on_the_local_pool(tmp_path: Path, client: Any) -> None:
    """A cluster and local threads give the same output, and receipts that differ only in the worker."""
    work = work_folder(tmp_path / "work", 12)
    local = work_folder(tmp_path / "local", 12)
    summary = jobs.run_dask(Numbers(), work, client)
    assert summary.ok
    assert summary[:6] == jobs.run_local(Numbers(), local, 2, processes=False)[:6]
    check_numbers(work, 12)
    receipts, others = ([(one.chunk, one.n, one.sha256) for one in folder.receipts()] for folder in (work, local))
    assert receipts == others
    assert {one.pid for one in work.receipts()} <= set(client.run(os.getpid).values())


def test_killed_workers(tmp_path: Path, client: Any) -> None:
    """Killed workers are replaced, and every chunk's output is present once."""
    work = work_folder(tmp_path / "work", 12, c002="kill", c008="kill-late", c009="bad")
    summary = jobs.run_dask(Numbers(), work, client)
    assert [one.kind for one in summary.failed] == ["UnsendableError"]
    assert jobs.run_dask(Numbers(), _without_orders(work), client).ok
    check_numbers(work, 12)


def _without_orders(work: WorkFolder) -> WorkFolder:
    for path in work.path.glob("do-*"):
        path.unlink()
    return WorkFolder.open(work.path)


def test_stopped(tmp_path: Path, client: Any) -> None:
    """A stopped run waits for the chunks that Dask has, and counts them."""
    work = work_folder(tmp_path / "work", 12, c000="slow", c001="slow")

    def stop() -> bool:
        if not all((work.path / f"began-{chunk}").exists() for chunk in ("000", "001")):
            return False
        threading.Timer(0.5, (work.path / "go").touch).start()
        return True

    summary = jobs.run_dask(Numbers(), work, client, window=2, stop=stop)
    assert (summary.stopped, summary.done, len(os.listdir(work.path / "output"))) == ("stop", 4, 4)
    assert jobs.run_dask(Numbers(), work, client).ok
    check_numbers(work, 12)


def test_any_executor(tmp_path: Path, client: Any) -> None:
    """Dask's own executor works as well."""
    work = work_folder(tmp_path / "work", 5)
    assert jobs.run_executor(Numbers(), work, client.get_executor(), 2).ok
    check_numbers(work, 5)


@contextlib.contextmanager
def _cluster(folder: Path) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """Start a scheduler and a worker, and yield the scheduler's file and process."""
    file = folder / "scheduler.json"
    path = os.pathsep.join([str(PACKAGE.parent), str(TESTS)])
    environment = {**os.environ, "PYTHONPATH": path, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "3s"}
    options: dict[str, Any] = {"env": environment, "stderr": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    common = ["--no-dashboard", "--host", "127.0.0.1", "--scheduler-file", str(file)]
    of_worker = ["--nworkers", "1", "--nthreads", "2", "--no-nanny", "--death-timeout", "5"]
    with subprocess.Popen([*_dask("scheduler"), "--port", "0", *common], **options) as scheduler:
        command = [*_dask("worker"), *of_worker, *common, "--local-directory", str(folder)]
        with subprocess.Popen(command, **options) as worker:
            try:
                _until(file.exists)
                yield file, scheduler
            finally:
                scheduler.kill()
                worker.kill()


def test_a_killed_scheduler(tmp_path: Path) -> None:
    """If the scheduler dies, the run ends with an error, and continues on another cluster."""
    work = work_folder(tmp_path / "work", 8, c004="slow", c005="slow")
    try:
        with _cluster(tmp_path) as (file, scheduler), jobs.dask_client(file) as client:
            address = client.scheduler.address

            def kill() -> bool:
                if work.receipt("001") is not None and (work.path / "began-004").exists():
                    scheduler.send_signal(signal.SIGKILL)
                return False

            with pytest.raises(JobError) as caught:
                jobs.run_dask(Numbers(), work, client, stop=kill)
            assert str(caught.value).startswith(f"'{address}': connection to the Dask scheduler lost")
        done = work.summary().done
        assert 0 < done < 8
    finally:
        (work.path / "go").touch()
    assert jobs.run_local(Numbers(), WorkFolder.open(work.path), 2, processes=False).ok
    check_numbers(work, 8)


def test_a_command_whose_scheduler_is_killed(tmp_path: Path) -> None:
    """The command ends with one line: what has happened, and how to go on."""
    large = tmp_path / "files" / "large"
    large.parent.mkdir()
    large.touch()
    os.truncate(large, 1 << 40)  # takes minutes to hash
    with _cluster(tmp_path) as (file, scheduler):
        command = [sys.executable, "-m", "pressmark", "hash", "files", "-o", "list"]
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
        with subprocess.Popen(
            [*command, "--dask", str(file)], cwd=tmp_path, env=environment, stderr=subprocess.PIPE
        ) as process:
            try:
                # The worker has begun to write its output.
                output = tmp_path / "list.work" / "output"
                _until(lambda: any(output.glob("*")) or process.poll() is not None)
                scheduler.send_signal(signal.SIGKILL)
                _, written = process.communicate(timeout=60)
            finally:
                process.kill()
    [line] = written.decode().splitlines()
    assert line.startswith("pressmark: 'tcp://127.0.0.1:")
    assert line.endswith(
        "': connection to the Dask scheduler lost (finished chunks are kept); run the same command with --resume to"
        " continue"
    )
    assert process.returncode == 1


def _dask(command: str) -> list[str]:
    return [sys.executable, "-m", "dask", command]


def _until(condition: Any) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_unavailable_clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing address, scheduler, scheduler file, worker or package is reported in one line."""
    with pytest.raises(JobError, match=r"127\.0\.0\.1:9'?: Dask scheduler unreachable"):
        jobs.dask_client("tcp://127.0.0.1:9", timeout=0.3)
    with pytest.raises(JobError, match="file not found"):
        jobs.dask_client(tmp_path / "none.json")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(JobError, match=r"pip install 'pressmark\[dask\]'"):
        jobs.dask_client("tcp://127.0.0.1:9")
