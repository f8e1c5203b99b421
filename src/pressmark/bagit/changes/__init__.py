"""Events and errors of creating, updating and completing a bag; errors are :class:`~pressmark.errors.BagError`."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from pressmark.errors import BagError
from pressmark.fs.file_errors import raising
from pressmark.fs.owners import UntrustedError
from pressmark.reports import Problem, ProgressEvent

if TYPE_CHECKING:
    from pressmark.fixity.copying import Copying

__all__ = ["RUN_AGAIN", "Event", "Listener", "as_bag_error", "refusing", "with_stages"]

RUN_AGAIN = "run the same command again"

#: Turns an :class:`OSError` into a :class:`BagError` about the file it names, or about ``path``.
refusing = partial(raising, BagError)


#: What a change tells; a problem of severity ``error`` prevents the change. The stages of its progress are ``examine``
#: the names; ``hash``, ``copy``, ``pack``, ``unpack`` or ``fetch`` the payload; ``tag``: write the tag files; ``check``
#: for concurrent changes; ``move`` everything into place; and ``recover``: an interrupted run was finished.
Event: TypeAlias = "ProgressEvent | Problem | Copying"
Listener = Callable[[Event], object]


def with_stages(on_event: Listener | None) -> Listener:
    """Return a listener that adds the current stage and its totals to progress without a stage."""
    if on_event is None:
        return lambda _event: None
    stage = ProgressEvent()

    def report(event: Event) -> None:
        nonlocal stage
        if isinstance(event, ProgressEvent):
            if event.stage:
                stage = event
            else:
                event = event._replace(stage=stage.stage, of_items=stage.of_items, of_bytes=stage.of_bytes)
        on_event(event)

    return report


def as_bag_error(error: OSError, staging: bytes, base: bytes) -> BagError:
    """Return the error of entering the hidden directory of a change of ``base``.

    :param staging: the hidden directory
    """
    if isinstance(error, BlockingIOError):
        return BagError(base, "in use by another run; wait for it to finish")
    if isinstance(error, UntrustedError):
        return BagError(error.filename, error.reason)
    reason = error.strerror or str(error)
    if error.filename == staging:
        # The user does not know the hidden name, but the directory that would contain it.
        found = BagError(os.path.dirname(staging), f"cannot write to this directory: {reason}")
    else:
        found = BagError(error.filename if isinstance(error.filename, (str, bytes)) else base, reason)
    found.__cause__ = error
    return found
