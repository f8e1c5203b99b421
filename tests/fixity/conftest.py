"""The command in another process, optionally with injected faults."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pressmark
from support.preloading import preloadable

SOURCE = Path(__file__).with_name("faults.c")
PACKAGE_PARENT = str(Path(pressmark.__file__).parent.parent)
COMMAND = [sys.executable, "-m", "pressmark"]

Run = Callable[..., subprocess.CompletedProcess[bytes]]


def environment(**more: str) -> dict[str, str]:
    """Return this environment, with the package importable from any folder."""
    path = os.pathsep.join(filter(None, [PACKAGE_PARENT, os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8", **more}


@pytest.fixture(scope="session")
def faults(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The fault library, to be preloaded."""
    return preloadable(SOURCE, tmp_path_factory.mktemp("faults"))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the real command in an empty folder, under ``implementation`` if given."""

    def run(*args: str | bytes, variables: dict[str, str] | None = None, **options: Any) -> Any:
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": tmp_path, "timeout": 120, **options}
        return subprocess.run([*COMMAND, *args], env=environment(**(variables or {})), check=False, **options)

    return run
