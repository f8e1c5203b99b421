"""``pressmark bag revert``: its output, exit statuses, and what an interruption leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Call

NAMES = ["bag-info.txt", "bagit.txt", "manifest-sha512.txt", "tagmanifest-sha512.txt"]


@pytest.fixture
def bag(call: Call, tmp_path: Path) -> Path:
    """A bag in the working directory."""
    (tmp_path / "bag" / "d").mkdir(parents=True)
    (tmp_path / "bag" / "a.txt").write_text("a")
    (tmp_path / "bag" / "d" / "b.txt").write_text("b")
    assert call("bag", "create", "bag").exit_code == 0
    return tmp_path / "bag"


def test_a_revert(call: Call, bag: Path) -> None:
    """The dry run lists the tag files; the revert removes them, and keeps the checksums, which verify reads."""
    done = call("bag", "revert", "bag", "--dry-run")
    assert (done.exit_code, done.stdout.split()) == (0, NAMES)
    assert "bag can be reverted; 4 tag files would be removed" in done.stderr
    assert (bag / "bagit.txt").exists()
    done = call("bag", "revert", "bag", "-o", "bag.sha512")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.startswith("pressmark: bag: bag reverted; 4 tag files removed; 5 files verified, ")
    assert done.stderr.endswith("; checksums in 'bag.sha512'\n")
    assert sorted(path.relative_to(bag).as_posix() for path in bag.rglob("*")) == ["a.txt", "d", "d/b.txt"]
    assert call("verify", "bag.sha512").exit_code == 0
    assert (bag.parent / "bag.sha512").read_bytes() == call("hash", "bag").stdout_bytes
    done = call("bag", "revert", "bag")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "not a bag (no bagit.txt)" in done.stderr


def test_a_damaged_bag(call: Call, bag: Path) -> None:
    """Problems are lines on stdout, or JSON; nothing is changed."""
    (bag / "data" / "a.txt").write_text("A")
    done = call("bag", "revert", "bag")
    assert (done.exit_code, done.stdout[:36]) == (1, "error: checksum-mismatch: data/a.txt")
    assert "bag is not valid, nothing was changed" in done.stderr
    *problems, summary = map(json.loads, call("bag", "revert", "bag", "--json").stdout.splitlines())
    assert [one["kind"] for one in problems] == ["checksum-mismatch"]
    found = {name: summary["summary"][name] for name in ("ok", "reverted", "tag_files")}
    assert found == {"ok": False, "reverted": False, "tag_files": 0}
    assert (bag / "bagit.txt").exists()
    done = call("bag", "revert", "bag", "--level", "complete", "--json", "--quiet")
    assert (done.exit_code, done.stderr) == (0, "")
    assert json.loads(done.stdout)["summary"]["reverted"] is True
    assert (bag / "a.txt").read_text() == "A"


def test_json_of_a_dry_run(call: Call, bag: Path) -> None:
    """Each tag file is an object."""
    *files, summary = map(json.loads, call("bag", "revert", "bag", "--dry-run", "--json").stdout.splitlines())
    assert files == [{"path": name} for name in NAMES]
    assert summary["summary"]["dry_run"] is True


def test_refusals(call: Call, bag: Path, tmp_path: Path) -> None:
    """Each is one line that says what to do."""
    (bag / "note.txt").write_text("n")
    done = call("bag", "revert", "bag")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        "pressmark: 'bag': 'note.txt': not tag files of BagIt, and would be lost; move them elsewhere\n"
    )
    done = call("bag", "revert", "bag", "--delete-tag-files", "-o", "bag/sums")
    assert (done.exit_code, done.stderr) == (
        2,
        "pressmark: 'bag/sums': file is inside the bag; choose a file outside of it\n",
    )
    done = call("bag", "revert", ".")
    folder = ".: not a bag, but a folder of bags; to check all of them: pressmark store check ."
    assert (done.exit_code, done.stderr) == (2, f"pressmark: {folder}\n")
    assert call("bag", "revert", "none").exit_code == 2
    assert call("bag", "pack", "bag").exit_code == 0
    done = call("bag", "revert", "bag.tar")
    assert (done.exit_code, "run pressmark bag unpack first" in done.stderr) == (2, True)
    assert call("bag", "revert", "s3://bucket/bag").exit_code == 2
    assert call("bag", "revert", "bag", "--delete-tag-files").exit_code == 0
