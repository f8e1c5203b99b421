"""Trees of other programs are recognised and read in their dialect."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from pressmark.layouts import pairtree_dialects as dialects
from pressmark.stores.pairtree.pairtree_store import PairtreeStore

from ..conftest import Tree

# Paths that the programs wrote for identifiers.
WRITTEN = {
    "unt": {
        "a b": "a^/9d/b",
        "\n": "^8/7",
        "\0": "^7/d",
        "a\\b": "a\\/b",
        "\u00e9": "\u00e9",
        "\x7f": "\x7f",
        "a?": "a^/3f",
    },
    "caltech": {"a b": "a^/20/b", "\n": "\n", "a\\b": "a^/5c/b", "\u00e9": "\u00e9", "ab:c/d.": "ab/+c/=d/,"},
    "unpadded-hex": {"a b": "a^/20/b", "\n": "^a", "\0x": "^0/x", "\u00e9": "^c/3^/a9", "\x7f": "^7/f"},
}


@pytest.mark.parametrize("dialect", WRITTEN)
def test_paths_of_the_programs(dialect: str) -> None:
    """Paths of the program are recognised, and read back where they are unambiguous."""
    for identifier, path in WRITTEN[dialect].items():
        assert dialects.path(dialect, identifier) == path
        assert dialect in dialects.recognised(path)
        if dialect != "unpadded-hex" or identifier in ("\n", "\0x"):
            assert dialects.read(dialect, path) == identifier


@given(st.sampled_from(dialects.DIALECTS), st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_ambiguous_paths_are_refused(dialect: str, identifier: str) -> None:
    """A path is read back as the identifier that was written; an ambiguous path is refused."""
    path = dialects.path(dialect, identifier)
    try:
        assert dialects.read(dialect, path) == identifier
    except dialects.DialectError as refused:
        if (dialect, refused.kind) != ("unpadded-hex", "ambiguous"):
            raise
    assert dialect in dialects.recognised(path)


@pytest.mark.parametrize(
    ("dialect", "path", "kind"),
    [
        ("unt", "a^/20", "undecodable"),
        ("unt", "^", "undecodable"),
        ("caltech", "^6/1", "undecodable"),
        ("caltech", "a.", "undecodable"),
        ("unpadded-hex", "^2/0", "ambiguous"),
        ("unpadded-hex", "^g", "undecodable"),
        ("unpadded-hex", "^", "undecodable"),
    ],
)
def test_impossible_paths(dialect: str, path: str, kind: str) -> None:
    """A path that is not possible in the dialect is refused."""
    with pytest.raises(dialects.DialectError) as caught:
        dialects.read(dialect, path)
    assert caught.value.kind == kind


def test_trees(tree: Tree) -> None:
    """The dialect of a tree is detected, and the tree is read in it."""
    base = tree("ab/foo/x", "a^/9d/b/foo/x", "\u00e9/foo/x", "c\\/d/foo/x", "^z/foo/x", "^a/foo/x")
    store = PairtreeStore(base)
    assert store.dialects() == {"caltech": 1, "spec": 2, "unknown": 1, "unpadded-hex": 2, "unt": 3}
    unt = PairtreeStore(base, dialect="unt")
    found = {record.path.removeprefix("pairtree_root/"): record.id for record in unt.objects()}
    assert found == {
        "ab": "ab",
        "a^/9d/b": "a b",
        "\u00e9": "\u00e9",
        "c\\/d": "c\\d",
        "^z": None,
        "^a": None,
    }
    assert [name for name, _ in unt.get("a b").files()] == ["x"]
    assert unt.dialects()["unt"] == 4
