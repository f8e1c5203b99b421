"""Migration of objects from one store to another: planned, verified and resumable.

>>> from pressmark import migrate
>>> plan = migrate.plan("/data/pairtree", "/data/ocfl", to="ocfl", layout="0003")     # doctest: +SKIP
>>> run = migrate.run(plan)                                                           # doctest: +SKIP
>>> run.ok, run.by_status                                                             # doctest: +SKIP
(True, {'ok': 89067})

A plan with conflicts is refused before anything is written to the destination. The state of a run is in its work folder
next to the destination: see :mod:`pressmark.migrate.workdir`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pressmark.migrate.execution.driver import RunOptions
    from pressmark.migrate.execution.run import resume, run
    from pressmark.migrate.execution.run_result import Run
    from pressmark.migrate.execution.verify import verify
    from pressmark.migrate.options import COPY_MODES, IMPROPER, LINKS, VERIFICATIONS, Options, make_options
    from pressmark.migrate.phases import PHASES, MigrationProgress
    from pressmark.migrate.planning.catch_up import catch_up
    from pressmark.migrate.planning.entry import PlanEntry
    from pressmark.migrate.planning.plan import Plan, refuse_others
    from pressmark.migrate.planning.planner import plan
    from pressmark.migrate.reporting.report import report
    from pressmark.migrate.rows import GOOD, SOURCE_KEPT, STATUSES, Row
    from pressmark.migrate.workdir import finished_folder, state, work_folder

__all__ = [
    "COPY_MODES",
    "GOOD",
    "IMPROPER",
    "LINKS",
    "PHASES",
    "SOURCE_KEPT",
    "STATUSES",
    "VERIFICATIONS",
    "MigrationProgress",
    "Options",
    "Plan",
    "PlanEntry",
    "Row",
    "Run",
    "RunOptions",
    "catch_up",
    "finished_folder",
    "make_options",
    "plan",
    "refuse_others",
    "report",
    "resume",
    "run",
    "state",
    "verify",
    "work_folder",
]

# The module of each name, imported when the name is first used.
_MODULES = {
    "execution.driver": ("RunOptions",),
    "execution.run": ("resume", "run"),
    "execution.run_result": ("Run",),
    "execution.verify": ("verify",),
    "options": ("COPY_MODES", "IMPROPER", "LINKS", "VERIFICATIONS", "Options", "make_options"),
    "phases": ("PHASES", "MigrationProgress"),
    "planning.catch_up": ("catch_up",),
    "planning.entry": ("PlanEntry",),
    "planning.plan": ("Plan", "refuse_others"),
    "planning.planner": ("plan",),
    "reporting.report": ("report",),
    "rows": ("GOOD", "SOURCE_KEPT", "STATUSES", "Row"),
    "workdir": ("finished_folder", "state", "work_folder"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used."""
    if name in _MODULE_OF:
        return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
