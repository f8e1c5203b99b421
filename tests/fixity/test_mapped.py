"""Large files as memory: the same digests, and a file that becomes shorter is an outcome, not the end of a process."""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pressmark import _kernels
from pressmark.fixity import hash_files
from pressmark.fixity import hasher as hasher_module
from pressmark.fixity.hasher import Manner, hash_path
from support.implementations import NATIVE, Implementation, native_is_missing, use

from .conftest import environment
from .trees import content, expected

SIZE = (1 << 20) + 12345
PIECE = 1 << 16

maps = pytest.mark.skipif(
    not sys.platform.startswith("linux") or native_is_missing(), reason="only the fast twin maps, and on Linux"
)


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that counts as a large one."""
    monkeypatch.setattr(hasher_module, "LARGE", 1 << 18)
    monkeypatch.setattr(hasher_module, "MAPPED_SIZE", PIECE)
    path = tmp_path / "large"
    path.write_bytes(content(7, SIZE))
    return path


@maps
def test_is_mapped(implementation: Implementation, large: Path) -> None:
    """The fast twin maps and the readable one reads; the digest is the same, and so is what progress adds up to."""
    with large.open("rb") as file:
        mapped = _kernels.active.mapped(file.fileno(), SIZE)
        assert (mapped is not None) == (implementation == NATIVE)
        if mapped is not None:
            assert bytes(mapped) == large.read_bytes()
            assert not mapped.spoiled
        assert _kernels.active.mapped(file.fileno(), 0) is None
    assert _kernels.active.mapped(-1, SIZE) is None
    (outcome,) = hash_files([large], ["blake3"], threads=2)
    assert outcome.digests == {"blake3": expected(content(7, SIZE), "blake3")}


@pytest.mark.parametrize("size", [0, 4096, SIZE // 2, SIZE + 4096])
def test_changed_while_mapped(implementation: Implementation, large: Path, size: int) -> None:
    """A file that is cut or grows while it is read has no digest, and the next file has."""
    told: list[int] = []

    def cut(done: int) -> None:
        told.append(done)
        if len(told) == 1:
            os.truncate(large, size)

    manner = Manner()
    with manner.way() as way:
        outcome = hash_path(str(large), ["blake3"], manner, way, 2, cut)
    assert (outcome.digests, outcome.kind) == (None, "changed-while-read")
    large.write_bytes(content(8, SIZE))
    (outcome,) = hash_files([large], ["blake3"], threads=2)
    assert outcome.digests == {"blake3": expected(content(8, SIZE), "blake3")}


@maps
def test_holes_are_read(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that takes less room than it is long is not mapped."""
    os.truncate(large, 0)
    os.truncate(large, SIZE)
    with use(NATIVE):
        monkeypatch.setattr(_kernels.active, "mapped", lambda *_: pytest.fail("a hole was mapped"))
        (outcome,) = hash_files([large], ["blake3"], threads=2)
    assert outcome.digests == {"blake3": expected(bytes(SIZE), "blake3")}


@maps
def test_spoiled(large: Path) -> None:
    """What is not there any more reads as zeros, each mapping for itself, whoever else handles the signal."""
    with use(NATIVE), large.open("rb") as file:
        one = _kernels.active.mapped(file.fileno(), SIZE)
        faulthandler.enable()  # takes the signal for itself
        two = _kernels.active.mapped(file.fileno(), 4096)
        os.truncate(large, 4096)
        assert not one.spoiled
        assert bytes(one) == content(7, SIZE)[:4096] + bytes(SIZE - 4096)
        assert one.spoiled
        assert bytes(two) == content(7, SIZE)[:4096]
        assert not two.spoiled


@maps
def test_many_at_a_time(large: Path) -> None:
    """There are only so many at a time; the rest is read."""
    with use(NATIVE), large.open("rb") as file:
        held = [_kernels.active.mapped(file.fileno(), SIZE) for _ in range(80)]
        assert 0 < held.count(None) < 80
        assert bytes(next(one for one in held if one is not None)) == content(7, SIZE)
        del held
        assert _kernels.active.mapped(file.fileno(), SIZE) is not None


OTHERS = """
import mmap, os, signal, sys
from pressmark import _kernels
if sys.argv[2] == "handled":
    import faulthandler
    faulthandler.enable()
file = open(sys.argv[1], "r+b")
ours = _kernels.load("native").mapped(file.fileno(), 8192)
theirs = mmap.mmap(file.fileno(), 8192, access=mmap.ACCESS_READ)
if sys.argv[2] == "sent":
    os.kill(os.getpid(), signal.SIGBUS)
os.truncate(sys.argv[1], 0)
theirs[0]
print("survived")
"""


@maps
@pytest.mark.parametrize("how", ["plain", "handled", "sent"])
def test_the_signals_of_others(large: Path, how: str) -> None:
    """A process that others' mapping, or a signal from outside, would end is ended, and by their handler."""
    command = [sys.executable, "-c", OTHERS, str(large), how]
    # A sanitizer would take the signal for itself.
    options = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "handle_sigbus=0"]))
    variables = environment(ASAN_OPTIONS=options)
    done = subprocess.run(command, capture_output=True, env=variables, check=False, timeout=60)
    assert done.returncode == -signal.SIGBUS
    assert done.stdout == b""
    assert how != "handled" or b"Bus error" in done.stderr
