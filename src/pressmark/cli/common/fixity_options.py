"""What the commands that read many files have in common."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import click

from pressmark import fixity

__all__ = [
    "ALGORITHM",
    "LEDGER",
    "PROGRESS",
    "READ",
    "THREADS",
    "interruption_message",
    "open_ledger",
    "output_files",
    "parse_algorithms",
    "run_options",
]

Function = TypeVar("Function", bound=Callable[..., Any])

ALGORITHM = click.option(
    "--algorithm",
    "-a",
    "algorithms",
    metavar="NAME[,NAME]...",
    multiple=True,
    help="Use these algorithms, all of them from one read; repeatable. Names as in OCFL or BagIt: md5, sha1, sha224,"
    " sha256, sha384, sha512, sha512/256, sha3-224 to sha3-512, blake2b-160, -256, -384, -512, blake2s, blake3, xxh32,"
    " xxh64, xxh3-64, xxh128.",
)
LEDGER = click.option(
    "--ledger",
    metavar="LEDGER",
    type=click.Path(readable=False, dir_okay=False),
    help="Keep a journal of finished files in the file LEDGER. The same call with the same LEDGER does not read those"
    " again that have kept size, time of modification and inode.",
)
THREADS = click.option(
    "--threads",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    help="Use N threads at most; 0, the default, for as many as there are cores. The output is the same.",
)
READ = click.option(
    "--read",
    type=click.Choice(["parallel", "sequential"]),
    default="parallel",
    show_default=True,
    help="Read several files at the same time, or one after another, which disks with moving heads prefer. The output"
    " is the same.",
)
PROGRESS = click.option(
    "--progress/--no-progress",
    default=None,
    help="Show or hide progress on stderr: a display on a terminal, elsewhere a line every 10 seconds. Default:"
    " show, unless the terminal shows the data.",
)


def run_options(function: Function) -> Function:
    """Add the options of a run over many files."""
    for option in (PROGRESS, READ, THREADS, LEDGER, ALGORITHM):
        function = option(function)
    return function


def parse_algorithms(given: Sequence[str]) -> tuple[str, ...]:
    """Return the official names of what ``-a`` was given; none where it was not."""
    names = [name for part in given for name in part.split(",")]
    return fixity.algorithm_names(names) if names else ()


def open_ledger(path: str | None, algorithms: Sequence[str], roots: Sequence[str | bytes]) -> fixity.Ledger | None:
    """Open the ledger ``path``, where one is wanted."""
    return None if path is None else fixity.Ledger(path, algorithms, roots)


def interruption_message(ledger: fixity.Ledger | None) -> str:
    """Return the last words of an interrupted run."""
    if ledger is None:
        return "interrupted; it begins anew next time (with --ledger FILE it would go on)"
    return f"interrupted; the same call goes on from {ledger.name}"


def output_files(output: str | None) -> Iterator[tuple[int, int]]:
    """Give device and inode of what a run writes, and an interrupted one left, where ``output`` is or will be."""
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
        return  # opening it says why
