"""Options that require others, and options that exclude each other; checked before a command does anything.

What depends on the value of an option is checked by the command, or by the call of the API that it makes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import click
from click.core import ParameterSource

from pressmark.cli.common.console import CallError

__all__ = ["RULES", "Excludes", "Requires", "Rule", "check_options"]


class Requires(NamedTuple):
    """An option that requires another one.

    :ivar option: its name; a positional argument has that of its help, such as ``SOURCE``
    :ivar others: names, separated by spaces: one of them must be given
    :ivar why: the reason, or what to do; may be empty
    """

    option: str
    others: str
    why: str = ""

    def broken(self, options: set[str]) -> str | None:
        """Return the error message for a call with these options; :data:`None` if it keeps the rule."""
        others = self.others.split()
        if self.option not in options or options.intersection(others):
            return None
        return f"{self.option} requires {' or '.join(others)}{self.why and '; '}{self.why}"


class Excludes(NamedTuple):
    """An option that excludes others.

    :ivar option: as for :class:`Requires`; several names, separated by spaces, have the same rule
    :ivar others: names, separated by spaces: none of them may be given
    :ivar why: the reason
    """

    option: str
    others: str
    why: str

    def broken(self, options: set[str]) -> str | None:
        """Return the error message for a call with these options; :data:`None` if it keeps the rule."""
        option, other = (
            next((name for name in names.split() if name in options), None) for names in (self.option, self.others)
        )
        if option is None or other is None:
            return None
        return f"{other}: not supported with {option}, because {self.why}; omit one of them"


Rule = Requires | Excludes

_FETCHED = (
    "SOURCE --fetch-base --copy-mode --ledger --nested --links --exclude --exclude-junk --one-file-system"
    " --delete-excluded"
)
_ROWS = "SOURCE --fetch --fetch-base --ledger --delete-excluded"
_OF_TABLE = "--column --name-column --archive --format --delimiter"
_WORKERS = "--workers --dask"
_ONE_KIND = Excludes("--workers", "--dask", "a run has one kind of workers")
_BY_WORKERS = (_ONE_KIND, Requires("--work", _WORKERS), Requires("--resume", _WORKERS))
_ONE_THREAD = Excludes(_WORKERS, "--threads", "each worker has one thread")
_LEDGER = Excludes(_WORKERS, "--ledger", "a run of workers is resumed with --work and --resume")
_READ = Excludes(_WORKERS, "--read", "workers read several files at the same time")
_SELECTION = (
    Requires("--crlf", "--from"),
    Excludes("--match", "IDENTIFIER --from", "each way selects objects"),
    Excludes("--from", "IDENTIFIER", "each way selects objects"),
)

#: By command.
RULES: Mapping[str, tuple[Rule, ...]] = {
    "bag create": (
        Requires("--manifest", "--fetch", "specify the list of the files"),
        Requires("--fetch", "--manifest", "specify the checksums of the files"),
        Excludes("--fetch", _FETCHED, "no file is read"),
        Excludes("--fetch", "--profile", "the lists decide the algorithms"),
        Excludes("--table", _ROWS, "each row has its own source and destination"),
        Excludes("--archive", "--copy-mode", "an archive contains copies"),
        Requires("--table", "-o", "specify the directory of the bags"),
        *(Requires(name, "--table") for name in _OF_TABLE.split()),
        Requires("--fetch", "-o", "a bag in place would contain no file"),
        Requires("--fetch-base", "-o", "specify a new directory"),
        Excludes("--fetch-base", "--copy-mode", "nothing is copied"),
        Requires("--copy-mode", "-o", "without -o, nothing is copied"),
        Requires("--timestamps", "-o", "without -o, the files are moved as they are"),
        Excludes("-o", "--ledger", "copying reads all files"),
        Requires("--delete-excluded", "--exclude --exclude-junk"),
        Excludes("-o", "--delete-excluded", "SOURCE is not changed"),
        Requires("--one-file-system", "-o", "a bag in place contains the whole directory"),
    ),
    "bag validate": (*_BY_WORKERS, _LEDGER, _ONE_THREAD, _READ),
    "hash": (
        *_BY_WORKERS,
        _LEDGER,
        _ONE_THREAD,
        _READ,
        Requires("--null", "--from"),
        Requires("--crlf", "--from"),
        Excludes("--from", "PATH", "FILE lists all files"),
        Excludes("--from", _WORKERS, "a run of workers is resumed by its PATHs"),
    ),
    "migrate": (
        _ONE_KIND,
        Excludes("--dry-run", "--report", "there is nothing to report"),
        Requires("--column", "--ids"),
        Requires("--crlf", "--ids"),
        Excludes("--catch-up", "--ids", "--catch-up covers all objects"),
        Excludes("--verify-again", "--ids --map", "--verify-again covers all objects"),
        Excludes("--verify-again", "--message --user --user-address", "nothing is written"),
    ),
    "store audit": (*_SELECTION, Requires("--null", "--from")),
    "store check": (
        *_BY_WORKERS,
        _ONE_THREAD,
        *_SELECTION,
        Requires("--null", "--from"),
        Excludes(_WORKERS, "IDENTIFIER --from --match", "workers check the whole store"),
    ),
    "store get": (
        Requires("--from", "-o", "specify the directory of the copies: -o DIR"),
        Requires("--match", "-o", "specify the directory of the copies: -o DIR"),
        *_SELECTION,
        Requires("--null", "-o", "only with several objects, a list is read and printed"),
    ),
    "store ls": (*_SELECTION,),
    "store put": (
        *_BY_WORKERS,
        Requires("--crlf", "--from"),
        Excludes(_WORKERS, "IDENTIFIER", "workers store the objects of a list"),
        Excludes("--from", "--created", "the objects of a list have the time when they are stored"),
    ),
    "store repair": (Requires("IDENTIFIER", "--from", "omit it to repair the whole store"),),
    "store rm": (Requires("--crlf", "--from"),),
    "store upgrade": (*_SELECTION,),
    "verify": (
        Requires("--exclude", "--root", "without --root, there is no search for new files"),
        Requires("--exclude-junk", "--root", "without --root, there is no search for new files"),
        Requires("--one-file-system", "--root", "without --root, there is no search for new files"),
        Requires("--read-new", "--root", "without --root, there is no search for new files"),
        Requires("--update", "--root", "specify the directory that names are relative to; new files in it are added"),
        Requires("--drop-missing", "--update"),
        Requires("-o", "--update"),
        Excludes("--update", "--ignore-missing", "missing files keep their lines"),
    ),
}


def check_options(context: click.Context) -> None:
    """Check the options of a call against :data:`RULES`.

    :raises CallError: they break one
    """
    _program, _, command = context.command_path.partition(" ")
    rules = RULES.get(command)
    if rules:
        options = set(_named_options(context))
        for rule in rules:
            message = rule.broken(options)
            if message is not None:
                raise CallError(message)


def _named_options(context: click.Context) -> Iterator[str]:
    """Yield the names of the options and arguments that were given on the command line."""
    for parameter in context.command.params:
        if context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE:
            if isinstance(parameter, click.Argument):
                yield (parameter.metavar or "").strip("[].")
            yield from parameter.opts
