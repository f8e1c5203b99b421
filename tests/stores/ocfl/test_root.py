"""Storage roots: create and open; put, get and remove objects; and every refusal."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pressmark import DirectClean, IdentifierError, Pairtree, Vitro, layout
from pressmark.errors import ObjectError, StoreError, quoted
from pressmark.stores.ocfl.ocfl_object import OcflObject
from pressmark.stores.ocfl.root import OcflRoot

from .samples import CREATED, LAYOUTS, USER, at, create, files_of, kinds, reopened, source, tree

pytestmark = pytest.mark.usefixtures("every_storage")


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("word", LAYOUTS)
def test_what_a_new_root_holds(tmp_path: Path, word: str, version: str) -> None:
    """A new root holds the files of the specification, with every parameter written out, and opens again."""
    chosen = LAYOUTS[word]
    folder = tmp_path / "root"
    if word.startswith("0010") and version == "1.0":
        with pytest.raises(StoreError, match=r"needs OCFL 1\.1"):
            OcflRoot.create(folder, chosen, version=version)
        assert not folder.exists()
        return
    made = OcflRoot.create(folder, chosen, version=version)
    assert made.layout == OcflRoot(folder).layout == chosen
    assert made.version == version
    found = tree(folder)
    if chosen.parameters():
        config = found.pop(f"extensions/{chosen.name}/config.json")
        assert json.loads(config or b"") == chosen.config()
        assert found.pop("extensions") is found.pop(f"extensions/{chosen.name}") is None
    described = json.loads(found.pop("ocfl_layout.json") or b"")
    assert described["extension"] == chosen.name
    assert described["description"]
    assert found == {f"0=ocfl_{version}": f"ocfl_{version}\n".encode()}
    assert made.check().problems == []
    assert list(made.objects()) == []


def test_an_object_as_it_is_stored(tmp_path: Path) -> None:
    """A stored object has one version, one file per digest, sidecars and the known digests, byte for byte."""
    root = create(tmp_path / "root", "0003")
    record = root.put(
        "urn:x:1", source(tmp_path / "in"), created=CREATED, message="because", fixity={"md5": {"a.txt": MD5["one"]}}
    )
    assert record == ("urn:x:1", PLACE, True, None, (), None, None, False)
    assert record.record() == {"id": "urn:x:1", "path": PLACE, "proper": True, "encapsulation": None, "problems": []}
    found = tree(at(root) / PLACE)
    inventory = found.pop("inventory.json") or b""
    assert found.pop("v1/inventory.json") == inventory
    assert found.pop("v1/inventory.json.sha512") == found.pop("inventory.json.sha512")
    assert found == {
        "0=ocfl_object_1.1": b"ocfl_object_1.1\n",
        "v1": None,
        "v1/content": None,
        "v1/content/a.txt": b"one",
        "v1/content/deep": None,
        "v1/content/deep/er": None,
        "v1/content/deep/er/b.txt": b"two",
    }
    assert json.loads(inventory) == {
        "id": "urn:x:1",
        "type": "https://ocfl.io/1.1/spec/#inventory",
        "digestAlgorithm": "sha512",
        "head": "v1",
        "manifest": {SHA512["one"]: ["v1/content/a.txt"], SHA512["two"]: ["v1/content/deep/er/b.txt"]},
        "versions": {
            "v1": {
                "created": CREATED,
                "message": "because",
                "user": USER,
                "state": {SHA512["one"]: ["a.txt", "same.txt"], SHA512["two"]: ["deep/er/b.txt"]},
            }
        },
        "fixity": {"md5": {MD5["one"]: ["v1/content/a.txt"]}},
    }
    assert root.check(digests=True).problems == []


PLACE = "8a5/267/071/urn%3ax%3a1"
MD5 = {"one": "f97c5d29941bfb1b2fdab0874906ab82"}
SHA512 = {
    "one": "05f70341078acf6a06d423d21720f9643d5f953626d88a02636dc3a9e79582aeb0c820857fd3f8dc502aa8360d2c8fa97a985fda5b"
    "629b809cad18ffb62d3899",
    "two": "928d50d1e24dab7cca62cfe84fcdcf9fc695160a278f91b5c0af22b709d82f8aa3b4955b3de9ba6d0a0eb7d932dc64c4d5c63fc2de"
    "87441ad2e5b929f9b67c5e",
}


def test_files_of_an_object(tmp_path: Path) -> None:
    root = create(tmp_path / "root", algorithm="sha256")
    root.put("x:1", source(tmp_path / "in"))
    found = root.get("x:1")
    assert found.id == "x:1"
    assert [name for name, _path in found.files()] == ["a.txt", "deep/er/b.txt", "same.txt"]
    assert contents(found) == {"a.txt": b"one", "deep/er/b.txt": b"two", "same.txt": b"one"}
    with found.open("same.txt") as file:
        assert file.read() == b"one"
    for name in ("", "none", "deep", "../a.txt", "v1/content/a.txt"):
        with pytest.raises(ObjectError, match="not found in the object") as caught:
            found.open(name)
        assert caught.value.kind == "missing"
    assert kinds(root.check(digests=True)) == []


def contents(found: OcflObject) -> dict[str, bytes]:
    return files_of(found)


SOURCES: list[tuple[Callable[[Path], Any], dict[str, bytes]]] = [
    (lambda folder: folder / "a.txt", {"a.txt": b"one"}),
    (lambda folder: str(folder / "a.txt"), {"a.txt": b"one"}),
    (lambda folder: {"a.txt": b"one", "same": b"one"}, {"a.txt": b"one", "same": b"one"}),
    (lambda folder: folder / "deep", {"er/b.txt": b"two"}),
    (lambda folder: {"x/y": folder / "a.txt", "z": folder / "deep"}, {"x/y": b"one", "z/er/b.txt": b"two"}),
    (lambda folder: {}, {}),
    (lambda folder: folder / "empty", {}),
]


@pytest.mark.parametrize(("choose", "expected"), SOURCES)
def test_sources(tmp_path: Path, choose: Callable[[Path], Any], expected: Mapping[str, bytes]) -> None:
    """A source may be a file, a directory, named files or directories, or empty: an object without files is valid."""
    folder = source(tmp_path / "in")
    (folder / "empty").mkdir()
    root = create(tmp_path / "root")
    root.put("x", choose(folder))
    found = root.get("x")
    assert contents(found) == expected
    assert kinds(root.check(digests=True)) == []


def test_empty_directories_of_a_source_are_reported(tmp_path: Path) -> None:
    folder = source(tmp_path / "in")
    (folder / "deep/none").mkdir()
    record = create(tmp_path / "root").put("x", folder)
    [problem] = record.problems
    assert (problem.kind, problem.severity) == ("directory-empty", "warning")
    assert "'deep/none' not stored" in problem.message


def refusal(root: OcflRoot, identifier: str, given: Any, **options: Any) -> ObjectError:
    """Return the error of a put, and check that it left nothing."""
    before = tree(at(root))
    with pytest.raises(ObjectError) as caught:
        root.put(identifier, given, **options)
    assert tree(at(root)) == before
    assert "\n" not in str(caught.value)
    assert quoted(identifier) in str(caught.value)
    return caught.value


def test_sources_that_are_refused(tmp_path: Path) -> None:
    """An unusable source is refused as a whole; the message names the file and the remedy."""
    root = create(tmp_path / "root")
    folder = source(tmp_path / "in")
    cases: list[tuple[str, Callable[[Path], object], str]] = [
        ("source", lambda path: path.symlink_to("/etc/hostname"), "symbolic link not followed; follow links"),
        ("source", lambda path: path.symlink_to("/nowhere"), "symbolic link"),
        ("source", os.mkfifo, "move it out of the source"),
        ("bad-name", lambda path: (path.parent / "\udcff").write_bytes(b""), "is not UTF-8"),
    ]
    for number, (kind, make, words) in enumerate(cases):
        bad = folder / f"bad-{number}"
        make(bad)
        error = refusal(root, "x", folder)
        assert error.kind == kind
        assert words in str(error)
        for path in (bad, folder / "\udcff"):
            path.unlink(missing_ok=True)
    assert refusal(root, "x", tmp_path / "none").kind == "source"
    assert refusal(root, "x", {"a/../b": folder / "a.txt"}).kind == "bad-name"
    assert refusal(root, "x", {"/a": folder / "a.txt"}).kind == "bad-name"
    assert refusal(root, "x", {"a\0": folder / "a.txt"}).kind == "bad-name"
    assert refusal(root, "x", {"a": folder / "a.txt", "a/b": folder / "a.txt"}).kind == "collision"
    assert refusal(root, "x", {"a/b": folder / "a.txt", "a": folder / "a.txt"}).kind == "collision"
    assert refusal(root, "x", {"n" * 256: folder / "a.txt"}).kind == "bad-name"
    assert refusal(root, "x", folder, fixity={"md5": {"a.txt": "0" * 32}}).kind == "mismatch"
    assert refusal(root, "x", folder, fixity={"sha512": {"a.txt": "0" * 128}}).kind == "mismatch"
    assert refusal(root, "x", folder, fixity={"md5": {"none": "0" * 32}}).kind == "mismatch"
    with pytest.raises(StoreError, match="OCFL forbids hard links"):
        root.put("x", folder, copy_mode="hardlink")


def test_links_are_followed_on_request(tmp_path: Path) -> None:
    folder = source(tmp_path / "in")
    (folder / "link").symlink_to("a.txt")
    (folder / "links").symlink_to("deep")
    root = create(tmp_path / "root")
    root.put("x", folder, links="follow")
    assert [name for name, _path in root.get("x").files()] == [
        *("a.txt", "deep/er/b.txt", "link", "links/er/b.txt", "same.txt")
    ]
    assert kinds(root.check(digests=True)) == []
    (folder / "deep/loop").symlink_to("..")
    assert "symbolic link to a parent directory" in str(refusal(root, "y", folder, links="follow"))
    (folder / "deep/loop").unlink()
    (folder / "deep/loop").symlink_to(at(root))
    assert "cannot copy a directory into itself" in str(refusal(root, "y", folder, links="follow"))
    assert "cannot copy a directory into itself" in str(refusal(root, "y", {"deep": folder / "deep"}, links="follow"))


@pytest.mark.on_disk
def test_places_that_are_refused(tmp_path: Path) -> None:
    """Reserved, nested, occupied and too long paths are refused, and so are identifiers without a path."""
    file = source(tmp_path / "in") / "a.txt"
    flat = create(tmp_path / "flat", "0002")
    for identifier in ("extensions", "Extensions", "extensions/x", "ocfl_layout.json", "0=ocfl_1.0", "0=x/y"):
        assert refusal(flat, identifier, file).kind == "reserved"
    flat.put("a/b", file)
    assert refusal(flat, "a", file).kind == "object-inside"
    assert refusal(flat, "a/b/c", file).kind == "object-inside"
    assert refusal(flat, "a/b/v1/c", file).kind == "object-inside"
    assert refusal(flat, "a/b", file).kind == "exists"
    assert refusal(flat, "x" * 256, file).kind == "bad-name"
    assert "use another layout" in str(refusal(flat, "x" * 256, file))
    assert refusal(flat, "/".join(["x" * 200] * 30), file).kind == "bad-name"
    flat.put("x" * 255, file)
    with pytest.raises(IdentifierError, match="empty path segment"):
        flat.put("a//b", file)
    with pytest.raises(IdentifierError, match="not UTF-8"):
        flat.put(b"\xff", file)
    with pytest.raises(IdentifierError, match="not UTF-8"):
        flat.put("\udcff", file)
    # Decoded as command line arguments are without a UTF-8 locale.
    assert flat.put("\udcc3\udca4", file).id == "ä"
    assert flat.get("\udcc3\udca4").id == "ä"
    short = create(tmp_path / "short", "0006")
    short.put("one:x", file)
    error = refusal(short, "two:x", file)
    assert error.kind == "collision"
    assert "already used by object 'one:x'" in str(error)
    for call in (short.get, short.delete):
        with pytest.raises(ObjectError, match="already used by object") as caught:
            call("two:x")
        assert caught.value.kind == "collision"
    assert refusal(short, "two:x", file, replace=True).kind == "collision"
    assert [record.id for record in short.objects()] == ["one:x"]
    (tmp_path / "short" / "stray").write_bytes(b"x")
    assert refusal(short, "a:stray", file).kind == "collision"
    (tmp_path / "flat" / "stray").mkdir()
    flat.put("stray", file)  # an existing empty directory does not block a put
    (tmp_path / "flat" / "full").mkdir()
    (tmp_path / "flat" / "full" / "file").write_bytes(b"x")
    assert refusal(flat, "full", file).kind == "object-inside"
    (tmp_path / "flat" / "link").symlink_to(tmp_path)
    assert refusal(flat, "link/x", file).kind == "object-inside"
    assert refusal(flat, "link", file).kind == "collision"


def test_removing_leaves_no_trace(tmp_path: Path) -> None:
    """Deleting an object removes the empty directories above it and keeps the others."""
    root = create(tmp_path / "root", "0011")
    empty = tree(at(root))
    root.put("a/b/c", source(tmp_path / "in"))
    alone = tree(at(root))
    root.put("a/b/d/e", source(tmp_path / "in"))
    root.delete("a/b/d/e")
    assert tree(at(root)) == alone
    root.delete("a/b/c")
    assert tree(at(root)) == empty
    for call in (root.get, root.delete):
        with pytest.raises(ObjectError, match="object not found") as caught:
            call("a/b/c")
        assert caught.value.kind == "missing"


def test_an_object_with_another_inside_is_not_removed(tmp_path: Path) -> None:
    root = create(tmp_path / "root", "0002")
    root.put("a", source(tmp_path / "in"))
    root.put("b", source(tmp_path / "in"))
    (at(root) / "b").rename(at(root) / "a/b")
    before = tree(at(root))
    with pytest.raises(ObjectError, match="possibly other objects") as caught:
        root.delete("a")
    assert caught.value.kind == "object-inside"
    assert tree(at(root)) == before


# --- versions ---------------------------------------------------------------------------------------------------------


def test_replacing_makes_a_version(tmp_path: Path) -> None:
    """A replacement adds a version with only new content, and leaves no hard link."""
    root = create(tmp_path / "root", "0002")
    root.put("x", source(tmp_path / "one"), created=CREATED)
    before = tree(at(root) / "x")
    root.put("x", {"new": tmp_path / "one/a.txt", "b": source(tmp_path / "two", {"b": b"b"}) / "b"}, replace=True)
    after = tree(at(root) / "x")
    assert {name: after[name] for name in before if name.startswith("v1")} == {
        name: data for name, data in before.items() if name.startswith("v1")
    }
    assert sorted(after.keys() - before.keys()) == [
        *("v2", "v2/content", "v2/content/b", "v2/inventory.json", "v2/inventory.json.sha512")
    ]
    found = root.get("x")
    assert contents(found) == {"new": b"one", "b": b"b"}
    assert list(found.inventory["versions"]) == ["v1", "v2"]
    assert kinds(root.check(digests=True)) == []
    # Only removed and renamed files: no content directory.
    root.put("x", {"b": tmp_path / "two/b"}, replace=True)
    assert not (at(root) / "x/v3/content").exists()
    assert kinds(root.check(digests=True)) == []
    # An unchanged object gets no new version.
    root.put("x", {"b": tmp_path / "two/b"}, replace=True)
    assert root.get("x").inventory["head"] == "v3"
    root.put("y", {"b": tmp_path / "two/b"}, replace=True)
    assert root.get("y").inventory["head"] == "v1"
    assert sorted(record.id or "" for record in root.objects()) == ["x", "y"]


# --- content paths ----------------------------------------------------------------------------------------------------


def test_extension_0011_inside_objects(tmp_path: Path) -> None:
    """Logical paths are unchanged, content paths are cleaned, and the object records the layout."""
    clean = DirectClean(max_path_segment_len=40)
    root = create(tmp_path / "root", "0002", content_paths=clean)
    names = {"~ what? is*this": b"a", "x" * 300: b"b", "tab\tnew\nline": b"c"}
    (tmp_path / "in").mkdir()
    given = {}
    for number, (name, data) in enumerate(names.items()):
        (tmp_path / "in" / str(number)).write_bytes(data)
        given[name] = tmp_path / "in" / str(number)
    root.put("x", given)
    found = root.get("x")
    assert contents(found) == names
    stored = {path.split("/v1/content/")[1] for _name, path in found.files()}
    assert stored == {clean.map_id(name) for name in names}
    config = at(root) / "x/extensions" / clean.name / "config.json"
    assert json.loads(config.read_bytes()) == clean.config()
    assert kinds(root.check(digests=True)) == []
    (tmp_path / "in/9").write_bytes(b"d")
    error = refusal(root, "y", {"a:b": given["tab\tnew\nline"], "a*b": tmp_path / "in/9"})
    assert error.kind == "collision"
    assert "encodeUTF" in str(error)
    with pytest.raises(StoreError, match="does not map content paths"):
        reopened(root, content_paths=layout("0003"))


# --- bad roots --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "words"),
    [(Pairtree(), "pairtree is not an OCFL layout"), (Vitro(), "vitro is not an OCFL layout")],
)
def test_other_layouts_are_refused(tmp_path: Path, chosen: Any, words: str) -> None:
    with pytest.raises(StoreError, match=words):
        OcflRoot.create(tmp_path / "root", chosen)
    assert not (tmp_path / "root").exists()


@pytest.mark.on_disk
def test_roots_are_not_made_over_something(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_bytes(b"x")
    with pytest.raises(StoreError, match="contains 'file'"):
        create(tmp_path / "full")
    with pytest.raises(StoreError, match=r"contains '0=ocfl_1\.1'"):
        create(create(tmp_path / "root").root and tmp_path / "root")
    with pytest.raises(StoreError, match="not a directory"):
        create(tmp_path / "full/file")
    with pytest.raises(StoreError, match="not supported; use one of"):
        create(tmp_path / "new", version="2.0")
    # Leftovers of a killed creation do not block it.
    (tmp_path / "root/0=ocfl_1.1").unlink()
    assert create(tmp_path / "root", "0004").check().problems == []


LAYOUT_FILES: list[tuple[str, bytes, str, str]] = [
    (
        "unknown",
        b'{"extension": "0099-new-layout", "description": "x"}',
        "unknown layout '0099-new-layout'",
        "layout-unknown",
    ),
    ("pairtree", b'{"extension": "pairtree", "description": "x"}', "pairtree is not an OCFL layout", "layout-unknown"),
    ("no JSON", b"{", "is not valid JSON", "layout-malformed"),
    ("a list", b"[]", "is not a JSON object", "layout-malformed"),
    ("extension", b'{"description": "x"}', "does not specify an extension", "layout-malformed"),
    ("upward", b'{"extension": "../x", "description": "x"}', "extension", "layout-unknown"),
    (
        "required",
        b'{"extension": "0006-flat-omit-prefix-storage-layout", "description": "x"}',
        "delimiter: required",
        "layout-unknown",
    ),
    ("absent", b"", "no ocfl_layout.json", "layout-missing"),
]


@pytest.mark.parametrize(
    ("data", "words", "kind"), [case[1:] for case in LAYOUT_FILES], ids=[case[0] for case in LAYOUT_FILES]
)
def test_roots_without_a_known_layout(tmp_path: Path, data: bytes, words: str, kind: str) -> None:
    """An unknown layout is reported; only new objects need the layout."""
    root = create(tmp_path / "root")
    root.put("x:1", source(tmp_path / "in"))
    path = at(root) / "ocfl_layout.json"
    path.write_bytes(data)
    if not data:
        path.unlink()
    opened = reopened(root)
    assert opened.layout is None
    assert [record.id for record in opened.objects()] == ["x:1"]
    report = opened.check()
    assert kind in [problem.kind for problem in report.problems]
    assert opened.get("x:1").id == "x:1"
    with pytest.raises(StoreError, match=r"specify a known layout \(layout=\)") as caught:
        opened.put("x:1", tmp_path / "in")
    assert words in str(caught.value)
    given = reopened(root, layout=LAYOUTS["0003"])
    assert given.get("x:1").id == "x:1"
    assert kind == "layout-malformed" or given.check().ok


@pytest.mark.on_disk
def test_a_configuration_that_is_refused(tmp_path: Path) -> None:
    create(tmp_path / "root")
    config = tmp_path / "root/extensions" / LAYOUTS["0003"].name / "config.json"
    for document, words in [
        ({"extensionName": LAYOUTS["0003"].name, "tupleSize": 99}, "tupleSize"),
        ({"extensionName": LAYOUTS["0003"].name, "size": 3}, "size"),
        ({"extensionName": LAYOUTS["0004"].name}, "extensionName"),
    ]:
        config.write_text(json.dumps(document))
        opened = OcflRoot(tmp_path / "root")
        with pytest.raises(StoreError, match=words):
            opened.put("x", {"a": b"x"})
        assert kinds(opened.check()) == ["layout-unknown"]
    config.unlink()
    assert OcflRoot(tmp_path / "root").layout == LAYOUTS["0003"]


def test_directories_that_are_no_roots(tmp_path: Path) -> None:
    for path, words in [
        (tmp_path / "none", "No such file"),
        (tmp_path, "not an OCFL storage root: no 0=ocfl_1.1 or 0=ocfl_1.0"),
        (Path("/etc/hostname"), "Not a directory"),
    ]:
        with pytest.raises(StoreError, match=words):
            OcflRoot(path)
    (tmp_path / "0=ocfl_2.0").write_text("ocfl_2.0\n")
    with pytest.raises(StoreError, match=r"unsupported declaration '0=ocfl_2\.0': no"):
        OcflRoot(tmp_path)
    with pytest.raises(StoreError, match="use sha512 or sha256"):
        create(tmp_path / "root", algorithm="md5")


@pytest.mark.on_disk
def test_an_undeclared_root_is_checked_and_never_written(tmp_path: Path) -> None:
    root = create(tmp_path / "root")
    root.put("info:x/1", source(tmp_path / "in"))
    (at(root) / "0=ocfl_1.1").unlink()
    before = tree(at(root))
    undeclared = reopened(root, undeclared=True)
    assert [(one.kind, one.code) for one in undeclared.check().errors] == [("declaration-missing", "E069")]
    assert [record.id for record in undeclared.objects()] == ["info:x/1"]
    for change in (
        lambda: undeclared.put("info:x/2", tmp_path / "in"),
        lambda: undeclared.delete("info:x/1"),
        lambda: undeclared.ingest().__enter__(),
    ):
        with pytest.raises(StoreError, match="not an OCFL storage root"):
            change()
    assert tree(at(root)) == before
    assert OcflRoot(create(tmp_path / "other").root, undeclared=True).put("info:x/1", tmp_path / "in").proper


@pytest.mark.on_disk
def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk leaves nothing of the object, the error names the remedy, and the next put succeeds."""
    root = create(tmp_path / "root")
    folder = source(tmp_path / "in", {"a": b"x" * 100_000, "b": b"y"})
    real, left = os.write, 50_000

    def write(descriptor: int, data: bytes) -> int:
        nonlocal left
        if len(data) > left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left -= len(data)
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    error = refusal(root, "x", folder)
    assert error.kind == "no-space"
    assert "free disk space" in str(error)
    monkeypatch.undo()
    root.put("x", folder)
    assert kinds(root.check(digests=True)) == []


@pytest.mark.on_disk
@pytest.mark.parametrize("sign", ["0=ocfl_object_1.1", "inventory.json"])
def test_no_object_in_what_may_be_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sign: str) -> None:
    """A put below a directory that may be an object is refused if that cannot be determined."""
    root = create(tmp_path / "root", "0002")
    folder = at(root) / "a"
    folder.mkdir()
    (folder / sign).write_bytes(b"")
    look = os.lstat

    def refused(path: Any, **options: Any) -> os.stat_result:
        if os.path.basename(os.fsencode(path)) == sign.encode():
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return look(path, **options)

    monkeypatch.setattr(os, "lstat", refused)
    with pytest.raises(ObjectError) as caught:
        root.check_free("b", b"a/b")
    assert caught.value.kind == "permission"
