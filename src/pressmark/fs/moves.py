"""Renaming without replacing, and creating and removing parent directories."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial

from pressmark.fs.durable import exists
from pressmark.fs.names import is_blocked

__all__ = [
    *("TRIES", "exchange", "make_parents", "prune_empty_parents", "rename_new"),
    *("replace_directory", "restore"),
]

# Attempts at using a directory that other runs may remove as empty.
TRIES = 1000
_NOT_EMPTY = (errno.ENOTEMPTY, errno.EEXIST)
_NOREPLACE, _EXCHANGE = 1, 2  # linux/fs.h
# The numbers of the system call renameat2 on 64 bits, for C libraries without the function: musl.
_RENAMEAT2 = {"aarch64": 276, "x86_64": 316}


@cache
def _renameat2() -> Callable[[bytes, bytes, int], int] | None:
    """Return ``renameat2``, which returns 0 or an error number; :data:`None` if it is missing."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes  # most commands rename nothing

    try:
        library = ctypes.CDLL(None, use_errno=True)
    except OSError:
        return None
    function = getattr(library, "renameat2", None)
    if function is None:
        number = _RENAMEAT2.get(os.uname().machine)
        if number is None or sys.maxsize < 1 << 32:
            return None
        function = partial(library.syscall, number)
    at_fdcwd = -100

    def rename(old: bytes, new: bytes, flags: int) -> int:
        return 0 if function(at_fdcwd, old, at_fdcwd, new, flags) == 0 else ctypes.get_errno()

    return rename


def _rename_by(flags: int, old: bytes, new: bytes) -> bool:
    """Rename with flags of Linux; return False if the system or the file system does not support them."""
    rename = _renameat2()
    if rename is None:
        return False
    number = rename(old, new, flags)
    if number == 0:
        return True
    if number in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), old, None, new)


def rename_new(old: bytes, new: bytes) -> None:
    """Rename ``old`` to ``new``, which must not exist, not even as an empty directory.

    :raises FileExistsError: ``new`` exists
    """
    if _rename_by(_NOREPLACE, old, new):
        return
    # Our own runs hold a lock here; only other programs can interfere.
    if exists(new):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
    os.rename(old, new)


def exchange(one: bytes, other: bytes) -> bool:
    """Exchange two paths atomically; return False if the file system does not support it."""
    return _rename_by(_EXCHANGE, one, other)


def replace_directory(new: bytes, place: bytes, aside: bytes) -> bytes:
    """Replace the directory at ``place`` with the directory ``new``.

    This is one step if the file system can exchange two names. Otherwise the old directory is moved to ``aside`` first;
    if the run is killed after that, :func:`restore` undoes the replacement.

    :param aside: an unused path on the same file system; its parent directory is created if missing
    :return: the path of the old directory: ``new`` or ``aside``
    """
    if exchange(new, place):
        return new
    with suppress(FileExistsError):
        os.mkdir(os.path.dirname(aside))
    os.rename(place, aside)
    try:
        rename_new(new, place)
    except BaseException:
        restore(aside, place)
        raise
    return aside


def restore(aside: bytes, place: bytes) -> bool:
    """Move the directory that an interrupted :func:`replace_directory` put aside back to ``place``, if that is free.

    :return: whether it was moved; if not, ``aside`` does not exist, or the new directory is in place
    """
    if exists(place) or not exists(aside):
        return False
    rename_new(aside, place)
    return True


def make_parents(base: bytes, relative: bytes) -> list[bytes]:
    """Create the missing directories of the path ``relative`` below ``base``.

    Directories that another run removes as empty meanwhile are created again.

    :return: the created directories, relative to ``base``
    :raises OSError: a directory cannot be created, or its path is occupied by a file
    """
    names = relative.split(b"/")
    for _ in range(TRIES):
        made = []
        try:
            for depth in range(1, len(names) + 1):
                path = os.path.join(base, *names[:depth])
                try:
                    os.mkdir(path)
                    made.append(b"/".join(names[:depth]))
                except FileExistsError:
                    if is_blocked(path):
                        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None
        except FileNotFoundError:
            if not os.path.isdir(base):
                raise
            continue
        return made
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), base)


def prune_empty_parents(
    base: bytes, relative: bytes, removed: list[bytes] | None = None, *, strict: bool = True
) -> list[bytes]:
    """Remove the directory ``relative`` below ``base`` if it is empty, then its parents; never ``base`` itself.

    :param removed: a list that receives the removed paths, also if an error is raised
    :param strict: raise an error if an empty directory cannot be removed; otherwise it is kept, and a check reports it
    :return: the removed paths, relative to ``base``
    :raises OSError: an empty directory cannot be removed; its path is the ``filename`` of the error
    """
    removed = [] if removed is None else removed
    while relative:
        try:
            os.rmdir(os.path.join(base, relative))
            removed.append(relative)
        except FileNotFoundError:
            pass  # removed by another run
        except OSError as error:
            if not strict or error.errno in (*_NOT_EMPTY, errno.EBUSY, errno.ENOTDIR):
                break
            raise
        relative = os.path.dirname(relative)
    return removed
