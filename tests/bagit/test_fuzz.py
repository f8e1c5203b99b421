"""Random bags and tag files, and proof that the guard against opening files outside of a bag works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.effort import repeats

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("fuzz.py")

CULPRIT = """
import os, sys
sys.path.insert(0, {tests!r})
from bagit.fuzz_guard import Guard
inside, outside = (os.fsencode(path) for path in sys.argv[1:])
guard = Guard([outside], [inside, *map(os.fsencode, filter(None, sys.path))])
secret = os.path.join(outside, b"secret")
def culprit(act):
    guard.seen()
    guard.on = True
    act()
    guard.on = False
    return bool(guard.seen())
def beneath(path):
    directory = os.open(inside, os.O_RDONLY)
    try:
        os.close(os.open(path, os.O_RDONLY, dir_fd=directory))
    finally:
        os.close(directory)
print([
    culprit(lambda: open(os.path.join(inside, b"file")).close()),
    culprit(lambda: os.listdir(inside)),
    culprit(lambda: beneath(b"file")),
    culprit(lambda: open(secret).close()),
    culprit(lambda: os.listdir(outside)),
    culprit(lambda: beneath(b"../outside/secret")),
    culprit(lambda: beneath(b"link/secret")),
])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux reports files opened by C")
def test_the_guard_detects_access(tmp_path: Path) -> None:
    """Files of a bag may be opened; the guard detects others, by path, by descriptor or through a link."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for directory in (inside, outside):
        directory.mkdir()
    (inside / "file").write_text("x")
    (outside / "secret").write_text("x")
    (inside / "link").symlink_to(outside)
    script = CULPRIT.format(tests=str(ROOT / "tests"))
    run = subprocess.run(
        [sys.executable, "-c", script, str(inside), str(outside)], capture_output=True, text=True, check=True
    )
    assert run.stdout == "[False, False, False, True, True, True, True]\n"


@pytest.mark.fuzz
@pytest.mark.slow_under_sanitizers
@pytest.mark.skipif(sys.platform == "win32", reason="pipes, links and resource limits of POSIX")
def test_fuzzing() -> None:
    """A few seconds of fuzzing find nothing; the seed in the output reproduces a failure."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.run(
        [sys.executable, str(SCRIPT), str(repeats(2, 60))], env=variables, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert ", 0 failures" in run.stdout.splitlines()[-1]
