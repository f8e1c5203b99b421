"""A slice of the audit of a large store: how soon it begins, its memory, and its summary.

The short form checks the numbers of a small state; the long form (``pytest --long``) has ten million objects in it.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from itertools import product
from pathlib import Path
from time import time

import pytest

from pressmark import stores
from pressmark.stores.audits.audit_state import AuditState, Coverage
from support.effort import LONG

OBJECTS = 10_000_000 if LONG else 20_000
REAL, VERIFIED, MORE = 100, 5, 50
MEMORY = 100 << 20
#: Rows as a year of audits leaves them: two in three verified, each third of them in the round; some damaged.
PLANT = """
INSERT INTO objects (number, path, id, first_seen, turn, verified, size, how, result, digest)
WITH RECURSIVE given (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM given WHERE n < :objects)
SELECT :first + n, printf('%08x/%012d', (n * 2654435761) % 4294967296, n), 'urn:x:' || n, 0, turn,
    iif(turn, :now - 31536000 + abs(turn), NULL), iif(turn, 1000 + n % 7919, NULL), iif(turn, 'read', NULL),
    iif(turn, iif(turn > 0, 'ok', 'file-missing'), NULL), iif(turn, printf('%064x', n), NULL)
FROM (SELECT n, CASE WHEN n % 3 = 0 THEN 0 WHEN n % 5003 = 1 THEN -n ELSE n END AS turn FROM given)
"""


def counted(path: Path, turn: int, since: int | None) -> Coverage:
    """Count what is verified row by row."""
    objects = verified = never = damaged = size = sized = left = 0
    oldest = None
    with sqlite3.connect(path) as base:
        for one, at, nbytes in base.execute("SELECT turn, verified, size FROM objects"):
            is_in_period = abs(one) > turn if since is None else one != 0 and since <= at <= time()
            objects += 1
            verified += is_in_period
            never += one == 0
            damaged += one < 0
            size += nbytes or 0
            sized += nbytes is not None
            left += 0 if is_in_period else nbytes or 0
            if at is not None and (oldest is None or at < oldest):
                oldest = at
    return Coverage(objects, verified, never, damaged, oldest, int(left + never * (size / sized if sized else 0)))


@pytest.mark.long
def test_a_slice_of_a_large_store(tmp_path: Path) -> None:
    store = stores.create("bags", tmp_path / "store")
    for result in store.put_all((f"urn:{one:03}", {"a.txt": b"%d" % one}) for one in range(REAL)):
        assert result.error is None
    state = tmp_path / "state"
    assert stores.audit(store, state, max_objects=VERIFIED).coverage.never == REAL - VERIFIED
    with sqlite3.connect(state) as base:
        base.execute(PLANT, {"objects": OBJECTS, "first": REAL + 1, "now": int(time())})
        base.execute("INSERT INTO rounds (number, turn, begun) VALUES (2, ?, ?)", [2 * OBJECTS // 3, int(time())])
        base.execute("UPDATE runs SET round = 2")
        # They have no objects in the store: the slice would find that they have vanished.
        base.execute("UPDATE objects SET turn = -turn, result = 'ok' WHERE turn < 0")
    script = Path(__file__).with_name("audited_slice.py")
    arguments = [sys.executable, script, tmp_path / "store", state, str(MORE)]
    done = subprocess.run(arguments, capture_output=True, timeout=600, check=True)
    found = json.loads(done.stdout)
    print(found)
    assert found["report"]["objects"] == MORE
    assert found["memory"] < MEMORY
    coverage = counted(state, 2 * OBJECTS // 3, None)
    assert found["report"]["coverage"]["objects"] == coverage.objects == OBJECTS + REAL
    assert found["report"]["coverage"]["verified"] == coverage.verified
    assert found["report"]["coverage"]["bytes_left"] == coverage.bytes_left
    if LONG:
        assert found["first"] < 2
        assert found["summary"] < 5


@pytest.mark.parametrize(("turn", "days"), list(product([0, 1, 700, 5000, 20_000], [None, 0, 364.99, 365, 400])))
def test_coverage(tmp_path: Path, turn: int, days: float | None) -> None:
    """The share that is verified is that which counting row by row finds."""
    with AuditState(tmp_path / "state", "/store", "bags"):
        pass
    with sqlite3.connect(tmp_path / "state") as base:
        base.execute(PLANT, {"objects": 6000, "first": 0, "now": int(time()) - 1000})
        base.execute("UPDATE rounds SET turn = ?", [turn])
        # A clock that was wrong.
        base.execute("UPDATE objects SET verified = ? WHERE number = 4", [int(time()) + 1_000_000])
        base.execute("UPDATE objects SET verified = 1 WHERE number = 5000")
    since = None if days is None else int(time() - days * 86_400)
    with AuditState(tmp_path / "state", "/store", "bags") as state:
        found = state.coverage(since)
    assert found == counted(tmp_path / "state", turn, since)


def test_coverage_of_nothing(tmp_path: Path) -> None:
    with AuditState(tmp_path / "state", "/store", "bags") as state:
        assert [state.coverage(since) for since in (None, 0)] == [Coverage(0, 0, 0, 0, None, 0)] * 2
