"""Small files in one call: the same copies and errors as the shared code."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from pressmark.fixity.copying import copy_files
from pressmark.fixity.outcomes import Outcome
from support.implementations import Implementation, use

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")
SIZES = [0, 1, 127, 128, 4096, 16383, 16384, 16385, 40000]


def copied(implementation: Implementation, source: Path, target: Path) -> Outcome:
    """Copy a file."""
    with use(implementation):
        ((_key, outcome),) = copy_files([(None, os.fsencode(source), os.fsencode(target))], ["sha512"])
    return outcome


@pytest.mark.parametrize("size", SIZES)
def test_copies_are_the_same(tmp_path: Path, implementations: list[Implementation], size: int) -> None:
    """Bytes, digest, permission bits and times are the same with both implementations."""
    source = tmp_path / "source"
    source.write_bytes(os.urandom(size))
    source.chmod(0o4754)
    os.utime(source, ns=(1_234_567_890_123_456_789, 987_654_321_987_654_321))
    outcomes = [copied(one, source, tmp_path / str(one)) for one in implementations]
    assert outcomes[0] == outcomes[-1]
    for one in implementations:
        target = tmp_path / str(one)
        assert target.read_bytes() == source.read_bytes()
        status = target.stat()
        assert stat.S_IMODE(status.st_mode) == 0o754
        assert status.st_mtime_ns == 987_654_321_987_654_321
    assert outcomes[0].digests == {"sha512": hashlib.sha512(source.read_bytes()).hexdigest()}


@posix
def test_files_that_cannot_be_copied(tmp_path: Path, implementations: list[Implementation]) -> None:
    """Both implementations have the same outcome or error and leave no partial file."""
    (tmp_path / "file").write_bytes(b"data")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("nothing")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "there").write_bytes(b"kept")
    for name in ("folder", "link", "dangling", "pipe", "missing"):
        found = [copied(one, tmp_path / name, tmp_path / f"to {one}") for one in implementations]
        assert found[0] == found[-1]
        assert found[0].digests is None
        assert not list(tmp_path.glob("to *"))
    for target in ("there", "no/folder", "nul\0"):
        found = [copied(one, tmp_path / "file", tmp_path / target) for one in implementations]
        assert found[0] == found[-1]
        assert (found[0].kind, found[0].path) == ("not-written", os.fsdecode(tmp_path / target))
    assert (tmp_path / "there").read_bytes() == b"kept"
