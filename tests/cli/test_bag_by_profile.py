"""``pressmark bag create --profile``: what the command asks for, and that the bag passes ``bag validate --profile``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import PROFILE, Call

WANTED: dict[str, Any] = PROFILE | {
    "Bag-Info": {
        "Contact-Name": {"required": True},
        "Country": {"required": True, "values": ["CA", "US"]},
        "Holding": {"required": True, "values": ["permanent"]},
    },
    "Manifests-Required": ["md5"],
    "Tag-Files-Required": ["in/note.txt"],
}
GIVEN = ("--info", "Contact-Name=Ada", "--info", "Country=CA", "--tag-file", "note.txt")


@pytest.fixture
def files(call: Call, tmp_path: Path) -> Path:
    """A directory with two sources, a tag file and a profile."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(name)
    (tmp_path / "note.txt").write_text("a note")
    (tmp_path / "profile.json").write_text(json.dumps(WANTED))
    return tmp_path


def test_everything_is_asked_for_in_one_line(call: Call, files: Path) -> None:
    """A usage error names all that is missing, with the options that add it; nothing is changed."""
    before = sorted(files.rglob("*"))
    for destination in ([], ["-o", "bag"], ["-o", "bag.zip"]):
        done = call("bag", "create", "one", "--profile", "profile.json", "--info", "Country=FR", *destination)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr == (
            "pressmark: 'profile.json': the bag would not conform to this profile: bag-info.txt lacks Contact-Name;"
            " add each with --info; required tag files are missing: 'in/note.txt'; add each with --tag-file;"
            " value of 'Country' not allowed by the profile: 'FR'; expected 'CA' or 'US'\n"
        )
    assert sorted(files.rglob("*")) == before


@pytest.mark.parametrize("destination", ["", "bag", "bag.tar.gz"])
def test_the_bag_is_valid_by_the_profile(call: Call, files: Path, destination: str) -> None:
    """The bag passes, in place, in a directory and in an archive; its algorithms are those of the profile."""
    how = ["-o", destination] if destination else []
    done = call("bag", "create", "one", "--profile", "profile.json", *GIVEN, *how)
    assert (done.exit_code, done.stderr[-6:]) == (0, "; md5\n"), done.stderr
    done = call("bag", "validate", destination or "one", "--profile", "profile.json")
    assert done.exit_code == 0, done.stdout


def test_several_directories_in_place(call: Call, files: Path) -> None:
    """Each becomes a bag that conforms; a payload that does not is reported, and the others are created."""
    done = call("bag", "create", "one", "two", "--profile", "profile.json", *GIVEN)
    assert done.exit_code == 0, done.stderr
    assert call("bag", "validate", "one", "two", "--profile", "profile.json").exit_code == 0
    strict = {name: value for name, value in WANTED.items() if name != "Tag-Files-Required"}
    (files / "profile.json").write_text(json.dumps(strict | {"Payload-Files-Allowed": ["data/b*"]}))
    for name in ("three", "four"):
        (files / name).mkdir()
    (files / "three" / "a.txt").write_text("not allowed")
    (files / "four" / "b.txt").write_text("allowed")
    done = call("bag", "create", "three", "four", "--profile", "profile.json", *GIVEN[:4])
    assert done.exit_code == 1
    assert "profile-payload-file-forbidden" in done.stderr
    assert not (files / "three" / "data").exists()
    assert call("bag", "validate", "four", "--profile", "profile.json").exit_code == 0


def test_a_ledger_has_the_algorithms_of_the_profile(call: Call, files: Path) -> None:
    """The ledger of a bag in place is for the checksums that the profile requires."""
    for _attempt in range(2):
        done = call("bag", "create", "one", "--profile", "profile.json", *GIVEN, "--ledger", "ledger")
    assert done.exit_code == 2
    assert "already a bag" in done.stderr
    assert call("bag", "validate", "one", "--profile", "profile.json", "--ledger", "ledger").exit_code == 0


def test_a_profile_that_cannot_be_read(call: Call, files: Path) -> None:
    """The error names the file; a URL is not fetched."""
    for name in ("none.json", "https://example.org/profile.json"):
        done = call("bag", "create", "one", "-o", "bag", "--profile", name)
        assert (done.exit_code, done.stderr) == (2, f"pressmark: {name}: No such file or directory\n")
