"""The command, run as a process of its own or inside this one."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import pressmark
from pressmark.cli import main

PACKAGE_PARENT = str(Path(pressmark.__file__).parent.parent)
COMMAND = [sys.executable, "-m", "pressmark"]

Run = Callable[..., subprocess.CompletedProcess[bytes]]
Call = Callable[..., Result]


def environment() -> dict[str, str]:
    """Return this environment, PRESSMARK_IMPLEMENTATION included, with the package to be found from any folder."""
    path = os.pathsep.join(filter(None, [PACKAGE_PARENT, os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the real command in an empty folder; data are bytes."""

    def run(*args: str | bytes, stdin: bytes = b"", **options: Any) -> subprocess.CompletedProcess[bytes]:
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        done: subprocess.CompletedProcess[bytes] = subprocess.run(
            [*COMMAND, *args], input=stdin, cwd=tmp_path, env=environment(), timeout=60, check=False, **options
        )
        return done

    return run


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run the command through click's runner in an empty folder."""
    monkeypatch.chdir(tmp_path)
    # Before click 8.2 the streams are only apart when asked for.
    apart: dict[str, Any] = {"mix_stderr": False} if "mix_stderr" in inspect.signature(CliRunner).parameters else {}

    def call(*args: str, stdin: bytes = b"") -> Result:
        result = CliRunner(**apart).invoke(main, args, input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return call
