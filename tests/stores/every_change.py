"""Every change of a store of any kind except Pairtree, killed or refused by the system at every step.

    python every_change.py KIND FOLDER kill|ERRNO|-ERRNO [STRIDE]

Run with disk_faults.c preloaded. For each operation and each change of the disk in it, this creates a new store, runs
the operation in a child process that fails at that change, and checks the result. The store must be unchanged or
completely changed, also before a repair. A repair leaves no leftovers, and the repeated operation succeeds. STRIDE is
the distance between tested steps.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pressmark
import pressmark.fs.moves
from pressmark import stores
from pressmark.errors import ObjectError, StoreError
from pressmark.reports import Problem, Report
from pressmark.stores import Store
from pressmark.stores.vitro.vitro_store import VitroStore
from support.disk_faults import DiskFault

State = dict[str, dict[str, bytes]]
Operation = Callable[[Any, Path], object]

NEW = {"name.bin": b"new" * 100}


def state(store: Store) -> State:
    """Return every object's files, read by its identifier."""
    found: State = {}
    for record in store.objects():
        assert record.id is not None
        assert record.id not in found
        stored = store.locate(record)
        found[record.id] = {name: Path(path).read_bytes() for name, path in stored.files()}
    return found


def build(kind: str, folder: Path) -> Store:
    """Make a store with objects above, below and beside the changed one, and with things to repair."""
    shutil.rmtree(folder, ignore_errors=True)
    layout = pressmark.layout("0002") if kind == "ocfl" else None
    store = stores.create(kind, folder / "store", layout)
    for name, data in {"old": b"old", **NEW}.items():
        (folder / name).write_bytes(data)
    for identifier in ("abc", "abcdef", "xyz"):
        store.put(identifier, folder / "old")
    at = folder / "store"
    if isinstance(store, VitroStore):
        for path in ("file_storage_root/raw/a b", "file_storage_root/urn/+1/x"):
            (at / path).parent.mkdir(parents=True)
            (at / path).write_bytes(b"to be mended")
        (at / "file_storage_root/emp/ty").mkdir(parents=True)
        store.declare("urn:")
    else:
        (at / "emp/ty").mkdir(parents=True)
    if kind == "bags":
        os.rename(at / "xyz", at / "xyz.pressmark-old")
    return store


def in_steps(store: Store, folder: Path) -> None:
    """Replace without an atomic exchange; in a child process."""
    pressmark.fs.moves.exchange = lambda _one, _other: False
    replace(store, folder)


def put(store: Store, folder: Path) -> None:
    store.put("abcd", folder / "name.bin")


def replace(store: Store, folder: Path) -> None:
    store.put("abc", folder / "name.bin", replace=True)


def replace_by_the_same_name(store: Store, folder: Path) -> None:
    store.put("abc", {"old": folder / "name.bin"}, replace=True)


def delete(store: Store, _folder: Path) -> None:
    store.delete("abc")


def repair(store: Store, _folder: Path) -> None:
    store.repair()


OPERATIONS: tuple[Operation, ...] = (put, replace, in_steps, replace_by_the_same_name, delete, repair)


def wrong(report: Report) -> list[Problem]:
    """Return a report's problems except OCFL's advice that identifiers be URIs."""
    return [problem for problem in report.problems if problem.kind != "inventory-advice"]


def expected(operation: Operation, before: State) -> State:
    """Return what must exist afterwards."""
    after = dict(before)
    if operation is delete:
        del after["abc"]
    elif operation is replace_by_the_same_name:
        after["abc"] = {"old": NEW["name.bin"]}
    elif operation is not repair:
        after["abcd" if operation is put else "abc"] = NEW
    return after


def main() -> None:
    kind, folder, how, stride = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int((*sys.argv, "1")[4])
    fault = DiskFault(how, StoreError, ObjectError)
    cases = 0
    for turn, operation in enumerate(OPERATIONS):
        if kind != "bags" and operation is in_steps:
            continue
        before = state(build(kind, folder))
        after = expected(operation, before)
        # Each operation starts at another step, so that all kinds of steps are covered.
        step = 1 - stride + turn % stride
        while True:
            step += stride
            store = build(kind, folder)
            status = fault.run(step, functools.partial(operation, store, folder)).status
            where = f"{kind}, {operation.__name__}, change {step}, ended {status}"
            found = state(store)
            assert found in (before, after), f"{where}: {found}"
            if status == 0:
                assert found == after, where
                break
            cases += 1
            is_unfinished = any(one.kind == "version-unfinished" for one in store.check().problems)
            report = store.repair()
            assert not wrong(report), (where, report.problems)
            assert state(store) == (after if is_unfinished else found), where
            # The operation succeeds again, or finds its work done.
            try:
                operation(store, folder) if operation is not in_steps else replace(store, folder)
            except ObjectError as error:
                if error.kind != ("missing" if operation is delete else "exists"):
                    raise
            assert state(store) == after, where
            assert not wrong(store.check(digests=True)), where
            strangers = [name for name in os.listdir(store.root) if "pressmark" in name and not name.endswith("json")]
            assert not strangers, where
    print(cases)


if __name__ == "__main__":
    main()
