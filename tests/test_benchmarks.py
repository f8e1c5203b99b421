"""The benchmarks run, fail on a wrong answer, and find a slower commit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.processes import PACKAGE

ROOT = Path(__file__).parents[1]
pytestmark = [
    pytest.mark.repository,
    pytest.mark.peers,
    pytest.mark.long(only=True),
    pytest.mark.slow_under_sanitizers,
    pytest.mark.skipif(sys.platform != "linux", reason="the benchmarks use programs of Linux"),
]
FEW = ("--count", "200", "--scale", "0.01", "--benchmark-max-time", "0.01", "--benchmark-min-rounds", "1")


def run(tmp_path: Path, *arguments: str, code: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Run ``pytest benchmarks``.

    :param code: run first in its Python process and in those that it starts
    """
    pytest.importorskip("pytest_benchmark")
    (tmp_path / "sitecustomize.py").write_text(code)
    paths = (tmp_path, PACKAGE.parent, ROOT)
    environment = {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [sys.executable, "-m", *arguments, "--disk", str(tmp_path / "disk")]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_all_run(tmp_path: Path) -> None:
    """Also: each group has one yardstick at most of a kind, and there are many groups."""
    record = tmp_path / "record.json"
    done = run(tmp_path, "pytest", "benchmarks", "-q", *FEW, "--benchmark-json", str(record))
    assert done.returncode == 0, done.stdout + done.stderr
    measured = json.loads(record.read_text())["benchmarks"]
    assert len({one["group"] for one in measured}) >= 40
    assert all("data" not in one["stats"] for one in measured)


def test_scale(tmp_path: Path) -> None:
    few = ("--scale", "0.00001", "-m", "scale", "-k", "not every_path")
    done = run(tmp_path, "pytest", "benchmarks", "-q", *few)
    assert done.returncode == 0, done.stdout + done.stderr


def test_one_core(tmp_path: Path) -> None:
    """Programs that are missing are skipped; the digests of the others are compared."""
    done = run(tmp_path, "pytest", "benchmarks/test_one_core.py", "-q", *FEW, "-m", "peers")
    assert done.returncode == 0, done.stdout + done.stderr


# The kernel of the native implementation does not divide the cleaned identifier into pairs.
WRONG = """
from pressmark import _kernels
native = _kernels.load("native")
native.PairtreeMap = lambda *_given: native.PairtreeClean()
"""
SLOW = """
import time
from pressmark.layouts import Pairtree
mapped = Pairtree.map_ids
Pairtree.map_ids = lambda *given, **how: time.sleep(0.1) or mapped(*given, **how)
"""


def test_a_wrong_answer_fails(tmp_path: Path) -> None:
    done = run(tmp_path, "pytest", "benchmarks/test_map.py", "-q", *FEW, "-k", "native-pairtree-list", code=WRONG)
    assert done.returncode == 1
    assert "wrong paths" in done.stdout


def test_wrong_digests_fail(tmp_path: Path) -> None:
    """Also of a program: its last file has the digest of another one."""
    false = tmp_path / "sha512sum"
    false.write_text('#!/bin/sh\n/usr/bin/sha512sum "$@" | sed "\\$s/^./x/"\n')
    false.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    chosen = ("-m", "peers", "-k", "sha512 and coreutils")
    done = run(tmp_path, "pytest", "benchmarks/test_one_core.py", "-q", *FEW, *chosen, PATH=path)
    assert done.returncode == 1
    assert "wrong digests" in done.stdout


def test_a_slow_answer_does_not_fail(tmp_path: Path) -> None:
    done = run(tmp_path, "pytest", "benchmarks/test_map.py", "-q", *FEW, "-k", "native-pairtree-list", code=SLOW)
    assert done.returncode == 0, done.stdout + done.stderr
