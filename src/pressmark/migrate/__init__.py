"""Migration of objects from one store to another: planned, verified and resumable.

>>> from pressmark import migrate, stores
>>> store = stores.create("pairtree", "tree")
>>> stored = store.put("a", {"page.txt": b"page 1"})
>>> plan = migrate.plan("tree", "root", to="ocfl", layout="0003")
>>> run = migrate.run(plan, processes=False)
>>> run.ok, run.by_status
(True, {'ok': 1})

A plan with conflicts is refused before anything is written to the destination. The state of a run is in its work folder
next to the destination: see :mod:`pressmark.migrate.workdir`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pressmark.lazy import face

if TYPE_CHECKING:
    from pressmark.migrate.entry import (
        GOOD as GOOD,
        STATUSES as STATUSES,
        Entry as Entry,
    )
    from pressmark.migrate.execution.run import resume as resume, run as run
    from pressmark.migrate.execution.run_result import Run as Run
    from pressmark.migrate.execution.verify import verify as verify
    from pressmark.migrate.options import (
        COPY_MODES as COPY_MODES,
        IMPROPER as IMPROPER,
        LINKS as LINKS,
        VERIFICATIONS as VERIFICATIONS,
        Options as Options,
        make_options as make_options,
    )
    from pressmark.migrate.planning.plan import Plan as Plan
    from pressmark.migrate.planning.planner import catch_up as catch_up, plan as plan
    from pressmark.migrate.reporting.report import report as report
    from pressmark.migrate.workdir import finished_folder as finished_folder, state as state, work_folder as work_folder

__all__, __getattr__, __dir__ = face(
    __name__,
    {
        ".entry": "Entry GOOD STATUSES",
        ".execution.run": "resume run",
        ".execution.run_result": "Run",
        ".execution.verify": "verify",
        ".options": "COPY_MODES IMPROPER LINKS VERIFICATIONS Options make_options",
        ".planning.plan": "Plan",
        ".planning.planner": "catch_up plan",
        ".reporting.report": "report",
        ".workdir": "finished_folder state work_folder",
    },
)
