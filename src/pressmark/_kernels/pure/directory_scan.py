"""Directories read in one call: plain directories of a Pairtree, and whole trees of regular files.

A directory of a Pairtree is plain if it contains only directories with names of one or two characters and at most one
directory with a longer name, which is an object. All other directories are deferred to the shared code: those with
files, reserved names, two longer names, nothing at all, names whose characters must be counted, and those that cannot
be read.
"""

from __future__ import annotations

import os
import stat
import struct
from time import monotonic

from pressmark._kernels.pure.column import ByteColumn

__all__ = ["scan_pairtree", "tree_sizes"]

_RESERVED = b"pairtree"
# A name of this many bytes has at least three characters, since a character has at most four bytes.
_SURELY_LONG = 9
_BLOCK = 4096
# Seconds after which a call returns, and leaves the rest to the next call.
TURN = 0.1
_Size = tuple[int, int, int, int]
_STAMP = struct.Struct("=5q")
_SECOND = 1_000_000_000


def scan_pairtree(
    root: bytes, paths: ByteColumn, follow: bool, budget: int
) -> tuple[ByteColumn, ByteColumn, ByteColumn]:
    """Read directories of a Pairtree and the directories below them, in the order of their bytes.

    :param root: the directory that the paths are relative to
    :param paths: the directories, in order; the name after the last slash must be ASCII
    :param follow: accept symbolic links to directories as objects
    :param budget: the maximum number of directories to read; fewer are read if that takes too long
    :return: in order, the paths of objects and of deferred directories; for each path the name of the object's
        directory, empty for deferred ones; and the paths that were not read
    """
    places: list[bytes] = []
    names: list[bytes] = []
    stack = paths.items[::-1]
    begin, latest = budget, monotonic() + TURN
    while stack and budget > 0 and (budget == begin or monotonic() < latest):
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


def tree_sizes(tops: ByteColumn) -> tuple[list[_Size | None], ByteColumn, ByteColumn]:
    """Measure trees of regular files.

    A tree is deferred if it cannot be read, or contains a link, a special file or an empty directory.

    :param tops: the paths of the trees
    :return: for each tree the number of its files, their bytes, the bytes of their blocks of 4 KiB, and the number of
        directories with files, or :data:`None` if it is deferred; for each tree the names of its files, each with a NUL
        at its end; and in the same order the size of each file, and the seconds and nanoseconds of its times of
        modification and of status change, as integers of 64 bits. All are shorter if the call took too long; call it
        again with the rest
    """
    latest = monotonic() + TURN
    sizes: list[_Size | None] = []
    names: list[bytes] = []
    stamps: list[bytes] = []
    for top in tops.items:
        try:
            found = _measure(top)
        except (OSError, ValueError):  # a NUL in the path
            found = None
        sizes.append(None if found is None else found[0])
        names.append(b"" if found is None else b"".join(name + b"\0" for name in found[1]))
        stamps.append(b"" if found is None else b"".join(found[2]))
        if monotonic() > latest:
            break
    return sizes, ByteColumn(names), ByteColumn(stamps)


def _measure(top: bytes) -> tuple[_Size, list[bytes], list[bytes]] | None:
    size = blocks = directories = 0
    names: list[bytes] = []
    stamps: list[bytes] = []
    waiting = [b""]
    while waiting:
        inside = waiting.pop()
        before = len(names)
        is_empty = True
        with os.scandir(os.path.join(top, inside) if inside else top) as entries:
            for entry in entries:
                is_empty = False
                name = inside + b"/" + entry.name if inside else entry.name
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(name)
                    continue
                status = entry.stat(follow_symlinks=False)
                if not stat.S_ISREG(status.st_mode):
                    return None
                size += status.st_size
                blocks += -(-status.st_size // _BLOCK) * _BLOCK
                names.append(name)
                times = *divmod(status.st_mtime_ns, _SECOND), *divmod(status.st_ctime_ns, _SECOND)
                stamps.append(_STAMP.pack(status.st_size, *times))
        if is_empty:
            return None
        directories += len(names) > before
    return (len(names), size, blocks, directories), names, stamps
