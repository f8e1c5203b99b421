"""Folders of bags: bag directories and serialized bags, found by External-Identifier, by name or by a layout."""

from __future__ import annotations

import errno
import io
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import pressmark
import strategies
from pressmark import bagit, stores
from pressmark.errors import BagError, IdentifierError, ObjectError, SpillError, StoreError
from pressmark.fs.names import encode_fs
from pressmark.progress_event import EventListener
from pressmark.reports import Report
from pressmark.stores.bags import archives, check as bags_check, walk as reader
from pressmark.stores.bags.bag_folder import BagFolder
from pressmark.stores.bags.check import validated
from pressmark.stores.bags.folder_config import CONFIG
from pressmark.stores.bags.walk import BagWalk
from support.events import listening
from support.implementations import Implementation, use
from support.trees import snapshot, write

MANNERS: dict[str, dict[str, Any]] = {
    "external": {},
    "name": {"identifiers": "name"},
    "0003": {"layout": pressmark.layout("0003")},
    "0004": {"layout": pressmark.layout("0004")},
    "pairtree": {"layout": pressmark.layout("pairtree")},
}


@pytest.fixture
def folder(tmp_path: Path) -> BagFolder:
    """An empty folder, and files to put."""
    write(tmp_path, {"f.txt": b"data", "given/a": b"a", "given/b/c": b"c"})
    return BagFolder.create(tmp_path / "store")


def data(store: BagFolder, identifier: str) -> dict[str, bytes]:
    return {name: Path(path).read_bytes() for name, path in store.get(identifier).files()}


def serialize(store: BagFolder, name: str, archive: str) -> Path:
    """Pack a bag, with its directory at the top, and remove it."""
    base = Path(store.root)
    path = base / archive
    if archive.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as packed:
            for file in sorted((base / name).rglob("*")):
                packed.write(file, file.relative_to(base))
    else:
        compression = {"gz": "gz", "GZ": "gz", "tgz": "gz", "bz2": "bz2", "xz": "xz"}.get(
            archive.rpartition(".")[2], ""
        )
        with tarfile.open(path, f"w:{compression}") as tar:  # type: ignore[call-overload]
            tar.add(base / name, name)
        if archive.endswith(".zst"):
            zstandard = pytest.importorskip("zstandard")
            path.write_bytes(zstandard.ZstdCompressor().compress(path.read_bytes()))
    shutil.rmtree(base / name)
    return path


def kinds(store: BagFolder, **options: Any) -> list[str]:
    return sorted(one.kind for one in store.check(**options).problems)


# --- creating and opening ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("manner", MANNERS)
def test_create(tmp_path: Path, manner: str) -> None:
    """A folder records how it was created, and an empty one is recognised."""
    made = stores.BagFolder.create(tmp_path / "store", **MANNERS[manner])
    again = stores.open(tmp_path / "store")
    assert isinstance(made, BagFolder)
    assert isinstance(again, BagFolder)
    assert (again.kind, again.identifiers, again.layout) == ("bags", made.identifiers, made.layout)
    assert list(again.objects()) == []
    assert again.check(digests=True).problems == []
    with pytest.raises(StoreError, match="specify an empty"):
        stores.create("bags", tmp_path / "store")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b'{"identifiers": "x", "layout": null}',
        b'{"identifiers": "layout", "layout": null}',
        b'{"identifiers": "layout", "layout": {"extensionName": "unknown"}}',
    ],
)
def test_invalid_settings(folder: BagFolder, content: bytes) -> None:
    """Invalid settings are refused with a one-line message."""
    Path(folder.root, os.fsdecode(CONFIG)).write_bytes(content)
    with pytest.raises(StoreError) as caught:
        BagFolder(folder.root)
    assert "\n" not in str(caught.value)
    assert "correct the file" in str(caught.value)


def test_directories_that_are_not_folders_of_bags(tmp_path: Path, folder: BagFolder) -> None:
    """A bag is not a folder of bags, and conflicting options are refused."""
    bagit.create(tmp_path / "given", tmp_path / "bag")
    with pytest.raises(StoreError, match="the directory is a bag"):
        BagFolder(tmp_path / "bag")
    with pytest.raises(StoreError, match="a bag, not a store; use pressmark bag, or specify the directory"):
        stores.kind_of(tmp_path / "bag")
    with pytest.raises(StoreError, match="No such file or directory"):
        BagFolder(tmp_path / "none")
    with pytest.raises(StoreError, match="not a directory"):
        BagFolder(tmp_path / "f.txt")
    with pytest.raises(StoreError, match="specify a layout"):
        BagFolder(folder.root, identifiers="layout")
    with pytest.raises(StoreError, match="omit the layout"):
        BagFolder(folder.root, identifiers="name", layout=pressmark.layout("0004"))
    with pytest.raises(ValueError, match="identifiers='x'"):
        BagFolder(folder.root, identifiers="x")  # type: ignore[arg-type]


# --- put and get ------------------------------------------------------------------------------------------------------


@settings(max_examples=settings.default.max_examples // 5)  # writing bags is slow
@given(st.sampled_from(sorted(MANNERS)), st.lists(strategies.identifiers(), max_size=4, unique=True))
def test_objects_are_read_back(implementations: list[Implementation], manner: str, given_ids: list[bytes]) -> None:
    """Hostile identifiers are read back exactly, a refused put leaves no trace, and every object can be deleted."""
    for implementation in implementations:
        with use(implementation), tempfile.TemporaryDirectory() as top:
            store = BagFolder.create(os.path.join(top, "store"), **MANNERS[manner])
            before = snapshot(Path(store.root))
            source = Path(top, "f.txt")
            stored, refused = set(), set()
            for identifier in given_ids:
                source.write_bytes(identifier)
                try:
                    assert store.put(identifier, source).proper
                    stored.add(identifier)
                except (IdentifierError, ObjectError) as error:
                    refused.add(getattr(error, "kind", "bad-name"))
            assert refused <= {"bad-name", "collision", "reserved"}
            assert {encode_fs(record.id or "") for record in store.objects()} == stored
            assert store.check(digests=True).ok
            for identifier in stored:
                assert list(data(store, identifier.decode("utf-8", "surrogateescape")).values()) == [identifier]
                store.delete(identifier)
            assert snapshot(Path(store.root)) == before


@pytest.mark.parametrize("manner", MANNERS)
def test_replace(tmp_path: Path, manner: str) -> None:
    """A bag is replaced only on request; its payload may come from files, directories or named files."""
    write(tmp_path, {"f.txt": b"data", "given/a": b"a", "given/b/c": b"c"})
    store = BagFolder.create(tmp_path / "store", **MANNERS[manner])
    store.put("abc", tmp_path / "f.txt")
    assert data(store, "abc") == {"f.txt": b"data"}
    with pytest.raises(ObjectError, match=r"use another identifier, or replace=True") as caught:
        store.put("abc", tmp_path / "given")
    assert caught.value.kind == "exists"
    store.put("abc", tmp_path / "given", replace=True)
    assert data(store, "abc") == {"a": b"a", "b/c": b"c"}
    store.put("abc", {"x/y": tmp_path / "f.txt"}, replace=True)
    assert data(store, "abc") == {"x/y": b"data"}
    assert store.get("abc").bag().info.all("External-Identifier") == ["abc"]
    assert kinds(store, digests=True) == []


def test_unusable_sources(tmp_path: Path, folder: BagFolder) -> None:
    """A missing source, or a symbolic link that is not followed, stores nothing."""
    (tmp_path / "given" / "link").symlink_to("a")
    before = snapshot(Path(folder.root))
    for source in (tmp_path / "none", tmp_path / "given", {"../x": tmp_path / "f.txt"}):
        with pytest.raises(ObjectError):
            folder.put("abc", source)
    assert snapshot(Path(folder.root)) == before
    folder.put("abc", tmp_path / "given", links="follow")
    assert data(folder, "abc") == {"a": b"a", "b/c": b"c", "link": b"a"}


def test_a_source_that_leads_to_the_folder(tmp_path: Path, folder: BagFolder) -> None:
    """A source that contains the folder, directly or through a followed link, is refused."""
    (tmp_path / "given" / "b" / "link").symlink_to(folder.root)
    before = snapshot(tmp_path)
    for source in (tmp_path, tmp_path / "given", {"x": tmp_path / "given"}):
        with pytest.raises(
            ObjectError, match=r"cannot copy a directory into itself|directory that contains the destination"
        ) as caught:
            folder.put("abc", source, links="follow")
        assert caught.value.kind == "source"
        assert snapshot(tmp_path) == before


def test_identifiers_that_no_bag_can_have(tmp_path: Path, folder: BagFolder) -> None:
    """An identifier that bag-info.txt cannot hold is refused, unless the path encodes it."""
    for identifier in ("a\nb", " a", b"\xff", ""):
        with pytest.raises(IdentifierError):
            folder.put(identifier, tmp_path / "f.txt")
    with pytest.raises(ObjectError, match="such as 0004") as caught:
        folder.put("x" * 256, tmp_path / "f.txt")
    assert caught.value.kind == "bad-name"
    store = BagFolder.create(tmp_path / "other", pressmark.layout("pairtree"))
    store.put(" a", tmp_path / "f.txt")
    assert [record.id for record in store.objects()] == [" a"]
    assert [record.problems for record in store.objects()] == [()]


def test_bags_of_others(tmp_path: Path, folder: BagFolder) -> None:
    """Bags may have any name and depth; a bag without an External-Identifier is identified by its directory name."""
    bagit.create(tmp_path / "given", Path(folder.root, "first"), info={"External-Identifier": "x:1"})
    Path(folder.root, "deep").mkdir()
    bagit.create(tmp_path / "given", Path(folder.root, "deep", "second"))
    bagit.create(tmp_path / "given", Path(folder.root, "third"), info=[("External-Identifier", "1")] * 2)
    assert [(record.id, record.path) for record in folder.objects()] == [
        ("second", "deep/second"), ("x:1", "first"), ("third", "third")
    ]  # fmt: skip
    assert kinds(folder) == ["identifier-several"]
    assert data(folder, "second") == data(folder, "x:1") == {"a": b"a", "b/c": b"c"}
    with pytest.raises(ObjectError, match="bag exists at 'first"):
        folder.put("x:1", tmp_path / "f.txt")
    folder.put("x:1", tmp_path / "f.txt", replace=True)
    assert data(folder, "x:1") == {"f.txt": b"data"}
    folder.delete("second")
    assert sorted(os.listdir(folder.root)) == [os.fsdecode(CONFIG), "first", "third"]
    with pytest.raises(ObjectError, match="no bag with this identifier"):
        folder.get("second")


def test_duplicates_and_misplaced(tmp_path: Path, folder: BagFolder) -> None:
    """Duplicate identifiers and misplaced bags are errors."""
    for name in ("first", "second"):
        bagit.create(tmp_path / "given", Path(folder.root, name), info={"External-Identifier": "x"})
    assert kinds(folder) == ["duplicate-id"]
    store = BagFolder(folder.root, layout=pressmark.layout("0004"))
    assert kinds(store) == ["duplicate-id", "misplaced", "misplaced"]
    assert [record.proper for record in store.objects()] == [False, False]
    with pytest.raises(ObjectError):
        store.get("x")


def test_collisions(tmp_path: Path, folder: BagFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A put into a bag, over another file, or under a name that differs only in case is refused."""
    write(Path(folder.root), {"abc": b"a file"})
    with pytest.raises(ObjectError, match="move that object first") as caught:
        folder.put("abc", tmp_path / "f.txt")
    assert caught.value.kind == "collision"
    store = BagFolder.create(tmp_path / "other", pressmark.layout("0002"))
    store.put("ab", tmp_path / "f.txt")
    with pytest.raises(ObjectError, match="path 'ab/cd' is inside the bag 'ab'"):
        store.put("ab/cd", tmp_path / "f.txt")
    with pytest.raises(ObjectError, match="reserved for the folder itself"):
        store.put(".pressmark-work", tmp_path / "f.txt")
    monkeypatch.setattr("pressmark.stores.staging_writer.is_case_insensitive", lambda _directory: True)
    monkeypatch.setattr("pressmark.stores.staging_writer.existing_spelling", lambda _base, _relative: b"ab")
    with pytest.raises(ObjectError, match="case-sensitive"):
        store.put("AB", tmp_path / "f.txt")


# --- serialized bags --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "archive", ["x.zip", "x.tar", "x.tar.gz", "x.tgz", "deep.TAR.GZ", "x.tar.zst", "x.tar.bz2", "x.tar.xz"]
)
def test_serialized(tmp_path: Path, folder: BagFolder, archive: str) -> None:
    """Serialized bags are listed without unpacking, returned as one file, checked on request, and never replaced."""
    folder.put("x:1", tmp_path / "given")
    path = serialize(folder, "x+1", archive)
    assert [(record.id, record.path, record.proper) for record in folder.objects()] == [("x:1", archive, True)]
    store = BagFolder(folder.root)
    assert data(store, "x:1") == {archive: path.read_bytes()}
    assert store.get("x:1").serialized
    assert kinds(store) == ["archive-unchecked"]
    assert store.check().ok
    report = store.check(digests=True)
    assert (report.problems, report.counts["files"] > 0) == ([], True)
    with pytest.raises(ObjectError, match="serialized bag exists"):
        store.put("x:1", tmp_path / "f.txt", replace=True)
    (tmp_path / "moved").mkdir()
    shutil.move(path, tmp_path / "moved" / archive)
    assert stores.kind_of(tmp_path / "moved") == "bags"
    with pytest.raises(ObjectError, match="no bag"):
        store.get("x:1")
    other = BagFolder(tmp_path / "moved")
    other.delete("x:1")
    assert os.listdir(tmp_path / "moved") == []


def test_serialized_and_damaged(tmp_path: Path, folder: BagFolder) -> None:
    """Damaged or unsafe archives are reported, and nothing is written."""
    folder.put("x", tmp_path / "given")
    bag = Path(folder.root, "x")
    (bag / "data" / "a").write_bytes(b"b")
    changed = serialize(folder, "x", "changed.tar")
    write(
        Path(folder.root),
        {"broken.zip": b"PK", "broken.tar": b"no" * 1000, "empty.tar": b"", "cut.tar.gz": b"\x1f\x8b"},
    )
    with tarfile.open(changed) as tar, tarfile.open(Path(folder.root, "hostile.tar"), "w") as hostile:
        for member in tar:
            hostile.addfile(member, tar.extractfile(member) if member.isreg() else None)
        for name, kind in (("../out", tarfile.REGTYPE), ("x/link", tarfile.SYMTYPE), ("/abs", tarfile.REGTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            hostile.addfile(member)
    before = snapshot(tmp_path)
    found = {(one.kind, one.path) for one in folder.check(digests=True).problems if one.severity == "error"}
    assert snapshot(tmp_path) == before
    assert found == {
        ("archive-malformed", "broken.tar"),
        ("archive-malformed", "broken.zip"),
        ("archive-malformed", "cut.tar.gz"),
        ("archive-malformed", "empty.tar"),
        ("checksum-mismatch", "changed.tar/data/a"),
        ("archive-member", "hostile.tar"),
        ("link-outside", "hostile.tar/link"),
        ("checksum-mismatch", "hostile.tar/data/a"),
        ("duplicate-id", "hostile.tar"),
    }


def test_exceptions_of_archive_readers(tmp_path: Path, folder: BagFolder) -> None:
    """Any exception of an archive reader becomes a problem of that archive; the check continues."""
    base = Path(folder.root)
    with zipfile.ZipFile(base / "name.zip", "w") as archive:
        archive.writestr("b/é", "")
    (base / "name.zip").write_bytes((base / "name.zip").read_bytes().replace("é".encode(), b"\xc3("))
    with zipfile.ZipFile(base / "deflated.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("b/bagit.txt", "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n")
    data = bytearray((base / "deflated.zip").read_bytes())
    start = data.index(b"b/bagit.txt") + len("b/bagit.txt")
    data[start : start + 8] = b"\xff" * 8
    (base / "deflated.zip").write_bytes(data)
    with tarfile.open(base / "member.tar", "w") as tar:
        for name in ("b/bagit.txt", "b/data/a", "b/data/a/below", "b/" + "n" * 300):
            tar.addfile(tarfile.TarInfo(name))
    folder.put("good", tmp_path / "given")
    assert [(record.id, record.path) for record in folder.objects() if record.id == "good"] == [("good", "good")]
    found = {(one.kind, one.path) for one in folder.check(digests=True).problems}
    assert {
        ("archive-malformed", "name.zip"),
        ("archive-malformed", "deflated.zip"),
        ("archive-member", "member.tar"),
    } <= found


@pytest.mark.parametrize("archive", ["x.tar.gz", "x.zip", "x.tar"])
def test_a_serialized_bag_with_a_damaged_end(tmp_path: Path, folder: BagFolder, archive: str) -> None:
    """The checksum of the compressed stream is verified as well as the manifests."""
    folder.put("x", tmp_path / "given")
    path = serialize(folder, "x", archive)
    whole = path.read_bytes()
    end = len(whole.rstrip(b"\0")) if archive == "x.tar" else len(whole)
    assert folder.check(digests=True).ok
    for damaged in (whole[: end - 8], whole[: end - 8] + bytes(255 - byte for byte in whole[end - 8 : end])):
        path.write_bytes(damaged)
        assert not BagFolder(folder.root).check(digests=True).ok


@pytest.mark.skipif(os.name != "posix", reason="sets a limit of POSIX")
@pytest.mark.parametrize("archive", ["x.tar.gz", "x.zip", "x.tar"])
def test_serialized_bags_need_no_space(tmp_path: Path, folder: BagFolder, archive: str) -> None:
    """Checking a serialized bag needs no disk space."""
    (tmp_path / "given" / "a").write_bytes(bytes(200_000))
    folder.put("x", tmp_path / "given")
    serialize(folder, "x", archive)
    script = """
import resource, sys
from pressmark.stores import BagFolder
store = BagFolder(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
print([(one.kind, one.message) for one in store.check(digests=True).problems])
"""
    done = subprocess.run([sys.executable, "-c", script, folder.root], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_full_disk_is_not_a_problem_of_a_bag(
    tmp_path: Path, folder: BagFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk during validation ends the check with an error; it is not a problem of the bag."""
    folder.put("x", tmp_path / "given")
    serialize(folder, "x", "x.tar.gz")

    def full(*_args: object, **_options: object) -> Any:
        raise SpillError("/tmp", "No space left on device") from OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(bags_check, "validate_archive", full)
    problems: list[object] = []
    with pytest.raises(StoreError, match="No space left") as caught:
        folder.check(digests=True, progress=listening(on_problem=problems.append))
    assert isinstance(caught.value.__cause__, OSError)
    assert problems == []


@pytest.mark.parametrize("serialised", [False, True])
def test_a_bag_with_more_problems_than_are_kept(
    tmp_path: Path, folder: BagFolder, monkeypatch: pytest.MonkeyPatch, serialised: bool
) -> None:
    """Errors are counted even after the limit of kept problems is reached."""
    folder.put("x", tmp_path / "given")
    bag = Path(folder.root, "x")
    (bag / "a").write_bytes(b"in no tag manifest")
    (bag / "data" / "b" / "c").write_bytes(b"d")
    if serialised:
        serialize(folder, "x", "x.tar")
    name = "validate_archive" if serialised else "validate"
    monkeypatch.setattr(bags_check, name, partial(getattr(bags_check, name), keep=1))
    report = folder.check(digests=True)
    if not serialised:
        assert report.problems[0].kind == "tag-file-unlisted"
    assert [(one.kind, one.severity) for one in report.problems[1:]] == [("problems-omitted", "error")]
    assert not report.ok


@pytest.mark.parametrize("what", ["many", "large", "two tops", "a file at the top"])
def test_other_archives_are_not_read_to_their_ends(folder: BagFolder, what: str) -> None:
    """An archive that is not a bag is recognised by its first members; the rest is not read."""
    path = Path(folder.root, "foreign.tar.gz")
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        if what == "large":
            member = tarfile.TarInfo("foreign/large")
            member.size = 65 << 20
            with open("/dev/zero", "rb") if os.name == "posix" else io.BytesIO(bytes(member.size)) as zeros:
                tar.addfile(member, zeros)
        elif what == "many":
            for number in range(1001):
                tar.addfile(tarfile.TarInfo(f"foreign/{number}"))
        else:
            tar.addfile(tarfile.TarInfo("foreign/data/a"))
            tar.addfile(tarfile.TarInfo("other/data/a" if what == "two tops" else "README"))
        noise = random.Random(1).randbytes(1_000_000)
        member = tarfile.TarInfo("foreign/noise")
        member.size = len(noise)
        tar.addfile(member, io.BytesIO(noise))
    path.write_bytes(path.read_bytes()[:-8] + bytes(8))
    for digests in (False, True):
        problems = folder.check(digests=digests).problems
        assert [one.kind for one in problems if one.severity == "error"] == ["archive-malformed"]
        assert "not a bag" in problems[0].message
    (Path(folder.root) / ".pressmark-bags.json").unlink()
    with pytest.raises(StoreError, match="not a store"):
        stores.kind_of(folder.root)


def test_a_serialized_bag_with_tag_files_at_the_end(tmp_path: Path, folder: BagFolder) -> None:
    """The identifier is found even if thousands of payload files precede the tag files."""
    for number in range(1200):
        (tmp_path / "given" / f"{number}").write_bytes(b"")
    folder.put("x:1", tmp_path / "given")
    base = Path(folder.root)
    with tarfile.open(base / "x.tgz", "w:gz") as tar:
        tar.add(base / "x+1" / "data", "x+1/data")
        for path in sorted((base / "x+1").glob("*.txt"), reverse=True):
            tar.add(path, f"x+1/{path.name}")
    shutil.rmtree(base / "x+1")
    assert [(record.id, record.proper) for record in folder.objects()] == [("x:1", True)]
    assert folder.check(digests=True).problems == []


def test_a_sparse_member(tmp_path: Path, folder: BagFolder) -> None:
    """A sparse member is refused, and not expanded on disk or read in full."""
    folder.put("x", tmp_path / "given")
    path = serialize(folder, "x", "x.tar")
    member = tarfile.TarInfo("x/data/sparse")
    size = 200 << 30
    member.pax_headers = {"GNU.sparse.size": f"{size}", "GNU.sparse.numblocks": "1", "GNU.sparse.map": f"{size},0"}
    whole = path.read_bytes().rstrip(b"\0")
    whole += bytes(-len(whole) % 512) + member.tobuf(tarfile.PAX_FORMAT) + bytes(1024)
    path.write_bytes(whole)
    problems = folder.check(digests=True).problems
    assert [one.kind for one in problems] == ["archive-malformed"]
    assert "unpack the archive" in problems[0].message


# --- checking and repairing -------------------------------------------------------------------------------------------


def test_check(tmp_path: Path, folder: BagFolder) -> None:
    """Every bag is validated, and every other file is accounted for."""
    for name in ("ok", "changed", "missing", "undeclared"):
        folder.put(name, tmp_path / "given")
    base = Path(folder.root)
    (base / "changed/data/a").write_bytes(b"b")
    (base / "missing/data/a").unlink()
    (base / "undeclared/bagit.txt").unlink()
    write(base, {"beside": b"", "dir/beside": b"", "emp/ty": None})
    (base / "link").symlink_to("ok")
    os.mkfifo(base / "pipe")
    seen: list[Any] = []
    report = folder.check(digests=True, progress=listening(on_problem=seen.append))
    assert seen == report.problems
    assert [(one.kind, one.path) for one in report.problems if one.severity == "error"] == [
        ("checksum-mismatch", "changed/data/a"),
        ("link", "link"),
        ("file-missing", "missing/data/a"),
        ("oxum-mismatch", "missing/bag-info.txt"),
        ("special-file", "pipe"),
        ("declaration-missing", "undeclared/bagit.txt"),
        ("file-missing", "undeclared/bagit.txt"),
    ]
    assert [(one.kind, one.path) for one in report.problems if one.severity == "warning"] == [
        ("beside", "beside"),
        ("beside", "dir/beside"),
        ("empty", "emp/ty"),
    ]
    assert (report.counts["objects"], report.counts["proper"]) == (4, 3)
    # Checksums are verified only on request.
    assert ("checksum-mismatch", "changed/data/a") not in [(one.kind, one.path) for one in folder.check().problems]
    assert [record.id for record in folder.objects(ignore=["un*"])] == ["changed", "missing", "ok"]


def test_repair(tmp_path: Path, folder: BagFolder) -> None:
    """A repair finishes interrupted replacements and removes leftovers and empty directories; it is idempotent."""
    for name in ("abc", "def"):
        folder.put(name, tmp_path / "given")
    base = Path(folder.root)
    os.rename(base / "abc", base / "abc.pressmark-old")
    shutil.copytree(base / "def", base / "def.pressmark-old")
    write(base, {".pressmark-work/0123/lock": b"", ".pressmark-work/0123/bag/x": b"", "emp/ty": None})
    assert [(record.id, record.path) for record in folder.objects()] == [("abc", "abc.pressmark-old"), ("def", "def")]
    assert data(folder, "abc") == data(folder, "def") == {"a": b"a", "b/c": b"c"}
    assert kinds(folder, digests=True) == ["empty", "leftover", "leftover", "unfinished"]
    before = snapshot(base)
    announced: list[object] = []
    done: list[object] = []
    assert folder.repair(dry_run=True, progress=EventListener(announced.append)).problems == []
    assert snapshot(base) == before
    assert folder.repair(progress=EventListener(done.append)).problems == []
    assert done == announced
    assert sorted(os.listdir(base)) == [os.fsdecode(CONFIG), "abc", "def"]
    assert kinds(folder, digests=True) == []
    assert folder.repair(progress=EventListener(lambda event: pytest.fail(str(event)))).counts["repaired"] == 0


def test_replaced_in_steps(tmp_path: Path, folder: BagFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an atomic exchange, the old bag stays readable until the new one is in place."""
    folder.put("abc", tmp_path / "given")
    monkeypatch.setattr("pressmark.fs.moves.exchange", lambda _one, _other: False)
    folder.put("abc", tmp_path / "f.txt", replace=True)
    assert data(folder, "abc") == {"f.txt": b"data"}
    assert sorted(os.listdir(folder.root)) == [os.fsdecode(CONFIG), "abc"]
    os.rename(Path(folder.root, "abc"), Path(folder.root, "abc.pressmark-old"))
    folder.put("abc", tmp_path / "given", replace=True)
    assert data(folder, "abc") == {"a": b"a", "b/c": b"c"}
    assert sorted(os.listdir(folder.root)) == [os.fsdecode(CONFIG), "abc"]


def test_the_old_bag_is_left_beside_the_new_one(
    tmp_path: Path, folder: BagFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old bag left by a killed run does not block another change and is not listed afterwards."""
    monkeypatch.setattr("pressmark.fs.moves.exchange", lambda _one, _other: False)
    folder.put("abc", tmp_path / "given")
    path = Path(folder.root, "abc")
    shutil.copytree(path, f"{path}.pressmark-old")
    folder.put("abc", tmp_path / "f.txt", replace=True)
    assert data(folder, "abc") == {"f.txt": b"data"}
    assert sorted(os.listdir(folder.root)) == [os.fsdecode(CONFIG), "abc"]
    shutil.copytree(path, f"{path}.pressmark-old")
    folder.delete("abc")
    assert os.listdir(folder.root) == [os.fsdecode(CONFIG)]


def test_repair_of_equal_names(tmp_path: Path, folder: BagFolder) -> None:
    """Leftovers of killed runs in different directories may have the same name."""
    folder.put("abc", tmp_path / "given")
    for above in ("x", "y"):
        Path(folder.root, above).mkdir()
        for name in ("abc", "abc.pressmark-old"):
            shutil.copytree(Path(folder.root, "abc"), Path(folder.root, above, name))
    folder.repair()
    assert [os.listdir(Path(folder.root, above)) for above in ("x", "y")] == [["abc"], ["abc"]]


def test_a_dry_run_while_another_run_prunes(folder: BagFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dry run ignores directories that another run removes meanwhile."""
    empty = Path(folder.root, "ab")
    empty.mkdir()
    walk = BagWalk.items

    def gone(self: BagWalk, threads: Any = None) -> Any:
        items = list(walk(self, threads))
        if empty.exists():
            empty.rmdir()
        return items

    monkeypatch.setattr(BagWalk, "items", gone)
    assert folder.repair(dry_run=True).problems == []


@pytest.mark.usefixtures("stuck")
def test_a_repair_continues_after_a_refused_directory(folder: BagFolder) -> None:
    """A repair reports a directory that it cannot remove and repairs the rest."""
    for name in ("a", "stuck", "z"):
        Path(folder.root, name).mkdir()
    report = folder.repair()
    assert sorted(os.listdir(folder.root)) == [os.fsdecode(CONFIG), "stuck"]
    assert [(one.kind, one.path) for one in report.problems] == [("unrepaired", "stuck"), ("empty", "stuck")]
    assert report.counts["repaired"] == 2


def test_another_run_finishes_first(tmp_path: Path, folder: BagFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repair continues if another run finishes the replacement first."""
    folder.put("abc", tmp_path / "given")
    os.rename(Path(folder.root, "abc"), Path(folder.root, "abc.pressmark-old"))
    walk = BagWalk.items

    def finished(self: BagWalk, threads: Any = None) -> Any:
        items = list(walk(self, threads))
        monkeypatch.setattr(BagWalk, "items", walk)
        BagFolder(folder.root).repair()
        return items

    monkeypatch.setattr(BagWalk, "items", finished)
    report = folder.repair()
    assert (report.problems, report.counts["repaired"]) == ([], 0)
    assert data(folder, "abc") == {"a": b"a", "b/c": b"c"}


def test_replaced_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading an identifier during a replacement finds the new bag, not a leftover."""
    folder = BagFolder.create(tmp_path / "placed", pressmark.layout("0004"))
    write(tmp_path, {"given/a": b"a", "f.txt": b"data"})
    folder.put("a/b", tmp_path / "given")
    path = os.fsencode(folder.get("a/b").bag_path)
    surveyed = reader.read_tag_files

    def replaced(base: Any, problems: list[Any]) -> Any:
        monkeypatch.setattr(reader, "read_tag_files", surveyed)
        os.rename(path, tmp_path / "gone")
        BagFolder(folder.root).put("a/b", tmp_path / "f.txt")
        shutil.rmtree(tmp_path / "gone")
        return surveyed(base, problems)

    monkeypatch.setattr(reader, "read_tag_files", replaced)
    assert data(folder, "a/b") == {"f.txt": b"data"}


def test_found_while_it_is_replaced_in_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that misses the old bag during a replacement in steps finds the new one."""
    folder = BagFolder.create(tmp_path / "placed", pressmark.layout("0002"))
    write(tmp_path / "given", {"a": b"a", "b/c": b"c"})
    folder.put("abc", tmp_path / "given")
    path = Path(folder.root, "abc")
    os.rename(path, tmp_path / "aside")
    looked = BagWalk.has_identifier

    def moved(self: BagWalk, directory: bytes, identifier: str) -> bool:
        found = looked(self, directory, identifier)
        if not path.exists():
            os.rename(tmp_path / "aside", path)
        return found

    monkeypatch.setattr(BagWalk, "has_identifier", moved)
    assert data(folder, "abc") == {"a": b"a", "b/c": b"c"}


def test_a_folder_fills_in_linear_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Existing bags are not read again for each new bag, even if two runs alternate."""
    read: list[bytes] = []
    read_tag_files = reader.read_tag_files

    def counted(base: Any, problems: Any) -> Any:
        read.append(base.path)
        return read_tag_files(base, problems)

    monkeypatch.setattr(reader, "read_tag_files", counted)
    (tmp_path / "file").write_bytes(b"data")
    folders = [BagFolder.create(tmp_path / "bags"), BagFolder(tmp_path / "bags")]
    count = 40
    for number in range(count):
        folders[number % 2].put(f"id:{number}", tmp_path / "file")
    # Once by this run, and once by the other.
    assert len(read) <= 3 * count
    # Changes by others are found: new bags, renamed bags, and bags under another bag's name.
    bags = tmp_path / "bags"
    (bags / "deeper").mkdir()
    bagit.create([tmp_path / "file"], bags / "deeper" / "foreign", info={"External-Identifier": "id:foreign"})
    assert "/deeper/foreign/" in folders[0].get("id:foreign").path
    with pytest.raises(ObjectError, match="bag exists at"):
        BagFolder(bags).put("id:foreign", tmp_path / "file")
    (bags / "deeper" / "foreign").rename(bags / "elsewhere")
    assert "/elsewhere/" in folders[0].get("id:foreign").path
    path = Path(folders[0].get("id:7").path).parent
    shutil.rmtree(path)
    (bags / "elsewhere").rename(path)
    for folder in folders:
        assert Path(folder.get("id:foreign").path).parent == path
        with pytest.raises(ObjectError, match="no bag with this identifier"):
            folder.get("id:7")


def test_a_bag_added_within_one_time_stamp(tmp_path: Path) -> None:
    """A bag that appears within one time stamp of the file system is found (some have steps of two seconds)."""
    folder = BagFolder.create(tmp_path / "bags")
    with pytest.raises(ObjectError, match="no bag with this identifier"):
        folder.get("id:foreign")
    before = (tmp_path / "bags").stat().st_mtime_ns
    (tmp_path / "file").write_bytes(b"data")
    bagit.create([tmp_path / "file"], tmp_path / "bags" / "foreign", info={"External-Identifier": "id:foreign"})
    os.utime(tmp_path / "bags", ns=(before, before))
    assert folder.get("id:foreign").id == "id:foreign"


def test_serialized_bags_with_any_extension() -> None:
    """A serialized bag is found by its name with each extension in lower or upper case, and nothing else is tried."""
    found = archives.SERIALIZED
    assert found[:7] == (b".zip", b".tar", b".tar.gz", b".tgz", b".tar.zst", b".tar.bz2", b".tar.xz")
    assert len(found) == len(set(found)) == 14
    assert {archives.stem(b"a" + ending) for ending in found} == {b"a"}


def fail(patch: pytest.MonkeyPatch, at: Path) -> None:
    """Make the file system fail on one name."""

    def failing(real: Callable[..., Any]) -> Callable[..., Any]:
        def look(path: Any, *args: Any, **options: Any) -> Any:
            if not isinstance(path, int) and os.fsdecode(path) in (str(at), at.name):
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), path)
            return real(path, *args, **options)

        return look

    for call in (os.stat, os.lstat):
        patch.setattr(os, call.__name__, failing(call))


@pytest.mark.skipif(os.name != "posix", reason="elsewhere other calls look")
@pytest.mark.parametrize("what", ["abc", "abc/bag-info.txt", "abc/bagit.txt"])
def test_an_inaccessible_bag(tmp_path: Path, folder: BagFolder, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """A bag that cannot be read is not reported as missing, foreign or a file; the other bags are listed."""
    for identifier in ("abc", "b/c"):
        folder.put(identifier, tmp_path / "f.txt")
    os.rename(Path(folder.root) / "b=c", Path(folder.root) / "bc")
    record = next(folder.objects())
    before = snapshot(tmp_path)
    at = Path(folder.root) / what
    if at.name.endswith(".txt"):
        at.rename(tmp_path / "kept")
        at.mkdir()  # a directory, which no user can read as a file
    with monkeypatch.context() as patch:
        if what == "abc":
            fail(patch, at)
            with pytest.raises(ObjectError, match="Stale file handle"):
                folder.locate(record)
            assert [one.kind for one in validated(folder.walk, record, False, None, Report())] == ["unreadable"]
        changes: list[Callable[[], object]] = [
            lambda: folder.get("abc"),
            lambda: folder.delete("abc"),
            lambda: folder.put("abc", tmp_path / "f.txt", replace=True),
        ]
        for change in changes:
            with pytest.raises(ObjectError, match=r"Stale file handle|is a directory") as caught:
                change()
            assert caught.value.kind in ("unreadable", "io-error")
        assert [one.id for one in folder.objects()] == [None, "b/c"]
        assert not folder.check().ok
    if at.name.endswith(".txt"):
        at.rmdir()
        (tmp_path / "kept").rename(at)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("archive", ["abc.zip", "abc.tar", "abc.tgz"])
def test_an_unreadable_serialized_bag(
    tmp_path: Path, folder: BagFolder, monkeypatch: pytest.MonkeyPatch, archive: str
) -> None:
    """An unreadable serialized bag is not reported as missing, and no second bag is put beside it."""
    folder.put("abc", tmp_path / "f.txt")
    path = serialize(folder, "abc", archive)
    before = snapshot(tmp_path)

    def failing(at: bytes) -> Any:
        raise BagError(at, "Permission denied") from PermissionError(errno.EACCES, os.strerror(errno.EACCES), at)

    changes: list[Callable[[], object]] = [
        lambda: folder.get("abc"),
        lambda: folder.delete("abc"),
        lambda: folder.put("abc", tmp_path / "f.txt"),
    ]
    with monkeypatch.context() as patch:
        patch.setattr(archives, "open_archive", failing)
        for change in changes:
            with pytest.raises(ObjectError, match="Permission denied") as caught:
                change()
            assert caught.value.kind == "permission"
        assert kinds(folder) == ["archive-malformed", "archive-unchecked"]
    assert snapshot(tmp_path) == before
    path.write_bytes(b"no archive")
    with pytest.raises(ObjectError, match="no bag with this identifier"):
        folder.get("abc")


@pytest.mark.skipif(os.name != "posix", reason="elsewhere other calls look")
def test_an_inaccessible_folder(folder: BagFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreadable folder is not reported as missing."""
    fail(monkeypatch, Path(folder.root))
    with pytest.raises(StoreError, match="Stale file handle"):
        BagFolder(folder.root)


@pytest.mark.skipif(os.name != "posix", reason="elsewhere other calls look")
def test_an_inaccessible_new_bag(tmp_path: Path, folder: BagFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the new bag is unreadable, the old one beside it is not used or repaired; delete removes both or none."""
    folder.put("abc", tmp_path / "given")
    new, old = Path(folder.root) / "abc", Path(folder.root) / "abc.pressmark-old"
    shutil.copytree(new, old)
    with monkeypatch.context() as patch:
        fail(patch, new)
        assert [record.id for record in folder.objects()] == [None]
        assert "unreadable" in [one.kind for one in folder.repair().problems]
    before = snapshot(tmp_path)
    with monkeypatch.context() as patch:
        fail(patch, old)
        with pytest.raises(ObjectError, match="Stale file handle"):
            folder.delete("abc")
    assert snapshot(tmp_path) == before


def test_an_old_bag_beside_another(tmp_path: Path, folder: BagFolder) -> None:
    """An old bag whose name another bag has taken is not reported as replaced."""
    for identifier in ("abc", "b"):
        folder.put(identifier, tmp_path / "f.txt")
    os.rename(Path(folder.root) / "abc", Path(folder.root) / "abc.pressmark-old")
    os.rename(Path(folder.root) / "b", Path(folder.root) / "abc")
    before = snapshot(tmp_path)
    with pytest.raises(ObjectError, match="path 'abc' is occupied by another object") as caught:
        folder.put("abc", tmp_path / "given", replace=True)
    assert caught.value.kind == "collision"
    assert snapshot(tmp_path) == before


def test_one_path_inside_another(tmp_path: Path) -> None:
    """The text names the bag that the path is inside of, or says that the path is one of other bags."""
    for first, second, reason in (
        ("a", "a/b", "path 'a/b' is inside the bag 'a'; use another layout"),
        ("a/b", "a", "path 'a' contains other objects or files; use another layout"),
    ):
        flat = BagFolder.create(tmp_path / first.replace("/", "-"), "0002")
        flat.put(first, {"f": b"data"})
        with pytest.raises(ObjectError) as caught:
            flat.put(second, {"f": b"data"})
        assert (caught.value.kind, caught.value.reason) == ("collision", reason)
        assert [one.id for one in flat.objects()] == [first]


@pytest.mark.parametrize("name", [".pressmark-bag", ".pressmark-bag/x", ".pressmark-bag/new/x"])
def test_reserved_names(tmp_path: Path, folder: BagFolder, name: str) -> None:
    """In the payload, the name of the hidden directory of a change is one like any other: nothing is removed."""
    for number, inside in enumerate((name, f"below/{name}")):
        folder.put(f"abc{number}", {inside: tmp_path / "f.txt", "f": tmp_path / "f.txt"})
        assert (Path(folder.root) / f"abc{number}" / "data" / inside).read_bytes() == (tmp_path / "f.txt").read_bytes()
    assert folder.check(digests=True).ok
