"""New versions of objects: what they keep, what is refused, and what an interrupted run leaves."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pressmark.stores.ocfl.repair  # noqa: F401  # or it would import what a test has replaced
from pressmark.errors import ObjectError
from pressmark.progress_event import EventListener
from pressmark.stores import staging_writer, store_change
from pressmark.stores.objects import RepairStep
from pressmark.stores.ocfl.local.local_changes import LocalChanges
from pressmark.stores.ocfl.local.local_storage import LocalStorage
from pressmark.stores.ocfl.remote.remote_storage import RemoteStorage
from pressmark.stores.ocfl.root import OcflRoot
from pressmark.stores.ocfl.writing import version_writer

from ..every_version import interrupt
from .samples import CREATED, at, create, files_of, kinds, reopened, rewrite, save, source, tree

FILES = {"a.txt": b"one", "deep/er/b.txt": b"two", "same.txt": b"one"}

pytestmark = pytest.mark.usefixtures("every_storage")


@pytest.fixture
def root(tmp_path: Path) -> OcflRoot:
    """A root with the object ``x`` of two versions, and new files in ``in``."""
    root = create(tmp_path / "root", "0002")
    root.put("x", source(tmp_path / "first", {"old": b"old", "a.txt": b"one"}), created=CREATED)
    root.put("x", source(tmp_path / "given", FILES), created=CREATED, replace=True)
    source(tmp_path / "in", {"new": b"new", "one": b"one", "deep/er": b"er", "deep/none/f": b"f"})
    return root


def folder(root: OcflRoot) -> Any:
    return at(root) / "x"


def contents(root: OcflRoot, identifier: str = "x") -> dict[str, bytes]:
    return files_of(root.get(identifier))


def refused(root: OcflRoot, change: Callable[[], object]) -> ObjectError:
    """Return the error of a change, and check that it left nothing."""
    before = tree(at(root))
    with pytest.raises(ObjectError) as caught:
        change()
    assert tree(at(root)) == before
    assert "\n" not in str(caught.value)
    return caught.value


# --- what a version keeps ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("algorithm", ["sha512", "sha256"])
def test_a_version_keeps_the_form_of_the_object(tmp_path: Path, algorithm: str, version: str) -> None:
    """Specification version, digest algorithm, content directory, padding and fixity blocks stay as they are."""
    root = create(tmp_path / "root", "0002", version=version, algorithm=algorithm)
    root.put("x", source(tmp_path / "in"), fixity={"md5": {}})
    directory = folder(root)

    def other(document: dict[str, Any]) -> None:
        document["head"] = "v0001"
        document["contentDirectory"] = "data"
        document["versions"] = {"v0001": document["versions"]["v1"]}
        for block in (document["manifest"], *document["fixity"].values()):
            for digest, paths in block.items():
                block[digest] = [path.replace("v1/content/", "v0001/data/") for path in paths]

    (directory / "v1/content").rename(directory / "v1/data")
    (directory / "v1").rename(directory / "v0001")
    document = json.loads((directory / "inventory.json").read_bytes())
    other(document)
    save(directory, document, algorithm, "v0001")
    assert kinds(root.check(digests=True)) == []
    newer = reopened(root, user=root.user, algorithm="sha512")
    (tmp_path / "new").write_bytes(b"new")
    record = newer.update("x", add={"new": tmp_path / "new"}, fixity={"sha1": {}})
    assert record.version == "v0002"
    after = json.loads((directory / "inventory.json").read_bytes())
    same = ("id", "type", "digestAlgorithm", "contentDirectory")
    assert {key: after[key] for key in same} == {key: document[key] for key in same}
    assert after["fixity"]["md5"] == document["fixity"]["md5"]
    assert [*after["fixity"]["sha1"].values()] == [["v0002/data/new"]]
    assert (directory / "v0002/data/new").read_bytes() == b"new"
    assert sorted(path.name for path in directory.iterdir() if path.is_file()) == [
        *(f"0=ocfl_object_{version}", "inventory.json", f"inventory.json.{algorithm}")
    ]
    assert kinds(root.check(digests=True)) == []


def test_no_number_is_left(root: OcflRoot, tmp_path: Path) -> None:
    """After v09 of two digits there is no version."""
    directory = folder(root)
    document = json.loads((directory / "inventory.json").read_bytes())
    names = {"v1": "v01", "v2": "v02", **{f"v{number}": f"v0{number}" for number in range(3, 10)}}
    block = document["versions"]["v2"]
    versions = {name: document["versions"].get(old, block) for old, name in names.items()}
    manifest = {
        digest: [f"{names[path.partition('/')[0]]}/{path.partition('/')[2]}" for path in paths]
        for digest, paths in document["manifest"].items()
    }
    for name in versions:
        if (directory / f"v{int(name[1:])}").exists():
            (directory / f"v{int(name[1:])}").rename(directory / name)
            (directory / name / "inventory.json").unlink()
            (directory / name / "inventory.json.sha512").unlink()
        (directory / name).mkdir(exist_ok=True)
    save(directory, {**document, "head": "v09", "versions": versions, "manifest": manifest}, head="v09")
    assert kinds(root.check(digests=True)) == []
    error = refused(root, lambda: root.update("x", add={"new": tmp_path / "in/new"}))
    assert error.kind == "improper"
    assert "no version number of this width is available after v09; store the content as a new object" in str(error)


@pytest.mark.on_disk
def test_earlier_versions_are_not_read(root: OcflRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new version looks at nothing of earlier versions but the newest inventory, and changes nothing of them."""
    seen: list[str] = []

    def watched(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(path: Any, *given: Any, **options: Any) -> Any:
            if not isinstance(path, int):
                seen.append(os.fsdecode(path))
            return real(path, *given, **options)

        return call

    root.durable = True
    before = tree(folder(root))
    inodes = {path: path.stat() for path in folder(root).glob("v*/**/*")}
    with monkeypatch.context() as patched:
        for name in ("open", "scandir", "lstat", "stat", "listdir", "unlink", "link", "rename", "replace", "access"):
            patched.setattr(os, name, watched(name))
        root.update("x", add={"new": tmp_path / "in/new"}, remove=["same.txt"])
    inside = {os.path.relpath(path, folder(root)) for path in seen if path.startswith(os.fspath(folder(root)))}
    assert {path for path in inside if path.startswith(("v1", "v2"))} <= {"v2/inventory.json"}
    assert {path: path.stat() for path in inodes} == inodes
    assert before.items() - tree(folder(root)).items() <= {
        (name, before[name]) for name in ("inventory.json", "inventory.json.sha512")
    }


# --- objects that get no version --------------------------------------------------------------------------------------


def unreadable_key(path: Path) -> None:
    data = (path / "inventory.json").read_bytes().replace(b'{\n  "id"', b'{\n  "id": "x",\n  "id"', 1)
    save(path, data, head="v2")


def junk(path: Path) -> None:
    (path / "v3").mkdir()
    (path / "v3/notes").write_bytes(b"notes")


IMPROPER: dict[str, tuple[str, Callable[[Path], object]]] = {
    "declaration": ("declaration-missing", lambda path: (path / "0=ocfl_object_1.1").unlink()),
    "two declarations": (
        "declaration-several",
        lambda path: (path / "0=ocfl_object_1.0").write_text("ocfl_object_1.0\n"),
    ),
    "malformed declaration": (
        "declaration-malformed",
        lambda path: (path / "0=ocfl_object_1.1").write_text("ocfl_object_1.1"),
    ),
    "type": ("inventory-value", lambda path: rewrite(path, lambda one: one.update(type="x"))),
    "unknown key": ("inventory-key-unknown", lambda path: rewrite(path, lambda one: one.update(x=1))),
    "repeated key": ("inventory-key-repeated", unreadable_key),
    "sidecar": ("sidecar-mismatch", lambda path: (path / "inventory.json.sha512").write_text("00 inventory.json\n")),
    "no sidecar": ("sidecar-missing", lambda path: (path / "inventory.json.sha512").unlink()),
    "copy": ("inventory-differs", lambda path: rewrite(path, lambda one: one.update(fixity={}), versions=False)),
    "head": ("version-absent", lambda path: shutil.rmtree(path / "v2")),
    "next version": ("version-extra", junk),
    "empty next version": ("version-extra", lambda path: (path / "v3").mkdir()),
}


@pytest.mark.parametrize(("kind", "damage"), IMPROPER.values(), ids=list(IMPROPER))
def test_a_bad_object_gets_no_version(
    root: OcflRoot, tmp_path: Path, kind: str, damage: Callable[[Path], object]
) -> None:
    """An object that is not valid is left as it is, as far as its inventory shows."""
    if isinstance(root.storage, RemoteStorage) and kind == "declaration-missing":
        pytest.skip("the declaration of an object in a bucket is written last, and by the next run after a kill")
    damage(folder(root))
    for change in (
        lambda: root.put("x", tmp_path / "in", replace=True),
        lambda: root.update("x", add={"also": tmp_path / "in/one"}),
    ):
        error = refused(root, change)
        assert error.kind == "improper"
        assert f"object not valid ({kind}: " in str(error)
        assert str(error).endswith("; check the store")


def test_a_later_version_of_ocfl(tmp_path: Path) -> None:
    """An object that declares a later version than its root is not written to."""
    root = create(tmp_path / "root", "0002")
    root.put("x", source(tmp_path / "in"))
    (at(root) / "0=ocfl_1.1").rename(at(root) / "0=ocfl_1.0")
    older = reopened(root)
    error = refused(older, lambda: older.update("x", remove=["a.txt"]))
    assert "version-later: the object declares OCFL 1.1, but its storage root declares OCFL 1.0" in str(error)


# --- interrupted runs -------------------------------------------------------------------------------------------------


def interrupted(root: OcflRoot, tmp_path: Path, *, is_listed: bool) -> dict[str, bytes]:
    """Leave version 3 unfinished, and return the files of the object when it is finished."""

    def change() -> None:
        root.update("x", add={"new": tmp_path / "in/new"}, remove=["same.txt"])

    interrupt(folder(root), change, is_listed=is_listed)
    return {"a.txt": b"one", "deep/er/b.txt": b"two", "new": b"new"}


FINISHERS: dict[str, Callable[[OcflRoot, Path], object]] = {
    "repair": lambda root, _given: root.repair(),
    "put": lambda root, given: root.put("x", given / "new", replace=True),
    "update": lambda root, given: root.update("x", add={"more": given / "one"}),
    "update that changes nothing": lambda root, given: root.update("x", add={"new": given / "new"}),
}


@pytest.mark.parametrize("is_listed", [False, True])
@pytest.mark.parametrize("how", FINISHERS)
def test_an_unfinished_version_is_finished(root: OcflRoot, tmp_path: Path, how: str, is_listed: bool) -> None:
    """A check reports it, readers find the old or the new version, and a repair or the next change finishes it."""
    new = interrupted(root, tmp_path, is_listed=is_listed)
    [found] = [one for one in root.check(digests=True).problems if one.severity == "error"]
    path = "x/inventory.json" if is_listed else "x/v3"
    assert (found.kind, found.code, found.path) == ("version-unfinished", "E060" if is_listed else "E046", path)
    assert "run pressmark store repair, or change the object again" in found.message
    assert contents(root) == (new if is_listed else FILES)
    assert [(record.id, record.problems) for record in root.objects()] == [("x", ())]
    v3 = {name: data for name, data in tree(folder(root)).items() if name.startswith("v")}
    FINISHERS[how](root, tmp_path / "in")
    assert v3.items() <= tree(folder(root)).items()
    assert kinds(root.check(digests=True)) == []
    expected: dict[str, tuple[str, dict[str, bytes]]] = {
        "put": ("v4", {"new": b"new"}),
        "update": ("v4", {**new, "more": b"one"}),
    }
    assert (root.get("x").inventory["head"], contents(root)) == expected.get(how, ("v3", new))


@pytest.mark.parametrize("is_listed", [False, True])
@pytest.mark.parametrize("how", FINISHERS)
def test_two_runs_finish_one_version(
    root: OcflRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, is_listed: bool
) -> None:
    """A version that another run has finished meanwhile, and followed by another one, is not published again."""
    new = interrupted(root, tmp_path, is_listed=is_listed)
    real = version_writer.check_content

    def overtaken(*given: Any) -> None:
        monkeypatch.undo()
        real(*given)
        reopened(root, user=root.user).update("x", add={"theirs": tmp_path / "in/one"})

    monkeypatch.setattr(version_writer, "check_content", overtaken)
    FINISHERS[how](root, tmp_path / "in")
    expected: dict[str, tuple[str, dict[str, bytes]]] = {
        "put": ("v5", {"new": b"new"}),
        "update": ("v5", {**new, "theirs": b"one", "more": b"one"}),
    }
    assert (root.get("x").inventory["head"], contents(root)) == expected.get(how, ("v4", {**new, "theirs": b"one"}))
    assert kinds(root.check(digests=True)) == []


@pytest.mark.parametrize("is_listed", [False, True])
def test_an_unfinished_version_is_removed_with_its_object(root: OcflRoot, tmp_path: Path, is_listed: bool) -> None:
    interrupted(root, tmp_path, is_listed=is_listed)
    root.delete("x")
    assert list(root.objects()) == []
    assert root.check().problems == []


@pytest.mark.parametrize("is_listed", [False, True])
def test_a_dry_run_finishes_nothing(root: OcflRoot, tmp_path: Path, is_listed: bool) -> None:
    interrupted(root, tmp_path, is_listed=is_listed)
    before = tree(at(root))
    steps: list[object] = []
    assert kinds(root.repair(dry_run=True, progress=EventListener(steps.append))) == []
    assert steps == [RepairStep("finish", "x/inventory.json" if is_listed else "x/v3")]
    assert tree(at(root)) == before
    assert kinds(root.check()) == ["version-unfinished"]


@pytest.mark.parametrize("is_listed", [False, True])
def test_damaged_content_is_not_published(root: OcflRoot, tmp_path: Path, is_listed: bool) -> None:
    """The content of an unfinished version is compared with its inventory first; nothing is lost otherwise."""
    interrupted(root, tmp_path, is_listed=is_listed)
    (folder(root) / "v3/content/new").write_bytes(b"nEw")
    before = tree(at(root))
    for dry_run in (True, False):
        report = root.repair(dry_run=dry_run)
        assert kinds(report) == ["unrepaired", "version-unfinished"]
        [why] = [one.message for one in report.problems if one.kind == "unrepaired"]
        assert "v3 cannot be finished: 'v3/content/new': sha512 digest mismatch; restore the file, or move v3" in why
    error = refused(root, lambda: root.update("x", remove=["a.txt"]))
    assert error.kind == "improper"
    assert "v3 cannot be finished" in str(error)
    assert tree(at(root)) == before
    assert kinds(root.check(digests=True)) == ["content-mismatch", "version-unfinished"]


def edit(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    """Change the inventory of version 3, and its sidecar."""

    def do(path: Path) -> None:
        document = json.loads((path / "v3/inventory.json").read_bytes())
        change(document)
        save(path / "v3", document, head=None)

    return do


def removed_state(document: dict[str, Any]) -> None:
    document["versions"]["v1"]["message"] = "another"


def dropped_content(document: dict[str, Any]) -> None:
    """Leave the first version's content out, as if it had never been there."""
    digest = next(iter(document["versions"]["v1"]["state"]))
    for version in document["versions"].values():
        version["state"].pop(digest, None)
    del document["manifest"][digest]


def more_content(document: dict[str, Any]) -> None:
    """List content in an earlier version that the earlier inventory does not list."""
    next(iter(document["manifest"].values())).append("v1/content/more")


JUNK: dict[str, Callable[[Path], object]] = {
    "no inventory": lambda path: (path / "v3/inventory.json").unlink(),
    "no sidecar": lambda path: (path / "v3/inventory.json.sha512").unlink(),
    "other sidecar": lambda path: (path / "v3/inventory.json.sha512").write_text(f"{'0' * 128} inventory.json\n"),
    "malformed": lambda path: save(path / "v3", b"{", head=None),
    "another object": edit(lambda document: document.update(id="y")),
    "another version": edit(lambda document: document.update(head="v2")),
    "another type": edit(lambda document: document.update(type="https://ocfl.io/1.0/spec/#inventory")),
    "another history": edit(removed_state),
    "another manifest": edit(dropped_content),
    "more content in an earlier version": edit(more_content),
    "unknown key": edit(lambda document: document.update(more=1)),
    "content missing": lambda path: (path / "v3/content/new").unlink(),
    "content unlisted": lambda path: (path / "v3/content/other").write_bytes(b"x"),
    "a file beside": lambda path: (path / "v3/notes").write_bytes(b"x"),
    "a link": lambda path: (path / "v3/content/link").symlink_to("new"),
    "wrong number": lambda path: (path / "v3").rename(path / "v4"),
    "wrong padding": lambda path: (path / "v3").rename(path / "v03"),
    "newest inventory differs": lambda path: save(path / "v2", b"{}", head=None),
}


@pytest.mark.parametrize("damage", JUNK.values(), ids=list(JUNK))
def test_what_is_not_a_whole_version(root: OcflRoot, tmp_path: Path, damage: Callable[[Path], object]) -> None:
    """A directory that is not completely the next version is an extra one, which nothing publishes."""
    interrupted(root, tmp_path, is_listed=False)
    damage(folder(root))
    before = tree(at(root))
    is_decided = any(path.endswith("v3/inventory.json") for path in before)
    if (
        isinstance(root.storage, RemoteStorage)
        and is_decided
        and not any("v3/inventory.json." in one for one in before)
    ):
        pytest.skip("the inventory of a version in a bucket is written before its sidecar")
    report = root.check()
    assert "version-extra" in kinds(report)
    assert "version-unfinished" not in kinds(report)
    assert "version-extra" in kinds(root.repair())
    assert tree(at(root)) == before
    assert contents(root) == FILES


def test_a_version_that_forgets_content(root: OcflRoot, tmp_path: Path) -> None:
    """A version that lists one of two content files with a digest is not the next one."""
    root.update("x", add={"again": tmp_path / "in/one"}, dedup=False)
    interrupt(folder(root), lambda: root.update("x", add={"new": tmp_path / "in/new"}), is_listed=False)
    assert kinds(root.check()) == ["version-unfinished"]
    document = json.loads((folder(root) / "v4/inventory.json").read_bytes())
    for paths in document["manifest"].values():
        del paths[1:]
    save(folder(root) / "v4", document, head=None)
    assert "version-extra" in kinds(root.check())
    assert "version-extra" in kinds(root.repair())


def test_a_version_with_an_empty_directory(root: OcflRoot, tmp_path: Path) -> None:
    """A repair removes the directory, and then finishes the version."""
    interrupted(root, tmp_path, is_listed=False)
    (folder(root) / "v3/content/none").mkdir()
    assert "version-extra" in kinds(root.check())
    for dry_run in (True, False):
        steps: list[Any] = []
        assert kinds(root.repair(dry_run=dry_run, progress=EventListener(steps.append))) == []
        assert [step.action for step in steps] == ["prune", "finish"]


@pytest.mark.parametrize("change", [b"{}", None])
def test_another_sidecar_is_not_taken_for_an_old_one(root: OcflRoot, tmp_path: Path, change: bytes | None) -> None:
    """Only the sidecar of the version before, beside a whole newest version, is an unfinished change; any other one is
    wrong if the newest version has the same inventory and proves it."""
    interrupted(root, tmp_path, is_listed=True)
    if change is None:
        (folder(root) / "inventory.json.sha512").write_text(f"{'0' * 128} inventory.json\n")
    else:
        save(folder(root) / "v3", change, head=None)
    assert "sidecar-mismatch" in kinds(root.check())
    assert "version-unfinished" not in kinds(root.check())
    assert ("sidecar-mismatch" in kinds(root.repair())) == (change is not None)


def test_an_old_sidecar_without_earlier_inventories(root: OcflRoot, tmp_path: Path) -> None:
    """Inventories of earlier versions are only recommended; without them, any other sidecar is an old one."""
    interrupted(root, tmp_path, is_listed=True)
    for path in (folder(root) / "v2").glob("inventory.json*"):
        path.unlink()
    assert kinds(root.check()) == ["version-unfinished"]
    assert kinds(root.repair()) == []


# --- publishing -------------------------------------------------------------------------------------------------------


@pytest.mark.on_disk
@pytest.mark.parametrize("has_flags", [True, False])
def test_nothing_is_published_over_a_version(
    root: OcflRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_flags: bool
) -> None:
    """A version that another host has published meanwhile is not replaced, but followed by the next one."""
    if not has_flags:
        monkeypatch.setattr("pressmark.fs.moves._renameat2", lambda: None)
        monkeypatch.setattr("pressmark.fs.moves.exists", lambda _path: False)  # it appears just after the look
    other = reopened(root, user=root.user)
    real = LocalChanges.adopt_version
    waiting = [True]

    def add(changes: LocalChanges, new: bytes, path: bytes) -> None:
        if waiting and waiting.pop():
            staged = Path(os.fsdecode(new)).parent
            kept = tree(staged)
            change = lambda: other.update("x", add={"theirs": tmp_path / "in/one"})  # noqa: E731
            monkeypatch.setattr(LocalChanges, "adopt_version", real)
            # The lock of another host does not hold here.
            monkeypatch.setattr("pressmark.fs.staging.RunDirectory.lock", lambda _directory: Unlocked())
            interrupt(folder(root), change, is_listed=False)
            monkeypatch.undo()
            if not has_flags:
                monkeypatch.setattr("pressmark.fs.moves._renameat2", lambda: None)
            assert tree(staged) == kept
        real(changes, new, path)

    monkeypatch.setattr(LocalChanges, "adopt_version", add)
    record = root.update("x", add={"ours": tmp_path / "in/new"})
    assert record.version == "v4"
    assert contents(root) == {**FILES, "theirs": b"one", "ours": b"new"}
    assert kinds(root.check(digests=True)) == []


class Unlocked:
    """A lock that does not hold."""

    def __enter__(self) -> Unlocked:
        return self

    def __exit__(self, *_error: object) -> None: ...


@pytest.mark.on_disk
def test_a_storage_adds_and_never_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a rename that never replaces, a directory with files is still refused, whatever a look has found."""
    changes = LocalChanges(LocalStorage(os.fsencode(tmp_path)), False)
    source(tmp_path / "new/v1", {"f": b"new"})
    source(tmp_path / "old/v1", {"f": b"old"})
    monkeypatch.setattr("pressmark.fs.moves._renameat2", lambda: None)
    for look in (lambda _path: True, lambda _path: False):
        monkeypatch.setattr("pressmark.fs.moves.exists", look)
        with pytest.raises(FileExistsError):
            changes.adopt_version(os.fsencode(tmp_path / "new/v1"), b"old")
        assert (tmp_path / "old/v1/f").read_bytes() == b"old"


@pytest.mark.on_disk
def test_every_step_is_flushed_before_the_next(root: OcflRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Staged files are flushed before they appear, and each change of a directory before the next change."""
    steps: list[tuple[str, str]] = []
    root.durable = True

    def watched(name: str, real: Callable[..., Any], index: int) -> Callable[..., Any]:
        def call(*given: Any, **options: Any) -> Any:
            path = given[index][0] if isinstance(given[index], list) else given[index]
            path = (
                os.path.relpath(os.fsdecode(path), root.root)
                if name in ("flush_trees", "flush_directories")
                else os.fsdecode(path)
            )
            steps.append((name, "staging" if "pressmark-staging" in path else path))
            return real(*given, **options)

        return call

    for name, index in {"adopt_version": 2, "replace": 2, "flush_names": 1, "withdraw": 1}.items():
        monkeypatch.setattr(LocalChanges, name, watched(name, getattr(LocalChanges, name), index))
    for module, name in (
        *((staging_writer, name) for name in ("flush_trees", "flush_directories")),
        (store_change, "flush_directories"),
    ):
        monkeypatch.setattr(module, name, watched(name, getattr(module, name), 0))
    root.update("x", add={"new": tmp_path / "in/new"})
    assert steps == [
        ("flush_trees", "staging"),
        ("adopt_version", "x"),
        ("flush_names", "x"),
        ("replace", "x/inventory.json"),
        ("flush_names", "x"),
        ("replace", "x/inventory.json.sha512"),
        ("flush_names", "x"),
        ("flush_directories", "."),
    ]
    steps.clear()
    root.delete("x")
    assert steps == [("withdraw", "x"), ("flush_directories", ".")]


@pytest.mark.on_disk
@pytest.mark.parametrize(
    ("failing", "call"), [("flush_names", 1), ("replace", 1), ("flush_names", 2), ("replace", 2), ("flush_names", 3)]
)
@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()])
def test_a_step_that_fails(
    root: OcflRoot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failing: str,
    call: int,
    error: BaseException,
) -> None:
    """A version whose inventory cannot be replaced is taken back; later, its sidecar is replaced as well."""
    root.durable = True
    real = getattr(LocalChanges, failing)
    calls: list[int] = []

    def fail(changes: LocalChanges, *given: bytes) -> None:
        calls.append(1)
        if len(calls) == call:
            raise error
        real(changes, *given)

    before = tree(folder(root))
    with monkeypatch.context() as patched:
        patched.setattr(LocalChanges, failing, fail)
        with pytest.raises(ObjectError if isinstance(error, OSError) else KeyboardInterrupt):
            root.update("x", add={"new": tmp_path / "in/new"})
    assert len(calls) >= call
    assert (tree(folder(root)) == before) == (call == 1)
    assert contents(root) == (FILES if call == 1 else {**FILES, "new": b"new"})
    assert kinds(root.check(digests=True)) == []
    assert not (Path(root.root) / "extensions").exists()
