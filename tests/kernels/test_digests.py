"""Digests of short messages: all algorithms, all lengths around a block, all vector levels of this machine."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from naive.digests import hex_digest
from pressmark import HashAndNoPrefixIdNTuple, HashedNTuple
from pressmark._kernels.tables import DIGESTS
from support.implementations import NATIVE, Implementation, use

# Lengths shuffled by a stride that is prime to 300: neighbours in a lane end in different blocks.
MESSAGES = [bytes(byte % 251 for byte in range(1 + number * 131 % 300)) for number in range(300)]


@pytest.mark.parametrize("algorithm", DIGESTS)
def test_digests_are_those_of_the_standard_library(implementation: Implementation, algorithm: str) -> None:
    """A single message has the digest of hashlib, at all lengths from 0 to 300 bytes."""
    assert implementation.kernels.supported(algorithm)
    digests = implementation.kernels._digests if implementation == NATIVE else implementation.kernels.digests
    hexdigest = digests.hexdigest_function(algorithm)
    for message in (b"", *MESSAGES, b"x" * 1_000_000):
        assert hexdigest(message) == hex_digest(algorithm, message).encode()


@pytest.fixture
def every_level(pair: tuple[Implementation, Implementation]) -> Iterator[list[str]]:
    """Return the names of this machine's vector levels; restore the selected level afterwards."""
    digests = NATIVE.kernels._digests
    levels = digests.levels()
    best = digests.best_level()
    before = digests.level()
    yield levels[: levels.index(best) + 1]
    digests.use_level(before)


@pytest.mark.parametrize("algorithm", DIGESTS)
def test_every_vector_level_gives_the_same_digests(every_level: list[str], algorithm: str) -> None:
    """Batches of any size have the same digests, with any number of lanes."""
    layout = HashedNTuple(digest_algorithm=algorithm, tuple_size=0, number_of_tuples=0)
    texts = [message.hex() for message in MESSAGES]
    expected = [hex_digest(algorithm, text.encode()) for text in texts]
    for level in every_level:
        NATIVE.kernels._digests.use_level(level)
        assert NATIVE.kernels._digests.level() == level
        with use(NATIVE):
            for count in (*range(1, 35), 63, 64, 65, 300):
                assert layout.map_ids(texts[:count]) == expected[:count], level


def test_lanes_skip_items_without_a_path(every_level: list[str]) -> None:
    """Items without a path do not shift the digests of other items."""
    layout = HashAndNoPrefixIdNTuple(delimiters=[":"])
    ids = ["a:b" if number % 5 else "" if number % 2 else b"\xff" for number in range(200)]
    for level in every_level:
        NATIVE.kernels._digests.use_level(level)
        with use(NATIVE):
            results = layout.map_ids(ids, on_error="none")
            assert results == [layout.map_id("b") if number % 5 else None for number in range(200)]


@pytest.mark.repository
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="reads the rows of x86-64")
def test_the_page_has_the_number_of_lanes(every_level: list[str]) -> None:
    """The table of docs/reference/platforms.md is that of the kernels, at every level of this machine."""
    page = Path(__file__).parents[2] / "docs" / "reference" / "platforms.md"
    head, _, *lines = page.read_text(encoding="utf-8").partition("| level | instructions |")[2].splitlines()
    cells = [line.split("|") for line in lines[:7]]
    rows = {one[1].strip(" `").removesuffix("`, x86-64"): one[3:-1] for one in cells}
    columns = [one.strip().split(", ") for one in head.split("|")[:-1]]
    digests = NATIVE.kernels._digests
    for level in every_level:
        digests.use_level(level)
        for names, cell in zip(columns, rows[level], strict=True):
            for name in names:
                algorithm = {"BLAKE2b": "blake2b-512"}.get(name, name.replace("-", "").lower())
                assert (level, name, digests.lane_count(algorithm)) == (level, name, int(cell.split(",")[0]))


def test_an_unknown_level_is_refused(every_level: list[str]) -> None:
    """An unknown or unsupported level is rejected."""
    digests = NATIVE.kernels._digests
    beyond = digests.levels()[len(every_level) :]
    for name in ("", "sse9", *beyond):
        with pytest.raises(ValueError, match=r".+"):
            digests.use_level(name)
