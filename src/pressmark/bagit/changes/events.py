"""What a run that makes or changes a bag tells while it is at work, besides the fixity engine's own events."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pressmark.fixity.pool import Finished, Progress
from pressmark.reports import Problem

if TYPE_CHECKING:
    from pressmark.fixity.copying import Copying

__all__ = ["Event", "Notice", "Stage"]


class Stage(NamedTuple):
    """An event: the run begins with something else.

    :ivar name: ``examine`` the names, ``hash`` or ``copy`` the payload, ``tag``: write the tag files, ``check`` that
        nothing changed meanwhile, ``move`` everything to its place; ``recover``: an interrupted run was finished
    :ivar files: how many files it is about; :data:`None` where that is not known
    :ivar bytes: how many bytes these have
    """

    name: str
    files: int | None = None
    bytes: int | None = None


class Notice(NamedTuple):
    """An event: something is worth a warning, or, with the severity ``error``, is why the run will be refused."""

    problem: Problem


Event: TypeAlias = "Stage | Notice | Copying | Finished | Progress"
