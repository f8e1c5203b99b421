"""An index from paths to numbers that does not store the paths."""

from __future__ import annotations

from pressmark.bagit.hash_index import HashIndex


def test_numbers() -> None:
    """Numbers are found by path, in any quantity."""
    numbers = HashIndex()
    for number in range(5000):
        numbers.put(b"data/%d" % number, number)
        numbers.put(b"data/%d" % number, number + 1)
    assert len(numbers) == 5000
    assert all(numbers.get(b"data/%d" % number) == number + 1 for number in range(5000))
    assert numbers.get(b"data/5000") is None
    numbers.put(b"big", (1 << 64) - 1)
    assert numbers.get(b"big") == (1 << 64) - 1
