"""Collisions of many paths: kinds, counts, and use of the disk."""

from __future__ import annotations

import contextlib
import errno
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

import pressmark
from arrow.foreign import Opaque
from pressmark.errors import PathError, SpillError
from pressmark.paths import Collision, Member, PathIndex, Totals, batches as pieces, collisions as module
from support.implementations import Implementation, use

from . import naive

EVERYTHING = 1 << 30


def listed(
    paths: list[str | bytes], memory: int = EVERYTHING, first: int = 1000, labels: Any = None
) -> tuple[list[Collision], Totals]:
    with PathIndex(memory=memory) as index:
        index.add(paths, labels)
        found = list(index.collisions(first=first))
        return found, index.totals()


def plain(found: list[Collision]) -> list[tuple[str, int, list[int]]]:
    return [(collision.kind, collision.count, [member.number for member in collision.members]) for collision in found]


@pytest.mark.parametrize("memory", [1, EVERYTHING])
def test_no_collisions(implementation: Implementation, memory: int) -> None:
    """No path, one path, and many distinct paths have no collision."""
    assert listed([], memory) == ([], Totals(0, 0, 0, 0, 0, 0, 0))
    assert listed(["a"], memory) == ([], Totals(1, 0, 0, 0, 0, 0, 0))
    paths: list[str | bytes] = ["a/b", "a/bb", "a b", "a-b/c", "a", "ab", "aa/b", "\u00e9", "b/a", "a!", "a0"]
    paths.remove("a")
    assert listed(paths, memory) == ([], Totals(10, 0, 0, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("paths", "expected", "totals"),
    [
        (["a", "a"], [("equal", 2, [0, 1])], (2, 2, 2, 2, 2, 0, 0)),
        (["A", "a"], [("case", 2, [1, 0])], (2, 0, 2, 0, 2, 0, 0)),
        (["\u00e9", "e\u0301"], [("normalization", 2, [1, 0])], (2, 0, 0, 2, 2, 0, 0)),
        (["\u00c9", "e\u0301"], [("normalization", 2, [1, 0])], (2, 0, 0, 0, 2, 0, 0)),
        (["\u00c9", "\u00e9"], [("case", 2, [0, 1])], (2, 0, 2, 0, 2, 0, 0)),
        (["stra\u00dfe", "STRASSE"], [("case", 2, [1, 0])], (2, 0, 2, 0, 2, 0, 0)),
        (["\u0131", "i", "\u0130", "I"], [("case", 2, [1, 3])], (4, 0, 2, 0, 2, 0, 0)),
        (["\u0130", "i\u0307"], [("case", 2, [1, 0])], (2, 0, 2, 0, 2, 0, 0)),
        (["a", "a/b"], [("inside", 2, [0, 1])], (2, 0, 0, 0, 0, 2, 2)),
        (["A/b", "a"], [("inside", 2, [1, 0])], (2, 0, 0, 0, 0, 2, 0)),
        (["\u00e9/b", "e\u0301"], [("inside", 2, [1, 0])], (2, 0, 0, 0, 0, 2, 0)),
        (["a/b/c", "a/b", "a"], [("inside", 2, [1, 0]), ("inside", 3, [2, 1, 0])], (3, 0, 0, 0, 0, 3, 3)),
        (["a", "a", "a/b"], [("equal", 2, [0, 1]), ("inside", 3, [0, 2])], (3, 2, 2, 2, 2, 3, 3)),
        (
            ["a", "A", "a/b", "c"],
            [("case", 2, [0, 1]), ("inside", 3, [0, 2])],
            (4, 0, 2, 0, 2, 3, 2),
        ),
        ([b"\xff", b"\xff", b"\xfe"], [("equal", 2, [0, 1])], (3, 2, 2, 2, 2, 0, 0)),
        ([b"\xffA", b"\xffa", b"\xff"], [("case", 2, [1, 0])], (3, 0, 2, 0, 2, 0, 0)),
        ([b"\xff", b"\xff/\xc3"], [("inside", 2, [0, 1])], (2, 0, 0, 0, 0, 2, 2)),
        (["", "a"], [("inside", 2, [0, 1])], (2, 0, 0, 0, 0, 2, 2)),
        (["", ""], [("equal", 2, [0, 1])], (2, 2, 2, 2, 2, 0, 0)),
        (["a\0", "a\0/b", "a\1", "a\2"], [("inside", 2, [0, 1])], (4, 0, 0, 0, 0, 2, 2)),
        (["a\1", "A\1", "a\2", "a\0"], [("case", 2, [0, 1])], (4, 0, 2, 0, 2, 0, 0)),
    ],
)
@pytest.mark.parametrize("memory", [1, EVERYTHING])
def test_kinds(
    implementation: Implementation,
    paths: list[str | bytes],
    expected: list[tuple[str, int, list[int]]],
    totals: tuple[int, ...],
    memory: int,
) -> None:
    """Each kind is distinguished, counted, and listed with its members."""
    found, counted = listed(paths, memory)
    assert plain(found) == expected
    assert counted == totals
    with PathIndex(memory=memory) as index:
        index.add(paths)
        assert index.totals() == totals


def test_one_spelling_of_many_in_one_collision(implementation: Implementation) -> None:
    """A group of a hundred thousand is one collision, with the requested number of members."""
    count = 100_000
    found, totals = listed(["a/b"] * count + ["A/b"], 1 << 20, first=20)
    assert [(collision.kind, collision.count, len(collision.members)) for collision in found] == [
        ("equal", count, 20),
        ("case", count + 1, 20),
    ]
    assert [member.number for member in found[0].members] == list(range(20))
    assert totals == (count + 1, count, count + 1, count, count + 1, 0, 0)


def test_many_inside_one(implementation: Implementation) -> None:
    """All paths inside another are one collision, whose first member is the outer path."""
    found, totals = listed([*(f"A/{number}" for number in range(1000)), "a"], 4096, first=3)
    assert found == [
        Collision("inside", 1001, (Member(1000, "a", ""), Member(0, "A/0", ""), Member(1, "A/1", "")), False)
    ]
    assert totals.inside == 1001
    assert totals.inside_exact == 0


def test_counts_with_one_member(implementation: Implementation) -> None:
    """With one member requested, the counts are unchanged."""
    paths: list[str | bytes] = ["a", "a", "A", "a/b", "a/B"]
    found, totals = listed(paths, first=1)
    assert [(collision.kind, collision.count, len(collision.members)) for collision in found] == [
        ("equal", 2, 1),
        ("case", 3, 1),
        ("case", 2, 1),
        ("inside", 5, 1),
    ]
    assert totals == listed(paths)[1]


def test_labels(implementation: Implementation) -> None:
    """Members have the labels given with their paths, over several calls, and none otherwise."""
    with PathIndex(memory=1) as index:
        index.add(["x", "a"], ["one", b"\xff\xc3\xa9"])
        index.add(["a", "b"])
        index.add(["A", "y"], ["", "six"])
        index.add(["A"], ["seven"])
        assert len(index) == 7
        found = list(index.collisions())
    a, other = [Member(1, "a", "\udcff\u00e9"), Member(2, "a", "")], [Member(4, "A", ""), Member(6, "A", "seven")]
    assert [(collision.kind, list(collision.members)) for collision in found] == [
        ("equal", a),
        ("equal", other),
        ("case", [*a, *other]),
    ]


def test_labels_of_members(implementation: Implementation) -> None:
    """Every member of every collision has its own label, however labels were stored."""
    count = 3000
    paths = [f"p/{number % 1000}" for number in range(count)]
    with PathIndex(memory=1 << 12) as index:
        for start in range(0, count, 700):
            part = paths[start : start + 700]
            index.add(part, [f"id {start + number}" for number in range(len(part))])
        found = list(index.collisions())
    assert len(found) == 1000
    for collision in found:
        assert [member.label for member in collision.members] == [f"id {member.number}" for member in collision.members]
        assert {paths[member.number] for member in collision.members} == {collision.members[0].path}


def test_columns(implementation: Implementation, monkeypatch: pytest.MonkeyPatch) -> None:
    """An Arrow column gives the same result as a list; nulls are only numbered."""
    layout = pressmark.Pairtree()
    items = ["abc", "ABC", "", "abc", "ab", "\u00e9", None, None] * 3
    pyarrow = pytest.importorskip("pyarrow")
    column = layout.map(Opaque(pyarrow.array(items)), on_error="none")
    texts = column.to_list()
    given_list = [number for number, path in enumerate(texts) if path is not None]
    monkeypatch.setattr(pieces, "ITEMS", 5)
    monkeypatch.setattr(pieces, "BYTES", 12)
    with PathIndex(memory=64) as index:
        index.add(column, column)
        found = list(index.collisions())
        totals = index.totals()
    expected, expected_totals = listed([path for path in texts if path is not None])
    assert totals == expected_totals
    assert [
        (collision.kind, collision.count, [given_list[member.number] for member in collision.members])
        for collision in expected
    ] == plain(found)
    assert all(member.label == member.path for collision in found for member in collision.members)


def test_a_column_of_the_other_implementation(pair: tuple[Implementation, Implementation]) -> None:
    """An index reads columns of the other implementation."""
    pyarrow = pytest.importorskip("pyarrow")
    for one, other in (pair, pair[::-1]):
        with use(one):
            column = pressmark.Pairtree().map(Opaque(pyarrow.array(["abc", "x", "abc"])))
        with use(other), PathIndex() as index:
            index.add(column)
            assert plain(list(index.collisions())) == [("equal", 2, [0, 2])]


def test_items_that_are_not_text(implementation: Implementation) -> None:
    """An item that is not text is refused, and an index with missing paths gives no result."""
    for item, error in (("\ud800", PathError), (7, TypeError)):
        with PathIndex() as index:
            with pytest.raises(error, match=r"surrogate|expected str"):
                index.add(["a", "a", item])  # type: ignore[list-item]
            with pytest.raises(ValueError, match="incomplete"):
                index.collisions()
            with pytest.raises(ValueError, match="incomplete"):
                index.totals()
            with pytest.raises(ValueError, match="incomplete"):
                index.add(["b"])
    with PathIndex() as index:
        with pytest.raises(ValueError, match="1 labels for 2 paths"):
            index.add(["a", "b"], ["x"])
        with pytest.raises(ValueError, match="first=0"):
            index.collisions(first=0)
        index.add(("a", "a"))
        assert index.totals().equal == 2
    with pytest.raises(ValueError, match="memory=0"):
        PathIndex(memory=0)


def test_once(implementation: Implementation) -> None:
    """Collisions are read once, nothing is added afterwards, and totals are known at the end."""
    with PathIndex() as index:
        index.add(["a", "a", "b", "b"])
        found = index.collisions()
        next(found)
        for call in (index.totals, index.collisions, lambda: index.add(["c"])):
            with pytest.raises(ValueError, match="being listed"):
                call()
        assert len(list(found)) == 1
        with pytest.raises(ValueError, match="listed"):
            index.collisions()
        assert index.totals().equal == 4
    assert index.totals().equal == 4
    with PathIndex() as index:
        index.add(["a", "a", "b", "b"])
        found = index.collisions()
    with pytest.raises(ValueError, match="closed"):
        list(found)
    with pytest.raises(ValueError, match="closed"):
        index.totals()


def test_most(implementation: Implementation) -> None:
    """Of each kind, the requested number is listed; all are counted."""
    with PathIndex() as index:
        index.add(["a", "a", "b", "b", "B", "c", "C", "c/d"])
        assert [collision.kind for collision in index.collisions(most=1)] == ["equal", "case", "inside"]
        assert index.totals() == (8, 4, 7, 4, 7, 3, 2)


# --- the disk ---------------------------------------------------------------------------------------------------


def open_files() -> list[str]:
    """Return the open files of this process, if the system lists them."""
    places = []
    for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []:
        # Including the listing itself.
        with contextlib.suppress(OSError):
            places.append(os.readlink(f"/proc/self/fd/{name}"))
    return sorted(places)


def test_temporary_files_are_removed(implementation: Implementation, tmp_path: Path) -> None:
    """Temporary data is in the requested folder, without a name, and removed at the end."""
    before = open_files()
    with PathIndex(tmp_path, memory=1000) as index:
        index.add([f"path/{number // 2}" for number in range(1000)], [str(number) for number in range(1000)])
        index.add(["x"])
        if before:
            assert sum(place.startswith(str(tmp_path)) for place in open_files()) == 2
        listing = index.collisions()
        next(listing)
        assert os.name == "nt" or os.listdir(tmp_path) == []
    assert os.listdir(tmp_path) == []
    assert open_files() == before


@pytest.mark.parametrize("memory", [1, 1 << 20])
def test_repetitions(implementation: Implementation, tmp_path: Path, memory: int) -> None:
    """Every number of a path that occurs more than once; the labels remain available, also in batches."""
    drawn = random.Random(memory)
    paths = [f"{drawn.choice('aAbé')}/{drawn.randrange(300)}" for _ in range(2000)]
    with PathIndex(tmp_path, memory=memory) as index:
        for start in range(0, 2000, 700):
            index.add(paths[start : start + 700], [f"label {path}" for path in paths[start : start + 700]])
        numbers: dict[str, list[int]] = {}
        for number, path in enumerate(paths):
            numbers.setdefault(path, []).append(number)
        found = list(index.repetitions())
        assert sorted(found) == sorted(tuple(same) for same in numbers.values() if len(same) > 1)
        assert index.label(1999) == f"label {paths[1999]}"
        labels = [text for batch in index.labels() for text in batch.to_texts()]
        assert labels == [f"label {path}" for path in paths]
        with pytest.raises(ValueError, match="repetitions can be listed only once: index is listed"):
            next(index.repetitions())
        with pytest.raises(ValueError, match="totals are known only"):
            index.totals()


class FullDisk:
    """A file with room for some bytes, accepting a few at a time."""

    def __init__(self, room: int) -> None:
        self.room = room

    def __enter__(self) -> FullDisk:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def write(self, data: Any) -> int:
        taken = min(len(data), self.room, 7)
        if not taken:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= taken
        return taken


@pytest.mark.parametrize("labels", [None, ["label"] * 100])
def test_a_full_disk(
    implementation: Implementation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, labels: list[str] | None
) -> None:
    """A full disk is a one-line error with the folder; there is no partial result."""
    monkeypatch.setattr(module.tempfile, "TemporaryFile", lambda **_: FullDisk(100))
    with PathIndex(tmp_path, memory=64) as index:
        with pytest.raises(SpillError) as caught:
            index.add(["some path"] * 100, labels)
        assert str(tmp_path) in str(caught.value)
        assert os.strerror(errno.ENOSPC) in str(caught.value)
        assert "\n" not in str(caught.value)
        with pytest.raises(ValueError, match="incomplete"):
            index.totals()


def test_a_missing_folder(implementation: Implementation, tmp_path: Path) -> None:
    """A folder is used only if memory is insufficient; a missing one is named in the error."""
    with PathIndex(tmp_path / "none", memory=1000) as index:
        index.add(["a"])
        with pytest.raises(SpillError, match=r"none.*cannot be created"):
            index.add(["some path"] * 100)


def test_truncated_temporary_files(implementation: Implementation, tmp_path: Path) -> None:
    """A truncated temporary file is an error."""
    with PathIndex(tmp_path, memory=64) as index:
        index.add(["some path"] * 100)
        assert index._spill is not None
        index._spill.truncate(10)
        with pytest.raises(SpillError, match="cannot be read"):
            index.totals()


# --- against the definitions ------------------------------------------------------------------------------------

SEGMENTS = st.sampled_from(
    [
        *("a", "A", "b", "ab", "\u00e9", "e\u0301", "\u00c9", "E\u0301", "\u00df", "ss", "SS", "\u1e9e", "\u212a", "k"),
        *(
            "K",
            "i",
            "I",
            "\u0130",
            "\u0131",
            "i\u0307",
            "a-",
            "a.",
            "a\1",
            "a\2",
            "",
            ".",
            "\u03c2",
            "\u03c3",
            "\u0345",
        ),
    ]
).map(str.encode) | st.sampled_from([b"\xff", b"\xc3", b"\xe9", b"a\0", b"\0", b"\1", b"\2", b"\1\1", b"-", b"\x2e"])
PATHS = st.lists(SEGMENTS, min_size=1, max_size=4).map(b"/".join)


def members(found: list[Collision]) -> set[tuple[str, frozenset[int], bool]]:
    return {
        (collision.kind, frozenset(member.number for member in collision.members), collision.exact)
        for collision in found
    }


@given(st.lists(PATHS, max_size=30), st.integers(1, 3), st.sampled_from([1, 200, 1000, EVERYTHING]))
def test_as_defined(implementations: list[Implementation], paths: list[bytes], size: int, memory: int) -> None:
    """The result equals that of comparing all pairs, in memory and with runs of every size."""
    expected = naive.collisions(paths)
    totals = naive.totals(paths)
    results = []
    for implementation in implementations:
        with use(implementation), PathIndex(memory=memory) as index:
            for start in range(0, len(paths), size):
                index.add(paths[start : start + size])
            found = list(index.collisions(first=1000))
            assert index.totals() == totals
        for collision in found:
            numbers = [member.number for member in collision.members]
            assert [member.path.encode("utf-8", "surrogateescape") for member in collision.members] == [
                paths[number] for number in numbers
            ]
            assert len(set(numbers)) == len(numbers)
        results.append(found)
        assert {collision for collision in members(found) if collision[0] != "inside"} == {
            collision for collision in expected if collision[0] != "inside"
        }
        # Of several outer paths one is a member: the others share its key.
        inside = {
            (frozenset(numbers - same | {min_outer(paths, numbers, same)}), exact, len(numbers))
            for kind, numbers, exact in expected
            if kind == "inside"
            for same in [outermost(paths, numbers)]
        }
        listed_inside = [collision for collision in found if collision.kind == "inside"]
        assert {
            (frozenset(same_key_once(paths, collision)), collision.exact, collision.count)
            for collision in listed_inside
        } == {(frozenset(one), exact, count) for one, exact, count in inside}
    assert all(result == results[0] for result in results)


def outermost(paths: list[bytes], numbers: frozenset[int]) -> frozenset[int]:
    """Return those of the outer key."""
    least = min((naive.key(paths[number]) for number in numbers), key=lambda one: (bool(one), one.count("/"), len(one)))
    return frozenset(number for number in numbers if naive.key(paths[number]) == least)


def min_outer(paths: list[bytes], numbers: frozenset[int], same: frozenset[int]) -> int:
    return min(same)


def same_key_once(paths: list[bytes], collision: Collision) -> Iterator[int]:
    """Yield the members, instead of the outer one the first of its key."""
    outer, *inner = collision.members
    key = naive.key(paths[outer.number])
    yield min(number for number, path in enumerate(paths) if naive.key(path) == key)
    yield from (member.number for member in inner)
