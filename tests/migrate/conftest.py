"""What tests of migration share."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Where a source is to be made."""
    return tmp_path / "source"


def library(source: Path, folder: Path) -> str:
    """Compile a library, and return what is to be preloaded."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("no C compiler, or no way to preload a library")
    built = folder / f"{source.stem}.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", built, source, "-ldl"], check=True, capture_output=True)
    return " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(built)]))


@pytest.fixture(scope="session")
def changes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library by which changes of the disk fail."""
    source = Path(__file__).parents[1] / "stores" / "disk_faults.c"
    return library(source, tmp_path_factory.mktemp("faults"))
