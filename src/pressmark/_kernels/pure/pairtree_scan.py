"""The walk of a Pairtree as far as it is plain: directories of one or two characters, and one directory that ends each.

A directory is plain when nothing in it needs a rule of its own: either it holds exactly one name of three characters or
more, a directory, which is an object's; or none, and directories of one or two characters. Both at once are plain too.
Everything else (files, reserved names, two ends, nothing at all, names whose characters must be counted, what cannot be
read) is deferred: given back by its path, unread, for the shared code to look at.
"""

from __future__ import annotations

import os

from pressmark._kernels.pure.column import ByteColumn

__all__ = ["scan_pairtree"]

_RESERVED = b"pairtree"
# A name of so many octets has three characters or more, whatever they are: none has more than four octets.
_SURELY_LONG = 9


def scan_pairtree(
    root: bytes, paths: ByteColumn, follow: bool, budget: int
) -> tuple[ByteColumn, ByteColumn, ByteColumn]:
    """Look through directories of a Pairtree and those below them, in the order of octets.

    :param root: the directory that the paths are relative to
    :param paths: the directories, in their order, of ASCII names behind the last slash
    :param follow: whether a symbolic link to a directory is one where it has three characters or more
    :param budget: how many directories to read at most
    :return: in order, the paths of objects and of directories deferred; for each the name of the directory that ends
        it, empty for those deferred; and, to be looked through after them, the paths that were not read
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
    """Return what ends in a directory, empty for nothing, and what it goes on with; :data:`None` to defer it."""
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
