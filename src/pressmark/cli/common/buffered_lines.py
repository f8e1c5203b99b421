"""Buffered lines on stdout, unbuffered on a terminal."""

from __future__ import annotations

from pressmark.cli.common.files import OutputStream
from pressmark.cli.common.program import discard_stdout

__all__ = ["BufferedLines"]

WRITE_SIZE = 1 << 16  # 64 KiB


class BufferedLines:
    """A buffer of lines.

    :param go_on: ignore a broken pipe, and discard all further lines
    """

    def __init__(self, sink: OutputStream, *, go_on: bool = False) -> None:
        self._sink: OutputStream | None = sink
        self._go_on = go_on
        self._held: list[bytes] = []
        self._size = 0

    def add(self, line: bytes) -> None:
        """Write a line, which includes the line feed, soon.

        :raises BrokenPipeError: the reader has closed the pipe, and ``go_on`` is false
        """
        self._held.append(line)
        self._size += len(line)
        if self._size >= WRITE_SIZE or (self._sink is not None and self._sink.terminal):
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
