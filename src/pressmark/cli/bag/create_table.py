"""``pressmark bag create --table``: a bag for each row of a table."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import closing
from typing import Any

from pressmark.bagit import TableBag, create_from_table
from pressmark.bagit.bag_info import read_oxum
from pressmark.cli.bag.options import STAGES
from pressmark.cli.common.console import problem_text
from pressmark.cli.common.output import Output
from pressmark.cli.common.progress import format_count

__all__ = ["create_rows"]

INTERRUPTED = "interrupted; the bags that exist are complete; run the same command again to create the others"


def create_rows(table: str, destination: bytes, progress: bool | None, as_json: bool, **how: Any) -> int:
    """Create the bags, write a line for each row, and return the exit status.

    :param how: the other arguments of :func:`pressmark.bagit.create_from_table`
    """
    counts: Counter[str] = Counter()

    with Output(progress, as_json=as_json, go_on=True, stages=STAGES, interrupted=INTERRUPTED) as output:
        with closing(create_from_table(table, destination, progress=output.progress, **how)) as results:  # type: ignore[type-var]
            for result in results:
                counts[result.status] += 1
                _write(result, table, output)
        summary = {name: counts[name] for name in ("created", "exists", "failed")}
        output.summary({"ok": not counts["failed"], **summary})
    pieces = [f"{format_count(counts['created'], 'bag')} created"]
    if counts["exists"]:
        pieces.append(f"{counts['exists']:,} created before")
    output.tell(f"{os.fsdecode(destination)}: {', '.join(pieces)}; {counts['failed']:,} failed")
    return output.status


def _write(result: TableBag, table: str, output: Output) -> None:
    """Write the line of a row, and its problems."""
    for problem in result.problems:
        output.reporter.report(problem_text(problem, os.fsencode(result.source)))
    size, files = (result.bag and read_oxum(result.bag.info.first("Payload-Oxum") or "")) or (0, 0)
    if result.error is not None:
        message = str(result.error)
        where = f"{table}:{result.row}: "
        output.reporter.fail(message if message.startswith(where) else where + message)
    if output.as_json:
        record = {"row": result.row, "status": result.status, "source": result.source, "path": result.path}
        if result.error is not None:
            output.record({**record, "message": str(result.error)})
        else:
            output.record({**record, "files": files, "bytes": size})
    elif result.error is None:
        number = str(result.row)
        output.row(result.path, number, result.status, str(files), str(size), result.path, done="bag created")
