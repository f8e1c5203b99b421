"""Errors: one line each, with the shortened item, the data as attributes, and equal after pickling."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import pressmark
from pressmark import (
    DifferentialNTupleOmitPrefix,
    DirectClean,
    FlatDirect,
    FlatOmitPrefix,
    HashAndIdNTuple,
    HashAndNoPrefixIdNTuple,
    HashedNTuple,
    IdentifierError,
    LayoutConfigError,
    NotReversibleError,
    NTupleOmitPrefix,
    Pairtree,
    PathError,
    PressmarkError,
    Vitro,
)
from pressmark.errors import quoted, short_digest
from support.effort import LONG
from support.implementations import Implementation
from support.samples import CONFIGURATIONS, sample

HUGE = 10_000_000
LINE_ENDS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
ODD = f"a{LINE_ENDS}\x1b[31m\udcff\u202e"

REVERSIBLE_LAYOUTS = (Pairtree(prefix="p"), Pairtree(), Vitro({"a": "http://"}), FlatDirect(), HashAndIdNTuple())
LAYOUTS = (
    *REVERSIBLE_LAYOUTS,
    DirectClean(encode_utf=True, max_pathname_len=1),
    *(sample(word) for word in CONFIGURATIONS),
)
BAD_IDENTIFIERS = (
    "",
    "p",
    "/",
    "..",
    "a:",
    "a//b",
    ":..",
    "\ud800" + ODD,
    "x\u0100",
    b"\xff" + ODD[:11].encode(),
    "...",
)
BAD_PATHS = ("", "/", "abc", "^z", "^", "a~b", "x~c", "a/a/a", "%zz", ".", ODD, "\ud800", b"\xff\n", "x" * 101)


def refusals(call: Callable[[Any], Any], items: tuple[Any, ...]) -> list[PressmarkError]:
    found = []
    for item in items:
        try:
            call(item)
        except PressmarkError as error:
            found.append(error)
    return found


def check_line(error: BaseException, longest: int = 300) -> None:
    """Assert that the text of an error is one printable line of limited length."""
    text = str(error)
    assert text.splitlines() == [text]
    assert text.isprintable()
    assert len(text) < longest


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: type(layout).__name__)
def test_every_refusal_is_one_line(implementation: Implementation, layout: pressmark.Layout) -> None:
    """For any item, the error is one printable line."""
    errors = refusals(layout.map_id, BAD_IDENTIFIERS)
    assert errors
    if layout.reversible:
        errors += refusals(layout.unmap_path, BAD_PATHS)
    if isinstance(layout, Pairtree):
        errors += refusals(layout.split_path, BAD_PATHS) + refusals(layout.unclean, BAD_PATHS)
    if isinstance(layout, Vitro):
        errors += refusals(layout.encode_filename, BAD_IDENTIFIERS) + refusals(layout.decode_filename, BAD_PATHS)
        errors += refusals(lambda name: layout.object_path("a", name), (*BAD_IDENTIFIERS, "x" * 256))
    for error in errors:
        check_line(error)


@pytest.mark.long
@pytest.mark.parametrize(
    "character", ["x", "\u00e9", "\n", "\U0001f350", "\udcff", chr(0xD800), "\U000e0001"], ids=ascii
)
def test_a_huge_item_is_cut_in_its_error(implementation: Implementation, character: str) -> None:
    """The error of an item of ten million characters quotes its start, and is not longer than a line."""
    for layout in REVERSIBLE_LAYOUTS[: 5 if LONG else 2]:
        huge = character * HUGE
        for call, error in ((layout.map_id, IdentifierError), (layout.unmap_path, PathError)):
            with pytest.raises(error) as raised:
                call(huge)
            check_line(raised.value)
            assert raised.value.item is huge


def test_quoted_is_one_printable_line() -> None:
    """An item is quoted with unprintable characters escaped, and truncated."""
    assert quoted("a b\u00e9") == "'a b\u00e9'"
    assert quoted(b"\xc3\xa9\xff") == "'é\\xff'"
    assert quoted("a\nb") == "'a\\nb'"
    assert quoted("x" * 80) == f"'{'x' * 80}'"
    assert quoted("x" * 81) == f"'{'x' * 80}'\u2026"


def config_refusals() -> dict[str, Callable[[], Any]]:
    """Return calls that must be refused, each with a huge or unprintable argument."""
    huge = "x" * 100_000
    return {
        "name": lambda: pressmark.layout(ODD),
        "huge name": lambda: pressmark.layout(huge),
        "extensionName": lambda: pressmark.layout_from_config({"extensionName": ODD}),
        "key": lambda: pressmark.layout("0003", **{ODD: 1}),
        "huge key": lambda: pressmark.layout("0003", **{huge: 1}),
        "config key": lambda: pressmark.layout_from_config({"extensionName": "0003", ODD: 1}),
        "keyword": lambda: FlatDirect(**{ODD: 1}),
        "choice": lambda: HashedNTuple(digest_algorithm=huge),
        "odd choice": lambda: HashedNTuple(digest_algorithm=ODD),
        "integer": lambda: HashedNTuple(tuple_size=huge),
        "huge integer": lambda: HashedNTuple(tuple_size=10**6000),
        "list": lambda: HashedNTuple(tuple_size=[1] * 100_000),
        "boolean": lambda: HashedNTuple(short_object_root={"a": huge}),
        "surrogate": lambda: FlatOmitPrefix("\ud800" * 100_000),
        "delimiters": lambda: HashAndNoPrefixIdNTuple(delimiters=[""] * 100_000),
        "integers": lambda: DifferentialNTupleOmitPrefix(tuple_segment_sizes=[0] * 100_000),
        "namespace": lambda: Vitro({"ab": huge}),
        "namespace of octets": lambda: Vitro({b"a": "http://"}),
        "namespace of pairs": lambda: Vitro({("a", "b"): "http://"}),
        "replacement": lambda: DirectClean(replacement_string="/" * 100_000),
        "folder": lambda: DirectClean(fallback_folder=f"../{ODD}"),
        "huge fixed name": lambda: Pairtree(encapsulation=f"fixed:{huge}"),
        "odd fixed name": lambda: Pairtree(encapsulation=f"fixed:/{ODD}"),
        "policy": lambda: Pairtree(encapsulation=ODD),
        "callable to json": lambda: Pairtree(encapsulation=str.upper).config(),
    }


@pytest.mark.parametrize("what", config_refusals())
def test_every_refused_configuration_is_one_line(what: str) -> None:
    """For any configuration, the refusal is a ``LayoutConfigError`` of one printable line of limited length."""
    with pytest.raises(LayoutConfigError) as raised:
        config_refusals()[what]()
    check_line(raised.value, 1000)
    assert raised.value.key
    assert raised.value.reason


def unfit(name: str) -> Callable[[str], str]:
    return lambda _identifier: name


@pytest.mark.parametrize(
    "name", ["x" * 1_000_000, f"/{ODD}", "ab", "pairtree_x", "", "com1"], ids=lambda name: repr(name[:4])
)
def test_an_invalid_callable_is_refused_in_one_line(implementation: Implementation, name: str) -> None:
    """An invalid name from a callable policy is an error of the identifier, in one line."""
    with pytest.raises(IdentifierError) as raised:
        Pairtree(encapsulation=unfit(name)).object_path("abc")
    check_line(raised.value)


ERRORS = (
    IdentifierError("id", None, "why"),
    IdentifierError(b"\xff", 3, "why"),
    PathError("path", 0, "why"),
    LayoutConfigError("tupleSize", "why"),
    NotReversibleError("0004-hashed-n-tuple-storage-layout"),
)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_errors_survive_pickling(error: PressmarkError, protocol: int) -> None:
    """An error raised in another process keeps its type, text and data."""
    for again in (pickle.loads(pickle.dumps(error, protocol)), copy.copy(error), copy.deepcopy(error)):
        assert (type(again), str(again), again.args) == (type(error), str(error), error.args)
        assert vars(again) == vars(error)


def test_errors_have_their_data() -> None:
    """The data of an error are attributes; its text contains the item and its index in the batch."""
    error = IdentifierError("id", 7, "why")
    assert (error.id, error.index, error.reason, str(error)) == ("id", 7, "why", "identifier 7 'id': why")
    path = PathError(b"p", None, "why")
    assert (path.path, path.index, path.reason, str(path)) == (b"p", None, "why", "path 'p': why")
    config = LayoutConfigError("tupleSize", "why")
    assert (config.key, config.reason, str(config)) == ("tupleSize", "why", "tupleSize: why")
    assert NotReversibleError("0004").layout == "0004"


def test_errors_are_value_errors_and_pressmark_errors() -> None:
    """Every refusal is a ``ValueError`` and a ``PressmarkError``."""
    for error in ERRORS:
        assert isinstance(error, ValueError)
        assert isinstance(error, PressmarkError)


def test_reasons_have_positions(implementation: Implementation) -> None:
    """Positions in reasons refer to the given item."""
    cases: tuple[tuple[Callable[[Any], Any], Any, str], ...] = (
        (HashedNTuple().map_id, b"ab\xffc", "byte 0xff at offset 2 is not UTF-8"),
        (NTupleOmitPrefix().map_id, "a:\u00e9", "byte 0xc3 at offset 2 is outside 0x20 to 0x7f"),
        (Pairtree("p.").map_id, "q.x", "does not start with the prefix 'p.'"),
        (Pairtree("p.").map_id, "p.", "nothing remains after the prefix"),
        (Vitro({"a": "\u4f8b:"}).map_id, "\u4f8b:\u00e9\u0100", "U+0100 at index 3 is above U+00FF"),
        (FlatOmitPrefix("::").map_id, "ab::", "ends with the delimiter '::'"),
        (DifferentialNTupleOmitPrefix().map_id, "a:bcd", "3 characters follow the prefix; the segments have 11"),
        (FlatDirect().map_id, "a/../b", "path segment '..' at offset 2"),
        (FlatDirect().map_id, "a/b\0", "NUL at offset 3 of the path"),
        (Pairtree().unmap_path, "ab/cde", "component at offset 3 must have two characters"),
        (Pairtree().unmap_path, "ab/ c", "byte ' ' at offset 3 is not allowed in a cleaned path"),
        (Pairtree().unmap_path, "ab/c/dd", "component at offset 3 must have two characters"),
        (Pairtree().unmap_path, "ab/c^/2", "'^' at offset 4 is not followed by two hex digits"),
        (Pairtree().unclean, "abc^2", "'^' at offset 3 is not followed by two hex digits"),
        (HashAndIdNTuple().unmap_path, "a/b/%zz", "'%' at offset 4 is not followed by two hex digits"),
        (Vitro().unmap_path, "x~a", "unknown namespace prefix 'x'; known prefixes: none"),
    )
    for call, item, reason in cases:
        with pytest.raises(PressmarkError) as raised:
            call(item)
        assert reason in str(raised.value)


def test_split_path_reports_the_position_in_the_path(implementation: Implementation) -> None:
    """An escape that ``split_path`` cannot decode is reported at its offset in the given path, not in a part of it."""
    with pytest.raises(PathError, match=r"'\^' at offset 17 is not followed by two hex digits"):
        Pairtree().split_path("pairtree_root/ab/^z/x")


def test_short_digests() -> None:
    """Messages have the first 12 digits of a digest."""
    assert short_digest("0123456789abcdef" * 4) == "0123456789ab…"
    assert short_digest("01234567") == "01234567"
