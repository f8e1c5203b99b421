"""Common options of the commands that read many files."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import click

from pressmark import fixity
from pressmark.cli.common.progress import PROGRESS

__all__ = [
    "ALGORITHM",
    "LEDGER",
    "READ",
    "THREADS",
    "complete_algorithms",
    "interruption_message",
    "ledger_counts",
    "ledger_words",
    "open_ledger",
    "output_files",
    "parse_algorithms",
    "run_options",
]

Function = TypeVar("Function", bound=Callable[..., Any])


def complete_algorithms(_context: click.Context, _parameter: click.Parameter, start: str) -> list[str]:
    """Return the algorithms that can end ``start``, a list with commas, for the shell."""
    before, comma, name = start.rpartition(",")
    return [before + comma + one for one in fixity.ALGORITHMS if one.startswith(name)]


ALGORITHM = click.option(
    "--algorithm",
    "-a",
    "algorithms",
    metavar="NAME[,NAME]...",
    multiple=True,
    shell_complete=complete_algorithms,
    help="Algorithms to compute in one read; repeatable. Names as in OCFL or BagIt: md5, sha1, sha224,"
    " sha256, sha384, sha512, sha512/256, sha3-224 to sha3-512, blake2b-160, -256, -384, -512, blake2s, blake3, xxh32,"
    " xxh64, xxh3-64, xxh128.",
)
LEDGER = click.option(
    "--ledger",
    metavar="LEDGER",
    type=click.Path(readable=False, dir_okay=False),
    help="Record finished files in the file LEDGER. The same command with the same LEDGER skips files whose size,"
    " times and inode have not changed.",
)
THREADS = click.option(
    "--threads",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    help="Number of threads (default 0: one per core). The output does not depend on it.",
)
READ = click.option(
    "--read",
    type=click.Choice(["parallel", "sequential"]),
    default="parallel",
    show_default=True,
    help="Read several files at a time, or one at a time, which is faster on spinning disks. The output does not"
    " depend on it.",
)


def run_options(function: Function) -> Function:
    """Add the options of a run over many files."""
    for option in (PROGRESS, READ, THREADS, LEDGER, ALGORITHM):
        function = option(function)
    return function


def parse_algorithms(given: Sequence[str]) -> tuple[str, ...]:
    """Return the official names of the algorithms given with ``-a``; empty without ``-a``."""
    names = [name for part in given for name in part.split(",")]
    return fixity.algorithm_names(names) if names else ()


def open_ledger(path: str | None, algorithms: Sequence[str], roots: Sequence[str | bytes]) -> fixity.Ledger | None:
    """Open the ledger at ``path``, if given."""
    return None if path is None else fixity.Ledger(path, algorithms, roots)


def interruption_message(ledger: fixity.Ledger | None) -> str:
    """Return the message of an interrupted run."""
    if ledger is None:
        return "interrupted; use --ledger FILE to make a run resumable"
    return f"interrupted; run the same command to continue from {ledger.name}"


def ledger_counts(ledger: fixity.Ledger | None) -> dict[str, Any]:
    """Return what a summary contains about a ledger: the numbers of files that were read, and that it listed."""
    if ledger is None:
        return {}
    return {"read": ledger.added, "from_ledger": ledger.found, "ledger_since": ledger.since or None}


def ledger_words(ledger: fixity.Ledger | None) -> list[str]:
    """Return the same in words, in a list, to be joined with other figures; empty if all files were read."""
    if ledger is None or not ledger.found:
        return []
    return [f"{ledger.added:,} read", f"{ledger.found:,} from the ledger (since {ledger.since})"]


def output_files(output: str | None = None) -> Iterator[tuple[int, int]]:
    """Yield device and inode of the files that the run writes: the output file, with temporary files of interrupted
    runs next to it, and the files that stdout and stderr are redirected to.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # closed, or not a real file
            status = os.fstat(stream.fileno())
            if stat.S_ISREG(status.st_mode):
                yield status.st_dev, status.st_ino
    if output is None or output == "-":
        return
    target = os.path.realpath(output)
    try:
        with os.scandir(os.path.dirname(target)) as entries:
            for entry in entries:
                ours = entry.name.startswith(".pressmark-") and entry.name.endswith(".tmp")
                if ours or entry.name == os.path.basename(target):
                    status = entry.stat()
                    yield status.st_dev, status.st_ino
    except OSError:
        return  # opening it reports the error
