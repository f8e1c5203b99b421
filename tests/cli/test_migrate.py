"""``pressmark migrate``: results, output, and exit statuses."""

from __future__ import annotations

import csv
import dataclasses
import errno
import importlib.util
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pressmark import layout, migrate, stores
from pressmark.cli.common.progress import ProgressMode, ProgressOutput, Reporter
from pressmark.cli.migrate.output import PHASES, conflict_text, row_text
from pressmark.errors import JobError, ReportError
from pressmark.jobs.workdir import LOCK, locked
from pressmark.migrate import job
from pressmark.migrate.entry import ROW_KEYS
from pressmark.migrate.execution import run as running, verify as verifying
from pressmark.migrate.planning import planner
from pressmark.reports import ProgressEvent
from support.signals import restore_signals

from .conftest import COMMAND, Call, environment

IDS = ["ark:/13030/b", "ark:/13030/xt12", "ark:/13030/xt12t3"]
TO = {
    "ocfl": ["--layout", "0003:tupleSize=2,numberOfTuples=2"],
    "pairtree": ["--prefix", "ark:/13030/"],
    "bags": ["--identifiers", "external", "-a", "md5,sha512"],
}
OCFL = ["--to", "ocfl", "--layout", "0003"]
needs_jinja2 = pytest.mark.skipif(importlib.util.find_spec("jinja2") is None, reason="the page needs jinja2")


def lines(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def books(tmp_path: Path) -> Path:
    """A Pairtree with three objects of two files."""
    store = stores.PairtreeStore.create(tmp_path / "books", durable=False, prefix="ark:/13030/")
    given = tmp_path / "given"
    (given / "sub").mkdir(parents=True)
    for number, identifier in enumerate(IDS):
        (given / "one.txt").write_text(str(number))
        (given / "sub" / "two.txt").write_text("2" * number)
        store.put(identifier, given)
    return tmp_path / "books"


@pytest.fixture
def root(books: Path, call: Call) -> Path:
    """An OCFL root with these objects migrated."""
    assert call("migrate", "books", "root", *OCFL).exit_code == 0
    return books.parent / "root"


def spoil(books: Path) -> Path:
    """Put an object into the root that differs from the source's."""
    store = stores.create("ocfl", books.parent / "root", layout("0003"))
    return Path(os.fsdecode(store.put(IDS[0], books.parent / "given" / "one.txt").path))


# --- from one to the other --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TO)
def test_there_and_back(call: Call, books: Path, kind: str) -> None:
    """A migration into each kind of store, and back into the original kind."""
    result = call("migrate", "books", "other", "--to", kind, *TO[kind])
    assert (result.exit_code, result.stdout) == (0, "")
    *advice, line = result.stderr.splitlines()
    assert ["pressmark: other: no user is recorded (W007)" in one for one in advice] == [True] * (kind == "ocfl")
    assert line.startswith("pressmark: other: 3 objects: 3 ok; 6 files, 6 B by ")
    result = call("migrate", "other", "back", "--to", "pairtree", "--prefix", "ark:/13030/")
    assert (result.exit_code, result.stdout) == (0, "")
    assert tree(books.parent / "back") == tree(books)
    assert call("store", "check", "other").exit_code == 0


def test_json(call: Call, books: Path) -> None:
    """Only a summary if everything succeeds; with --all, one line per object."""
    result = call("migrate", "books", "root", *OCFL, "--json")
    assert result.exit_code == 0
    [last] = lines(result.stdout)
    summary = last["summary"]
    assert (summary["ok"], summary["complete"], summary["objects"], summary["by_status"]) == (True, True, 3, {"ok": 3})
    assert summary["work"] == str(books.parent / "root.migration")
    assert summary["rows_path"] == str(books.parent / "root.migration" / "rows.jsonl")
    result = call("migrate", "books", "root", *OCFL, "--json", "--all")
    *rows, _last = lines(result.stdout)
    assert result.exit_code == 0
    assert sorted(row["id"] for row in rows) == IDS
    assert {row["status"] for row in rows} == {"exists_same"}
    assert set(rows[0]) == set(ROW_KEYS)
    result = call("migrate", "books", "root", *OCFL, "--all")
    assert sorted(line.partition(":/")[0] for line in result.stdout.splitlines()) == ["exists_same 'ark"] * 3


def test_a_relayout_by_renaming(call: Call, root: Path) -> None:
    """With --move, an OCFL root gets another layout, and only the source root's own files remain."""
    digests = sorted(path.read_bytes() for path in root.glob("**/inventory.json.sha512"))
    result = call("migrate", "root", "new", "--to", "ocfl", "--layout", "0004", "--move")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "by rename" in result.stderr
    new = root.parent / "new"
    assert sorted(path.read_bytes() for path in new.glob("**/inventory.json.sha512")) == digests
    assert list(root.glob("**/inventory.json")) == []
    assert call("store", "check", "new", "--digests").exit_code == 0


def test_some_objects_under_other_identifiers(call: Call, books: Path) -> None:
    """--ids selects objects, --map renames them."""
    (books.parent / "ids.csv").write_text(f"number,ark\n1,{IDS[1]}\n2,{IDS[2]}\n3,ark:/13030/none\n")
    (books.parent / "map.tsv").write_text(f"{IDS[1]}\tbook:1\n")
    how = ["--ids", "ids.csv", "--column", "ark", "--map", "map.tsv", "--all"]
    result = call("migrate", "books", "root", *OCFL, *how)
    assert result.exit_code == 1
    found = sorted(result.stdout.splitlines())
    assert [line.split(":")[0] for line in found] == ["ok 'ark", "ok 'ark", "source_missing 'ark"]
    assert f"ok '{IDS[1]}' as 'book:1': " in result.stdout
    assert sorted(str(one.id) for one in stores.open(books.parent / "root").objects()) == [IDS[2], "book:1"]


# --- the plan ---------------------------------------------------------------------------------------------------------


def test_dry_run(call: Call, books: Path) -> None:
    """--dry-run prints the plan and its warnings; nothing is written to the destination."""
    (books / "pairtree_root" / "cd").mkdir()
    (books / "pairtree_root" / "cd" / "bare.txt").write_text("")
    result = call("migrate", "books", "root", *OCFL, "--dry-run", "--all")
    assert result.exit_code == 1
    warning, *entries = result.stdout.splitlines()
    assert warning.startswith("warning improper ")
    assert "bare.txt" in warning
    assert len(entries) == 3
    assert f"'{IDS[0]}': 'pairtree_root/b' to 'c17/2b1/054/ark%3a%2f13030%2fb'" in entries
    assert result.stderr == (
        "pressmark: root: 3 objects would be migrated by copy; 6 files, 6 B; 1 invalid; nothing was written\n"
    )
    result = call("migrate", "books", "root", *OCFL, "--dry-run", "--json")
    *warnings, last = lines(result.stdout)
    assert [one["kind"] for one in warnings] == ["improper"]
    assert (last["summary"]["ok"], last["summary"]["dry_run"], last["summary"]["objects"]) == (False, True, 3)
    assert not (books.parent / "root").exists()
    assert call("migrate", "books", "root", *OCFL).exit_code == 1


def test_ignored_files(call: Call, books: Path) -> None:
    """Ignored files make no object invalid and stay in the source; a run that continues keeps the option."""
    stray = min((books / "pairtree_root").iterdir()) / "notes.tmp"
    stray.write_text("keep")
    assert "1 invalid" in call("migrate", "books", "root", *OCFL, "--dry-run").stderr
    result = call("migrate", "books", "root", *OCFL, "--ignore", "*.tmp", "--move")
    assert (result.exit_code, result.stdout) == (0, ""), result.stderr
    assert stray.read_text() == "keep"
    assert call("migrate", "books", "root", "--resume", "--ignore", "*.tmp").exit_code == 0
    assert call("migrate", "books", "root", "--resume").exit_code == 0
    result = call("migrate", "books", "root", "--resume", "--ignore", "*.bak")
    assert (result.exit_code, "source ignore" in result.stderr) == (2, True)
    assert call("migrate", "books", "root", "--catch-up").exit_code == 0
    for arguments, message in (
        (("books", "new", *OCFL, "--ignore", "a/b"), "--ignore 'a/b': a glob matches a file name"),
        (("root", "new", "--to", "bags", "--ignore", "*.tmp"), "--ignore: files outside of OCFL objects"),
    ):
        result = call("migrate", *arguments)
        assert (result.exit_code, message in result.stderr) == (2, True), result.stderr


def test_refused(call: Call, books: Path) -> None:
    """Each conflict is a line with all members; nothing is written, and the exit status is 2."""
    (books.parent / "map").write_text("".join(f"{identifier}\tsame\n" for identifier in IDS[:2]))
    result = call("migrate", "books", "root", *OCFL, "--map", "map")
    assert result.exit_code == 2
    [line] = result.stdout.splitlines()
    assert line.startswith("error equal ")
    for part in (f"'{IDS[0]}' (pairtree_root/b)", f"'{IDS[1]}' (pairtree_root/xt/12)", "several objects"):
        assert part in line
    refused = books.parent / "root.migration" / "refused.jsonl"
    assert result.stderr == (
        f"pressmark: root: plan refused, nothing written: 1 conflict, listed on stdout and in {refused}\n"
    )
    assert not (books.parent / "root").exists()
    result = call("migrate", "books", "root", *OCFL, "--map", "map", "--json")
    assert result.exit_code == 2
    [record, last] = lines(result.stdout)
    assert (record["kind"], [side["source_id"] for side in record["objects"]]) == ("equal", IDS[:2])
    assert (last["summary"]["ok"], last["summary"]["refused"]) == (False, 1)
    # The plan can be made again once the cause is fixed.
    assert call("migrate", "books", "root", *OCFL).exit_code == 0


def test_refusals_name_all_sides() -> None:
    """Up to ten members of a collision are named, the others counted; a conflict may have none."""
    sides = [{"source_id": f"i{number}", "source": f"p{number}", "target": None} for number in range(12)]
    record = {"kind": "case", "severity": "error", "count": 30, "message": "why", "objects": sides}
    text = conflict_text(record)
    assert text.startswith("error case 'i0' (p0) and 'i1' (p1) and ")
    assert text.endswith(" and 'i9' (p9) and 20 more: why")
    assert conflict_text({**record, "objects": [], "count": 0, "kind": "space"}) == "error space: why"
    stray = [{"source_id": None, "source": "a\nb", "target": None}]
    assert conflict_text({**record, "objects": stray, "count": 1}) == "error case 'a\\nb': why"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["books", "root"], "kind of DESTINATION missing; use --to pairtree, --to vitro, --to ocfl or --to bags"),
        (["books", "root", "--to", "ocfl"], "an OCFL storage root needs a layout"),
        (["books", "root", *OCFL, "--prefix", "x"], "--prefix requires --to pairtree"),
        (["books", "root", *OCFL, "--namespace", "x"], "--namespace requires --to vitro"),
        (["books", "root", *OCFL, "--identifiers", "name"], "--identifiers requires --to bags"),
        (["books", "root", *OCFL, "-a", "md5"], "--algorithm requires --to bags"),
        (["books", "root", "--to", "bags", "--content-paths", "0011"], "--content-paths requires --to ocfl"),
        (["books", "root", *OCFL, "--column", "x"], "--column requires --ids"),
        (["books", "root", *OCFL, "--workers", "2", "--dask", "tcp://x"], "--dask: not supported with --workers"),
        (["books", "root", *OCFL, "--dry-run", "--report", "a.csv"], "--report: not supported with --dry-run"),
        (["books", "root", "--resume", "--dry-run"], "use only one of --resume and --dry-run"),
        (["books", "root", "--resume", "--verify-again"], "use only one of --resume and --verify-again"),
        (["books", "root", "--verify-again", "--dry-run"], "use only one of --dry-run and --verify-again"),
        (["books", "root", "--catch-up", "--verify-again"], "use only one of --catch-up and --verify-again"),
        (["books", "root", "--catch-up", "--ids", "x"], "--ids: not supported with --catch-up"),
        (["books", "root", "--verify-again", "--map", "x"], "--map: not supported with --verify-again"),
        (["books", "root", *OCFL, "--report", "a.doc"], "unknown report format"),
        (["books", "root", *OCFL, "--report", "no/a.csv"], "parent directory not found"),
        (
            ["books", "root", *OCFL, "--report", "books/a.csv"],
            "the path is inside the store books",
        ),
        (
            ["books", "root", *OCFL, "--report", "root/a.csv"],
            "the path is inside the store root; choose a file outside it",
        ),
        (["books", "root", *OCFL, "--ids", "a.csv", "--report", "./a.csv"], "file already used by --ids"),
        (["books", "root", *OCFL, "--map", "a.csv", "--report", "a.csv"], "file already used by --map"),
        (["books", "root", "--resume"], "no run to resume; omit --resume to start one"),
        (["books", "root", "--catch-up"], "no finished run; --catch-up needs one"),
        (["books", "root", "--verify-again"], "no finished run; --verify-again needs one"),
        (["none", "root", *OCFL], "'none': No such file or directory"),
        (["books", "books/inside", *OCFL], "the destination is inside the source; choose another destination"),
        (["books", "root", *OCFL, "--copy-mode", "hardlink"], "OCFL forbids hard links (E090)"),
        (["books", "root", *OCFL, "--ids", "none"], "none"),
        (["books", "root", "--to", "ocfl", "--layout", "0099"], "0099"),
        (["books", "root", *OCFL, "--dask", "none"], "file not found"),
    ],
)
def test_wrong_calls(call: Call, books: Path, arguments: list[str], said: str) -> None:
    """A usage error is one line and exit status 2; nothing is written to the destination."""
    (books.parent / "a.csv").write_text("id\n")
    result = call("migrate", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    [line] = result.stderr.splitlines()
    assert said in line
    assert not (books.parent / "root").exists()
    assert (books.parent / "a.csv").read_text() == "id\n"


@pytest.mark.parametrize("name", ["entries.jsonl", "rows.jsonl", "output/0.jsonl", "verify-1/rows.jsonl"])
def test_a_report_replaces_nothing_of_a_run(call: Call, root: Path, name: str) -> None:
    """A report never replaces a file of a run's work folder, except an earlier report."""
    work = root.parent / "root.migration"
    assert call("migrate", "books", "root", "--verify-again").exit_code == 0
    before = {path: path.read_bytes() for path in work.rglob("*.jsonl")}
    for arguments in (OCFL, ["--resume"], ["--verify-again"]):
        result = call("migrate", "books", "root", *arguments, "--report", f"root.migration/{name}")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "the path belongs to the run; choose another file" in result.stderr
    result = call("migrate", "books", "other", *OCFL, "--work", ".", "--report", "plan.jsonl")
    assert "the path belongs to the run" in result.stderr
    assert {path: path.read_bytes() for path in work.rglob("*.jsonl")} == before
    assert call("migrate", "books", "root", "--resume", "--report", "root.migration/report.jsonl").exit_code == 0


# --- failures ---------------------------------------------------------------------------------------------------------


def test_what_is_not_done(call: Call, books: Path) -> None:
    """A failed object is listed with the reason, the others are migrated, and it can be retried alone."""
    spoil(books)
    result = call("migrate", "books", "root", *OCFL, "--report", "rows.csv")
    assert result.exit_code == 1
    [line] = result.stdout.splitlines()
    assert line.startswith(f"exists_different '{IDS[0]}': ")
    advice, first, second = result.stderr.splitlines()
    assert advice.startswith("pressmark: root: no user is recorded (W007); specify --user and --user-address, or set ")
    assert first.startswith("pressmark: root: 3 objects: 2 ok, 1 exists_different; 4 files, 5 B by ")
    remaining = books.parent / "root.migration" / "remaining.txt"
    assert second == f"pressmark: 1 not done; fix the listed problems, then run the same command with --ids {remaining}"
    # Neither a resumed run nor a catch-up accepts a list.
    result = call("migrate", "books", "root", "--resume")
    assert result.stderr.endswith(f" the same command with --ids {remaining} instead of --resume\n")
    with (books.parent / "rows.csv").open(newline="") as file:
        assert sorted((row["id"], row["status"]) for row in csv.DictReader(file)) == [
            (IDS[0], "exists_different"),
            (IDS[1], "ok"),
            (IDS[2], "ok"),
        ]
    result = call("migrate", "books", "root", *OCFL, "--ids", str(remaining), "--replace", "--json")
    assert result.exit_code == 0
    assert lines(result.stdout)[-1]["summary"]["work"] == str(books.parent / "root.migration-2")
    assert call("migrate", "books", "root", *OCFL).exit_code == 0
    link = next(path for path in (books / "pairtree_root").rglob("*") if path.is_file()).with_name("link")
    link.symlink_to("nowhere")
    result = call("migrate", "books", "root", "--catch-up")
    assert result.stderr.endswith(
        "pressmark: 1 not done; fix the listed problems, then run the same command with --catch-up\n"
    )
    link.unlink()
    assert call("migrate", "books", "root", "--catch-up").exit_code == 0


def test_empty_directories_are_not_dropped_in_silence(call: Call, books: Path) -> None:
    """Empty directories that OCFL cannot store are reported; with --move the source stays by default."""
    path = books / "pairtree_root" / "xt" / "12" / "xt12" / "empty"
    path.mkdir()
    result = call("migrate", "books", "copied", *OCFL)
    assert result.exit_code == 0
    [line] = result.stdout.splitlines()
    assert line.startswith("ok 'ark:/13030/xt12': not migrated")
    assert "1 empty directory (empty)" in line
    assert "1 object not migrated completely" in result.stderr
    [*_rows, last] = lines(call("migrate", "books", "json", *OCFL, "--json").stdout)
    assert (last["summary"]["ok"], last["summary"]["noted"]) == (True, 1)
    result = call("migrate", "books", "moved", *OCFL, "--move")
    assert (result.exit_code, path.exists()) == (1, True)
    assert "source kept" in result.stdout
    assert "--drop-empty-directories" in result.stdout
    result = call("migrate", "books", "moved", *OCFL, "--move", "--drop-empty-directories", "--work", "again")
    assert (result.exit_code, os.listdir(books / "pairtree_root")) == (0, [])
    assert "empty" in result.stdout


def test_rows_of_people() -> None:
    """A row is one line, whatever it contains."""
    row = migrate.Entry("new", "old\n", "p", "t", "copy_failed", error="no\nroom")
    assert row_text(row) == "copy_failed 'old\\n' as 'new': no\nroom"
    assert row_text(replace(row, source_id="", id="", error=None)) == "copy_failed 'p': reading or writing failed"
    assert row_text(replace(row, id="old\n", status="ok", error=None)) == "ok 'old\\n': 'p' to 't'"


def test_verify_again(call: Call, root: Path) -> None:
    """--verify reads migrated objects again, and names changed ones."""
    result = call("migrate", "books", "root", "--verify-again")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "pressmark: root: 3 objects verified: 3 ok; 6 files, 6 B\n"
    [file] = root.glob("**/*13030%2fb/v1/content/one.txt")
    file.chmod(0o644)
    file.write_text("X")
    result = call("migrate", "books", "root", "--verify-again", "--report", "rows.jsonl")
    assert result.exit_code == 1
    assert result.stdout.startswith(f"digest_mismatch '{IDS[0]}': ")
    assert re.search(r"is [0-9a-f]{12}…, not [0-9a-f]{12}… as recorded", result.stdout)
    rows = (root.parent / "rows.jsonl").read_text()
    assert len(rows.splitlines()) == 3
    assert re.search(r"is [0-9a-f]{128}, not [0-9a-f]{128} as recorded", rows)
    result = call("migrate", "books", "root", "--verify-again", "--to", "bags")
    assert result.exit_code == 2
    assert "this migration was started with different options" in result.stderr


def test_catch_up(call: Call, root: Path, books: Path) -> None:
    """A catch-up migrates only objects that are new or changed since the first run."""
    result = call("migrate", "books", "root", "--catch-up", "--dry-run")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "0 objects would be migrated" in result.stderr
    assert "3 unchanged" in result.stderr
    store = stores.PairtreeStore(books, durable=False)
    store.put("ark:/13030/new", books.parent / "given")
    store.put(IDS[0], books.parent / "given", replace=True)
    result = call("migrate", "books", "root", "--catch-up", "--json", "--all")
    assert result.exit_code == 0
    *rows, _last = lines(result.stdout)
    assert [(row["id"], row["status"]) for row in rows] == [(IDS[0], "ok"), ("ark:/13030/new", "ok")]
    assert call("store", "check", "root", "--digests").exit_code == 0
    result = call("migrate", "books", "elsewhere", "--catch-up", "--work", "root.migration")
    assert result.exit_code == 2
    assert "this migration was started with different options" in result.stderr


# --- versions ---------------------------------------------------------------------------------------------------------


def users(root: Path) -> list[tuple[Any, str]]:
    """Return user and message of every version of all objects, the newest of each object last."""
    found = []
    for record in stores.open(root).objects():
        inventory = json.loads((root / record.path / "inventory.json").read_bytes())
        found += [(block.get("user"), block["message"]) for block in inventory["versions"].values()]
    return found


def test_users_and_messages(call: Call, books: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Versions name the user of the options or of the environment; a resumed run names the same."""
    monkeypatch.setenv("PRESSMARK_USER_ADDRESS", "mailto:ann@example.org")
    given = ("--user", "Bob", "--message", "moved")
    assert call("migrate", "books", "root", *OCFL, *given, "--dry-run").exit_code == 0
    work = books.parent / "root.migration"
    assert migrate.Plan.open(work).options.destination_options == {"user": {"name": "Bob"}, "message": "moved"}
    monkeypatch.setenv("PRESSMARK_USER", "Ann")
    ann = {"name": "Ann", "address": "mailto:ann@example.org"}
    (work / "begun.json").write_text("{}")
    result = call("migrate", "books", "root", "--resume")
    assert result.exit_code == 2
    assert "different options: destination user name was 'Bob', now 'Ann'" not in result.stderr
    assert "different options: destination user address was not given, now 'mailto:ann@example.org', " in result.stderr
    assert "destination user name was 'Bob', now 'Ann'; use the same options or start a new migration" in result.stderr
    result = call("migrate", "books", "root", "--resume", "--user", "Bob")
    assert result.exit_code == 0
    assert users(books.parent / "root") == [({"name": "Bob"}, "moved")] * 3
    # Nothing is written: the user does not matter.
    assert call("migrate", "books", "root", "--verify-again").exit_code == 0
    stores.PairtreeStore(books, durable=False).put(IDS[0], books.parent / "given", replace=True)
    assert call("migrate", "books", "root", "--catch-up", "--message", "caught up").exit_code == 0
    assert (ann, "caught up") in users(books.parent / "root")
    problems = stores.open(books.parent / "root").check().problems
    assert [one.code for one in problems] == ["W008"]
    assert call("migrate", "books", "root", "--verify-again", "--user", "Ann").exit_code == 2
    # No new versions are made.
    for to in (("--to", "bags"), ("--to", "ocfl", "--layout", "0004")):
        assert call("migrate", "root" if "ocfl" in to else "books", f"to-{to[1]}", *to).exit_code == 0


@pytest.mark.parametrize(
    ("source", "call_options", "words"),
    [
        ("books", ["--to", "bags", "--user", "Ann"], "--user: a store of kind bags does not record it; omit"),
        ("books", ["--to", "bags", "--message", "m"], "--message: a store of kind bags does not record it; omit"),
        ("books", [*OCFL, "--user-address", "mailto:a@b"], "--user-address: no user given; specify --user"),
        ("books", ["--to", "bags", "--version", "v1"], "a store of kind pairtree has no versions; omit --version"),
        (
            "root",
            ["--to", "bags", "--version", "first"],
            "--version 'first': expected the name of a version, such as v2",
        ),
        ("root", ["--to", "ocfl", "--layout", "0004", "--version", "v1"], "keeps all versions of each object; omit"),
        (
            "root",
            ["--to", "ocfl", "--layout", "0004", "--user", "A"],
            "versions of OCFL objects keep their own; omit the options",
        ),
    ],
)
def test_options_of_versions_that_do_not_fit(
    call: Call, root: Path, source: str, call_options: list[str], words: str
) -> None:
    result = call("migrate", source, "new", *call_options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert not (root.parent / "new").exists()


def test_one_version_of_each_object(call: Call, root: Path, books: Path) -> None:
    """--version migrates this version; objects without it are listed."""
    stores.PairtreeStore(books, durable=False).put(IDS[0], books.parent / "given", replace=True)
    assert call("migrate", "books", "root", "--catch-up").exit_code == 0
    result = call("migrate", "root", "tree", "--to", "pairtree", "--version", "2")
    assert result.exit_code == 1
    assert [line for line in result.stdout.splitlines() if not line.startswith("ok ")] == [
        f"source_missing '{one}': version 'v2' not found; the object has v1" for one in IDS[1:]
    ]
    with stores.open(books.parent / "tree").get(IDS[0]).open("sub/two.txt") as file:
        assert file.read() == (books.parent / "given" / "sub" / "two.txt").read_bytes()
    result = call(
        "migrate", "root", "tree1", "--to", "pairtree", "--version", "v0001", "--ids", "tree.migration/remaining.txt"
    )
    assert result.exit_code == 0
    assert call("migrate", "root", "tree1", "--resume", "--version", "v2").exit_code == 2


# --- interruptions ----------------------------------------------------------------------------------------------------


def begun(books: Path) -> str:
    """Plan a migration, and leave it as a killed run does."""
    plan = migrate.plan(books, books.parent / "root", to="ocfl", layout="0003")
    Path(plan.work, "begun.json").write_text("{}")
    return plan.work


def test_going_on(call: Call, books: Path) -> None:
    """An unfinished run is resumed only on request, and only with the same options."""
    work = begun(books)
    result = call("migrate", "books", "root", *OCFL)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        f"pressmark: the run in '{work}' is not finished; run the same command with --resume to continue,"
        " or choose another --work to start a new run\n"
    )
    assert call("migrate", "books", "root", "--catch-up").exit_code == 2
    result = call("migrate", "books", "root", *OCFL, "--resume", "--verify", "reread")
    assert result.exit_code == 2
    assert "verify was 'copy', now 'reread'" in result.stderr
    result = call("migrate", "books", "root", "--to", "ocfl", "--layout", "0004", "--resume")
    assert result.exit_code == 2
    assert not list(books.parent.glob("root/**/inventory.json"))
    result = call("migrate", "books", "root", *OCFL, "--resume")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "3 objects: 3 ok" in result.stderr
    # A finished run prints its result again.
    result = call("migrate", "books", "root", "--resume", "--report", "rows.jsonl")
    assert result.exit_code == 0
    assert len((books.parent / "rows.jsonl").read_text().splitlines()) == 3


def test_a_run_beside_another(call: Call, books: Path) -> None:
    """A run whose process is alive is in use, not unfinished."""
    work = begun(books)
    with locked(Path(work, LOCK)):
        for more in ([*OCFL], ["--catch-up"], ["--resume"]):
            result = call("migrate", "books", "root", *more)
            assert result.exit_code != 0
            assert result.stderr.startswith(f"pressmark: '{work}': in use by ")
    assert "is not finished" in call("migrate", "books", "root", *OCFL).stderr


def test_a_catch_up_without_changes_leaves_no_folder(call: Call, books: Path) -> None:
    """The next one catches up with the same run."""
    call("migrate", "books", "root", *OCFL)
    names = sorted(path.name for path in books.parent.iterdir())
    for more in ([], ["--dry-run"], ["--json"]):
        assert call("migrate", "books", "root", "--catch-up", *more).exit_code == 0
        assert sorted(path.name for path in books.parent.iterdir()) == names
    stores.open(books).put("ark:/13030/new", books.parent / "given")
    result = call("migrate", "books", "root", "--catch-up")
    assert "1 object: 1 ok" in result.stderr
    assert len(list(books.parent.iterdir())) == len(names) + 1


def test_dry_run_has_the_status_of_the_run(call: Call, books: Path) -> None:
    (books.parent / "ids.txt").write_text("missing\n")
    call_of = ("migrate", "books", "root", *OCFL, "--ids", "ids.txt")
    result = call(*call_of, "--dry-run", "--json")
    assert (result.exit_code, json.loads(result.stdout.splitlines()[-1])["summary"]["ok"]) == (1, False)
    assert call(*call_of).exit_code == 1


OTHER_LISTS = [
    (["--ids", "ids", "--map", "map"], ["--ids", "other"], "--ids"),
    (["--ids", "ids", "--map", "map"], ["--map", "other-map"], "--map"),
    (["--ids", "ids", "--map", "map"], ["--ids", "ids.csv", "--column", "name"], "--ids"),
    (["--ids", "ids", "--map", "map"], ["--ids", "windows", "--crlf", "keep"], "--ids"),
    ([], ["--ids", "ids"], "--ids"),
    ([], ["--map", "map"], "--map"),
]


@pytest.mark.parametrize(("first", "then", "option"), OTHER_LISTS)
def test_going_on_with_other_lists(call: Call, books: Path, first: list[str], then: list[str], option: str) -> None:
    """A list is compared by its identifiers: another one is refused, and the same one in another form is accepted."""
    ids = f"{IDS[0]}\n{IDS[1]}\n"
    files = {
        **{"ids": ids, "other": IDS[0], "ids.csv": f"id,name\n{IDS[0]},x\n{IDS[1]},{IDS[2]}\n"},
        **{"windows": ids.replace("\n", "\r\n"), "map": f"{IDS[0]}\tnew:0\n", "map.csv": f"old,new\n{IDS[0]},new:0\n"},
        "other-map": f"{IDS[0]}\tnew:1\n",
    }
    for name, content in files.items():
        (books.parent / name).write_bytes(content.encode())
    call("migrate", "books", "root", *OCFL, *first, "--dry-run")
    plan = migrate.Plan.open(migrate.work_folder(books.parent / "root"))
    migrate.run(plan, processes=False, stop=lambda: True)
    result = call("migrate", "books", "root", *OCFL, *first, *then, "--resume")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 1
    assert (
        f"different options: {'other identifiers' if first else 'no list'} in {option}; omit {option}" in result.stderr
    )
    assert not list(books.parent.glob("root/**/inventory.json"))
    same = {"ids": ["ids.csv"], "map": ["map.csv"]} if first else {}
    again = [word for one in first for word in same.get(one, [one])]
    result = call("migrate", "books", "root", *OCFL, *again, "--resume")
    assert result.exit_code == 0
    assert {row.id for row in migrate.resume(plan).rows()} == ({"new:0", IDS[1]} if first else set(IDS))


def test_another_work_folder(call: Call, books: Path) -> None:
    """--work names another work folder for another run."""
    begun(books)
    assert call("migrate", "books", "root", *OCFL, "--work", "work").exit_code == 0
    assert call("migrate", "books", "root", *OCFL, "--work", "work").exit_code == 0
    assert sorted(path.name for path in books.parent.glob("work*")) == ["work", "work-2"]
    assert call("migrate", "books", "root", "--verify-again", "--work", "work").exit_code == 0


def test_what_no_list_can_name(call: Call, books: Path) -> None:
    """An object unreadable during the plan has no identifier; a catch-up migrates it once it is readable."""
    assert call("migrate", "books", "first", *OCFL).exit_code == 0
    root = books.parent / "first"
    inventory = next(path for path in root.rglob("inventory.json") if path.parent.name != "v1")
    inventory.rename(books.parent / "away")
    result = call("migrate", "first", "second", "--to", "pairtree")
    assert result.exit_code == 1
    ending = "1 not done, with unknown identifiers; fix the listed problems, then run the same command with --catch-up"
    assert result.stderr.endswith(f"pressmark: {ending}\n")
    assert "--ids" not in result.stderr
    result = call("migrate", "first", "second", "--resume")
    assert result.stderr.endswith(" the same command with --catch-up instead of --resume\n")
    (books.parent / "away").rename(inventory)
    result = call("migrate", "first", "second", "--to", "pairtree", "--catch-up")
    assert result.exit_code == 0
    assert sorted(record.id or "" for record in stores.open(books.parent / "second").objects()) == IDS


@pytest.mark.usefixtures("books")
def test_a_work_folder_that_cannot_be_written(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is not reported as a usage error or an error of standard output."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def unplanned(*_arguments: Any, **_how: Any) -> migrate.Plan:
        raise JobError("work", "No space left on device") from full

    def unmerged(*_arguments: Any) -> None:
        raise full

    with monkeypatch.context() as patched:
        patched.setattr(migrate, "plan", unplanned)
        result = call("migrate", "books", "root", *OCFL)
        assert (result.exit_code, result.stderr) == (1, "pressmark: 'work': No space left on device\n")
    with monkeypatch.context() as patched:
        patched.setattr(running, "merge_rows", unmerged)
        result = call("migrate", "books", "root", *OCFL)
    assert result.exit_code == 1
    ending = "root.migration': No space left on device; the run needs read and write access; run the same command"
    assert result.stderr.endswith(f"{ending} with --resume to continue\n")
    # The same command reads a finished run.
    assert call("migrate", "books", "root", "--resume").exit_code == 0
    monkeypatch.setattr(verifying, "merge_rows", unmerged)
    result = call("migrate", "books", "root", "--verify-again")
    assert result.exit_code == 1
    assert result.stderr.endswith("the run needs read and write access; run the same command to continue\n")


def test_interrupted(call: Call, books: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends the run; the last line names the command to continue."""
    real = migrate.run

    def interrupted(plan: migrate.Plan, **how: Any) -> migrate.Run:
        Path(plan.work, "begun.json").write_text("{}")
        how["progress"](ProgressEvent("run", items=2, bytes=4, of_items=3, of_bytes=6))
        raise KeyboardInterrupt

    monkeypatch.setattr(migrate, "run", interrupted)
    result = call("migrate", "books", "root", *OCFL)
    assert (result.exit_code, result.stdout) == (130, "")
    ending = "run the same command with --resume to continue\n"
    assert result.stderr == f"pressmark: interrupted; {ending}"

    def lost(plan: migrate.Plan, **how: Any) -> migrate.Run:
        how["progress"](ProgressEvent("run", items=2, bytes=4, of_items=3, of_bytes=6))
        raise JobError("tcp://x", "the connection to the Dask scheduler is lost")

    monkeypatch.setattr(migrate, "run", lost)
    result = call("migrate", "books", "root", *OCFL, "--work", "lost")
    assert result.exit_code == 1
    assert "is lost; run the same command with --resume to continue" in result.stderr

    def ended(plan: migrate.Plan, **how: Any) -> migrate.Run:
        assert how["max_errors"] == 1
        return dataclasses.replace(real(plan, **how), stopped="max_errors")

    monkeypatch.setattr(migrate, "run", ended)
    result = call("migrate", "books", "root", *OCFL, "--max-errors", "1", "--work", "ended")
    assert result.exit_code == 1
    why = "the run is not finished: too many objects failed"
    assert f"{why}; run the same command with --resume to continue" in result.stderr


def test_an_interrupted_run_counts_what_is_done(call: Call, books: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last line counts the objects of complete chunks; the resumed run counts them, too."""
    real = migrate.run

    def interrupted(plan: migrate.Plan, **how: Any) -> migrate.Run:
        real(plan, **how)
        Path(plan.work, "finished.json").unlink()
        min(Path(plan.work, "receipts").iterdir()).unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr(migrate, "run", interrupted)
    monkeypatch.setitem(planner.make_plan.__kwdefaults__, "chunk_objects", 1)
    result = call("migrate", "books", "root", *OCFL)
    ending = "run the same command with --resume to continue\n"
    assert result.stderr == f"pressmark: interrupted; at least 2 of 3 objects are in root; {ending}"
    resume = migrate.resume
    monkeypatch.setattr(migrate, "resume", lambda plan, **how: dataclasses.replace(resume(plan, **how), seconds=2.0))
    result = call("migrate", "books", "root", *OCFL, "--resume")
    assert result.exit_code == 0
    assert "3 objects: 2 ok, 1 exists_same; 2 were done before this call; " in result.stderr
    # The time and the rates are those of this call.
    assert "; this call processed 1 object in 0:02, " in result.stderr
    (books.parent / "root.migration" / "finished.json").unlink()
    result = call("migrate", "books", "root", *OCFL, "--resume", "--json")
    summary = json.loads(result.stdout.splitlines()[-1])["summary"]
    assert "3 objects: 2 ok, 1 exists_same; 3 were done before this call; " in result.stderr
    assert result.stderr.endswith("; this call had nothing to do\n")
    assert (summary["processed"], summary["seconds"], summary["objects_per_second"]) == (0, 2.0, None)


def test_a_verification_names_both_stores(call: Call, books: Path) -> None:
    """A missing DESTINATION is reported with the form of the call."""
    result = call("migrate", "root", "--verify-again")
    text = "DESTINATION missing; name both stores: pressmark migrate SOURCE DESTINATION"
    assert (result.exit_code, result.stderr) == (2, f"pressmark: {text}\n")


def test_an_omitted_user_is_that_of_the_run(call: Call, books: Path) -> None:
    """A resumed run keeps its user; another one is refused."""
    assert call("migrate", "books", "root", *OCFL, "--user", "Ann", "--user-address", "mailto:a@b.c").exit_code == 0
    (books.parent / "root.migration" / "finished.json").unlink()
    assert call("migrate", "books", "root", *OCFL, "--resume", "--user", "Bob").exit_code == 2
    assert call("migrate", "books", "root", *OCFL, "--resume").exit_code == 0


def test_interrupted_while_planning(call: Call, books: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C during the plan leaves nothing written and nothing to resume."""

    def interrupted(*_arguments: Any, **_how: Any) -> migrate.Plan:
        raise KeyboardInterrupt

    monkeypatch.setattr(migrate, "plan", interrupted)
    result = call("migrate", "books", "root", *OCFL)
    assert (result.exit_code, result.stdout) == (130, "")
    ending = "nothing was written to the destination; run the same command again\n"
    assert result.stderr == f"pressmark: interrupted; {ending}"


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals(books: Path, number: signal.Signals) -> None:
    """After a signal at any time, the same command with --resume finishes the run."""
    arguments = [*COMMAND, "migrate", "books", "root", *OCFL]
    options: dict[str, Any] = {"cwd": books.parent, "env": environment(), "stderr": subprocess.PIPE}
    with subprocess.Popen(arguments, **options, preexec_fn=restore_signals) as process:
        limit = time.monotonic() + 30
        begun = books.parent / "root.migration" / "begun.json"
        while not begun.exists() and process.poll() is None and time.monotonic() < limit:
            time.sleep(0.002)
        process.send_signal(number)
        assert process.stderr is not None
        said = process.stderr.read().decode()
    status = 130 if number == signal.SIGINT else 143
    assert process.returncode in (0, status)
    if process.returncode:
        assert "run the same command with --resume to continue" in said
        assert "Traceback" not in said
    done = subprocess.run([*arguments, "--resume"], **options, check=False, timeout=60)
    assert (done.returncode, done.stderr.splitlines()[-1].split(b";")[0]) == (
        0,
        b"pressmark: root: 3 objects: 3 ok",
    )


# --- reports and progress ---------------------------------------------------------------------------------------------


@needs_jinja2
def test_the_page(call: Call, books: Path) -> None:
    """--report writes the page, and the rows beside it."""
    result = call("migrate", "books", "root", *OCFL, "--report", "report.html", "--report", "rows.jsonl", "--json")
    assert result.exit_code == 0
    assert lines(result.stdout)[-1]["summary"]["reports"] == ["report.html", "rows.jsonl"]
    assert "All is well" in (books.parent / "report.html").read_text(encoding="utf-8")


def test_a_report_that_cannot_be_written(call: Call, books: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the report cannot be written, objects are migrated, and the exit status is 1."""
    real = migrate.report

    def full(run: migrate.Run, path: str) -> Any:
        if path == "a.csv":
            raise ReportError(path, "it cannot be written (No space left on device)")
        return real(run, path)

    monkeypatch.setattr(migrate, "report", full)
    result = call("migrate", "books", "root", *OCFL, "--report", "a.csv", "--report", "b.csv")
    assert result.exit_code == 1
    assert result.stderr.startswith("pressmark: 'a.csv': it cannot be written (No space left on device)\n")
    assert "3 objects: 3 ok" in result.stderr
    assert (books.parent / "b.csv").exists()


def test_a_report_that_needs_more(call: Call, books: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing package for the report is an error before the run."""
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "jinja2" else found(name))
    result = call("migrate", "books", "root", *OCFL, "--report", "report.html")
    assert result.exit_code == 2
    assert result.stderr == (
        "pressmark: 'report.html': needs jinja2: pip install 'pressmark[report]',"
        " or use a file name that ends in .csv or .jsonl\n"
    )
    assert not (books.parent / "root").exists()


@pytest.mark.parametrize(
    ("event", "first", "seconds", "text"),
    [
        (ProgressEvent("plan", items=4000, bytes=10**9), ProgressEvent("plan"), 0.0, "planning: 4,000 objects, 1 GB"),
        (
            ProgressEvent("plan", items=4000, bytes=10**9),
            ProgressEvent("plan"),
            10.0,
            "planning: 4,000 objects, 1 GB, 400/s, 100 MB/s",
        ),
        (
            ProgressEvent(
                "run",
                items=4000,
                bytes=10**9,
                of_items=6000,
                of_bytes=3 * 10**9,
                failed=10,
            ),
            ProgressEvent("run", items=2000, bytes=5 * 10**8, of_items=6000, of_bytes=3 * 10**9),
            10.0,
            "migrating: 4,000 of 6,000 objects, 1 GB of 3 GB, 200/s, 50 MB/s, 10 failed, 66 %, 0:40 left",
        ),
        (
            ProgressEvent("run", items=2000, bytes=7, of_items=6000, of_bytes=9),
            ProgressEvent("run", items=2000, bytes=7, of_items=6000, of_bytes=9),
            2.0,
            "migrating: 2,000 of 6,000 objects, 7 B of 9 B, waiting for the first object, 33 %",
        ),
        (
            ProgressEvent("run", items=6000, bytes=9, of_items=6000, of_bytes=9),
            ProgressEvent("run", items=6000, bytes=9, of_items=6000, of_bytes=9),
            2.0,
            "migrating: 6,000 of 6,000 objects, 9 B of 9 B, 100 %",
        ),
        (
            ProgressEvent("remove", items=3000, of_items=6000, of_bytes=9),
            ProgressEvent("remove", of_items=6000, of_bytes=9),
            60.0,
            "removing sources: 3,000 of 6,000 objects, 0 B of 9 B, 50/s, 50 %, 1:00 left",
        ),
    ],
)
def test_progress_is_reported(
    monkeypatch: pytest.MonkeyPatch, event: ProgressEvent, first: ProgressEvent, seconds: float, text: str
) -> None:
    """Objects, bytes, rate and time left, by what this call has done; failures of this phase."""
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    display = Reporter(ProgressOutput(ProgressMode.NONE), "object", PHASES)
    display.on_event(first)
    clock[0] = seconds
    display.on_event(event)
    assert display.view().line() == text


def test_every_phase_has_words() -> None:
    """Every phase of a migration has a label."""
    assert list(PHASES) == ["", *job.PHASES]


def test_a_line_in_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rate in a log counts only work of this run."""
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    display = Reporter(ProgressOutput(ProgressMode.NONE), "object", PHASES)
    assert display.view().line() == "planning: 0 objects"
    lines = []
    for clock[0], objects in ((0.5, 1000), (5.5, 1100), (11.0, 1210), (12.0, 1300), (22.0, 1430)):
        display.on_event(ProgressEvent("run", items=objects, of_items=2000))
        lines.append(display.view().line())
    assert lines[2] == "migrating: 1,210 of 2,000 objects, 20/s, 60 %, 0:40 left"
    assert lines[4] == "migrating: 1,430 of 2,000 objects, 20/s, 71 %, 0:28 left"


# --- a cluster --------------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster() -> Iterator[Any]:
    """A Dask cluster of one worker, in this process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None, protocol="tcp"
    ) as started:
        yield started


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
def test_dask(call: Call, books: Path, cluster: Any) -> None:
    """A cluster gives the same destination and the same output."""
    result = call("migrate", "books", "root", *OCFL, "--dask", cluster.scheduler_address)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "3 objects: 3 ok" in result.stderr
    assert call("migrate", "root", "back", "--to", "pairtree", "--prefix", "ark:/13030/").exit_code == 0
    assert tree(books.parent / "back") == tree(books)
