"""Pack a bag into an archive. The bag is validated in the same read.

Structure and names are checked first. Then each file is read once, written to the archive, and compared with the
manifests. bagit.txt is the first member, and the other tag files precede the payload: a program that reads the archive
as a stream knows the algorithms before the first payload file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import chain

from pressmark.bagit import bagit_txt
from pressmark.bagit.archive.new_archive import MEMBER, NewArchive, new_archive
from pressmark.bagit.archive.packed_files import PackTask, pack_files
from pressmark.bagit.bag_directory import BagDirectory, Match
from pressmark.bagit.bag_tags import BagTags
from pressmark.bagit.changes import Listener, with_stages
from pressmark.bagit.changes.bag_verdict import Verdict
from pressmark.bagit.paths import BELOW_PAYLOAD, PAYLOAD
from pressmark.bagit.problems import BagReport, problem
from pressmark.bagit.validation.bag_check import check_files, compare_digests
from pressmark.bagit.validation.file_matcher import FileMatcher
from pressmark.bagit.validation.tag_files import TagFiles
from pressmark.bagit.walk import walk
from pressmark.bagit.writing.options import Path
from pressmark.buckets.address import is_address
from pressmark.errors import BagError
from pressmark.fixity.hasher import OpenOptions
from pressmark.fs.names import is_inside
from pressmark.progress_event import Progress
from pressmark.reports import ProgressEvent
from pressmark.threads import resolve_threads

__all__ = ["pack", "pack_bag"]

CHANGED = "files were added or removed while the bag was packed; run the same command again"


def pack(
    bag: BagTags | Path,
    file: Path | None = None,
    *,
    timestamps: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> str:
    """Pack a bag into an archive, and return the path of the archive. The bag is not changed.

    Each file is read once: it is verified while it is packed. An invalid bag is not packed; a bag with files that
    fetch.txt lists and that are not downloaded yet is. An interrupted call leaves nothing at ``file``.

    Each file and directory has its modification time, in whole seconds, and its permission bits, without setuid, setgid
    and sticky. In zip files, some programs show only times from 1980 to 2107. All members belong to user and group 0,
    and are sorted: the same bag becomes the same bytes, with the same versions of Pressmark and of the compression
    libraries. The single top-level directory has the name of the file without its ending. Symbolic links in the bag are
    packed as the files they point to.

    :param file: its ending determines the format: .tar, .tar.gz, .tgz, .tar.zst, .tzst or .zip; default: the path of
        the bag with .tar. The file must not exist; the directory above it must exist. The address of a key, such as
        ``s3://bucket/bag.tar.zst``, is written in parts, and appears when it is complete
    :param timestamps: ``keep`` the times and permission bits of the files; or ``bagging-date``: copies of a bag become
        the same bytes, whatever their times. Files have mode 0644 and directories 0755, and the time of Bagging-Date at
        00:00 UTC, or that of the environment variable SOURCE_DATE_EPOCH. :data:`None` for ``keep``, or
        ``bagging-date`` if SOURCE_DATE_EPOCH is set
    :param threads: number of threads that compress and compute digests; :data:`None` for one per core
    :param progress: its stages are those of :mod:`pressmark.bagit.changes`
    :raises BagInvalidError: the bag is not valid; no archive was created
    :raises BagError: the archive cannot be created
    """
    path = os.fsencode(bag.path if isinstance(bag, BagTags) else bag)
    destination = os.path.abspath(path) + b".tar" if file is None else os.fsencode(file)
    pack_bag(path, destination, timestamps, threads, progress)
    return os.fsdecode(destination)


def pack_bag(
    path: bytes, destination: bytes, timestamps: str | None, threads: int | None, on_event: Listener | None
) -> BagReport:
    """Pack the bag at ``path``, and return the report of the validation; see :func:`pack`."""
    on_event = with_stages(on_event)
    count = resolve_threads(threads)
    with BagDirectory(path) as base:
        if not is_address(destination) and is_inside(os.path.abspath(destination), base.real_path):
            raise BagError(destination, "destination is inside the bag; choose another destination")
        dates = BagTags.open(path).info.all("Bagging-Date")
        with new_archive(destination, dates, timestamps, count, on_event) as archive:
            on_event(ProgressEvent("examine"))
            verdict = Verdict(on_event)
            packer = _Packer(base, archive, verdict, on_event)
            check_files(base, verdict.report, verdict.add, packer.pack)
            if not packer.is_done:  # the archive is empty
                verdict.add(() if verdict.is_invalid else [problem("file-changing", b"", CHANGED)])
            verdict.raise_if_invalid(path, "no archive was created")
        return verdict.report


class _Packer:
    """Writes the archive, as the part of a validation that reads files.

    :ivar is_done: whether all files were packed
    """

    def __init__(self, base: BagDirectory, archive: NewArchive, verdict: Verdict, on_event: Listener) -> None:
        self.is_done = False
        self._base = base
        self._options = OpenOptions(beneath=base.beneath)
        self._archive = archive
        self._verdict = verdict
        self._send = on_event

    def pack(self, tag_files: TagFiles, matcher: FileMatcher) -> None:
        """Check the names of all files; if the bag is complete, pack them, and report mismatches."""
        others = {match.path: match.digests for match in matcher.matches() if match.respelled}
        if self._verdict.is_invalid or self._is_incomplete(tag_files):
            return
        self._send(ProgressEvent("pack", of_items=matcher.nfiles + matcher.tag_files, of_bytes=matcher.nbytes))
        self._archive.expect(matcher.nbytes + MEMBER * (matcher.nfiles + matcher.tag_files))
        files = _Files(self._base, tag_files, others, self._archive, self._verdict)

        def tasks() -> Iterator[tuple[Match, PackTask]]:
            for match in files.matches():
                assert match.real is not None  # only links inside the bag are followed
                yield match, PackTask(match.real, match.path, list(match.digests))

        with closing(pack_files(tasks(), self._archive, self._options, self._send)) as outcomes:
            for match, outcome in outcomes:
                compare_digests(tag_files, match, outcome, self._verdict.add)
                if self._verdict.is_invalid:
                    self._archive.abandon()  # but list all problems
        if files.counts != (matcher.nfiles, matcher.nbytes, matcher.tag_files):
            self._verdict.add([problem("file-changing", b"", CHANGED)])
        self.is_done = True

    def _is_incomplete(self, tag_files: TagFiles) -> bool:
        """Return whether a listed file is missing, which the validation reports at its end."""
        fetched = tag_files.fetched
        return any(
            fetched is None or one.path not in fetched
            for one in chain(tag_files.payload.unmarked(), tag_files.tags.unmarked())
        )


class _Files:
    """The files of a bag, in the order of the archive.

    :ivar counts: number and size of the payload files, and number of tag files
    """

    def __init__(
        self,
        base: BagDirectory,
        tag_files: TagFiles,
        others: Mapping[bytes, Mapping[str, str]],
        archive: NewArchive,
        verdict: Verdict,
    ) -> None:
        self.counts = (0, 0, 0)
        self._base = base
        self._tag_files = tag_files
        self._others = others
        self._archive = archive
        self._verdict = verdict

    def matches(self) -> Iterator[Match]:
        """Yield each file, with the digests to compare; add directories."""
        bag = self._tag_files.bag
        nfiles = nbytes = ntags = 0
        self._archive.directory(b"", self._base.status(b""))
        for found in walk(self._base, order=_order):
            path = found.path
            if reason := self._archive.why_unwritable(path):
                self._verdict.add([problem("path-unsafe", path, reason)])
                continue
            if found.kind == "directory":
                self._archive.directory(path, self._base.status(found.real or path))
                continue
            if found.kind != "file" or found.real is None:
                continue
            if path.startswith(BELOW_PAYLOAD):
                nfiles, nbytes = nfiles + 1, nbytes + found.size
                listing, known = self._tag_files.payload, bag.algorithms
            else:
                ntags += 1
                listing, known = self._tag_files.tags, bag.tag_algorithms
            digests = self._others.get(path) or listing.find(path)
            yield Match(path, found.real, {name: digests[name] for name in known if digests.get(name)})
            self.counts = (nfiles, nbytes, ntags)


def _order(name: bytes) -> tuple[int, bytes]:
    """Return the sort key of a name in the base directory."""
    return 0 if name == bagit_txt.NAME else 2 if name == PAYLOAD else 1, name
