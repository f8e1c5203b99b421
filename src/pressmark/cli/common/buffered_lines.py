"""Lines on their way to standard output: some of them at a time, and to a terminal at once."""

from __future__ import annotations

from pressmark.cli.common.files import Sink
from pressmark.cli.common.program import discard_stdout

__all__ = ["BufferedLines"]

WRITE_SIZE = 1 << 16  # 64 KiB


class BufferedLines:
    """Holds lines until there are enough of them.

    :param go_on: a reader who leaves does not end what is done; lines are dropped from then on
    """

    def __init__(self, sink: Sink, *, go_on: bool = False) -> None:
        self._sink: Sink | None = sink
        self._go_on = go_on
        self._held: list[bytes] = []
        self._size = 0

    def add(self, line: bytes) -> None:
        """Write a line, with its end, soon.

        :raises BrokenPipeError: nobody reads any more, and that ends what is done
        """
        self._held.append(line)
        self._size += len(line)
        if self._size >= WRITE_SIZE or (self._sink is not None and self._sink.terminal):
            self.flush()

    def flush(self) -> None:
        """Write what waits; errors as for :meth:`add`."""
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
