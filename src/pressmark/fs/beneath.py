"""Open files by path, anywhere or only beneath a directory.

Files that have a meaning for Pressmark (declarations, inventories, journals, locks, …) are opened by
:func:`open_regular` and :func:`open_beneath`, which never wait: a named pipe or a device instead of a file is an
error.

Received packages contain file names chosen by others, in directories that others may write to. Checking a path before
opening it is not safe, because a directory can be replaced by a link in between. So beneath a directory, every
component of a path is opened relative to the one before, and none may be a symbolic link.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import struct
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from io import BufferedReader, FileIO
from time import monotonic
from types import TracebackType
from typing import Any, BinaryIO

from pressmark.fs.file_errors import kind_of_mode

__all__ = [
    "HAS_DESCRIPTORS",
    "LARGEST",
    "PATH_ONLY",
    "READ",
    "REAL",
    "Directory",
    "OpenAnywhere",
    "OpenBeneath",
    "OpenBeneathByName",
    "OpenReal",
    "Opener",
    "below_root",
    "close_directory",
    "land",
    "open_beneath",
    "open_directory",
    "open_or_make",
    "open_real",
    "open_regular",
    "read_all",
    "read_regular",
    "real_path",
    "real_paths",
    "require_regular",
    "root_directory",
    "write_regular",
]

# Windows cannot open a file relative to a directory.
HAS_DESCRIPTORS = {os.open, os.stat} <= os.supports_dir_fd and hasattr(os, "O_NOFOLLOW") and hasattr(os, "O_DIRECTORY")
# A descriptor, or on Windows a path.
Directory = int | str | bytes

# Open directories are reused for this long: consecutive files are usually in the same directory.
MOMENT = 0.1  # seconds
KEPT = 16  # open directories on the path to a file
# A named pipe must not block, and a terminal must not become the controlling one.
READ = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_BINARY", "O_NOCTTY", "O_NONBLOCK"))
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
# Of a file that is read whole. Inventories have at most a few hundred megabytes.
LARGEST = 1 << 30  # bytes
# A flag of the kernels beside those of open(), as in digests/beneath.h: the path is from real_path().
REAL = 1 << 30
# linux/openat2.h; the system call has this number on every architecture.
_OPENAT2, _RESOLVE_NO_SYMLINKS = 437, 0x04
# Paths that OpenBeneath refuses.
_UNUSUAL = re.compile(rb"\0|\.\.|^/")
# Of a path that os.path.abspath would not change; names that begin with a dot are left to it.
_is_absolute = re.compile(rb"(?:/[^/.\0][^/\0]*)+").fullmatch
# For a directory that is only the base of other paths.
PATH_ONLY = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_INSTEAD = {"fifo": "named pipe", "link": "symbolic link"}
# Errors of file systems without hard links.
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EINVAL})
# PATH_MAX, which the system does not enforce on a path opened by components.
LONGEST = 4095  # bytes


# --- files of our own -------------------------------------------------------------------------------------------------


def open_regular(path: str | bytes | os.PathLike[str], *, follow: bool = False) -> BufferedReader:
    """Open a regular file for reading, without waiting.

    :param follow: follow a symbolic link at the end of the path
    :raises OSError: it cannot be opened, or is not a regular file; the error says what to do
    """
    try:
        descriptor = os.open(path, READ if follow else READ | _NO_FOLLOW)
    except OSError as error:
        raise error if follow else _as_link_error(error) from None
    return open(require_regular(descriptor, os.fspath(path)), "rb")


def write_regular(path: str | bytes, flags: int) -> int:
    """Open a regular file for writing, without waiting and without following a link; an ``opener`` for :func:`open`.

    :raises OSError: it cannot be opened, or is not a regular file
    """
    # Truncated only when its type is known.
    descriptor = require_regular(os.open(path, (flags & ~os.O_TRUNC) | READ | _NO_FOLLOW, 0o666), path)
    os.ftruncate(descriptor, 0)
    return descriptor


def read_regular(path: str | bytes | os.PathLike[str], limit: int = LARGEST, *, follow: bool = False) -> bytes:
    """Return the content of a regular file.

    :param limit: maximum size in bytes
    :raises OSError: as for :func:`open_regular`; or the file is larger
    """
    with open_regular(path, follow=follow) as file:
        return read_all(file, os.fstat(file.fileno()).st_size, limit)


def read_all(file: BinaryIO | FileIO, size: int, limit: int = LARGEST) -> bytes:
    """Return the content of an open file.

    :param size: its size in bytes
    :param limit: maximum size in bytes
    :raises OSError: the file is larger, or cannot be read
    """
    if size <= limit:
        # Memory is allocated before reading, for as many bytes as are asked for.
        data = file.read(size + 1) or b""
        if len(data) > size:  # the file has grown
            data += file.read(limit + 1 - len(data)) or b""
        if len(data) <= limit:
            return data
    raise OSError(errno.EFBIG, f"larger than {limit} bytes; restore the file")


def require_regular(descriptor: int, path: str | bytes | None = None) -> int:
    """Return the descriptor of a regular file; close any other.

    :param path: for the error
    :raises OSError: the file is not regular
    """
    kind = kind_of_mode(os.fstat(descriptor).st_mode)
    if kind is None:
        return descriptor
    os.close(descriptor)
    if kind == "directory":
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise OSError(errno.EINVAL, f"{_INSTEAD.get(kind, kind)} instead of a file; restore the file", path)


def _as_link_error(error: OSError) -> OSError:
    """Return the error of opening a file without following links, which the system reports as a loop of links."""
    if error.errno not in (errno.ELOOP, errno.EMLINK):  # EMLINK: FreeBSD
        return error
    reason = "symbolic link, which is not followed; replace it with the file or directory it leads to"
    return OSError(errno.ELOOP, reason, error.filename)


def open_beneath(base: bytes, path: bytes, flags: int = READ) -> int:
    """Open the file or directory at ``path`` in the directory ``base``, and return its descriptor.

    No component of ``path`` may be a symbolic link; ``base`` may.

    :param path: relative; empty for ``base`` itself
    :raises OSError: it does not exist or cannot be opened; :data:`errno.ELOOP`: a component is a symbolic link
    """
    if not path:
        return os.open(base, flags)
    try:
        return _opened_beneath(base, path, flags | _NO_FOLLOW)
    except OSError as error:
        raise _as_link_error(OSError(error.errno, error.strerror, os.path.join(base, path))) from None


def _opened_beneath(base: bytes, path: bytes, flags: int) -> int:
    if not HAS_DESCRIPTORS:
        return OpenBeneathByName(base).open(path, flags)
    is_usual = not _UNUSUAL.search(path)
    if is_usual and b"/" not in path:
        return os.open(os.path.join(base, path), flags)
    function = _openat2()
    if function is not None and is_usual:
        # Most directories have no link in their own path either.
        descriptor, number = function(os.path.join(base, path), flags)
        if descriptor >= 0:
            return descriptor
        # ELOOP: perhaps in the path of the directory. The others: not supported, forbidden in a container, or disturbed
        # by a rename.
        if number not in (errno.ELOOP, errno.ENOSYS, errno.EPERM, errno.EAGAIN):
            raise OSError(number, os.strerror(number))
    directory = os.open(base, PATH_ONLY)
    try:
        with OpenBeneath(directory) as opener:
            return opener.open(path, flags)
    finally:
        os.close(directory)


def real_path(path: bytes) -> bytes:
    """Return a path to the same file without symbolic links: as given if it has none."""
    if HAS_DESCRIPTORS and b".." not in path.split(b"/"):
        with suppress(OSError, ValueError):
            descriptor = open_real(path, getattr(os, "O_PATH", READ) | getattr(os, "O_CLOEXEC", 0))
            try:
                if not stat.S_ISLNK(os.fstat(descriptor).st_mode):
                    return path
            finally:
                os.close(descriptor)
    return os.path.realpath(path)


def real_paths(paths: Collection[bytes]) -> list[bytes]:
    """Return :func:`real_path` of many paths; a directory that contains several of them is looked at once."""
    counts = Counter([path.rpartition(b"/")[0] for path in paths])
    is_real: dict[bytes, bool] = {}
    found = []
    for path in paths:
        above, _, name = path.rpartition(b"/")
        if above and counts[above] > 1 and name not in (b"", b".", b".."):
            if above not in is_real:
                is_real[above] = real_path(above) == above
            with suppress(OSError, ValueError):
                if is_real[above] and not stat.S_ISLNK(os.lstat(path).st_mode):
                    found.append(path)
                    continue
        found.append(real_path(path))
    return found


def open_real(path: str | bytes, flags: int) -> int:
    """Open a file by a path from :func:`real_path` that may have got a symbolic link since; raises the errors of
    :func:`open_beneath`.
    """
    return open_beneath(b"/", below_root(os.fsencode(path)), flags)


def below_root(path: Any) -> Any:
    """Return a path relative to :func:`root_directory`."""
    if isinstance(path, bytes) and _is_absolute(path):
        return path[1:]
    path = os.path.abspath(path)
    return path.lstrip("/" if isinstance(path, str) else b"/")


@cache
def root_directory() -> int:
    """Return a descriptor of the root directory; it stays open."""
    return os.open("/", PATH_ONLY)


@cache
def _openat2() -> Callable[[bytes, int], tuple[int, int]] | None:
    """Return ``openat2`` without links, which returns a descriptor and an error number; :data:`None` if it is missing.

    It does in one call what :class:`OpenBeneath` does in one for each component.
    """
    if not sys.platform.startswith("linux") or sys.maxsize < 1 << 32:
        return None
    import ctypes  # imported here: slow, and rarely needed

    try:
        syscall = ctypes.CDLL(None, use_errno=True).syscall
    except (OSError, AttributeError):
        return None

    at_fdcwd = -100
    options: dict[int, bytes] = {}

    def call(path: bytes, flags: int) -> tuple[int, int]:
        how = options.get(flags)
        if how is None:
            how = options[flags] = struct.pack("=QQQ", flags, 0, _RESOLVE_NO_SYMLINKS)
        found = syscall(_OPENAT2, at_fdcwd, path, how, 24)
        return found, ctypes.get_errno() if found < 0 else 0

    return call


# --- paths chosen by others -------------------------------------------------------------------------------------------


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


class OpenReal(OpenBeneath):
    """Opens paths that :func:`real_path` has returned. A symbolic link that has appeared in one since is an
    :class:`OSError` with :data:`errno.ELOOP`.
    """

    def __init__(self) -> None:
        super().__init__(root_directory())

    def _parts(self, path: str | bytes) -> tuple[int, str | bytes]:
        return super()._parts(below_root(path))


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


# --- new files, placed by others --------------------------------------------------------------------------------------


def open_or_make(above: Directory, name: bytes) -> tuple[Directory, bool]:
    """Open a directory in another one, without following links; create it if it does not exist.

    :return: the directory, for :func:`close_directory`, and whether it was created
    :raises OSError: it cannot be opened, or is not a directory
    """
    is_new = False
    if isinstance(above, int):
        while True:
            try:
                return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above), is_new
            except FileNotFoundError:
                if is_new:
                    raise
                is_new = True
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=above)
    path = os.path.join(os.fsencode(above), name)
    if not os.path.lexists(path):
        is_new = True
        with suppress(FileExistsError):
            os.mkdir(path)
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    return path, is_new


def close_directory(directory: Directory) -> None:
    """Close a directory that :func:`open_or_make` returned."""
    if isinstance(directory, int) and directory >= 0:
        os.close(directory)


def land(source: Directory, name: bytes, top: Directory, path: bytes) -> list[bytes]:
    """Move a file to ``path`` beneath ``top``. Missing directories are created, symbolic links are not followed, and no
    file is replaced.

    :param source: the directory of the file
    :return: the directories with new names, beneath ``top``, for flushing
    :raises FileExistsError: the path is occupied
    :raises OSError: the path contains a file or symbolic link, or the file cannot be moved
    """
    *above, last = path.split(b"/")
    directory = top
    touched = []
    try:
        for depth, segment in enumerate(above):
            below, is_new = open_or_make(directory, segment)
            if is_new:
                touched.append(b"/".join(above[:depth]))
            if directory is not top:
                close_directory(directory)
            directory = below
        _move(source, name, directory, last)
    finally:
        if directory is not top:
            close_directory(directory)
    return [*touched, b"/".join(above)]


def _move(source: Directory, name: bytes, target: Directory, last: bytes) -> None:
    if not isinstance(source, int) and not isinstance(target, int):
        # On systems without directory descriptors, renaming does not replace a file.
        os.rename(os.path.join(os.fsencode(source), name), os.path.join(os.fsencode(target), last))
        return
    assert isinstance(source, int)
    assert isinstance(target, int)
    try:
        os.link(name, last, src_dir_fd=source, dst_dir_fd=target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        with suppress(FileNotFoundError):
            os.stat(last, dir_fd=target, follow_symlinks=False)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        os.rename(name, last, src_dir_fd=source, dst_dir_fd=target)
        return
    with suppress(OSError):  # the file is in place
        os.unlink(name, dir_fd=source)


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
