"""Later OCFL versions and other digest algorithms of objects, without copying content."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pressmark.buckets.memory import MemoryBucket
from pressmark.errors import ObjectError, StoreError
from pressmark.stores.ocfl.root import OcflRoot

from .samples import CREATED, at, create, files_of, kinds, reopened, tree

FILES = {"a": b"one", "b": b"two", "d/c": b"three"}
LATER = {"a": b"one", "b": b"new"}
IDS = ["x1", "x2", "y1"]

pytestmark = pytest.mark.usefixtures("every_storage")


@pytest.fixture
def root(tmp_path: Path) -> OcflRoot:
    """A root of OCFL 1.0 with three objects of two versions."""
    return make(tmp_path)


def make(tmp_path: Path) -> OcflRoot:
    root = create(tmp_path / "root", "0002", version="1.0", algorithm="sha256")
    for identifier in IDS:
        root.put(identifier, FILES, created=CREATED, fixity={"md5": {}})
        root.put(identifier, LATER, created=CREATED, replace=True)
    return root


def upgraded(root: OcflRoot, *ids: str, **how: Any) -> list[tuple[str | bytes, str | None, bool]]:
    """Upgrade objects; return identifier, newest version, and whether it was so before, of each."""
    found = []
    for result in root.upgrade(ids or None, created=CREATED, **how):
        assert result.error is None
        assert result.record is not None
        found.append((result.id, result.record.version, result.record.exists_same))
    return found


def names(root: OcflRoot, identifier: str) -> list[str]:
    """Return the names of the files in an object's own directory."""
    return sorted(path.name for path in (at(root) / identifier).iterdir() if path.is_file())


def sound(root: OcflRoot) -> bool:
    return reopened(root).check(digests=True).ok


FORMS: dict[str, tuple[dict[str, str], str, str]] = {
    "version": ({"to": "1.1"}, "1.1", "sha256"),
    "algorithm": ({"algorithm": "sha512"}, "1.0", "sha512"),
    "both": ({"to": "1.1", "algorithm": "sha512"}, "1.1", "sha512"),
}


@pytest.mark.parametrize(("how", "version", "algorithm"), FORMS.values(), ids=list(FORMS))
def test_all_objects(root: OcflRoot, how: dict[str, str], version: str, algorithm: str) -> None:
    """Each object gets a version in the form; what is there stays, and no content is stored."""
    before = tree(at(root))
    assert upgraded(root, message="why", **how) == [(one, "v3", False) for one in IDS]
    after = tree(at(root))
    replaced = {name for name in before if before[name] != after.get(name)}
    assert {name for name in replaced if "/v" in name} == set()
    new = {name.partition("/")[2] for name in after.keys() - before.keys() if name.startswith("x1/")}
    assert {name for name in new if name.startswith("v")} == {
        *("v3", "v3/inventory.json", f"v3/inventory.json.{algorithm}")
    }
    for identifier in IDS:
        assert names(root, identifier) == [
            *(f"0=ocfl_object_{version}", "inventory.json", f"inventory.json.{algorithm}")
        ]
        found = root.get(identifier)
        inventory = found.inventory
        assert (inventory["type"], inventory["digestAlgorithm"]) == (
            f"https://ocfl.io/{version}/spec/#inventory",
            algorithm,
        )
        old = json.loads((at(root) / identifier / "v2/inventory.json").read_bytes())
        assert inventory["fixity"] == old["fixity"]
        assert [*inventory["manifest"].values()] == [*old["manifest"].values()]
        block = inventory["versions"]["v3"]
        assert (block["created"], block["message"], block["user"]) == (CREATED, "why", root.user)
        assert [files_of(root.get(identifier, number)) for number in (1, 2, 3)] == [FILES, LATER, LATER]
        assert found.diff("v2", "v3").is_empty
    declared = "0=ocfl_1.1" if "to" in how else "0=ocfl_1.0"
    assert sorted(path.name for path in at(root).iterdir() if path.name.startswith("0=")) == [declared]
    assert root.version == declared[-3:]
    assert sound(root)
    again = tree(at(root))
    assert upgraded(root, **how) == [(one, "v3", True) for one in IDS]
    assert tree(at(root)) == again
    root.update("x1", add={"n": b"n"})
    assert root.get("x1").inventory["digestAlgorithm"] == algorithm
    assert sound(root)


def test_some_objects(root: OcflRoot) -> None:
    """The root declares the version first; all other objects keep theirs."""
    assert upgraded(root, "y1", "x1", to="1.1") == [("y1", "v3", False), ("x1", "v3", False)]
    assert (root.version, root.get("x2").inventory["type"][16:19]) == ("1.1", "1.0")
    assert sound(root)
    assert upgraded(root, match=["x*"], to="1.1") == [("x1", "v3", True), ("x2", "v3", False)]
    problems: list[Any] = []
    results = [*root.upgrade(["none", "x1"], to="1.1", problems=problems)]
    assert [one.kind for one in problems] == ["object-missing"]
    assert [one.id for one in results] == ["x1"]


def test_a_root_that_is_open(root: OcflRoot) -> None:
    """A run that has opened the root before sees that another one has upgraded it."""
    before = [reopened(root, user=root.user) for _ in range(2)]
    upgraded(root, to="1.1")
    assert [one.version for one in before] == ["1.0", "1.0"]
    assert before[0].check().ok
    assert before[1].update("x1", add={"n": b"n"}).version == "v4"
    (at(root) / "0=ocfl_1.1").unlink()
    (at(root) / "0=ocfl_1.0").write_bytes(b"ocfl_1.0\n")
    assert kinds(reopened(root).check()) == ["version-later"]


def test_a_dry_run(root: OcflRoot) -> None:
    upgraded(root, "x2", to="1.1")
    before = tree(at(root))
    assert upgraded(root, to="1.1", dry_run=True) == [("x1", "v2", False), ("x2", "v3", True), ("y1", "v2", False)]
    assert tree(at(root)) == before


def test_an_earlier_algorithm(root: OcflRoot) -> None:
    """Versions may have any allowed algorithm; each has its own inventory."""
    upgraded(root, algorithm="sha512")
    assert upgraded(root, "x1", algorithm="sha256") == [("x1", "v4", False)]
    assert names(root, "x1") == ["0=ocfl_object_1.0", "inventory.json", "inventory.json.sha256"]
    assert sound(root)


@pytest.mark.parametrize("damage", ["changed", "lost"])
def test_damaged_content(root: OcflRoot, damage: str) -> None:
    """A new digest of damaged content would hide the damage: the object is not changed, the others are."""
    content = at(root) / "x1/v1/content/d/c"
    content.write_bytes(b"THREE") if damage == "changed" else content.unlink()
    before = tree(at(root) / "x1")
    first, *others = root.upgrade(algorithm="sha512")
    assert isinstance(first.error, ObjectError)
    assert first.error.kind == ("content-mismatch" if damage == "changed" else "content-missing")
    assert "content of 'v1/content/d/c': " in str(first.error)
    assert [one.error for one in others] == [None, None]
    assert tree(at(root) / "x1") == before
    # Another OCFL version has the same digests.
    assert upgraded(root, "x1", to="1.1") == [("x1", "v3", False)]


def test_a_mutable_head(root: OcflRoot) -> None:
    head = at(root) / "x1/extensions/0005-mutable-head/head/inventory.json"
    head.parent.mkdir(parents=True)
    head.write_bytes(b"{}")
    errors = [one.error for one in root.upgrade(to="1.1")]
    assert [error and error.kind for error in errors] == ["mutable-head", None, None]


def test_an_invalid_object(root: OcflRoot) -> None:
    (at(root) / "x1/inventory.json").write_bytes(b"{}")
    (at(root) / "x2/0=ocfl_object_1.0").write_bytes(b"?")
    errors = [one.error for one in root.upgrade(to="1.1")]
    assert [error and error.kind for error in errors] == ["improper", "improper", None]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, r"nothing to upgrade; specify to= or algorithm="),
    "unknown version": ({"to": "2.0"}, r"OCFL '2\.0' is not supported; use one of 1\.1, 1\.0 \(to=\)"),
    "unknown algorithm": ({"algorithm": "md5"}, "digest algorithm 'md5' not allowed; use sha512 or sha256"),
    "user": ({"to": "1.1", "user": {}}, "invalid user"),
}


@pytest.mark.parametrize(("how", "words"), REFUSED.values(), ids=list(REFUSED))
def test_what_is_refused(root: OcflRoot, how: dict[str, Any], words: str) -> None:
    before = tree(at(root))
    with pytest.raises(StoreError, match=words):
        list(root.upgrade(**how))
    assert tree(at(root)) == before


def test_no_earlier_version(root: OcflRoot) -> None:
    upgraded(root, to="1.1")
    with pytest.raises(StoreError, match=r"the root declares OCFL 1\.1, which is later; use to= 1\.1"):
        list(root.upgrade(to="1.0"))


def test_no_content_is_sent(root: OcflRoot) -> None:
    """In object storage, a change of the version reads and sends inventories, and no content."""
    bucket = root.bucket
    if not isinstance(bucket, MemoryBucket):
        pytest.skip("about object storage")
    calls: list[tuple[str, bytes]] = []
    bucket.on_request = lambda call, key: calls.append((call, key))
    upgraded(root, to="1.1")
    bucket.on_request = None
    assert [call for call, key in calls if b"/content/" in key] == []
    assert {call for call, _key in calls if not call.endswith(" done")} <= {"list", "head", "get", "put", "delete"}


def test_a_user_who_may_not_delete(root: OcflRoot) -> None:
    """In object storage, an upgrade that could not remove the old declarations is refused before it begins."""
    bucket = root.bucket
    if not isinstance(bucket, MemoryBucket):
        pytest.skip("about object storage")
    before = tree(at(root))

    def refuse(call: str, key: bytes) -> None:
        if call == "delete":
            raise PermissionError(13, "access denied", key)

    bucket.on_request = refuse
    with pytest.raises(StoreError, match="permission to delete keys denied"):
        list(root.upgrade(to="1.1"))
    assert root.restore("x1", "v1").version == "v3"
    bucket.on_request = None
    after = {name: data for name, data in tree(at(root)).items() if not name.startswith("extensions")}
    assert {name for name in before if name[:2] in ("0=", "x2", "y1")} <= {
        name for name, data in after.items() if data == before.get(name)
    }
    assert upgraded(root, to="1.1")[0] == ("x1", "v4", False)
    assert sound(root)


# --- what an interrupted run leaves -----------------------------------------------------------------------------------


def interrupted(root: OcflRoot, state: str) -> None:
    """Upgrade all objects, and take back the last steps of one."""
    folder = at(root) / "x1"
    before = {name: (folder / name).read_bytes() for name in names(root, "x1")}
    upgraded(root, to="1.1", algorithm="sha512")
    (folder / "0=ocfl_object_1.0").write_bytes(before["0=ocfl_object_1.0"])
    if state == "two declarations":
        return
    (folder / "0=ocfl_object_1.1").unlink()
    if state == "old declaration":
        return
    (folder / "inventory.json.sha512").unlink()
    if state == "no sidecar":
        return
    (folder / "inventory.json.sha256").write_bytes(before["inventory.json.sha256"])
    if state == "old sidecar":
        return
    (folder / "inventory.json").write_bytes(before["inventory.json"])


STATES = ["two declarations", "old declaration", "no sidecar", "old sidecar", "unlisted"]
FINISHERS: dict[str, Callable[[OcflRoot], object]] = {
    "repair": lambda root: root.repair(),
    "update": lambda root: root.update("x1", add={"n": b"n"}),
    "upgrade": lambda root: upgraded(root, to="1.1", algorithm="sha512"),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("how", FINISHERS)
def test_an_interrupted_run_is_finished(root: OcflRoot, state: str, how: str) -> None:
    """The check reports one problem, the object is read, and the next change or a repair finishes it."""
    interrupted(root, state)
    again = reopened(root, user=root.user)
    assert [(one.kind, one.severity) for one in again.check(digests=True).errors] == [("version-unfinished", "error")]
    assert files_of(again.get("x1")) == LATER
    with again.get("x1").open("a") as file:
        assert file.read() == b"one"
    FINISHERS[how](again)
    assert names(again, "x1") == ["0=ocfl_object_1.1", "inventory.json", "inventory.json.sha512"]
    assert sound(root)
    assert len(again.get("x1").inventory["versions"]) == (4 if how == "update" else 3)


@pytest.mark.parametrize("state", STATES)
def test_a_dry_run_of_a_repair(root: OcflRoot, state: str) -> None:
    """It reports what the repair does, and that nothing remains."""
    interrupted(root, state)
    before = tree(at(root))
    planned = reopened(root).repair(dry_run=True)
    assert tree(at(root)) == before
    report = reopened(root).repair()
    assert (planned.steps, kinds(planned)) == (report.steps, kinds(report))
    assert (kinds(report), [step.action for step in report.steps]) == ([], ["finish"])


@pytest.mark.parametrize("how", ["repair", "upgrade"])
def test_two_declarations_of_the_root(root: OcflRoot, how: str) -> None:
    """The root has the later version; the earlier declaration is removed."""
    (at(root) / "0=ocfl_1.1").write_bytes(b"ocfl_1.1\n")
    again = reopened(root)
    assert (again.version, kinds(again.check())) == ("1.1", ["declaration-several"])
    if how == "repair":
        planned = again.repair(dry_run=True)
        report = again.repair()
        assert (kinds(planned), planned.steps) == (kinds(report), report.steps)
        assert [(step.action, step.path) for step in report.steps] == [("remove", "0=ocfl_1.0")]
    else:
        upgraded(again, "x1", to="1.1")
    assert not (at(root) / "0=ocfl_1.0").exists()
    assert sound(root)


def test_a_declaration_that_is_no_leftover(root: OcflRoot) -> None:
    """Two declarations without an interrupted change are reported, and nobody guesses."""
    (at(root) / "x1/0=ocfl_object_1.1").write_bytes(b"ocfl_object_1.1\n")
    (at(root) / "0=ocfl_1.0").unlink()
    (at(root) / "0=ocfl_1.1").write_bytes(b"ocfl_1.1\n")
    again = reopened(root)
    before = tree(at(root))
    assert "declaration-several" in kinds(again.repair())
    with pytest.raises(ObjectError, match="check the store"):
        again.update("x1", add={"n": b"n"})
    [result] = again.upgrade(["x1"], to="1.1")
    assert result.error is not None
    assert tree(at(root) / "x1") == {name[3:]: data for name, data in before.items() if name.startswith("x1/")}
