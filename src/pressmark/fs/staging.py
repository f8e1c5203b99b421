"""A private directory of a change: made by us, found and cleared after a kill, locked while a run is at work.

Its name is known, so that the next run finds what a killed one has left. Others know it, too: what they have put there
is not entered, and what they put in its place later gets nothing. On Linux all paths in it begin with its descriptor.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from types import TracebackType

from pressmark.fs.locks import FileLock
from pressmark.fs.owners import UntrustedError, make_shared, require_private, require_shared
from pressmark.fs.removal import remove_tree

__all__ = ["LOCK", "StagingDirectory"]

LOCK = b"lock"
# The run that has it may remove it as empty while we are about to lock it, again and again.
TRIES = 1000
_OPEN = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_HAS_DESCRIPTORS = os.open in os.supports_dir_fd and os.rename in os.supports_dir_fd


class StagingDirectory:
    """A private directory, made or taken over from a run that was killed, and locked; a context manager.

    :param path: of the directory; the one above is there
    :param holds: names that a killed run may have left in it, besides its lock; :data:`None` for any
    :param shared: trusted as the directory above is, instead of ours alone: a team finishes what one of them began

    :ivar path: the directory, by its name
    :ivar inside: the path to be used for what is in it
    :raises BlockingIOError: another run is at work in it
    :raises UntrustedError: it is not ours, others may write to it, or it is not what a run has left
    :raises OSError: it cannot be made
    """

    def __init__(self, path: bytes, *, holds: frozenset[bytes] | None = None, shared: bool = False) -> None:
        self.path = self.inside = path
        self._shared = shared
        self._descriptor = -1
        for _ in range(TRIES):
            with contextlib.suppress(FileExistsError):
                if shared:
                    make_shared(path)
                else:
                    os.mkdir(path, 0o700)
            try:
                self._open()
                if holds is not None:
                    self._check_names(holds)
                self._lock = FileLock(os.path.join(self.inside, LOCK))
                return
            except FileNotFoundError:  # the holder of the lock has just removed it
                self._close()
            except BaseException as error:
                if isinstance(error, OSError) and error.filename is not None:
                    error.filename = self.shown(error.filename)
                self._close()
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
                require_private(self.path, os.lstat(self.path))  # which says why
            raise
        require_private(self.path, os.fstat(self._descriptor))
        if sys.platform.startswith("linux"):
            inside = b"/proc/self/fd/%d" % self._descriptor
            with contextlib.suppress(OSError):  # /proc need not be mounted
                if os.path.samestat(os.stat(inside), os.fstat(self._descriptor)):
                    self.inside = inside

    def _check_names(self, holds: frozenset[bytes]) -> None:
        names = set(os.listdir(self.inside))
        # A run makes its lock first and removes it last. Without one, it is another directory of ours, renamed.
        if names and (LOCK not in names or names - holds - {LOCK}):
            raise UntrustedError(self.path, "it is not the directory of an interrupted run; move it away")

    def shown(self, path: bytes | str) -> bytes:
        """Return the path by which people know what is in it; any other path as it is."""
        whole = os.fsencode(path)
        inside = whole.startswith(self.inside) and whole[len(self.inside) :][:1] in (b"", b"/")
        return self.path + whole[len(self.inside) :] if inside else whole

    def publish(self, name: bytes, target: bytes) -> os.stat_result:
        """Give what has been made in it its name, which must not be taken, and return its status.

        :param target: on the same file system
        :raises UntrustedError: something else has the name now, or came in the place of the private directory
        :raises OSError: it cannot be moved
        """
        source = os.path.join(self.inside, name)
        made = os.lstat(source)
        if self._descriptor >= 0 and self.inside == self.path:
            # Paths in it begin with its name: nobody may have exchanged it while we wrote.
            if not os.path.samestat(os.lstat(self.path), os.fstat(self._descriptor)):
                raise UntrustedError(self.path, "it was exchanged; choose a place where nobody else may write")
            os.rename(name, target, src_dir_fd=self._descriptor)
        else:
            os.rename(source, target)
        found = os.lstat(target)
        if not os.path.samestat(found, made):
            raise UntrustedError(target, "it was exchanged; choose a place where nobody else may write")
        return found

    def remove(self, name: bytes) -> None:
        """Remove a file or a tree from it, if it is there.

        :raises OSError: something cannot be removed
        """
        if self._descriptor >= 0:
            remove_tree(name, dir_fd=self._descriptor)
        else:
            remove_tree(os.path.join(self.inside, name))

    def leave(self) -> None:
        """Let others have it, and remove it where it is empty; else its lock stays, by which the next run knows it."""
        if not self._shared:
            names = None
            with contextlib.suppress(OSError):
                names = os.listdir(self.inside)
            if names != [LOCK]:
                self.abandon()
                return
        self._lock.release()
        with contextlib.suppress(OSError):
            # Not one that has come in its place.
            if self._descriptor < 0 or os.path.samestat(os.lstat(self.path), os.fstat(self._descriptor)):
                os.rmdir(self.path)
        self._close()

    def abandon(self) -> None:
        """Let others have it as it is: there is something in it that the next run must see to."""
        self._lock.abandon()
        self._close()

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self.inside = -1, self.path
