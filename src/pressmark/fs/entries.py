"""The entries of directories, in the order of the bytes of their names."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import NamedTuple

from pressmark.fs.beneath import HAS_DESCRIPTORS, OpenBeneathByName, open_beneath
from pressmark.fs.durable import is_directory, walk
from pressmark.fs.names import is_junk

__all__ = ["DirectoryEntry", "kind_of_entry", "longest_inside", "scan", "scan_beneath", "would_be_empty"]


class DirectoryEntry(NamedTuple):
    """An entry of a directory.

    :ivar name: its name, as bytes
    :ivar kind: ``directory``, ``file``, ``special`` or ``link``; if links are followed, the kind of the target or
        ``dangling``
    :ivar is_link: whether it is a symbolic link
    """

    name: bytes
    kind: str
    is_link: bool

    @property
    def is_junk(self) -> bool:
        """Whether it is a file or directory that operating systems or storage appliances add."""
        return self.kind in ("file", "directory") and is_junk(self.name, directory=self.kind == "directory")


def scan(directory: bytes, *, follow: bool = True) -> list[DirectoryEntry]:
    """Return the entries of a directory, sorted by the bytes of their names.

    :param follow: follow symbolic links
    :raises OSError: the directory cannot be read
    """
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            # Almost all entries are regular files and directories, which one or two questions recognise.
            if entry.is_file(follow_symlinks=False):
                found.append(DirectoryEntry(entry.name, "file", False))
            elif entry.is_dir(follow_symlinks=False):
                found.append(DirectoryEntry(entry.name, "directory", False))
            else:
                found.append(DirectoryEntry(entry.name, kind_of_entry(entry, follow=follow), entry.is_symlink()))
    found.sort()
    return found


def scan_beneath(base: bytes, relative: bytes) -> list[DirectoryEntry]:
    """Return the entries of the directory ``relative`` in ``base`` like :func:`scan`, without following links.

    :raises OSError: as for :func:`~pressmark.fs.beneath.open_beneath`; or it cannot be read
    """
    if not HAS_DESCRIPTORS:
        with OpenBeneathByName(base).names(relative):
            return scan(os.path.join(base, relative), follow=False)
    descriptor = open_beneath(base, relative, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Names in an open directory are text.
        return sorted(entry._replace(name=os.fsencode(entry.name)) for entry in scan(descriptor, follow=False))  # type: ignore[arg-type]
    finally:
        os.close(descriptor)


def kind_of_entry(entry: os.DirEntry[bytes], *, follow: bool = False) -> str:
    """Return the kind of an entry: see :class:`DirectoryEntry`.

    :param follow: follow symbolic links
    :raises OSError: this cannot be determined
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
        return "dangling"  # a loop of links, or a target that is not accessible
    return "dangling" if is_link and not os.path.exists(entry.path) else "special"


def longest_inside(top: bytes) -> bytes:
    """Return the longest path in a tree, relative to it and with a leading slash; empty if the tree is empty.

    :raises OSError: a directory cannot be read
    """
    if not is_directory(top):  # a serialized bag
        return b""
    paths = (os.path.join(folder, name) for folder, folders, files in walk(top) for name in folders + files)
    return max(paths, key=len, default=top)[len(top) :]


def would_be_empty(directory: bytes, relative: bytes, gone: Collection[bytes]) -> bool:
    """Return whether an existing directory would be empty after a dry run.

    :param relative: its path, relative to the base of the paths in ``gone``
    :param gone: the paths that the dry run would have removed
    """
    try:
        return all(os.path.join(relative, name) in gone for name in os.listdir(directory))
    except FileNotFoundError:  # removed by another run
        return False
