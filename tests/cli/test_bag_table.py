"""``pressmark bag create --table``: its lines, JSON and exit statuses, and what kills and interrupts leave."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.signals import restore_signals

from .conftest import COMMAND, PROFILE, Call, environment

posix = pytest.mark.skipif(os.name != "posix", reason="needs signals")


@pytest.fixture
def files(call: Call, tmp_path: Path) -> Path:
    """Sources and a table, in the working directory."""
    for name in ("a", "b"):
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / "x.txt").write_text(name)
    (tmp_path / "items.csv").write_text("path,Contact-Name\nin/a,Ada\nin/none,Joe\nin/b,\n,Eve\n")
    return tmp_path


def test_lines(call: Call, files: Path) -> None:
    """Each bag is a line on stdout, each row that fails one on stderr; the same command continues."""
    done = call("bag", "create", "--table", "items.csv", "-o", "out")
    assert (done.exit_code, done.stdout) == (1, "2\tcreated\t1\t1\tout/a\n4\tcreated\t1\t1\tout/b\n")
    failed = (
        "pressmark: items.csv:3: 'in/none': No such file or directory\n"
        "pressmark: items.csv:5: column 'path' is empty; add the path of a file or directory\n"
    )
    assert done.stderr == f"{failed}pressmark: out: 2 bags created; 2 failed\n"
    done = call("bag", "create", "--table", "items.csv", "-o", "out")
    assert (done.exit_code, done.stdout) == (1, "2\texists\t1\t1\tout/a\n4\texists\t1\t1\tout/b\n")
    assert done.stderr == f"{failed}pressmark: out: 0 bags created, 2 created before; 2 failed\n"
    (files / "items.csv").write_text("path,Contact-Name\nin/a,Ada\nin/b,\n")
    done = call("bag", "create", "--table", "items.csv", "-o", "out", "--quiet")
    assert (done.exit_code, done.stderr) == (0, "")


@pytest.mark.parametrize("folder", ["bag", "bag/data/new"])
def test_a_destination_in_a_bag(call: Call, files: Path, folder: str) -> None:
    """A bag, or a directory in one, gets no bags, because its manifests would not list them."""
    call("bag", "create", "in/a", "-o", "bag")
    done = call("bag", "create", "--table", "items.csv", "-o", folder)
    inside = f"destination is inside the bag '{os.path.realpath('bag')}'; choose another destination"
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"pressmark: '{folder}': {inside}\n")
    assert not (files / "bag" / "a").exists()
    assert os.listdir(files / "bag" / "data") == ["x.txt"]


def test_json(call: Call, files: Path) -> None:
    """Each row is an object; the summary is last."""
    done = call("bag", "create", "--table", "items.csv", "-o", "out", "--json")
    records = list(map(json.loads, done.stdout.splitlines()))
    assert records == [
        {"row": 2, "status": "created", "source": "in/a", "path": "out/a", "files": 1, "bytes": 1},
        {
            **{"row": 3, "status": "failed", "source": "in/none", "path": "out/none"},
            "message": "'in/none': No such file or directory",
        },
        {"row": 4, "status": "created", "source": "in/b", "path": "out/b", "files": 1, "bytes": 1},
        {
            **{"row": 5, "status": "failed", "source": "", "path": ""},
            "message": "items.csv:5: column 'path' is empty; add the path of a file or directory",
        },
        {"summary": {"ok": False, "created": 2, "exists": 0, "failed": 2}},
    ]


def test_columns_formats_and_options(call: Call, files: Path) -> None:
    """The other options are those of every table, and of every bag."""
    (files / "items.txt").write_text("Datei;Signatur;Titel\nin/a;one;A\nin/b;two;B\n")
    (files / "profile.json").write_text(json.dumps(PROFILE))
    how = ["--format", "csv", "--delimiter", ";", "--column", "Datei", "--name-column", "Signatur", "--archive", "zip"]
    command = ["bag", "create", "--table", "items.txt", "-o", "out", *how, "-a", "md5", "--profile", "profile.json"]
    done = call(*command)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "items.txt:2: 'profile.json': the bag would not conform" in done.stderr
    done = call(*command, "--info", "Contact-Name=Ada")
    assert (done.exit_code, done.stdout) == (0, "2\tcreated\t1\t1\tout/one.zip\n3\tcreated\t1\t1\tout/two.zip\n")
    done = call("bag", "validate", "out/one.zip", "out/two.zip", "--profile", "profile.json")
    assert done.exit_code == 0
    info = json.loads(call("bag", "info", "out/two.zip", "--json").stdout)
    assert info["algorithms"] == ["md5"]


def test_warnings(call: Call, files: Path) -> None:
    """Problems of the files have the path of the source."""
    (files / "in" / "b" / "none").mkdir()
    (files / "in" / "b" / ".DS_Store").write_text("")
    done = call("bag", "create", "--table", "items.csv", "-o", "out", "--exclude-junk")
    assert "warning: directory-empty: in/b/none: " in done.stderr
    assert "warning: excluded: in/b/.DS_Store: left out of the bag" in done.stderr


REFUSED = [
    (["--table", "items.csv"], "--table requires -o; specify the directory of the bags"),
    (["--table", "none.csv", "-o", "out"], "none.csv: No such file or directory"),
    (["--table", "items.csv", "-o", "out.zip"], "--table requires -o DIRECTORY; use --archive to create archives"),
    (["in/a", "--archive", "zip"], "--archive requires --table"),
    (
        ["--table", "excel.csv", "-o", "out"],
        "excel.csv: column 'path' not found; columns: path;n; specify the separator (--delimiter)\n",
    ),
    (["--table", "items.csv", "-o", "out", "--column", "x"], "items.csv: column 'x' not found; columns: path, Con"),
]


@pytest.mark.parametrize(("arguments", "reason"), REFUSED)
def test_refused(call: Call, files: Path, arguments: list[str], reason: str) -> None:
    """Nothing is created."""
    (files / "excel.csv").write_text("path;n\nin/a;1\n")
    done = call("bag", "create", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"pressmark: {reason}")
    assert not (files / "out").exists()


def test_clashes(call: Call, files: Path) -> None:
    """They are refused before anything is created, with the row and the option."""
    (files / "items.csv").write_text("path\nin/a\nin/../in/A\n")
    done = call("bag", "create", "--table", "items.csv", "-o", "out")
    assert (done.exit_code, done.stderr) == (
        2,
        "pressmark: items.csv:3: an earlier row has the same name for its bag, 'A' (ignoring case);"
        " choose a column of names (--name-column)\n",
    )
    assert not (files / "out").exists()


def started(files: Path) -> subprocess.Popen[bytes]:
    """Start the command on a small source and one of 3 GB, and wait for the first bag."""
    with open(files / "in" / "b" / "large", "wb") as file:
        file.truncate(3 << 30)
    (files / "items.csv").write_text("path\nin/a\nin/b\n")
    process = subprocess.Popen(
        [*COMMAND, "bag", "create", "--table", "items.csv", "-o", "out", "-a", "sha512", "--threads", "2"],
        cwd=files,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=restore_signals,
    )
    deadline = time.monotonic() + 60
    unfinished = {"a", f".pressmark-{hashlib.sha256(b'b').hexdigest()[:16]}.tmp"}
    while not (files / "out").exists() or set(os.listdir(files / "out")) != unfinished:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    return process


@posix
@pytest.mark.parametrize("number", ["SIGINT", "SIGKILL"])
def test_interrupted(call: Call, files: Path, number: str) -> None:
    """After Ctrl-C or a kill, no half-made bag has its name, and the same command creates the others."""
    process = started(files)
    process.send_signal(getattr(signal, number))
    _out, errors = process.communicate(timeout=60)
    assert sorted(path.name for path in (files / "out").iterdir() if not path.name.startswith(".")) == ["a"]
    if number == "SIGINT":
        assert process.returncode == 130
        assert errors.endswith(b"; the bags that exist are complete; run the same command again to create the others\n")
        assert [path.name for path in (files / "out").iterdir()] == ["a"]
    (files / "in" / "b" / "large").unlink()
    done = call("bag", "create", "--table", "items.csv", "-o", "out")
    assert (done.exit_code, done.stdout) == (0, "2\texists\t1\t1\tout/a\n3\tcreated\t1\t1\tout/b\n")
    assert sorted(path.name for path in (files / "out").iterdir()) == ["a", "b"]
