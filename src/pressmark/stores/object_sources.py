"""Sources of objects: files, directories and open files; and their copies in new directories.

The files of many objects are copied in one stream: the fixed costs of copying (threads, lanes) are paid once, and an
object that cannot be copied does not affect the others.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, cast

from pressmark.errors import quoted, quoted_path
from pressmark.fixity.copying import Copying, Event, copy_files
from pressmark.fixity.outcomes import Content, Outcome, failed_outcome, require_written
from pressmark.fs.beneath import below_root, real_path, real_paths
from pressmark.fs.durable import is_directory
from pressmark.fs.file_errors import kind_of_error, kind_of_mode, message_of
from pressmark.fs.names import decode_fs, encode_fs, glob_matcher
from pressmark.fs.trees import LINKED, DirectoryEntry, Wanted, scan, scan_beneath, trees
from pressmark.option_names import option
from pressmark.progress_event import EventListener
from pressmark.reports import Problem
from pressmark.stores.exceptions import SourceError, SourceTypeError, is_unsafe_name, object_errors
from pressmark.stores.objects import Data, ObjectSource, SourcePath
from pressmark.stores.problems import problem

__all__ = [
    "TOGETHER",
    "Copier",
    "EmptyDirectory",
    "SourceCopy",
    "SourceEntry",
    "Task",
    "UnreadableSourceError",
    "check_source",
    "is_content",
    "is_remote",
    "open_files",
    "opened",
    "plain_entries",
    "refuse_within",
    "require_copied",
    "select_source",
    "source_entries",
    "source_tree",
]


class EmptyDirectory:
    """An empty directory in a mapping, of a place without directories."""


# A source, whose mapping may have str as paths too: these are ours.
AnySource = ObjectSource | Mapping[str, SourcePath | Data | EmptyDirectory] | bytes
# Of directories that are listed many at a time: larger ones are walked while they are copied.
_LISTED = Wanted(content="none", entries=256)
# Bytes of the sources that are copied together, at most: so that the first objects are published soon.
TOGETHER = 1 << 26  # 64 MiB


class UnreadableSourceError(SourceError):
    """A file of a source that could not be copied.

    :ivar outcome: outcome of copying the file
    """

    def __init__(self, outcome: Outcome) -> None:
        super().__init__("source", f"{quoted_path(outcome.path)}: {outcome.message}")
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

    A ``str`` in a mapping is refused: a message's text, taken for a path, would store a file of this machine.

    :raises SourceError: of kind ``source``
    """
    if is_content(source):
        way_out = "specify a mapping such as {'name.bin': content}, or the path of a file"
        raise SourceTypeError(f"the source is content without a file name; {way_out}")
    if not isinstance(source, Mapping):
        _check_path(source)
        return
    streams: dict[int, str] = {}
    for name, content in source.items():
        if not isinstance(name, str):
            raise SourceTypeError(f"the file name {name!r} is of type {type(name).__name__}; specify a str")
        if isinstance(content, EmptyDirectory):
            continue
        if not is_content(content):
            if isinstance(content, str):
                what = f"{quoted_path(name)}: a str, which is neither content nor surely a path"
                raise SourceTypeError(f"{what}; specify bytes for content, a pathlib.Path for a file or directory")
            _check_path(content)
        elif hasattr(content, "read") and (other := streams.setdefault(id(content), name)) is not name:
            # It can be read once: the second file would be empty.
            what = f"{quoted_path(other)} and {quoted_path(name)} are the same open file"
            raise SourceError("source", f"{what}; specify its content as bytes, or a path")


def _check_path(source: object) -> None:
    if not isinstance(source, (str, os.PathLike)):
        what = f"the source is of type {type(source).__name__}"
        raise SourceTypeError(f"{what}; specify a path, or a mapping of file names to content or paths")
    try:
        path = os.fsencode(source)
    except UnicodeEncodeError:
        raise SourceError("source", f"{quoted(os.fspath(source))}: no file can have this name") from None
    if b"\0" in path:
        raise SourceError("source", f"{quoted(path)}: the path contains a NUL character")


def is_content(source: object) -> bool:
    """Return whether a source is content, not a path or a mapping: bytes, or an open file."""
    return isinstance(source, (bytes, bytearray, memoryview)) or hasattr(source, "read")


def open_files(source: ObjectSource) -> list[str]:
    """Return the names of the files of a source that are open files, which can be read once."""
    return [name for name, content in source.items() if hasattr(content, "read")] if isinstance(source, Mapping) else []


def select_source(
    store: str,
    identifier: str | bytes,
    source: ObjectSource,
    exclude: Sequence[str] | str,
    one_file_system: bool,
    links: str,
) -> tuple[ObjectSource, tuple[Problem, ...]]:
    """Return a source without the files and directories that are left out, and a problem for each of these.

    :param exclude: globs; the source itself and the names of a mapping are not compared with them
    :param one_file_system: leave out directories on other file systems than the source, or its item in a mapping
    :param links: ``"refuse"`` or ``"follow"`` symbolic links
    :raises ObjectError: the source cannot be stored
    """
    matches = glob_matcher(exclude) if exclude else lambda _name: False
    device: int | None = None
    excluded: list[Problem] = []

    def is_excluded(folder: bytes, directory: bytes, entry: DirectoryEntry) -> bool:
        if not matches(decode_fs(entry.name)) and not is_elsewhere(directory, entry):
            return False
        path = os.path.join(folder, entry.name)
        excluded.append(problem("excluded", path, f"{quoted_path(path)} is left out"))
        return True

    def is_elsewhere(directory: bytes, entry: DirectoryEntry) -> bool:
        if device is None or entry.kind != "directory":
            return False
        with contextlib.suppress(OSError):  # reading it meets the reason, too
            return os.stat(os.path.join(directory, entry.name)).st_dev != device
        return False

    selected: dict[str, Any] = {}
    with object_errors(store, identifier):
        check_source(source)
        for name, content in source.items() if isinstance(source, Mapping) else [("", source)]:
            local = b"" if is_content(content) else os.fsencode(content)  # type: ignore[arg-type]
            if not is_directory(local):
                selected[name] = content
                continue
            top = real_path(local)
            device = os.stat(top).st_dev if one_file_system else None
            for inside, path, entries in source_tree(
                top, encode_fs(name), b"", links == "follow", is_excluded=is_excluded
            ):
                if entries is None or not os.listdir(path):
                    selected[decode_fs(inside)] = Path(os.fsdecode(path))
    return (selected, tuple(excluded)) if excluded else (source, ())


class SourceEntry(NamedTuple):
    """A file or directory of a source.

    :ivar name: its name in the object
    :ivar content: the path of a file, or its content; :data:`None` for a directory
    :ivar is_empty: whether it is a directory without entries
    """

    name: bytes
    content: bytes | Content | None
    is_empty: bool = False


def source_entries(
    source: AnySource, target: bytes, follow: bool, *, deepest: int | None = None
) -> Iterator[SourceEntry]:
    """Yield the files and directories of a source, a directory before its content; not a directory that is the source.

    :param source: as for :meth:`pressmark.stores.Store.put`, or the path of a file or directory as bytes
    :param target: the destination of a copy, which must not be inside the source
    :param follow: follow symbolic links; a link that is the source itself stands for its target, under the link's name
    :param deepest: as for :func:`source_tree`
    :raises SourceError: the source cannot be stored
    """
    if not isinstance(source, Mapping):
        alone = os.path.basename(os.fsencode(source))
        yield from _entries_of(os.fsdecode(source), b"", target, follow, alone, deepest)
        return
    seen = set()
    for logical, content in source.items():
        for entry in _entries_of(content, encode_fs(logical), target, follow, b"", deepest):
            if entry.content is not None:
                if entry.name in seen:
                    raise SourceError("bad-name", f"{quoted_path(entry.name)} is specified twice")
                seen.add(entry.name)
            yield entry


def _entries_of(
    content: Any, inside: bytes, target: bytes, follow: bool, alone: bytes, deepest: int | None
) -> Iterator[SourceEntry]:
    """Yield the entries of one item of a source: see :func:`source_tree`."""
    if is_content(content):
        yield SourceEntry(inside, Content(content, inside))
        return
    if isinstance(content, EmptyDirectory):
        yield SourceEntry(inside, None, True)
        return
    top = real_path(os.fsencode(content))
    for name, path, entries in source_tree(top, inside, target, follow, alone=alone, deepest=deepest):
        if entries is None:
            yield SourceEntry(name, path)
        elif name:
            yield SourceEntry(name, None, not entries)


def plain_entries(sources: Sequence[AnySource], target: bytes) -> list[tuple[list[SourceEntry], int, int] | None]:
    """Return entries, size and device of each source that is a plain directory; :data:`None` for any other.

    Many are read in one call. Plain means a few regular files and directories, not deep, on one file system.

    :param target: as for :func:`source_entries`
    """
    found: list[tuple[list[SourceEntry], int, int] | None] = [None] * len(sources)
    paths = {n: os.fsencode(one) for n, one in enumerate(sources) if isinstance(one, (str, bytes, os.PathLike))}
    if not paths:
        return found
    tops = dict(zip(paths, real_paths(paths.values()), strict=True))
    read = (
        (batch.sizes, batch.folder_inodes, tree)
        for batch in trees(b"", list(tops.values()), _LISTED, 1)
        for tree in batch.trees
    )
    # A source that contains the directory of the copies is refused by a walk.
    device, inode = -1, -1
    with contextlib.suppress(OSError):  # no permission to look
        device, inode = _identity(os.path.dirname(target))
    for (number, top), (sizes, inodes, tree) in zip(tops.items(), read, strict=True):
        if tree.state != "whole" or tree.others:
            continue
        inside = cast("dict[bytes, int]", tree.directories)
        if tree.device == device and (tree.inode == inode or inode in [inodes[one] for one in inside.values()]):
            continue
        empty = set(tree.empty)
        folders = [SourceEntry(name, None, name in empty) for name in inside]
        files = [SourceEntry(name, b"%b/%b" % (top, name)) for name in cast("dict[bytes, int]", tree.files)]
        found[number] = folders + files, sum([sizes[one] for one in tree.files.values()]), tree.device
    return found


def source_tree(
    path: bytes,
    name: bytes,
    target: bytes,
    follow: bool,
    *,
    alone: bytes = b"",
    deepest: int | None = None,
    above: tuple[tuple[int, int], ...] = (),
    is_excluded: Callable[[bytes, bytes, DirectoryEntry], bool] = lambda _name, _path, _entry: False,
    again: _Again | None = None,
) -> Iterator[tuple[bytes, bytes, list[DirectoryEntry] | None]]:
    """Walk a file or directory of a source, in the order of the names' bytes, a directory before its content.

    :param path: the file or directory, from :func:`~pressmark.fs.beneath.real_path`
    :param name: name in the object; empty if the content is the whole object
    :param target: the destination of the copy
    :param follow: follow symbolic links below ``path``
    :param alone: the name of a file that is the whole object
    :param deepest: maximal depth of directories; :data:`None` for the limit of Python's stack
    :param above: devices and inodes of the directories above
    :param is_excluded: returns whether to leave out an entry of the directory with a name in the object and a path
    :param again: the directories before this one
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
        entries = [entry for entry in listed if not is_excluded(name, path, entry)]
    except OSError as error:
        number = error.errno or 0
        raise UnreadableSourceError(failed_outcome(path, kind_of_error(number, path), number)) from None
    identity = (status.st_dev, status.st_ino)
    if identity in above:
        raise SourceError("source", f"{quoted_path(path)}: {message_of('directory-loop')}; move it out of the source")
    if len(above) == deepest:
        what = f"{quoted_path(path)}: directories are nested more than {deepest} levels deep"
        raise SourceError("source", f"{what}; pack it into one file, or move it out of the source")
    if follow:
        again = again or _Again()
        again.note(path, identity, len(entries))
    yield name, path, entries
    for entry in entries:
        inside = name + b"/" + entry.name if name else entry.name
        below = os.path.join(path, entry.name)
        if entry.kind == "directory":
            if entry.is_link:
                refuse_within(below, target)
            yield from source_tree(
                below,
                inside,
                target,
                follow,
                deepest=deepest,
                above=(*above, identity),
                is_excluded=is_excluded,
                again=again,
            )
        elif entry.kind == "file":
            yield inside, below, None
        else:
            raise SourceError("source", f"{quoted_path(below)}: {_why_no_file(entry, below)}")


class _Again:
    """The directories of a source so far, to limit what links lead to more than once."""

    def __init__(self) -> None:
        self._seen: set[tuple[int, int]] = set()
        self._left = LINKED

    def note(self, path: bytes, identity: tuple[int, int], names: int) -> None:
        """Count the names of a directory if it was walked before.

        :raises SourceError: these are too many
        """
        if identity in self._seen:
            self._left -= names + 1
            if self._left < 0:
                what = f"{quoted_path(path)}: links lead to more than {LINKED:,} names that are in the source already"
                raise SourceError("source", f"{what}; move links between directories out of the source")
        self._seen.add(identity)


def _why_no_file(entry: DirectoryEntry, path: bytes) -> str:
    if entry.kind == "link":
        return f"{message_of('link')}; follow links ({option('links', 'follow')}), or move it out of the source"
    try:
        kind = kind_of_mode(os.stat(path).st_mode)
        why = message_of(kind) if kind else "not a regular file"
    except OSError as error:
        number = error.errno or 0
        why = message_of(kind_of_error(number, path), number)
    return f"{why}; move it out of the source"


def refuse_within(path: bytes, target: bytes) -> None:
    """Refuse to copy a directory into itself.

    :raises SourceError: ``target`` is inside ``path``
    """
    with contextlib.suppress(OSError):  # no permission to look
        status = os.stat(path)
        if not stat.S_ISDIR(status.st_mode):
            return
        if (status.st_dev, status.st_ino) in _identities_above(os.path.dirname(target)):
            what = f"{quoted_path(path)}: cannot copy a directory into itself; specify its content instead"
            raise SourceError("source", what)


def _identities_above(directory: bytes) -> frozenset[tuple[int, int]]:
    """Return devices and inodes of a directory and those above it.

    They identify directories by any name: for small objects, resolving paths would take a tenth of the time.
    """
    identities: set[tuple[int, int]] = set()
    with contextlib.suppress(OSError):  # no permission to look
        identity = _identity(directory)
        while identity not in identities:  # the root directory is above itself
            identities.add(identity)
            directory += b"/.."
            identity = _identity(directory)
    return frozenset(identities)


def _identity(path: bytes) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


# --- copies ---------------------------------------------------------------------------------------------------------

#: The key of a file, the path of its source or its content, and the path of its copy.
Task = tuple[Any, bytes | Content, bytes]
_CopyTask = tuple[tuple["SourceCopy", Any], bytes | Content, bytes]


class SourceCopy:
    """A source that is copied into a new directory.

    :param source: as for :meth:`pressmark.stores.Store.put`, or the path of a file or directory as bytes
    :param target: the new directory
    :param links: ``"refuse"`` or ``"follow"`` symbolic links in the source; a link that is the source itself is
        followed
    :param algorithms: algorithms of the digests of the files
    :param on_file: called with each file's name below ``target`` and its outcome; an exception is its error
    :param threads: number of files that are copied at a time; :data:`None` for one per core

    :ivar entries: of the source, if they are known
    :ivar expected: size of the source in bytes, if it is known, like its ``device``
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
        source: AnySource,
        target: bytes,
        links: str,
        *,
        algorithms: tuple[str, ...] = (),
        on_file: Callable[[bytes, Outcome], object] | None = None,
        threads: int | None = None,
    ) -> None:
        self.source = source
        self.target = target
        self.links = links
        self.algorithms = algorithms
        self.threads = threads
        self.entries: Iterable[SourceEntry] | None = None
        #: Whether the files are in a bucket: several are opened at a time.
        self.is_remote = isinstance(source, Mapping) and is_remote(next(iter(source.values()), None))
        self.expected: int | None = None
        self.device: int | None = None
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
                raise SourceError("bad-name", f"{quoted_path(name)} is not a valid file name in an object")
            target = b"%b/%b" % (self.target, name)
            self.note_path(name)
            if content is None:
                os.makedirs(target, exist_ok=True)
                continue
            if b"/" in name and isinstance(self.source, Mapping):
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

    @classmethod
    def end(cls, copies: Sequence[Any]) -> None:
        """Look at sources once more whose files were copied together, before the first of them is completed."""

    def raise_error(self) -> None:
        """Raise the error of the copy, if any."""
        if self.error is not None:
            raise self.error


class Copier:
    """Copies the sources of objects: the result for a device is remembered.

    :param mode: as for :func:`pressmark.fixity.copying.copy_files`
    :param copied: devices where sharing blocks was tried, and files were copied; more are added
    :param take: called with each file before it is copied: returns it, or the outcome if it has copied the file itself
    :param fetch: called with each content in a bucket before that, in several threads: as ``take``
    """

    def __init__(
        self,
        mode: str,
        copied: set[int],
        take: Callable[[SourceCopy, bytes | Content, bytes], bytes | Content | Outcome] = lambda _copy, file, _to: file,
        fetch: Callable[[SourceCopy, Any, bytes], Any] = lambda _copy, content, _to: opened(content),
    ) -> None:
        self._mode = mode
        self._copied = copied
        self._take = take
        self._fetch = fetch

    def copy(self, copies: Sequence[SourceCopy], together: int | None = None) -> Iterator[SourceCopy]:
        """Copy sources, and yield each once it is copied, in order; with the error, if any.

        :param together: maximal size in bytes of sources that are copied before the first of them is yielded; one of
            unknown size is copied alone
        """
        unknown = [copy for copy in copies if copy.entries is None]
        target = unknown[0].target if unknown else b""
        for copy, found in zip(unknown, plain_entries([copy.source for copy in unknown], target), strict=True):
            if found is not None:
                copy.entries, copy.expected, copy.device = found
            elif len(copies) > 1:
                copy.expected, copy.device = _size_and_device(copy.source)
        for (mode, *_how), alike in groupby(copies, self._how):
            for some in [list(alike)] if together is None else _cut(alike, together):
                self._stream(some, mode)
                yield from some

    def note(self, source: object, mode: str, used: str | None) -> None:
        """Record how the files of a source were transferred; only this shows whether a device can share blocks."""
        if mode == "auto" and used == "copy":
            self._copied.add(_device_of(source))

    def _how(self, copy: SourceCopy) -> tuple[Any, ...]:
        """Return the mode of a source, and everything else in which sources that are copied together are alike."""
        mode = self._mode
        if mode == "auto" and self._copied:
            device = _device_of(copy.source) if copy.device is None else copy.device
            mode = "copy" if device in self._copied else mode
        # Whether blocks can be shared is found out for each device; few file systems can.
        how = (mode, type(copy), copy.algorithms, copy.links, copy.is_real, copy.threads, copy.is_remote)
        return *how, 0 if mode == "copy" else id(copy)

    def _tasks(self, copies: Iterable[SourceCopy]) -> Iterator[_CopyTask]:
        for copy in copies:
            try:
                for key, content, target in copy.tasks():
                    yield (copy, key), content, target
                    if copy.error is not None:
                        break
            except Exception as error:
                copy.error = copy.error or error

    def _taken(self, tasks: Iterable[_CopyTask]) -> Iterator[tuple[tuple[SourceCopy, Any], Any, bytes]]:
        for (copy, key), content, target in tasks:
            if copy.error is None:
                try:
                    taken = self._take(copy, content, target)
                except Exception as error:
                    copy.error = copy.error or error
                else:
                    yield (copy, key), taken, target

    def _stream(self, copies: list[SourceCopy], mode: str) -> None:
        """Copy sources in one stream."""
        first = copies[0]
        used = mode

        def note(event: Event) -> None:
            nonlocal used
            if isinstance(event, Copying):
                used = event.mode
                self.note(first.source, mode, used)

        tasks = self._tasks(copies)
        if first.is_remote:
            from pressmark.buckets.requests import in_order  # slow to import

            tasks = in_order(lambda task: (task[0], self._fetch(task[0][0], task[1], task[2]), task[2]), tasks)
        stream = copy_files(
            self._taken(tasks),
            first.algorithms,
            mode=mode,
            threads=first.threads,
            links=first.links,
            real=first.is_real,
            progress=EventListener(note),
        )
        try:
            with contextlib.closing(stream) as copied:
                for (copy, key), outcome in copied:
                    if copy.error is None:
                        copy.mode = used
                        try:
                            copy.add(key, outcome)
                        except Exception as error:
                            copy.error = error
            first.end(copies)
        except Exception as error:  # that concerns all files, such as blocks that cannot be shared
            for copy in copies:
                copy.error = copy.error or error


def opened(content: Any) -> Any:
    """Return content in a bucket, which is being read from now on."""
    try:
        return Content(content.data.fetch(), content.name)
    except OSError:  # reading it meets the reason, too
        return content


def is_remote(content: object) -> bool:
    """Return whether the content of a file is in a bucket, to be read ahead."""
    return hasattr(getattr(content, "data", content), "fetch")


def _cut(copies: Iterable[SourceCopy], together: int) -> Iterator[list[SourceCopy]]:
    """Yield copies in groups of at most ``together`` bytes, one larger or of unknown size alone."""
    group: list[SourceCopy] = []
    size = 0
    for copy in copies:
        expected = together if copy.expected is None else copy.expected
        if group and size + expected > together:
            yield group
            group, size = [], 0
        group.append(copy)
        size += expected
    if group:
        yield group


def _size_and_device(source: object) -> tuple[int | None, int | None]:
    """Return size and device of a source; both are :data:`None` unless it consists of a few files and bytes."""
    size = 0
    device: int | None = None
    for content in source.values() if isinstance(source, Mapping) and len(source) <= _LISTED.entries else [source]:
        if isinstance(content, (bytearray, memoryview)) or (content is not source and isinstance(content, bytes)):
            size += len(content)
            device = -1 if device is None else device
            continue
        try:
            status = os.stat(content)  # type: ignore[arg-type]
        except (OSError, TypeError, ValueError):
            return None, None
        if not stat.S_ISREG(status.st_mode):
            return None, None
        size += status.st_size
        device = status.st_dev if device is None else device
    return size, device


def _device_of(source: object) -> int:
    """Return the device of a source, or of the first file or directory of a mapping; -1 if there is none."""
    if isinstance(source, Mapping):
        source = next(iter(source.values()), None)
        source = None if isinstance(source, bytes) else source  # content
    if isinstance(source, (str, bytes, os.PathLike)):
        with contextlib.suppress(OSError):  # reported by reading it
            return os.stat(source).st_dev
    return -1
