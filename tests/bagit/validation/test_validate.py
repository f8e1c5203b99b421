"""Validation of malicious bags and of bags on bad disks, and resuming a long validation."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fixity.conftest import environment
from pressmark.bagit import Bag, validate
from pressmark.bagit.problems import BagReport
from pressmark.bagit.validation.bag_check import LEVELS
from pressmark.bagit.validation.in_memory import check_in_memory
from pressmark.errors import BagError, LedgerError
from pressmark.fixity import Ledger
from pressmark.reports import Problem, ProgressEvent
from support.events import listening
from support.implementations import Implementation
from support.users import OTHER, as_user, needs_users

from ..bags import PAYLOAD, Sketch, digest, from_disk, line
from ..watching import watched

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")

A = b"data/a.txt"
TAG_FILES = ("bagit.txt", "bag-info.txt", "fetch.txt", "manifest-sha512.txt", "tagmanifest-sha512.txt")
FETCH = b"https://example.org/a 6 data/a.txt\n"


def python(code: str, *args: object, **variables: str) -> list[str]:
    """Run ``code`` in a child process and return the lines that it prints."""
    command = [sys.executable, "-c", code, *map(str, args)]
    done = subprocess.run(
        command, env=environment(**variables), capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)
    return done.stdout.splitlines()


def good(folder: Path) -> Path:
    """Write a valid bag."""
    return Sketch().write(folder / "bag")


def kinds(report: BagReport) -> set[str]:
    return {found.kind for found in report.problems}


def where(report: BagReport) -> set[tuple[str, str]]:
    return {(found.kind, found.path) for found in report.problems}


def test_a_file_that_is_to_be_fetched_twice(tmp_path: Path) -> None:
    """A file listed twice in fetch.txt is allowed, with a warning: one of the lines is ignored."""
    bag = Sketch(fetch=FETCH + b"https://example.org/b 7 data/a.txt\n").write(tmp_path / "bag")
    report = validate(bag)
    again = [found for found in report.problems if found.kind == "path-duplicate"]
    assert [(found.severity, found.path, found.message) for found in again] == [
        ("warning", "data/a.txt", "fetch.txt, line 2: duplicate entry")
    ]


# --- levels, options and versions ---------------------------------------------------------------------------------


def test_names_that_a_file_system_does_not_distinguish(implementation: Implementation, tmp_path: Path) -> None:
    """If one of two names that differ only in case is missing, a warning names the likely reason."""
    folder = Sketch(payload={b"data/a.txt": b"one", b"data/A.TXT": b"two", b"data/b": b""}).write(tmp_path / "bag")
    (folder / "data" / "a.txt").unlink()
    report = validate(folder)
    assert where(report) >= {("file-missing", "data/a.txt")}
    collisions = [found for found in report.problems if found.kind == "name-clash"]
    assert [found.path.lower() for found in collisions] == ["data/a.txt"]
    assert collisions[0].severity == "warning"


def test_valid(implementation: Implementation, tmp_path: Path) -> None:
    """A valid bag has no problem; the report has the counts."""
    report = validate(good(tmp_path))
    assert report.problems == []
    assert report.ok
    assert report.summary() == {
        "ok": True,
        "errors": 0,
        "warnings": 0,
        "missing": 0,
        "changed": 0,
        "untracked": 0,
        "kinds": {},
        "omitted": 0,
        "files": 2,
        "bytes": 20,
        "tag_files": 4,
    }


@pytest.mark.parametrize("read", ["parallel", "sequential"])
def test_everything_in_one_run(implementation: Implementation, tmp_path: Path, read: str) -> None:
    """No stage hides another: one report contains all problems, and each is reported when it is found."""
    bag = Sketch(
        declaration=b"",
        info=b"Payload-Oxum: 1.1\nnonsense\n",
        payload={**PAYLOAD, b"data/c": b"c", b"data/d": b"d"},
        absent={b"data/c"},
        unlisted={b"data/d"},
        fetch=b"x\n",
    ).write(tmp_path / "bag")
    (bag / "data" / "a.txt").write_bytes(b"Alpha\n")
    (bag / "bag-info.txt").write_bytes(b"Payload-Oxum: 1.1\nother\n")
    with open(bag / "manifest-sha512.txt", "ab") as file:
        file.write(b"\n" + line(b"", b"data/../../x") + line(b"c", b"data/c"))
    said: list[Problem] = []
    report = validate(bag, read=read, progress=listening(on_problem=said.append))
    assert said == report.problems
    assert not report.ok
    assert where(report) == {
        ("declaration-malformed", "bagit.txt"),
        ("oxum-mismatch", "bag-info.txt"),
        ("info-malformed", "bag-info.txt"),
        ("line-malformed", "fetch.txt"),
        ("line-blank", "manifest-sha512.txt"),
        ("path-unsafe", "data/../../x"),
        ("path-duplicate", "data/c"),
        ("file-missing", "data/c"),
        ("file-unlisted", "data/d"),
        ("checksum-mismatch", "data/a.txt"),
        ("checksum-mismatch", "bag-info.txt"),
        ("checksum-mismatch", "manifest-sha512.txt"),
    }
    assert (report.missing, report.untracked) == (["data/c"], ["data/d"])
    assert sorted(report.changed) == ["bag-info.txt", "data/a.txt", "manifest-sha512.txt"]
    mismatch = next(
        found for found in report.problems if (found.kind, found.path) == ("checksum-mismatch", "data/a.txt")
    )
    assert (mismatch.algorithm, mismatch.expected) == ("sha512", digest(PAYLOAD[A], "sha512"))
    assert mismatch.found == digest(b"Alpha\n", "sha512")


def test_levels(tmp_path: Path) -> None:
    """``complete`` verifies no checksum, and ``oxum`` reads no manifest."""
    bag = good(tmp_path)
    (bag / "data" / "a.txt").write_bytes(b"Alpha\n")
    (bag / "manifest-sha512.txt").write_bytes(b"nonsense\n")
    assert "checksum-mismatch" in kinds(validate(bag))
    assert where(validate(bag, "complete")) == {
        ("line-malformed", "manifest-sha512.txt"),
        ("file-unlisted", "data/a.txt"),
        ("file-unlisted", "data/b/c.txt"),
    }
    assert validate(bag, "oxum").problems == []
    (bag / "data" / "more").write_bytes(b"")
    assert kinds(validate(bag, "oxum")) == {"oxum-mismatch"}
    (bag / "bag-info.txt").unlink()
    report = validate(bag, "oxum")
    assert kinds(report) == {"oxum-missing"}
    assert not report.ok


def test_invalid_arguments(tmp_path: Path) -> None:
    """A path that is not a directory, and invalid arguments, are the only exceptions."""
    for path in ("missing", "file"):
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(BagError, match=path):
            validate(tmp_path / path)
    bag = good(tmp_path)
    with pytest.raises(ValueError, match="level='fast': expected oxum, complete, full"):
        validate(bag, "fast")
    with pytest.raises(ValueError, match="links='all': expected inside or trusted"):
        validate(bag, links="all")
    with pytest.raises(ValueError, match="read="):
        validate(bag, read="backwards")
    with pytest.raises(ValueError, match="threads="):
        validate(bag, threads=-1)


@pytest.mark.parametrize("name", ["tagmanifest-sha512.txt", "manifest-", "data", "b g\n", "%0A", "..."])
def test_base_directory_has_any_name(tmp_path: Path, name: str) -> None:
    """The name of the base directory, and of those above it, has no meaning."""
    (tmp_path / name).mkdir()
    assert validate(Sketch().write(tmp_path / name / name)).problems == []


@posix
def test_the_bag_by_a_link(tmp_path: Path) -> None:
    """A bag may be opened through a link, also one with absolute links."""
    bag = good(tmp_path)
    (tmp_path / "alias").symlink_to("bag")
    assert validate(tmp_path / "alias").ok
    (bag / "data" / "b" / "l").symlink_to(bag / "data" / "a.txt")
    assert kinds(validate(tmp_path / "alias")) == {"link-inside", "file-unlisted", "oxum-mismatch"}


def test_lenient(tmp_path: Path) -> None:
    """Blank lines are errors, or warnings with ``lenient``."""
    sketch = Sketch(fetch=FETCH + b"\n")
    sketch.manifests = {"manifest-sha512.txt": sketch.manifest() + b"\n"}
    bag = sketch.write(tmp_path / "bag")
    assert where(validate(bag)) == {("line-blank", "manifest-sha512.txt"), ("line-blank", "fetch.txt")}
    assert not validate(bag).ok
    assert validate(bag, lenient=True).ok
    assert len(validate(bag, lenient=True).problems) == 2


def test_unknown_algorithm(tmp_path: Path) -> None:
    """A manifest with an unknown algorithm makes a bag invalid, or complete with a warning; its paths count."""
    other = b"".join(b"00  %b\n" % path for path in (*PAYLOAD, b"data/missing"))
    bag = Sketch(manifests={"manifest-tiger.txt": other}, tag_algorithms=[]).write(tmp_path / "bag")
    for level, severity in (("full", "error"), ("complete", "warning")):
        report = validate(bag, level)
        assert where(report) == {
            ("algorithm-unknown", "manifest-tiger.txt"),
            ("algorithm-unregistered", "manifest-tiger.txt"),
            ("file-missing", "data/missing"),
        }
        assert {one.severity for one in report.problems if one.kind == "algorithm-unknown"} == {severity}
    alone = Sketch(algorithms=[], tag_algorithms=[], manifests={"manifest-tiger.txt": other}).write(tmp_path / "alone")
    report = validate(alone, ledger=tmp_path / "ledger")
    assert kinds(report) == {"algorithm-unknown", "algorithm-unregistered", "file-missing"}


def test_an_algorithm_twice(tmp_path: Path) -> None:
    """Two manifests for one algorithm are reported, also under other spellings of its name."""
    bag = Sketch(algorithms=["blake2b", "blake2b512"], tag_algorithms=[]).write(tmp_path / "bag")
    assert where(validate(bag)) == {("algorithm-repeated", "manifest-blake2b512.txt")}


def test_before_1_0(tmp_path: Path) -> None:
    """Before 1.0 needless dots and slashes are accepted, and percent signs are literal."""
    sketch = Sketch(version="0.97", payload={A: b"x", b"data/100%": b"y", b"data/25%25": b"z"}, info=None)
    sketch.manifests = {
        "manifest-sha512.txt": b"".join(
            digest(data, "sha512").encode() + b"  " + written + b"\n"
            for data, written in ((b"x", b"./data//a.txt"), (b"y", b"data/100%"), (b"z", b"data/25%25"))
        )
    }
    report = validate(sketch.write(tmp_path / "bag"))
    assert where(report) == {("path-not-canonical", "data/a.txt")}
    assert report.ok


@pytest.mark.parametrize("version", ["0.93", "0.95", "0.96", "1.0"])
def test_package_info(tmp_path: Path, version: str) -> None:
    """Up to 0.95 bag-info.txt was named package-info.txt; the newer name is read if that is missing."""
    old = version < "0.96"
    bag = Sketch(version=version, info=None, tag_files={b"package-info.txt": b"Payload-Oxum: 1.1\n"}).write(
        tmp_path / "bag"
    )
    assert where(validate(bag)) == ({("oxum-mismatch", "package-info.txt")} if old else set())
    assert Bag.open(bag).info.get("Payload-Oxum") == ("1.1" if old else None)
    new = Sketch(version=version, info=b"Payload-Oxum: 2.2\n").write(tmp_path / "new")
    assert where(validate(new)) == {("oxum-mismatch", "bag-info.txt")}


@posix
def test_a_percent_sign_that_means_two_files(tmp_path: Path) -> None:
    """A line means the file of its decoded name; only if that is missing, the one of its raw name."""
    sketch = Sketch(payload={b"data/a%": b"x", b"data/a%25": b"x"}, info=None, unlisted={b"data/a%25"})
    bag = sketch.write(tmp_path / "bag")
    assert where(validate(bag)) == {("file-unlisted", "data/a%25")}
    (bag / "data" / "a%").unlink()
    assert where(validate(bag)) == {("percent-raw", "data/a%25")}


@posix
def test_two_spellings_on_the_disk(tmp_path: Path) -> None:
    """Of two names with one normalization, a line means the exact one; the other is not in any manifest."""
    composed, decomposed = ("data/\u00e9".encode(), "data/e\u0301".encode())
    bag = Sketch(payload={composed: b"x", decomposed: b"x"}, info=None, unlisted={decomposed}).write(tmp_path / "bag")
    assert where(validate(bag)) == {
        ("file-unlisted", os.fsdecode(decomposed)),
        ("name-clash", os.fsdecode(composed)),
    }


def test_manifests_in_many_normalizations(tmp_path: Path) -> None:
    """A bag renamed by macOS is valid, with a warning per file, and corruption is still found."""
    payload = {f"data/\u00e9{number}".encode(): b"%d" % number for number in range(50)}
    bag = Sketch(payload=payload, info=None).write(tmp_path / "bag")
    for number in range(50):
        (bag / "data" / f"\u00e9{number}").rename(bag / "data" / f"e\u0301{number}")
    assert validate(bag).ok
    assert [found.kind for found in validate(bag).problems] == ["name-normalized"] * 50
    (bag / "data" / "e\u03017").write_bytes(b"8")
    assert ("checksum-mismatch", "data/e\u03017") in where(validate(bag))


def test_bounded_report(tmp_path: Path) -> None:
    """A report keeps a limited number of problems; all are counted, and passed to the listener."""
    bag = good(tmp_path)
    for number in range(30):
        (bag / "data" / f"x{number:02}").write_bytes(b"")
    said: list[Problem] = []
    report = validate(bag, keep=5, progress=listening(on_problem=said.append))
    assert (len(report.problems), len(said)) == (5, 31)
    assert report.problems == said[:5]
    assert not report.ok
    assert report.summary()["kinds"] == {"file-unlisted": 30, "oxum-mismatch": 1}
    assert (report.summary()["omitted"], report.summary()["untracked"]) == (26, 30)


def test_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress adds up over payload and tag files, and is the same for a bag in memory; if nothing is read, it has no
    bytes. The total is the number of listed files."""
    bag = Sketch(tag_algorithms=["md5"]).write(tmp_path / "bag")
    events: list[ProgressEvent] = []
    from_disk(bag, progress=listening(events.append))
    assert [one.items for one in events] == sorted(one.items for one in events)
    size = sum(file.stat().st_size for file in bag.rglob("*") if file.is_file() and "tagmanifest" not in file.name)
    assert events[-1] == ProgressEvent(items=2 + 3, bytes=size, of_items=2 + 3)
    assert {one.of_items for one in events} == {2 + 3}
    last = events[-1]
    monkeypatch.setattr("pressmark.bagit.validation.file_matcher.PROGRESS_EVERY", 0)
    events.clear()
    from_disk(bag, "complete", progress=listening(events.append))
    assert events[-1] == ProgressEvent(items=6)
    events.clear()
    validate(bag, progress=listening(events.append))
    assert events == [last]
    for level in ("complete", "oxum"):
        events.clear()
        validate(bag, level, progress=listening(events.append))
        assert events == [ProgressEvent(items=6)]


def test_progress_without_a_total(tmp_path: Path) -> None:
    """Manifests of different lengths have no total; a file that is missing is in the total, but not done."""
    bag = Sketch().write(tmp_path / "bag")
    events: list[ProgressEvent] = []
    (bag / "data" / "a.txt").unlink()
    from_disk(bag, progress=listening(events.append))
    assert events[-1].of_items == events[-1].items + 1
    (bag / "manifest-md5.txt").write_bytes(b"")
    from_disk(bag, progress=listening(events.append))
    assert events[-1].of_items is None


# --- nothing outside of the bag, and nothing that blocks ----------------------------------------------------------


@posix
@pytest.mark.parametrize("level", LEVELS)
def test_nothing_outside_is_accessed(implementation: Implementation, tmp_path: Path, level: str) -> None:
    """Whatever manifests, fetch.txt and links contain, nothing outside of the bag is accessed."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "x").write_bytes(b"secret")
    paths = (
        *(b"../secret/x", b"data/../../secret/x", os.fsencode(secret / "x"), b"/etc/passwd", b"~root/x", b"~/x"),
        *(
            b"data/link/x",
            b"data/../data/link/x",
            b"data//../../secret/x",
            b"data/..\\..\\secret/x",
            b"C:/x",
            b"//host/x",
        ),
        *(b"data/%2e%2e/%2e%2e/secret/x", b"data/.%0A./x", b"\\\\?\\C:\\x", b"data/\0../x", b".", b"..", b""),
    )
    lines = b"".join(digest(b"secret", "sha512").encode() + b"  " + path + b"\n" for path in paths)
    sketch = Sketch(fetch=b"".join(b"https://example.org/x - " + path + b"\n" for path in paths))
    sketch.manifests = {"manifest-sha512.txt": sketch.manifest() + lines}
    sketch.tag_manifests = {"tagmanifest-sha512.txt": lines, "tagmanifest-md5.txt": lines}
    bag = sketch.write(tmp_path / "bag")
    (bag / "data" / "link").symlink_to("../../secret")
    (bag / "data" / "x").symlink_to(secret / "x")
    (bag / "tags").symlink_to("../secret")
    for name in ("manifest-md5.txt", "manifest-sha1.txt"):
        (bag / name).symlink_to("../secret/x")
    with watched(bag) as outside:
        report = validate(bag, level)
    assert [path for path in outside if "secret" in path or "etc" in path] == []
    assert {path for kind, path in where(report) if kind == "link-outside"} == {
        *("data/link", "data/x", "tags", "manifest-md5.txt", "manifest-sha1.txt"),
    }
    assert not report.ok


@posix
@pytest.mark.parametrize("name", TAG_FILES)
def test_tag_files_that_lead_outside(tmp_path: Path, name: str) -> None:
    """A tag file that links out of the bag is not read; its content is missing, and the rest is checked."""
    bag = Sketch(fetch=FETCH, tag_files={b"notes": b""}).write(tmp_path / "bag")
    (bag / name).rename(tmp_path / "elsewhere")
    (bag / name).symlink_to("../elsewhere")
    (bag / "data" / "a.txt").write_bytes(b"other\n")
    with watched(bag) as outside:
        report = validate(bag)
    assert str(tmp_path / "elsewhere") not in outside
    assert ("link-outside", name) in where(report)
    assert ("declaration-missing", "bagit.txt") not in where(report)
    if not name.startswith("manifest"):
        assert ("checksum-mismatch", "data/a.txt") in where(report)


@posix
@pytest.mark.parametrize("name", TAG_FILES)
def test_tag_files_behind_links_inside(tmp_path: Path, name: str) -> None:
    """A tag file that links to another file of the bag is read, with a warning."""
    bag = Sketch(fetch=FETCH, tag_files={b"tags/notes": b""}).write(tmp_path / "bag")
    (bag / name).rename(bag / "tags" / "moved")
    (bag / name).symlink_to("tags/moved")
    assert where(validate(bag)) == {("link-inside", name), ("tag-file-unlisted", "tags/moved")}


@posix
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", [*TAG_FILES, "data/a.txt", "data", "other", "data/b/more"])
def test_named_pipes(implementation: Implementation, tmp_path: Path, name: str, level: str) -> None:
    """A named pipe in place of any file is reported, without waiting for a writer."""
    bag = Sketch(fetch=FETCH).write(tmp_path / "bag")
    if name == "data":
        (bag / "data").rename(tmp_path / "data")
    (bag / name).unlink(missing_ok=True)
    os.mkfifo(bag / name)
    report = validate(bag, level)
    assert ("file-special", name) in where(report)
    assert ("file-missing", name) not in where(report)
    assert ("file-unlisted", name) not in where(report)
    assert not report.ok


@posix
def test_sockets_and_devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sockets and devices are reported and not opened."""
    bag = good(tmp_path)
    (bag / "data" / "a.txt").unlink()
    monkeypatch.chdir(bag / "data")
    expected = {("file-special", "data/a.txt"), ("oxum-mismatch", "bag-info.txt")}
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("a.txt")
        try:
            os.mknod("tty", stat.S_IFCHR | 0o600, os.makedev(5, 0))
            expected.add(("file-special", "data/tty"))
        except PermissionError:
            pass  # only root creates devices
        assert where(validate(bag)) == expected


@posix
@pytest.mark.parametrize("links", ["inside", "trusted"])
def test_links(implementation: Implementation, tmp_path: Path, links: str) -> None:
    """Files behind links are verified; links out of the bag are followed only if trusted."""
    payload = {**PAYLOAD, b"data/l": PAYLOAD[A], b"data/d/c.txt": PAYLOAD[b"data/b/c.txt"], b"data/out": b"out"}
    bag = Sketch(payload=payload, info=b"Payload-Oxum: 43.5\n").write(tmp_path / "bag")
    for name in ("l", "d/c.txt", "out"):
        (bag / "data" / name).unlink()
    (bag / "data" / "d").rmdir()
    (bag / "data" / "l").symlink_to("a.txt")
    (bag / "data" / "d").symlink_to("b")
    (tmp_path / "elsewhere").write_bytes(b"out")
    (bag / "data" / "out").symlink_to("../../elsewhere")
    report = validate(bag, links=links)
    inside = {("link-inside", "data/l"), ("link-inside", "data/d")}
    if links == "trusted":
        assert where(report) == {*inside, ("link-outside", "data/out")}
        assert report.ok
        (tmp_path / "elsewhere").write_bytes(b"OUT")
        assert ("checksum-mismatch", "data/out") in where(validate(bag, links=links))
    else:
        assert where(report) == {*inside, ("link-outside", "data/out"), ("oxum-mismatch", "bag-info.txt")}
    (bag / "data" / "a.txt").write_bytes(b"other\n")
    assert {("checksum-mismatch", "data/a.txt"), ("checksum-mismatch", "data/l")} < where(validate(bag, links=links))


TAG_FILES = ("bagit.txt", "manifest-sha512.txt", "tagmanifest-sha512.txt", "bag-info.txt", "fetch.txt")


@pytest.mark.parametrize("name", TAG_FILES)
def test_a_directory_in_the_place_of_a_tag_file(tmp_path: Path, name: str) -> None:
    """A bag whose manifest is a directory has no checksums, and is not valid."""
    bag = good(tmp_path)
    (bag / name).unlink(missing_ok=True)
    (bag / name).mkdir()
    for level in ("full", "complete"):
        assert ("file-unreadable", name) in where(validate(bag, level))


@posix
@pytest.mark.parametrize("name", TAG_FILES)
def test_a_trusted_link_in_the_place_of_a_tag_file(tmp_path: Path, name: str) -> None:
    """Trust applies to the payload only: tag files must be in the bag."""
    bag = good(tmp_path)
    (bag / name).unlink(missing_ok=True)
    (tmp_path / name).write_bytes(b"")
    (bag / name).symlink_to(f"../{name}")
    report = validate(bag, links="trusted")
    assert ("link-outside", name) in {(one.kind, one.path) for one in report.errors}


@posix
def test_payload_directory_behind_a_link(tmp_path: Path) -> None:
    """``data`` may link to another directory of the bag, and nowhere else."""
    bag = good(tmp_path)
    (bag / "data").rename(bag / "real")
    (bag / "data").symlink_to("real")
    assert kinds(validate(bag)) == {"link-inside", "tag-file-unlisted"}
    (bag / "real").rename(tmp_path / "real")
    (bag / "data").unlink()
    (bag / "data").symlink_to("../real")
    report = validate(bag)
    assert where(report) >= {("link-outside", "data"), ("file-missing", "data/a.txt")}
    assert report.counts["files"] == 0
    (bag / "data").unlink()
    (bag / "data").symlink_to("bagit.txt")
    assert ("payload-directory-missing", "data") in where(validate(bag))


# --- files that are too large, and bad disks ----------------------------------------------------------------------

MEMORY = """
import resource, sys
from pressmark.bagit import validate
begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
reports = [validate(sys.argv[1], level) for level in ("complete", "full")]
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - begin
print(used // 1024)
for one in reports[0].problems + reports[1].problems:
    print(one.kind, one.path)
"""


@posix
@pytest.mark.slow_under_sanitizers
@pytest.mark.parametrize("name", TAG_FILES)
def test_huge_tag_files(implementation: Implementation, tmp_path: Path, name: str) -> None:
    """A tag file of one endless line takes no more memory than a small one."""
    bag = Sketch(fetch=FETCH).write(tmp_path / "bag")
    with open(bag / name, "ab") as file:
        file.truncate(1 << 26)
    used, *problems = python(MEMORY, bag, PRESSMARK_IMPLEMENTATION=str(implementation))
    assert int(used) < 60
    expected = {"bagit.txt": "declaration-malformed", "bag-info.txt": "info-too-long"}.get(name, "line-too-long")
    assert problems.count(f"{expected} {name}") >= 2  # at both levels


VALIDATE = """
import sys
from pressmark.bagit.validation import validate as validating
# The file system fails once only.
validating.check_in_memory = lambda paths, *_rest, **_options: (None for _ in paths)
for one in validating.validate(sys.argv[1]).problems:
    print(one.kind, one.path)
"""


@posix
def test_faults_of_the_disk(implementation: Implementation, faults: str, tmp_path: Path) -> None:
    """Files that fail or change during the read are each reported, and the others are verified."""
    names = ("eio-1", "truncate-1", "append-1", "rewrite-1", "delete-1", "replace-1", "plain-1")
    size = {"delete-1": 600_000, "replace-1": 600_000}
    payload = {b"data/" + name.encode(): b"x" * size.get(name, 5000) for name in names}
    bag = Sketch(payload=payload, info=None).write(tmp_path / "bag")
    (bag / "data" / "eio-2").write_bytes(b"unlisted")
    said = python(VALIDATE, bag, PRESSMARK_IMPLEMENTATION=str(implementation), LD_PRELOAD=faults)
    assert sorted(said) == sorted(
        [
            "file-unlisted data/eio-2",
            "file-unreadable data/eio-1",
            *(f"file-changing data/{name}" for name in names if name[:3] not in ("eio", "pla")),
        ]
    )


BROKEN = """
import errno, io, os, sys
from pressmark.bagit import bag_directory as base, validate

name = sys.argv[2].encode()
original = base.BagDirectory.open

class Broken(io.BytesIO):
    def read(self, size=-1):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

def open(self, path):
    file = original(self, path)
    if path == name:
        with file:
            return Broken()
    return file

base.BagDirectory.open = open
for one in validate(sys.argv[1], "complete").problems:
    print(one.kind, one.path)
"""


@pytest.mark.parametrize("name", TAG_FILES)
def test_tag_files_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    """An unreadable tag file is reported once, and everything else is checked."""
    bag = Sketch(fetch=FETCH, tag_algorithms=["sha512"]).write(tmp_path / "bag")
    (bag / "data" / "more").write_bytes(b"")
    said = python(BROKEN, bag, name)
    assert said.count(f"file-unreadable {name}") == 1
    assert ("file-unlisted data/more" in said) == (name != "manifest-sha512.txt")
    assert ("oxum-mismatch bag-info.txt" in said) == (name != "bag-info.txt")


def test_a_manifest_that_changes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A manifest written to during the run ends the comparison with it, not the run."""
    monkeypatch.setattr("pressmark.bagit.manifest_index.BLOCKS", 1)
    payload = {b"data/%04d" % number: b"" for number in range(300)}
    bag = Sketch(payload=payload, info=b"Payload-Oxum: 1.1\n", tag_files={b"a": b"", b"A": b""}).write(tmp_path / "bag")

    def change(found: Problem) -> None:
        if found.kind == "name-clash":
            with open(bag / "manifest-sha512.txt", "ab") as file:
                file.write(b"more\n")

    report = validate(bag, "complete", progress=listening(on_problem=change))
    assert ("file-changing", "manifest-sha512.txt") in where(report)
    assert not report.ok


@posix
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("name", [*TAG_FILES, "data/a.txt"])
def test_files_without_permission(tmp_path: Path, name: str) -> None:
    """An unreadable file is reported once, and the others are checked."""
    bag = Sketch(fetch=FETCH).write(tmp_path / "bag")
    (bag / name).chmod(0)
    report = validate(bag)
    assert [found.kind for found in report.problems if found.path == name] == ["file-unreadable"]


def validated_by_another(folder: Path, level: str) -> list[Problem]:
    """Return the problems that another user finds in the bag ``folder/bag``, which is not valid for that user.

    :raises AssertionError: the bag cannot be opened, or is valid
    """
    reports = folder / "reports"
    reports.mkdir()
    reports.chmod(0o777)
    folder.chmod(0o755)  # pytest's own are private

    def act() -> None:
        report = validate("bag", level)
        assert not report.ok
        assert list(check_in_memory([b"bag", b"bag"], level)) == [None, None]
        Path("reports/found").write_text(json.dumps([one.record() for one in report.problems]))

    as_user(OTHER, folder, act)
    return [Problem.from_record(record) for record in json.loads((reports / "found").read_text())]


@needs_users
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("name", "hidden"), [("data/a", 13), ("data/b", 1), ("data", 15), ("data/empty", 0), ("more", 2)]
)
def test_directories_without_permission(
    implementation: Implementation, tmp_path: Path, name: str, hidden: int, level: str
) -> None:
    """Files in an unreadable directory are not reported as missing, and Payload-Oxum is not compared without them."""
    payload = {b"data/a/%d" % number: b"x" for number in range(13)} | {b"data/gone": b"", b"data/b/c": b"y"}
    bag = Sketch(payload=payload, tag_files={b"more/x": b"x", b"more/y/z": b"", b"gone": b""}).write(tmp_path / "bag")
    (bag / "data" / "empty").mkdir()
    for gone in ("data/gone", "gone"):
        (bag / gone).unlink()
    (bag / name).chmod(0)
    found = validated_by_another(tmp_path, level)
    [unreadable] = (one for one in found if one.kind == "file-unreadable")
    words = "" if level == "oxum" or not hidden else f"; {hidden} listed files in it were not checked"
    words = words.replace("1 listed files in it were", "1 listed file in it was") if hidden == 1 else words
    assert (unreadable.path, unreadable.message) == (name, f"Permission denied{words}")
    missing = {one.path for one in found if one.kind == "file-missing"}
    assert missing == (set() if level == "oxum" else {"gone"} if name == "data" else {"gone", "data/gone"})
    assert ("oxum-mismatch" in {one.kind for one in found}) == (name == "more")


@needs_users
def test_directories_that_can_only_be_listed(implementation: Implementation, tmp_path: Path) -> None:
    """If names can be read, but not types and sizes, each file is unreadable, and none is missing."""
    bag = Sketch(payload={b"data/a/b/c": b"x", b"data/a/d": b"y"}).write(tmp_path / "bag")
    (bag / "data" / "a").chmod(0o744)
    found = validated_by_another(tmp_path, "full")
    assert {(one.kind, one.path) for one in found} == {
        ("file-unreadable", "data/a/b"),
        ("file-unreadable", "data/a/d"),
    }
    assert [one.message for one in found if one.path == "data/a/b"] == [
        "Permission denied; 1 listed file in it was not checked"
    ]


@needs_users
def test_a_bag_without_permission(implementation: Implementation, tmp_path: Path) -> None:
    """Nothing is reported as missing from a bag whose names cannot be read."""
    good(tmp_path).chmod(0o711)
    with pytest.raises(AssertionError, match="BagError: 'bag': Permission denied"):
        validated_by_another(tmp_path, "full")


def test_unfinished_change(tmp_path: Path) -> None:
    """Leftovers of an interrupted change are an error, and are not part of the bag."""
    bag = good(tmp_path)
    (bag / ".pressmark-bag").mkdir()
    (bag / ".pressmark-bag" / "journal").write_bytes(b"")
    assert where(validate(bag)) == {("change-unfinished", ".pressmark-bag")}


# --- a ledger -----------------------------------------------------------------------------------------------------


def corrupt(path: Path) -> None:
    """Change a file without changing its size or modification time."""
    status = path.stat()
    path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes()))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("tag_algorithms", [["sha512"], ["sha256"], ["sha512", "sha256"]])
def test_ledger(implementation: Implementation, tmp_path: Path, tag_algorithms: list[str]) -> None:
    """Payload files in the ledger are not read again; tag files only with the same algorithms."""
    bag = Sketch(tag_algorithms=tag_algorithms).write(tmp_path / "bag")
    ledger = tmp_path / "ledger"
    first = kinds(validate(bag, ledger=str(ledger)))
    with Ledger(ledger, ["sha512"], [os.fsencode(bag)]) as opened:
        assert opened.records == (5 if tag_algorithms == ["sha512"] else 2)
    with Ledger(ledger, ["sha512"], [os.fsencode(bag)]) as opened:
        assert kinds(validate(bag, ledger=opened)) == first
        assert (opened.added, opened.found) == (0, 5 if tag_algorithms == ["sha512"] else 2)
    time.sleep(0.02)  # longer than a tick of the clock of a file system
    corrupt(bag / "data" / "a.txt")
    assert kinds(validate(bag, ledger=ledger)) == first | {"checksum-mismatch"}
    (bag / "data" / "b" / "c.txt").write_bytes(b"gone wrong now")
    assert ("checksum-mismatch", "data/b/c.txt") in where(validate(bag, ledger=ledger))


def test_ledger_with_two_manifests(tmp_path: Path) -> None:
    """All checksums of a file come from one read, and all of them are in the ledger."""
    bag = Sketch(algorithms=["sha256", "md5"], tag_algorithms=["sha256"]).write(tmp_path / "bag")
    ledger = tmp_path / "ledger"
    validate(bag, ledger=ledger)
    manifest = bag / "manifest-md5.txt"
    manifest.write_bytes(manifest.read_bytes().replace(b"  data/a.txt", b"0" * 0 + b"  data/a.txt"))
    with Ledger(ledger, ["md5", "sha256"], [os.fsencode(bag)]) as opened:
        assert opened.records == 2
    lines = manifest.read_bytes().splitlines(keepends=True)
    manifest.write_bytes(b"0" * 32 + lines[0][32:] + lines[1])
    report = validate(bag, ledger=ledger)
    assert {(one.kind, one.path, one.algorithm) for one in report.problems if one.path == "data/a.txt"} == {
        ("checksum-mismatch", "data/a.txt", "md5")
    }


def test_interrupted_run_is_resumed(
    implementation: Implementation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an interruption, verified files are not read again, and the result is the same."""
    payload = {b"data/%03d" % number: os.urandom(300_000) for number in range(60)}
    bag = Sketch(payload=payload, info=None).write(tmp_path / "bag")
    (bag / "data" / "050").write_bytes(b"wrong")
    ledger = tmp_path / "ledger"
    seen = 0
    monkeypatch.setattr("pressmark.fixity.pool.PROGRESS_EVERY", 0)

    def interrupt(event: ProgressEvent) -> None:
        nonlocal seen
        seen = event.items
        if seen > 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        validate(bag, ledger=ledger, progress=listening(interrupt))
    with Ledger(ledger, ["sha512"], [os.fsencode(bag)]) as opened:
        assert opened.records >= seen  # files reported as finished are in the ledger, however the run ends
    assert where(validate(bag, ledger=ledger)) == {("checksum-mismatch", "data/050")}


def test_a_ledger_for_something_else(tmp_path: Path) -> None:
    """A ledger for other algorithms or another bag is refused."""
    bag = good(tmp_path)
    with Ledger(tmp_path / "one", ["md5"], ["x"]) as opened, pytest.raises(LedgerError, match="sha512"):
        validate(bag, ledger=opened)
    with pytest.raises(LedgerError, match="other algorithms"):
        validate(bag, ledger=tmp_path / "one")
    with Ledger(tmp_path / "two", ["sha512"], ["/elsewhere"]):
        pass
    with pytest.raises(LedgerError, match="other"):
        validate(bag, ledger=tmp_path / "two")
    # Nothing is read that a ledger could hold.
    assert validate(bag, "complete", ledger=tmp_path / "one").ok


class _Strict:
    """A profile that refuses everything."""

    def check(self, bag: object) -> list[Problem]:
        return [Problem("profile-made-up", "error", "", "bag-info.txt", message="not as it should be")]


def test_profile(tmp_path: Path) -> None:
    """Problems found by a profile are in the report."""
    report = validate(good(tmp_path), profile=_Strict())  # type: ignore[arg-type]
    assert [found.kind for found in report.problems] == ["profile-made-up"]
    assert not report.ok
