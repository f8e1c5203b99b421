"""Files that appear as a whole or not at all: written under another name first."""

from __future__ import annotations

import hashlib
import os
import stat
import uuid
from contextlib import suppress
from types import TracebackType
from typing import Any, AnyStr, BinaryIO

from pressmark.fs.durable import flush_directory

__all__ = ["OutputFile", "Replacement", "is_temporary", "new_file", "replace_file", "temporary", "write_new"]

_EXCLUSIVE = os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def new_file(path: str | bytes, flags: int) -> int:
    """Open a file under a name that is always the same, for :func:`open` as its ``opener``.

    What a killed run has left there goes first. What somebody has put there is never written to: not the file that a
    link leads to, nor one that has another name as well.

    :raises OSError: a directory has the name, or the file cannot be made
    """
    flags = (flags & ~os.O_TRUNC) | _EXCLUSIVE
    try:
        return os.open(path, flags, 0o666)
    except FileExistsError:
        os.unlink(path)
        return os.open(path, flags, 0o666)


def temporary(target: AnyStr) -> AnyStr:
    """Return a path beside ``target`` that no process on any machine uses."""
    name: Any = f".pressmark-{uuid.uuid4().hex}.tmp"
    return os.path.join(os.path.dirname(target), name if isinstance(target, str) else name.encode())


def is_temporary(name: str) -> bool:
    """Return whether a file name is one that :func:`temporary` gives, or gave in earlier versions."""
    return name.startswith(".") and name.endswith(".tmp")


class Replacement:
    """A new file that takes the place of ``target`` when it is complete; a context manager that gives the open file.

    After an exception nothing of it is left, and ``target`` is as it was. Its name is on the disk after
    :func:`~pressmark.fs.durable.flush_directory`, which is left to the caller.

    :param target: a link there is replaced itself: see :func:`pressmark.fs.owners.resolved`
    :param part: the name until then, which a killed run may have used; :data:`None` for one that nothing has
    :param durable: the content is on the disk before it gets its name
    """

    def __init__(
        self, target: str | bytes | os.PathLike[str], *, part: str | bytes | None = None, durable: bool = True
    ) -> None:
        path: Any = os.fspath(target)
        self._target: str | bytes = path
        self._part: str | bytes = part or temporary(path)
        self._opener = None if part is None else new_file
        self._durable = durable
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
        """Make the file, with the usual permissions, and return it.

        :raises OSError: it cannot be made
        """
        try:
            mode = "wb" if self._opener else "xb"
            file: BinaryIO = open(self._part, mode, opener=self._opener)  # type: ignore[assignment]  # noqa: SIM115
            self._file = file
        except BaseException:
            self.abandon()
            raise
        return file

    def commit(self, mode: int | None = None) -> None:
        """Give the file its name.

        :param mode: ``st_mode`` whose permissions it gets; :data:`None` for the usual ones
        :raises OSError: it cannot be written completely, or not renamed; nothing of it is left
        """
        if self._ended:
            return
        assert self._file is not None
        try:
            self._file.flush()
            if self._durable:
                os.fsync(self._file.fileno())
            if mode is not None:
                # By the descriptor: its name may lead elsewhere by now.
                os.chmod(self._file.fileno() if os.chmod in os.supports_fd else self._part, stat.S_IMODE(mode))
            self._file.close()
            os.replace(self._part, self._target)
        except BaseException:
            self.abandon()
            raise
        self._ended = True

    def abandon(self) -> None:
        """Leave nothing behind; without effect after :meth:`commit`."""
        if self._ended:
            return
        self._ended = True
        with suppress(OSError):
            if self._file is not None:
                self._file.close()
        with suppress(OSError):
            os.unlink(self._part)


def replace_file(target: str | bytes | os.PathLike[str], data: bytes, *, part: str | bytes | None = None) -> None:
    """Write a file in the place of the one that is there; it has its name and is on the disk afterwards.

    :param part: as of :class:`Replacement`
    :raises OSError: it cannot be written
    """
    with Replacement(target, part=part) as file:
        file.write(data)
    flush_directory(_above(target))


def write_new(target: str | bytes | os.PathLike[str], data: bytes) -> bool:
    """Write a file that is not there yet, and return whether this call was the first to do so.

    :raises OSError: it cannot be written
    """
    path: Any = os.fspath(target)
    new: Any = temporary(path)
    try:
        with open(new, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            # A link, not a rename: of two that come at the same time, one fails.
            os.link(new, path)
        except FileExistsError:
            return False
        except OSError:
            # A file system without links: between the look and the rename is the moment in which both may come first.
            if os.path.exists(path):
                return False
            os.replace(new, path)
        flush_directory(_above(path))
        return True
    finally:
        with suppress(OSError):
            os.unlink(new)


class OutputFile:
    """A file that is hashed while it is written; a context manager. It has its name when it is complete and on disk.

    It has what writers of Parquet and others ask of a file: ``write``, ``flush``, ``tell``, ``closed``; the end of the
    context closes it, and nothing else does.

    :param target: where it will be, in the place of what is there

    :ivar name: the target's
    :ivar size: bytes that were written
    """

    def __init__(self, target: str | os.PathLike[str]) -> None:
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
        """Return the digest of what was written, in hex."""
        return self._hash.hexdigest()

    def write(self, data: bytes | memoryview) -> int:
        """Write all of ``data``; after the end, nothing gets through."""
        view = memoryview(data)
        if not self.closed:
            self._file.write(view)
            self._hash.update(view)
            self.size += view.nbytes
        return view.nbytes

    def flush(self) -> None:
        """Leave that to the end."""

    def tell(self) -> int:
        """Return how many bytes were written."""
        return self.size

    def close(self) -> None:
        """Leave that to the end of the context."""

    def commit(self) -> None:
        """Give the file its name, once it is on the disk."""
        if not self.closed:
            self.closed = True
            self._replacement.commit()
            flush_directory(_above(self._target))

    def abandon(self) -> None:
        """Leave nothing behind; without effect after :meth:`commit`."""
        self.closed = True
        self._replacement.abandon()


def _above(path: str | bytes | os.PathLike[str]) -> bytes:
    return os.path.dirname(os.fsencode(path)) or os.fsencode(os.curdir)
