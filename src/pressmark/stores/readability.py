"""Unreadable files and directories in an object, found without reading content."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from pressmark.fixity import Outcome, walk
from pressmark.fs.durable import is_readable, why_unreadable
from pressmark.fs.file_errors import kind_of_error
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.reports import Problem
from pressmark.stores.problems import problem
from pressmark.threads import require_use

__all__ = ["find_unreadable", "unreadable_file"]

_KINDS = {
    "dangling-link": "link-dangling",
    "directory-loop": "link-loop",
    "link-loop": "link-loop",
    "link": "link",
    "fifo": "special-file",
    "socket": "special-file",
    "device": "special-file",
}


def unreadable_file(error: OSError | None, place: bytes, kind: str = "unreadable") -> list[Problem]:
    """Return the problem of a regular file that cannot be read; none if the file no longer exists.

    :param error: error of opening it, as :func:`pressmark.fs.durable.why_unreadable` returns it
    :param place: path of the file, relative to the store's root
    """
    if error is None or isinstance(error, FileNotFoundError):
        return []
    return [problem(kind, place, error.strerror or str(error))]


def find_unreadable(
    top: bytes, place: bytes, *, links: str = "follow", ignored: Callable[[str], object] | None = None
) -> Iterator[Problem]:
    """Yield a problem for each file and directory at and below ``top`` that cannot be read.

    Files that disappear meanwhile are skipped.

    :param top: a file or directory
    :param place: path of ``top``, relative to the store's root
    :param links: as for :func:`pressmark.fixity.walk`
    :param ignored: returns whether a name below ``top`` is ignored
    """
    if _is_plain(top):
        return
    for found in walk(top, links=links):
        require_use()
        if isinstance(found, Outcome):
            path, kind, message = encode_fs(found.path), found.kind, found.message
        else:
            path = encode_fs(found)
            error = why_unreadable(path)
            if error is None:
                continue
            kind, message = kind_of_error(error.errno or 0, path), error.strerror or str(error)
        below = path[len(top) :]
        if kind == "missing" or (ignored is not None and any(map(ignored, decode_fs(below).split(os.sep)[1:]))):
            continue
        yield problem(
            _KINDS.get(kind or "", "unreadable"), place + below.replace(os.sep.encode(), b"/"), message, section=""
        )


def _is_plain(top: bytes) -> bool:
    """Return whether a tree contains nothing but directories and readable files.

    Most objects are like that, and this takes half the time of :func:`pressmark.fixity.walk`.
    """
    waiting = [top]
    try:
        while waiting:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    require_use()
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False) or not is_readable(entry.path):
                        return False
    except OSError:
        return False
    return True
