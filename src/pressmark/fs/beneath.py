"""Opens paths as the operating system reads them, or beneath a directory and nowhere else.

Whoever checks a received package reads files whose names somebody else chose, in directories that somebody else may
write to. Looking at a path first and opening it later is no protection there: in between, a directory can be exchanged
for a link. So beneath a directory every step of a path is opened relative to the step before, and none of them may be
a symbolic link; what was opened cannot be exchanged any more.
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
# What directories are named by.
Directory = int | str | bytes

# Directories that were opened are taken to be still where they were for this long. Files are opened in the order of
# their directories, mostly: within a moment, the same steps again.
MOMENT = 0.1  # seconds
KEPT = 16  # of the directories on the way to a file
# The kernel's limit on a path, which a path that is taken step by step would not meet.
LONGEST = 4095  # bytes


class Opener:
    """Opens paths; a context manager, for one thread at a time."""

    # Whether a symbolic link in the place of a file is followed.
    follow = False

    def __enter__(self) -> Opener:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Keep nothing open."""

    def stat(self, path: str | bytes) -> os.stat_result:
        """Return the status of what ``path`` leads to.

        :raises OSError: there is nothing, or the path is refused
        :raises ValueError: no file can have this path
        """
        raise NotImplementedError

    def open(self, path: str | bytes, flags: int) -> int:
        """Open what ``path`` leads to and return its descriptor; the errors are those of :meth:`stat`."""
        raise NotImplementedError

    def stat_directory(self, path: str | bytes) -> os.stat_result:
        """Return the status of what ``path`` leads to, which may also be the directory that all others are below."""
        return self.stat(path)

    def names(self, path: str | bytes) -> AbstractContextManager[Iterator[os.DirEntry[Any]]]:
        """Open the directory that ``path`` leads to; its entries are good for as long as it is open."""
        raise NotImplementedError


class OpenAnywhere(Opener):
    """Paths as the operating system reads them.

    :param follow: a symbolic link in the place of a file is followed
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
    """Paths below a directory, every step of them opened relative to the one before and none of them a link.

    A symbolic link is the error :data:`errno.ELOOP`.

    :param directory: its descriptor; the caller closes it
    """

    def __init__(self, directory: int) -> None:
        self._root = self._descriptor = directory
        # The directory that was used last, the first steps to it, and the very last where it is none of those.
        self._directory: str | bytes | None = None
        self._kept: list[tuple[str | bytes, int]] = []
        self._last: int | None = None
        self._until = 0.0

    def close(self) -> None:
        """Forget the directory that was used last."""
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
        """Return the descriptor of the directory that holds the file, and the file's name in it."""
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
        """Close all directories but the first ``steps``."""
        self._directory = None
        if self._last is not None:
            os.close(self._last)
            self._last = None
        while len(self._kept) > steps:
            os.close(self._kept.pop()[1])


class OpenBeneathByName(Opener):
    """The same where no file can be opened relative to a directory: Windows.

    The real path is compared with the path before every look at a file. A directory that becomes a link between that
    and the look is not noticed: this keeps out what is wrong, and not who is fast.

    :param directory: its path
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
    """Open the directory ``path`` to read files beneath it: what it gives is for arguments called ``beneath``.

    That is a descriptor; on Windows, which has none for directories, it is the path.

    :raises OSError: it does not open
    """
    if not HAS_DESCRIPTORS:
        os.listdir(path)  # what is no directory must be refused here, too
        yield os.fsencode(path)
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


NUL = "the path holds a NUL"
EMPTY = "the path is empty"
ABSOLUTE = "the path is absolute, and files are read beneath a directory only"
UPWARDS = "the path leads upwards, and files are read beneath a directory only"
NO_NAME = "the path does not end with the name of a file"


def _split(path: Any) -> tuple[Any, Any]:
    """Return the directory and the name that ``path`` consists of; the directory is not looked at yet.

    :raises ValueError: the path is absolute, or has no name at its end
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
    """Open the directory ``name`` in another; without ``access``, only to go further from it."""
    try:
        return os.open(name, os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | access, dir_fd=directory)
    except NotADirectoryError:
        # A directory by now is one that was exchanged: it was a link.
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode) or stat.S_ISDIR(mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        raise
