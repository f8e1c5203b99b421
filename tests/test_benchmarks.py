"""Every suite of the benchmarks runs, with its smallest sizes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.processes import PACKAGE

ROOT = Path(__file__).parents[1]
# Left out: the suites peers and walk, and parts of objects, which install other programs.
CALLS = (
    "mapping --count 200 --runs 1",
    "mapping --check --size 50",
    "mapping --all --size 20 --runs 1",
    "lanes --count 100 --runs 1 md5",
    "hashing --scale 0.005 --runs 1 --shape small --peers sha512 xxh128",
    "hashing --scale 0.005 --runs 1 --shape small --lines",
    "growth --gib 0.01 0.02 --only xxh128",
    "small_files --count 50",
    "objects --count 20 --runs 1 --huge 100000 --part put --part one --part hash --part bytes --part plan",
    "bags --scale 0.0005 --runs 1 --only pressmark",
    "bags --small --scale 0.01 --runs 1 --only pressmark",
    "bags --archives --scale 0.01 --runs 1",
    "migration --count 20 --runs 1",
    "compare --count 500",
    "jobs --count 4 --identifiers 100 --files 10",
)


@pytest.mark.repository
@pytest.mark.peers
@pytest.mark.long(only=True)
@pytest.mark.slow_under_sanitizers
@pytest.mark.skipif(sys.platform != "linux", reason="the benchmarks read /proc")
@pytest.mark.parametrize("call", CALLS)
def test_suites_run(tmp_path: Path, call: str) -> None:
    if call.startswith("lanes") and shutil.which("gcc") is None:
        pytest.skip("no gcc")
    command = [sys.executable, "-m", "benchmarks", *call.split(), "--folder", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"## {call.split()[0]}\n")
