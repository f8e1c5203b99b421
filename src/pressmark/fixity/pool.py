"""Digests and copies of many files: on several threads, in the order of the input, in constant memory.

A few small files are read by the iterating thread, because starting another one takes longer.

The iterating thread queues a bounded number of files ahead, in blocks. A worker examines the files of a block, and
hashes and copies the small ones in one call of the kernel. All others are queued one by one, the largest first, so that
a run does not end waiting for one large file. Outcomes wait until all before them are yielded.
"""

from __future__ import annotations

import os
import threading
from _thread import get_ident
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from queue import SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pressmark import _kernels
from pressmark.fixity.algorithms import algorithm_names, implementation
from pressmark.fixity.hasher import (
    CHANGED,
    OpenOptions,
    changes,
    error_outcome,
    examine,
    transfer,
    transfer_content,
    transfer_range,
)
from pressmark.fixity.outcomes import (
    PROGRESS_EVERY,
    Columns,
    Content,
    Fetched,
    FileBatch,
    FileRange,
    HashedFiles,
    Item,
    Outcome,
    Path,
    Source,
    not_written,
)
from pressmark.fixity.scheduling import SMALL, plan
from pressmark.fs.beneath import Directory, Opener, root_directory
from pressmark.fs.file_errors import kind_of_mode, message_of
from pressmark.progress_event import Progress, ProgressEvent
from pressmark.threads import Cancelled, Threads, require_use, resolve_threads, started

if TYPE_CHECKING:
    from pressmark.fixity.ledger import Ledger

__all__ = ["Run", "hash_blocks", "hash_files", "hash_ranges", "hash_tasks"]

# Enough small files to fill the lanes of many threads; a waiting outcome takes about a kilobyte.
LOOK_AHEAD = 4096  # files
BATCH = 512  # files taken from the input together
# Files in a block: many, as each block is a few calls of Python, but few where all threads have no block otherwise.
BLOCK, LEAST = 128, 16
# Files that are not on this computer and are fetched at a time, and seconds to wait for them at the end of a run.
FETCHES, PATIENCE = 16, 0.5
# Longest file that is read in sequence in a lane: what a lane reads at once, PM_READ_SIZE in digests/engine.h.
LANE_SIZE = 1 << 17
# Up to this amount of work, no thread is started: in bytes, where opening a file counts as this many, because it may be
# on a network.
LITTLE, OPENING = 1 << 18, 1 << 14
Key = TypeVar("Key")
Task = tuple[Any, Item] | tuple[Any, Item, bytes]  # key, source, and the path of its copy
# Returns the next tasks, which may be none at the moment, or None at the end; called with whether to wait for them.
Take = Callable[[bool], Columns | None]


def hash_tasks(
    tasks: Iterable[tuple[Key, Source]],
    algorithms: Iterable[str] | str,
    threads: int | None = None,
    progress: Progress | None = None,
    *,
    links: str = "follow",
    read: str = "parallel",
    ledger: Ledger | None = None,
    beneath: Directory | None = None,
) -> Generator[tuple[Key, Outcome], None, None]:
    """Hash files as :func:`hash_files` does, and yield the key of each file with its outcome.

    The other parameters and the errors are those of :func:`hash_files`.

    :param tasks: pairs of a key, which can be anything, and a file (no address in object storage), a
        :class:`Content` or an :class:`Outcome`
    """
    run = _run(algorithms, threads, progress, links, read, ledger, beneath)
    return run.outcomes(tasks)


def hash_files(
    paths: Iterable[Path | Outcome],
    algorithms: Iterable[str] | str = ("sha512",),
    threads: int | None = None,
    progress: Progress | None = None,
    *,
    links: str = "follow",
    read: str = "parallel",
    ledger: Ledger | None = None,
    beneath: Directory | None = None,
    digests: Literal["read", "stored"] = "read",
) -> Iterator[Outcome]:
    """Hash files, each read once, and yield their outcomes lazily, in the order of ``paths``.

    A file that fails is an outcome without digests and does not stop the others. Memory use is constant: a few thousand
    paths are read ahead, and files are read in blocks.

    :param paths: the files, or addresses of keys in object storage, such as ``s3://bucket/key``; an :class:`Outcome`
        among them, for example from :func:`~pressmark.fixity.tree.walk`, is yielded in its position
    :param algorithms: names accepted by :func:`~pressmark.fixity.algorithms.algorithm_name`
    :param threads: number of threads; :data:`None` for one per core
    :param progress: changed in the iterating thread
    :param links: ``"follow"`` or ``"refuse"`` symbolic links
    :param read: ``"parallel"``, or ``"sequential"``: one file at a time, in input order, for spinning disks
    :param ledger: an open ledger: unchanged files in it are not read again, and digests are added to it
    :param beneath: a directory from :func:`~pressmark.fs.beneath.open_directory` that paths are relative to. No file
        outside of it is opened, even if directories are replaced meanwhile (not guaranteed on Windows), and no symbolic
        link is followed: a link, or a path through one, is a failure of kind ``link``. Absolute paths, paths with
        ``..`` and paths that do not end with a file name are failures of kind ``bad-name``
    :param digests: of keys in object storage: ``"read"`` the content, up to 16 at a time, or use those that are
        ``"stored"`` by the server, without reading the content; where it keeps none, as for every file, the outcome is
        a failure of kind ``unverified``
    :raises AlgorithmError: an algorithm is unknown or not available
    :raises ValueError: another argument is invalid
    """
    from pressmark.fixity.bucket_files import sources_of  # commands that are fast do not need it

    sources = sources_of(digests, beneath)
    run = _run(algorithms, threads, progress, links, read, ledger, beneath)
    return _outcomes(run.blocks(_taking_files(paths, sources)))


def _outcomes(blocks: Generator[HashedFiles, None, None]) -> Generator[Outcome, None, None]:
    with closing(blocks):
        for files in blocks:
            yield from files.outcomes()


def hash_blocks(
    paths: Iterable[Path | Fetched | Outcome],
    algorithms: Iterable[str] | str,
    threads: int | None = None,
    progress: Progress | None = None,
    *,
    links: str = "follow",
    read: str = "parallel",
    ledger: Ledger | None = None,
    walked: bool = False,
) -> Iterator[HashedFiles]:
    """Hash files as :func:`hash_files` does, and yield them in blocks, which make lines faster than outcomes do.

    :param progress: changed in the iterating thread
    :param walked: all paths are those of files and links in directories that were listed: their types are known, so
        that the small ones are opened without examining them first
    """
    run = _run(algorithms, threads, progress, links, read, ledger, None, walked=walked)
    return run.blocks(_taking_files(paths))


def hash_ranges(
    descriptor: int,
    ranges: Iterable[FileRange | Outcome],
    algorithms: Iterable[str] | str,
    threads: int | None = None,
    progress: Progress | None = None,
    *,
    read: str = "parallel",
    checksums: Iterable[str] = (),
) -> Generator[Outcome, None, None]:
    """Hash parts of an open file as :func:`hash_files` hashes files; their outcomes have an empty path.

    :param descriptor: descriptor of the file; the caller closes it
    :param progress: changed in the iterating thread
    :param checksums: names in :data:`~pressmark.fixity.algorithms.CHECKSUMS`, computed as well
    """
    run = _run(algorithms, threads, progress, "follow", read, None, None, descriptor, checksums)
    return _outcomes(run.blocks(_taking_files(ranges)))


def _taking(tasks: Iterable[Task]) -> Take:
    """Return a function that takes many tasks at a time, but none ahead of an open file or large content."""
    given = iter(tasks)
    is_ahead = False

    def take(wait: bool) -> Columns | None:
        nonlocal is_ahead
        if is_ahead and not wait:
            return ()
        taken: list[Task] = []
        for task in islice(given, BATCH):
            taken.append(task)
            if is_ahead := isinstance(task[1], Content) and task[1].is_large:
                break
        return list(zip(*taken, strict=True)) if taken else None

    return take


def _taking_files(files: Iterable[Any], sources: Callable[[list[Any]], list[Any]] = list) -> Take:
    """Return a function that takes many files at a time; they have no keys.

    :param sources: returns the source of each file
    """
    given = iter(files)

    def take(wait: bool) -> Columns | None:
        taken = list(islice(given, BATCH))
        return ([None] * len(taken), sources(taken)) if taken else None

    return take


def _run(
    algorithms: Iterable[str] | str,
    threads: int | None,
    on_event: Callable[[ProgressEvent], object] | None,
    links: str,
    read: str,
    ledger: Ledger | None,
    beneath: Directory | None,
    source: int | None = None,
    checksums: Iterable[str] = (),
    walked: bool = False,
) -> Run:
    names = (*algorithm_names(algorithms), *checksums)
    if links not in ("follow", "refuse"):
        raise ValueError(f"links={links!r}: expected follow or refuse")
    if read not in ("parallel", "sequential"):
        raise ValueError(f"read={read!r}: expected parallel or sequential")
    cores = resolve_threads(threads)
    if ledger is not None and ledger.algorithms != names:
        raise ValueError("ledger was created for other algorithms")
    options = OpenOptions(links == "follow", beneath)
    return Run(names, cores, options, read == "sequential", on_event, ledger=ledger, source=source, walked=walked)


class Run:
    """One stream of files that are hashed, and copied if their tasks have a third item, the path of a copy.

    :param names: official names of the algorithms; for copies there may be none
    :param threads: number of threads
    :param sequential: read one file at a time
    :param source: descriptor of the file whose parts are hashed
    :param walked: see :func:`hash_blocks`
    """

    def __init__(
        self,
        names: Sequence[str],
        threads: int,
        options: OpenOptions,
        sequential: bool = False,
        on_event: Callable[[ProgressEvent], object] | None = None,
        *,
        ledger: Ledger | None = None,
        source: int | None = None,
        walked: bool = False,
    ) -> None:
        self._names = tuple(names)
        self._source = source
        self._options = options
        self._threads = threads
        self._sequential = sequential
        self._on_event = on_event
        self._ledger = ledger
        self._plan = plan(names, threads)
        # By the number of the batch. The ticket of a file is that number times BLOCK, plus its index. Tickets of blocks
        # are below -1, which is an error.
        self._window: dict[int, FileBatch] = {}
        self._batches = 0
        self._held = 0  # files in the window that were not yielded
        self._jobs = 0  # blocks and files in the queue and with workers
        self._queued_bytes = 0
        self._serial_bytes = 0
        self._serial_lock = threading.Lock()
        self._files = self._failed = 0
        self._next_progress = monotonic() + PROGRESS_EVERY
        # The kernels cannot open files beneath a directory named by path.
        self._lanes_too = not isinstance(options.beneath, str | bytes)
        serials = self._plan.serials
        beneath = root_directory() if options.real else options.beneath
        self._engine = _kernels.active.Engine(
            self._names,
            self._plan.lanes,
            [(name, implementation(name).make) for name in serials],
            [(name, implementation(name).one_shot(), 2 * implementation(name).size) for name in serials],
            options.flags,
            sequential,
            beneath if isinstance(beneath, int) else None,
            source,
            walked,
        )
        # A ledger with records is asked about each file.
        self._in_blocks = self._lanes_too and source is None and not (ledger and ledger.records)
        self._opener = options.opener()
        # Of the workers that have begun; those that begin later find the engine closed.
        self._fetching: Threads | None = None
        self._begun: list[int] = []
        self._ended: SimpleQueue[None] = SimpleQueue()

    def outcomes(
        self, tasks: Iterable[tuple[Key, Item] | tuple[Key, Item, bytes]]
    ) -> Generator[tuple[Key, Outcome], None, None]:
        """Yield the keys and outcomes in order. At the end, no file is read or written any more."""
        with closing(self.blocks(_taking(tasks))) as blocks:
            for files in blocks:
                yield from zip(files.keys(), files.outcomes(), strict=True)

    def blocks(self, take: Take) -> Generator[HashedFiles, None, None]:
        """Yield the files in order. At the end, no file is read or written any more.

        :param take: called for more tasks
        """
        workers: list[threading.Thread] = []
        more = join = True
        try:
            while True:
                while more and self._held <= LOOK_AHEAD - BATCH:
                    taken = take(not self._window)
                    more = taken is not None
                    if not taken:
                        break
                    self._submit(taken)
                    if len(taken[0]) == BATCH:
                        self._start_workers(workers)
                if self._jobs and not (more or workers) and self._is_little():
                    self._work(wait=False)
                else:
                    self._start_workers(workers)
                    if self._jobs and not workers:
                        self._work(wait=False)
                yield from self._finished()
                require_use()
                if self._engine.closed():
                    raise Cancelled
                if self._window:
                    self._collect()
                elif not more:
                    break
            self._report_progress()
        except GeneratorExit:
            # The garbage collector may close it on any thread: see pressmark.threads.
            join = False
            raise
        finally:
            self._engine.close()
            self._opener.close()
            if self._fetching is not None:
                self._fetching.__exit__(None if join else GeneratorExit)
            if join:
                for worker in workers:
                    worker.join()
            elif get_ident() not in self._begun:
                for _worker in tuple(self._begun):
                    self._ended.get()

    def _start_workers(self, workers: list[threading.Thread]) -> None:
        while len(workers) < min(self._threads, self._jobs):
            worker = threading.Thread(target=self._run_worker, name="pressmark-fixity", daemon=True)
            if not started(worker):
                break
            workers.append(worker)

    def _run_worker(self) -> None:
        self._begun.append(get_ident())
        try:
            self._work()
        finally:
            self._ended.put(None)

    # --- the thread that iterates ---------------------------------------------------------------------------------

    def _submit(self, tasks: Columns) -> None:
        """Queue files in blocks, or examine each and queue those to be read."""
        count = len(tasks[0])
        size = min(BLOCK, max(LEAST, -(-count // self._threads)))
        for start in range(0, count, size):
            batch = FileBatch([column[start : start + size] for column in tasks], self._options.real)
            number = self._batches
            self._window[number] = batch
            self._batches += 1
            self._held += len(batch)
            if self._in_blocks:
                self._jobs += 1
                most = -1 if self._sequential else self._plan.small
                self._engine.submit_block(-2 - number, batch.joined, len(batch), batch.copies, most)
            else:
                self._examine(number, [(index, -1) for index in range(len(batch))])

    def _examine(self, number: int, files: list[tuple[int, int]]) -> None:
        """Queue those of the files that are to be read, and set the outcomes of the others.

        :param number: number of the batch
        :param files: index and size of each file; a size of -1 if it is unknown
        """
        batch = self._window[number]
        settled: list[Outcome] = []
        for index, size in files:
            given, path = batch.given[index], batch.paths[index]
            if isinstance(given, Fetched):
                self._fetch(number * BLOCK + index, given)
                continue
            if size >= 0 or isinstance(given, FileRange):
                batch.sizes[index] = given.size if isinstance(given, FileRange) else size
                continue
            status: os.stat_result | Outcome
            if isinstance(given, Content):
                status = transfer_content(given, self._names, batch.copy(index))
            else:
                status = given if isinstance(given, Outcome) else examine(path, self._options, self._opener)
            if not isinstance(status, Outcome):
                digests = None if self._ledger is None else self._ledger.find(path, status)
                if digests is None:
                    batch.sizes[index] = status.st_size
                    continue
                times = status.st_mtime_ns, status.st_ctime_ns
                status = Outcome(path, digests, status.st_size, times[0], status.st_ino, ctime_ns=times[1])
            batch.outcomes[index] = status
            batch.unfinished -= 1
            settled.append(status)
        self._count(settled)
        if batch.sizes:
            self._queue(number * BLOCK, batch)

    def _queue(self, first: int, batch: FileBatch) -> None:
        """Queue the files of a batch that have a size; those in lanes with their paths.

        :param first: ticket of the first file of the batch
        """
        sizes = batch.sizes
        order = list(sizes)
        in_lanes = set(order)
        if self._sequential:
            # A copy is read in smaller pieces.
            most = LANE_SIZE if self._plan.lanes and batch.copies is None else SMALL
            in_lanes = {index for index in order if sizes[index] <= most}
        elif self._names and max(sizes.values()) > self._plan.small:
            order.sort(key=sizes.__getitem__, reverse=True)
            in_lanes.difference_update(
                order[: self._plan.serial_files([sizes[index] for index in order], self._queued_bytes)]
            )
        if not self._lanes_too:
            in_lanes.clear()
        sources = batch.sources() if in_lanes else []
        queue = []
        for index in order:
            copy = batch.copy(index)
            is_laned = index in in_lanes and (copy is None or b"\0" not in copy)
            priority = -first - index if self._sequential else sizes[index]
            queue.append((first + index, priority, sources[index] if is_laned else None, copy))
        self._jobs += len(order)
        self._queued_bytes += sum(sizes.values())
        self._engine.submit(queue)

    def _finished(self) -> Iterator[HashedFiles]:
        """Yield the files up to the first one that is not done."""
        for number, batch in list(self._window.items()):
            begin, batch.yielded = batch.yielded, batch.end()
            self._held -= batch.yielded - begin
            if not batch.unfinished:
                del self._window[number]
            if batch.yielded > begin:
                yield HashedFiles(batch, begin, batch.yielded)
            if batch.unfinished:
                break

    def _collect(self) -> None:
        """Wait a moment for outcomes, and store them in their batches."""
        found: list[Outcome] = []
        left: list[tuple[int, list[tuple[int, int]]]] = []
        for ticket, *result in self._engine.collect(PROGRESS_EVERY):
            self._jobs -= 1
            if ticket == -1:
                raise result[0]
            if ticket < 0:
                number = -2 - ticket
                found += self._settle(self._window[number], result[0])
                if files := result[0].left():
                    left.append((number, files))
                continue
            batch = self._window[ticket // BLOCK]
            index = ticket % BLOCK
            if len(result) == 5:
                *values, ctime_ns = result
                outcome = tuple.__new__(Outcome, (batch.paths[index], *values, None, "", ctime_ns, 0))
            else:
                outcome = result[0] if len(result) == 1 else self._failure(batch, index, *result)
            batch.outcomes[index] = outcome
            batch.unfinished -= 1
            self._queued_bytes -= batch.sizes.get(index, 0)
            found.append(outcome)
        # Before the callbacks, which may end the run: finished files must not be read again.
        if self._ledger is not None and any(outcome.ok for outcome in found):
            # A file that was fetched has no inode.
            self._ledger.append(outcome for outcome in found if outcome.ok and outcome.inode is not None)
        self._count(found)
        for number, files in left:
            self._examine(number, files)
        if monotonic() >= self._next_progress:
            self._report_progress()

    def _settle(self, batch: FileBatch, block: Any) -> list[Outcome]:
        """Store the results of a block, and return the outcomes that are to be counted."""
        batch.block = block
        done = block.done
        batch.unfinished -= done
        failed = block.failed()
        if not (failed or self._ledger is not None):
            self._files += done  # nobody reads each outcome
            return []
        for index, *result in failed:
            batch.outcomes[index] = self._failure(batch, index, *result)
        batch.unfinished -= len(failed)
        return [outcome for outcome in batch.outcomes if outcome is not None]

    def _failure(self, batch: FileBatch, index: int, *result: Any) -> Outcome:
        """Return the outcome of a file in the engine that has no digests."""
        path = batch.paths[index]
        if len(result) == 2:
            assert batch.copies is not None
            return not_written(batch.copies[index], OSError(result[0], os.strerror(result[0])))
        size, mtime_ns, inode, error, mode, size_after, mtime_ns_after, total, there = result
        if error:
            return error_outcome(path, error, self._options)
        kind = kind_of_mode(mode)
        if kind is not None:
            return Outcome(path, None, size, mtime_ns, inode, kind, message_of(kind))
        is_copied = batch.copies is not None
        reason = changes(size, mtime_ns, size_after, mtime_ns_after, total, there, is_copied)
        return Outcome(path, None, size, mtime_ns, inode, CHANGED, reason or "")

    def _count(self, outcomes: Sequence[Outcome]) -> None:
        """Count files that are done."""
        self._files += len(outcomes)
        self._failed += sum([outcome.kind is not None for outcome in outcomes])

    def _report_progress(self) -> None:
        if self._on_event is not None:
            self._next_progress = monotonic() + PROGRESS_EVERY
            self._on_event(
                ProgressEvent(
                    items=self._files, bytes=self._serial_bytes + self._engine.read_bytes(), failed=self._failed
                )
            )

    # --- the workers ----------------------------------------------------------------------------------------------

    def _is_little(self) -> bool:
        """Return whether the queued files are done before a thread has started."""
        return self._queued_bytes + self._held * OPENING <= LITTLE

    def _work(self, wait: bool = True) -> None:
        """Read files until the engine is closed; the engine reads files in lanes itself, without the GIL.

        :param wait: wait for more files when the queue is empty
        """
        engine = self._engine
        try:
            with self._options.opener() as opener:
                while (ticket := engine.work(wait)) is not None:
                    engine.finish(ticket, self._read(ticket, opener))
        except Cancelled:
            return
        except BaseException as error:
            # Out of memory, or a bug: it ends the run instead of failing a file.
            engine.finish(-1, error)

    def _read(self, ticket: int, opener: Opener) -> Outcome:
        engine = self._engine
        batch, index = self._window[ticket // BLOCK], ticket % BLOCK
        path, given = batch.paths[index], batch.given[index]
        # Idle threads help with this file.
        threads = self._threads if self._sequential else max(1, self._threads // max(1, self._jobs))
        engine.lock_reading()
        try:
            if isinstance(given, FileRange):
                assert self._source is not None
                return transfer_range(self._source, given, self._names, threads, self._add_bytes)
            copy = batch.copy(index)
            return transfer(path, self._names, self._options, opener, threads, self._add_bytes, copy=copy)
        finally:
            engine.unlock_reading()

    def _fetch(self, ticket: int, file: Fetched) -> None:
        """Let another thread fetch a file."""
        if self._fetching is None:
            count = 1 if self._sequential else FETCHES
            self._fetching = Threads(count, "pressmark-fetch", patience=PATIENCE)
        self._jobs += 1
        self._fetching.submit(self._fetch_now, ticket, file)

    def _fetch_now(self, ticket: int, file: Fetched) -> None:
        try:
            self._engine.finish(ticket, file.outcome(self._names, self._add_bytes))
        except Cancelled:
            return
        except BaseException as error:
            self._engine.finish(-1, error)

    def _add_bytes(self, size: int) -> None:
        if self._engine.closed():
            raise Cancelled
        with self._serial_lock:
            self._serial_bytes += size
