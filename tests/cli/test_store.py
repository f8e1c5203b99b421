"""``pressmark store``: the output of the commands, its stream, and the exit statuses."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from pressmark.errors import StoreError
from pressmark.fixity import copying
from pressmark.stores.staging_writer import StagingWriter
from support.signals import restore_signals

from .conftest import COMMAND, Call, Run, environment

KINDS = {
    "pairtree": ["--prefix", "x:"],
    "vitro": ["--namespace", "x:"],
    "ocfl": ["--layout", "0003:tupleSize=2,numberOfTuples=2"],
    "bags": [],
}
NO_USER = (
    "pressmark: store: no user is recorded (W007); specify --user and --user-address, or set PRESSMARK_USER and "
    "PRESSMARK_USER_ADDRESS\n"
)
PLACES = {
    "pairtree": "pairtree_root/12",
    "vitro": "file_storage_root/a~1/2",
    "bags": "x+12",
}


def lines(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """A folder with one file, as an object."""
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "one.txt").write_text("1")
    return tmp_path / "given"


@pytest.mark.parametrize("kind", KINDS)
def test_from_init_to_rm(call: Call, given: Path, tmp_path: Path, kind: str) -> None:
    """A store of each kind is created, filled, listed, checked, repaired, read and emptied."""
    result = call("store", "init", kind, "store", *KINDS[kind])
    assert (result.exit_code, result.stdout, result.stderr) == (
        0,
        "",
        f"pressmark: store: created an empty store of kind {kind}\n",
    )
    assert call("store", "init", kind, "store", *KINDS[kind]).exit_code == 2
    result = call("store", "ls", "store")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "pressmark: store: 0 objects\n")
    result = call("store", "put", "store", "x:12", "given")
    assert (result.exit_code, result.stderr) == (0, NO_USER if kind == "ocfl" else "")
    identifier, path = result.stdout.rstrip("\n").split("\t")
    assert identifier == "x:12"
    assert (tmp_path / "store" / path).is_dir()
    assert path == PLACES.get(kind, path)
    result = call("store", "put", "store", "x:12", "given")
    assert (result.exit_code, result.stdout) == (0, f"x:12\t{path}\n")
    assert result.stderr == "pressmark: store: 1 object exists with the same content; not stored again\n"
    (given / "one.txt").write_text("?")
    result = call("store", "put", "store", "x:12", "given")
    assert result.exit_code == 1
    assert "replace it" in result.stderr or "exists" in result.stderr
    (given / "one.txt").write_text("1")
    assert call("store", "put", "store", "x:12", "given/one.txt", "--replace").exit_code == 0
    result = call("store", "ls", "store", "--json")
    [record, summary] = lines(result.stdout)
    assert (record["id"], record["path"], record["proper"], record["problems"]) == ("x:12", path, True, [])
    assert record["encapsulation"] == ("012" if kind == "pairtree" else None)
    assert summary["summary"]["ok"] is True
    assert summary["summary"]["objects"] == 1
    result = call("store", "ls", "store", "-0")
    assert result.stdout == f"x:12\t{path}\0"
    result = call("store", "check", "store", "--digests", "--json")
    assert result.exit_code == 0
    assert {line["kind"] for line in lines(result.stdout)[:-1]} <= {"inventory-advice"}
    result = call("store", "repair", "store")
    assert result.exit_code == 0
    result = call("store", "get", "store", "x:12", "copy")
    assert (result.exit_code, result.stderr) == (0, "pressmark: copy: 1 file of 'x:12'\n")
    assert [file.name for file in (tmp_path / "copy").iterdir()] == ["one.txt"]
    assert (tmp_path / "copy" / "one.txt").read_text() == "1"
    assert call("store", "get", "store", "x:12", "copy").exit_code == 2
    assert call("store", "get", "store", "x:13", "other").exit_code == 1
    missing = call("store", "get", "store", "x:13", "other", "--json")
    problem, summary = map(json.loads, missing.stdout.splitlines())
    assert (missing.exit_code, problem["kind"], problem["severity"]) == (1, "missing", "error")
    assert summary == {"summary": {"ok": False, "files": 0, "empty_directories": 0}}
    assert not (tmp_path / "other").exists()
    result = call("store", "rm", "store", "x:12", "x:13")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == "pressmark: 1 object removed"
    assert "object 'x:13'" in result.stderr
    assert call("store", "ls", "store").stdout == ""


def test_declare(call: Call, given: Path, tmp_path: Path) -> None:
    """Namespaces are declared once, and listed with their letters; repair moves the objects in them."""
    call("store", "init", "vitro", "store")
    path = call("store", "put", "store", "http://b/12", "given/one.txt").stdout.split("\t")[1]
    assert "b~" not in path
    result = call("store", "declare", "store", "http://a/", "http://b/")
    assert (result.exit_code, result.stdout) == (0, "a\thttp://a/\nb\thttp://b/\n")
    assert result.stderr.startswith("pressmark: store: 2 namespaces declared; if they already have objects")
    result = call("store", "declare", "store", "http://b/", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert lines(result.stdout) == [
        {"prefix": "b", "namespace": "http://b/"},
        {"summary": {"namespaces": 2, "declared": 0}},
    ]
    assert call("store", "declare", "store").stdout == "a\thttp://a/\nb\thttp://b/\n"
    assert call("store", "check", "store").exit_code == 1
    assert call("store", "repair", "store").exit_code == 0
    assert call("store", "ls", "store").stdout == "http://b/12\tfile_storage_root/b~1/2\n"
    content = (tmp_path / "store" / "file_storage_namespaces.properties").read_text()
    assert content == "a = http://a/\nb = http://b/\n"
    result = call("store", "declare", "store", "http://c/", "")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "namespace '' cannot be declared" in result.stderr
    assert (tmp_path / "store" / "file_storage_namespaces.properties").read_text() == content


@pytest.mark.parametrize("kind", ["pairtree", "ocfl", "bags"])
def test_declare_in_another_kind_of_store(call: Call, tmp_path: Path, kind: str) -> None:
    """Only Vitro stores have namespaces; the message says what to use."""
    call("store", "init", kind, "store", *KINDS[kind])
    result = call("store", "declare", "store", "http://a/")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"pressmark: store: a store of kind {kind} has no namespaces; ")
    assert "pressmark store init --" in result.stderr


def test_many(call: Call, given: Path) -> None:
    """Objects are put and removed by lists; failures are named and do not affect the others."""
    call("store", "init", "bags", "store")
    listed = b"a:1\tgiven\nbroken\nb:2\tgiven/one.txt\nc\tnone\nd\t\n\xff\tgiven"
    result = call("store", "put", "store", "--from", "-", stdin=listed)
    assert result.exit_code == 1
    assert result.stdout == "a:1\ta+1\nb:2\tb+2\n"
    assert result.stderr.startswith("pressmark: <stdin>:2: ")
    *errors, count = result.stderr.splitlines()
    assert (len(errors), count) == (4, "pressmark: store: 2 objects stored, 4 failed")
    result = call("store", "put", "store", "--from", "-", "-0", "--json", stdin=b"c\n3\tgiven\0d\tgiven\0")
    assert result.exit_code == 1
    assert lines(result.stdout)[-1] == {"summary": {"ok": False, "stored": 1, "failed": 1, "warnings": 0}}
    result = call("store", "rm", "store", "--from", "-", "--json", stdin=b"a:1\nb:2\nd\n")
    assert result.exit_code == 0
    assert lines(result.stdout) == [{"summary": {"ok": True, "removed": 3, "failed": 0}}]


@pytest.mark.parametrize("kind", ["pairtree", "bags", "ocfl"])
def test_empty_directories(call: Call, given: Path, tmp_path: Path, kind: str) -> None:
    """Empty directories are stored and copied; if impossible, they are reported and counted."""
    (given / "empty" / "er").mkdir(parents=True)
    call("store", "init", kind, "store", *KINDS[kind])
    result = call("store", "put", "store", "x:12", "given")
    assert result.exit_code == 0
    assert result.stdout.startswith("x:12\t")
    if kind == "ocfl":
        [warning, no_user, last] = result.stderr.splitlines(keepends=True)
        assert warning.startswith("pressmark: 'x:12': warning directory-empty: 'empty/er' not stored")
        assert no_user == NO_USER
        assert last == "pressmark: store: 1 object stored, 1 warning\n"
    else:
        assert result.stderr == ""
    assert call("store", "rm", "store", "x:12").exit_code == 0
    *_, last = lines(call("store", "put", "store", "x:12", "given", "--json").stdout)
    assert last["summary"]["warnings"] == (kind == "ocfl")
    *_, last = lines(call("store", "get", "store", "x:12", "copy", "--json").stdout)
    assert last["summary"] == {"ok": True, "files": 1, "empty_directories": int(kind != "ocfl")}
    assert (tmp_path / "copy" / "one.txt").read_text() == "1"
    assert (tmp_path / "copy" / "empty" / "er").is_dir() == (kind != "ocfl")


@pytest.mark.parametrize("kind", ["pairtree", "vitro"])
def test_names_that_are_ignored(call: Call, given: Path, tmp_path: Path, kind: str) -> None:
    """Ignored files are not part of an object that is read, replaced or removed."""
    call("store", "init", kind, "store")
    path = call("store", "put", "store", "abc", "given").stdout.rstrip("\n").split("\t")[1]
    stray = tmp_path / "store" / path / ".DS_Store"
    stray.write_text("x")
    ignored = ("--ignore", ".DS_*")
    assert call("store", "get", "store", "abc", "copy", *ignored).exit_code == 0
    assert os.listdir(tmp_path / "copy") == ["one.txt"]
    assert call("store", "put", "store", "abc", "given", "--replace", *ignored).exit_code == 0
    assert call("store", "check", "store", *ignored).stdout == ""
    assert call("store", "rm", "store", "abc", *ignored).exit_code == 0
    assert stray.read_text() == "x"
    assert os.listdir(stray.parent) == [".DS_Store"]


def test_a_copy_is_no_part_of_the_store(call: Call, given: Path, tmp_path: Path) -> None:
    """A destination in the store is refused, under any path."""
    call("store", "init", "pairtree", "store")
    call("store", "put", "store", "x:1", "given")
    (tmp_path / "link").symlink_to("store/pairtree_root")
    for destination in ("store/copy", "store/pairtree_root/copy", "link/copy"):
        result = call("store", "get", "store", "x:1", destination)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"pressmark: {destination}: inside the store")
    result = call("store", "get", "store/pairtree_root", "x:1", "store/copy")
    assert (result.exit_code, result.stdout) == (2, "")
    assert call("store", "check", "store").stderr == "pressmark: store: 1 object, no problem\n"
    assert call("store", "get", "store", "x:1", "store-copy").exit_code == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_dry_run_removes_nothing(call: Call, given: Path, kind: str) -> None:
    """The objects that would be removed are listed, and the failures are those of the removal."""
    call("store", "init", kind, "store", *KINDS[kind])
    for identifier in ("x:12", "x:34"):
        call("store", "put", "store", identifier, "given")
    listed = call("store", "ls", "store").stdout
    result = call("store", "rm", "store", "--from", "-", "--dry-run", stdin=b"x:34\nx:56\nx:12\n")
    assert result.exit_code == 1
    assert sorted(result.stdout.splitlines()) == sorted(listed.splitlines())
    assert result.stderr.count("\n") == 2
    assert result.stderr.endswith("2 objects would be removed\n")
    assert call("store", "ls", "store").stdout == listed
    result = call("store", "rm", "store", "x:12", "--dry-run", "--json")
    record, summary = map(json.loads, result.stdout.splitlines())
    assert record["id"] == "x:12"
    assert summary == {"summary": {"dry_run": True, "ok": True, "removed": 1, "failed": 0}}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("after", [True, False])
def test_an_object_that_is_replaced_while_it_is_copied(
    call: Call, given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, after: bool
) -> None:
    """An object that changes during its copy is refused with the advice to repeat."""
    call("store", "init", kind, "store", *KINDS[kind])
    call("store", "put", "store", "x:12", "given")
    copy = copying.copy_files

    def meanwhile(*args: Any, **options: Any) -> Any:
        copied = list(copy(*args, **options)) if after else None
        call("store", "rm", "store", "x:12")
        if after:
            (given / "one.txt").write_text("2")
            call("store", "put", "store", "x:12", "given")
        return (one for one in (copy(*args, **options) if copied is None else copied))

    monkeypatch.setattr(copying, "copy_files", meanwhile)
    before = sorted(os.listdir(tmp_path))
    result = call("store", "get", "store", "x:12", "copy")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.endswith("removed the object since it was looked up; get it again\n")
    assert result.stderr.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sources", [["."], [".", "given"], ["link"]])
def test_a_store_inside_of_the_source(call: Call, given: Path, tmp_path: Path, kind: str, sources: list[str]) -> None:
    """A source that contains the store is refused."""
    (tmp_path / "link").symlink_to(".")
    call("store", "init", kind, "store", *KINDS[kind])
    result = call("store", "put", "store", "x:1", *sources)
    assert (result.exit_code, result.stdout) == (1, "")
    assert len(result.stderr.splitlines()) == 1
    assert kind == "vitro" or "cop" in result.stderr
    assert call("store", "ls", "store").stderr == "pressmark: store: 0 objects\n"
    assert call("store", "check", "store").exit_code == 0


def test_several_sources(call: Call, given: Path, tmp_path: Path) -> None:
    """Each source is stored under its own name; two with one name are refused."""
    call("store", "init", "ocfl", "store", "--layout", "0004")
    (tmp_path / "two.txt").write_text("2")
    assert call("store", "put", "store", "a", "given", "two.txt").exit_code == 0
    call("store", "get", "store", "a", "copy")
    assert sorted(str(path.relative_to(tmp_path / "copy")) for path in (tmp_path / "copy").rglob("*")) == [
        "given", os.path.join("given", "one.txt"), "two.txt"
    ]  # fmt: skip
    assert (
        "two SOURCEs have the name one.txt"
        in call("store", "put", "store", "b", "given/one.txt", "./given/one.txt").stderr
    )


def test_check_of_a_root_that_lost_its_declaration(call: Call, given: Path, tmp_path: Path) -> None:
    """With a given kind, a missing declaration is a problem like others, and the others are listed too."""
    call("store", "init", "ocfl", "store", "--layout", "0003")
    call("store", "put", "store", "x:1", "given")
    [directory] = (path.parent for path in (tmp_path / "store").rglob("0=ocfl_object_1.1"))
    (directory / "v1/content/one.txt").write_text("2")
    (tmp_path / "store/0=ocfl_1.1").unlink()
    assert call("store", "check", "store").exit_code == 2
    result = call("store", "check", "store", "--kind", "ocfl", "--digests", "--json")
    assert result.exit_code == 1
    *found, last = lines(result.stdout)
    errors = [(one["kind"], one["code"], one["path"]) for one in found if one["severity"] == "error"]
    content = directory.relative_to(tmp_path / "store") / "v1/content/one.txt"
    assert errors == [("declaration-missing", "E069", ""), ("content-mismatch", "E092", str(content))]
    assert (last["summary"]["ok"], last["summary"]["objects"]) == (False, 1)
    assert call("store", "put", "store", "x:2", "given", "--kind", "ocfl").exit_code == 2
    assert call("store", "repair", "store", "--kind", "ocfl").exit_code == 0
    assert call("store", "ls", "store").exit_code == 0
    (tmp_path / "store/0=ocfl_1.1").unlink()
    (tmp_path / "store/0=ocfl_9.9").write_text("ocfl_9.9\n")
    found = lines(call("store", "check", "store", "--kind", "ocfl", "--json").stdout)[:-1]
    assert {"E069", "E079"} <= {one.get("code") for one in found}


def test_check_and_repair(call: Call, given: Path, tmp_path: Path) -> None:
    """A damaged Pairtree is reported in text and JSON, repaired on request, and then valid."""
    call("store", "init", "pairtree", "store")
    call("store", "put", "store", "abc", "given")
    tree = tmp_path / "store" / "pairtree_root"
    (tree / "ab" / "note").write_text("x")
    (tree / "zz").mkdir()
    result = call("store", "check", "store")
    assert result.exit_code == 1
    assert [line.split(": ")[:3] for line in result.stdout.splitlines()] == [
        ["error", "bare-file", "pairtree_root/ab"],
        ["warning", "empty", "pairtree_root/zz"],
    ]
    assert result.stderr.splitlines() == [
        "pressmark: store: 2 objects, 1 improper, 1 error, 1 warning",
        "pressmark: what to do: bare-file: see what a repair would change: pressmark store repair store --dry-run",
    ]
    result = call("store", "check", "store", "--json")
    assert [line.get("kind") for line in lines(result.stdout)] == ["bare-file", "empty", None]
    assert lines(result.stdout)[-1]["summary"]["kinds"] == {"bare-file": 1, "empty": 1}
    result = call("store", "ls", "store")
    assert (result.exit_code, result.stdout) == (0, "ab\tpairtree_root/ab\nabc\tpairtree_root/ab/c\n")
    assert result.stderr == (
        "pressmark: store: 2 objects, 1 improper, 1 problem outside of objects; "
        'run "pressmark store check" for details\n'
    )
    assert call("store", "check", "store", "--ignore", "no*").exit_code == 0
    planned = call("store", "repair", "store", "--dry-run")
    assert (planned.exit_code, (tree / "ab" / "note").exists()) == (0, True)
    done = call("store", "repair", "store")
    assert done.stdout == planned.stdout == "encapsulate: pairtree_root/ab: note\nprune: pairtree_root/zz\n"
    assert (tree / "ab" / "obj" / "note").read_text() == "x"
    result = call("store", "repair", "store", "--json")
    assert (result.exit_code, len(lines(result.stdout))) == (0, 1)
    assert call("store", "check", "store").stdout == ""


def test_what_cannot_be_listed(call: Call, tmp_path: Path) -> None:
    """An object without an identifier, or with a line feed in it, fails in text; JSON has it."""
    call("store", "init", "vitro", "store")
    root = tmp_path / "store" / "file_storage_root"
    for name in ("z~n/one", "^0a/one", "abc/one"):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text("1")
    result = call("store", "ls", "store")
    assert (result.exit_code, result.stdout) == (1, "abc\tfile_storage_root/abc\n")
    assert len(result.stderr.splitlines()) == 3
    result = call("store", "ls", "store", "--json")
    assert result.exit_code == 1
    assert [line["id"] for line in lines(result.stdout)[:-1]] == ["\n", "abc", None]
    summary = lines(result.stdout)[-1]["summary"]
    assert (summary["ok"], summary["errors"], summary["kinds"]) == (False, 1, {"unknown-prefix": 1})


def test_what_is_stored_and_goes_on_no_line(call: Call, given: Path) -> None:
    call("store", "init", "pairtree", "store")
    result = call("store", "put", "store", "a\nb", "given")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "stored, but contains a separator" in result.stderr
    assert lines(call("store", "ls", "store", "--json").stdout)[0]["id"] == "a\nb"


def test_kinds_and_layouts(call: Call, given: Path, tmp_path: Path) -> None:
    """--kind and --layout are obeyed, and refused where they do not apply."""
    call("store", "init", "bags", "store", "--layout", "0004")
    assert call("store", "put", "store", "a", "given").stdout.startswith("a\tca9/781/")
    call("store", "init", "bags", "names", "--identifiers", "name")
    assert call("store", "put", "names", "a", "given").stdout == "a\ta\n"
    assert call("store", "ls", "names", "--kind", "bags", "--identifiers", "external").stdout == "a\ta\n"
    for wrong in (
        ["ls", "none"],
        ["ls", "given"],
        ["ls", "given", "--kind", "pairtree"],
        ["ls", "store", "--kind", "ocfl"],
        ["ls", "store", "--kind", "x"],
        ["ls", "store", "--layout", "9999"],
        ["ls", "store", "--layout", "0004:tupleSize=99"],
        ["ls", "store", "--layout", "0004:tupleSize"],
        ["init", "pairtree", "new", "--layout", "0004"],
        ["init", "pairtree", "new", "--namespace", "x"],
        ["init", "vitro", "new", "--prefix", "x"],
        ["init", "vitro", "new", "--namespace", " x"],
        ["init", "ocfl", "new"],
        ["init", "ocfl", "new", "--identifiers", "name"],
        ["init", "bags", "given"],
        ["init", "bags", "new", "--identifiers", "layout"],
        ["init", "bags", "new", "--identifiers", "name", "--layout", "0004"],
        *(["init", kind, "given/one.txt", *options] for kind, options in KINDS.items()),
        ["put", "store"],
        ["put", "store", "a"],
        ["put", "store", "a", "none"],
        ["put", "store", "a", "given", "--from", "-"],
        ["put", "store", "--from", "none"],
        ["rm", "store"],
        ["rm", "store", "a", "--from", "-"],
        ["get", "store", "a"],
    ):
        result = call("store", *wrong)
        assert (wrong, result.exit_code, result.stdout) == (wrong, 2, "")
        assert not (tmp_path / "new").exists()
        assert len(result.stderr.splitlines()) == 1, result.stderr
    assert not (tmp_path / "new").exists()
    call("store", "init", "pairtree", "tree")
    assert call("store", "ls", "tree", "--layout", "0004").exit_code == 2
    assert call("store", "ls", "tree", "--identifiers", "name").exit_code == 2


def test_serialised_bags(call: Call, given: Path, tmp_path: Path) -> None:
    """Serialized bags are listed with a warning, checked with --digests, and returned as one file."""
    call("store", "init", "bags", "store")
    call("store", "put", "store", "x:1", "given")
    with tarfile.open(tmp_path / "store" / "y.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "store" / "x+1", "x+1")
    assert call("store", "rm", "store", "x:1").exit_code == 0
    assert call("store", "ls", "store").stdout == "x:1\ty.tar.gz\n"
    result = call("store", "check", "store")
    assert (result.exit_code, result.stdout[:32]) == (0, "warning: archive-unchecked: y.ta")
    result = call("store", "check", "store", "--digests")
    assert (result.exit_code, result.stdout) == (0, "")
    call("store", "get", "store", "x:1", "copy")
    assert os.listdir(tmp_path / "copy") == ["y.tar.gz"]


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX pipes and signals")
def test_a_reader_who_leaves(run: Run, given: Path, tmp_path: Path) -> None:
    """A broken pipe is success, and changes to a store continue."""
    run("store", "init", "pairtree", "store")
    for number in range(1000):  # more than one write
        (tmp_path / "store" / "pairtree_root" / f"{number // 100:02}" / f"{number % 100:02}").mkdir(parents=True)
    for command in (["ls", "--json"], ["check"], ["check", "--json"], ["repair"]):
        process = subprocess.Popen(
            [*COMMAND, "store", command[0], "store", *command[1:]],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env=environment(),
        )
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(timeout=60) == 0
        assert b"rror" not in process.stderr.read()
        process.stderr.close()
    assert os.listdir(tmp_path / "store" / "pairtree_root") == []
    process = subprocess.Popen(
        [*COMMAND, "store", "put", "store", "--from", "-", "--json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env=environment(),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.close()
    identifiers = [f"{number}" + "x" * 100 for number in range(220)]  # more than one write
    process.stdin.write("".join(f"{identifier}\tgiven\n" for identifier in identifiers).encode())
    process.stdin.close()
    assert process.wait(timeout=120) == 0
    assert len(run("store", "ls", "store").stdout.splitlines()) == 220


def test_what_is_stored_is_listed_before_an_error(call: Call, given: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a batch cannot be flushed, the command lists what was stored before, and ends."""
    call("store", "init", "pairtree", "store")
    flush = StagingWriter._flush_names

    def failing(self: Any, paths: list[bytes]) -> None:
        if any(b"b+" in path for path in paths):
            raise StoreError("store", "Input/output error") from OSError(errno.EIO, "Input/output error")
        flush(self, paths)

    monkeypatch.setattr(StagingWriter, "_flush_names", failing)
    monkeypatch.setattr("pressmark.tabular.formats.BLOCK_BYTES", 10)
    result = call("store", "put", "store", "--from", "-", stdin=b"a:1\tgiven\nb:2\tgiven\nc:3\tgiven\n")
    assert (result.exit_code, result.stdout) == (1, "a:1\tpairtree_root/a+/1\n")
    assert result.stderr == "pressmark: 'store': Input/output error\n"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs POSIX signals")
def test_interrupted(given: Path, run: Run, tmp_path: Path) -> None:
    """Ctrl-C reports the progress; every stored object is complete, and nothing else is left."""
    run("store", "init", "pairtree", "store")
    process = subprocess.Popen(
        [*COMMAND, "store", "put", "store", "--from", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=environment(),
        preexec_fn=restore_signals,
    )
    assert process.stdin is not None
    process.stdin.write(b"a:1\tgiven\n")
    process.stdin.flush()
    while not list((tmp_path / "store" / "pairtree_root").rglob("one.txt")):
        assert process.poll() is None
    time.sleep(0.5)  # it waits for the next line
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"interrupted after 1 object" in stderr
    assert stdout == b"a:1\tpairtree_root/a+/1\n"
    assert run("store", "check", "store").stdout == b""


@pytest.mark.parametrize("arguments", [("a:1", "given"), ("--from", "list")])
def test_excluded_names(call: Call, given: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Excluded files are not stored; each is a warning, also in JSON, and they are counted."""
    (given / ".DS_Store").write_text("x")
    (tmp_path / "list").write_text("a:1\tgiven\n")
    call("store", "init", "pairtree", "store")
    result = call("store", "put", "store", *arguments, "--exclude-junk")
    assert (result.exit_code, result.stdout) == (0, "a:1\tpairtree_root/a+/1\n")
    assert result.stderr == (
        "pressmark: 'a:1': warning excluded: '.DS_Store' is left out\npressmark: store: 1 object stored, 1 warning\n"
    )
    call("store", "rm", "store", "a:1")
    record, last = lines(call("store", "put", "store", *arguments, "--exclude", ".DS_*", "--json").stdout)
    assert [(one["kind"], one["severity"], one["path"]) for one in record["problems"]] == [
        ("excluded", "warning", ".DS_Store")
    ]
    assert last["summary"]["warnings"] == 1
    for option in ("--exclude", "--ignore"):
        result = call("store", "put", "store", *arguments, option, "x/y")
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"pressmark: {option} 'x/y': a glob matches a file name")


def test_what_to_do_about_a_store(call: Call, given: Path, tmp_path: Path) -> None:
    """The last line of a check with errors names the kind, and the command or remedy."""
    call("store", "init", "ocfl", "it's root", "--layout", "0003")
    call("store", "put", "it's root", "abc", "given")
    [path] = (tmp_path / "it's root").rglob("v1/content/one.txt")
    path.write_bytes(b"changed")
    assert "what to do" not in call("store", "check", "it's root").stderr
    shown = call("store", "check", "it's root", "--digests").stderr.splitlines()[-1]
    command = """pressmark store repair 'it'"'"'s root' --from GOOD"""
    text = f"pressmark: what to do: content-mismatch: replace the files by those of a good copy: {command}"
    assert shown == text
    (path.parents[2] / "notes").write_bytes(b"x")
    shown = call("store", "check", "it's root").stderr.splitlines()[-1]
    assert shown == "pressmark: what to do: object-extra: move it out of the object"
    assert "what to do" not in call("store", "check", "it's root", "--json").stderr


def test_a_path_without_the_identifier(call: Call, tmp_path: Path) -> None:
    """The line of a problem names the object where a hash is its path; check and audit, text and JSON."""
    (tmp_path / "one").write_text("1")
    for layout in ("0003", "0004"):
        call("store", "init", "ocfl", layout, "--layout", layout)
        call("store", "put", layout, "x:1", "one")
        [stored] = (tmp_path / layout).rglob("content/one")
        stored.write_text("2")
        name = "" if layout == "0003" else "; object 'x:1'"
        path = stored.relative_to(tmp_path / layout).as_posix()
        text = f"error: content-mismatch: {path}: sha512 digest mismatch (E092){name}\n"
        assert text in call("store", "check", layout, "--digests").stdout
        assert text in call("store", "audit", layout, "--state", f"{layout}.audit").stdout
        ids = [one.get("id") for one in lines(call("store", "check", layout, "--digests", "--json").stdout)]
        assert ids.count("x:1") == (layout == "0004")
    stored.write_text("1")
    done = call("store", "audit", "0004", "--state", "0004.audit")
    assert "has none now; object 'x:1'\n" in done.stdout
