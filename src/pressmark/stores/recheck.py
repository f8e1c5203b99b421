"""The report of a check, and second checks: another run may have been changing an object during the first.

An object that is being put, replaced or removed is briefly between two states. So a problem that was found only once is
not reported: the check waits until no run publishes, and is repeated until two results agree. Real problems remain.
"""

from __future__ import annotations

import operator
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from time import sleep
from typing import ClassVar, Self, TypeVar

from pressmark.fixity.outcomes import Outcome
from pressmark.fs.durable import is_readable, why_unreadable
from pressmark.fs.file_errors import kind_of_error
from pressmark.fs.locks import lock_descriptor
from pressmark.fs.names import decode_fs, encode_fs, glob_matcher
from pressmark.fs.staging import LOCK, leftovers
from pressmark.reports import Problem, Progress, Report
from pressmark.stores.exceptions import store_errors
from pressmark.stores.objects import OnEvent, OnProblem, StoreObject
from pressmark.stores.problems import problem
from pressmark.threads import require_use

__all__ = [
    *("LOOKS", "Item", "RunningReport", "StoreWalk", "abandoned", "agreed", "await_turn", "changing"),
    *("find_unreadable", "unreadable_file"),
]

Item = StoreObject | Problem
T = TypeVar("T")

LOOKS = 10
# Problems that a running change also causes for a moment.
_PASSING = {"bad-file-name", "duplicate-id", "empty", "files-several", "unfinished", "unreadable"}
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


class StoreWalk(ABC):
    """A walk of a store: its objects, and the problems outside of objects.

    :param base: the store's directory
    :param tree: the directory that the paths of objects are relative to
    :param ignore: globs of names to ignore
    :ivar root: the store, for messages
    :ivar is_ignored: returns whether a name is ignored
    :ivar readable: whether to report files that cannot be read
    """

    #: The name of the work directory, where the tree may be on another file system.
    work_name: ClassVar[bytes]

    def __init__(self, base: bytes, tree: bytes, ignore: Sequence[str]) -> None:
        self.base = base
        self.root = os.fsdecode(base)
        self.tree = tree
        self.ignore = tuple(ignore)
        self.is_ignored = glob_matcher(self.ignore)
        self.readable = False

    def with_options(self, ignore: Sequence[str], readable: bool = False) -> Self:
        """Return this walk with more names to ignore.

        :param readable: report files that cannot be read
        """
        walk = copy(self)
        walk.ignore = (*self.ignore, *ignore)
        walk.is_ignored = glob_matcher(walk.ignore)
        walk.readable = readable
        return walk

    @property
    def work_directory(self) -> bytes:
        """The work directory of the runs that change the store: in it, or in a tree on another file system."""
        same = os.stat(self.base).st_dev == os.stat(self.tree).st_dev
        return os.path.join(self.base if same else self.tree, self.work_name)

    @abstractmethod
    def items(self, threads: int | None = None) -> Iterator[Item]:
        """Yield objects and problems in order, as they are found first.

        :param threads: number of threads that read directories; :data:`None` or 0 for one per core
        """

    @abstractmethod
    def again(self, item: Item) -> list[Item]:
        """Return the items that are found in the place of an item now; empty if it no longer exists."""

    @abstractmethod
    def record_at(self, place: str) -> StoreObject | None:
        """Return the record that the walk yields for a path, relative to :attr:`tree`; :data:`None` without an object.

        :raises OSError: it cannot be read
        """

    def is_fine(self, item: Item) -> bool:
        """Return whether a running change cannot be the reason of an item's problems."""
        problems = item.problems if isinstance(item, StoreObject) else (item,)
        return not any(one.kind in _PASSING for one in problems)

    def second_look(self, item: Item) -> list[Item]:
        """Return an item, or the items in its place if another run was changing it; empty if it no longer exists."""
        if self.is_fine(item):
            return [item]

        def is_settled(items: list[Item]) -> bool:
            return all(isinstance(one, StoreObject) and not one.problems for one in items)

        found, is_agreed = agreed([item], lambda: self.again(item), is_settled, self.work_directory)
        return found if is_agreed else [changing(item)]

    def objects(self, threads: int | None = None, on_problem: OnProblem | None = None) -> Iterator[StoreObject]:
        """Yield the objects; problems outside of objects are passed to ``on_problem``.

        :param threads: as for :meth:`items`
        :raises StoreError: the store cannot be read
        """
        with store_errors(self.base):
            for found in self.items(threads):
                if isinstance(found, StoreObject) and not found.problems:
                    yield found
                    continue
                for item in self.second_look(found):
                    if isinstance(item, StoreObject):
                        yield item
                    elif on_problem is not None:
                        on_problem(item)

    def unreadable(self, record: StoreObject) -> Sequence[Problem]:
        """Return a problem for each unreadable file of an object, if the files are looked at alone; none if the object
        no longer exists."""
        return ()


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


# --- files that cannot be read ----------------------------------------------------------------------------------------


# The kinds of problems of what cannot be read.
_UNREADABLE = {
    "dangling-link": "link-dangling",
    "directory-loop": "link-loop",
    "link-loop": "link-loop",
    "link": "link",
    "fifo": "special-file",
    "socket": "special-file",
    "device": "special-file",
}


def unreadable_file(error: OSError | None, place: bytes, kind: str = "unreadable") -> list[Problem]:
    """Return the problem of a regular file that cannot be read; none if the file no longer exists.

    :param error: error of opening it, as :func:`pressmark.fs.durable.why_unreadable` returns it
    :param place: path of the file, relative to the store's root
    """
    if error is None or isinstance(error, FileNotFoundError):
        return []
    return [problem(kind, place, error.strerror or str(error))]


def find_unreadable(
    top: bytes, place: bytes, *, links: str = "follow", ignored: Callable[[str], object] = lambda _name: None
) -> Iterator[Problem]:
    """Yield a problem for each file and directory at and below ``top`` that cannot be read.

    Files that disappear meanwhile are skipped.

    :param top: a file or directory
    :param place: path of ``top``, relative to the store's root
    :param links: as for :func:`pressmark.fixity.walk`
    :param ignored: returns whether a name below ``top`` is ignored
    """
    from pressmark.fixity import walk  # few objects need it

    if _is_plain(top):
        return
    for found in walk(top, links=links):
        require_use()
        if isinstance(found, Outcome):
            path, kind, message = encode_fs(found.path), found.kind, found.message
        else:
            path = encode_fs(found)
            error = why_unreadable(path)
            if error is None:
                continue
            kind, message = kind_of_error(error.errno or 0, path), error.strerror or str(error)
        below = path[len(top) :]
        if kind == "missing" or any(map(ignored, decode_fs(below).split(os.sep)[1:])):
            continue
        yield problem(
            _UNREADABLE.get(kind or "", "unreadable"), place + below.replace(os.sep.encode(), b"/"), message, section=""
        )


def _is_plain(top: bytes) -> bool:
    """Return whether a tree contains nothing but directories and readable files.

    Most objects are like that, and this takes half the time of :func:`pressmark.fixity.walk`.
    """
    waiting = [top]
    try:
        while waiting:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    require_use()
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False) or not is_readable(entry.path):
                        return False
    except OSError:
        return False
    return True
