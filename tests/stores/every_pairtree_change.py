"""Every change of a Pairtree, killed or refused by the system at every single step; run with disk_faults.c preloaded.

    python every_pairtree_change.py FOLDER kill|ERRNO|-ERRNO [STRIDE]

For each operation and each change of the disk in it, this creates a new store, runs the operation in a child process
that fails at that change, and checks the result. The store must be unchanged or completely changed, also before a
repair. A repair leaves no leftovers, and the repeated operation succeeds. STRIDE is the distance between tested steps.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from pressmark.errors import ObjectError, StoreError
from pressmark.fs.staging import leftovers
from pressmark.stores.pairtree.pairtree_store import PairtreeStore
from support.disk_faults import DiskFault

State = dict[str, dict[str, bytes]]

NEW = {"one": b"1" * 10, "two/three": b"3" * 100}


def state(store: PairtreeStore) -> State:
    """Return every object's files, read through the store."""
    found: State = {}
    for record in store.objects(threads=1):
        files = dict(store.locate(record).files())
        assert record.id is not None
        assert record.id not in found
        found[record.id] = {}
        for name, path in files.items():
            if name == "near" and not os.path.exists(path):
                # Between two steps of a repair, a link and its target are in different directories.
                assert {problem.kind for problem in record.problems} & {"unfinished"}
                found[record.id][name] = b"read me"
                continue
            with store.locate(record).open(name) as file:
                found[record.id][name] = file.read()
    return found


def build(folder: Path) -> PairtreeStore:
    """Make a store with objects above, below and beside the changed one; some are not encapsulated."""
    shutil.rmtree(folder, ignore_errors=True)
    store = PairtreeStore.create(folder / "store")
    (folder / "new" / "two").mkdir(parents=True)
    for name, data in NEW.items():
        (folder / "new" / name).write_bytes(data)
    tree = folder / "store" / "pairtree_root"
    for path, data in {
        "ab/0ab/file": b"above",
        "ab/cd/abcd/file": b"old",
        "ab/cd/abcd/sub/file": b"old too",
        "ab/cd/ef/abcdef/file": b"below",
        "be/nt/README.txt": b"read me",
        "be/nt/obj/inside": b"already there",
        "be/nt/x": b"short",
        "be/nt/ef/bentef/file": b"below the split end",
        "zz/z/ab/file": b"post-morty",
    }.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(data)
    (tree / "be/nt/near").symlink_to("README.txt")
    (tree / "be/nt/far").symlink_to("../../ab/0ab/file")
    return store


OPERATIONS: dict[str, Callable[[PairtreeStore, Path], object]] = {
    "put": lambda store, new: store.put("abxy", new),
    "put below": lambda store, new: store.put("abc", new),
    "replace": lambda store, new: store.put("abcd", new, replace=True),
    "replace in steps": lambda store, new: in_steps(store, new),
    "replace a split end": lambda store, new: store.put("bent", new, replace=True),
    "delete": lambda store, _new: store.delete("abcd"),
    "delete a split end": lambda store, _new: store.delete("bent"),
    "repair": lambda store, _new: store.repair(),
}


def in_steps(store: PairtreeStore, new: Path) -> None:
    """Replace without an atomic exchange."""
    import pressmark.stores.pairtree.pairtree_store

    pressmark.fs.moves.exchange = lambda _one, _other: False  # in a child process
    store.put("abcd", new, replace=True)


def expected(operation: str, before: State) -> State:
    """Return what must exist afterwards."""
    after = dict(before)
    if operation.startswith("delete"):
        del after["bent" if "split" in operation else "abcd"]
    elif operation != "repair":
        after[{"put": "abxy", "put below": "abc", "replace a split end": "bent"}.get(operation, "abcd")] = NEW
    return after


def main() -> None:
    folder, how, stride = Path(sys.argv[1]), sys.argv[2], int((*sys.argv, "1")[3])
    fault = DiskFault(how, StoreError, ObjectError)
    cases = 0
    for number_of_operation, (operation, action) in enumerate(OPERATIONS.items()):
        before = state(build(folder))
        after = expected(operation, before)
        # Each operation starts at another step, so that all kinds of steps are covered.
        step = 1 - stride + number_of_operation % stride
        while True:
            step += stride
            store = build(folder)
            status = fault.run(step, functools.partial(action, store, folder / "new")).status
            where = f"{operation}, change {step}, ended {status}"
            found = state(store)
            assert found in (before, after), f"{where}: {found}"
            if status == 0:
                assert found == after, where
                break
            cases += 1
            report = store.repair()
            assert not {problem.kind for problem in report.problems} & {"leftover", "unfinished", "empty"}, where
            assert state(store) == found, where
            assert not leftovers(os.fsencode(store.root) + b"/pairtree_pressmark"), where
            # The operation succeeds again, or finds its work done.
            try:
                action_here(operation, store, folder / "new")
            except ObjectError as error:
                if error.kind != ("missing" if operation.startswith("delete") else "exists"):
                    raise
            assert state(store) == after, where
            check = store.check()
            assert not check.problems or operation not in ("repair",), (where, check.problems)
            assert sorted(os.listdir(store.root)) == ["pairtree_root", "pairtree_version0_1"], where
    print(cases)


def action_here(operation: str, store: PairtreeStore, new: Path) -> None:
    OPERATIONS["replace" if operation == "replace in steps" else operation](store, new)


if __name__ == "__main__":
    main()
