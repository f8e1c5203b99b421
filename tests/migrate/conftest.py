"""Fixtures shared by the tests of migration."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The path of a source to create."""
    return tmp_path / "source"


def library(source: Path, folder: Path) -> str:
    """Compile a library, and return the value of LD_PRELOAD."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("no C compiler, or no way to preload a library")
    built = folder / f"{source.stem}.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", built, source, "-ldl"], check=True, capture_output=True)
    return " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(built)]))


@pytest.fixture(scope="session")
def changes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library that injects faults into changes of the disk."""
    source = Path(__file__).parents[1] / "stores" / "disk_faults.c"
    return library(source, tmp_path_factory.mktemp("faults"))
