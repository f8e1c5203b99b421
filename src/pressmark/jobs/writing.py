"""Files that are there whole or not at all, whoever else writes the same ones at the same time."""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from pressmark.fs.durable import flush_directory
from pressmark.jobs.receipts import host

__all__ = ["OutputFile", "is_temporary", "temporary", "write_new", "write_whole"]

_SUFFIX = ".tmp"
_UNSAFE = re.compile(r"[^A-Za-z0-9-]")


def temporary(target: Path) -> Path:
    """Return a name beside ``target`` that no process on any machine has, nor an earlier attempt of this one."""
    machine = _UNSAFE.sub("_", host())[:40]
    return target.with_name(f".{target.name}.{machine}-{os.getpid()}-{uuid.uuid4().hex}{_SUFFIX}")


def is_temporary(name: str) -> bool:
    """Whether a file's name is one that :func:`temporary` gives."""
    return name.startswith(".") and name.endswith(_SUFFIX)


class OutputFile:
    """A file that is being written; a context manager. It has its name when it is complete and on the disk.

    It has what writers of Parquet and others ask of a file: ``write``, ``flush``, ``tell``, ``closed``; the end of the
    context closes it, and nothing else does.

    :param target: where it will be

    :ivar name: the target's
    :ivar size: bytes that were written
    """

    def __init__(self, target: Path) -> None:
        self.name = target.name
        self.size = 0
        self._target = target
        self._temporary = temporary(target)
        self._hash = hashlib.sha256()
        self._file = open(self._temporary, "xb")  # noqa: SIM115  # closed by commit and abandon
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
        if self.closed:
            return
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            os.replace(self._temporary, self._target)
        except BaseException:
            self.abandon()
            raise
        self.closed = True
        flush_directory(os.fsencode(self._target.parent))

    def abandon(self) -> None:
        """Leave nothing behind."""
        if self.closed:
            return
        self.closed = True
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._temporary.unlink()


def write_whole(target: Path, data: bytes) -> None:
    """Write a file, in the place of the one that is there."""
    with OutputFile(target) as file:
        file.write(data)


def write_new(target: Path, data: bytes) -> bool:
    """Write a file that is not there yet, and return whether this call was the first to do so."""
    new = temporary(target)
    try:
        with open(new, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            # A link, not a rename: of two that come at the same time, one fails.
            os.link(new, target)
        except FileExistsError:
            return False
        except OSError:
            # A file system without links: between the look and the rename is the moment in which both may come first.
            if target.exists():
                return False
            os.replace(new, target)
        flush_directory(os.fsencode(target.parent))
        return True
    finally:
        with suppress(OSError):
            new.unlink()
