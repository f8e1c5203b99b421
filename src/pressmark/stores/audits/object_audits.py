"""The verification of single objects for an audit, by the check of their store.

Objects come from an iterator that may pause: it yields :data:`None` if no object is due at the moment.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import dropwhile
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from pressmark.errors import BagError, ObjectError, StoreError
from pressmark.fixity.manifests import object_digest
from pressmark.fixity.pool import hash_tasks
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.progress_event import EventListener
from pressmark.reports import Problem, Report
from pressmark.stores.audits.audit_state import KnownObject, Verification
from pressmark.stores.objects import StoreObject
from pressmark.stores.problems import problem
from pressmark.stores.recheck import Item, RunningReport, await_turn
from pressmark.stores.walked_store import StoreWalk, WalkedStore
from pressmark.threads import Threads, require_use

if TYPE_CHECKING:
    from pressmark.stores.ocfl.check import Check, ObjectResult
    from pressmark.stores.ocfl.checking.checked import Checked

__all__ = ["PATIENCE", "Audited", "audit_ocfl", "audit_walked", "look_at"]

# Seconds for the objects of one call of a check: the longest time that a run lasts longer than it should.
CALL = 2.0
# Most objects of one call, and how many times more than those before.
MOST, GROWTH = 4096, 8
# Bytes of the first call, and at least of each.
FIRST = 1 << 28  # 256 MiB
# Seconds to wait for objects that are still read, when their results are no longer needed.
PATIENCE = 0.5

Feed = Iterator[KnownObject | None]


class Audited(NamedTuple):
    """An object after its verification.

    :ivar known: what the state has of it
    :ivar result: :data:`None` if it no longer exists
    """

    known: KnownObject
    result: Verification | None


def _result(problems: Iterable[Problem]) -> str:
    """Return the result of an object with these problems, as the state records it. A file that is archived was not
    verified.
    """
    kinds = {one.kind for one in problems if one.severity == "error" or one.kind == "content-archived"}
    return " ".join(sorted(kinds)) or "ok"


# --- storage roots ----------------------------------------------------------------------------------------------------


def audit_ocfl(
    make_check: Callable[[Callable[[ObjectResult], None]], Check],
    exists: Callable[[KnownObject], bool],
    size_of: Callable[[bytes], int],
    feed: Feed,
    how: str,
    threads: int,
    ignore: Sequence[str],
    seconds_left: Callable[[], float],
    bytes_left: Callable[[], float],
    take: Callable[[Audited | None], object],
) -> Report:
    """Verify objects of an OCFL storage root, many in one call of its check, and return the report of the check.

    :param make_check: returns the check, given what it calls with the result of each object
    :param exists: returns whether an object exists
    :param size_of: returns the size of a file, as far as it is known without a request
    :param take: called with each object, and now and then with :data:`None`
    """
    pending: dict[bytes, KnownObject] = {}

    def record(found: ObjectResult) -> None:
        result = Verification(found.id, found.bytes, how, _result(found.problems), found.digest)
        take(Audited(pending.pop(encode_fs(found.path)), result))

    check = make_check(record)
    call = _Call(size_of)
    count, is_ended = threads, False
    rest: deque[KnownObject] = deque()  # of the last call
    while not is_ended or rest:
        while len(pending) < count and (rest or not is_ended):
            one = rest.popleft() if rest else next(feed, _ENDED)
            if one is None:
                break
            if one is _ENDED:
                is_ended = True
            else:
                pending[one.path] = one
        if pending:
            paths, number = [(one.path, one.inside) for one in pending.values()], len(pending)
            call.begin(seconds_left(), bytes_left())
            check.check_objects(paths, True, threads, ignore, call.goes_on)
            left = [*dropwhile(lambda one: one.path != call.refused, pending.values())]
            for one in [*pending.values()][: len(pending) - len(left)]:
                # Removed since it was listed, or unreadable, which the check has reported.
                take(Audited(one, Verification(one.id, 0, how, "unreadable") if exists(one) else None))
            pending.clear()
            number -= len(left)
            count = max(threads, min(MOST, GROWTH * number, int(call.end(number) * min(CALL, seconds_left()))))
            if seconds_left() <= 0 or bytes_left() <= 0:
                break  # the others stay due
            rest.extendleft(reversed(left))
        take(None)
    return check.finish(threads, ignore)


_ENDED: Any = object()


class _Call:
    """The limits of one call of a check, so that large objects do not make it last much longer than it should.

    :param size_of: returns the size of a file
    :ivar refused: the first object that is left to the next call
    """

    def __init__(self, size_of: Callable[[bytes], int]) -> None:
        self.refused: bytes | None = None
        self._size_of = size_of
        self._rate: float = FIRST / CALL  # bytes per second
        self._begin = 0.0

    def begin(self, seconds: float, size: float) -> None:
        """Begin a call, which has this time left, and this number of bytes."""
        self.refused, self._bytes, self._begin = None, 0, monotonic()
        self._end = self._begin + min(CALL, seconds)
        self._most = min(size, max(FIRST, self._rate * CALL))

    def goes_on(self, item: Checked | Problem) -> bool:
        """Return whether the content of an object is to be read by this call; that of the first one is."""
        if isinstance(item, Problem):
            return True
        if self._bytes and (self._bytes >= self._most or monotonic() >= self._end):
            self.refused = item.path
            return False
        unread = (os.path.join(item.path, encode_fs(path)) for path in item.unread)
        self._bytes += max(1, item.bytes + sum(map(self._size_of, unread)))
        return True

    def end(self, number: int) -> float:
        """End the call, and return how many objects were verified each second.

        :param number: of verified objects
        """
        seconds = max(monotonic() - self._begin, 1e-6)
        self._rate = self._bytes / seconds
        return number / seconds


# --- other stores -----------------------------------------------------------------------------------------------------


def audit_walked(
    store: WalkedStore, feed: Feed, threads: int, run: RunningReport, ignore: Sequence[str]
) -> Iterator[Audited | None]:
    """Verify objects of another store, several at a time; yield :data:`None` now and then.

    :param run: receives the problems, and the numbers of files and bytes
    """
    if store.bucket is not None:
        from pressmark.buckets.requests import REQUESTS as threads  # most stores are on a disk

    counts = run.report.counts
    with Threads(threads, "pressmark-audit", patience=PATIENCE) as pool:
        for found in pool.map(partial(_examined, store, ignore), feed):
            if found is None:
                yield None
                continue
            audited, items, report = found
            for item in items:
                run.add_item(item)
            for name, number in report.counts.items():
                counts[name] = counts.get(name, 0) + number
            yield audited


def look_at(walk: StoreWalk, known: KnownObject) -> list[Item]:
    """Return what is at the path of an object now; empty if it no longer exists.

    :raises OSError: it cannot be read
    """
    record = StoreObject(known.id, decode_fs(known.path), False, None, ())
    found = walk.again(record)
    if not found and not walk.is_read_only:
        await_turn(walk.work_directory)  # another run may be replacing it
        found = walk.again(record)
    return found


def _examined(
    store: WalkedStore, ignore: Sequence[str], known: KnownObject | None
) -> tuple[Audited, list[Item], Report] | None:
    """Verify an object, and return it, its problems, and the numbers of files and bytes."""
    if known is None:
        return None
    report = Report(counts={"files": 0, "bytes": 0})
    items: list[Item] = []
    walk = store.walk.with_options(ignore)
    try:
        there = look_at(walk, known)
    except OSError as error:
        if store.bucket is not None:  # the server cannot be reached
            raise StoreError(store.root, error.strerror or str(error)) from error
        there = [problem("unreadable", known.path, error.strerror or str(error))]
    for record in walk.objects(on_problem=items.append, items=there):
        items += store.examine(record, True, report, ignore)
    if not items:
        return Audited(known, None), [], report
    records = [one for one in items if isinstance(one, StoreObject) and encode_fs(one.path) == known.path]
    digest = written = None
    if records and store.kind == "bags":
        digest = _manifests_digest(store, records[0])
    elif records:
        digest, written = _read(store, records[0], items, report, known)
    problems = [one for item in items for one in ((item,) if isinstance(item, Problem) else item.problems)]
    identifier = records[0].id if records else known.id
    result = Verification(identifier, report.counts["bytes"], "read", _result(problems), digest, written)
    return Audited(known, result), items, report


def _manifests_digest(store: WalkedStore, record: StoreObject) -> str | None:
    """Return the digest of the manifests of a bag; :data:`None` if it is serialized, or cannot be read."""
    import hashlib  # few runs need it

    from pressmark.bagit import open as open_bag

    if getattr(store.locate(record), "serialized", False):
        return None
    digests = {}
    try:
        bag = open_bag(f"{store.root.rstrip('/')}/{record.path}")
        with bag.tag_files() as base:
            for one in (*bag.manifests, *bag.tag_manifests):
                with base.open(one.name) as file:
                    digest = hashlib.sha512(usedforsecurity=False)
                    while block := file.read(1 << 20):
                        digest.update(block)
                digests[decode_fs(one.name)] = digest.hexdigest()
    except (BagError, OSError):
        return None
    return object_digest(digests)


def _read(
    store: WalkedStore, record: StoreObject, items: list[Item], report: Report, known: KnownObject
) -> tuple[str | None, str | None]:
    """Read the files of an object without recorded digests; return a digest of them, and of the times when they were
    written.

    Its problems are added to ``items``: a file cannot be read, or the object differs from what the state knows,
    although no file was written since.
    """
    digests: dict[str, str] = {}
    written: dict[str, str] = {}
    problems: list[Problem] = []
    try:
        found = store.locate(record)
        files = dict(found.files())
        tokens = getattr(found, "tokens", None)
        progress = EventListener(lambda _event: require_use())
        for name, outcome in hash_tasks(found._sources(files), ("sha512",), 1, progress):
            if outcome.digests is None:
                path = encode_fs(record.path) + b"/" + encode_fs(name)
                problems.append(problem("unreadable", path, outcome.message))
                continue
            digests[name] = outcome.digests["sha512"]
            written[name] = tokens[name] if tokens else f"{outcome.size} {outcome.mtime_ns}"
            report.counts["files"] += 1
            report.counts["bytes"] += outcome.size or 0
        found.confirm()
    except ObjectError as error:
        if error.kind == "changed" or not any(one.severity == "error" for one in record.problems):
            kind = "object-changing" if error.kind == "changed" else "unreadable"
            problems.append(problem(kind, encode_fs(record.path), error.reason))
        else:
            return None, None  # the object is not what its store requires, which its record says
    digest, times = object_digest(digests), object_digest(written)
    if not problems and known.digest not in (None, digest) and known.written == times:
        problems.append(problem("object-differs", encode_fs(record.path)))
    # A check that looks at files has reported those that cannot be read.
    reported = {(one.kind, one.path) for one in record.problems}
    items += [one for one in problems if (one.kind, one.path) not in reported]
    return (None, None) if problems else (digest, times)
