"""Hidden directories of changes: private ones, locked while a run uses them, alone or in a directory that runs share.

A fixed name shows the leftovers of a killed run to the next run. Because other users know such a name, the directory is
checked for its owner, and on Linux all paths in it start with its descriptor.

The runs that change a store create private directories in a shared one, on the file system of the store. New files are
written to the private directory of the run and moved to their paths by one rename. Old files are moved to it by one
rename and then removed. A lock in the shared directory, held for a moment, serialises the moves of all runs.

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
import stat
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from pressmark.fs.durable import exists
from pressmark.fs.locks import FileLock, lock_descriptor
from pressmark.fs.moves import TRIES, remove_tree, rename_new
from pressmark.fs.owners import UntrustedError, is_own, make_shared, require_private, require_shared

__all__ = [
    "LOCK",
    "NewPath",
    "RunDirectory",
    "StagingDirectory",
    "clear",
    "kind_of_leftover",
    "leftovers",
    "lock_shared",
    "own_leftovers",
]

LOCK = b"lock"
# Private to a run in a shared directory: other users may check the lock in it, but neither list nor change it.
_RUN_MODE = 0o711
_LOOK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_OPEN = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_HAS_DESCRIPTORS = os.open in os.supports_dir_fd and os.rename in os.supports_dir_fd


class StagingDirectory:
    """A locked private directory, new or left by a killed run; a context manager.

    :param path: path of the directory; its parent exists
    :param holds: the names that a killed run may leave in it, except the lock; :data:`None` for any

    :ivar path: path of the directory
    :ivar inside: path of the directory for accessing files in it
    :raises BlockingIOError: another run uses it
    :raises UntrustedError: it belongs to another user, others may write to it, or a run did not create it
    :raises OSError: it cannot be created
    """

    def __init__(self, path: bytes, *, holds: frozenset[bytes] | None = None) -> None:
        self.path = self.inside = path
        self._descriptor = -1
        is_new = False
        for _ in range(TRIES):
            with contextlib.suppress(FileExistsError):
                is_new = False
                os.mkdir(path, 0o700)
                is_new = True
            try:
                self._open()
                if holds is not None:
                    self._check_names(holds)
                self._lock = FileLock(os.path.join(self.inside, LOCK))
                return
            except FileNotFoundError:  # just removed by another run
                self._close()
            except BaseException as error:
                if isinstance(error, OSError) and error.filename is not None:
                    error.filename = self.shown(error.filename)
                self._close()
                if is_new:
                    with contextlib.suppress(OSError):  # another run uses it
                        os.rmdir(path)
                raise
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.leave()

    def _open(self) -> None:
        if not _HAS_DESCRIPTORS:
            require_private(self.path, os.lstat(self.path))
            return
        try:
            self._descriptor = os.open(self.path, _OPEN)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENOTDIR, errno.EACCES):
                require_private(self.path, os.lstat(self.path))  # raises with the reason
            raise
        require_private(self.path, os.fstat(self._descriptor))
        if sys.platform.startswith("linux"):
            inside = b"/proc/self/fd/%d" % self._descriptor
            with contextlib.suppress(OSError):  # /proc need not be mounted
                if os.path.samestat(os.stat(inside), os.fstat(self._descriptor)):
                    self.inside = inside

    def _check_names(self, holds: frozenset[bytes]) -> None:
        names = set(os.listdir(self.inside))
        # A run creates the lock first and removes it last. A directory without one is another directory, renamed.
        if names and (LOCK not in names or names - holds - {LOCK}):
            raise UntrustedError(self.path, "not created by an interrupted run; move it elsewhere")

    def shown(self, path: bytes | str) -> bytes:
        """Return a path with :attr:`path` instead of :attr:`inside`, for messages."""
        whole = os.fsencode(path)
        inside = whole.startswith(self.inside) and whole[len(self.inside) :][:1] in (b"", b"/")
        return self.path + whole[len(self.inside) :] if inside else whole

    def publish(self, name: bytes, target: bytes) -> os.stat_result:
        """Move a file or directory from the staging directory to ``target``, and return its status.

        :param target: a path on the same file system that does not exist
        :raises UntrustedError: the staging directory or the target was replaced by another user
        :raises OSError: it cannot be moved
        """
        source = os.path.join(self.inside, name)
        status = os.lstat(source)
        by_name = self._descriptor >= 0 and self.inside == self.path
        # Accessed by name: another user may have replaced it.
        if by_name and not os.path.samestat(os.lstat(self.path), os.fstat(self._descriptor)):
            raise UntrustedError(self.path, "replaced by another user; choose a directory that only you can write to")
        if not stat.S_ISDIR(status.st_mode):
            rename_new(source, target)  # a directory replaces no file
        elif by_name:
            os.rename(name, target, src_dir_fd=self._descriptor)
        else:
            os.rename(source, target)
        moved = os.lstat(target)
        if not os.path.samestat(moved, status):
            raise UntrustedError(target, "replaced by another user; choose a directory that only you can write to")
        return moved

    def remove(self, name: bytes) -> None:
        """Remove a file or a tree from the staging directory, if it exists.

        :raises OSError: a file or directory cannot be removed
        """
        if self._descriptor >= 0:
            remove_tree(name, dir_fd=self._descriptor)
        else:
            remove_tree(os.path.join(self.inside, name))

    def leave(self) -> None:
        """Release the lock, and remove the directory if it is empty; otherwise the lock file stays for the next run."""
        names = None
        with contextlib.suppress(OSError):
            names = os.listdir(self.inside)
        if names != [LOCK]:
            self.abandon()
            return
        self._lock.release()
        with contextlib.suppress(OSError):
            # Only if it was not replaced.
            if self._descriptor < 0 or os.path.samestat(os.lstat(self.path), os.fstat(self._descriptor)):
                os.rmdir(self.path)
        self._close()

    def abandon(self) -> None:
        """Release the lock, but keep the directory and the lock file for the next run to clean up."""
        self._lock.abandon()
        self._close()

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self.inside = -1, self.path


class NewPath(StagingDirectory):
    """The hidden directory in which a new file or directory is written, beside its path; at the end, it is emptied.

    Its name depends on that of the target only, so the next run finds the directory of a killed run. Errors that leave
    the context name the hidden directory as the user sees it.

    :param target: an absolute path
    :param names: the names that a run may leave in the directory
    :ivar existed: the target exists, and a killed run has left the directory, whose files are kept: it may have
        published the target. Otherwise its files were removed
    :raises FileExistsError: the target exists, and no killed run has left the directory
    :raises NotADirectoryError: its parent is not a directory
    :raises FileNotFoundError: its parent does not exist
    :raises OSError: as for :class:`StagingDirectory`
    """

    def __init__(self, target: bytes, names: Sequence[bytes]) -> None:
        hidden = self.beside(target)
        parent = os.path.dirname(target)
        if not exists(hidden) and exists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        if not os.path.isdir(parent):
            number = errno.ENOTDIR if exists(parent) else errno.ENOENT
            raise OSError(number, os.strerror(number), parent)
        super().__init__(hidden, holds=frozenset(names))
        self._names = names
        try:
            self.existed = exists(target)
            if not self.existed:
                self._empty()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise

    @staticmethod
    def beside(target: bytes) -> bytes:
        """Return the path of the hidden directory of ``target``."""
        import hashlib  # many runs write to no new path

        parent, name = os.path.split(target)
        return os.path.join(parent, b".pressmark-%b.tmp" % hashlib.sha256(name).hexdigest()[:16].encode())

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if isinstance(error, OSError) and isinstance(error.filename, (str, bytes)):
            error.filename = self.shown(error.filename)
        with contextlib.suppress(OSError):  # the next run removes the rest
            self._empty()
        self.leave()

    def _empty(self) -> None:
        for name in self._names:
            self.remove(name)


def lock_shared(path: bytes) -> int:
    """Lock a directory that all users trust who can change its parent directory, and create it if it is missing.

    :return: descriptor of the lock; the caller removes the lock and the directory, or leaves them to the next run
    :raises BlockingIOError: another run uses it
    :raises UntrustedError: users who cannot change the parent directory could have created it, or can change it
    :raises OSError: it cannot be created
    """
    for _ in range(TRIES):
        with contextlib.suppress(FileExistsError):
            make_shared(path)
        with contextlib.suppress(FileNotFoundError):  # just removed by another run
            require_shared(path)
            return FileLock(os.path.join(path, LOCK)).detach()
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), path)


# --- private directories in a shared one ------------------------------------------------------------------------------


class RunDirectory:
    """The private directory of a run in the shared directory ``folder``; a context manager.

    Entering it removes the directories of killed runs. Leaving it removes the directory, and ``folder`` if it is empty.

    :param folder: the shared directory, on the file system of the files to be moved; created if it does not exist

    :ivar folder: the shared directory
    :ivar path: path of the private directory
    :raises UntrustedError: ``folder`` is a symbolic link, or belongs to a user who cannot change the store
    :raises OSError: it cannot be created
    """

    def __init__(self, folder: bytes) -> None:
        self.folder = folder
        self.path = b""

    def __enter__(self) -> Self:
        for _ in range(TRIES):
            path = os.path.join(self.folder, os.urandom(8).hex().encode())
            is_new = False
            with contextlib.suppress(FileExistsError):
                make_shared(self.folder)
                is_new = True
            # Another run may remove either directory as empty.
            with contextlib.suppress(FileNotFoundError):
                if not is_new:
                    require_shared(self.folder)
                os.mkdir(path, _RUN_MODE)
                try:
                    # Wait: another run may be checking the lock.
                    self._lock = FileLock(os.path.join(path, LOCK), wait=True)
                except BaseException:
                    with contextlib.suppress(OSError):
                        os.rmdir(path)
                    raise
                self.path = path
                break
        else:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), self.folder)
        if not is_new:
            clear(self.folder)
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        try:
            for name in os.listdir(self.path):
                if name != LOCK:
                    remove_tree(self / name)
        except OSError:
            # The change is complete or undone; files that cannot be removed are left to the next run.
            self._lock.abandon()
        else:
            self._lock.release()
            with contextlib.suppress(OSError):
                os.rmdir(self.path)
        with contextlib.suppress(OSError):
            try:
                os.rmdir(self.folder)
            except OSError:
                if os.listdir(self.folder) != [LOCK]:
                    return
                # A run was killed during a move.
                FileLock(os.path.join(self.folder, LOCK)).release()
                os.rmdir(self.folder)

    def lock(self, *, wait: bool = True) -> FileLock:
        """Acquire the lock for moves, and return it. It must be held for a moment only.

        :raises BlockingIOError: another run holds it, and ``wait`` is false
        """
        return FileLock(os.path.join(self.folder, LOCK), wait=wait)

    def __truediv__(self, name: bytes) -> bytes:
        return b"%b/%b" % (self.path, name)


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
