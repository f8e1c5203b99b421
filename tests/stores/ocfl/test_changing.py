"""A check during changes to the store reports only lasting problems."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from pressmark.reports import Report
from pressmark.stores import recheck, staging_writer
from pressmark.stores.ocfl import check as ocfl_check, walk as ocfl_walk
from pressmark.stores.ocfl.checking import object_check
from pressmark.stores.ocfl.checking.object_tree import ObjectTree
from pressmark.stores.ocfl.local.local_changes import LocalChanges
from pressmark.stores.ocfl.local.local_storage import LocalStorage
from pressmark.stores.ocfl.root import OcflRoot
from support.effort import LONG

from .samples import CREATED, create, kinds, source, visit_all

IDENTIFIERS = ("info:a/1", "info:a/2", "info:b/3")


@pytest.fixture
def root(tmp_path: Path) -> OcflRoot:
    root = create(tmp_path / "root")
    source(tmp_path / "other", {"a.txt": b"other"})
    for identifier in IDENTIFIERS:
        root.put(identifier, source(tmp_path / "in"), created=CREATED)
    return root


def once(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, change: Callable[[], object], after: bool) -> None:
    """Call a hook once, before or after the first call of a function."""
    function = getattr(module, name)
    waiting = [change]

    def called(*given: Any, **options: Any) -> Any:
        result = function(*given, **options) if after else None
        if waiting:
            waiting.pop()()
        return result if after else function(*given, **options)

    monkeypatch.setattr(module, name, called)


def replace(root: OcflRoot, identifier: str, folder: str = "other") -> None:
    root.put(identifier, Path(root.root).parent / folder, replace=True)


def exchange(root: OcflRoot, identifier: str) -> None:
    """Remove an object, and put another with the same content paths in its place."""
    root.delete(identifier)
    root.put(identifier, source(Path(root.root).parent / "new", {"a.txt": b"new", "same.txt": b"same"}))


CHANGES: dict[str, Callable[[OcflRoot], object]] = {
    "replaced": lambda root: replace(root, IDENTIFIERS[0]),
    "removed": lambda root: root.delete(IDENTIFIERS[0]),
    "exchanged": lambda root: exchange(root, IDENTIFIERS[0]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
@pytest.mark.parametrize(
    ("module", "name", "after"),
    [
        (LocalStorage, "read", False),
        (LocalStorage, "read", True),
        (object_check, "read_inventory", True),
        (object_check, "inventory_findings", True),
        (ocfl_check, "check_object", False),
        (ocfl_check, "check_object", True),
        (LocalStorage, "hash_tasks", False),
        (ocfl_walk, "is_object_root", False),
        (LocalStorage, "trees", False),
        (LocalStorage, "trees", True),
    ],
)
def test_an_object_that_changes_while_it_is_checked(
    root: OcflRoot,
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    name: str,
    after: bool,
    change: Callable[[OcflRoot], object],
) -> None:
    """An object that changes during its check is checked again, with no false problem."""
    if name != "trees":
        visit_all(monkeypatch)
    once(monkeypatch, module, name, lambda: change(OcflRoot(root.root, durable=False)), after)
    report = root.check(digests=True, threads=1)
    assert report.errors == []
    assert report.counts["objects"] in (2, 3)


def test_an_object_that_is_removed_while_it_is_listed(root: OcflRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing skips an object removed meanwhile, and reports an object without an inventory."""
    visit_all(monkeypatch)
    Path(root.get(IDENTIFIERS[1]).path, "inventory.json").unlink()
    where = {identifier: root.path_for(identifier) for identifier in IDENTIFIERS}
    identify = ocfl_walk.identify
    gone = root.find(IDENTIFIERS[0])

    def removed(storage: Any, tree: ObjectTree) -> Any:
        if tree.path == root.path_for(IDENTIFIERS[0]).encode():
            OcflRoot(root.root).delete(gone)
        return identify(storage, tree)

    monkeypatch.setattr(ocfl_walk, "identify", removed)
    records = {record.path: record.problems for record in root.objects(threads=1)}
    assert records.keys() == {where[IDENTIFIERS[1]], where[IDENTIFIERS[2]]}
    assert [problem.kind for problem in records[where[IDENTIFIERS[1]]]] == ["inventory-missing"]


def test_a_check_at_each_step_of_a_new_version(root: OcflRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is publishing a version is waited for, and no file has two names meanwhile."""
    reports: list[Report] = []
    other = OcflRoot(root.root)
    for name in ("flush_trees", "flush_directories"):  # before and after the version is published
        once(monkeypatch, staging_writer, name, lambda: reports.append(other.check()), False)
    root.durable = True
    replace(root, IDENTIFIERS[0])
    assert [report.errors for report in reports] == [[], []]
    linked = Path(root.get(IDENTIFIERS[1]).path) / "v1/content/a.txt"
    (Path(root.root).parent / "link").hardlink_to(linked)
    assert kinds(root.check()) == ["hard-link"]


@pytest.mark.parametrize("step", ["adopt_version", "replace"])
def test_a_check_while_a_version_is_published(root: OcflRoot, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """A check that starts between two steps of another run waits for the last one."""
    reports: list[Report] = []
    real = getattr(LocalChanges, step)
    checks: list[threading.Thread] = []

    def check() -> None:
        reports.append(OcflRoot(root.root).check(digests=True))

    def publish(changes: LocalChanges, new: bytes, path: bytes) -> None:
        real(changes, new, path)
        checks.append(threading.Thread(target=check))
        checks[-1].start()
        sleep(0.05)  # the check waits for the lock

    monkeypatch.setattr(LocalChanges, step, publish)
    replace(root, IDENTIFIERS[0])
    for thread in checks:
        thread.join()
    assert [report.errors for report in reports] == [[]] * len(checks)
    assert checks


def test_directories_that_come_and_go(root: OcflRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that is briefly empty during a change is not reported."""
    top = Path(root.root)
    with root.changes() as staging:
        (top / "new/x").mkdir(parents=True)
        (top / "old").mkdir()
        path = Path(root.get(IDENTIFIERS[0]).path)
        aside = Path(os.fsdecode(staging.path)) / "object"
        shutil.copytree(path, aside)
        turn = staging.lock()
        events = iter([lambda: (top / "old").rmdir(), lambda: aside.rename(top / "new/x/object"), turn.release])
        monkeypatch.setattr(recheck, "sleep", lambda _seconds: next(events)())
        report = root.check(threads=1)
        assert kinds(report) == ["misplaced"]  # the copy
        (top / "empty").mkdir()
        assert kinds(root.check(threads=1)) == ["directory-empty", "misplaced"]


def test_a_directory_that_is_removed_after_it_was_listed(root: OcflRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that is still listed but cannot be opened is an error."""
    (Path(root.root) / "old").mkdir()
    scan = LocalStorage.scan
    old = Path(root.root) / "old"

    def lost(storage: LocalStorage, directory: bytes) -> Any:
        if directory == b"old" and old.is_dir() and gone:
            old.rmdir()
        if directory == b"old":
            raise FileNotFoundError(2, "No such file or directory")
        return scan(storage, directory)

    monkeypatch.setattr(LocalStorage, "scan", lost)
    gone: list[bool] = []
    assert kinds(root.check()) == ["unreadable"]
    gone.append(True)
    assert kinds(root.check()) == []


def test_an_object_that_never_keeps_still(root: OcflRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object that changes at every attempt is reported after a limited number of attempts."""
    folder = Path(root.get(IDENTIFIERS[0]).path)
    (folder / "extensions").mkdir()
    (folder / "extensions/first").write_bytes(b"")
    check = ocfl_check.check_object
    numbers = iter(range(1000))

    def changing(tree: ObjectTree, *given: Any) -> Any:
        if root.storage.path(tree.path) == os.fsencode(folder):
            shutil.rmtree(folder / "extensions", ignore_errors=True)
            (folder / "extensions").mkdir()
            (folder / f"extensions/{next(numbers)}").write_bytes(b"")
        return check(tree, *given)

    monkeypatch.setattr(ocfl_check, "check_object", changing)
    assert kinds(root.check()) == ["object-changing"]
    assert next(numbers) == recheck.LOOKS + 1
    monkeypatch.undo()

    (folder / "v1/content/a.txt").write_bytes(b"onE")
    shutil.rmtree(folder / "extensions")
    status = LocalStorage.status

    def touched(storage: LocalStorage, path: bytes) -> Any:
        os.utime(folder / "inventory.json", ns=(next(numbers), next(numbers)))
        return status(storage, path)

    monkeypatch.setattr(LocalStorage, "status", touched)
    assert kinds(root.check(digests=True)) == ["object-changing"]


def test_what_is_wrong_is_still_wrong(root: OcflRoot) -> None:
    """Problems of an unchanged object are reported once, whatever is ignored."""
    folder = Path(root.get(IDENTIFIERS[0]).path)
    (folder / ".DS_Store").write_bytes(b"")
    (folder / "v1/content/extra").write_bytes(b"")
    (folder / "v1/content/a.txt").write_bytes(b"onE")
    for threads in (1, 2):
        report = root.check(digests=True, threads=threads, ignore=[".DS_Store"])
        assert [found.kind for found in report.problems] == ["content-extra", "content-mismatch"]


def test_an_object_removed_while_it_is_checked(root: OcflRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two checks that agree only because each met a removal are not believed."""
    visit_all(monkeypatch)
    path = next(os.fsencode(record.path) for record in root.objects())
    folder = Path(root.root) / os.fsdecode(path)
    aside = Path(root.root).parent / "aside"
    scan, removals = LocalStorage.scan, iter(range(4))

    def removing(storage: LocalStorage, directory: bytes) -> Any:
        entries = scan(storage, directory)
        if directory == path and next(removals, None) is not None:
            folder.rename(aside)
        return entries

    def storing(_folder: bytes) -> None:
        if aside.exists():
            aside.rename(folder)

    monkeypatch.setattr(LocalStorage, "scan", removing)
    monkeypatch.setattr(recheck, "await_turn", storing)
    assert kinds(root.check(threads=1)) == []
    assert next(removals, None) is None


@pytest.mark.parametrize("digests", [False, True])
def test_a_check_beside_runs(root: OcflRoot, digests: bool) -> None:
    """A check is clean while other runs put, replace and remove objects."""
    done = threading.Event()
    failed: list[BaseException] = []

    def change(number: int) -> None:
        try:
            own = OcflRoot(root.root, durable=False)
            while not done.is_set():
                for identifier in (f"info:c/{number}", f"info:d/{number}"):
                    own.put(identifier, Path(root.root).parent / "in")
                    for folder in ("other", "in"):
                        replace(own, identifier, folder)
                    own.delete(identifier)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=change, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        found = [problem for _ in range(40) for problem in OcflRoot(root.root).check(digests=digests).problems]
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert failed == []
    assert [one for one in found if one.kind != "inventory-advice"] == []


@pytest.mark.long
def test_checks_and_readers_beside_updates(root: OcflRoot) -> None:
    """While an object gets many versions, checks report nothing, and readers find each version whole."""
    done = threading.Event()
    failed: list[BaseException] = []
    counts = dict.fromkeys(("check", "check with digests", "read", "list"), 0)
    folder = source(Path(root.root).parent / "numbers", {f"{number}": b"%d" % number for number in range(10)})

    def check(digests: bool) -> None:
        problems = OcflRoot(root.root).check(digests=digests, threads=1).problems
        assert [one for one in problems if one.kind != "inventory-advice"] == []

    def read() -> None:
        found = OcflRoot(root.root).get(IDENTIFIERS[0])
        files = {name: Path(path).read_bytes() for name, path in found.files()}
        for name in ("one", "two"):
            with found.open(name) as file:
                assert file.read() == files[name] == files["one"]

    def listed() -> None:
        assert [record.problems for record in OcflRoot(root.root).objects(threads=1)] == [(), (), ()]

    work = {"check": lambda: check(False), "check with digests": lambda: check(True), "read": read, "list": listed}

    def repeat(name: str) -> None:
        try:
            while not done.is_set():
                work[name]()
                counts[name] += 1
        except BaseException as error:
            failed.append(error)

    updates = 199 if LONG else 20
    root.update(IDENTIFIERS[0], add=dict.fromkeys(("one", "two"), folder / "0"))
    threads = [threading.Thread(target=repeat, args=(name,)) for name in work]
    for thread in threads:
        thread.start()
    try:
        for number in range(1, updates + 1):
            new = folder / str(number % 10)
            root.update(IDENTIFIERS[0], add={"one": new, "two": new}, dedup=number % 3 != 0)
            if number % 20 == 0:
                sleep(0.05)
            if failed:
                break
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert failed == []
    assert min(counts.values()) > 2, counts
    assert root.get(IDENTIFIERS[0]).version == f"v{updates + 2}"
    assert kinds(root.check(digests=True)) == []
