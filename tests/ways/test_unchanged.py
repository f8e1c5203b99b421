"""A change of a source object is seen, however it is made: by a catch-up, and before a source is removed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pressmark import migrate, stores
from pressmark.migrate import remove
from support.trees import snapshot
from ways.stores import make_store, object_directory

FILES = {"d1/a.txt": b"aaaa", "d2/b.txt": b"bbbb", "top.txt": b"tttt", "future.txt": b"ffff"}
FUTURE = 2_000_000_000_000_000_000
PAYLOAD = {"pairtree": "", "bags": "data", "ocfl": "v1/content"}
LAYOUTS = {"ocfl": "0003"}


def keep_times(path: Path, change: Callable[[], object]) -> None:
    """Make a change that leaves the time of modification of a file or directory."""
    status = path.stat()
    change()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def replace_file(top: Path) -> None:
    (top / "new").write_bytes(b"TTTT")
    status = (top / "top.txt").stat()
    os.utime(top / "new", ns=(status.st_atime_ns, status.st_mtime_ns))
    (top / "new").rename(top / "top.txt")


def swap_files(top: Path) -> None:
    (top / "d1/a.txt").rename(top / "aside")
    (top / "d2/b.txt").rename(top / "d1/a.txt")
    (top / "aside").rename(top / "d2/b.txt")


CHANGES: dict[str, Callable[[Path], object]] = {
    "a renamed directory": lambda top: (top / "d1").rename(top / "d9"),
    "a renamed file": lambda top: (top / "top.txt").rename(top / "tap.txt"),
    "a moved file": lambda top: (top / "d1/a.txt").rename(top / "d2/a.txt"),
    "content of the same size": lambda top: (top / "top.txt").write_bytes(b"TTTT"),
    "its time restored": lambda top: keep_times(top / "top.txt", lambda: (top / "top.txt").write_bytes(b"TTTT")),
    "a replaced file": replace_file,
    "exchanged files": swap_files,
}
HARMLESS: dict[str, Callable[[Path], object]] = {
    "nothing": lambda top: None,
    "permissions": lambda top: (top / "top.txt").chmod(0o600),
    "a directory's time": lambda top: os.utime(top / "d1"),
}


def make_source(kind: str, path: Path) -> Path:
    """Create a store with two objects, and return the directory of the files of one."""
    store = make_store(kind, path, {"x": FILES, "y": FILES})
    top = object_directory(store, "x")
    if kind == "pairtree":
        top = next(below for below in top.iterdir() if below.is_dir())
    os.utime(top / PAYLOAD[kind] / "future.txt", ns=(FUTURE, FUTURE))
    return top / PAYLOAD[kind]


def stored(path: Path) -> dict[bytes, bytes]:
    """Return the files of the object x, if the store has it."""
    return {os.fsencode(name): Path(file).read_bytes() for name, file in stores.open(path).get("x").files()}


def files_of(top: Path) -> dict[bytes, bytes]:
    return {name: data for name, data in snapshot(top).items() if data is not None}


@pytest.mark.parametrize("change", [*CHANGES, *HARMLESS])
@pytest.mark.parametrize("to", ["pairtree", "ocfl", "bags"])
def test_a_catch_up_sees_every_change(to: str, change: str, tmp_path: Path, implementation: Any) -> None:
    top = make_source("pairtree", tmp_path / "source")
    plan = migrate.plan(tmp_path / "source", tmp_path / "new", to=to, layout=LAYOUTS.get(to))
    assert migrate.run(plan, processes=False).by_status == {"ok": 2}
    {**CHANGES, **HARMLESS}[change](top)
    later = migrate.catch_up(plan)
    done = migrate.run(later, processes=False)
    assert done.ok
    if change in CHANGES:
        assert (later.objects, done.by_status) == (1, {"ok": 1})
    else:
        assert done.by_status in ({}, {"exists_same": 1})
    assert stored(tmp_path / "new") == files_of(top)


@pytest.mark.parametrize("to", ["pairtree", "bags"])
def test_a_catch_up_sees_empty_directories(to: str, tmp_path: Path, implementation: Any) -> None:
    top = make_source("pairtree", tmp_path / "source")
    plan = migrate.plan(tmp_path / "source", tmp_path / "new", to=to)
    assert migrate.run(plan, processes=False).ok
    (top / "empty").mkdir()
    later = migrate.catch_up(plan)
    assert later.objects == 1
    assert migrate.run(later, processes=False).ok
    last = migrate.catch_up(later)
    assert (last.objects, last.unchanged) == (0, 2)
    (top / "empty").rmdir()
    assert migrate.catch_up(later).objects == 1


def test_hard_links_of_our_own_are_no_change(tmp_path: Path, implementation: Any) -> None:
    top = make_source("pairtree", tmp_path / "source")
    plan = migrate.plan(tmp_path / "source", tmp_path / "new", to="pairtree", copy_mode="hardlink")
    assert migrate.run(plan, processes=False).ok
    assert (migrate.catch_up(plan).objects, (top / "top.txt").stat().st_nlink) == (0, 2)
    moved = migrate.plan(tmp_path / "source", tmp_path / "other", to="pairtree", copy_mode="hardlink", move=True)
    assert migrate.run(moved, processes=False).ok
    assert not top.exists()


@pytest.mark.parametrize("change", [*CHANGES, *HARMLESS])
@pytest.mark.parametrize(
    ("kind", "to"), [("pairtree", "pairtree"), ("pairtree", "ocfl"), ("bags", "pairtree"), ("ocfl", "bags")]
)
def test_a_source_that_changed_is_not_removed(
    kind: str, to: str, change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, implementation: Any
) -> None:
    """The change is made between the copy and the removal."""
    top = make_source(kind, tmp_path / "source")
    plan = migrate.plan(
        tmp_path / "source", tmp_path / "new", to=to, layout=LAYOUTS.get(to), copy_mode="copy", move=True
    )
    before = remove.remove_source
    changes = [{**CHANGES, **HARMLESS}[change]]

    def changed_before(*arguments: Any) -> Any:
        while changes:  # before the first object
            changes.pop()(top)
        return before(*arguments)

    monkeypatch.setattr(remove, "remove_source", changed_before)
    done = migrate.run(plan, processes=False)
    if change in CHANGES:
        assert top.exists()
        assert not done.ok
    else:
        assert done.ok
        assert not top.exists()
        found = {name.removeprefix(b"data/"): data for name, data in stored(tmp_path / "new").items()}
        assert {name.encode(): data for name, data in FILES.items()}.items() <= found.items()
