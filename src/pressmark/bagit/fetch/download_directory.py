"""The directory of partial downloads, and the move of complete files into the payload."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import threading

from pressmark.bagit.bag_directory import STAGING, BagDirectory
from pressmark.bagit.fetch.partial import remove_partial, unlink
from pressmark.errors import BagError
from pressmark.fs.beneath import Directory
from pressmark.fs.durable import flush_directory

__all__ = ["DownloadDirectory"]

PARTS = b"fetch"  # in the hidden directory
# Flush directories with new names after this many.
UNFLUSHED = 1024

_DIRECTORY = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
# Errors of file systems without hard links.
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EINVAL})


class DownloadDirectory:
    """The directory of partial files, which moves complete files into the payload; a context manager, thread-safe.

    :ivar parts: the open directory
    :ivar in_use: whether a download could not be ended in time, so descriptors must stay open
    :raises BagError: the directory cannot be created
    """

    def __init__(self, base: BagDirectory) -> None:
        self._path = base.path
        self.in_use = False
        self._unflushed: set[bytes] = set()
        self._unwritten: OSError | None = None
        self._lock = threading.Lock()
        # Separate descriptors, because a hanging download can continue after the base is closed.
        self._top: Directory = os.dup(base.beneath) if isinstance(base.beneath, int) else base.path
        self._staging: Directory = -1
        self.parts: Directory = -1
        try:
            self._staging = self._open_or_make(self._top, STAGING)
            self.parts = self._open_or_make(self._staging, PARTS)
        except BaseException:
            self._close()
            raise

    def __enter__(self) -> DownloadDirectory:
        return self

    def __exit__(self, *_error: object) -> None:
        # Remove the directory if it is empty.
        with contextlib.suppress(OSError):
            if isinstance(self._staging, int):
                os.rmdir(PARTS, dir_fd=self._staging)
            else:
                os.rmdir(os.path.join(os.fsencode(self._staging), PARTS))
        if not self.in_use:
            self._close()

    def _close(self) -> None:
        for directory in (self.parts, self._staging, self._top):
            _close(directory)

    def _open_or_make(self, above: Directory, name: bytes) -> Directory:
        try:
            return _enter(above, name, make=True)[0]
        except OSError as error:
            path = os.path.join(self._path, *((STAGING,) if name == STAGING else (STAGING, name)))
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                raise BagError(path, "not created by an interrupted run; move it elsewhere") from None
            raise BagError(path, error.strerror or str(error)) from None

    def land(self, part: bytes, path: bytes) -> None:
        """Move a complete file into the payload. Missing directories are created; symbolic links are not followed.

        :raises FileExistsError: the name is taken
        :raises OSError: the path contains a file or symbolic link, or the file cannot be moved
        """
        *above, name = path.split(b"/")
        directory = self._top
        touched = []
        try:
            for depth, segment in enumerate(above):
                below, made = _enter(directory, segment, make=True)
                if made:
                    touched.append(b"/".join(above[:depth]))
                if directory is not self._top:
                    _close(directory)
                directory = below
            _move(self.parts, part, directory, name)
        finally:
            if directory is not self._top:
                _close(directory)
        touched.append(b"/".join(above))
        with self._lock:
            self._unflushed.update(touched)
            full = len(self._unflushed) >= UNFLUSHED
        if full:
            self._flush()

    def finish(self, clean: bool) -> None:
        """Write all new names to disk, and remove partial files.

        :param clean: remove all files; otherwise only empty files
        :raises OSError: a name could not be written
        """
        self._flush()
        self._remove_parts(clean)
        if self._unwritten is not None:
            raise self._unwritten

    def _remove_parts(self, clean: bool) -> None:
        if clean:
            if isinstance(self._staging, int):
                shutil.rmtree(PARTS, dir_fd=self._staging, ignore_errors=True)
            else:
                shutil.rmtree(os.path.join(os.fsencode(self._staging), PARTS), ignore_errors=True)
            return
        with contextlib.suppress(OSError), os.scandir(_listable(self.parts)) as entries:
            for entry in entries:
                if entry.stat(follow_symlinks=False).st_size == 0:
                    unlink(self.parts, os.fsencode(entry.name))

    def discard(self, part: bytes) -> None:
        """Remove a file that cannot be moved into the payload."""
        remove_partial(self.parts, part)

    def _flush(self) -> None:
        with self._lock:
            touched, self._unflushed = self._unflushed, set()
        for path in touched:
            try:
                flush_directory(os.path.join(self._path, path))
            except (FileNotFoundError, NotADirectoryError):
                pass  # moved by another program
            except OSError as error:
                self._unwritten = error


# --- directories, by descriptor or by path --------------------------------------------------------------------------


def _enter(above: Directory, name: bytes, make: bool) -> tuple[Directory, bool]:
    """Open a directory in another one, without following links; return it, and whether it was created."""
    made = False
    if isinstance(above, int):
        while True:
            try:
                return os.open(name, _DIRECTORY, dir_fd=above), made
            except FileNotFoundError:
                if not make or made:
                    raise
                made = True
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=above)
    path = os.path.join(os.fsencode(above), name)
    if make and not os.path.lexists(path):
        made = True
        with contextlib.suppress(FileExistsError):
            os.mkdir(path)
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    return path, made


def _move(source: Directory, part: bytes, target: Directory, name: bytes) -> None:
    """Move a file to another directory without replacing an existing file."""
    if not isinstance(source, int) or not isinstance(target, int):
        assert isinstance(source, bytes)
        assert isinstance(target, bytes)
        # On systems without directory descriptors, renaming does not overwrite.
        os.rename(os.path.join(source, part), os.path.join(target, name))
    else:
        try:
            os.link(part, name, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            with contextlib.suppress(FileNotFoundError):
                os.stat(name, dir_fd=target, follow_symlinks=False)
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
            os.rename(part, name, src_dir_fd=source, dst_dir_fd=target)
    # The file is in place, even if its partial name cannot be removed.
    remove_partial(source, part)


def _listable(directory: Directory) -> int | str:
    return directory if isinstance(directory, int) else os.fsdecode(directory)


def _close(directory: Directory) -> None:
    if isinstance(directory, int) and directory >= 0:
        os.close(directory)
