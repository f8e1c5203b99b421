"""``pressmark hash``: digests of files and trees."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from pressmark.cli.common.buffered_lines import BufferedLines
from pressmark.cli.common.console import CallError, Failure, Interrupted, say
from pressmark.cli.common.file_progress import FileProgress
from pressmark.cli.common.files import open_sink
from pressmark.cli.common.fixity_options import (
    interruption_message,
    open_ledger,
    output_files,
    parse_algorithms,
    run_options,
)
from pressmark.cli.common.program import discard_stdout
from pressmark.cli.common.progress import progress_mode
from pressmark.cli.common.worker_options import job_options
from pressmark.errors import LedgerError
from pressmark.fixity import FORMATS, Outcome, Progress, hash_files, manifest_line, walk

if TYPE_CHECKING:
    from pressmark.cli.common.workers import Workers
    from pressmark.jobs import Receipt

__all__ = ["hash_command"]

EPILOG = """\
Errors: every file without digest has one line on standard error that names it and says why; the others are hashed all
the same. A file that is written to, replaced or deleted while it is read has no digest. Named pipes, sockets and
devices are not opened. A directory that a link made its own descendant is listed and not entered again.

Names are written byte for byte, in the manner of the format: coreutils and BSD escape line feeds and backslashes as
sha512sum and b3sum do, JSON has octets that are not UTF-8 as the surrogates \\udc80 to \\udcff.

Exit status: 0 all well (a pipe whose reader left is, too), 1 a file failed or writing did, 2 usage error
(nothing was done), 130 interrupted.

\b
Examples:
  pressmark hash files
  pressmark hash files -a sha512,md5 -o manifest.txt
  pressmark hash files -a sha-256 --format json --ledger files.ledger -o files.jsonl
  pressmark hash files --read sequential --threads 1
"""


@click.command("hash", epilog=EPILOG, short_help="Digests of files and trees.")
# What cannot be read is a file that failed, below PATH and as PATH itself, and no reason to read none.
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(readable=False, path_type=bytes))
@run_options
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    help='Write lines as sha512sum does (coreutils; one algorithm only), as "sha512sum --tag" does (bsd), or JSON'
    " objects with size and time of modification. Default: coreutils for one algorithm, bsd for several.",
)
@click.option(
    "--links",
    type=click.Choice(["follow", "skip", "refuse"]),
    default="follow",
    show_default=True,
    help="Follow symbolic links, leave out those found below PATH, or list each as an error.",
)
@click.option("--special-files", is_flag=True, help="Read named pipes and devices, too, to their end.")
@click.option(
    "--output",
    "-o",
    metavar="OUTPUT",
    type=click.Path(readable=False, allow_dash=True),
    help="Write to the file OUTPUT instead. It gets its name only when complete: when the run is interrupted nothing"
    " has changed; with files that failed it is complete. Below PATH, OUTPUT and LEDGER themselves are left out;"
    " an OUTPUT that is there and is named as PATH is refused.",
)
@job_options
def hash_command(
    paths: tuple[bytes, ...],
    algorithms: tuple[str, ...],
    ledger: str | None,
    threads: int,
    read: str,
    progress: bool | None,
    format_name: str | None,
    links: str,
    special_files: bool,
    output: str | None,
    workers: Workers | None,
) -> int:
    """Write the digests of every file named by PATH or below it to standard output.

    Without -a, the digest is SHA-512. However many algorithms are asked for, each file is read once. Directories are
    gone through by the octets of the names in them, so that the output is the same every time; it does not depend on
    the number of threads.

    A long run can be made resumable: with --ledger, what was finished before an interruption, of whatever kind, is not
    read again by the same call.
    """
    names = parse_algorithms(algorithms) or ("sha512",)
    chosen = format_name or ("coreutils" if len(names) == 1 else "bsd")
    if chosen == "coreutils" and len(names) > 1:
        raise CallError("--format coreutils: it holds one algorithm; use bsd or json for several")
    _refuse_same(output, paths)
    if workers is not None:
        workers.refuse(
            (
                ledger is not None,
                "--ledger: with workers, --work and --resume continue a run; leave it out or",
            ),
            (threads, "--threads: each worker has one thread;"),
            (read == "sequential", "--read sequential: workers read several files at the same time;"),
        )
    with contextlib.ExitStack() as stack:
        journal = open_ledger(ledger, names, paths)
        if journal is not None:
            stack.enter_context(journal)
        sink = stack.enter_context(open_sink(output, None))
        leave_out = set(output_files(output))
        if journal is not None:
            status = journal.status()
            leave_out.add((status.st_dev, status.st_ino))

        def files() -> Iterator[str | bytes | Outcome]:
            for path in paths:
                yield from walk(path, links=links, leave_out=leave_out, special_files=special_files)

        writer = BufferedLines(sink)
        reporter = stack.enter_context(FileProgress(progress_mode(progress, sink), files, writer.flush))
        try:
            if workers is not None:
                options = {"algorithms": names, "format": chosen, "links": links, "special_files": special_files}
                _write_shared(workers, options, paths, leave_out, output, writer, reporter)
            else:
                outcomes = hash_files(
                    files(),
                    names,
                    threads,
                    reporter.on_event,
                    # Links below PATH were skipped before; PATH itself was followed.
                    links="refuse" if links == "refuse" else "follow",
                    special_files=special_files,
                    read=read,
                    ledger=journal,
                )
                for outcome in outcomes:
                    reporter.files += 1
                    if outcome.ok:
                        writer.add(manifest_line(outcome, chosen))
                    else:
                        reporter.fail(f"{os.fsdecode(outcome.path)}: {outcome.message}")
            writer.flush()
        except BrokenPipeError:
            discard_stdout()
            return Failure.exit_code if reporter.failed else 0
        except LedgerError as error:
            raise Failure(str(error)) from None
        except KeyboardInterrupt:
            raise Interrupted(interruption_message(journal)) from None
    if reporter.failed:
        noun = "file" if reporter.files == 1 else "files"
        say(f"{reporter.failed} of {reporter.files} {noun} failed")
        return Failure.exit_code
    return 0


def _write_shared(
    workers: Workers,
    options: dict[str, Any],
    paths: tuple[bytes, ...],
    leave_out: set[tuple[int, int]],
    output: str | None,
    lines: BufferedLines,
    reporter: FileProgress,
) -> None:
    """Write what one process would write, hashed by workers."""
    from pressmark.fixity.job import HashFiles

    # Relative names need the working directory, on all machines.
    root = os.path.abspath(os.sep) if all(map(os.path.isabs, paths)) else os.getcwd()
    job = HashFiles(root, **options)
    done = Progress(0, 0, 0)

    def count(receipt: Receipt) -> None:
        nonlocal done
        done = Progress(done.files + receipt.n, done.bytes + receipt.bytes, done.failed + receipt.errors)
        reporter.on_event(done)

    inputs = [os.fsdecode(path) for path in paths]
    work = workers.run(job, lambda folder: job.plan(folder, paths=paths, leave_out=leave_out), inputs, output, count)
    for receipt in work.receipts():
        reporter.files += receipt.n
        for record in work.failures(receipt):
            reporter.fail(f"{record['path']}: {record['message']}")
        assert receipt.output is not None
        with open(work.output_path(receipt.output), "rb") as manifest:
            for line in manifest:
                lines.add(line)


def _refuse_same(output: str | None, paths: tuple[bytes, ...]) -> None:
    """Refuse to put digests in the place of a file that is to be hashed, which would be lost."""
    if output is None or not os.path.isfile(output):
        return
    for path in paths:
        with contextlib.suppress(OSError, ValueError):  # reading it says why
            if os.path.samefile(path, output):
                raise CallError(f"{output}: input and output are the same file")
