"""A batch of objects, killed or refused by the system at every change of the disk.

    python every_ingest.py KIND FOLDER kill|ERRNO|-ERRNO [STRIDE]

Run with disk_faults.c preloaded. For each change, this creates a new store and ingests objects in two batches, one of
them without a source, in a child process that fails at that change. Each object must be complete or absent, those
reported as stored must be there, and those reported as failed must not. A repair leaves no leftovers, and the repeated
ingest stores the rest.
"""

from __future__ import annotations

import functools
import io
import os
import shutil
import socket
import sys
from pathlib import Path
from typing import Any

import pressmark
from pressmark import stores
from pressmark.errors import ObjectError, StoreError
from pressmark.stores import IngestResult, Store, StoreObject
from support.disk_faults import DiskFault

State = dict[str, dict[str, bytes]]

NEW = {"name.bin": b"new" * 100}
# Objects in the store: of other identifiers, above and below the new ones.
OLD = ("abc", "xyz")
# Each way to prepare an object: the first copy of a run, small ones together, content, a large one.
NEWER = ("abcd", "abcde", "uvw", "none", "abcdef", "abcdefgh", "xy")
BATCH = 4


def state(store: Store) -> State:
    """Return every object's files, read by its identifier."""
    return {
        str(record.id): {name: Path(path).read_bytes() for name, path in store.locate(record).files()}
        for record in store.objects()
    }


def build(kind: str, folder: Path) -> Store:
    shutil.rmtree(folder, ignore_errors=True)
    layout = pressmark.layout("0002") if kind == "ocfl" else None
    store = stores.create(kind, folder / "store", layout)
    (folder / "in").mkdir()
    (folder / "in" / "name.bin").write_bytes(NEW["name.bin"])
    (folder / "large").mkdir()
    (folder / "large" / "name.bin").write_bytes(NEW["name.bin"] * 1000)
    for identifier in OLD:
        store.put(identifier, folder / "in")
    return store


def sources(folder: Path) -> dict[str, Any]:
    small, content = folder / "in", {"name.bin": io.BytesIO(NEW["name.bin"])}
    given = (small, small, small, folder / "none", content, folder / "large", small)
    return dict(zip(NEWER, given, strict=True))


def ingest(store: Store, folder: Path, told: socket.socket | None = None) -> list[IngestResult[StoreObject]]:
    """Store all objects, and report each to the parent process, by a call that is no change of a disk."""

    class Told(list[IngestResult[StoreObject]]):
        def append(self, result: IngestResult[StoreObject]) -> None:
            super().append(result)
            if told is not None:
                told.send(f"{'failed' if result.error else 'stored'} {result.id}\n".encode())

    results = Told()
    with store.ingest(results=results, max_objects=BATCH, max_seconds=60) as batch:
        batch.put_all(sources(folder).items())
    return results


def run(store: Store, folder: Path, told: socket.socket) -> None:
    """Ingest, and report to the parent process."""
    results = ingest(store, folder, told)
    assert [one.id for one in results] == list(NEWER)
    assert not any("\n" in str(result.error) for result in results)


def main() -> None:
    kind, folder, how, stride = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int((*sys.argv, "1")[4])
    fault = DiskFault(how, StoreError)
    wanted = {name: {"name.bin": NEW["name.bin"] * (1000 if name == "abcdefgh" else 1)} for name in (*OLD, *NEWER)}
    del wanted["none"]
    cases, step = 0, 1 - stride
    while True:
        step += stride
        store = build(kind, folder)
        ours, theirs = socket.socketpair()
        status = fault.run(step, functools.partial(run, store, folder, theirs)).status
        theirs.close()
        told = dict(reversed(line.split(" ")) for line in ours.makefile().read().splitlines())
        ours.close()
        where = f"{kind}, change {step}, ended {status}, reported {told}"
        found = state(store)
        assert all(wanted[name] == files for name, files in found.items()), where
        assert found.keys() >= {*OLD, *(name for name, how in told.items() if how == "stored")}, where
        assert not found.keys() & {name for name, how in told.items() if how == "failed"}, where
        if status == 0:
            assert found == wanted, where
            break
        cases += 1
        store.repair()
        assert state(store) == found, where
        for result in ingest(store, folder):
            error = result.error
            if result.id == "none":
                assert error is not None, where
            else:
                is_there = isinstance(error, ObjectError) and error.kind == "exists"
                assert is_there if result.id in found else error is None, (where, error)
        assert state(store) == wanted, where
        assert not [one for one in store.check(digests=True).problems if one.kind != "inventory-advice"], where
        assert not [one for one in os.listdir(store.root) if "pressmark" in one and not one.endswith("json")], where
    print(cases)


if __name__ == "__main__":
    main()
