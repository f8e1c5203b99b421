"""Files that are published atomically: written under a temporary name, then renamed; and outputs that cannot be."""

from __future__ import annotations

import os
import re
import stat
from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import Any, AnyStr, BinaryIO

from pressmark.fs.durable import flush_directory, flush_file
from pressmark.fs.owners import require_replaceable, resolved

__all__ = [
    *("OutputFile", "Replacement", "is_stream", "is_temporary", "new_file", "open_output", "open_stream"),
    *("replace_file", "temporary", "write_new"),
]

# The directories of open descriptors, without symbolic links.
_DESCRIPTORS = re.compile("/dev/fd|/proc/[0-9]+(/task/[0-9]+)?/fd", re.ASCII)
_LINKS = 40  # symbolic links that the system follows

_EXCLUSIVE = os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def new_file(path: str | bytes, flags: int) -> int:
    """Create a file with a fixed name; an ``opener`` for :func:`open`.

    A leftover file of a killed run is removed first. An existing file, or the target of a link, is never written to.

    :raises OSError: the path is a directory, or the file cannot be created
    """
    flags = (flags & ~os.O_TRUNC) | _EXCLUSIVE
    try:
        return os.open(path, flags, 0o666)
    except FileExistsError:
        os.unlink(path)
        return os.open(path, flags, 0o666)


def temporary(target: AnyStr) -> AnyStr:
    """Return a unique path in the directory of ``target``."""
    name: Any = f".pressmark-{os.urandom(16).hex()}.tmp"
    return os.path.join(os.path.dirname(target), name if isinstance(target, str) else name.encode())


def is_temporary(name: str) -> bool:
    """Return whether ``name`` has the form of a temporary file: of :func:`temporary`, or of the progress of a chunk."""
    return name.startswith(".") and name.endswith(".tmp")


class Replacement:
    """A new file that replaces ``target`` when it is complete; a context manager that returns the open file.

    After an exception the file is removed and ``target`` unchanged. To make the rename durable, the caller flushes the
    directory (:func:`~pressmark.fs.durable.flush_directory`).

    :param target: a symbolic link is replaced itself: see :func:`pressmark.fs.owners.resolved`
    :param part: the temporary name, also of a killed run; :data:`None` for a unique one
    :param durable: flush the content to disk before the rename
    :param like: status of the file that is replaced, whose permissions, group and owner the new file has, as far as
        this user may give a file away; :data:`None` for those of a new file
    """

    def __init__(
        self,
        target: str | bytes | os.PathLike[str],
        *,
        part: str | bytes | None = None,
        durable: bool = True,
        like: os.stat_result | None = None,
    ) -> None:
        path: Any = os.fspath(target)
        self._target: str | bytes = path
        self._part: str | bytes = part or temporary(path)
        self._opener = None if part is None else new_file
        self._durable = durable
        self._like = like
        self._file: BinaryIO | None = None
        self._ended = False

    def __enter__(self) -> BinaryIO:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.commit()
        else:
            self.abandon()

    def open(self) -> BinaryIO:
        """Create the file with default permissions, and return it.

        :raises OSError: it cannot be created
        """
        try:
            mode = "wb" if self._opener else "xb"
            file: BinaryIO = open(self._part, mode, opener=self._opener)  # type: ignore[assignment]  # noqa: SIM115
            self._file = file
        except BaseException:
            self.abandon()
            raise
        return file

    def commit(self) -> None:
        """Rename the file to ``target``.

        :raises OSError: it cannot be written or renamed; it is removed then
        """
        if self._ended:
            return
        assert self._file is not None
        try:
            self._file.flush()
            if self._durable:
                flush_file(self._file.fileno())
            if self._like is not None:
                _keep_owner(self._file.fileno(), self._like)
                # By descriptor: another file may have its name by now.
                named = self._file.fileno() if os.chmod in os.supports_fd else self._part
                os.chmod(named, stat.S_IMODE(self._like.st_mode))
            self._file.close()
            os.replace(self._part, self._target)
        except BaseException:
            self.abandon()
            raise
        self._ended = True

    def abandon(self) -> None:
        """Remove the file; without effect after :meth:`commit`."""
        if self._ended:
            return
        self._ended = True
        with suppress(OSError):
            if self._file is not None:
                self._file.close()
        with suppress(OSError):
            os.unlink(self._part)


def _keep_owner(descriptor: int, like: os.stat_result) -> None:
    """Give a file the group and the owner of another, if this user may: root would otherwise take over its file."""
    if hasattr(os, "fchown"):
        new = os.fstat(descriptor)
        # The owner last: afterwards this user may not change the group.
        for owner, group in ((-1, like.st_gid), (like.st_uid, -1)):
            if owner not in (-1, new.st_uid) or group not in (-1, new.st_gid):
                with suppress(OSError):  # not root, or not supported by this file system
                    os.fchown(descriptor, owner, group)


def replace_file(target: str | bytes | os.PathLike[str], data: bytes, *, part: str | bytes | None = None) -> None:
    """Replace a file durably.

    :param part: as for :class:`Replacement`
    :raises OSError: it cannot be written
    """
    with Replacement(target, part=part) as file:
        file.write(data)
    flush_directory(_above(target))


def write_new(target: str | bytes | os.PathLike[str], data: bytes) -> bool:
    """Create a file durably, unless it exists; return whether it was created.

    :raises OSError: it cannot be written
    """
    path: Any = os.fspath(target)
    new: Any = temporary(path)
    try:
        with open(new, "xb") as file:
            file.write(data)
            file.flush()
            flush_file(file.fileno())
        try:
            # A link, not a rename: of two concurrent calls, one fails.
            os.link(new, path)
        except FileExistsError:
            return False
        except OSError:
            # A file system without links: two concurrent calls may both succeed.
            if os.path.exists(path):
                return False
            os.replace(new, path)
        flush_directory(_above(path))
        return True
    finally:
        with suppress(OSError):
            os.unlink(new)


# --- outputs that a user names ----------------------------------------------------------------------------------------


def open_output(path: AnyStr, *, durable: bool = True) -> AbstractContextManager[BinaryIO]:
    """Open an output file that a user names: a :class:`Replacement` of a regular file, also of the target of a symbolic
    link, which keeps permissions and owner; anything else is written to: see :func:`is_stream`.

    :raises UntrustedError: it is a file or symbolic link of another user in a directory writable by everybody
    :raises OSError: it cannot be opened
    """
    target = resolved(path)
    if is_stream(path):
        return open_stream(path)
    return Replacement(target, durable=durable, like=require_replaceable(target))


def is_stream(path: str | bytes) -> bool:
    """Return whether an output is written to and not replaced: an open descriptor by its name, such as ``/dev/stdout``,
    ``/dev/fd/3`` or ``/proc/self/fd/3``, whatever file is behind it; a named pipe; or a device. Also a link to one.
    """
    try:
        return _descriptor(path) is not None or not stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False  # a new file, or opening it reports the error


def open_stream(path: str | bytes) -> BinaryIO:
    """Open an output for which :func:`is_stream` is true: its content so far is kept.

    :raises OSError: it cannot be opened
    """
    found = _descriptor(path)
    if found is not None and (found[0] == "/dev/fd" or f"{found[0]}/".startswith(f"{os.path.realpath('/proc/self')}/")):
        # Opened again, a file would be written from its start.
        return os.fdopen(os.dup(found[1]), "wb")
    flags = os.O_WRONLY | os.O_APPEND | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0)
    flags |= getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags), "wb")


def _descriptor(path: str | bytes) -> tuple[str, int] | None:
    """Return the directory and the number of the open descriptor that ``path`` names, also through symbolic links."""
    name = os.fsdecode(path)
    for _ in range(_LINKS):
        folder, name = os.path.split(name)
        folder = os.path.realpath(folder)
        if _DESCRIPTORS.fullmatch(folder) and re.fullmatch("[0-9]{1,9}", name, re.ASCII):
            return folder, int(name)
        try:
            name = os.path.join(folder, os.readlink(os.path.join(folder, name)))
        except OSError:
            return None
    return None


# --- hashed files -----------------------------------------------------------------------------------------------------


class OutputFile:
    """A file that is hashed while it is written, and replaces ``target`` durably; a context manager.

    It has the methods that writers of Parquet require. Only the end of the context closes it.

    :ivar name: file name of ``target``
    :ivar size: bytes written
    """

    def __init__(self, target: str | os.PathLike[str]) -> None:
        import hashlib  # few runs write such a file

        self.name = os.path.basename(os.fspath(target))
        self.size = 0
        self._target = target
        self._hash = hashlib.sha256()
        self._replacement = Replacement(target)
        self._file = self._replacement.open()
        self.closed = False

    def __enter__(self) -> OutputFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.commit()
        else:
            self.abandon()

    @property
    def sha256(self) -> str:
        """The SHA-256 of the bytes written, in hex."""
        return self._hash.hexdigest()

    def write(self, data: bytes | memoryview) -> int:
        """Write all of ``data``; without effect after :meth:`commit` or :meth:`abandon`."""
        view = memoryview(data)
        if not self.closed:
            self._file.write(view)
            self._hash.update(view)
            self.size += view.nbytes
        return view.nbytes

    def flush(self) -> None:
        """Do nothing: :meth:`commit` flushes."""

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self.size

    def close(self) -> None:
        """Do nothing: the end of the context closes the file."""

    def commit(self) -> None:
        """Flush the file to disk and rename it to ``target``."""
        if not self.closed:
            self.closed = True
            self._replacement.commit()
            flush_directory(_above(self._target))

    def abandon(self) -> None:
        """Remove the file; without effect after :meth:`commit`."""
        self.closed = True
        self._replacement.abandon()


def _above(path: str | bytes | os.PathLike[str]) -> bytes:
    return os.path.dirname(os.fsencode(path)) or os.fsencode(os.curdir)
