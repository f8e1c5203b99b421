"""Commands with ``--workers``: the output, its order and the exit status are those of one process."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

import pressmark
from jobs.test_kinds import broken
from pressmark import bagit, jobs, stores
from pressmark.bagit.job import ValidateBags
from pressmark.cli.common import workers
from pressmark.fixity.job import HashFiles
from pressmark.jobs import local
from pressmark.layouts.job import MapIds
from pressmark.stores.job import CheckStore
from support.implementations import Implementation

from .conftest import Call, Run, environment

LINES = "ark:/13030/xt12t3\n\nmdp.390\nx\ty\nbad\x01\n" + "".join(f"id{number}\n" for number in range(30)) + "\nlast"
Both = Callable[..., Result]


@pytest.fixture
def both(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, implementation: Implementation) -> Both:
    """Make a call without workers and with some, compare everything, and return the result."""
    # Threads, with chunks of a few items: the cuts are tested.
    monkeypatch.setattr(jobs, "run_local", partial_of_threads)
    monkeypatch.setattr(MapIds.plan, "__defaults__", (2, 40))
    monkeypatch.setattr(HashFiles.plan, "__defaults__", (1, 1, *HashFiles.plan.__defaults__[2:]))
    monkeypatch.setattr(ValidateBags.plan, "__defaults__", (1, 1))
    monkeypatch.setattr(CheckStore.plan, "__defaults__", (1,))

    def both(*arguments: str) -> Result:
        output = tmp_path / arguments[arguments.index("-o") + 1] if "-o" in arguments else None
        alone = call(*arguments)
        written = output.read_bytes() if output is not None and output.exists() else None
        if output is not None:
            output.unlink(missing_ok=True)
        shared = call(*arguments, "--workers", "2")
        assert (shared.stdout_bytes, shared.stderr, shared.exit_code) == (
            alone.stdout_bytes,
            alone.stderr,
            alone.exit_code,
        )
        if output is not None:
            assert (output.read_bytes() if output.exists() else None) == written
            assert not os.path.exists(f"{output}.work")
        return shared

    return both


def partial_of_threads(job: Any, work: Any, workers: int, threads: bool, **options: Any) -> Any:
    assert len(list(work.chunks())) > 1, "this would not be shared"
    return jobs.local.run_local(job, work, workers, True, **options)


@pytest.mark.parametrize(("seconds", "are_started"), [(100.0, False), (0.0, True)])
def test_small_work_starts_no_process(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, are_started: bool
) -> None:
    """Small parts begin in threads; processes start for what is left after a moment."""
    started: list[int] = []

    class Counted(local.ProcessPool):
        def __init__(self, workers: int, *rest: Any) -> None:
            started.append(workers)
            super().__init__(workers, *rest)

    monkeypatch.setattr(local, "ProcessPool", Counted)
    monkeypatch.setattr(workers, "START", seconds)
    monkeypatch.setattr(MapIds.plan, "__defaults__", (2, 40))
    (tmp_path / "ids.txt").write_text("".join(f"id{number}\n" for number in range(30)))
    done = call("map", "0002", "ids.txt", "--workers", "2")
    assert (done.exit_code, done.stdout) == (0, "".join(f"id{number}\n" for number in range(30)))
    assert started == ([2] if are_started else [])


@pytest.mark.parametrize("on_error", ["stop", "skip", "empty"])
@pytest.mark.parametrize("more", [(), ("--both",), ("-o", "paths.txt"), ("-o", "paths.txt.gz", "--both")])
def test_map(both: Both, tmp_path: Path, on_error: str, more: tuple[str, ...]) -> None:
    """Lines, failures with their line numbers, and a last line without a line feed are the same."""
    (tmp_path / "ids.txt").write_bytes(LINES.encode())
    assert both("map", "0002", "ids.txt", "--on-error", on_error, *more).exit_code == 1


def test_map_without_failures(both: Both, tmp_path: Path) -> None:
    """Carriage returns are stripped in every chunk, a byte-order mark in the first; the inverse works too."""
    (tmp_path / "ids.txt").write_bytes(b"\xef\xbb\xbf" + b"".join(b"id%d\r\n" % number for number in range(40)))
    assert both("map", "pairtree", "ids.txt", "--crlf", "strip", "-o", "paths.txt").exit_code == 0
    assert both("unmap", "pairtree", "paths.txt").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("map", "0002"), "standard input cannot be divided among workers; use a FILE or omit --workers"),
        (
            ("map", "0002", "ids.gz"),
            "ids.gz: gzip cannot be divided among workers; decompress it or omit",
        ),
        (("map", "0002", "ids.csv", "--column", "id"), "--column: tables are mapped by one process; omit --work"),
        (("map", "0002", "ids.txt", "-0"), "-0: only lists of lines are divided among workers; omit --workers"),
        (("map", "0002", "ids.txt", "--threads", "2"), "--threads: each worker has one thread; omit --workers"),
        (("map", "0002", "ids.txt", "--resume"), "--resume needs --work DIR"),
        (("map", "0002", "ids.txt", "--dask", "tcp://x:1"), "use only one of --workers, --dask and --dask-scheduler"),
        (("hash", "ids.txt", "--ledger", "l"), "--ledger: not supported with workers; use --work"),
        (("hash", "ids.txt", "--read", "sequential"), "--read sequential: workers read several files at the same time"),
        (("hash", ".", "-o", "sums"), "work folder inside "),
    ],
)
def test_unsupported_combinations(call: Call, tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    """An unsupported combination is refused in one line with the remedy."""
    (tmp_path / "ids.txt").write_text("a\n")
    (tmp_path / "ids.csv").write_text("id\na\n")
    (tmp_path / "ids.gz").write_bytes(gzip.compress(b"a\n"))
    done = call(*arguments, "--workers", "2")
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "sums").exists()


def test_options_that_need_workers(call: Call, tmp_path: Path) -> None:
    """Without workers there is no work folder, and with a cluster it must be named."""
    (tmp_path / "ids.txt").write_text("a\n")
    for option in (("--work", "w"), ("--resume",)):
        assert f"{option[0]} needs --workers or --dask" in call("map", "0002", "ids.txt", *option).stderr
    assert "--dask needs --work DIR" in call("map", "0002", "ids.txt", "--dask", "tcp://localhost:1").stderr


def test_hash(both: Both, tmp_path: Path) -> None:
    """Names start with PATH as given; a missing file fails as without workers."""
    for number in range(7):
        (tmp_path / "files" / f"d{number % 3}").mkdir(parents=True, exist_ok=True)
        (tmp_path / "files" / f"d{number % 3}" / f"f{number}").write_text(str(number))
    arguments = ("files/./d0", "files", str(tmp_path / "files" / "d1"), "gone", "files/d1/f1")
    assert both("hash", *arguments).exit_code == 1
    assert both("hash", "files", "-a", "md5,sha256", "-o", "elsewhere.sums").exit_code == 0
    assert both("hash", str(tmp_path / "files"), "--format", "json").exit_code == 0


def test_bag_validate(both: Both, tmp_path: Path) -> None:
    """Problems and verdicts come in the order of the bags, repeated for repeated bags."""
    for number in range(5):
        (tmp_path / f"bag{number}").mkdir()
        (tmp_path / f"bag{number}" / "file").write_text(str(number))
        bagit.create(tmp_path / f"bag{number}")
    (tmp_path / "bag1" / "data" / "file").write_text("x")
    (tmp_path / "bag3" / "data" / "new").touch()
    bags = [f"bag{number}" for number in (0, 1, 2, 3, 4, 1)]
    for name in ("bag1", "bag2"):
        shutil.make_archive(str(tmp_path / name), "gztar", tmp_path, name)
        bags.append(f"{name}.tar.gz")
    for more in ((), ("--json",), ("--level", "oxum")):
        assert both("bag", "validate", *bags, *more).exit_code == 1
    assert both("bag", "validate", "bag0", "bag2", "bag4").exit_code == 0


def test_a_run_is_resumed(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted run is kept beside OUTPUT and continued only by the same command."""
    (tmp_path / "ids.txt").write_text(LINES.replace("\n\n", "\n").replace("bad\x01\n", ""))
    expected = call("map", "pairtree", "ids.txt").stdout
    monkeypatch.setattr(MapIds.plan, "__defaults__", (2, 40))
    arguments = ("map", "pairtree", "ids.txt", "-o", "paths.txt", "--workers", "2")

    def interrupted(job: Any, work: Any, *_: Any, **options: Any) -> Any:
        chunk = next(work.chunks())
        assert isinstance(jobs.run_chunk(job, chunk, work.place(job)), jobs.Receipt)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(jobs, "run_local", interrupted)
        done = call(*arguments)
        assert (done.exit_code, done.stderr) == (
            130,
            "pressmark: interrupted; run the same command with --resume to continue\n",
        )
    assert not (tmp_path / "paths.txt").exists()
    assert "was started here and is not complete; run the same command with --resume" in call(*arguments).stderr
    other = call(*arguments, "--resume", "--both")
    assert (other.exit_code, "started with different options (both)" in other.stderr) == (2, True)
    monkeypatch.setattr(jobs, "run_local", partial_of_threads)
    assert call(*arguments, "--resume").exit_code == 0
    assert (tmp_path / "paths.txt").read_text() == expected
    assert not (tmp_path / "paths.txt.work").exists()
    assert "no run to resume; omit --resume to start one" in call(*arguments, "--resume").stderr


def test_a_resumed_list_has_the_size_of_all_files(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last line counts the files and bytes of all calls."""
    (tmp_path / "files").mkdir()
    for name in "abc":
        (tmp_path / "files" / name).write_text("content")
    monkeypatch.setattr(HashFiles.plan, "__defaults__", (1, 1, *HashFiles.plan.__defaults__[2:]))
    arguments = ("hash", "files", "-o", "list", "--workers", "2")

    def interrupted(job: Any, work: Any, *_: Any, **options: Any) -> Any:
        assert isinstance(jobs.run_chunk(job, next(work.chunks()), work.place(job)), jobs.Receipt)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(jobs, "run_local", interrupted)
        assert call(*arguments).exit_code == 130
    monkeypatch.setattr(jobs, "run_local", partial_of_threads)
    done = call(*arguments, "--resume")
    assert (done.stderr, done.exit_code) == ("pressmark: list: 3 files, 21 B; sha512\n", 0)


def test_chunks_that_fail(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a chunk fails, there is no output; finished chunks are kept."""
    (tmp_path / "ids.txt").write_text("a\nb\n")

    def fail(*_: Any) -> Any:
        raise ValueError("broken")

    with monkeypatch.context() as patched:
        patched.setattr(MapIds, "run", fail)
        done = call("map", "pairtree", "ids.txt", "--workers", "1", "--work", "w")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "failed: broken" in done.stderr
    assert "1 of 1 parts are missing; run the same command with --resume to continue" in done.stderr
    resumed = call("map", "pairtree", "ids.txt", "--workers", "1", "--work", "w", "--resume")
    assert (resumed.stdout, resumed.exit_code) == (call("map", "pairtree", "ids.txt").stdout, 0)
    assert not (tmp_path / "w").exists()


def test_processes(run: Run, tmp_path: Path) -> None:
    """Processes give the same result; without workers, jobs are not imported."""
    (tmp_path / "files" / "a").mkdir(parents=True)
    for number in range(20):
        (tmp_path / "files" / "a" / str(number)).write_text(str(number))
    script = (
        "import sys; from pressmark.fixity.job import HashFiles; from pressmark.cli import main;"
        "HashFiles.plan.__defaults__ = (4, 100, *HashFiles.plan.__defaults__[2:]);"
        "main(sys.argv[1:], standalone_mode=False)"
    )
    command = [sys.executable, "-c", script, "hash", "files", "--workers", "2"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, check=False, timeout=60)
    alone = run("hash", "files")
    assert (done.stdout, done.stderr, alone.returncode) == (alone.stdout, b"", 0)
    script = "import sys; from pressmark.cli import main; main(['hash', 'files'], standalone_mode=False);"
    script += "sys.exit([name for name in sys.modules if name.startswith('pressmark.jobs')])"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment(), capture_output=True)
    assert (done.returncode, done.stderr) == (1, b"[]\n")


@pytest.mark.parametrize("kind", ["ocfl", "pairtree", "vitro", "bags"])
def test_store_check(both: Both, tmp_path: Path, kind: str) -> None:
    """Problems come in the order of the store, with advice and counts once."""
    broken(kind, tmp_path / "store")
    for more in ((), ("--digests", "--json"), ("--ignore", "stray", "--json")):
        # A change in a bag shows only in its digests.
        found = kind != "bags" or "--digests" in more
        assert both("store", "check", "store", *more).exit_code == found


def test_an_empty_store(call: Call, tmp_path: Path) -> None:
    """An empty store has counts of zero, and the same output as without workers."""
    stores.create("ocfl", tmp_path / "store", pressmark.layout("0003"))
    alone = call("store", "check", "store", "--json")
    shared = call("store", "check", "store", "--json", "--workers", "1")
    assert (shared.stdout, shared.stderr, shared.exit_code) == (alone.stdout, alone.stderr, 0)
    (tmp_path / "store" / "ocfl_layout.json").unlink()
    refused = call("store", "check", "store", "--workers", "1")
    assert (refused.exit_code, "specify one (--layout), or check the store without workers" in refused.stderr) == (
        2,
        True,
    )


def test_the_default_of_work(call: Call) -> None:
    """The help of --work names an output file only in commands that have one."""
    for words, has_output in (("hash", True), ("map", True), ("bag validate", False), ("store check", False)):
        assert ("OUTPUT.work" in call(*words.split(), "--help").stdout) == has_output
