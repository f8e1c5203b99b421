"""Directories of a few small files with plain names, which every bag can contain. One call reads many of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from pressmark import _kernels
from pressmark.bagit.writing.payload import FileFacts, SourceChangedError
from pressmark.fixity.scheduling import hash_trees
from pressmark.fs.trees import Tree, Wanted, trees
from pressmark.paths.folding import are_distinct

__all__ = ["Digests", "Entries", "are_plain", "list_small_folders", "read_small_folders", "small_files"]

# Larger directories are read by several threads, file by file.
_SMALL = Wanted(entries=128, depth=16, total=256 << 10, file=256 << 10)
_LISTED = Wanted(content="none", entries=256)
# Bytes that need a rule: for escapes in manifests, or for names that are not ASCII.
_UNUSUAL = bytes([*range(0x20), *range(0x7F, 0x100)]) + b"%\\"

# The path of each entry in the order of a walk, and for a file its size, time of modification in nanoseconds and inode.
Entries = list[tuple[bytes, tuple[int, int, int] | None]]
# The digests of each file in this order, by algorithm.
Digests = list[dict[str, str]]


def read_small_folders(
    bases: Sequence[bytes], skip: bytes, algorithms: Sequence[str]
) -> Iterator[tuple[Entries, Digests] | None]:
    """Read directories, and yield the entries and digests of each; :data:`None` for one that is unusual.

    That is one with links, special files, many or large files, names that are not printable ASCII or differ only in
    case, or one that cannot be read as a whole.

    :param bases: the directories; each may be named by a link
    :param skip: a name in each directory to ignore
    :param algorithms: official names; at least one
    """
    for batch in trees(b"", bases, _SMALL._replace(skip=skip), 1):
        columns = hash_trees(batch, algorithms)
        for tree in batch.trees:
            entries = _entries(batch, tree, "whole")
            yield None if entries is None else (entries, _digests(tree, columns))


def list_small_folders(bases: Sequence[bytes], skip: bytes) -> Iterator[Entries | None]:
    """Yield the entries of directories as :func:`read_small_folders` does, without reading the files, of any size."""
    for batch in trees(b"", bases, _LISTED._replace(skip=skip), 1):
        for tree in batch.trees:
            yield _entries(batch, tree, "unwanted")


def _entries(batch: _kernels.active.TreeBatch, tree: Tree, state: str) -> Entries | None:
    files = cast("dict[bytes, int]", tree.files)
    if tree.state != "whole" or tree.others or not are_plain([*files, *cast("dict[bytes, int]", tree.directories)]):
        return None
    states, sizes, mtimes, inodes = batch.states, batch.sizes, batch.mtimes, batch.inodes
    found: Entries = []
    for path, number in files.items():
        if states[number] != state:
            return None
        found.append((path, (sizes[number], mtimes[number], inodes[number])))
    if tree.directories:
        found += [(path, None) for path in cast("dict[bytes, int]", tree.directories)]
        found.sort(key=lambda entry: entry[0].replace(b"/", b"\0"))
    return found


def are_plain(paths: Sequence[bytes]) -> bool:
    """Return whether all names are printable ASCII without characters that are escaped, and no two differ in case."""
    text = b"/".join(paths)
    return len(text.translate(None, _UNUSUAL)) == len(text) and are_distinct(paths)


def _digests(tree: Tree, columns: dict[str, list[str | None]]) -> Digests:
    numbers = tree.files.values()
    return [{name: cast(str, column[number]) for name, column in columns.items()} for number in numbers]


def small_files(path: bytes, now: Entries | None) -> Iterator[FileFacts]:
    """Return path, size and time of modification of the files of a directory that was small.

    :param path: the directory, for the error
    :param now: from :func:`list_small_folders`
    :raises SourceChangedError: it is no longer small
    """
    if now is None:
        raise SourceChangedError(path)
    return ((path, facts[0], facts[1]) for path, facts in now if facts is not None)
