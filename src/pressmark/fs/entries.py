"""What is in a directory, in the order of bytes, and what is in a whole tree."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import NamedTuple

from pressmark.fs.durable import is_directory, walk

__all__ = ["DirectoryEntry", "kind_of_entry", "longest_inside", "scan", "would_be_empty"]


class DirectoryEntry(NamedTuple):
    """One name in a directory.

    :ivar name: its bytes
    :ivar kind: ``directory``, ``file``, ``special``, or of links that are not followed ``link``; of those that are,
        what they lead to, or ``dangling``
    :ivar is_link: whether it is a symbolic link
    """

    name: bytes
    kind: str
    is_link: bool


def scan(directory: bytes, *, follow: bool = True) -> list[DirectoryEntry]:
    """Return what is in a directory, in the order of bytes.

    :param follow: look at what symbolic links lead to
    :raises OSError: it cannot be read
    """
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            found.append(DirectoryEntry(entry.name, kind_of_entry(entry, follow=follow), entry.is_symlink()))
    found.sort()
    return found


def kind_of_entry(entry: os.DirEntry[bytes], *, follow: bool = False) -> str:
    """Return the kind of an entry, as in :class:`DirectoryEntry`.

    :param follow: look at what symbolic links lead to
    :raises OSError: nobody can say: taken for anything else, a directory would be moved or removed as that
    """
    is_link = entry.is_symlink()
    if is_link and not follow:
        return "link"
    try:
        if entry.is_dir():
            return "directory"
        if entry.is_file():
            return "file"
    except OSError:
        if not is_link:
            raise
        return "dangling"  # links that lead to each other, or where nobody may look
    return "dangling" if is_link and not os.path.exists(entry.path) else "special"


def longest_inside(top: bytes) -> bytes:
    """Return the longest path in a tree, relative to it and with a slash before it; empty where nothing is in it.

    :raises OSError: a directory cannot be read
    """
    if not is_directory(top):  # a serialised bag
        return b""
    paths = (os.path.join(folder, name) for folder, folders, files in walk(top) for name in folders + files)
    return max(paths, key=len, default=top)[len(top) :]


def would_be_empty(directory: bytes, relative: bytes, gone: Collection[bytes]) -> bool:
    """Return whether a directory that is there holds nothing but what a dry run would have removed.

    :param relative: its path, as those in ``gone`` are
    """
    try:
        return all(os.path.join(relative, name) in gone for name in os.listdir(directory))
    except FileNotFoundError:  # another run has removed it
        return False
