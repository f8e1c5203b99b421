"""Errors of the operating system, and of staging directories, as :class:`~pressmark.errors.BagError`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pressmark.errors import BagError
from pressmark.fs.owners import UntrustedError
from pressmark.fs.staging import StagingDirectory

__all__ = ["RUN_AGAIN", "enter_staging", "refusing"]

RUN_AGAIN = "run the same command again"


@contextlib.contextmanager
def refusing(path: str | bytes, advice: str = "") -> Iterator[None]:
    """Turn an :class:`OSError` into a :class:`BagError` about the file it names, or about ``path``.

    :param advice: appended to the message
    """
    try:
        yield
    except OSError as error:
        named = error.filename if isinstance(error.filename, (str, bytes)) else path
        reason = error.strerror or str(error)
        raise BagError(named, f"{reason}; {advice}" if advice else reason) from error


def enter_staging(
    staging: bytes, base: bytes, *, holds: frozenset[bytes] | None = None, shared: bool = False
) -> StagingDirectory:
    """Create the staging directory of a change of ``base``, or take over that of a killed run, and lock it.

    :param holds: passed to :class:`~pressmark.fs.staging.StagingDirectory`, as is ``shared``
    :raises BagError: it cannot be created, another run holds it, or another user could have created or filled it
    :raises OSError: its lock cannot be created
    """
    try:
        return StagingDirectory(staging, holds=holds, shared=shared)
    except BlockingIOError:
        raise BagError(base, "in use by another run; wait for it to finish") from None
    except UntrustedError as error:
        raise BagError(error.filename, error.reason) from None
    except OSError as error:
        if error.filename != staging:
            raise
        # The user does not know the hidden name, but the directory that would contain it.
        raise BagError(base, f"cannot write to this directory: {error.strerror or error}") from error
