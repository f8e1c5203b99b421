"""Map a list of lines with several workers."""

from __future__ import annotations

import shutil
from itertools import islice
from typing import BinaryIO

from pressmark.cli.common.files import Source
from pressmark.cli.common.progress import LineProgress
from pressmark.cli.common.workers import Workers
from pressmark.errors import IdentifierError, PathError
from pressmark.jobs import Receipt
from pressmark.layouts import LineCounts, MapIds

__all__ = ["map_with_workers"]


def map_with_workers(
    workers: Workers,
    job: MapIds,
    stop: bool,
    source: Source,
    output: str | None,
    target: BinaryIO,
    progress: LineProgress,
) -> LineCounts:
    """Write the same output as one process to ``target``, and return the same counts.

    :param stop: end the run at the first item that fails
    :param output: the name of the output file; the work folder is beside it
    :raises IdentifierError: an item failed, under ``stop``; :exc:`PathError` where paths are mapped
    """
    counts = done = LineCounts()

    def count(receipt: Receipt) -> None:
        nonlocal done
        done = LineCounts(done.items + receipt.n, done.failed + receipt.errors, done.bytes_read + receipt.bytes)
        source.bytes_read = done.bytes_read
        progress.on_progress(done)

    error_class = PathError if job.unmap else IdentifierError
    work = workers.run(job, lambda _: job.plan(source.name), [source.name], output, count)
    for receipt in work.receipts():
        errors = (
            error_class(record["item"], counts.items + record["row"] - 1, record["reason"])
            for record in work.failures(receipt)
        )
        assert receipt.output is not None
        with open(work.output_path(receipt.output), "rb") as lines:
            if stop and receipt.errors:
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
