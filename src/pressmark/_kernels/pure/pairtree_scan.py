"""The walk of plain Pairtree directories.

A directory is plain if it contains only directories with names of one or two characters and at most one directory with
a longer name, which is an object. All other directories are deferred to the shared code: those with files, reserved
names, two longer names, nothing at all, names whose characters must be counted, and those that cannot be read.
"""

from __future__ import annotations

import os

from pressmark._kernels.pure.column import ByteColumn

__all__ = ["scan_pairtree"]

_RESERVED = b"pairtree"
# A name of this many bytes has at least three characters, since a character has at most four bytes.
_SURELY_LONG = 9


def scan_pairtree(
    root: bytes, paths: ByteColumn, follow: bool, budget: int
) -> tuple[ByteColumn, ByteColumn, ByteColumn]:
    """Read directories of a Pairtree and the directories below them, in the order of their bytes.

    :param root: the directory that the paths are relative to
    :param paths: the directories, in order; the name after the last slash must be ASCII
    :param follow: accept symbolic links to directories as objects
    :param budget: the maximum number of directories to read
    :return: in order, the paths of objects and of deferred directories; for each path the name of the object's
        directory, empty for deferred ones; and the paths that were not read
    """
    places: list[bytes] = []
    names: list[bytes] = []
    stack = paths.items[::-1]
    while stack and budget > 0:
        path = stack.pop()
        budget -= 1
        found = _look(os.path.join(root, path), len(path) - path.rfind(b"/") == 2, follow)
        if found is None:
            places.append(path)
            names.append(b"")
            continue
        name, below = found
        if name:
            places.append(path)
            names.append(name)
        below.sort(reverse=True)
        stack += [b"%s/%s" % (path, child) for child in below]
    return ByteColumn(places), ByteColumn(names), ByteColumn(stack[::-1])


def _look(directory: bytes, is_morty: bool, follow: bool) -> tuple[bytes, list[bytes]] | None:
    """Return the object's name in a directory, or empty, and the other names; :data:`None` to defer the directory."""
    end = b""
    below: list[bytes] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                name = entry.name
                is_long = len(name) > 2
                if not name.isascii() and len(name) < _SURELY_LONG:
                    return None
                if is_long:
                    if end or name.startswith(_RESERVED) or not entry.is_dir(follow_symlinks=follow):
                        return None
                    end = name
                elif is_morty or not entry.is_dir(follow_symlinks=False):
                    return None
                else:
                    below.append(name)
    except (OSError, ValueError):  # a NUL in the path
        return None
    return (end, below) if end or below else None
