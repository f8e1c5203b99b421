"""Objects of every kind, replaced or removed by another process during a read."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pressmark import stores
from pressmark.errors import ObjectError
from pressmark.layouts import layout
from pressmark.stores import Store, stored_object as base
from pressmark.stores.ocfl.local.local_storage import LocalStorage
from pressmark.stores.pairtree.pairtree_store import PairtreeStore
from pressmark.stores.stored_object import is_same_version, status_of
from pressmark.stores.vitro import vitro_object as vitro
from pressmark.stores.vitro.vitro_store import VitroStore
from support.trees import write

from .conftest import Tree
from .ocfl.samples import create, source


@pytest.fixture(params=stores.KINDS)
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store with one object, ``abc``, with one file ``f``; and its replacement."""
    kind = request.param
    store = stores.create(kind, tmp_path / "store", layout("0002") if kind == "ocfl" else None)
    for word in ("old", "new"):
        write(tmp_path, {f"{word}/f": word.encode()})
    store.put("abc", tmp_path / "old")
    return store


def kind_of(call: Callable[[], object]) -> str:
    with pytest.raises(ObjectError) as caught:
        call()
    return caught.value.kind


def removed_and_put(store: Store, tmp_path: Path) -> None:
    store.delete("abc")
    store.put("abc", tmp_path / "new")


def replaced_twice(store: Store, tmp_path: Path) -> None:
    """The system may reuse the first inode number for the third."""
    store.put("abc", tmp_path / "new", replace=True)
    removed_and_put(store, tmp_path)


@pytest.mark.parametrize("change", [removed_and_put, replaced_twice])
def test_no_two_versions_through_one_object(any_store: Store, tmp_path: Path, change: Callable[..., None]) -> None:
    """An outdated object is refused with the remedy; getting it again returns the new version."""
    found = any_store.get("abc")
    (record,) = any_store.objects()
    located = any_store.locate(record)
    listed = found.files()
    name, _path = next(listed)
    found.open(name).close()
    found.confirm()
    change(any_store, tmp_path)
    for call in (
        lambda: next(listed),
        lambda: list(found.files()),
        found.confirm,
        lambda: found.open(name),
        lambda: located.open(name),
    ):
        assert kind_of(call) == "changed"
    with pytest.raises(ObjectError, match=r"replaced, moved or removed .*; get it again"):
        found.confirm()
    with any_store.get("abc").open(name) as file:
        assert file.read() == b"new"


def test_removed(any_store: Store) -> None:
    """A removed object is reported as removed, not as an object without the file."""
    found = any_store.get("abc")
    ((name, _path),) = found.files()
    any_store.delete("abc")
    assert kind_of(lambda: found.open(name)) == "changed"
    assert kind_of(lambda: list(found.files())) == "changed"
    assert kind_of(lambda: any_store.get("abc")) == "missing"


def test_replaced_once(any_store: Store, tmp_path: Path) -> None:
    """A new version of an OCFL object keeps the files of an object that is already open."""
    found = any_store.get("abc")
    ((name, _path),) = found.files()
    any_store.put("abc", tmp_path / "new", replace=True)
    if any_store.kind != "ocfl":
        assert kind_of(lambda: found.open(name)) == "changed"
        return
    for _ in range(2):
        with found.open(name) as file:
            assert file.read() == b"old"
        assert [Path(path).read_bytes() for _name, path in found.files()] == [b"old"]


def test_an_object_of_several_names(tree: Tree) -> None:
    """A file put beside an object belongs to another one; after a repair, the old path is gone."""
    store = PairtreeStore(tree("ab/cd/one.txt", "ab/cd/two/file"), durable=False)
    found = store.get("abcd")
    write(Path(store.root, "pairtree_root", "ab", "cd"), {"de/obj/f": b"another object"})
    assert [name for name, _path in found.files()] == ["one.txt", "two/file"]
    found.open("one.txt").close()
    assert kind_of(lambda: found.open("de/obj/f")) == "missing"
    store.repair()
    assert kind_of(lambda: found.open("one.txt")) == "changed"
    assert kind_of(lambda: list(found.files())) == "changed"
    assert [name for name, _path in store.get("abcd").files()] == ["one.txt", "two/file"]


def test_a_missing_inventory(tmp_path: Path) -> None:
    """Without its inventory, the owner of a file is unknown: an error."""
    root = create(tmp_path / "root", "0002")
    root.put("abc", source(tmp_path / "old"))
    found = root.get("abc")
    inventory = tmp_path / "root/abc/inventory.json"
    for data in (b"{", b'{"id": "abc"}', inventory.read_bytes().replace(b"sha512", b"sha256")):
        inventory.write_bytes(data)
        assert kind_of(found.confirm) == "changed"
    inventory.unlink()
    assert kind_of(lambda: found.open("a.txt")) == "changed"


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ESTALE])
def test_inaccessible_files_are_not_missing(tree: Tree, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """A file in an unreadable directory is not reported as missing."""
    store = PairtreeStore(tree("ab/obj/closed/file"), durable=False)
    found = store.get("ab")

    def refusing(function: Callable[..., Any]) -> Callable[..., Any]:
        def refused(path: Any, *given: Any, **options: Any) -> Any:
            if os.fsencode(path).endswith(b"closed/file"):
                raise OSError(number, os.strerror(number), path)
            return function(path, *given, **options)

        return refused

    for name in ("open", "stat"):
        monkeypatch.setattr(os, name, refusing(getattr(os, name)))
    assert kind_of(lambda: found.open("closed/file")) == ("permission" if number == errno.EACCES else "io-error")
    for name in ("closed/other", "closed/file/below", "closed", "n" * 300):
        monkeypatch.undo()
        assert kind_of(lambda name=name: found.open(name)) == "missing"  # type: ignore[misc]


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_getting_a_link_to_itself(tree: Tree) -> None:
    """Getting an object that is a link to itself succeeds; reading it reports the error."""
    store = PairtreeStore(tree("ab/one.txt"), durable=False)
    Path(store.root, "pairtree_root/ab/two.txt").symlink_to("two.txt")
    found = store.get("ab")
    found.open("one.txt").close()
    assert kind_of(lambda: found.open("two.txt")) == "io-error"


def test_a_file_renamed_during_a_get(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file renamed during a get is not returned under its old name."""
    write(tmp_path, {"old": b"old", "other": b"new"})
    store = VitroStore.create(tmp_path / "store")
    store.put("abc", tmp_path / "old")
    real = store.walk.only_file
    other = VitroStore(tmp_path / "store")

    def renamed(identifier: str | bytes, path: str) -> bytes:
        found = real(identifier, path)
        if found == b"old":
            other.put("abc", tmp_path / "other", replace=True)
        return found

    monkeypatch.setattr(store.walk, "only_file", renamed)
    with store.get("abc").open("other") as file:
        assert file.read() == b"new"


def numbers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a file system that reuses inode numbers at once."""
    fields = ("st_mode", "st_dev", "st_nlink", "st_size", "st_mtime_ns", "st_ctime_ns")

    def status(path: bytes) -> Any:
        found = status_of(path)
        return found and SimpleNamespace(st_ino=1, **{name: getattr(found, name) for name in fields})

    for module in (base, vitro):
        monkeypatch.setattr(module, "status_of", status)
    monkeypatch.setattr(LocalStorage, "status", lambda storage, path: status(storage.path(path)))


def ticked(folder: Path) -> None:
    """Wait until the file system's clock has advanced."""
    probe = folder / "probe"
    probe.write_bytes(b"")
    begun = probe.stat().st_ctime_ns
    while probe.stat().st_ctime_ns == begun:
        probe.write_bytes(b"")


def test_a_version_of_the_same_number_and_time(
    any_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Versions with equal inode numbers and modification times are distinguished by change time."""
    numbers_again(monkeypatch)
    for word in ("old", "new"):
        for path in (tmp_path / word / "f", tmp_path / word):
            os.utime(path, ns=(10**18, 10**18))
    any_store.put("abc", tmp_path / "old", replace=True)
    found = any_store.get("abc")
    listed = list(found.files())
    found.confirm()
    ticked(tmp_path)
    removed_and_put(any_store, tmp_path)
    assert kind_of(found.confirm) == "changed"
    assert kind_of(lambda: found.open(listed[0][0])) == "changed"
    any_store.get("abc").confirm()


def test_links_to_a_file(tmp_path: Path) -> None:
    """A renamed file is the same file; a file with changed permissions may be another."""
    path = tmp_path / "f"
    path.write_bytes(b"x")
    before = path.stat()
    ticked(tmp_path)
    os.link(path, tmp_path / "g")
    assert is_same_version(path.stat(), before)
    before = path.stat()
    ticked(tmp_path)
    path.chmod(0o600)
    assert not is_same_version(path.stat(), before)
    assert is_same_version(path.stat(), path.stat())
    assert is_same_version(None, None)
    assert not is_same_version(None, before)
