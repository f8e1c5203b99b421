"""However a batch ends, each object that was put is in the store or reported, and what is reported is true."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pressmark import stores
from pressmark.errors import ObjectError
from pressmark.stores import IngestResult, Store, StoreObject, staging_writer
from support.trees import write
from ways.stores import KINDS, make_store

Results = list[IngestResult[StoreObject]]
COUNT = 40


@pytest.fixture(params=KINDS)
def store(request: Any, tmp_path: Path, implementation: Any) -> Store:
    return stores.open(make_store(request.param, tmp_path / "store", {}))


@pytest.fixture
def items(tmp_path: Path) -> list[tuple[str, Path]]:
    for number in range(COUNT):
        write(tmp_path / "in" / f"{number}", {"name.bin": b"%d" % number})
    return [(f"id:{number}", tmp_path / "in" / f"{number}") for number in range(COUNT)]


def stored(store: Store) -> set[str]:
    return {str(record.id) for record in store.objects()}


def check(store: Store, results: Results, names: list[str]) -> None:
    """Every object has one result, in order, which is true; nothing else is left."""
    assert [result.id for result in results] == names
    assert {result.id for result in results if result.record is not None} == stored(store)
    assert all(result.error is None or result.error.kind for result in results)
    assert not [one for one in store.check(digests=True).problems if one.severity == "error"]
    assert not [name for name in os.listdir(store.root) if "pressmark-" in name and ".json" not in name]


class Failed(Exception):
    pass


@pytest.mark.parametrize("raised", [Failed, SystemExit, GeneratorExit])
def test_an_exception_in_the_block(store: Store, items: list[tuple[str, Path]], raised: Any) -> None:
    """What was put before is stored."""
    results: Results = []

    def ingest() -> None:
        with store.ingest(results=results) as batch:
            batch.put_all(items[:5])
            batch.put(*items[5])
            raise raised

    with pytest.raises(raised):
        ingest()
    check(store, results, [name for name, _source in items[:6]])
    assert len(stored(store)) == 6


def test_an_exception_of_the_items(store: Store, items: list[tuple[str, Path]]) -> None:
    """put_all takes objects from an iterator that fails."""

    def given() -> Iterator[tuple[str, Path]]:
        yield from items[:7]
        raise Failed

    results: Results = []
    with pytest.raises(Failed), store.ingest(results=results) as batch:
        batch.put_all(given())
    check(store, results, [name for name, _source in items[:7]])
    assert len(stored(store)) == 7


def test_an_iterator_that_fails(store: Store, items: list[tuple[str, Path]]) -> None:
    """What the iterator of put_all gave is stored, and has its result before the exception."""

    def given() -> Iterator[tuple[str, Path] | None]:
        yield from items[:7]
        yield None
        yield from items[7:9]
        raise Failed

    results: Results = []
    with pytest.raises(Failed):
        results.extend(store.put_all(given()))
    check(store, results, [name for name, _source in items[:9]])
    assert len(stored(store)) == 9


def test_an_iterator_that_is_closed(store: Store, items: list[tuple[str, Path]]) -> None:
    """The objects that were read are stored; an iterator that is not used stores nothing."""
    store.put_all(items)
    assert stored(store) == set()
    found = store.put_all(iter(items[:15]), max_objects=5)
    first = next(found)
    found.close()
    assert first.error is None
    assert {name for name, _source in items[:5]} <= stored(store)


def test_an_exception_without_results(store: Store, items: list[tuple[str, Path]]) -> None:
    def ingest() -> None:
        with store.ingest() as batch:
            batch.put_all(items[:5])
            batch.put("missing", items[0][1] / "none")
            raise Failed

    with pytest.raises(Failed):
        ingest()
    assert stored(store) == {name for name, _source in items[:5]}


@pytest.mark.parametrize("step", ["prepare_all", "_flush", "_move_all", "_move_in", "_flush_names"])
@pytest.mark.parametrize("after", [False, True])
def test_an_interrupt(
    store: Store, items: list[tuple[str, Path]], monkeypatch: pytest.MonkeyPatch, step: str, after: bool
) -> None:
    """Published objects are stored, the others have an error of kind interrupted."""
    function = getattr(staging_writer.StagingWriter, step)
    calls = iter([False, False, True] if step in ("prepare_all", "_move_in") else [True])

    def interrupted(self: Any, *given: Any) -> Any:
        is_due = next(calls, False)
        if is_due and not after:
            raise KeyboardInterrupt
        found = function(self, *given)
        if is_due:
            if step in ("prepare_all", "_move_all"):
                list(found)
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(staging_writer.StagingWriter, step, interrupted)
    monkeypatch.setattr("pressmark.stores.ingest.CHUNK", 4)
    results: Results = []
    with pytest.raises(KeyboardInterrupt), store.ingest(results=results, max_objects=12) as batch:
        batch.put_all(items[:20])
    assert {result.error.kind for result in results if result.error is not None} <= {"interrupted"}
    check(store, results, [name for name, _source in items[:12]])
    expected = {"prepare_all": 0, "_flush": 0, "_move_all": 12 * after, "_move_in": 2 + after, "_flush_names": 12}
    assert (batch.stored, batch.failed) == (expected[step], 12 - expected[step])
    with store.ingest(compare=True) as batch:
        batch.put_all(items)
    assert len(stored(store)) == COUNT


def test_a_full_disk(store: Store, items: list[tuple[str, Path]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each object of the batch has its error, and the rest of the run goes on."""
    flush = staging_writer.StagingWriter._flush
    turns = iter([True])

    def full(self: Any, waiting: Any) -> None:
        if next(turns, False):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        flush(self, waiting)

    monkeypatch.setattr(staging_writer.StagingWriter, "_flush", full)
    results: Results = []
    with store.ingest(results=results, max_objects=5) as batch:
        batch.put_all(items[:12])
    check(store, results, [name for name, _source in items[:12]])
    assert [result.error and result.error.kind for result in results] == ["no-space"] * 5 + [None] * 7
    assert isinstance(results[0].error, ObjectError)


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_list(kind: str, tmp_path: Path, call: Any) -> None:
    """The number that the command reports is the number of objects in the store; the same command stores the rest."""
    count = 600
    write(tmp_path / "in", {"name.bin": b"content"})
    listed = tmp_path / "list.tsv"
    listed.write_text("".join(f"id:{number}\t{tmp_path / 'in'}\n" for number in range(count)))
    store = make_store(kind, tmp_path / "store", {})
    command = [sys.executable, "-m", "pressmark", "store", "put", f"{store}", "--from", f"{listed}"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=restore_interrupts
    )
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None and not any(found_objects(kind, store)):
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    number = len(stored(stores.open(store)))
    assert len(out.splitlines()) == number
    if process.returncode:
        assert process.returncode == 130
        assert f"interrupted after {number:,} object" in err
        assert len(err.splitlines()) == 1
    result = call("store", "put", f"{store}", "--from", f"{listed}", "--json")
    assert result.exit_code == 0
    assert f'"stored": {count - number}, "failed": 0' in result.stdout.splitlines()[-1]


def found_objects(kind: str, store: Path) -> Iterator[Path]:
    return store.glob(
        {"pairtree": "pairtree_root/id", "vitro": "file_storage_root/[!.]*"}.get(kind, "[0-9a-f][0-9a-f][0-9a-f]")
    )


def restore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
