"""The objects that a chain of runs has migrated: a catch-up continues a run, which may also be a catch-up.

A catch-up migrates objects that are new, that were not done, or whose entries differ from those of the first run:
names, kinds, sizes, and times of modification and of status change. An object whose content is the same after all, such
as one from a restored backup, is compared with the destination and reported as ``exists_same``. Objects keep the
identifiers that the first run gave them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from pressmark.errors import JobError
from pressmark.migrate.entry import GOOD, read_entries
from pressmark.migrate.id_index import IdentifierIndex
from pressmark.migrate.object_digest import has_same_content_times, sha256_of
from pressmark.migrate.planning.plan import Plan
from pressmark.migrate.planning.source import Measure
from pressmark.migrate.workdir import ENTRIES, finished_rows

__all__ = ["PreviousRuns"]

# Instead of the entries of an object that a run has moved: if the source has one again, it is another object.
_MOVED = "moved"
# Instead of those of an object whose files are those of another version.
_OTHER_VERSION = "other version"


class PreviousRuns:
    """The objects that a chain of runs has migrated, which a plan omits unless they have changed.

    :param plan: plan of the last run, which is finished
    :param index: empty; filled with the migrated objects
    :param version: the version of OCFL objects to migrate: objects migrated in another version count as changed
    :ivar plan: the plan
    :raises MigrationError: the work folder of an earlier run is missing
    :raises JobError: rows or entries are damaged
    """

    def __init__(self, plan: Plan, index: IdentifierIndex, version: str | None = None) -> None:
        self.plan = plan
        self._index = index
        # The newest run first: the first row of an object counts.
        index.fill(item for run in plan.chain() for item in _entries(run, version))

    def changed(self, identifiers: Sequence[str], sizes: Sequence[Measure]) -> list[bool]:
        """Return for each object whether to migrate it again."""
        before = self._index.find(identifiers)
        return [known != one.entries or one.unreadable is not None for known, one in zip(before, sizes, strict=True)]

    def left_out(self, identifier: str) -> None:
        """Record an object that is in the source, but is left out because it is invalid."""
        self._index.find([identifier])

    def gone(self) -> Iterator[str]:
        """Yield the identifiers of migrated objects that are no longer in the source, after processing all other
        objects."""
        for identifier, entries in self._index.unused():
            if entries != _MOVED:
                yield identifier


def _entries(plan: Plan, version: str | None) -> Iterator[tuple[str, str]]:
    """Yield the identifiers of objects that a run has migrated, with the state that detects later changes.

    :raises JobError: rows or entries are damaged
    """
    path = os.path.join(plan.work, ENTRIES)
    if sha256_of(path) != plan.sha256:
        what = "restore it, or migrate the whole source again; unchanged objects are skipped"
        raise JobError(path, f"changed since it was planned; {what}")
    rows, _digest = finished_rows(plan.work)
    # A finished run has a row for each entry, in the order of the plan, before all other rows.
    for entry, row in zip(plan.entries(), read_entries(rows), strict=False):
        if row.status not in GOOD or row.error_code is not None:
            continue
        if plan.options.move:
            yield entry.source_id, _MOVED
        elif plan.options.version != version:
            yield entry.source_id, _OTHER_VERSION
        else:
            # A hard link changes the state. Any other change since the plan is seen by the next run.
            is_linked = row.mode == "hardlink" and has_same_content_times(row.entries, entry.entries)
            yield entry.source_id, row.entries if is_linked else entry.entries
