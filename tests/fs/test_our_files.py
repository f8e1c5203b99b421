"""Our own files are opened without waiting, and beneath a directory without following links."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pressmark.fs import beneath
from pressmark.fs.beneath import open_beneath, read_regular, real_path, real_paths

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs symbolic links and named pipes")


@pytest.mark.parametrize("has_call", [True, False])
def test_open_beneath(has_call: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One call of Linux and a call for each name agree; the directory itself may be a link."""
    if not has_call:
        monkeypatch.setattr(beneath, "_openat2", lambda: None)
    (tmp_path / "store" / "a").mkdir(parents=True)
    (tmp_path / "store" / "a" / "f").write_bytes(b"data")
    (tmp_path / "linked").symlink_to("store")
    (tmp_path / "store" / "b").symlink_to("a")
    (tmp_path / "store" / "a" / "g").symlink_to("f")
    for base in (os.fsencode(tmp_path / "store"), os.fsencode(tmp_path / "linked")):
        descriptor = open_beneath(base, b"a/f")
        assert os.read(descriptor, 9) == b"data"
        os.close(descriptor)
        for path in (b"b/f", b"a/g"):
            with pytest.raises(OSError, match="symbolic link") as caught:
                open_beneath(base, path)
            assert caught.value.errno == errno.ELOOP
        with pytest.raises(FileNotFoundError):
            open_beneath(base, b"c/f")
        for path in (b"../store/a/f", base + b"/a/f", b"a/f\0x"):
            with pytest.raises(ValueError, match="path"):
                open_beneath(base, path)
    assert real_path(os.fsencode(tmp_path / "linked" / "a")) == os.path.realpath(os.fsencode(tmp_path / "store" / "a"))


def test_real_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths in one directory are resolved as each would be alone: links, special names and missing ones too."""
    (tmp_path / "store" / "a").mkdir(parents=True)
    (tmp_path / "linked").symlink_to("store")
    (tmp_path / "store" / "b").symlink_to("a")
    (tmp_path / "store" / "file").write_bytes(b"")
    names = (b"a", b"b", b"file", b"gone", b"", b".", b"..", b"a/..", b"b/.", b"b/x", b"a/x", b"/a")
    paths = [os.fsencode(tmp_path / folder) + b"/" + name for folder in ("store", "linked") for name in names]
    paths += [b"a", b"b", b"/", b"/tmp"]
    monkeypatch.chdir(tmp_path / "store")
    assert real_paths(paths) == list(map(real_path, paths))


def test_read_regular(tmp_path: Path) -> None:
    """A file of another type, or a larger one, is an error that says what to do."""
    (tmp_path / "file").write_bytes(b"data")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    assert read_regular(tmp_path / "file", 4) == b"data"
    assert read_regular(tmp_path / "link", follow=True) == b"data"
    with pytest.raises(OSError, match="larger than 3 bytes; restore the file"):
        read_regular(tmp_path / "file", 3)
    with pytest.raises(OSError, match="named pipe instead of a file; restore the file"):
        read_regular(tmp_path / "pipe")
    with pytest.raises(OSError, match="symbolic link, which is not followed; replace it"):
        read_regular(tmp_path / "link")
    with pytest.raises(IsADirectoryError):
        read_regular(tmp_path)
