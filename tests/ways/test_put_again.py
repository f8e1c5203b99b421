"""An object that exists already with the same content is a success, as in a migration; with other content, an error."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pressmark import stores
from pressmark.errors import ObjectError
from support.trees import write
from ways.stores import KINDS, make_store, object_directory

FILES = {"a.txt": b"alpha" * 1000}


def listed(folder: Path, kind: str, count: int = 5) -> Path:
    """Make sources, and a list of them."""
    lines = []
    for number in range(count):
        files = {"a.txt": b"%d" % number} if kind == "vitro" else {"a.txt": b"%d" % number, "sub/b": b"beta"}
        write(folder / f"in-{number}", files)
        lines.append(f"id:{number}\t{folder / f'in-{number}'}\n")
    path = folder / "list.tsv"
    path.write_text("".join(lines))
    return path


def summary(result: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])["summary"]
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_list_again(kind: str, tmp_path: Path, call: Any, implementation: Any) -> None:
    """Equal objects are listed and counted, new ones are stored, and an object with other content fails."""
    path = listed(tmp_path, kind)
    store = make_store(kind, tmp_path / "store", {})
    command = ("store", "put", f"{store}", "--from", f"{path}")
    first = call(*command)
    assert first.exit_code == 0
    again = call(*command)
    assert (again.exit_code, again.stdout) == (0, first.stdout)
    assert f"{store}: 5 objects exist with the same content; not stored again" in again.stderr
    lines = [json.loads(line) for line in call(*command, "--json").stdout.splitlines()]
    assert lines.pop() == {"summary": {"ok": True, "stored": 0, "failed": 0, "warnings": 0, "exists_same": 5}}
    assert all(line.pop("exists_same") for line in lines)
    assert lines == [record.record() for record in sorted(stores.open(store).objects(), key=lambda one: one.id or "")]
    call("store", "rm", f"{store}", "id:1")
    (tmp_path / "in-3/a.txt").write_bytes(b"?")
    result = call(*command, "--json")
    assert result.exit_code == 1
    assert summary(result) == {"ok": False, "stored": 1, "failed": 1, "warnings": 0, "exists_same": 3}
    assert "'id:3': " in result.stderr
    assert "exists at" in result.stderr


#: Differences between a source and the object.
DIFFERENT: dict[str, Callable[[Path], object]] = {
    "content": lambda source: (source / "a.txt").write_bytes(b"alphA" * 1000),
    "size": lambda source: (source / "a.txt").write_bytes(b"alpha"),
    "name": lambda source: (source / "a.txt").rename(source / "b.txt"),
    "no file": lambda source: (source / "a.txt").unlink(),
    "one more": lambda source: (source / "b.txt").write_bytes(b""),
    "link": lambda source: (source / "b.txt").symlink_to("a.txt"),
    "pipe": lambda source: ((source / "a.txt").unlink(), os.mkfifo(source / "a.txt")),
    "no source": lambda source: source.rename(source.with_name("moved")),
}


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_the_same(kind: str, many: bool, tmp_path: Path, implementation: Any) -> None:
    store = stores.open(make_store(kind, tmp_path / "store", {"x": FILES}))
    kinds = {}
    for name, change in DIFFERENT.items():
        source = tmp_path / name / "in"
        write(source, FILES)
        change(source)
        kinds[name] = put(store, source, many)
        (store.get("x").open("a.txt")).close()
    expected = dict.fromkeys(DIFFERENT, "exists")
    single = {"no file", "one more", "link", "pipe", "no source"} if kind == "vitro" else set()
    assert {name: found for name, found in kinds.items() if name not in single} == {
        name: found for name, found in expected.items() if name not in single
    }
    assert all(kinds[name] in ("exists", "source") for name in single)


def put(store: Any, source: Any, many: bool) -> str | None:
    """Put an object that exists, and return the kind of the error."""
    results: list[Any] = []
    if many:
        with store.ingest(compare=True, results=results) as batch:
            batch.put("x", source)
        assert results[0].record is None or results[0].record.exists_same
        return None if results[0].error is None else str(results[0].error.kind)
    try:
        assert store.put("x", source, compare=True).exists_same
    except ObjectError as error:
        return error.kind
    return None


class Once:
    """Content that can be read once."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)

    def read(self, size: int, /) -> bytes:
        return self._file.read(size)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_content(kind: str, many: bool, tmp_path: Path, implementation: Any) -> None:
    """Bytes and open files are compared and can be read afterwards; what can be read once is not read."""
    store = stores.open(make_store(kind, tmp_path / "store", {"x": FILES}))
    data = FILES["a.txt"]
    file = io.BytesIO(b"head" + data)
    file.seek(4)
    once = Once(data)
    assert put(store, {"a.txt": data}, many) is None
    assert put(store, {"a.txt": file}, many) is None
    assert (file.tell(), file.read()) == (4, data)
    assert put(store, {"a.txt": file}, many) == "exists"  # at its end
    assert put(store, {"a.txt": once}, many) == "exists"
    assert once.read(-1) == data
    assert put(store, {"a.txt": data[:-1]}, many) == "exists"
    with pytest.raises(ObjectError) as caught:  # by default, an existing object is not looked into
        store.put("x", {"a.txt": data})
    assert caught.value.kind == "exists"


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_content_is_not_the_same(kind: str, tmp_path: Path, call: Any, implementation: Any) -> None:
    """The stored files are read: an inventory or a manifest does not stand for them."""
    store = make_store(kind, tmp_path / "store", {"x": FILES})
    write(tmp_path / "in", FILES)
    for path in object_directory(store, "x").rglob("a.txt"):
        path.write_bytes(b"alphA" + path.read_bytes()[5:])
    result = call("store", "put", f"{store}", "x", f"{tmp_path / 'in'}")
    assert result.exit_code == 1
    assert "exists" in result.stderr


def test_what_a_kind_compares(tmp_path: Path, implementation: Any) -> None:
    """OCFL: the newest version. Bags: the payload, empty directories, and the elements of the call."""
    root = stores.open(make_store("ocfl", tmp_path / "root", {"x": {"a.txt": b"first"}}))
    root.put("x", {"a.txt": b"second"}, replace=True)
    assert put(root, {"a.txt": b"first"}, False) == "exists"
    assert put(root, {"a.txt": b"second"}, False) is None
    write(tmp_path / "in", FILES)
    (tmp_path / "in/empty").mkdir()
    for kind in ("pairtree", "bags"):
        store = stores.open(make_store(kind, tmp_path / kind, {"x": FILES}))
        assert put(store, FILES, False) is None
        assert put(store, tmp_path / "in", False) == "exists"
        store.put("x", tmp_path / "in", replace=True)
        assert put(store, tmp_path / "in", False) is None
    folder = stores.open(tmp_path / "bags")
    assert isinstance(folder, stores.BagFolder)
    folder.put("y", FILES, info={"Contact-Name": "A"})
    assert folder.put("y", FILES, info={"Contact-Name": "A"}, compare=True).exists_same
    with pytest.raises(ObjectError, match="exists"):
        folder.put("y", FILES, info={"Contact-Name": "B"}, compare=True)


@pytest.mark.parametrize("kind", KINDS)
def test_stored_meanwhile(kind: str, tmp_path: Path, implementation: Any) -> None:
    """An equal object that another run stores during the batch is equal as well."""
    store = stores.open(make_store(kind, tmp_path / "store", {}))
    write(tmp_path / "in", FILES)
    results: list[Any] = []
    with store.ingest(compare=True, results=results) as batch:
        batch.put("x", tmp_path / "in")
        batch.put("y", {"a.txt": b"ours"})
        other = stores.open(store.root)
        other.put("x", tmp_path / "in")
        other.put("y", {"a.txt": b"theirs"})
    assert [result.record and result.record.exists_same for result in results] == [True, None]
    assert results[1].error.kind == "exists"
