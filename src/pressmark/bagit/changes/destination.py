"""The destination of a new bag or archive, which is written in a hidden directory beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pressmark.bagit.changes import as_bag_error, refusing
from pressmark.buckets.address import is_address
from pressmark.errors import BagError, quoted_path
from pressmark.fs.durable import can_flush_filesystem, exists, flush_directory, flush_filesystem
from pressmark.fs.staging import NewPath, StagingDirectory

__all__ = [
    "checked_destination",
    "enclosing_bag",
    "flush_staging",
    "new_path",
    "publish",
    "refuse_existing",
    "refuse_in_bag",
]


def checked_destination(path: bytes) -> bytes:
    """Return the absolute path of a destination.

    :raises BagError: it is empty, or an address
    """
    if is_address(path):
        raise BagError(path, "not supported in object storage; use a local path")
    if not path:  # abspath would return the working directory
        raise BagError(path, "destination is empty; specify a new file or directory")
    return os.path.abspath(path)


@contextmanager
def new_path(destination: bytes, names: Sequence[bytes], advice: str) -> Iterator[NewPath]:
    """Enter the hidden directory of a new file or directory; its errors become errors of the bag.

    :param destination: an absolute path
    :param names: the names that a run may leave in the directory
    :param advice: appended to the errors of the operating system
    :raises BagError: the destination exists and no run was interrupted, or its parent is not a directory
    """
    with refusing(destination):
        try:
            hidden = NewPath(destination, names)
        except OSError as error:
            raise _refusal(error, destination) from error.__cause__
    with refusing(destination, advice), hidden, _by_name(hidden):
        yield hidden


def _refusal(error: OSError, destination: bytes) -> BagError:
    parent = os.path.dirname(destination)
    if isinstance(error, FileExistsError) and error.filename == destination:
        return BagError(destination, "destination already exists; choose another name")
    if error.filename == parent and isinstance(error, (FileNotFoundError, NotADirectoryError)):
        is_file = isinstance(error, NotADirectoryError)
        return BagError(parent, "not a directory" if is_file else "directory not found; create it first")
    return as_bag_error(error, NewPath.beside(destination), destination)


def refuse_existing(destination: bytes) -> None:
    """Refuse a destination that exists.

    :raises BagError: it exists
    """
    if exists(destination):
        raise BagError(destination, "destination already exists; choose another name")


def enclosing_bag(directory: bytes) -> bytes | None:
    """Return the bag that a directory is, or is inside of; :data:`None` without one.

    :param directory: an absolute path
    """
    while not os.path.isfile(os.path.join(directory, b"bagit.txt")):
        below, directory = directory, os.path.dirname(directory)
        if directory == below:
            return None
    return directory


def refuse_in_bag(directory: bytes) -> None:
    """Refuse a directory for new bags that is a bag, or is inside one: its manifests would not list them.

    :raises BagError: it is
    """
    if (bag := enclosing_bag(os.path.realpath(directory))) is not None:
        raise BagError(directory, f"destination is inside the bag {quoted_path(bag)}; choose another destination")


def publish(hidden: StagingDirectory, name: bytes, destination: bytes, noun: str) -> None:
    """Move a flushed file or directory from the hidden directory to its destination.

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


@contextmanager
def _by_name(hidden: StagingDirectory) -> Iterator[None]:
    """Replace the internal path of the hidden directory in errors of the bag by its name."""
    try:
        yield
    except BagError as error:
        path = os.fsencode(error.path)
        if hidden.shown(path) == path:
            raise
        raise BagError(hidden.shown(path), error.reason) from error
