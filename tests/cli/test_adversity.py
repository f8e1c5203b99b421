"""Every command without threads, with few descriptors, closed streams, interrupts, failing reads and odd values.

None prints a traceback, and none outlives its limit. The ordinary form takes some of the cases, the long one all.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import Call, environment
from .every_command import COMMANDS, options_of

LIMIT = 60  # seconds

# In the child, before the command begins.
NO_THREADS = """
import _thread, threading
def refuse(*_arguments, **_more):
    raise RuntimeError("can't start new thread")
_thread.start_new_thread = threading._start_new_thread = threading._start_joinable_thread = refuse
"""
FAILING_READS = """
import builtins, errno, os
def failing(function):
    def call(*arguments, **more):
        if READS[0] == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        READS[0] -= 1
        return function(*arguments, **more)
    return call
READS = [{reads}]
os.open, os.read, os.scandir, os.listdir = map(failing, (os.open, os.read, os.scandir, os.listdir))
"""
IGNORED = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"


def cases(request: pytest.FixtureRequest, each: int) -> Iterator[str]:
    """Yield the names of all commands, or in the ordinary form, of one in ``each``, in turn by the test."""
    names = list(COMMANDS)
    if request.config.getoption("--long"):
        yield from names
    else:
        yield from names[sum(map(ord, request.node.name)) % each :: each]


def ended(name: str, folder: Path, before: str = "", **options: Any) -> None:
    """Run a command in a child, and check how it ends."""
    code = f"{before}\nimport sys; sys.argv = ['pressmark', *sys.argv[1:]]\nfrom pressmark.__main__ import main; main()"
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, **options}
    process = subprocess.Popen([sys.executable, "-c", code, *COMMANDS[name]], cwd=folder, env=environment(), **options)
    check(name, process)


def check(name: str, process: subprocess.Popen[bytes], *, statuses: tuple[int, ...] = (0, 1, 2, 130)) -> None:
    _, errors = process.communicate(timeout=LIMIT)
    text = (errors or b"").decode()
    assert "Traceback" not in text, f"{name}: {text}"
    assert "Exception ignored" not in text, f"{name}: {text}"
    assert process.returncode in statuses, f"{name}: {process.returncode}: {text}"


def test_without_threads(request: pytest.FixtureRequest, folder: Path) -> None:
    """The calling thread does what other threads would."""
    for name in cases(request, 3):
        copy = shutil.copytree(folder, folder.parent / name)
        process = subprocess.run(
            [sys.executable, "-c", f"{NO_THREADS}\nfrom pressmark.__main__ import main; main()", *COMMANDS[name]],
            cwd=copy, env=environment(), capture_output=True, timeout=LIMIT, check=False,
        )  # fmt: skip
        assert process.returncode == 0 or name == "unmap", f"{name}: {process.stderr.decode()}"
        assert b"Traceback" not in process.stderr, name
        shutil.rmtree(copy)


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
@pytest.mark.parametrize("descriptors", [64, 12, 9])
def test_few_descriptors(request: pytest.FixtureRequest, folder: Path, descriptors: int) -> None:
    """Files that cannot be opened are reported."""
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    for name in cases(request, 5):
        ended(name, folder, preexec_fn=limit)


@pytest.mark.skipif(os.name != "posix", reason="descriptors of POSIX")
@pytest.mark.parametrize("descriptor", [0, 1, 2])
def test_closed_streams(request: pytest.FixtureRequest, folder: Path, descriptor: int) -> None:
    """A missing stdin, stdout or stderr ends no command with a traceback."""
    kept: dict[str, Any] = {"stderr": subprocess.DEVNULL} if descriptor == 2 else {}
    for name in cases(request, 5):
        ended(name, folder, preexec_fn=lambda: os.close(descriptor), **kept)


def test_a_full_stdout(request: pytest.FixtureRequest, folder: Path) -> None:
    """A failed write to stdout is named."""
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    for name in cases(request, 5):
        with open("/dev/full", "wb") as full:
            ended(name, folder, stdout=full)


def test_failing_reads(request: pytest.FixtureRequest, folder: Path) -> None:
    """An input/output error at any open, read or listing is a failure of a file, never of stdout."""
    for name in cases(request, 5):
        for reads in (0, 1, 2, 3, 5, 8, 13, 21) if request.config.getoption("--long") else (1, 5):
            code = FAILING_READS.format(reads=reads)
            process = subprocess.run(
                [sys.executable, "-c", f"from pressmark.__main__ import main\nimport pressmark.cli\n{code}\nmain()",
                 *COMMANDS[name]],
                cwd=folder, env=environment(), capture_output=True, timeout=LIMIT, check=False,
            )  # fmt: skip
            text = process.stderr.decode()
            assert "Traceback" not in text, f"{name}, {reads} reads: {text}"
            assert "<stdout>: Input/output error" not in text, f"{name}, {reads} reads: {text}"


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("before", ["", IGNORED], ids=["handled", "ignored"])
def test_interrupts(request: pytest.FixtureRequest, folder: Path, before: str) -> None:
    """An interrupt at any time, also while modules are imported, ends the command with one line at most."""
    rng = random.Random(request.node.name)
    code = f"{before}\nimport os; from pressmark.__main__ import main; os.write(1, b'.'); main()"
    for name in cases(request, 5):
        for limit in (0.02, 0.05, 0.1, 0.1, 0.2, 0.2, 0.4, 0.8) if request.config.getoption("--long") else (0.05, 0.2):
            process = subprocess.Popen(
                [sys.executable, "-c", code, *COMMANDS[name]],
                cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )  # fmt: skip
            assert process.stdout is not None
            process.stdout.read(1)  # the first module was imported; those of the command were not
            time.sleep(rng.random() * limit)
            process.send_signal(signal.SIGINT)
            # An interrupt during imports ends the process by the signal.
            check(name, process, statuses=(0, 1, 2, 130, *([] if before else [-signal.SIGINT])))


# --- odd values -------------------------------------------------------------------------------------------------------

ODD = ["", "0", "-1", "inf", "nan", "1e300", "99999999999999999999", "[", "a=b", "\udcff", "x,y", "v0", ".", "é\n", "-"]


def valued_options() -> Iterator[tuple[str, str]]:
    """Yield the name of a command, and each of its options that takes a value."""
    for name in COMMANDS:
        for option in options_of(name):
            if not option.is_flag and not option.is_eager:
                yield name, option.opts[0]


@pytest.mark.filterwarnings("ignore")
def test_odd_values(request: pytest.FixtureRequest, folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any value of any option gives a result or one line."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "stdin", None)
    rng = random.Random(1)
    drawn: Callable[[], list[str]] = lambda: ODD if request.config.getoption("--long") else rng.sample(ODD, 1)  # noqa: E731
    for name, option in valued_options():
        if option in ("--dask", "--workers", "--probe"):
            continue  # processes, clusters and measurements: tests/cli/test_workers.py
        for value in drawn():
            done = call(*COMMANDS[name], option, value)
            assert done.exit_code in (0, 1, 2), f"{name} {option} {value!r}: {done.output}"
