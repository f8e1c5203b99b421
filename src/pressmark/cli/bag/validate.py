"""``pressmark bag validate``: check bags against their manifests and the specification."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from pressmark.bagit import validate, validate_many
from pressmark.bagit.bag_tags import BagTags
from pressmark.bagit.problems import BagReport
from pressmark.cli.bag.options import JSON, refuse_inside
from pressmark.cli.bag.problems import Problems
from pressmark.cli.common.console import CallError, Failure, Interrupted, say
from pressmark.cli.common.files import open_sink, open_source, refuse_missing
from pressmark.cli.common.fixity_options import (
    LEDGER,
    READ,
    THREADS,
    interruption_message,
    ledger_counts,
    ledger_words,
    open_ledger,
)
from pressmark.cli.common.program import Command, discard_stdout
from pressmark.cli.common.progress import PROGRESS, Reporter, format_bytes, format_count, format_rate, progress_mode
from pressmark.cli.common.worker_options import job_options
from pressmark.errors import BagError, SpillError
from pressmark.fixity.outcomes import Outcome
from pressmark.fixity.tree import walk
from pressmark.reports import ERROR

if TYPE_CHECKING:
    from pressmark.cli.common.workers import Workers
    from pressmark.fixity.ledger import Ledger

__all__ = ["validate_command"]

# The verdicts for success and failure: only the level "full" can call a bag valid.
VERDICTS = {
    "full": ("valid", "invalid"),
    "complete": ("complete (checksums were not verified)", "not complete"),
    "oxum": ("matches its Payload-Oxum (checksums were not verified)", "does not match its Payload-Oxum"),
}

STDIN = b"-"
# A bag, its report or the error that prevented it, and the duration in seconds if known.
_Validated = tuple[bytes, BagReport | BagError | SpillError, float | None]

HELP = """\
Validate each BAG, a directory or an archive, and list all its problems.

\b
Examples:
  pressmark bag validate bag bag.tar.gz
  pressmark bag validate bag --json --ledger bag.ledger

Each problem is a line on standard output: "error" or "warning", the kind, the path in the bag, and a message. Paths
with unprintable characters are escaped; --json prints them exactly, with expected and found values and the section
of the specification. The verdict, with counts, is printed to standard error; for an invalid bag, so is what to do.

Archives (zip, tar, or tar compressed with gzip, bzip2, xz or zstd) are not unpacked; sparse files in tar, and members
of zip that are neither stored nor deflated, are not supported. "-" is a tar file, compressed or not, from standard
input. With --ledger, an interrupted validation of a directory can be resumed: running the same command again skips
verified files.
"""

EPILOG = """\
\b
More examples:
  pressmark bag validate bag --level complete
  pressmark bag validate bag --profile profile.json
  pressmark bag validate - < bag.tar.gz

One run lists all problems. The documentation explains the kinds of problems (bagit-problems). A bag with warnings is
valid. The command does not change any file, and does not read files outside BAG, regardless of manifests and symbolic
links.

Exit status: 0 every bag is valid at the requested level (warnings allowed), 1 a bag is invalid or reading failed, 2
usage error (nothing was done), 130 interrupted.
"""


@click.command("validate", cls=Command, help=HELP, epilog=EPILOG, short_help="Check bags against their manifests.")
# An unreadable bag is a failure, not a usage error: the other bags are validated.
@click.argument(
    "bags",
    metavar="BAG...",
    nargs=-1,
    required=True,
    type=click.Path(readable=False, allow_dash=True, path_type=bytes),
)
@click.option(
    "--level",
    type=click.Choice(["full", "complete", "oxum"]),
    default="full",
    show_default=True,
    help="full: verify all checksums; complete: check only which files exist; oxum: compare only number and size of the"
    " payload files with Payload-Oxum.",
)
@JSON
@LEDGER
@click.option(
    "--profile",
    metavar="PROFILE",
    type=click.Path(readable=False),
    help="Also check against the BagIt Profile in the file PROFILE.",
)
@click.option(
    "--lenient",
    is_flag=True,
    help="Report blank lines in manifests and in fetch.txt, which old tools wrote, as warnings.",
)
@click.option(
    "--links",
    type=click.Choice(["inside", "trusted"]),
    default="inside",
    show_default=True,
    help="Follow symbolic links that stay inside BAG, with a warning for each, or all links of directories. Use trusted"
    " for your own bags only.",
)
@THREADS
@READ
@PROGRESS
@job_options
def validate_command(
    bags: tuple[bytes, ...],
    level: str,
    lenient: bool,
    profile: str | None,
    links: str,
    ledger: str | None,
    threads: int,
    read: str,
    progress: bool | None,
    as_json: bool,
    workers: Workers | None,
) -> int:
    """Check bags against their manifests."""
    _refuse(bags)
    several = len(bags) > 1
    if ledger is not None and several:
        raise CallError("--ledger: not supported with several bags; validate each bag with its own ledger")
    if ledger is not None and not os.path.isdir(bags[0]):
        raise CallError("--ledger: not supported with an archive; omit it")
    refuse_inside(ledger, bags[0])
    if workers is not None and STDIN in bags:
        raise CallError("-: standard input is read once; omit --workers and --dask")
    chosen = None
    if profile is not None:
        # Imported here because few validations have a profile.
        from pressmark.bagit import Profile

        chosen = Profile.load(profile)
    with contextlib.ExitStack() as stack:
        journal = _opened(ledger, bags[0])
        if journal is not None:
            stack.enter_context(journal)
        sink = stack.enter_context(open_sink(None, None))
        problems = Problems(sink, as_json, several=several)
        failed = 0
        has_advice = False
        counts: Counter[str] = Counter()

        def files() -> Iterator[str | bytes | Outcome]:
            for bag in bags:
                if bag != STDIN:
                    yield from walk(bag, links="skip")

        # Without checksums little is read, so sizes do not predict the duration.
        sized = files if level == "full" else None
        reporter = stack.enter_context(Reporter(progress_mode(progress, sink), paths=sized, on_pause=problems.flush))
        try:
            rules: dict[str, Any] = {"level": level, "lenient": lenient, "links": links}
            if workers is None:
                how = {"threads": threads, "read": read, "ledger": journal, "profile": chosen}
                reports = _validated(bags, {**rules, **how}, problems, reporter)
            else:
                from pressmark.cli.bag.validate_by_workers import validate_by_workers  # few commands have workers

                rules["profile"] = None if profile is None else os.path.abspath(profile)
                reports = validate_by_workers(workers, bags, rules, problems, reporter)
            for bag, report, seconds in reports:
                if not isinstance(report, BagReport):
                    # The bag existed a moment ago: a failure, not a usage error.
                    failed += 1
                    reporter.fail(str(report))
                    continue
                failed += not report.ok
                problems.cause.end_bag(report.counts["files"])
                counts.update(report.counts)
                problems.summarize(report, **ledger_counts(journal))
                problems.flush()
                # Files in a ledger were not read.
                reporter.report(_verdict(bag, level, report, None if journal else seconds, journal))
                if not report.tally:
                    continue
                # The problems of the next bag come after the verdict.
                reporter.flush()
                if ("declaration-missing", ERROR) in report.tally and os.path.isdir(bag):
                    from pressmark.cli.bag.advice import what_instead

                    advice = what_instead(bag)
                    has_advice |= bool(advice)
                    if advice:
                        reporter.report(f"{os.fsdecode(bag)}: {advice}")
            if several:
                problems.report.counts.update(counts)
                problems.summarize(problems.report, of_bag=False, bags=len(bags), failed=failed)
                problems.flush()
        except BrokenPipeError:
            discard_stdout()
            return Failure.exit_code if failed or not problems.report.ok else 0
        except KeyboardInterrupt:
            raise Interrupted(interruption_message(journal)) from None
    if several:
        say(f"{format_count(len(bags), 'bag')}; {failed:,} {VERDICTS[level][1]}")
    if not as_json and not problems.report.ok and (several or not has_advice):
        from pressmark.cli.bag.advice import what_to_do  # most bags are valid

        say(f"what to do: {what_to_do(problems, level, None if several else bags[0])}")
    return Failure.exit_code if failed else 0


def _validated(
    bags: tuple[bytes, ...], how: dict[str, Any], problems: Problems, reporter: Reporter
) -> Iterator[_Validated]:
    """Validate bags, and write the problems of each."""
    how.update(keep=0, on_event=reporter.on_event, on_problem=problems.write)
    if how["ledger"] is not None:
        reports = _with_ledger(bags[0], how)
    else:
        del how["ledger"]
        reports = validate_many([bag for bag in bags if bag != STDIN], **how)
    for bag in bags:
        problems.begin(bag)
        begin = time.monotonic()
        report = _from_pipe(how) if bag == STDIN else next(reports)
        reporter.next_run()
        yield bag, report, time.monotonic() - begin


def _with_ledger(bag: bytes, how: dict[str, Any]) -> Iterator[BagReport | BagError | SpillError]:
    try:
        yield validate(bag, **how)
    except (BagError, SpillError) as error:
        yield error


def _from_pipe(how: dict[str, Any]) -> BagReport | BagError | SpillError:
    # Few bags are read from a pipe.
    from pressmark.bagit.archive import validate_archive

    how = {name: value for name, value in how.items() if name != "links"}
    try:
        with open_source(None) as source:
            return validate_archive(STDIN, **how, stream=source.file)
    except (BagError, SpillError) as error:
        return error


def _refuse(bags: tuple[bytes, ...]) -> None:
    """Refuse paths that are neither a directory nor a file, before anything is done."""
    paths = [bag for bag in bags if bag != STDIN]
    refuse_missing(paths)
    if len(bags) > len(paths) + 1:
        raise CallError("-: given more than once; standard input is one archive")
    for path in paths:
        if os.path.isdir(path):
            continue
        # Most bags are directories.
        from pressmark.bagit.archive.reader import is_archive

        if not os.path.isfile(path) or not is_archive(path):
            raise CallError(f"{os.fsdecode(path)}: not a directory or archive; expected zip, tar or compressed tar")


def _opened(ledger: str | None, bag: bytes) -> Ledger | None:
    """Open the ledger, unless the bag has no checksums."""
    if ledger is None:
        return None
    try:
        algorithms = BagTags.open(bag).algorithms
    except BagError:
        return None  # the validation reports the error
    return open_ledger(ledger, algorithms, [bag]) if algorithms else None


def _verdict(bag: bytes, level: str, report: BagReport, seconds: float | None, ledger: Ledger | None) -> str:
    """Return the verdict on a bag; ``seconds`` is the duration of reading, if known."""
    well, not_well = VERDICTS[level]
    pieces: list[str] = []
    if report.tally:
        summary = report.summary()
        pieces = [format_count(summary[f"{word}s"], word) for word in ("error", "warning") if summary[f"{word}s"]]
    size = report.counts["bytes"]
    pieces += [format_count(report.counts["files"], "file"), format_bytes(size)]
    if level == "full" and seconds is not None:
        pieces += format_rate(size, seconds)
    if from_ledger := ledger_words(ledger):
        pieces += [*from_ledger, "with tag files"]
    return f"{os.fsdecode(bag)}: {well if report.ok else not_well}: {', '.join(pieces)}"
