"""An output that is a pipe, a device or the name of an open descriptor is written to, and never replaced by a file."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pressmark.fs.atomic import is_stream

from .conftest import COMMAND, environment

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs names of descriptors in /proc")

IDS = "".join(f"id{number}\n" for number in range(3))
#: Commands that write to a named output; {} is its name.
WRITING = {
    "map": "map 0002 ids -o {}",
    "map table": "map 0002 ids.csv --column id -o {}",
    "unmap": "unmap 0002 ids -o {}",
    "hash": "hash files -o {}",
    "hash --ledger": "hash files -o {} --ledger l",
    "hash --workers": "hash files -o {} --workers 2",
}
#: Names of the descriptor that stdout is.
NAMES = ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1", "link", "link-to-link")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ids").write_text(IDS)
    (tmp_path / "ids.csv").write_text(f"id\n{IDS}")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a").write_text("a")
    (tmp_path / "link").symlink_to("/dev/stdout")
    (tmp_path / "link-to-link").symlink_to("link")
    return tmp_path


def call(folder: Path, words: str, output: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    arguments = [word.format(output) for word in words.split()]
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [*COMMAND, *arguments], cwd=folder, env=environment(), timeout=60, check=False, **options
    )


@pytest.mark.parametrize("name", WRITING)
def test_open_descriptors(folder: Path, name: str) -> None:
    """What the file behind stdout contains is kept, and the output follows it."""
    words = WRITING[name]
    assert call(folder, words, "expected").returncode == 0
    expected = (folder / "expected").read_bytes()
    (folder / "l").unlink(missing_ok=True)
    for number, output in enumerate(NAMES if name in ("map", "hash") else NAMES[:1]):
        path = folder / f"out-{number}"
        with open(path, "wb") as file:
            file.write(b"earlier\n")
            file.flush()
            before = path.stat().st_ino
            done = call(folder, words, output, stdout=file, stderr=subprocess.PIPE)
            file.write(b"later\n")
        assert done.returncode == 0, done.stderr
        assert path.read_bytes() == b"earlier\n" + expected + b"later\n", output
        assert path.stat().st_ino == before
        assert (folder / "link").is_symlink()
        (folder / "l").unlink(missing_ok=True)
    assert not [one for one in os.listdir(folder) if one.endswith((".work", ".tmp"))]


def test_other_descriptors(folder: Path) -> None:
    """Another descriptor of the process, one of another process, and one that is not open."""
    path = folder / "out"
    with open(path, "wb") as file:
        file.write(b"earlier\n")
        file.flush()
        number = file.fileno()
        assert call(folder, WRITING["map"], f"/dev/fd/{number}", pass_fds=[number]).returncode == 0
        assert call(folder, WRITING["map"], f"/proc/{os.getpid()}/fd/{number}").returncode == 0
        done = call(folder, WRITING["map"], "/dev/fd/98", stderr=subprocess.PIPE)
    assert path.read_text() == "earlier\n" + 2 * IDS
    assert (done.returncode, done.stderr) == (2, b"pressmark: /dev/fd/98: Bad file descriptor\n")
    with open(folder / "ids", "rb") as file:
        arguments = {"pass_fds": [file.fileno()], "stderr": subprocess.PIPE}
        done = call(folder, "hash files -o {}", f"/dev/fd/{file.fileno()}", **arguments)
    assert done.returncode in (1, 2)
    assert b"Bad file descriptor" in done.stderr
    assert (folder / "ids").read_text() == IDS


def test_a_pipe_behind_stdout(folder: Path) -> None:
    """The output goes to the reader; a reader that closes the pipe ends the command as with stdout."""
    done = call(folder, WRITING["map"], "/dev/stdout", stdout=subprocess.PIPE)
    assert (done.stdout.decode(), done.returncode) == (IDS, 0)


@pytest.mark.parametrize("name", WRITING)
def test_named_pipes(folder: Path, name: str) -> None:
    """A named pipe, also behind a link, stays one, and its reader gets the output."""
    assert call(folder, WRITING[name], "expected").returncode == 0
    (folder / "l").unlink(missing_ok=True)
    os.mkfifo(folder / "pipe")
    (folder / "to-pipe").symlink_to("pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((folder / "pipe").read_bytes()))
    reader.start()
    assert call(folder, WRITING[name], "to-pipe").returncode == 0
    reader.join(30)
    assert read == [(folder / "expected").read_bytes()]
    assert is_stream(str(folder / "pipe"))


@pytest.mark.parametrize("name", WRITING)
def test_devices(folder: Path, name: str) -> None:
    """A device is written to; a full one is an error."""
    assert call(folder, WRITING[name], "/dev/null").returncode == 0
    (folder / "l").unlink(missing_ok=True)
    done = call(folder, WRITING[name], "/dev/full", stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (1, b"pressmark: /dev/full: No space left on device\n")
