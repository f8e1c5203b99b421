"""Sources of objects: copied completely, or refused with the reason."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark import stores
from pressmark.errors import ObjectError
from pressmark.stores.exceptions import SourceError
from pressmark.stores.object_sources import Copier, SourceCopy
from support.trees import snapshot, write


@pytest.fixture
def folder(tmp_path: Path) -> bytes:
    return os.fsencode(tmp_path)


def copy_source(source: Any, target: bytes, links: str = "refuse", **how: Any) -> SourceCopy:
    """Copy one source, and return its copy."""
    [copy] = Copier("auto", set()).copy([SourceCopy(source, target, links, **how)])
    copy.raise_error()
    return copy


def test_copying_a_directory_into_itself(folder: bytes, tmp_path: Path) -> None:
    """A directory is not copied into itself, under any path."""
    write(tmp_path / "around", {"file": b"x", "store/": None})
    (tmp_path / "link").symlink_to("around/store")
    for store in (b"around/store", b"link"):
        target = os.path.join(folder, store, b"object")
        for source in (tmp_path / "around", {"name": tmp_path / "around" / "store" / ".."}):
            with pytest.raises(SourceError, match="cannot copy a directory into itself") as caught:
                copy_source(source, target)
            assert caught.value.kind == "source"
            os.rmdir(target)  # an empty directory


def test_links_that_multiply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two links on each of 30 levels lead to a billion files; a few links to the same directory are copied."""
    monkeypatch.setattr("pressmark.stores.object_sources.LINKED", 1000)
    for level in range(30):
        (tmp_path / f"in/{level}").mkdir(parents=True)
        for name in ("a", "b"):
            (tmp_path / f"in/{level}/{name}").symlink_to(f"../{level + 1}")
    write(tmp_path / "in/30", {"file": b"x"})
    store = stores.create("pairtree", tmp_path / "store")
    with pytest.raises(ObjectError, match=r"links lead to more than 1,000 names .* out of the source$") as caught:
        store.put("abcd", tmp_path / "in/0", links="follow")
    assert caught.value.kind == "source"
    assert list(store.objects()) == []
    assert store.check().problems == []
    store.put("abcd", tmp_path / "in/24", links="follow")
    assert len(list(store.get("abcd").files())) == 64


def test_copying_a_link_to_a_directory_above_the_copy(folder: bytes, tmp_path: Path) -> None:
    """A followed link to a directory that contains the destination is refused before anything is copied."""
    write(tmp_path / "in", {"a/": None, "b/file": b"x"})
    write(tmp_path / "store", {"object/file": b"y"})
    link = tmp_path / "in" / "a" / "link"
    target = os.path.join(folder, b"store", b"new")
    for path in ("store", "."):
        link.symlink_to(tmp_path / path)
        with pytest.raises(SourceError, match="in/a/link': cannot copy a directory into itself"):
            copy_source(tmp_path / "in", target, links="follow")
        assert os.listdir(target) == [b"a"]
        shutil.rmtree(target)
        link.unlink()
    link.symlink_to(tmp_path / "store" / "object")
    assert copy_source(tmp_path / "in", target, links="follow").files == 2


def test_copying(folder: bytes, tmp_path: Path) -> None:
    """The digests of copied files are available, and conflicting names in a mapping are refused."""
    write(tmp_path / "in", {"a": b"1", "b/c": b"2"})
    digests = {}
    target = os.path.join(folder, b"out")
    copy = copy_source(
        tmp_path / "in",
        target,
        algorithms=("md5",),
        on_file=lambda name, outcome: digests.update({name: (outcome.digests or {})["md5"]}),
    )
    assert copy.files == 2
    assert digests == {b"a": "c4ca4238a0b923820dcc509a6f75849b", b"b/c": "c81e728d9d4c2f636f067f89cc14862c"}
    assert snapshot(tmp_path / "out") == {b"a": b"1", b"b": None, b"b/c": b"2"}
    with pytest.raises(OSError, match=r"exists|directory"):
        copy_source({"x": tmp_path / "in" / "a", "x/y": tmp_path / "in" / "a"}, os.path.join(folder, b"odd"))
    with pytest.raises(SourceError, match="not a valid file name"):
        copy_source({"..": tmp_path / "in" / "a"}, os.path.join(folder, b"up"))


@pytest.mark.parametrize(("name", "why"), [("pipe", "named pipe"), ("nowhere", "dangling"), ("self", "symbolic")])
def test_sources_that_every_store_refuses(tmp_path: Path, name: str, why: str) -> None:
    """All stores refuse the same sources with the same messages."""
    write(tmp_path, {"in/below/": None})
    if name == "pipe":
        os.mkfifo(tmp_path / "in" / "below" / name)
    else:
        (tmp_path / "in" / "below" / name).symlink_to("nothing" if name == "nowhere" else name)
    said = set()
    for kind in ("pairtree", "ocfl"):
        store = stores.create(kind, tmp_path / kind, pressmark.layout("0002") if kind == "ocfl" else None)
        with pytest.raises(ObjectError, match=why) as caught:
            store.put("abc", tmp_path / "in", links="follow")
        assert caught.value.reason.endswith("; move it out of the source")
        said.add(caught.value.reason)
    assert len(said) == 1


@pytest.mark.parametrize("kind", ["pairtree", "ocfl"])
def test_a_temporarily_inaccessible_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """A directory is never mistaken for a file of its name, whichever system call fails."""
    source = tmp_path / "source"
    write(source, {"one": b"1", "two/three": b"23"})
    (source / "zero").symlink_to("one")  # a directory with links is walked by Python
    stat = os.stat
    looks = at = 0

    def failing(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
        nonlocal looks
        looks += path == os.fsencode(source)
        if path == os.fsencode(source) and looks == at:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return stat(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", failing)
    while looks >= at:
        at, looks = at + 1, 0
        store = stores.create(kind, tmp_path / str(at), pressmark.layout("0002") if kind == "ocfl" else None)
        try:
            store.put("name", source, links="follow")
        except ObjectError:
            assert list(store.objects()) == []
        else:
            assert [name for name, _path in store.get("name").files()] == ["one", "two/three", "zero"]
    assert at > 2
