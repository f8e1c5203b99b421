"""The tables of commands: on a sound store, each of them succeeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ways.stores import KINDS, changing_commands, make_store, object_directory, reading_commands

FILES = {"a.txt": b"alpha", "sub/b.txt": b"beta"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_command_succeeds(kind: str, tmp_path: Path, call: Any, implementation: Any) -> None:
    new = tmp_path / "new.txt"
    new.write_bytes(b"new")
    names = [
        *reading_commands(kind, tmp_path, "x", "a.txt", tmp_path),
        *changing_commands(kind, tmp_path, "x", "", new),
    ]
    for number, name in enumerate(names):
        identifier = f"object {number}"
        store = make_store(kind, tmp_path / f"store-{number}", {"other": FILES, identifier: FILES})
        out = tmp_path / f"out-{number}"
        commands = {
            **reading_commands(kind, store, identifier, "a.txt", out),
            **changing_commands(kind, store, "another" if name == "put" else identifier, "a.txt", new),
        }
        assert object_directory(store, identifier).is_dir()
        result = call(*commands[name])
        assert result.exit_code == 0, (name, result.output)
