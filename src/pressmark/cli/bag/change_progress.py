"""Shared by the commands that create, update or complete a bag: progress, and the message of an interruption."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from pressmark.bagit.changes import Notice
from pressmark.cli.common.console import problem_text
from pressmark.cli.common.progress import Reporter
from pressmark.errors import BagError
from pressmark.fixity.copying import Copying
from pressmark.reports import ERROR, Problem, Progress

if TYPE_CHECKING:
    from pressmark.fixity.ledger import Ledger

__all__ = ["STAGES", "Listener", "interruption_message"]

STAGES = {
    "examine": "checking all names",
    "hash": "hashing",
    "copy": "copying",
    "pack": "packing",
    "unpack": "unpacking",
    "fetch": "downloading",
    "check": "checking for concurrent changes",
    "tag": "writing tag files",
    "move": "moving everything into place",
    "recover": "finishing an interrupted run",
}


class Listener:
    """Receives the events of an operation on a bag: shows progress, and prints a line for each problem.

    :param on_problem: called with each problem; by default, problems are printed to standard error
    :param place: prepended to the paths of problems that are printed

    :ivar mode: how files were copied; empty if no file was copied
    :ivar wrote: whether the run began to write, after it had checked all names
    :ivar moved: whether anything was changed, by this run or by finishing an interrupted one
    :ivar read: the last progress of reading
    :ivar excluded: number of files and directories that are left out
    """

    def __init__(
        self, reporter: Reporter, on_problem: Callable[[Problem], object] | None = None, *, place: bytes = b""
    ) -> None:
        self.mode = ""
        self.wrote = self.moved = False
        self.read = Progress()
        self.excluded = 0
        self._stage = ""
        self._reporter = reporter
        self._on_problem = on_problem or self._say
        self._place = place

    def __call__(self, event: object) -> None:
        if isinstance(event, Progress):
            if event.stage != self._stage:
                self._stage = event.stage
                self.wrote |= event.stage != "examine"
                self.moved |= event.stage in ("move", "recover")
            if event.items:
                self.read = event
            self._reporter.on_event(event)
        elif isinstance(event, Notice):
            self.excluded += event.problem.kind == "excluded"
            self._on_problem(event.problem)
        elif isinstance(event, Copying):
            self.mode = event.mode
            if event.mode != "copy":
                # Links and clones take no time; reading does.
                self._reporter.stages["copy"] = STAGES["hash"]

    def _say(self, problem: Problem) -> None:
        (self._reporter.fail if problem.severity == ERROR else self._reporter.report)(
            problem_text(problem, self._place)
        )


def interruption_message(directory: bytes, ledger: Ledger | None) -> str:
    """Return the message of an interrupted change of a directory."""
    from pressmark.bagit.changes.bag_changes import is_decided  # only an interruption needs it

    try:
        if is_decided(os.path.realpath(directory)):
            return "interrupted; run the same command again to finish the change"
    except BagError as error:
        return f"interrupted; the state of the change is unknown: {error}"
    if ledger is None:
        return "interrupted; nothing was changed; run the same command again"
    return f"interrupted; nothing was changed; run the same command again to continue from {ledger.name}"
