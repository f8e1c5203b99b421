"""What an option means that several commands share, in every command that has it."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from .conftest import Call
from .every_command import COMMANDS, options_of


def having(option: str) -> list[str]:
    """Return the names of the calls whose command has an option."""
    return [name for name in COMMANDS if any(option in one.opts for one in options_of(name))]


@pytest.fixture(autouse=True)
def inside(folder: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


# --- --json -----------------------------------------------------------------------------------------------------------

# What makes a call fail, and what it is then.
FAILING: dict[str, tuple[Callable[[Path], object], Sequence[str]]] = {}


def failing(name: str, *arguments: str) -> Callable[[Callable[[Path], object]], Callable[[Path], object]]:
    def add(change: Callable[[Path], object]) -> Callable[[Path], object]:
        FAILING[name] = change, arguments or COMMANDS[name]
        return change

    return add


@failing("verify")
def _(folder: Path) -> None:
    (folder / "files/f1").write_bytes(b"changed")


@failing("validate")
@failing("bag update")
@failing("revert")
@failing("pack")
def _(folder: Path) -> None:
    (folder / "bag/data/f1").write_bytes(b"changed")


@failing("create", "bag", "create", "plain", "bag")
@failing("create archive", "bag", "create", "plain", "bag")
@failing("create in place", "bag", "create", "plain", "bag")
@failing("create table")
def _(folder: Path) -> None:
    (folder / "items.csv").write_text("path\nnowhere\nfiles\n")


@failing("complete")
def _(folder: Path) -> None:
    (folder / "bag/fetch.txt").write_bytes(b"ftp://localhost/f1 9 data/f1\n")
    (folder / "bag/data/f1").unlink()


@failing("unpack")
@failing("validate archive")
def _(folder: Path) -> None:
    data = (folder / "bag.tar").read_bytes()
    (folder / "bag.tar").write_bytes(data[: len(data) // 2])


@failing("put", "store", "put", "root", "a:1", "plain/sub")
@failing("put list", "store", "put", "pairtree", "--from", "missing.tsv")
@failing("ls files", "store", "ls", "root", "b:1")
@failing("get", "store", "get", "root", "b:1", "copy")
@failing("log", "store", "log", "root", "b:1")
@failing("diff", "store", "diff", "root", "b:1")
@failing("store update", "store", "update", "root", "b:1", "--remove", "f2")
@failing("restore", "store", "restore", "root", "b:1", "--version", "v1")
@failing("upgrade", "store", "upgrade", "root", "b:1", "--to", "1.1")
@failing("rm", "store", "rm", "pairtree", "b:1")
def _(folder: Path) -> None:
    (folder / "missing.tsv").write_text("id:1\tmissing\n")


@failing("ls")
@failing("check")
@failing("repair")
def _(folder: Path) -> None:
    for path in (folder / "root").rglob("inventory.json"):
        path.write_bytes(b"{}")


@failing("check pairtree")
def _(folder: Path) -> None:
    (folder / "pairtree/pairtree_root/zz").mkdir()
    (folder / "pairtree/pairtree_root/zz/file").write_bytes(b"x")


@failing("migrate")
def _(folder: Path) -> None:
    (folder / "pairtree/pairtree_root/zz").mkdir()
    (folder / "pairtree/pairtree_root/zz/file").symlink_to("nowhere")


@failing("compare", "compare", "same.txt")
def _(folder: Path) -> None:
    (folder / "same.txt").write_bytes(b"a/b\nA/B\n" + b"x" * 300 + b"\n")


# The summary has an "ok" of its own: the number of sound files, and whether any layout is safe.
OWN = {"verify", "compare"}
# What fails is a usage error, without results; a report succeeds, whatever it says.
NEVER = {"layouts", "info", "declare", "report"}


def json_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("name", having("--json"))
def test_json(name: str, call: Call) -> None:
    """The lines of a successful call are JSON objects; a summary is the last, and has no errors."""
    done = call(*COMMANDS[name], "--json")
    assert done.exit_code == 0, done.output
    lines = json_lines(done.stdout)
    assert lines
    assert all(isinstance(line, dict) for line in lines)
    summaries = [line["summary"] for line in lines if isinstance(line.get("summary"), dict)]
    assert summaries in ([], [lines[-1].get("summary")])
    for summary in summaries:
        assert name in OWN or summary.get("ok", True) is True
        assert summary.get("errors", 0) == 0


@pytest.mark.parametrize("name", sorted(set(having("--json")) - NEVER))
def test_json_of_failures(name: str, call: Call, folder: Path) -> None:
    """A call that fails has exit status 1, and a summary that does not say otherwise and counts the listed errors."""
    change, arguments = FAILING[name]
    change(folder)
    done = call(*arguments, "--json")
    assert done.exit_code == 1, done.output
    lines = json_lines(done.stdout)
    if lines and "summary" in lines[-1]:
        summary = lines.pop()["summary"]
        assert name in OWN or summary.get("ok", False) is False
        found = [*lines, *(one for line in lines for one in line.get("problems", ()))]
        listed = sum(one.get("severity") == "error" for one in found)
        assert summary.get("errors", listed) == listed
    assert listed_or_said(lines, done.stderr)


def listed_or_said(lines: Sequence[dict[str, Any]], stderr: str) -> bool:
    return bool(lines) or stderr.startswith("pressmark: ")


# --- --progress, --quiet, --threads -----------------------------------------------------------------------------------


def results(call: Call, folder: Path, name: str, *options: str) -> tuple[int, str, dict[str, bytes | None]]:
    """Run a call in a fresh copy; return exit status, stdout, and the files that it left."""
    copy = folder.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy, symlinks=True)
    os.chdir(copy)
    try:
        done = call(*COMMANDS[name], *options)
        left = {
            # A new version contains its time; the work folder of a migration, random names.
            str(path.relative_to(copy)): None
            if path.is_dir() or name == "migrate" or path.name.startswith("inventory.json")
            else path.read_bytes()
            for path in sorted(copy.rglob("*"))
            if "migrated.migration" not in path.parts
        }
    finally:
        os.chdir(folder)
    return done.exit_code, re.sub(r'"created": "[^"]*"', "", done.stdout), left


@pytest.mark.parametrize("name", having("--progress"))
def test_progress_changes_no_result(name: str, call: Call, folder: Path) -> None:
    plain = results(call, folder, name, "--quiet")
    assert results(call, folder, name, "--progress") == plain
    assert plain[0] == 0


@pytest.mark.parametrize("name", having("--threads"))
def test_threads_change_no_result(name: str, call: Call, folder: Path) -> None:
    one = results(call, folder, name, "--threads", "1")
    for count in ("2", "5"):
        assert results(call, folder, name, "--threads", count) == one
    assert one[0] == 0


# --- --output ---------------------------------------------------------------------------------------------------------

TEXTS = [name for name in having("--output") if COMMANDS[name][0] in ("map", "unmap", "hash")]


@pytest.mark.parametrize("name", TEXTS)
def test_text_output(name: str, call: Call, folder: Path) -> None:
    """It is what stdout has, is compressed by its name, replaces a file, and leaves it alone after an error."""
    arguments = COMMANDS[name][: COMMANDS[name].index("-o")]
    expected = call(*arguments)
    assert expected.exit_code == 0, expected.output
    for output in ("out", "out.gz"):
        (folder / output).write_bytes(b"before")
        assert call(*arguments, "-o", output).exit_code == 0
        data = (folder / output).read_bytes()
        assert (gzip.decompress(data) if output.endswith(".gz") else data) == expected.stdout_bytes
    assert call(*arguments, "-o", "files").exit_code == 2
    if name != "hash":  # which reports missing files, and goes on
        assert call(*arguments[:2], "missing", *arguments[3:], "-o", "out").exit_code == 2
        assert (folder / "out").read_bytes() == expected.stdout_bytes


# Of revert, it is a list of checksums, which is replaced as that of hash.
WITH_OUTPUT = [name for name in having("--output") if name not in TEXTS and "-o" in COMMANDS[name] and name != "revert"]


@pytest.mark.parametrize("name", WITH_OUTPUT)
def test_output_of_bags(name: str, call: Call, folder: Path) -> None:
    """An existing file is refused and stays; a bag is not created as a directory with the ending of other archives."""
    arguments = COMMANDS[name][: COMMANDS[name].index("-o")]
    for existing in ("out.zip", "out"):
        (folder / existing).write_bytes(b"mine")
        done = call(*arguments, "-o", existing)
        assert done.exit_code in (1, 2), done.output
        assert (folder / existing).read_bytes() == b"mine"
    for ending in () if name == "unpack" else ("7z", "rar", "lz", "Z", "gz", "tar.Z", "zipx"):
        assert call(*arguments, "-o", f"new.{ending}").exit_code == 2
        assert not (folder / f"new.{ending}").exists()


# --- --on-error, --null, --crlf ---------------------------------------------------------------------------------------

FORMATS = ("lines", "null", "csv", "tsv", "jsonl", "parquet")


def identifiers_in(format: str, folder: Path) -> tuple[str, ...]:
    """Write a list with two identifiers that have no path in 0002, and return the arguments that read it."""
    items = ["good", "..", ".", "also"]
    path = folder / f"list.{format}"
    if format == "parquet":
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pa.table({"id": items}), path)
    elif format in ("csv", "tsv"):
        path.write_text("id\n" + "".join(f"{one}\n" for one in items))
    elif format == "jsonl":
        path.write_text("".join(json.dumps({"id": one}) + "\n" for one in items))
    else:
        end = "\0" if format == "null" else "\n"
        path.write_text("".join(one + end for one in items))
    return {"lines": (path.name,), "null": (path.name, "-0")}.get(format, (path.name, "--column", "id"))


@pytest.mark.parametrize("how", ["stop", "skip", "empty"])
@pytest.mark.parametrize("format", FORMATS)
def test_on_error(format: str, how: str, call: Call, folder: Path) -> None:
    """The same in every format: the run ends, or the identifier is left out, or has an empty path."""
    done = call("map", "0002", *identifiers_in(format, folder), "--on-error", how, "-o", f"out.{format}")
    assert done.exit_code == 1
    assert ("2 of 4 identifiers failed" in done.stderr) == (how != "stop"), done.stderr
    out = folder / f"out.{format}"
    if how == "stop":
        assert not out.exists()
        return
    kept = ["good", "also"] if how == "skip" else ["good", "", "", "also"]
    if format == "parquet":
        found = [one or "" for one in pytest.importorskip("pyarrow.parquet").read_table(out).column("path").to_pylist()]
    elif format == "jsonl":
        found = [json.loads(line).get("path") or "" for line in out.read_text().splitlines()]
    else:
        found = (
            out.read_text().removesuffix("\0" if format == "null" else "\n").split("\0" if format == "null" else "\n")
        )
        if format in ("csv", "tsv"):
            found = [line.replace("\t", ",").partition(",")[2] for line in found[1:]]
    assert found == kept


@pytest.mark.parametrize("name", having("--progress"))
def test_quiet_says_nothing_of_success(name: str, call: Call) -> None:
    done = call(*COMMANDS[name], "--quiet")
    assert (done.exit_code, done.stderr) == (0, "")


@pytest.mark.parametrize("name", sorted(set(having("--progress")) & FAILING.keys()))
def test_quiet_says_what_failed(name: str, call: Call, folder: Path) -> None:
    change, arguments = FAILING[name]
    change(folder)
    done = call(*arguments, "--quiet")
    assert done.exit_code == 1
    assert done.stderr + done.stdout


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["x", "-1", ""])
def test_numbers_that_are_not_allowed(value: str, call: Call) -> None:
    """The error names the value and what is allowed, in every command with such an option."""
    tried = 0
    for name, arguments in COMMANDS.items():
        for option in options_of(name):
            if isinstance(option.type, click.IntRange | click.FloatRange):
                done = call(*arguments, option.opts[0], value)
                assert done.exit_code == 2
                allowed = (
                    "a whole number of [01] or more"
                    if isinstance(option.type, click.IntRange)
                    else (r"a number of seconds above 0, at most \d+")
                )
                text = f"pressmark: invalid value for '.*{option.opts[0]}.*': {value!r} is not {allowed} "
                assert re.match(text, done.stderr), done.stderr
                tried += 1
    assert tried >= 12
