"""A large file, of which other threads read the next blocks."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from io import FileIO
from queue import Empty, SimpleQueue
from threading import Lock

from pressmark.fixity.outcomes import FileRange
from pressmark.threads import started

__all__ = ["ReadAhead", "read_at"]

READ_SIZE = 1 << 19  # 512 KiB
BLOCKS_AHEAD = 4
READERS = 3  # threads that read ahead
# Without preadv, reading sets the position of a file, which several threads read.
_SEEKING = Lock()


class ReadAhead:
    """The blocks of a file, or of a part of it, read by several threads: the iterating one reads when it would wait.

    :param threads: number of other threads, if that many help
    :param size: size of the blocks
    """

    def __init__(self, descriptor: int, threads: int, section: FileRange | None = None, size: int = 0) -> None:
        self._block = size or READ_SIZE
        self._descriptor = descriptor
        self._offset = 0 if section is None else section.offset
        self._size = None if section is None else section.size
        self._buffers = [memoryview(bytearray(self._block)) for _ in range(BLOCKS_AHEAD)]
        self._next: SimpleQueue[int | None] = SimpleQueue()  # numbers of the blocks that have a free buffer
        self._read: SimpleQueue[tuple[int, int | BaseException]] = SimpleQueue()  # their numbers and sizes
        for number in range(BLOCKS_AHEAD):
            self._next.put(number)
        self._threads = [
            threading.Thread(target=self._run, name="pressmark-read", daemon=True) for _ in range(min(threads, READERS))
        ]

    def __enter__(self) -> ReadAhead:
        self._threads = [thread for thread in self._threads if started(thread)]
        return self

    def __exit__(self, *_error: object) -> None:
        for _thread in self._threads:
            self._next.put(None)
        for thread in self._threads:
            thread.join()

    def blocks(self) -> Iterator[memoryview]:
        """Yield all blocks, each valid until the next one."""
        sizes: dict[int, int] = {}
        number = 0
        while True:
            while number not in sizes:
                self._receive(sizes)
            size = sizes.pop(number)
            if size:
                yield self._buffers[number % BLOCKS_AHEAD][:size]
            if size < self._block:
                return
            self._next.put(number + BLOCKS_AHEAD)
            number += 1

    def _receive(self, sizes: dict[int, int]) -> None:
        """Set the size of a block that another thread has read, or read one."""
        try:
            number = self._next.get_nowait() if self._read.empty() else None
        except Empty:
            number = None
        if number is not None:
            sizes[number] = self._fill(number)
            return
        number, size = self._read.get()
        if isinstance(size, BaseException):
            raise size
        sizes[number] = size

    def _run(self) -> None:
        """Read blocks until there are no more."""
        while (number := self._next.get()) is not None:
            try:
                self._read.put((number, self._fill(number)))
            except BaseException as error:  # raised by the iterating thread
                self._read.put((number, error))

    def _fill(self, number: int) -> int:
        """Read a block, and return its size."""
        buffer = self._buffers[number % BLOCKS_AHEAD]
        start, done = number * self._block, 0
        if self._size is not None:
            buffer = buffer[: max(0, self._size - start)]
        start += self._offset
        while done < len(buffer) and (size := read_at(self._descriptor, buffer[done:], start + done)):
            done += size
        return done


def read_at(descriptor: int, buffer: memoryview, offset: int) -> int:
    """Read a file from ``offset`` into a buffer; return the number of bytes, 0 at the end."""
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [buffer], offset)
    with _SEEKING, FileIO(descriptor, closefd=False) as file:
        file.seek(offset)
        return file.readinto(buffer) or 0
