"""Create a bag in a new directory: in a hidden directory next to its destination, which is renamed when the bag is
complete.

::

    .pressmark-….tmp/       the name depends on the destination only, so the next run finds it
    ├── lock                held during a run
    ├── tags/               tag files while they are written
    ├── bag/                the payload, then the tag files, bagit.txt last
    └── request             the options of the run, once the bag is complete
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.changes import Listener, refusing, with_stages
from pressmark.bagit.changes.destination import (
    checked_destination,
    flush_staging,
    new_path,
    publish,
    refuse_existing,
)
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
from pressmark.bagit.paths import FETCH_TXT, PAYLOAD
from pressmark.errors import BagError
from pressmark.fixity.copying import copy_files
from pressmark.fixity.hasher import keep_status
from pressmark.fixity.outcomes import Outcome
from pressmark.fs.beneath import read_regular
from pressmark.fs.durable import exists
from pressmark.fs.staging import StagingDirectory
from pressmark.reports import Progress

__all__ = ["build_bag", "create_elsewhere", "move_into_bag", "new_bag", "publish_new"]

_BAG, _TAGS, _REQUEST = b"bag", b"tags", b"request"
_HOLDS = (_BAG, _TAGS, _REQUEST)


def create_elsewhere(
    paths: Sequence[bytes],
    several: bool,
    destination: bytes,
    options: CreateOptions,
    mode: str,
    nested: bool,
    on_event: Listener,
) -> BagInfo | None:
    """Create a bag at ``destination`` from the files at ``paths``.

    :param several: keep the name of each of ``paths`` in the payload
    :param mode: as in :func:`~pressmark.fixity.copying.copy_files`
    :return: the content of bag-info.txt; :data:`None` if an interrupted run had finished
    :raises BagError: the bag cannot be created
    """
    destination = checked_destination(destination)
    request = options.request(sources=[os.fsdecode(os.path.abspath(path)) for path in paths], mode=mode)
    with contextlib.ExitStack() as stack:
        sources = open_sources(paths, several, nested, stack)
        refuse_inside(destination, sources)

        def build(folder: bytes) -> tuple[bytes, BagInfo]:
            preflight = examine_sources(sources, options, destination, on_event)
            preflight.raise_if_refused(paths[0])
            free = shutil.disk_usage(os.path.dirname(destination)).free
            if mode == "copy" and options.fetch_base is None and free < preflight.bytes:
                raise BagError(destination, f"not enough disk space: {preflight.bytes} bytes needed, {free} available")
            return _build(folder, sources, options, mode, preflight, on_event)

        return publish_new(destination, request, build, on_event)


def publish_new(
    destination: bytes,
    request: dict[str, Any],
    build: Callable[[bytes], tuple[bytes, BagInfo]],
    on_event: Listener,
) -> BagInfo | None:
    """Build a bag in a staging directory, and move it to ``destination``.

    :param destination: an absolute path
    :param request: recognizes the same call after an interruption
    :param build: called with the staging directory; returns the result of :func:`new_bag` and bag-info.txt's content
    :return: the content of bag-info.txt; :data:`None` if an interrupted run had finished
    :raises BagError: the bag cannot be created
    """
    with new_path(destination, _HOLDS, "no bag was created") as hidden:
        if hidden.existed:
            if not _was_finished(hidden, destination, request):
                refuse_existing(destination)
            on_event(Progress("recover"))
            return None
        bag, info = build(hidden.inside)
        with open(os.path.join(hidden.inside, _REQUEST), "xb") as file:
            file.write(_packed(request, os.lstat(bag)))
        on_event(Progress("move"))
        flush_staging(hidden)
        publish(hidden, _BAG, destination, "bag")
        return info


def build_bag(path: bytes, folder: bytes, options: CreateOptions, mode: str, nested: bool, on_event: Listener) -> bytes:
    """Write a bag into a private directory, whose owner flushes and publishes it.

    :param path: the source: a directory, whose content becomes the payload, or a file
    :param folder: a new directory
    :param mode: as in :func:`~pressmark.fixity.copying.copy_files`
    :return: path of the bag in ``folder``
    :raises BagError: the bag cannot be created; the caller removes ``folder``
    """
    on_event = with_stages(on_event)
    with contextlib.ExitStack() as stack:
        sources = open_sources([path], False, nested, stack)
        with refusing(folder):
            os.mkdir(folder)
            preflight = examine_sources(sources, options, folder, on_event)
            preflight.raise_if_refused(path)
            return _build(folder, sources, options, mode, preflight, on_event)[0]


def _build(
    staging: bytes,
    sources: Sequence[Source],
    options: CreateOptions,
    mode: str,
    preflight: Preflight,
    on_event: Listener,
) -> tuple[bytes, BagInfo]:
    """Write the whole bag, and return its path and the content of bag-info.txt."""
    stage = "copy" if options.fetch_base is None else "hash"
    on_event(Progress(stage, of_items=preflight.files, of_bytes=preflight.bytes))
    bag, tags = new_bag(staging)
    data = os.path.join(bag, PAYLOAD)
    detector = ChangeDetector()
    with contextlib.ExitStack() as stack:
        manifests = stack.enter_context(ManifestWriter(tags, options.algorithms))
        if options.fetch_base is None:
            outcomes = _copied(sources, data, options, mode, preflight, on_event)
        else:
            from pressmark.bagit.creation.holey import read_for_fetch  # few bags are created holey

            write = stack.enter_context(open(os.path.join(tags, FETCH_TXT), "xb")).write
            outcomes = read_for_fetch(sources, options, options.fetch_base, preflight, write, on_event)
        nbytes, files = record_outcomes(
            stack.enter_context(contextlib.closing(outcomes)), manifests, detector, preflight
        )
    preflight.raise_if_refused(sources[0].path)
    on_event(Progress("check", of_items=files, of_bytes=nbytes))
    detector.compare(sources[0].path, _again(sources, data, preflight, options.fetch_base is None))
    on_event(Progress("tag"))
    return bag, move_into_bag(tags, bag, options, nbytes, files)


def new_bag(staging: bytes) -> tuple[bytes, bytes]:
    """Create the directory of the new bag, with an empty payload, and that of its tag files; return both."""
    bag, tags = os.path.join(staging, _BAG), os.path.join(staging, _TAGS)
    os.makedirs(os.path.join(bag, PAYLOAD))
    os.mkdir(tags)
    return bag, tags


def move_into_bag(tags: bytes, bag: bytes, options: CreateOptions, nbytes: int | None, files: int) -> BagInfo:
    """Write the other tag files to ``tags``, and move all of them into the bag; return the content of bag-info.txt.

    :param nbytes: size of the payload; :data:`None` if unknown
    """
    names, info = write_tag_files(tags, options, nbytes, files)
    for name in names:
        os.rename(os.path.join(tags, name), os.path.join(bag, name))
    return info


def _copied(
    sources: Sequence[Source],
    data: bytes,
    options: CreateOptions,
    mode: str,
    preflight: Preflight,
    on_event: Listener,
) -> Generator[tuple[bytes, Outcome]]:
    """Copy all files; yield path in the payload and outcome of each."""
    return copy_files(
        _tasks(sources, data, preflight),
        options.algorithms,
        mode=mode,
        threads=options.threads,
        read=options.read,
        links=options.links,
        real=True,
        on_event=on_event,
    )


def _tasks(sources: Sequence[Source], data: bytes, preflight: Preflight) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield path in the payload, source and destination of each file; create directories."""
    for path, kind, source in source_entries(sources, preflight):
        target = os.path.join(data, path)
        if kind == "directory":
            os.mkdir(target)
        else:
            yield path, source, target


def _again(
    sources: Sequence[Source], data: bytes, preflight: Preflight, is_copied: bool
) -> Iterator[tuple[bytes, os.stat_result]]:
    """Yield path and status of each source file after it was read; copy the status of directories."""
    folders = [(data, source.status) for source in sources if not source.prefix]
    for path, kind, source in source_entries(sources, preflight):
        if kind == "directory":
            folders.append((os.path.join(data, path), os.stat(source)))
        else:
            yield path, os.stat(source)
    # Bottom-up, because a directory may deny access to its content.
    for target, status in reversed(folders if is_copied else ()):
        keep_status(target, status)


def _packed(request: dict[str, Any], bag: os.stat_result) -> bytes:
    return json.dumps({"request": request, "inode": bag.st_ino}).encode()


def _was_finished(hidden: StagingDirectory, destination: bytes, request: dict[str, Any]) -> bool:
    """Return whether a killed run with the same request had already moved this bag into place."""
    if exists(os.path.join(hidden.inside, _BAG)):
        return False
    try:
        return read_regular(os.path.join(hidden.inside, _REQUEST)) == _packed(request, os.lstat(destination))
    except FileNotFoundError:
        return False
