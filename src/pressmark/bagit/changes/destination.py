"""The staging directory of a new bag or archive: hidden, beside its destination."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from pressmark.bagit.changes import as_bag_error, refusing
from pressmark.errors import BagError
from pressmark.fs.durable import can_flush_filesystem, exists, flush_directory, flush_filesystem
from pressmark.fs.staging import StagingDirectory

__all__ = ["checked_destination", "empty_staging", "flush_staging", "publish", "refuse_existing", "staging_of"]


def checked_destination(path: bytes) -> bytes:
    """Return the absolute path of a destination.

    :raises BagError: it is empty
    """
    if not path:  # abspath would return the working directory
        raise BagError(path, "destination is empty; specify a new file or directory")
    return os.path.abspath(path)


@contextmanager
def staging_of(destination: bytes, names: Sequence[bytes], advice: str) -> Iterator[StagingDirectory]:
    """Enter the staging directory of a new file or directory; afterwards remove everything in it.

    Its name depends on the destination only, so the next run finds the directory of a killed run. Errors name the
    hidden directory as the user sees it.

    :param destination: an absolute path
    :param names: the names that a run may leave in the directory
    :param advice: appended to the errors of the operating system
    :raises BagError: the destination exists and no run was interrupted, or its parent is not a directory
    """
    parent, name = os.path.split(destination)
    staging = os.path.join(parent, b".pressmark-%b.tmp" % hashlib.sha256(name).hexdigest()[:16].encode())
    with refusing(destination):
        if not exists(staging):
            refuse_existing(destination)
        if not os.path.isdir(parent):
            raise BagError(parent, "not a directory" if exists(parent) else "directory not found; create it first")
    try:
        hidden = StagingDirectory(staging, holds=frozenset(names))
    except OSError as error:
        refused = as_bag_error(error, staging, destination)
        raise refused from refused.__cause__
    try:
        with refusing(destination, advice), _by_name(hidden):
            yield hidden
    finally:
        _leave(hidden, names)


def refuse_existing(destination: bytes) -> None:
    """Refuse a destination that exists.

    :raises BagError: it exists
    """
    if exists(destination):
        raise BagError(destination, "destination already exists; choose another name")


def empty_staging(hidden: StagingDirectory, names: Sequence[bytes]) -> None:
    """Remove the files of an unfinished run.

    :raises OSError: a file or directory cannot be removed
    """
    for name in names:
        hidden.remove(name)


def publish(hidden: StagingDirectory, name: bytes, destination: bytes, noun: str) -> None:
    """Move a flushed file or directory from the staging directory to its destination.

    :param noun: for an error
    :raises BagError: the destination exists
    :raises OSError: it cannot be moved
    """
    refuse_existing(destination)
    hidden.publish(name, destination)
    with refusing(destination, f"the {noun} is complete, but a power failure can still remove its name"):
        flush_directory(os.path.dirname(destination))


def flush_staging(hidden: StagingDirectory) -> None:
    """Write all files to disk, with a single call.

    :raises OSError: they cannot be written
    """
    if can_flush_filesystem():
        flush_filesystem(hidden.inside)
    elif hasattr(os, "sync"):
        os.sync()


def _leave(hidden: StagingDirectory, names: Sequence[bytes]) -> None:
    with suppress(OSError):  # the next run removes the rest
        empty_staging(hidden, names)
    hidden.leave()


@contextmanager
def _by_name(hidden: StagingDirectory) -> Iterator[None]:
    """Replace the internal path of the hidden directory in errors by its name."""
    try:
        yield
    except OSError as error:
        if isinstance(error.filename, (str, bytes)):
            error.filename = hidden.shown(error.filename)
        raise
    except BagError as error:
        path = os.fsencode(error.path)
        if hidden.shown(path) == path:
            raise
        raise BagError(hidden.shown(path), error.reason) from error
