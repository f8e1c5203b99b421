"""Private directories of runs in a shared one: prepare aside, move in at once, remove without a trace, take turns.

Everything new is written into a private directory of the run, on the same file system, and moved into its place by one
rename. Everything that goes is moved out by one rename, and removed afterwards. The moves of all runs take turns, by a
lock that is held for a moment; copying does not.

::

    <shared>/                   beside what is changed; walks know it and pass over it
    ├── lock                    held while something is moved in or out
    └── <run>/                  private to one run, as long as that holds its lock
        ├── lock
        └── …

A run that was killed leaves its private directory; the next one finds that nobody holds its lock, and removes it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from types import TracebackType

from pressmark.fs.locks import FileLock, lock_descriptor
from pressmark.fs.moves import TRIES
from pressmark.fs.owners import is_own, make_shared, require_shared
from pressmark.fs.removal import remove_tree

__all__ = ["LOCK", "RunDirectory", "clear", "kind_of_leftover", "leftovers", "own_leftovers", "staged"]

LOCK = b"lock"
# Of a run's private directory: others may ask whether its lock is held, and neither list nor change what is in it.
_MODE = 0o711
_LOOK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class RunDirectory:
    """A private directory of one run, below the directory ``folder``; a context manager.

    Entering it removes what killed runs have left there. Leaving it removes what is in it, and ``folder`` where that is
    empty then.

    :param folder: beside what is to be moved, on its file system; it is made where it is not there

    :ivar path: the private directory
    :raises UntrustedError: ``folder`` is a symbolic link, or of another user who may not change the store otherwise
    :raises OSError: it cannot be made
    """

    def __init__(self, folder: bytes) -> None:
        self._folder = folder
        self.path = b""

    def __enter__(self) -> RunDirectory:
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

    def lock(self, *, wait: bool = True) -> FileLock:
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
        lock_descriptor(descriptor)
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
