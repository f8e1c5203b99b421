"""Create a bag as an archive, in one read of the payload.

bagit.txt is the first member. The digests are computed while the payload is written, so the manifests follow it.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing

from pressmark.bagit import bagit_txt
from pressmark.bagit.archive.new_archive import NewArchive, modification_time, new_archive
from pressmark.bagit.archive.packed_files import PackTask, pack_files
from pressmark.bagit.bag_directory import BagDirectory
from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.bagit_txt import declaration_bytes
from pressmark.bagit.changes import Listener
from pressmark.bagit.creation.options import CreateOptions
from pressmark.bagit.creation.preflight import ChangeDetector, Preflight, record_outcomes
from pressmark.bagit.creation.sources import (
    Source,
    examine_sources,
    open_sources,
    refuse_inside,
    source_entries,
)
from pressmark.bagit.creation.tag_writer import ManifestWriter, write_tag_files
from pressmark.bagit.paths import BELOW_PAYLOAD, PAYLOAD
from pressmark.bagit.walk import walk
from pressmark.fixity.hasher import OpenOptions
from pressmark.reports import Progress
from pressmark.threads import resolve_threads

__all__ = ["create_archive"]


def create_archive(
    paths: Sequence[bytes],
    several: bool,
    destination: bytes,
    options: CreateOptions,
    nested: bool,
    on_event: Listener,
) -> BagInfo:
    """Create a bag in an archive from the files at ``paths``, and return the content of bag-info.txt.

    :param several: keep the name of each of ``paths`` in the payload
    :raises BagError: the archive cannot be created
    """
    count = resolve_threads(options.threads)
    dates = [value for label, value in options.info if label.lower() == "bagging-date"]
    time = modification_time([*dates, options.date.isoformat()])
    with ExitStack() as stack:
        sources = open_sources(paths, several, nested, stack)
        refuse_inside(destination, sources)
        archive = stack.enter_context(new_archive(destination, time, count, on_event))
        preflight = examine_sources(sources, options, destination, on_event)
        preflight.raise_if_refused(paths[0])
        return _write(archive, sources, options, preflight, on_event)


def _write(
    archive: NewArchive, sources: Sequence[Source], options: CreateOptions, preflight: Preflight, on_event: Listener
) -> BagInfo:
    """Write all members, and return the content of bag-info.txt."""
    on_event(Progress("pack", of_items=preflight.files, of_bytes=preflight.bytes))
    os.mkdir(archive.tags)
    detector = ChangeDetector()
    tasks: deque[PackTask] = deque()  # of the files being packed

    def payload() -> Iterator[PackTask]:
        for path, kind, source in source_entries(sources, preflight, bytes):
            if kind == "directory":
                archive.directory(BELOW_PAYLOAD + path)
            else:
                tasks.append(PackTask(source, BELOW_PAYLOAD + path, options.algorithms))
                yield tasks[-1]

    declaration = declaration_bytes()
    how = OpenOptions(options.links == "follow", real=options.links != "follow")
    archive.directory(b"")
    archive.file(bagit_txt.NAME, len(declaration), [declaration])
    archive.directory(PAYLOAD)
    with (
        closing(pack_files(payload(), archive, how, on_event)) as packed,
        ManifestWriter(archive.tags, options.algorithms) as manifests,
    ):
        outcomes = ((tasks.popleft().path.removeprefix(BELOW_PAYLOAD), outcome) for outcome in packed)
        nbytes, files = record_outcomes(outcomes, manifests, detector, preflight)
    preflight.raise_if_refused(sources[0].path)
    on_event(Progress("check", of_items=files, of_bytes=nbytes))
    again = source_entries(sources, preflight, bytes)
    detector.compare(sources[0].path, ((path, os.stat(source)) for path, kind, source in again if kind == "file"))
    on_event(Progress("tag"))
    info = write_tag_files(archive.tags, options, nbytes, files)[1]
    _add_tag_files(archive)
    return info


def _add_tag_files(archive: NewArchive) -> None:
    """Add the new tag files, except bagit.txt."""
    with BagDirectory(archive.tags) as folder:

        def tag_files() -> Iterator[PackTask]:
            for found in walk(folder):
                if found.kind == "directory":
                    archive.directory(found.path)
                elif found.path != bagit_txt.NAME:
                    yield PackTask(found.path, found.path, ())

        for outcome in pack_files(tag_files(), archive, OpenOptions(beneath=folder.beneath), lambda _event: None):
            if outcome.kind is not None:
                raise OSError(0, outcome.message, os.path.join(archive.tags, os.fsencode(outcome.path)))
