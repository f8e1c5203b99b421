"""Sources of objects: files and directories, walked and copied into a new directory."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping

from pressmark.fixity.copying import CopyTask, Event, copy_files
from pressmark.fixity.outcomes import Outcome, failed_outcome
from pressmark.fs.entries import DirectoryEntry, scan
from pressmark.fs.file_errors import kind_of_error, kind_of_mode, message_of
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.stores.exceptions import SourceError, is_unsafe_name
from pressmark.stores.store import ObjectSource, Path

__all__ = ["UnreadableSourceError", "copy_source", "refuse_within", "source_tree"]

# Copying always computes a digest; this is the cheapest one.
_CHEAPEST = ("xxh3-64",)


class UnreadableSourceError(SourceError):
    """A file of a source that could not be copied.

    :ivar outcome: outcome of copying the file
    """

    def __init__(self, outcome: Outcome) -> None:
        super().__init__("source", f"{os.fsdecode(encode_fs(outcome.path))}: {outcome.message}")
        self.outcome = outcome


def copy_source(
    source: ObjectSource,
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

    :param source: a file, a directory, or a mapping of names to the files or directories to copy
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
    names: list[bytes] = []

    def jobs() -> Iterator[CopyTask]:
        os.mkdir(target)
        for name, path in _files(source, target, links == "follow"):
            names.append(name)
            yield CopyTask(path, os.path.join(target, name))

    count = 0
    copies = copy_files(jobs(), algorithms or _CHEAPEST, mode=mode, threads=threads, links=links, on_event=on_event)
    with contextlib.closing(copies):
        for outcome in copies:
            if not outcome.ok:
                raise UnreadableSourceError(outcome)
            if on_file is not None:
                on_file(names[count], outcome)
            count += 1
    if not os.path.isdir(target):  # no file at all
        os.mkdir(target)
    return count


def _files(source: ObjectSource, target: bytes, follow: bool) -> Iterator[tuple[bytes, bytes]]:
    """Yield names and paths of the files of a source, and create their directories below ``target``."""
    tops: Iterator[tuple[bytes, bytes, bytes]]
    if isinstance(source, Mapping):
        tops = ((os.path.realpath(_given(path)), _checked(encode_fs(name)), b"") for name, path in source.items())
    else:
        given = _given(source)
        # A source that is a link stands for its target, under the link's name.
        tops = iter([(os.path.realpath(given), b"", os.path.basename(given))])
    for top, inside, alone in tops:
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
) -> Iterator[tuple[bytes, bytes, list[DirectoryEntry] | None]]:
    """Walk a file or directory of a source, in the order of the names' bytes, a directory before its content.

    :param path: the file or directory; a link is followed
    :param name: name in the object; empty if the content is the whole object
    :param target: the destination of the copy
    :param follow: follow symbolic links below ``path``
    :param alone: the name of a file that is the whole object
    :param deepest: maximal depth of directories; :data:`None` for the limit of Python's stack
    :param above: devices and inodes of the directories above
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
        entries = scan(path, follow=follow)
    except OSError as error:
        number = error.errno or 0
        raise UnreadableSourceError(failed_outcome(path, kind_of_error(number, path), number)) from None
    identity = (status.st_dev, status.st_ino)
    if identity in above:
        raise SourceError("source", f"{decode_fs(path)}: {message_of('directory-loop')}; remove it from the source")
    if len(above) == deepest:
        what = f"{decode_fs(path)}: directories are nested more than {deepest} levels deep"
        raise SourceError("source", f"{what}; remove it from the source, or pack it into one file")
    yield name, path, entries
    for entry in entries:
        inside = name + b"/" + entry.name if name else entry.name
        below = os.path.join(path, entry.name)
        if entry.kind == "directory":
            if entry.is_link:
                refuse_within(below, target)
            yield from source_tree(below, inside, target, follow, deepest=deepest, above=(*above, identity))
        elif entry.kind == "file":
            yield inside, below, None
        else:
            raise SourceError("source", f"{decode_fs(below)}: {_why_no_file(entry, below)}")


def _why_no_file(entry: DirectoryEntry, path: bytes) -> str:
    if entry.kind == "link":
        return f"{message_of('link')}; follow links, or remove it from the source"
    try:
        kind = kind_of_mode(os.stat(path).st_mode)
        why = message_of(kind) if kind else "not a regular file"
    except OSError as error:
        number = error.errno or 0
        why = message_of(kind_of_error(number, path), number)
    return f"{why}; remove it from the source"


def refuse_within(path: bytes, target: bytes) -> None:
    """Refuse to copy a directory into itself.

    :raises SourceError: ``target`` is inside ``path``
    """
    if os.path.isdir(path) and _is_within(os.path.dirname(target), path):
        raise SourceError(
            "source", f"{os.fsdecode(path)}: cannot copy a directory into itself; specify its content instead"
        )


def _is_within(place: bytes, top: bytes) -> bool:
    """Return whether the directory ``place`` is ``top`` or below it, by any name.

    The directories above ``place`` are compared: for small objects, resolving both paths would take a tenth of the
    time.
    """
    with contextlib.suppress(OSError):  # no permission to look
        wanted, here = os.stat(top), os.stat(place)
        while not os.path.samestat(here, wanted):
            place += b"/.."
            below, here = here, os.stat(place)
            if os.path.samestat(here, below):  # the root directory
                return False
        return True
    return False


def _given(path: Path) -> bytes:
    return os.fsencode(os.fspath(path))


def _checked(name: bytes) -> bytes:
    if is_unsafe_name(name):
        raise SourceError("bad-name", f"{os.fsdecode(name)!r} is not a valid file name in an object")
    return name


def _make(target: bytes, relative: bytes) -> None:
    if relative:
        os.makedirs(os.path.join(target, relative), exist_ok=True)
