"""Paths that fold to the same key."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from pressmark.paths import folded
from pressmark.paths.folding import casefolded, decomposed
from strategies import identifiers

from .naive import key, text

SAME = [
    ("a", "A"),
    ("\u00e9", "e\u0301"),
    ("\u00c9", "e\u0301"),
    ("stra\u00dfe", "STRASSE"),
    ("\u1e9e", "ss"),
    ("\u03c3", "\u03c2"),
    ("\u212a", "k"),
    ("\u017f", "S"),
    ("\u0130", "i\u0307"),
    ("\ufb01", "FI"),
    ("\uac00", "\u1100\u1161"),
    ("\u01c4", "\u01c6"),
    ("a\u0323\u0307", "a\u0307\u0323"),
]
DIFFERENT = [
    ("\u0131", "i"),  # the Turkish dotless i
    ("\u0130", "i"),
    ("\u0131", "I"),
    ("e", "\u00e9"),
    ("\u2100", "a/c"),  # compatibility is not equality: folding creates no slash
    ("\uff0f", "/"),
    ("\uff21", "A"),
    ("\u00b9", "1"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_one_key(one: str, other: str) -> None:
    """Paths that differ by case, normalization form, or both have one key, also inside longer paths."""
    assert folded(one.encode()) == folded(other.encode())
    assert folded(f"x/{one}/y".encode()) == folded(f"X/{other}/y".encode())


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_two_keys(one: str, other: str) -> None:
    """Paths that are distinct on every file system have two keys."""
    assert folded(one.encode()) != folded(other.encode())


def test_bytes_that_are_not_utf8() -> None:
    """Bytes that are not UTF-8 are kept, and the text beside them is folded."""
    assert folded(b"A\xff\xc3\x89") == b"a\xff" + "e\u0301".encode()
    assert folded(b"\xc3") != folded(b"\xe3")
    assert folded(b"\xc3/\xa9") == b"\xc3/\xa9"


@given(identifiers())
def test_folding(path: bytes) -> None:
    """Folding matches its definition, is idempotent, and keeps the number of slashes."""
    assert text(folded(path)) == key(path)
    assert folded(path).count(b"/") == path.count(b"/")
    assert folded(decomposed(path)) == folded(path)
    assert casefolded(casefolded(path)) == casefolded(path)
    assert [folded(segment) for segment in path.split(b"/")] == folded(path).split(b"/")


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_folding_forms(path: str) -> None:
    """NFC and NFD of a text have the same key."""
    from unicodedata import normalize

    assert {folded(normalize(form, path).encode()) for form in ("NFC", "NFD")} == {folded(path.encode())}
