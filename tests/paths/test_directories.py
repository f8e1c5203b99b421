"""The directories of paths, and their lengths: counted naively and by both implementations."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from pressmark.paths import PathIndex, PathLengths, Tree
from support.implementations import Implementation, use

NAMED = 20
EVERYTHING = 1 << 30

# Few different characters make many paths share directories, in one spelling or in several.
SEGMENTS = st.text("aAbé\u0301\u00c9ß!0~\x01\x02\x00\u017f", min_size=1, max_size=3).map(lambda text: text.encode())
PATHS = st.lists(SEGMENTS | st.sampled_from([b"\xff", b"a", b"A"]), min_size=1, max_size=5).map(b"/".join)


def tree_of(paths: list[bytes], memory: int = EVERYTHING) -> Tree:
    with PathIndex(memory=memory, tree=True) as index:
        for start in range(0, len(paths), 7):
            index.add(paths[start : start + 7])
        return index.tree()


def directories(paths: Any) -> set[bytes]:
    found = set()
    for path in paths:
        segments = path.split(b"/") if path else []
        found.update(b"/".join(segments[: depth + 1]) for depth in range(len(segments)))
    return found


def naive_tree(paths: list[bytes]) -> Tree:
    found = directories(paths)
    levels = Counter(path.count(b"/") for path in found)
    held = Counter(path.rpartition(b"/")[0] for path in found)
    # The order of the kernels, which sorts the slash first.
    firsts = Counter(path.split(b"/")[0] for path in set(paths) if path)
    largest = sorted(held.items(), key=lambda item: (-item[1], item[0].translate(SLASH_FIRST)))
    return Tree(
        tuple(levels[depth] for depth in range(len(levels))),
        len(set(paths)),
        tuple(sorted(Counter(held.values()).items())),
        tuple(sorted(Counter(firsts.values()).items())),
        tuple((path.decode("utf-8", "surrogateescape"), count) for path, count in largest[:NAMED]),
    )


SLASH_FIRST = bytes([*range(1, 0x30), 0, *range(0x30, 0x100)])


@pytest.mark.parametrize("memory", [1, EVERYTHING])
def test_few_paths(implementation: Implementation, memory: int) -> None:
    """Small examples, counted by hand."""
    assert tree_of([], memory) == ((), 0, (), (), ())
    assert tree_of([b""], memory) == ((), 1, (), (), ())
    assert tree_of([b"a"], memory) == ((1,), 1, ((1, 1),), ((1, 1),), (("", 1),))
    assert tree_of([b"a/b", b"a/c", b"a"], memory) == ((1, 2), 3, ((1, 1), (2, 1)), ((3, 1),), (("a", 2), ("", 1)))
    # Two on a case-sensitive file system.
    assert tree_of([b"A/x", b"a/y", b"A/z", b"a/x"], memory) == (
        (2, 4),
        4,
        ((2, 3),),
        ((2, 2),),
        (("", 2), ("A", 2), ("a", 2)),
    )


@given(st.lists(PATHS, max_size=60), st.sampled_from([1, 300, EVERYTHING]))
@example([b"A/b/c", b"a/b/c", b"a/B/c", b"A/b/d", b"a/c"], EVERYTHING)
@example([b"a", b"A/b", b"a/b/c", b"A", b"a/B"], 1)
# Directories below become ambiguous before those above, and both first spellings occur again.
@example([b"A/B", b"A/b", b"a/B", b"A/B/x"], EVERYTHING)
@example([b"A/x/B/1", b"A/x/B/2", b"A/x/b/1", b"A/X/b", b"a/x/b/1", b"A/x/B/1/z"], EVERYTHING)
def test_trees_of_all_kinds(implementations: list[Implementation], paths: list[bytes], memory: int) -> None:
    """Every number equals that of the set of all directories."""
    expected = naive_tree(paths)
    for implementation in implementations:
        with use(implementation):
            tree = tree_of(paths, memory)
        assert tree == expected
        assert tree.directories == len(directories(paths))


def test_many_spellings_of_one_directory(implementation: Implementation) -> None:
    """Each spelling is a separate directory, in any quantity."""
    names = [
        "".join(letter.upper() if bits >> place & 1 else letter for place, letter in enumerate("abcdefghij"))
        for bits in range(1 << 10)
    ]
    paths = [f"{name}/{last}/z".encode() for last in "xyX" for name in names]
    tree = tree_of(paths)
    assert tree.levels == (1024, 3072, 3072)
    assert tree.fan_out == ((1, 3072), (3, 1024), (1024, 1))
    assert tree.top_level == ((3, 1024),)
    assert tree.largest[:2] == (("", 1024), ("ABCDEFGHIJ", 3))


def test_large_directories(pair: tuple[Implementation, Implementation]) -> None:
    """Directories with more entries than the table of one implementation counts."""
    with use(pair[0]):
        tree = tree_of([b"a/%d" % number for number in range(70_000)] + [b"b/%d" % number for number in range(3)])
    assert tree.fan_out == ((2, 1), (3, 1), (70_000, 1))
    assert tree.top_level == ((3, 1), (70_000, 1))
    assert tree.largest == (("a", 70_000), ("b", 3), ("", 2))


def test_a_tree_is_counted_on_request() -> None:
    """Directories are counted only by an index created for it."""
    with PathIndex() as index, pytest.raises(ValueError, match="without tree=True"):
        index.tree()


def test_deep_paths(implementation: Implementation) -> None:
    """A path with very many segments takes little additional memory; one that is too long is not named."""
    deep = b"/".join([b"x"] * 100_000)
    tree = tree_of([deep, deep[:-1] + b"X", deep[:-2], b"X" + deep[1:]])
    assert len(tree.levels) == 100_000
    assert tree.directories == 200_001
    assert tree.fan_out == ((1, 199_997), (2, 2))
    assert tree.largest[:3] == (("", 2), ("X", 1), ("X/x", 1))


# --- lengths ------------------------------------------------------------------------------------------------------


def units(path: bytes) -> int:
    return len(path.decode("utf-8", "surrogateescape").encode("utf-16-le", "surrogatepass")) // 2


def lengths_of(paths: list[bytes]) -> PathLengths:
    lengths = PathLengths()
    for start in range(0, len(paths), 5):
        lengths.add(paths[start : start + 5])
    return lengths


@given(st.lists(PATHS | st.just(b"") | st.just("\U0001f350/\uffff".encode()), max_size=30))
@example([b"a/b", b"a/b", b"a/bc", b"a/b/c", b"a", b"a\xc3"])
def test_lengths(implementations: list[Implementation], paths: list[bytes]) -> None:
    """Every histogram matches the definitions."""
    segments = [path.split(b"/") if path else [] for path in paths]
    flat = [segment for each in segments for segment in each]
    for implementation in implementations:
        with use(implementation):
            lengths = lengths_of(paths)
            assert lengths.path_bytes == tuple(sorted(Counter(map(len, paths)).items()))
            assert lengths.path_units == tuple(sorted(Counter(map(units, paths)).items()))
            assert lengths.segment_bytes == tuple(sorted(Counter(map(len, flat)).items()))
            assert lengths.segment_units == tuple(sorted(Counter(map(units, flat)).items()))
            assert lengths.depth == tuple(sorted(Counter(map(len, segments)).items()))
            lasts = Counter(len(each[-1]) if each else 0 for each in segments)
            assert lengths.last_bytes == tuple(sorted(lasts.items()))


def test_long_paths(implementation: Implementation) -> None:
    """Lengths beyond the table are counted."""
    paths = [b"x" * 4095, b"x" * 4096, b"x" * 100_000, b"x" * 100_000]
    assert lengths_of(paths).path_bytes == ((4095, 1), (4096, 1), (100_000, 2))
    assert lengths_of(paths).segment_units == ((4095, 1), (4096, 1), (100_000, 2))
