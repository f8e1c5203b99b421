"""The report on a store: one pass over it, and the state of its audits."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import time

from pressmark.progress_event import Progress
from pressmark.reports import ERROR, Problem
from pressmark.stores.audits.audit import name_in_state
from pressmark.stores.audits.audit_state import last_results
from pressmark.stores.problems import REMEDIES, REPAIRED
from pressmark.stores.reporting.measuring import measure
from pressmark.stores.reporting.report_data import DAYS, ProblemCount, StoreReportData
from pressmark.stores.store import Store

__all__ = ["ProblemCount", "StoreReport", "report"]


@dataclass(frozen=True)
class StoreReport(StoreReportData):
    """The report on a store, which can be written as a page."""

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the report as an HTML page, replacing the file atomically; requires the extra ``report``.

        :raises ReportError: a package is missing, or the file cannot be written
        """
        from pressmark.stores.reporting.store_page import write_store_page  # few reports are pages

        write_store_page(self, path)


def report(
    store: Store,
    state: str | bytes | os.PathLike[str] | None = None,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    ignore: Sequence[str] = (),
) -> StoreReport:
    """Report how much a store contains, its growth, its formats, its problems, and how much of it is verified.

    One pass over the store checks each object without reading content, as :meth:`Store.check` does, and measures it.

    >>> from pressmark import stores
    >>> store = stores.create("pairtree", "pairtree")
    >>> store.put("ark:/13030/xt12t3", {"page.txt": b"page 1"}).id
    'ark:/13030/xt12t3'
    >>> report = stores.report(store)
    >>> report.statistics.objects, report.statistics.files, report.statistics.bytes, report.ok
    (1, 1, 6, True)

    :param state: the state of :func:`audit`, which is not changed; without it, the report has no coverage
    :param threads: number of threads; :data:`None` for one per core
    :param progress: objects that were measured; the problems found so far have ``failed``
    :param ignore: globs of names to ignore, such as ``.DS_Store``
    :raises AuditError: an audit uses the state, or it is not that of this store
    :raises StoreError: the store cannot be read
    """
    now = int(time())
    audited = None if state is None else last_results(state, name_in_state(store), store.kind, DAYS, now)
    counts: dict[tuple[str, str, str | None], ProblemCount] = {}

    def on_event(event: object) -> None:
        if not isinstance(event, Problem):
            if progress is not None:
                progress(event)
            return
        # One problem is reported for all objects that do not follow a recommendation.
        code = event.code if event.kind in ("inventory-advice", "extension-unregistered") else None
        key = event.kind, event.severity, code
        before = counts.get(key)
        if before is None:
            counts[key] = ProblemCount(*key[:2], 1, event.path, event.message, _remedy(event.kind))
        else:
            counts[key] = replace(before, count=before.count + 1)

    statistics = measure(store, on_event, threads, ignore)
    for key, one in counts.items():
        if number := statistics.advised.get(key[2] or ""):
            counts[key] = replace(one, objects=number + one.count - 1)  # the root may have this problem, too
    if audited is not None:
        # No audit has listed them yet.
        new = max(0, statistics.objects - audited.objects)
        audited = audited._replace(objects=audited.objects + new, never=audited.never + new)
    damaged = {} if audited is None else audited.kinds
    return StoreReport(
        store.root,
        store.kind,
        None if store.layout is None else store.layout.name,
        now,
        statistics,
        tuple(sorted(counts.values(), key=lambda one: (one.severity != ERROR, -one.count, one.kind))),
        audited,
        tuple(ProblemCount(kind, ERROR, number, path, "", _remedy(kind)) for kind, (number, path) in damaged.items()),
    )


def _remedy(kind: str) -> str:
    """Return what to do about problems of a kind."""
    from pressmark.bagit.problems import REMEDIES as OF_BAGS  # most stores have no problems

    if kind in REPAIRED:
        return "repair the store"
    return {**OF_BAGS, **REMEDIES}.get(kind, "see the message").replace("`", "")
