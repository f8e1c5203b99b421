"""Calls on several threads: the order of their results, errors, and ends at any moment and on any thread."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pressmark.fixity.copying import copy_files
from pressmark.stores.registry import store_class
from pressmark.threads import Cancelled, Threads, ordered_map, require_use


def copies(folder: Path) -> Iterator[Any]:
    """Return the outcomes of copies made by threads."""
    (folder / "source").mkdir()
    (folder / "target").mkdir()
    jobs = []
    for number in range(50):
        (folder / "source" / str(number)).write_bytes(bytes(1000))
        jobs.append(
            (number, os.fsencode(folder / "source" / str(number)), os.fsencode(folder / "target" / str(number)))
        )
    return copy_files(jobs, ("md5",), threads=2)


def objects(kind: str) -> Callable[[Path], Iterator[Any]]:
    """Return a function that creates a store and yields its objects, found by threads."""

    def found(folder: Path) -> Iterator[Any]:
        layout = {"layout": "0003"} if kind == "ocfl" else {}
        store = store_class(kind).create(folder / "store", **layout)
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

    with Threads(1, "test") as pool:
        first, second = pool.submit(call), pool.submit(call)
        begun.wait()
        threading.Timer(0.05, go_on.set).start()
    assert ended == [True]
    assert first.done()
    assert second.cancelled()
    assert not pool.abandoned
    assert named("test") == []


def named(name: str) -> list[threading.Thread]:
    """Return the threads of this name."""
    return [thread for thread in threading.enumerate() if thread.name == name]


def test_calls_that_take_too_long() -> None:
    """Leaving the statement waits no longer for calls than it is told; their threads end by themselves."""
    begun, go_on = threading.Event(), threading.Event()

    def call() -> None:
        begun.set()
        go_on.wait()

    with Threads(2, "test", patience=0.05) as pool:
        call_to_end = pool.submit(call)
        begun.wait()
    assert pool.abandoned
    go_on.set()
    call_to_end.result(10)
    for thread in named("test"):
        thread.join(10)
    assert named("test") == []


def test_threads_start_when_they_are_needed() -> None:
    """A thread is used again before another one starts, and no more start than there may be."""
    started = threading.active_count()
    with Threads(3, "test") as pool:
        for _ in range(3):
            assert pool.submit(int, "7").result() == 7
            # The call has ended just before its thread can be used again.
            time.sleep(0.01)
        assert threading.active_count() <= started + 2
        gate = threading.Event()
        calls = [pool.submit(gate.wait) for _ in range(10)]
        assert threading.active_count() == started + 3
        gate.set()
        assert [call.result() for call in calls] == [True] * 10


class Broken(Exception):
    """An error of a call or of the items."""


def negative(item: int) -> int:
    """Return the negative of a number; 20 fails, and 0 takes long."""
    time.sleep(0.02 * (item == 0))
    if item == 20:
        raise Broken(item)
    return -item


def counting(items: list[int], taken: list[int]) -> Iterator[int]:
    """Yield items, and add each to ``taken``; fail after a last item that is negative."""
    for number in items:
        if number < 0:
            raise Broken("source")
        taken.append(number)
        yield number


THREADS = pytest.mark.parametrize("threads", [1, 2, 7])


@THREADS
@pytest.mark.parametrize("ahead", [1, 2, 5])
def test_results_in_order(threads: int, ahead: int) -> None:
    """Results are in the order of the items, and only so many items are taken before the first result."""
    taken: list[int] = []
    numbers = [number for number in range(90) if number != 20]
    results = ordered_map(negative, counting(numbers, taken), threads=threads, name="test", ahead=ahead)
    assert next(results) == 0
    assert len(taken) == (1 if threads == 1 else ahead * threads)
    assert list(results) == [-number for number in numbers[1:]]
    assert list(ordered_map(negative, [], threads=threads, name="test")) == []


@THREADS
@pytest.mark.parametrize("source_fails", [False, True])
def test_errors_in_their_places(threads: int, source_fails: bool) -> None:
    """An error of a call or of the items comes after all results before it."""
    results: list[int] = []
    items = [*range(1, 20), -1] if source_fails else [*range(1, 30), -1]
    with pytest.raises(Broken, match="source" if source_fails else "20"):
        results.extend(ordered_map(negative, counting(items, []), threads=threads, name="test"))
    assert results == [-number for number in range(1, 20)]
    assert named("test") == []


@THREADS
def test_inline(threads: int) -> None:
    """An item whose result others wait for is handled in this thread, before the next item is taken."""
    taken: list[int] = []
    here = threading.get_ident()
    ran: dict[int, int] = {}

    def call(item: int) -> int:
        ran[item] = threading.get_ident()
        return item

    results = ordered_map(
        call, counting(list(range(12)), taken), threads=threads, name="test", inline=lambda item: item % 4 == 3
    )
    for number, result in enumerate(results):
        assert result == number
        if number % 4 == 3:
            assert taken[-1] == number
    assert [item for item in range(12) if ran[item] == here] == (list(range(12)) if threads == 1 else [3, 7, 11])


def test_one_thread_starts_no_thread() -> None:
    """With one thread, or nothing to do, calls run in this thread, and no library for threads is imported."""
    code = (
        "import sys; from pressmark.threads import ordered_map; before = set(sys.modules)\n"
        "assert list(ordered_map(abs, [-1, -2], threads=1, name='test')) == [1, 2]\n"
        "assert list(ordered_map(abs, [], threads=4, name='test')) == []\n"
        "assert list(ordered_map(abs, [-1], threads=4, name='test', inline=lambda _: True)) == [1]\n"
        "sys.exit(' '.join({'threading', 'concurrent.futures', 'queue'} & (set(sys.modules) - before)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("threads", [1, 2])
def test_waiting(threads: int) -> None:
    """The caller is called while it waits; a call that fails with a timeout of its own is no reason to wait."""
    waited = threading.Event()
    callers = []

    def on_wait() -> None:
        callers.append(threading.current_thread())
        waited.set()

    with Threads(threads, "pressmark-test") as pool:
        assert list(pool.map(waited.wait, [10], on_wait=on_wait)) == [True]
        assert set(callers) == {threading.current_thread()}

        def fail(_item: int) -> None:
            raise TimeoutError("its own")

        with pytest.raises(TimeoutError, match="its own"):
            list(pool.map(fail, [1], on_wait=on_wait))


def test_leaving_early() -> None:
    """A loop that is left starts no more calls, and waits for those that run."""
    running: set[int] = set()
    begun: list[int] = []

    def call(item: int) -> int:
        begun.append(item)
        running.add(item)
        time.sleep(0.01 * item)
        running.discard(item)
        return item

    for result in ordered_map(call, range(50), threads=3, name="test"):
        if result == 2:
            break
    del result  # the generator is closed
    count = len(begun)
    assert not running
    assert count <= 9
    time.sleep(0.05)
    assert len(begun) == count


def test_a_result_is_not_kept() -> None:
    """Neither the threads nor the map hold a result or an item that was handed out."""

    class Thing:
        pass

    def call(thing: Thing) -> Thing:
        return thing

    kept: list[weakref.ref[Thing]] = []

    def items() -> Iterator[Thing]:
        for _ in range(3):
            thing = Thing()
            kept.append(weakref.ref(thing))
            yield thing
            del thing

    with Threads(2, "test") as pool:
        for result in pool.map(call, items(), ahead=1):
            del result
        time.sleep(0.02)  # threads forget a call after they set its result
        assert [one() for one in kept] == [None] * 3


def test_a_call_that_nobody_waits_for() -> None:
    """A call can find out that its result will not be read, and handlers of other errors do not hold it up."""
    begun, left = threading.Event(), threading.Event()

    def call() -> None:
        require_use()
        begun.set()
        left.wait()
        with contextlib.suppress(Exception):
            require_use()
        begun.clear()

    with Threads(1, "test") as pool:
        future = pool.submit(call)
        begun.wait()
        threading.Timer(0.05, left.set).start()
    assert isinstance(future.exception(), Cancelled)
    assert begun.is_set()
    require_use()  # nothing happens outside of a call


def test_the_garbage_collector_closes_it_in_a_call() -> None:
    """A call that runs the garbage collector may close the generator that would wait for this call."""
    begun, dropped, ended = threading.Event(), threading.Event(), threading.Event()

    def call(_item: int) -> None:
        begun.set()
        dropped.wait()
        gc.collect()
        ended.set()

    # The generator is suspended, in a cycle, while the second call runs.
    cycle: list[Any] = []
    cycle += [cycle, ordered_map(lambda item: item and call(item), [0, 1], threads=2, name="test", ahead=1)]
    gc.disable()
    try:
        assert next(cycle[1]) == 0
        begun.wait()
        del cycle
        dropped.set()
        assert ended.wait(10)
    finally:
        gc.enable()


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
@pytest.mark.parametrize("slow", ["calls", "items"])
def test_an_interrupt(slow: str) -> None:
    """An interrupt ends a map within a fifth of a second, on a disk with 20 ms an access."""

    def access(item: int) -> int:
        time.sleep(0.02)
        return item

    def call(item: int) -> int:
        for _ in range(1000 if slow == "calls" else 0):
            access(item)
            require_use()
        return item

    def items() -> Iterator[Any]:
        for number in range(1000):
            yield access(number) if slow == "items" else number

    sent: list[float] = []

    def interrupt() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    # Python ignores interrupts in a job of the background.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.15, interrupt).start()
        with pytest.raises(KeyboardInterrupt), Threads(2, "test") as pool:
            for _ in pool.map(call, items()):
                pass
    finally:
        signal.signal(signal.SIGINT, before)
    # A fifth of a second, and more on a busy machine; all calls would take ten seconds and more.
    assert time.monotonic() - sent[0] < 2
    assert named("test") == []


AT_THE_END = """
import time
from pressmark.threads import Threads

def results():
    with Threads(2, "pressmark-test") as pool:
        pool.submit(time.sleep, 600)
        yield 1

kept = results()  # as the traceback of an error keeps it
print(next(kept))
"""


def test_the_end_of_the_interpreter() -> None:
    """A generator that is still open then does not wait for a call: its thread has stopped."""
    done = subprocess.run([sys.executable, "-c", AT_THE_END], capture_output=True, timeout=60, check=False)
    assert (done.stdout, done.stderr, done.returncode) == (b"1\n", b"", 0)
