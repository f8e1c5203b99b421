"""Unreadable files are errors of every check, for every kind of store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pressmark
from pressmark import stores
from support.implementations import Implementation

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs modes of files")


@pytest.mark.parametrize("kind", stores.KINDS)
def test_every_denial(implementation: Implementation, open_folder: Path, kind: str) -> None:
    """Any unreadable file or directory is reported, with digests and without."""
    environment = {
        **os.environ,
        "PRESSMARK_IMPLEMENTATION": implementation.name,
        "PYTHONPATH": os.pathsep.join([str(Path(pressmark.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, str(Path(__file__).with_name("every_denial.py")), kind, str(open_folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == []
