"""Runs from the plan to the end, with any executor and any interruption."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pressmark import migrate, stores
from pressmark.errors import JobError, MigrationError, StoreError
from pressmark.fs import durable
from pressmark.migrate import workdir
from pressmark.migrate.entry import SOURCE_KEPT
from pressmark.migrate.execution import run as running, verify as verifying
from pressmark.migrate.planning.plan import refuse_others
from pressmark.migrate.planning.planner import make_plan
from pressmark.migrate.transfer import direction, ocfl_to_ocfl
from pressmark.progress_event import EventListener
from pressmark.reports import ProgressEvent
from pressmark.stores.ocfl.writing import bulk_writer as ocfl_bulk_writer
from pressmark.stores.registry import store_class

from .stores_to_migrate import contents, layout_or_none, listed, made

# Each in its own directory, so that chunks may end at any of them.
IDS = [f"ark:/13030/b{number:02}x" for number in range(12)]
FILES = {"one.txt": b"1", "sub/two.bin": b"22" * 300}


@pytest.fixture
def pairtree(source: Path) -> Path:
    return made(source, IDS, FILES)


def planned(source: Path, destination: Path, objects: int = 3, **how: Any) -> migrate.Plan:
    """Plan with small chunks."""
    given = {name: how.pop(name) for name in ("ids", "new_ids", "work") if name in how}
    given.setdefault("work", migrate.work_folder(destination))
    return make_plan(migrate.make_options(source, destination, **how), chunk_objects=objects, **given)


def to_ocfl(source: Path, destination: Path, **how: Any) -> migrate.Plan:
    return planned(source, destination, to="ocfl", layout="0003", **how)


def stopping(after: int) -> Callable[[], bool]:
    """Return a function that is true after this many calls."""
    left = after

    def stop() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    return stop


def remaining(run: migrate.Run) -> list[str]:
    return (Path(run.work) / "remaining.txt").read_text().splitlines()


# --- executors --------------------------------------------------------------------------------------------------------


def check(run: migrate.Run, source: Path, destination: Path) -> None:
    assert run.ok
    assert run.exit_code == 0
    assert run.by_status == {"ok": 12}
    assert (run.objects, run.files, run.bytes) == (12, 24, 12 * 601)
    assert contents(destination) == contents(source)
    rows = list(run.rows())
    assert [row.source_id for row in rows] == [entry.source_id for entry in run.plan.entries()]
    assert remaining(run) == []
    assert migrate.state(run.work) == "finished"
    json.dumps(run.record())


@pytest.mark.parametrize("workers", ["threads", "executor", "processes"])
def test_workers_of_every_kind(pairtree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: str) -> None:
    monkeypatch.setattr("pressmark.jobs.run.REPORT_EVERY", 1e9)
    plan = to_ocfl(pairtree, tmp_path / "root")
    events: list[ProgressEvent] = []
    if workers == "executor":
        with ThreadPoolExecutor(2) as executor:
            run = migrate.run(plan, executor=executor, progress=EventListener(events.append))
    else:
        run = migrate.run(plan, workers=2, processes=workers == "processes", progress=EventListener(events.append))
    check(run, pairtree, tmp_path / "root")
    assert [one.stage for one in events] == ["run"] * (plan.chunks + 1) + ["merge"]
    assert events[-2].items == events[-2].of_items == 12


def test_progress_within_a_chunk(pairtree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step of a migration reports objects before a chunk ends."""
    monkeypatch.setattr("pressmark.jobs.workdir.REPORT_EVERY", 0.0)
    plan = to_ocfl(pairtree, tmp_path / "root", objects=100, move=True)
    assert plan.chunks == 1
    events: list[ProgressEvent] = []
    run = migrate.run(plan, processes=False, progress=EventListener(events.append))
    migrate.verify(run.plan, processes=False, progress=EventListener(events.append))
    for phase in ("run", "remove", "verify"):
        counts = [one.items for one in events if one.stage == phase]
        assert counts == [*range(13), 12][: len(counts)], phase
        assert len(counts) >= 13, phase


# Threads and sockets left to the garbage collector are Dask's.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_dask(pairtree: Path, tmp_path: Path) -> None:
    distributed: Any = pytest.importorskip("distributed")
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None, set_as_default=False
    ) as client:
        run = migrate.run(to_ocfl(pairtree, tmp_path / "root"), client=client)
    check(run, pairtree, tmp_path / "root")


def test_a_plan_is_run_from_its_folder(pairtree: Path, tmp_path: Path) -> None:
    plan = to_ocfl(pairtree, tmp_path / "root")
    check(migrate.run(plan.work, processes=False), pairtree, tmp_path / "root")
    with pytest.raises(MigrationError, match="no plan found"):
        migrate.run(tmp_path, processes=False)


def test_nothing_to_do(source: Path, tmp_path: Path) -> None:
    made(source, [])
    run = migrate.run(to_ocfl(source, tmp_path / "root"), processes=False)
    assert run.ok
    assert run.objects == 0
    assert stores.open(tmp_path / "root").check().ok


def test_layout_files_are_there_first(pairtree: Path, tmp_path: Path) -> None:
    run = migrate.run(to_ocfl(pairtree, tmp_path / "root"), processes=False, stop=lambda: True)
    assert (run.stopped, run.remaining, run.exit_code) == ("stop", 12, 1)
    assert not run.complete
    layout = json.loads((tmp_path / "root" / "ocfl_layout.json").read_text())
    assert layout["extension"] == "0003-hash-and-id-n-tuple-storage-layout"
    assert sorted(remaining(run)) == IDS


# --- interrupted ------------------------------------------------------------------------------------------------------


def test_a_run_is_resumed_and_not_begun_again(pairtree: Path, tmp_path: Path) -> None:
    plan = to_ocfl(pairtree, tmp_path / "root")
    first = migrate.run(plan, workers=1, processes=False, stop=stopping(1))
    assert first.stopped == "stop"
    done = {receipt.name: receipt.read_bytes() for receipt in (Path(plan.work) / "receipts").iterdir()}
    assert 0 < len(done) < plan.chunks
    assert len(remaining(first)) == first.remaining == 12 - first.objects
    assert migrate.state(plan.work) == "begun"
    with pytest.raises(MigrationError, match="not finished; resume it"):
        migrate.run(plan, processes=False)
    with pytest.raises(MigrationError, match="has started; resume it"):
        to_ocfl(pairtree, tmp_path / "root")
    with pytest.raises(MigrationError, match="not finished"):
        migrate.verify(plan, processes=False)
    run = migrate.resume(plan.work, processes=False)
    check(run, pairtree, tmp_path / "root")
    # Each call counts its own objects.
    assert (first.processed, run.processed) == (first.objects, 12 - first.objects)
    assert (first.processed_bytes, run.processed_bytes) == (first.bytes, run.bytes - first.bytes)
    for name, content in done.items():
        assert (Path(plan.work) / "receipts" / name).read_bytes() == content
    with pytest.raises(MigrationError, match="is finished"):
        migrate.run(plan, processes=False)
    # Resuming a finished run returns its result.
    again = migrate.resume(plan, processes=False)
    assert (again.by_status, again.objects, again.processed) == ({"ok": 12}, 12, 0)


def test_a_run_is_resumed_with_its_own_options_only(pairtree: Path, tmp_path: Path) -> None:
    plan = to_ocfl(pairtree, tmp_path / "root")
    migrate.run(plan, processes=False, stop=lambda: True)
    others = migrate.make_options(pairtree, tmp_path / "root", to="ocfl", verify="reread", move=True)
    with pytest.raises(MigrationError, match=r": move was off, now on, verify was 'copy', now 'reread'; use the same"):
        migrate.resume(plan, options=others, processes=False)
    same = migrate.make_options(pairtree, tmp_path / "root", to="ocfl", layout="0003")
    check(migrate.resume(plan, options=same, processes=False), pairtree, tmp_path / "root")


def test_options_that_differ_are_named(pairtree: Path, tmp_path: Path) -> None:
    """The message names each option with both values, in words."""
    plan = to_ocfl(pairtree, tmp_path / "root", destination_options={"user": {"name": "Ann"}})
    options = plan.options
    assert options.layout is not None
    for changed, words in (
        ({"layout": {**options.layout, "tupleSize": 2}}, "layout tupleSize was 3, now 2"),
        (
            {"layout": layout_or_none("0002").config()},
            "layout was 0003-hash-and-id-n-tuple-storage-layout, now 0002-flat-direct-storage-layout",
        ),
        ({"layout": None}, "layout was 0003-hash-and-id-n-tuple-storage-layout, now not given"),
        ({"destination_options": {"user": {"name": "Bob"}}}, "destination user name was 'Ann', now 'Bob'"),
        ({"destination_options": {}}, "destination user was 'Ann', now not given"),
        ({"algorithms": ("md5", "sha1")}, "algorithms was 'sha512', now 'md5', 'sha1'"),
        ({"source": "/new\nline", "copy_mode": "copy"}, r"copy mode was 'auto', now 'copy', source was '"),
    ):
        with pytest.raises(MigrationError) as caught:
            refuse_others(plan, dataclasses.replace(options, **changed))
        assert f"different options: {words}" in str(caught.value)
        assert str(caught.value).endswith("; use the same options or start a new migration")
        assert not set('{}"\n') & set(str(caught.value))


def test_a_chunk_that_is_done_but_has_no_receipt(pairtree: Path, tmp_path: Path) -> None:
    plan = to_ocfl(pairtree, tmp_path / "root")
    migrate.run(plan, processes=False)
    lost = sorted((Path(plan.work) / "receipts").iterdir())[1]
    lost.unlink()
    run = migrate.resume(plan, processes=False)
    assert run.ok
    assert run.by_status["exists_same"] == 12 - run.by_status["ok"] > 0
    assert contents(tmp_path / "root") == contents(pairtree)


@pytest.mark.parametrize(
    "step", ["merge_rows", "_remove_sources", "_merge_removal", "_prune_source", "write_remaining", "write_record"]
)
def test_a_run_that_ends_anywhere_is_resumed(
    pairtree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    before = contents(pairtree)
    plan = to_ocfl(pairtree, tmp_path / "root", move=True)
    done = getattr(running, step)
    for moment in ("before", "after"):

        def ending(*arguments: Any, moment: str = moment) -> Any:
            if moment == "after":
                done(*arguments)
            raise KeyboardInterrupt

        monkeypatch.setattr(running, step, ending)
        with pytest.raises(KeyboardInterrupt):
            migrate.resume(plan, processes=False)
        assert migrate.state(plan.work) in ("planned", "begun", "finished")
    monkeypatch.setattr(running, step, done)
    run = migrate.resume(plan, processes=False)
    assert run.ok
    assert run.by_status == {"ok": 12}
    assert [row.source_id for row in run.rows()] == [entry.source_id for entry in plan.entries()]
    assert contents(tmp_path / "root") == before
    assert os.listdir(pairtree / "pairtree_root") == []
    assert not [name for name in os.listdir(plan.work) if name.endswith(".new")]


@pytest.mark.parametrize("move", [False, True])
def test_a_work_folder_that_cannot_be_written_for_a_moment(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, move: bool
) -> None:
    """A failed flush of the work folder is the run's error, and the run can be resumed."""
    fsync = os.fsync
    calls = at = 0

    def failing(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    monkeypatch.setattr(durable, "ONE_BY_ONE", 0)  # objects are flushed with their file system
    before = contents(made(tmp_path / "pristine", IDS[:2], FILES))
    while calls >= at:
        at += 1
        here, root = shutil.copytree(tmp_path / "pristine", source / str(at)), tmp_path / f"root-{at}"
        calls = 0
        try:
            plan = migrate.plan(here, root, to="ocfl", layout="0003", move=move)
            run = migrate.run(plan, processes=False)
        except (JobError, MigrationError, StoreError):
            if migrate.state(f"{root}.migration") not in ("begun", "finished"):
                plan = migrate.plan(here, root, to="ocfl", layout="0003", move=move)
        if not (at > calls and run.ok):
            run = migrate.resume(plan, processes=False)
        assert run.ok
        assert contents(root) == before
        assert contents(here) == ({} if move else before)
    assert at > 15


@pytest.mark.parametrize("error", [OSError("timed out"), ConnectionResetError(errno.ECONNRESET, "reset")])
def test_what_no_disk_says_is_not_said_of_the_work_folder(source: Path, tmp_path: Path, error: OSError) -> None:
    """An unreachable cluster or a closed listener is not reported as an error of the work folder."""
    made(source, IDS[:1])

    class Unreachable(ThreadPoolExecutor):
        def submit(self, *_arguments: Any, **_how: Any) -> Any:
            raise error

    plan = migrate.plan(source, tmp_path / "root", to="pairtree")
    with Unreachable(1) as executor, pytest.raises(OSError, match=str(error.args[-1])):
        migrate.run(plan, executor=executor)
    assert migrate.resume(plan, processes=False).ok


def test_a_destination_that_was_not_made_whole(pairtree: Path, tmp_path: Path) -> None:
    plan = to_ocfl(pairtree, tmp_path / "root")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "ocfl_layout.json").write_text("{")
    check(migrate.run(plan, processes=False), pairtree, tmp_path / "root")


@pytest.mark.parametrize("kind", stores.KINDS)
def test_a_destination_that_was_being_made(source: Path, tmp_path: Path, kind: str) -> None:
    """A directory with only the files of an interrupted creation becomes the destination."""
    made(source, IDS[:2])
    for name in map(os.fsdecode, store_class(kind).unfinished_names):
        root = tmp_path / f"root-{name}"
        root.mkdir()
        if name in ("extensions", "file_storage_pressmark"):
            (root / name).mkdir()
        else:
            (root / name).touch()
        how = {"to": kind, "layout": "0003" if kind == "ocfl" else None}
        (root / "thesis.txt").touch()
        with pytest.raises((MigrationError, StoreError), match="not empty, and not a store"):
            migrate.plan(source, root, **how)
        (root / "thesis.txt").unlink()
        run = migrate.run(migrate.plan(source, root, **how), processes=False)
        assert run.ok
        assert contents(root) == contents(source)


def test_a_destination_that_became_another(pairtree: Path, tmp_path: Path) -> None:
    plan = to_ocfl(pairtree, tmp_path / "root")
    stores.create("ocfl", tmp_path / "root", layout_or_none("0004"))
    with pytest.raises(MigrationError, match="choose another destination"):
        migrate.run(plan, processes=False)
    shutil.rmtree(tmp_path / "root")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "thesis.txt").write_text("mine")
    with pytest.raises((MigrationError, StoreError), match="not empty"):
        migrate.resume(plan, processes=False)
    assert os.listdir(tmp_path / "root") == ["thesis.txt"]


def test_a_plan_that_was_changed(pairtree: Path, tmp_path: Path) -> None:
    plan = to_ocfl(pairtree, tmp_path / "root")
    entries = Path(plan.work) / "entries.jsonl"
    entries.write_bytes(entries.read_bytes().replace(b"b07x", b"b70x"))
    with pytest.raises(JobError, match=r"entries\.jsonl changed after planning"):
        migrate.run(plan, processes=False)
    assert not (tmp_path / "root").exists()


def test_an_output_that_was_changed(pairtree: Path, tmp_path: Path) -> None:
    plan = to_ocfl(pairtree, tmp_path / "root")
    migrate.run(plan, processes=False)
    output = sorted((Path(plan.work) / "output").iterdir())[0]
    output.write_bytes(output.read_bytes().replace(b'"ok"', b'"no"'))
    with pytest.raises(JobError, match="move it elsewhere and resume"):
        migrate.resume(plan, processes=False)
    output.unlink()
    assert migrate.resume(plan, processes=False).ok


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_identifiers_that_are_not_there(pairtree: Path, tmp_path: Path) -> None:
    wanted = [IDS[3], "not-there", IDS[5]]
    run = migrate.run(to_ocfl(pairtree, tmp_path / "root", ids=wanted), processes=False)
    assert run.by_status == {"ok": 2, "source_missing": 1}
    assert run.complete
    assert run.exit_code == 1
    assert [(row.source_id, row.status) for row in run.rows()] == [
        (IDS[3], "ok"),
        (IDS[5], "ok"),
        ("not-there", "source_missing"),
    ]
    assert remaining(run) == ["not-there"]
    assert contents(tmp_path / "root").keys() == {IDS[3], IDS[5]}


def test_what_remains_is_a_list_for_another_plan(source: Path, tmp_path: Path) -> None:
    made(source, ["good", "bad", "line\nend", "cr\r"], FILES)
    for path in ("ba/d", "li/ne/^0/ae/nd", "cr/^0/d"):
        directory = source / "pairtree_root" / path
        (directory / "beside.txt").write_text("the object is split")
    run = migrate.run(to_ocfl(source, tmp_path / "root"), processes=False)
    assert run.by_status == {"ok": 1, "source_invalid": 3}
    left = (Path(run.work) / "remaining.txt").read_bytes()
    assert set(left.split(b"\0")) == {b"bad", b"line\nend", b"cr\r", b""}
    stores.open(source).repair()
    again = to_ocfl(source, tmp_path / "root", ids=Path(run.work) / "remaining.txt")
    assert again.work == f"{run.work}-2"
    assert migrate.run(again, processes=False).by_status == {"ok": 3}
    assert contents(tmp_path / "root") == contents(source)


def test_too_many_errors(pairtree: Path, tmp_path: Path) -> None:
    plan = to_ocfl(pairtree, tmp_path / "root", objects=2)
    shutil.rmtree(pairtree / "pairtree_root" / "ar" / "k+" / "=1" / "30" / "30")
    run = migrate.run(plan, workers=1, processes=False, max_errors=3)
    assert (run.stopped, run.complete, run.exit_code) == ("max_errors", False, 1)
    assert run.by_status.keys() == {"source_missing"}
    assert 3 < run.objects < 12
    assert sorted(remaining(run)) == IDS


# --- moves ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["ocfl", "pairtree"])
def test_a_move_leaves_an_empty_source(pairtree: Path, tmp_path: Path, to: str) -> None:
    before = contents(pairtree)
    layout = "0004" if to == "ocfl" else None
    plan = planned(pairtree, tmp_path / "root", to=to, layout=layout, move=True)
    run = migrate.run(plan, processes=False)
    assert run.ok
    assert run.by_mode == {plan.mode: 12}
    assert contents(tmp_path / "root") == before
    assert os.listdir(pairtree / "pairtree_root") == []
    assert sorted(os.listdir(pairtree)) == ["pairtree_root", "pairtree_version0_1"]
    assert migrate.resume(plan, processes=False).ok


@pytest.mark.parametrize("to", ["ocfl", "pairtree"])
@pytest.mark.parametrize("kind", ["ocfl", "pairtree"])
def test_a_move_leaves_directories_that_may_not_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, to: str
) -> None:
    """Empty directories that cannot be removed stay, and the run succeeds."""
    source = made(tmp_path / "source", IDS, FILES, kind=kind, layout=layout_or_none("0003" if kind == "ocfl" else None))
    before = contents(source)

    def refuse(*_: object) -> None:
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr(running, "prune_empty_parents", refuse)
    monkeypatch.setattr(ocfl_to_ocfl, "prune_empty_parents", refuse)
    layout = "0004" if to == "ocfl" else None
    run = migrate.run(planned(source, tmp_path / "root", to=to, layout=layout, move=True), processes=False)
    assert run.ok
    assert run.by_status == {"ok": 12}
    assert run.pruned == 0
    assert contents(tmp_path / "root") == before
    assert contents(source) == {}


def test_a_move_keeps_what_did_not_arrive(pairtree: Path, tmp_path: Path) -> None:
    (pairtree / "pairtree_root" / "ar" / "k+" / "=1" / "30" / "30" / "=b" / "07" / "x" / "beside").write_text("split")
    plan = planned(pairtree, tmp_path / "root", to="bags", move=True)
    run = migrate.run(plan, processes=False)
    assert run.by_status == {"ok": 11, "source_invalid": 1}
    assert {record.id for record in stores.open(pairtree).objects()} == {IDS[7]}
    assert remaining(run) == [IDS[7]]


def test_a_move_that_is_interrupted_before_sources_are_removed(pairtree: Path, tmp_path: Path) -> None:
    before = contents(pairtree)
    plan = planned(pairtree, tmp_path / "root", to="bags", move=True)
    first = migrate.run(plan, workers=1, processes=False, stop=stopping(1))
    assert not first.complete
    # Nothing is removed before everything has arrived.
    assert contents(pairtree) == before
    second = migrate.resume(plan, workers=1, processes=False, stop=stopping(plan.chunks + 1))
    third = migrate.resume(plan, processes=False)
    assert third.ok, second
    assert os.listdir(pairtree / "pairtree_root") == []
    assert {name: files["data/one.txt"] for name, files in _bags(tmp_path / "root").items()} == {
        name: files["one.txt"] for name, files in before.items()
    }


def _bags(folder: Path) -> dict[str, dict[str, bytes]]:
    return {
        name: {f"data/{file}": content for file, content in files.items()} for name, files in contents(folder).items()
    }


def test_rows_stay_as_they_are_once_sources_go(pairtree: Path, tmp_path: Path) -> None:
    plan = planned(pairtree, tmp_path / "root", to="bags", move=True)
    migrate.run(plan, processes=False)
    work = Path(plan.work)
    # A repeated chunk finds nothing in the source.
    sorted((work / "output").iterdir())[0].unlink()
    assert migrate.resume(plan, processes=False).by_status == {"ok": 12}
    (work / "copied.jsonl").write_bytes((work / "copied.jsonl").read_bytes()[1:])
    with pytest.raises(JobError, match="changed since the removal of sources started; restore it"):
        migrate.resume(plan, processes=False)


def test_a_work_folder_may_be_moved(pairtree: Path, tmp_path: Path) -> None:
    plan = planned(pairtree, tmp_path / "root", to="bags", move=True, work=tmp_path / "work")
    migrate.run(plan, workers=1, processes=False, stop=stopping(plan.chunks + 4))
    os.rename(tmp_path / "work", tmp_path / "moved")
    assert migrate.resume(tmp_path / "moved", processes=False).ok
    assert migrate.verify(tmp_path / "moved", processes=False).ok


def test_a_source_that_changed_is_kept(pairtree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(pairtree, tmp_path / "root", to="bags", move=True)
    remove = running._remove_sources
    file = next((pairtree / "pairtree_root").rglob("ark+=13030=b07x/one.txt"))

    def changing(*arguments: Any) -> Any:
        file.write_bytes(b"changed since")
        return remove(*arguments)

    monkeypatch.setattr(running, "_remove_sources", changing)
    run = migrate.run(plan, processes=False)
    assert run.by_status == {"ok": 12}
    assert (run.kept, run.ok, run.exit_code) == (1, False, 1)
    assert remaining(run) == [IDS[7]]
    (kept,) = [row for row in run.rows() if row.error_code == SOURCE_KEPT]
    assert kept.source_id == IDS[7]
    assert file.read_bytes() == b"changed since"
    assert {record.id for record in stores.open(pairtree).objects()} == {IDS[7]}


def test_a_move_keeps_what_changes_while_it_is_compared(
    pairtree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file changed after it was read keeps its source."""
    migrate.run(to_ocfl(pairtree, tmp_path / "root", ids=IDS[:1]), processes=False)
    file = Path(os.fsdecode(dict(stores.open(pairtree).get(IDS[0]).files())["one.txt"]))
    read = direction.read_files

    def slow(*arguments: Any) -> Any:
        found = read(*arguments)
        if file.read_bytes() != b"2":
            file.write_bytes(b"2")
        return found

    monkeypatch.setattr(direction, "read_files", slow)
    run = migrate.run(to_ocfl(pairtree, tmp_path / "root", ids=IDS[:1], move=True), processes=False)
    assert (run.by_status, run.kept) == ({"exists_same": 1}, 1)
    assert file.read_bytes() == b"2"


def test_a_removal_is_not_ended_by_what_did_not_arrive(pairtree: Path, tmp_path: Path) -> None:
    """Objects that were not migrated do not end the removal; only sources that cannot be removed count."""
    plan = to_ocfl(pairtree, tmp_path / "root", ids=[*IDS[:2], "nowhere"], move=True)
    run = migrate.run(plan, processes=False, max_errors=0)
    assert (run.by_status, run.stopped, run.complete) == ({"ok": 2, "source_missing": 1}, None, True)
    assert len(contents(pairtree)) == len(IDS) - 2


@pytest.mark.parametrize("to", ["pairtree", "bags"])
def test_a_move_keeps_versions_that_do_not_go(tmp_path: Path, to: str) -> None:
    """An OCFL object with older versions keeps its source if only the newest version is migrated."""
    source = made(tmp_path / "source", IDS[:2], FILES, kind="ocfl", layout=layout_or_none("0003"))
    (tmp_path / "new.txt").write_bytes(b"new")
    stores.open(source).put(IDS[1], {"one.txt": tmp_path / "new.txt"}, replace=True)
    run = migrate.run(planned(source, tmp_path / "new", to=to, move=True), processes=False)
    assert (run.by_status, run.kept, run.exit_code) == ({"ok": 2}, 1, 1)
    assert remaining(run) == [IDS[1]]
    (kept,) = [row for row in run.rows() if row.error_code == SOURCE_KEPT]
    assert kept.error is not None
    assert "1 older version" in kept.error
    assert [record.id for record in stores.open(source).objects()] == [IDS[1]]
    assert sorted(contents(tmp_path / "new")) == IDS[:2]


# --- directions -----------------------------------------------------------------------------------------------------


def test_a_pairtree_in_a_dialect_becomes_one_as_specified(source: Path, tmp_path: Path) -> None:
    stores.create("pairtree", source)
    # pypairtree writes a space as ^9d.
    written = source / "pairtree_root" / "a^" / "9d" / "b" / "object"
    written.mkdir(parents=True)
    (written / "file").write_bytes(b"x")
    for move in (False, True):
        destination = tmp_path / f"root-{move}"
        plan = planned(source, destination, to="pairtree", source_options={"dialect": "unt"}, move=move)
        assert migrate.run(plan, processes=False).ok
        assert contents(destination) == {"a b": {"file": b"x"}}
        assert (destination / "pairtree_root" / "a^" / "20" / "b" / "object" / "file").exists()
    assert os.listdir(source / "pairtree_root") == []


def test_a_root_gets_another_layout(tmp_path: Path) -> None:
    source = made(tmp_path / "source", IDS, FILES, kind="ocfl", layout=layout_or_none("0003"))
    before = contents(source)
    run = migrate.run(planned(source, tmp_path / "root", to="ocfl", layout="0004", move=True), processes=False)
    assert run.ok
    assert run.by_mode == {"rename": 12}
    assert contents(tmp_path / "root") == before
    for root in (source, tmp_path / "root"):
        assert stores.open(root).check(digests=True).ok
    assert list(stores.open(source).objects()) == []


def test_objects_arrive_under_other_identifiers(pairtree: Path, tmp_path: Path) -> None:
    names = {old: f"new {number}" for number, old in enumerate(IDS[:5])}
    run = migrate.run(to_ocfl(pairtree, tmp_path / "root", new_ids=names), processes=False)
    assert run.ok
    there = contents(tmp_path / "root")
    assert there == {names.get(old, old): files for old, files in contents(pairtree).items()}
    assert {row.source_id: row.id for row in run.rows() if row.id != row.source_id} == names
    assert stores.open(tmp_path / "root").check().ok


# --- verification -----------------------------------------------------------------------------------------------------


def test_verification_of_an_ocfl_object_that_was_there_already(pairtree: Path, tmp_path: Path) -> None:
    """The digest of a row is that of the newest version, however the object arrived."""
    migrate.run(to_ocfl(pairtree, tmp_path / "first"), processes=False)
    for status in ("ok", "exists_same"):
        plan = planned(tmp_path / "first", tmp_path / "second", to="ocfl", layout="0004")
        run = migrate.run(plan, processes=False)
        assert run.by_status == {status: 12}
        assert migrate.verify(plan, processes=False).by_status == {status: 12}


def test_verification_finds_what_was_damaged(pairtree: Path, tmp_path: Path) -> None:
    plan = to_ocfl(pairtree, tmp_path / "root")
    migrate.run(plan, processes=False)
    assert migrate.verify(plan, processes=False).ok
    damaged = next((tmp_path / "root").rglob("two.bin"))
    damaged.write_bytes(damaged.read_bytes().replace(b"2", b"3", 1))
    interrupted = migrate.verify(plan.work, workers=1, processes=False, stop=stopping(1))
    assert not interrupted.complete
    run = migrate.verify(plan.work, processes=False)
    assert run.complete
    assert run.processed == 12 - interrupted.processed
    assert run.exit_code == 1
    assert run.objects == 12
    assert run.by_status == {"ok": 11, "digest_mismatch": 1}
    assert sorted(name for name in os.listdir(plan.work) if name.startswith("verify")) == ["verify-1", "verify-2"]
    # The report of the run itself is kept.
    assert migrate.resume(plan, processes=False).by_status == {"ok": 12}


# --- in two phases ----------------------------------------------------------------------------------------------------


def test_catching_up(pairtree: Path, tmp_path: Path) -> None:
    first = to_ocfl(pairtree, tmp_path / "root")
    with pytest.raises(MigrationError, match="not finished"):
        migrate.catch_up(first)
    migrate.run(first, processes=False)
    # Nothing was changed.
    plan = migrate.catch_up(first, work=tmp_path / "nothing")
    assert (plan.objects, plan.unchanged) == (0, 12)
    # The old system stays in use: one object is changed, one is new, one is deleted.
    store = stores.open(pairtree)
    (tmp_path / "new.txt").write_bytes(b"new")
    store.put(IDS[4], {"one.txt": tmp_path / "new.txt"}, replace=True)
    store.put("new", {"one.txt": tmp_path / "new.txt"})
    store.delete(IDS[9])
    plan = migrate.catch_up(first.work)
    assert sorted(entry.id for entry in plan.entries()) == [IDS[4], "new"]
    assert plan.unchanged == 10
    gone = [one for one in listed(Path(plan.work) / "warnings.jsonl") if one["kind"] == "gone"]
    assert [one["objects"][0]["source_id"] for one in gone] == [IDS[9]]
    run = migrate.run(plan, processes=False)
    assert run.by_status == {"ok": 2}
    there = contents(tmp_path / "root")
    assert there.pop(IDS[9])
    assert there == contents(pairtree)
    assert stores.open(tmp_path / "root").check(digests=True).ok


def test_catch_up_with_a_map(pairtree: Path, tmp_path: Path) -> None:
    """A mapped object keeps its new identifier in every later run."""
    new = {identifier: f"new:{identifier}" for identifier in IDS}
    first = to_ocfl(pairtree, tmp_path / "root", new_ids=new)
    migrate.run(first, processes=False)
    store = stores.open(pairtree)
    for number in range(2):
        (tmp_path / "new.txt").write_bytes(b"%d" % number)
        store.put(IDS[4], {"one.txt": tmp_path / "new.txt"}, replace=True)
        plan = migrate.catch_up(first)
        assert {entry.id for entry in plan.entries() if entry.source_id == IDS[4]} == {new[IDS[4]]}
        assert migrate.run(plan, processes=False).ok
        assert sorted(contents(tmp_path / "root")) == sorted(new.values())
        first = plan
    # A map entry for a deleted object is no error.
    store.delete(IDS[9])
    plan = migrate.catch_up(first, work=tmp_path / "gone")
    assert plan.warnings == {"gone": 1}
    # A new map applies to all runs.
    store.put("more", {"one.txt": tmp_path / "new.txt"})
    plan = migrate.catch_up(first, new_ids={**new, "more": "new:more"})
    assert "new:more" in {entry.id for entry in plan.entries()}


def test_catching_up_again(pairtree: Path, tmp_path: Path) -> None:
    """A catch-up and a verification consider all earlier runs, not only the last."""
    first = to_ocfl(pairtree, tmp_path / "root")
    migrate.run(first, processes=False)
    store = stores.open(pairtree)
    (tmp_path / "new.txt").write_bytes(b"new")
    store.put(IDS[4], {"one.txt": tmp_path / "new.txt"}, replace=True)
    store.delete(IDS[0])
    second = migrate.catch_up(first)
    assert (second.objects, second.unchanged, dict(second.warnings)) == (1, 10, {"gone": 1})
    assert migrate.run(second, processes=False).ok
    third = migrate.catch_up(second)
    assert (third.objects, third.unchanged, dict(third.warnings)) == (0, 11, {"gone": 1})
    assert migrate.run(third, processes=False).ok
    assert migrate.catch_up(third).unchanged == 11
    for plan in (second, third):
        again = migrate.verify(plan, processes=False)
        assert (again.ok, again.objects, again.by_status) == (True, 12, {"ok": 12})
    damaged = next(path for path in (tmp_path / "root").rglob("*/content/one.txt") if path.read_bytes() != b"new")
    damaged.write_bytes(b"damaged" + damaged.read_bytes())
    again = migrate.verify(third, processes=False)
    assert not again.ok
    assert again.by_status == {"ok": 11, "digest_mismatch": 1}
    Path(first.work).rename(tmp_path / "away")
    for call in (migrate.verify, migrate.catch_up):
        with pytest.raises(MigrationError, match="work folder of the previous run not found"):
            call(third)


def test_rows_of_earlier_runs_are_hashed_once(pairtree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of earlier runs are hashed only once."""
    first = to_ocfl(pairtree, tmp_path / "root")
    migrate.run(first, processes=False)
    second = migrate.catch_up(first)
    migrate.run(second, processes=False)
    hashed: list[str] = []

    def noted(work: str) -> tuple[str, str]:
        hashed.append(work)
        return workdir.finished_rows(work)

    monkeypatch.setattr(verifying, "finished_rows", noted)
    assert verifying.migrated_rows(second)[2] == 12
    assert hashed == [second.work, first.work]


def test_rows_of_earlier_runs_that_cannot_be_put_together(pairtree: Path, tmp_path: Path) -> None:
    first = to_ocfl(pairtree, tmp_path / "root")
    migrate.run(first, processes=False)
    second = migrate.catch_up(first)
    migrate.run(second, processes=False)
    Path(second.work, f"{workdir.MIGRATED}.new").mkdir()
    with pytest.raises(JobError, match="needs read and write access"):
        migrate.verify(second, processes=False)


def test_what_has_gone_is_said_once_and_of_nothing_else(pairtree: Path, tmp_path: Path) -> None:
    """A deleted object is reported once, even if several runs migrated it; damaged and moved objects are not."""
    first = to_ocfl(pairtree, tmp_path / "root")
    migrate.run(first, processes=False)
    store = stores.open(pairtree)
    (tmp_path / "new.txt").write_bytes(b"new")
    for identifier in (IDS[4], IDS[9]):
        store.put(identifier, {"one.txt": tmp_path / "new.txt"}, replace=True)
    second = migrate.catch_up(first, move=True)
    assert migrate.run(second, processes=False).by_status == {"ok": 2}
    third = migrate.catch_up(second, move=False)
    assert (third.objects, dict(third.warnings)) == (0, {})
    migrate.run(third, processes=False)
    # A moved object exists again, and is migrated again, now as a copy.
    store.put(IDS[4], {"one.txt": tmp_path / "new.txt"})
    fourth = migrate.catch_up(third)
    assert [entry.id for entry in fourth.entries()] == [IDS[4]]
    assert migrate.run(fourth, processes=False).by_status == {"exists_same": 1}
    store.delete(IDS[4])
    (damaged,) = [record for record in store.objects() if record.id == IDS[2]]
    (pairtree / damaged.path / "beside.txt").write_bytes(b"of no object")
    fifth = migrate.catch_up(fourth)
    warnings = listed(Path(fifth.work) / "warnings.jsonl")
    gone = [one["objects"][0]["source_id"] for one in warnings if one["kind"] == "gone"]
    assert (gone, dict(fifth.warnings)) == ([IDS[4]], {"gone": 1, "improper": 1})


# --- a damaged work folder --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damaged", [b"garbage\n", b"{}\n", None])
def test_entries_of_an_earlier_run_that_are_damaged(pairtree: Path, tmp_path: Path, damaged: bytes | None) -> None:
    """Missing or damaged entries of an earlier run are an error that names the file."""
    first = to_ocfl(pairtree, tmp_path / "root")
    migrate.run(first, processes=False)
    second = migrate.catch_up(first)
    migrate.run(second, processes=False)
    entries = Path(first.work, "entries.jsonl")
    if damaged is None:
        entries.unlink()
    else:
        entries.write_bytes(entries.read_bytes() + damaged)
    with pytest.raises(JobError, match=r"entries\.jsonl"):
        migrate.catch_up(second)


@pytest.mark.parametrize("damaged", ["", "{}\n", None])
def test_what_the_plan_left_out_is_not_forgotten(pairtree: Path, tmp_path: Path, damaged: str | None) -> None:
    """Rows of objects omitted by the plan are required: without them the run would look complete."""
    plan = to_ocfl(pairtree, tmp_path / "root", ids=[*IDS[:2], "nowhere"])
    known = Path(plan.work, "known.jsonl")
    known.unlink()
    if damaged is not None:
        known.write_text(damaged)
    with pytest.raises(JobError, match=r"known\.jsonl"):
        migrate.run(plan, processes=False)
    assert not (tmp_path / "root").exists()


def test_rows_that_are_damaged_are_put_together_again(pairtree: Path, tmp_path: Path) -> None:
    plan = to_ocfl(pairtree, tmp_path / "root")
    migrate.run(plan, processes=False)
    rows = Path(plan.work, "rows.jsonl")
    whole = rows.read_bytes()
    for damaged in (whole[:1000], b"".join(whole.splitlines(True)[:-1]), None):
        rows.unlink()
        if damaged is not None:
            rows.write_bytes(damaged)
        for call in (migrate.verify, migrate.catch_up):
            with pytest.raises(JobError, match=r"rows\.jsonl"):
                call(plan)
        assert migrate.resume(plan, processes=False).ok
        assert rows.read_bytes() == whole
        assert migrate.verify(plan, processes=False).ok


@pytest.mark.parametrize("damaged", ["", '["a", "b"]\n', "1\n", None])
def test_a_map_that_is_damaged_is_not_taken_for_a_shorter_one(
    pairtree: Path, tmp_path: Path, damaged: str | None
) -> None:
    """A truncated map is an error: objects would get their old identifiers."""
    new = {identifier: f"new:{identifier}" for identifier in IDS}
    plan = to_ocfl(pairtree, tmp_path / "root", new_ids=new)
    migrate.run(plan, processes=False)
    recorded = Path(plan.work, "map.jsonl")
    recorded.unlink()
    if damaged is not None:
        recorded.write_text(damaged)
    with pytest.raises(MigrationError, match=r"map\.jsonl is missing or was changed; restore it") as caught:
        migrate.catch_up(plan)
    assert str(pairtree) in str(caught.value)
    assert migrate.catch_up(plan, new_ids=new).unchanged == len(IDS)


@pytest.mark.parametrize("damaged", [b"", b"[1]", b"{}\n"])
def test_rows_of_a_chunk_that_are_damaged_are_named(pairtree: Path, tmp_path: Path, damaged: bytes) -> None:
    plan = to_ocfl(pairtree, tmp_path / "root")
    migrate.run(plan, processes=False)
    first = min(Path(plan.work, "output").iterdir())
    first.write_bytes(damaged)
    with pytest.raises(JobError, match="changed since it was written; move it elsewhere and resume"):
        migrate.resume(plan, processes=False)
    first.unlink()
    assert migrate.resume(plan, processes=False).by_status == {"exists_same": 3, "ok": 9}


@pytest.mark.parametrize("busy", [False, True])
def test_a_root_that_objects_are_moved_out_of_has_nothing_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: bool
) -> None:
    """Empty directories are pruned before the next object is moved (E073), in case the run is killed."""
    source = made(tmp_path / "source", IDS, FILES, kind="ocfl", layout=layout_or_none("0003"))
    move = ocfl_bulk_writer.BulkWriter._move_in
    seen = []

    def looking(self: Any, *arguments: Any) -> Any:
        seen.append([one.path for one in stores.open(source).check().problems if one.kind == "directory-empty"])
        return move(self, *arguments)

    monkeypatch.setattr(ocfl_bulk_writer.BulkWriter, "_move_in", looking)
    if busy:  # another run is moving an object in the source: pruning waits for it
        monkeypatch.setattr(ocfl_to_ocfl.OcflToOcfl, "_try_lock", lambda _self: False)
    run = migrate.run(planned(source, tmp_path / "root", 12, to="ocfl", layout="0004", move=True), processes=False)
    assert run.ok
    assert len(seen) == len(IDS)
    assert busy or not any(seen)
    assert stores.open(source).check().ok
