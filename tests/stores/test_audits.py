"""Audits: their verdicts are those of checks; what is due, limits, clocks, and the file with the state."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import pressmark
from pressmark import stores
from pressmark.errors import AuditError, StoreError
from pressmark.reports import Problem
from pressmark.stores import OcflRoot, Store
from pressmark.stores.audits import audit, audit_state, object_audits
from pressmark.stores.audits.audit_state import AuditState, Verification
from pressmark.stores.problems import problem
from support.trees import write

from .test_selection import CASES, IDS, damage, directory_of, make, opened, reopened


def kinds(problems: list[Problem]) -> list[tuple[str, str]]:
    return sorted((one.kind, one.path) for one in problems)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make(tmp_path / "store", "pairtree")


def verified_ids(state: Path, before: dict[str, int]) -> list[str]:
    """Return the identifiers of the objects that were verified since, in order."""
    with sqlite3.connect(state) as base:
        rows = base.execute("SELECT id, turn FROM objects ORDER BY ABS(turn)").fetchall()
    found = [identifier for identifier, turn in rows if turn != before.get(identifier, 0)]
    before.update(rows)
    return found


# --- verdicts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_remote", [False, True])
def test_verdicts_of_a_check(case: str, is_remote: bool, tmp_path: Path, state: Path) -> None:
    """An audit of all objects finds what a check finds, at once or in parts; problems beside objects in each round."""
    damage(make(tmp_path / "store", case))
    with opened(case, tmp_path / "store", is_remote) as store:
        expected = store.check(digests=True)
        report = stores.audit(store, state)
        assert kinds(report.problems) == kinds(expected.problems)
        assert {name: report.counts[name] for name in expected.counts} == dict(expected.counts)
        assert not report.ok
        parts: list[Problem] = []
        while (report := stores.audit(store, tmp_path / "parts", max_objects=2)).round == 1:
            parts += report.problems
        assert {*kinds(parts)} == {*kinds(expected.problems)}
        beside = [one for one in expected.problems if one.path.startswith("beside")]
        assert [one for one in parts if one.path.startswith("beside")] == beside


@pytest.mark.parametrize("is_remote", [False, True])
def test_what_becomes_of_objects(case: str, is_remote: bool, tmp_path: Path, state: Path) -> None:
    """New, changed, vanished and mended objects are named, each once."""
    local = make(tmp_path / "store", case)
    paths = {one: local.find(one).path for one in IDS}
    with opened(case, tmp_path / "store", is_remote) as store:
        assert stores.audit(store, state).problems == []
    broken = next(one for one in sorted(directory_of(local, IDS[0]).rglob("*")) if one.name == "a.txt")
    content = broken.read_bytes()
    if local.kind in ("ocfl", "bags"):
        broken.write_bytes(b"damaged")
    local.delete(IDS[1])
    local.put(IDS[2], {"a.txt": b"other"}, replace=True)
    new = local.put("urn:new", {"a.txt": b"new"}).path
    with opened(case, tmp_path / "store", is_remote) as store:
        report = stores.audit(store, state)
    named = [one for one in report.problems if one.kind.startswith("object-")]
    assert kinds(named) == sorted(
        [("object-changed", paths[IDS[2]]), ("object-new", new), ("object-vanished", paths[IDS[1]])]
    )
    assert {one.severity for one in named} == {"warning"}
    assert [report.counts[one] for one in ("new", "changed", "vanished", "mended")] == [1, 1, 1, 0]
    assert report.ok == (local.kind not in ("ocfl", "bags"))
    if not report.ok:
        broken.write_bytes(content)
        with opened(case, tmp_path / "store", is_remote) as store:
            report = stores.audit(store, state)
        assert kinds(report.problems) == [("object-mended", paths[IDS[0]])]
    with opened(case, tmp_path / "store", is_remote) as store:
        assert stores.audit(store, state).problems == []


def test_duplicates_without_a_layout(tmp_path: Path, state: Path) -> None:
    """Two objects with one identifier are found, even if different runs verify them."""
    make(tmp_path / "store", "ocfl 0003")
    (tmp_path / "store" / "ocfl_layout.json").unlink()
    root = OcflRoot(tmp_path / "store")
    shutil.copytree(tmp_path / "store" / root.find(IDS[0]).path, tmp_path / "store" / "zz")
    expected = [one for one in root.check().problems if one.kind == "duplicate-id"]
    found: list[Problem] = []
    while (report := stores.audit(root, state, max_objects=1)).round == 1:
        found += report.problems
    assert {one.path for one in found if one.kind == "duplicate-id"} == {one.path for one in expected}


def test_duplicates_of_a_walk(tmp_path: Path, state: Path) -> None:
    store = make(tmp_path / "store", "bags")
    shutil.copytree(directory_of(store, IDS[0]), tmp_path / "store" / "zz")
    expected = [one for one in store.check().problems if one.kind == "duplicate-id"]
    assert expected
    assert [one for one in stores.audit(store, state).problems if one.kind == "duplicate-id"] == expected


def test_unreadable_directories_hide_objects(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The objects in a directory that cannot be read have not vanished."""
    store = make(tmp_path / "store", "ocfl 0003")
    stores.audit(store, state)
    path = store.find(IDS[0]).path
    walked = audit.walked

    def hiding(*arguments: object) -> Iterator[object]:
        for found in walked(*arguments):  # type: ignore[arg-type]
            if isinstance(found, Problem) or os.fsdecode(found[0]) != path:
                yield found
            else:
                yield problem("unreadable", path.split("/")[0])

    monkeypatch.setattr(audit, "walked", hiding)
    report = stores.audit(store, state)
    assert report.counts["vanished"] == 0
    assert report.coverage.objects == len(IDS)


# --- what is due ------------------------------------------------------------------------------------------------------


def test_oldest_first(store: Store, state: Path) -> None:
    """Each run continues with the objects that were verified longest ago, and a round follows the other."""
    before: dict[str, int] = {}
    for number in (1, 2, 3):
        for expected in (IDS[:3], IDS[3:6], IDS[6:]):
            assert stores.audit(store, state, max_objects=3, threads=number).round == number
            assert verified_ids(state, before) == expected


def test_objects_with_errors_come_first_again(tmp_path: Path, state: Path) -> None:
    """They are verified again by each run."""
    store = make(tmp_path / "store", "bags")
    for one in IDS[:6]:
        (directory_of(store, one) / "data" / "a.txt").write_bytes(b"damaged")
    before: dict[str, int] = {}
    stores.audit(store, state, max_objects=7)
    verified_ids(state, before)
    assert stores.audit(store, state, max_objects=8).coverage.damaged == 6
    assert {*verified_ids(state, before)} == {*IDS[:6], IDS[7]}


def test_a_mass_of_errors_does_not_stop_a_round(state: Path) -> None:
    """One object with errors comes before each three others, and after them if the last run verified no others."""
    with AuditState(state, "/store", "bags") as one:
        one.add([(b"%05d" % number, None, None) for number in range(5000)])
        for known in one.due(1000, None):
            one.record(known, Verification(None, 1, "read", "checksum-mismatch"))
    with AuditState(state, "/store", "bags") as one:
        found = one.due(400, None)
        assert [known.turn < 0 for known in found] == [True, False, False, False] * 100
        assert [known.path for known in found[:3]] == [b"00999", b"01000", b"01001"]
        assert len({known.path for known in found + one.due(400, None)}) == 800
        one.record(found[0], Verification(None, 1, "read", "checksum-mismatch"))
    with AuditState(state, "/store", "bags") as one:
        found = one.due(400, None)
        assert [known.turn < 0 for known in found] == [False, False, False, True] * 100


def test_older_than(store: Store, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects that were verified longer ago are due, and no others, in any round."""
    now = time.time()
    monkeypatch.setattr(audit_state, "time", lambda: now)
    monkeypatch.setattr(audit, "time", lambda: now)
    stores.audit(store, state, max_objects=3)
    now += 86_400 * 30
    stores.audit(store, state)
    now += 86_400 * 61
    age = timedelta(days=90)
    report = stores.audit(store, state, older_than=age)
    assert report.counts["objects"] == 3
    assert report.coverage.verified == report.coverage.objects == len(IDS)
    assert stores.audit(store, state, older_than=age).counts["objects"] == 0
    now += 86_400 * 30
    assert stores.audit(store, state, older_than=age, max_seconds=0).coverage.verified == 3
    assert stores.audit(store, state, older_than=age).counts["objects"] == 5


@pytest.mark.parametrize("older_than", [None, timedelta(days=1)])
def test_a_clock_that_was_wrong(
    store: Store, state: Path, older_than: timedelta | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was verified in the future is due, and verified once."""
    now = time.time() + 86_400 * 3650
    monkeypatch.setattr(audit_state, "time", lambda: now)
    monkeypatch.setattr(audit, "time", lambda: now)
    assert stores.audit(store, state, older_than=older_than).counts["objects"] == len(IDS)
    now -= 86_400 * 3650
    store.put("urn:new", {"a": b""})
    report = stores.audit(store, state, older_than=older_than)
    assert report.counts["objects"] == len(IDS) + 1
    assert report.coverage.verified == len(IDS) + 1
    assert report.counts["new"] == 1


def test_a_listing_once_a_day_and_in_each_round(store: Store, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    monkeypatch.setattr(audit_state, "time", lambda: now)
    monkeypatch.setattr(audit, "time", lambda: now)
    new = iter("abcdef")

    def audited() -> int:
        store.put(f"urn:new-{next(new)}", {"a": b""})
        return stores.audit(store, state, max_objects=1).counts["new"]

    assert audited() == 0  # they are not named in the first listing
    assert audited() == 0
    now += 86_401
    assert audited() == 2
    now -= 86_400 * 7
    assert audited() == 1  # a listing in the future is none
    assert stores.audit(store, state).round == 1
    assert audited() == 1  # of the next round


def test_selected_objects(case: str, tmp_path: Path, state: Path) -> None:
    """Only the selected objects are verified, if they are due, and nothing is listed."""
    store = make(tmp_path / "store", case)
    report = stores.audit(store, state, ids=[IDS[0], "nothing", IDS[2]])
    assert (report.counts["objects"], report.coverage.objects, report.is_listed) == (2, 2, False)
    assert [(one.kind, one.path) for one in report.problems] == [("object-missing", "nothing")]
    report = stores.audit(store, tmp_path / "all", max_objects=0)
    assert report.coverage == (len(IDS), 0, len(IDS), 0, None, 0)
    assert stores.audit(store, tmp_path / "all", match="urn:obj[a-c]", max_objects=2).counts["objects"] == 2
    assert stores.audit(store, tmp_path / "all", match="urn:obj[a-c]").counts["objects"] == 1
    assert stores.audit(store, tmp_path / "all", match="urn:obj[a-c]").counts["objects"] == 0
    assert stores.audit(store, tmp_path / "all").counts["objects"] == len(IDS) - 3
    with pytest.raises(ValueError, match="ids: not supported with match"):
        stores.audit(store, state, ids=[], match="*")


# --- limits -----------------------------------------------------------------------------------------------------------


def test_no_time(store: Store, state: Path) -> None:
    """Without time, nothing is listed or verified; the report has the summary."""
    report = stores.audit(store, state, max_seconds=0)
    assert (report.coverage.objects, report.counts["objects"], report.is_listed) == (0, 0, False)
    stores.audit(store, state)
    report = stores.audit(store, state, max_seconds=0)
    assert (report.coverage.objects, report.coverage.damaged) == (len(IDS), 0)
    assert report.ok


def test_bytes(case: str, tmp_path: Path, state: Path) -> None:
    """A run ends when so many bytes are read; in later rounds, the sizes are known before."""
    store = make(tmp_path / "store", case)
    size = len(IDS[0])
    assert 3 <= stores.audit(store, state, max_bytes=3 * size, threads=1).counts["objects"] <= 5
    stores.audit(store, state)
    assert stores.audit(store, state, max_bytes=3 * size).counts["objects"] == 3
    assert stores.audit(store, state, max_bytes=0).counts["objects"] == 0


@pytest.mark.parametrize("is_remote", [False, True])
def test_bytes_of_large_files(is_remote: bool, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before its sizes are known, a run does not read much more than it should, and each object is verified once."""
    monkeypatch.setattr(object_audits, "FIRST", 400_000)
    size = 300_000
    local = make(tmp_path / "store", "ocfl 0003")
    for number in range(40):
        local.put(f"urn:large{number}", {"a.bin": os.urandom(size)})
    with opened("ocfl 0003", tmp_path / "store", is_remote) as store:
        done = 0
        while (report := stores.audit(store, state, max_bytes=4 * size)).round == 1:
            assert 3 * size <= report.counts["bytes"] <= (40 if is_remote else 6) * size or report.runs_left == 0
            done += report.counts["objects"]
            assert report.coverage.verified == done
        assert done == 40 + len(IDS)


def test_the_rest_is_estimated(store: Store, state: Path) -> None:
    report = stores.audit(store, state, max_objects=3)
    assert (report.coverage.never, report.runs_left, report.complete) == (5, 2, None)
    assert stores.audit(store, state).runs_left == 0


def test_cancelled(case: str, tmp_path: Path, state: Path) -> None:
    """What was verified before an interrupt is recorded."""
    store = make(tmp_path / "store", case)
    progress = pressmark.Progress(lambda one: one.cancel())
    with pytest.raises(pressmark.Cancelled):
        stores.audit(store, state, progress=progress)
    done = stores.audit(store, state, max_seconds=0).coverage.verified
    assert stores.audit(store, state).counts["objects"] == (len(IDS) - done or len(IDS))


# --- the state --------------------------------------------------------------------------------------------------------


def test_one_run_at_a_time(store: Store, state: Path) -> None:
    with AuditState(state, os.path.abspath(store.root), store.kind), pytest.raises(AuditError) as raised:
        stores.audit(store, state)
    assert str(raised.value) == f"'{state}': in use by another run; wait for it to finish"
    assert stores.audit(store, state).ok


def test_other_files(store: Store, state: Path, tmp_path: Path) -> None:
    """A file that is not the state of the audits of this store is refused, and unchanged."""
    other = make(tmp_path / "other", "pairtree")
    stores.audit(other, tmp_path / "of-other")
    with sqlite3.connect(tmp_path / "sqlite") as base:
        base.execute("CREATE TABLE objects (path)")
    (tmp_path / "text").write_text("not a database, but a text of some length\n" * 100)
    (tmp_path / "folder").mkdir()
    stores.audit(store, tmp_path / "later")
    with sqlite3.connect(tmp_path / "later") as base:
        base.execute("PRAGMA user_version = 99")
    for name, message in (
        ("of-other", "the state of another store"),
        ("sqlite", "not the state of an audit"),
        ("text", "not the state of an audit .file is not a database.; choose another file$"),
        ("folder", "not a regular file"),
        ("later", "written by another version of Pressmark; choose another file, or begin a new one"),
        ("none/state", "the file cannot be opened; choose a file in a directory that exists"),
        ("store/state", "inside the store"),
    ):
        content = (tmp_path / name).read_bytes() if (tmp_path / name).is_file() else None
        with pytest.raises(AuditError, match=message) as raised:
            stores.audit(store, tmp_path / name)
        assert "\n" not in str(raised.value)
        assert ((tmp_path / name).read_bytes() if (tmp_path / name).is_file() else None) == content


def test_a_damaged_state(store: Store, state: Path) -> None:
    """It is one line that says what to do."""
    stores.audit(store, state)
    data = state.read_bytes()
    state.write_bytes(data[: len(data) // 2])
    with pytest.raises(AuditError, match="choose another file, or begin a new one: move this file elsewhere"):
        stores.audit(store, state)
    state.unlink()
    assert stores.audit(store, state).counts["objects"] == len(IDS)


def test_a_listing_that_fails(case: str, tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends with the error; what was verified is recorded, and the next run lists the store again."""
    store = make(tmp_path / "store", case)
    walked = audit.walked

    def failing(*arguments: object) -> Iterator[object]:
        for number, found in enumerate(walked(*arguments)):  # type: ignore[arg-type]
            if number == 4:
                raise OSError(5, "Input/output error")
            yield found

    monkeypatch.setattr(audit, "walked", failing)
    monkeypatch.setattr(audit, "AT_ONCE", 2)
    with pytest.raises(StoreError, match="Input/output error"):
        stores.audit(store, state)
    monkeypatch.undo()
    before = stores.audit(store, state, max_seconds=0)
    assert not before.is_listed
    report = stores.audit(store, state)
    assert report.coverage.verified == report.coverage.objects == len(IDS)
    assert report.counts["objects"] >= len(IDS) - before.coverage.verified


def test_a_full_disk(state: Path) -> None:
    """It is one line, and no usage error."""
    names = [(b"%0200d" % number, None, None) for number in range(1000)]
    one = AuditState(state, "/store", "bags")
    one._base.execute("PRAGMA max_page_count = 20")
    with pytest.raises(AuditError, match="no space left on the device") as raised, one:
        one.add(names)
    assert isinstance(raised.value.__cause__, OSError)


def test_results_are_written_soon(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At least twice a second, so that a killed run has lost almost nothing."""
    now = time.monotonic()
    monkeypatch.setattr(audit_state, "monotonic", lambda: now)
    statements: list[str] = []
    with AuditState(state, "/store", "bags") as one:
        one.add([(b"%d" % number, None, None) for number in range(9)])
        one._base.set_trace_callback(statements.append)
        for number, known in enumerate(one.due(9, None), 1):
            now += 0.3
            one.record(known, Verification(None, 1, "read", "ok"))
            assert statements.count("COMMIT") == number // 2


def test_an_object_is_removed_that_was_verified_last(state: Path) -> None:
    """The numbers of verifications go on, so that no object is due twice in a round."""
    with AuditState(state, "/store", "bags") as one:
        one.add([(b"%d" % number, None, None) for number in range(3)])
        for known in one.due(3, None):
            one.record(known, Verification(None, 1, "read", "ok"))
        one.remove(known)
    with AuditState(state, "/store", "bags") as one:
        assert one.begin_round() is True
    with AuditState(state, "/store", "bags") as one:
        assert one.begin_round() is False
        first = one.due(1, None)[0]
        one.record(first, Verification(None, 1, "read", "ok"))
    with AuditState(state, "/store", "bags") as one:
        assert first.path not in [known.path for known in one.due(9, None)]
        assert one.round == 2


def test_names_that_are_not_utf8(tmp_path: Path, state: Path) -> None:
    store = make(tmp_path / "store", "pairtree")
    odd = b"pairtree_root/" + b"/".join([b"ob", b"\xff"])
    try:
        os.makedirs(os.path.join(os.fsencode(store.root), odd, b"object"))
    except OSError:
        pytest.skip("the file system has names in UTF-8 only")
    write(Path(os.fsdecode(os.path.join(os.fsencode(store.root), odd, b"object"))), {"a": b"x"})
    expected = kinds(store.check().problems)
    for _ in range(2):
        assert kinds(stores.audit(store, state).problems) == expected


@pytest.mark.parametrize(
    "where",
    [
        "turn > ? AND turn < 0 ORDER BY turn",
        "turn = 0 AND verified IS NULL AND size IS NULL AND number > ? ORDER BY number",
        "turn > ? AND turn <= ? ORDER BY turn",
        "turn > ? AND turn <= ? AND (verified < ? OR verified > ?) ORDER BY turn",
    ],
)
def test_due_objects_are_not_sorted(state: Path, where: str) -> None:
    """An index has the order of each query for due objects: the state may have ten million."""
    assert where in Path(audit_state.__file__).read_text(encoding="utf-8")
    with AuditState(state, "/store", "bags"):
        pass
    with sqlite3.connect(state) as base:
        values = [0] * where.count("?")
        plan = [row[3] for row in base.execute(f"EXPLAIN QUERY PLAN SELECT * FROM objects WHERE {where}", values)]
    assert len(plan) == 1
    assert plan[0].startswith("SEARCH objects USING INDEX due")


def test_digests_of_a_server(tmp_path: Path, state: Path) -> None:
    store = make(tmp_path / "store", "bags")
    with pytest.raises(StoreError, match="requires an OCFL storage root in object storage"):
        stores.audit(store, state, digests="stored")
    assert not state.exists()
    make(tmp_path / "root", "ocfl 0004")
    with opened("ocfl 0004", tmp_path / "root", True) as root:
        report = stores.audit(root, state, digests="stored")
        expected = root.check(digests="stored").counts
        assert {name: report.counts[name] for name in expected} == expected
    with sqlite3.connect(state) as base:
        assert base.execute("SELECT DISTINCT how FROM objects").fetchall() == [("stored",)]
    assert reopened("ocfl 0004", tmp_path / "root").check().ok
