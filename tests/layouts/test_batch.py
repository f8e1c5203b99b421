"""Single items, lists of any kind and size, and lines have the same results."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import pytest

from pressmark import FlatDirect, IdentifierError, Layout, Pairtree, PathError
from pressmark.layouts.batch import BLOCK_ITEMS
from support.implementations import Implementation
from support.outcomes import outcome
from support.samples import CONFIGURATIONS, REVERSIBLE, sample
from support.streams import map_lines, pass_through, unmap_lines

IDENTIFIERS = (
    "ark:/13030/xt12t3",
    "a",
    "ab",
    "abc",
    "a:bc",
    "http://a/b.c",
    "",
    "..",
    "/a",
    "a//b",
    "a/..",
    "\0",
    "\t\r",
    "\u00e9\u4f8b\U0001f350",
    "\udcff",
    "con",
    "x" * 130,
    "^" * 300,
    "a" * 99 + ":",
    b"\xff\xfe",
    b"info:fedora/object-01",
)


def as_bytes(item: str | bytes) -> bytes:
    return item if isinstance(item, bytes) else item.encode("utf-8", "surrogateescape")


def check_doors(one: Any, many: Any, lines: Any, item: str | bytes) -> None:
    """Compare all calls for one item: the same value, or the same error type and reason."""
    alone = outcome(lambda: one(item))
    batch = outcome(lambda: many([item]))
    if alone[0] == "ok":
        assert batch == ("ok", [alone[1]])
    else:
        error, _, (_, index, reason) = alone
        assert index is None
        assert (batch[0], batch[2]) == (error, (item, 0, reason))
        assert many([item], on_error="none") == [None]
    # An item in NUL-delimited lines cannot contain a NUL.
    if b"\0" in as_bytes(item) or (alone[0] == "ok" and "\0" in alone[1]):
        return
    stream = pass_through(lines, as_bytes(item) + b"\0", delimiter=b"\0")
    if alone[0] == "ok":
        assert stream.written == as_bytes(alone[1]) + b"\0"
    else:
        text = as_bytes(item).decode("utf-8", "surrogateescape")
        assert (stream.result[0], stream.result[2]) == (error, (text, 0, reason))
        assert stream.written == b""


@pytest.mark.parametrize("word", CONFIGURATIONS)
def test_identifiers_have_one_path_in_every_call(implementation: Implementation, word: str) -> None:
    """``map_id``, ``map_ids`` and lines give the same path, or the same error reason."""
    layout = sample(word)
    for identifier in IDENTIFIERS:
        check_doors(layout.map_id, layout.map_ids, partial(map_lines, layout), identifier)


@pytest.mark.parametrize("word", REVERSIBLE)
def test_paths_have_one_identifier_in_every_call(implementation: Implementation, word: str) -> None:
    """``unmap_path``, ``unmap`` and lines give the same identifier, or the same error reason."""
    layout = sample(word)
    mapped = [path for path in layout.map_ids(IDENTIFIERS, on_error="none") if path is not None]
    for path in (*mapped, *IDENTIFIERS, "ab/c/d", "^zz", "a~b/c", "%zz", "=uD800"):
        check_doors(layout.unmap_path, layout.unmap, partial(unmap_lines, layout), path)
        check_doors(layout.unmap_path, layout.unmap, partial(unmap_lines, layout), as_bytes(path))


@pytest.mark.parametrize("word", REVERSIBLE)
def test_mapped_paths_map_back(implementation: Implementation, word: str) -> None:
    """If the inverse accepts a path, it returns exactly the bytes that were mapped.

    0011 drops empty segments: there it gives an identifier of the same path, the one without them.
    """
    layout = sample(word)
    for identifier in IDENTIFIERS:
        path = outcome(lambda identifier=identifier: layout.map_id(identifier))
        back = outcome(lambda path=path: layout.unmap_path(path[1])) if path[0] == "ok" else (PathError,)
        if back[0] == "ok":
            assert layout.map_id(back[1]) == path[1]
            assert word.startswith("0011") or as_bytes(back[1]) == as_bytes(identifier)
        else:
            assert back[0] is PathError


def generated(items: Iterable[Any]) -> Iterator[Any]:
    yield from items


def test_a_batch_is_any_iterable(implementation: Implementation) -> None:
    """Lists, tuples, generators, sets, dictionaries and iterators are batches, and their order is kept."""
    ids = [f"id-{number}" for number in range(5000)]
    expected = [Pairtree().map_id(identifier) for identifier in ids]
    for make in (list, tuple, generated, iter, deque, dict.fromkeys, lambda items: map(str, items)):
        assert Pairtree().map_ids(make(ids)) == expected
    assert sorted(Pairtree().map_ids(set(ids))) == sorted(expected)
    for empty in ([], (), set(), generated([])):
        assert Pairtree().map_ids(empty) == []


@pytest.mark.parametrize("lone", ["abc", b"abc", ""])
def test_one_string_is_not_a_batch(implementation: Implementation, lone: str | bytes) -> None:
    """A lone ``str`` or ``bytes`` is refused: it would be mapped letter by letter."""
    for call in (Pairtree().map_ids,):
        with pytest.raises(TypeError, match=f"an iterable of str or bytes, not a single {type(lone).__name__}"):
            call(lone)


@pytest.mark.parametrize("wrong", [None, 5])
def test_an_argument_that_is_not_iterable(implementation: Implementation, wrong: Any) -> None:
    """An argument that is not iterable is a ``TypeError``."""
    with pytest.raises(TypeError):
        Pairtree().map_ids(wrong)


@pytest.mark.parametrize("wrong", [0, 1.5, bytearray(b"a"), ["a"], object()], ids=lambda wrong: type(wrong).__name__)
@pytest.mark.parametrize("on_error", ["raise", "none"])
def test_an_item_of_a_wrong_type_is_a_type_error(implementation: Implementation, wrong: Any, on_error: str) -> None:
    """An item that is neither ``str`` nor ``bytes`` is a ``TypeError``, also with ``on_error="none"``."""
    kind = type(wrong).__name__
    with pytest.raises(TypeError, match=f"^identifier: expected str or bytes, not {kind}$"):
        Pairtree().map_id(wrong)
    with pytest.raises(TypeError, match=f"^path: expected str or bytes, not {kind}$"):
        Pairtree().unmap_path(wrong)
    with pytest.raises(TypeError, match=f"^identifier 2: expected str or bytes, not {kind}$"):
        Pairtree().map_ids(["a", "b", wrong], on_error=on_error)
    with pytest.raises(TypeError, match=f"^path {BLOCK_ITEMS + 1}: expected str or bytes, not {kind}$"):
        Pairtree().unmap(generated([*["aa"] * (BLOCK_ITEMS + 1), wrong]), on_error=on_error)


def test_none_in_a_list_is_a_null(implementation: Implementation) -> None:
    """As a null of a column, None stays None under ``on_error="none"``, and is no error; under "raise", it is one."""
    many = [*["a"] * BLOCK_ITEMS, None, ""]
    for make in (list, tuple, generated):
        errors: list[IdentifierError] = []
        found = Pairtree().map(make(many), on_error="none", errors=errors)
        assert found == [*["a"] * BLOCK_ITEMS, None, None]
        assert [(error.index, error.id) for error in errors] == [(BLOCK_ITEMS + 1, "")]
        assert Pairtree().unmap(make([None, "aa"]), on_error="none") == [None, "aa"]
        with pytest.raises(TypeError, match=f"^identifier {BLOCK_ITEMS}: expected str or bytes, not NoneType$"):
            Pairtree().map(make(many))
    with pytest.raises(TypeError, match="expected str, bytes, an iterable of them or an Arrow column, not NoneType"):
        Pairtree().map(None, on_error="none")  # type: ignore[call-overload]


@pytest.mark.peers
def test_objects_of_pandas(implementation: Implementation) -> None:
    """A series of objects with None gives a series with the same nulls."""
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(["a", None, "b"], dtype=object)
    found = Pairtree().map(series, on_error="none")
    assert [None if pandas.isna(one) else one for one in found] == ["a", None, "b"]


@pytest.mark.parametrize("on_error", ["skip", "", None, "RAISE"])
def test_an_unknown_policy_is_refused(implementation: Implementation, on_error: Any) -> None:
    """``on_error`` accepts only "raise" and "none"."""
    with pytest.raises(ValueError, match=r"on_error=.*expected 'raise' or 'none'"):
        Pairtree().map_ids([], on_error=on_error)


EDGES = sorted({edge + change for edge in (1, BLOCK_ITEMS, 2 * BLOCK_ITEMS) for change in (-1, 0, 1)})


@pytest.mark.parametrize("count", [count for count in EDGES if count])
@pytest.mark.parametrize("make", [list, tuple, generated], ids=["list", "tuple", "generator"])
def test_large_batches_fail_in_the_right_place(implementation: Implementation, count: int, make: Any) -> None:
    """At block boundaries, failing items are counted and located correctly."""
    layout = FlatDirect()
    for place in sorted({0, count // 2, count - 1, *(edge for edge in EDGES if edge < count)}):
        ids = [f"id-{number}" for number in range(count)]
        ids[place] = ".."
        with pytest.raises(IdentifierError) as raised:
            layout.map_ids(make(ids))
        assert (raised.value.index, raised.value.id) == (place, "..")
        ids[count - 1] = "\ud800"
        results = layout.map_ids(make(ids), on_error="none")
        expected: list[str | None] = list(ids)
        expected[place] = expected[count - 1] = None
        assert results == expected


def test_the_first_failing_item_is_the_one_reported(implementation: Implementation) -> None:
    """The first failing item of a batch is raised, whatever its error."""
    for ids, place in ((["a", "", "\ud800"], 1), (["\ud800", ""], 0), (["a", "b", "\ud800", None], 2)):
        with pytest.raises(IdentifierError) as raised:
            Pairtree().map_ids(ids)
        assert raised.value.index == place


def test_a_huge_batch_keeps_its_order(implementation: Implementation) -> None:
    """A quarter of a million mixed identifiers keep their order."""
    ids = [f"{number:x}" * (1 + number % 3) + "\u00e9" * (number % 11 == 0) for number in range(250_000)]
    results = FlatDirect().map_ids(ids)
    assert results == ids


def test_a_failing_iterable_is_reported(implementation: Implementation) -> None:
    """An exception of the iterable is passed on."""

    def broken() -> Iterator[str]:
        yield "a"
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        Pairtree().map_ids(broken())


@pytest.mark.parametrize("word", ["pairtree", "0002", "0011-encoded"])
def test_surrogates_stand_for_bytes(implementation: Implementation, word: str) -> None:
    """In ``str`` the surrogates of ``os.fsdecode`` stand for their bytes; any other one is an error."""
    layout: Layout = sample(word)
    for text in ("a\udcff", "\udcc3\udca9", "\udc80"):
        assert (
            outcome(lambda text=text: layout.map_id(text))[:1]
            == outcome(lambda text=text: layout.map_id(as_bytes(text)))[:1]
        )
    assert layout.map_id("\udcc3\udca9") == layout.map_id("\u00e9")
    for code in (0xD800, 0xDBFF, 0xDC00, 0xDC7F, 0xDD00, 0xDFFF):
        with pytest.raises(IdentifierError, match=f"unpaired surrogate U\\+{code:04X} at index 1"):
            layout.map_id(f"a{chr(code)}b")
    assert layout.map_id(b"ab") == layout.map_id("ab")
