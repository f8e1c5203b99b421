"""Complete a bag: download the missing files that fetch.txt lists.

Before a download, the entry is checked: its path must be safe, in the payload, listed in every payload manifest, and
free. The file is downloaded under a temporary name in the hidden directory for changes of the bag. When it is complete,
has all its checksums and is on disk, it is moved into the payload in one step that never replaces a file. So an
interrupted run leaves only correct files in the bag, and the next run continues.

fetch.txt is not changed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import monotonic
from typing import NamedTuple

from pressmark.bagit.bag_directory import STAGING, BagDirectory, open_tag_file
from pressmark.bagit.bag_tags import BagTags
from pressmark.bagit.changes import refusing
from pressmark.bagit.changes.bag_changes import BagChange
from pressmark.bagit.fetch.credentials import read_credentials
from pressmark.bagit.fetch.download import NO_SPACE, Download, Downloader, DownloadPolicy
from pressmark.bagit.fetch.fetch_txt import FetchEntry, read_fetch
from pressmark.bagit.fetch.partial import BLOCK, remove_partial, unlink
from pressmark.bagit.paths import FETCH_TXT
from pressmark.bagit.problems import BagReport, applies, problem
from pressmark.bagit.validation.validate import validate
from pressmark.errors import BagError
from pressmark.fixity.algorithms import ALGORITHMS
from pressmark.fixity.hasher import OpenOptions
from pressmark.fixity.outcomes import PROGRESS_EVERY
from pressmark.fs.beneath import READ, Directory, close_directory, land, open_or_make, require_regular
from pressmark.fs.durable import exists, flush_directory
from pressmark.progress_event import Progress
from pressmark.reports import ERROR, Problem, ProgressEvent, Report
from pressmark.threads import Threads, require_use

__all__ = ["complete"]

# Files behind the oldest unfinished one that other threads may download, since problems are reported in the order of
# fetch.txt.
LOOK_AHEAD = 4096
TOGETHER = 64  # problems of entries without a download that are reported together
PARTS = b"fetch"  # the directory of partial files, in the hidden directory
# Flush directories with new names after this many.
UNFLUSHED = 1024
# Time to wait for cancelled downloads; a thread that is still connecting ends by itself.
PATIENCE = 2.0  # seconds

BLOCKED = "a parent directory is occupied by a file or symbolic link; move it elsewhere"

PathLike = str | bytes | os.PathLike[str] | os.PathLike[bytes]


def complete(
    bag: BagTags | PathLike,
    *,
    threads: int = 4,
    allow_http: bool = False,
    allow_private: bool = False,
    allow_hosts: Iterable[str] = (),
    allow_buckets: Iterable[str] = (),
    header_from: str | os.PathLike[str] | None = None,
    netrc: bool = False,
    maximum: int | None = None,
    retries: int = 4,
    timeout: float = 60.0,
    certificates: str | None = None,
    verify: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Download the missing files that the fetch.txt of a bag lists (2.2.3).

    A file that cannot be downloaded, or has a wrong checksum, is a problem in the report; the other files are still
    downloaded. After an interruption or problems, call this again to continue.

    :param bag: the bag, or its base directory
    :param threads: number of parallel downloads
    :param allow_http: allow ``http:`` in addition to ``https:``
    :param allow_private: allow hosts whose addresses are private, reserved, or of this machine
    :param allow_hosts: names of hosts that may have such addresses
    :param allow_buckets: names of buckets whose ``s3:`` URLs are allowed, with the credentials of the AWS settings
    :param header_from: a file with header fields for named hosts; each line is a host, a header and its value, such as
        ``repository.example Authorization: Bearer TOKEN``
    :param netrc: send the logins of the netrc file (``NETRC``, or ``~/.netrc``) to the hosts that it names
    :param maximum: size limit in bytes for files without a length in fetch.txt; a length in fetch.txt is always a limit
    :param retries: number of retries of a request
    :param timeout: seconds without data after which a connection fails
    :param certificates: a file with the certificates to trust instead of the system's
    :param verify: also verify the checksums of the files that are present
    :param progress: has the one stage ``fetch``; changed in the calling thread
    :return: a report with the ``counts`` ``files`` and ``bytes`` (downloaded), ``present`` and ``failed``
    :raises BagError: the bag cannot be opened or written to, another run is changing it, the credentials cannot be
        read, or urllib3 is missing
    :raises ValueError: another argument is invalid
    """
    if threads < 1:
        raise ValueError(f"threads={threads}: expected 1 or more")
    policy = DownloadPolicy(
        allow_http=allow_http,
        allow_private=allow_private,
        allow_hosts=frozenset([allow_hosts] if isinstance(allow_hosts, str) else allow_hosts),
        allow_buckets=frozenset([allow_buckets] if isinstance(allow_buckets, str) else allow_buckets),
        credentials=read_credentials(header_from, netrc),
        maximum=maximum,
        retries=retries,
        timeout=timeout,
        certificates=certificates,
    )
    path = os.fsencode(bag.path if isinstance(bag, BagTags) else bag)
    with contextlib.ExitStack() as ending:
        change = None
        with refusing(path):
            is_changing = exists(os.path.join(path, STAGING))
        if is_changing:
            # Finish an interrupted change first: it can affect manifests or fetch.txt.
            change = ending.enter_context(BagChange(path))
        run = _Run(BagTags.open(path), policy, threads, verify, change is not None, ending, progress)
        return run.report()


class _Job(NamedTuple):
    """A file to download, or a present one to read.

    :ivar problems: those of the entries before it, and its own
    """

    entry: FetchEntry
    path: bytes
    digests: Mapping[str, str]
    is_present: bool
    problems: list[Problem]


class _Run:
    def __init__(
        self,
        bag: BagTags,
        policy: DownloadPolicy,
        threads: int,
        verify: bool,
        locked: bool,
        ending: contextlib.ExitStack,
        progress: Progress | None,
    ) -> None:
        self._bag = bag
        self._policy = policy
        self._verify = verify
        self._ending = ending
        self._on_event = progress
        self._progress = ProgressEvent("fetch")
        self._base = ending.enter_context(BagDirectory(bag.path))
        self._report = BagReport(level="fetch")
        self._seen: set[bytes] = set()
        self._listing = ending.enter_context(bag.payload)
        self._manifests = set(self._listing.algorithms)
        # Leftovers of an earlier run are removed at the end, even if no file is missing.
        self._downloads = ending.enter_context(_Downloads(self._base)) if locked else None
        self._downloader: Downloader | None = None
        self._pool = Threads(threads, "pressmark-fetch", patience=PATIENCE)
        self._ahead = max(1, LOOK_AHEAD // threads)
        self._full = False
        self._lock = threading.Lock()  # of the numbers
        self._files = self._present = self._failed = self._fetched_bytes = 0
        self._bytes = 0
        self._next_progress = monotonic() + PROGRESS_EVERY

    def report(self) -> BagReport:
        """Run, and return the report. All downloads have ended afterwards."""
        try:
            with self._pool:
                try:
                    self._report_stage()
                    for problems in self._pool.map(
                        self._finish, self._jobs(), ahead=self._ahead, on_wait=self._report_progress
                    ):
                        self._add(problems)
                        self._report_if_due()
                finally:
                    if self._downloader is not None:
                        self._downloader.cancel()
        finally:
            if self._downloads is not None and self._pool.abandoned:
                self._downloads.in_use = True
        if self._full:
            self._add([problem("disk-full", FETCH_TXT)])
        if self._downloads is not None:
            try:
                self._downloads.finish(clean=not self._failed)
            except OSError as error:
                message = f"{_words(error)}; downloads are in place, but a power failure can still remove them"
                self._add([problem("file-unwritable", b"", message)])
        if not (self._failed or self._full):
            # The other problems of the bag, without reading the payload: a file that no fetch.txt lists may be missing.
            known = {(one.kind, one.path) for one in self._report.problems}
            found = validate(self._bag.path, "complete").errors
            self._add([one for one in found if (one.kind, one.path) not in known])
        self._report_progress()
        self._report.counts = {
            "files": self._files,
            "bytes": self._fetched_bytes,
            "present": self._present,
            "failed": self._failed,
        }
        return self._report

    # --- judging --------------------------------------------------------------------------------------------------

    def _entries(self) -> Iterator[FetchEntry | Problem]:
        problems: list[Problem] = []
        file = open_tag_file(self._base, FETCH_TXT, problems)
        yield from problems
        if file is not None:
            with file:
                yield from read_fetch(file, self._bag.encoding, self._bag.version)
        elif not problems and _is_there(self._base, FETCH_TXT):
            raise BagError(FETCH_TXT, "not a regular file; replace it with the original fetch.txt")

    def _jobs(self) -> Iterator[_Job | list[Problem]]:
        """Check the entries one by one, and yield the jobs, or the problems of entries without one."""
        problems: list[Problem] = []
        for entry in self._entries():
            if self._full:
                return
            self._report_if_due()
            if isinstance(entry, Problem):
                problems.append(entry)
                continue
            known = len(problems)
            job = self._judge(entry, problems)
            if job is not None:
                self._begin(job)
                yield job
                problems = []
                continue
            failed = any(one.severity == ERROR for one in problems[known:])
            with self._lock:
                self._failed += failed
                self._present += not failed
            if len(problems) >= TOGETHER:
                yield problems
                problems = []
        yield problems

    def _judge(self, entry: FetchEntry, problems: list[Problem]) -> _Job | None:
        """Return the job of an entry; :data:`None` if the file must not or need not be downloaded."""
        path, digests = self._listed(entry, problems)
        if path is None:
            return None
        if path in self._seen:
            problems.append(
                problem("path-duplicate", path, f"fetch.txt, line {entry.line}: duplicate entry", section="2.2.3")
            )
            return None
        self._seen.add(path)
        try:
            status = self._base.status(path)
        except FileNotFoundError:
            if digests:
                return _Job(entry, path, digests, False, problems)
            problems.append(
                problem("fetch-refused", path, "no manifest has a checksum with a known algorithm; not downloaded")
            )
            return None
        except OSError as error:
            in_the_way = error.errno in (errno.ENOTDIR, errno.ELOOP)
            reason = BLOCKED if in_the_way else _words(error)
            problems.append(problem("fetch-refused", path, f"{reason}; not downloaded", section="5.1"))
            return None
        if not stat.S_ISREG(status.st_mode):
            what = "symbolic link" if stat.S_ISLNK(status.st_mode) else "special file"
            problems.append(
                problem("fetch-refused", path, f"path is occupied by a {what}; not downloaded", section="5.1")
            )
            return None
        self._compare_length(entry, path, status.st_size, problems)
        if not self._verify or not digests:
            self._count(status.st_size)
            return None
        return _Job(entry, path, digests, True, problems)

    def _listed(self, entry: FetchEntry, problems: list[Problem]) -> tuple[bytes | None, dict[str, str]]:
        """Return the path of an entry as manifests spell it, and its known checksums."""
        path = entry.path
        found = self._listing.find(path)
        for again in self._listing.find_rest(path, found, mark=False):
            # If no manifest spells the name as fetch.txt does, use the spelling of the first manifest.
            if not found:
                path = again.path
            found.update(again.digests)
            problems.append(
                problem(again.kind, path, f"fetch.txt, line {entry.line}: name differs only in Unicode normalization")
            )
        everywhere = applies("listed-everywhere", self._bag.version)
        missing = self._manifests - found.keys() if found and everywhere else set()
        if not found or missing:
            reason = (
                f"not listed in the manifest of {', '.join(sorted(missing))}"
                if missing
                else "not listed in any manifest"
            )
            problems.append(problem("fetch-unlisted", path, f"{reason}; not downloaded"))
            return None, {}
        return path, {name: digest for name, digest in found.items() if digest and name in ALGORITHMS}

    def _compare_length(self, entry: FetchEntry, path: bytes, size: int, problems: list[Problem]) -> None:
        if entry.length is not None and entry.length != size:
            problems.append(problem("fetch-length", path, expected=str(entry.length), found=str(size)))

    def _begin(self, job: _Job) -> None:
        """Prepare the first download. If no file is missing, nothing is written to the bag."""
        if not job.is_present and self._downloader is None:
            self._downloader = Downloader(self._policy)
            self._ending.callback(self._downloader.close)
        if not job.is_present and self._downloads is None:
            self._ending.enter_context(BagChange(os.fsencode(self._bag.path)))
            self._downloads = self._ending.enter_context(_Downloads(self._base))

    def _add(self, problems: list[Problem]) -> None:
        self._report.add(problems)
        if self._on_event is not None:
            for one in problems:
                self._on_event(one)

    # --- events ---------------------------------------------------------------------------------------------------

    def _report_stage(self) -> None:
        """Report the number and size of the files of fetch.txt."""
        if self._on_event is None:
            return
        files = size = 0
        open_ended = False
        for entry in self._entries():
            if isinstance(entry, FetchEntry):
                files += 1
                size += entry.length or 0
                open_ended = open_ended or entry.length is None
        self._progress = ProgressEvent("fetch", of_items=files, of_bytes=None if open_ended else size)
        self._on_event(self._progress)

    def _report_if_due(self) -> None:
        if monotonic() >= self._next_progress:
            self._report_progress()

    def _report_progress(self) -> None:
        self._next_progress = monotonic() + PROGRESS_EVERY
        if self._on_event is not None:
            done = self._files + self._present + self._failed
            self._on_event(self._progress.plus(done, self._bytes, self._failed))

    def _count(self, size: int) -> None:
        with self._lock:
            self._bytes += size

    # --- the threads ----------------------------------------------------------------------------------------------

    def _finish(self, job: _Job | list[Problem]) -> list[Problem]:
        """Do a job, and return its problems."""
        if isinstance(job, list):
            return job
        found = self._read(job) if job.is_present else self._fetch(job)
        if found.kind is None and not job.is_present:
            self._compare_length(job.entry, job.path, found.size, job.problems)
        elif found.kind == "full" and self._downloader is not None:
            # The other downloads need space too: cancel them; they can be continued.
            self._full = True
            self._downloader.cancel()
        elif found.kind == "mismatch":
            job.problems.extend(
                problem("checksum-mismatch", job.path, found.message, algorithm=name, expected=wanted, found=there)
                for name, wanted in job.digests.items()
                if (there := found.digests[name]) != wanted
            )
        elif found.kind in _KINDS:
            job.problems.append(problem(_KINDS[found.kind], job.path, found.message))
        with self._lock:
            if found.kind is not None:
                self._failed += 1
            elif job.is_present:
                self._present += 1
            else:
                self._files += 1
                self._fetched_bytes += found.size
        return job.problems

    def _fetch(self, job: _Job) -> Download:
        assert self._downloader is not None
        assert self._downloads is not None
        counted = 0

        def count(size: int) -> None:
            nonlocal counted
            counted += size
            self._count(size)

        name = hashlib.sha256(job.path).hexdigest()[:32].encode()
        parts = self._downloads.parts
        found = self._downloader.download(job.entry.url, parts, name, job.entry.length, job.digests, count)
        if found.kind is not None:
            return found
        self._count(found.size - counted)  # downloaded by an earlier run
        require_use()
        if self._full:
            return found._replace(kind="cancelled")
        try:
            self._downloads.land(name, job.path)
        except OSError as error:
            if error.errno in (errno.EEXIST, errno.ENOTDIR, errno.ELOOP):
                remove_partial(parts, name)
                is_occupied = error.errno == errno.EEXIST
                reason = "path was occupied by another file during the download" if is_occupied else BLOCKED
                return found._replace(kind="refused", message=reason)
            if error.errno in NO_SPACE:
                return found._replace(kind="full")
            return found._replace(kind="disk", message=f"cannot be moved into the payload: {_words(error)}")
        return found

    def _read(self, job: _Job) -> Download:
        """Compare a present file with its checksums."""
        hashers = {name: ALGORITHMS[name].make(1) for name in job.digests}
        size = 0
        try:
            with (
                OpenOptions(beneath=self._base.beneath).opener() as opener,
                open(require_regular(opener.open(job.path, READ)), "rb", 0) as file,
            ):
                while data := file.read(BLOCK):
                    require_use()
                    if self._full:
                        return Download("cancelled", "run cancelled", size, {})
                    for hasher in hashers.values():
                        hasher.update(data)
                    size += len(data)
                    self._count(len(data))
        except OSError as error:
            return Download("unreadable", _words(error), size, {})
        digests = {name: hasher.hexdigest() for name, hasher in hashers.items()}
        if digests == job.digests:
            return Download(None, "", size, digests)
        return Download(
            "mismatch", "existing file has wrong checksums; move it elsewhere to download it again", size, digests
        )


class _Downloads:
    """The partial files of a run, and the moves of complete ones into the payload; a context manager, thread-safe.

    :ivar parts: the open directory of the partial files
    :ivar in_use: whether a download could not be ended in time, so descriptors must stay open
    :raises BagError: the directory cannot be created
    """

    def __init__(self, base: BagDirectory) -> None:
        self._path = base.path
        self.in_use = False
        self._unflushed: set[bytes] = set()
        self._unwritten: OSError | None = None
        self._lock = threading.Lock()
        # Separate descriptors, because a hanging download can continue after the base is closed.
        self._top = os.dup(base.beneath) if isinstance(base.beneath, int) else base.path
        self._staging: Directory = -1
        self.parts: Directory = -1
        try:
            self._staging = self._opened(self._top, STAGING)
            self.parts = self._opened(self._staging, STAGING, PARTS)
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> _Downloads:
        return self

    def __exit__(self, *_error: object) -> None:
        with contextlib.suppress(OSError):  # not empty
            self._remove(os.rmdir)
        if not self.in_use:
            self._close()

    def _close(self) -> None:
        for directory in (self.parts, self._staging, self._top):
            close_directory(directory)

    def _opened(self, above: Directory, *path: bytes) -> Directory:
        try:
            return open_or_make(above, path[-1])[0]
        except OSError as error:
            is_other = error.errno in (errno.ENOTDIR, errno.ELOOP)
            reason = "not created by an interrupted run; move it elsewhere" if is_other else _words(error)
            raise BagError(os.path.join(self._path, *path), reason) from None

    def _remove(self, remove: Callable[..., object]) -> None:
        """Remove the directory of the partial files."""
        if isinstance(self._staging, int):
            remove(PARTS, dir_fd=self._staging)
        else:
            remove(os.path.join(os.fsencode(self._staging), PARTS))

    def land(self, part: bytes, path: bytes) -> None:
        """Move a complete file into the payload; raises the errors of :func:`~pressmark.fs.beneath.land`."""
        touched = land(self.parts, part, self._top, path)
        with contextlib.suppress(OSError):
            unlink(self.parts, part + b".json")
        with self._lock:
            self._unflushed.update(touched)
            full = len(self._unflushed) >= UNFLUSHED
        if full:
            self._flush()

    def finish(self, clean: bool) -> None:
        """Write all new names to disk, and remove partial files.

        :param clean: remove all files; otherwise only empty files
        :raises OSError: a name could not be written
        """
        self._flush()
        if clean:
            with contextlib.suppress(OSError):
                self._remove(shutil.rmtree)
        else:
            listed = self.parts if isinstance(self.parts, int) else os.fsdecode(self.parts)
            with contextlib.suppress(OSError), os.scandir(listed) as entries:
                for entry in entries:
                    if entry.stat(follow_symlinks=False).st_size == 0:
                        unlink(self.parts, os.fsencode(entry.name))
        if self._unwritten is not None:
            raise self._unwritten

    def _flush(self) -> None:
        with self._lock:
            touched, self._unflushed = self._unflushed, set()
        for path in touched:
            try:
                flush_directory(os.path.join(self._path, path))
            except (FileNotFoundError, NotADirectoryError):
                pass  # moved by another program
            except OSError as error:
                self._unwritten = error


# The kinds of problems of failed downloads; a cancelled download is not a problem.
_KINDS = {
    "refused": "fetch-refused",
    "failed": "fetch-failed",
    "too-long": "fetch-too-long",
    "disk": "file-unwritable",
    "unreadable": "file-unreadable",
}


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
