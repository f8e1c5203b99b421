"""Shared by the commands on bags: options, checks of arguments, and exit statuses."""

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
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per problem, then a summary.")


def problem_text(problem: Problem, bag: bytes = b"") -> str:
    """Return a problem as one line: severity, kind, path and message. ``bag`` is prepended to the path."""
    path = os.path.join(bag, problem.path) if problem.path else bag
    pieces = [problem.severity, problem.kind, *([os.fsdecode(path)] if path else []), problem.message]
    return ": ".join(map(one_line, pieces))


def refuse_missing(paths: Iterable[bytes], *, directories: bool = False) -> None:
    """Refuse missing files, or files that are not ``directories``, before anything is done."""
    for path in paths:
        try:
            if not stat.S_ISDIR(os.stat(path).st_mode) and directories:
                raise CallError(f"{os.fsdecode(path)}: not a directory")
        except OSError as error:
            raise CallError(f"{os.fsdecode(path)}: {cause(error)}") from None


def refuse_inside(ledger: str | None, directory: bytes) -> None:
    """Refuse a ledger inside the directory that is processed, where it would be one more file."""
    if ledger is not None and is_inside(ledger, directory):
        raise CallError(f"--ledger {ledger}: file is inside {os.fsdecode(directory)}; choose another place")


@contextlib.contextmanager
def bag_errors() -> Iterator[None]:
    """Turn a :class:`BagError` into a failure or a usage error; :class:`BagInvalidError` is not caught."""
    try:
        yield
    except BagInvalidError:
        raise
    except BagError as error:
        # Errors of the operating system are failures, others usage errors.
        raise (Failure if isinstance(error.__cause__, OSError) else CallError)(str(error)) from None
