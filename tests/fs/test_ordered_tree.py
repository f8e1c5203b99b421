"""The walk of a tree on several threads: its order, its errors, and how far it reads ahead."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from pressmark.fs.walk import ordered_tree

THREADS = pytest.mark.parametrize("threads", [1, 2, 7])


@dataclass
class Numbers:
    """Stands for directories whose results are the numbers from ``start`` to ``stop``."""

    start: int
    stop: int

    def cut(self, threads: int) -> tuple[Numbers, Numbers | None]:
        middle = self.start + -(-(self.stop - self.start) // (threads + 1))
        return Numbers(self.start, middle), Numbers(middle, self.stop) if middle < self.stop else None


Part = list[int] | Numbers


def reader(seed: int, broken: int = -1) -> Callable[[Numbers], list[Part]]:
    """Return a function that returns some numbers, and some as directories; all if they are few.

    :param broken: the number that cannot be read
    """

    def expand(numbers: Numbers) -> list[Part]:
        chosen = random.Random(seed * 10_007 + numbers.start)
        time.sleep(chosen.random() * 0.002)
        parts: list[Part] = []
        at = numbers.start
        while at < numbers.stop:
            end = min(numbers.stop, at + chosen.randint(1, 9))
            if chosen.random() < 0.4 and numbers.stop - numbers.start > 9:
                parts.append(Numbers(at, end))
            else:
                if at <= broken < end:
                    raise OSError(broken)
                parts.append(list(range(at, end)))
            if chosen.random() < 0.1:
                parts.append([])
            at = end
        return parts

    return expand


@THREADS
@pytest.mark.parametrize("ahead", [1, 20, 1000])
def test_order(threads: int, ahead: int) -> None:
    """The order is that of the tree, however directories are divided."""
    for seed in range(5):
        parts: list[Part] = [[0, 1], Numbers(2, 300), [], Numbers(300, 300), [300], Numbers(301, 400)]
        found = ordered_tree(parts, reader(seed), threads=threads, ahead=ahead)
        assert [number for some in found for number in some] == list(range(400))


@THREADS
def test_an_error_in_its_place(threads: int) -> None:
    """What comes before directories that cannot be read is yielded before the error is raised."""
    for broken in (3, 150, 299):
        found: list[int] = []
        walk = ordered_tree([Numbers(0, 300)], reader(1, broken), threads=threads, ahead=1000)
        with pytest.raises(OSError, match=str(broken)):
            found.extend(number for some in walk for number in some)
        # Other numbers of the same call are lost.
        assert found == list(range(len(found)))
        assert broken - 100 <= len(found) <= broken
        assert [thread for thread in threading.enumerate() if thread.name == "pressmark-walk"] == []


@THREADS
def test_it_reads_no_further_ahead(threads: int) -> None:
    """Directories are read only if few results wait for those before them."""
    read = [0]

    def expand(numbers: Numbers) -> list[Part]:
        read[0] = max(read[0], numbers.start + 10)
        return [list(range(numbers.start, min(numbers.start + 10, numbers.stop))), *rest(numbers)]

    def rest(numbers: Numbers) -> list[Part]:
        return [Numbers(numbers.start + 10, numbers.stop)] if numbers.start + 10 < numbers.stop else []

    @dataclass
    class Whole(Numbers):
        def cut(self, threads: int) -> tuple[Numbers, Numbers | None]:
            return Numbers(self.start, self.start + 10), Whole(self.start + 10, self.stop)

    walk = ordered_tree([Whole(0, 10_000)], expand, threads=threads, ahead=50)
    assert next(walk) == list(range(10))
    time.sleep(0.05)
    assert read[0] <= 60 + 2 * threads * 10
    walk.close()  # type: ignore[attr-defined]


def test_two_threads_read_at_the_same_time() -> None:
    """Directories beside each other are read by several threads at once."""
    gate = threading.Barrier(2)

    def expand(numbers: Numbers) -> list[Part]:
        if numbers.stop <= 200:
            gate.wait(10)
        return [list(range(numbers.start, numbers.stop))]

    found = [number for some in ordered_tree([Numbers(0, 300)], expand, threads=2, ahead=1000) for number in some]
    assert found == list(range(300))
