"""Digests of many files: on several threads, in the order of the input, in constant memory.

A few small files are hashed by the iterating thread, because starting another one takes longer.

The iterating thread examines a bounded number of files ahead and queues them, the largest first, so that a run does not
end waiting for one large file. Workers take files from the queue; outcomes wait until all before them are yielded.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from pressmark import _kernels
from pressmark.fixity.algorithms import ALGORITHMS, algorithm_names
from pressmark.fixity.hasher import CHANGED, READ_SIZE, OpenOptions, changes, error_outcome, examine, hash_path
from pressmark.fixity.outcomes import PROGRESS_EVERY, Event, Finished, Outcome, Progress
from pressmark.fixity.scheduling import SMALL, Plan
from pressmark.fs.beneath import Directory, Opener
from pressmark.fs.file_errors import message_of
from pressmark.threads import resolve_threads

if TYPE_CHECKING:
    from pressmark.fixity.ledger import Ledger

__all__ = ["hash_files"]

# Enough small files to fill the lanes of many threads; a waiting outcome takes about a kilobyte.
LOOK_AHEAD = 4096  # files
BATCH = 512  # files examined and queued together
# Up to this amount of work, no thread is started: in bytes, where opening a file counts as this many, because it may be
# on a network.
LITTLE, OPENING = 1 << 18, 1 << 14
Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]


def hash_files(
    paths: Iterable[Path | Outcome],
    algorithms: Iterable[str] | str = ("sha512",),
    threads: int | None = None,
    on_event: Callable[[Event], object] | None = None,
    *,
    links: str = "follow",
    special_files: bool = False,
    read: str = "parallel",
    ledger: Ledger | None = None,
    beneath: Directory | None = None,
) -> Iterator[Outcome]:
    """Hash files, each read once, and yield their outcomes lazily, in the order of ``paths``.

    A file that fails is an outcome without digests and does not stop the others. Memory is constant: a few thousand
    paths are read ahead, and files in blocks.

    :param paths: the files; an :class:`Outcome` among them, for example from :func:`~pressmark.fixity.tree.walk`, is
        yielded in its position
    :param algorithms: names accepted by :func:`~pressmark.fixity.algorithms.algorithm_name`
    :param threads: number of threads; :data:`None` or 0 for one per core
    :param on_event: called with :class:`Finished` and :class:`Progress` events in the iterating thread
    :param links: ``"follow"`` or ``"refuse"`` symbolic links
    :param special_files: read named pipes and devices to their end
    :param read: ``"parallel"``, or ``"sequential"``: one file at a time, in input order, for spinning disks
    :param ledger: an open ledger: unchanged files in it are not read again, and digests are added to it
    :param beneath: a directory from :func:`~pressmark.fs.beneath.open_directory` that paths are relative to. No file
        outside of it is opened, even if directories are replaced meanwhile (not guaranteed on Windows), and no symbolic
        link is followed: a link, or a path through one, is a failure of kind ``link``. Absolute paths, paths with
        ``..`` and paths that do not end with a file name are failures of kind ``bad-name``
    :raises AlgorithmError: an algorithm is unknown or not available
    :raises ValueError: another argument is wrong
    """
    names = algorithm_names(algorithms)
    if links not in ("follow", "refuse"):
        raise ValueError(f"links={links!r}: expected follow or refuse")
    if read not in ("parallel", "sequential"):
        raise ValueError(f"read={read!r}: expected parallel or sequential")
    cores = resolve_threads(threads)
    if ledger is not None and ledger.algorithms != names:
        raise ValueError("ledger was created for other algorithms")
    options = OpenOptions(links == "follow", special_files, beneath)
    run = _Run(names, cores, options, read == "sequential", on_event, ledger)
    return run.outcomes(iter(paths))


def _encoded(path: str | bytes) -> bytes:
    """Return ``path`` as bytes; as an empty path if it is invalid."""
    try:
        return os.fsencode(path)
    except ValueError:
        return b""


class _Batch:
    """Consecutive files of the input.

    :ivar paths: their paths
    :ivar sizes: their sizes, -1 for files that are not read
    :ivar outcomes: their outcomes, :data:`None` until they are done
    :ivar unfinished: number of files that are not done
    :ivar yielded: number of outcomes that were yielded
    """

    __slots__ = ("outcomes", "paths", "sizes", "unfinished", "yielded")

    def __init__(self, paths: list[str | bytes]) -> None:
        self.paths = paths
        self.sizes: list[int] = []
        self.outcomes: list[Outcome | None] = [None] * len(paths)
        self.unfinished = len(paths)
        self.yielded = 0


class _Run:
    def __init__(
        self,
        names: Sequence[str],
        threads: int,
        options: OpenOptions,
        sequential: bool,
        on_event: Callable[[Event], object] | None,
        ledger: Ledger | None,
    ) -> None:
        self._names = tuple(names)
        self._options = options
        self._threads = threads
        self._sequential = sequential
        self._on_event = on_event
        self._ledger = ledger
        self._plan = Plan(names, threads)
        direct = [(name, make) for name in names if (make := ALGORITHMS[name].direct) is not None]
        # By the number of the batch. The ticket of a file is that number times BATCH, plus its index.
        self._window: dict[int, _Batch] = {}
        self._batches = 0
        self._held = 0  # files in the window whose outcomes were not yielded
        self._waiting = 0  # files in the queue and with workers
        self._queued_bytes = 0
        self._serial_bytes = 0
        self._serial_lock = threading.Lock()
        self._files = self._failed = 0
        self._next_progress = monotonic() + PROGRESS_EVERY
        # The kernels cannot open special files, or files beneath a directory named by path.
        self._lanes_too = not options.special_files and not isinstance(options.beneath, str | bytes)
        self._engine = _kernels.active.Engine(
            self._names,
            self._plan.lanes,
            [(name, ALGORITHMS[name].make) for name in self._plan.serials],
            [(name, make()) for name, make in direct] if len(direct) == len(names) else [],
            options.flags,
            sequential,
            options.beneath if isinstance(options.beneath, int) else None,
        )
        self._opener = options.opener()

    def outcomes(self, paths: Iterator[Path | Outcome]) -> Iterator[Outcome]:
        """Yield the outcomes in order. No thread is left running at the end."""
        workers: list[threading.Thread] = []
        more = True
        try:
            while True:
                # Refill the queue while it is half full, so that workers never wait.
                while more and self._waiting < LOOK_AHEAD // 2 and self._held <= LOOK_AHEAD - BATCH:
                    given = list(islice(paths, BATCH))
                    more = len(given) == BATCH
                    self._submit(given)
                    if not (more or workers or self._options.special_files) and self._is_little():
                        self._work(wait=False)
                        break
                    while len(workers) < min(self._threads, self._waiting):
                        workers.append(self._start())
                yield from self._finished()
                if self._window:
                    self._collect()
                elif not more:
                    break
            self._report_progress()
        finally:
            self._engine.close()
            self._opener.close()
            for worker in workers:
                # Only the reader of a named pipe may block forever.
                worker.join(1.0 if self._options.special_files else None)

    def _start(self) -> threading.Thread:
        worker = threading.Thread(target=self._work, name="pressmark-fixity", daemon=True)
        worker.start()
        return worker

    # --- the thread that iterates ---------------------------------------------------------------------------------

    def _submit(self, given: list[Path | Outcome]) -> None:
        """Examine files, and queue those to be read."""
        if not given:
            return
        kinds = set(map(type, given))
        if kinds == {bytes}:
            paths = encoded = cast(list[Any], given)
        else:
            paths = [item.path if isinstance(item, Outcome) else os.fspath(item) for item in given]
            encoded = [_encoded(path) for path in paths]
        batch = _Batch(paths)
        first = self._batches * BATCH
        self._window[self._batches] = batch
        self._batches += 1
        self._held += len(given)
        in_engine = self._lanes_too and self._ledger is None
        batch.sizes = sizes = self._engine.file_sizes(encoded) if in_engine else [-1] * len(given)
        files: Sequence[int] = range(len(given))
        if min(sizes) < 0 or Outcome in kinds:
            for index, item in enumerate(given):
                if sizes[index] < 0 or isinstance(item, Outcome):
                    self._examine(batch, index, item)
            files = [index for index, size in enumerate(sizes) if size >= 0]
        if files:
            self._queue(first, files, sizes, encoded)

    def _examine(self, batch: _Batch, index: int, given: Path | Outcome) -> None:
        """Set the size of a file if it is to be read, and otherwise its outcome."""
        path = batch.paths[index]
        status = given if isinstance(given, Outcome) else examine(path, self._options, self._opener)
        if not isinstance(status, Outcome):
            digests = None if self._ledger is None else self._ledger.find(path, status)
            if digests is None:
                batch.sizes[index] = status.st_size
                return
            status = Outcome(path, digests, status.st_size, status.st_mtime_ns, status.st_ino)
        batch.sizes[index] = -1
        batch.outcomes[index] = status
        batch.unfinished -= 1
        self._count([status])

    def _queue(self, first: int, files: Sequence[int], sizes: list[int], paths: list[bytes]) -> None:
        """Queue files of a batch.

        :param first: ticket of the first file of the batch
        :param files: indices of the files in the batch, whose ``sizes`` and ``paths`` are given
        """
        largest = max(sizes)
        if self._sequential:
            most = READ_SIZE if self._plan.lanes else SMALL
            queue = [(first + index, -first - index, paths[index] if sizes[index] <= most else None) for index in files]
        elif largest > self._plan.small:
            order = sorted(files, key=sizes.__getitem__, reverse=True)
            serial = self._plan.serial_files([sizes[index] for index in order], self._queued_bytes)
            queue = [(first + index, sizes[index], None) for index in order[:serial]]
            queue += [(first + index, sizes[index], paths[index]) for index in order[serial:]]
        else:
            queue = [(first + index, sizes[index], paths[index]) for index in files]
        if not self._lanes_too:
            queue = [(ticket, priority, None) for ticket, priority, _path in queue]
        self._waiting += len(queue)
        self._queued_bytes += sum([sizes[index] for index in files])
        self._engine.submit(queue)

    def _finished(self) -> Iterator[Outcome]:
        """Yield the outcomes up to the first file that is not done."""
        for number, batch in list(self._window.items()):
            end = batch.outcomes.index(None, batch.yielded) if batch.unfinished else len(batch.outcomes)
            yield from batch.outcomes[batch.yielded : end]  # type: ignore[misc]
            self._held -= end - batch.yielded
            batch.yielded = end
            if batch.unfinished:
                break
            del self._window[number]

    def _collect(self) -> None:
        """Wait a moment for outcomes, and store them in their batches."""
        found: list[Outcome] = []
        window = self._window
        for result in self._engine.collect(PROGRESS_EVERY):
            ticket = result[0]
            if ticket < 0:
                raise result[1]
            batch = window[ticket // BATCH]
            index = ticket % BATCH
            if len(result) == 5:
                # Half the time of Outcome(...).
                outcome = tuple.__new__(Outcome, (batch.paths[index], *result[1:], None, ""))
            else:
                outcome = result[1] if len(result) == 2 else self._failure(batch.paths[index], *result[1:])
            batch.outcomes[index] = outcome
            batch.unfinished -= 1
            self._queued_bytes -= batch.sizes[index]
            found.append(outcome)
        self._waiting -= len(found)
        # Before the callbacks, which may end the run: finished files must not be read again.
        if self._ledger is not None and any(outcome.ok for outcome in found):
            self._ledger.append(outcome for outcome in found if outcome.ok)
        self._count(found)
        if monotonic() >= self._next_progress:
            self._report_progress()

    def _failure(
        self,
        path: str | bytes,
        size: int,
        mtime_ns: int,
        inode: int,
        error: int,
        mode: int,
        size_after: int,
        mtime_ns_after: int,
        total: int,
        there: int,
    ) -> Outcome:
        """Return the outcome of a file in the engine that has no digests."""
        if error:
            return error_outcome(path, error, self._options)
        kind = self._options.refuses(mode)
        if kind is not None:
            return Outcome(path, None, size, mtime_ns, inode, kind, message_of(kind))
        reason = changes(size, mtime_ns, size_after, mtime_ns_after, total, there)
        return Outcome(path, None, size, mtime_ns, inode, CHANGED, reason or "")

    def _count(self, outcomes: Sequence[Outcome]) -> None:
        """Count files that are done, and report each."""
        self._files += len(outcomes)
        self._failed += sum([outcome.kind is not None for outcome in outcomes])
        if self._on_event is not None:
            for outcome in outcomes:
                self._on_event(Finished(outcome))

    def _report_progress(self) -> None:
        if self._on_event is not None:
            self._next_progress = monotonic() + PROGRESS_EVERY
            self._on_event(Progress(self._files, self._serial_bytes + self._engine.read_bytes(), self._failed))

    # --- the workers ----------------------------------------------------------------------------------------------

    def _is_little(self) -> bool:
        """Return whether the queued files are done before a thread has started."""
        return self._queued_bytes + self._waiting * OPENING <= LITTLE

    def _work(self, wait: bool = True) -> None:
        """Hash files until the engine is closed; the engine hashes files in lanes itself, without the GIL.

        :param wait: wait for more files when the queue is empty
        """
        engine = self._engine
        try:
            with self._options.opener() as opener:
                while (ticket := engine.work(wait)) is not None:
                    engine.finish(ticket, self._hash(ticket, opener))
        except BaseException as error:
            # Out of memory, or a bug: it ends the run instead of failing a file.
            engine.finish(-1, error)

    def _hash(self, ticket: int, opener: Opener) -> Outcome:
        engine = self._engine
        path = self._window[ticket // BATCH].paths[ticket % BATCH]
        # Idle threads help with this file.
        threads = self._threads if self._sequential else max(1, self._threads // max(1, self._waiting))
        engine.lock_reading()
        try:
            return hash_path(path, self._names, self._options, opener, threads, self._add_bytes, engine.closed)
        finally:
            engine.unlock_reading()

    def _add_bytes(self, size: int) -> None:
        with self._serial_lock:
            self._serial_bytes += size
