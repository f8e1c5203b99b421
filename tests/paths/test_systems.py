"""Naming rules of systems: each rule at its boundary, in single paths and in columns."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

import pressmark
from arrow.foreign import Opaque
from pressmark.errors import PathError
from pressmark.paths import (
    PROFILES,
    NameViolation,
    NameViolations,
    advice,
    batches as pieces,
    name_violation,
    name_violations,
)
from strategies import identifiers
from support.implementations import Implementation, use

EVERYWHERE = ("unix", "windows", "azure", "s3")
E, CLEF = "\u00e9", "\U0001d11e"  # two bytes and one unit; four bytes and two units

# A path, and which of the four systems refuse it.
CASES: list[tuple[str | bytes, tuple[str, ...]]] = [
    ("a/b.c/d e", ()),
    ("", EVERYWHERE),
    ("/a", EVERYWHERE),
    ("a/", EVERYWHERE),
    ("a//b", EVERYWHERE),
    ("a/./b", EVERYWHERE),
    ("..", EVERYWHERE),
    ("...", ("windows", "azure")),
    ("a\0", EVERYWHERE),
    ("a\x1f/b", ("windows", "azure")),
    ("a\x7f", ()),
    *((f"a{character}b", ("windows",)) for character in '<>:"|?*'),
    ("a\\b", ("windows", "azure")),
    ("a./b", ("windows", "azure")),
    ("a /b", ("windows",)),
    (" a/.b", ()),
    *((name, ("windows",)) for name in ("CON", "prn", "Aux", "nul", "COM1", "com9", "LPT1", "lpt9")),
    *((name, ("windows",)) for name in ("x/con.txt", "nul.tar.gz", "aux .x", "com\u00b9", "LPT\u00b3.x", "con/x")),
    *((name, ()) for name in ("CONN", "COM0", "COM10", "com", "xcon", "a.con", "LPT", "nul-", "com\u2074")),
    ("x" * 254, ()),
    ("x" * 255, ("azure",)),
    ("x" * 256, ("unix", "windows", "azure")),
    (E * 127, ()),
    (E * 128, ("unix",)),
    (E * 254, ("unix",)),
    (E * 255, ("unix", "azure")),
    (E * 256, ("unix", "windows", "azure")),
    (CLEF * 127, ("unix",)),
    (CLEF * 128, ("unix", "windows", "azure")),
    ("x/" * 128 + "abc", ()),
    ("x/" * 129 + "ab", ("windows",)),
    ("x/" * 511 + "ab", ("windows",)),
    ("x/" * 512 + "a", ("windows", "azure", "s3")),
    (f"{E}/" * 341 + "x", ("windows",)),
    (f"{E}/" * 341 + "xx", ("windows", "s3")),
    ("x/" * 2047 + "a", ("windows", "azure", "s3")),
    ("x/" * 2047 + "ab", EVERYWHERE),
    (b"\xff", ("windows", "azure", "s3")),
    (b"a/\xc3(", ("windows", "azure", "s3")),
]


@pytest.mark.parametrize(("path", "refusing"), CASES)
def test_rules(path: str | bytes, refusing: tuple[str, ...]) -> None:
    """Each rule applies from its boundary on, and not before."""
    reasons = {name: name_violation(path, name) for name in EVERYWHERE}
    assert tuple(name for name, reason in reasons.items() if reason is not None) == refusing
    reason = name_violation(path, "all")
    assert (reason is not None) == bool(refusing)
    for text in filter(None, [*reasons.values(), reason]):
        assert "\n" not in text
        assert text.startswith(("segment ", "path ", "path is empty"))
    if isinstance(path, str):
        assert reasons == {name: name_violation(path.encode(), name) for name in EVERYWHERE}


def test_reasons() -> None:
    """A reason names the segment or the lengths, and with several profiles the profile."""
    assert name_violation("ok/aux.txt", "windows") == "segment 'aux.txt': reserved device name"
    assert name_violation("ok/a:b", "all") == "segment 'a:b': contains ':' (windows)"
    assert name_violation("a./b", "azure") == "segment 'a.': ends with '.'"
    assert name_violation("a\n", "windows") == "segment 'a\\n': contains '\\n'"
    assert name_violation(b"\xff", "s3") == "segment '\\xff': not UTF-8"
    assert name_violation("a//b", "unix") == "segment '': empty"
    assert name_violation("a/..", "unix") == "segment '..': not a name"
    long = "x/" * 128 + "x"
    assert name_violation(long, "windows", root_length=40) == (
        f"path '{'x/' * 40}'\u2026: 257 UTF-16 units plus 40 of the root; the limit is 260 including a NUL"
    )


@pytest.mark.parametrize(("name", "longest"), [("unix", 4095), ("windows", 259), ("azure", 1024), ("s3", 1024)])
def test_the_length_of_the_root(implementation: Implementation, name: str, longest: int) -> None:
    """The root and the slash count for the length; a root of the maximum length leaves no room."""
    for root in (0, 1, 100):
        room = longest - (root + 1 if root else 0)
        fits = ("x/" * longest)[-room:].lstrip("/").rjust(room, "w")[:-1] + "y"
        over = f"w{fits}"
        assert name_violation(fits, name, root_length=root) is None
        assert name_violation(over, name, root_length=root) is not None
        assert name_violations([fits, over], name, root_length=root).count == 1
    assert name_violation("a", name, root_length=5000) is not None
    assert name_violations(["a"], name, root_length=5000).count == 1


def test_invalid_profiles() -> None:
    """Invalid profiles and lengths are refused; profiles are a mapping by name."""
    assert list(PROFILES) == ["unix", "windows", "azure", "s3", "all"]
    assert all(profile.name == name for name, profile in PROFILES.items())
    for call in (lambda: name_violation("a", "dos"), lambda: name_violations(["a"], "dos")):
        with pytest.raises(ValueError, match=r"dos.*unix, windows, azure, s3, all"):
            call()
    with pytest.raises(ValueError, match="root_length=-1"):
        name_violation("a", "unix", root_length=-1)
    with pytest.raises(PathError, match="surrogate"):
        name_violation("\ud800", "unix")
    with pytest.raises(PathError, match="surrogate"):
        name_violations(["\ud800"], "unix")


def test_advice() -> None:
    """A leading hyphen is advice, not a refusal."""
    assert advice("a/b-c/d") is None
    assert advice("a/-b") == "segment '-b': starts with '-', like an option"
    assert name_violation("-a", "all") is None
    assert name_violations(["-a", "b/-c/-d", "e-", "-f:"], "windows") == NameViolations(
        1, (NameViolation(3, "-f:", "segment '-f:': contains ':'"),), 3
    )


@given(
    st.lists(st.sampled_from([path for path, _ in CASES]) | identifiers(), max_size=30),
    st.sampled_from(list(PROFILES)),
    st.sampled_from([0, 1, 100, 250, 5000]),
    st.integers(0, 3),
)
def test_columns(
    implementations: list[Implementation], paths: list[str | bytes], name: str, root: int, first: int
) -> None:
    """A column has the same refusals and advice as its single paths."""
    reasons = [(number, path, name_violation(path, name, root_length=root)) for number, path in enumerate(paths)]
    named = [
        NameViolation(number, path.decode("utf-8", "surrogateescape") if isinstance(path, bytes) else path, reason)
        for number, path, reason in reasons
        if reason is not None
    ]
    expected = NameViolations(len(named), tuple(named[:first]), sum(advice(path) is not None for path in paths))
    for implementation in implementations:
        with use(implementation):
            assert name_violations(paths, name, root_length=root, first=first) == expected


def test_a_column_of_arrow(implementation: Implementation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Indices are those of the column, across chunks and nulls."""
    pyarrow = pytest.importorskip("pyarrow")
    items = ["fine", None, "x" * 300, None, "-", "x" * 300, ""]
    monkeypatch.setattr(pieces, "ITEMS", 2)
    column = pressmark.FlatDirect().map(Opaque(pyarrow.array(items)), on_error="none")
    found = name_violations(column, "unix", first=9)
    assert [one.number for one in found.first] == [2, 5]
    assert (found.count, found.advised) == (2, 1)
