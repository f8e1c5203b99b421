"""What the operating system or a source refuses, as errors of objects and stores."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from pressmark.errors import BagError, ObjectError, PressmarkError, StoreError
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.reports import Problem
from pressmark.stores.problems import problem

__all__ = ["SourceError", "object_errors", "refusal", "store_errors", "unrepaired"]


class SourceError(PressmarkError):
    """A source that cannot be stored, before it is known for which object: see :class:`object_errors`.

    :ivar kind: of the :class:`~pressmark.errors.ObjectError`, such as ``source`` or ``bad-name``
    :ivar reason: one line that says why, and the way out
    """

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(kind, reason)
        self.kind = kind
        self.reason = reason


# What the operating system's number means for an object, and the way out.
_REFUSALS = {
    errno.ENOSPC: ("no-space", "make room, and run it again"),
    errno.EDQUOT: ("no-space", "make room, and run it again"),
    errno.EROFS: ("permission", "mount the file system for writing"),
    errno.EACCES: ("permission", "run it as somebody who may"),
    errno.EPERM: ("permission", "run it as somebody who may"),
    errno.ENAMETOOLONG: ("bad-name", "use a shorter name"),
    errno.EEXIST: ("collision", "two names are the same, or are one here that differ in case: rename one of them"),
    errno.EILSEQ: ("bad-name", "the file system takes no such names"),
}


def refusal(error: OSError) -> tuple[str, str]:
    """Return the kind of :class:`ObjectError` for what the operating system refuses, and a line with the way out."""
    kind, way_out = _REFUSALS.get(error.errno or 0, ("io-error", ""))
    named = error.filename if isinstance(error.filename, (str, bytes)) else ""
    name = decode_fs(os.path.basename(encode_fs(named)))
    reason = f"{error.strerror or error}{f' ({name})' if name else ''}"
    return kind, f"{reason}; {way_out}" if way_out else reason


# What the system refuses because of one object, and not of all.
_OF_ONE = (errno.EACCES, errno.EPERM, errno.EEXIST, errno.ENAMETOOLONG)


def unrepaired(path: bytes, error: OSError) -> Problem:
    """Return the problem of one object or directory that a repair has to leave as it is.

    :raises OSError: what was refused would stop every other, too
    """
    if error.errno not in _OF_ONE:
        raise error
    return problem("unrepaired", path, refusal(error)[1])


class object_errors:
    """Turn what the operating system or Python's stack refuses into an :class:`ObjectError`; a context manager.

    No generator: of many small objects that would cost more than most of what it surrounds.
    """

    __slots__ = ("_identifier", "_store")

    def __init__(self, store: str | bytes, identifier: str | bytes) -> None:
        self._store = store
        self._identifier = identifier

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OSError):
            raise ObjectError(self._store, self._identifier, *refusal(error)) from error
        if isinstance(error, SourceError):
            raise ObjectError(self._store, self._identifier, error.kind, error.reason) from error
        if isinstance(error, RecursionError):  # what goes through a tree calls itself for each level
            reason = "directories lie too deep below each other; leave them out, or pack them into one file"
            raise ObjectError(self._store, self._identifier, "source", reason) from None
        if isinstance(error, BagError):  # from copying, which bags share
            reason = f"{decode_fs(encode_fs(error.path))}: {error.reason}"
            raise ObjectError(self._store, self._identifier, "source", reason) from None


@contextmanager
def store_errors(store: str | bytes) -> Iterator[None]:
    """Turn what the operating system refuses inside into a :class:`StoreError`."""
    try:
        yield
    except BrokenPipeError:
        raise  # no disk says that: whoever is told of problems has left
    except OSError as error:
        raise StoreError(store, refusal(error)[1]) from error
