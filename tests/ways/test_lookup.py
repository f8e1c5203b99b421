"""An object that the walk lists is found by every command, wherever it is, and never stored twice."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pressmark import Pairtree, stores
from pressmark.errors import ObjectError, StoreError
from ways.stores import changing_commands, make_store, object_directory, reading_commands

FILES = {"a.txt": b"alpha"}
ID = "été:1"


def _in_pairs(cleaned: str) -> str:
    return "/".join(cleaned[at : at + 2] for at in range(0, len(cleaned), 2))


def _respell(spell: Callable[[str], str]) -> Callable[[Path, str], None]:
    """Return a function that moves an object of a Pairtree to another spelling of its ppath."""

    def move(store: Path, identifier: str) -> None:
        now = object_directory(store, identifier)
        new = store / "pairtree_root" / _in_pairs(spell(identifier))
        new.mkdir(parents=True)
        for entry in list(now.iterdir()):
            entry.rename(new / entry.name)
        while now.name != "pairtree_root":
            now.rmdir()
            now = now.parent
            if any(now.iterdir()):
                break

    return move


def _over_encoded(identifier: str) -> str:
    return "".join(f"^{byte:02x}" for byte in identifier.encode())


def _upper(identifier: str) -> str:
    return "".join(part.upper() if part.startswith("^") else part for part in _escapes(Pairtree.clean(identifier)))


def _escapes(cleaned: str) -> list[str]:
    parts = cleaned.split("^")
    return [parts[0], *(piece for part in parts[1:] for piece in (f"^{part[:2]}", part[2:]))]


def _move(store: Path, identifier: str) -> None:
    now = object_directory(store, identifier)
    (store / "elsewhere").mkdir()
    now.rename(store / "elsewhere" / "moved")
    now = now.parent
    while now != store and not any(now.iterdir()):
        now.rmdir()
        now = now.parent


def _without_layout(store: Path, identifier: str) -> None:
    _move(store, identifier)
    (store / "ocfl_layout.json").unlink()


def _other_layout(store: Path, _identifier: str) -> None:
    document = {"extension": "0002-flat-direct-storage-layout", "description": "flat"}
    (store / "ocfl_layout.json").write_text(json.dumps(document))


def _unmappable(store: Path, _identifier: str) -> None:
    """Declare a layout that cannot map the identifier."""
    name = "0006-flat-omit-prefix-storage-layout"
    (store / "ocfl_layout.json").write_text(json.dumps({"extension": name, "description": "flat"}))
    (store / "extensions" / name).mkdir(parents=True)
    (store / "extensions" / name / "config.json").write_text(json.dumps({"extensionName": name, "delimiter": "urn:"}))


def _hide(store: Path, identifier: str) -> None:
    stores.open(store, "vitro").declare(identifier[:2])


#: By name: the kind of a store, and a function that changes how its objects are placed.
PLACEMENTS: dict[str, tuple[str, Callable[[Path, str], None]]] = {
    "raw letters": ("pairtree", _respell(lambda identifier: identifier)),
    "raw colon": ("pairtree", _respell(lambda identifier: Pairtree.clean(identifier).replace("+", ":"))),
    "upper case": ("pairtree", _respell(_upper)),
    "over-encoded": ("pairtree", _respell(_over_encoded)),
    "hidden": ("vitro", _hide),
    "moved object": ("ocfl", _move),
    "other layout": ("ocfl", _other_layout),
    "layout without a path": ("ocfl", _unmappable),
    "no layout": ("ocfl", _without_layout),
    "moved bag": ("bags", _move),
}
#: Where new objects are refused until the caller specifies a layout.
REFUSED = [name for name, (kind, _change) in PLACEMENTS.items() if kind in ("ocfl", "bags")]


def _placed(name: str, path: Path, *others: str) -> tuple[str, Path]:
    kind, change = PLACEMENTS[name]
    store = make_store(kind, path, {ID: FILES, **dict.fromkeys(others, FILES)})
    change(store, ID)
    assert sorted(str(record.id) for record in stores.open(store).objects()) == sorted([ID, *others])
    return kind, store


def _listing(store: Path) -> list[tuple[str | None, str]]:
    return [(record.id, record.path) for record in stores.open(store).objects()]


@pytest.mark.parametrize("name", PLACEMENTS)
def test_listed_objects_are_found(name: str, tmp_path: Path, call: Any, implementation: Any) -> None:
    kind, store = _placed(name, tmp_path / "store", "other")
    at = os.path.relpath(object_directory(store, ID), store)
    # By its identifier, and by the path that ls prints.
    for number, given in enumerate((ID, at)):
        for command, arguments in reading_commands(kind, store, given, "a.txt", tmp_path / f"out-{number}").items():
            if command.startswith("get --"):
                continue
            result = call(*arguments)
            assert result.exit_code == 0, (command, given, result.output)
        assert (tmp_path / f"out-{number}" / "a.txt").read_bytes() == b"alpha"
    if kind == "ocfl":
        assert call("store", "diff", f"{store}", at).exit_code == 0
        assert call("store", "diff", f"{store}", ID).exit_code == 0
    opened = stores.open(store)
    (record,) = (record for record in opened.objects() if record.id == ID)
    assert opened.find(ID) == record == opened.at(record.path)
    assert dict(opened.get(ID).files()).keys() == {"a.txt"}
    assert opened.at("elsewhere") is opened.at("../store") is opened.at("") is None


@pytest.mark.parametrize("name", PLACEMENTS)
def test_objects_are_never_stored_twice(name: str, tmp_path: Path, call: Any, implementation: Any) -> None:
    new = tmp_path / "a.txt"
    new.write_bytes(b"new")
    (tmp_path / "list").write_text(f"{ID}\t{new}\n")
    kind, store = _placed(name, tmp_path / "store", "other")
    before = _listing(store)
    layouts: list[tuple[str, ...]] = [()]
    if name in REFUSED:
        layouts.append(("--layout", "0003"))
    if kind == "ocfl":
        layouts.append(("--layout", "0002"))
    for layout in layouts:
        for arguments in ((ID, f"{new}"), ("--from", f"{tmp_path}/list")):
            result = call("store", "put", f"{store}", *arguments, *layout)
            assert result.exit_code != 0, (arguments, layout)
            if layout or name not in REFUSED:
                assert "exists at" in result.stderr
            assert _listing(store) == before
    opened = stores.open(store)
    if name not in REFUSED:
        with pytest.raises(ObjectError) as error:
            opened.put(ID, new)
        assert error.value.kind == "exists"


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("name", PLACEMENTS)
def test_that_object_is_replaced(name: str, many: bool, tmp_path: Path, call: Any, implementation: Any) -> None:
    new = tmp_path / "a.txt"
    new.write_bytes(b"new")
    (tmp_path / "list").write_text(f"{ID}\t{new}\n")
    _kind, store = _placed(name, tmp_path / "store", "other")
    before = _listing(store)
    layout = ("--layout", "0003") if many and name in REFUSED else ()
    arguments = ("--from", f"{tmp_path}/list") if many else (ID, f"{new}")
    result = call("store", "put", f"{store}", "--replace", *arguments, *layout)
    assert result.exit_code == 0, result.output
    assert _listing(store) == before
    assert call("store", "cat", f"{store}", ID, "a.txt").stdout_bytes == b"new"


@pytest.mark.parametrize("by_path", [False, True])
@pytest.mark.parametrize("name", PLACEMENTS)
def test_that_object_is_changed_and_removed(
    name: str, by_path: bool, tmp_path: Path, call: Any, implementation: Any
) -> None:
    new = tmp_path / "new.txt"
    new.write_bytes(b"new")
    kind, store = _placed(name, tmp_path / "store", "other")
    before = _listing(store)
    at = os.path.relpath(object_directory(store, ID), store) if by_path else ID
    for command, arguments in changing_commands(kind, store, at, "a.txt", new).items():
        if command.startswith("put") or command == "rm" or command == "update --rename":
            continue
        result = call(*arguments)
        assert result.exit_code == 0, (command, result.output)
        assert _listing(store) == before
    assert call("store", "rm", f"{store}", at).exit_code == 0
    assert [identifier for identifier, _path in _listing(store)] == ["other"]
    assert call("store", "rm", f"{store}", at).exit_code == 1


@pytest.mark.parametrize("name", REFUSED)
def test_new_objects_need_a_layout(name: str, tmp_path: Path, call: Any, implementation: Any) -> None:
    """In a store whose objects are not where the layout puts them, the caller says where new ones go."""
    new = tmp_path / "new.txt"
    new.write_bytes(b"new")
    (tmp_path / "list").write_text(f"another\t{new}\n")
    _kind, store = _placed(name, tmp_path / "store", "other")
    before = sorted(store.rglob("*"))
    for arguments in (("another", f"{new}"), ("another", f"{new}", "--replace"), ("--from", f"{tmp_path}/list")):
        result = call("store", "put", f"{store}", *arguments)
        assert result.exit_code == 2
        (line,) = result.stderr.splitlines()
        assert "--layout" in line
        if name != "no layout":
            moved = next(path for identifier, path in _listing(store) if identifier in (ID, "other"))
            assert moved in line or object_directory(store, ID).name in line
        assert sorted(store.rglob("*")) == before
    opened = stores.open(store)
    with pytest.raises(StoreError, match="layout="):
        opened.put("another", new)
    with pytest.raises(StoreError, match="layout="), opened.ingest():
        pass
    for number, arguments in enumerate((("new", f"{new}"), ("--from", f"{tmp_path}/list"))):
        result = call("store", "put", f"{store}", *arguments, "--layout", "0003")
        assert result.exit_code == 0, result.output
        assert len(_listing(store)) == 3 + number


@pytest.mark.parametrize("name", PLACEMENTS)
def test_two_objects_of_one_identifier_are_reported(name: str, tmp_path: Path, call: Any, implementation: Any) -> None:
    kind, store = _placed(name, tmp_path / "store")
    twin = make_store(kind, tmp_path / "twin", {ID: FILES})
    if kind == "vitro":
        # It is at the canonical path now.
        stores.open(twin).declare(ID[:2])
        (directory,) = (store / "file_storage_root" / stores.open(store).layout.map_id(ID),)
    else:
        directory = store / os.path.relpath(object_directory(twin, ID), twin)
        directory = directory if not directory.exists() else store / "another"
    directory.parent.mkdir(parents=True, exist_ok=True)
    if directory.exists():
        for entry in list(object_directory(twin, ID).iterdir()):
            entry.rename(directory / entry.name)
    else:
        object_directory(twin, ID).rename(directory)
    paths = [path for identifier, path in _listing(store) if identifier == ID]
    assert len(paths) == 2
    commands = {**reading_commands(kind, store, ID, "a.txt", tmp_path / "out")}
    changes = changing_commands(kind, store, ID, "a.txt", tmp_path / "list")
    # An upgrade selects all objects of an identifier, as a check does.
    commands.update({one: changes[one] for one in changes if one not in ("put", "upgrade")})
    (tmp_path / "list").write_bytes(b"new")
    for command, arguments in commands.items():
        result = call(*arguments)
        assert result.exit_code == 1, (command, result.output)
        assert all(path in result.stderr for path in paths), (command, result.stderr)
    # Each can be reached by its path.
    assert call("store", "cat", f"{store}", paths[1], "a.txt").stdout_bytes == b"alpha"
    assert call("store", "rm", f"{store}", paths[0]).exit_code == 0
    assert _listing(store) == [(ID, paths[1])]
    assert call("store", "cat", f"{store}", ID, "a.txt").exit_code == 0


def test_an_identifier_wins_over_a_path(tmp_path: Path, call: Any, implementation: Any) -> None:
    store = make_store("ocfl", tmp_path / "store", {ID: FILES})
    _move(store, ID)
    new = tmp_path / "new"
    new.mkdir()
    (new / "a.txt").write_bytes(b"by identifier")
    assert call("store", "put", f"{store}", "elsewhere/moved", f"{new}", "--layout", "0004").exit_code == 0
    assert call("store", "cat", f"{store}", "elsewhere/moved", "a.txt").stdout_bytes == b"by identifier"
