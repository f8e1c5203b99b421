"""The scan of plain directories: both implementations return the same results and defer the same names."""

from __future__ import annotations

import os
import tempfile

import pytest
from hypothesis import given, strategies as st

from pressmark.fs.names import encode_fs
from support.implementations import Implementation
from support.turns import in_one_turn

from ..conftest import Tree
from .test_walk import TREES, build


def scanned(
    implementation: Implementation, root: bytes, paths: list[bytes], follow: bool = True, budget: int = 1000
) -> tuple[list[tuple[bytes, bytes]], list[bytes]]:
    kernels = implementation.kernels
    packed, _ = kernels.ByteColumn.from_texts(paths)
    listed, names, rest = in_one_turn(lambda: kernels.scan_pairtree(root, packed, follow, budget))
    assert len(listed) == len(names)
    return [(listed[index], names[index]) for index in range(len(listed))], [rest[n] for n in range(len(rest))]


def test_plain_directories(implementation: Implementation, tree: Tree) -> None:
    """A ppath that ends in one directory is plain; everything else is deferred."""
    base = tree(
        *("ab/foo/x", "ab/cd/bar/x", "ab/e/objects/x", "ab/e2/", "fi/x", "re/pairtree/x", "sp/one/x", "sp/two/x"),
        *("mo/r/ab/x", "na/\u00e9/foo/x", "lo/\u00e9\u00e9\u00e9\u00e9\u00e9/x", "a" * 2 + "/" + "n" * 255 + "/x"),
    )
    root = os.fsencode(base / "pairtree_root")
    names = sorted(os.listdir(root))
    found, rest = scanned(implementation, root, names)
    assert rest == []
    assert found == [
        *((b"aa", b"n" * 255), (b"ab", b"foo"), (b"ab/cd", b"bar"), (b"ab/e", b"objects"), (b"ab/e2", b"")),
        *((b"fi", b""), (b"lo", encode_fs("\u00e9" * 5)), (b"mo/r", b""), (b"na", b""), (b"re", b""), (b"sp", b"")),
    ]
    assert scanned(implementation, root, [b"missing", b"fi/x", b"a\0b", b"ab/e"]) == (
        [(b"missing", b""), (b"fi/x", b""), (b"a\0b", b""), (b"ab/e", b"objects")],
        [],
    )
    assert scanned(implementation, root + b"/nowhere", [b"ab"]) == ([(b"ab", b"")], [])


def test_budget(implementation: Implementation, tree: Tree) -> None:
    """Names beyond the budget are returned in order, and the scan can continue from there."""
    root = os.fsencode(tree(*(f"{n:02}/{n:02}/foo/x" for n in range(40))) / "pairtree_root")
    paths = sorted(os.listdir(root))
    whole, _ = scanned(implementation, root, paths)
    for budget in (0, 1, 7, 79, 80):
        found, rest = [], paths
        while rest:
            some, left = scanned(implementation, root, rest, budget=budget)
            assert left != rest or budget == 0
            found += some
            if budget == 0:
                assert (some, left) == ([], paths)
                break
            rest = left
        assert found == (whole if budget else [])


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
@pytest.mark.parametrize("follow", [True, False])
def test_links(implementation: Implementation, tree: Tree, follow: bool) -> None:
    """With followed links, a long name that links to a directory ends a ppath; other links are deferred."""
    base = tree("xx/foo/x")
    root = base / "pairtree_root"
    for name, link, target in (
        ("ab", "volume", "../xx"),
        ("cd", "ef", "../xx"),
        ("gh", "gone", "no"),
        ("ij", "f", "k"),
    ):
        (root / name).mkdir()
        (root / name / link).symlink_to(target)
    found, _ = scanned(implementation, os.fsencode(root), [b"ab", b"cd", b"gh", b"ij"], follow)
    assert found == [(b"ab", b"volume" if follow else b""), (b"cd", b""), (b"gh", b""), (b"ij", b"")]


def test_many_names(implementation: Implementation, tree: Tree) -> None:
    """More names than one read of the directory returns are sorted."""
    names = [f"{number:03x}"[:2] + "/" for number in range(0, 4096, 16)] + [f"{c}/" for c in "abcdef"]
    root = os.fsencode(tree(*(f"zz/{name}" for name in names)) / "pairtree_root")
    found, rest = scanned(implementation, root, [b"zz"], budget=1)
    assert found == []
    assert rest == sorted(b"zz/" + encode_fs(name[:-1]) for name in names)


@given(TREES, st.booleans(), st.integers(0, 12))
def test_implementations_agree(
    pair: tuple[Implementation, Implementation], tree: dict[bytes, object], follow: bool, budget: int
) -> None:
    """Both implementations agree on any tree."""
    with tempfile.TemporaryDirectory() as folder:
        root = os.fsencode(folder)
        build(root, tree)
        names = sorted(name for name in tree if name.isascii())
        native, pure = (scanned(implementation, root, names, follow, budget) for implementation in pair)
        assert native == pure
