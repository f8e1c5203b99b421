"""``pressmark store update`` and ``put --replace``: new versions of OCFL objects, and what is said of them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pressmark import layout, stores

from .conftest import COMMAND, Call, Run, environment
from .test_store import KINDS, lines

USER = {"name": "A Curator", "address": "mailto:curator@example.org"}
FILES = {"a.txt": b"one", "b.txt": b"two", "sub/c.txt": b"three"}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> stores.OcflRoot:
    """A root "root" with an object "x:1" of one version, and a new file "new.txt"."""
    made = stores.OcflRoot.create(tmp_path / "root", layout("0003"), durable=False, user=USER)
    assert isinstance(made, stores.OcflRoot)
    made.put("x:1", {name: write(tmp_path / "given" / name, data) for name, data in FILES.items()})
    write(tmp_path / "new.txt", b"new")
    return made


@pytest.fixture
def call(call: Call, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run a command as a user."""
    monkeypatch.setenv("PRESSMARK_USER", USER["name"])
    monkeypatch.setenv("PRESSMARK_USER_ADDRESS", USER["address"])
    return call


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def contents(root: stores.OcflRoot, version: str | None = None) -> dict[str, bytes]:
    found = root.get("x:1", version=version)
    return {name: Path(path).read_bytes() for name, path in found.files()}


UPDATES: dict[str, tuple[list[str], dict[str, bytes], str]] = {
    "add": (["--add", "new.txt"], {**FILES, "new.txt": b"new"}, "1 added, 3 unchanged"),
    "add with a name": (["--add", "new.txt=sub/d.txt"], {**FILES, "sub/d.txt": b"new"}, "1 added, 3 unchanged"),
    "add a directory": (
        ["--add", "given/sub", "--add", "given/sub=deep/er"],
        {**FILES, "deep/er/c.txt": b"three"},
        "1 added, 3 unchanged",
    ),
    "replace": (["--add", "new.txt=a.txt"], {**FILES, "a.txt": b"new"}, "1 changed, 2 unchanged"),
    "remove": (["--remove", "a.txt", "--remove", "b.txt"], {"sub/c.txt": b"three"}, "2 removed, 1 unchanged"),
    "rename": (
        ["--rename", "a.txt=z"],
        {"z": b"one", "b.txt": b"two", "sub/c.txt": b"three"},
        "1 renamed, 2 unchanged",
    ),
    "exchange": (
        ["--rename", "a.txt=b.txt", "--rename", "b.txt=a.txt"],
        {**FILES, "a.txt": b"two", "b.txt": b"one"},
        "2 changed, 1 unchanged",
    ),
    "all": (
        ["--add", "new.txt=a.txt", "--remove", "b.txt", "--rename", "sub/c.txt=c", "--add", "given/a.txt=copy"],
        {"a.txt": b"new", "c": b"three", "copy": b"one"},
        "1 added, 1 removed, 1 changed, 1 renamed, 0 unchanged",
    ),
}


@pytest.mark.parametrize("what", UPDATES)
def test_updates(call: Call, root: stores.OcflRoot, what: str) -> None:
    """A version has the changed files and all others, and the earlier version is as before."""
    options, files, said = UPDATES[what]
    result = call("store", "update", "root", "x:1", *options, "--message", "because")
    assert (result.exit_code, result.stderr) == (0, f"pressmark: 'x:1': version v2: {said}\n")
    assert result.stdout == call("store", "ls", "root").stdout
    assert contents(root) == files
    assert contents(root, "v1") == FILES
    newest = root.versions("x:1")[-1]
    assert (newest.version, newest.message, newest.user) == ("v2", "because", USER)
    result = call("store", "check", "root", "--digests")
    assert (result.exit_code, result.stdout) == (0, "")


def test_an_update_in_json(call: Call, root: stores.OcflRoot) -> None:
    """The record is that of ``ls``, with the version and the number of changes; the summary is that of ``put``."""
    [listed, _summary] = lines(call("store", "ls", "root", "--json").stdout)
    options, _files, _said = UPDATES["all"]
    [record, summary] = lines(call("store", "update", "root", "x:1", *options, "--json").stdout)
    counts = {"added": 1, "removed": 1, "changed": 1, "renamed": 1, "unchanged": 0}
    assert record == {**listed, "version": "v2", "changes": counts}
    assert summary == {"summary": {"ok": True, "stored": 1, "failed": 0, "warnings": 0}}
    result = call("store", "update", "root", "x:1", "--remove", "none", "--json")
    assert result.exit_code == 1
    assert lines(result.stdout) == [{"summary": {"ok": False, "stored": 0, "failed": 1, "warnings": 0}}]


def test_content_that_is_there_is_stored_again_on_request(call: Call, root: stores.OcflRoot) -> None:
    folder = Path(root.get("x:1").path)
    assert call("store", "update", "root", "x:1", "--add", "given/a.txt=copy").exit_code == 0
    assert not (folder / "v2/content").exists()
    assert call("store", "update", "root", "x:1", "--add", "given/a.txt=again", "--no-dedup").exit_code == 0
    assert (folder / "v3/content/again").read_bytes() == b"one"
    assert contents(root) == {**FILES, "copy": b"one", "again": b"one"}
    assert call("store", "check", "root", "--digests").stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["update", "root", "x:1", "--add", "given/a.txt"],
        ["update", "root", "x:1", "--rename", "a.txt=a.txt"],
        ["put", "root", "x:1", "given", "--replace"],
    ],
)
def test_no_change_is_no_version(call: Call, root: stores.OcflRoot, arguments: list[str]) -> None:
    result = call("store", *arguments)
    assert (result.exit_code, result.stderr) == (
        0,
        "pressmark: 'x:1': no changes, 3 unchanged; v1 remains the newest version\n",
    )
    assert [one.version for one in root.versions("x:1")] == ["v1"]
    [record, _summary] = lines(call("store", *arguments, "--json").stdout)
    assert (record["version"], record["changes"]["unchanged"]) == ("v1", 3)


def test_a_replacement_says_what_it_did(call: Call, root: stores.OcflRoot, tmp_path: Path) -> None:
    """A whole new directory is stored as its difference from the newest version."""
    write(tmp_path / "next" / "a.txt", b"changed")
    write(tmp_path / "next" / "moved.txt", b"two")
    write(tmp_path / "next" / "sub" / "c.txt", b"three")
    write(tmp_path / "next" / "new.txt", b"new")
    result = call("store", "put", "root", "x:1", "next", "--replace")
    said = "1 added, 1 changed, 1 renamed, 1 unchanged"
    assert (result.exit_code, result.stderr) == (0, f"pressmark: 'x:1': version v2: {said}\n")
    [record, _summary] = lines(call("store", "put", "root", "x:1", "given", "--replace", "--json").stdout)
    counts = {"added": 0, "removed": 1, "changed": 1, "renamed": 1, "unchanged": 1}
    assert (record["version"], record["changes"]) == ("v3", counts)
    # A new object has nothing to be compared with.
    result = call("store", "put", "root", "x:2", "given", "--replace", "--json")
    assert result.stderr == ""
    assert not {"version", "changes"} & lines(result.stdout)[0].keys()


def test_content_of_a_directory(call: Call, root: stores.OcflRoot) -> None:
    """A slash at the end adds the content of a directory, without its name."""
    Path("scans/sub").mkdir(parents=True)
    Path("scans/p1.tif").write_bytes(b"1")
    Path("scans/sub/p2.tif").write_bytes(b"2")
    before = set(root.get("x:1").digests)
    assert call("store", "update", "root", "x:1", "--add", "scans/").exit_code == 0
    assert set(root.get("x:1").digests) - before == {"p1.tif", "sub/p2.tif"}
    assert call("store", "update", "root", "x:1", "--add", "scans").exit_code == 0
    assert {"scans/p1.tif", "scans/sub/p2.tif"} <= set(root.get("x:1").digests)
    Path("empty").mkdir()
    done = call("store", "update", "root", "x:1", "--add", "empty/")
    assert (done.exit_code, done.stderr) == (2, "pressmark: --add 'empty/': directory is empty; omit the option\n")
    done = call("store", "update", "root", "x:1", "--add", "scans/", "--add", "scans/p1.tif")
    assert (done.exit_code, done.stderr) == (2, "pressmark: --add: 'p1.tif' is specified twice\n")


def test_date_of_a_version(call: Call, root: stores.OcflRoot) -> None:
    date = "2001-02-03T04:05:06+07:00"
    assert call("store", "update", "root", "x:1", "--add", "new.txt", "--created", date).exit_code == 0
    assert call("store", "put", "root", "x:9", "given", "--created", date).exit_code == 0
    assert [root.versions(id)[-1].created for id in ("x:1", "x:9")] == [date, date]
    for what in (("update", "root", "x:1", "--remove", "new.txt"), ("put", "root", "x:10", "given")):
        done = call("store", *what, "--created", "yesterday")
        assert (done.exit_code, done.stderr) == (
            2,
            "pressmark: --created 'yesterday': not an RFC 3339 date and time, such as 2024-05-31T12:00:00Z\n",
        )
    done = call("store", "put", "root", "--from", "-", "--created", date, stdin=b"x:11\tgiven\n")
    assert (done.exit_code, "--created: not supported with --from" in done.stderr) == (2, True)
    assert call("store", "init", "pairtree", "tree").exit_code == 0
    done = call("store", "put", "tree", "a", "given", "--created", date)
    assert (done.exit_code, "a store of kind pairtree does not record it" in done.stderr) == (2, True)


def test_many_replacements_say_what_they_did_together(call: Call, root: stores.OcflRoot) -> None:
    listed = b"x:1\tnew.txt\nx:2\tgiven\nx:3\tgiven\n"
    said = "pressmark: 'x:1': version v2: 1 added, 3 removed, 0 unchanged\npressmark: root: 3 objects stored\n"
    assert call("store", "put", "root", "--from", "-", "--replace", stdin=listed).stderr == said
    listed = b"x:1\tgiven\nx:2\tgiven\nx:3\tnew.txt\nx:4\tgiven\n"
    result = call("store", "put", "root", "--from", "-", "--replace", "--json", stdin=listed)
    count = "pressmark: root: 3 objects replaced: 4 added, 4 removed, 3 unchanged\npressmark: root: 4 objects stored\n"
    assert result.stderr == count
    assert [line.get("version") for line in lines(result.stdout)] == ["v3", "v1", "v2", None, None]


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        ([], 2, "specify --add, --remove or --rename"),
        (["--add", "none"], 2, "--add 'none': No such file"),
        (["--add", "none=a.txt"], 2, "--add 'none=a.txt': No such file"),
        (["--add", "new.txt="], 2, "--add 'new.txt=': No such file"),
        (["--add", "=a.txt"], 2, "--add '=a.txt': No such file"),
        (["--add", ""], 2, "--add '': No such file"),
        (["--add", "new.txt", "--add", "given/a.txt=new.txt"], 2, "--add: 'new.txt' is specified twice"),
        (["--rename", "a.txt"], 2, "--rename 'a.txt': expected OLD=NEW"),
        (["--rename", "a.txt="], 2, "--rename 'a.txt=': expected OLD=NEW"),
        (["--rename", "a.txt=x", "--rename", "a.txt=y"], 2, "--rename: 'a.txt' is specified twice"),
        (["--rename", "none=x"], 1, "'none' is not in the object"),
        (["--rename", "a.txt=b.txt"], 1, "'b.txt'"),
        (["--rename", "a.txt=x", "--rename", "b.txt=x"], 1, "'x'"),
        (["--rename", "a.txt=sub"], 1, "'sub'"),
        (["--rename", "a.txt=../x"], 1, "'../x'"),
        (["--remove", "none"], 1, "'none' is not in the object"),
        (["--remove", "sub"], 1, "'sub' is a directory"),
        (["--remove", "a.txt", "--remove", "a.txt"], 1, "'a.txt' is specified twice"),
        (["--remove", "a.txt", "--add", "new.txt=a.txt"], 1, "'a.txt' is specified twice"),
        (["--add", "new.txt=a.txt/x"], 1, "'a.txt'"),
        (["--add", "new.txt=/x"], 1, "'/x'"),
        (["--add", "new.txt", "--user-address", "x"], 2, "not a URI"),
        (["--add", "new.txt", "--copy-mode", "hardlink"], 2, "--copy-mode"),
    ],
)
def test_updates_that_are_refused(
    call: Call, root: stores.OcflRoot, tmp_path: Path, options: list[str], status: int, message: str
) -> None:
    """A refused update is one line that names the file or option; nothing is written."""
    before = sorted(tmp_path.rglob("*"))
    result = call("store", "update", "root", "x:1", *options)
    assert (result.exit_code, result.stdout) == (status, "")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_a_missing_object(call: Call, root: stores.OcflRoot) -> None:
    for options in (["--add", "new.txt"], ["--rename", "a=b=c"]):
        result = call("store", "update", "root", "x:9", *options)
        assert (result.exit_code, result.stdout) == (1, "")
        assert "object 'x:9': object not found" in result.stderr


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "ocfl"])
def test_stores_without_versions(call: Call, root: stores.OcflRoot, kind: str) -> None:
    """The message says what to use instead, also if there are options for versions."""
    call("store", "init", kind, "store", *KINDS[kind])
    call("store", "put", "store", "x:1", "new.txt")
    for options in ([], ["--message", "because"]):
        result = call("store", "update", "store", "x:1", "--add", "new.txt", *options)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == (
            f'pressmark: update: a store of kind {kind} has no versions; use "pressmark store put --replace"\n'
        )
    assert call("store", "put", "store", "x:1", "new.txt", "--replace").stderr == ""


def test_names_with_equals_signs(call: Call, root: stores.OcflRoot, tmp_path: Path) -> None:
    """A name may contain "=" if it is clear which; otherwise the call is refused."""
    for name in ("year=2020/data", "k=v", "k"):
        write(tmp_path / name, name.encode())
    assert call("store", "update", "root", "x:1", "--add", "year=2020/data").exit_code == 0
    assert call("store", "update", "root", "x:1", "--add", "year=2020/data=year=2021/data").exit_code == 0
    assert contents(root) == {**FILES, "data": b"year=2020/data", "year=2021/data": b"year=2020/data"}
    assert call("store", "update", "root", "x:1", "--rename", "year=2021/data=month=1").exit_code == 0
    assert "month=1" in contents(root)
    for arguments, names in ((["--add", "k=v"], "'k' and 'k=v'"), (["--add", "k=v=x"], "'k' and 'k=v'")):
        result = call("store", "update", "root", "x:1", *arguments)
        assert result.exit_code == 2
        assert f"ambiguous, because {names} exist; rename one of them" in result.stderr
    call("store", "update", "root", "x:1", "--rename", "a.txt=month")
    result = call("store", "update", "root", "x:1", "--rename", "month=1=x")
    assert result.exit_code == 2
    assert "ambiguous, because 'month' and 'month=1' exist" in result.stderr


def test_names_that_are_not_utf_8(run: Run, root: stores.OcflRoot, tmp_path: Path) -> None:
    """OCFL cannot store them: the file gets another name, or is refused."""
    write(tmp_path / os.fsdecode(b"latin-\xe9"), b"x")
    done = run("store", "update", "root", "x:1", "--add", b"latin-\xe9")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"is not UTF-8, which OCFL requires" in done.stderr
    assert run("store", "update", "root", "x:1", "--add", b"latin-\xe9=latin-e", "--remove", "a.txt").returncode == 0
    done = run("store", "update", "root", "x:1", "--remove", b"\xe9")
    assert (done.returncode, done.stdout) == (1, b"")


@pytest.mark.skipif(os.name != "posix", reason="the pipe is that of a POSIX shell")
def test_a_reader_that_leaves(root: stores.OcflRoot, tmp_path: Path) -> None:
    """The version is stored, and a closed pipe is success."""
    arguments: list[Any] = [*COMMAND, "store", "update", "root", "x:1", "--remove", "a.txt"]
    variables = {**environment(), "PRESSMARK_USER": "A", "PRESSMARK_USER_ADDRESS": "a:b"}
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, cwd=tmp_path, env=variables) as process:
        assert process.stdout is not None
        process.stdout.close()
    assert process.returncode == 0
    assert sorted(contents(root)) == ["b.txt", "sub/c.txt"]


def test_an_update_without_a_user(run: Run, root: stores.OcflRoot) -> None:
    done = run("store", "update", "root", "x:1", "--remove", "a.txt")
    assert done.returncode == 0
    assert [b"version v2" in line or b"(W007)" in line for line in done.stderr.splitlines()] == [True, True]
    done = run("store", "update", "root", "x:1", "--rename", "b.txt=b.txt")
    assert (done.returncode, b"(W007)" in done.stderr) == (0, False)
