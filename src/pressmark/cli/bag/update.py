"""``pressmark bag update``: change a bag; damaged files never get new checksums."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from pressmark.bagit import Bag, update
from pressmark.bagit.problems import BagReport
from pressmark.bagit.writing.update import ADDED, algorithms_to_read
from pressmark.bagit.writing.update_options import ACCEPTED
from pressmark.cli.bag.advice import accept_word
from pressmark.cli.bag.options import (
    BAG,
    STAGES,
    Listener,
    change_interrupted,
    info_options,
    parse_elements,
    refuse_inside,
)
from pressmark.cli.common.console import CallError, Failure
from pressmark.cli.common.files import refuse_missing
from pressmark.cli.common.options import (
    LEDGER,
    PROGRESS,
    READ,
    THREADS,
    complete_algorithms,
    json_option,
    ledger_counts,
    ledger_words,
    open_ledger,
    parse_algorithms,
)
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_bytes, format_count, format_rate
from pressmark.errors import BagInvalidError, quoted
from pressmark.reports import Problem

if TYPE_CHECKING:
    from pressmark.fixity.ledger import Ledger

__all__ = ["update_command"]

HELP = """\
Verify BAG, and change its payload, algorithms, metadata or version.

\b
Examples:
  pressmark bag update bag
  pressmark bag update bag --add-algorithm sha256 --drop-algorithm md5

A bag of an older version becomes a bag of BagIt 1.0. Manifests that do not need to change are kept. A tag file that no
tag manifest lists is added to them only with --accept tag-files.

Each problem is a line on standard output: "error" or "warning", the kind, the path in the bag, and a message; --json
prints JSON instead. Errors stop the update. Warnings are problems that the update fixes, that --accept allows, or that
it does not affect.
"""

EPILOG = """\
\b
More examples:
  pressmark bag update bag --accept added --info Bagging-Date=2026-11-21
  pressmark bag update bag --info "Contact-Name=A. Archivist" --metadata-only
  pressmark bag update bag --add-algorithm sha512 --accept no-manifest

A bag without any payload manifest gets one from its present files by --accept no-manifest, with --add-algorithm. It
proves nothing about the past of the files: restore the manifest from another copy if there is one. Manifests with
backslashes as separators of paths are rewritten.

All files are verified first, in the same read that computes new checksums. Files that do not match the manifests stop
the update: they are listed, and nothing is changed, unless --accept allows the change. An update is atomic: after an
interruption, either the bag is unchanged, or running the same command again completes the update. Unchanged elements of
bag-info.txt keep their bytes, and all elements keep their order.

Exit status: 0 success, 1 the bag does not match its manifests, or reading or writing failed, 2 usage error (nothing was
done), 130 interrupted.
"""


@click.command(
    "update", cls=Command, help=HELP, epilog=EPILOG, short_help="Change payload, algorithms or metadata of a bag."
)
@BAG
@click.option(
    "--add-algorithm",
    "add",
    metavar="NAME[,NAME]...",
    multiple=True,
    shell_complete=complete_algorithms,
    help='Add manifests of these algorithms; "pressmark bag create --help" lists them.',
)
@click.option(
    "--drop-algorithm",
    "drop",
    metavar="NAME[,NAME]...",
    multiple=True,
    shell_complete=complete_algorithms,
    help="Remove the manifests of these algorithms.",
)
@info_options("Replace all LABEL elements with one that has the value VALUE; repeatable, also with the same")
@click.option("--remove-info", "removed", metavar="LABEL", multiple=True, help="Remove all LABEL elements; repeatable.")
@click.option(
    "--accept",
    metavar="CHANGE[,CHANGE]...",
    multiple=True,
    help="Accept changes: added, removed, changed (payload files), tag-files (changed, removed or unlisted tag files),"
    " no-manifest (a bag without payload manifest); repeatable.",
)
@click.option(
    "--rewrite",
    is_flag=True,
    help="Rewrite all manifests. Manifests in a format that version 1.0 does not allow, such as md5sum's, are always"
    " rewritten.",
)
@click.option(
    "--metadata-only",
    is_flag=True,
    help="Do not read the payload, and do not change the version; fast even for large bags. Only supported with"
    " --info, --info-file, --remove-info and --drop-algorithm.",
)
@json_option("problem")
@LEDGER
@THREADS
@READ
@PROGRESS
def update_command(
    bag: bytes,
    add: tuple[str, ...],
    drop: tuple[str, ...],
    settings: tuple[str, ...],
    info_file: str | None,
    removed: tuple[str, ...],
    accept: tuple[str, ...],
    rewrite: bool,
    metadata_only: bool,
    as_json: bool,
    ledger: str | None,
    threads: int | None,
    read: str,
    progress: bool | None,
) -> int:
    """Change payload, algorithms or metadata of a bag."""
    info: dict[str, list[str] | None] = dict.fromkeys(removed)
    for label, value in parse_elements(settings, info_file):
        info[label] = [*(info.get(label) or []), value]
    accepted = [word for words in accept for word in words.split(",")]
    for word in accepted:
        if word not in ACCEPTED:
            raise CallError(f"--accept {quoted(word)}: expected {', '.join(ACCEPTED)}")
    added, dropped = parse_algorithms(add), [name for names in drop for name in names.split(",")]
    if metadata_only and (added or accepted or rewrite or ledger):
        raise CallError("--metadata-only: supported with --info, --remove-info and --drop-algorithm only")
    refuse_missing([bag], directories=True, advice="; for an archive, run pressmark bag unpack first")
    refuse_inside(ledger, bag)
    names = () if ledger is None else algorithms_to_read(Bag.open(bag), add=added, drop=dropped)
    with (
        open_ledger(ledger, names, [bag]) as journal,
        Output(
            progress,
            as_json=as_json,
            go_on=True,
            stages=STAGES,
            interrupted=lambda: change_interrupted(bag, journal),
        ) as output,
    ):
        accepted_changes = _Accepted(output.problem)
        listener = Listener(output.reporter, accepted_changes.add)
        begin = time.monotonic()
        failure: Failure | None = None
        try:
            updated = update(
                bag,
                add=added,
                drop=dropped,
                info=info,
                payload=not metadata_only,
                accept=accepted,
                rewrite=rewrite,
                threads=threads,
                read=read,
                ledger=journal,
                progress=listener,
            )
        except BagInvalidError as error:
            failure = Failure(str(error))
        except ValueError as error:
            raise CallError(str(error)) from None
        report = accepted_changes.report
        report.counts.update(files=listener.read.items, bytes=listener.read.bytes)
        output.summarize(report, updated=listener.moved, **ledger_counts(journal))
        if failure is not None:
            raise failure
        output.tell(_report(updated, listener, accepted_changes, time.monotonic() - begin, journal))
    return 0


class _Accepted:
    """Counts the files whose changes an update accepts, by the problems that it reports.

    :param write: writes a problem
    :ivar report: number of problems, which are not kept
    """

    def __init__(self, write: Callable[[Problem], object]) -> None:
        self.report = BagReport(keep=0)
        self._write = write
        self._last = ""
        self._counts: Counter[str] = Counter()
        self._new_tag_files = 0
        #: Whether there was anything to compare the files with.
        self.is_verified = True

    def add(self, problem: Problem) -> None:
        """Count and write a problem."""
        self.report.add([problem])
        self._write(problem)
        self.is_verified &= problem.kind != "payload-manifest-missing"
        word = accept_word(problem)
        if word is not None and problem.path != self._last:
            # A file has a problem for each algorithm, one after another.
            self._last = problem.path
            self._counts[word] += 1
        self._new_tag_files += problem.kind == "tag-file-unlisted" and problem.message.endswith(ADDED)

    def summary(self) -> str:
        """Return the numbers in words, or an empty string."""
        pieces = []
        if total := self._counts.total():
            words = [word if total == count else f"{count:,} {word}" for word, count in self._counts.items()]
            pieces.append(f"{format_count(total, 'file')} accepted ({', '.join(words)})")
        if self._new_tag_files:
            pieces.append(f"{format_count(self._new_tag_files, 'tag file')} added to the tag manifests")
        return ", ".join(pieces)


def _report(bag: Bag, listener: Listener, accepted: _Accepted, seconds: float, journal: Ledger | None) -> str:
    state = "bag updated" if listener.moved else "no change needed"
    if listener.moved and (changes := accepted.summary()):
        state += f": {changes}"
    pieces = []
    if listener.read.items:
        size = listener.read.bytes
        pieces = [
            f"{format_count(listener.read.items, 'file')} {'verified' if accepted.is_verified else 'hashed'}",
            format_bytes(size),
            *([] if journal else format_rate(size, seconds)),
            *ledger_words(journal),
        ]
    return f"{bag.path}: {'; '.join([state, *filter(None, [', '.join(pieces)]), ', '.join(bag.algorithms)])}"
