"""Input and output of items: files or the standard streams; failures name the file."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, TypeVar

import click

from pressmark.cli.common.console import CallError, Failure, cause, say
from pressmark.cli.common.program import discard_stdout

__all__ = [
    "CRLF_OPTION",
    "BufferedLines",
    "InputStream",
    "OutputStream",
    "check_globs",
    "exclude_options",
    "globs_to_exclude",
    "open_sink",
    "open_source",
    "refuse_missing",
]

Function = TypeVar("Function", bound=Callable[..., Any])

WRITE_SIZE = 1 << 16  # 64 KiB

CRLF_OPTION = click.option(
    "--crlf",
    type=click.Choice(["strip", "keep"]),
    help="For lists with carriage returns before line feeds or byte-order marks at the start of lines: strip both, or"
    " keep them as part of the identifiers. Default: refuse such a list.",
)


def check_globs(context: click.Context, parameter: click.Parameter, globs: tuple[str, ...]) -> tuple[str, ...]:
    """Return the globs of a call, after checking that each can match a name."""
    if globs and not context.resilient_parsing:
        from pressmark.fs.names import glob_matcher  # few calls have globs

        try:
            glob_matcher(globs)
        except ValueError as error:
            raise CallError(f"{parameter.opts[0]} {error}") from None
    return globs


def exclude_options(function: Function) -> Function:
    """Add ``--exclude`` and ``--exclude-junk``; :func:`globs_to_exclude` takes their values."""
    for option in (
        click.option(
            "--exclude-junk",
            is_flag=True,
            help="Leave out the files that macOS and Windows add: .DS_Store, Thumbs.db, desktop.ini, ._* and __MACOSX.",
        ),
        click.option(
            "--exclude",
            metavar="GLOB",
            multiple=True,
            callback=check_globs,
            help="Leave out files and directories with matching names, at any depth, and list them; repeatable.",
        ),
    ):
        function = option(function)
    return function


def globs_to_exclude(exclude: tuple[str, ...], exclude_junk: bool) -> tuple[str, ...]:
    """Return all globs of a call."""
    if not exclude_junk:
        return exclude
    from pressmark.fs.names import JUNK  # few calls leave out anything

    return (*exclude, *JUNK)


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


class BufferedLines:
    """Lines that are written in blocks, or at once on a terminal.

    :param sink: an :class:`OutputStream`, or a stream that compresses for one
    :param go_on: ignore a broken pipe, and discard all further lines
    """

    def __init__(self, sink: Any, *, go_on: bool = False) -> None:
        self._sink = sink
        self._is_terminal = getattr(sink, "terminal", False)
        self._go_on = go_on
        self._held: list[bytes] = []
        self._size = 0

    def add(self, line: bytes) -> None:
        """Write a line, which includes the line feed, soon.

        :raises BrokenPipeError: the reader has closed the pipe, and ``go_on`` is false
        """
        self._held.append(line)
        self._size += len(line)
        if self._size >= WRITE_SIZE or self._is_terminal:
            self.flush()

    def flush(self) -> None:
        """Write the buffered lines; raises the errors of :meth:`add`."""
        data, self._held, self._size = b"".join(self._held), [], 0
        if data and self._sink is not None:
            try:
                self._sink.write(data)
                self._sink.flush()
            except BrokenPipeError:
                if not self._go_on:
                    raise
                discard_stdout()
                self._sink = None


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
    from pressmark.cli.common.output_file import opened_output, output_status

    status = output_status(path)
    _refuse_same(status, source, path)
    with opened_output(path) as opened:
        yield OutputStream(opened, path)


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


def _refuse_same(status: os.stat_result | None, source: InputStream | None, name: str) -> None:
    """Refuse to write to the file that is read: the run would lose the file, or never end."""
    if status and source and source.status and stat.S_ISREG(status.st_mode) and os.path.samestat(status, source.status):
        raise CallError(f"{name}: input and output are the same file; choose another output")


def _status(file: BinaryIO) -> os.stat_result | None:
    try:
        return os.fstat(file.fileno())
    except (OSError, ValueError):  # not a real file, as in click's test runner
        return None
