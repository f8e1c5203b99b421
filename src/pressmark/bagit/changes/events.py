"""Events of creating, updating and completing a bag, in addition to those of the fixity engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pressmark.fixity.pool import Finished, Progress
from pressmark.reports import Problem

if TYPE_CHECKING:
    from pressmark.fixity.copying import Copying

__all__ = ["Event", "Notice", "Stage"]


class Stage(NamedTuple):
    """An event: the start of a stage.

    :ivar name: ``examine`` the names, ``hash``, ``copy`` or ``fetch`` the payload, ``tag``: write the tag files,
        ``check`` for concurrent changes, ``move`` everything into place; ``recover``: an interrupted run was finished
    :ivar files: number of files; :data:`None` if unknown
    :ivar bytes: size of these files; :data:`None` if unknown
    """

    name: str
    files: int | None = None
    bytes: int | None = None


class Notice(NamedTuple):
    """An event: a problem. Its severity is ``error`` if it prevents the change."""

    problem: Problem


Event: TypeAlias = "Stage | Notice | Copying | Finished | Progress"
