"""Make a bag hollow: remove its payload files, after their content was read from a server, and list them in fetch.txt.

The bag is checked as in a validation, but the content of the payload is read from the server, not from the disk. The
change is one transaction: ``data/`` is moved out as a whole, and an empty directory is moved in. Before that is final,
the server is asked for all files again while they are gone here, and one of them is read: a server that shares files
with the bag does not have these any more, and the change is reversed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from pressmark.bagit import bagit_txt
from pressmark.bagit.bag_directory import BagDirectory
from pressmark.bagit.bag_tags import BagTags, open_listing
from pressmark.bagit.changes import Event, Stage, refusing
from pressmark.bagit.changes.bag_transaction import BagTransaction, is_decided
from pressmark.bagit.creation.preflight import ChangeDetector
from pressmark.bagit.creation.tag_writer import ManifestWriter
from pressmark.bagit.encodings import UTF8, find_charset
from pressmark.bagit.fetch.download import Download, Downloader
from pressmark.bagit.fetch.download_errors import DownloadError
from pressmark.bagit.fetch.download_policy import DownloadPolicy
from pressmark.bagit.fetch.fetch_txt import FetchEntry, base_url, fetch_line, url_below
from pressmark.bagit.hash_index import HashIndex
from pressmark.bagit.paths import BELOW_PAYLOAD, FETCH_TXT, PAYLOAD, normal_key
from pressmark.bagit.problems import BagReport, problem
from pressmark.bagit.validation.bag_check import Verifier, check_files
from pressmark.bagit.validation.payload import FileMatcher, Match
from pressmark.bagit.validation.tag_files import ReportProblems, TagFiles
from pressmark.bagit.walk import walk
from pressmark.errors import BagError
from pressmark.fixity.outcomes import PROGRESS_EVERY, Outcome, Progress
from pressmark.fixity.pool import hash_files
from pressmark.fs.disk_queue import DiskQueue
from pressmark.fs.durable import exists
from pressmark.fs.transaction import OLD
from pressmark.reports import Problem, Report
from pressmark.threads import GeneratorPool

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["hollow"]

# Files that are read ahead of the first unfinished one, since problems are reported in the order of the files.
LOOK_AHEAD = 256
CHANGED = "changed, added or removed while the server was read; nothing was changed"
UPDATE_FIRST = 'the tag manifests do not list the same files; run "pressmark bag update" first'
# The kinds of problems of files that the server does not send.
_KINDS = {"refused": "fetch-refused", "failed": "fetch-failed", "too-long": "fetch-too-long"}

PathLike = str | bytes | os.PathLike[str] | os.PathLike[bytes]


def hollow(
    bag: BagTags | PathLike,
    fetch_base: str,
    *,
    trust_head: bool = False,
    threads: int = 4,
    allow_http: bool = False,
    allow_file: bool = False,
    allow_private: bool = False,
    allow_hosts: Iterable[str] = (),
    retries: int = 4,
    timeout: float = 60.0,
    certificates: str | None = None,
    on_event: Callable[[Event], object] | None = None,
    on_problem: Callable[[Problem], object] | None = None,
) -> Report:
    """Remove the payload files of a bag that a server has, and list them in fetch.txt (2.2.3).

    All files are read from the server, and compared with every payload manifest. Only if all of them match, and the
    rest of the bag is valid, they are removed, as one atomic change; else the bag is unchanged. The payload here is not
    read. Entries of an existing fetch.txt for files that are missing are kept. Manifests and bag-info.txt are not
    changed. To restore the files, call :func:`pressmark.bagit.complete`.

    After an interruption, the bag is unchanged or hollow, or the same call finishes the change.

    :param bag: the bag, or its base directory
    :param fetch_base: URL of the directory on the server that corresponds to ``data/``. The URL of a file is this URL,
        with a slash at its end, and the path of the file below ``data/``, whose bytes are percent-encoded except for
        slashes and the unreserved characters of RFC 3986 (``A-Z a-z 0-9 - . _ ~``)
    :param trust_head: do not read the files from the server: only compare the length that it states (``HEAD``) with
        the length of the file here. Then nothing proves that the server has the content
    :param threads: number of parallel downloads
    :param allow_http: the other parameters are those of :func:`pressmark.bagit.complete`
    :return: a report with the ``counts`` ``files`` and ``bytes`` (found on the server) and ``failed``. If it is not
        ``ok``, nothing was changed
    :raises BagError: the bag cannot be opened or changed, the URL is not allowed, or urllib3 is missing; nothing was
        changed
    :raises ValueError: another argument is invalid
    """
    if threads < 1:
        raise ValueError(f"threads={threads}: expected 1 or more")
    policy = DownloadPolicy(
        allow_http=allow_http,
        allow_file=allow_file,
        allow_private=allow_private,
        allow_hosts=frozenset([allow_hosts] if isinstance(allow_hosts, str) else allow_hosts),
        retries=retries,
        timeout=timeout,
        certificates=certificates,
    )
    path = bag.path if isinstance(bag, BagTags) else os.fsencode(bag)
    request = {"command": "hollow", "fetch_base": base_url(fetch_base), "trust_head": trust_head}
    on_event = on_event or (lambda _event: None)
    with BagDirectory(path) as base, ExitStack() as stack:
        where = base.real_path
        if not is_decided(where):
            BagTags.open(path)  # raises BagError
        transaction = stack.enter_context(BagTransaction(where))
        run = _Hollowing(base, transaction, request, threads, on_event, on_problem)
        if transaction.recovered is not None:
            on_event(Stage("recover"))
            if transaction.recovered == request:
                return run.report
        with refusing(path, "nothing was changed"):
            run.make(policy, stack)
        return run.report


class _File(NamedTuple):
    """A payload file, and its checksums in all manifests."""

    path: bytes
    size: int
    digests: Mapping[str, str]


class _Present(Verifier[bytes]):
    """Collects the payload files, and verifies only the tag files.

    :ivar files: the payload files
    :ivar paths: their paths, in Unicode normalization form C
    :ivar smallest: the smallest of them
    :ivar detector: their sizes and modification times
    """

    def __init__(self, base: BagDirectory, report_problems: ReportProblems) -> None:
        super().__init__(None, report_problems)
        self._base = base
        self.files: DiskQueue[_File] = DiskQueue()
        self.paths = HashIndex()
        self.smallest: _File | None = None
        self.detector = ChangeDetector()

    def source(self, match: Match) -> bytes:
        return match.path if match.real is None else match.real

    def hashed(self, sources: Iterator[bytes], names: tuple[str, ...], of_payload: bool) -> Iterator[Outcome]:
        return hash_files(sources, names, beneath=self._base.beneath)

    def run(self, tag_files: TagFiles, matcher: FileMatcher, _stack: ExitStack) -> None:
        def others() -> Iterator[Match]:
            for match in matcher.matches():
                if match.of_payload:
                    self._collect(tag_files, match)
                else:
                    yield match

        self._compare(tag_files, others(), tag_files.bag.tag_algorithms, False)

    def _collect(self, tag_files: TagFiles, match: Match) -> None:
        path = match.path
        if match.real != path:
            message = "symbolic link, or below one; replace the link with a copy of its target"
            self._report_problems([problem("link-inside", path, message, severity="error")])
            return
        if not match.is_exact and tag_files.payload.find(path).keys() != match.digests.keys():
            message = "manifests spell the name differently; rename the file"
            self._report_problems([problem("name-normalized", path, message, severity="error")])
            return
        status = self._base.status(path)
        self.detector.add(path, status.st_size, status.st_mtime_ns)
        self.paths.put(normal_key(path), 1)
        file = _File(path, status.st_size, match.digests)
        self.files.add(file)
        if self.smallest is None or file.size < self.smallest.size:
            self.smallest = file


class _Hollowing:
    """The change of a bag, within its transaction."""

    def __init__(
        self,
        base: BagDirectory,
        transaction: BagTransaction,
        request: dict[str, Any],
        threads: int,
        on_event: Callable[[Event], object],
        on_problem: Callable[[Problem], object] | None,
    ) -> None:
        self.report = BagReport(counts={"files": 0, "bytes": 0, "failed": 0})
        self._base = base
        self._transaction = transaction
        self._new = transaction.new
        self._request = request
        self._url = request["fetch_base"]
        self._trusts_head = request["trust_head"]
        self._threads = threads
        self._on_event = on_event
        self._on_problem = on_problem
        self._present = _Present(base, self._add)
        self._holes = 0
        self._oxum: list[Problem] = []
        self._bytes = 0
        self._bytes_lock = Lock()
        self._next_progress = monotonic() + PROGRESS_EVERY

    def make(self, policy: DownloadPolicy, stack: ExitStack) -> None:
        """Check the bag, read the server, and commit; or report problems and change nothing."""
        stack.enter_context(self._present.files)
        self._on_event(Stage("examine"))
        tag_files = check_files(self._base, BagReport(), self._add, self._present)
        if not self._holes:  # otherwise the payload is smaller
            self._report(self._oxum)
        if not self.report.ok or self._present.smallest is None:
            return
        self._downloader = Downloader(policy)
        stack.callback(self._downloader.close)
        try:
            self._downloader.check_url(self._url)
        except DownloadError as error:
            raise BagError(self._base.path, error.reason) from None
        self._on_event(Stage("read", len(self._present.files)))
        with open(os.path.join(self._new, FETCH_TXT), "xb") as file:
            self._write_fetch(tag_files.bag, file.write)
        self._report_progress()
        if not self.report.ok:
            return
        self._on_event(Stage("tag"))
        self._stage(tag_files.bag)
        self._on_event(Stage("move"))
        out = {bagit_txt.NAME, PAYLOAD, FETCH_TXT, *(one.name for one in tag_files.bag.tag_manifests)}
        self._transaction.commit(
            self._request,
            [name for name in out if exists(os.path.join(self._base.path, name))],
            os.listdir(self._new),
            discarded=[self._present.smallest.path],
            between=self._check_moved,
            tentative=True,
        )

    def _report(self, problems: Iterable[Problem]) -> None:
        for found in problems:
            self.report.add([found])
            if self._on_problem is not None:
                self._on_problem(found)

    # --- the bag ------------------------------------------------------------------------------------------------------

    def _add(self, problems: Iterable[Problem]) -> None:
        """Add problems of the bag. Files that are missing and listed in fetch.txt are not problems."""
        for found in problems:
            if found.kind == "file-not-fetched":
                self._holes += 1
            elif found.kind == "oxum-mismatch":
                self._oxum.append(found)
            elif found.kind != "change-unfinished":  # this change
                self._report([found])

    # --- the server ---------------------------------------------------------------------------------------------------

    def _write_fetch(self, bag: BagTags, write: Callable[[bytes], object]) -> None:
        """Read all files from the server, and write fetch.txt."""
        charset = find_charset(bag.encoding) or UTF8
        if charset.needs_mark:
            write(charset.marks[0][0])

        def add(entry: FetchEntry) -> None:
            line = fetch_line(entry, bag.version)
            write(line if charset.is_utf8 else charset.encode(line.decode()))

        for entry in bag.fetch:
            if self._present.paths.get(normal_key(entry.path)) is None:
                add(entry)
        counts = self.report.counts
        for file, found in self._answers(self._ask):
            if problems := self._judge(file, found):
                counts["failed"] += 1
                self._report(problems)
            else:
                counts["files"] += 1
                counts["bytes"] += file.size
                add(FetchEntry(url_below(self._url, file.path), file.size, file.path))

    def _answers(self, ask: Callable[[_File], Download]) -> Iterator[tuple[_File, Download]]:
        """Yield each file with the answer of the server, in order."""
        waiting: deque[tuple[_File, Future[Download]]] = deque()
        with GeneratorPool(self._threads, "pressmark-fetch") as pool:
            try:
                for file in self._present.files:
                    waiting.append((file, pool.submit(ask, file)))
                    if len(waiting) >= LOOK_AHEAD:
                        yield self._first(waiting)
                while waiting:
                    yield self._first(waiting)
            except BaseException:
                self._downloader.cancel()
                raise

    def _first(self, waiting: deque[tuple[_File, Future[Download]]]) -> tuple[_File, Download]:
        file, future = waiting.popleft()
        while True:
            with contextlib.suppress(TimeoutError):
                found = future.result(PROGRESS_EVERY)
                if monotonic() >= self._next_progress:
                    self._report_progress()
                return file, found
            self._report_progress()

    def _ask(self, file: _File) -> Download:
        """Read a file from the server, or ask for its length."""
        url = url_below(self._url, file.path)
        if self._trusts_head:
            return self._downloader.ask_length(url)
        return self._downloader.verify(url, file.size, file.digests, self._count)

    def _ask_again(self, file: _File) -> Download:
        """Ask for the length of a file that was moved away; read the smallest, and any whose length is not stated."""
        if file != self._present.smallest:
            found = self._downloader.ask_length(url_below(self._url, file.path))
            if found.kind is None and found.size == file.size:
                return found
        return self._ask(file)

    def _judge(self, file: _File, found: Download) -> list[Problem]:
        """Return the problems of an answer; empty if the server has the file."""
        if found.kind == "mismatch":
            return [
                problem("checksum-mismatch", file.path, found.message, algorithm=name, expected=wanted, found=there)
                for name, wanted in file.digests.items()
                if (there := found.digests[name]) != wanted
            ]
        if found.kind is not None:
            return [problem(_KINDS[found.kind], file.path, found.message)]
        if found.size != file.size:
            message = f"{file.size} bytes here; the server states {found.size}"
            expected, size = str(file.size), str(found.size)
            return [problem("fetch-length", file.path, message, severity="error", expected=expected, found=size)]
        return []

    def _count(self, size: int) -> None:
        with self._bytes_lock:
            self._bytes += size

    def _report_progress(self) -> None:
        self._next_progress = monotonic() + PROGRESS_EVERY
        failed = self.report.counts["failed"]
        self._on_event(Progress(self.report.counts["files"] + failed, self._bytes, failed))

    # --- the change ---------------------------------------------------------------------------------------------------

    def _stage(self, bag: BagTags) -> None:
        """Write the other files to move in. Checksums of tag files are kept, not computed."""
        with self._base.open(bagit_txt.NAME) as old, open(os.path.join(self._new, bagit_txt.NAME), "xb") as file:
            file.write(old.read())
        os.mkdir(os.path.join(self._new, PAYLOAD))
        shutil.copymode(os.path.join(self._base.path, PAYLOAD), os.path.join(self._new, PAYLOAD))
        for path in self._empty_directories():
            os.makedirs(os.path.join(self._new, path), exist_ok=True)
        if not bag.tag_manifests:
            return
        names = [one.algorithm for one in bag.tag_manifests]
        [outcome] = hash_files([os.path.join(self._new, FETCH_TXT)], names)
        if outcome.digests is None:
            raise BagError(outcome.path, outcome.message)
        charset = find_charset(bag.encoding) or UTF8
        with (
            open_listing(self._base, bag, bag.tag_manifests, [], tag=True) as tags,
            ManifestWriter(self._new, names, charset, bag.version, tag=True) as manifests,
        ):
            changed = {FETCH_TXT, *(one.name for one in bag.tag_manifests)}
            for listed in tags.entries():
                if listed.path in changed - {FETCH_TXT} or not set(names) <= listed.digests.keys():
                    raise BagError(os.path.join(bag.path, listed.path), UPDATE_FIRST)
                if listed.path != FETCH_TXT:
                    manifests.add(listed.path, listed.digests)
            manifests.add(FETCH_TXT, outcome.digests)

    def _empty_directories(self) -> Iterator[bytes]:
        """Yield the directories of the payload without content: fetch.txt cannot restore them."""
        last = b""
        for found in walk(self._base):
            if last and not found.path.startswith(last + b"/"):
                yield last
            is_directory = found.kind == "directory" and found.path.startswith(BELOW_PAYLOAD)
            last = found.path if is_directory else b""
        if last:
            yield last

    def _check_moved(self) -> None:
        """Check that the files that were moved out are those whose names were read, and that the server still has them.

        :raises BagError: it does not, which reverses the change
        """
        smallest = self._present.smallest
        assert smallest is not None
        old = os.path.join(self._transaction.staging, OLD)
        with BagDirectory(old) as moved:

            def now() -> Iterator[tuple[bytes, os.stat_result]]:
                yield smallest.path, moved.status(b"0")
                for found in walk(moved):
                    if found.kind != "directory" and found.path.startswith(BELOW_PAYLOAD):
                        yield found.path, moved.status(found.path)

            self._present.detector.compare(self._base.path, now(), CHANGED)
        for file, found in self._answers(self._ask_again):
            if self._judge(file, found):
                reason = found.message or "it states another length"
                raise BagError(
                    os.path.join(self._base.path, file.path),
                    f"when this file was moved away, the server did not send it any more ({reason}); if the server uses"
                    " the files of this bag, copy them to the server first; nothing was changed",
                )
