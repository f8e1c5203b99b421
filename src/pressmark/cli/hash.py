"""``pressmark hash``: digests of files and trees."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from pressmark.buckets.address import is_address
from pressmark.cli.common.console import CallError, say
from pressmark.cli.common.object_storage import FILE_OR_ADDRESS, bucket_options
from pressmark.cli.common.options import (
    ONE_FILE_SYSTEM,
    crlf_option,
    digests_option,
    exclude_options,
    globs_to_exclude,
    interruption_message,
    job_options,
    ledger_words,
    links_option,
    null_option,
    open_ledger,
    output_files,
    parse_algorithms,
    run_options,
)
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_bytes, format_count
from pressmark.fixity import FORMATS, Outcome
from pressmark.fixity.manifests import block_lines
from pressmark.fixity.outcomes import Fetched
from pressmark.fixity.pool import hash_blocks
from pressmark.fixity.tree import walk_files
from pressmark.fs.beneath import open_regular

if TYPE_CHECKING:
    from pressmark.cli.common.workers import Workers
    from pressmark.fixity.bucket_files import DigestSource
    from pressmark.jobs.chunks import Chunk
    from pressmark.tabular.formats import Crlf

__all__ = ["hash_command"]


HELP = """\
Print the digests of all files in PATH, or of those in a list.

\b
Examples:
  pressmark hash files
  pressmark hash files -a sha512,md5 -o manifest.txt

The default algorithm is SHA-512. Each file is read once, for any number of algorithms. The output is sorted by name in
byte order, or has the order of the list; it does not depend on the number of threads. With --ledger, a run can be
resumed: running the same command again skips finished files.
"""

EPILOG = """\
\b
More examples:
  find files -type f -print0 | pressmark hash --from - --null
  (cd files; pressmark hash . -o ../files.sha512)
  pressmark hash files --format json --ledger files.ledger -o files.jsonl
  pressmark hash s3://books/scans --digests=stored -o scans.sha512
  pressmark hash files --exclude "*.tmp" --exclude-junk
  pressmark hash files --read sequential --threads 1

In object storage, PATH is an address such as s3://bucket/prefix: the files are all keys below it, or the key itself. Up
to 16 are read at a time, and the names of the output are addresses. --ledger and --workers are not supported.

--from: each line of FILE is a PATH. With --null, names end with NUL and can be any bytes. FILE can be compressed by
gzip, and is read while files are hashed. A name that is an address is that of a key; the environment specifies its
server.

The files that the command writes are not hashed if they are below PATH: OUTPUT, LEDGER, and the files that stdout and
stderr are redirected to.

Errors: each file that fails is reported on stderr, and the others are hashed. A file that is changed, replaced or
deleted while it is read fails. Named pipes, sockets and devices are not opened and also fail. A directory that contains
itself through a symbolic link is reported and not entered again. Of several links to a directory, the first is
followed, and the others are listed on stderr as excluded.

--exclude: GLOB matches the names of files and directories below PATH, not paths, and is case-sensitive. A directory is
left out with everything in it. Each one is listed on stderr. "pressmark verify --root" has the same options.

Names: coreutils and BSD lines escape line feeds and backslashes like sha512sum and b3sum; in JSON, bytes that are not
UTF-8 are the surrogates \\udc80 to \\udcff.

Exit status: 0 success (also if the reader of a pipe closes it), 1 a file failed or the output could not be written,
2 usage error, 130 interrupted.
"""


@click.command("hash", cls=Command, help=HELP, epilog=EPILOG, short_help="Hash files and trees.")
# A PATH that cannot be read is a failed file, not a usage error.
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=FILE_OR_ADDRESS)
@click.option(
    "--from",
    "listed",
    metavar="FILE",
    type=click.Path(readable=False),
    help='Hash the files listed in FILE ("-" for standard input), one name per line.',
)
@null_option("Names in FILE end with NUL instead of a line feed.")
@crlf_option("names")
@run_options
@digests_option(
    "In object storage: read the content (the default); or print the digests that the server has stored, without"
    " reading the content. A file without them fails."
)
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    help='Output format: lines like sha512sum (coreutils, one algorithm only), lines like "sha512sum --tag" (bsd), or'
    " JSON objects with size and modification time. Default: coreutils for one algorithm, bsd for several.",
)
@links_option(("follow", "skip", "refuse"), "Follow symbolic links, skip those below PATH, or report each as an error.")
@exclude_options
@ONE_FILE_SYSTEM
@click.option(
    "--output",
    "-o",
    metavar="OUTPUT",
    type=click.Path(readable=False, allow_dash=True),
    help="Write to the file OUTPUT instead of stdout. OUTPUT is replaced when the run is complete, even if files"
    " failed; an interrupted run leaves it unchanged. If OUTPUT ends in .gz, it is compressed.",
)
@job_options
@bucket_options
def hash_command(
    paths: tuple[bytes, ...],
    listed: str | None,
    null: bool,
    crlf: Crlf | None,
    algorithms: tuple[str, ...],
    ledger: str | None,
    threads: int | None,
    read: str,
    progress: bool | None,
    digests: DigestSource | None,
    format_name: str | None,
    links: str,
    exclude: tuple[str, ...],
    exclude_junk: bool,
    one_file_system: bool,
    output: str | None,
    workers: Workers | None,
) -> int:
    """Hash files and trees."""
    if not paths and listed is None:
        raise CallError("missing argument; specify PATH, or --from FILE")
    names = parse_algorithms(algorithms) or ("sha512",)
    chosen = format_name or ("coreutils" if len(names) == 1 else "bsd")
    if chosen == "coreutils" and len(names) > 1:
        raise CallError("--format coreutils supports one algorithm; use bsd or json for several")
    _refuse_same(output, paths)
    in_storage = [path for path in paths if is_address(path)]
    if digests is not None and (listed is not None or len(in_storage) < len(paths)):
        raise CallError("--digests: only for addresses such as s3://bucket/prefix; omit the option")
    leave_out: set[tuple[int, int]] = set()
    globs = globs_to_exclude(exclude, exclude_junk)
    walking: dict[str, Any] = {"links": links, "exclude": globs, "one_file_system": one_file_system}

    def files(excluded: list[str | bytes] | None = None) -> Iterator[str | bytes | Fetched | Outcome]:
        for path in paths if listed is None else _listed_paths(listed, null, crlf):
            if isinstance(path, Fetched | Outcome):
                yield path
            elif is_address(path):
                from pressmark.fixity.bucket_files import KeyTree  # few runs are in object storage

                yield from KeyTree(path, digests or "read").files(globs, excluded)
            else:
                yield from walk_files(path, **walking, leave_out=leave_out, once=True, excluded=excluded)

    with (
        open_ledger(ledger, names, paths if listed is None else [listed]) as journal,
        Output(
            progress,
            path=output,
            data=True,
            interrupted="interrupted" if in_storage else interruption_message(journal),
            # Listing keys again costs requests, and only a file can be read again.
            paths=None if in_storage or not (listed is None or os.path.isfile(listed)) else files,
        ) as lines,
    ):
        leave_out.update(output_files(output))
        if journal is not None:
            status = journal.status()
            leave_out.add((status.st_dev, status.st_ino))
        reporter = lines.reporter
        count = 0
        nbytes: int | None
        if workers is not None:
            options = {"algorithms": names, "format": chosen, **walking}
            count, nbytes = _write_shared(workers, options, paths, leave_out, output, lines)
        else:
            excluded: list[str | bytes] = []
            blocks = hash_blocks(
                files(excluded),
                names,
                threads,
                lines.progress,
                # Links below PATH were skipped before; PATH itself was followed.
                links="refuse" if links == "refuse" else "follow",
                read=read,
                ledger=journal,
                # A PATH may be a device, and a list may contain one.
                walked=listed is None and all(map(os.path.isdir, paths)),
            )
            for block in blocks:
                count += len(block)
                lines.data(block_lines(block, names, chosen))
                reporter.report_excluded(excluded)
                for outcome in block.failures():
                    reporter.fail(f"{outcome.path}: {outcome.message}")
            reporter.report_excluded(excluded)
            # Files in a ledger were not read.
            nbytes = None if journal else reporter.done.bytes
    if reporter.failed:
        counts = f"{reporter.failed:,} of {format_count(count, 'file')} failed"
        say(", ".join([counts, *ledger_words(journal)]))
    elif progress is not False and (output not in (None, "-") or (journal and journal.found)):
        pieces = [format_count(count, "file"), *ledger_words(journal)]
        pieces += [] if nbytes is None else [format_bytes(nbytes)]
        pieces += [f"{reporter.excluded:,} excluded"] if reporter.excluded else []
        say(f"{'stdout' if output in (None, '-') else output}: {', '.join(pieces)}; {', '.join(names)}")
    return lines.status


def _write_shared(
    workers: Workers,
    options: dict[str, Any],
    paths: tuple[bytes, ...],
    leave_out: set[tuple[int, int]],
    output: str | None,
    lines: Output,
) -> tuple[int, int]:
    """Write the same output as one process, hashed by workers, and return the number and the size of all files."""
    from pressmark.fixity.job import HashFiles

    # Relative paths require the working directory on all machines.
    root = os.path.abspath(os.sep) if all(map(os.path.isabs, paths)) else os.getcwd()
    job = HashFiles(root, **options)
    inputs = [os.fsdecode(path) for path in paths]

    def plan(folder: str) -> Iterator[Chunk]:
        return job.plan(folder, paths=paths, leave_out=leave_out, excluded=excluded)

    excluded: list[str | bytes] = []
    work = workers.run(job, plan, inputs, output, lines.reporter)
    lines.reporter.report_excluded(excluded)
    files = nbytes = 0
    for receipt in work.receipts():
        files += receipt.n
        nbytes += receipt.bytes
        for record in work.failures(receipt):
            lines.reporter.fail(f"{record['path']}: {record['message']}")
        assert receipt.output is not None
        with open_regular(work.output_path(receipt.output)) as manifest:
            for line in manifest:
                lines.data(line)
    return files, nbytes


def _listed_paths(listed: str, null: bool, crlf: Crlf | None) -> Iterator[str | bytes | Fetched | Outcome]:
    """Yield the names of a list: keys for addresses, and outcomes for empty and malformed names."""
    # Few runs have a list.
    from pressmark.cli.common.item_lists import listed_items
    from pressmark.fixity.bucket_files import source_of

    # Names on a disk may be any bytes.
    names = enumerate(listed_items(listed, null, crlf or ("keep" if null else None)), 1)
    empty = Outcome("", None, None, None, None, "bad-name", "the name is empty")
    return map(source_of(), (name or empty._replace(path=f"{listed}:{number}") for number, name in names))


def _refuse_same(output: str | None, paths: tuple[bytes, ...]) -> None:
    """Check that the output does not replace a file to be hashed."""
    if output is None or not os.path.isfile(output):
        return
    for path in paths:
        with contextlib.suppress(OSError, ValueError):  # reading it reports the error
            if os.path.samefile(path, output):
                raise CallError(f"{output}: input and output are the same file; choose another output")
