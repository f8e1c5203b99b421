"""Map a list of lines with several workers."""

from __future__ import annotations

import shutil
from itertools import islice
from typing import BinaryIO

from pressmark.cli.common.files import InputStream
from pressmark.cli.common.progress import LineProgress
from pressmark.cli.common.workers import Workers
from pressmark.errors import IdentifierError, PathError
from pressmark.fs.beneath import open_regular
from pressmark.jobs import Receipt
from pressmark.layouts import Layout, LineCounts, MapIds
from pressmark.tabular.detection import Crlf

__all__ = ["map_with_workers", "refuse_undivided"]


def refuse_undivided(
    workers: Workers, gunzip: bool, file: str | None, column: str | None, null: bool, threads: int
) -> None:
    """Refuse input that cannot be divided among workers."""
    workers.refuse(
        (file is None or file == "-", "standard input cannot be divided among workers; use a FILE or"),
        (gunzip, f"{file}: gzip cannot be divided among workers; decompress it or"),
        (column is not None, "--column: tables are mapped by one process;"),
        (null, "-0: only lists of lines are divided among workers;"),
        (threads, "--threads: each worker has one thread;"),
    )


def map_with_workers(
    workers: Workers,
    layout: Layout,
    unmap: bool,
    crlf: Crlf | None,
    both: bool,
    on_error: str,
    source: InputStream,
    output: str | None,
    target: BinaryIO,
    progress: LineProgress,
) -> LineCounts:
    """Write the same output as one process to ``target``, and return the same counts.

    :param on_error: ``stop``: end the run at the first item that fails; ``skip``; ``empty``
    :param output: the name of the output file; the work folder is next to it
    :raises IdentifierError: an item failed, under ``stop``; :exc:`PathError` where paths are mapped
    """
    job = MapIds(
        layout, unmap, format="lines", crlf=crlf, both=both, on_error="empty" if on_error == "empty" else "skip"
    )
    counts = done = LineCounts()

    def count(receipt: Receipt) -> None:
        nonlocal done
        done = LineCounts(done.items + receipt.n, done.failed + receipt.errors, done.bytes_read + receipt.bytes)
        source.bytes_read = done.bytes_read
        progress.on_progress(done)

    error_class = PathError if unmap else IdentifierError
    work = workers.run(job, lambda _: job.plan(source.name), [source.name], output, count)
    for receipt in work.receipts():
        errors = (
            error_class(record["item"], counts.items + record["row"] - 1, record["reason"])
            for record in work.failures(receipt)
        )
        assert receipt.output is not None
        with open_regular(work.output_path(receipt.output)) as lines:
            if on_error == "stop" and receipt.errors:
                error = next(errors)
                for line in islice(lines, (error.index or 0) - counts.items):
                    target.write(line)
                target.flush()
                workers.remove()
                raise error
            shutil.copyfileobj(lines, target)
        for error in errors:
            progress.on_failure(error)
        counts = LineCounts(counts.items + receipt.n, counts.failed + receipt.errors)
    target.flush()
    return counts
