"""``pressmark bag validate``: check bags against their manifests and the specification."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from pressmark.bagit import validate, validate_many
from pressmark.bagit.bag_tags import BagTags
from pressmark.bagit.problems import BagReport
from pressmark.buckets.address import is_address
from pressmark.cli.bag.advice import Findings, what_instead, what_to_do
from pressmark.cli.bag.options import refuse_inside
from pressmark.cli.common.console import CallError, say
from pressmark.cli.common.files import open_source, refuse_missing
from pressmark.cli.common.object_storage import Address, bucket_options
from pressmark.cli.common.options import (
    LEDGER,
    PROGRESS,
    READ,
    THREADS,
    interruption_message,
    job_options,
    json_option,
    ledger_counts,
    ledger_words,
    links_option,
    open_ledger,
)
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_bytes, format_count, format_rate
from pressmark.errors import BagError, SpillError
from pressmark.fixity.outcomes import Outcome
from pressmark.fixity.tree import walk_files
from pressmark.progress_event import EventListener, Progress
from pressmark.reports import ERROR, Problem, ProgressEvent

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
CHUNKS, LEAST = 16, 20  # of bags validated by workers, and bags in one
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
input. BAG may be the address of a tree of keys, or of an archive, in object storage; nothing is stored on this
computer. With --ledger, an interrupted validation of a directory can be resumed: running the same command again skips
verified files.
"""

EPILOG = """\
\b
More examples:
  pressmark bag validate bag --level complete
  pressmark bag validate bag --profile profile.json
  pressmark bag validate - < bag.tar.gz
  pressmark bag validate s3://bucket/bag s3://bucket/bag.tar.zst

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
    type=Address(readable=False, allow_dash=True, path_type=bytes),
)
@click.option(
    "--level",
    type=click.Choice(["full", "complete", "oxum"]),
    default="full",
    show_default=True,
    help="full: verify all checksums; complete: check only which files exist; oxum: compare only number and size of the"
    " payload files with Payload-Oxum.",
)
@json_option("problem")
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
    help="Report blank lines in manifests, and malformed lines in bag-info.txt and fetch.txt, as warnings; old tools"
    " wrote them.",
)
@links_option(
    ("inside", "trusted"),
    "Follow symbolic links that stay inside BAG, with a warning for each, or all links of directories. Use trusted for"
    " your own bags only.",
)
@THREADS
@READ
@PROGRESS
@bucket_options
@job_options
def validate_command(
    bags: tuple[bytes, ...],
    level: str,
    lenient: bool,
    profile: str | None,
    links: str,
    ledger: str | None,
    threads: int | None,
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
    if ledger is not None and is_address(bags[0]):
        raise CallError("--ledger: not supported in object storage; omit it")
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

    def files() -> Iterator[str | bytes | Outcome]:
        for bag in bags:
            if bag != STDIN:
                yield from walk_files(bag, links="skip")

    # Without checksums little is read, so sizes do not predict the duration.
    is_remote = any(map(is_address, bags))
    sized = files if level == "full" and not is_remote else None
    failed = 0
    has_advice = False
    counts: Counter[str] = Counter()
    findings = Findings()
    with (
        _opened(ledger, bags[0]) as journal,
        Output(
            progress,
            as_json=as_json,
            interrupted="interrupted; run the same command again" if is_remote else interruption_message(journal),
            paths=sized,
        ) as output,
    ):

        def hear(event: object) -> None:
            if isinstance(event, Problem):
                findings.add(event)
            elif several and isinstance(event, ProgressEvent):
                event = event._replace(of_items=None)  # the total of this bag
            output.progress(event)

        heard = EventListener(hear)
        rules: dict[str, Any] = {"level": level, "lenient": lenient, "links": links}
        if workers is None:
            how = {"threads": threads, "read": read, "ledger": journal, "profile": chosen}
            reports = _validated(bags, {**rules, **how, "progress": heard}, output)
        else:
            rules["profile"] = None if profile is None else os.path.abspath(profile)
            reports = _by_workers(workers, bags, rules, heard, output)
        for bag, report, seconds in reports:
            if not isinstance(report, BagReport):
                # The bag existed a moment ago: a failure, not a usage error.
                failed += 1
                output.reporter.fail(str(report))
                continue
            failed += not report.ok
            findings.cause.end_bag(report.counts["files"])
            counts.update(report.counts)
            output.summarize(report, **ledger_counts(journal))
            # Files in a ledger were not read.
            output.tell(_verdict(bag, level, report, None if journal else seconds, journal), failed=not report.ok)
            if not report.tally:
                continue
            # The problems of the next bag come after the verdict.
            output.reporter.flush()
            if ("declaration-missing", ERROR) in report.tally and os.path.isdir(bag):
                advice = what_instead(bag)
                has_advice |= bool(advice)
                if advice:
                    output.reporter.report(f"{os.fsdecode(bag)}: {advice}")
        if several:
            output.bag = None
            findings.report.counts.update(counts)
            output.summarize(findings.report, bags=len(bags), failed=failed)
    if several:
        output.tell(f"{format_count(len(bags), 'bag')}; {failed:,} {VERDICTS[level][1]}")
    if not as_json and output.errors and (several or not has_advice):
        say(f"what to do: {what_to_do(findings, level, None if several else bags[0])}")
    return output.status


def _validated(bags: tuple[bytes, ...], how: dict[str, Any], output: Output) -> Iterator[_Validated]:
    """Validate bags, and write the problems of each."""
    how.update(keep=0)
    if how["ledger"] is not None:
        reports = _with_ledger(bags[0], how)
    else:
        del how["ledger"]
        reports = validate_many([bag for bag in bags if bag != STDIN], **how)
    for bag in bags:
        output.bag = bag if len(bags) > 1 else None
        begin = time.monotonic()
        report = _from_pipe(how) if bag == STDIN else next(reports)
        output.reporter.next_run()
        yield bag, report, time.monotonic() - begin


def _by_workers(
    workers: Workers,
    bags: tuple[bytes, ...],
    rules: dict[str, Any],
    progress: Progress,
    output: Output,
) -> Iterator[_Validated]:
    """Have ``bags`` validated by workers, and write their problems, bag by bag.

    :param rules: arguments of :class:`~pressmark.bagit.ValidateBags`
    :return: each bag, and its report or the error that prevented its validation
    """
    # Few commands have workers.
    import json

    from pressmark.bagit.job import BAGS, ValidateBags
    from pressmark.fs.beneath import open_regular

    job = ValidateBags(**rules)
    paths = [os.fsdecode(os.path.abspath(bag)) for bag in bags]
    # Enough chunks to keep the workers busy until the end.
    size = min(BAGS, max(LEAST, len(bags) // CHUNKS))
    work = workers.run(job, lambda folder: job.plan(folder, bags, size), paths, None, output.reporter)
    waiting = zip(bags, paths, strict=True)
    # All keys that not every summary has are counts.
    others = {"path", *BagReport(level=job.level, keep=0).summary()}
    for receipt in work.receipts():
        unread = [record for record in work.failures(receipt) if record["status"] == "unreadable"]
        assert receipt.output is not None
        with open_regular(work.output_path(receipt.output)) as lines:
            records = list(map(json.loads, lines))
        for bag, path in islice(waiting, receipt.n):
            output.bag = bag if len(bags) > 1 else None
            if not records or records[0]["path"] != path:
                yield bag, BagError(bag, str(unread.pop(0)["message"])), None
                continue
            record = records.pop(0)
            report = BagReport(level=job.level, keep=0)
            for one in map(Problem.from_record, record.pop("problems")):
                progress(one)
                report.add([one])
            report.counts.update((name, record[name]) for name in record if name not in others)
            yield bag, report, None


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
    paths = [bag for bag in bags if bag != STDIN and not is_address(bag)]
    refuse_missing(paths)
    if bags.count(STDIN) > 1:
        raise CallError("-: given more than once; standard input is one archive")
    for path in paths:
        if os.path.isdir(path):
            continue
        # Most bags are directories.
        from pressmark.bagit.archive.reader import is_archive, why_unsupported

        if (reason := why_unsupported(path)) is not None:
            raise CallError(f"{os.fsdecode(path)}: {reason}")
        if not os.path.isfile(path) or not is_archive(path):
            raise CallError(f"{os.fsdecode(path)}: not a directory or archive; expected zip, tar or compressed tar")


def _opened(ledger: str | None, bag: bytes) -> contextlib.AbstractContextManager[Ledger | None]:
    """Open the ledger, unless the bag has no checksums."""
    algorithms: tuple[str, ...] = ()
    if ledger is not None:
        with contextlib.suppress(BagError):  # the validation reports the error
            algorithms = BagTags.open(bag).algorithms
    return open_ledger(ledger if algorithms else None, algorithms, [bag])


def _verdict(bag: bytes, level: str, report: BagReport, seconds: float | None, ledger: Ledger | None) -> str:
    """Return the verdict on a bag; ``seconds`` is the duration of reading, if known."""
    well, not_well = VERDICTS[level]
    pieces: list[str] = []
    if report.tally:
        summary: dict[str, Any] = report.summary()
        pieces = [format_count(summary[f"{word}s"], word) for word in ("error", "warning") if summary[f"{word}s"]]
    size = report.counts["bytes"]
    pieces += [format_count(report.counts["files"], "file"), format_bytes(size)]
    if level == "full" and seconds is not None:
        pieces += format_rate(size, seconds)
    if from_ledger := ledger_words(ledger):
        pieces += [*from_ledger, "with tag files"]
    return f"{os.fsdecode(bag)}: {well if report.ok else not_well}: {', '.join(pieces)}"
