"""Chains of runs: a catch-up continues the previous run, which may also be a catch-up."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

from pressmark.errors import MigrationError
from pressmark.fs.atomic import Replacement
from pressmark.fs.beneath import open_regular
from pressmark.migrate.entry import GOOD, Entry
from pressmark.migrate.id_index import IdentifierIndex
from pressmark.migrate.planning.plan import Plan
from pressmark.migrate.workdir import MIGRATED, finished_rows

__all__ = ["chain_of_runs", "migrated_rows"]

# Statuses of objects that an earlier run has stored in the destination.
_STORED = GOOD | {"unverified"}


def chain_of_runs(plan: Plan) -> Iterator[Plan]:
    """Yield a plan, the plan of the run that it caught up with, and so on to the first run.

    :raises MigrationError: the work folder of a run is missing
    """
    yield plan
    while plan.before is not None:
        folder = os.path.normpath(os.path.join(plan.work, plan.before))
        if not os.path.isdir(folder):
            what = f"work folder of the previous run not found: {folder}; restore it"
            raise MigrationError(plan.options.source, plan.options.destination, what)
        plan = Plan.open(folder)
        yield plan


def migrated_rows(plan: Plan) -> tuple[str, str, int]:
    """Return a file with the newest row of each object that a chain of runs has migrated, and its SHA-256 in hex.

    The file contains all rows of the run itself. The third value is the number of rows from earlier runs.

    :raises MigrationError: the work folder of an earlier run is missing
    :raises JobError: rows were changed after their run wrote them
    """
    (path, digest), *before = (finished_rows(run.work) for run in chain_of_runs(plan))
    if not before:
        return path, digest, 0
    paths = [path, *(earlier for earlier, _digest in before)]
    whole = os.path.join(plan.work, MIGRATED)
    added = 0
    sha256 = hashlib.sha256()
    new = Replacement(whole, part=f"{whole}.new", durable=False)
    with IdentifierIndex(plan.work) as newest, new as file:
        newest.fill((Entry.parse(line).id, str(number)) for number, (line, _own) in enumerate(_lines(paths)))
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
    """Yield the rows of runs, the newest run first, and whether they are from the newest run."""
    for number, path in enumerate(paths):
        own = number == 0
        with open_regular(path) as lines:
            for line in lines:
                if own or Entry.parse(line).status in _STORED:
                    yield line, own
