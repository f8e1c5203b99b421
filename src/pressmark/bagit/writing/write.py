"""Create a bag in a new directory: in a hidden directory next to its destination, which is renamed when the bag is
complete.

::

    .pressmark-….tmp/       the name depends on the destination only, so the next run finds it
    ├── lock                held during a run
    ├── bag/                the payload, then the tag files
    └── request             the options of the run, once the bag is complete
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.changes import Listener
from pressmark.bagit.changes.destination import (
    checked_destination,
    flush_staging,
    new_path,
    publish,
    refuse_existing,
    refuse_in_bag,
)
from pressmark.bagit.paths import BELOW_PAYLOAD, PAYLOAD
from pressmark.bagit.problems import problem
from pressmark.bagit.writing.options import CreateOptions
from pressmark.bagit.writing.payload import Payload, Sources
from pressmark.bagit.writing.tag_writer import Contents, TagWriter
from pressmark.errors import BagError
from pressmark.fixity.copying import copy_files
from pressmark.fixity.hasher import keep_status, set_times
from pressmark.fixity.outcomes import Content, Outcome, require_written
from pressmark.fixity.pool import hash_tasks
from pressmark.fs.beneath import read_regular
from pressmark.fs.durable import exists
from pressmark.fs.staging import StagingDirectory
from pressmark.fs.steps import write_new
from pressmark.progress_event import EventListener
from pressmark.reports import ProgressEvent

__all__ = [
    "NewDirectory",
    "Outcomes",
    "PayloadReader",
    "add_tag_files",
    "create_elsewhere",
    "publish_new",
    "read_payload",
]

_BAG, _REQUEST = b"bag", b"request"
# Earlier versions wrote tag files to a directory of their own.
_HOLDS = (_BAG, _REQUEST, b"tags")

# Path in the payload and outcome of each file.
Outcomes = Generator[tuple[bytes, Outcome]]


class PayloadReader:
    """Records the files of a payload as they are read: their digests in the manifests, and their problems.

    :param payload: examined
    :param tags: writes the tag files; the caller closes it
    :param stage: of the progress: ``hash``, ``copy`` or ``pack``
    """

    def __init__(self, payload: Payload, tags: TagWriter, stage: str, on_event: Listener) -> None:
        self._payload = payload
        self._preflight = payload.preflight
        self._tags = tags
        self._on_event = on_event
        self._files = self._bytes = 0
        on_event(ProgressEvent(stage, of_items=self._preflight.files, of_bytes=self._preflight.bytes))

    def add(self, path: bytes, outcome: Outcome) -> None:
        """Record a file.

        :param path: in the payload
        :raises OSError: its copy cannot be written
        """
        require_written(outcome)
        if outcome.digests is None:
            kind = "file-changing" if outcome.kind == "changed-while-read" else "file-unreadable"
            self._preflight.refuse(problem(kind, path, outcome.message))
            return
        self._tags.add(path, outcome.digests)
        size = outcome.size or 0
        self._payload.detector.add(path, size, outcome.mtime_ns or 0)  # content in memory has no time
        self._bytes += size
        self._files += 1

    def finish(self) -> Contents:
        """Write all tag files, and return their content. The caller compares the files with those that were read.

        :raises BagError: a file could not be read
        :raises OSError: a file cannot be written
        """
        self._preflight.raise_if_refused(self._payload.path)
        self._on_event(ProgressEvent("tag"))
        return self._tags.finish(self._bytes, self._files)


def read_payload(payload: Payload, stage: str, outcomes: Outcomes, tags: TagWriter, on_event: Listener) -> Contents:
    """Read the payload of a bag, once it was examined, and write all tag files: see :class:`PayloadReader`.

    :param outcomes: reads all files
    :return: the content of the tag files
    :raises BagError: a file cannot be read
    :raises OSError: a file cannot be written
    """
    reader = PayloadReader(payload, tags, stage, on_event)
    with contextlib.closing(tags), contextlib.closing(outcomes):
        for path, outcome in outcomes:
            reader.add(path, outcome)
        return reader.finish()


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
    with Sources(paths, several, nested, options, on_event) as payload:
        payload.refuse_inside(destination)

        def write(path: bytes) -> BagInfo:
            payload.examine(destination)
            free, needed = shutil.disk_usage(os.path.dirname(destination)).free, payload.preflight.bytes
            if mode == "copy" and options.fetch_base is None and free < needed and free < (needed := payload.space()):
                raise BagError(destination, f"not enough disk space: {needed} bytes needed, {free} available")
            new = NewDirectory(path, payload, options, on_event)
            how: Any = {"threads": options.threads, "read": options.read, "links": options.links}
            how["progress"] = EventListener(on_event)
            if options.fetch_base is None:
                outcomes = copy_files(new.copies(), options.algorithms, mode=mode, real=True, **how)
            else:
                outcomes = hash_tasks(new.files(), options.algorithms, **how)
            with contextlib.closing(new), contextlib.closing(outcomes):
                for name, outcome in outcomes:
                    new.add(name, outcome)
                new.finish()
            return new.info()

        return publish_new(destination, request, write, on_event)


def publish_new(
    destination: bytes, request: dict[str, Any], write: Callable[[bytes], BagInfo], on_event: Listener
) -> BagInfo | None:
    """Write a bag in a hidden directory, and move it to ``destination``.

    :param destination: an absolute path
    :param request: recognizes the same call after an interruption
    :param write: writes the bag at a path, and returns the content of bag-info.txt
    :return: the content of bag-info.txt; :data:`None` if an interrupted run had finished
    :raises BagError: the bag cannot be created
    """
    refuse_in_bag(os.path.dirname(destination))
    with new_path(destination, _HOLDS, "no bag was created") as hidden:
        if hidden.existed:
            if not _was_finished(hidden, destination, request):
                refuse_existing(destination)
            on_event(ProgressEvent("recover"))
            return None
        path = os.path.join(hidden.inside, _BAG)
        info = write(path)
        with open(os.path.join(hidden.inside, _REQUEST), "xb") as file:
            file.write(_packed(request, os.lstat(path)))
        on_event(ProgressEvent("move"))
        flush_staging(hidden)
        publish(hidden, _BAG, destination, "bag")
        return info


class NewDirectory:
    """The directory of a new bag. The payload is copied into it file by file, then the tag files are added.

    :param path: of the bag; it is created
    :param payload: examined
    """

    def __init__(self, path: bytes, payload: Payload, options: CreateOptions, on_event: Listener) -> None:
        self._path = path
        self._data = os.path.join(path, PAYLOAD)
        os.mkdir(path)
        os.mkdir(self._data)
        self._payload = payload
        self._fetch_base = options.fetch_base
        self._version = options.version
        self._tags = TagWriter(options, path)
        self._reader = PayloadReader(payload, self._tags, "copy" if self._fetch_base is None else "hash", on_event)

    def close(self) -> None:
        """Close the files that are being written."""
        self._tags.close()

    def copies(self) -> Iterator[tuple[bytes, bytes | Content, bytes]]:
        """Yield path in the payload, source and copy of each file; create directories."""
        for path, kind, source in self._payload.entries():
            target = b"%b/%b" % (self._data, path)
            if kind == "directory":
                os.mkdir(target)
            else:
                yield path, source, target

    def files(self) -> Iterator[tuple[bytes, bytes | Content]]:
        """Yield path in the payload and source of each file."""
        return ((path, source) for path, kind, source in self._payload.entries() if kind == "file")

    def add(self, path: bytes, outcome: Outcome) -> None:
        """Record a file that was copied, or that fetch.txt will list; :meth:`finish` raises its error.

        :raises OSError: its copy cannot be written
        """
        if self._fetch_base is not None and outcome.ok:
            from pressmark.bagit.fetch.fetch_txt import FetchEntry, fetch_line, url_below  # few bags are created so

            inside = BELOW_PAYLOAD + path
            entry = FetchEntry(url_below(self._fetch_base, inside), outcome.size, inside)
            self._tags.add_to_fetch(fetch_line(entry, self._version))
        self._reader.add(path, outcome)

    def finish(self) -> None:
        """Add the tag files.

        :raises BagError: a file could not be read, or was changed, added or removed
        :raises OSError: a file cannot be written
        """
        contents = self._reader.finish()
        self._payload.check_unchanged()
        if self._fetch_base is None:
            # Bottom-up, because a directory may deny access to its content.
            for path, status in reversed(self._payload.folders):
                folder = os.path.join(self._data, path)
                if os.lstat(folder).st_mode & stat.S_ISGID:
                    # A group shares it, and has to be able to change it whatever the source allows.
                    set_times(folder, status.st_atime_ns, status.st_mtime_ns)
                else:
                    keep_status(folder, status)
        add_tag_files(self._path, contents)

    def info(self) -> BagInfo:
        """Return the elements of bag-info.txt, which :meth:`finish` has written."""
        return self._tags.info()


def add_tag_files(path: bytes, contents: Contents) -> None:
    """Add to a new bag the tag files that are not there yet.

    :param path: of the bag
    :raises OSError: a file cannot be written
    """
    write_new(path, {name: data for name, data in contents.items() if data is not None})


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
