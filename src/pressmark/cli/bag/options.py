"""Shared by the commands on bags: options, checks of arguments, and the progress of a change."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.writing.options import TIMESTAMPS
from pressmark.buckets.address import is_address
from pressmark.cli.common.console import CallError, problem_text
from pressmark.cli.common.files import open_source
from pressmark.cli.common.progress import Reporter
from pressmark.errors import BagError, quoted, quoted_path
from pressmark.fs.names import is_inside
from pressmark.progress_event import Progress
from pressmark.reports import ERROR, Problem, ProgressEvent

if TYPE_CHECKING:
    from pressmark.fixity.ledger import Ledger

__all__ = [
    "BAG",
    "STAGES",
    "Listener",
    "change_interrupted",
    "fetch_base_option",
    "info_options",
    "parse_elements",
    "parse_fetch_base",
    "refuse_inside",
    "timestamps_option",
]

Function = TypeVar("Function", bound=Callable[..., Any])

BAG = click.argument("bag", metavar="BAG", type=click.Path(path_type=bytes))


def fetch_base_option(meaning: str, **more: Any) -> Callable[[Function], Function]:
    """Add ``--fetch-base``; :func:`parse_fetch_base` reads its value."""
    return click.option("--fetch-base", metavar="URL", help=meaning, **more)


def parse_fetch_base(url: str) -> str:
    """Return the URL below which files are, with a slash at its end."""
    from pressmark.bagit.fetch.fetch_txt import base_url  # few commands need it
    from pressmark.bagit.fetch.urls import redacted_url

    try:
        return base_url(url)
    except ValueError as error:
        raise CallError(f"--fetch-base {redacted_url(url)}: {error}") from None


def timestamps_option(meaning: str) -> Callable[[Function], Function]:
    """Add ``--timestamps``."""
    return click.option(
        "--timestamps",
        type=click.Choice(TIMESTAMPS),
        help=f"{meaning} those of the files (keep), or the same for all copies of a bag: the time of Bagging-Date, and"
        " 644 and 755 (bagging-date). Default: keep, or bagging-date if SOURCE_DATE_EPOCH is set.",
    )


def refuse_inside(ledger: str | None, directory: bytes) -> None:
    """Refuse a ledger inside the directory that is processed, where it would be an additional file."""
    if ledger is not None and is_inside(ledger, directory):
        raise CallError(f"--ledger {ledger}: file is inside {quoted_path(directory)}; choose a file outside of it")


# --- elements of bag-info.txt -----------------------------------------------------------------------------------------


def info_options(meaning: str) -> Callable[[Function], Function]:
    """Add ``--info``, described by ``meaning``, and ``--info-file``; :func:`parse_elements` reads their values."""

    def added(function: Function) -> Function:
        for decorator in (
            click.option(
                "--info-file",
                metavar="FILE",
                type=click.Path(readable=False, allow_dash=True),
                help='Read elements from FILE, in the format of bag-info.txt ("-": standard input); --info adds to'
                " them. Payload-Oxum is ignored, because it is computed.",
            ),
            click.option("--info", "settings", metavar="LABEL=VALUE", multiple=True, help=f"{meaning} LABEL."),
        ):
            function = decorator(function)
        return function

    return added


def parse_elements(settings: Sequence[str], file: str | None) -> list[tuple[str, str]]:
    """Return the elements in ``file``, followed by those in ``settings``, each ``label=value``."""
    elements = [] if file is None else _read(file)
    for setting in settings:
        label, equals, value = setting.partition("=")
        if not (label and equals):
            raise CallError(f"--info {quoted(setting)}: expected LABEL=VALUE")
        try:
            BagInfo([(label, value)])
        except ValueError as error:
            raise CallError(f"--info {quoted(setting)}: {error}") from None
        if _is_counted(label):
            raise CallError(f"--info {quoted(setting)}: Payload-Oxum is computed; omit it")
        elements.append((label, value))
    return elements


def _read(file: str) -> list[tuple[str, str]]:
    with open_source(file) as source:
        data = b"".join(iter(source.read, b""))
    info, problems = BagInfo.parse(data, name=os.fsencode(source.name))
    for problem in problems:
        if problem.severity == "error":
            raise CallError(f"{source.name}: {problem.message}")
    # The file can be the bag-info.txt of another bag, with its Payload-Oxum.
    return [(label, value) for label, value in info.elements if not _is_counted(label)]


def _is_counted(label: str) -> bool:
    return label.lower() == "payload-oxum"


# --- progress ---------------------------------------------------------------------------------------------------------

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


class Listener(Progress):
    """Receives the events of an operation on a bag: shows progress, and prints a line for each problem.

    :param on_problem: called with each problem; by default, problems are printed to standard error
    :param directory: prepended to the paths of problems that are printed

    :ivar mode: how files were copied; empty if no file was copied
    :ivar wrote: whether the run began to write, after it had checked all names
    :ivar moved: whether anything was changed, by this run or by finishing an interrupted one
    :ivar read: the last progress of reading
    :ivar excluded: number of files and directories that are left out
    """

    def __init__(
        self, reporter: Reporter, on_problem: Callable[[Problem], object] | None = None, *, directory: bytes = b""
    ) -> None:
        from pressmark.fixity.copying import Copying  # few commands on bags change them

        super().__init__()
        self._copying = Copying
        self.mode = ""
        self.wrote = self.moved = False
        self.read = ProgressEvent()
        self.excluded = 0
        self._stage = ""
        self._reporter = reporter
        self._on_problem = on_problem or self._print
        self._directory = directory

    def __call__(self, event: object) -> None:
        if isinstance(event, ProgressEvent):
            if event.stage != self._stage:
                self._stage = event.stage
                self.wrote |= event.stage != "examine"
                self.moved |= event.stage in ("move", "recover")
            if event.items:
                self.read = event
            self._reporter.on_event(event)
        elif isinstance(event, Problem):
            self.excluded += event.kind == "excluded"
            self._on_problem(event)
        elif isinstance(event, self._copying):
            self.mode = event.mode
            if event.mode != "copy":
                # Links and clones take no time; reading does.
                self._reporter.stages["copy"] = STAGES["hash"]

    def _print(self, problem: Problem) -> None:
        (self._reporter.fail if problem.severity == ERROR else self._reporter.report)(
            problem_text(problem, self._directory)
        )


def change_interrupted(directory: bytes, ledger: Ledger | None) -> str:
    """Return the message of an interrupted change of a directory."""
    from pressmark.bagit.changes.bag_changes import is_decided  # only an interruption needs it

    if is_address(directory):
        return "interrupted; no bag was created; run the same command again to continue"
    try:
        if is_decided(os.path.realpath(directory)):
            return "interrupted; run the same command again to finish the change"
    except BagError as error:
        return f"interrupted; the state of the change is unknown: {error}"
    if ledger is None:
        return "interrupted; nothing was changed; run the same command again"
    return f"interrupted; nothing was changed; run the same command again to continue from {ledger.name}"
