"""What the commands on bags have in common: options, progress, and how they end."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator

import click

from pressmark.bagit.changes.events import Noticed, Stage
from pressmark.bagit.changes.transaction import is_decided
from pressmark.cli.common.console import CallError, Failure, cause, one_line
from pressmark.cli.common.file_progress import Tally
from pressmark.errors import BagError, BagInvalidError
from pressmark.fixity import Ledger, Progress
from pressmark.fixity.copying import Copying
from pressmark.reports import ERROR, Problem

__all__ = ["BAG", "JSON", "Listener", "bag_endings", "how_far", "problem_text", "refuse_inside", "refuse_missing"]

BAG = click.argument("bag", metavar="BAG", type=click.Path(path_type=bytes))
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object a problem, and last a summary.")

STAGES = {
    "examine": "looking at all names",
    "hash": "hashing",
    "copy": "copying",
    "fetch": "downloading",
    "check": "checking that nothing has changed meanwhile",
    "tag": "writing tag files",
    "move": "moving everything into place",
    "recover": "finishing an interrupted run",
}


class Listener:
    """Takes what a run on a bag tells: progress for the tally, a line for what was noticed.

    :param on_problem: called with what was noticed; without it, that is a line on standard error

    :ivar mode: how files came to the bag; empty where none did
    :ivar moved: whether anything was changed, in this run or when an interrupted one was finished
    :ivar read: what was read last
    """

    def __init__(self, tally: Tally, on_problem: Callable[[Problem], object] | None = None) -> None:
        self.mode = ""
        self.moved = False
        self.read = Progress(0, 0, 0)
        self._expected: int | None = None
        self._tally = tally
        self._on_problem = on_problem or self._say

    def __call__(self, event: object) -> None:
        if isinstance(event, Stage):
            self.moved |= event.name in ("move", "recover")
            self._expected = event.bytes
            self._tally.stage(STAGES[event.name], event.bytes)
        elif isinstance(event, Noticed):
            self._on_problem(event.problem)
        elif isinstance(event, Copying):
            self.mode = event.mode
            if event.mode != "copy":
                # Links and clones are made in no time; what takes long is reading.
                self._tally.stage(STAGES["hash"], self._expected)
        elif isinstance(event, Progress):
            self.read = event
            self._tally.on_event(event)

    def _say(self, problem: Problem) -> None:
        (self._tally.fail if problem.severity == ERROR else self._tally.tell)(problem_text(problem))


def problem_text(problem: Problem, bag: bytes = b"") -> str:
    """Return a problem on one line: severity, kind, path and message; ``bag`` is put before the path."""
    path = os.path.join(bag, problem.path) if problem.path else bag
    pieces = [problem.severity, problem.kind, *([os.fsdecode(path)] if path else []), problem.message]
    return ": ".join(map(one_line, pieces))


def refuse_missing(paths: Iterable[bytes], *, directories: bool = False) -> None:
    """Refuse what is not there, or is no directory where ``directories`` are wanted, before anything is done."""
    for path in paths:
        try:
            if not stat.S_ISDIR(os.stat(path).st_mode) and directories:
                raise CallError(f"{os.fsdecode(path)}: it is not a directory")
        except OSError as error:
            raise CallError(f"{os.fsdecode(path)}: {cause(error)}") from None


def refuse_inside(ledger: str | None, directory: bytes) -> None:
    """Refuse a ledger in the very directory that is worked on, where it would be one more file."""
    if ledger is not None:
        base = os.path.join(os.path.realpath(directory), b"")
        if os.path.realpath(os.fsencode(ledger)).startswith(base):
            raise CallError(f"--ledger {ledger}: it is in {os.fsdecode(directory)}; keep it elsewhere")


def how_far(directory: bytes, ledger: Ledger | None) -> str:
    """Return the last words of an interrupted change of a directory."""
    try:
        if is_decided(os.path.realpath(directory)):
            return "interrupted; the same call finishes it"
    except BagError as error:
        return f"interrupted; how far it came cannot be seen: {error}"
    if ledger is None:
        return "interrupted; nothing was changed"
    return f"interrupted; nothing was changed, and the same call goes on from {ledger.name}"


@contextlib.contextmanager
def bag_endings() -> Iterator[None]:
    """Tell what could not be read or written from what the call got wrong; a bag that is not valid passes."""
    try:
        yield
    except BagInvalidError:
        raise
    except BagError as error:
        # Where the operating system refused, it is the cause.
        raise (Failure if isinstance(error.__cause__, OSError) else CallError)(str(error)) from None
