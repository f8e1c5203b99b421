"""Events and errors of creating, updating and completing a bag; errors are :class:`~pressmark.errors.BagError`.

The events are sent in addition to those of the fixity engine.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pressmark.errors import BagError
from pressmark.fixity.outcomes import Progress
from pressmark.fs.file_errors import raising
from pressmark.fs.owners import UntrustedError
from pressmark.fs.staging import StagingDirectory
from pressmark.reports import Problem

if TYPE_CHECKING:
    from pressmark.fixity.copying import Copying

__all__ = ["RUN_AGAIN", "Event", "Notice", "Stage", "enter_staging", "refusing"]

RUN_AGAIN = "run the same command again"

#: Turns an :class:`OSError` into a :class:`BagError` about the file it names, or about ``path``.
refusing = partial(raising, BagError)


class Stage(NamedTuple):
    """An event: the start of a stage.

    :ivar name: ``examine`` the names, ``hash``, ``copy``, ``pack``, ``unpack`` or ``fetch`` the payload, ``read`` it
        from a server, ``tag``: write the tag files, ``check`` for concurrent changes, ``move`` everything into place;
        ``recover``: an interrupted run was finished
    :ivar files: number of files; :data:`None` if unknown
    :ivar bytes: size of these files; :data:`None` if unknown
    """

    name: str
    files: int | None = None
    bytes: int | None = None


class Notice(NamedTuple):
    """An event: a problem. Its severity is ``error`` if it prevents the change."""

    problem: Problem


Event: TypeAlias = "Stage | Notice | Copying | Progress"


def enter_staging(
    staging: bytes, base: bytes, *, holds: frozenset[bytes] | None = None, shared: bool = False
) -> StagingDirectory:
    """Create the staging directory of a change of ``base``, or take over the directory of a killed run, and lock it.

    :param holds: passed to :class:`~pressmark.fs.staging.StagingDirectory`, as is ``shared``
    :raises BagError: the directory cannot be created, another run holds it, or another user could have created it or
        written to it
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
        raise BagError(
            os.path.dirname(staging), f"cannot write to this directory: {error.strerror or error}"
        ) from error
