"""Compressed output on several threads; the bytes do not depend on their number."""

from __future__ import annotations

import zlib
from collections import deque
from concurrent.futures import Future
from typing import BinaryIO, Protocol

from pressmark.errors import BagError
from pressmark.threads import Threads

__all__ = ["GzipOutput", "Output", "PlainOutput", "ZstdOutput"]

# Deflate finds repetitions at this distance: the dictionary of a block is the end of the block before.
WINDOW = 32 << 10  # bytes
BLOCK = 512 << 10  # bytes
# Without name and time: RFC 1952, section 2.3.
_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_LEVEL = 6
_ZSTD_LEVEL = 3


class Output(Protocol):
    """Where an archive is written to."""

    def write(self, data: bytes, /) -> object:
        """Write all of ``data``."""

    def close(self) -> object:
        """Write the rest. The file stays open."""


class PlainOutput:
    """Writes without compression.

    :param file: the caller closes it
    """

    def __init__(self, file: BinaryIO) -> None:
        self.write = file.write
        self.close = file.flush


class GzipOutput:
    """Writes one gzip stream, whose blocks are compressed in parallel, as pigz does.

    :param file: the caller closes it
    :param pool: the threads; :data:`None` to use the calling thread
    """

    def __init__(self, file: BinaryIO, pool: Threads | None, threads: int) -> None:
        self._file = file
        self._pool = pool
        self._ahead = 2 * threads
        self._held = bytearray()
        self._dictionary = b""
        self._running: deque[Future[bytes]] = deque()
        self._crc = self._size = 0
        file.write(_HEADER)

    def write(self, data: bytes, /) -> None:
        self._held += data
        while len(self._held) > BLOCK:
            block = bytes(memoryview(self._held)[:BLOCK])
            del self._held[:BLOCK]
            self._compress(block, zlib.Z_SYNC_FLUSH)

    def close(self) -> None:
        self._compress(bytes(self._held), zlib.Z_FINISH)
        self._held.clear()
        self._finish(0)
        self._file.write(self._crc.to_bytes(4, "little") + (self._size & 0xFFFFFFFF).to_bytes(4, "little"))

    def _compress(self, block: bytes, flush: int) -> None:
        if self._pool is None:
            self._file.write(_deflated(block, self._dictionary, flush))
        else:
            self._running.append(self._pool.submit(_deflated, block, self._dictionary, flush))
            self._finish(self._ahead)
        self._crc = zlib.crc32(block, self._crc)
        self._size += len(block)
        self._dictionary = block[-WINDOW:]

    def _finish(self, ahead: int) -> None:
        """Write compressed blocks until at most ``ahead`` are left."""
        while len(self._running) > ahead:
            self._file.write(self._running.popleft().result())


def _deflated(block: bytes, dictionary: bytes, flush: int) -> bytes:
    """Return a part of a deflate stream."""
    options = (_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, zlib.Z_DEFAULT_STRATEGY)
    compressor = zlib.compressobj(*options, dictionary) if dictionary else zlib.compressobj(*options)
    return compressor.compress(block) + compressor.flush(flush)


class ZstdOutput:
    """Writes one frame of zstd, with its checksum.

    :param file: the caller closes it
    :param path: path of the archive, for the error
    :param threads: threads of the compressor
    :raises BagError: zstandard is missing
    """

    def __init__(self, file: BinaryIO, path: bytes, threads: int) -> None:
        try:
            import zstandard
        except ModuleNotFoundError as error:
            if error.name != "zstandard":
                raise
            raise BagError(path, "zstd archives require zstandard: pip install 'pressmark[zstd]'") from None
        # Without threads, the bytes would differ.
        compressor = zstandard.ZstdCompressor(_ZSTD_LEVEL, threads=threads, write_checksum=True)
        self._writer = compressor.stream_writer(file, closefd=False)
        self.write = self._writer.write
        self.close = self._writer.close
