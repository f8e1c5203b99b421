"""What becomes the payload of a bag: files and directories, examined first, and looked at again at the end."""

from __future__ import annotations

import os
import stat
from abc import abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, NamedTuple, Self

from pressmark.bagit.bag_directory import STAGING, BagDirectory
from pressmark.bagit.changes import RUN_AGAIN, Listener, refusing
from pressmark.bagit.paths import normal_key
from pressmark.bagit.walk import walk
from pressmark.bagit.writing.options import CreateOptions
from pressmark.bagit.writing.preflight import Preflight, refuse_bag, why_unlistable
from pressmark.errors import BagError
from pressmark.fixity.outcomes import Content
from pressmark.fs.beneath import real_path
from pressmark.fs.durable import exists
from pressmark.fs.names import is_inside
from pressmark.reports import Progress

__all__ = ["APPEARED", "ChangeDetector", "FileFacts", "Payload", "SourceChangedError", "Sources"]

APPEARED = f"changed, added or removed while the bag was being created; {RUN_AGAIN}"


class SourceChangedError(BagError):
    """A file of a source was changed, added or removed while the bag was being created."""

    def __init__(self, path: bytes) -> None:
        super().__init__(path, APPEARED)


#: Path, size, and time of modification in nanoseconds of a file.
FileFacts = tuple[bytes, int, int]


class _Source(NamedTuple):
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


class Payload:
    """What becomes the payload of a bag; a context manager that holds its directories open.

    :param path: the source, for errors
    :param options: of the bag
    :ivar preflight: the result of :meth:`examine`
    :ivar detector: of changes of the files
    :ivar folders: path in the payload and status of each directory, from :meth:`check_unchanged`
    """

    def __init__(self, path: bytes, options: CreateOptions, on_event: Listener) -> None:
        self.path = path
        self.preflight = Preflight(options, on_event)
        self.detector = ChangeDetector()
        self.folders: list[tuple[bytes, os.stat_result]] = []
        self._on_event = on_event

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        return None

    def examine(self, destination: bytes) -> None:
        """Check all files and directories.

        :param destination: the future bag
        :raises BagError: the bag cannot be created
        """
        self._on_event(Progress("examine"))
        self._examine(os.path.realpath(destination))
        self.preflight.raise_if_refused(self.path)

    @abstractmethod
    def _examine(self, into: bytes) -> None:
        """Check all files and directories.

        :param into: real path of the future bag
        """

    def entries(self) -> Iterator[tuple[bytes, str, bytes | Content]]:
        """Yield path in the payload, kind and path of each file and directory; a directory precedes its content.

        :raises OSError: a directory cannot be read
        """
        raise NotImplementedError

    def check_unchanged(self) -> None:
        """Compare the files with those that were read.

        :raises SourceChangedError: a file was changed, added or removed
        """
        self._on_event(Progress("check", of_items=self.preflight.files, of_bytes=self.preflight.bytes))
        self.detector.compare(self.path, self._files_now())

    @abstractmethod
    def _files_now(self) -> Iterable[FileFacts]:
        """Return the present facts of the files, and set :attr:`folders`.

        :raises SourceChangedError: a file was changed, added or removed
        """


class Sources(Payload):
    """Files and directories that are copied, packed or hashed. They are opened when the context is entered.

    :param paths: at least one
    :param several: keep the name of each of ``paths`` in the payload
    :param nested: allow sources that are bags
    :raises BagError: on entering: a source cannot be opened, or they cannot be in the same payload
    """

    def __init__(
        self, paths: Sequence[bytes], several: bool, nested: bool, options: CreateOptions, on_event: Listener
    ) -> None:
        if not paths:
            raise ValueError("at least one source is required")
        super().__init__(paths[0], options, on_event)
        self._paths = paths
        self._several = several
        self._nested = nested
        self._sources: Sequence[_Source] = ()
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self._sources = _open_sources(self._paths, self._several, self._nested, opened)
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._opened.close()

    def refuse_inside(self, destination: bytes) -> None:
        """Refuse a destination that would be part of its own payload.

        :raises BagError: it is inside a source
        """
        for source in self._sources:
            if source.base is not None and is_inside(destination, source.path):
                raise BagError(destination, "destination is inside a source; choose another destination")

    def _examine(self, into: bytes) -> None:
        for source in self._sources:
            if source.base is None:
                self.preflight.check_file(source.path, source.status.st_size)
            else:
                self.preflight.check_directory(source.base, into)

    def entries(self, order: Callable[[bytes], Any] | None = None) -> Iterator[tuple[bytes, str, bytes]]:
        """Yield path in the payload, kind and path of each file and directory; a directory precedes its content.

        :param order: as in :func:`~pressmark.bagit.walk.walk`
        :raises OSError: a directory cannot be read
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

    def _files_now(self) -> Iterator[FileFacts]:
        self.folders = [(b"", source.status) for source in self._sources if not source.prefix]
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
        :raises SourceChangedError: a file was changed, added or removed; for a removed file, it names the next one
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
            raise SourceChangedError(os.path.join(folder, first or b""))


def _open_sources(paths: Sequence[bytes], several: bool, nested: bool, stack: ExitStack) -> list[_Source]:
    """Open all sources, and refuse those that cannot be in the same payload.

    :param several: keep the name of each of ``paths`` in the payload
    :param nested: allow sources that are bags
    :param stack: closes the sources
    :raises BagError: a source cannot be opened or used
    """
    taken: set[bytes] = set()
    sources = []
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
        sources.append(_Source(path, prefix, status, base, real_path(path)))
    return sources


def _refuse_unfinished(path: bytes) -> None:
    with refusing(path):
        if not exists(os.path.join(path, STAGING)):
            return
    from pressmark.bagit.changes.bag_changes import is_decided  # few sources have a staging directory

    if is_decided(path):
        raise BagError(path, "a change of this directory was interrupted; run that command again first")
