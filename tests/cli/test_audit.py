"""``pressmark store audit``: its output, exit status, limits, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from pressmark import stores
from pressmark.buckets.memory import MemoryBucket
from support.signals import restore_signals
from ways.stores import KINDS, make_store

from .conftest import COMMAND, Call, environment
from .test_object_storage import ROOT, bucket, inside, root  # noqa: F401
from .test_server_digests import keep

IDS = ("urn:a", "urn:b", "urn:c", "urn:d")
posix = pytest.mark.skipif(os.name != "posix", reason="needs signals")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return make_store("bags", tmp_path / "store", {one: {"f.txt": one.encode()} for one in IDS})


def content(store: Path, identifier: str) -> Path:
    directory = store / stores.open(store).find(identifier).path
    return next(one for one in sorted(directory.rglob("*")) if one.name == "f.txt")


def last(store: Path) -> str:
    """Return the identifier of the object that is verified last in the first round."""
    identifier = [one.id for one in stores.open(store).objects()][-1]
    assert identifier is not None
    return identifier


def test_a_week(store: Path, call: Call) -> None:
    """Runs continue each other, name what they find, and say how much is verified."""
    identifier = last(store)
    path = stores.open(store).find(identifier).path
    audit = ("store", "audit", "store", "--state", "state")
    done = call(*audit, "--max-objects", "3")
    assert (done.exit_code, done.stdout) == (0, "")
    first, second = done.stderr.splitlines()
    assert first.startswith("pressmark: store: 3 objects, no problem (15 B, 0:0")
    assert second.startswith(
        "pressmark: store: 3 of 4 objects verified (75 %) in round 1, 1 never, oldest verification 2"
    )
    assert second.endswith(", complete after 1 more run like this one")
    content(store, identifier).write_bytes(b"other")
    done = call(*audit, "--for", "0")
    assert (done.exit_code, done.stderr.endswith(", complete after 1 more run like the last one\n")) == (0, True)
    done = call(*audit)
    assert done.exit_code == 1
    assert f"error: checksum-mismatch: {path}/data/f.txt: " in done.stdout
    assert "4 of 4 objects verified (100 %) in round 1, 1 with errors" in done.stderr
    assert "what to do: checksum-mismatch: replace the files by those of a good copy" in done.stderr
    done = call(*audit, "--for", "0")
    assert done.stderr.endswith(
        f", oldest verification {time.strftime('%Y-%m-%d', time.gmtime())}\n"
        f"pressmark: store: with errors: '{identifier}'\n"
    )
    content(store, identifier).write_bytes(identifier.encode())
    assert call(*audit, "--max-objects", "1").stdout == (
        f"warning: object-mended: {path}: the object had errors in its last audit, and has none now\n"
    )
    done = call(*audit, "--for", "0")
    assert done.exit_code == 0
    assert done.stderr.startswith(
        "pressmark: store: nothing verified\npressmark: store: 1 of 4 objects verified (25 %)"
    )
    done = call(*audit, "--quiet", "--older-than", "2w")
    assert (done.exit_code, done.output) == (0, "")
    done = call(*audit, "--older-than", "2w")
    assert "4 of 4 objects verified (100 %) in this period" in done.stderr


def test_json(store: Path, call: Call) -> None:
    content(store, "urn:a").write_bytes(b"other")
    done = call("store", "audit", "store", "--state", "state", "--json", "--max-bytes", "2k".upper())
    *problems, last = map(json.loads, done.stdout.splitlines())
    summary = last["summary"]
    assert [(one["kind"], one["severity"]) for one in problems] == [("checksum-mismatch", "error")]
    assert {one: summary[one] for one in ("ok", "objects", "bytes", "new", "round", "listed", "runs_left")} == {
        **{"ok": False, "objects": 4, "bytes": 20, "new": 0, "round": 1, "listed": True, "runs_left": 0},
    }
    coverage = summary["coverage"]
    assert {one: coverage[one] for one in ("objects", "verified", "never", "damaged", "bytes_left", "complete")} == {
        **{"objects": 4, "verified": 4, "never": 0, "damaged": 1, "bytes_left": 0, "complete": None},
    }
    assert coverage["oldest"].endswith("Z")
    assert done.exit_code == 1


def test_a_new_state(store: Path, call: Call, tmp_path: Path) -> None:
    """A mistyped name is not taken for a store without objects."""
    done = call("store", "audit", "store", "--state", "stat", "--for", "0")
    assert done.stderr.splitlines()[1:] == [
        "pressmark: store: 'stat' is a new state, and knows no object; check its name, or let a run verify objects"
    ]


def test_names_of_objects_with_errors(store: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ones are named, and the others counted."""
    for one in IDS:
        content(store, one).write_bytes(b"other")
    call("store", "audit", "store", "--state", "state", "--quiet")
    monkeypatch.setattr("pressmark.stores.audits.audit.DAMAGED", 3)
    done = call("store", "audit", "store", "--state", "state", "--for", "0", "--json")
    damaged = json.loads(done.stdout)["summary"]["damaged"]
    assert (len(damaged), set(damaged) < set(IDS)) == (3, True)
    assert done.stderr.endswith(f": with errors: {', '.join(map(repr, damaged))}, 1 more\n")


def test_selected_objects(store: Path, call: Call, tmp_path: Path) -> None:
    (tmp_path / "list").write_text("urn:a\nurn:x\n")
    done = call("store", "audit", "store", "--state", "state", "--from", "list")
    assert (done.exit_code, done.stdout.count("\n")) == (1, 1)
    assert done.stdout.startswith("error: object-missing: urn:x: ")
    assert "store: 1 selected object, 1 error" in done.stderr
    assert "1 of 1 object known so far verified (100 %)" in done.stderr
    # All known objects are verified: a round begins.
    assert "store: 2 selected objects" in call("store", "audit", "store", "--state", "state", "urn:b", "urn:a").stderr
    assert "in round 2" in call("store", "audit", "store", "--state", "state", "--max-objects", "0").stderr


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--for", "6", "'6' is not a duration; specify a number with a unit (s, m, h, d, w), such as 6h"),
        ("--for", "-1h", "'-1h' is not a duration"),
        ("--older-than", "9y", "'9y' is not a duration"),
        ("--older-than", "9" * 18 + "w", "is not a duration"),
        ("--max-bytes", "2X", "'2X' is not a size; specify a number of bytes, or with a unit, such as 2T"),
        ("--max-bytes", "-2", "'-2' is not a size"),
        ("--max-objects", "-1", "'-1' is not a whole number of 0 or more"),
        ("--digests", "", ""),
    ],
)
def test_values(store: Path, call: Call, option: str, value: str, message: str, tmp_path: Path) -> None:
    arguments = [f"{option}={value}"] if value else ["--digests=stored"]
    done = call("store", "audit", "store", "--state", "state", *arguments)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert (message or "--digests=stored: only for a store in object storage") in done.stderr
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [("--for", "1.5h"), ("--older-than", "90d"), ("--max-bytes", "2TB"), ("--max-bytes", "64 GiB"), ("--for", "90 s")],
)
def test_units(store: Path, call: Call, option: str, value: str) -> None:
    assert call("store", "audit", "store", "--state", "state", option, value).exit_code == 0


def test_states_that_are_refused(store: Path, call: Call, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("some text of another program\n" * 100)
    for name, message in (
        ("text", "not the state of an audit (file is not a database); choose another file\n"),
        ("store/state", "inside the store"),
    ):
        done = call("store", "audit", "store", "--state", name)
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
        assert message in done.stderr
    with sqlite3.connect(tmp_path / "state") as base:
        base.execute("BEGIN EXCLUSIVE")
        done = call("store", "audit", "store", "--state", "state")
        assert "state: in use by another run; wait for it to finish\n" in done.stderr.replace("'", "")


def test_an_archived_file_is_not_verified(root: MemoryBucket, call: Call) -> None:  # noqa: F811
    """Its object is not recorded as verified without errors, and the exit status is that of a check."""
    keep(root, None, "DEEP_ARCHIVE")
    done = call("store", "audit", ROOT, "--state", "state")
    assert (done.exit_code, done.stdout.count("warning: content-archived")) == (1, 1)
    assert "1 with errors" in done.stderr


@posix
@pytest.mark.parametrize("kind", KINDS)
def test_interrupted(kind: str, tmp_path: Path) -> None:
    """An interrupt ends the run while it reads a large file; the other objects are recorded."""
    store = make_store(kind, tmp_path / "store", {one: {"f.txt": one.encode()} for one in IDS})
    os.truncate(content(store, last(store)), 1 << 40)  # takes no place, and long to read
    command = [*COMMAND, "store", "audit", "store", "--state", "state", "--threads", "2"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=restore_signals,
    ) as process:
        try:
            end = time.monotonic() + 60
            while not (tmp_path / "state").exists() and time.monotonic() < end:
                time.sleep(0.05)
            time.sleep(1.5)
            process.send_signal(signal.SIGINT)
            _out, error = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130, error
    assert error == b"pressmark: interrupted; the results so far are recorded; run the same command again to continue\n"
    with sqlite3.connect(tmp_path / "state") as base:
        assert base.execute("SELECT COUNT(*) FROM objects WHERE result = 'ok'").fetchall() == [(3,)]
