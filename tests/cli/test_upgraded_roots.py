"""`pressmark store upgrade`: what it reports, which objects it takes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pressmark.stores import OcflRoot

from .conftest import Call

PATHS = {"id:1": "b82/4aa/9f0/id%3a1", "id:2": "a3a/14a/aeb/id%3a2"}


@pytest.fixture
def root(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OcflRoot:
    """A root of OCFL 1.0 with two objects."""
    monkeypatch.setenv("PRESSMARK_USER", "Ann")
    monkeypatch.setenv("PRESSMARK_USER_ADDRESS", "mailto:ann@example.org")
    root = OcflRoot.create(tmp_path / "root", "0003", version="1.0", algorithm="sha256", durable=False)
    for identifier in PATHS:
        root.put(identifier, {"a": b"a", "b": b"b"})
    return root


def test_all_objects(root: OcflRoot, call: Call) -> None:
    done = call("store", "upgrade", "root", "--to", "1.1", "--dry-run")
    lines = [f"{one}\t{PATHS[one]}" for one in ("id:2", "id:1")]
    assert (done.stdout.splitlines(), done.stderr) == (lines, "pressmark: root: 2 objects would be upgraded\n")
    assert (Path(root.root) / "0=ocfl_1.0").exists()
    done = call("store", "upgrade", "root", "--to", "1.1", "--algorithm", "sha512", "--message", "Why")
    assert (done.stdout.splitlines(), done.stderr) == (lines, "pressmark: root: 2 objects upgraded\n")
    assert "\tAnn <mailto:ann@example.org>\tWhy\n" in call("store", "log", "root", "id:1").stdout
    done = call("store", "upgrade", "root", "--to", "1.1", "--algorithm", "sha512")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "pressmark: root: 0 objects upgraded, 2 up to date\n"
    assert call("store", "check", "root", "--digests").exit_code == 0


def test_some_objects(root: OcflRoot, call: Call, tmp_path: Path) -> None:
    """By path, from a list, by a glob: the others are as before."""
    (tmp_path / "list").write_text(f"none\n{PATHS['id:2']}\n")
    done = call("store", "upgrade", "root", "--from", "list", "--to", "1.1", "--json")
    assert done.exit_code == 1
    record, summary = map(json.loads, done.stdout.splitlines())
    assert (record["id"], record["version"]) == ("id:2", "v2")
    assert summary == {"summary": {"ok": False, "upgraded": 1, "exists_same": 0, "failed": 1}}
    first, last = done.stderr.splitlines()
    assert first.startswith("pressmark: error: object-missing: none: object not found at ")
    assert last == "pressmark: root: 1 object upgraded, 1 failed"
    assert root.get("id:1").inventory["head"] == "v1"
    done = call("store", "upgrade", "root", "--match", "id:*", "--to", "1.1")
    assert (done.stdout, done.stderr) == (
        f"id:1\t{PATHS['id:1']}\n",
        "pressmark: root: 1 object upgraded, 1 up to date\n",
    )


def test_damaged_content(root: OcflRoot, call: Call) -> None:
    """One line names the file; the other object is upgraded."""
    (Path(root.root) / PATHS["id:2"] / "v1/content/a").write_bytes(b"x")
    done = call("store", "upgrade", "root", "--algorithm", "sha512")
    assert (done.exit_code, done.stdout) == (1, f"id:1\t{PATHS['id:1']}\n")
    what = "content of 'v1/content/a': sha256 digest mismatch; restore the file from a good copy"
    assert done.stderr.splitlines() == [
        f"pressmark: 'root': object 'id:2': {what}",
        "pressmark: root: 1 object upgraded, 1 failed",
    ]


def test_what_is_refused(root: OcflRoot, call: Call) -> None:
    assert call("store", "init", "pairtree", "pairs").exit_code == 0
    assert call("store", "upgrade", "root", "id:1", "--to", "1.1").exit_code == 0
    for arguments, words in (
        (["root"], "missing option; specify --to or --algorithm"),
        (["root", "--to", "2.0"], "'2.0' is not one of"),
        (["root", "--to", "1.0"], "'root': the root declares OCFL 1.1, which is later; use --to 1.1"),
        (["root", "id:1", "--match", "x", "--to", "1.1"], "each way selects objects"),
        (["pairs", "--to", "1.1"], "upgrade: a store of kind pairtree has no versions"),
    ):
        done = call("store", "upgrade", *arguments)
        assert (done.exit_code, done.stdout) == (2, "")
        assert words in done.stderr
