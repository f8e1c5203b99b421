"""Completing a bag: fetching what fetch.txt lists and is not there, so that only what is right ever gets into the bag.

An entry is judged before anything is asked for: its path must be safe, in the payload, listed in every payload
manifest, and free. It is fetched under a temporary name in the hidden directory that changes of a bag have for
themselves, and only when it is whole, has all its checksums and is on the disk does it get its name, in one step, and
never over something else. So whatever ends a run, the bag has some of the files, each of them right, and the next run
goes on.

fetch.txt itself is left as it is.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from queue import Empty, SimpleQueue
from time import monotonic
from typing import BinaryIO, NamedTuple

from pressmark.bagit.bag_directory import STAGING, BagDirectory, open_tag_file
from pressmark.bagit.bag_tags import BagTags
from pressmark.bagit.changes.bag_transaction import BagTransaction
from pressmark.bagit.changes.events import Event, Stage
from pressmark.bagit.changes.refusals import refusing
from pressmark.bagit.fetch.download import NO_SPACE, Download, Downloader, DownloadPolicy
from pressmark.bagit.fetch.fetch_txt import FetchEntry, read_fetch
from pressmark.bagit.fetch.partial import BLOCK, Directory
from pressmark.bagit.paths import FETCH_TXT
from pressmark.bagit.problems import problem
from pressmark.bagit.report import BagReport
from pressmark.bagit.versions import applies
from pressmark.errors import BagError
from pressmark.fixity.algorithms import ALGORITHMS
from pressmark.fixity.outcomes import Outcome
from pressmark.fixity.pool import PROGRESS_EVERY, Finished, Progress
from pressmark.fs.durable import exists, flush_directory
from pressmark.reports import ERROR, Problem, Report

__all__ = ["complete"]

PARTS = b"fetch"  # in the hidden directory
# How far the run looks ahead of the oldest file that is not done, so that problems come in the order of fetch.txt.
LOOK_AHEAD = 4096  # entries
# Directories whose new names are not on the disk yet.
UNFLUSHED = 1024
# How long to wait for downloads that were ended; what hangs in a connection that is still being made ends by itself.
LAST_MOMENT = 2.0  # seconds

IN_THE_WAY = "a file or a symbolic link is where a directory should be"

_DIRECTORY = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
# File systems that know no second name for a file say so in many ways.
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EINVAL})

PathLike = str | bytes | os.PathLike[str] | os.PathLike[bytes]


def complete(
    bag: BagTags | PathLike,
    *,
    threads: int = 4,
    allow_http: bool = False,
    allow_file: bool = False,
    allow_private: bool = False,
    allow_hosts: Iterable[str] = (),
    maximum: int | None = None,
    retries: int = 4,
    timeout: float = 60.0,
    certificates: str | None = None,
    verify: bool = False,
    on_event: Callable[[Event], object] | None = None,
    on_problem: Callable[[Problem], object] | None = None,
) -> Report:
    """Fetch the files that a bag's fetch.txt lists and that are not there (2.2.3).

    A file that cannot be fetched, or is not what the manifests say, is a problem in the report; the others are fetched
    all the same. Interrupted or with problems, the same call goes on where it stopped.

    :param bag: the bag, or its base directory
    :param threads: files that are fetched at the same time
    :param allow_http: also unencrypted; else only ``https:`` is
    :param allow_file: also from ``file:`` URLs, so from any file that this user may read
    :param allow_private: also from hosts whose addresses are private, of this machine, or reserved
    :param allow_hosts: names of hosts for which that is allowed
    :param maximum: bytes that a file may have whose length fetch.txt leaves open; one that has a length is never longer
    :param retries: how often a request is tried again
    :param timeout: seconds without an answer after which a connection counts as broken
    :param certificates: a file with the certificates of those to trust, instead of the system's
    :param verify: read the files that are there, too, and compare their checksums
    :param on_event: called with :class:`~pressmark.bagit.changes.events.Stage`, :class:`~pressmark.fixity.Finished` and
        :class:`~pressmark.fixity.Progress` in the thread that calls
    :param on_problem: called with each problem when it is found, in the order of fetch.txt
    :return: its ``counts``: ``files`` and ``bytes`` that were fetched, ``present``: files that were there, ``failed``
    :raises BagError: the bag cannot be opened or written to, another run is changing it, or urllib3 is missing
    :raises ValueError: another argument is wrong
    """
    if threads < 1:
        raise ValueError(f"threads={threads}: expected 1 or more")
    if retries < 0:
        raise ValueError(f"retries={retries}: expected 0 or more")
    if timeout <= 0:
        raise ValueError(f"timeout={timeout}: expected more than 0")
    if maximum is not None and maximum < 0:
        raise ValueError(f"maximum={maximum}: expected 0 or more")
    policy = DownloadPolicy(
        allow_http=allow_http,
        allow_file=allow_file,
        allow_private=allow_private,
        allow_hosts=frozenset([allow_hosts] if isinstance(allow_hosts, str) else allow_hosts),
        maximum=maximum,
        retries=retries,
        timeout=timeout,
        certificates=certificates,
    )
    path = bag.path if isinstance(bag, BagTags) else os.fsencode(bag)
    with contextlib.ExitStack() as ending:
        change = None
        with refusing(path):
            is_changing = exists(os.path.join(path, STAGING))
        if is_changing:
            # What an interrupted change had decided comes first: it may be about manifests or fetch.txt.
            change = ending.enter_context(BagTransaction(path))
        run = _Run(BagTags.open(path), policy, threads, verify, change is not None, ending, on_event, on_problem)
        return run.report()


class _Job(NamedTuple):
    """A file that is to be fetched; or one that is there and to be read."""

    entry: FetchEntry
    path: bytes
    digests: Mapping[str, str]
    file: BinaryIO | None = None


class _Slot:
    """An entry on its way, and what is wrong with it."""

    __slots__ = ("done", "problems")

    def __init__(self, problems: Iterable[Problem] = (), done: bool = True) -> None:
        self.problems = list(problems)
        self.done = done


class _Run:
    def __init__(
        self,
        bag: BagTags,
        policy: DownloadPolicy,
        threads: int,
        verify: bool,
        locked: bool,
        ending: contextlib.ExitStack,
        on_event: Callable[[Event], object] | None,
        on_problem: Callable[[Problem], object] | None,
    ) -> None:
        self._bag = bag
        self._policy = policy
        self._threads = threads
        self._verify = verify
        self._ending = ending
        self._on_event = on_event
        self._on_problem = on_problem
        self._base = ending.enter_context(BagDirectory(bag.path))
        self._report = BagReport(level="fetch")
        self._seen: set[bytes] = set()
        self._listing = ending.enter_context(bag.payload)
        self._manifests = set(self._listing.algorithms)
        # What an earlier run has left is removed in the end, also where there is nothing to do any more.
        self._places = ending.enter_context(_Places(self._base)) if locked else None
        self._downloader: Downloader | None = None
        self._workers: list[threading.Thread] = []
        self._ended = threading.Event()
        self._jobs: SimpleQueue[tuple[_Slot, _Job] | None] = SimpleQueue()
        self._results: SimpleQueue[tuple[_Slot, _Job, Download] | BaseException] = SimpleQueue()
        self._under_way = 0
        self._full = False
        self._files = self._present = self._failed = self._fetched_bytes = 0
        self._bytes = 0
        self._bytes_lock = threading.Lock()
        self._next_progress = monotonic() + PROGRESS_EVERY

    def report(self) -> BagReport:
        """Run, and return the report. However this ends, nothing is fetched any more."""
        try:
            self._run()
        finally:
            self._end()
        if self._full:
            self._add([problem("disk-full", FETCH_TXT)])
        if self._places is not None:
            try:
                self._places.finish(clean=not self._failed)
            except OSError as error:
                message = f"{_words(error)}; what was fetched is there, but a power failure may take it away"
                self._add([problem("file-unwritable", b"", message)])
        self._report_progress()
        self._report.counts = {
            "files": self._files,
            "bytes": self._fetched_bytes,
            "present": self._present,
            "failed": self._failed,
        }
        return self._report

    def _run(self) -> None:
        window: deque[_Slot] = deque()
        self._report_stage()
        slots = self._slots()
        more = True
        while more or window:
            while more and self._under_way < 2 * self._threads and len(window) < LOOK_AHEAD and not self._full:
                slot = next(slots, None)
                if slot is None:
                    more = False
                else:
                    window.append(slot)
            more = more and not self._full
            while window and window[0].done:
                self._add(window.popleft().problems)
            if self._under_way:
                self._collect()

    # --- judging --------------------------------------------------------------------------------------------------

    def _entries(self) -> Iterator[FetchEntry | Problem]:
        problems: list[Problem] = []
        file = open_tag_file(self._base, FETCH_TXT, problems)
        yield from problems
        if file is not None:
            with file:
                yield from read_fetch(file, self._bag.encoding, self._bag.version)
        elif not problems and _is_there(self._base, FETCH_TXT):
            raise BagError(FETCH_TXT, "it is not a regular file of the bag; put the fetch file there itself")

    def _slots(self) -> Iterator[_Slot]:
        """Judge the entries one by one, and hand over those that may be fetched."""
        for entry in self._entries():
            if isinstance(entry, Problem):
                yield _Slot([entry])
                continue
            problems: list[Problem] = []
            job = self._judge(entry, problems)
            slot = _Slot(problems, done=job is None)
            if job is not None:
                self._begin(job.file is None)
                self._under_way += 1
                self._jobs.put((slot, job))
            elif any(one.severity == ERROR for one in problems):
                self._fail(entry.path, problems[-1].kind, problems[-1].message)
            else:
                self._present += 1
            yield slot

    def _judge(self, entry: FetchEntry, problems: list[Problem]) -> _Job | None:
        """Return what is to be done for an entry; nothing where it must not be fetched, or need not."""
        path, digests = self._listed(entry, problems)
        if path is None:
            return None
        if path in self._seen:
            problems.append(
                problem("path-duplicate", path, f"fetch.txt, line {entry.line}: listed before", section="2.2.3")
            )
            return None
        self._seen.add(path)
        try:
            status = self._base.status(path)
        except FileNotFoundError:
            if digests:
                return _Job(entry, path, digests)
            problems.append(
                problem("fetch-refused", path, "no manifest has a checksum of it that can be verified here")
            )
            return None
        except OSError as error:
            in_the_way = error.errno in (errno.ENOTDIR, errno.ELOOP)
            reason = IN_THE_WAY if in_the_way else _words(error)
            problems.append(problem("fetch-refused", path, f"{reason}; it was not asked for", section="5.1"))
            return None
        if not stat.S_ISREG(status.st_mode):
            what = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "no regular file"
            problems.append(problem("fetch-refused", path, f"{what} has its name; it was not asked for", section="5.1"))
            return None
        self._compare_length(entry, path, status.st_size, problems)
        if not self._verify or not digests:
            self._count(status.st_size)
            return None
        try:
            return _Job(entry, path, digests, self._base.open(path))
        except OSError as error:
            problems.append(problem("file-unreadable", path, _words(error)))
            return None

    def _listed(self, entry: FetchEntry, problems: list[Problem]) -> tuple[bytes | None, dict[str, str]]:
        """Return the path of an entry as the manifests have it, and the checksums that can be verified."""
        path = entry.path
        found = self._listing.find(path)
        for again in self._listing.find_rest(path, found, mark=False):
            # Where no manifest has its name as fetch.txt spells it, the first of them says what it is called.
            if not found:
                path = again.path
            found.update(again.digests)
            problems.append(problem(again.kind, path, f"fetch.txt, line {entry.line} has another spelling of it"))
        everywhere = applies("listed-everywhere", self._bag.version)
        missing = self._manifests - found.keys() if found and everywhere else set()
        if not found or missing:
            reason = f"it is not in the manifest of {', '.join(sorted(missing))}" if missing else "it is in no manifest"
            problems.append(problem("fetch-unlisted", path, f"{reason}; it was not asked for"))
            return None, {}
        return path, {name: digest for name, digest in found.items() if digest and name in ALGORITHMS}

    def _compare_length(self, entry: FetchEntry, path: bytes, size: int, problems: list[Problem]) -> None:
        if entry.length is not None and entry.length != size:
            problems.append(problem("fetch-length", path, expected=str(entry.length), found=str(size)))

    # --- the thread that calls ------------------------------------------------------------------------------------

    def _begin(self, fetching: bool) -> None:
        """Make ready for the first job: a bag in which everything is there is not even written to."""
        if fetching and self._downloader is None:
            self._downloader = Downloader(self._policy)
            self._ending.callback(self._downloader.close)
        if fetching and self._places is None:
            self._ending.enter_context(BagTransaction(self._bag.path))
            self._places = self._ending.enter_context(_Places(self._base))
        while len(self._workers) < self._threads:
            worker = threading.Thread(target=self._work, name="pressmark-fetch", daemon=True)
            self._workers.append(worker)
            worker.start()

    def _end(self) -> None:
        self._ended.set()
        if self._downloader is not None:
            self._downloader.cancel()
        for _ in self._workers:
            self._jobs.put(None)
        last = monotonic() + LAST_MOMENT
        for worker in self._workers:
            worker.join(max(0.0, last - monotonic()))
        if self._places is not None and any(worker.is_alive() for worker in self._workers):
            self._places.in_use = True

    def _collect(self) -> None:
        """Wait for results, for a moment at most."""
        with contextlib.suppress(Empty):
            while True:
                found = self._results.get(timeout=PROGRESS_EVERY)
                if isinstance(found, BaseException):
                    raise found
                self._under_way -= 1
                self._settle(*found)
                if self._results.empty():
                    break
        if monotonic() >= self._next_progress:
            self._report_progress()

    def _settle(self, slot: _Slot, job: _Job, found: Download) -> None:
        slot.done = True
        if found.kind is None:
            if job.file is None:
                self._files += 1
                self._fetched_bytes += found.size
                self._compare_length(job.entry, job.path, found.size, slot.problems)
            else:
                self._present += 1
            self._report_event(Finished(Outcome(job.path, dict(found.digests), found.size, None, None)))
            return
        if found.kind == "full" and self._downloader is not None:
            # Nobody else will find space either; the others keep what they have.
            self._full = True
            self._ended.set()
            self._downloader.cancel()
        if found.kind == "mismatch":
            slot.problems += [
                problem("checksum-mismatch", job.path, found.message, algorithm=name, expected=wanted, found=there)
                for name, wanted in job.digests.items()
                if (there := found.digests[name]) != wanted
            ]
        elif found.kind in _KINDS:
            slot.problems.append(problem(_KINDS[found.kind], job.path, found.message))
        self._fail(job.path, found.kind, found.message)

    def _fail(self, path: bytes, kind: str, message: str) -> None:
        self._failed += 1
        self._report_event(Finished(Outcome(path, None, None, None, None, kind, message)))

    def _add(self, problems: list[Problem]) -> None:
        self._report.add(problems)
        if self._on_problem is not None:
            for one in problems:
                self._on_problem(one)

    # --- events ---------------------------------------------------------------------------------------------------

    def _report_event(self, event: Event) -> None:
        if self._on_event is not None:
            self._on_event(event)

    def _report_stage(self) -> None:
        """Say how much there is to do, or was done: fetch.txt is read through for it."""
        if self._on_event is None:
            return
        files = size = 0
        open_ended = False
        for entry in self._entries():
            if isinstance(entry, FetchEntry):
                files += 1
                size += entry.length or 0
                open_ended = open_ended or entry.length is None
        self._report_event(Stage("fetch", files, None if open_ended else size))

    def _report_progress(self) -> None:
        self._next_progress = monotonic() + PROGRESS_EVERY
        self._report_event(Progress(self._files + self._present + self._failed, self._bytes, self._failed))

    def _count(self, size: int) -> None:
        with self._bytes_lock:
            self._bytes += size

    # --- the workers ----------------------------------------------------------------------------------------------

    def _work(self) -> None:
        """Take files until the run ends."""
        try:
            while (task := self._jobs.get()) is not None:
                slot, job = task
                self._results.put((slot, job, self._fetch(job) if job.file is None else self._read(job, job.file)))
        except BaseException as error:
            # Memory is short, or a bug of ours: it must end the run, not look like a file that failed.
            self._results.put(error)

    def _fetch(self, job: _Job) -> Download:
        assert self._downloader is not None
        assert self._places is not None
        counted = 0

        def count(size: int) -> None:
            nonlocal counted
            counted += size
            self._count(size)

        name = hashlib.sha256(job.path).hexdigest()[:32].encode()
        parts = self._places.parts
        found = self._downloader.download(job.entry.url, parts, name, job.entry.length, job.digests, count)
        if found.kind is not None:
            return found
        self._count(found.size - counted)  # what an earlier run had fetched
        if self._ended.is_set():
            return found._replace(kind="cancelled")
        try:
            self._places.land(name, job.path)
        except OSError as error:
            if error.errno in (errno.EEXIST, errno.ENOTDIR, errno.ELOOP):
                self._places.discard(name)
                taken = error.errno == errno.EEXIST
                reason = "something else has got its name meanwhile" if taken else IN_THE_WAY
                return found._replace(kind="refused", message=reason)
            if error.errno in NO_SPACE:
                return found._replace(kind="full")
            return found._replace(kind="disk", message=f"it cannot be put in its place: {_words(error)}")
        return found

    def _read(self, job: _Job, file: BinaryIO) -> Download:
        """Compare a file that is there with its checksums."""
        hashers = {name: ALGORITHMS[name].make(1) for name in job.digests}
        size = 0
        with file:
            try:
                while data := file.read(BLOCK):
                    if self._ended.is_set():
                        return Download("cancelled", "the run was ended", size, {})
                    for hasher in hashers.values():
                        hasher.update(data)
                    size += len(data)
                    self._count(len(data))
            except OSError as error:
                return Download("unreadable", _words(error), size, {})
        digests = {name: hasher.hexdigest() for name, hasher in hashers.items()}
        if digests == job.digests:
            return Download(None, "", size, digests)
        return Download("mismatch", "it is there, and is another file; remove it to have it fetched", size, digests)


# What a download's kind is called in a report; one that was ended is no problem of its own.
_KINDS = {
    "refused": "fetch-refused",
    "failed": "fetch-failed",
    "too-long": "fetch-too-long",
    "disk": "file-unwritable",
    "unreadable": "file-unreadable",
}


class _Places:
    """The directory of the parts, and the places in the bag that they are moved to; a context manager, thread-safe.

    :ivar parts: the directory of the parts
    :ivar in_use: a download could not be ended in time: its descriptors must not come to mean something else
    :raises BagError: it cannot be made
    """

    def __init__(self, base: BagDirectory) -> None:
        self._path = base.path
        self.in_use = False
        self._unflushed: set[bytes] = set()
        self._unwritten: OSError | None = None
        self._lock = threading.Lock()
        # Their own descriptors: a download that hangs may come back when the base is closed.
        self._top: Directory = os.dup(base.beneath) if isinstance(base.beneath, int) else base.path
        self._staging: Directory = -1
        self.parts: Directory = -1
        try:
            self._staging = self._open_or_make(self._top, STAGING)
            self.parts = self._open_or_make(self._staging, PARTS)
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> _Places:
        return self

    def __exit__(self, *_error: object) -> None:
        # Where nothing is left to go on with, the directory goes too.
        with contextlib.suppress(OSError):
            if isinstance(self._staging, int):
                os.rmdir(PARTS, dir_fd=self._staging)
            else:
                os.rmdir(os.path.join(self._staging, PARTS))
        if not self.in_use:
            self._close()

    def _close(self) -> None:
        for directory in (self.parts, self._staging, self._top):
            _close(directory)

    def _open_or_make(self, above: Directory, name: bytes) -> Directory:
        try:
            return _enter(above, name, make=True)[0]
        except OSError as error:
            path = os.path.join(self._path, *((STAGING,) if name == STAGING else (STAGING, name)))
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                raise BagError(path, "it is not the directory of an interrupted run; move it away") from None
            raise BagError(path, _words(error)) from None

    def land(self, part: bytes, path: bytes) -> None:
        """Give a part its name in the bag, on a way without links; directories are made.

        :raises FileExistsError: the name is taken
        :raises OSError: there is a file or link on the way, or the operating system refuses
        """
        *above, name = path.split(b"/")
        directory = self._top
        touched = []
        try:
            for depth, segment in enumerate(above):
                below, made = _enter(directory, segment, make=True)
                if made:
                    touched.append(b"/".join(above[:depth]))
                if directory is not self._top:
                    _close(directory)
                directory = below
            _move(self.parts, part, directory, name)
        finally:
            if directory is not self._top:
                _close(directory)
        touched.append(b"/".join(above))
        with self._lock:
            self._unflushed.update(touched)
            full = len(self._unflushed) >= UNFLUSHED
        if full:
            self._flush()

    def finish(self, clean: bool) -> None:
        """Have all names on the disk, and remove the parts that nobody needs.

        :param clean: that is all of them; else those without content
        :raises OSError: a name could not be written
        """
        self._flush()
        self._remove_parts(clean)
        if self._unwritten is not None:
            raise self._unwritten

    def _remove_parts(self, clean: bool) -> None:
        if clean:
            if isinstance(self._staging, int):
                shutil.rmtree(PARTS, dir_fd=self._staging, ignore_errors=True)
            else:
                shutil.rmtree(os.path.join(self._staging, PARTS), ignore_errors=True)
            return
        with contextlib.suppress(OSError), os.scandir(_listable(self.parts)) as entries:
            for entry in entries:
                if entry.stat(follow_symlinks=False).st_size == 0:
                    _unlink(self.parts, os.fsencode(entry.name))

    def discard(self, part: bytes) -> None:
        """Remove a part that has no place to go."""
        with contextlib.suppress(OSError):
            for name in (part, part + b".json"):
                _unlink(self.parts, name)

    def _flush(self) -> None:
        with self._lock:
            touched, self._unflushed = self._unflushed, set()
        for path in touched:
            try:
                flush_directory(os.path.join(self._path, path))
            except (FileNotFoundError, NotADirectoryError):
                pass  # it was moved away; that is somebody else's change
            except OSError as error:
                self._unwritten = error


# --- directories, by descriptor or by path --------------------------------------------------------------------------


def _enter(above: Directory, name: bytes, make: bool) -> tuple[Directory, bool]:
    """Open a directory in another one, never through a link; return it, and whether it was made."""
    made = False
    if isinstance(above, int):
        while True:
            try:
                return os.open(name, _DIRECTORY, dir_fd=above), made
            except FileNotFoundError:
                if not make or made:
                    raise
                made = True
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=above)
    path = os.path.join(above, name)
    if make and not os.path.lexists(path):
        made = True
        with contextlib.suppress(FileExistsError):
            os.mkdir(path)
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    return path, made


def _move(source: Directory, part: bytes, target: Directory, name: bytes) -> None:
    """Give a file another name in another directory, in one step, never over a file that is there."""
    if not isinstance(source, int) or not isinstance(target, int):
        assert isinstance(source, bytes)
        assert isinstance(target, bytes)
        # Where directories have no descriptors, renaming does not overwrite.
        os.rename(os.path.join(source, part), os.path.join(target, name))
    else:
        try:
            os.link(part, name, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            with contextlib.suppress(FileNotFoundError):
                os.stat(name, dir_fd=target, follow_symlinks=False)
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
            os.rename(part, name, src_dir_fd=source, dst_dir_fd=target)
    # It is in its place: what cannot be removed of it here is no reason to say otherwise.
    for left in (part, part + b".json"):
        with contextlib.suppress(OSError):
            _unlink(source, left)


def _unlink(directory: Directory, name: bytes) -> None:
    with contextlib.suppress(FileNotFoundError):
        if isinstance(directory, int):
            os.unlink(name, dir_fd=directory)
        else:
            os.unlink(os.path.join(directory, name))


def _listable(directory: Directory) -> int | str:
    return directory if isinstance(directory, int) else os.fsdecode(directory)


def _close(directory: Directory) -> None:
    if isinstance(directory, int) and directory >= 0:
        os.close(directory)


def _is_there(base: BagDirectory, path: bytes) -> bool:
    try:
        base.status(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise BagError(os.path.join(base.path, path), _words(error)) from error
    return True


def _words(error: OSError) -> str:
    return error.strerror or str(error)
