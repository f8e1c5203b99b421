"""Stores with objects to migrate, and the results of plans and runs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pressmark import layouts, migrate, stores
from pressmark.errors import MigrationError
from pressmark.stores.registry import store_class

#: Stores that do not flush to disk.
QUICK: dict[str, dict[str, Any]] = {
    "pairtree": {"durable": False},
    "vitro": {"durable": False},
    "ocfl": {"durable": False},
    "bags": {},
}


def layout_or_none(name: str | None) -> Any:
    return None if name is None else layouts.layout(name)


def made(
    path: Path, identifiers: Sequence[str], files: Mapping[str, bytes] | None = None, kind: str = "pairtree", **how: Any
) -> Path:
    """Make a store whose objects have the same files."""
    store = store_class(kind).create(path, **QUICK[kind], **how)
    given = {}
    for number, (name, content) in enumerate((files or {"data.txt": b"content"}).items()):
        given[name] = path.parent / f"file-{path.name}-{number}"
        given[name].write_bytes(content)
    for identifier in identifiers:
        store.put(identifier, given)
    return path


def contents(path: Path) -> dict[str, dict[str, bytes]]:
    """Return the files of all objects of a store, by identifier and name."""
    store = stores.open(path)
    found = {}
    for record in store.objects():
        assert record.id is not None
        found[record.id] = {name: Path(file).read_bytes() for name, file in store.get(record.id).files()}
    return found


def refused(*arguments: Any, **how: Any) -> tuple[MigrationError, list[dict[str, Any]]]:
    """Make a plan that is refused; return the error and the listed conflicts."""
    with pytest.raises(MigrationError) as caught:
        migrate.plan(*arguments, **how)
    error = caught.value
    assert len(str(error).splitlines()) == 1
    assert not os.path.exists(arguments[1]) or not os.listdir(arguments[1])
    return error, [] if error.refused is None else listed(error.refused)


def listed(path: str | Path) -> list[dict[str, Any]]:
    """Return the JSON lines of a file."""
    with open(path, "rb") as lines:
        return [json.loads(line) for line in lines]


def warnings(plan: migrate.Plan) -> list[dict[str, Any]]:
    return listed(Path(plan.work) / "warnings.jsonl")


def known_rows(plan: migrate.Plan) -> list[migrate.Entry]:
    return [migrate.Entry.parse(line) for line in (Path(plan.work) / "known.jsonl").read_bytes().splitlines()]


def targets(plan: migrate.Plan) -> dict[str, str]:
    return {entry.source_id: entry.target for entry in plan.entries()}
