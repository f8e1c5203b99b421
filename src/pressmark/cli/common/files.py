"""Input and output of items: files or the standard streams; failures name the file."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click

from pressmark.cli.common.console import CallError, Failure, cause

if TYPE_CHECKING:
    from pressmark.tabular.detection import Crlf, ListStream

__all__ = [
    "CRLF_OPTION",
    "InputStream",
    "OutputStream",
    "checked_list",
    "open_lines",
    "open_sink",
    "open_source",
    "packed",
    "unpacked",
]

CRLF_OPTION = click.option(
    "--crlf",
    type=click.Choice(["strip", "keep"]),
    help="For lists with carriage returns before line feeds or a byte-order mark: strip both, or keep them as parts of"
    " identifiers. Default: refuse such a list.",
)


class InputStream:
    """A binary input.

    :ivar file: the file itself, for readers that seek
    :ivar name: its name in messages
    :ivar size: the number of bytes to read, :data:`None` if unknown
    :ivar bytes_read: the number of bytes read so far
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._read = getattr(file, "read1", file.read)
        self.file = file
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
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self.name = name
        self.terminal = file.isatty()

    def write(self, data: bytes) -> int:
        """Write all of ``data``."""
        with self._named():
            return self._file.write(data)

    def flush(self) -> None:
        """Flush the file."""
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
    if not path:  # it would mean the working directory below
        raise CallError("output file name is empty; use - for standard output")
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        status = None  # opening it decides
    except (OSError, ValueError) as error:
        raise CallError(f"{path}: {cause(error) if isinstance(error, OSError) else error}") from None
    _refuse_same(status, source, path)
    if status is not None and not stat.S_ISREG(status.st_mode):
        # A device or a named pipe is written to, not replaced by a file; a directory fails.
        with _written(path) as file:
            yield OutputStream(file, path)
    else:
        with _replaced(path, status) as file:
            yield OutputStream(file, path)


@contextlib.contextmanager
def _written(path: str) -> Iterator[BinaryIO]:
    try:
        file = open(path, "wb")  # noqa: SIM115 - closing may fail a second time, which "with" would raise
    except OSError as error:
        raise CallError(f"{path}: {cause(error)}") from None
    try:
        yield file
    finally:
        # Everything was flushed, or an error is being raised already.
        with contextlib.suppress(OSError):
            file.close()


@contextlib.contextmanager
def _replaced(path: str, status: os.stat_result | None) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path``, which has ``status``, unless the block raises."""
    from pressmark.fs.atomic import Replacement
    from pressmark.fs.owners import resolved

    # The target of a symbolic link is replaced, not the link.
    try:
        target = resolved(path)
    except OSError as error:
        raise CallError(f"{path}: {cause(error)}") from None
    if status is not None and not os.access(target, os.W_OK):
        raise CallError(f"{path}: write-protected")
    new = Replacement(target)
    try:
        try:
            file = new.open()
        except OSError as error:
            raise CallError(f"{path}: {cause(error)}") from None
        yield file
        try:
            new.commit(None if status is None else status.st_mode)
        except OSError as error:
            raise Failure(f"{path}: {cause(error)}") from None
    finally:
        new.abandon()


def _refuse_same(status: os.stat_result | None, source: InputStream | None, name: str) -> None:
    """Refuse to write to the file that is read: the run would lose the file, or never end."""
    if status and source and source.status and stat.S_ISREG(status.st_mode) and os.path.samestat(status, source.status):
        raise CallError(f"{name}: input and output are the same file")


def _status(file: BinaryIO) -> os.stat_result | None:
    try:
        return os.fstat(file.fileno())
    except (OSError, ValueError):  # not a real file, as in click's test runner
        return None


def unpacked(source: InputStream, gunzip: bool) -> BinaryIO:
    """Return the stream of the bytes of ``source``, decompressed if ``gunzip``."""
    if not gunzip:
        return cast(BinaryIO, source)
    from pressmark.cli.common.gzipped import GunzippedStream

    return cast(BinaryIO, GunzippedStream(source))


@contextlib.contextmanager
def packed(sink: OutputStream, gzip: bool) -> Iterator[BinaryIO]:
    """Yield a stream that writes to ``sink``, compressed if ``gzip``.

    Where the block fails no end mark is written, so that an incomplete file cannot pass for a complete one.
    """
    if not gzip:
        yield cast(BinaryIO, sink)
        return
    from pressmark.cli.common.gzipped import GzippedStream

    compressed = GzippedStream(sink)
    yield cast(BinaryIO, compressed)
    compressed.finish()


def checked_list(data: Any, format: str, null: bool, crlf: Crlf | None, json_lines: bool = True) -> ListStream:
    """Return the stream of a list, after checking its first bytes.

    :param data: a stream with the ``name`` of its file
    :param json_lines: refuse lines that are JSON
    :raises CallError: the file has another format, or needs ``--crlf``
    """
    from pressmark.tabular.detection import FormatError, open_list

    try:
        return open_list(data, format, delimiter=b"\0" if null else b"\n", crlf=crlf, json_lines=json_lines)
    except FormatError as error:
        raise CallError(f"{data.name}: {error}") from None


@contextlib.contextmanager
def open_lines(path: str, null: bool, crlf: Crlf | None) -> Iterator[ListStream]:
    """Open a list of lines, which may be gzipped."""
    from pressmark.tabular.detection import FormatError, format_of, is_gzip

    try:
        format = format_of(path)
    except FormatError as error:
        raise CallError(f"{path}: {error}") from None
    if format not in (None, "lines", "tsv"):
        raise CallError(f"{path}: not a list of lines; save it as lines with a TAB in each")
    with open_source(path) as source:
        yield checked_list(unpacked(source, is_gzip(path)), "lines", null, crlf, json_lines=False)
