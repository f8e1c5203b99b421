"""``pressmark store``: versions of OCFL objects, files of objects of every kind, and who made a version."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pressmark import layout, stores

from .conftest import COMMAND, Call, Run, environment
from .test_store import KINDS, NO_USER, lines

USER = {"name": "A Curator", "address": "https://orcid.org/0000-0002-1825-0097"}
BINARY = bytes(range(256)) * 5000  # more than one read
HISTORY: list[dict[str, bytes]] = [
    {"a.txt": b"one", "b": BINARY, "gone": b"gone"},
    {"a.txt": b"two", "sub/ü": BINARY, "new": b"new", "empty": b""},
    {"a.txt": b"two", "b": BINARY},
]


@pytest.fixture
def root(tmp_path: Path) -> stores.OcflRoot:
    """A root "root" with an object "x:1" of three versions."""
    made = stores.OcflRoot.create(tmp_path / "root", layout("0003"), durable=False, user=USER)
    assert isinstance(made, stores.OcflRoot)
    for number, files in enumerate(HISTORY, 1):
        source = tmp_path / f"v{number}"
        for name, data in files.items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes(data)
        created = f"2026-01-0{number}T00:00:00Z"
        made.put("x:1", source, replace=True, created=created, message=f"line 1\nof\tv{number}")
    return made


def test_log(call: Call, root: stores.OcflRoot) -> None:
    """Versions are listed with all they record, the newest last; control characters are escaped in text."""
    result = call("store", "log", "root", "x:1")
    user = f"{USER['name']} <{USER['address']}>"
    sizes = [sum(map(len, files.values())) for files in HISTORY]
    assert [line.split("\t") for line in result.stdout.splitlines()] == [
        [f"v{n}", f"2026-01-0{n}T00:00:00Z", str(len(HISTORY[n - 1])), str(sizes[n - 1]), user, f"line 1\\nof\\tv{n}"]
        for n in (1, 2, 3)
    ]
    assert (result.exit_code, result.stderr) == (0, "pressmark: 'x:1': 3 versions\n")
    *records, summary = lines(call("store", "log", "root", "x:1", "--json").stdout)
    assert records[1] == {
        "version": "v2",
        "created": "2026-01-02T00:00:00Z",
        "user": USER,
        "message": "line 1\nof\tv2",
        "files": 4,
        "bytes": sizes[1],
    }
    assert summary == {"summary": {"ok": True, "versions": 3}}


def test_log_of_what_is_unknown(call: Call, root: stores.OcflRoot, tmp_path: Path) -> None:
    root.put("x:2", {"one": tmp_path / "v1/a.txt"}, message="", user={"name": "B"})
    folder = Path(root.get("x:2").path)
    (folder / "v1/content/one").unlink()
    result = call("store", "log", "root", "x:2")
    assert result.stdout.split("\t")[2:] == ["1", "-", "B", "-\n"]
    assert result.exit_code == 0
    assert result.stderr.endswith('1 version; the size of 1 is unknown: run "pressmark store check" for details\n')
    [record, _summary] = lines(call("store", "log", "root", "x:2", "--json").stdout)
    assert (record["bytes"], record["user"], record["message"]) == (None, {"name": "B"}, "")


def test_diff(call: Call, root: stores.OcflRoot) -> None:
    first = "removed\tgone\nadded\tnew\nrenamed\tb\tsub/ü\n"
    for versions, stdout, counts in (
        (
            ["v1", "v2"],
            f"changed\ta.txt\nadded\tempty\n{first}",
            "2 added, 1 removed, 1 changed, 1 renamed, 0 unchanged",
        ),
        ([], "renamed\tsub/ü\tb\nremoved\tempty\nremoved\tnew\n", "2 removed, 1 renamed, 1 unchanged"),
        (["v1"], "changed\ta.txt\nremoved\tgone\n", "1 removed, 1 changed, 1 unchanged"),
        (["3", "v03"], "", "no changes, 2 unchanged"),
    ):
        result = call("store", "diff", "root", "x:1", *versions)
        older, newer = {0: ("v2", "v3"), 1: ("v1", "v3")}.get(len(versions), ("v1", "v2"))
        if versions == ["3", "v03"]:
            older, newer = "v3", "v3"
        assert (result.exit_code, result.stdout) == (0, stdout)
        assert result.stderr == f"pressmark: 'x:1': {older} to {newer}: {counts}\n"
    assert lines(call("store", "diff", "root", "x:1", "--json").stdout) == [
        {"change": "renamed", "name": "b", "from": "sub/ü"},
        {"change": "removed", "name": "empty"},
        {"change": "removed", "name": "new"},
        {
            "summary": {
                **{"ok": True, "from": "v2", "to": "v3"},
                **{"added": 0, "removed": 2, "changed": 0, "renamed": 1, "unchanged": 1},
            }
        },
    ]


def test_diff_of_one_version(call: Call, root: stores.OcflRoot, tmp_path: Path) -> None:
    root.put("x:2", {"one": tmp_path / "v1/a.txt"})
    result = call("store", "diff", "root", "x:2")
    assert (result.stdout, result.stderr) == ("added\tone\n", "pressmark: 'x:2': v1: 1 added, 0 unchanged\n")
    [_line, last] = lines(call("store", "diff", "root", "x:2", "--json").stdout)
    assert (last["summary"]["from"], last["summary"]["to"]) == (None, "v1")


@pytest.mark.parametrize("number", [1, 2, 3, None])
def test_files_of_a_version(quick: Run, root: stores.OcflRoot, tmp_path: Path, number: int | None) -> None:
    """``ls``, ``cat`` and ``get`` return the same files of a version, byte for byte."""
    files = HISTORY[(number or 3) - 1]
    given = [] if number is None else ["--version", f"v{number}"]
    digests = {name: hashlib.sha512(data).hexdigest() for name, data in files.items()}
    done = quick("store", "ls", "root", "x:1", *given)
    assert done.stdout.decode() == "".join(f"{name}\t{digests[name]}\n" for name in sorted(files))
    assert (done.returncode, done.stderr.decode()) == (
        0,
        f"pressmark: 'x:1': version v{number or 3}: {len(files)} files\n",
    )
    *records, summary = lines(quick("store", "ls", "root", "x:1", *given, "--json").stdout.decode())
    assert records == [{"name": name, "algorithm": "sha512", "digest": digests[name]} for name in sorted(files)]
    assert summary == {"summary": {"ok": True, "version": f"v{number or 3}", "files": len(files)}}
    for name, data in files.items():
        done = quick("store", "cat", "root", "x:1", name, *given)
        assert (done.returncode, done.stdout, done.stderr) == (0, data, b"")
    assert quick("store", "get", "root", "x:1", "copy", *given).returncode == 0
    found = {path.relative_to(tmp_path / "copy").as_posix(): path for path in (tmp_path / "copy").rglob("*")}
    assert {name: path.read_bytes() for name, path in found.items() if path.is_file()} == files


def test_what_is_not_found(call: Call, root: stores.OcflRoot, tmp_path: Path) -> None:
    """A missing object, version or file is one line and status 1; a malformed version is a usage error."""
    for number, arguments in enumerate(
        [
            ["log", "root", "x:9"],
            ["diff", "root", "x:9"],
            ["diff", "root", "x:1", "v4"],
            ["diff", "root", "x:1", "v1", "v0"],
            ["ls", "root", "x:9"],
            ["ls", "root", "x:1", "--version", "v4"],
            ["get", "root", "x:1", "copy", "--version", "v4"],
            ["cat", "root", "x:9", "a.txt"],
            ["cat", "root", "x:1", "new"],
            ["cat", "root", "x:1", "b", "--version", "v2"],
            ["cat", "root", "x:1", "v1/content/a.txt"],
            ["cat", "root", "x:1", "../../0=ocfl_1.1"],
            ["cat", "root", "x:1", ""],
        ]
    ):
        result = call("store", *arguments)
        assert (number, result.exit_code, result.stdout) == (number, 1, "")
        assert len(result.stderr.splitlines()) == 1
    assert "the object has v1 to v3" in call("store", "diff", "root", "x:1", "v4").stderr
    for arguments in (
        ["diff", "root", "x:1", "newest"],
        ["diff", "root", "x:1", "v1", "v2", "v3"],
        ["get", "root", "x:1", "copy", "--version", "v"],
        ["cat", "root", "x:1", "a.txt", "--version", "-1"],
        ["ls", "root", "--version", "v1"],
    ):
        result = call("store", *arguments)
        assert (arguments, result.exit_code, result.stdout) == (arguments, 2, "")
        assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_every_kind(run: Run, call: Call, tmp_path: Path, kind: str) -> None:
    """``ls`` lists the files of an object that ``cat`` writes; versions are of OCFL objects alone."""
    call("store", "init", kind, "store", *KINDS[kind])
    (tmp_path / "one.bin").write_bytes(BINARY)
    (tmp_path / "sub" / "er").mkdir(parents=True)
    (tmp_path / "sub" / "er" / "two").write_bytes(b"2")
    sources = ["one.bin"] if kind == "vitro" else ["one.bin", "sub"]
    assert call("store", "put", "store", "x:1", *sources).exit_code == 0
    done = call("store", "ls", "store", "x:1")
    names = [line.partition("\t")[0] for line in done.stdout_bytes.decode().splitlines()]
    assert names == ["one.bin", *(["sub/er/two"] if kind != "vitro" else [])]
    assert run("store", "cat", "store", "x:1", "one.bin").stdout == BINARY
    if kind != "vitro":
        assert call("store", "cat", "store", "x:1", "sub/er/two").stdout_bytes == b"2"
    for name in ("sub", "sub/er", "none", "../store", "/etc/passwd", "one.bin/"):
        done = call("store", "cat", "store", "x:1", name)
        assert (name, done.exit_code, done.stdout_bytes) == (name, 1, b"")
    if kind == "ocfl":
        return
    *records, summary = lines(call("store", "ls", "store", "x:1", "--json").stdout_bytes.decode())
    assert records == [{"name": name, "algorithm": None, "digest": None} for name in names]
    assert summary == {"summary": {"ok": True, "version": None, "files": len(names)}}
    for arguments, instead in (
        (["log", "store", "x:1"], b"store ls"),
        (["diff", "store", "x:1"], b"store get"),
        (["ls", "store", "x:1", "--version", "v1"], b"omit the option"),
        (["get", "store", "x:1", "copy", "--version", "v1"], b"omit the option"),
        (["cat", "store", "x:1", "one.bin", "--version", "v1"], b"omit the option"),
        (["put", "store", "x:2", "one.bin", "--message", "why"], b"omit the option"),
        (["put", "store", "x:2", "one.bin", "--user", "A"], b"omit the option"),
        (["put", "store", "x:2", "one.bin", "--user-address", "a:b"], b"omit the option"),
    ):
        done = call("store", *arguments)
        assert (arguments, done.exit_code, done.stdout_bytes) == (arguments, 2, b"")
        assert len(done.stderr_bytes.splitlines()) == 1
        assert f"a store of kind {kind}".encode() in done.stderr_bytes
        assert instead in done.stderr_bytes
    assert call("store", "ls", "store").stdout_bytes.count(b"\n") == 1


def test_names_with_separators(run: Run, tmp_path: Path) -> None:
    """A name with a line break fails in text, and is in the output with -0 and --json; other bytes are written as they
    are."""
    (tmp_path / "in").mkdir()
    names = [b"line\nfeed", b"esc\x1b[31m", b"latin-\xe9", b"tab\there"]
    for name in names:
        (tmp_path / "in" / os.fsdecode(name)).write_bytes(name)
    run("store", "init", "pairtree", "store")
    run("store", "put", "store", "x1", "in")
    done = run("store", "ls", "store", "x1")
    assert (done.returncode, done.stdout) == (1, b"".join(name + b"\n" for name in sorted(names) if b"\n" not in name))
    assert done.stderr.splitlines()[0] == b"pressmark: 'line\\nfeed': contains a separator; use --json"
    done = run("store", "ls", "store", "x1", "-0")
    assert (done.returncode, done.stdout) == (0, b"".join(name + b"\0" for name in sorted(names)))
    *records, _summary = lines(run("store", "ls", "store", "x1", "--json").stdout.decode())
    assert [os.fsencode(record["name"]) for record in records] == sorted(names)
    for name in names:
        assert run("store", "cat", "store", "x1", name).stdout == name


def test_differences_with_separators(quick: Run, tmp_path: Path) -> None:
    quick("store", "init", "ocfl", "root", "--layout", "0003")
    for number, names in enumerate([["line\nfeed", "tab\there", "kept"], ["line\nfeed2", "tab\tthere", "new\ttab"]]):
        folder = tmp_path / str(number)
        folder.mkdir()
        for path, name in enumerate(names):
            (folder / name).write_text(str(path if path < 2 else number + 10))
        assert quick("store", "put", "root", "x:1", str(number), "--replace").returncode == 0
    done = quick("store", "diff", "root", "x:1")
    assert (done.returncode, done.stdout) == (1, b"removed\tkept\nadded\tnew\ttab\n")
    assert done.stderr.count(b"contains a separator; use --json") == 2
    done = quick("store", "diff", "root", "x:1", "-0")
    assert done.returncode == 1  # a TAB separates the old name from the new one
    assert b"renamed\tline\nfeed\tline\nfeed2\0" in done.stdout
    *records, _summary = lines(quick("store", "diff", "root", "x:1", "--json").stdout.decode())
    assert {"change": "renamed", "name": "tab\tthere", "from": "tab\there"} in records


@pytest.mark.skipif(os.name != "posix", reason="the pipes are those of a POSIX shell")
@pytest.mark.parametrize(
    "arguments", [["cat", "root", "x:1", "b"], ["ls", "root", "x:1"], ["log", "root", "x:1"], ["diff", "root", "x:1"]]
)
def test_a_reader_that_leaves(root: stores.OcflRoot, tmp_path: Path, arguments: list[str]) -> None:
    """A closed pipe is success, without a message."""
    with subprocess.Popen(
        [*COMMAND, "store", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, env=environment()
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 0


def provenance(root: Path) -> dict[str, Any]:
    """Return message and user of the newest version of each object."""
    found = {}
    store = stores.open(root)
    assert isinstance(store, stores.OcflRoot)
    for record in store.objects():
        newest = store.versions(record.id or "")[-1]
        found[record.id] = (newest.message, newest.user)
    return found


@pytest.mark.parametrize("source", ["options", "environment", "both"])
def test_who_made_a_version(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    """With a user and an address, the own check has no warning."""
    (tmp_path / "one").write_text("1")
    call("store", "init", "ocfl", "root", "--layout", "0003")
    if source != "options":
        monkeypatch.setenv("PRESSMARK_USER", "Someone else" if source == "both" else USER["name"])
        monkeypatch.setenv("PRESSMARK_USER_ADDRESS", "mailto:x@example.org" if source == "both" else USER["address"])
    given = [] if source == "environment" else ["--user", USER["name"], "--user-address", USER["address"]]
    result = call("store", "put", "root", "x:1", "one", *given, "--message", "Für später")
    assert (result.exit_code, result.stderr) == (0, "")
    assert provenance(tmp_path / "root") == {"x:1": ("Für später", USER)}
    result = call("store", "check", "root", "--digests")
    assert (result.exit_code, result.stdout) == (0, "")


def test_a_user_alone(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A given user does not get the address of the one in the environment; the missing address is reported."""
    (tmp_path / "one").write_text("1")
    call("store", "init", "ocfl", "root", "--layout", "0003")
    monkeypatch.setenv("PRESSMARK_USER", "")  # as if it were not set
    monkeypatch.setenv("PRESSMARK_USER_ADDRESS", "")
    assert call("store", "put", "root", "x:1", "one").stderr == NO_USER.replace(" store:", " root:")
    monkeypatch.setenv("PRESSMARK_USER", "A")
    monkeypatch.setenv("PRESSMARK_USER_ADDRESS", "mailto:a@example.org")
    result = call("store", "put", "root", "x:2", "one", "--user", "B")
    assert (result.exit_code, result.stderr) == (
        0,
        "pressmark: root: no address of the user is recorded (W008); specify --user-address, or set PRESSMARK_USER and "
        "PRESSMARK_USER_ADDRESS\n",
    )
    call("store", "put", "root", "x:3", "one", "--user-address", "mailto:b@example.org")
    default = "Stored by pressmark"
    assert provenance(tmp_path / "root") == {
        "x:1": (default, None),
        "x:2": (default, {"name": "B"}),
        "x:3": (default, {"name": "A", "address": "mailto:b@example.org"}),
    }


def test_the_missing_user_is_reported_once(call: Call, tmp_path: Path) -> None:
    """One line for a run, however many objects it stores; none if it stores nothing."""
    (tmp_path / "one").write_text("1")
    call("store", "init", "ocfl", "store", "--layout", "0003")
    listed = b"".join(b"x:%d\tone\n" % number for number in range(9))
    result = call("store", "put", "store", "--from", "-", "--json", stdin=listed)
    assert (result.exit_code, result.stderr) == (0, f"{NO_USER}pressmark: store: 9 objects stored\n")
    result = call("store", "put", "store", "--from", "-", stdin=listed)
    assert result.exit_code == 0  # with the same content
    assert "W007" not in result.stderr


@pytest.mark.parametrize(
    ("given", "variables", "message"),
    [
        (["--user", "A", "--user-address", "a@b.org"], {}, "--user-address 'a@b.org': not a URI; use mailto:a@b.org"),
        (["--user", "A", "--user-address", "A B"], {}, "not a URI; use mailto:NAME@EXAMPLE.ORG"),
        (["--user", "A", "--user-address", ""], {}, "--user-address: the value is empty"),
        (["--user-address", "a:b"], {}, "--user-address: no user given; specify --user, or set PRESSMARK_USER"),
        (["--user", ""], {}, "--user: the value is empty"),
        (["--user", b"\xff"], {}, "--user: not UTF-8"),
        (["--message", b"\xff"], {}, "--message: not UTF-8"),
        ([], {"PRESSMARK_USER_ADDRESS": "a:b"}, "PRESSMARK_USER_ADDRESS: no user given"),
        ([], {"PRESSMARK_USER": "A", "PRESSMARK_USER_ADDRESS": "a"}, "PRESSMARK_USER_ADDRESS 'a': not a URI"),
    ],
)
def test_users_that_are_refused(tmp_path: Path, given: list[Any], variables: dict[str, str], message: str) -> None:
    """A refused user is one line and status 2, before anything is written."""
    stores.create("ocfl", tmp_path / "root", layout("0003"))
    (tmp_path / "one").write_text("1")
    before = sorted(tmp_path.rglob("*"))
    done = subprocess.run(
        [*COMMAND, "store", "put", "root", "x:1", "one", *given],
        capture_output=True,
        cwd=tmp_path,
        env={**environment(), **variables},
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert message in done.stderr.decode()
    assert len(done.stderr.splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_variables_are_for_ocfl_alone(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").write_text("1")
    monkeypatch.setenv("PRESSMARK_USER_ADDRESS", "malformed")
    call("store", "init", "pairtree", "store")
    result = call("store", "put", "store", "x1", "one")
    assert (result.exit_code, result.stderr) == (0, "")


def test_json_of_an_unreadable_inventory(call: Call, root: stores.OcflRoot) -> None:
    (Path(root.get("x:1").path) / "inventory.json").write_text(json.dumps({"id": "x:1"}))
    for command in ("log", "diff", "ls"):
        result = call("store", command, "root", "x:1", "--json")
        assert (result.exit_code, result.stdout) == (1, "")
        assert "malformed inventory" in result.stderr
