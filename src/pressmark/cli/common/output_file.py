"""The file of ``--output``: replaced when the result is complete. A pipe, device or open descriptor is written to."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import BinaryIO

from pressmark.cli.common.console import CallError, Failure, cause
from pressmark.fs.atomic import Replacement, is_stream, open_stream
from pressmark.fs.owners import require_replaceable, resolved

__all__ = ["opened_output", "output_status"]


def output_status(path: str) -> os.stat_result | None:
    """Return the status of the file that will be written; :data:`None` if it does not exist."""
    if not path:  # it would mean the working directory below
        raise CallError("output file name is empty; use - for standard output")
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None  # opening it decides
    except (OSError, ValueError) as error:
        raise CallError(f"{path}: {cause(error) if isinstance(error, OSError) else error}") from None


def opened_output(path: str) -> contextlib.AbstractContextManager[BinaryIO]:
    """Open the file ``path``; a regular file is replaced when the block ends."""
    if is_stream(path):  # or a directory, which fails
        return _written(path)
    return _replaced(path)


@contextlib.contextmanager
def _written(path: str) -> Iterator[BinaryIO]:
    try:
        file = open_stream(path)  # closing may fail a second time, which "with" would raise
    except OSError as error:
        raise CallError(f"{path}: {cause(error)}") from None
    try:
        yield file
    finally:
        # Everything was flushed, or an error is being raised already.
        with contextlib.suppress(OSError):
            file.close()


@contextlib.contextmanager
def _replaced(path: str) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` unless the block raises."""
    # The target of a symbolic link is replaced, not the link.
    try:
        target = resolved(path)
        status = require_replaceable(target)
    except OSError as error:
        raise CallError(f"{path}: {cause(error)}") from None
    if status is not None and not os.access(target, os.W_OK):
        raise CallError(f"{path}: write-protected; choose another output")
    new = Replacement(target, like=status)
    try:
        try:
            file = new.open()
        except FileNotFoundError as error:
            raise CallError(f"{path}: {cause(error)}; create its directory first") from None
        except OSError as error:
            raise CallError(f"{path}: {cause(error)}") from None
        yield file
        try:
            new.commit()
        except OSError as error:
            raise Failure(f"{path}: {cause(error)}") from None
    finally:
        new.abandon()
