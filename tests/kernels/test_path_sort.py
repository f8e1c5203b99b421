"""Sorted records of paths, the merge of runs, and the check of names: both implementations, and as defined."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from hypothesis import given, strategies as st

from support.implementations import Implementation

pieces = st.sampled_from([b"a", b"b", b"A", b"Z", b"z", b"/", b"/", b"\0", b"\1", b"\2", b"\3", b"-", b"0", b"."])
pieces |= st.sampled_from([b".", b"@", b"[", b"`", b"{", b"\x2e", b"\x30", b"\xff", b"\xc3\xa9", b"longer than eight"])
strings = st.lists(pieces, max_size=12).map(b"".join)


def fold(path: bytes) -> bytes:
    """A stand-in for folding, which callers do for paths that are not ASCII."""
    return path.lower() if path.isascii() else path.upper().replace(b"\xff", b"y")


def sorter_of(implementation: Implementation, paths: list[bytes], number: int = 0, skip: tuple[int, ...] = ()):
    sorter = implementation.kernels.PathSorter()
    add(implementation, sorter, paths, number, skip)
    return sorter


def add(implementation: Implementation, sorter, paths: list[bytes], number: int, skip: tuple[int, ...] = ()) -> None:
    kernels = implementation.kernels
    packed = kernels.ByteColumn.from_texts(paths)[0]
    beyond = kernels.beyond_ascii(packed)
    assert beyond == [index for index, path in enumerate(paths) if not path.isascii()]
    sorter.add(packed, kernels.ByteColumn.from_texts([fold(paths[index]) for index in beyond])[0], number, skip)


def blocks(sorter, size: int) -> Iterator[bytes]:
    sorter.sort()
    while block := sorter.take(size):
        yield block
    assert sorter.size() == 0


def records(block: bytes) -> list[bytes]:
    found = []
    while block:
        (length,) = struct.unpack_from("<I", block)
        found.append(block[4 : 4 + length])
        block = block[4 + length :]
    return found


def merged(implementation: Implementation, runs: list[list[bytes]], first: int, most: int = 1000):
    """Return all results of a merge of runs."""
    merge = implementation.kernels.PathMerge(len(runs), first)
    left = [iter(run) for run in runs]
    found = []
    while True:
        run, spellings = merge.step(most)
        found += spellings
        if run == -1:
            return found
        if run >= 0:
            merge.feed(run, next(left[run], b""))


def written(path: bytes) -> bytes:
    """Return a key as written in a record, byte by byte."""
    out = b""
    for byte in path:
        if byte < 2:
            out += bytes([2, byte + 2])
        elif byte == 0x2F:
            out += b"\1"
        else:
            out += bytes([byte + 1 if byte < 0x2F else byte])
    return out


def expected(paths: list[bytes], first: int) -> list[tuple[bytes, bytes, int, tuple[int, ...]]]:
    """Return the expected results by comparing all pairs of paths."""
    numbers: dict[tuple[bytes, bytes], list[int]] = {}
    for number, path in enumerate(paths):
        numbers.setdefault((written(fold(path)), path), []).append(number)
    keys = [written(fold(path)) for path in paths]

    def inside(key: bytes, outer: bytes) -> bool:
        return key != outer and (not outer or key.startswith(outer + b"\1"))

    def clashes(key: bytes) -> bool:
        return keys.count(key) > 1 or any(inside(key, other) or inside(other, key) for other in keys)

    order = sorted(numbers, key=lambda one: (one[0], b"" if fold(one[1]) == one[1] else written(one[1])))
    return [
        (key, path, len(numbers[key, path]), tuple(numbers[key, path][:first])) for key, path in order if clashes(key)
    ]


@given(st.lists(strings, max_size=40), st.integers(1, 5), st.integers(1, 200), st.integers(0, 3), st.integers(1, 4))
def test_as_defined(
    implementations: list[Implementation], paths: list[bytes], runs: int, size: int, first: int, most: int
) -> None:
    """Records, their order, and results are the same in both implementations, and as defined."""
    seen = []
    for implementation in implementations:
        cut = [list(range(start, len(paths), runs)) for start in range(runs)]
        made = []
        for part in cut:
            sorter = implementation.kernels.PathSorter()
            for number in part:
                add(implementation, sorter, [paths[number]], number)
            made.append(list(blocks(sorter, size)))
        for run in made:
            listed = [record for block in run for record in records(block)]
            assert listed == sorted(listed)
        found = merged(implementation, made, first, most)
        assert found == expected(paths, first)
        seen.append(([[record for block in run for record in records(block)] for run in made], found))
    assert all(one == seen[0] for one in seen)


@given(st.lists(st.sampled_from([b"a", b"same/", b"B", b"/"]), max_size=400), st.integers(0, 9))
def test_order_of_many(pair: tuple[Implementation, Implementation], parts: list[bytes], shift: int) -> None:
    """Hundreds of records with long common prefixes are sorted."""
    paths = [b"a common beginning/" * 3 + b"".join(parts[index : index + index % 7]) for index in range(len(parts))]
    orders = []
    for implementation in pair:
        sorter = sorter_of(implementation, paths, shift)
        orders.append([record for block in blocks(sorter, 1000) for record in records(block)])
    assert orders[0] == orders[1] == sorted(orders[0])
    assert len(orders[0]) == len(paths)


@pytest.mark.parametrize("kind", ["rising", "falling", "equal", "organ", "nested", "random"])
def test_orders_that_are_hard_to_sort(implementation: Implementation, kind: str) -> None:
    """Twenty thousand paths that are sorted, equal, or inside each other are sorted."""
    import random

    count = 20_000
    paths = {
        "rising": [b"p/%08d" % number for number in range(count)],
        "falling": [b"p/%08d" % -number for number in range(count)],
        "equal": [b"p/q"] * count,
        "organ": [b"%05d" % min(number, count - number) for number in range(count)],
        "nested": [b"n/" * (number % 300) for number in range(count // 10)],
        "random": [b"%x" % random.Random(number).getrandbits(40) for number in range(count)],
    }[kind]
    listed = [record for block in blocks(sorter_of(implementation, paths), 1 << 16) for record in records(block)]
    assert listed == sorted(listed)
    assert sorted(int.from_bytes(record[-8:], "big") for record in listed) == list(range(len(paths)))


def test_a_sorter_is_used_again(implementation: Implementation) -> None:
    """Taken records are removed; numbers have 64 bits; a skipped path has a number but no record."""
    sorter = sorter_of(implementation, [b"b", b"", b"a", b""], skip=(1, 3))
    assert sorter.size() > 0
    assert [record[-1] for block in blocks(sorter, 1) for record in records(block)] == [2, 0]
    assert sorter.take(10) == b""
    add(implementation, sorter, [b"x"], (1 << 64) - 1)
    (block,) = blocks(sorter, 1)
    assert records(block) == [b"x\0\0" + b"\xff" * 8]
    merge = implementation.kernels.PathMerge(1, 2)
    merge.step(1)
    merge.feed(0, block + block)
    assert merge.step(1) == (0, [])
    merge.feed(0, b"")
    assert merge.step(1) == (-1, [(b"x", b"x", 2, ((1 << 64) - 1,) * 2)])
    assert merge.step(1) == (-1, [])


def test_records_twice(implementation: Implementation) -> None:
    """Records that are equal to the last byte are sorted."""
    sorter = implementation.kernels.PathSorter()
    for _ in range(100):
        add(implementation, sorter, [b"x" * 40], 7)
    assert len([record for block in blocks(sorter, 100) for record in records(block)]) == 100


def test_long_paths(implementation: Implementation) -> None:
    """Paths of megabytes, with bytes that are written as two."""
    paths = [b"\0" * (1 << 20), b"\1" * (1 << 20), b"\0" * (1 << 20)]
    run = list(blocks(sorter_of(implementation, paths), 1))
    assert len(run) == 3
    assert [(path, numbers) for _, path, _, numbers in merged(implementation, [run], 5)] == [(paths[0], (0, 2))]


def test_no_runs(implementation: Implementation) -> None:
    """Empty input has empty results."""
    assert merged(implementation, [], 1) == []
    assert merged(implementation, [[], []], 1) == []


@pytest.mark.parametrize(
    "block",
    [b"x", b"\1\0\0\0", b"\xff\xff\xff\xff" + b"x" * 20, b"\x02\0\0\0ab", b"\x0b\0\0\0" + b"x" * 11],
)
def test_damaged_records(pair: tuple[Implementation, Implementation], block: bytes) -> None:
    """The native implementation rejects invalid blocks and reads nothing after their end."""
    with pytest.raises(ValueError, match="incomplete records"):
        merged(pair[0], [[block]], 1)
    with pytest.raises(ValueError, match="incomplete records"):
        pair[0].kernels.PathMerge(1, 1).feed(1, b"")


# --- names ------------------------------------------------------------------------------------------------------

names = st.lists(
    st.sampled_from(
        [b"a", b"con", b"LPT", b"nUl", b"co", b"/", b"/", b".", b"..", b"-", b" ", b"\\", b"\xc3\xa9", b"x" * 5]
    ),
    max_size=8,
).map(b"".join)


@given(
    st.lists(names | st.binary(max_size=12), max_size=20),
    st.dictionaries(st.sampled_from(b"a\\-. \xc3\0"), st.integers(0, 7)),
    st.integers(1, 8) | st.just(1 << 62),
    st.integers(0, 12) | st.just(1 << 62),
    st.booleans(),
)
def test_suspicious(
    implementations: list[Implementation],
    paths: list[bytes],
    bits: dict[int, int],
    longest_segment: int,
    longest_path: int,
    devices: bool,
) -> None:
    """Both implementations find the suspicious paths, segment by segment."""
    classes = bytes(bits.get(byte, 0) for byte in range(256))

    def is_bad(path: bytes) -> bool:
        return len(path) > longest_path or any(
            segment in (b"", b".", b"..")
            or len(segment) > longest_segment
            or any(classes[byte] & 1 for byte in segment)
            or classes[segment[-1]] & 2
            or (devices and segment[:3].lower() in (b"con", b"prn", b"aux", b"nul", b"com", b"lpt"))
            for segment in path.split(b"/")
        )

    bad = [index for index, path in enumerate(paths) if is_bad(path)]
    advised = sum(any(segment and classes[segment[0]] & 4 for segment in path.split(b"/")) for path in paths)
    for implementation in implementations:
        packed = implementation.kernels.ByteColumn.from_texts(paths)[0]
        found = implementation.kernels.suspicious(packed, classes, longest_segment, longest_path, devices)
        assert found == (bad, advised)
