"""What the commands on bags have in common: options, what they refuse, and how they end."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator

import click

from pressmark.cli.common.console import CallError, Failure, cause, one_line
from pressmark.errors import BagError, BagInvalidError
from pressmark.fs.names import is_inside
from pressmark.reports import Problem

__all__ = ["BAG", "JSON", "bag_errors", "problem_text", "refuse_inside", "refuse_missing"]

BAG = click.argument("bag", metavar="BAG", type=click.Path(path_type=bytes))
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object a problem, and last a summary.")


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
    if ledger is not None and is_inside(ledger, directory):
        raise CallError(f"--ledger {ledger}: it is in {os.fsdecode(directory)}; keep it elsewhere")


@contextlib.contextmanager
def bag_errors() -> Iterator[None]:
    """Tell what could not be read or written from what the call got wrong; a bag that is not valid passes."""
    try:
        yield
    except BagInvalidError:
        raise
    except BagError as error:
        # Where the operating system refused, it is the cause.
        raise (Failure if isinstance(error.__cause__, OSError) else CallError)(str(error)) from None
