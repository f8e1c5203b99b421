"""The command, run in another process or in this one."""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest
from click.testing import CliRunner, Result

import pressmark
from pressmark.cli import main

PACKAGE_PARENT = str(Path(pressmark.__file__).parent.parent)
COMMAND = [sys.executable, "-m", "pressmark"]

# A BagIt Profile that requires a contact.
PROFILE = {
    "BagIt-Profile-Info": {
        "BagIt-Profile-Identifier": "http://example.org/profile.json",
        "Source-Organization": "Example University",
        "External-Description": "Bags with a contact",
        "Version": "1.0",
        "BagIt-Profile-Version": "1.4.0",
    },
    "Bag-Info": {"Contact-Name": {"required": True}},
    "Accept-BagIt-Version": ["1.0"],
}

# The limit for one process, however much data passes through it.
MEMORY = 100 << 20  # 100 MiB

USER_VARIABLES = ("PRESSMARK_USER", "PRESSMARK_USER_ADDRESS")

Run = Callable[..., subprocess.CompletedProcess[bytes]]
Call = Callable[..., Result]


def environment() -> dict[str, str]:
    """Return this environment, with PRESSMARK_IMPLEMENTATION, and with the package importable from any folder; without
    the user of new versions.
    """
    path = os.pathsep.join(filter(None, [PACKAGE_PARENT, os.environ.get("PYTHONPATH")]))
    kept = {name: value for name, value in os.environ.items() if name not in USER_VARIABLES}
    return {**kept, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the real command in an empty folder; data are bytes."""

    def run(*args: str | bytes, stdin: bytes = b"", **options: Any) -> subprocess.CompletedProcess[bytes]:
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": tmp_path, **options}
        done: subprocess.CompletedProcess[bytes] = subprocess.run(
            [*COMMAND, *args], input=stdin, env=environment(), timeout=60, check=False, **options
        )
        return done

    return run


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run the command through click's runner in an empty folder."""
    monkeypatch.chdir(tmp_path)
    for name in USER_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    # Before click 8.2, separate streams are an option.
    apart: dict[str, Any] = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}

    def call(*args: str, stdin: bytes = b"") -> Result:
        result = CliRunner(**apart).invoke(main, args, input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return call


@pytest.fixture
def quick(call: Call) -> Run:
    """Run the command like ``run``, but in this process: for all that is neither of the process nor of its streams."""

    def quick(*args: str | bytes, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        done = call(*map(os.fsdecode, args), stdin=stdin)
        return subprocess.CompletedProcess(args, done.exit_code, done.stdout_bytes, done.stderr_bytes)

    return quick


def used_memory(process: int) -> int:
    """Return a process's peak memory in bytes; 0 where it is unknown or meaningless."""
    status = Path(f"/proc/{process}/status")
    if not status.exists() or "asan" in os.environ.get("LD_PRELOAD", ""):
        return 0
    found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text())
    return int(found[1]) << 10 if found else 0


def feed_endlessly(arguments: list[str], block: bytes, lines: int = 200_000) -> bytes:
    """Feed the command ``block`` endlessly, read ``lines`` lines of its output, close it, and return the last line.

    The command must end by itself, without output on stderr and with status 0, within the memory limit of every run.
    """
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdin
    assert process.stdout
    assert process.stderr

    def feed(stdin: IO[bytes]) -> None:
        # Until the command has ended, as these tests require.
        with contextlib.suppress(OSError):
            while True:
                stdin.write(block)
        with contextlib.suppress(OSError):
            stdin.close()

    feeder = threading.Thread(target=feed, args=[process.stdin])
    feeder.start()
    line = b""
    for _ in range(lines):
        line = process.stdout.readline()
    assert used_memory(process.pid) < MEMORY
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    feeder.join(timeout=60)
    assert process.stderr.read() == b""
    process.stderr.close()
    return line


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with everything that the calls of all commands read."""
    from .every_command import make_files  # it imports this module

    folder = tmp_path_factory.mktemp("every-command")
    make_files(folder)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(made, tmp_path / "folder", symlinks=True)
