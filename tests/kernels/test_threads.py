"""One kernel object in several threads: all calls behave as if made one after another."""

from __future__ import annotations

import pytest

from support.implementations import Implementation
from support.processes import run_python

# In a process of its own, because a failure here ends the process.
COMMON = """
import threading
from pressmark import _kernels

kernels = _kernels.active
THREADS, ROUNDS = 8, 20

def together(work):
    start = threading.Barrier(THREADS)
    failures = []
    def run(number):
        start.wait()
        try:
            work(number)
        except BaseException as error:
            failures.append(error)
    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures

def packed(number, turn):
    return kernels.ByteColumn.from_texts([b"part %d/%d/%d" % (number, turn, item) for item in range(200)])[0]

empty = kernels.ByteColumn.from_texts([])[0]
"""

SORTER = """
def add(sorter, number):
    for turn in range(ROUNDS):
        sorter.add(packed(number, turn), empty, number << 32 | turn << 16, [])
        assert sorter.size() > 0

alone, shared = kernels.PathSorter(), kernels.PathSorter()
for number in range(THREADS):
    add(alone, number)
together(lambda number: add(shared, number))
assert alone.size() == shared.size()
alone.sort()
shared.sort()
expected = alone.take(1 << 30)
blocks = []
def take(number):
    while block := shared.take(1 << 12):
        blocks.append(block)
together(take)
assert sum(map(len, blocks)) == len(expected)
assert sorted(blocks) == sorted(expected[expected.index(block):][:len(block)] for block in blocks)
"""

LENGTHS = """
def add(lengths, number):
    for turn in range(ROUNDS):
        # Lengths beyond the table are kept one by one, in memory that grows.
        long = kernels.ByteColumn.from_texts([b"x" * (5000 + item) for item in range(50)])[0]
        lengths.add(long, [])
        lengths.add(packed(number, turn), [])
        lengths.histogram(0)

alone, shared = kernels.PathLengths(), kernels.PathLengths()
for number in range(THREADS):
    add(alone, number)
together(lambda number: add(shared, number))
assert [alone.histogram(measure) for measure in range(4)] == [shared.histogram(measure) for measure in range(4)]
"""

INDEX = """
def lines(number, turn):
    return b"".join(b"%032x  part %d/%d/%d\\n" % (item, number, turn, item) for item in range(200))

index = kernels.ManifestIndex(32, b"", 1000, b"salt")
def scan(number):
    for turn in range(ROUNDS):
        block = lines(number, turn)
        position, count, status = index.scan(block, 0, number << 40 | turn << 20, True)
        assert (position, count) == (len(block), 200)
        assert len(index.find(b"part %d/%d/7" % (number, turn))) == 1
        index.add(b"again", 0, False)
        place = index.find(b"part %d/%d/9" % (number, turn))[0]
        index.mark(place)
        assert index.is_marked(place)
together(scan)
assert len(index) == THREADS * ROUNDS * 201
assert len(index.find(b"again")) == THREADS * ROUNDS
"""

MERGE = """
def block():
    sorter = kernels.PathSorter()
    for number in range(THREADS):
        for turn in range(ROUNDS):
            sorter.add(packed(number, turn % 7), empty, number << 32 | turn << 16, [])
    sorter.sort()
    return sorter.take(1 << 30)

records = block()
def begun():
    tree = kernels.PathTree()
    merge = kernels.PathMerge(1, 3, tree)
    merge.feed(0, records)
    return merge, tree

def steps(merge, tree):
    found = []
    while True:
        run, spellings = merge.step(2)
        found += spellings
        tree.leaves(), tree.levels(), tree.fan_out(), tree.largest()
        if run != -2:
            return found

alone, tree = begun()
expected = steps(alone, tree)
shared, shared_tree = begun()
found = []
together(lambda number: found.extend(steps(shared, shared_tree)))
assert len(found) == len(expected) > 0
assert sorted(found) == sorted(expected)
for merge in (alone, shared):
    merge.feed(0, b"")
assert alone.step(10) == shared.step(10)
tree.end()
shared_tree.end()
for one in ("leaves", "levels", "fan_out"):
    assert getattr(tree, one)() == getattr(shared_tree, one)()
"""


@pytest.mark.parametrize(
    "script", [SORTER, LENGTHS, INDEX, MERGE], ids=["PathSorter", "PathLengths", "ManifestIndex", "PathMerge"]
)
def test_one_object_in_several_threads(implementation: Implementation, script: str) -> None:
    """Nothing is lost, duplicated or torn, in any order of threads."""
    done = run_python(COMMON + script, implementation=implementation.name)
    assert (done.returncode, done.stderr) == (0, "")
