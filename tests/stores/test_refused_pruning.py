"""Empty directories after a change, where the system refuses to remove them."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from pressmark import stores
from pressmark.errors import ObjectError
from pressmark.fs import staging
from pressmark.layouts import layout
from pressmark.stores import Store
from support.trees import write


@pytest.fixture(params=["pairtree", "vitro", "ocfl", "bags"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store with one object a few directories deep."""
    kind = request.param
    store = stores.create(kind, tmp_path / "store", layout("0004") if kind in ("ocfl", "bags") else None)
    write(tmp_path, {"given/f": b"1"})
    store.put("abcdef", tmp_path / "given")
    return store


def refuse(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Refuse to remove the store's directories; those of the run can be removed."""
    rmdir = os.rmdir

    def refused(path: Any, **options: Any) -> None:
        if b"pressmark" not in os.fsencode(path).rpartition(b"/store")[2] and "dir_fd" not in options:
            raise OSError(number, os.strerror(number), path)
        rmdir(path, **options)

    monkeypatch.setattr(os, "rmdir", refused)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EBUSY, errno.EIO])
def test_delete(any_store: Store, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """The deletion succeeds; remaining directories are reported, and a repair removes them."""
    with monkeypatch.context() as patch:
        refuse(patch, number)
        any_store.delete("abcdef")
    assert not list(any_store.objects())
    with pytest.raises(ObjectError) as caught:
        any_store.delete("abcdef")
    assert caught.value.kind == "missing"
    empty = "directory-empty" if any_store.kind == "ocfl" else "empty"
    assert [one.kind for one in any_store.check().problems] == [empty]
    any_store.repair()
    assert not any_store.check().problems


def test_put_that_is_refused(any_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names why the put failed, not that an empty directory remains."""

    def full(_old: bytes, new: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), new)

    refuse(monkeypatch, errno.EACCES)
    modules = {"bags": "bags.bag_folder", "ocfl": "ocfl.local.local_changes"}
    monkeypatch.setattr(f"pressmark.stores.{modules.get(any_store.kind, 'walked_store')}.rename_new", full)
    with pytest.raises(ObjectError) as caught:
        any_store.put("xyzxyz", tmp_path / "given")
    assert caught.value.kind == "no-space"


def test_an_old_version_that_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A removed OCFL version is gone from the root, even if its files cannot be deleted."""
    root = stores.create("ocfl", tmp_path / "store", layout("0004"))
    for word in ("old", "new"):
        write(tmp_path, {f"{word}/f": word.encode()})
    root.put("abcdef", tmp_path / "old")

    def refused(top: bytes, **_how: int) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), top)

    for module in ("stores.ocfl.local.local_changes", "fs.staging"):
        monkeypatch.setattr(f"pressmark.{module}.remove_tree", refused)
    root.put("abcdef", tmp_path / "new", replace=True)
    with root.get("abcdef").open("f") as file:
        assert file.read() == b"new"
    assert len(root.get("abcdef").inventory["versions"]) == 2
    root.delete("abcdef")
    assert not list(root.objects())
    assert {one.kind for one in root.check().problems} >= {"leftover"}
    monkeypatch.undo()
    staging.clear(os.path.join(os.fsencode(root.root), b"extensions", b"pressmark-staging"))
    assert root.repair().ok
