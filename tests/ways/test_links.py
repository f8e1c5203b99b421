"""A command that names an object follows the same symbolic links as the listing of the store."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.trees import snapshot
from ways.stores import KINDS, changing_commands, make_store, object_directory, reading_commands

FILES = {"a.txt": b"alpha", "sub/b.txt": b"beta"}
ID = "object"
pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")


def to_outside(path: Path, outside: Path) -> None:
    """Move a file or directory out of the store, and leave a link."""
    shutil.move(path, outside)
    path.symlink_to(outside)


def to_inside(path: Path, _outside: Path) -> None:
    """Move a file or directory to another path in the same directory, and leave a link."""
    target = path.with_name("zzz")
    path.rename(target)
    path.symlink_to(target.name)


def to_nowhere(path: Path, outside: Path) -> None:
    """Leave a link without a target."""
    shutil.move(path, outside)
    path.symlink_to("nowhere")


def to_itself(path: Path, outside: Path) -> None:
    """Leave a loop of links."""
    shutil.move(path, outside)
    path.symlink_to(path.name)


def above(path: Path, outside: Path) -> None:
    """Leave a link to a directory above it."""
    shutil.move(path, outside)
    path.symlink_to("..")


LINKS: dict[str, Callable[[Path, Path], None]] = {
    one.__name__: one for one in (to_outside, to_inside, to_nowhere, to_itself, above)
}


def paths(kind: str, store: Path, directory: Path) -> dict[str, Path]:
    """Return the files and directories that a link may replace: the object's, and all above it."""
    tree = {"pairtree": store / "pairtree_root", "vitro": store / "file_storage_root"}.get(kind, store)
    found = {"object": directory}
    for number, parent in enumerate(directory.parents):
        if parent == tree:
            break
        found[f"{number + 1} above"] = parent
    if kind == "ocfl":
        found |= {"inventory": directory / "inventory.json", "version": directory / "v1"}
        found["content"] = directory / "v1" / "content"
    elif kind == "bags":
        found["payload"] = directory / "data"
    return found


def listed(call: Any, store: Path) -> bool:
    """Return whether the listing has the object without an error."""
    result = call("store", "ls", f"{store}", "--json")
    return f'"{ID}"' in result.stdout


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("kind", KINDS)
def test_links(kind: str, link: str, tmp_path: Path, call: Any, request: Any, implementation: Any) -> None:
    """Nothing is read or changed behind a link that the listing does not follow, and nothing is removed behind any."""
    new = tmp_path / "new.txt"
    new.write_bytes(b"new")
    first = make_store(kind, tmp_path / "first", {ID: FILES, "other": FILES})
    step = 1 if request.config.getoption("--long") else 3
    commands = [*reading_commands(kind, first, ID, "", new), *changing_commands(kind, first, ID, "", new)]
    for number, (directory, path) in enumerate(paths(kind, first, object_directory(first, ID)).items()):
        # Each command with some of the places, and each place with some of the commands.
        for command in commands[number % step :: step]:
            store, outside, out = tmp_path / "store", tmp_path / "outside", tmp_path / "out"
            for old in (store, outside, out):
                shutil.rmtree(old, ignore_errors=True)
                old.unlink(missing_ok=True)
            shutil.copytree(first, store, symlinks=True)
            LINKS[link](store / path.relative_to(first), outside)
            before, kept = snapshot(store), snapshot(outside) if outside.is_dir() else None
            arguments = {
                **reading_commands(kind, store, ID, "a.txt", out),
                **changing_commands(kind, store, ID, "a.txt", new),
            }[command]
            is_listed = listed(call, store)
            result = call(*arguments)
            case = (directory, command, result.output)
            if kept is not None:
                assert snapshot(outside) == kept, case
            if directory in ("payload", "version", "content"):
                # The object is damaged: it can be removed, and replaced by a new bag or version.
                assert result.exit_code == 1 or command not in ("ls", "get", "cat"), case
            elif kind == "pairtree" and is_listed:
                # Links are followed, but nothing is removed behind them.
                assert (result.exit_code == 0) == (command in ("ls", "get", "cat")), case
            elif not is_listed:
                assert result.exit_code == 1 or (kind == "pairtree" and command.startswith("put")), case
                assert not out.exists(), case
                assert result.exit_code == 0 or snapshot(store) == before, case


#: Our own files and directories beside the objects.
OURS = {
    "pairtree": ("pairtree_pressmark",),
    "vitro": ("file_storage_pressmark",),
    "ocfl": ("extensions", "extensions/pressmark-staging", "extensions/0004-hashed-n-tuple-storage-layout"),
    "bags": (".pressmark-work",),
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in KINDS for name in OURS[kind]])
def test_links_to_our_directories(kind: str, name: str, tmp_path: Path, call: Any, implementation: Any) -> None:
    """A link in the place of one of our directories is not followed: nothing is written or removed behind it."""
    new = tmp_path / "new.txt"
    new.write_bytes(b"new")
    store, outside = make_store(kind, tmp_path / "store", {ID: FILES}), tmp_path / "outside"
    if (store / name).exists():
        shutil.move(store / name, outside)
    else:
        outside.mkdir()
    (store / name).parent.mkdir(exist_ok=True)
    (store / name).symlink_to(outside)
    for other in ("index", "index.html", "lock", "renaming", "0123/lock"):
        (outside / other).parent.mkdir(exist_ok=True)
        (outside / other).write_bytes(b"theirs")
    before = snapshot(outside)
    out = tmp_path / "out"
    for command, arguments in {
        **reading_commands(kind, store, ID, "a.txt", out),
        "check": ("store", "check", f"{store}"),
        "report": ("store", "report", f"{store}", "--json"),
        "repair": ("store", "repair", f"{store}"),
        **changing_commands(kind, store, ID, "a.txt", new),
    }.items():
        shutil.rmtree(out, ignore_errors=True)
        result = call(*arguments)
        case = (command, result.output)
        assert snapshot(outside) == before, case
        assert result.exit_code in (0, 1, 2), case
        if "pressmark-staging" in name and command in ("put --replace", "update --add", "rm"):
            assert result.exit_code == 1, case


def test_layout_behind_a_link(tmp_path: Path, call: Any, implementation: Any) -> None:
    """A root whose layout has its parameters behind a link is not read with the default parameters."""
    store = tmp_path / "root"
    call("store", "init", "ocfl", f"{store}", "--layout", "0004:tupleSize=2")
    shutil.move(store / "extensions", tmp_path / "outside")
    for target in (tmp_path / "outside", tmp_path / "nowhere"):
        (store / "extensions").unlink(missing_ok=True)
        (store / "extensions").symlink_to(target)
        (tmp_path / "a.txt").write_bytes(b"a")
        result = call("store", "put", f"{store}", "x", f"{tmp_path}/a.txt")
        assert result.exit_code != 0
        assert "symbolic link" in result.output
        assert result.output.count("\n") == 1
