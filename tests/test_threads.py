"""Generators with worker threads, closed at any moment and on any thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark.fixity.copying import CopyTask, copy_files
from pressmark.threads import GeneratorPool, call_for_all


def copies(folder: Path) -> Iterator[Any]:
    """Return the outcomes of copies made by threads."""
    (folder / "source").mkdir()
    (folder / "target").mkdir()
    jobs = []
    for number in range(50):
        (folder / "source" / str(number)).write_bytes(bytes(1000))
        jobs.append(
            CopyTask(os.fsencode(folder / "source" / str(number)), os.fsencode(folder / "target" / str(number)))
        )
    return copy_files(jobs, ("md5",), threads=2)


def objects(kind: str) -> Callable[[Path], Iterator[Any]]:
    """Return a function that creates a store and yields its objects, found by threads."""

    def found(folder: Path) -> Iterator[Any]:
        layout = {"layout": "0003"} if kind == "ocfl" else {}
        store = pressmark.stores.create(kind, folder / "store", **layout)
        (folder / "file").write_bytes(b"x")
        for number in range(20):
            store.put(f"id{number}", folder / "file")
        return iter(store.objects(threads=2))

    return found


@pytest.mark.parametrize("make", [copies, objects("pairtree"), objects("ocfl")], ids=["copies", "pairtree", "ocfl"])
def test_closing_joins_no_thread(
    make: Callable[[Path], Iterator[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The garbage collector may close it while this thread starts another thread, when joining would never return."""
    generator = make(tmp_path)
    next(generator)
    joined: list[threading.Thread] = []
    monkeypatch.setattr(threading.Thread, "join", lambda thread, *_timeout: joined.append(thread))
    generator.close()  # type: ignore[attr-defined]
    assert joined == []


def test_calls_have_ended() -> None:
    """After the statement, no call is running or starts."""
    begun, go_on, ended = threading.Event(), threading.Event(), []

    def call() -> None:
        begun.set()
        go_on.wait()
        ended.append(True)

    with GeneratorPool(1, "test") as pool:
        first, second = pool.submit(call), pool.submit(call)
        begun.wait()
        threading.Timer(0.05, go_on.set).start()
    assert ended == [True]
    assert first.done()
    assert second.cancelled()


def test_results_in_order() -> None:
    """Items are taken shortly before their call, and results are in the order of the items."""
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(50):
            taken.append(number)
            yield number

    with GeneratorPool(3, "test") as pool:
        results = pool.map(lambda number: -number, items())
        assert next(results) == 0
        assert len(taken) == 7  # two for each thread, and the one whose result was asked for
        assert list(results) == [-number for number in range(1, 50)]


def test_a_call_that_nobody_waits_for() -> None:
    """A call can find out that its result will not be read."""
    begun, left, found = threading.Event(), threading.Event(), []

    def call(pool: GeneratorPool) -> None:
        pool.require_use()
        begun.set()
        left.wait()
        try:
            pool.require_use()
        except CancelledError:
            found.append("cancelled")

    with GeneratorPool(1, "test") as pool:
        pool.submit(call, pool)
        begun.wait()
        threading.Timer(0.05, left.set).start()
    assert found == ["cancelled"]


def test_calls_until_there_is_a_result_for_each_item() -> None:
    """A kernel is called again with the items that it left; between two calls, the run can be ended."""
    calls: list[list[int]] = []

    def double(items: list[int]) -> list[int]:
        calls.append(items)
        return [2 * item for item in items[:3]]

    asked: list[int] = []
    assert call_for_all(double, list(range(7)), lambda: asked.append(len(calls))) == [0, 2, 4, 6, 8, 10, 12]
    assert calls == [[0, 1, 2, 3, 4, 5, 6], [3, 4, 5, 6], [6]]
    assert asked == [1, 2]
    assert call_for_all(double, []) == []
