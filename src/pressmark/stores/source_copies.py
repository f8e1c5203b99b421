"""Copies of sources in new directories, of one object or of many: all files are copied in one stream.

The fixed costs of copying (threads, lanes) are paid once for many objects, and an object that cannot be copied does not
affect the others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import groupby
from typing import Any

from pressmark.fixity.copying import Copying, Event, copy_files
from pressmark.fixity.outcomes import Content, Outcome
from pressmark.stores.exceptions import SourceError, is_unsafe_name
from pressmark.stores.object_sources import SourceEntry, plain_entries, require_copied, source_entries
from pressmark.stores.objects import ObjectSource

__all__ = ["Copier", "SourceCopy", "copy_source"]

#: The key of a file, the path of its source or its content, and the path of its copy.
Task = tuple[Any, bytes | Content, bytes]


class SourceCopy:
    """A source that is copied into a new directory.

    :param source: as for :meth:`pressmark.stores.Store.put`, or the path of a file or directory as bytes
    :param target: the new directory
    :param links: ``"refuse"`` or ``"follow"`` symbolic links in the source; a link that is the source itself is
        followed
    :param algorithms: algorithms of the digests of the files
    :param on_file: called with each file's name below ``target`` and its outcome; an exception is its error
    :param on_event: called with the events of :func:`~pressmark.fixity.copying.copy_files`; the source is copied alone
    :param threads: number of files that are copied at a time; :data:`None` for one per core

    :ivar entries: of the source, if they are known
    :ivar mode: how the files were transferred: ``copy``, ``reflink`` or ``hardlink``; :data:`None` without files
    :ivar files: number of copied files
    :ivar size: of these files, in bytes
    :ivar longest: the longest path below ``target``, with a slash before it
    :ivar error: why the source could not be copied: a :class:`SourceError`, an :class:`OSError` or that of a function
    """

    #: Maximal depth of directories in a source; :data:`None` for the limit of Python's stack.
    DEEPEST: int | None = None
    #: Whether the paths of files are from :func:`~pressmark.fs.beneath.real_path`.
    is_real = True

    def __init__(
        self,
        source: ObjectSource | bytes,
        target: bytes,
        links: str,
        *,
        algorithms: tuple[str, ...] = (),
        on_file: Callable[[bytes, Outcome], object] | None = None,
        on_event: Callable[[Event], object] | None = None,
        threads: int | None = None,
    ) -> None:
        self.source = source
        self.target = target
        self.links = links
        self.algorithms = algorithms
        self.on_event = on_event
        self.threads = threads
        self.entries: Iterable[SourceEntry] | None = None
        self.mode: str | None = None
        self.files = self.size = 0
        self.longest = b""
        self.error: Exception | None = None
        self._on_file = on_file

    def tasks(self) -> Iterator[Task]:
        """Create the directories, and yield the files to copy.

        :raises SourceError: the source cannot be stored
        :raises OSError: a directory cannot be created
        """
        os.mkdir(self.target)
        for name, content, _is_empty in self.listed():
            if is_unsafe_name(name):
                raise SourceError("bad-name", f"{os.fsdecode(name)!r} is not a valid file name in an object")
            target = b"%b/%b" % (self.target, name)
            self.note_path(name)
            if content is None:
                os.makedirs(target, exist_ok=True)
                continue
            if isinstance(self.source, Mapping) and b"/" in name:
                os.makedirs(os.path.dirname(target), exist_ok=True)
            yield name, content, target

    def listed(self) -> Iterable[SourceEntry]:
        """Return the files and directories of the source.

        :raises SourceError: the source cannot be stored
        """
        if self.entries is not None:
            return self.entries
        return source_entries(self.source, self.target, self.links == "follow", deepest=self.DEEPEST)

    def note_path(self, name: bytes) -> None:
        """Record a path below the directory."""
        if len(name) >= len(self.longest):
            self.longest = b"/" + name

    def add(self, key: Any, outcome: Outcome) -> None:
        """Record a copied file.

        :raises SourceError: the file could not be copied
        :raises OSError: its copy could not be written
        """
        require_copied(outcome)
        self.files += 1
        self.size += outcome.size or 0
        if self._on_file is not None:
            self._on_file(key, outcome)

    def raise_error(self) -> None:
        """Raise the error of the copy, if any."""
        if self.error is not None:
            raise self.error


class Copier:
    """Copies the sources of objects: the result for a device is remembered.

    :param mode: as for :func:`pressmark.fixity.copying.copy_files`
    :param copied: devices where sharing blocks was tried, and files were copied; more are added
    """

    def __init__(self, mode: str, copied: set[int]) -> None:
        self._mode = mode
        self._copied = copied

    def copy(self, copies: Sequence[SourceCopy]) -> None:
        """Copy sources, and record for each the error, if any."""
        plain = [copy for copy in copies if copy.entries is None]
        targets = plain[0].target if plain else b""
        for copy, entries in zip(plain, plain_entries([copy.source for copy in plain], targets), strict=True):
            copy.entries = entries
        for (mode, *_how), some in groupby(copies, self._how):
            self._stream(list(some), mode)

    def mode_of(self, source: object) -> str:
        """Return the mode for a source: only copying a first file shows whether a device can share blocks."""
        if self._mode == "auto" and self._copied and _device_of(source) in self._copied:
            return "copy"
        return self._mode

    def note(self, source: object, event: object) -> None:
        """Record the result of an event of copying a source."""
        if isinstance(event, Copying) and event.mode == "copy":
            self._copied.add(_device_of(source))

    def _how(self, copy: SourceCopy) -> tuple[Any, ...]:
        """Return the mode of a source, and everything else in which sources that are copied together are alike."""
        mode = self.mode_of(copy.source)
        # Whether blocks can be shared is found out for each device; few file systems can.
        alone = copy.on_event is not None or mode != "copy"
        return mode, copy.algorithms, copy.links, copy.is_real, copy.threads, id(copy) if alone else 0

    def _stream(self, copies: list[SourceCopy], mode: str) -> None:
        """Copy sources in one stream."""
        first = copies[0]
        used = mode

        def note(event: Event) -> None:
            nonlocal used
            self.note(first.source, event)
            if isinstance(event, Copying):
                used = event.mode
            if first.on_event is not None:
                first.on_event(event)

        stream = copy_files(
            _tasks(copies),
            first.algorithms,
            mode=mode,
            threads=first.threads,
            links=first.links,
            real=first.is_real,
            on_event=note,
        )
        try:
            with closing(stream) as copied:
                for (copy, key), outcome in copied:
                    if copy.error is None:
                        copy.mode = used
                        try:
                            copy.add(key, outcome)
                        except Exception as error:
                            copy.error = error
        except Exception as error:  # that concerns all files, such as blocks that cannot be shared
            for copy in copies:
                copy.error = copy.error or error


def _tasks(copies: Iterable[SourceCopy]) -> Iterator[tuple[tuple[SourceCopy, Any], bytes | Content, bytes]]:
    for copy in copies:
        try:
            for key, content, target in copy.tasks():
                yield (copy, key), content, target
                if copy.error is not None:
                    break
        except Exception as error:
            copy.error = copy.error or error


def copy_source(
    source: ObjectSource | bytes,
    target: bytes,
    *,
    mode: str = "auto",
    links: str = "refuse",
    algorithms: tuple[str, ...] = (),
    on_file: Callable[[bytes, Outcome], object] | None = None,
    on_event: Callable[[Event], object] | None = None,
) -> SourceCopy:
    """Copy one source, and return its copy; the parameters are those of :class:`SourceCopy` and :class:`Copier`.

    :raises SourceError: the source cannot be stored
    :raises OSError: the copy cannot be written
    """
    copy = SourceCopy(source, target, links, algorithms=algorithms, on_file=on_file, on_event=on_event)
    Copier(mode, set()).copy([copy])
    copy.raise_error()
    return copy


def _device_of(source: object) -> int:
    """Return the device of a source, or of the first file or directory of a mapping; -1 if there is none."""
    if isinstance(source, Mapping):
        source = next(iter(source.values()), None)
        source = None if isinstance(source, bytes) else source  # content
    if isinstance(source, (str, bytes, os.PathLike)):
        with suppress(OSError):  # reported by reading it
            return os.stat(source).st_dev
    return -1
