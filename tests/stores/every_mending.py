"""Mending of an object, killed or refused by the system at every change of the disk; run with disk_faults.c preloaded.

    python every_mending.py KIND FOLDER kill|ERRNO|-ERRNO [STRIDE]

Each file is damaged as before or good, also before a repair; a lost one is lost or good. A repair leaves no leftovers,
and the repeated run mends all. STRIDE is the distance between tested steps.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
from pathlib import Path

import pressmark
from pressmark import stores
from pressmark.errors import ObjectError, StoreError
from pressmark.stores import Store
from support.disk_faults import DiskFault

GOOD = {"a": b"first", "sub/b": b"second" * 100, "sub/deep/c": b"third"}
DAMAGED = {"a": b"fir", "sub/b": b"SECOND" * 100}


def build(kind: str, folder: Path) -> Store:
    """Make a store with an object of which two files are damaged, and one is lost with its directory."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in GOOD.items():
        (folder / "good" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "good" / name).write_bytes(data)
    store = stores.create(kind, folder / "store", pressmark.layout("0002") if kind == "ocfl" else None)
    store.put("abc", folder / "good")
    for name, data in DAMAGED.items():
        (content(store) / name).write_bytes(data)
    shutil.rmtree(content(store) / "sub/deep")
    return store


def content(store: Store) -> Path:
    return Path(store.root) / ("abc/v1/content" if store.kind == "ocfl" else "abc/data")


def files(store: Store) -> dict[str, bytes]:
    top = content(store)
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


def main() -> None:
    kind, folder, how, stride = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int((*sys.argv, "1")[4])
    fault = DiskFault(how, StoreError, ObjectError)
    step, cases = 1 - stride, 0
    while True:
        step += stride
        store = build(kind, folder)
        status = fault.run(step, functools.partial(stores.mend, store, folder / "good")).status
        where = f"{kind}, change {step}, ended {status}"
        for name, data in files(store).items():
            assert data in (GOOD[name], DAMAGED.get(name)), (where, name, data)
        assert files(store).keys() >= DAMAGED.keys(), where
        if status == 0 and files(store) == GOOD:
            break
        cases += 1
        store.repair()
        assert stores.mend(store, folder / "good").ok, where
        assert files(store) == GOOD, where
        assert not [one for one in store.check(digests=True).problems if one.kind != "inventory-advice"], where
        strangers = [name for name in os.listdir(store.root) if "pressmark" in name and not name.endswith("json")]
        assert not strangers, where
    print(cases)


if __name__ == "__main__":
    main()
