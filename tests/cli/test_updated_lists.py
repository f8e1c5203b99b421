"""``pressmark verify --update``: what it prints, writes and refuses."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from pressmark.buckets.memory import MemoryBucket
from pressmark.fixity.matching.manifest_update import ManifestUpdate

from .conftest import COMMAND, Call, environment
from .test_object_storage import bucket  # noqa: F401

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals and permissions")


def line(name: str, text: str) -> str:
    return f"{hashlib.sha256(text.encode()).hexdigest()}  {name}\n"


def status_of(path: Path) -> tuple[int, ...]:
    """Return what writing a file changes: reading it changes its access time."""
    status = path.stat()
    return status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A directory with its list in it; a file was moved, one is new, and one has a copy."""
    folder = tmp_path / "photos"
    (folder / "2026").mkdir(parents=True)
    for name, text in {
        "lake": "lake",
        "wood": "wood",
        "2026/sea": "sea",
        "2026/forest": "wood",
        "moor": "moor",
    }.items():
        (folder / name).write_text(text)
    listed = {"lake": "lake", "sea": "sea", "wood": "wood"}
    (folder / "SHA256SUMS").write_text("".join(line(*one) for one in listed.items()))
    return folder


UPDATED = line("2026/forest", "wood") + line("2026/sea", "sea") + line("lake", "lake") + line("moor", "moor")
UPDATED += line("wood", "wood")
CHANGES = "moved: sea -> 2026/sea\nduplicate: 2026/forest: same content as wood\nnew: moor\n"
ARGUMENTS = ("verify", "photos/SHA256SUMS", "--root", "photos")


def test_update(call: Call, photos: Path) -> None:
    """What changed is printed and counted; the list is not in itself; afterwards all files are ok."""
    dry = call(*ARGUMENTS)
    (photos / ".pressmark-0.tmp").write_text("left by a killed run")
    done = call(*ARGUMENTS, "--update")
    counts = "pressmark: 1 new, 1 moved, 1 duplicate, 2 ok\n"
    assert (dry.exit_code, dry.stdout, dry.stderr) == (1, CHANGES, counts)
    assert (done.exit_code, done.stdout) == (0, CHANGES)
    assert done.stderr == f"{counts}pressmark: photos/SHA256SUMS: updated: 2 kept, 2 added, 1 moved\n"
    assert (photos / "SHA256SUMS").read_text() == UPDATED
    status = status_of(photos / "SHA256SUMS")
    done = call(*ARGUMENTS, "--update")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "pressmark: photos/SHA256SUMS: 5 files, 19 B: all ok\n"
    assert status_of(photos / "SHA256SUMS") == status
    assert [path.name for path in photos.iterdir() if path.name.startswith(".")] == [".pressmark-0.tmp"]


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="needs sha256sum")
def test_sha256sum_accepts_the_new_list(call: Call, photos: Path) -> None:
    for name in ("new\nline", "back\\slash", " leading", "*star"):
        (photos / name).write_text(name)
    assert call(*ARGUMENTS, "--update").exit_code == 0
    done = subprocess.run(["sha256sum", "-c", "--strict", "SHA256SUMS"], cwd=photos, capture_output=True, check=False)
    assert (done.returncode, done.stdout.count(b": OK\n"), done.stderr) == (0, 9, b"")


def test_damaged_and_missing_files(call: Call, photos: Path) -> None:
    """They keep their lines, and the exit status is 1; --drop-missing drops those of missing files."""
    (photos / "wood").write_text("rotten")
    (photos / "2026" / "sea").unlink()
    done = call(*ARGUMENTS, "--update", "-o", "new", "--quiet")
    kept = UPDATED.replace(line("2026/sea", "sea"), "").replace(line("wood", "wood"), "")
    assert (photos.parent / "new").read_text() == kept + line("sea", "sea") + line("wood", "wood")
    assert done.exit_code == 1
    assert done.stdout.startswith("changed: wood\nmissing: sea\n")
    assert done.stderr.endswith("pressmark: new: written: 3 kept, 2 added\n")
    done = call(*ARGUMENTS, "--update", "--drop-missing")
    assert (photos / "SHA256SUMS").read_text() == kept + line("wood", "wood")
    assert done.exit_code == 1
    assert done.stderr.endswith("updated: 2 kept, 2 added, 1 dropped\n")
    (photos / "wood").write_text("wood")
    (photos / "moor").unlink()
    done = call(*ARGUMENTS, "--update", "--drop-missing")
    assert (done.exit_code, done.stdout) == (0, "missing: moor\n")
    assert (photos / "SHA256SUMS").read_text() == (kept + line("wood", "wood")).replace(line("moor", "moor"), "")


def test_records(call: Call, photos: Path) -> None:
    """With --json, differences that the new list resolves are warnings; the summary has its counts."""
    (photos / "lake").write_text("rotten")
    *records, last = map(json.loads, call(*ARGUMENTS, "--update", "--json").stdout.splitlines())
    assert [(one["kind"], one["severity"], one["path"]) for one in records] == [
        ("changed", "error", "lake"),
        ("moved", "warning", "sea"),
        ("duplicate", "warning", "2026/forest"),
        ("new", "warning", "moor"),
    ]
    assert last["summary"]["update"] == {"kept": 2, "added": 2, "moved": 1, "dropped": 0}
    last = json.loads(call(*ARGUMENTS, "--update", "--json").stdout.splitlines()[-1])
    assert last["summary"]["update"] is None


def test_another_file(call: Call, photos: Path) -> None:
    """-o leaves the list unchanged; a new list in the directory is not in itself, and may be compressed."""
    old = (photos / "SHA256SUMS").read_bytes()
    for _ in range(2):
        done = call(*ARGUMENTS, "--update", "-o", "photos/NEW")
        assert (done.exit_code, done.stdout) == (0, CHANGES)
        assert (photos / "NEW").read_text() == UPDATED
    assert (photos / "SHA256SUMS").read_bytes() == old
    assert call(*ARGUMENTS, "--update", "-o", "new.gz", "--exclude", "NEW").exit_code == 0
    assert call("verify", "new.gz", "--root", "photos", "--exclude", "NEW", "--exclude", "SHA256SUMS").exit_code == 0
    done = call(*ARGUMENTS, "--update", "-o", "photos/SHA256SUMS")
    assert (done.exit_code, "input and output are the same file" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["SHA256SUMS", "--update"], "--update requires --root; specify the directory that names are relative to"),
        (["SHA256SUMS", "--drop-missing"], "--drop-missing requires --update"),
        (["SHA256SUMS", "-o", "x"], "-o requires --update"),
        (
            ["SHA256SUMS", "--root", ".", "--update", "--ignore-missing"],
            "--ignore-missing: not supported with",
        ),
        (["SHA256SUMS", "--root", ".", "--update", "--no-read-new"], "--no-read-new: not supported with --update"),
        (["-", "--root", ".", "--update"], "must be files, not -"),
        (["SHA256SUMS", "--root", ".", "--update", "-o", "-"], "must be files, not -"),
        (["SHA256SUMS", "--root", ".", "--update", "-o", "none/x"], "create its directory first"),
        (["SHA256SUMS", "--root", ".", "--update", "-o", "2026"], "not a regular file"),
        (["manifest-sha256.txt", "--root", ".", "--update"], "manifest of a bag; run pressmark bag update ."),
        (["SUMS.csv", "--root", ".", "--update"], "SUMS.csv:1: "),
    ],
)
def test_calls_that_are_refused(
    call: Call, photos: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    """Each has one line that says what to do, and nothing is written."""
    monkeypatch.chdir(photos)
    (photos / "bagit.txt").write_text("")
    (photos / "SUMS.csv").write_text("path,sha256\nlake,00\n")
    shutil.copy(photos / "SHA256SUMS", photos / "manifest-sha256.txt")
    before = {path: status_of(path) for path in photos.rglob("*") if path.is_file()}
    done = call("verify", *words, stdin=(photos / "SHA256SUMS").read_bytes())
    assert message in done.stderr
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert {path: status_of(path) for path in photos.rglob("*") if path.is_file()} == before


@posix
def test_a_redirected_list(photos: Path) -> None:
    """A list that is standard input is not replaced, even if it is a file."""
    old = (photos / "SHA256SUMS").read_bytes()
    with (photos / "SHA256SUMS").open("r+b") as file:
        words = ["verify", "/dev/stdin", "-a", "sha256", "--root", "photos", "--update"]
        done = subprocess.run(
            [*COMMAND, *words], stdin=file, cwd=photos.parent, env=environment(), capture_output=True, check=False
        )
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"only a regular file can be updated" in done.stderr
    assert (photos / "SHA256SUMS").read_bytes() == old


def test_a_wrong_directory(call: Call, photos: Path, tmp_path: Path) -> None:
    """The list of other files is not replaced, even if missing files are to be dropped."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("x")
    old = (photos / "SHA256SUMS").read_bytes()
    for words in ([], ["--json"], ["--read-new"]):
        done = call("verify", "photos/SHA256SUMS", "--root", "other", "--update", "--drop-missing", *words)
        assert done.exit_code == 1
        assert "no file found" in done.stderr
    assert done.stderr.endswith("pressmark: photos/SHA256SUMS: unchanged\n")
    assert (photos / "SHA256SUMS").read_bytes() == old


def test_a_renamed_directory(call: Call, photos: Path) -> None:
    """If all files have other names, --read-new finds them."""
    (photos / "2026").rename(photos / "sea")
    for name in ("lake", "wood", "moor", "sea/forest"):
        (photos / name).unlink()
    (photos / "SHA256SUMS").write_text(line("2026/sea", "sea"))
    assert "no file found" in call(*ARGUMENTS, "--update").stderr
    assert call(*ARGUMENTS, "--update", "--read-new").exit_code == 0
    assert (photos / "SHA256SUMS").read_text() == line("sea/sea", "sea")


@posix
def test_ctrl_c_leaves_the_list(call: Call, photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new list is complete or not there, also if the run ends while it is written."""
    before = sorted(photos.rglob("*")), status_of(photos / "SHA256SUMS")

    def interrupted(_self: ManifestUpdate, file: object) -> None:
        file.write(b"a part")  # type: ignore[attr-defined]
        raise KeyboardInterrupt

    monkeypatch.setattr(ManifestUpdate, "write", interrupted)
    done = call(*ARGUMENTS, "--update")
    assert (done.exit_code, done.stdout) == (128 + signal.SIGINT, CHANGES)
    assert (sorted(photos.rglob("*")), status_of(photos / "SHA256SUMS")) == before


@posix
def test_a_link_to_the_list(call: Call, photos: Path, tmp_path: Path) -> None:
    """The target of a link is replaced, and keeps its permissions."""
    (photos / "SHA256SUMS").chmod(0o640)
    (tmp_path / "link").symlink_to("photos/SHA256SUMS")
    assert call("verify", "link", "--root", "photos", "--update", "-a", "sha256").exit_code == 0
    assert (tmp_path / "link").is_symlink()
    assert (photos / "SHA256SUMS").read_text() == UPDATED
    assert (photos / "SHA256SUMS").stat().st_mode & 0o777 == 0o640


@posix
def test_a_list_that_cannot_be_written(call: Call, photos: Path) -> None:
    """It is refused before any file is read; the list can be written elsewhere."""
    (photos / "SHA256SUMS").chmod(0o444)
    if os.access(photos / "SHA256SUMS", os.W_OK):
        pytest.skip("this user may write everything")
    done = call(*ARGUMENTS, "--update")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "pressmark: photos/SHA256SUMS: write-protected; choose another output\n"
    assert call(*ARGUMENTS, "--update", "-o", "new").exit_code == 0


def test_a_ledger_is_not_new(call: Call, photos: Path) -> None:
    """The ledger may be in the directory; a second run reads no file again."""
    for found in (0, 5):
        done = call(*ARGUMENTS, "--update", "--ledger", "photos/ledger", "--json")
        assert done.exit_code == 0
        assert json.loads(done.stdout.splitlines()[-1])["summary"]["from_ledger"] == found
    assert (photos / "SHA256SUMS").read_text() == UPDATED


def test_object_storage(bucket: MemoryBucket, call: Call, tmp_path: Path) -> None:  # noqa: F811
    """The files may be in object storage; a key without a digest of the server is not added."""
    for name, text in {"lake": "lake", "2026/sea": "sea", "moor": "moor"}.items():
        digests = {} if name == "moor" else {"sha256": hashlib.sha256(text.encode()).hexdigest()}
        bucket.put(f"photos/{name}".encode(), text.encode(), digests=digests)
    sums = tmp_path / "SHA256SUMS"
    sums.write_text(line("lake", "lake") + line("sea", "sea"))
    words = ("verify", "SHA256SUMS", "--root", "s3://books/photos", "--update")
    done = call(*words, "--digests=stored", "-o", "new")
    assert (tmp_path / "new").read_text() == line("2026/sea", "sea") + line("lake", "lake")
    assert (done.exit_code, done.stdout.splitlines()[0]) == (1, "moved: sea -> 2026/sea")
    assert "new: moor: not in the manifest, and not read" in done.stdout
    assert call(*words).exit_code == 0
    assert sums.read_text() == line("2026/sea", "sea") + line("lake", "lake") + line("moor", "moor")
    assert call(*words).stderr.endswith(": 3 files, 11 B: all ok\n")
