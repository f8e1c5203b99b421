"""``pressmark bag pack``, ``unpack``, and ``create`` with an archive: output, its stream, and exit statuses."""

from __future__ import annotations

import json
import os
import re
import tarfile
from pathlib import Path

import pytest

from pressmark.bagit import create

from .conftest import Call


@pytest.fixture
def bag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bag of two files in the working directory, and its source."""
    (tmp_path / "source" / "d").mkdir(parents=True)
    (tmp_path / "source" / "a").write_bytes(b"alpha\n")
    (tmp_path / "source" / "d" / "b").write_bytes(b"beta\n")
    create(tmp_path / "source", tmp_path / "bag")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "bag"


def test_pack_and_unpack(call: Call, bag: Path) -> None:
    """Both commands report the result on one line; an archive is never replaced, nor is a bag."""
    result = call("bag", "pack", "bag")
    assert (result.exit_code, result.stdout) == (0, "")
    assert re.fullmatch(r"pressmark: bag\.tar: bag packed: 2 files, 11 B, archive of [\d.]+ kB\n", result.stderr)
    result = call("bag", "pack", "bag/", "-o", "other.zip")
    assert result.exit_code == 0
    for archive, new in (("bag.tar", "again"), ("other.zip", "other")):
        result = call("bag", "unpack", archive, *(["-o", new] if new == "again" else []))
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr == f"pressmark: {new}: bag unpacked: 2 files, 11 B\n"
        assert call("bag", "validate", new).exit_code == 0
    for words in (
        ("pack", "bag"),
        ("unpack", "bag.tar"),
        ("pack", "bag", "-o", "bag/x.tar"),
        ("pack", "bag", "-o", "x"),
    ):
        result = call("bag", *words)
        assert (result.exit_code, result.stdout) == (2, "")
        assert re.search("already exists|inside the bag|cannot be written", result.stderr)
    result = call("bag", "unpack", "bag")
    assert result.exit_code == 2
    os.rename("bag.tar", "without-ending")
    assert "use -o BAG" in call("bag", "unpack", "without-ending").stderr
    assert call("bag", "unpack", "without-ending", "-o", "named").exit_code == 0


def test_default_name_of_the_working_directory(call: Call, bag: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The archive of "." is beside the directory."""
    monkeypatch.chdir(bag)
    assert call("bag", "pack", ".").exit_code == 0
    assert bag.with_name("bag.tar").is_file()


@pytest.mark.parametrize("as_json", [False, True])
def test_damaged_bags(call: Call, bag: Path, as_json: bool) -> None:
    """All problems are printed, as by validate, and the exit status is 1."""
    (bag / "data" / "a").write_bytes(b"alphA\n")
    (bag / "data" / "d" / "b").write_bytes(b"betA\n")
    with tarfile.open("bad.tar", "w") as made:
        made.add("bag")
    options = ["--json"] if as_json else []
    expected = call("bag", "validate", "bag", *options).stdout.splitlines()
    before = sorted(os.listdir())
    for words, done in ((("pack", "bag", "-o", "x.tar.gz"), "packed"), (("unpack", "bad.tar", "-o", "x"), "unpacked")):
        result = call("bag", *words, *options)
        assert result.exit_code == 1
        found = result.stdout.splitlines()
        if as_json:
            summary = json.loads(found.pop())["summary"]
            assert (summary[done], summary["errors"]) == (False, 2)
            assert found == expected[:-1]
        else:
            assert found == expected
        assert re.fullmatch(r"pressmark: '(bag|bad\.tar)': bag is not valid, no.*data/a.*; and 1 more\n", result.stderr)
        assert sorted(os.listdir()) == before


def test_summary(call: Call, bag: Path) -> None:
    """With --json, the last line says what was done."""
    for words, done in ((("pack", "bag"), "packed"), (("unpack", "bag.tar", "-o", "x"), "unpacked")):
        summary = json.loads(call("bag", *words, "--json").stdout)["summary"]
        assert (summary[done], summary["ok"], summary["files"], summary["bytes"]) == (True, True, 2, 11)


def test_damaged_archives(call: Call, bag: Path) -> None:
    """A truncated archive is a problem, a file that is no archive as well."""
    call("bag", "pack", "bag", "-o", "x.tar.gz")
    data = Path("x.tar.gz").read_bytes()
    Path("x.tar.gz").write_bytes(data[: len(data) // 2])
    Path("y.zip").write_bytes(b"text")
    for name in ("x.tar.gz", "y.zip"):
        result = call("bag", "unpack", name)
        assert result.exit_code == 1
        assert result.stdout.startswith("error: archive-malformed: ")
        assert result.stderr.startswith(f"pressmark: '{name}': bag is not valid, nothing was unpacked: ")


def test_create_an_archive(call: Call, bag: Path) -> None:
    """The destination's ending selects an archive."""
    result = call("bag", "create", "source", "-o", "new.tar.gz", "-a", "sha256")
    assert (result.exit_code, result.stderr) == (0, "pressmark: new.tar.gz: bag created: 2 files, 11 B; sha256\n")
    assert call("bag", "validate", "new.tar.gz").exit_code == 0
    result = call("bag", "create", "source", "-o", "new.tar.gz")
    assert result.exit_code == 2
    assert result.stderr.endswith("new.tar.gz': destination already exists; choose another name\n")
    result = call("bag", "create", "source", "-o", "x.tar", "--copy-mode", "hardlink")
    assert (result.exit_code, "--copy-mode" in result.stderr) == (2, True)
    result = call("bag", "create", "source", "-o", "x.tar.xz")
    assert (result.exit_code, "cannot be written" in result.stderr) == (2, True)


@pytest.mark.parametrize("ending", ["7z", "rar", "lz", "Z", "gz", "tar.xz", "tar.lz", "tar.lz4"])
def test_endings_of_other_formats(call: Call, bag: Path, ending: str) -> None:
    """The name of an archive that cannot be written is refused, and makes no directory."""
    for command in (["bag", "create", "bag", "--nested"], ["bag", "pack", "bag"]):
        done = call(*command, "-o", f"new.{ending}")
        assert "cannot be written; use a name that ends with .tar, .tar.gz" in done.stderr
        assert done.exit_code == 2
    assert not (bag.parent / f"new.{ending}").exists()


FOREIGN = [(b"7z\xbc\xaf\x27\x1c\0\4", "7-Zip", "7z x"), (b"Rar!\x1a\x07\1\0", "RAR", "unrar x")]


@pytest.mark.parametrize(("head", "name", "command"), FOREIGN)
def test_archives_of_other_programs(call: Call, bag: Path, head: bytes, name: str, command: str) -> None:
    """They are refused, with the way to unpack and validate them."""
    (bag.parent / "an archive").write_bytes(head + bytes(600))
    how = f"{name} archives are not supported; unpack it ({command} 'an archive'), and validate the directory"
    done = call("bag", "validate", "an archive")
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"pressmark: an archive: {how}\n")
    for words in (("info", "an archive"), ("unpack", "an archive", "-o", "x")):
        done = call("bag", *words)
        assert done.exit_code in (1, 2)
        assert how in done.stderr
    assert not (bag.parent / "x").exists()


def test_source_date_epoch(call: Call, bag: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An invalid SOURCE_DATE_EPOCH is a usage error; a valid one sets Bagging-Date, also of directories."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    for words in (("create", "source", "-o", "x"), ("create", "source", "-o", "x.tar"), ("pack", "bag")):
        result = call("bag", *words)
        assert result.exit_code == 2
        assert "SOURCE_DATE_EPOCH" in result.stderr
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert call("bag", "create", "source", "-o", "x").exit_code == 0
    assert "Bagging-Date: 1970-01-02" in Path("x/bag-info.txt").read_text()


def test_timestamps(call: Call, bag: Path) -> None:
    """Archives keep the times of the files, or have one for all; a directory has no choice."""
    os.utime("source/a", (1_000_000_000, 1_000_000_000))
    assert call("bag", "create", "source", "-o", "kept.tar").exit_code == 0
    assert call("bag", "create", "source", "-o", "same.tar", "--timestamps", "bagging-date").exit_code == 0
    with tarfile.open("kept.tar") as kept, tarfile.open("same.tar") as same:
        assert kept.getmember("kept/data/a").mtime == 1_000_000_000
        assert {one.mtime % 86400 for one in same} == {0}
    assert call("bag", "pack", "bag", "-o", "packed.zip", "--timestamps", "keep").exit_code == 0
    assert call("bag", "unpack", "kept.tar").exit_code == 0
    assert os.stat("kept/data/a").st_mtime == 1_000_000_000
    for words, message in (
        ([], "--timestamps requires -o; without -o, the files are moved as they are"),
        (["-o", "x"], "--timestamps requires an archive; a bag in a directory keeps the times of the files"),
    ):
        done = call("bag", "create", "source", "--timestamps", "keep", *words)
        assert (done.exit_code, done.stderr) == (2, f"pressmark: {message}\n")
