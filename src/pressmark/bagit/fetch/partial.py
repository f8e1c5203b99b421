"""A partially downloaded file, hashed while its content arrives, which a later run continues."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType

from pressmark.bagit.fetch.urls import URL_LENGTH, DownloadError
from pressmark.fixity.algorithms import ALGORITHMS, Hasher
from pressmark.fs.beneath import Directory
from pressmark.fs.durable import flush_file

__all__ = [
    *("BLOCK", "OPEN_FLAGS", "RESUMABLE"),
    *("PartialFile", "remove_partial", "unlink", "validator_of"),
]

BLOCK = 1 << 18  # 256 KiB
# Smaller files are downloaded again, without a record.
RESUMABLE = 1 << 20  # 1 MiB
VALIDATOR_SIZE = 1 << 12  # 4 KiB: the size limit of a record, besides the URL

# Flags for all files.
OPEN_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
_OWN = OPEN_FLAGS | getattr(os, "O_NOFOLLOW", 0)


class PartialFile:
    """A file under a temporary name, and the digests of its present content; a context manager.

    A large file has a record ``name.json`` in the same directory, with the URL and the validator of the server.

    :param directory: directory of the file
    :param name: temporary name
    :param url: source of the file
    :param algorithms: official names of the algorithms
    :param length: size of the complete file in bytes, if known
    :param cancelled: called before each write

    :ivar size: present size in bytes
    :ivar spliced: whether the content was received in several responses, so only a digest can prove that it is
        consistent
    :ivar validator: name and value of the header by which the server identifies this state of the file
    :raises OSError: the file cannot be opened or read
    """

    def __init__(
        self,
        directory: Directory,
        name: bytes,
        url: str,
        algorithms: Iterable[str],
        length: int | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self._algorithms = tuple(algorithms)
        self._cancelled = cancelled
        self._begin()
        self.name = name
        self._url = url
        self._remembered = False
        # A separate descriptor, because the caller may close the other one.
        self._directory = os.dup(directory) if isinstance(directory, int) else directory
        self._descriptor = -1
        try:
            self._descriptor = self._open()
            self._take_up(length)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> PartialFile:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all descriptors; the file is kept."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)
        if isinstance(self._directory, int) and self._directory >= 0:
            directory, self._directory = self._directory, -1
            os.close(directory)

    def digests(self) -> dict[str, str]:
        """Return the digests of the present content."""
        return {name: hasher.hexdigest() for name, hasher in self._hashers.items()}

    def restart(self) -> None:
        """Discard the present content."""
        self._forget()
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        self._begin()

    def write(self, data: bytes) -> None:
        """Append ``data``.

        :raises OSError: the data cannot be written
        :raises DownloadError: the run was cancelled
        """
        self._check_cancelled()
        view = memoryview(data)
        while view:
            # Count partial writes: file and digests must have the same length.
            done = os.write(self._descriptor, view)
            self._hash(view[:done])
            view = view[done:]
        if self.size >= RESUMABLE and self.validator is not None and not self._remembered:
            self._remember(self.validator)

    def flush(self) -> None:
        """Write the content to disk."""
        flush_file(self._descriptor)

    def _begin(self) -> None:
        self.size = 0
        self.spliced = False
        self.validator: tuple[str, str] | None = None
        self._hashers: dict[str, Hasher] = {name: ALGORITHMS[name].make(1) for name in self._algorithms}

    def _hash(self, data: bytes | memoryview) -> None:
        for hasher in self._hashers.values():
            hasher.update(data)
        self.size += len(data)

    def _check_cancelled(self) -> None:
        if self._cancelled():
            raise DownloadError("cancelled", "run cancelled")

    # --- the file and its record ----------------------------------------------------------------------------------

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | _OWN
        for _ in range(2):
            try:
                descriptor = self._at(self.name, flags)
            except OSError as error:
                if error.errno not in (errno.ELOOP, errno.EMLINK, errno.ENXIO):
                    raise
                unlink(self._directory, self.name)  # a link or socket, not created by us
                continue
            status = os.fstat(descriptor)
            # A file with a second name belongs to someone else, or is already in the payload.
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                return descriptor
            os.close(descriptor)
            unlink(self._directory, self.name)
        return self._at(self.name, flags | os.O_EXCL)

    def _at(self, name: bytes, flags: int) -> int:
        if isinstance(self._directory, int):
            return os.open(name, flags, 0o666, dir_fd=self._directory)
        return os.open(os.path.join(os.fsencode(self._directory), name), flags, 0o666)

    def _take_up(self, length: int | None) -> None:
        """Continue an earlier run: hash the present content, if it can be used."""
        found = os.fstat(self._descriptor).st_size
        validator = self._recall() if found else None
        if validator is None and found != length:
            self.restart()
            return
        while data := os.read(self._descriptor, BLOCK):
            self._check_cancelled()
            self._hash(data)
        self.spliced = self.size > 0
        self.validator = validator
        self._remembered = validator is not None

    def _remember(self, validator: tuple[str, str]) -> None:
        with open(self._at(self.name + b".json", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _OWN), "wb") as file:
            file.write(json.dumps({"url": self._url, "validator": validator}).encode())
        self._remembered = True

    def _recall(self) -> tuple[str, str] | None:
        try:
            with open(self._at(self.name + b".json", os.O_RDONLY | _OWN), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return None
                found = json.loads(file.read(URL_LENGTH + VALIDATOR_SIZE))
            if found["url"] != self._url:
                return None
            return validator_of({str(found["validator"][0]): str(found["validator"][1])})
        except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError):
            return None

    def _forget(self) -> None:
        unlink(self._directory, self.name + b".json")
        self._remembered = False


def validator_of(headers: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the header by which the server will recognize this state of the file. A weak ETag does not support
    ranges.
    """
    for name, form in (("ETag", r'"[\x21\x23-\x7e]{0,1000}"'), ("Last-Modified", r"[A-Za-z0-9,: +-]{1,64}")):
        value = headers.get(name)
        if value is not None and re.fullmatch(form, value):
            return name, value
    return None


def remove_partial(directory: Directory, name: bytes) -> None:
    """Remove a partial file and its record, if possible."""
    for each in (name + b".json", name):
        with contextlib.suppress(OSError):
            unlink(directory, each)


def unlink(directory: Directory, name: bytes) -> None:
    """Remove a file of an open directory, if it exists."""
    with contextlib.suppress(FileNotFoundError):
        if isinstance(directory, int):
            os.unlink(name, dir_fd=directory)
        else:
            os.unlink(os.path.join(os.fsencode(directory), name))
