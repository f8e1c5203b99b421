"""Errors of the operating system and of sources, as errors of objects and stores."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from pressmark.buckets.address import is_address
from pressmark.errors import BagError, ObjectError, ObjectTypeError, PressmarkError, StoreError, quoted_path
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.reports import Problem
from pressmark.stores.problems import problem

__all__ = [
    "SourceError",
    "SourceTypeError",
    "check_identifier",
    "is_unsafe_name",
    "object_errors",
    "refusal",
    "store_errors",
    "unrepaired",
]


# A directory of the path is empty, "." or "..", or a byte cannot be in a file name.
_has_unsafe = re.compile(rb"(?:^|/)\.{0,2}(?:/|\Z)|" + (rb"\0" if os.name == "posix" else rb"[\0\\:]")).search


class SourceError(PressmarkError):
    """A source that cannot be stored; :class:`object_errors` adds the object.

    :ivar kind: kind of the :class:`~pressmark.errors.ObjectError`, such as ``source`` or ``bad-name``
    :ivar reason: the reason and what to do, on one line
    """

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(kind, reason)
        self.kind = kind
        self.reason = reason


class SourceTypeError(SourceError):
    """A source, or a part of it, of a type that cannot be stored."""

    def __init__(self, reason: str) -> None:
        super().__init__("source", reason)


# The meaning of an error number for an object, and what to do.
_REFUSALS = {
    errno.ENOSPC: ("no-space", "free disk space and run the command again"),
    errno.EDQUOT: ("no-space", "free disk space and run the command again"),
    errno.EROFS: ("permission", "mount the file system read-write"),
    errno.EACCES: ("permission", "run as a user with access"),
    errno.EPERM: ("permission", "run as a user with access"),
    errno.ENAMETOOLONG: ("bad-name", "use a shorter name"),
    errno.EEXIST: ("collision", "name collision (this file system may ignore case); rename one of the files"),
    errno.EXDEV: ("io-error", "objects on a file system that is mounted within the store cannot be changed"),
    errno.EILSEQ: ("bad-name", "rename the file; the file system does not allow this name"),
}


def refusal(error: OSError, path: str | bytes = b"", store: str | bytes = b"") -> tuple[str, str]:
    """Return the kind of :class:`ObjectError` for an error of the operating system, and its message with what to do.

    :param path: the file that the exception names, which the message does not repeat
    :param store: the store; the messages of one in object storage say what to do
    """
    kind, way_out = _REFUSALS.get(error.errno or 0, ("io-error", ""))
    name = decode_fs(encode_fs(error.filename)) if isinstance(error.filename, (str, bytes)) else ""
    above = decode_fs(encode_fs(path or store))
    repeats = name == decode_fs(encode_fs(path))
    if is_address(above):
        way_out = ""
        repeats = repeats or f"{above}/".startswith(f"{name}/")
    reason = error.strerror or str(error)
    if name and not repeats:
        reason = f"{quoted_path(name)}: {reason}"
    return kind, f"{reason}; {way_out}" if way_out else reason


# Errors that concern one object, not the whole store.
_OF_ONE = (errno.EACCES, errno.EPERM, errno.EEXIST, errno.ENAMETOOLONG)


def unrepaired(path: str | bytes, error: OSError) -> Problem:
    """Return the problem of one object or directory that a repair cannot change.

    :raises OSError: the error would stop every other change, too
    """
    if error.errno not in _OF_ONE:
        raise error
    return problem("unrepaired", path, refusal(error)[1])


def is_unsafe_name(name: bytes) -> bool:
    """Return whether a name, with ``/`` between directories, could point out of an object.

    On Windows, a backslash is a separator, and a colon follows a drive or precedes a stream of the file.
    """
    return _has_unsafe(name) is not None


class object_errors:
    """Turn errors of the operating system, of sources and of Python's stack into an :class:`ObjectError`.

    A context manager, but not a generator: with many small objects that would cost more than the work inside.
    """

    __slots__ = ("_identifier", "_store")

    def __init__(self, store: str | bytes, identifier: str | bytes) -> None:
        self._store = store
        self._identifier = identifier

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            return
        if isinstance(error, OSError):
            raise ObjectError(self._store, self._identifier, *refusal(error, store=self._store)) from error
        if isinstance(error, SourceError):
            kind = ObjectTypeError if isinstance(error, SourceTypeError) else ObjectError
            raise kind(self._store, self._identifier, error.kind, error.reason) from error
        if isinstance(error, RecursionError):  # walking a tree is recursive
            reason = "directories are nested too deeply; pack them into one file"
            raise ObjectError(self._store, self._identifier, "source", reason) from None
        if isinstance(error, BagError):  # raised by copying
            reason = f"{quoted_path(error.path)}: {error.reason}"
            raise ObjectError(self._store, self._identifier, "source", reason) from None


@contextmanager
def store_errors(store: str | bytes) -> Iterator[None]:
    """Turn an :class:`OSError` in a ``with`` block into a :class:`StoreError`; a broken pipe is not converted."""
    try:
        yield
    except BrokenPipeError:
        raise  # not a disk error: the reader of the problems closed the pipe
    except OSError as error:
        raise StoreError(store, refusal(error, store)[1]) from error


def check_identifier(identifier: object) -> None:
    """Check the type of an identifier.

    :raises TypeError: it is neither ``str`` nor ``bytes``
    """
    if not isinstance(identifier, (str, bytes)):
        raise TypeError(f"identifier: expected str or bytes, not {type(identifier).__name__}")
