"""``pressmark bag validate --workers``: bags are validated by several workers, and can be resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import islice
from typing import Any

from pressmark.bagit.job import BAGS, ValidateBags
from pressmark.bagit.problems import BagReport
from pressmark.cli.bag.problems import Problems
from pressmark.cli.common.progress import Reporter
from pressmark.cli.common.workers import Workers
from pressmark.errors import BagError
from pressmark.fs.beneath import open_regular
from pressmark.jobs import Receipt
from pressmark.reports import Problem, Progress

__all__ = ["validate_by_workers"]

CHUNKS, LEAST = 16, 20  # of bags, and bags in one


def validate_by_workers(
    workers: Workers, bags: tuple[bytes, ...], rules: dict[str, Any], problems: Problems, reporter: Reporter
) -> Iterator[tuple[bytes, BagReport | BagError, None]]:
    """Have ``bags`` validated by workers, and write their problems, bag by bag.

    :param rules: arguments of :class:`~pressmark.bagit.ValidateBags`
    :return: each bag, and its report or the error that prevented its validation
    """
    job = ValidateBags(**rules)
    done = Progress()

    def count(receipt: Receipt) -> None:
        nonlocal done
        done = done.plus(receipt.n, receipt.bytes, receipt.errors)
        reporter.on_event(done)

    paths = [os.fsdecode(os.path.abspath(bag)) for bag in bags]
    # Enough chunks to keep the workers busy until the end.
    size = min(BAGS, max(LEAST, len(bags) // CHUNKS))
    work = workers.run(job, lambda folder: job.plan(folder, bags, size), paths, None, count)
    waiting = zip(bags, paths, strict=True)
    # All keys that not every summary has are counts.
    others = {"path", *BagReport(level=job.level, keep=0).summary()}
    for receipt in work.receipts():
        unread = [record for record in work.failures(receipt) if record["status"] == "unreadable"]
        assert receipt.output is not None
        with open_regular(work.output_path(receipt.output)) as lines:
            records = list(map(json.loads, lines))
        for bag, path in islice(waiting, receipt.n):
            problems.begin(bag)
            if not records or records[0]["path"] != path:
                yield bag, BagError(bag, unread.pop(0)["message"]), None
                continue
            record = records.pop(0)
            report = BagReport(level=job.level, keep=0)
            for one in map(Problem.from_record, record.pop("problems")):
                problems.write(one)
                report.add([one])
            report.counts.update((name, record[name]) for name in record if name not in others)
            yield bag, report, None
