"""Audits in slices: each object is verified once in a round, and the slice that meets a damage names it, whatever
happens between the slices.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from pressmark import stores
from pressmark.reports import Problem
from pressmark.stores import OcflRoot, Store, StoreObject
from pressmark.stores.audits import audit
from pressmark.stores.registry import store_class
from support.effort import LONG

KINDS = ("pairtree", "vitro", "bags", "ocfl")
SLICES = 10
USER = {"name": "Ann", "address": "mailto:ann@example.org"}


def create(path: Path, kind: str) -> Store:
    options = {"layout": "0004", "durable": False, "user": USER} if kind == "ocfl" else {}
    store: Store = store_class(kind).create(path, **options)
    return store


def put(store: Store, identifier: str, content: bytes = b"content", *, replace: bool = False) -> StoreObject:
    [result] = store.put_all([(identifier, {"a.txt": content})], replace=replace)
    assert result.record is not None
    return result.record


def damage(store: Store, path: str) -> None:
    """Change a byte of a file of an object without leaving a trace in its times."""
    file = next(one for one in sorted((Path(store.root) / path).rglob("*")) if one.name == "a.txt")
    times = file.stat()
    data = file.read_bytes()
    file.write_bytes(bytes([data[0] ^ 1]) + data[1:])
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def turns(state: Path) -> dict[str, int]:
    with sqlite3.connect(state) as base:
        return dict(base.execute("SELECT path, turn FROM objects"))


def problems_in(slice: list[Problem]) -> set[tuple[str, str]]:
    return {(one.kind, one.path) for one in slice}


def in_slice(slice: list[Problem], path: str) -> set[str]:
    """Return the kinds of errors of an object that a slice has named."""
    return {one.kind for one in slice if one.severity == "error" and one.path.startswith(path)}


@pytest.mark.kill
@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_slices(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of the slices are killed; before each, objects are added, changed, removed and damaged."""
    monkeypatch.setattr(audit, "LISTED_EVERY", 0)
    number = (100_000 if kind == "ocfl" else 10_000) if LONG else 200
    store = create(tmp_path / "store", kind)
    for result in store.put_all((f"urn:{one:06}", {"a.txt": b"content"}) for one in range(number)):
        assert result.error is None
    state = tmp_path / "state"
    share = number // SLICES
    verified: dict[str, int] = {}  # how often, in the round
    damaged: dict[str, int] = {}  # the slice that must name it
    vanished: set[str] = set()
    updated: set[str] = set()
    known: dict[str, int] = {}
    first_of = {one.id: one.path for one in store.objects()}

    def run(limit: int, kill: bool) -> list[Problem]:
        if not kill:
            return stores.audit(store_class(kind)(tmp_path / "store"), state, max_objects=limit).problems
        script = Path(__file__).with_name("audited.py")
        arguments = [kind, str(tmp_path / "store"), str(state), str(limit)]
        done = subprocess.run([sys.executable, script, *arguments], capture_output=True, timeout=600, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
        return [Problem.from_record(json.loads(line)) for line in done.stdout.splitlines()]

    named: list[set[tuple[str, str]]] = []
    for at in range(2 * SLICES):
        found = run(share, at in (2, 6))
        named.append(problems_in(found))
        now = turns(state)
        met = {path for path, turn in now.items() if turn != known.get(path, 0)}
        for path in met:
            verified[path] = verified.get(path, 0) + 1
            if path in damaged and kind in ("ocfl", "bags"):
                assert in_slice(found, path), (at, path)
        for path in set(known) - set(now):
            assert ("object-vanished", path) in named[at], (at, path)
            vanished.discard(path)
        known = now
        if at >= SLICES - 2:
            if all(known.values()):
                break
            continue
        # An object that is not verified yet, and was there from the beginning.
        rest = [
            path for path in sorted(first_of.values()) if known.get(path) == 0 and path not in {*vanished, *damaged}
        ]
        bad, gone, new = rest[-1], rest[-2], f"urn:new{at}"
        damage(store, bad)
        damaged[bad] = at
        store.delete(store.at(gone) or gone)
        vanished.add(gone)
        added = put(store, new)
        # One that is verified already is only found in the next round.
        changed = next(path for path in sorted(known) if known[path] > 0 and path not in damaged)
        if kind == "ocfl":
            assert isinstance(store, OcflRoot)
            store.update(store.at(changed) or "", add={"b.txt": added.path.encode()})
            updated.add(changed)
    assert not vanished
    # Each object once; those with a damage in each slice after the one that met it first.
    assert {path for path, count in verified.items() if count != 1 and path not in damaged} == set()
    assert set(known) == {one.path for one in store.objects()}
    assert all(known.values())
    # A Pairtree or a Vitro store has no digests: a damage before the first verification is not known to be one.
    if kind in ("ocfl", "bags"):
        assert all(known[path] < 0 for path in damaged)
    # The next round finds what has changed since, and nothing new.
    last = stores.audit(store_class(kind)(tmp_path / "store"), state)
    assert last.round == 2
    assert {path for one, path in problems_in(last.problems) if one == "object-changed"} == updated
    assert last.coverage.verified == last.coverage.objects == len(known)
    assert last.counts["new"] == last.counts["vanished"] == 0


def test_damage_of_what_has_no_digests(tmp_path: Path) -> None:
    """Files that differ from the last audit without a new time of modification are damaged, others have changed."""
    for kind in ("pairtree", "vitro"):
        store = create(tmp_path / kind, kind)
        bad, changed = put(store, "urn:bad").path, put(store, "urn:changed").path
        state = tmp_path / f"{kind}.audit"
        assert stores.audit(store, state).problems == []
        damage(store, bad)
        put(store, "urn:changed", b"other", replace=True)
        for _ in range(2):
            report = stores.audit(store, state)
            assert in_slice(report.problems, bad) == {"object-differs"}
            assert not report.ok
        assert report.counts["changed"] == 0
        damage(store, bad)  # back
        report = stores.audit(store, state)
        assert problems_in(report.problems) == {("object-mended", bad)}
        # A new time of modification says that the content is meant.
        damage(store, bad)
        next(one for one in (Path(store.root) / bad).rglob("a.txt")).touch()
        assert problems_in(stores.audit(store, state).problems) == {("object-changed", bad)}
        assert changed
