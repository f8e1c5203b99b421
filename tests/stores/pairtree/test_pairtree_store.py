"""Pairtrees: create, put, get, delete."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

import pressmark
import strategies
from pressmark import Pairtree, stores
from pressmark.errors import IdentifierError, LayoutConfigError, ObjectError, StoreError
from pressmark.fs.moves import remove_tree
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.progress_event import EventListener
from pressmark.stores.pairtree.pairtree_store import PairtreeStore
from support.implementations import Implementation, use
from support.in_bucket import read_both
from support.trees import snapshot, write

from ..conftest import Tree


def files(store: PairtreeStore, identifier: str | bytes) -> dict[str, bytes]:
    """Return the content of each file of an object; in a bucket, it must be the same."""

    def read(place: str) -> dict[str, bytes]:
        stored = PairtreeStore(place).get(identifier)
        return {name: stored.read_bytes(name) for name, _path in stored.files()}

    found = read_both(store.root, read)
    assert found == {name: Path(path).read_bytes() for name, path in store.get(identifier).files()}
    return found


def ids(store: PairtreeStore) -> list[str | None]:
    """Return the identifiers of all objects; in a bucket, they must be the same."""
    found = [record.id for record in store.objects()]
    if found:  # a bucket has no empty directories
        assert read_both(store.root, lambda place: [record.id for record in PairtreeStore(place).objects()]) == found
    return found


# --- creating and opening ---------------------------------------------------------------------------------------------


def test_create(tmp_path: Path) -> None:
    """The initiation files follow the specification, and the prefix is read back exactly."""
    store = stores.PairtreeStore.create(tmp_path / "a" / "b", prefix="http://n2t.info/ark:/13030/xt2", durable=False)
    assert isinstance(store, PairtreeStore)
    base = tmp_path / "a" / "b"
    assert snapshot(base) == {
        b"pairtree_root": None,
        b"pairtree_prefix": b"http://n2t.info/ark:/13030/xt2",
        b"pairtree_version0_1": b"This directory conforms to Pairtree Version 0.1. Updated spec:\n"
        b"http://www.cdlib.org/inside/diglib/pairtree/pairtreespec.html\n",
    }
    write(tmp_path, {"f": b"x"})
    record = store.put("http://n2t.info/ark:/13030/xt2aacd", tmp_path / "f")
    assert record.path == "pairtree_root/aa/cd"
    with pytest.raises(IdentifierError, match="prefix"):
        store.put("aacd", tmp_path / "f")
    assert PairtreeStore(base, prefix_required=False).layout.map_id("aacd") == "aa/cd"
    again = stores.open(base / "pairtree_root")
    assert isinstance(again, PairtreeStore)
    assert [record.id for record in again.objects()] == ["http://n2t.info/ark:/13030/xt2aacd"]
    assert stores.open(base).check().ok
    assert stores.open(base).kind == stores.kind_of(base) == "pairtree"
    with pytest.raises(StoreError, match="specify an empty"):
        stores.create("pairtree", base)


def test_create_by_layout(tmp_path: Path) -> None:
    """The store uses the layout's prefix and encapsulation; another kind of layout is refused."""
    layout = Pairtree("p:", "fixed:thingy")
    store = PairtreeStore.create(tmp_path / "a", layout)
    assert (store.prefix, store.layout) == ("p:", layout)
    with pytest.raises(StoreError, match="not vitro"):
        PairtreeStore.create(tmp_path / "b", pressmark.layout("vitro"))


def test_create_beside_the_prefix_of_another(tmp_path: Path) -> None:
    """An existing prefix file of a tree without a root is not overwritten."""
    write(tmp_path, {"tree/pairtree_prefix": b"a:"})
    for prefix in ("", "b:"):
        with pytest.raises(StoreError, match="pairtree_root is missing"):
            PairtreeStore.create(tmp_path / "tree", prefix=prefix)
    assert snapshot(tmp_path / "tree") == {b"pairtree_prefix": b"a:"}
    assert PairtreeStore.create(tmp_path / "tree", prefix="a:").prefix == "a:"


@pytest.mark.parametrize("prefix", [" a", "a\n", "a\nb", "\ufeffa", "a\0", "a" * 5000, "\ud800"])
def test_prefixes_that_would_be_read_back_differently(tmp_path: Path, prefix: str) -> None:
    """A prefix that would be read back differently is refused, and nothing is created."""
    with pytest.raises(StoreError):
        PairtreeStore.create(tmp_path / "a", prefix=prefix)
    assert os.listdir(tmp_path) == []
    assert PairtreeStore.create(tmp_path / "a", prefix="b").prefix == "b"


@pytest.mark.parametrize(
    ("data", "prefix"),
    [(b"", ""), (b"a\n", "a"), (b"\xef\xbb\xbf a:b/\r\n", "a:b/"), ("é\t".encode(), "é")],
)
def test_prefixes_with_white_space(tree: Tree, data: bytes, prefix: str) -> None:
    """A BOM and surrounding white space are not part of the prefix (rule A8)."""
    base = tree("ab/foo/x", pairtree_prefix=data)
    assert read_both(base, lambda place: PairtreeStore(place).prefix) == prefix


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"a\nb\n", "more than one line"),
        (b"a" * 5000, "longer"),
        (b"\xff", "not UTF-8 at byte 0"),
        (b"a\0b", "NUL"),
    ],
)
def test_invalid_prefix_files(tree: Tree, data: bytes, reason: str) -> None:
    """An invalid prefix file is refused on opening, with its name in the message."""
    with pytest.raises(StoreError, match=reason) as caught:
        read_both(tree("ab/foo/x", pairtree_prefix=data), PairtreeStore)
    assert "pairtree_prefix" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_prefix_that_is_a_directory(tree: Tree) -> None:
    """A directory in place of the prefix file is refused."""
    base = tree("ab/foo/x")
    (base / "pairtree_prefix").mkdir()
    with pytest.raises(StoreError, match="directory"):
        PairtreeStore(base)


def test_options(store: PairtreeStore) -> None:
    """Invalid options are refused."""
    with pytest.raises(ValueError, match="links='maybe'"):
        PairtreeStore(store.root, links="maybe")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="dialect='klingon'"):
        PairtreeStore(store.root, dialect="klingon")
    with pytest.raises(LayoutConfigError):
        PairtreeStore(store.root, encapsulation="fixed:x")
    assert repr(store) == f"<PairtreeStore {store.root!r}>"


# --- put and get ------------------------------------------------------------------------------------------------------


@settings(max_examples=settings.default.max_examples // 4)  # each creates two stores
@given(st.lists(strategies.identifiers().filter(lambda one: 0 < len(one) < 200), max_size=8, unique=True))
def test_objects_are_read_back(implementations: list[Implementation], given_ids: list[bytes]) -> None:
    """Hostile identifiers, also prefixes of each other, are listed with their own files and can be deleted."""
    for implementation in implementations:
        with use(implementation), tempfile.TemporaryDirectory() as folder:
            store = PairtreeStore.create(os.path.join(folder, "store"), durable=False)
            source = Path(folder, "source")
            for identifier in given_ids:
                source.write_bytes(identifier)
                store.put(identifier, {"a/b": source})
            assert sorted(encode_fs(found or "") for found in ids(store)) == sorted(given_ids)
            assert all(record.proper for record in store.objects())
            for identifier in given_ids:
                assert files(store, identifier) == {"a/b": identifier}
            for number, identifier in enumerate(given_ids):
                store.delete(identifier)
                assert sorted(encode_fs(found or "") for found in ids(store)) == sorted(given_ids[number + 1 :])
            assert snapshot(Path(folder, "store", "pairtree_root")) == {}


def test_sources(store: PairtreeStore, tmp_path: Path) -> None:
    """A source may be a file, a directory with its content, or named files."""
    write(tmp_path / "in", {"a": b"1", "b/c": b"2", b"b/\xff": b"3", "empty/": None})
    (tmp_path / "link").symlink_to("in/a")
    assert store.put("one", tmp_path / "in" / "a").encapsulation == "one"
    assert store.put("linked", tmp_path / "link").proper
    assert store.put("whole", tmp_path / "in").id == "whole"
    assert store.put("named", {"x/y": tmp_path / "in" / "a", "all": tmp_path / "in"}).problems == ()
    assert store.put("none", {}).proper
    assert files(store, "one") == {"a": b"1"}
    assert files(store, b"linked") == {"link": b"1"}
    assert files(store, "whole") == {"a": b"1", "b/c": b"2", "b/\udcff": b"3"}
    assert sorted(files(store, "named")) == ["all/a", "all/b/c", "all/b/\udcff", "x/y"]
    assert files(store, "none") == {}
    path = encode_fs(store.root) + b"/pairtree_root/wh/ol/e/whole/empty"
    assert os.path.isdir(path)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("../a", "bad-name"), ("/a", "bad-name"), ("a//b", "bad-name"), ("", "bad-name"), ("a/.", "bad-name")),
        *(("a\0b", "bad-name"), ("x" * 256, "bad-name")),
    ],
)
def test_bad_names(store: PairtreeStore, tmp_path: Path, name: str, kind: str) -> None:
    """A file name that is invalid or leads out of the object is refused; nothing is stored."""
    write(tmp_path, {"f": b"x"})
    with pytest.raises(ObjectError) as caught:
        store.put("id", {name: tmp_path / "f"})
    assert caught.value.kind == kind
    assert snapshot(Path(store.root) / "pairtree_root") == {}
    assert sorted(os.listdir(store.root)) == ["pairtree_root", "pairtree_version0_1"]


@pytest.mark.parametrize("name", ["", "ab", "\udcc3\udca4b", ".", "..", "../../../x", "a/b", "pairtree_x", "nul\0x"])
def test_bad_names_of_directories(store: PairtreeStore, tmp_path: Path, name: str) -> None:
    """A directory name that is ambiguous or leads out of the tree is refused; nothing is stored."""
    write(tmp_path, {"given/f": b"x"})
    before = snapshot(tmp_path)
    with pytest.raises(ObjectError, match="at least three characters") as caught:
        store.put("abcd", tmp_path / "given", encapsulation=name)
    assert caught.value.kind == "bad-name"
    with store._writer("copy") as writer, pytest.raises(ObjectError, match="at least three characters"):
        writer.adopt("abcd", os.fsencode(tmp_path / "given"), name)
    assert snapshot(tmp_path) == before


def test_several_links_to_a_directory(tmp_path: Path) -> None:
    """The files of an object are listed under every link to their directory."""
    store = PairtreeStore.create(tmp_path / "store")
    (tmp_path / "in" / "d").mkdir(parents=True)
    (tmp_path / "in" / "d" / "f").write_bytes(b"1")
    (path,) = (tmp_path / "store" / store.put("x", tmp_path / "in").path).iterdir()
    for name in ("l1", "l2"):
        (path / name).symlink_to("d")
    found = PairtreeStore(tmp_path / "store", links="follow").get("x")
    assert [name for name, _path in found.files()] == ["d/f", "l1/f", "l2/f"]


def test_bad_sources(store: PairtreeStore, tmp_path: Path) -> None:
    """Missing files, symbolic links and pipes are refused by name; links may be followed."""
    write(tmp_path / "in", {"a": b"1"})
    (tmp_path / "in" / "link").symlink_to("a")
    with pytest.raises(ObjectError, match="link': symbolic link not followed; follow links") as caught:
        store.put("x", tmp_path / "in")
    assert caught.value.kind == "source"
    store.put("x", tmp_path / "in", links="follow")
    assert files(store, "x") == {"a": b"1", "link": b"1"}
    (tmp_path / "in" / "loop").symlink_to(".")
    with pytest.raises(ObjectError, match="symbolic link to a parent directory"):
        store.put("y", tmp_path / "in", links="follow")
    os.unlink(tmp_path / "in" / "loop")
    os.mkfifo(tmp_path / "in" / "pipe")
    with pytest.raises(ObjectError, match="named pipe"):
        store.put("y", tmp_path / "in", links="follow")
    with pytest.raises(ObjectError, match="No such file"):
        store.put("y", tmp_path / "missing")
    assert ids(store) == ["x"]


def test_duplicate_names(store: PairtreeStore, tmp_path: Path) -> None:
    """A name given twice by the caller is reported as such, not as a case collision."""
    write(tmp_path, {"one": b"1"})
    with pytest.raises(ObjectError, match="name collision") as caught:
        store.put("x", {"a": tmp_path / "one", "a/b": tmp_path / "one"})
    assert caught.value.kind == "collision"


def test_a_source_that_is_too_deep(store: PairtreeStore, tmp_path: Path) -> None:
    """A source nested deeper than Python's recursion limit is refused, and leaves nothing."""
    top = tmp_path / "deep"
    for depth in range(1, sys.getrecursionlimit() + 100):
        (top / "/".join("d" * depth)).mkdir(parents=depth == 1)
    (top / "/".join("d" * depth) / "file").write_bytes(b"x")
    try:
        with pytest.raises(ObjectError, match="nested too deeply") as caught:
            store.put("x", top)
        assert caught.value.kind == "source"
        assert sorted(os.listdir(store.root)) == ["pairtree_root", "pairtree_version0_1"]
    finally:  # pytest cannot remove it
        remove_tree(os.fsencode(top))


def test_replacing(store: PairtreeStore, tmp_path: Path) -> None:
    """An object is replaced only on request, and its directory keeps its name."""
    write(tmp_path, {"f": b"1", "g": b"2"})
    store.put("ab", tmp_path / "f")
    with pytest.raises(ObjectError, match=r"use another identifier, or replace=True") as caught:
        store.put("ab", tmp_path / "g")
    assert caught.value.kind == "exists"
    other = PairtreeStore(store.root, encapsulation="fixed:thingy", durable=False)
    assert other.put("ab", tmp_path / "g", replace=True).encapsulation == "0ab"
    assert files(store, "ab") == {"g": b"2"}
    assert other.put("new", tmp_path / "g", replace=True).encapsulation == "thingy"


def test_deleting(store: PairtreeStore, tmp_path: Path) -> None:
    """Deleting an object keeps objects above and below it, reserved names and the root."""
    write(tmp_path, {"f": b"1"})
    for identifier in ("ab", "abcd", "abcdef", "abc", "xy"):
        store.put(identifier, tmp_path / "f")
    root = Path(store.root) / "pairtree_root"
    write(root, {"xy/pairtree_x": b""})
    for identifier in ("abcd", "ab", "xy"):
        store.delete(identifier)
        with pytest.raises(ObjectError, match="object not found at") as caught:
            store.delete(identifier)
        assert caught.value.kind == "missing"
        with pytest.raises(ObjectError):
            store.get(identifier)
    assert ids(store) == ["abc", "abcdef"]
    assert sorted(os.listdir(root)) == ["ab", "xy"]
    assert sorted(os.listdir(root / "ab")) == ["c", "cd"]
    for identifier in ("abc", "abcdef"):
        store.delete(identifier)
    assert snapshot(root) == {b"xy": None, b"xy/pairtree_x": b""}


@pytest.mark.parametrize("identifier", ["", b""])
def test_the_empty_identifier(store: PairtreeStore, tmp_path: Path, identifier: str | bytes) -> None:
    """Every operation refuses the empty identifier, which would map to the root (rule A7)."""
    write(tmp_path, {"f": b"1"})
    write(Path(store.root), {"pairtree_root/foo/x": b""})
    for action in (store.get, store.delete, lambda one: store.put(one, tmp_path / "f", replace=True)):
        with pytest.raises(IdentifierError, match="empty"):
            action(identifier)
    assert [record.path for record in store.objects()] == ["pairtree_root"]


def test_reading_improper_objects(tree: Tree) -> None:
    """An improperly encapsulated object has the files of its last directory, without shorties."""
    store = PairtreeStore(tree("be/nt/README.txt", "be/nt/sub/x", "be/nt/ef/foo/y", "be/nt/pairtree_z", "zz/z/ab/c"))
    assert files(store, "bent") == {"README.txt": b"x", "sub/x": b"x"}
    assert files(store, "bentef") == {"y": b"x"}
    assert files(store, "zzz") == {"ab/c": b"x"}
    stored = store.get("bent")
    with stored.open("sub/x") as file:
        assert file.read() == b"x"
    for name in ("ef/foo/y", "pairtree_z", "../nt/README.txt", "", "/etc/passwd", "sub", "sub/../README.txt", "x\0"):
        with pytest.raises(ObjectError, match="not found in the object"):
            stored.open(name)


def test_records_lead_to_their_objects(tree: Tree) -> None:
    """Every record opens its object, even if the identifier maps elsewhere."""
    store = PairtreeStore(tree("^2/A/foo/x", "^r/oo/foo/y", "top/z", "stray"))
    found = [[name for name, _ in store.locate(record).files()] for record in store.objects()]
    assert found == [["top/z"], ["x"], ["y"]]
    assert [name for name, _ in store.get("*").files()] == ["x"]


def test_moving_an_encapsulating_link(tree: Tree, tmp_path: Path) -> None:
    """If the encapsulating directory is a link, the link is deleted or replaced; its target stays."""
    base = tree("xx/foo/x")
    write(tmp_path / "volume", {"x": b"1"})
    write(tmp_path, {"new": b"2"})
    for name in ("ab", "cd"):
        (base / "pairtree_root" / name).mkdir()
        (base / "pairtree_root" / name / "volume").symlink_to(tmp_path / "volume")
    store = PairtreeStore(base)
    assert files(store, "ab") == {"x": b"1"}
    store.delete("ab")
    store.put("cd", tmp_path / "new", replace=True)
    assert files(store, "cd") == {"new": b"2"}
    assert snapshot(tmp_path / "volume") == {b"x": b"1"}
    assert ids(store) == ["cd", "xx"]


# --- names and file systems -------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_links_that_are_refused(tree: Tree, tmp_path: Path) -> None:
    """If links are refused, nothing is read, written or removed behind one, and a link in the path is not moved."""
    base = tree("ab/foo/x", "ab/one")
    write(tmp_path / "elsewhere", {"ef/bar/x": b"theirs"})
    (base / "pairtree_root" / "ab" / "cd").symlink_to(tmp_path / "elsewhere")
    (base / "pairtree_root" / "ab" / "foo" / "link").symlink_to("x")
    store = PairtreeStore(base, links="refuse")
    before = snapshot(tmp_path)
    for action in (store.get, store.delete):
        with pytest.raises(ObjectError) as caught:
            action("abcdef")
        assert caught.value.kind == "missing"
    for identifier in ("abcdef", "abcdxy"):
        with pytest.raises(ObjectError, match="'pairtree_root/ab/cd' is a symbolic link") as caught:
            store.put(identifier, tmp_path / "elsewhere")
        assert caught.value.kind == "collision"
    with pytest.raises(ObjectError, match="not found in the object"):
        store.get("ab").open("foo/link")
    with PairtreeStore(base).get("ab").open("foo/link") as file:
        assert file.read() == b"x"
    assert snapshot(tmp_path) == before
    assert [one.kind for one in store.repair().problems if one.severity == "error"] == ["link"] * 2  # as from check
    assert ids(PairtreeStore(base)) == ["ab", "abcdef"]
    store.delete("ab")
    assert ids(PairtreeStore(base)) == ["abcdef"]


def test_names_of_256_bytes(store: PairtreeStore, tmp_path: Path) -> None:
    """A long identifier gets a shortened encapsulating directory; a path that is too long is refused."""
    write(tmp_path, {"f": b"1"})
    assert store.put("x" * 256, tmp_path / "f").encapsulation == "obj"
    assert store.put("\u00e9" * 85, tmp_path / "f").encapsulation == "obj"
    with pytest.raises(ObjectError, match="the limit is 4095") as caught:
        store.put("y" * 4000, tmp_path / "f")
    assert caught.value.kind == "bad-name"
    assert "\n" not in str(caught.value)
    assert ids(store) == ["\u00e9" * 85, "x" * 256]


def test_names_that_differ_only_in_case(store: PairtreeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a case-insensitive file system, an identifier that differs only in case is refused."""
    write(tmp_path, {"f": b"1"})
    store.put("abcd", tmp_path / "f")
    tree = Path(store.root) / "pairtree_root"
    # A case-insensitive file system finds "AB" where "ab" is, and lists "ab".
    real = os.path.lexists
    for module in ("directories.store_directory", "staging_writer", "walked_store"):
        monkeypatch.setattr(f"pressmark.stores.{module}.is_case_insensitive", lambda _directory: True)
    monkeypatch.setattr(os.path, "lexists", lambda path: real(encode_fs(path).replace(b"/AB", b"/ab")))
    with pytest.raises(ObjectError, match="'AB' differs only in case") as caught:
        store.put("ABcd", tmp_path / "f")
    assert caught.value.kind == "collision"
    store.put("abce", tmp_path / "f")
    monkeypatch.undo()
    assert sorted(os.listdir(tree)) == ["ab"]
    assert ids(store) == ["abcd", "abce"]


def test_a_file_in_the_ppath(tree: Tree, tmp_path: Path) -> None:
    """A file in the middle of the ppath is a collision."""
    base = tree("ab")
    write(tmp_path, {"f": b"1"})
    with pytest.raises(ObjectError, match="repair the store first") as caught:
        PairtreeStore(base).put("abcd", tmp_path / "f")
    assert caught.value.kind == "collision"


# --- concurrency ------------------------------------------------------------------------------------------------------

AT_ONCE = """
import sys
from pressmark.errors import ObjectError
from pressmark.stores.pairtree.pairtree_store import PairtreeStore
store = PairtreeStore(sys.argv[1], durable=False)
done = 0
for turn in range(40):
    for identifier in ("ab", "abcd", "abcdef", "abc", "x"):
        for action in (
            lambda: store.put(identifier, sys.argv[2]),
            lambda: store.put(identifier, sys.argv[2], replace=True),
            lambda: store.delete(identifier),
        ):
            try:
                action()
                done += 1
            except ObjectError as error:
                assert error.kind in ("exists", "missing"), error
            for record in store.objects(threads=1):
                assert record.proper, record
assert done
"""


def test_two_processes_at_once(store: PairtreeStore, tmp_path: Path) -> None:
    """During concurrent changes by two processes, each object is complete or absent at every moment."""
    write(tmp_path / "in", {"a": b"1" * 1000, "b/c": b"2" * 1000})
    package = str(Path(pressmark.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", AT_ONCE, store.root, str(tmp_path / "in")]
    processes = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) for _ in range(2)]
    assert [(process.communicate()[1], process.returncode) for process in processes] == [(b"", 0), (b"", 0)]
    assert sorted(os.listdir(store.root)) == ["pairtree_root", "pairtree_version0_1"]
    assert snapshot(Path(store.root) / "pairtree_root") == {}


def test_two_threads_at_once(store: PairtreeStore, tmp_path: Path) -> None:
    """Threads may share a store object: of two that put the same object, one gets an error."""
    write(tmp_path, {"f": b"1"})
    outcomes: list[str] = []

    def put() -> None:
        for number in range(20):
            try:
                store.put(f"id{number}", tmp_path / "f")
                outcomes.append("put")
            except ObjectError as error:
                outcomes.append(error.kind)

    threads = [threading.Thread(target=put) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["exists"] * 40 + ["put"] * 20
    assert len(ids(store)) == 20
    assert store.check().ok


def test_texts() -> None:
    """Names on disk are UTF-8 in any locale, and other bytes are preserved."""
    assert encode_fs("\u00e9\udcff") == b"\xc3\xa9\xff"
    assert decode_fs(b"\xc3\xa9\xff") == "\u00e9\udcff"


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
@pytest.mark.parametrize("beside", [["ab/obj/f"], ["ab/one", "ab/two"], ["ab/pairtree_pressmark-obj/f"], ["ab/"]])
def test_an_unmounted_branch(tree: Tree, tmp_path: Path, beside: list[str]) -> None:
    """Neither a change of the object above nor a repair moves a link to an unmounted branch."""
    base = tree()
    root = base / "pairtree_root"
    write(tmp_path, {"volume/obj/g": b"below", "in/f": b"new"})
    write(root, {name: None if name.endswith("/") else b"above" for name in beside})
    (root / "ab" / "cd").symlink_to(tmp_path / "volume")
    (tmp_path / "volume").rename(tmp_path / "away")
    store = PairtreeStore(base, durable=False)
    before = snapshot(base)
    for change in (lambda: store.delete("ab"), lambda: store.put("ab", tmp_path / "in", replace=True)):
        with pytest.raises(ObjectError, match="'pairtree_root/ab/cd' is a symbolic link without a target") as caught:
            change()
        assert caught.value.kind == "unreadable"
        assert snapshot(base) == before
    events: list[object] = []
    assert "link-dangling" in {found.kind for found in store.repair(dry_run=True).problems}
    assert "link-dangling" in {found.kind for found in store.repair(progress=EventListener(events.append)).problems}
    assert not events
    assert snapshot(base) == before
    (tmp_path / "away").rename(tmp_path / "volume")
    assert [name for name, _path in store.get("abcd").files()] == ["g"]
    if beside != ["ab/"]:
        store.delete("ab")
    assert [record.id for record in store.objects()] == ["abcd"]
