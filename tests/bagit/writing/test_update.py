"""Updating bags: they are verified first, and unchanged parts are kept."""

from __future__ import annotations

import datetime
import errno
import os
import shutil
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from pressmark.bagit import bag_directory as base_module
from pressmark.bagit.bag import Bag, make_bag, update
from pressmark.bagit.bag_directory import STAGING, BagDirectory
from pressmark.bagit.changes import Event
from pressmark.bagit.changes.bag_changes import BagChange
from pressmark.bagit.validation.validate import validate
from pressmark.bagit.writing.update import algorithms_to_read
from pressmark.errors import AlgorithmError, BagError, BagInvalidError
from pressmark.fixity import Ledger
from pressmark.progress_event import EventListener
from pressmark.reports import Problem, ProgressEvent
from support.implementations import Implementation
from support.steps import killed_between_moves
from support.users import OTHER, as_user, needs_users

from ..bags import PAYLOAD, Sketch, digest, from_disk, tree
from ..naive import flaws

DAY = datetime.date(2026, 11, 21)


def sketched(folder: Path, **parts: Any) -> Path:
    """Write a bag that is valid except for ``parts``."""
    return Sketch(**parts).write(folder)


def refused(match: str, bag: Path, **options: Any) -> BagError:
    """Make an update that is refused and changes nothing, and return its error."""
    before = tree(bag)
    with pytest.raises(BagError, match=match) as caught:
        update(bag, **options)
    assert "\n" not in str(caught.value)
    assert tree(bag) == before
    return caught.value


def kinds(error: BagError) -> list[tuple[str, str]]:
    """Return the reasons of a refusal."""
    assert isinstance(error, BagInvalidError)
    return [(found.kind, found.path) for found in error.report.errors]


# --- algorithms -------------------------------------------------------------------------------------------------------


def test_a_manifest_that_cannot_be_read(tmp_path: Path) -> None:
    """The content of an unreadable manifest is unknown: no file is reported as added, and no acceptance is advised."""
    bag = sketched(tmp_path / "b")
    (bag / "manifest-sha512.txt").unlink()
    (bag / "manifest-sha512.txt").mkdir()
    error = refused("is a directory", bag)
    name = "manifest-sha512.txt"
    assert kinds(error) == [("file-unreadable", name), ("path-directory", name)]
    assert "added" not in str(error)


def test_nothing_to_change(implementation: Implementation, tmp_path: Path) -> None:
    """An update without changes does not write to the bag."""
    bag = sketched(tmp_path / "b")
    before = {path: path.stat().st_mtime_ns for path in bag.rglob("*")}
    assert update(bag).algorithms == ("sha512",)
    assert {path: path.stat().st_mtime_ns for path in bag.rglob("*")} == before
    assert flaws(bag) == []


def test_metadata_of_an_older_bag(tmp_path: Path) -> None:
    """An update that keeps the version writes tag manifests as in that version: percent signs are literal."""
    path = b"notes/100%.txt"
    plain = f"{digest(b'x', 'sha512')}  notes/100%.txt".encode()
    bag = sketched(tmp_path / "b", version="0.97", tag_files={path: b"x"})
    manifest = bag / "tagmanifest-sha512.txt"
    manifest.write_bytes(manifest.read_bytes().replace(b"%25", b"%"))
    update(bag, info={"Contact-Name": "Jane"}, payload=False)
    assert plain in manifest.read_bytes().splitlines()
    assert validate(bag).problems == []
    update(bag)
    assert plain.replace(b"%", b"%25") in manifest.read_bytes().splitlines()
    assert validate(bag).problems == []


@pytest.mark.parametrize(("name", "listed"), [("a%25b", "a%25b"), ("é", unicodedata.normalize("NFD", "é"))])
def test_tag_files_under_another_spelling(tmp_path: Path, name: str, listed: str) -> None:
    """A tag file listed under another spelling is found, verified, and listed under its own name."""
    bag = sketched(tmp_path / "b", tag_files={os.fsencode(name): b"x"})
    manifest = bag / "tagmanifest-sha512.txt"
    written = f"  {name.replace('%', '%25')}\n".encode()
    manifest.write_bytes(manifest.read_bytes().replace(written, f"  {listed}\n".encode()))
    assert validate(bag).ok
    (bag / name).write_bytes(b"y")
    assert kinds(refused(r"accept=\['tag-files'\]", bag)) == [("checksum-mismatch", name)]
    (bag / name).write_bytes(b"x")
    update(bag)
    assert validate(bag).problems == []


def test_adding_an_algorithm(implementation: Implementation, tmp_path: Path) -> None:
    """A new manifest keeps the old one's order and the old file, and takes one read of the payload."""
    bag = sketched(tmp_path / "b")
    manifest = bag / "manifest-sha512.txt"
    lines = manifest.read_bytes().splitlines(keepends=True)
    manifest.write_bytes(b"".join(lines[::-1]))
    rewrite_tag_manifest(bag)
    inode = manifest.stat().st_ino
    events: list[Event] = []
    assert update(bag, add=["md5", "SHA3-256"], progress=EventListener(events.append)).algorithms == (
        "md5",
        "sha3-256",
        "sha512",
    )
    assert manifest.stat().st_ino == inode
    assert [line.split()[1] for line in (bag / "manifest-md5.txt").read_bytes().splitlines()] == [
        b"data/b/c.txt",
        b"data/a.txt",
    ]
    assert flaws(bag) == []
    assert ProgressEvent("hash", 2, 20, of_items=2) in events


def rewrite_tag_manifest(bag: Path, *algorithms: str) -> None:
    """Write the tag manifests of a bag that a test has changed."""
    for algorithm in algorithms or ("sha512",):
        names = [path.name for path in bag.iterdir() if path.is_file() and not path.name.startswith("tagmanifest-")]
        lines = [f"{digest((bag / name).read_bytes(), algorithm)}  {name}\n" for name in sorted(names)]
        (bag / f"tagmanifest-{algorithm}.txt").write_text("".join(lines))


def test_dropping_an_algorithm(tmp_path: Path) -> None:
    """The manifests of a dropped algorithm are verified and removed."""
    bag = sketched(tmp_path / "b", algorithms=["md5", "sha512"], tag_algorithms=["md5", "sha512"])
    (bag / "data" / "a.txt").write_bytes(b"ALPHA\n")
    error = refused(r"use accept=\['changed'\]", bag, drop="md5")
    assert kinds(error) == [("checksum-mismatch", "data/a.txt")] * 2
    (bag / "data" / "a.txt").write_bytes(b"alpha\n")
    update(bag, drop="md5")
    assert sorted(os.listdir(bag)) == [
        *("bag-info.txt", "bagit.txt", "data", "manifest-sha512.txt", "tagmanifest-sha512.txt"),
    ]
    assert flaws(bag) == []
    update(bag, algorithms=["sha256", "blake2b-512"])
    assert Bag.open(bag).algorithms == ("blake2b-512", "sha256")
    assert flaws(bag) == []
    refused("no payload manifest would remain", bag, drop=["sha256", "blake2b"])


def test_algorithms_that_are_not_known(tmp_path: Path) -> None:
    """A manifest that cannot be verified is not rewritten, but can be dropped."""
    bag = sketched(tmp_path / "b")
    (bag / "manifest-k12.txt").write_bytes(b"00  data/a.txt\n00  data/b/c.txt\n")
    rewrite_tag_manifest(bag)
    error = refused("unknown algorithm k12; update the bag with software that supports it", bag)
    assert kinds(error) == [("algorithm-unknown", "manifest-k12.txt")]
    with pytest.raises(AlgorithmError):
        update(bag, add="k12")
    update(bag, drop="k12")
    assert flaws(bag) == []


def test_which_algorithms_are_read(tmp_path: Path) -> None:
    """Old algorithms first, then new ones; a ledger needs both."""
    bag = Bag.open(sketched(tmp_path / "b", algorithms=["sha512", "md5"]))
    assert algorithms_to_read(bag) == ("md5", "sha512")
    assert algorithms_to_read(bag, drop="md5") == ("md5", "sha512")
    assert algorithms_to_read(bag, ["sha256"], "blake3") == ("md5", "sha512", "sha256", "blake3")


def test_a_ledger(tmp_path: Path) -> None:
    """Files in the ledger are not read again."""
    bag = sketched(tmp_path / "b")
    names = algorithms_to_read(Bag.open(bag))
    for title in "xy":
        events: list[Event] = []
        with Ledger(tmp_path / "l", names, ["b"]) as ledger:
            update(bag, info={"Title": title}, ledger=ledger, progress=EventListener(events.append))
        assert flaws(bag) == []
    assert [event for event in events if isinstance(event, ProgressEvent)][-1].bytes == 0


# --- payload ----------------------------------------------------------------------------------------------------------


def changed_bag(folder: Path) -> Path:
    """Make a bag with a changed payload: a file added, one removed, one modified."""
    payload = {b"data/%d" % number: b"%d" % number * number for number in range(6)}
    bag = sketched(folder, payload=payload, info=b"Bag-Size: 1 TB\nPayload-Oxum: 15.6\n", algorithms=["sha512", "md5"])
    (bag / "data" / "1").unlink()
    (bag / "data" / "3").write_bytes(b"changed")
    (bag / "data" / "new %\n").write_bytes(b"new")
    return bag


def test_payload_that_was_changed(implementation: Implementation, tmp_path: Path) -> None:
    """Each kind of difference is refused unless accepted, and all are reported at once."""
    bag = changed_bag(tmp_path / "b")
    early = '; the payload was not read; "pressmark bag validate" lists all problems$'
    error = refused(r"if this is intended, use accept=\['added', 'removed'\]" + early, bag)
    assert kinds(error) == [("file-unlisted", "data/new %\n"), ("file-missing", "data/1")]
    error = refused(r"use accept=\['removed'\]" + early, bag, accept=["added"])
    assert [found.message for found in error.report.errors] == [
        "listed in manifest-md5.txt, manifest-sha512.txt, but not found"
    ]
    error = refused(r"use accept=\['changed'\]$", bag, accept=["added", "removed"])
    assert kinds(error) == [("checksum-mismatch", "data/3")] * 2
    for found in error.report.errors:
        assert found.message == f"{found.algorithm} is {found.found[:12]}…; expected {found.expected[:12]}…"
    assert {(found.algorithm, len(found.expected), len(found.found)) for found in error.report.errors} == {
        ("sha512", 128, 128),
        ("md5", 32, 32),
    }
    events: list[Event] = []
    update(bag, accept=["added", "removed", "changed"], progress=EventListener(events.append))
    assert flaws(bag) == []
    assert validate(bag).problems == []
    assert (bag / "bag-info.txt").read_bytes() == b"Bag-Size: 21 B\nPayload-Oxum: 21.6\n"
    lines = (bag / "manifest-md5.txt").read_bytes().splitlines()
    assert [line.split(b"  ")[1] for line in lines] == [
        *(b"data/0", b"data/2", b"data/3", b"data/4", b"data/5", b"data/new %25%0A"),
    ]
    noticed = [event for event in events if isinstance(event, Problem)]
    assert {found.severity for found in noticed} == {"warning"}
    assert {found.kind for found in noticed} >= {"file-unlisted", "file-missing", "checksum-mismatch"}


def test_unusable_payload(tmp_path: Path) -> None:
    """New files that a bag cannot hold are refused even if accepted."""
    bag = sketched(tmp_path / "b")
    path = os.path.join(os.fsencode(bag), b"data/\xff")
    with open(path, "wb"):
        pass
    error = refused("name is not UTF-8; rename it", bag, accept=["added"])
    assert kinds(error) == [("path-unsafe", "data/\udcff")]
    os.unlink(path)
    os.mkfifo(bag / "data" / "pipe")
    assert kinds(refused("named pipe", bag, accept=["added"])) == [("file-special", "data/pipe")]
    os.unlink(bag / "data" / "pipe")
    (bag / "data" / "out").symlink_to(tmp_path)
    assert kinds(refused("link to a target outside the bag", bag, accept=["added"])) == [("link-outside", "data/out")]


def test_a_file_in_one_manifest_only(tmp_path: Path) -> None:
    """A file in one manifest is verified by it, and added to the other."""
    for version in ("0.97", "1.0"):
        bag = sketched(tmp_path / version, version=version, algorithms=["md5", "sha512"])
        manifest = bag / "manifest-sha512.txt"
        manifest.write_bytes(manifest.read_bytes().splitlines(keepends=True)[0])
        rewrite_tag_manifest(bag)
        update(bag)
        assert flaws(bag) == []
        (bag / "data" / "b" / "c.txt").write_bytes(b"beta")
        refused(r"use accept=\['changed'\]", bag)


def test_malformed_manifests(tmp_path: Path) -> None:
    """Ambiguous lines of a manifest are not guessed."""
    bag = sketched(tmp_path / "b")
    manifest = bag / "manifest-sha512.txt"
    good = manifest.read_bytes()
    for line, kind in (
        (b"00  data/a.txt\n", "checksum-malformed"),
        (b"nothing\n", "line-malformed"),
        (b"0" * 128 + b"  ../x\n", "path-unsafe"),
        (b"0" * 128 + b"  bagit.txt\n", "path-outside-payload"),
        (good.replace(b"a", b"b", 1).splitlines(keepends=True)[0], "path-duplicate"),
    ):
        manifest.write_bytes(good + line)
        rewrite_tag_manifest(bag)
        error = refused("bag is not valid, nothing was changed", bag, rewrite=True)
        assert kind in [found[0] for found in kinds(error)]


# --- old and odd bags -------------------------------------------------------------------------------------------------


def test_raising_the_version(tmp_path: Path) -> None:
    """From 0.97, percent signs are encoded, blanks around labels removed, and fetch.txt and bagit.txt updated."""
    payload = {b"data/100%": b"1", b"data/%0A": b"2", b"data/%25": b"3"}
    bag = sketched(tmp_path / "b", version="0.97", payload=payload, info=b"Contact-Name :  Me\nX: y\n")
    manifest = b"".join(
        digest(data, "sha512").encode() + b" " + path.replace(b"%0A", b"%0A") + b"\n"
        for path, data in payload.items()
        if path != b"data/%0A"
    )
    (bag / "data" / "%0A").unlink()
    (bag / "data" / "n\n").write_bytes(b"2")
    (bag / "manifest-sha512.txt").write_bytes(manifest + digest(b"2", "sha512").encode() + b" data/n%0A\n")
    (bag / "fetch.txt").write_bytes(b"https://example.org/x - data/100%\n")
    rewrite_tag_manifest(bag)
    assert update(bag).version == (1, 0)
    assert flaws(bag) == []
    assert validate(bag).problems == []
    assert (bag / "bag-info.txt").read_bytes() == b"Contact-Name: Me\nX: y\n"
    assert (bag / "fetch.txt").read_bytes() == b"https://example.org/x - data/100%25\n"


@pytest.mark.parametrize("version", ["0.93", "0.94", "0.95", "0.96", "0.97"])
def test_every_version(tmp_path: Path, version: str) -> None:
    """Every old version is raised to 1.0."""
    bag = sketched(tmp_path / "b", version=version, tag_algorithms=[])
    update(bag)
    assert flaws(bag) == []


def test_an_unknown_version(tmp_path: Path) -> None:
    """A bag of a future version is refused."""
    bag = sketched(tmp_path / "b", version="2.0")
    assert kinds(refused("version", bag)) == [("version-unknown", "bagit.txt")]


def test_manifests_of_md5sum(tmp_path: Path) -> None:
    """Asterisks, raw percent signs, blank lines, needless segments and duplicates are removed; order is kept."""
    payload = {b"data/a": b"1", b"data/50%": b"2", b"data/c": b"3", b"data/d": b"4"}
    bag = sketched(tmp_path / "b", payload=payload, info=None)
    sums = [digest(data, "sha512") for data in payload.values()]
    (bag / "manifest-sha512.txt").write_text(
        f"{sums[3]} *data/d\n{sums[0]}  ./data/a\n\n{sums[1].upper()}\tdata/50%\n{sums[2]}  data//c\n{sums[0]}  data/a"
    )
    rewrite_tag_manifest(bag)
    update(bag)
    assert flaws(bag) == []
    assert [line.split("  ")[1] for line in (bag / "manifest-sha512.txt").read_text().splitlines()] == [
        *("data/d", "data/a", "data/50%25", "data/c"),
    ]


def test_valid_manifests_are_kept(tmp_path: Path) -> None:
    """Other spacing, upper case or CRLF is allowed; only ``rewrite`` changes it."""
    bag = sketched(tmp_path / "b")
    manifest = bag / "manifest-sha512.txt"
    data = manifest.read_bytes().upper().replace(b"DATA/A.TXT", b"data/a.txt").replace(b"DATA/B/C.TXT", b"data/b/c.txt")
    data = data.replace(b"  ", b"\t").replace(b"\n", b"\r\n")
    manifest.write_bytes(data)
    rewrite_tag_manifest(bag)
    update(bag, add="md5")
    assert manifest.read_bytes() == data
    update(bag, rewrite=True)
    assert flaws(bag) == []


def test_names_in_another_normalization(tmp_path: Path) -> None:
    """A file whose name has another normalization is verified, and its manifest entry is kept."""
    name = "data/" + unicodedata.normalize("NFC", "é")
    bag = sketched(tmp_path / "b", payload={name.encode(): b"1", b"data/x": b"2"}, info=None)
    os.rename(bag / name, bag / unicodedata.normalize("NFD", name))
    before = (bag / "manifest-sha512.txt").read_bytes()
    update(bag, add="md5")
    assert (bag / "manifest-sha512.txt").read_bytes() == before
    assert name.encode() in (bag / "manifest-md5.txt").read_bytes()
    (bag / unicodedata.normalize("NFD", name)).write_bytes(b"other")
    refused(r"use accept=\['changed'\]", bag)


def test_a_file_under_two_spellings(tmp_path: Path) -> None:
    """A file that two manifests list in different normalizations is one file, verified by both and listed once."""
    names = {form: unicodedata.normalize(form, "data/é").encode() for form in ("NFC", "NFD")}
    bag = sketched(tmp_path / "b", payload={names["NFC"]: b"1"}, algorithms=["md5", "sha512"], info=None)
    manifest = bag / "manifest-md5.txt"
    manifest.write_bytes(manifest.read_bytes().replace(names["NFC"], names["NFD"]))
    rewrite_tag_manifest(bag, "md5", "sha512")
    update(bag, add="sha256")
    assert (bag / "manifest-sha256.txt").read_bytes().endswith(b"  " + names["NFC"] + b"\n")
    assert len((bag / "manifest-sha256.txt").read_bytes().splitlines()) == 1
    manifest.write_bytes(manifest.read_bytes().replace(digest(b"1", "md5").encode(), digest(b"2", "md5").encode()))
    rewrite_tag_manifest(bag, "md5", "sha512", "sha256")
    assert ("checksum-mismatch", names["NFC"].decode()) in kinds(refused(r"use accept=\['changed'\]", bag))


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "UTF-16", "UTF-16LE", "windows-1252"])
def test_other_encodings(tmp_path: Path, encoding: str) -> None:
    """New tag files use the bag's encoding; characters outside it are refused."""
    payload = {"data/é".encode(): b"1", b"data/x": b"2"}
    bag = sketched(
        tmp_path / "b", encoding=encoding, payload=payload, info="Contact-Name: É\nPayload-Oxum: 2.2\n".encode()
    )
    update(bag, add="md5", info={"X": "ü"})
    mark = {"UTF-16": "utf-16"}.get(encoding, encoding)
    assert "data/é" in (bag / "manifest-md5.txt").read_bytes().decode(mark)
    assert (bag / "bag-info.txt").read_bytes().decode(mark) == "Contact-Name: É\nPayload-Oxum: 2.2\nX: ü\n"
    assert encoding in (bag / "bagit.txt").read_text()
    update(bag)
    if encoding == "ISO-8859-1":
        (bag / "data" / "\u4e2d").write_bytes(b"")
        refused("cannot be encoded in ISO-8859-1", bag, accept=["added"])


def test_links_inside(tmp_path: Path) -> None:
    """Files behind links inside the bag are verified like others."""
    bag = sketched(tmp_path / "b", payload={b"data/a": b"1", b"data/l": b"1", b"data/d/x": b"1"}, info=None)
    (bag / "data" / "l").unlink()
    (bag / "data" / "l").symlink_to("a")
    shutil.rmtree(bag / "data" / "d")
    (bag / "e").mkdir()
    (bag / "e" / "x").write_bytes(b"1")
    (bag / "data" / "d").symlink_to("../e")
    update(bag, add="md5")
    assert (bag / "data" / "l").is_symlink()
    assert len((bag / "manifest-md5.txt").read_bytes().splitlines()) == 3
    (bag / "e" / "x").write_bytes(b"2")
    assert ("checksum-mismatch", "data/d/x") in kinds(refused(r"use accept=\['changed'\]", bag, accept=["tag-files"]))


@pytest.mark.parametrize("link", ["data/l", "tags/l", "l"])
def test_links_to_rewritten_files(tmp_path: Path, link: str) -> None:
    """Links to rewritten files are refused by name, as their checksums would change; other updates succeed."""
    info = b"Title: x\n"
    listed = {os.fsencode(link): info}
    payload = {**PAYLOAD, **listed} if link.startswith("data/") else PAYLOAD
    bag = sketched(tmp_path / "b", info=info, payload=payload, tag_files={} if payload is not PAYLOAD else listed)
    (bag / link).unlink()
    (bag / link).symlink_to(os.path.relpath(bag / "bag-info.txt", (bag / link).parent))
    assert validate(bag).ok
    for options in ({"payload": False}, {}, {"add": "md5"}):
        error = refused("symbolic link to 'bag-info.txt'", bag, info={"Title": "y"}, **options)
        assert error.path == str(bag / link)
    update(bag, add="md5")
    assert validate(bag).ok
    (bag / link).unlink()
    shutil.copyfile(bag / "bag-info.txt", bag / link)
    update(bag, info={"Title": "y"})
    assert validate(bag).ok


def test_links_to_a_removed_manifest(tmp_path: Path) -> None:
    """A link to a removed manifest is refused; the manifest itself may be a link."""
    bag = sketched(tmp_path / "b", algorithms=["md5", "sha512"])
    (bag / "tags").mkdir()
    (bag / "tags" / "l").symlink_to("../manifest-md5.txt")
    update(bag)
    refused("symbolic link to 'manifest-md5.txt'", bag, drop="md5")
    (bag / "tags" / "l").unlink()
    (bag / "manifest-md5.txt").rename(bag / "tags" / "m")
    (bag / "manifest-md5.txt").symlink_to("tags/m")
    update(bag, drop="md5", accept=["tag-files"])
    assert validate(bag).ok


def test_names_of_manifests(tmp_path: Path) -> None:
    """A manifest with a name that is not normalized is renamed; two of one algorithm are refused."""
    bag = sketched(tmp_path / "b", algorithms=["sha3-256"], tag_algorithms=["sha3-256"])
    assert (bag / "manifest-sha3-256.txt").exists()
    shutil.copy(bag / "manifest-sha3-256.txt", tmp_path / "manifest")
    update(bag)
    assert flaws(bag) == []
    assert sorted(path.name for path in bag.glob("*sha3*")) == ["manifest-sha3256.txt", "tagmanifest-sha3256.txt"]
    shutil.copy(tmp_path / "manifest", bag / "manifest-SHA3-256.txt")
    refused("two manifests have the same algorithm", bag)


# --- fetch.txt --------------------------------------------------------------------------------------------------------


@needs_users
@pytest.mark.parametrize("accept", [[], ["removed", "tag-files"]])
def test_unreadable_directories(implementation: Implementation, open_folder: Path, accept: list[str]) -> None:
    """Files in a directory that cannot be listed are not missing: the update is refused even if removal is accepted."""
    payload = {b"data/a/x": b"x", b"data/a/y/z": b"z", b"data/b/c": b"y", b"data/gone": b""}
    bag = sketched(open_folder / "b", payload=payload, tag_files={b"more/x": b"x"})
    (bag / "data" / "gone").unlink()
    (bag / "data" / "a").chmod(0)
    (bag / "data" / "b").chmod(0o400)
    (bag / "more").chmod(0)
    for path in (open_folder, bag, *bag.rglob("*")):
        os.chown(path, OTHER, OTHER)

    def act() -> None:
        before = sorted(os.listdir("b"))
        with pytest.raises(BagInvalidError, match=r"data/b/c.*file cannot be read; and [23] more") as caught:
            update("b", accept=accept)
        assert sorted(os.listdir("b")) == before
        error = caught.value
        assert kinds(error) == [
            ("file-unreadable", "data/b/c"),
            *([] if accept else [("file-missing", "data/gone")]),
            ("file-unreadable", "data/a"),
            ("file-unreadable", "more"),
        ]
        assert "restore data/" not in str(error)
        assert error.report.errors[-2].message == "Permission denied; 2 listed files in it were not checked"

    as_user(OTHER, open_folder, act)


def test_files_that_are_not_fetched_yet(tmp_path: Path) -> None:
    """Files not fetched yet keep their lines; updates that need their content are refused with the remedy."""
    payload = {b"data/a": b"1", b"data/hole": b"22", b"data/z": b"333"}
    bag = sketched(
        tmp_path / "b",
        payload=payload,
        algorithms=["md5", "sha512"],
        absent={b"data/hole"},
        fetch=b"https://example.org/h 2 data/hole\n",
        info=b"Payload-Oxum: 6.3\n",
    )
    refused(
        "cannot compute sha256 of all files: 1 files listed in fetch.txt are missing; complete the bag first",
        bag,
        add="sha256",
    )
    refused("complete the bag first", bag, accept=["added"])
    update(bag, drop="md5", rewrite=True, info={"X": "y"})
    assert (bag / "bag-info.txt").read_bytes() == b"Payload-Oxum: 6.3\nX: y\n"
    (bag / "data" / "hole").write_bytes(b"22")
    assert flaws(bag) == []
    update(bag, add="sha256")
    assert flaws(bag) == []


# --- metadata and tag files -------------------------------------------------------------------------------------------


def test_elements(tmp_path: Path) -> None:
    """Elements are set in place, removed, and repeated; unchanged bytes are kept."""
    info = b"B:\tkept \r\nContact-Name: old\r\nA: 1\r\nA: 2\r\nLong: one\r\n  two\r\nPayload-Oxum: 20.2\r\n"
    bag = sketched(tmp_path / "b", info=info)
    update(bag, info={"contact-name": "new", "A": None, "C": ["x", "y"]}, payload=False)
    text = (bag / "bag-info.txt").read_bytes()
    assert text == (b"B:\tkept \r\nContact-Name: new\r\nLong: one\r\n  two\r\nPayload-Oxum: 20.2\r\nC: x\r\nC: y\r\n")
    assert flaws(bag) == []
    update(bag, info=[("C", "z")], date=DAY)
    assert (bag / "bag-info.txt").read_bytes().endswith(b"C: z\r\nBagging-Date: 2026-11-21\r\n")
    for wrong in ({"payload-oxum": "1.1"}, {"a:b": "x"}, [("A", " b")]):
        with pytest.raises(ValueError, match=r"Oxum|label|value"):
            update(bag, info=wrong)


def test_no_bag_info(tmp_path: Path) -> None:
    """A bag without bag-info.txt gets one only if it has content."""
    bag = sketched(tmp_path / "b", info=None)
    update(bag, add="md5")
    assert not (bag / "bag-info.txt").exists()
    update(bag, info={"X": "y"}, payload=False)
    assert (bag / "bag-info.txt").read_bytes() == b"X: y\n"
    assert flaws(bag) == []


def test_payload_alone(tmp_path: Path) -> None:
    """``payload=False`` reads no payload: it may even be missing."""
    bag = sketched(tmp_path / "b", version="0.97", algorithms=["md5", "sha512"])
    shutil.rmtree(bag / "data")
    (bag / "data").mkdir()
    update(bag, info={"X": "y"}, drop="md5", payload=False)
    assert Bag.open(bag).version == (0, 97)
    assert not (bag / "manifest-md5.txt").exists()
    for options in ({"add": "md5"}, {"accept": ["added"]}, {"rewrite": True}, {"algorithms": ["md5"]}):
        with pytest.raises(ValueError, match="payload=False"):
            update(bag, payload=False, **options)


@pytest.mark.parametrize("name", [b"bag-info.txt", b"manifest-sha512.txt", b"tagmanifest-sha512.txt", b"bagit.txt"])
@pytest.mark.parametrize("call", ["status", "readlink"])
def test_inaccessible_tag_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: bytes, call: str) -> None:
    """A tag file that is temporarily inaccessible does not count as missing: nothing is changed."""
    bag = sketched(tmp_path / "b")
    if call == "readlink":  # called for links only
        (bag / os.fsdecode(name)).rename(bag / "linked")
        (bag / os.fsdecode(name)).symlink_to("linked")
    whole = {"status": BagDirectory.status, "readlink": base_module._ByDescriptor.readlink}[call]

    def stale(self: Any, path: bytes) -> Any:
        if path == name:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return whole(self, path)

    monkeypatch.setattr(BagDirectory if call == "status" else base_module._ByDescriptor, call, stale)
    refused(f"{name.decode()}.*cannot be accessed", bag, info={"X": "y"})
    # A small bag is read without these calls.
    assert not from_disk(bag).ok


def test_tag_files_that_were_changed(tmp_path: Path) -> None:
    """Checksums of tag files are verified; edited tag files can be accepted."""
    bag = sketched(tmp_path / "b", tag_files={b"mets.xml": b"<mets/>", b"more/x": b"x"})
    (bag / "mets.xml").write_bytes(b"<METS/>")
    (bag / "more" / "x").unlink()
    (bag / "more" / "new").write_bytes(b"n")
    for options in ({}, {"payload": False}, {"add": "md5"}):
        error = refused(r"accept=\['tag-files'\]", bag, **options)
        assert {found[1] for found in kinds(error)} <= {"mets.xml", "more/x"}
    update(bag, accept=["tag-files"])
    assert flaws(bag) == []
    assert b"more/new" in (bag / "tagmanifest-sha512.txt").read_bytes()


def unlisted(events: list[Event]) -> list[tuple[str, str]]:
    """Return the tag files that no tag manifest listed, and what became of them."""
    found = [event for event in events if isinstance(event, Problem)]
    return [(one.path, one.message.partition("; ")[2]) for one in found if one.kind == "tag-file-unlisted"]


@pytest.mark.parametrize("version", ["0.97", "1.0"])
def test_unlisted_tag_files(implementation: Implementation, tmp_path: Path, version: str) -> None:
    """A tag file that no tag manifest listed is added only if the caller accepts tag files; each is reported."""
    bag = sketched(tmp_path / "b", version=version)
    (bag / "note.txt").write_bytes(b"note")
    (bag / "data" / "new").write_bytes(b"n")
    tag_manifest = bag / "tagmanifest-sha512.txt"
    events: list[Event] = []
    update(bag, accept=["added"], info={"X": "y"}, progress=EventListener(events.append))
    assert b"note.txt" not in tag_manifest.read_bytes()
    assert unlisted(events) == [("note.txt", "to add it, use accept=['tag-files']")]
    assert [(found.kind, found.path) for found in validate(bag).problems] == [("tag-file-unlisted", "note.txt")]
    before = tree(bag)
    update(bag)
    assert tree(bag) == before
    events.clear()
    update(bag, accept=["tag-files"], progress=EventListener(events.append))
    assert unlisted(events) == [("note.txt", "added to the tag manifests")]
    assert b"note.txt" in tag_manifest.read_bytes()
    assert validate(bag).problems == []
    events.clear()
    update(bag, info={"X": "z"}, progress=EventListener(events.append))
    assert unlisted(events) == []


def test_unlisted_metadata(tmp_path: Path) -> None:
    """Even bag-info.txt is added only if accepted; payload manifests, which the update verifies, always are."""
    bag = sketched(tmp_path / "b", version="0.97", info=b"X: y\n")
    tag_manifest = bag / "tagmanifest-sha512.txt"
    lines = tag_manifest.read_bytes().splitlines(keepends=True)
    tag_manifest.write_bytes(b"".join(line for line in lines if b"bagit.txt" in line))
    update(bag, info={"X": "z"})
    listed = tag_manifest.read_bytes()
    assert (b"bag-info.txt" in listed, b"manifest-sha512.txt" in listed, b"bagit.txt" in listed) == (False, True, True)
    update(bag, accept=["tag-files"])
    assert b"bag-info.txt" in tag_manifest.read_bytes()
    assert validate(bag).problems == []


def test_tag_manifests_are_made(tmp_path: Path) -> None:
    """A bag without tag manifests gets them for all algorithms and all tag files."""
    bag = sketched(tmp_path / "b", tag_algorithms=[], tag_files={b"more/x%": b"x"}, algorithms=["md5", "sha512"])
    events: list[Event] = []
    update(bag, progress=EventListener(events.append))
    assert flaws(bag) == []
    assert unlisted(events) == [("more/x%", "added to the tag manifests")]
    assert sorted(path.name for path in bag.glob("tagmanifest-*")) == ["tagmanifest-md5.txt", "tagmanifest-sha512.txt"]


# --- all or nothing ---------------------------------------------------------------------------------------------------


def test_invalid_arguments(tmp_path: Path) -> None:
    """A directory that is not a bag is refused and not changed."""
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_bytes(b"")
    with pytest.raises(BagError, match=r"bagit.txt not found"):
        update(tmp_path / "d")
    with pytest.raises(BagError, match="not a directory"):
        update(tmp_path / "f")
    with pytest.raises(ValueError, match="accept='x': expected added, removed, changed, tag-files"):
        update(tmp_path / "d", accept="x")
    assert not list((tmp_path / "d").iterdir())


def test_two_runs(tmp_path: Path) -> None:
    """A second run is refused during a change."""
    bag = sketched(tmp_path / "b")
    with BagChange(os.fsencode(bag)), pytest.raises(BagError, match="in use by another run"):
        update(bag)
    update(bag)


def test_an_interrupted_update(tmp_path: Path) -> None:
    """After an interrupted update, the directory is not a bag; the same call finishes it, another finishes it first."""

    for number, options in enumerate(({"add": "md5"}, {"add": "sha256"})):
        bag = sketched(tmp_path / f"b{number}")
        with killed_between_moves(STAGING):
            update(bag, add="md5")
        assert not (bag / "bagit.txt").exists()
        with pytest.raises(BagError):
            Bag.open(bag)
        events: list[Event] = []
        found = update(bag, progress=EventListener(events.append), **options)
        assert events[0] == ProgressEvent("recover")
        assert (len(events) == 1) == (options == {"add": "md5"})
        assert found.algorithms == (("md5", "sha512") if number == 0 else ("md5", "sha256", "sha512"))
        assert flaws(bag) == []


def test_new_bags(tmp_path: Path) -> None:
    """An update of a new bag changes nothing."""
    source = tmp_path / "s"
    source.mkdir()
    (source / "a%\n").write_bytes(b"x")
    bag = make_bag(source, algorithms=["sha512", "blake3"])
    before = tree(source)
    bag.update()
    assert tree(source) == before
