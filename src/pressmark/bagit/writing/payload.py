"""What becomes the payload of a bag: files and directories, examined first, and looked at again at the end."""

from __future__ import annotations

import os
import stat
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

from pressmark.bagit.bag_directory import STAGING, BagDirectory
from pressmark.bagit.changes import RUN_AGAIN, Listener, refusing
from pressmark.bagit.paths import normal_key
from pressmark.bagit.walk import walk
from pressmark.bagit.writing.options import CreateOptions
from pressmark.bagit.writing.preflight import Preflight, refuse_bag, why_unlistable
from pressmark.errors import BagError
from pressmark.fs.beneath import real_path
from pressmark.fs.durable import exists
from pressmark.fs.names import is_inside
from pressmark.reports import Progress

__all__ = ["APPEARED", "ChangeDetector", "FileFacts", "Payload", "Source", "open_sources"]

APPEARED = f"changed, added or removed while the bag was being created; {RUN_AGAIN}"


#: Path, size, and time of modification in nanoseconds of a file.
FileFacts = tuple[bytes, int, int]


class Source(NamedTuple):
    """A file or directory to copy.

    :ivar path: the given path
    :ivar prefix: start of its paths in the payload: empty, the directory's name with a slash, or the file's name
    :ivar status: status at the start of the run
    :ivar base: the open directory; :data:`None` for a file
    :ivar real: the path without symbolic links
    """

    path: bytes
    prefix: bytes
    status: os.stat_result
    base: BagDirectory | None
    real: bytes


def open_sources(paths: Sequence[bytes], several: bool, nested: bool, stack: ExitStack) -> list[Source]:
    """Open all sources, and refuse those that cannot be in the same payload.

    :param several: keep the name of each of ``paths`` in the payload
    :param nested: allow sources that are bags
    :param stack: closes the sources
    :raises BagError: a source cannot be opened or used
    """
    taken: set[bytes] = set()
    sources = []
    if not paths:
        raise ValueError("at least one source is required")
    for path in paths:
        with refusing(path):
            status = os.stat(path)
        is_directory = stat.S_ISDIR(status.st_mode)
        prefix = b""
        if several or not is_directory:
            name = os.path.basename(os.path.abspath(path))
            if normal_key(name) in taken:
                raise BagError(
                    path,
                    "two sources have this name; rename one, or create the bag from a directory that contains both",
                )
            if reason := why_unlistable(name):
                raise BagError(path, reason)
            taken.add(normal_key(name))
            prefix = name + b"/" if is_directory else name
        if is_directory:
            _refuse_unfinished(path)
            refuse_bag(path, nested)
        elif not stat.S_ISREG(status.st_mode):
            raise BagError(path, "neither a directory nor a regular file")
        base = stack.enter_context(BagDirectory(path)) if is_directory else None
        sources.append(Source(path, prefix, status, base, real_path(path)))
    return sources


def _refuse_unfinished(path: bytes) -> None:
    with refusing(path):
        if not exists(os.path.join(path, STAGING)):
            return
    from pressmark.bagit.changes.bag_changes import is_decided  # few sources have a staging directory

    if is_decided(path):
        raise BagError(path, "a change of this directory was interrupted; run that command again first")


class Payload:
    """Files and directories that are copied, packed or hashed.

    :param sources: the result of :func:`open_sources`
    :param options: of the bag
    :ivar path: the first source, for errors
    :ivar preflight: the result of :meth:`examine`
    :ivar detector: of changes of the files
    :ivar folders: path in the payload and status of each directory, from :meth:`check_unchanged`
    """

    def __init__(self, sources: Sequence[Source], options: CreateOptions, on_event: Listener) -> None:
        self.path = sources[0].path
        self.preflight = Preflight(options, on_event)
        self.detector = ChangeDetector()
        self.folders: list[tuple[bytes, os.stat_result]] = []
        self._sources = sources
        self._on_event = on_event

    def refuse_inside(self, destination: bytes) -> None:
        """Refuse a destination that would be part of its own payload.

        :raises BagError: it is inside a source
        """
        for source in self._sources:
            if source.base is not None and is_inside(destination, source.path):
                raise BagError(destination, "destination is inside a source; choose another destination")

    def examine(self, destination: bytes) -> None:
        """Check all files and directories.

        :raises BagError: the bag cannot be created
        """
        self._on_event(Progress("examine"))
        into = os.path.realpath(destination)
        for source in self._sources:
            if source.base is None:
                self.preflight.check_file(source.path, source.status.st_size)
            else:
                self.preflight.check_directory(source.base, into)
        self.preflight.raise_if_refused(self.path)

    def entries(self, order: Callable[[bytes], Any] | None = None) -> Iterator[tuple[bytes, str, bytes]]:
        """Yield path in the payload, kind and path of each file and directory; a directory precedes its content.

        :param order: as in :func:`~pressmark.bagit.walk.walk`
        """
        links = self.preflight.links_to_follow(in_place=False)
        for source in self._sources:
            if source.base is None:
                yield source.prefix, "file", source.real
                continue
            if source.prefix:
                yield source.prefix[:-1], "directory", source.path
            for found in walk(source.base, links=links, exclusion=self.preflight.exclusion(), order=order):
                if found.kind:
                    yield source.prefix + found.path, found.kind, os.path.join(source.real, found.path)

    def check_unchanged(self) -> None:
        """Compare the files with those that were read.

        :raises BagError: a file was changed, added or removed
        """
        self._on_event(Progress("check", of_items=self.preflight.files, of_bytes=self.preflight.bytes))
        self.folders = [(b"", source.status) for source in self._sources if not source.prefix]
        self.detector.compare(self.path, self._files_now())

    def _files_now(self) -> Iterator[FileFacts]:
        for path, kind, source in self.entries():
            status = os.stat(source)
            if kind == "file":
                yield path, status.st_size, status.st_mtime_ns
            else:
                self.folders.append((path, status))


class ChangeDetector:
    """Fingerprints of the files that were read, to detect later changes."""

    def __init__(self) -> None:
        self._facts = array("q")

    def add(self, path: bytes, size: int, mtime_ns: int) -> None:
        self._facts.append(hash((path, size, mtime_ns)))

    def compare(self, folder: bytes, now: Iterable[FileFacts]) -> None:
        """Compare the files with those that were read. Their order does not matter.

        :param folder: the directory that the paths are relative to
        :raises BagError: a file was changed, added or removed; for a removed file, the error names the next one
        """
        total = sum(self._facts)
        first: bytes | None = None
        count = 0
        for facts in now:
            fact = hash(facts)
            total -= fact
            if first is None and (count >= len(self._facts) or self._facts[count] != fact):
                first = facts[0]
            count += 1
        if total != 0 or count != len(self._facts):
            raise BagError(os.path.join(folder, first or b""), APPEARED)
