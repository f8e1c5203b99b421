"""Runs that stand on each other: a catch-up goes by what the run before it has done, which may be a catch-up, too."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

from pressmark.errors import MigrationError
from pressmark.fs.atomic import Replacement
from pressmark.migrate.id_index import IdentifierIndex
from pressmark.migrate.planning.plan import Plan
from pressmark.migrate.rows import GOOD, Row
from pressmark.migrate.run_folder import finished_rows

__all__ = ["migrated_rows", "runs"]

#: The rows of all that a chain of runs has migrated.
MIGRATED = "migrated.jsonl"
# What is in the destination, by an earlier run's row.
_THERE = GOOD | {"unverified"}


def runs(plan: Plan) -> Iterator[Plan]:
    """Give a plan, that of the run that it caught up with, and so on; the first run comes last.

    :raises MigrationError: the work folder of one of them is gone
    """
    yield plan
    while plan.before is not None:
        folder = os.path.normpath(os.path.join(plan.work, plan.before))
        if not os.path.isdir(folder):
            what = f"the run in {plan.work} caught up with the one in {folder}, which is gone: bring that folder back"
            raise MigrationError(plan.options.source, plan.options.destination, what)
        plan = Plan.open(folder)
        yield plan


def migrated_rows(plan: Plan) -> tuple[str, str, int]:
    """Return a file with a row for each object that a run and those before it have migrated, and its SHA-256 in hex.

    All rows of the run itself are in it, and of the others what no later one has a row for: so many are added.

    :raises MigrationError: the work folder of an earlier run is gone
    :raises JobError: rows are not as their run has written them
    """
    (path, digest), *before = map(finished_rows, runs(plan))
    if not before:
        return path, digest, 0
    paths = [path, *(earlier for earlier, _digest in before)]
    whole = os.path.join(plan.work, MIGRATED)
    added = 0
    sha256 = hashlib.sha256()
    new = Replacement(whole, part=f"{whole}.new", durable=False)
    with IdentifierIndex(plan.work) as newest, new as file:
        newest.fill((Row.parse(line).id, str(number)) for number, (line, _own) in enumerate(_lines(paths)))
        numbers = (int(number) for _identifier, number in newest.items())
        wanted = next(numbers, None)
        for number, (line, own) in enumerate(_lines(paths)):
            latest = number == wanted
            if latest:
                wanted = next(numbers, None)
            if latest or own:
                file.write(line)
                sha256.update(line)
                added += not own
    return whole, sha256.hexdigest(), added


def _lines(paths: list[str]) -> Iterator[tuple[bytes, bool]]:
    """Give the rows of runs, the newest run's first, and whether they are that run's own."""
    for number, path in enumerate(paths):
        own = number == 0
        with open(path, "rb") as lines:
            for line in lines:
                if own or Row.facts(line).status in _THERE:
                    yield line, own
