"""The notebook of the examples runs, and its stored results are those of this version."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pressmark

pytestmark = pytest.mark.repository

ROOT = Path(__file__).parents[1]


def test_notebook() -> None:
    """Each cell gives the result that the notebook shows."""
    path = os.pathsep.join(filter(None, [str(Path(pressmark.__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, str(ROOT / "ci" / "notebook"), "--check"]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
