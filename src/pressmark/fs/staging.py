"""The private staging directory of a change, locked while a run uses it.

Its name is fixed, so the next run finds the leftovers of a killed run. Because other users know the name, the directory
is checked for its owner, and on Linux all paths in it start with its descriptor.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from types import TracebackType

from pressmark.fs.locks import FileLock
from pressmark.fs.owners import UntrustedError, make_shared, require_private, require_shared
from pressmark.fs.removal import remove_tree

__all__ = ["LOCK", "StagingDirectory"]

LOCK = b"lock"
# Attempts at locking a directory that its owner may remove as empty.
TRIES = 1000
_OPEN = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_HAS_DESCRIPTORS = os.open in os.supports_dir_fd and os.rename in os.supports_dir_fd


class StagingDirectory:
    """A locked private directory, new or left by a killed run; a context manager.

    :param path: path of the directory; its parent exists
    :param holds: the names that a killed run may leave in it, except the lock; :data:`None` for any
    :param shared: trust all users who can change the parent directory; any of them can finish the run

    :ivar path: path of the directory
    :ivar inside: path of the directory for accessing files in it
    :raises BlockingIOError: another run uses it
    :raises UntrustedError: it belongs to another user, others may write to it, or a run did not create it
    :raises OSError: it cannot be created
    """

    def __init__(self, path: bytes, *, holds: frozenset[bytes] | None = None, shared: bool = False) -> None:
        self.path = self.inside = path
        self._shared = shared
        self._descriptor = -1
        is_new = False
        for _ in range(TRIES):
            with contextlib.suppress(FileExistsError):
                is_new = False
                if shared:
                    make_shared(path)
                else:
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

    def __enter__(self) -> StagingDirectory:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.leave()

    def _open(self) -> None:
        if self._shared:
            require_shared(self.path)
            return
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
        made = os.lstat(source)
        by_name = self._descriptor >= 0 and self.inside == self.path
        # Accessed by name: another user may have replaced it.
        if by_name and not os.path.samestat(os.lstat(self.path), os.fstat(self._descriptor)):
            raise UntrustedError(self.path, "replaced by another user; choose a directory that only you can write to")
        if not stat.S_ISDIR(made.st_mode):
            from pressmark.fs.moves import rename_new  # a directory replaces no file

            rename_new(source, target)
        elif by_name:
            os.rename(name, target, src_dir_fd=self._descriptor)
        else:
            os.rename(source, target)
        found = os.lstat(target)
        if not os.path.samestat(found, made):
            raise UntrustedError(target, "replaced by another user; choose a directory that only you can write to")
        return found

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
        if not self._shared:
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
