"""What a repair of an OCFL storage root must not write: it would turn damage into a valid root."""

from __future__ import annotations

from pathlib import Path

import pytest

from pressmark import layout, stores
from pressmark.stores.ocfl.root import OcflRoot


@pytest.fixture
def root(tmp_path: Path) -> OcflRoot:
    """A storage root with one object of one file."""
    (tmp_path / "given").mkdir()
    (tmp_path / "given/a").write_bytes(b"a")
    made = stores.create("ocfl", tmp_path / "root", layout("0004"))
    assert isinstance(made, OcflRoot)
    made.put("info:abc", tmp_path / "given")
    return made


def unchanged_by_repair(root: OcflRoot, folder: Path, kind: str) -> bool:
    """Whether a repair leaves a problem and every file as they are."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    report = root.repair()
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return before == after and kind in {one.kind for one in report.problems}


@pytest.mark.parametrize("damage", ["another inventory", "no other sidecar", "wrong other sidecar"])
def test_no_sidecar_for_a_doubtful_inventory(root: OcflRoot, tmp_path: Path, damage: str) -> None:
    """A missing sidecar is written only if the other copy of the inventory is the same and has a matching sidecar."""
    [sidecar] = (path for path in (tmp_path / "root").rglob("inventory.json.sha512") if path.parent.name != "v1")
    inventory, other = sidecar.with_name("inventory.json"), sidecar.parent / "v1" / sidecar.name
    sidecar.unlink()
    if damage == "another inventory":
        inventory.write_bytes(inventory.read_bytes() + b" ")
    elif damage == "no other sidecar":
        other.unlink()
    else:
        other.write_bytes(b"0" * 128 + b" inventory.json\n")
    assert unchanged_by_repair(root, tmp_path / "root", "sidecar-missing")


def test_no_layout_that_maps_elsewhere(root: OcflRoot, tmp_path: Path) -> None:
    """A missing ocfl_layout.json is not written if the configured layout maps an object to another path."""
    folder = tmp_path / "root"
    (folder / "ocfl_layout.json").unlink()
    [object_] = (path.parent for path in folder.rglob("0=ocfl_object_1.*"))
    object_.rename(folder / "elsewhere")
    assert unchanged_by_repair(stores.open(folder), folder, "layout-missing")  # type: ignore[arg-type]
