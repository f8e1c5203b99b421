"""Plain or compressed tar files as streams of bytes."""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any

from pressmark.bagit.archive.members import BLOCK, ArchiveFile
from pressmark.errors import BagError

try:
    import lzma
except ImportError:  # this Python cannot read such archives
    lzma = None  # type: ignore[assignment]

__all__ = ["COMPRESSIONS", "Compressed", "Plain", "Stream"]

_MEMORY = 128 << 20  # memory limit of a decoder, twice that of xz -9, and the window of zstd --long
# Words of the errors of xz and zstd where a decoder needs more.
_LIMIT_WORDS = ("limit", "too much memory")
# Input of a Zstandard decoder, whose output has no limit: four bytes may expand to 128 KiB.
_ZSTANDARD_INPUT = 1 << 11  # 2 KiB, at most 64 MiB

_ERRORS: tuple[type[Exception], ...] = (zlib.error, OSError, EOFError, ValueError)
if lzma is not None:
    _ERRORS += (lzma.LZMAError,)


class Plain:
    """An uncompressed tar file.

    :ivar seekable: whether skipping costs nothing
    """

    def __init__(self, file: ArchiveFile) -> None:
        self.seekable = file.seekable
        self._file = file

    def read(self, size: int) -> bytes:
        """Return ``size`` bytes, or fewer at the end of the stream."""
        return self._file.read(size)

    def some(self, size: int) -> bytes:
        """Return 1 to ``size`` bytes; none at the end of the stream."""
        return self._file.read(min(size, BLOCK))

    def skip(self, size: int) -> bool:
        """Skip ``size`` bytes, or to the end; return whether there were so many."""
        if self.seekable and size:
            end = self._file.position + size
            self._file.seek(min(end, self._file.size))
            return end <= self._file.size
        while size and (piece := self.some(size)):
            size -= len(piece)
        return not size

    def remainder(self) -> int:
        """Return the number of bytes after the stream, after it has been read to its end."""
        return 0


class Compressed:
    """A compressed tar file; its checksums are verified while it is read.

    :param name: name of the compression
    :param magic: the first bytes of a stream, in any of its forms, all of one length
    :param new: returns a new decompressor
    """

    seekable = False

    def __init__(self, file: ArchiveFile, name: str, magic: tuple[bytes, ...], new: Callable[[], Any]) -> None:
        self._file = file
        self._name = name
        self._magic = magic
        self._new = new
        self._decoder: Any = None
        self._packed = b""  # read and not decompressed yet
        self._block = b""
        self._at = 0
        self._begun = False
        self._ended = False

    def read(self, size: int) -> bytes:
        """Return ``size`` bytes, or fewer at the end of the stream."""
        piece = self.some(size)
        if len(piece) == size or not piece:
            return piece
        pieces = [piece]
        size -= len(piece)
        while size and (piece := self.some(size)):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def some(self, size: int) -> bytes:
        """Return 1 to ``size`` bytes; none at the end of the stream."""
        if self._at == len(self._block):
            self._block, self._at = self._decompressed(), 0
        piece = self._block[self._at : self._at + size]
        self._at += len(piece)
        return piece

    def skip(self, size: int) -> bool:
        """Skip ``size`` bytes, or to the end; return whether there were so many."""
        while size and (piece := self.some(size)):
            size -= len(piece)
        return not size

    def remainder(self) -> int:
        """Return the number of bytes after the stream, after it has been read to its end."""
        return len(self._packed) + self._file.remainder()

    def _decompressed(self) -> bytes:
        """Return the next block; empty at the end."""
        while not self._ended:
            if self._decoder is None and not self._begin():
                break
            block = self._decode()
            if self._decoder.eof:
                self._packed, self._decoder = self._decoder.unused_data, None
            if block:
                self._file.count_expanded(len(block))
                return block
        return b""

    def _decode(self) -> bytes:
        """Return the next output; empty if more input is needed or a stream has ended."""
        needs_input = not self._packed and getattr(self._decoder, "needs_input", True)
        if needs_input:
            self._packed = self._file.read(BLOCK)
        is_last = needs_input and not self._packed
        try:
            block: bytes = self._decoder.decompress(self._packed, BLOCK)
        except _ERRORS as error:
            if any(word in str(error) for word in _LIMIT_WORDS):
                self._file.exceeded(f"{self._name} data requires more than {_MEMORY} bytes of memory")
            self._file.damaged(f"damaged {self._name} data ({error})")
        # zlib returns unused input, the other decoders keep it.
        self._packed = getattr(self._decoder, "unconsumed_tail", b"")
        if is_last and not block and not self._decoder.eof:
            self._file.damaged(f"truncated {self._name} data")
        return block

    def _begin(self) -> bool:
        """Start the next stream: several may follow each other, and zeros may follow the last.

        Between streams, only xz allows zeros: after them, gzip and zstd read no other stream.
        """
        is_padded = False
        while True:
            if self._begun:
                is_padded |= self._packed.startswith(b"\0")
                self._packed = self._packed.lstrip(b"\0")
            if len(self._packed) >= len(self._magic[0]) or not (data := self._file.read(BLOCK)):
                break
            self._packed += data
        if not self._packed.startswith(self._magic) or (is_padded and self._name != "xz"):
            if self._packed and self._begun and self._name == "zstd":
                # It may be the checksum of a frame whose header no longer announces one. Other formats cannot lose one.
                self._file.damaged("bytes after the end of the zstd data")
            self._ended = True
            return False
        self._begun = True
        try:
            self._decoder = self._new()
        except ImportError:
            advice = f"reading {self._name} data requires the package zstandard; run: pip install 'pressmark[zstd]'"
            raise BagError(self._file.path, advice) from None
        return True


class _ZstandardDecoder:
    """A decoder of one frame, with the interface of :class:`bz2.BZ2Decompressor`.

    :raises ImportError: the package zstandard is not installed
    """

    def __init__(self) -> None:
        zstandard = import_module("zstandard")  # an optional dependency
        self._failure = zstandard.ZstdError
        self._frame = zstandard.ZstdDecompressor(max_window_size=_MEMORY).decompressobj()
        self._packed = b""
        self._at = 0

    @property
    def needs_input(self) -> bool:
        return self._at == len(self._packed)

    @property
    def eof(self) -> bool:
        return bool(self._frame.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._frame.unused_data) + self._packed[self._at :]

    def decompress(self, data: bytes, _size: int) -> bytes:
        """Return the output of the next input, which is kept until it is needed."""
        if data:
            self._packed, self._at = data, 0
        piece = self._packed[self._at : self._at + _ZSTANDARD_INPUT]
        self._at += len(piece)
        try:
            return bytes(self._frame.decompress(piece)) if piece else b""
        except self._failure as error:
            raise ValueError(str(error)) from None


Stream = Plain | Compressed

# For each compression, the first bytes of a stream and the decompressor.
COMPRESSIONS: dict[str, tuple[tuple[bytes, ...], Callable[[], Any]]] = {
    "gzip": ((b"\x1f\x8b",), lambda: zlib.decompressobj(31)),
    "bzip2": ((b"BZh",), bz2.BZ2Decompressor),
    # A frame, or a skippable one, in which packers store sizes.
    "zstd": ((b"\x28\xb5\x2f\xfd", *(bytes([low]) + b"\x2a\x4d\x18" for low in range(0x50, 0x60))), _ZstandardDecoder),
}
if lzma is not None:
    COMPRESSIONS["xz"] = ((b"\xfd7zXZ\0",), lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY))
