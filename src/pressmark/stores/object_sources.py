"""Sources of objects: files, directories and open files, copied into a new directory."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pressmark.errors import quoted
from pressmark.fixity.copying import Copying, Event, copy_files
from pressmark.fixity.hasher import OpenOptions
from pressmark.fixity.outcomes import Content, Outcome, failed_outcome, require_written
from pressmark.fs.beneath import below_root, real_path
from pressmark.fs.durable import is_directory
from pressmark.fs.file_errors import kind_of_error, kind_of_mode, message_of
from pressmark.fs.names import decode_fs, encode_fs, glob_matcher
from pressmark.fs.trees import DirectoryEntry, longest_inside, scan, scan_beneath
from pressmark.reports import Problem
from pressmark.stores.exceptions import SourceError, is_unsafe_name, object_errors
from pressmark.stores.objects import ObjectSource
from pressmark.stores.problems import problem

__all__ = [
    "SMALL_FLAGS",
    "SourceCopier",
    "UnreadableSourceError",
    "check_source",
    "copy_source",
    "devices_to_copy",
    "identities_above",
    "is_content",
    "refuse_within",
    "require_copied",
    "select_source",
    "source_tree",
]

#: For opening small files, which kernels copy.
SMALL_FLAGS = OpenOptions(follow=False).flags


class UnreadableSourceError(SourceError):
    """A file of a source that could not be copied.

    :ivar outcome: outcome of copying the file
    """

    def __init__(self, outcome: Outcome) -> None:
        super().__init__("source", f"{os.fsdecode(encode_fs(outcome.path))}: {outcome.message}")
        self.outcome = outcome


def require_copied(outcome: Outcome) -> None:
    """Raise the error of a file that was not copied.

    :raises UnreadableSourceError: the source cannot be read
    :raises OSError: the copy cannot be written
    """
    require_written(outcome)
    if not outcome.ok:
        raise UnreadableSourceError(outcome)


def check_source(source: object) -> None:
    """Check that a source is a path, or a mapping of names to paths and content, each open file once.

    :raises SourceError: of kind ``source``
    """
    if is_content(source):
        way_out = "specify a mapping such as {'name.bin': content}, or the path of a file as a string"
        raise SourceError("source", f"the source is content without a file name; {way_out}")
    if not isinstance(source, Mapping):
        _check_path(source)
        return
    streams: dict[int, object] = {}
    for name, content in source.items():
        if not is_content(content):
            _check_path(content)
        elif hasattr(content, "read") and (other := streams.setdefault(id(content), name)) is not name:
            # It can be read once: the second file would be empty.
            what = f"{other!r} and {name!r} are the same open file; specify its content as bytes, or a path"
            raise SourceError("source", what)


def _check_path(source: object) -> None:
    if not isinstance(source, (str, os.PathLike)):
        what = f"the source is of type {type(source).__name__}"
        raise SourceError("source", f"{what}; specify a path, bytes or an open binary file")
    try:
        path = os.fsencode(source)
    except UnicodeEncodeError:
        raise SourceError("source", f"{quoted(os.fspath(source))}: no file can have this name") from None
    if b"\0" in path:
        raise SourceError("source", f"{quoted(path)}: the path contains a NUL character")


def is_content(source: object) -> bool:
    """Return whether a source is content, not a path or a mapping: bytes, or an open file."""
    return isinstance(source, (bytes, bytearray, memoryview)) or hasattr(source, "read")


def select_source(
    store: str, identifier: str | bytes, source: ObjectSource, exclude: Sequence[str] | str, links: str
) -> tuple[ObjectSource, tuple[Problem, ...]]:
    """Return a source without the files and directories whose names match, and a problem for each of these.

    :param exclude: globs; the source itself and the names of a mapping are not compared with them
    :param links: ``"refuse"`` or ``"follow"`` symbolic links
    :raises ObjectError: the source cannot be stored
    """
    if not exclude:
        return source, ()
    matches = glob_matcher(exclude)
    excluded: list[Problem] = []

    def is_excluded(folder: bytes, entry: DirectoryEntry) -> bool:
        if not matches(decode_fs(entry.name)):
            return False
        path = os.path.join(folder, entry.name)
        excluded.append(problem("excluded", path, f"{decode_fs(path)!r} is left out"))
        return True

    selected: dict[str, Any] = {}
    with object_errors(store, identifier):
        check_source(source)
        for name, content in source.items() if isinstance(source, Mapping) else [("", source)]:
            given = b"" if is_content(content) else os.fsencode(content)  # type: ignore[arg-type]
            if not is_directory(given):
                selected[name] = content
                continue
            top = real_path(given)
            for inside, path, entries in source_tree(
                top, encode_fs(name), b"", links == "follow", is_excluded=is_excluded
            ):
                if entries is None or not os.listdir(path):
                    selected[decode_fs(inside)] = os.fsdecode(path)
    return (selected, tuple(excluded)) if excluded else (source, ())


class SourceCopier:
    """Copies the sources of many objects: the result for a device is remembered.

    :param mode: as for :func:`copy_source`
    :param copied: devices where sharing blocks was tried, and files were copied; more are added
    """

    def __init__(self, mode: str, copied: set[int]) -> None:
        self._mode = mode
        self._copied = copied

    def copy(
        self,
        source: ObjectSource,
        target: bytes,
        links: str,
        algorithms: tuple[str, ...] = (),
        on_file: Callable[[bytes, Outcome], object] | None = None,
        on_event: Callable[[Event], object] | None = None,
    ) -> tuple[int, bytes]:
        """Copy a source into the new directory ``target``; see :func:`copy_source`.

        :return: size in bytes, and the longest path in it as from :func:`longest_inside`
        :raises SourceError: the source cannot be stored
        :raises OSError: the copy cannot be written
        """
        size = 0

        def add(name: bytes, outcome: Outcome) -> None:
            nonlocal size
            size += outcome.size or 0
            if on_file is not None:
                on_file(name, outcome)

        def note(event: Event) -> None:
            self.note(source, event)
            if on_event is not None:
                on_event(event)

        mode = self.mode_of(source)
        copy_source(source, target, mode=mode, links=links, algorithms=algorithms, on_file=add, on_event=note)
        return size, longest_inside(target)

    def devices(self) -> tuple[int, ...] | None:
        """Return :func:`devices_to_copy`."""
        return devices_to_copy(self._mode, self._copied)

    def mode_of(self, source: object) -> str:
        """Return the mode for a source: only copying a first file shows whether a device can share blocks."""
        if self._mode == "auto" and self._copied:
            return "copy" if _device_of(source) in self._copied else "auto"
        return self._mode

    def note(self, source: object, event: object) -> None:
        """Record the result of an event of copying a source."""
        if isinstance(event, Copying) and event.mode == "copy":
            self._copied.add(_device_of(source))


def devices_to_copy(mode: str, copied: Collection[int]) -> tuple[int, ...] | None:
    """Return the devices whose files are copied byte by byte; :data:`None` if none is known, empty for all.

    :param mode: as for :func:`copy_source`
    :param copied: devices where sharing blocks was tried, and files were copied
    """
    return () if mode == "copy" else tuple(copied) or None if mode == "auto" else None


def _device_of(source: object) -> int:
    """Return the device of a source, or of the first file or directory of a mapping; -1 if there is none."""
    if isinstance(source, Mapping):
        source = next(iter(source.values()), None)
    if isinstance(source, (str, os.PathLike)):
        with contextlib.suppress(OSError):  # reported by reading it
            return os.stat(source).st_dev
    return -1


def copy_source(
    source: ObjectSource | bytes,
    target: bytes,
    *,
    mode: str = "auto",
    links: str = "refuse",
    threads: int | None = None,
    algorithms: tuple[str, ...] = (),
    on_file: Callable[[bytes, Outcome], object] | None = None,
    on_event: Callable[[Event], object] | None = None,
) -> int:
    """Copy a source into the new directory ``target``.

    :param source: as for :meth:`pressmark.stores.Store.put`, or the path of a file or directory as bytes
    :param mode: as for :func:`pressmark.fixity.copying.copy_files`
    :param links: ``"refuse"`` or ``"follow"`` symbolic links in the source; a link that is the source itself is
        followed
    :param algorithms: algorithms of the digests that ``on_file`` receives
    :param on_file: called with each file's name below ``target``, and its outcome
    :param on_event: called with the events of :func:`pressmark.fixity.copying.copy_files`
    :return: the number of files
    :raises SourceError: the source cannot be stored
    :raises OSError: the copy cannot be written
    """

    def tasks() -> Iterator[tuple[bytes, bytes | Content, bytes]]:
        os.mkdir(target)
        for name, content in _files(source, target, links == "follow"):
            yield name, content, os.path.join(target, name)

    count = 0
    copies = copy_files(tasks(), algorithms, mode=mode, threads=threads, links=links, real=True, on_event=on_event)
    with contextlib.closing(copies):
        for name, outcome in copies:
            require_copied(outcome)
            if on_file is not None:
                on_file(name, outcome)
            count += 1
    if not os.path.isdir(target):  # no file at all
        os.mkdir(target)
    return count


def _files(source: ObjectSource | bytes, target: bytes, follow: bool) -> Iterator[tuple[bytes, bytes | Content]]:
    """Yield names and paths of the files of a source, and create their directories below ``target``."""
    tops: Iterable[tuple[Any, bytes, bytes]]
    if isinstance(source, Mapping):
        tops = ((content, _checked(encode_fs(name)), b"") for name, content in source.items())
    else:
        # A source that is a link stands for its target, under the link's name.
        tops = [(os.fsdecode(source), b"", os.path.basename(os.fsencode(source)))]
    for content, inside, alone in tops:
        if is_content(content):
            _make(target, os.path.dirname(inside))
            yield inside, Content(content, inside)
            continue
        top = real_path(os.fsencode(content))
        for name, path, entries in source_tree(top, inside, target, follow, alone=alone):
            if entries is not None:
                _make(target, name)
                continue
            _make(target, os.path.dirname(_checked(name)))
            yield name, path


def source_tree(
    path: bytes,
    name: bytes,
    target: bytes,
    follow: bool,
    *,
    alone: bytes = b"",
    deepest: int | None = None,
    above: tuple[tuple[int, int], ...] = (),
    is_excluded: Callable[[bytes, DirectoryEntry], bool] = lambda _name, _entry: False,
) -> Iterator[tuple[bytes, bytes, list[DirectoryEntry] | None]]:
    """Walk a file or directory of a source, in the order of the names' bytes, a directory before its content.

    :param path: the file or directory, from :func:`~pressmark.fs.beneath.real_path`
    :param name: name in the object; empty if the content is the whole object
    :param target: the destination of the copy
    :param follow: follow symbolic links below ``path``
    :param alone: the name of a file that is the whole object
    :param deepest: maximal depth of directories; :data:`None` for the limit of Python's stack
    :param above: devices and inodes of the directories above
    :param is_excluded: returns whether to leave out an entry of the directory with a name in the object
    :return: names, paths, and the entries of directories; :data:`None` for files and special files
    :raises SourceError: the source cannot be stored
    """
    if not above:
        refuse_within(path, target)
    try:
        status = os.stat(path)
        if not above and not stat.S_ISDIR(status.st_mode):
            yield name or alone, path, None  # copying detects special files
            return
        listed = scan(path) if follow else scan_beneath(b"/", below_root(path))
        entries = [entry for entry in listed if not is_excluded(name, entry)]
    except OSError as error:
        number = error.errno or 0
        raise UnreadableSourceError(failed_outcome(path, kind_of_error(number, path), number)) from None
    identity = (status.st_dev, status.st_ino)
    if identity in above:
        raise SourceError("source", f"{decode_fs(path)}: {message_of('directory-loop')}; move it out of the source")
    if len(above) == deepest:
        what = f"{decode_fs(path)}: directories are nested more than {deepest} levels deep"
        raise SourceError("source", f"{what}; pack it into one file, or move it out of the source")
    yield name, path, entries
    for entry in entries:
        inside = name + b"/" + entry.name if name else entry.name
        below = os.path.join(path, entry.name)
        if entry.kind == "directory":
            if entry.is_link:
                refuse_within(below, target)
            yield from source_tree(
                below, inside, target, follow, deepest=deepest, above=(*above, identity), is_excluded=is_excluded
            )
        elif entry.kind == "file":
            yield inside, below, None
        else:
            raise SourceError("source", f"{decode_fs(below)}: {_why_no_file(entry, below)}")


def _why_no_file(entry: DirectoryEntry, path: bytes) -> str:
    if entry.kind == "link":
        return f"{message_of('link')}; follow links (--links follow), or move it out of the source"
    try:
        kind = kind_of_mode(os.stat(path).st_mode)
        why = message_of(kind) if kind else "not a regular file"
    except OSError as error:
        number = error.errno or 0
        why = message_of(kind_of_error(number, path), number)
    return f"{why}; move it out of the source"


def refuse_within(path: bytes, target: bytes, above: Collection[tuple[int, int]] | None = None) -> None:
    """Refuse to copy a directory into itself.

    :param above: :func:`identities_above` of the directory of ``target``, if they are known
    :raises SourceError: ``target`` is inside ``path``
    """
    with contextlib.suppress(OSError):  # no permission to look
        status = os.stat(path)
        if not stat.S_ISDIR(status.st_mode):
            return
        inside = above if above is not None else identities_above(os.path.dirname(target))
        if (status.st_dev, status.st_ino) in inside:
            what = f"{os.fsdecode(path)}: cannot copy a directory into itself; specify its content instead"
            raise SourceError("source", what)


def identities_above(place: bytes) -> frozenset[tuple[int, int]]:
    """Return devices and inodes of a directory and those above it.

    They identify directories by any name: for small objects, resolving paths would take a tenth of the time.
    """
    found: set[tuple[int, int]] = set()
    with contextlib.suppress(OSError):  # no permission to look
        identity = _identity(place)
        while identity not in found:  # the root directory is above itself
            found.add(identity)
            place += b"/.."
            identity = _identity(place)
    return frozenset(found)


def _identity(path: bytes) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _checked(name: bytes) -> bytes:
    if is_unsafe_name(name):
        raise SourceError("bad-name", f"{os.fsdecode(name)!r} is not a valid file name in an object")
    return name


def _make(target: bytes, relative: bytes) -> None:
    if relative:
        os.makedirs(os.path.join(target, relative), exist_ok=True)
