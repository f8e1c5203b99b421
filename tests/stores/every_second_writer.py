"""A change that stops before one of its steps, with a second writer beside it; run with disk_faults.c preloaded.

    python every_second_writer.py version|get|move KIND FOLDER kill|continue STRIDE

For every STRIDE-th change of the disk, the first process stops before it, the second one changes the same object, and
the first one is killed or goes on. What either reported as done is there, whole and verified; what failed left nothing.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from click.exceptions import ClickException

from pressmark import migrate, stores
from pressmark.cli import main as pressmark
from pressmark.cli.common.console import Failure
from pressmark.errors import ObjectError, PressmarkError
from pressmark.migrate import remove
from pressmark.migrate.entry import Entry
from pressmark.stores import Store, StoredObject
from pressmark.stores.ocfl.root import OcflRoot
from stores.every_version import LEFT, NEW, OLD, Files, build, opened
from support.disk_faults import FAILED, FINISHED, KILLED, DiskFault
from support.trees import snapshot, write
from ways.stores import make_store

Step = Callable[[int], bool]

# --- a version whose content is in the object already -----------------------------------------------------------------

#: States of an object after its first three versions, oldest first; with whether the three are there.
History = tuple[bool, list[Files]]
PUT = {"a": OLD["a"], "new/one": NEW, "new/two": NEW}


def _put(root: OcflRoot, given: Path) -> None:
    root.put("info:abc", {"a": given / "a", "new/one": given / "new", "new/two": given / "new"}, replace=True)


def _add(root: OcflRoot, given: Path) -> None:
    root.update("info:abc", add={"new/one": given / "new"})


def _add_the_same(root: OcflRoot, given: Path) -> None:
    root.update("info:abc", add={"same": given / "new"})


def _replace(root: OcflRoot, given: Path) -> None:
    root.put("info:abc", {"other": given / "other"}, replace=True)


def _delete(root: OcflRoot, _given: Path) -> None:
    root.delete("info:abc")


Change = Callable[[OcflRoot, Path], None]
FIRST: tuple[Change, ...] = (_put, _add)
SECOND: tuple[Change, ...] = (_add_the_same, _replace, _delete)


def _after(history: History, change: Change) -> History | None:
    """Return an object's history after a change; :data:`None` if the change fails."""
    is_old, states = history
    if change is _delete:
        return False, []
    if change in (_put, _replace):
        return is_old, [*states, PUT if change is _put else {"other": b"other"}]
    if not (is_old or states):
        return None  # nothing to update
    return is_old, [*states, {**(states or [OLD])[-1], "new/one" if change is _add else "same": NEW}]


def _history(root: OcflRoot, is_old: bool) -> History:
    """Read an object's history, verified, without its first three versions if these are still there."""
    try:
        versions = list(root.get("info:abc").inventory["versions"])[3 * is_old :]
    except ObjectError as error:
        if error.kind != "missing":
            raise
        return False, []
    objects = [root.get("info:abc", version=version) for version in versions]
    return is_old, [_files(one) for one in objects]


def _files(found: StoredObject) -> Files:
    files = {}
    for name, _path in found.files():
        with found.open(name) as file:
            files[name] = file.read()
    return files


def version(_kind: str, folder: Path, fault: DiskFault) -> Iterator[Step]:
    """Yield a function for each pair of changes, with sound and with damaged stored content."""
    shutil.rmtree(folder, ignore_errors=True)
    build(folder.with_name("pristine"))
    for is_damaged in (True, False):
        for first in FIRST:
            for second in SECOND:
                yield functools.partial(_version, folder, fault, first, second, is_damaged)


def _version(folder: Path, fault: DiskFault, first: Change, second: Change, is_damaged: bool, step: int) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(folder.with_name("pristine"), folder)
    damage = {"content-mismatch"} if is_damaged else set()
    if is_damaged:
        (folder / "root/info:abc/v2/content/b").write_bytes(NEW.upper())
    given = folder / "in"
    endings = fault.beside(step, lambda: first(opened(folder), given), lambda: second(opened(folder), given))
    if endings is None:
        return False
    where = f"{first.__name__} beside {second.__name__}, change {step}, ended {endings}"
    one, other = endings
    assert other.status != FAILED, where
    # After its end, a killed change cannot go on: it was made before the other one, or not at all.
    orders = {FINISHED: [[first, second], [second, first]], KILLED: [[second], [first, second]], FAILED: [[second]]}
    begun: History = (True, [])
    possible = [functools.reduce(lambda found, made: found and _after(found, made), order, begun)
                for order in orders[one.status if one.status in orders else FINISHED]]  # fmt: skip
    assert one.status != FAILED or (first, second) == (_add, _delete), where
    root = opened(folder)
    is_old = Path(root.root, "info:abc/v3").exists() and second is not _delete
    for _ in range(2):
        assert _history(root, is_old) in possible, where
        errors = [one for one in root.check(digests=True).problems if one.kind not in LEFT | damage]
        assert errors == [], (where, errors)
        root.repair()
    assert [one for one in root.check(digests=True).problems if one.kind not in damage] == [], where
    assert "extensions" not in os.listdir(root.root), where
    return True


# --- a verified copy --------------------------------------------------------------------------------------------------

FILES: Files = {"a.txt": b"alpha", "sub/b.txt": b"beta" * 10_000, "sub/deep/c.txt": b""}
# All names of the first ones: a copy of both is not noticed by a missing file.
LATER: Files = {"a.txt": b"ALPHA", "sub/b.txt": b"BETA" * 10_000, "sub/deep/c.txt": b"", "later": b"later"}


def _get(store: Path, target: Path) -> bool:
    with contextlib.redirect_stderr(io.StringIO()):
        status = pressmark.main(["store", "get", str(store), "x", str(target), "--quiet"], standalone_mode=False)
    return status in (0, None)


def _replace_object(store: Path, later: Path) -> None:
    stores.open(store).put("x", later, replace=True)


def _delete_object(store: Path, _later: Path) -> None:
    stores.open(store).delete("x")


def get(kind: str, folder: Path, fault: DiskFault) -> Iterator[Step]:
    """Yield a function for each change of an object that is copied."""
    store, later = folder / "store", folder / "later"
    make_store(kind, folder / "pristine", {"x": FILES})
    write(later, {name: LATER[name] for name in (list(LATER)[:1] if kind == "vitro" else LATER)})  # type: ignore[misc]
    whole = []
    for replaced in (False, True):
        shutil.copytree(folder / "pristine", store)
        if replaced:
            _replace_object(store, later)
        assert _get(store, folder / "copy")
        whole.append(snapshot(folder / "copy"))
        shutil.rmtree(store)
        shutil.rmtree(folder / "copy")
    assert whole[0] != whole[1]

    def step(change: Callable[[Path, Path], None], number: int) -> bool:
        copy = folder / "copy"
        shutil.rmtree(store, ignore_errors=True)
        shutil.copytree(folder / "pristine", store)
        before = set(os.listdir(folder))
        endings = fault.beside(number, lambda: _get(store, copy), lambda: change(store, later))
        if endings is None:
            return False
        where = f"{kind}, change {number}, ended {endings}"
        assert endings[1].status != FAILED, where
        assert endings[0].status != FINISHED or copy.exists(), where
        assert endings[0].status != FAILED or set(os.listdir(folder)) == before, where
        assert not copy.exists() or snapshot(copy) in whole, where
        shutil.rmtree(copy, ignore_errors=True)
        if change is _replace_object:
            assert _get(store, copy), where
            assert snapshot(copy) == whole[1], where
            shutil.rmtree(copy)
        assert stores.open(store).check(digests=True).ok, where
        return True

    for change in (_replace_object, _delete_object):
        yield functools.partial(step, change)


# --- a move -----------------------------------------------------------------------------------------------------------


def _contents(store: Store) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    for record in store.objects():
        assert record.id is not None
        found[record.id] = list(_files(store.get(record.id)).values())
    return found


def move(kind: str, folder: Path, fault: DiskFault) -> Iterator[Step]:
    """Yield a function for the replacement of an object that is moved, when its source is about to be removed."""
    source, new, later = folder / "source", folder / "new", folder / "later"
    work = Path(f"{new}.migration")
    make_store(kind, folder / "pristine", {"x": {"a.txt": b"alpha"}, "y": {"a.txt": b"beta"}})
    write(later, {"a.txt": b"later"})

    remove_source = remove.remove_source

    def remove_stopped(*arguments: Any) -> Entry:
        if remove.remove_source is remove_stopped:  # the first object
            remove.remove_source = remove_source
            fault.arm()
        return remove_source(*arguments)

    def run() -> bool:
        fault.disarm()
        remove.remove_source = remove_stopped
        # A copy, so that a file of the source is not that of the destination.
        plan = migrate.plan(source, new, to="pairtree", move=True, copy_mode="copy")
        return migrate.run(plan, processes=False).ok

    def step(number: int) -> bool:
        for path in (source, new, work):
            shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(folder / "pristine", source)
        endings = fault.beside(number, run, lambda: _replace_object(source, later))
        where = f"{kind}, change {number}, ended {endings}"
        is_done = endings is None or endings[0].status == FINISHED
        for is_resumed in (False, True):
            if is_resumed and not is_done and migrate.state(work) == "begun":
                migrate.resume(work, processes=False)
            found: dict[str, list[bytes]] = {"x": [], "y": []}
            for path in (source, new):
                with contextlib.suppress(PressmarkError):  # a destination that is no store yet
                    for identifier, contents in _contents(stores.open(path)).items():
                        found[identifier] += contents
            assert b"later" in found["x"], (where, found)
            assert b"beta" in found["y"], (where, found)
        assert not [one for one in stores.open(source).check(digests=True).problems if one.severity == "error"], where
        return endings is not None

    yield step


def main() -> None:
    subject, kind, folder, how, stride = sys.argv[1:]
    fault = DiskFault(how, PressmarkError, Failure, ClickException)
    cases = 0
    steps = {"version": version, "get": get, "move": move}[subject](kind, Path(folder, "at"), fault)
    for turn, step in enumerate(steps):
        # Each pair of changes starts at another step, so that all kinds of steps are covered.
        for number in count(1 + turn % int(stride), int(stride)):
            if not step(number):
                break
            cases += 1
    print(cases)


if __name__ == "__main__":
    main()
