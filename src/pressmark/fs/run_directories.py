"""Private directories of concurrent runs in a shared directory, on the file system of the store.

New files are written to the private directory of the run and moved to their paths by one rename. Old files are moved to
it by one rename and then removed. A lock in the shared directory, held for a moment, serialises the moves of all runs.

::

    <shared>/ next to the objects; skipped by walks
    ├── lock                    held during moves
    └── <run>/                  private to the run that holds its lock
        ├── lock
        └── …

The private directory of a killed run is removed by the next run, which finds its lock free.
"""

from __future__ import annotations

import contextlib
import errno
import os
from types import TracebackType

from pressmark.fs.locks import FileLock, lock_descriptor
from pressmark.fs.moves import TRIES
from pressmark.fs.owners import is_own, make_shared, require_shared
from pressmark.fs.removal import remove_tree

__all__ = ["LOCK", "RunDirectory", "clear", "kind_of_leftover", "leftovers", "own_leftovers"]

LOCK = b"lock"
# Other users may check the lock in a private directory, but neither list nor change it.
_MODE = 0o711
_LOOK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class RunDirectory:
    """The private directory of a run in the shared directory ``folder``; a context manager.

    Entering it removes the directories of killed runs. Leaving it removes the directory, and ``folder`` if it is empty.

    :param folder: the shared directory, on the file system of the files to be moved; created if it does not exist

    :ivar path: path of the private directory
    :raises UntrustedError: ``folder`` is a symbolic link, or belongs to a user who cannot change the store
    :raises OSError: it cannot be created
    """

    def __init__(self, folder: bytes) -> None:
        self._folder = folder
        self.path = b""

    def __enter__(self) -> RunDirectory:
        for _ in range(TRIES):
            with contextlib.suppress(FileExistsError):
                make_shared(self._folder)
            # Another run may remove either directory as empty.
            with contextlib.suppress(FileNotFoundError):
                require_shared(self._folder)
                path = os.path.join(self._folder, os.urandom(8).hex().encode())
                os.mkdir(path, _MODE)
                # Wait: another run may be checking the lock.
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
        # The change is complete or undone; files that cannot be removed are left to the next run.
        with contextlib.suppress(OSError):
            for entry in os.listdir(self.path):
                if entry != LOCK:
                    remove_tree(os.path.join(self.path, entry))
        self._lock.release()
        with contextlib.suppress(OSError):
            os.rmdir(self.path)
        with contextlib.suppress(OSError):
            if os.listdir(self._folder) == [LOCK]:  # a run was killed during a move
                FileLock(os.path.join(self._folder, LOCK)).release()
            os.rmdir(self._folder)

    def lock(self, *, wait: bool = True) -> FileLock:
        """Acquire the lock for moves, and return it. It must be held for a moment only.

        :raises BlockingIOError: another run holds it, and ``wait`` is false
        """
        return FileLock(os.path.join(self._folder, LOCK), wait=wait)

    def __truediv__(self, name: bytes) -> bytes:
        return os.path.join(self.path, name)


def leftovers(folder: bytes) -> list[bytes]:
    """Return the private directories of killed runs in ``folder``. Symbolic links are not followed."""
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


def kind_of_leftover(path: bytes) -> str:
    """Return the kind of problem of a leftover directory: ``leftover``, or of another user ``leftover-foreign``."""
    try:
        own = is_own(os.lstat(path), os.path.dirname(path))
    except OSError:  # just removed
        own = True
    return "leftover" if own else "leftover-foreign"


def own_leftovers(folder: bytes) -> list[bytes]:
    """Return the :func:`leftovers` that :func:`clear` removes: those of the current user."""
    return [path for path in leftovers(folder) if kind_of_leftover(path) == "leftover"]


def _is_held(path: bytes) -> bool:
    """Return whether a living run holds a lock, without creating it."""
    try:
        try:
            descriptor = os.open(path, os.O_RDWR | _LOOK)
        except PermissionError:  # readable lock of another user
            descriptor = os.open(path, os.O_RDONLY | _LOOK)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # unknown: assume that it is held
    try:
        lock_descriptor(descriptor)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def clear(folder: bytes) -> None:
    """Remove the leftovers of killed runs of the current user in ``folder``."""
    for path in own_leftovers(folder):
        with contextlib.suppress(OSError):
            # If a run has created the directory but not the lock, it creates another directory.
            if not os.path.lexists(os.path.join(path, LOCK)) and not os.listdir(path):
                os.rmdir(path)
                continue
            with FileLock(os.path.join(path, LOCK)):
                for name in os.listdir(path):
                    if name != LOCK:
                        remove_tree(os.path.join(path, name))
            os.rmdir(path)
