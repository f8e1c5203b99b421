"""A large file, hashed while other threads read its next blocks."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import FileIO
from queue import Empty, SimpleQueue
from threading import Lock

from pressmark.fixity.algorithms import Hasher
from pressmark.fixity.scheduling import SERIAL_RATES

__all__ = ["read_at", "update_ahead"]

READ_SIZE = 1 << 19  # 512 KiB
BLOCKS_AHEAD = 4
READERS = 3  # threads that read ahead


def update_ahead(
    descriptor: int,
    threads: int,
    hashers: dict[str, Hasher],
    offset: int = 0,
    size: int | None = None,
    seeking: Lock | None = None,
) -> Iterator[int]:
    """Feed a file to hashers, each in a thread, while other threads read the next blocks; yield the size of each block.

    :param threads: number of threads, including this one
    :param hashers: by name of the algorithm
    :param offset: where to begin
    :param size: number of bytes; :data:`None` for all
    :param seeking: the lock of :func:`read_at`; :data:`None` if nobody else reads the file
    """
    # The slowest starts first, so that all end together.
    first, *others = [hashers[name] for name in sorted(hashers, key=SERIAL_RATES.__getitem__)]
    with (
        _ReadAhead(descriptor, min(threads - 1, READERS), offset, size, seeking or Lock()) as file,
        ThreadPoolExecutor(min(threads, len(hashers))) as pool,
    ):
        for block in file.blocks():
            updates = [pool.submit(hasher.update, block) for hasher in others]
            first.update(block)
            for update in updates:
                update.result()
            yield len(block)


class _ReadAhead:
    """The blocks of a file, read by several threads: the iterating one reads whenever it would wait.

    :param threads: number of other threads
    """

    def __init__(self, descriptor: int, threads: int, offset: int, size: int | None, seeking: Lock) -> None:
        self._seeking = seeking
        self._descriptor = descriptor
        self._offset = offset
        self._size = size
        self._buffers = [memoryview(bytearray(READ_SIZE)) for _ in range(BLOCKS_AHEAD)]
        self._next: SimpleQueue[int | None] = SimpleQueue()  # numbers of the blocks that have a free buffer
        self._read: SimpleQueue[tuple[int, int | BaseException]] = SimpleQueue()  # their numbers and sizes
        for number in range(BLOCKS_AHEAD):
            self._next.put(number)
        self._threads = [threading.Thread(target=self._run, name="pressmark-read", daemon=True) for _ in range(threads)]

    def __enter__(self) -> _ReadAhead:
        for thread in self._threads:
            thread.start()
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
            if size < READ_SIZE:
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
        start, done = number * READ_SIZE, 0
        if self._size is not None:
            buffer = buffer[: max(0, self._size - start)]
        start += self._offset
        while done < len(buffer) and (size := read_at(self._descriptor, buffer[done:], start + done, self._seeking)):
            done += size
        return done


def read_at(descriptor: int, buffer: memoryview, offset: int, seeking: Lock) -> int:
    """Read a file from ``offset`` into a buffer; return the number of bytes, 0 at the end.

    :param seeking: held while the position of the file matters: without preadv, reading sets it
    """
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [buffer], offset)
    with seeking, FileIO(descriptor, closefd=False) as file:
        file.seek(offset)
        return file.readinto(buffer) or 0
