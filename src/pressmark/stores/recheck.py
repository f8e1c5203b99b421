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

from pressmark.buckets.bucket import ArchivedError
from pressmark.fixity.outcomes import Outcome
from pressmark.fs.durable import is_readable, why_unreadable
from pressmark.fs.file_errors import kind_of_error
from pressmark.fs.locks import lock_descriptor
from pressmark.fs.names import decode_fs, encode_fs, is_partial
from pressmark.fs.staging import LOCK, leftovers
from pressmark.reports import Problem, ProgressEvent, Report
from pressmark.stores.objects import OnEvent, StoreObject
from pressmark.stores.problems import problem
from pressmark.threads import require_use

__all__ = [
    *("LOOKS", "Item", "RunningReport", "abandoned", "agreed", "await_turn", "changing"),
    *("find_unreadable", "unreadable_file"),
]

Item = StoreObject | Problem
T = TypeVar("T")

LOOKS = 10
# Moving something takes a moment, unless the run is suspended while it holds the lock.
PAUSE = 0.01  # seconds
PAUSES = 500
# The longest pause before another look at a private directory, which is twice as long each time.
_PATIENCE = 0.32
# Neither follow a link nor wait for a named pipe in place of the lock.
_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"))


def agreed(
    result: T,
    again: Callable[[], T],
    is_fine: Callable[[T], bool],
    folder: bytes | None,
    *,
    is_same: Callable[[T, T], bool] = operator.eq,
) -> tuple[T, bool]:
    """Repeat a check until two results agree, or one of them contains no problem.

    :param result: the first result
    :param again: repeats the check, and returns its result
    :param folder: the work directory of the runs that may be changing the object, if they have one
    :return: the last result, and False if no two results agree
    """
    for _ in range(LOOKS):
        if is_fine(result):
            return result, True
        if folder is not None:
            await_turn(folder)
        before, result = result, again()
        if is_same(before, result):
            return result, True
    return result, is_fine(result)


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

    When a run starts or ends, its directory is briefly without a lock that is held, and contains nothing else. On a
    busy machine that may take a while, so such a directory is looked at again for half a second.
    """
    found = leftovers(folder)
    pause = PAUSE
    while found:
        sleep(pause)
        still = leftovers(folder)
        found = [path for path in found if path in still]
        pause *= 2
        if pause > _PATIENCE or not any(map(_is_hollow, found)):
            break
    return found


def _is_hollow(directory: bytes) -> bool:
    """Return whether a private directory contains nothing but its lock, or was just removed."""
    try:
        return set(os.listdir(directory)) <= {LOCK}
    except FileNotFoundError:
        return True
    except OSError:
        return False


class RunningReport:
    """The report of one check: problems are reported at once, progress at intervals.

    :param every: number of objects between two progress events
    :ivar report: the problems found so far
    """

    def __init__(self, on_event: OnEvent | None, every: int) -> None:
        self.report = Report(counts={"objects": 0, "proper": 0})
        self._on_event = on_event
        self._every = every

    def add(self, problems: Iterable[Problem]) -> None:
        """Add problems, and report them."""
        for found in problems:
            self.report.problems.append(found)
            if self._on_event is not None:
                self._on_event(found)

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
            self._on_event(ProgressEvent(items=self.report.counts["objects"], failed=len(self.report.problems)))


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


def unreadable_file(error: OSError | None, path: bytes, kind: str = "unreadable") -> list[Problem]:
    """Return the problem of a regular file that cannot be read; none if the file no longer exists.

    :param error: error of opening it, as :func:`pressmark.fs.durable.why_unreadable` returns it
    :param path: path of the file, relative to the store's root
    """
    if error is None or isinstance(error, FileNotFoundError):
        return []
    if isinstance(error, ArchivedError):
        return [problem("content-archived", path)]
    return [problem(kind, path, error.strerror or str(error))]


def find_unreadable(
    top: bytes, path: bytes, *, links: str = "follow", ignored: Callable[[str], object] = lambda _name: None
) -> Iterable[Problem]:
    """Return a problem for each file and directory at and below ``top`` that cannot be read, and one if all are those
    of an incomplete transfer.

    Files that disappear meanwhile are skipped.

    :param top: a file or directory
    :param path: path of ``top``, relative to the store's root
    :param links: as for :func:`pressmark.fixity.walk`
    :param ignored: returns whether a name below ``top`` is ignored
    """
    is_unended = is_partial(path.rpartition(b"/")[2])
    return () if not is_unended and _is_plain(top) else _unreadable_below(top, path, links, ignored, is_unended)


def _unreadable_below(
    top: bytes, path: bytes, links: str, ignored: Callable[[str], object], is_unended: bool
) -> Iterator[Problem]:
    from pressmark.fixity.tree import walk_files  # few objects need it

    names: set[bytes] = set()
    for found in walk_files(top, links=links):
        require_use()
        full = encode_fs(found.path if isinstance(found, Outcome) else found)
        below = full[len(top) :].replace(os.sep.encode(), b"/")
        names.update(below.split(b"/")[1:2])
        if isinstance(found, Outcome):
            kind, message = found.kind, found.message
        elif (error := why_unreadable(full)) is None:
            continue
        else:
            kind, message = kind_of_error(error.errno or 0, full), error.strerror or str(error)
        if kind != "missing" and not any(map(ignored, decode_fs(below).split("/")[1:])):
            yield problem(_UNREADABLE.get(kind or "", "unreadable"), path + below, message, section="")
    if is_unended or (names and all(map(is_partial, names))):
        yield problem("partial", path, section="")


def _is_plain(top: bytes) -> bool:
    """Return whether a tree contains nothing but directories and readable files, also of complete transfers.

    Most objects are like that, and this takes half the time of :func:`pressmark.fixity.walk`.
    """
    waiting = [top]
    is_unended = True
    try:
        while waiting:
            directory = waiting.pop()
            with os.scandir(directory) as entries:
                for entry in entries:
                    require_use()
                    if is_unended and directory is top:
                        is_unended = is_partial(entry.name)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False) or not is_readable(entry.path):
                        return False
    except OSError:
        return False
    return not is_unended
