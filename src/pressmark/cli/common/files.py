"""Input and output of items: files or the standard streams; failures name the file.

The file of ``--output`` is replaced when the result is complete; a pipe, device or open descriptor is written to.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from pressmark.cli.common.console import CallError, Failure, cause, say

__all__ = [
    "InputStream",
    "OutputStream",
    "discard_stdout",
    "open_sink",
    "open_source",
    "refuse_missing",
    "refuse_unwritable",
]


class InputStream:
    """A binary input.

    :ivar file: the file itself
    :ivar name: its name in messages
    :ivar size: the number of bytes to read, :data:`None` if unknown
    :ivar bytes_read: the number of bytes read so far
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._read = getattr(file, "read1", file.read)
        self.file = file
        self.seekable, self.seek, self.tell = file.seekable, file.seek, file.tell
        self.name = name
        self.status = _status(file)
        self.size: int | None = None
        self.bytes_read = 0
        if self.status and stat.S_ISREG(self.status.st_mode):
            # A shell may pass a file that was read in part.
            self.size = max(0, self.status.st_size - file.tell())

    def read(self, size: int = -1) -> bytes:
        """Return the available bytes, at most ``size``; ``b""`` only at the end."""
        try:
            data: bytes = self._read(size)
        except OSError as error:
            raise Failure(f"{self.name}: {cause(error)}") from None
        self.bytes_read += len(data)
        return data

    read1 = read


class OutputStream:
    """A binary output; a pipe whose reader left raises ``BrokenPipeError``, any other error :class:`Failure`.

    :ivar name: its name in messages
    :ivar terminal: whether the data goes to a terminal
    :ivar redirect: receives the data instead, while progress is displayed on the same terminal
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self.redirect: Callable[[bytes], object] | None = None
        self.name = name
        self.terminal = file.isatty()
        self.fileno = file.fileno

    def write(self, data: bytes) -> int:
        """Write all of ``data``."""
        if self.redirect is not None:
            self.redirect(bytes(data))
            return len(data)
        with self._named():
            return self._file.write(data)

    def is_pipe(self) -> bool:
        """Return whether the data goes to a pipe."""
        return stat.S_ISFIFO(os.fstat(self.fileno()).st_mode)

    def write_now(self, data: bytes) -> None:
        """Write all of ``data``, and flush, also while progress is displayed."""
        with self._named():
            self._file.write(data)
            self._file.flush()

    def flush(self) -> None:
        """Flush the file."""
        if self.redirect is not None:
            return
        with self._named():
            self._file.flush()

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Failure(f"{self.name}: {cause(error)}") from None


@contextlib.contextmanager
def open_source(path: str | None) -> Iterator[InputStream]:
    """Open the file ``path``, or standard input for None or ``-``."""
    if path is None or path == "-":
        if sys.stdin is None:
            raise CallError("<stdin>: closed")
        file = sys.stdin.buffer
        if file.isatty():
            say(f"reading from the terminal; end with {'Ctrl-D' if os.name == 'posix' else 'Ctrl-Z and Enter'}")
        with contextlib.suppress(AttributeError, OSError, ValueError):
            # On a pipe that another program left non-blocking, "nothing yet" would look like the end.
            os.set_blocking(file.fileno(), True)
        yield InputStream(file, "<stdin>")
        return
    with contextlib.ExitStack() as stack:
        try:
            opened = stack.enter_context(open(path, "rb"))
        except OSError as error:
            raise CallError(f"{path}: {cause(error)}") from None
        except ValueError as error:  # a NUL in the name
            raise CallError(f"{path}: {error}") from None
        yield InputStream(opened, path)


@contextlib.contextmanager
def open_sink(path: str | None, source: InputStream | None) -> Iterator[OutputStream]:
    """Open the file ``path``, or standard output for None or ``-``, for the results of ``source``.

    A regular file is replaced only when the block ends without an exception.
    """
    if path is None or path == "-":
        if sys.stdout is None:
            raise CallError("<stdout>: closed")
        file = sys.stdout.buffer
        _refuse_same(_status(file), source, "<stdout>")
        yield OutputStream(file, "<stdout>")
        return
    status = _output_status(path)
    _refuse_same(status, source, path)
    with _opened_output(path) as opened:
        yield OutputStream(opened, path)


def discard_stdout() -> None:
    """Redirect stdout to the null device, so that flushing it at exit cannot fail again."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)


def refuse_missing(paths: Iterable[bytes], *, directories: bool = False, advice: str = "") -> None:
    """Refuse missing files, or files that are not ``directories``, before anything is done.

    :param advice: appended to the message about a file that is no directory
    """
    for path in paths:
        try:
            if not stat.S_ISDIR(os.stat(path).st_mode) and directories:
                raise CallError(f"{os.fsdecode(path)}: not a directory{advice}")
        except OSError as error:
            raise CallError(f"{os.fsdecode(path)}: {cause(error)}") from None


class _Unneeded(Exception):
    """Leaves an output file as it is."""


def refuse_unwritable(path: str) -> None:
    """Refuse an output that is not a file or cannot be written, before a long run that writes it at its end."""
    status = _output_status(path)
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise CallError(f"{path}: not a regular file; choose another output")
    with contextlib.suppress(_Unneeded), _replaced(path):
        raise _Unneeded


def _refuse_same(status: os.stat_result | None, source: InputStream | None, name: str) -> None:
    """Refuse to write to the file that is read: the run would lose the file, or never end."""
    if status and source and source.status and stat.S_ISREG(status.st_mode) and os.path.samestat(status, source.status):
        raise CallError(f"{name}: input and output are the same file; choose another output")


def _status(file: BinaryIO) -> os.stat_result | None:
    try:
        return os.fstat(file.fileno())
    except (OSError, ValueError):  # not a real file, as in click's test runner
        return None


# --- the file of --output ---------------------------------------------------------------------------------------------


def _output_status(path: str) -> os.stat_result | None:
    """Return the status of the file that will be written; :data:`None` if it does not exist."""
    if not path:  # it would mean the working directory below
        raise CallError("output file name is empty; use - for standard output")
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None  # opening it decides
    except (OSError, ValueError) as error:
        raise CallError(f"{path}: {cause(error) if isinstance(error, OSError) else error}") from None


def _opened_output(path: str) -> contextlib.AbstractContextManager[BinaryIO]:
    """Open the file ``path``; a regular file is replaced when the block ends."""
    from pressmark.fs.atomic import is_stream

    if is_stream(path):  # or a directory, which fails
        return _written(path)
    return _replaced(path)


@contextlib.contextmanager
def _written(path: str) -> Iterator[BinaryIO]:
    from pressmark.fs.atomic import open_stream

    try:
        file = open_stream(path)  # closing may fail a second time, which "with" would raise
    except OSError as error:
        raise CallError(f"{path}: {cause(error)}") from None
    try:
        yield file
    finally:
        # Everything was flushed, or an error is being raised already.
        with contextlib.suppress(OSError):
            file.close()


@contextlib.contextmanager
def _replaced(path: str) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` unless the block raises."""
    from pressmark.fs.atomic import Replacement
    from pressmark.fs.owners import require_replaceable, resolved

    # The target of a symbolic link is replaced, not the link.
    try:
        target = resolved(path)
        status = require_replaceable(target)
    except OSError as error:
        raise CallError(f"{path}: {cause(error)}") from None
    if status is not None and not os.access(target, os.W_OK):
        raise CallError(f"{path}: write-protected; choose another output")
    new = Replacement(target, like=status)
    try:
        try:
            file = new.open()
        except FileNotFoundError as error:
            raise CallError(f"{path}: {cause(error)}; create its directory first") from None
        except OSError as error:
            raise CallError(f"{path}: {cause(error)}") from None
        yield file
        try:
            new.commit()
        except OSError as error:
            raise Failure(f"{path}: {cause(error)}") from None
    finally:
        new.abandon()
