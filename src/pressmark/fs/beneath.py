"""Open files by path, anywhere or only beneath a directory.

Received packages contain file names chosen by others, in directories that others may write to. Checking a path before
opening it is not safe, because a directory can be replaced by a link in between. So beneath a directory, every
component of a path is opened relative to the one before, and none may be a symbolic link.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from time import monotonic
from types import TracebackType
from typing import Any

__all__ = [
    "HAS_DESCRIPTORS",
    "Directory",
    "OpenAnywhere",
    "OpenBeneath",
    "OpenBeneathByName",
    "Opener",
    "open_directory",
]

# Windows cannot open a file relative to a directory.
HAS_DESCRIPTORS = {os.open, os.stat} <= os.supports_dir_fd and hasattr(os, "O_NOFOLLOW") and hasattr(os, "O_DIRECTORY")
# A descriptor, or on Windows a path.
Directory = int | str | bytes

# Open directories are reused for this long: consecutive files are usually in the same directory.
MOMENT = 0.1  # seconds
KEPT = 16  # open directories on the path to a file
# PATH_MAX, which the system does not enforce on a path opened by components.
LONGEST = 4095  # bytes


class Opener:
    """Opens files by path; a context manager, for one thread at a time."""

    # Whether symbolic links are followed.
    follow = False

    def __enter__(self) -> Opener:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all open directories."""

    def stat(self, path: str | bytes) -> os.stat_result:
        """Return the status of the file at ``path``.

        :raises OSError: the file does not exist, or is not accessible
        :raises ValueError: the path is invalid
        """
        raise NotImplementedError

    def open(self, path: str | bytes, flags: int) -> int:
        """Open the file at ``path`` and return its descriptor; raises the errors of :meth:`stat`."""
        raise NotImplementedError

    def stat_directory(self, path: str | bytes) -> os.stat_result:
        """Return the status of the directory at ``path``; ``.`` is the top directory."""
        return self.stat(path)

    def names(self, path: str | bytes) -> AbstractContextManager[Iterator[os.DirEntry[Any]]]:
        """Return a context manager that yields the entries of the directory at ``path``, valid until it ends."""
        raise NotImplementedError


class OpenAnywhere(Opener):
    """Opens paths without restriction.

    :param follow: follow a symbolic link at the end of a path
    """

    def __init__(self, follow: bool) -> None:
        self.follow = follow

    def stat(self, path: str | bytes) -> os.stat_result:
        return os.stat(path, follow_symlinks=self.follow)

    def open(self, path: str | bytes, flags: int) -> int:
        return os.open(path, flags)

    def names(self, path: str | bytes) -> AbstractContextManager[Iterator[os.DirEntry[Any]]]:
        return os.scandir(path)


class OpenBeneath(Opener):
    """Opens paths beneath a directory. A symbolic link is an :class:`OSError` with :data:`errno.ELOOP`.

    :param directory: descriptor of the directory; the caller closes it
    """

    def __init__(self, directory: int) -> None:
        self._root = self._descriptor = directory
        # The last directory, the open directories of the first components of its path, and its own if it is deeper.
        self._directory: str | bytes | None = None
        self._kept: list[tuple[str | bytes, int]] = []
        self._last: int | None = None
        self._until = 0.0

    def close(self) -> None:
        """Close the cached directories."""
        self._keep(0)

    def stat(self, path: str | bytes) -> os.stat_result:
        directory, name = self._parts(path)
        return os.stat(name, dir_fd=directory, follow_symlinks=False)

    def open(self, path: str | bytes, flags: int) -> int:
        directory, name = self._parts(path)
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=directory)

    def stat_directory(self, path: str | bytes) -> os.stat_result:
        return os.fstat(self._root) if path in _HERE else self.stat(path)

    @contextmanager
    def names(self, path: str | bytes) -> Iterator[Iterator[os.DirEntry[Any]]]:
        directory, name = (self._root, ".") if path in _HERE else self._parts(path)
        descriptor = _step(directory, name, os.O_RDONLY)
        try:
            with os.scandir(descriptor) as entries:
                yield entries
        finally:
            os.close(descriptor)

    def _parts(self, path: str | bytes) -> tuple[int, str | bytes]:
        """Return the descriptor of the directory of a file, and the name of the file."""
        directory, name = _split(path)
        if directory != self._directory or monotonic() >= self._until:
            self._enter(directory)
        return self._descriptor, name

    def _enter(self, directory: str | bytes) -> None:
        steps = _steps(directory)
        now = monotonic()
        common = 0
        if now >= self._until:
            self._until = now + MOMENT
        else:
            while common < min(len(steps), len(self._kept)) and steps[common] == self._kept[common][0]:
                common += 1
        self._keep(common)
        descriptor = self._kept[-1][1] if self._kept else self._root
        for step in steps[common:]:
            descriptor = _step(descriptor, step)
            if len(self._kept) < KEPT:
                self._kept.append((step, descriptor))
            else:
                self._keep(KEPT)
                self._last = descriptor
        self._directory, self._descriptor = directory, descriptor

    def _keep(self, steps: int) -> None:
        """Close all cached directories but the first ``steps``."""
        self._directory = None
        if self._last is not None:
            os.close(self._last)
            self._last = None
        while len(self._kept) > steps:
            os.close(self._kept.pop()[1])


class OpenBeneathByName(Opener):
    """Opens paths beneath a directory on Windows, where files cannot be opened relative to a directory.

    Before each access the real path is compared with the path. A directory that is replaced by a link between the two
    is not noticed.

    :param directory: path of the directory
    """

    def __init__(self, directory: str | bytes) -> None:
        self._root = os.path.realpath(directory)

    def stat(self, path: str | bytes) -> os.stat_result:
        return os.stat(self._real(path), follow_symlinks=False)

    def open(self, path: str | bytes, flags: int) -> int:
        return os.open(self._real(path), flags)

    def stat_directory(self, path: str | bytes) -> os.stat_result:
        return os.stat(self._root) if path in _HERE else self.stat(path)

    def names(self, path: str | bytes) -> AbstractContextManager[Iterator[os.DirEntry[Any]]]:
        return os.scandir(os.fsdecode(self._root) if path in _HERE else self._real(path))

    def _real(self, path: str | bytes) -> str:
        text = os.fsdecode(path)
        if os.path.splitdrive(text)[0]:
            raise ValueError(ABSOLUTE)
        directory, name = _split(text.replace(os.sep, "/"))
        whole = os.path.join(os.fsdecode(self._root), *_steps(directory))
        if os.path.normcase(os.path.realpath(whole)) != os.path.normcase(whole):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return os.path.join(whole, name)


@contextmanager
def open_directory(path: str | bytes | os.PathLike[str]) -> Iterator[Directory]:
    """Open a directory, and yield the value for ``beneath`` parameters: a descriptor, or a path on Windows.

    :raises OSError: it cannot be opened
    """
    if not HAS_DESCRIPTORS:
        os.listdir(path)  # raises if it is not a directory
        yield os.fsencode(path)
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


NUL = "path contains a NUL"
EMPTY = "path is empty"
ABSOLUTE = "path is absolute; expected a path beneath the directory"
UPWARDS = "path contains '..'; expected a path beneath the directory"
NO_NAME = "path does not end with a file name"


def _split(path: Any) -> tuple[Any, Any]:
    """Split ``path`` into directory and file name.

    :raises ValueError: the path is absolute, or does not end with a file name
    """
    slash, nul = ("/", "\0") if isinstance(path, str) else (b"/", b"\0")
    if len(path) > LONGEST and len(os.fsencode(path)) > LONGEST:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    if nul in path:
        raise ValueError(NUL)
    if path.startswith(slash):
        raise ValueError(ABSOLUTE)
    directory, _, name = path.rpartition(slash)
    if name in _NO_NAMES:
        raise ValueError(EMPTY if not path else UPWARDS if name in _UP else NO_NAME)
    return directory, name


_UP = ("..", b"..")
_HERE = ("", b"", ".", b".")
_NO_NAMES = (*_HERE, *_UP)


def _steps(directory: Any) -> list[Any]:
    steps = [step for step in directory.split("/" if isinstance(directory, str) else b"/") if step not in _HERE]
    if any(step in _UP for step in steps):
        raise ValueError(UPWARDS)
    return steps


def _step(directory: int, name: str | bytes, access: int = getattr(os, "O_PATH", os.O_RDONLY)) -> int:
    """Open the directory ``name`` in another one; by default only as the base of further paths."""
    try:
        return os.open(name, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | access, dir_fd=directory)
    except NotADirectoryError:
        # If it is a directory now, it was a link before.
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode) or stat.S_ISDIR(mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        raise
