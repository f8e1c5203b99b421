"""Create a bag in a new directory: in a hidden directory next to its destination, which is renamed when the bag is
complete.

::

    .pressmark-….tmp/       the name depends on the destination only, so the next run finds it
    ├── lock                held during a run
    ├── tags/               tag files while they are written
    ├── bag/                the payload, then the tag files
    └── request             the options of the run, once the bag is complete
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Protocol

from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.changes import Listener, refusing, with_stages
from pressmark.bagit.changes.destination import (
    checked_destination,
    flush_staging,
    new_path,
    publish,
    refuse_existing,
)
from pressmark.bagit.paths import BELOW_PAYLOAD, PAYLOAD
from pressmark.bagit.problems import problem
from pressmark.bagit.writing.options import CreateOptions
from pressmark.bagit.writing.payload import ChangeDetector, Payload, open_sources
from pressmark.bagit.writing.preflight import Preflight
from pressmark.bagit.writing.tag_writer import Contents, TagWriter
from pressmark.errors import BagError
from pressmark.fixity.copying import copy_files
from pressmark.fixity.hasher import keep_status
from pressmark.fixity.outcomes import Outcome, require_written
from pressmark.fixity.pool import hash_tasks
from pressmark.fs.beneath import read_regular
from pressmark.fs.durable import exists
from pressmark.fs.staging import StagingDirectory
from pressmark.reports import Progress

__all__ = ["Examined", "NewDirectory", "Outcomes", "build_bag", "create_elsewhere", "publish_new", "write_payload"]

_BAG, _TAGS, _REQUEST = b"bag", b"tags", b"request"
_HOLDS = (_BAG, _TAGS, _REQUEST)

# Path in the payload and outcome of each file.
Outcomes = Generator[tuple[bytes, Outcome]]


class Examined(Protocol):
    """A payload that was examined: see :class:`Payload`."""

    path: bytes
    preflight: Preflight
    detector: ChangeDetector


def write_payload(
    payload: Examined,
    stage: str,
    outcomes: Outcomes,
    tags: TagWriter,
    on_event: Listener,
) -> Contents:
    """Read the payload of a bag, once it was examined, and write all tag files.

    The caller compares the files with those that were read, when all is written.

    :param stage: ``hash``, ``copy`` or ``pack``
    :param outcomes: reads all files
    :param tags: receives the digests
    :return: the content of the tag files
    :raises BagError: a file cannot be read
    :raises OSError: a file cannot be written
    """
    preflight, detector = payload.preflight, payload.detector
    on_event(Progress(stage, of_items=preflight.files, of_bytes=preflight.bytes))
    nbytes = files = 0
    with tags, contextlib.closing(outcomes):
        for path, outcome in outcomes:
            require_written(outcome)
            if outcome.digests is None or outcome.size is None or outcome.mtime_ns is None:
                kind = "file-changing" if outcome.kind == "changed-while-read" else "file-unreadable"
                preflight.refuse(problem(kind, path, outcome.message))
                continue
            tags.add(path, outcome.digests)
            detector.add(path, outcome.size, outcome.mtime_ns)
            nbytes += outcome.size
            files += 1
        preflight.raise_if_refused(payload.path)
        on_event(Progress("tag"))
        return tags.finish(nbytes, files)


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
        payload = Payload(open_sources(paths, several, nested, stack), options, on_event)
        payload.refuse_inside(destination)

        def write(new: NewDirectory) -> BagInfo:
            payload.examine(destination)
            free, needed = shutil.disk_usage(os.path.dirname(destination)).free, payload.preflight.bytes
            if mode == "copy" and options.fetch_base is None and free < needed:
                raise BagError(destination, f"not enough disk space: {needed} bytes needed, {free} available")
            return new.write(payload, options, mode, on_event)

        return publish_new(destination, request, write, on_event)


def publish_new(
    destination: bytes, request: dict[str, Any], write: Callable[[NewDirectory], BagInfo], on_event: Listener
) -> BagInfo | None:
    """Write a bag in a hidden directory, and move it to ``destination``.

    :param destination: an absolute path
    :param request: recognizes the same call after an interruption
    :param write: writes the bag, and returns the content of bag-info.txt
    :return: the content of bag-info.txt; :data:`None` if an interrupted run had finished
    :raises BagError: the bag cannot be created
    """
    with new_path(destination, _HOLDS, "no bag was created") as hidden:
        if hidden.existed:
            if not _was_finished(hidden, destination, request):
                refuse_existing(destination)
            on_event(Progress("recover"))
            return None
        new = NewDirectory(hidden.inside)
        info = write(new)
        with open(os.path.join(hidden.inside, _REQUEST), "xb") as file:
            file.write(_packed(request, os.lstat(new.path)))
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
        payload = Payload(open_sources([path], False, nested, stack), options, on_event)
        with refusing(folder):
            os.mkdir(folder)
            payload.examine(folder)
            new = NewDirectory(folder)
            new.write(payload, options, mode, on_event)
            return new.path


class NewDirectory:
    """The directory of a new bag, with an empty payload, and that of its tag files.

    :param folder: the directory that contains both
    :ivar path: path of the bag
    :ivar tags: directory for tag files that are large
    """

    def __init__(self, folder: bytes) -> None:
        self.path, self.tags = os.path.join(folder, _BAG), os.path.join(folder, _TAGS)
        self._data = os.path.join(self.path, PAYLOAD)
        os.makedirs(self._data)
        os.mkdir(self.tags)

    def write(self, payload: Payload, options: CreateOptions, mode: str, on_event: Listener) -> BagInfo:
        """Write the whole bag, and return the content of bag-info.txt.

        :param payload: examined
        :param mode: as in :func:`~pressmark.fixity.copying.copy_files`
        """
        is_copied = options.fetch_base is None
        how: Any = {"threads": options.threads, "read": options.read, "links": options.links, "on_event": on_event}
        tags = TagWriter(options, self.tags)
        if is_copied:
            outcomes = copy_files(self._copies(payload), options.algorithms, mode=mode, real=True, **how)
        else:
            files = ((path, source) for path, kind, source in payload.entries() if kind == "file")
            outcomes = _listed(hash_tasks(files, options.algorithms, **how), options, tags)
        contents = write_payload(payload, "copy" if is_copied else "hash", outcomes, tags, on_event)
        payload.check_unchanged()
        # Bottom-up, because a directory may deny access to its content.
        for path, status in reversed(payload.folders if is_copied else ()):
            keep_status(os.path.join(self._data, path), status)
        self.add(contents)
        return tags.info()

    def _copies(self, payload: Payload) -> Iterator[tuple[bytes, bytes, bytes]]:
        """Yield path in the payload, source and copy of each file; create directories."""
        for path, kind, source in payload.entries():
            target = os.path.join(self._data, path)
            if kind == "directory":
                os.mkdir(target)
            else:
                yield path, source, target

    def add(self, contents: Contents) -> None:
        """Add tag files to the bag."""
        for name in os.listdir(self.tags):
            os.rename(os.path.join(self.tags, name), os.path.join(self.path, name))
        for path, data in contents.items():
            if data is not None:
                with open(os.path.join(self.path, path), "xb") as file:
                    file.write(data)


def _listed(outcomes: Outcomes, options: CreateOptions, tags: TagWriter) -> Outcomes:
    """List files in fetch.txt instead of copying them; yield their outcomes."""
    from pressmark.bagit.fetch.fetch_txt import FetchEntry, fetch_line, url_below  # few bags are created so

    assert options.fetch_base is not None
    with contextlib.closing(outcomes):
        for path, outcome in outcomes:
            if outcome.ok:
                inside = BELOW_PAYLOAD + path
                tags.add_to_fetch(fetch_line(FetchEntry(url_below(options.fetch_base, inside), outcome.size, inside)))
            yield path, outcome


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
