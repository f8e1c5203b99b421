"""Schedulers and local workers: killed, failing, interrupted, restarted; every number is present once in the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pressmark import Progress, fixity, jobs
from pressmark.errors import Cancelled, JobError
from pressmark.jobs import WorkFolder, executors
from pressmark.option_names import as_flags
from pressmark.threads import resolve_threads
from support.processes import PACKAGE

from .samples import Numbers, check_numbers, work_folder

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("threads", [False, True], ids=["processes", "threads"])
def test_a_run(tmp_path: Path, threads: bool) -> None:
    """All chunks are done, reported when they finish, and not done again."""
    work = work_folder(tmp_path / "work", 12)
    seen: list[int] = []
    progress = Progress(lambda now: seen.append(now.done))
    summary = jobs.run_local(Numbers(), work, 2, processes=not threads, progress=progress)
    assert summary.ok
    assert summary[:6] == (12, 12, 120, 120, 0, {"ok": 120})
    assert (seen[0], seen[-1], progress.bytes, progress.failed) == (0, 120, summary.bytes, 0)
    assert set(seen) >= set(range(0, 121, 10))
    assert ({one.pid for one in work.receipts()} == {os.getpid()}) is threads
    check_numbers(work, 12)
    seen.clear()
    assert jobs.run_local(Numbers(), work.path, 2, processes=False, progress=progress) == summary
    assert seen == [120]


@pytest.mark.parametrize("threads", [False, True], ids=["processes", "threads"])
def test_workers_name_options_as_their_caller(tmp_path: Path, threads: bool) -> None:
    """The workers of a command name flags, those of Python keywords."""
    for flags, expected in ((True, "--replace"), (False, "replace=True")):
        work = work_folder(tmp_path / f"work-{flags}", 3, c001="option")
        with as_flags(flags):
            summary = jobs.run_local(Numbers(), work, 2, processes=not threads)
        assert [one.reason for one in summary.failed] == [expected]


@pytest.mark.parametrize(("chunks", "share"), [(1, 6), (2, 3), (9, 2)])
def test_workers_share_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunks: int, share: int) -> None:
    """Each worker process may use its part of the cores, by the number of processes with work."""
    work = work_folder(tmp_path / "work", chunks)
    found: list[int] = []

    class Noted(executors.Processes):
        def submit(self, *arguments: Any) -> Any:
            if not found:
                found.append(self._executor.submit(resolve_threads, None).result())
            return super().submit(*arguments)

    monkeypatch.setattr(executors, "Processes", Noted)
    monkeypatch.setattr(executors, "resolve_threads", lambda threads: threads or 6)
    assert jobs.run_local(Numbers(), work, 3).ok
    assert found == [share]


@pytest.mark.parametrize("moment", ["kill", "kill-half", "kill-late"])
def test_killed_workers(tmp_path: Path, moment: str) -> None:
    """A worker killed at any moment is replaced, and its chunk and those beside it are done again."""
    work = work_folder(tmp_path / "work", 12, c005=moment)
    assert jobs.run_local(Numbers(), work, 2).ok
    check_numbers(work, 12)


def test_several_killed_workers(tmp_path: Path) -> None:
    """Each killed worker is replaced; another run does the chunks that were lost twice."""
    work = work_folder(tmp_path / "work", 12, c002="kill", c005="kill-half", c008="kill-late")
    summary = jobs.run_local(Numbers(), work, 2)
    assert {one.chunk for one in summary.failed} <= {"002", "005", "008"}
    assert summary.done == 12 - len(summary.failed)
    assert jobs.run_local(Numbers(), work, 2).ok
    check_numbers(work, 12)


@pytest.mark.parametrize("threads", [False, True], ids=["processes", "threads"])
def test_the_second_attempt_is_alone(tmp_path: Path, threads: bool) -> None:
    """A chunk that failed for a moment runs again after all others, with nothing beside it."""
    work = work_folder(tmp_path / "work", 12, c001="busy", c002="busy")
    assert jobs.run_local(Numbers(), work, 2, processes=not threads).ok
    ended = {one.chunk: os.stat(work.path / f"receipts/{one.chunk}.json").st_mtime_ns for one in work.receipts()}
    assert sorted(sorted(ended, key=ended.__getitem__)[-2:]) == ["001", "002"]
    check_numbers(work, 12)


def wait_undisturbed(started: str) -> None:
    """Wait until the process is killed."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(started).touch()
    while True:
        time.sleep(60)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")
def test_a_worker_that_stays_when_another_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool that lost a process ends, even if another process does not notice that it was ended."""
    monkeypatch.setattr(executors, "CLEANUP", 0.1)
    pool = executors.Processes(2)
    pool.submit(wait_undisturbed, str(tmp_path / "started"))
    while not (tmp_path / "started").exists():
        time.sleep(0.01)
    dying = pool.submit(os._exit, 1)
    pool.submit(os.getpid)  # the executor looks at its processes again
    with pytest.raises(BrokenExecutor):
        dying.result(30)
    closing = threading.Thread(target=pool.shutdown, daemon=True)
    closing.start()
    closing.join(30)
    alive = closing.is_alive()
    pool.interrupt()
    assert not alive


def test_a_chunk_that_kills(tmp_path: Path) -> None:
    """Only the chunk that kills all of its workers is given up."""
    work = work_folder(tmp_path / "work", 12, c004="poison")
    summary = jobs.run_local(Numbers(), work, 2)
    assert [(one.chunk, one.kind) for one in summary.failed] == [("004", "lost")]
    assert (summary.done, summary.n, summary.ok) == (11, 110, False)
    (work.path / "do-004").unlink()
    assert jobs.run_local(Numbers(), work, 1, processes=False).ok
    check_numbers(work, 12)


def test_failing_chunks(tmp_path: Path) -> None:
    """Temporary errors are retried up to the limit; permanent errors are not; the other chunks are done."""
    work = work_folder(tmp_path / "work", 5, c001="busy", c002="eio", c003="bad")
    summary = jobs.run_local(Numbers(), work, 1, processes=False)
    assert {one.chunk: (one.kind, one.reason) for one in summary.failed} == {
        "002": ("OSError", "[Errno 5] the disk fails"),
        "003": ("UnsendableError", "003: of no use"),
    }
    assert (summary.done, summary.stopped, summary.complete, summary.ok) == (3, None, False, False)
    assert summary.record()["failed"][0].keys() == {"chunk", "kind", "reason", "retryable", "fatal"}


def test_a_store_that_cannot_be_used(tmp_path: Path) -> None:
    """No other chunk begins, and the next run does the rest."""
    work = work_folder(tmp_path / "work", 20, c002="gone")
    with pytest.raises(JobError, match="'s3://books': no request was answered"):
        jobs.run_local(Numbers(), work, 1, processes=False, window=1)
    assert (work.summary().done, (work.path / "began-003").exists()) == (2, False)
    (work.path / "do-002").unlink()
    assert jobs.run_local(Numbers(), work, 1, processes=False).ok
    check_numbers(work, 20)


def test_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The logger of the package has the beginning and end of a run, and each chunk that failed."""
    work = work_folder(tmp_path / "work", 3, c000="busy", c001="bad")
    with caplog.at_level("INFO", "pressmark"):
        jobs.run_local(Numbers(), work, 1, processes=False)
    assert [(one.levelname, one.message.removeprefix(f"{work.path}: ")) for one in caplog.records] == [
        ("INFO", "started, workers: 1"),
        ("WARNING", "chunk 000: [Errno 5] the disk fails; retrying"),
        ("ERROR", "chunk 001 failed: 001: of no use"),
        ("INFO", "2 of 3 chunks done, 0 errors"),
    ]


def test_errors_do_not_come_back_as_exceptions(tmp_path: Path) -> None:
    """An exception that cannot be pickled is an ordinary failure."""
    work = work_folder(tmp_path / "work", 2, c001="bad")
    summary = jobs.run_local(Numbers(), work, 1)
    assert [one.kind for one in summary.failed] == ["UnsendableError"]


def test_max_errors(tmp_path: Path) -> None:
    """After more errors than allowed, no new chunk begins."""
    work = work_folder(tmp_path / "work", 20, c001="bad", c002="bad")
    summary = jobs.run_local(Numbers(), work, 1, processes=False, window=1, max_errors=1)
    assert (summary.stopped, summary.done, len(summary.failed)) == ("max_errors", 1, 2)
    assert jobs.run_local(Numbers(), work, 1, processes=False, max_errors=2).done == 18


def test_stop(tmp_path: Path) -> None:
    """After a stop, no new chunk begins, and running chunks finish."""
    work = work_folder(tmp_path / "work", 20)
    progress = Progress()
    summary = jobs.run_local(
        Numbers(), work, 1, processes=False, window=1, progress=progress, stop=lambda: progress.done >= 30
    )
    assert (summary.stopped, summary.done, summary.ok) == ("stop", 3, False)


@pytest.mark.parametrize("arguments", [{"workers": -1}, {"window": 0}])
def test_invalid_arguments(tmp_path: Path, arguments: dict[str, Any]) -> None:
    """Invalid arguments are refused in advance."""
    with pytest.raises(ValueError, match="expected"):
        jobs.run_local(Numbers(), work_folder(tmp_path / "work", 1), processes=False, **arguments)


class Watched(Executor):
    """A foreign executor that counts pending calls."""

    def __init__(self, workers: int) -> None:
        self._pool = ThreadPoolExecutor(workers)
        self.most = self._now = 0
        self._lock = threading.Lock()

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        future = self._pool.submit(fn, *args, **kwargs)
        future.add_done_callback(self._done)
        return future

    def _done(self, _future: Future[Any]) -> None:
        with self._lock:
            self._now -= 1


def test_a_sliding_window(tmp_path: Path) -> None:
    """Any executor works, and never has more than a few chunks per worker pending."""
    work = work_folder(tmp_path / "work", 40)
    executor = Watched(2)
    summary = jobs.run_executor(Numbers(), work, executor, 2, window=3)
    assert summary.ok
    assert executor.most == 6
    check_numbers(work, 40)


def test_an_executor_that_breaks(tmp_path: Path) -> None:
    """A broken executor is an error that names the remedy; a new one continues."""

    class Broken(Executor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            from concurrent.futures import BrokenExecutor

            raise BrokenExecutor

    class Unable(Executor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(ModuleNotFoundError("No module named 'pressmark'"))
            return future

    work = work_folder(tmp_path / "work", 2)
    with pytest.raises(JobError, match=r"executor'?: the executor is broken; run again with a new one"):
        jobs.run_executor(Numbers(), work, Broken(), 1)
    with pytest.raises(JobError, match=r"chunk 000 cannot be sent to a worker \(ModuleNotFoundError: No module named"):
        jobs.run_executor(Numbers(), work, Unable(), 1)
    with ThreadPoolExecutor(1) as executor:
        assert jobs.run_executor(Numbers(), work, executor, 1).ok


# --- schedulers in other processes ---------------------------------------------------------------------------------

# A shell starts background jobs with Ctrl-C ignored.
SCRIPT = """
import signal
import sys
from pathlib import Path
from pressmark import Progress, jobs
from jobs.samples import Numbers

def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    work = jobs.WorkFolder.open(sys.argv[1])
    try:
        progress = Progress(lambda now: now.done and print("done", flush=True))
        print(jobs.run_local(Numbers(), work, int(sys.argv[2]), progress=progress).ok)
    except KeyboardInterrupt:
        print("interrupted")
        sys.exit(130)

"""
GUARDED = 'if __name__ == "__main__":\n    main()\n'


def started(
    folder: Path, work: WorkFolder, guard: str = GUARDED, workers: int = 2, **options: Any
) -> subprocess.Popen[str]:
    script = folder / "script.py"
    script.write_text(SCRIPT + guard)
    path = os.pathsep.join([str(PACKAGE.parent), str(TESTS)])
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, str(script), str(work.path), str(workers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, **options)


def until(condition: Any) -> None:
    """Wait for a condition that another process fulfils."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def has_gone(pid: int) -> bool:
    """Whether a process has ended; a zombie counts as ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True
    return text.rpartition(")")[2].split()[0] == "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes")
def test_a_killed_scheduler(tmp_path: Path) -> None:
    """Workers end with their scheduler, and another scheduler continues the run."""
    work = work_folder(tmp_path / "work", 8, c003="slow", c004="slow")
    with started(tmp_path, work) as process:
        until(lambda: (work.path / "began-003").exists() and (work.path / "began-004").exists())
        children = [int(name) for name in os.listdir("/proc") if name.isdigit() and _ancestor(int(name), process.pid)]
        process.kill()
    assert len(children) >= 2
    until(lambda: all(map(has_gone, children)))
    done = work.summary().done
    assert 0 < done < 8
    (work.path / "go").touch()
    assert jobs.run_local(Numbers(), WorkFolder.open(work.path), 2, processes=False).ok
    check_numbers(work, 8)


def _ancestor(pid: int, ancestor: int) -> bool:
    """Whether a process descends from another one."""
    while pid > 1:
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return False
        pid = int(text.rpartition(")")[2].split()[1])
        if pid == ancestor:
            return True
    return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes")
@pytest.mark.parametrize("what", ["slow", "stuck"])
def test_an_interrupted_scheduler(tmp_path: Path, what: str) -> None:
    """After Ctrl-C, which a terminal sends to all processes, chunks in flight end, and the next run repeats them."""
    work = work_folder(tmp_path / "work", 30, c002=what, c003=what)
    # A worker of a machine with other work may need more than the usual half second to clean up.
    guard = GUARDED if what == "stuck" else "from pressmark.jobs import executors\nexecutors.CLEANUP = 30\n" + GUARDED
    with started(tmp_path, work, guard, start_new_session=True) as process:
        until(lambda: (work.path / "began-002").exists() and (work.path / "began-003").exists())
        children = [int(name) for name in os.listdir("/proc") if name.isdigit() and _ancestor(int(name), process.pid)]
        os.killpg(process.pid, signal.SIGINT)
        # The chunks would wait for the file "go".
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out.splitlines()[-1] == "interrupted"
    assert work.receipt("002") is None
    assert work.receipt("003") is None
    assert 0 < work.summary().done < 30
    assert (work.path / "cleaned-002").exists() == (what == "slow")
    until(lambda: all(map(has_gone, children)))
    (work.path / "go").touch()
    with work.held():
        pass
    assert jobs.run_local(Numbers(), work, 2, processes=False).ok
    check_numbers(work, 30)


def test_an_interrupted_chunk_in_this_thread(tmp_path: Path) -> None:
    """A single chunk runs in the calling thread, and an interrupt ends it."""
    work = work_folder(tmp_path / "work", 1, c000="interrupt")
    with pytest.raises(KeyboardInterrupt):
        jobs.run_local(Numbers(), work, 2, processes=False)
    assert work.summary().done == 0
    (work.path / "do-000").unlink()
    assert jobs.run_local(Numbers(), work, 2, processes=False).ok
    check_numbers(work, 1)


@pytest.mark.parametrize("twice", [False, True])
def test_an_interrupted_executor(tmp_path: Path, request: pytest.FixtureRequest, twice: bool) -> None:
    """After an interrupt, running chunks are completed and no other begins; a second interrupt does not wait."""
    # Ignored in a background job of a shell.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    work = work_folder(tmp_path / "work", 8, c001="slow")
    then = partial(os.kill, os.getpid(), signal.SIGINT) if twice else (work.path / "go").touch
    later = threading.Timer(0.5, then)

    def interrupt(progress: Progress) -> None:
        if progress.done == 10:
            until((work.path / "began-001").exists)
            later.start()
            raise KeyboardInterrupt

    with ThreadPoolExecutor(2) as executor:
        with pytest.raises(KeyboardInterrupt):
            jobs.run_executor(Numbers(), work, executor, 2, window=1, progress=Progress(interrupt))
        assert [receipt.chunk for receipt in work.receipts()] == (["000"] if twice else ["000", "001"])
        (work.path / "go").touch()
    assert jobs.run_local(Numbers(), work, 2, processes=False).ok
    check_numbers(work, 8)


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("chunks", [1, 2])
def test_progress_within_a_chunk(tmp_path: Path, threads: bool, chunks: int) -> None:
    """What the chunks in flight have done is reported before their end, and its files are removed."""
    work = work_folder(tmp_path / "work", chunks, **{f"c{number:03d}": "reports" for number in range(chunks)})
    seen: list[tuple[int, int]] = []

    def on_change(progress: Progress) -> None:
        seen.append((progress.done, progress.bytes))
        if progress.done == 3 * chunks:
            (work.path / "go").touch()

    assert jobs.run_local(Numbers(), work, 2, processes=not threads, progress=Progress(on_change)).ok
    assert (3 * chunks, 30 * chunks) in seen
    check_numbers(work, chunks)
    assert not list(work.path.glob("output/.*"))


@pytest.mark.parametrize("threads", [False, True])
def test_a_cancelled_run(tmp_path: Path, threads: bool) -> None:
    """A run that its caller cancels ends as after Ctrl-C, and can be continued."""
    work = work_folder(tmp_path / "work", 12)
    progress = Progress(lambda now: now.done and now.cancel())
    with pytest.raises(Cancelled):
        jobs.run_local(Numbers(), work, 2, processes=not threads, progress=progress)
    assert 1 <= len(list(work.receipts())) < 12
    assert jobs.run_local(Numbers(), work.path, 2, processes=not threads).ok
    check_numbers(work, 12)


def test_a_work_folder_is_made_and_continued(tmp_path: Path) -> None:
    """The path of a work folder suffices: the run in it is planned or continued, and one of another job refused."""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a").write_bytes(b"1")
    job = fixity.HashFiles(str(tmp_path / "tree"), ("md5",))
    first = jobs.run_local(job, tmp_path / "work", processes=False)
    assert (first.ok, first.n) == (True, 1)
    assert jobs.run_local(job, tmp_path / "work", processes=False) == first
    with pytest.raises(JobError, match="different job or parameters"):
        jobs.run_local(fixity.HashFiles(str(tmp_path / "tree"), ("sha1",)), tmp_path / "work", processes=False)


def test_a_script_without_a_guard(tmp_path: Path) -> None:
    """A main script that runs the job on import is an error that names the cause; nothing is lost."""
    work = work_folder(tmp_path / "work", 3)
    with started(tmp_path, work, "main()\n", 1, stderr=subprocess.PIPE) as process:
        _out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert 'worker processes exit at startup; in a script, start the run under if __name__ == "__main__":' in err
    with started(tmp_path, work, workers=1) as process:
        assert process.communicate(timeout=60)[0].split() == ["done"] * 3 + ["True"]
    check_numbers(work, 3)


def test_importing_loads_no_engine() -> None:
    """Importing jobs loads no engine, and needs none installed."""
    code = """
        import sys
        import pressmark.jobs
        loaded = {"distributed", "dask", "pyarrow", "click", "rich"} & set(sys.modules)
        assert not loaded, loaded
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        check=False,
    )
    assert run.returncode == 0
