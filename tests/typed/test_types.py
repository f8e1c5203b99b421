"""The types that the library declares, as mypy and pyright read them."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pressmark

EXAMPLES = [Path(__file__).with_name(name) for name in ("examples.py", "pipeline.py")]
PARENT = Path(pressmark.__file__).parent.parent
INSTALLED = PARENT.name.endswith("-packages")
MISSING = {name: importlib.util.find_spec(name) is None for name in ("mypy", "basedpyright")}

pytestmark = [pytest.mark.peers, pytest.mark.slow_under_sanitizers]


def run(*arguments: str, folder: Path) -> str:
    """Run a type checker like a user of the library, and return its output if it reports errors."""
    where = {} if INSTALLED else {"MYPYPATH": str(PARENT)}
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env={**os.environ, **where},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.fixture(autouse=True)
def _there(request: pytest.FixtureRequest) -> None:
    """Skip a checker that is not installed, or fail if it is required."""
    name = "mypy" if "mypy" in request.node.name else "basedpyright"
    if MISSING[name]:
        if request.config.getoption("--require-peers", default=False):
            pytest.fail(f"{name} is not installed")
        pytest.skip(f"{name} is not installed")


def test_mypy(tmp_path: Path) -> None:
    """Every example has the asserted type in mypy."""
    arguments = ["--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache")]
    assert run("mypy", *arguments, "--config-file=", *map(str, EXAMPLES), folder=tmp_path) == ""


@pytest.mark.long(only=True)
def test_pyright(tmp_path: Path) -> None:
    """Every example has the asserted type in pyright."""
    config = {
        "include": [path.name for path in EXAMPLES],
        "typeCheckingMode": "strict",
        "enableTypeIgnoreComments": True,
        "reportUnnecessaryTypeIgnoreComment": True,
        "extraPaths": [] if INSTALLED else [str(PARENT)],
    }
    for path in EXAMPLES:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    assert run("basedpyright", "--pythonpath", sys.executable, folder=tmp_path) == ""
