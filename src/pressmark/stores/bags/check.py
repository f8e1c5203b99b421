"""The check of a folder of bags: every bag is validated, again if another run has changed it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import cast

from pressmark.bagit.archive import validate_archive
from pressmark.bagit.problems import BagReport, problem as bag_problem
from pressmark.bagit.validation.validate import validate
from pressmark.errors import BagError, SpillError, StoreError
from pressmark.fs.names import encode_fs
from pressmark.reports import Problem, Report
from pressmark.stores.bags.walk import BagWalk, within
from pressmark.stores.exceptions import store_errors
from pressmark.stores.objects import OnEvent, OnProblem, StoreObject
from pressmark.stores.problems import problem
from pressmark.stores.recheck import LOOKS, Item, RunningReport, await_turn, changing
from pressmark.stores.stored_object import is_same_version, status_of

__all__ = ["check", "examined", "validated"]

PROGRESS_EVERY = 100  # bags
# Attempts for a bag with a file that is being written.
REREADS = 3
# Problems of serialized bags that are not read a second time.
_UNREAD = ("archive-malformed", "archive-limit")


def check(
    walk: BagWalk,
    digests: bool,
    threads: int | None,
    on_event: OnEvent | None,
    selected: Callable[[OnProblem], Iterable[StoreObject]] | None = None,
) -> Report:
    """Validate every bag, or the selected ones; see :meth:`pressmark.stores.BagFolder.check`.

    :param selected: returns the records of the selected bags, and passes problems outside of them to its argument
    """
    run = RunningReport(on_event, 1 if digests else PROGRESS_EVERY)
    run.report.counts.update(files=0, bytes=0)
    for record in walk.objects(on_problem=run.add_item) if selected is None else selected(run.add_item):
        for item in examined(walk, record, digests, threads, run.report):
            run.add_item(item)
    return run.finish()


def examined(walk: BagWalk, record: StoreObject, digests: bool, threads: int | None, report: Report) -> list[Item]:
    """Validate the bag of a record of :meth:`BagWalk.objects`; again if another run has changed it.

    :param report: the report to which the numbers of files and bytes are added
    :return: the record with all problems of the bag, or the items that replace it; empty if it no longer exists
    """
    double = tuple(one for one in record.problems if one.kind == "duplicate-id")
    for look in range(LOOKS):
        path = encode_fs(record.path)
        seen = _state(walk, path)
        counts = Report(counts={"files": 0, "bytes": 0})
        problems = list(validated(walk, record, digests, threads, counts))
        # Problems of tag files are reported again by the validation.
        problems = [one for one in record.problems if one not in problems] + problems
        if walk.is_remote or not any(one.severity == "error" for one in problems):
            break
        await_turn(walk.work_directory)
        now = walk.again(record)
        is_same = _without_double(now) == _without_double([record])
        if is_same and all(map(is_same_version, seen, _state(walk, path))):
            # A file written in place leaves no other trace.
            if look + 1 >= REREADS or not any(one.kind == "file-changing" for one in problems):
                break
        elif len(now) != 1 or isinstance(now[0], Problem):
            # The bag is gone, or replaced by a file or a directory of bags.
            parts = (
                [one] if isinstance(one, Problem) else examined(walk, one, digests, threads, report) for one in now
            )
            return list(chain.from_iterable(parts))
        record = cast(StoreObject, now[0])
        if record.id is not None and double:
            record = record._replace(proper=False, problems=(*_walked(record), *double))
    else:
        return [changing(record)]
    for name, count in counts.counts.items():
        report.counts[name] += count
    return [record._replace(problems=tuple(problems))]


def _state(walk: BagWalk, path: bytes) -> list[os.stat_result | None]:
    """Return the statuses that distinguish a bag from others at the same path."""
    full = os.path.join(walk.base, path)
    return [status_of(full), status_of(os.path.join(full, b"data"))]


def validated(
    walk: BagWalk, record: StoreObject, digests: bool, threads: int | None, report: Report
) -> Iterator[Problem]:
    """Validate the bag of a record of :meth:`BagWalk.objects` in its current state, and yield its problems.

    :param report: the report to which the numbers of files and bytes are added
    """
    path = encode_fs(record.path)
    full = os.path.join(walk.base, path)
    try:
        is_folder = walk.is_tree(path)
    except OSError as error:
        yield problem("unreadable", path, error.strerror or str(error))
        return
    if is_folder:
        level = "full" if digests else "complete"
        yield from _validated_by(walk, lambda: validate(full, level, threads=threads), path, report)
    elif not digests:
        yield problem("archive-unchecked", path)
    elif not any(one.kind in _UNREAD for one in record.problems):
        yield from _validated_by(walk, lambda: validate_archive(full, threads=threads), path, report)


def _validated_by(walk: BagWalk, validation: Callable[[], BagReport], path: bytes, report: Report) -> Iterator[Problem]:
    try:
        # Errors of temporary files are not the bag's.
        with store_errors(walk.base):
            found = validation()
    except BagError as error:
        yield problem("unreadable", path, error.reason)
        return
    except SpillError as error:
        raise StoreError(error.path, error.reason) from error.__cause__
    for name in ("files", "bytes"):
        report.counts[name] += found.counts.get(name, 0)
    yield from (within(path, one) for one in found.problems)
    omitted = found.tally.total() - len(found.problems)
    if omitted:  # errors may be among them
        severity = "warning" if found.ok else "error"
        yield bag_problem("problems-omitted", path, f"{omitted} more problems in the bag", severity=severity)


def _walked(record: StoreObject) -> tuple[Problem, ...]:
    """Return the problems of a bag, except a duplicate identifier."""
    return tuple(one for one in record.problems if one.kind != "duplicate-id")


def _without_double(items: Sequence[Item]) -> list[object]:
    """Return items in a form that is equal for two checks of an unchanged bag."""
    return [one if isinstance(one, Problem) else (one.id, one.path, _walked(one)) for one in items]
