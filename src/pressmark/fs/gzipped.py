"""Gzip around a source or a sink, in constant memory; failures name the file."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pressmark.errors import TableError

__all__ = ["MAGIC", "GunzippedStream", "GzippedStream", "is_gzip", "packed", "unpacked"]

MAGIC = b"\x1f\x8b"  # the first bytes of gzip data

READ_BYTES = 1 << 18  # 256 KiB
GZIP = 16 + zlib.MAX_WBITS  # selects the format of gzip
LEVEL = 6  # the default of gzip


def is_gzip(path: str | os.PathLike[str]) -> bool:
    """Return whether the name of a file ends in ``.gz``."""
    return os.fspath(path).lower().endswith(".gz")


def unpacked(source: Any, name: str) -> Any:
    """Return the stream of the bytes of ``source``, decompressed if ``name`` ends in ``.gz``."""
    if not is_gzip(name):
        return source
    return GunzippedStream(source, name)


@contextmanager
def packed(sink: Any, name: str) -> Iterator[Any]:
    """Yield a stream that writes to ``sink``, compressed if ``name`` ends in ``.gz``.

    If the block fails, no end mark is written, so an incomplete file cannot be mistaken for a complete one.
    """
    if not is_gzip(name):
        yield sink
        return
    compressed = GzippedStream(sink)
    yield compressed
    compressed.finish()


class GunzippedStream:
    """The decompressed bytes of all members of a gzip file.

    :param name: the name of the file in messages
    """

    def __init__(self, source: Any, name: str) -> None:
        self._source = source
        self._decompressor = zlib.decompressobj(GZIP)
        self._compressed = b""
        self._inside = False
        self._any = False
        self.name = name

    def read(self, size: int) -> bytes:
        """Return ``size`` bytes; fewer only at the end.

        :raises TableError: the gzip data is damaged
        """
        parts: list[bytes] = []
        missing = size
        while missing and (part := self._next(missing)):
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    read1 = read

    def _next(self, size: int) -> bytes:
        while True:
            if not self._compressed:
                self._compressed = self._source.read(READ_BYTES)
                # Without more input, the decompressor may still have output.
                if not self._compressed and not self._inside:
                    if not self._any:
                        raise TableError(self.name, "not a gzip file: empty")
                    return b""
            if not self._inside:
                # Tapes and some tools pad the last block with zeros; gzip ignores them, too.
                if self._any:
                    self._compressed = self._compressed.lstrip(b"\0")
                    if not self._compressed:
                        continue
                self._decompressor = zlib.decompressobj(GZIP)
                self._inside = True
            at_end = not self._compressed
            try:
                data = self._decompressor.decompress(self._compressed, size)
            except zlib.error as error:
                text = "not a gzip file" if not self._any and "header" in str(error) else "broken gzip data"
                raise TableError(self.name, f"{text}: {error}") from None
            self._any = True
            if self._decompressor.eof:
                self._inside = False
                self._compressed = self._decompressor.unused_data
            else:
                self._compressed = self._decompressor.unconsumed_tail
            if data:
                return data
            if at_end and self._inside:
                raise TableError(self.name, "broken gzip data: unexpected end")


class GzippedStream:
    """A sink that writes compressed data to another sink; :meth:`finish` ends the data."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self._compressor = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP)

    def write(self, data: bytes) -> int:
        """Compress all of ``data``."""
        compressed = self._compressor.compress(data)
        if compressed:
            self._sink.write(compressed)
        return len(data)

    def flush(self) -> None:
        """Flush the compressed data; the compressor keeps its buffer, for better compression."""
        self._sink.flush()

    def finish(self) -> None:
        """Write the rest of the data and the end mark."""
        self._sink.write(self._compressor.flush())
        self._sink.flush()
