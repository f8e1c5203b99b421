"""``pressmark bag validate``: is a bag what its manifests say, and made as the specification says?"""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from pressmark.bagit import validate
from pressmark.bagit.bag_tags import BagTags
from pressmark.bagit.report import BagReport
from pressmark.cli.bag.options import JSON, refuse_inside, refuse_missing
from pressmark.cli.bag.problems import Problems
from pressmark.cli.common.console import CallError, Failure, Interrupted, say
from pressmark.cli.common.file_progress import FileProgress, format_bytes, format_count, format_rate
from pressmark.cli.common.files import open_sink
from pressmark.cli.common.fixity_options import LEDGER, PROGRESS, READ, THREADS, interruption_message, open_ledger
from pressmark.cli.common.program import discard_stdout
from pressmark.cli.common.progress import progress_mode
from pressmark.cli.common.worker_options import job_options
from pressmark.errors import BagError, LedgerError
from pressmark.fixity.outcomes import Outcome
from pressmark.fixity.tree import walk
from pressmark.reports import Report

if TYPE_CHECKING:
    from pressmark.cli.common.workers import Workers
    from pressmark.fixity.ledger import Ledger

__all__ = ["validate_command"]

# What is said of a bag, well and not: no level but "full" may call it valid.
VERDICTS = {
    "full": ("valid", "invalid"),
    "complete": ("complete (checksums were not verified)", "not complete"),
    "oxum": ("as its Payload-Oxum says (checksums were not verified)", "not as its Payload-Oxum says"),
}

# A bag, its report or why it could not be validated, and the seconds that took where that is known.
_Validated = tuple[bytes, BagReport | BagError, float | None]

EPILOG = """\
Problems are listed as they are found, in one run: an early one hides no later one. Their kinds are explained in the
documentation (bagit-problems). A warning breaks no rule that binds and leaves the bag valid. Nothing outside of BAG is
read, whatever a manifest or a symbolic link says; nothing in it is changed.

Exit status: 0 every bag is valid (at the level asked for; warnings or not), 1 one is not or reading failed, 2 usage
error (nothing was done), 130 interrupted.

\b
Examples:
  pressmark bag validate bag
  pressmark bag validate bag --json --ledger bag.ledger
  pressmark bag validate bag --level complete
  pressmark bag validate bag --profile profile.json
"""


@click.command("validate", epilog=EPILOG, short_help="Check bags against their manifests.")
# One that cannot be read has failed, and is no reason to validate none of the others.
@click.argument("bags", metavar="BAG...", nargs=-1, required=True, type=click.Path(readable=False, path_type=bytes))
@click.option(
    "--level",
    type=click.Choice(["full", "complete", "oxum"]),
    default="full",
    show_default=True,
    help="Verify every checksum; or only that all files are there and no others; or only that number and size of the"
    " payload files are as Payload-Oxum says.",
)
@JSON
@LEDGER
@click.option(
    "--profile",
    metavar="PROFILE",
    type=click.Path(readable=False),
    help="Check against the BagIt Profile in the file PROFILE, too.",
)
@click.option(
    "--lenient",
    is_flag=True,
    help="Take blank lines in manifests and in fetch.txt, which old tools wrote, for warnings.",
)
@click.option(
    "--links",
    type=click.Choice(["inside", "trusted"]),
    default="inside",
    show_default=True,
    help="Follow symbolic links inside of BAG only, with a warning each; or all of them, wherever they lead: for your"
    " own link farms, not for bags from others.",
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
    """Check each BAG, a bag's base directory, and list everything that is wrong with it.

    Each problem is a line on standard output: "error" or "warning", the kind, the path in the bag, and what is the
    matter. What is not printable in a path is escaped; --json gives it exactly, with what was expected and found and
    the section of the specification. The verdict, with counts, goes to standard error.

    The validation of a large bag can be made resumable: with --ledger, what was verified before an interruption is not
    read again by the same call.
    """
    refuse_missing(bags, directories=True)
    several = len(bags) > 1
    if ledger is not None and several:
        raise CallError("--ledger: it is for one bag; validate them one after another, each with its own")
    refuse_inside(ledger, bags[0])
    if workers is not None:
        workers.refuse(
            (ledger is not None, "--ledger: with workers, --work and --resume continue a run; leave it out or"),
            (threads, "--threads: each worker has one thread;"),
            (read == "sequential", "--read sequential: workers read several files at the same time;"),
        )
    chosen = None
    if profile is not None:
        # Here and not above: few validations need what a profile needs.
        from pressmark.bagit import Profile

        chosen = Profile.load(profile)
    with contextlib.ExitStack() as stack:
        journal = _opened(ledger, bags[0])
        if journal is not None:
            stack.enter_context(journal)
        sink = stack.enter_context(open_sink(None, None))
        problems = Problems(sink, as_json, several=several)
        failed = 0
        counts: Counter[str] = Counter()

        def files() -> Iterator[str | bytes | Outcome]:
            for bag in bags:
                yield from walk(bag, links="skip")

        # Without checksums next to nothing is read, and sizes say nothing of how long it takes.
        sized = files if level == "full" else None
        reporter = stack.enter_context(
            FileProgress(progress_mode(progress, sink), sized, problems.flush, transient=True)
        )
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
                if isinstance(report, BagError):
                    # It was there a moment ago: an item that failed, not a wrong call.
                    failed += 1
                    reporter.fail(str(report))
                    continue
                failed += not report.ok
                counts.update(report.counts)
                problems.summarize(report)
                problems.flush()
                # What is in a ledger was not read.
                reporter.report(_verdict(bag, level, report, None if journal else seconds))
            if several:
                problems.report.counts.update(counts)
                problems.summarize(problems.report, of_bag=False, bags=len(bags), failed=failed)
                problems.flush()
        except BrokenPipeError:
            discard_stdout()
            return Failure.exit_code if failed or not problems.report.ok else 0
        except LedgerError as error:
            raise Failure(str(error)) from None
        except KeyboardInterrupt:
            raise Interrupted(interruption_message(journal)) from None
    if several:
        say(f"{format_count(len(bags), 'bag')}, {failed} of them {VERDICTS[level][1]}")
    return Failure.exit_code if failed else 0


def _validated(
    bags: tuple[bytes, ...], how: dict[str, Any], problems: Problems, reporter: FileProgress
) -> Iterator[_Validated]:
    """Validate bags one after another, and write their problems as they are found."""
    for bag in bags:
        problems.begin(bag)
        begin = time.monotonic()
        try:
            report = validate(bag, **how, keep=0, on_event=reporter.on_event, on_problem=problems.write)
        except BagError as error:
            yield bag, error, None
            continue
        reporter.next_run()
        yield bag, report, time.monotonic() - begin


def _opened(ledger: str | None, bag: bytes) -> Ledger | None:
    """Open the ledger; of a bag that has no checksums, none is kept."""
    if ledger is None:
        return None
    try:
        algorithms = BagTags.open(bag).algorithms
    except BagError:
        return None  # its validation says why
    return open_ledger(ledger, algorithms, [bag]) if algorithms else None


def _verdict(bag: bytes, level: str, report: Report, seconds: float | None) -> str:
    """Return what is said of a bag in the end; ``seconds`` that its reading took, where that means something."""
    well, not_well = VERDICTS[level]
    summary = report.summary()
    pieces = [format_count(summary[f"{word}s"], word) for word in ("error", "warning") if summary[f"{word}s"]]
    size = report.counts["bytes"]
    pieces += [format_count(report.counts["files"], "file"), format_bytes(size)]
    if level == "full" and seconds is not None:
        pieces += format_rate(size, seconds)
    return f"{os.fsdecode(bag)}: {well if report.ok else not_well}: {', '.join(pieces)}"
