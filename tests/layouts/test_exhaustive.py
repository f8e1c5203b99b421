"""Exhaustive tests: every code point, every short string of special characters, every length at a boundary."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest

from pressmark._kernels.tables import DIGESTS, MAX_IDENTIFIER_BYTES, MAX_PATH_BYTES, ErrorCode
from pressmark.layouts import Layout
from support.effort import stride
from support.implementations import Implementation, use
from support.outcomes import agree, kernel_results, naive_identifiers, naive_paths
from support.samples import CONFIGURATIONS, REVERSIBLE, layout_of, sample

Pair = tuple[Implementation, Implementation]

# One configuration per layout, and all four rule sets of 0011: other parameters do not affect bytes.
PLAIN = [word for word in CONFIGURATIONS if "-" not in word or word in ("0011-encoded", "0011-gocfl")]


def raw(implementation: Implementation, layout: Layout, items: Sequence[str | bytes], back: bool) -> tuple[Any, ...]:
    """Return all results of one implementation's kernels for a batch: buffers, errors with positions."""
    with use(implementation):
        bound = layout._unmapping() if back else layout._mapping()
        packed, unpackable = bound.packed.from_texts(items)
        results, faults = bound.kernel(packed)
        return results.buffers(), unpackable, faults


def compare(pair: Pair, layout: Layout, items: Sequence[str | bytes], back: bool = False) -> None:
    """Compare the implementations over a batch, in every byte and every position."""
    native = raw(pair[0], layout, items, back)
    # Sanitizers examine only native code; the pure code would take most of the time.
    if os.environ.get("PRESSMARK_IMPLEMENTATION") == "native" or native == raw(pair[1], layout, items, back):
        return
    # Name the item, instead of comparing two megabytes.
    for item in items:
        native, pure = (raw(implementation, layout, [item], back) for implementation in pair)
        assert native == pure, item
    pytest.fail("the implementations differ over the batch, but over none of its items alone")


def compare_with_naive(word: str, items: Sequence[bytes], back: bool = False) -> None:
    """Compare the pure implementation, and so both, with the naive transcription."""
    name, config = CONFIGURATIONS[word]
    layout = layout_of(name, config)
    expected = (naive_identifiers if back else naive_paths)(name, config, items)
    actual = kernel_results(layout._unmapping() if back else layout._mapping(), items)
    wrong = [row for row in zip(items, actual, expected, strict=True) if not agree(*row)]
    assert wrong == []


# ------------------------------------------------------------------------------------------------ code points


@pytest.mark.long
@pytest.mark.slow_under_sanitizers
@pytest.mark.parametrize("word", PLAIN)
def test_every_code_point_maps_alike(pair: Pair, word: str) -> None:
    """Each of the 0x110000 code points, surrogates too, has the same path or the same fault in both implementations.

    The short form takes every 41st code point from U+3100 on.
    """
    codes = (*range(0x3100), *range(0x3100, 0x110000, stride(41)))
    for start in range(0, len(codes), 0x10000):
        compare(pair, sample(word), list(map(chr, codes[start : start + 0x10000])))


# All characters that a layout treats specially are below U+3001, or between U+FFxx and the astral planes.
TREATED_APART = [chr(code) for code in (*range(0x3100), *range(0x3100, 0x110000, 509)) if not 0xD800 <= code <= 0xDFFF]


@pytest.mark.parametrize("word", PLAIN)
def test_code_points_map_as_in_the_naive_transcription(implementation: Implementation, word: str) -> None:
    """Every code point that a specification may treat specially has the path of the naive transcription."""
    compare_with_naive(word, [character.encode() for character in TREATED_APART])


@pytest.mark.slow_under_sanitizers
@pytest.mark.parametrize("word", [word for word in CONFIGURATIONS if word.startswith("0011")])
def test_code_points_are_cleaned_alike_wherever_they_stand(pair: Pair, word: str) -> None:
    """0011 treats characters by position: each of the first 0x10000 is tested left, right, inside and alone."""
    items = ["a{0}b/{0}x/x{0}/{0}.{0}".format(chr(code)) for code in range(0x10000)]
    compare(pair, sample(word), items)
    compare_with_naive(word, [item.encode() for item in items[:0x3100:3]])


# ------------------------------------------------------------------------------------------------ bytes


@pytest.mark.parametrize("word", PLAIN)
def test_every_byte_and_every_pair_maps_alike(pair: Pair, word: str) -> None:
    """Identifiers of one and two bytes, valid UTF-8 or not, map alike, and as in the naive transcription."""
    singles = [bytes([byte]) for byte in range(256)]
    pairs = [first + second for first in singles for second in singles]
    compare(pair, sample(word), [b"", *singles, *pairs])
    compare_with_naive(word, [b"", *singles, *pairs[::11]])


@pytest.mark.parametrize("word", [word for word in PLAIN if word in REVERSIBLE])
def test_every_byte_and_every_pair_maps_back_alike(pair: Pair, word: str) -> None:
    """Paths of one and two bytes map back alike."""
    singles = [bytes([byte]) for byte in range(256)]
    compare(pair, sample(word), [b"", *singles, *(one + other for one in singles for other in singles)], back=True)


# ------------------------------------------------------------------------------------------------ short strings

# One character of each class that the layout distinguishes, and its neighbours where that is cheap.
ALPHABETS = {
    "pairtree": ("a", "2", "F", "/", ":", ".", "^", "=", "~", " ", "\u00e9", b"\xff"),
    "vitro": ("c", "o", "N", "~", "/", ":", ".", "^", "2", "a", "\u00e9", "\u0100"),
    "0002": ("a", "b", "/", ".", "..", "\0", "-", " ", "\u00e9", b"\xff", "\u2028", "%"),
    "0003": ("a", "B", "%", "2", "f", "/", "-", ".", " ", "\0", "\u00e9", b"\xff"),
    "0006": ("a", "b", "A", "B", ":", "/", ".", "0", " ", "\0", "\u00e9", b"\xff"),
    "0007": ("a", "b", "A", "B", ":", "/", ".", "0", " ", "\x1f", "\x7f", "\u00e9"),
    "0010": ("a", "b", "A", "B", ":", "/", ".", "0", " ", "\x1f", "\x7f", "\u00e9"),
    "0011": ("a", "=", "u0041", "~", "-", ".", "/", " ", ":", "\u2010", "\u3000", b"\xff"),
    "0012": ("a", "B", ":", "/", "%", "-", ".", "b", " ", "\u00e9", b"\xa9", b"\xff"),
}


def alphabet_of(word: str) -> tuple[str | bytes, ...]:
    """Return the alphabet of a sample; of layouts that distinguish no characters, that of 0003."""
    return ALPHABETS.get(word.partition("-")[0], ALPHABETS["0003"])


def strings(alphabet: Iterable[str | bytes], longest: int) -> Iterator[bytes]:
    """Return every string of up to this many members of an alphabet, short ones first."""
    members = [member.encode() if isinstance(member, str) else member for member in alphabet]
    for length in range(longest + 1):
        yield from map(b"".join, itertools.product(members, repeat=length))


@pytest.mark.parametrize("word", CONFIGURATIONS)
def test_every_short_string_maps_alike(pair: Pair, word: str) -> None:
    """All strings of up to four special characters map alike; those of three as in the transcription."""
    alphabet = alphabet_of(word)
    compare(pair, sample(word), list(strings(alphabet, 4)))
    compare_with_naive(word, list(strings(alphabet, 3)))


BACK_ALPHABETS = {
    "pairtree": ("aa", "a", "/", "^", "2", "f", "F", "=", ",", ":", " ", "\u00e9"),
    "vitro": ("c", "on", "/", "~", "^", "2", "eF", "a", "=", ".", "\u00e9", b"\xff"),
    "0003": ("a", "%", "2", "f", "F", "/", "-", ".", "%41", "\u00e9", "%c3%a9", b"\xff"),
    "0011": ("a", "=", "=u003A", "=u002E", "=u003a", "=uD800", "~", ".", "/", ":", "\u3000", b"\xff"),
}


@pytest.mark.parametrize("word", REVERSIBLE)
def test_every_short_string_maps_back_alike(pair: Pair, word: str) -> None:
    """All paths of up to four special pieces map back alike; those of three as in the transcription."""
    alphabet = BACK_ALPHABETS.get(word.partition("-")[0], alphabet_of(word))
    compare(pair, sample(word), list(strings(alphabet, 4)), back=True)
    compare_with_naive(word, list(strings(alphabet, 3)), back=True)


@pytest.mark.parametrize("word", ["0011-encoded", "0011-gocfl-encoded"])
def test_every_escape_is_guarded_alike(pair: Pair, word: str) -> None:
    """Text that resembles an escape of 0011 is guarded alike, in either direction."""
    items = list(strings(("=", "u", "0", "F", "g"), 6))
    compare(pair, sample(word), items)
    compare(pair, sample(word), items, back=True)
    compare_with_naive(word, items[::5])
    compare_with_naive(word, items[::5], back=True)


# ------------------------------------------------------------------------------------------------ lengths

FILLINGS = ("a", "^", "\u00e9", "\u4f8b", "\U0001f350", "a/", ". ", "=u0041", b"\xff")


def of_length(filling: str | bytes, length: int) -> bytes:
    """Return ``length`` bytes of a filling; with ``a`` at the end where a whole character no longer fits."""
    unit = filling.encode() if isinstance(filling, str) else filling
    return unit * (length // len(unit)) + b"a" * (length % len(unit))


@pytest.mark.parametrize("word", CONFIGURATIONS)
def test_every_length_maps_alike(pair: Pair, word: str) -> None:
    """All lengths from 0 to 300 of ASCII, wider, escaped and truncated characters map alike.

    They include the limit of 0003 at 100 encoded characters, the segments of 0011 at 127 bytes, and the blocks of
    every digest.
    """
    items = [of_length(filling, length) for filling in FILLINGS for length in range(301)]
    compare(pair, sample(word), items)
    compare_with_naive(word, items[::7])


# Around delimiters: a letter, the neighbour of a colon, and characters whose last byte is a colon with the top bit.
@pytest.mark.parametrize("filling", ["x", ";", "\u00ba", "\u00fa"])
@pytest.mark.parametrize("delimiters", [[":"], ["x:"], ["::"], ["\u00fa"], ["\U0001f350"], ["/", "x::", ":"]])
def test_delimiters_are_found_anywhere(implementation: Implementation, delimiters: list[str], filling: str) -> None:
    """0012 removes the prefix in identifiers of up to five words of eight bytes, with one delimiter, two, or a part."""
    name = "0012-hash-and-no-prefix-id-n-tuple-storage-layout"
    config = {"digestAlgorithm": "md5", "tupleSize": 0, "numberOfTuples": 0, "delimiters": delimiters}
    first, last = delimiters[0], delimiters[-1]
    items = [
        (filling * before + middle + filling * after).encode()
        for before in range(20)
        for after in range(20)
        for middle in (first, last, first + filling * 3 + last, last + filling * 9 + first[1:], last[:-1] + filling)
    ]
    assert kernel_results(layout_of(name, config)._mapping(), items) == list(naive_paths(name, config, items))


@pytest.mark.parametrize("algorithm", DIGESTS)
def test_every_length_has_its_digest(implementation: Implementation, algorithm: str) -> None:
    """Digests of messages of 1 to 300 bytes, mixed in one batch, equal those of the naive transcription."""
    name, config = "0004-hashed-n-tuple-storage-layout", {"digestAlgorithm": algorithm}
    items = [of_length(filling, 1 + length * 7 % 300) for filling in ("a", "\u00e9") for length in range(300)]
    assert kernel_results(layout_of(name, config)._mapping(), items) == list(naive_paths(name, config, items))


def test_encapsulation_names_are_cut_at_every_length(implementation: Implementation) -> None:
    """0003 and 0012 truncate the encoded name at exactly 100 characters, even within an escape."""
    items = [
        b"a" * before + b"." * escapes + b"b" * after
        for before in range(90, 106)
        for escapes in (0, 1, 2, 4)
        for after in (0, 1, 2)
    ]
    items += [b"." * escapes + b"a" * after for escapes in range(30, 36) for after in range(4)]
    for word in ("0003", "0012"):
        compare_with_naive(word, items)
    mapped = [path for path in kernel_results(sample("0003")._mapping(), items) if isinstance(path, bytes)]
    compare_with_naive("0003", mapped, back=True)


@pytest.mark.slow_under_sanitizers
def test_long_segments_and_paths_fall_back_at_every_length(implementation: Implementation) -> None:
    """0011 falls back if a segment or the whole path is one byte too long."""
    items = [of_length(filling, length) for filling in FILLINGS for length in range(118, 132)]
    for word in ("0011", "0011-encoded", "0011-gocfl", "0011-gocfl-encoded"):
        compare_with_naive(word, items)
        compare_with_naive(word, [of_length("\u00e9" * 40 + "aa/", length) for length in range(31997, 32005)])


@pytest.mark.slow_under_sanitizers
@pytest.mark.parametrize("word", CONFIGURATIONS)
def test_an_identifier_has_at_most_one_mebibyte(pair: Pair, word: str) -> None:
    """An identifier may have 1 MiB; with one more byte it is refused for its length before any other check."""
    lengths = [MAX_IDENTIFIER_BYTES + change for change in (-1, 0, 1)]
    items = [of_length("a", length) for length in lengths] + [b"\xff" * (MAX_IDENTIFIER_BYTES + 1)]
    compare(pair, sample(word), items)
    for implementation in pair:
        _, _, faults = raw(implementation, sample(word), items, back=False)
        codes = {index: code for index, code, _ in faults}
        assert ErrorCode.TOO_LONG not in (codes.get(0), codes.get(1))
        assert codes[2] == codes[3] == ErrorCode.TOO_LONG


@pytest.mark.slow_under_sanitizers
@pytest.mark.parametrize("word", [word for word in PLAIN if word in REVERSIBLE])
def test_paths_may_have_eight_mebibytes(pair: Pair, word: str) -> None:
    """The longest path of the longest identifier maps back; beyond 8 MiB a path is refused for its length.

    Under 0002 the path is the identifier, and may be as long as that.
    """
    limit = MAX_IDENTIFIER_BYTES if word == "0002" else MAX_PATH_BYTES
    longest = {"pairtree": b"^", "vitro": b"^"}.get(word, b"a") * MAX_IDENTIFIER_BYTES
    paths = [bytes(raw(pair[0], sample(word), [longest], back=False)[0][0])]
    assert len(paths[0]) <= limit
    paths += [b"aa/" * (limit // 3 - 1) + b"a" * (limit % 3 + 3 + change) for change in (-1, 0, 1)]
    compare(pair, sample(word), paths, back=True)
    _, _, faults = raw(pair[0], sample(word), paths, back=True)
    codes = {index: code for index, code, _ in faults}
    assert ErrorCode.TOO_LONG not in (codes.get(0), codes.get(1), codes.get(2))
    assert codes[3] == ErrorCode.TOO_LONG


@pytest.mark.parametrize("word", CONFIGURATIONS)
def test_batches_of_every_size_map_alike(pair: Pair, word: str) -> None:
    """Batches of 0 to 40 items, and of sizes about the blocks of the kernels, map alike with faults at their edges."""
    items = [b"a" * (number % 90) if number % 7 else b"ab:c\xff"[: number % 6] for number in range(1100)]
    for count in (*range(41), *range(509, 516), *range(1021, 1028)):
        compare(pair, sample(word), items[:count])
        compare(pair, sample(word), [b"", *items[:count], b""])
