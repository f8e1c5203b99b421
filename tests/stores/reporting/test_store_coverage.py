"""Coverage in a store report: what the state of the audits says, counted by a script of its own."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from pressmark import stores
from pressmark.errors import AuditError
from pressmark.stores.audits.audit_state import AuditState

from .counting import CASES, make_store
from .test_store_numbers import as_json, opened

DAY = 86_400
#: How many days ago each of twelve objects was verified, or None for never.
AGES = (0, 29, 30, 31, 90, 91, 300, 365, 366, 4000, None, None)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def age(state: Path, now: int) -> None:
    """Let the verifications of twelve objects have taken place at some time, or not, except those with errors."""
    with sqlite3.connect(state) as base:
        numbers = [row[0] for row in base.execute("SELECT number FROM objects ORDER BY number")]
        for number, days in zip(numbers, AGES, strict=True):
            if days is None:
                never = "turn = 0, verified = NULL, result = NULL"
                base.execute(f"UPDATE objects SET {never} WHERE number = ? AND turn > 0", (number,))
            else:
                # Some seconds less, because the report is created later.
                base.execute("UPDATE objects SET verified = ? WHERE number = ?", (now - days * DAY + 60, number))


def counted(state: Path, now: int) -> dict[str, Any]:
    """Count the rows of a state."""
    with sqlite3.connect(state) as base:
        rows = base.execute("SELECT turn, verified, result, path FROM objects ORDER BY number").fetchall()
    intact = [(now - verified) / DAY for turn, verified, *_ in rows if turn > 0]
    kinds: dict[str, list[str]] = {}
    for turn, _verified, result, path in rows:
        for kind in result.split() if turn < 0 else ():
            kinds.setdefault(kind, []).append(path)
    return {
        "objects": len(rows),
        "verified": {f"{days} days": sum(one <= days for one in intact) for days in (30, 90, 365)},
        "earlier": sum(one > 365 for one in intact),
        "damaged": sum(turn < 0 for turn, *_ in rows),
        "never": sum(turn == 0 for turn, *_ in rows),
        "oldest": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(min(row[1] for row in rows if row[1] is not None))),
        "kinds": {kind: (len(paths), paths[0]) for kind, paths in kinds.items()},
    }


@pytest.mark.parametrize("is_remote", [False, True])
@pytest.mark.parametrize("kind", CASES)
def test_coverage(kind: str, is_remote: bool, tmp_path: Path, state: Path) -> None:
    path = make_store(kind, tmp_path / "store", 3)
    if kind in ("ocfl", "bags"):
        folder = {"ocfl": "v1/content", "bags": "data"}[kind]
        for top in sorted(one for one in path.rglob(folder) if one.is_dir())[:2]:
            next(one for one in sorted(top.rglob("*")) if one.is_file()).write_bytes(b"damaged")
    with opened(kind, path, is_remote) as store:
        assert stores.audit(store, state).ok == (kind not in ("ocfl", "bags"))
        now = int(time.time())
        age(state, now)
        before = state.read_bytes()
        report = stores.report(store, state)
        coverage = as_json(report)["coverage"]
        expected = counted(state, now)
        named = {one["kind"]: (one["count"], one["path"]) for one in coverage.pop("kinds")}
        assert named == expected.pop("kinds")
        assert coverage == expected
        assert coverage["objects"] == 12
        assert coverage["damaged"] == (2 if kind in ("ocfl", "bags") else 0)
        assert set(named) >= {"ocfl": {"content-mismatch"}, "bags": {"checksum-mismatch"}}.get(kind, set())
        assert report.ok == (not report.errors and not named)
        assert all(one.remedy for one in report.damaged)
        assert state.read_bytes() == before


def test_objects_that_no_audit_has_listed(tmp_path: Path, state: Path) -> None:
    """They were never verified: half of the store is not all of it."""
    store = stores.open(make_store("pairtree", tmp_path / "store", 1))
    stores.audit(store, state)
    for number in range(12):
        store.put(f"more{number}", {"x": b"1"})
    coverage = as_json(stores.report(store, state))["coverage"]
    assert (coverage["objects"], coverage["never"], coverage["verified"]["30 days"]) == (24, 12, 12)
    for number in range(12):
        store.delete(f"more{number}")
    store.delete("urn:pairtree:1")
    # A removed object counts until an audit has noticed it.
    assert as_json(stores.report(store, state))["coverage"]["objects"] == 12


def test_the_state_of_an_empty_store(tmp_path: Path, state: Path) -> None:
    store = stores.create("pairtree", tmp_path / "store")
    stores.audit(store, state)
    coverage = as_json(stores.report(store, state))["coverage"]
    assert (coverage["objects"], coverage["never"], coverage["earlier"], coverage["oldest"]) == (0, 0, 0, None)


def test_states_that_are_refused(tmp_path: Path, state: Path) -> None:
    """A file that does not exist, is something else, belongs to another store, or is in use; none is created."""
    store = stores.open(make_store("pairtree", tmp_path / "store", 1, objects=1))
    with pytest.raises(AuditError, match="no such file; specify the state of an audit of this store"):
        stores.report(store, state)
    assert not state.exists()
    state.write_text("text")
    with pytest.raises(AuditError, match="not the state of an audit"):
        stores.report(store, state)
    with sqlite3.connect(tmp_path / "foreign") as base:
        base.execute("CREATE TABLE t (a)")
    with pytest.raises(AuditError, match="not the state of an audit; choose another file"):
        stores.report(store, tmp_path / "foreign")
    other = stores.open(make_store("pairtree", tmp_path / "other", 1, objects=1))
    stores.audit(other, tmp_path / "others")
    with pytest.raises(AuditError, match=r"the state of another store, .* \(pairtree\); choose another file"):
        stores.report(store, tmp_path / "others")
    with (
        AuditState(tmp_path / "mine", store.root, store.kind),
        pytest.raises(AuditError, match="in use by another run"),
    ):
        stores.report(store, tmp_path / "mine")
