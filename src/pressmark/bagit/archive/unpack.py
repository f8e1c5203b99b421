"""Unpack a bag from an archive, as a whole or not at all. The bag is validated by the bytes that are written.

::

    .pressmark-….tmp/       the name depends on the destination only, so the next run finds it
    ├── lock                held during a run
    └── bag/                the members of the archive

The directory is validated with the digests of the bytes that were written, flushed, and renamed.
"""

from __future__ import annotations

import os
from contextlib import ExitStack

from pressmark.bagit.archive.check import VerifiedBag
from pressmark.bagit.archive.digests import StreamHasher
from pressmark.bagit.archive.members import Limits
from pressmark.bagit.archive.read import listed_algorithms, read_members
from pressmark.bagit.archive.reader import open_archive
from pressmark.bagit.archive.table import MemberTable
from pressmark.bagit.bag import Bag
from pressmark.bagit.bag_directory import BagDirectory, Reading
from pressmark.bagit.changes import Event, Listener, with_stages
from pressmark.bagit.changes.bag_verdict import Verdict
from pressmark.bagit.changes.destination import (
    checked_destination,
    flush_staging,
    new_path,
    publish,
    refuse_existing,
)
from pressmark.bagit.paths import archive_ending
from pressmark.bagit.problems import BagReport, problem
from pressmark.bagit.validation.bag_check import check_files, verify
from pressmark.bagit.validation.file_matcher import FileMatcher
from pressmark.bagit.validation.tag_files import TagFiles
from pressmark.bagit.validation.validate import validate
from pressmark.bagit.writing.options import Path
from pressmark.errors import ArchiveError, BagError
from pressmark.progress_event import EventListener, Progress
from pressmark.reports import Problem, ProgressEvent
from pressmark.threads import Threads, resolve_threads

__all__ = ["unpack", "unpack_bag"]

_BAG = b"bag"


def unpack(
    file: Path,
    directory: Path | None = None,
    *,
    threads: int | None = None,
    limits: Limits = Limits(),  # noqa: B008, immutable
    progress: Progress | None = None,
) -> Bag:
    """Unpack a bag from an archive, and return it. The archive is not changed.

    The bag is validated while it is unpacked, by the bytes that are written. It appears in ``directory`` if it is
    valid, or if only files that fetch.txt lists are missing; otherwise, nothing does.

    Files and directories get the modification times and permission bits of the archive, as far as the umask allows, but
    never setuid, setgid and sticky. The owner can read every file, and change every directory. Owners are not restored.

    :param file: a zip, tar or compressed tar file with one top-level directory
    :param directory: the base directory of the bag, which must not exist; the directory above it must exist. Default:
        the path of the archive without its ending
    :param threads: number of threads that compute digests; :data:`None` for one per core
    :param limits: limits for reading the archive
    :param progress: its stages are those of :mod:`pressmark.bagit.changes`
    :raises BagInvalidError: the bag or the archive is not valid; nothing was unpacked
    :raises BagError: the archive cannot be read, or the bag cannot be written
    """
    path = os.fsencode(file)
    if directory is None:
        ending = archive_ending(path)
        if ending is None:
            raise BagError(path, "cannot derive the name of the bag from this name; specify a directory")
        directory = path[: -len(ending)]
    destination = os.fsencode(directory)
    unpack_bag(path, destination, threads, limits, progress)
    return Bag.open(destination)


def unpack_bag(
    path: bytes, destination: bytes, threads: int | None, limits: Limits, on_event: Listener | None
) -> BagReport:
    """Unpack the bag in the archive at ``path``, and return the report of the validation; see :func:`unpack`."""
    on_event = with_stages(on_event)
    count = resolve_threads(threads)
    place = checked_destination(destination)
    verdict = Verdict(on_event)
    with ExitStack() as stack:
        archive = stack.enter_context(open_archive(path, limits))
        hidden = stack.enter_context(new_path(place, (_BAG,), "nothing was unpacked"))
        refuse_existing(place)
        bag = os.path.join(hidden.inside, _BAG)
        pool = stack.enter_context(Threads(count, "pressmark-digests")) if count > 1 else None
        table = stack.enter_context(MemberTable(archive.check_members))
        on_event(ProgressEvent("unpack", of_bytes=None if archive.format == "zip" else archive.size))
        try:
            members = read_members(
                archive,
                table,
                StreamHasher(pool),
                algorithms=listed_algorithms(archive) if archive.seekable else None,
                into=bag,
                report_problems=verdict.add,
                on_event=on_event,
            )
        except ArchiveError as error:
            verdict.add([] if archive.has_changed() else [problem(error.kind, b"", error.reason)])
        if archive.has_changed():
            verdict.add([problem("file-changing", b"", "archive changed while it was read; unpack it again")])
        verdict.raise_if_invalid(path, "nothing was unpacked")
        assert members.top is not None
        if members.lacking():
            # The digests that are known do not suffice.

            def hear(event: Event) -> None:
                if isinstance(event, Problem):
                    verdict.add([event])
                else:
                    on_event(event)

            on_event(ProgressEvent("hash"))
            report = validate(bag, threads=count, keep=0, progress=EventListener(hear))
            verdict.report.counts.update(report.counts)
        else:
            written = VerifiedBag(path, table, members)

            def verify_written(tag_files: TagFiles, matcher: FileMatcher) -> None:
                verify(written.digests, tag_files, matcher, Reading(), verdict.add)

            with BagDirectory(bag) as base:
                check_files(base, verdict.report, verdict.add, verify_written)
        verdict.raise_if_invalid(path, "nothing was unpacked")
        on_event(ProgressEvent("move"))
        flush_staging(hidden)
        publish(hidden, _BAG, place, "bag")
    return verdict.report
