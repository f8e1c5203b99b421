"""What all stores do on a disk: prepare aside, move in at once, remove without a trace, and take turns.

Everything new is written into a private directory of the run, on the same file system, and moved into its place by one
rename. Everything that goes is moved out by one rename, and removed afterwards. The moves of all runs take turns, by a
lock that is held for a moment; copying does not.

::

    <workshop>/                 a directory in the store that its walk knows and passes over
    ├── lock                    held while something is moved in or out
    └── <run>/                  private to one run, as long as that holds its lock
        ├── lock
        └── …

A run that was killed leaves its private directory; the next one finds that nobody holds its lock, and removes it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import stat
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from types import TracebackType
from typing import NamedTuple

from pressmark.fixity import Outcome
from pressmark.fixity.copying import Event, Job, copy_files
from pressmark.fixity.outcomes import failure
from pressmark.fs.durable import exists, walk
from pressmark.fs.file_errors import kind_of_error, kind_of_mode, message_of
from pressmark.fs.locks import FileLock, take
from pressmark.fs.owners import is_own, make_shared, require_shared
from pressmark.fs.removal import remove_tree
from pressmark.stores.store import Path, Source, leads_out, octets, text

__all__ = [
    "LOCK",
    "NAME_MAX",
    "PATH_MAX",
    "TRIES",
    "Entry",
    "Refused",
    "Unreadable",
    "Workshop",
    "clear",
    "copy_source",
    "exchange",
    "first_link",
    "folds_case",
    "is_absent",
    "is_in_the_way",
    "kind_of_entry",
    "kind_of_leftover",
    "leftovers",
    "longest_inside",
    "make_parents",
    "misspelled",
    "own_leftovers",
    "prune_upward",
    "refuse_within",
    "rename_new",
    "scan",
    "source_tree",
    "staged",
    "tidy_upward",
    "too_long",
    "would_be_empty",
]

LOCK = b"lock"
# Of a run's private directory: others may ask whether its lock is held, and neither list nor change what is in it.
_MODE = 0o711
_LOOK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
NAME_MAX, PATH_MAX = 255, 4096  # bytes, where the system does not say; a path's NUL is counted
# Another run may remove a directory as empty while we are about to put something into it, again and again.
TRIES = 1000
# Copying always computes a digest; this one costs next to nothing.
_CHEAPEST = ("xxh3-64",)

_NOT_EMPTY = (errno.ENOTEMPTY, errno.EEXIST)


class Refused(Exception):
    """A source that cannot be stored; the store makes an ``ObjectError`` of it.

    :ivar kind: ``source`` or ``bad-name``
    :ivar reason: one line that says why, and the way out
    """

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(kind, reason)
        self.kind = kind
        self.reason = reason


class Unreadable(Refused):
    """A file of a source that could not be copied.

    :ivar outcome: what became of it
    """

    def __init__(self, outcome: Outcome) -> None:
        super().__init__("source", f"{os.fsdecode(octets(outcome.path))}: {outcome.message}")
        self.outcome = outcome


# --- looking ----------------------------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """One name in a directory.

    :ivar name: its octets
    :ivar kind: ``directory``, ``file``, ``special``, or of links that are not followed ``link``; of those that are,
        what they lead to, or ``dangling``
    :ivar is_link: whether it is a symbolic link
    """

    name: bytes
    kind: str
    is_link: bool


def scan(directory: bytes, *, follow: bool = True) -> list[Entry]:
    """Return what is in a directory, in the order of octets.

    :param follow: look at what symbolic links lead to
    :raises OSError: it cannot be read
    """
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            found.append(Entry(entry.name, kind_of_entry(entry, follow=follow), entry.is_symlink()))
    found.sort()
    return found


def kind_of_entry(entry: os.DirEntry[bytes], *, follow: bool = False) -> str:
    """Return the kind of an entry, as in :class:`Entry`.

    :param follow: look at what symbolic links lead to
    :raises OSError: nobody can say: taken for anything else, a directory would be moved or removed as that
    """
    is_link = entry.is_symlink()
    if is_link and not follow:
        return "link"
    try:
        if entry.is_dir():
            return "directory"
        if entry.is_file():
            return "file"
    except OSError:
        if not is_link:
            raise
        return "dangling"  # links that lead to each other, or where nobody may look
    return "dangling" if is_link and not os.path.exists(entry.path) else "special"


def too_long(base: bytes, relative: bytes) -> str | None:
    """Return why no file system takes the path ``relative`` below ``base``, or :data:`None`."""
    longest = max(map(len, relative.split(b"/")))
    if longest > NAME_MAX:
        return f"a name in its path would have {longest} bytes, and {NAME_MAX} are the most that file systems take"
    length = len(os.path.abspath(base)) + 1 + len(relative)
    if length >= PATH_MAX:
        return f"its path would have {length} bytes, and {PATH_MAX - 1} are the most that the system takes"
    return None


def is_absent(base: bytes, relative: bytes) -> bool:
    """Return whether the path ``relative`` below ``base`` leads to nothing, also where it is too long to be looked at.

    It is not said to be absent where all of it that can be looked at is there: by a shorter path the rest may be, too.

    :raises OSError: nobody can say
    """
    path = base
    for name in relative.split(b"/"):
        path += b"/" + name
        try:
            if len(name) > NAME_MAX or not exists(path):
                return True
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return False
            raise
    return False


def longest_inside(top: bytes) -> bytes:
    """Return the longest path in a tree, relative to it and with a slash before it; empty where nothing is in it.

    :raises OSError: a directory cannot be read
    """
    paths = (os.path.join(folder, name) for folder, folders, files in walk(top) for name in folders + files)
    return max(paths, key=len, default=top)[len(top) :]


def folds_case(directory: bytes) -> bool:
    """Return whether ``directory``, whose name has letters, can be had in the other case too: names clash by case."""
    parent, name = os.path.split(os.path.abspath(directory))
    other = name.swapcase()
    try:
        return other != name and os.path.samestat(
            os.lstat(os.path.join(parent, other)), os.lstat(os.path.join(parent, name))
        )
    except OSError:
        return False


def misspelled(base: bytes, relative: bytes) -> bytes | None:
    """Return the part of the path ``relative`` below ``base`` that is there under another spelling, or :data:`None`.

    To be asked where :func:`folds_case`: a name is there, and the directory that holds it lists it otherwise.
    """
    at = base
    for name in relative.split(b"/"):
        path = os.path.join(at, name)
        if not os.path.lexists(path):
            return None
        if name not in os.listdir(at):
            return os.path.relpath(path, base)
        at = path
    return None


def first_link(base: bytes, relative: bytes) -> bytes | None:
    """Return the part of the path ``relative`` below ``base`` that is a symbolic link, the first; or :data:`None`."""
    at = b""
    for name in relative.split(b"/"):
        at = os.path.join(at, name)
        if os.path.islink(os.path.join(base, at)):
            return at
    return None


# --- moving -----------------------------------------------------------------------------------------------------------


_NOREPLACE, _EXCHANGE = 1, 2  # linux/fs.h


@cache
def _renameat2() -> Callable[[bytes, bytes, int], int] | None:
    """Return what the C library offers for moves that never replace; :data:`None` where it offers nothing."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None
    here = -100  # AT_FDCWD
    return lambda old, new, flags: function(here, old, here, new, flags)


def _rename_by(flags: int, old: bytes, new: bytes) -> bool:
    """Rename with Linux's flags; False where the system or the file system does not know them."""
    rename = _renameat2()
    if rename is None:
        return False
    if rename(old, new, flags) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), old, None, new)


def rename_new(old: bytes, new: bytes) -> None:
    """Rename ``old`` to ``new``, which must not be there, not even as an empty directory.

    :raises FileExistsError: it is there
    """
    if _rename_by(_NOREPLACE, old, new):
        return
    # All runs of ours take turns here; what comes between is a stranger.
    if exists(new):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
    os.rename(old, new)


def exchange(one: bytes, other: bytes) -> bool:
    """Give each the other's name at once; False where the file system cannot."""
    return _rename_by(_EXCHANGE, one, other)


def is_in_the_way(path: bytes) -> bool:
    """Return whether there is something that is no directory; asked once, since other runs make and remove them."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    return not (stat.S_ISDIR(mode) or (stat.S_ISLNK(mode) and os.path.isdir(path)))


def make_parents(base: bytes, relative: bytes) -> list[bytes]:
    """Make the directories of the path ``relative`` below ``base`` that are not there.

    Another run may remove them as empty meanwhile; then they are made again.

    :return: those that were made, relative to ``base``
    :raises OSError: a directory cannot be made, or something else has its name
    """
    names = relative.split(b"/")
    for _ in range(TRIES):
        made = []
        try:
            for depth in range(1, len(names) + 1):
                path = os.path.join(base, *names[:depth])
                try:
                    os.mkdir(path)
                    made.append(b"/".join(names[:depth]))
                except FileExistsError:
                    if is_in_the_way(path):
                        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None
        except FileNotFoundError:
            if not os.path.isdir(base):
                raise
            continue
        return made
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), base)


def prune_upward(base: bytes, relative: bytes, removed: list[bytes] | None = None) -> list[bytes]:
    """Remove the directory ``relative`` below ``base`` if it is empty, then those above it; never ``base`` itself.

    :param removed: where the paths go that were removed, also where the one above them cannot be
    :return: the paths, relative to ``base``, that were removed
    :raises OSError: a directory is empty and cannot be removed; it is the error's ``filename``
    """
    removed = [] if removed is None else removed
    while relative:
        try:
            os.rmdir(os.path.join(base, relative))
            removed.append(relative)
        except FileNotFoundError:
            pass  # another run did
        except OSError as error:
            if error.errno in (*_NOT_EMPTY, errno.EBUSY, errno.ENOTDIR):
                break
            raise
        relative = os.path.dirname(relative)
    return removed


def tidy_upward(base: bytes, relative: bytes) -> None:
    """Prune as :func:`prune_upward` does, as far as the system allows: for a change that is made already, or undone.

    That it is made would not be true otherwise. An empty directory that remains is a check's to report.
    """
    with contextlib.suppress(OSError):
        prune_upward(base, relative)


def would_be_empty(directory: bytes, relative: bytes, gone: Collection[bytes]) -> bool:
    """Return whether a directory that is there holds nothing but what a dry run would have removed.

    :param relative: its path, as those in ``gone`` are
    """
    try:
        return all(os.path.join(relative, name) in gone for name in os.listdir(directory))
    except FileNotFoundError:  # another run has removed it
        return False


# --- taking turns -----------------------------------------------------------------------------------------------------


class Workshop:
    """A private directory of one run, below the directory ``folder``; a context manager.

    Entering it removes what killed runs have left there. Leaving it removes what is in it, and ``folder`` where that is
    empty then.

    :param folder: in the store, on the file system of what is to be moved; it is made where it is not there

    :ivar path: the private directory
    :raises UntrustedError: ``folder`` is a symbolic link, or of another user who may not change the store otherwise
    :raises OSError: it cannot be made
    """

    def __init__(self, folder: bytes) -> None:
        self._folder = folder
        self.path = b""

    def __enter__(self) -> Workshop:
        for _ in range(TRIES):
            with contextlib.suppress(FileExistsError):
                make_shared(self._folder)
            # Another run may remove either as empty meanwhile.
            with contextlib.suppress(FileNotFoundError):
                require_shared(self._folder)
                path = os.path.join(self._folder, secrets.token_hex(8).encode())
                os.mkdir(path, _MODE)
                # Waiting: somebody may be asking this moment whether it is held.
                self._lock = FileLock(os.path.join(path, LOCK), wait=True)
                self.path = path
                break
        else:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), self._folder)
        clear(self._folder)
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        # What cannot be removed now is removed by the next run: the change itself is made or not made already.
        with contextlib.suppress(OSError):
            for entry in os.listdir(self.path):
                if entry != LOCK:
                    remove_tree(os.path.join(self.path, entry))
        self._lock.release()
        with contextlib.suppress(OSError):
            os.rmdir(self.path)
        with contextlib.suppress(OSError):
            if os.listdir(self._folder) == [LOCK]:  # a run was killed in its turn
                FileLock(os.path.join(self._folder, LOCK)).release()
            os.rmdir(self._folder)

    def turn(self, *, wait: bool = True) -> FileLock:
        """Wait for our turn to move things in and out, and return its lock; to be held for a moment.

        :raises BlockingIOError: it is another run's, and ``wait`` is false
        """
        return FileLock(os.path.join(self._folder, LOCK), wait=wait)

    def __truediv__(self, name: bytes) -> bytes:
        return os.path.join(self.path, name)


def leftovers(folder: bytes) -> list[bytes]:
    """Return the private directories in ``folder`` that no living run owns; nothing behind a symbolic link is one."""
    found: list[bytes] = []
    if os.path.islink(folder):
        return found
    try:
        entries = sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    for name in entries:
        path = os.path.join(folder, name)
        is_run = name != LOCK and os.path.isdir(path) and not os.path.islink(path)
        if is_run and not _is_held(os.path.join(path, LOCK)):
            found.append(path)
    return found


def staged(folder: bytes) -> list[bytes]:
    """Return what living runs prepare or remove in their private directories in ``folder``."""
    found: list[bytes] = []
    dead = leftovers(folder)
    with contextlib.suppress(OSError):
        for run in (os.path.join(folder, name) for name in os.listdir(folder) if name != LOCK):
            if run not in dead:
                with contextlib.suppress(OSError):
                    found += [os.path.join(run, name) for name in os.listdir(run) if name != LOCK]
    return found


def kind_of_leftover(path: bytes) -> str:
    """Return how a check calls what a killed run has left: that of another user is not ours to remove."""
    try:
        own = is_own(os.lstat(path), os.path.dirname(path))
    except OSError:  # it has just gone
        own = True
    return "leftover" if own else "leftover-foreign"


def own_leftovers(folder: bytes) -> list[bytes]:
    """Return those of :func:`leftovers` that :func:`clear` removes: other users' own what is in theirs."""
    return [path for path in leftovers(folder) if kind_of_leftover(path) == "leftover"]


def _is_held(path: bytes) -> bool:
    """Return whether a living run holds a lock, without taking or making it."""
    try:
        try:
            descriptor = os.open(path, os.O_RDWR | _LOOK)
        except PermissionError:  # another user's, which may be read
            descriptor = os.open(path, os.O_RDONLY | _LOOK)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # nobody can say: it is left alone
    try:
        take(descriptor)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def clear(folder: bytes) -> None:
    """Remove what killed runs of ours have left in ``folder``."""
    for path in own_leftovers(folder):
        with contextlib.suppress(OSError):
            # A run that has made its directory and not its lock yet makes another one.
            if not os.path.lexists(os.path.join(path, LOCK)) and not os.listdir(path):
                os.rmdir(path)
                continue
            with FileLock(os.path.join(path, LOCK)):
                for name in os.listdir(path):
                    if name != LOCK:
                        remove_tree(os.path.join(path, name))
            os.rmdir(path)


# --- copying ----------------------------------------------------------------------------------------------------------


def copy_source(
    source: Source,
    target: bytes,
    *,
    mode: str = "auto",
    links: str = "refuse",
    threads: int | None = None,
    algorithms: tuple[str, ...] = (),
    on_file: Callable[[bytes, Outcome], object] | None = None,
    on_event: Callable[[Event], object] | None = None,
) -> int:
    """Copy what a source is made of into the new directory ``target``.

    :param source: a file, a directory, or names and the files or directories that are copied there
    :param mode: as in :func:`pressmark.fixity.copying.copy_files`
    :param links: symbolic links: ``"refuse"`` or ``"follow"``; what the source itself names is followed
    :param algorithms: of the digests that ``on_file`` gets
    :param on_file: called with each file's name below ``target``, and its outcome
    :param on_event: called with the events of :func:`pressmark.fixity.copying.copy_files`
    :return: how many files there are
    :raises Refused: the source cannot be stored
    :raises OSError: the copy cannot be written
    """
    names: list[bytes] = []

    def jobs() -> Iterator[Job]:
        os.mkdir(target)
        for name, path in _files(source, target, links == "follow"):
            names.append(name)
            yield Job(path, os.path.join(target, name))

    count = 0
    outcomes = copy_files(jobs(), algorithms or _CHEAPEST, mode=mode, threads=threads, links=links, on_event=on_event)
    for outcome in outcomes:
        if not outcome.ok:
            raise Unreadable(outcome)
        if on_file is not None:
            on_file(names[count], outcome)
        count += 1
    if not os.path.isdir(target):  # no file at all
        os.mkdir(target)
    return count


def _files(source: Source, target: bytes, follow: bool) -> Iterator[tuple[bytes, bytes]]:
    """Give names and files of a source, and make the directories for them below ``target``."""
    tops: Iterator[tuple[bytes, bytes, bytes]]
    if isinstance(source, Mapping):
        tops = ((os.path.realpath(_given(path)), _checked(octets(name)), b"") for name, path in source.items())
    else:
        given = _given(source)
        # Whoever names a link means what it leads to, under the link's name.
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
) -> Iterator[tuple[bytes, bytes, list[Entry] | None]]:
    """Go through a file or directory of a source, a directory before what is in it, by the octets of the names.

    :param path: of it; if that is a link, it is followed
    :param name: that it has in the object; empty where what is in it is all of the object
    :param target: where it is copied to
    :param follow: symbolic links below it
    :param alone: the name of a file that is all of the object
    :param deepest: how many directories may lie below each other; :data:`None` for as many as Python's stack takes
    :param above: devices and numbers of the directories above
    :return: names, paths, and of directories what is in them; :data:`None` of files, and of whatever else ``path`` is
    :raises Refused: it cannot be stored
    """
    if not above:
        refuse_within(path, target)
    try:
        status = os.stat(path)
        if not above and not stat.S_ISDIR(status.st_mode):
            yield name or alone, path, None  # what it is, the copying finds out
            return
        entries = scan(path, follow=follow)
    except OSError as error:
        number = error.errno or 0
        raise Unreadable(failure(path, kind_of_error(number, path), number)) from None
    identity = (status.st_dev, status.st_ino)
    if identity in above:
        raise Refused("source", f"{text(path)}: {message_of('directory-loop')}; leave it out")
    if len(above) == deepest:
        what = f"{text(path)}: more than {deepest} directories lie below each other there"
        raise Refused("source", f"{what}; leave it out, or pack it into one file")
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
            raise Refused("source", f"{text(below)}: {_why_no_file(entry, below)}")


def _why_no_file(entry: Entry, path: bytes) -> str:
    if entry.kind == "link":
        return f"{message_of('link')}; follow links, or leave it out"
    try:
        kind = kind_of_mode(os.stat(path).st_mode)
        why = message_of(kind) if kind else "it is no file"
    except OSError as error:
        number = error.errno or 0
        why = message_of(kind_of_error(number, path), number)
    return f"{why}; leave it out"


def refuse_within(path: bytes, target: bytes) -> None:
    """Refuse to copy a directory to a place inside of it: the copy would be copied, too.

    :raises Refused: ``target`` is inside of ``path``
    """
    if os.path.isdir(path) and _is_within(os.path.dirname(target), path):
        raise Refused("source", f"{os.fsdecode(path)}: it would be copied into itself; name what is in it")


def _is_within(place: bytes, top: bytes) -> bool:
    """Return whether the directory ``place`` is ``top`` or below it, by whatever names.

    Asked of the directories above: of small objects, real paths of both would cost a tenth of all that is done.
    """
    with contextlib.suppress(OSError):  # where nobody may look
        wanted, here = os.stat(top), os.stat(place)
        while not os.path.samestat(here, wanted):
            place += b"/.."
            below, here = here, os.stat(place)
            if os.path.samestat(here, below):  # the uppermost
                return False
        return True
    return False


def _given(path: Path) -> bytes:
    return os.fsencode(os.fspath(path))


def _checked(name: bytes) -> bytes:
    if leads_out(name):
        raise Refused("bad-name", f"{os.fsdecode(name)!r} is no name of a file within an object")
    return name


def _make(target: bytes, relative: bytes) -> None:
    if relative:
        os.makedirs(os.path.join(target, relative), exist_ok=True)
