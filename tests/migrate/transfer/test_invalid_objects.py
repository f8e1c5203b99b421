"""OCFL objects that are not valid: a migration to another OCFL storage root refuses to move and to copy them alike."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pressmark import migrate

from ..stores_to_migrate import layout_or_none, made

#: The algorithm and the content of the one file of each object.
ALGORITHM, CONTENT = "sha512", "v1/content/data.txt"


def change_inventory(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the inventory of an object of one version, and its sidecars."""
    document = json.loads((path / "inventory.json").read_bytes())
    change(document)
    data = json.dumps(document).encode()
    for folder in (path, path / "v1"):
        (folder / "inventory.json").write_bytes(data)
        sidecar = f"{hashlib.new(ALGORITHM, data).hexdigest()} inventory.json\n"
        (folder / f"inventory.json.{ALGORITHM}").write_text(sidecar)


def inventory(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    return lambda path: change_inventory(path, change)


def link(path: Path) -> None:
    os.symlink("data.txt", path / "v1" / "content" / "link")


def hard_link(path: Path) -> None:
    os.link(path / CONTENT, path.parent / "elsewhere")


def remove_version_inventory(path: Path) -> None:
    for file in (path / "v1").glob("inventory.json*"):
        file.unlink()


def damage_sidecar(path: Path) -> None:
    (path / f"inventory.json.{ALGORITHM}").write_text("0" * 128 + " inventory.json\n")


#: What happens to an object; and the code of its row when it is moved, None for an object that is valid all the same.
CHANGES: dict[str, tuple[Callable[[Path], object], str | None]] = {
    "nothing": (lambda _path: None, None),
    "no version inventory": (remove_version_inventory, None),
    "a log": (lambda path: (path / "logs").mkdir(), None),
    "file beside": (lambda path: (path / "beside").write_bytes(b""), "object-extra"),
    "file beside content": (lambda path: (path / "v1" / "beside").write_bytes(b""), "version-file"),
    "file not listed": (lambda path: (path / "v1" / "content" / "more").write_bytes(b""), "content-extra"),
    "empty directory": (lambda path: (path / "v1" / "content" / "more").mkdir(), "content-directory-empty"),
    "file gone": (lambda path: (path / CONTENT).unlink(), "content-missing"),
    "link": (link, "symbolic-link"),
    "hard link": (hard_link, "hard-link"),
    "sidecar": (damage_sidecar, "sidecar-mismatch"),
    "sidecar gone": (lambda path: (path / f"inventory.json.{ALGORITHM}").unlink(), "sidecar-missing"),
    "declaration": (lambda path: (path / "0=ocfl_object_1.1").write_bytes(b"ocfl\n"), "declaration-malformed"),
    "inventory": (lambda path: (path / "inventory.json").write_bytes(b"{"), "inventory-malformed"),
    "inventory gone": (lambda path: (path / "inventory.json").unlink(), "missing"),
    "identifier": (inventory(lambda document: document.update(id="other")), "misplaced"),
    "no date": (inventory(lambda document: document["versions"]["v1"].pop("created")), "inventory-key-missing"),
    "no type": (inventory(lambda document: document.pop("type")), "inventory-key-missing"),
    "state": (
        inventory(lambda document: document["versions"]["v1"]["state"].update({"ab" * 64: ["x"]})),
        "digest-unknown",
    ),
    "fixity": (
        inventory(lambda document: document.update(fixity={"md5": {"0" * 32: ["v1/content/x"]}})),
        "path-unknown",
    ),
    "head": (inventory(lambda document: document.update(head="v2")), "inventory-value"),
}


#: The codes when it is copied, where they differ: a copy has no hard link, and its files are read first.
COPIED = {"hard link": None, "inventory": "improper", "link": "special-file"}


@pytest.mark.parametrize("mode", ["rename", "copy"])
def test_invalid_objects(source: Path, tmp_path: Path, mode: str) -> None:
    made(source, list(CHANGES), kind="ocfl", layout=layout_or_none("0002"))
    plan = migrate.plan(source, tmp_path / "new", to="ocfl", layout="0003", move=True, copy_mode=mode)
    for name, (change, _code) in CHANGES.items():
        change(source / name)
    codes = {name: code for name, (_change, code) in CHANGES.items()} | (COPIED if mode == "copy" else {})
    rows = {row.id: row for row in migrate.run(plan, processes=False).rows()}
    assert {name: row.error_code for name, row in rows.items()} == codes
    for name, row in rows.items():
        status = "ok" if row.error_code is None else "source_invalid"
        assert row.status == ("source_missing" if row.error_code == "missing" else status)
        assert (source / name).exists() == (row.status != "ok")
