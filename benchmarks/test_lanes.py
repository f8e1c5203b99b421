"""The vector lanes alone, without Python: short messages, and long ones in all lanes; beside hashlib on one core."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

import pytest

from benchmarks.conftest import Measure
from native_lanes.lanes_library import ALGORITHMS, LEVELS, Bank, Lengths, Pointers, packed, reference

MESSAGES = 10_000
LONG, TURNS = 256 << 10, 8  # bytes for each lane, and how often
# Identifiers; and lengths 15 to 120, evenly spread: one and two blocks, three quarters of neighbours unequal.
MESSAGES_OF = {
    "26 bytes": [b"uc1.ark:/13960/t%010d" % index for index in range(MESSAGES)],
    "15 to 120 bytes": [bytes([65 + index % 26]) * (15 + index * 7919 % 106) for index in range(MESSAGES)],
}


def level_of(library: Any, name: str) -> int:
    level = LEVELS.index(name)
    if level > library.pm_best_level():
        pytest.skip(f"this processor has no {name}")
    return level


@pytest.mark.parametrize("length", MESSAGES_OF)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_short(measure: Measure, library: Any, algorithm: str, level: str, length: str) -> None:
    messages = MESSAGES_OF[length]
    number, chosen = ALGORITHMS.index(algorithm), level_of(library, level)
    data, offsets = packed(messages)
    size = library.pm_digest_size(number)
    out = ctypes.create_string_buffer(size * len(messages))
    run = functools.partial(library.pm_digest_column, chosen, number, data, offsets, ctypes.c_int64(len(messages)), out)

    def check(_status: object) -> None:
        digests = [out.raw[index * size : (index + 1) * size] for index in range(len(messages))]
        assert digests == [reference(algorithm)(one).digest() for one in messages]

    measure.call(f"lanes, {algorithm}, {length}", run, check=check, messages=len(messages))


@pytest.mark.yardstick
@pytest.mark.parametrize("length", MESSAGES_OF)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_short_hashlib(measure: Measure, algorithm: str, length: str) -> None:
    made, messages = reference(algorithm), MESSAGES_OF[length]

    def run() -> list[bytes]:
        return [made(one).digest() for one in messages]

    group = f"lanes, {algorithm}, {length}"
    measure.call(group, run, check=lambda found: len(found) == len(messages), messages=len(messages))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_long(measure: Measure, library: Any, algorithm: str, level: str) -> None:
    chosen = level_of(library, level)
    pieces: list[bytes] = []

    def run() -> list[bytes]:
        bank = Bank(library, chosen, ALGORITHMS.index(algorithm))
        if not pieces:
            pieces.extend(os.urandom(LONG) for _lane in range(bank.lanes))
        pointers, lengths = Pointers(*pieces), Lengths(*map(len, pieces))
        for _turn in range(TURNS):
            library.pm_bank_update(bank.address, pointers, lengths)
        return [bank.finish(lane) for lane in range(bank.lanes)]

    def check(digests: list[bytes]) -> None:
        assert digests == [reference(algorithm)(piece * TURNS).digest() for piece in pieces]

    lanes = Bank(library, chosen, ALGORITHMS.index(algorithm)).lanes
    measure.call(f"lanes, {algorithm}, 256 KiB", run, check=check, MB=LONG * TURNS * lanes / 1e6)


@pytest.mark.yardstick
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_long_hashlib(measure: Measure, algorithm: str) -> None:
    made, piece = reference(algorithm), os.urandom(LONG * TURNS)
    group = f"lanes, {algorithm}, 256 KiB"
    measure.call(group, lambda: made(piece).digest(), check=lambda digest: bool(digest), MB=len(piece) / 1e6)
