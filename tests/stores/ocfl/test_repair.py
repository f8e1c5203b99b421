"""Declarations, inventories and sidecars that a repair restores, because other files prove them; and no others."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pressmark.errors import StoreError
from pressmark.progress_event import EventListener
from pressmark.stores import RepairStep
from pressmark.stores.ocfl.root import OcflRoot
from support.trees import snapshot, write

from .samples import CREATED, create, kinds

OBJECT = "root/x"


@pytest.fixture
def root(tmp_path: Path) -> OcflRoot:
    """A root with an object of two versions."""
    root = create(tmp_path / "root", "0002", message="of a test")
    for text in ("one", "two"):
        write(tmp_path, {"in/a.txt": text.encode()})
        root.put("x", tmp_path / "in", replace=True, created=CREATED)
    return root


def lost(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flipped(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"of a test", b"of a tesT", 1))


def of_windows(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


def wrong(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes((b"0" if data[:1] != b"0" else b"1") + data[1:])


DAMAGES = [
    ("inventory.json", lost),
    ("inventory.json", cut),
    ("inventory.json", empty),
    ("inventory.json", flipped),
    ("inventory.json.sha512", lost),
    ("inventory.json.sha512", of_windows),
    ("inventory.json.sha512", wrong),
    ("v2/inventory.json.sha512", of_windows),
    ("v1/inventory.json.sha512", of_windows),
]


@pytest.mark.parametrize(("name", "damage"), DAMAGES)
def test_what_another_file_proves(root: OcflRoot, tmp_path: Path, name: str, damage: Callable[[Path], None]) -> None:
    """The object is as before, and a dry run says the same and changes nothing."""
    before = snapshot(tmp_path / OBJECT)
    damage(tmp_path / OBJECT / name)
    damaged = snapshot(tmp_path / OBJECT)
    assert root.check().errors
    told: list[RepairStep] = []
    assert kinds(root.repair(dry_run=True, progress=EventListener(told.append))) == []  # type: ignore[arg-type]
    assert snapshot(tmp_path / OBJECT) == damaged
    done: list[RepairStep] = []
    assert kinds(root.repair(progress=EventListener(done.append))) == []  # type: ignore[arg-type]
    assert done == told
    assert {(step.action, step.path) for step in done} == {("write", f"x/{name}")}
    assert snapshot(tmp_path / OBJECT) == before
    assert kinds(root.check(digests=True)) == []


def test_an_inventory_and_its_sidecar(root: OcflRoot, tmp_path: Path) -> None:
    """Both come back from the newest version."""
    before = snapshot(tmp_path / OBJECT)
    for name in ("inventory.json", "inventory.json.sha512"):
        (tmp_path / OBJECT / name).unlink()
    assert kinds(root.repair()) == []
    assert snapshot(tmp_path / OBJECT) == before


def without_copy(folder: Path) -> None:
    (folder / "v2/inventory.json").unlink()


def without_proof(folder: Path) -> None:
    (folder / "v2/inventory.json.sha512").unlink()


def with_another_sidecar(folder: Path) -> None:
    shutil.copy(folder / "v1/inventory.json.sha512", folder)


def with_a_later_version(folder: Path) -> None:
    (folder / "v3").mkdir()
    (folder / "v3/content").mkdir()
    (folder / "v3/content/a").touch()


def with_a_copy_of_another_version(folder: Path) -> None:
    for name in ("inventory.json", "inventory.json.sha512"):
        shutil.copy(folder / "v1" / name, folder / "v2")
        (folder / name).unlink(missing_ok=True)


def with_an_invalid_copy(folder: Path) -> None:
    document = json.loads((folder / "v2/inventory.json").read_bytes())
    document["manifest"]["0" * 128] = ["../../outside"]
    (folder / "v2/inventory.json").write_text(json.dumps(document))


@pytest.mark.parametrize(
    "state",
    [
        without_copy,
        without_proof,
        with_another_sidecar,
        with_a_later_version,
        with_a_copy_of_another_version,
        with_an_invalid_copy,
    ],
)
def test_what_nothing_proves(root: OcflRoot, tmp_path: Path, state: Callable[[Path], None]) -> None:
    """Without proof, a lost inventory stays lost: it might be that of a version that is lost as well."""
    (tmp_path / OBJECT / "inventory.json").unlink()
    state(tmp_path / OBJECT)
    before = snapshot(tmp_path / OBJECT)
    assert "inventory-missing" in kinds(root.repair())
    assert snapshot(tmp_path / OBJECT) == before


@pytest.mark.parametrize("dry_run", [True, False])
def test_the_declaration_of_an_object(root: OcflRoot, tmp_path: Path, dry_run: bool) -> None:
    """It is written again if the inventory, its sidecar and the copy of the newest version agree."""
    before = snapshot(tmp_path / OBJECT)
    (tmp_path / OBJECT / "0=ocfl_object_1.1").unlink()
    assert set(kinds(root.check())) == {"file-stray"}
    steps: list[object] = []
    assert root.repair(dry_run=dry_run, progress=EventListener(steps.append)).errors == []
    assert steps == [RepairStep("write", "x/0=ocfl_object_1.1")]
    if not dry_run:
        assert snapshot(tmp_path / OBJECT) == before
        assert [record.id for record in root.objects()] == ["x"]


def later_than_the_root(folder: Path) -> None:
    for path in (folder / "inventory.json", folder / "v2/inventory.json"):
        path.write_text(path.read_text().replace("ocfl.io/1.1/", "ocfl.io/2.0/"))


def without_sidecar(folder: Path) -> None:
    (folder / "inventory.json.sha512").unlink()


def with_an_unknown_version(folder: Path) -> None:
    (folder / "v2/inventory.json").write_bytes((folder / "v1/inventory.json").read_bytes())


@pytest.mark.parametrize("state", [later_than_the_root, without_sidecar, with_an_unknown_version, without_copy])
def test_a_declaration_that_nothing_proves(root: OcflRoot, tmp_path: Path, state: Callable[[Path], None]) -> None:
    (tmp_path / OBJECT / "0=ocfl_object_1.1").unlink()
    state(tmp_path / OBJECT)
    before = snapshot(tmp_path / OBJECT)
    assert "file-stray" in kinds(root.repair())
    assert snapshot(tmp_path / OBJECT) == before


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_the_declaration_of_the_root(tmp_path: Path, version: str, dry_run: bool) -> None:
    """It is written again with the latest version that an object declares."""
    folder = tmp_path / "other"
    root = create(folder, "0002", version=version)
    write(tmp_path, {"in/a.txt": b"one"})
    root.put("x", tmp_path / "in")
    before = snapshot(folder)
    (folder / f"0=ocfl_{version}").unlink()
    undeclared = OcflRoot(folder, undeclared=True)
    steps: list[object] = []
    assert undeclared.repair(dry_run=dry_run, progress=EventListener(steps.append)).errors == []
    assert steps == [RepairStep("write", f"0=ocfl_{version}")]
    if not dry_run:
        assert snapshot(folder) == before
        assert undeclared.put("y", tmp_path / "in").proper
        assert OcflRoot(folder).version == version


@pytest.mark.parametrize("beside", [None, "0=ocfl_2.0"])
def test_a_root_whose_version_nothing_shows(root: OcflRoot, tmp_path: Path, beside: str | None) -> None:
    """Without an object, or with another declaration, nothing is written."""
    (tmp_path / "root/0=ocfl_1.1").unlink()
    if beside is None:
        shutil.rmtree(tmp_path / OBJECT)
    else:
        (tmp_path / "root" / beside).write_text("ocfl_2.0\n")
    before = snapshot(tmp_path / "root")
    with pytest.raises(StoreError, match=r"not an OCFL storage root|unsupported declaration"):
        OcflRoot(tmp_path / "root", undeclared=True).repair()
    assert snapshot(tmp_path / "root") == before
