"""Commands with a ledger: what changed is read again, and the summary counts what was read."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import time
from pathlib import Path

import pytest

from .conftest import Run

#: The files of the bag and the list, and the commands with their exit status and result after an edit.
FILES = {"a": b"one", "b": b"two"}
COMMANDS = {
    "hash": (["hash", "files", "-o", "out"], 0),
    "hash to stdout": (["hash", "files"], 0),
    "verify": (["verify", "list"], 1),
    "verify in a root": (["verify", "inside", "--root", "files"], 1),
    "bag validate": (["bag", "validate", "bag"], 1),
}
LEDGER = ["--ledger", "l"]
ONE = hashlib.sha512(b"ONE").hexdigest().encode()


@pytest.fixture
def folder(run: Run, tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    for name, data in FILES.items():
        (tmp_path / "files" / name).write_bytes(data)
    assert run("hash", "files", "-o", "list").returncode == 0
    assert run("bag", "create", "files", "-o", "bag").returncode == 0
    (tmp_path / "inside").write_text((tmp_path / "list").read_text().replace("files/", ""))
    return tmp_path


def edit(folder: Path) -> None:
    """Replace the content of all files, and set their modification time back."""
    time.sleep(0.02)  # longer than a tick of the clock of a file system
    for name in ("files/a", "bag/data/a"):
        status = (folder / name).stat()
        (folder / name).write_bytes(b"ONE")
        os.utime(folder / name, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.skipif(os.name != "posix", reason="needs the time of status changes")
@pytest.mark.parametrize("name", COMMANDS)
def test_an_edit_that_keeps_size_and_time(run: Run, folder: Path, name: str) -> None:
    """It is noticed by each command, and reported as without a ledger."""
    arguments, status = COMMANDS[name]
    assert run(*arguments, *LEDGER).returncode == 0
    edit(folder)
    found = run(*arguments, *LEDGER)
    output = (folder / "out").read_bytes() if name == "hash" else found.stdout
    assert found.returncode == status
    assert b"changed: " in output or b"checksum-mismatch: data/a" in output or ONE in output
    text = found.stderr.decode()
    assert re.search(r"\b1 read, [14] from the ledger \(since 20[0-9]{2}-[01][0-9]-[0-3][0-9]\)", text)


@pytest.mark.parametrize("name", COMMANDS)
def test_summaries(run: Run, folder: Path, name: str) -> None:
    """A run that reads nothing is told from one that reads everything, in text and in JSON."""
    arguments, _status = COMMANDS[name]
    first = run(*arguments, *LEDGER)
    assert b"ledger" not in first.stderr
    again = run(*arguments, *LEDGER)
    assert re.search(r"\b0 read, [25] from the ledger \(since 20[0-9-]+\)", again.stderr.decode())
    if name.startswith(("verify", "bag validate")):
        number = 5 if name.startswith("bag") else 2
        summary = json.loads(run(*arguments, *LEDGER, "--json").stdout.splitlines()[-1])["summary"]
        assert (summary["read"], summary["from_ledger"], summary["ledger_since"][:2]) == (0, number, "20")
        assert "from_ledger" not in json.loads(run(*arguments, "--json").stdout.splitlines()[-1])["summary"]


def test_an_update(run: Run, folder: Path) -> None:
    """Files that an earlier update has read are not read again."""
    assert run("bag", "update", "bag", "--info", "Title=x", *LEDGER).returncode == 0
    done = run("bag", "update", "bag", "--info", "Title=y", *LEDGER, "--json")
    assert json.loads(done.stdout.splitlines()[-1])["summary"]["from_ledger"] == 2
    assert b", 0 read, 2 from the ledger (since 20" in done.stderr


def test_a_full_disk_is_no_usage_error(quick: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger that cannot be written ends the run with status 1."""

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "file").write_bytes(b"data")
    monkeypatch.setattr("pressmark.fixity.ledger.flush_file", full)
    done = quick("hash", "file", "--ledger", "ledger")
    assert (done.returncode, done.stderr) == (1, b"pressmark: ledger: No space left on device\n")
