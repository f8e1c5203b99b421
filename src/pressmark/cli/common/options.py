"""The options that several commands share, each defined once, and what their values mean."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pressmark import fixity
from pressmark.cli.common.console import CallError
from pressmark.cli.common.program import OptionalValue

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


__all__ = [
    "ALGORITHM",
    "CRLF",
    "LEDGER",
    "ONE_FILE_SYSTEM",
    "PROGRESS",
    "READ",
    "THREADS",
    "ByteSize",
    "Duration",
    "Seconds",
    "WholeNumber",
    "check_globs",
    "complete_algorithms",
    "complete_layouts",
    "crlf_option",
    "digests_option",
    "exclude_options",
    "globs_to_exclude",
    "interruption_message",
    "job_options",
    "json_option",
    "ledger_counts",
    "ledger_words",
    "links_option",
    "null_option",
    "open_ledger",
    "output_files",
    "parse_algorithms",
    "run_options",
    "worker_options",
]

Function = TypeVar("Function", bound=Callable[..., Any])


class WholeNumber(click.IntRange):
    """A whole number of at least ``min``; an error says so."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a whole number of {self.min} or more", param, ctx)


class Seconds(click.FloatRange):
    """A positive number of seconds, of at most ``max``; an error says so."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a number of seconds above 0, at most {self.max:g}", param, ctx)


class Duration(click.types.FloatParamType):
    """A number of seconds, with a unit, such as ``90m`` or ``6h``."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number of seconds."""
        number = 0.0 if value == "0" else _quantity(value, {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800})
        if number is None or number > 1e11:  # 3,000 years
            what = "is not a duration; specify a number with a unit (s, m, h, d, w), such as 6h"
            self.fail(f"{value!r} {what}", param, ctx)
        return number


class ByteSize(click.types.IntParamType):
    """A number of bytes, which may have a unit, such as ``2T`` or ``500GiB``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number of bytes."""
        units = {"": 1, "B": 1}
        for power, letter in enumerate("KMGTP", 1):
            units.update({f"{letter}{end}": 1000**power for end in ("", "B")})
            units.update({f"{letter}i{end}": 1024**power for end in ("", "B")})
        number = _quantity(value, units)
        if number is None:
            self.fail(f"{value!r} is not a size; specify a number of bytes, or with a unit, such as 2T", param, ctx)
        return int(number)


def _quantity(value: str, units: Mapping[str, int]) -> float | None:
    """Return the value of a number with a unit; :data:`None` if it is something else."""
    found = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,12})?) ?([A-Za-z]*)", value)
    unit = None if found is None else units.get(found[2])
    return None if found is None or unit is None else float(found[1]) * unit


def digests_option(meaning: str) -> Callable[[Function], Function]:
    """Add ``--digests``, which is ``--digests=read`` without a value."""

    class Digests(OptionalValue):
        value = "read"

    return click.option("--digests", cls=Digests, type=click.Choice(["read", "stored"]), help=meaning)


PROGRESS = click.option(
    "--progress/--quiet",
    " /--no-progress",
    " /-q",
    "progress",
    default=None,
    help="Show or hide progress on stderr (default: show, unless data are printed to the terminal). With --quiet,"
    " nothing is written to stderr unless something fails.",
)


def json_option(of: str) -> Callable[[Function], Function]:
    """Add ``--json``.

    :param of: what a JSON object stands for
    """
    return click.option("--json", "as_json", is_flag=True, help=f"Print one JSON object per {of}, then a summary.")


def links_option(choices: Sequence[str], meaning: str) -> Callable[[Function], Function]:
    """Add ``--links``.

    :param choices: its values; the first is the default
    """
    return click.option("--links", type=click.Choice(choices), default=choices[0], show_default=True, help=meaning)


def null_option(meaning: str) -> Callable[[Function], Function]:
    """Add ``--null``."""
    return click.option("--null", "-0", is_flag=True, help=meaning)


def crlf_option(items: str) -> Callable[[Function], Function]:
    """Add ``--crlf``.

    :param items: the items of the list, in the plural
    """
    return click.option(
        "--crlf",
        type=click.Choice(["strip", "keep"]),
        help="For lists with carriage returns before line feeds or byte-order marks at the start of lines: strip both,"
        f" or keep them as part of the {items}. Default: refuse such a list.",
    )


CRLF = crlf_option("identifiers")


def complete_layouts(_context: click.Context, _parameter: click.Parameter, start: str) -> list[CompletionItem]:
    """Return the names and aliases of layouts that begin with ``start``, for the shell."""
    from click.shell_completion import CompletionItem

    from pressmark.layouts import list_layouts  # loads all of them

    named = [(name, one.summary) for one in list_layouts() for name in (one.alias, one.name) if name]
    return [CompletionItem(name, help=summary) for name, summary in named if name.startswith(start)]


# --- many files -------------------------------------------------------------------------------------------------------


def check_globs(context: click.Context, parameter: click.Parameter, globs: tuple[str, ...]) -> tuple[str, ...]:
    """Return the globs of a call, after checking that each can match a name."""
    if globs and not context.resilient_parsing:
        from pressmark.fs.names import glob_matcher  # few calls have globs

        try:
            glob_matcher(globs)
        except ValueError as error:
            raise CallError(f"{parameter.opts[0]} {error}") from None
    return globs


def exclude_options(function: Function) -> Function:
    """Add ``--exclude`` and ``--exclude-junk``; :func:`globs_to_exclude` takes their values."""
    for option in (
        click.option(
            "--exclude-junk",
            is_flag=True,
            help="Leave out the files that macOS and Windows add: .DS_Store, Thumbs.db, desktop.ini, ._* and __MACOSX.",
        ),
        click.option(
            "--exclude",
            metavar="GLOB",
            multiple=True,
            callback=check_globs,
            help="Leave out files and directories with matching names, at any depth, and list them; repeatable.",
        ),
    ):
        function = option(function)
    return function


ONE_FILE_SYSTEM = click.option(
    "--one-file-system",
    is_flag=True,
    help="Leave out directories on other file systems, such as mount points, and list them.",
)


def globs_to_exclude(exclude: tuple[str, ...], exclude_junk: bool) -> tuple[str, ...]:
    """Return all globs of a call."""
    if not exclude_junk:
        return exclude
    from pressmark.fs.names import JUNK  # few calls leave out anything

    return (*exclude, *JUNK)


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
    type=WholeNumber(min=0),
    default=0,
    callback=lambda _context, _parameter, value: value or None,
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


def gathered(name: str, kind: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a command receive the values of several parameters as one.

    :param name: the parameter of the command
    :param kind: the class of its value, whose fields are those parameters
    """

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def command(*arguments: Any, **call: Any) -> Any:
            value = kind(**{field: call.pop(field) for field in kind.__annotations__ if field in call})
            return function(*arguments, **call, **{name: value})

        return command

    return add


def run_options(function: Function) -> Function:
    """Add the options of a run over many files."""
    for option in (PROGRESS, READ, THREADS, LEDGER, ALGORITHM):
        function = option(function)
    return function


def parse_algorithms(values: Sequence[str]) -> tuple[str, ...]:
    """Return the official names of the algorithms given with ``-a``; empty without ``-a``."""
    names = [name for part in values for name in part.split(",")]
    return fixity.algorithm_names(names) if names else ()


def open_ledger(
    path: str | None, algorithms: Sequence[str], roots: Sequence[str | bytes]
) -> contextlib.AbstractContextManager[fixity.Ledger | None]:
    """Open the ledger at ``path`` for a ``with`` block; without a path, its value is :data:`None`."""
    return contextlib.nullcontext() if path is None else fixity.Ledger(path, algorithms, roots)


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


# --- workers ----------------------------------------------------------------------------------------------------------


_WORKER_OPTIONS = (
    click.option(
        "--workers",
        metavar="N",
        type=WholeNumber(min=0),
        help="Share the work among N processes; 0 for one per core.",
    ),
    click.option(
        "--dask",
        metavar="ADDRESS|FILE",
        help="Share the work among the workers of the Dask cluster whose scheduler is at ADDRESS, tcp://…, or wrote"
        " FILE (dask scheduler --scheduler-file FILE).",
    ),
)
_WORK = (
    "With --workers or --dask: keep plan, receipts and results in DIR until the run is complete. All workers must see"
    " DIR under this path. Default: {}a temporary directory, and the run cannot be resumed."
)
_RESUME = click.option(
    "--resume", is_flag=True, help="Continue the interrupted run in DIR; finished parts are not repeated."
)


def worker_options(function: Function) -> Function:
    """Add the options for workers."""
    for option in reversed(_WORKER_OPTIONS):
        function = option(function)
    return function


def job_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a run by workers; the command gets :class:`Workers` or :data:`None` as ``workers``."""

    @functools.wraps(function)
    def command(
        *arguments: Any,
        workers: int | None,
        dask: str | None,
        work: str | None,
        resume: bool,
        **call: Any,
    ) -> Any:
        if workers is None and dask is None:
            return function(*arguments, workers=None, **call)
        from pressmark.cli.common.workers import Workers

        with Workers(workers, dask, work, resume) as chosen:
            return function(*arguments, workers=chosen, **call)

    default = "with -o OUTPUT, OUTPUT.work; otherwise " if "output" in function.__annotations__ else ""
    work_option = click.option("--work", metavar="DIR", type=click.Path(file_okay=False), help=_WORK.format(default))
    return worker_options(work_option(_RESUME(command)))
