"""Commands with ``--workers``: the output, its order and the exit status are those of one process."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result

import pressmark
from jobs.test_kinds import broken
from pressmark import bagit, jobs, stores
from pressmark.bagit.job import ValidateBags
from pressmark.fixity.job import HashFiles
from pressmark.jobs.receipts import Receipt
from pressmark.jobs.run import run_chunk
from pressmark.stores.job import CheckStore, PutObjects
from support.implementations import Implementation

from .conftest import Call, Run, environment

Both = Callable[..., Result]


@pytest.fixture
def both(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, implementation: Implementation) -> Both:
    """Make a call without workers and with some, compare everything, and return the result."""
    # Threads, with chunks of a few items: the cuts are tested.
    monkeypatch.setattr(jobs, "run_local", partial_of_threads)
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


def partial_of_threads(job: Any, work: Any, workers: int, *, processes: bool, **options: Any) -> Any:
    assert len(list(work.chunks())) > 1, "this would not be shared"
    return jobs.executors.run_local(job, work, workers, processes=False, **options)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("hash", "ids.txt", "--threads", "2"),
            "--threads: not supported with --workers",
        ),
        (("hash", "ids.txt", "--resume"), "--resume needs --work DIR"),
        (("store", "put", "s", "x", "ids.txt", "--workers", "2"), "workers store the objects of a list"),
        (("store", "put", "s3://b/s", "--from", "ids.txt", "--workers", "2"), "--workers: not supported"),
        (("hash", "ids.txt", "--dask", "tcp://x:1"), "--dask: not supported with --workers"),
        (
            ("hash", "ids.txt", "--ledger", "l"),
            "is resumed with --work and --resume",
        ),
        (
            ("hash", "ids.txt", "--read", "sequential"),
            "--read: not supported with --workers",
        ),
        (("hash", ".", "-o", "sums"), "work folder inside "),
    ],
)
def test_unsupported_combinations(call: Call, tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    """An unsupported combination is refused in one line with the remedy."""
    (tmp_path / "ids.txt").write_text("a\n")
    done = call(*arguments, "--workers", "2")
    assert (done.exit_code, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "sums").exists()


def test_options_that_need_workers(call: Call, tmp_path: Path) -> None:
    """Without workers there is no work folder, and with a cluster it must be named."""
    (tmp_path / "ids.txt").write_text("a\n")
    for option in (("--work", "w"), ("--resume",)):
        assert f"{option[0]} requires --workers or --dask" in call("hash", "ids.txt", *option).stderr
    assert "--dask needs --work DIR" in call("hash", "ids.txt", "--dask", "tcp://localhost:1").stderr


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
        bagit.make_bag(tmp_path / f"bag{number}")
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
    small_files(tmp_path, monkeypatch)
    expected = call("hash", "files").stdout
    arguments = ("hash", "files", "-o", "list", "--workers", "2")
    with monkeypatch.context() as patched:
        patched.setattr(jobs, "run_local", interrupted)
        done = call(*arguments)
        assert (done.exit_code, done.stderr) == (
            130,
            "pressmark: interrupted; run the same command with --resume to continue\n",
        )
    assert not (tmp_path / "list").exists()
    assert "was started here and is not complete; run the same command with --resume" in call(*arguments).stderr
    other = call(*arguments, "--resume", "-a", "md5")
    assert (other.exit_code, "started with different options (algorithms)" in other.stderr) == (2, True)
    monkeypatch.setattr(jobs, "run_local", partial_of_threads)
    assert call(*arguments, "--resume").exit_code == 0
    assert (tmp_path / "list").read_text() == expected
    assert not (tmp_path / "list.work").exists()
    assert "no run to resume; omit --resume to start one" in call(*arguments, "--resume").stderr


def small_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write three files, and have each of them hashed in a chunk of its own."""
    (folder / "files").mkdir()
    for name in "abc":
        (folder / "files" / name).write_text("content")
    monkeypatch.setattr(HashFiles.plan, "__defaults__", (1, 1, *HashFiles.plan.__defaults__[2:]))


def interrupted(job: Any, work: Any, *_: Any, **options: Any) -> Any:
    """Run the first chunk of a job, and interrupt it."""
    assert isinstance(run_chunk(job, next(work.chunks()), work.for_workers(job)), Receipt)
    raise KeyboardInterrupt


def test_a_resumed_list_has_the_size_of_all_files(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last line counts the files and bytes of all calls."""
    small_files(tmp_path, monkeypatch)
    arguments = ("hash", "files", "-o", "list", "--workers", "2")
    with monkeypatch.context() as patched:
        patched.setattr(jobs, "run_local", interrupted)
        assert call(*arguments).exit_code == 130
    monkeypatch.setattr(jobs, "run_local", partial_of_threads)
    done = call(*arguments, "--resume")
    assert (done.stderr, done.exit_code) == ("pressmark: list: 3 files, 21 B; sha512\n", 0)


def test_chunks_that_fail(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a chunk fails, there is no output; finished chunks are kept."""
    (tmp_path / "file").write_text("content")

    def fail(*_: Any) -> Any:
        raise ValueError("broken")

    with monkeypatch.context() as patched:
        patched.setattr(HashFiles, "run", fail)
        done = call("hash", "file", "--workers", "1", "--work", "w")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "failed: broken" in done.stderr
    assert "1 of 1 parts are missing; run the same command with --resume to continue" in done.stderr
    resumed = call("hash", "file", "--workers", "1", "--work", "w", "--resume")
    assert (resumed.stdout, resumed.exit_code) == (call("hash", "file").stdout, 0)
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


@pytest.mark.parametrize("kind", ["ocfl", "pairtree", "vitro", "bags"])
def test_store_put(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, implementation: Implementation, kind: str
) -> None:
    """Objects, errors, counts and their order are those of one process."""
    monkeypatch.setattr(jobs, "run_local", partial_of_threads)
    monkeypatch.setattr(PutObjects.plan, "__defaults__", (2,))
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "file").write_text("content")
    source = tmp_path / "source" / "file" if kind == "vitro" else tmp_path / "source"
    names = [f"http://example.org/{number}" for number in range(7)]
    lines = [f"{name}\t{source}\n" for name in names]
    lines[3:3] = ["no source\n", f"http://example.org/missing\t{tmp_path}/missing\n"]
    (tmp_path / "list").write_text("".join(lines))
    how = {"ocfl": ("--layout", "0003"), "vitro": ("--namespace", "n=http://example.org/")}.get(kind, ())
    made: list[Result] = []
    for name, more in (("one", ()), ("two", ("--workers", "2"))):
        call("store", "init", kind, name, *how)
        provenance = ("--user", "A", "--user-address", "mailto:a@example.org") if kind == "ocfl" else ()
        put = ("store", "put", name, "--from", "list", *provenance, *more)
        made += [call(*put), call(*put, "--json"), call("store", "ls", name)]
    for one, two in zip(made[:3], made[3:], strict=True):
        assert two.exit_code == one.exit_code
        assert two.stdout == one.stdout
        # A worker knows the store by its absolute path.
        lines = [re.sub(r"\b(one|two): |'[^']*(one|two)': ", "", done.stderr).splitlines() for done in (one, two)]
        assert sorted(lines[0]) == sorted(lines[1])
    assert made[0].exit_code == 1
    assert made[0].stdout.count("\n") == 7


def test_lines_with_one_identifier(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is stored: parts of a run have no order, and the last version would be any."""
    monkeypatch.setattr(jobs, "run_local", partial_of_threads)
    monkeypatch.setattr(PutObjects.plan, "__defaults__", (1,))
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    (tmp_path / "list").write_text("x\ta\ny\ta\nx\tb\n")
    call("store", "init", "ocfl", "root", "--layout", "0002")
    done = call("store", "put", "root", "--from", "list", "--replace", "--workers", "2")
    assert (done.exit_code, done.stdout) == (1, "x\tx\ny\ty\n")
    assert "object 'x': listed before; list each object once, or run without workers" in done.stderr
    assert call("store", "cat", "root", "x", "a").stdout == "a"


def test_an_interrupted_put(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored remains, and the same command stores the others, with and without a work folder."""
    monkeypatch.setattr(PutObjects.plan, "__defaults__", (1,))
    (tmp_path / "a").write_text("a")
    for more in ((), ("--work", "w")):
        store = f"store{len(more)}"
        call("store", "init", "pairtree", store)
        (tmp_path / "list").write_text("x\ta\ny\ta\n")
        put = ("store", "put", store, "--from", "list", "--workers", "2", *more)
        with monkeypatch.context() as patched:
            patched.setattr(jobs, "run_local", interrupted)
            done = call(*put)
        assert (done.exit_code, done.stdout) == (130, "")
        if more:
            assert "run the same command with --resume to continue" in done.stderr
            put = (*put, "--resume")
        else:
            assert "stored objects remain; run the same command again to store the others" in done.stderr
        assert call("store", "ls", store).stdout.count("\n") == 1
        monkeypatch.setattr(jobs, "run_local", partial_of_threads)
        done = call(*put)
        assert (done.exit_code, done.stdout.count("\n")) == (0, 2)
    assert not (tmp_path / "w").exists()


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


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("tcp://node1:8786", {"address": "tcp://node1:8786"}),
        ("node1:8786", {"address": "node1:8786"}),
        ("[::1]:8786", {"address": "[::1]:8786"}),
        ("scheduler.json", {"scheduler_file": "scheduler.json"}),
        ("shared/scheduler:1", {"scheduler_file": "shared/scheduler:1"}),
        ("none", None),
    ],
)
def test_a_cluster_by_address_or_file(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, expected: dict[str, str] | None
) -> None:
    """``--dask`` accepts an address, with a protocol or a port, and the file of a scheduler."""
    found: list[dict[str, str]] = []

    def client(*, timeout: float, set_as_default: bool, **how: str) -> Any:
        found.append(how)
        raise OSError("no answer")

    monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(Client=client))
    (tmp_path / "shared").mkdir()
    for name in ("scheduler.json", "shared/scheduler:1"):
        (tmp_path / name).touch()
    reason = "file not found" if expected is None else "Dask scheduler unreachable (no answer)"
    assert f"{given}': {reason}" in call("hash", "shared", "--dask", given, "--work", "work").stderr
    assert found == ([] if expected is None else [expected])


def test_the_default_of_work(call: Call) -> None:
    """The help of --work names an output file only in commands that have one."""
    for words, has_output in (("hash", True), ("bag validate", False), ("store check", False)):
        assert ("OUTPUT.work" in call(*words.split(), "--help").stdout) == has_output
