"""The size of objects: whole trees in one call, and file by file with the same result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pressmark import _kernels, layout, migrate, stores
from pressmark.migrate.planning import source as measure

pytestmark = pytest.mark.usefixtures("implementation")

FILES = {"one.txt": b"1", "sub/two.bin": b"2" * 5000, "sub/deeper/\u00e9 three": b"", "b/c/d/e": b"e"}
IDS = ["ark:/13030/xt12t3", "b", "\u00fc", "x" * 90]


def a_store(kind: str, folder: Path) -> stores.Store:
    """Return a store of some objects, one of them with two versions in an OCFL storage root."""
    store = stores.create(kind, folder / "store", **({"layout": layout("0003")} if kind == "ocfl" else {}))
    source = folder / "files"
    for name, data in FILES.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(data)
    for identifier in IDS:
        store.put(identifier, source)
    (source / "one.txt").write_bytes(b"another")
    store.put(IDS[1], source, replace=True)
    return store


def planned(store: stores.Store, folder: Path) -> list[migrate.PlanEntry]:
    plan = migrate.plan(store.root, folder / "new", to=store.kind, layout="0004" if store.kind == "ocfl" else None)
    return list(plan.entries())


@pytest.mark.parametrize("kind", ["ocfl", "pairtree"])
def test_plain_objects_are_measured_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """The objects of a group take one call, and none is looked at again; file by file, the plan is the same."""
    store = a_store(kind, tmp_path)
    alone: list[str] = []
    calls: list[int] = []
    one, many = measure._measure_files, _kernels.active.tree_sizes

    def measured_alone(store: Any, record: Any, options: Any) -> Any:
        alone.append(record.id)
        return one(store, record, options)

    def counted(tops: Any) -> Any:
        calls.append(len(tops))
        return many(tops)

    def deferred(tops: Sequence[bytes]) -> Any:
        return [None] * len(tops), tops, tops

    monkeypatch.setattr(measure, "_measure_files", measured_alone)
    monkeypatch.setattr(_kernels.active, "tree_sizes", counted)
    entries = planned(store, tmp_path)
    assert (alone, calls) == ([], [len(IDS)])
    monkeypatch.setattr(_kernels.active, "tree_sizes", deferred)
    assert planned(store, tmp_path) == entries
    assert sorted(alone) == sorted(IDS)
    by_id = {entry.id: entry for entry in entries}
    assert by_id[IDS[1]].bytes != by_id[IDS[0]].bytes
    assert by_id[IDS[0]].files == len(FILES) + (5 if kind == "ocfl" else 0)  # declaration, inventories, sidecars
