"""The report of a check, and second checks: another run may have been changing an object during the first.

An object that is being put, replaced or removed is briefly between two states. So a problem that was found only once is
not reported: the check waits until no run publishes, and is repeated until two results agree. Real problems remain.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import sleep
from typing import TypeVar

from pressmark.fs.locks import lock_descriptor
from pressmark.fs.names import encode_fs
from pressmark.fs.staging import LOCK, leftovers
from pressmark.reports import Problem, Progress, Report
from pressmark.stores.objects import OnEvent, OnProblem, StoreObject
from pressmark.stores.problems import problem

__all__ = [
    *("LOOKS", "Item", "RunningReport", "abandoned", "agreed", "await_turn", "changing", "settled"),
    "settled_objects",
]

Item = StoreObject | Problem
T = TypeVar("T")

LOOKS = 10
# Moving something takes a moment, unless the run is suspended while it holds the lock.
PAUSE = 0.01  # seconds
PAUSES = 500
# Neither follow a link nor wait for a named pipe in place of the lock.
_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"))


def agreed(
    found: T,
    again: Callable[[], T],
    is_fine: Callable[[T], bool],
    folder: bytes,
    *,
    is_same: Callable[[T, T], bool] = operator.eq,
) -> tuple[T, bool]:
    """Repeat a check until two results agree, or one of them contains no problem.

    :param found: the first result
    :param again: repeats the check, and returns its result
    :param folder: the work directory of the runs that may be changing the object
    :return: the last result, and False if no two results agree
    """
    for _ in range(LOOKS):
        if is_fine(found):
            return found, True
        await_turn(folder)
        before, found = found, again()
        if is_same(before, found):
            return found, True
    return found, is_fine(found)


def settled(item: Item, again: Callable[[], list[Item]], folder: bytes) -> list[Item]:
    """Check an item with a problem again, and return the items in its place; an empty list if it no longer exists.

    :param again: returns the items that a walk finds there now
    :param folder: the work directory of the runs that may be changing it
    """

    def is_fine(items: list[Item]) -> bool:
        return all(isinstance(one, StoreObject) and not one.problems for one in items)

    found, is_settled = agreed([item], again, is_fine, folder)
    return found if is_settled else [changing(item)]


def settled_objects(
    walk: Iterable[Item], second_look: Callable[[Item], list[Item]], on_problem: OnProblem | None
) -> Iterator[StoreObject]:
    """Yield the objects that a walk finds; problems outside of objects are passed to ``on_problem``.

    :param second_look: returns the items in the place of an item with a problem
    """
    for found in walk:
        if isinstance(found, StoreObject) and not found.problems:
            yield found
            continue
        for item in second_look(found):
            if isinstance(item, StoreObject):
                yield item
            elif on_problem is not None:
                on_problem(item)


def changing(item: Item) -> Item:
    """Return an item with the problem ``object-changing``."""
    found = problem("object-changing", encode_fs(item.path))
    return item._replace(proper=False, problems=(found,)) if isinstance(item, StoreObject) else found


def await_turn(folder: bytes) -> None:
    """Wait until no run publishes or removes objects.

    :param folder: work directory of the store; if it does not exist, no run is changing the store
    """
    for _ in range(PAUSES):
        try:
            descriptor = os.open(os.path.join(folder, LOCK), _FLAGS)
        except OSError:
            return
        try:
            lock_descriptor(descriptor)
            return
        except BlockingIOError:
            pass
        except OSError:
            return  # the file system has no locks
        finally:
            os.close(descriptor)
        sleep(PAUSE)


def abandoned(folder: bytes) -> Sequence[bytes]:
    """Return the private directories that killed runs have left in a work directory.

    When a run starts or ends, its directory is briefly empty or its lock is not held, so only directories that are
    found twice are returned.
    """
    found = leftovers(folder)
    for _ in range(LOOKS):
        if not found:
            break
        sleep(PAUSE)
        still = leftovers(folder)
        found = [path for path in found if path in still]
        if not any(map(_is_empty, found)):
            break
    return found


def _is_empty(directory: bytes) -> bool:
    try:
        return not os.listdir(directory)
    except OSError:
        return False


class RunningReport:
    """The report of one check: problems are reported at once, progress at intervals.

    :param every: number of objects between two progress events
    :ivar report: the problems found so far
    """

    def __init__(self, on_event: OnEvent | None, on_problem: OnProblem | None, every: int) -> None:
        self.report = Report(counts={"objects": 0, "proper": 0})
        self._on_event = on_event
        self._on_problem = on_problem
        self._every = every

    def add(self, problems: Iterable[Problem]) -> None:
        """Add problems, and report them."""
        for found in problems:
            self.report.problems.append(found)
            if self._on_problem is not None:
                self._on_problem(found)

    def add_item(self, item: Item) -> None:
        """Count an object and add its problems, or add a problem outside of objects."""
        if isinstance(item, Problem):
            self.add([item])
            return
        counts = self.report.counts
        counts["objects"] += 1
        counts["proper"] += item.proper
        if item.problems:
            self.add(item.problems)
        if counts["objects"] % self._every == 0:
            self._report_progress()

    def finish(self) -> Report:
        """Report the final progress, and return the report."""
        self._report_progress()
        return self.report

    def _report_progress(self) -> None:
        if self._on_event is not None:
            self._on_event(Progress(items=self.report.counts["objects"], failed=len(self.report.problems)))
