"""Behaviour common to all kinds of stores: opening, records, errors."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark import stores
from pressmark.errors import BagError, LayoutConfigError, ObjectError, StoreError
from pressmark.fs.names import PATH_MAX
from pressmark.reports import Problem
from pressmark.stores import placement, store_change
from pressmark.stores.bags.bag_folder import BagFolder
from pressmark.stores.exceptions import is_unsafe_name, object_errors, store_errors
from pressmark.stores.objects import StoreObject
from pressmark.stores.ocfl.root import OcflRoot
from pressmark.stores.problems import KINDS, problem
from pressmark.stores.registry import store_class
from support.trees import write


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({"pairtree_root/": None}, "pairtree"),
        ({"file_storage_root/": None}, "vitro"),
        ({"0=ocfl_1.1": b"ocfl_1.1\n"}, "ocfl"),
        ({"0=ocfl_1.0": b"", "extensions/": None}, "ocfl"),
        ({"a/bagit.txt": b""}, "bags"),
    ],
)
def test_signs(tmp_path: Path, files: dict[str, bytes | None], kind: str) -> None:
    """Each kind is detected by its marker file."""
    write(tmp_path / "store", files)
    assert stores.kind_of(tmp_path / "store") == kind
    assert stores.kind_of(str(tmp_path / "store")) == kind


def test_classes_of_the_kinds(tmp_path: Path) -> None:
    """The package exports the class of each kind, and imports it on first use."""
    classes = [stores.PairtreeStore, stores.VitroStore, stores.OcflRoot, stores.BagFolder]
    assert classes == [store_class(kind) for kind in stores.KINDS]
    assert isinstance(stores.create("pairtree", tmp_path / "store"), stores.PairtreeStore)
    with pytest.raises(AttributeError, match="has no attribute 'TapeStore'"):
        stores.TapeStore  # noqa: B018


@pytest.mark.parametrize("kind", stores.KINDS)
def test_collections(tmp_path: Path, kind: str) -> None:
    """``in``, ``exists`` and ``len`` count objects; an empty store is true all the same."""
    file = tmp_path / "file"
    file.touch()
    store = stores.create(kind, tmp_path / "store", "0003" if kind in ("ocfl", "bags") else None)
    assert (len(store), bool(store), "ark:/1/a" in store) == (0, True, False)
    for id in ("ark:/1/a", "b"):
        store.put(id, file if kind == "vitro" else {"file": file})
    assert (len(store), bool(store)) == (2, True)
    assert [id in store for id in ("ark:/1/a", b"ark:/1/a", "b", "c", "")] == [True, True, True, False, False]
    assert (store.exists("b"), store.exists("c")) == (True, False)
    store.delete("b")
    assert (len(store), "b" in store) == (1, False)
    with pytest.raises(TypeError):
        5 in store  # type: ignore[operator]  # noqa: B015


@pytest.mark.parametrize("kind", stores.KINDS)
def test_threads_share_a_store(tmp_path: Path, kind: str) -> None:
    """Several threads may put, find, read and delete objects of one store."""
    file = tmp_path / "file"
    file.write_bytes(b"1")
    store = stores.create(kind, tmp_path / "store", "0003" if kind in ("ocfl", "bags") else None)

    def work(number: int) -> bool:
        id = f"ark:/1/{number}"
        store.put(id, file if kind == "vitro" else {"file": file})
        store.get(id)
        if number % 3 == 0:
            store.delete(id)
        return id in store

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(60))) == [number % 3 != 0 for number in range(60)]
    assert len(store) == 40
    assert store.check(digests=True).ok


def test_several_objects_with_one_identifier(tmp_path: Path) -> None:
    """An identifier of several objects is in the store; one whose path another object uses is not."""
    root = stores.OcflRoot.create(tmp_path / "root", pressmark.layout("0006", delimiter=":"))
    (tmp_path / "file").touch()
    root.put("x:a", {"file": tmp_path / "file"})
    assert "y:a" not in root  # its path is that of x:a
    folder = stores.create("bags", tmp_path / "bags", "0003")
    folder.put("a", {"file": tmp_path / "file"})
    shutil.copytree(tmp_path / "bags" / folder.find("a").path, tmp_path / "bags" / "copy")
    folder = stores.open(tmp_path / "bags")
    with pytest.raises(ObjectError, match="both have this identifier"):
        folder.find("a")
    assert "a" in folder
    assert len(folder) == 2


def test_layouts_by_name(tmp_path: Path) -> None:
    """A layout may be given by name; an OCFL storage root requires one."""
    store = stores.create("ocfl", tmp_path / "root", "0004")
    assert store.layout == pressmark.layout("0004")
    assert stores.OcflRoot(tmp_path / "root", layout="0003").layout == pressmark.layout("0003")
    for action in (
        lambda: stores.create("ocfl", tmp_path / "x", "0099"),
        lambda: stores.BagFolder(tmp_path, layout="no"),
    ):
        with pytest.raises(LayoutConfigError, match="known layouts: pairtree"):
            action()
    with pytest.raises(TypeError, match="layout: expected a layout or its name, such as 0003, not None"):
        stores.create("ocfl", tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_no_sign(tmp_path: Path) -> None:
    """A directory with no marker, or with several, is refused with its name."""
    write(tmp_path, {"file": b"", "both/pairtree_root/": None, "both/0=ocfl_1.1": b"", "object/0=ocfl_object_1.1": b""})
    (tmp_path / "empty").mkdir()
    for name, reason in {
        "file": "not a directory",
        "missing": "No such file or directory; specify the directory of a store",
        "empty": "not a store",
        "object": "an OCFL object; specify the storage root",
        "both": r"several kinds of store detected \(pairtree, ocfl\)",
    }.items():
        with pytest.raises(StoreError, match=reason) as caught:
            stores.open(tmp_path / name)
        assert "\n" not in str(caught.value)
        assert name in str(caught.value)


def test_kinds(tmp_path: Path) -> None:
    """An unknown kind is refused with the list of kinds."""
    for action in (lambda: stores.open(tmp_path, "tape"), lambda: stores.create("tape", tmp_path)):
        with pytest.raises(ValueError, match="expected one of pairtree, vitro, ocfl, bags"):
            action()


@pytest.mark.parametrize("kind", stores.KINDS)
def test_a_file_where_a_store_is_to_be(tmp_path: Path, kind: str) -> None:
    """A file at the path of a new store is reported with the remedy, and stays."""
    write(tmp_path, {"file": b"x"})
    with pytest.raises(StoreError, match="file': not a directory; specify a directory") as caught:
        stores.create(kind, tmp_path / "file", pressmark.layout("0004") if kind == "ocfl" else None)
    assert caught.value.__cause__ is None
    assert (tmp_path / "file").read_bytes() == b"x"


@pytest.mark.parametrize("kind", ["pairtree", "vitro"])
def test_a_store_that_nobody_may_look_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """An unreadable store is not reported as something else."""
    stores.create(kind, tmp_path / "store")

    def refused(path: Any, **_options: Any) -> os.stat_result:
        if b"store/" in os.fsencode(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return look(path)

    look = os.stat
    monkeypatch.setattr(os, "stat", refused)
    monkeypatch.setattr(os, "lstat", refused)
    with pytest.raises(StoreError, match="run as a user with access"):
        stores.open(tmp_path / "store", kind)


def test_records() -> None:
    """A record is JSON, whatever its names."""
    found = problem("not-utf8", b"pairtree_root/\xff")
    assert found.path == "pairtree_root/\udcff"
    assert Problem.from_record(json.loads(json.dumps(found.record()))) == found
    record = StoreObject("\udcff", "pairtree_root/\udcff", True, "obj", (found,)).record()
    assert json.loads(json.dumps(record)) == record
    assert list(record) == ["id", "path", "proper", "encapsulation", "problems"]
    assert record["problems"][0]["path"] == "pairtree_root/\udcff"


@pytest.mark.parametrize(
    ("number", "kind", "way_out"),
    [
        (errno.ENOSPC, "no-space", "free disk space"),
        (errno.EROFS, "permission", "read-write"),
        (errno.ENAMETOOLONG, "bad-name", "shorter"),
        (errno.EEXIST, "collision", "case"),
        (errno.EIO, "io-error", "It says no"),
    ],
)
def test_errors(number: int, kind: str, way_out: str) -> None:
    """A system error becomes one line with kind, path and remedy."""
    with pytest.raises(ObjectError, match=way_out) as caught, object_errors("/store", "id"):
        raise OSError(number, "It says no", b"/store/somewhere/name")
    assert caught.value.kind == kind
    assert "object 'id': '/store/somewhere/name': It says no" in str(caught.value)
    with pytest.raises(StoreError, match="It says no"), store_errors("/store"):
        raise OSError(number, "It says no")
    with pytest.raises(ObjectError, match="'a': no") as caught, object_errors("/store", "id"):
        raise BagError(b"a", "no")
    assert caught.value.kind == "source"


def test_the_table_of_kinds() -> None:
    """Every kind has a severity and a one-line meaning."""
    for kind, known in KINDS.items():
        assert known.severity in ("error", "warning"), kind
        assert known.meaning
        assert "\n" not in known.meaning


@pytest.mark.parametrize("name", ["../x", "..\\x", "a\\..\\..\\x", "C:/x", "c:x", "\\\\server\\x", "a:stream"])
def test_names_that_lead_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Backslashes and drive letters are refused where they are special, and accepted elsewhere."""
    (tmp_path / "f").write_bytes(b"data")
    store = stores.create("pairtree", tmp_path / "store")
    store.put("a", {"f": tmp_path / "f"})
    if os.name == "posix":
        assert is_unsafe_name(name.encode()) == ("../" in name)
    on_windows = re.compile(rb"(?:^|/)\.{0,2}(?:/|\Z)|[\0\\:]").search
    monkeypatch.setattr("pressmark.stores.exceptions._has_unsafe", on_windows)
    with pytest.raises(ObjectError, match="not a valid file name"):
        store.put("b", {name: tmp_path / "f"})
    with pytest.raises(ObjectError, match="not found"):
        store.get("a").open(name)


@pytest.mark.skipif(os.name != "posix", reason="paths have another limit")
@pytest.mark.parametrize("kind", ["pairtree", "ocfl", "bags"])
def test_what_could_not_be_opened_is_not_stored(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store opened by a short path refuses files whose absolute path is too long."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(b"x")
    store = stores.create(kind, "store", pressmark.layout("0002") if kind == "ocfl" else None)
    length = PATH_MAX - len(os.fsencode(tmp_path / "store")) - 150
    name = "/".join(["d" * 199] * (length // 200)) + "/" + "f" * (length % 200 or 1)
    with pytest.raises(ObjectError) as caught:
        store.put("i" * 200, {name: tmp_path / "file"})
    assert caught.value.kind == "bad-name"
    assert "path too long" in caught.value.reason
    assert os.listdir("store") == os.listdir(store.root)
    assert list(store.objects()) == []
    store.put("i", {name[300:]: tmp_path / "file"})
    with store.get("i").open(name[300:]) as file:
        assert file.read() == b"x"


def test_a_replacement_beside_a_removal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replacement succeeds if another run removes the object and puts it again."""
    (tmp_path / "file").write_bytes(b"1")
    store = OcflRoot.create(tmp_path / "store", pressmark.layout("0002"), durable=False)
    other = stores.open(tmp_path / "store")
    steps = iter([lambda: other.put("a", tmp_path / "file")])
    check_free = OcflRoot.check_free

    def between(self: OcflRoot, identifier: str, path: bytes) -> None:
        if self is store:
            next(steps, lambda: None)()
        check_free(self, identifier, path)

    monkeypatch.setattr(OcflRoot, "check_free", between)
    assert store.put("a", tmp_path / "file", replace=True).id == "a"


def test_a_replaced_bag_beside_its_removal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bag that is removed just after it was found is not reported as a serialized bag."""
    (tmp_path / "file").write_bytes(b"1")
    store = BagFolder.create(tmp_path / "store")
    store.put("a", tmp_path / "file")
    find, steps = BagFolder._look_up, iter([lambda: stores.open(tmp_path / "store").delete("a")])

    def then_removed(self: BagFolder, identifier: str, **options: bool) -> bytes | None:
        found = find(self, identifier, **options)
        if self is store:
            next(steps, lambda: None)()
        return found

    monkeypatch.setattr(BagFolder, "_look_up", then_removed)
    assert store.put("a", tmp_path / "file", replace=True).id == "a"


@pytest.mark.parametrize("kind", stores.KINDS)
@pytest.mark.parametrize("path", ["a\0b", b"a\0b", *(["\ud800"] if os.name == "posix" else [])])
def test_paths_that_no_file_has(kind: str, path: str | bytes) -> None:
    """An impossible path is refused like any path without a store."""
    for call in (
        lambda: stores.kind_of(path),
        lambda: stores.open(path),
        lambda: stores.open(path, kind),
        lambda: stores.create(kind, path, pressmark.layout("0002") if kind == "ocfl" else None),
    ):
        with pytest.raises(StoreError, match="choose another"):
            call()


@pytest.mark.parametrize(
    ("kind", "layout"),
    [("pairtree", None), ("vitro", None), ("ocfl", "0002"), ("ocfl", "0003"), ("bags", None), ("bags", "pairtree")],
)
def test_identifiers_that_are_too_long(kind: str, layout: str | None, tmp_path: Path) -> None:
    """An identifier too long to store is reported as not found."""
    store = stores.create(kind, tmp_path / "store", None if layout is None else pressmark.layout(layout))
    for identifier in ("x" * 300, "x" * 5000):
        for call in (store.get, store.delete):
            with pytest.raises(ObjectError) as caught:
                call(identifier)
            assert caught.value.kind == "missing"


@pytest.mark.skipif(os.name != "posix", reason="paths have another limit")
@pytest.mark.parametrize("kind", ["pairtree", "vitro"])
def test_what_is_there_and_too_deep_is_not_missing(kind: str, tmp_path: Path) -> None:
    """An object stored by a shorter path is not reported as missing."""
    store = stores.create(kind, tmp_path / "store")
    assert store.layout is not None
    top = tmp_path / "store" / ("pairtree_root" if kind == "pairtree" else "file_storage_root")
    descriptor = os.open(top, os.O_RDONLY)
    try:
        for name in store.layout.map_id("x" * 5000).split("/"):
            os.mkdir(name, dir_fd=descriptor)
            below = os.open(name, os.O_RDONLY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        with pytest.raises(ObjectError) as caught:
            store.get("x" * 5000)
        assert caught.value.kind == "bad-name"
    finally:
        os.close(descriptor)
        # The removal of temporary folders cannot reach this depth by path.
        subprocess.run(["rm", "-r", top], check=True)


def test_a_sample_of_a_large_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first objects of a flat store with millions of directories are found without listing all of them."""
    monkeypatch.setattr(placement, "_LISTED", 3)
    store = stores.OcflRoot.create(tmp_path / "store", pressmark.layout("0002"), durable=False)
    for number in range(10):
        store.put(f"o{number}", {"name.bin": b"x"})
    assert len(placement.first_directories(os.fsencode(tmp_path / "store"))) == 3
    (tmp_path / "few").mkdir()
    for name in ("b", "a"):
        (tmp_path / "few" / name).mkdir()
    assert placement.first_directories(os.fsencode(tmp_path / "few")) == [b"a", b"b"]


def test_opening_does_not_list_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store is opened, and an object put, without listing a directory that grows with the store."""
    store = stores.create("vitro", tmp_path / "store")
    store.put("abcd", {"name.bin": b"x"})
    growing = os.fsencode(tmp_path / "store/file_storage_root")
    listed: list[bytes] = []

    def noted(real: Any) -> Any:
        def listing(path: Any = ".") -> Any:
            if not isinstance(path, int):
                listed.append(os.path.join(os.fsencode(path), b""))
            return real(path)

        return listing

    monkeypatch.setattr(os, "listdir", noted(os.listdir))
    monkeypatch.setattr(os, "scandir", noted(os.scandir))
    opened = stores.open(tmp_path / "store")
    opened.put("efgh", {"name.bin": b"x"})
    assert os.path.join(growing, b"") not in listed
    assert listed


@pytest.mark.parametrize("kind", stores.KINDS)
def test_many_removals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Many objects share a private directory; their names are flushed and their space is freed together."""
    write(tmp_path, {"in/f": b"x"})
    store: Any = stores.create(kind, tmp_path / "store", pressmark.layout("0002") if kind == "ocfl" else None)
    names = [f"id{number}" for number in range(7)]
    with store.ingest() as batch:
        batch.put_all((name, tmp_path / "in") for name in names)
    monkeypatch.setattr(store_change, "TURN", 3)
    flushed: list[int] = []
    flush = store_change.flush_directories
    monkeypatch.setattr(store_change, "flush_directories", lambda paths: (flushed.append(len(paths)), flush(paths)))
    with store_change.Removal(store) as removal:
        for number, name in enumerate(names[:-1], 1):
            removal.remove(name)
            waiting = [one for one in os.listdir(removal.staging.path) if one != b"lock"]
            assert len(waiting) == number % 3
        with pytest.raises(ObjectError, match="none"):
            removal.remove("none")
        assert len(flushed) == 2
    assert [record.id for record in store.objects()] == names[-1:]
    assert [one.kind for one in store.check().problems if one.kind != "inventory-advice"] == []
    assert not [name for name in os.listdir(store.root) if "pressmark" in name and not name.endswith(".json")]


@pytest.mark.parametrize("kind", ["pairtree", "vitro", "ocfl", "bags"])
@pytest.mark.parametrize("wrong", [5, None, ["x"]])
def test_an_identifier_of_another_type(tmp_path: Path, kind: Any, wrong: Any) -> None:
    """Every call that takes an identifier names the types that it accepts."""
    options = {"layout": pressmark.layout("0003")} if kind == "ocfl" else {}
    store = store_class(kind).create(tmp_path / "store", **options)
    message = f"identifier: expected str or bytes, not {type(wrong).__name__}"
    for call in (store.get, store.find, store.delete):
        with pytest.raises(TypeError, match=message):
            call(wrong)
    for replace in (False, True):
        with pytest.raises(TypeError, match=message):
            store.put(wrong, {"a": b"x"}, replace=replace)
        [result] = store.put_all([(wrong, {"a": b"x"})], replace=replace)
        assert (result.id, str(getattr(result.error, "kind", "")), message in str(result.error)) == (
            wrong,
            "bad-id",
            True,
        )
    assert list(store.objects()) == []
