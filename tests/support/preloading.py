"""Libraries that tests preload into processes of their own, to make the system fail."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pressmark


def preloadable(source: Path, folder: Path) -> str:
    """Compile a library into a folder, and return the value of ``LD_PRELOAD``; skip the test if that fails."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("no C compiler, or no way to preload a library")
    target = subprocess.run([compiler, "-dumpmachine"], check=True, capture_output=True, text=True).stdout
    if not target.startswith(platform.machine()):  # this Python is emulated
        pytest.skip(f"the C compiler is for {target.strip()}")
    library = folder / f"{source.stem}.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(library)]))


def run_preloaded(library: str, script: Path, *arguments: str, **variables: str) -> str:
    """Run a script of the tests with a preloaded library, and return its output; it must succeed silently."""
    # The tests first: there is also a library called bagit.
    paths = [Path(__file__).parents[1], Path(pressmark.__file__).parents[1], os.environ.get("PYTHONPATH", "")]
    path = os.pathsep.join(str(one) for one in paths if one)
    environment = {**os.environ, "LD_PRELOAD": library, "PYTHONPATH": path, **variables}
    command = [sys.executable, str(script), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout
