"""The work folder of a run: the names of its files, and how far it is.

::

    <work>/
    ├── begun.json        the run has begun; its plan is not replaced any more
    ├── output/           the rows of each chunk
    ├── copied.jsonl      with ``move``: all rows, before sources are removed
    ├── removal/          with ``move``: the work folder of the removal
    ├── rows.jsonl        all rows: the plan's order, then the objects that the plan left out
    ├── remaining.txt     identifiers of objects that are not done: a list for another plan
    ├── finished.json     how the run ended
    ├── migrated.jsonl    of a catch-up: its rows, and those of earlier runs that it has no row for
    └── verify-1/, …      work folders of verifications

The files of a plan are in :mod:`pressmark.migrate.planning.plan`.
"""

from __future__ import annotations

import json
import os

from pressmark.errors import JobError
from pressmark.migrate.object_digest import sha256_of
from pressmark.migrate.planning.plan import BEGUN, PLAN, PLANNED, Plan

__all__ = ["COPIED", "FINISHED", "REMAINING", "REMOVAL", "ROWS", "VERIFICATION", "finished_rows", "is_of_run", "state"]

ROWS, COPIED, REMAINING, FINISHED = "rows.jsonl", "copied.jsonl", "remaining.txt", "finished.json"
#: The work folder of the removal of sources, and the beginning of the names of those of verifications.
REMOVAL, VERIFICATION = "removal", "verify-"
_OWN = PLANNED | {BEGUN, ROWS, COPIED, REMAINING, FINISHED}
_SUBFOLDERS = frozenset({"receipts", "output"})


def state(work: str | os.PathLike[str]) -> str:
    """Return how far a work folder is: ``none``, ``planned``, ``begun`` or ``finished``."""
    folder = os.fspath(work)
    for name, word in ((FINISHED, "finished"), (BEGUN, "begun"), (PLAN, "planned")):
        if os.path.exists(os.path.join(folder, name)):
            return word
    return "none"


def is_of_run(path: str, work: str) -> bool:
    """Return whether a file is one that a run, or its plan, has for itself.

    :param work: the work folder of the next run, which need not be there
    """
    folder, name = os.path.split(os.path.realpath(path))
    if os.path.basename(folder) in _SUBFOLDERS:
        folder = os.path.dirname(folder)
    elif name not in _OWN:
        return False
    return folder == os.path.realpath(work) or os.path.exists(os.path.join(folder, "run.json"))


def finished_rows(plan: Plan) -> tuple[str, str]:
    """Return the file with all rows of a run that is finished, and its SHA-256 in hex.

    :raises JobError: it is not as the run has written it
    """
    path = os.path.join(plan.work, ROWS)
    found = sha256_of(path)
    try:
        with open(os.path.join(plan.work, FINISHED), "rb") as file:
            written = json.load(file)["rows_sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        written = None
    if found != written:
        raise JobError(path, "changed since the run wrote it; resume the run to merge the rows again")
    return path, found
