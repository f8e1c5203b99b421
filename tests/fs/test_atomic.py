"""Files that appear complete or not at all."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pressmark.fixity import Outcome
from pressmark.fixity.manifests import write_manifest
from pressmark.fs.atomic import OutputFile, Replacement, is_temporary, open_output, replace_file, temporary, write_new
from pressmark.html import check_writable, write_page
from pressmark.migrate.reporting.report import replaced

PARTS = [None, "file.new"]


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


@pytest.mark.parametrize("kind", [str, os.fsencode, Path])
@pytest.mark.parametrize("part", PARTS)
def test_a_replacement_is_renamed_at_the_end(tmp_path: Path, part: str | None, kind: Any) -> None:
    """The old file stays until the new one is complete, for any type of path and any name."""
    target = tmp_path / "file"
    target.write_bytes(b"old")
    with Replacement(kind(target), part=None if part is None else str(tmp_path / part)) as file:
        file.write(b"new")
        file.flush()
        assert target.read_bytes() == b"old"
        assert len(names(tmp_path)) == 2
    assert target.read_bytes() == b"new"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_exception_keeps_the_old_file(tmp_path: Path, part: str | None, error: type[BaseException]) -> None:
    """After an exception, also an interruption, nothing of the new file remains."""
    target = tmp_path / "file"
    target.write_bytes(b"old")
    new = Replacement(target, part=None if part is None else str(tmp_path / part))

    def fail() -> None:
        with new as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        fail()
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failure_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """A failed flush or rename is an error, and the old file stays."""
    target = tmp_path / "file"
    target.write_bytes(b"old")

    def refuse(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(OSError, match="space"):
        replace_file(target, b"new")
    with pytest.raises(OSError, match="space"), OutputFile(target) as file:
        file.write(b"new")
    assert file.closed
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_a_leftover_under_a_known_name_is_replaced(tmp_path: Path) -> None:
    """A file under the temporary name is replaced; a link there is not followed."""
    (tmp_path / "mine").write_bytes(b"precious")
    (tmp_path / "file.new").symlink_to(tmp_path / "mine")
    replace_file(tmp_path / "file", b"new", part=str(tmp_path / "file.new"))
    assert names(tmp_path) == ["file", "mine"]
    assert (tmp_path / "mine").read_bytes() == b"precious"
    assert (tmp_path / "file").read_bytes() == b"new"


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_modes(tmp_path: Path) -> None:
    """A new file has the usual permissions, or those of another before it gets its name."""
    mask = os.umask(0o027)
    try:
        replace_file(tmp_path / "usual", b"")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "usual").stat().st_mode) == 0o640
    (tmp_path / "usual").chmod(0o604)
    with Replacement(tmp_path / "other", like=(tmp_path / "usual").stat()):
        pass
    assert stat.S_IMODE((tmp_path / "other").stat().st_mode) == 0o604


def test_the_content_is_on_the_disk_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless ``durable`` is off, the content is flushed before the rename, and then the directory."""
    calls: list[str] = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *given, name=name, real=real: calls.append(name) or real(*given))
    directory = ["fsync"] if os.name != "nt" else []
    replace_file(tmp_path / "file", b"1")
    assert calls == ["fsync", "replace", *directory]
    calls.clear()
    with Replacement(tmp_path / "file", durable=False):
        pass
    assert calls == ["replace"]


def test_the_first_file_stays(tmp_path: Path) -> None:
    """A new file never replaces another one; the attempt is an error."""
    assert write_new(tmp_path / "file", b"1")
    assert not write_new(os.fsencode(tmp_path / "file"), b"2")
    assert (tmp_path / "file").read_bytes() == b"1"
    assert names(tmp_path) == ["file"]


def test_temporary_names() -> None:
    """Temporary files lie beside the file, under recognisable names."""
    assert os.path.dirname(temporary("a/b")) == "a"
    assert os.path.dirname(temporary(b"b")) == b""
    assert is_temporary(os.path.basename(temporary("a/b")))
    assert is_temporary(".000.json.node7-4711-0123abcd.tmp")
    assert not is_temporary("a.tmp")


def write_rows(path: str) -> None:
    with replaced(path) as file:
        file.write(b"text")


def write_text(path: str) -> None:
    with open_output(path) as file:
        file.write(b"text")


def write_list(path: str) -> None:
    write_manifest(path, [Outcome(b"f", {"md5": "0" * 32}, 1, 2, 3)])


def write_report(path: str) -> None:
    check_writable(path)
    write_page(path, "text")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs names of descriptors")
@pytest.mark.parametrize("write", [write_text, write_list, write_report, write_rows])
def test_outputs_that_are_written_to(tmp_path: Path, write: Callable[[str], None]) -> None:
    """Every call that writes a file of the user keeps named pipes, and the file behind an open descriptor."""
    write(str(tmp_path / "expected.html"))
    expected = (tmp_path / "expected.html").read_bytes()
    os.mkfifo(tmp_path / "pipe.html")
    reader = os.open(tmp_path / "pipe.html", os.O_RDONLY | os.O_NONBLOCK)
    (tmp_path / "link.html").symlink_to("pipe.html")
    for name in ("pipe.html", "link.html"):
        write(str(tmp_path / name))
        assert os.read(reader, 1000) == expected
    os.close(reader)
    with open(tmp_path / "file", "wb") as file:
        file.write(b"earlier\n")
        file.flush()
        (tmp_path / "out.html").symlink_to(f"/dev/fd/{file.fileno()}")
        write(str(tmp_path / "out.html"))
        file.write(b"later")
    assert (tmp_path / "file").read_bytes() == b"earlier\n" + expected + b"later"
    assert names(tmp_path) == ["expected.html", "file", "link.html", "out.html", "pipe.html"]
