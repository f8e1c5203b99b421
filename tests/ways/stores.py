"""Every kind of store, and every command that reads or changes one object.

A rule that holds for one way of reaching an object holds for all of them: a test of such a rule takes its cases from
here, so that a new kind of store or a new command is tested without a new test.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pressmark import stores
from pressmark.stores.registry import store_class
from support.trees import write

KINDS = ("pairtree", "vitro", "ocfl", "bags")

#: Arguments of `pressmark.stores.create` for a store that is quick to fill.
OPTIONS: dict[str, dict[str, Any]] = {
    "pairtree": {"durable": False},
    "vitro": {"durable": False},
    "ocfl": {"durable": False, "layout": "0004"},
    "bags": {"layout": "0004"},
}


def make_store(kind: str, path: Path, objects: Mapping[str, Mapping[str, bytes]]) -> Path:
    """Create a store with these objects, given as files by name; of a Vitro object only the first file is stored."""
    store = store_class(kind).create(path, **OPTIONS[kind])
    for number, (identifier, files) in enumerate(objects.items()):
        source = path.parent / f"{path.name}-source-{number}"
        names = list(files)[:1] if kind == "vitro" else files
        write(source, {name: files[name] for name in names})
        store.put(identifier, source)
    return path


def object_directory(store: Path, identifier: str) -> Path:
    """Return the directory of an object, found by listing the store."""
    opened = stores.open(store)
    for record in opened.objects():
        if record.id == identifier:
            return Path(os.fsdecode(os.path.join(os.fsencode(store), os.fsencode(record.path))))
    raise AssertionError(f"{store}: {identifier} is not listed")


def reading_commands(kind: str, store: Path, identifier: str, name: str, out: Path) -> dict[str, Sequence[str]]:
    """Return every command that reads one object, by its name; ``name`` is a file of it, ``out`` does not exist."""
    commands: dict[str, Sequence[str]] = {
        "ls": ("store", "ls", f"{store}", identifier),
        "get": ("store", "get", f"{store}", identifier, f"{out}"),
        "cat": ("store", "cat", f"{store}", identifier, name),
    }
    if kind == "ocfl":
        commands["log"] = ("store", "log", f"{store}", identifier)
        commands["get --version"] = ("store", "get", f"{store}", identifier, f"{out}", "--version", "v1")
        commands["cat --version"] = ("store", "cat", f"{store}", identifier, name, "--version", "v1")
    return commands


def changing_commands(kind: str, store: Path, identifier: str, name: str, source: Path) -> dict[str, Sequence[str]]:
    """Return every command that changes one object, by its name; ``source`` is a file with new content."""
    commands: dict[str, Sequence[str]] = {
        "put": ("store", "put", f"{store}", identifier, f"{source}"),
        "put --replace": ("store", "put", f"{store}", identifier, f"{source}", "--replace"),
        "rm": ("store", "rm", f"{store}", identifier),
    }
    if kind == "ocfl":
        commands["update --add"] = ("store", "update", f"{store}", identifier, "--add", f"{source}={name}")
        commands["update --remove"] = ("store", "update", f"{store}", identifier, "--remove", name)
        commands["restore"] = ("store", "restore", f"{store}", identifier, "--version", "v1")
        commands["upgrade"] = ("store", "upgrade", f"{store}", identifier, "--algorithm", "sha256")
        commands["update --rename"] = ("store", "update", f"{store}", identifier, "--rename", f"{name}={name}.new")
    return commands
