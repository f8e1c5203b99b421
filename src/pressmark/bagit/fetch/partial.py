"""What has come of a file: under a temporary name, hashed, and gone on with by the next request or the next run."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType

from pressmark.bagit.fetch.download_errors import DownloadError
from pressmark.bagit.fetch.urls import URL_LENGTH
from pressmark.fixity.algorithms import ALGORITHMS, Hasher

__all__ = ["BLOCK", "OPEN_FLAGS", "RESUMABLE", "Directory", "PartialFile", "remove_partial", "validator_of"]

BLOCK = 1 << 18  # 256 KiB
# A part of less is not worth a file beside it that says how to go on with it.
RESUMABLE = 1 << 20  # 1 MiB
VALIDATOR_SIZE = 1 << 12  # 4 KiB: the most that such a file is read of

# Of every file that is opened.
OPEN_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
_OWN = OPEN_FLAGS | getattr(os, "O_NOFOLLOW", 0)

# An open directory's descriptor; on systems that open nothing relative to a directory, its path.
Directory = int | bytes


class PartialFile:
    """The beginning of a file under a temporary name, and the digests of what there is of it; a context manager.

    Beside a large part stands ``name.json``: the URL and what the server calls this state of the file.

    :param directory: where it is, and stays until it is moved
    :param name: what it is called there
    :param url: where it comes from
    :param algorithms: official names
    :param length: bytes of the whole file, where that is known
    :param cancelled: asked before anything is written

    :ivar size: bytes that there are
    :ivar spliced: they came in several pieces: nothing but a digest can say that these are of one file
    :ivar validator: what the server calls this state of the file: the header that says so, and its value
    :ivar encoding: how the server says that it has encoded the file on the way
    :raises OSError: it cannot be opened or read
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
        self.name = name
        self.size = 0
        self.spliced = False
        self.validator: tuple[str, str] | None = None
        self.encoding = "identity"
        self._url = url
        self._algorithms = tuple(algorithms)
        self._hashers: dict[str, Hasher] = {}
        self._cancelled = cancelled
        self._remembered = False
        # Its own: whoever gave the other may close it, and its number may then mean another directory.
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
        """Give back the descriptors; what there is stays."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)
        if isinstance(self._directory, int) and self._directory >= 0:
            directory, self._directory = self._directory, -1
            os.close(directory)

    def digests(self) -> dict[str, str]:
        """Return the digests of what there is."""
        return {name: hasher.hexdigest() for name, hasher in self._hashers.items()}

    def restart(self) -> None:
        """Throw away what there is."""
        self._forget()
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        self.size = 0
        self.spliced = False
        self.validator = None
        self._hashers = {name: ALGORITHMS[name].make(1) for name in self._algorithms}

    def write(self, data: bytes) -> None:
        """Append ``data``.

        :raises OSError: the disk is full, or fails
        """
        if self._cancelled():
            raise DownloadError("cancelled", "the run was ended")
        view = memoryview(data)
        while view:
            # What was written counts even if the rest was not: the file and the digests must stay of one length.
            done = os.write(self._descriptor, view)
            for hasher in self._hashers.values():
                hasher.update(view[:done])
            self.size += done
            view = view[done:]
        if self.size >= RESUMABLE and self.validator is not None and not self._remembered:
            self._remember(self.validator)

    def flush(self) -> None:
        """Have what there is on the disk."""
        os.fsync(self._descriptor)

    # --- the file, and the one beside it --------------------------------------------------------------------------

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | _OWN
        for _ in range(2):
            try:
                descriptor = self._at(self.name, flags)
            except OSError as error:
                if error.errno not in (errno.ELOOP, errno.EMLINK, errno.ENXIO):
                    raise
                self._unlink(self.name)  # a link, or a socket: nothing of ours
                continue
            status = os.fstat(descriptor)
            # With a second name it would be somebody else's file too: perhaps it has been moved into place already.
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                return descriptor
            os.close(descriptor)
            self._unlink(self.name)
        return self._at(self.name, flags | os.O_EXCL)

    def _at(self, name: bytes, flags: int) -> int:
        if isinstance(self._directory, int):
            return os.open(name, flags, 0o666, dir_fd=self._directory)
        return os.open(os.path.join(self._directory, name), flags, 0o666)

    def _unlink(self, name: bytes) -> None:
        with contextlib.suppress(FileNotFoundError):
            if isinstance(self._directory, int):
                os.unlink(name, dir_fd=self._directory)
            else:
                os.unlink(os.path.join(self._directory, name))

    def _take_up(self, length: int | None) -> None:
        """Go on where an earlier run stopped: hash what it has left, where that is of any use."""
        found = os.fstat(self._descriptor).st_size
        validator = self._recall() if found else None
        if validator is None and found != length:
            self.restart()
            return
        self._hashers = {name: ALGORITHMS[name].make(1) for name in self._algorithms}
        while data := os.read(self._descriptor, BLOCK):
            if self._cancelled():
                raise DownloadError("cancelled", "the run was ended")
            for hasher in self._hashers.values():
                hasher.update(data)
            self.size += len(data)
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
        self._unlink(self.name + b".json")
        self._remembered = False


def validator_of(headers: Mapping[str, str]) -> tuple[str, str] | None:
    """Return by what the server will know this very state of the file again; a weak ETag is not enough for ranges."""
    for name, form in (("ETag", r'"[\x21\x23-\x7e]{0,1000}"'), ("Last-Modified", r"[A-Za-z0-9,: +-]{1,64}")):
        value = headers.get(name)
        if value is not None and re.fullmatch(form, value):
            return name, value
    return None


def remove_partial(directory: Directory, name: bytes) -> None:
    """Remove a part and what is beside it."""
    for each in (name + b".json", name):
        with contextlib.suppress(OSError):
            if isinstance(directory, int):
                os.unlink(each, dir_fd=directory)
            else:
                os.unlink(os.path.join(directory, each))
