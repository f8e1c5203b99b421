"""Plain or compressed tar files as streams of bytes."""

from __future__ import annotations

import bz2
import zlib
from collections.abc import Callable
from typing import Any

from pressmark.bagit.archive.members import BLOCK, ArchiveFile

try:
    import lzma
except ImportError:  # this Python cannot read such archives
    lzma = None  # type: ignore[assignment]

__all__ = ["COMPRESSIONS", "DECODER_MEMORY", "DECODING_ERRORS", "Compressed", "Plain", "Stream", "lzma"]

DECODER_MEMORY = 128 << 20  # memory limit of an LZMA decoder, twice that of xz -9

DECODING_ERRORS: tuple[type[Exception], ...] = (zlib.error, OSError, EOFError, ValueError)
if lzma is not None:
    DECODING_ERRORS += (lzma.LZMAError,)


class Plain:
    """An uncompressed tar file.

    :ivar seekable: whether skipping costs nothing
    """

    seekable = True

    def __init__(self, file: ArchiveFile) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        """Return ``size`` bytes, or fewer at the end of the stream."""
        return self._file.read(size)

    def some(self, size: int) -> bytes:
        """Return 1 to ``size`` bytes; none at the end of the stream."""
        return self._file.read(min(size, BLOCK))

    def skip(self, size: int) -> None:
        """Skip ``size`` bytes, or to the end."""
        if size:
            self._file.seek(min(self._file.position + size, self._file.size))

    def remainder(self) -> int:
        """Return the number of bytes after the stream, after it has been read to its end."""
        return 0


class Compressed:
    """A compressed tar file; its checksums are verified while it is read.

    :param name: name of the compression
    :param new: returns a new decompressor
    """

    seekable = False

    def __init__(self, file: ArchiveFile, name: str, magic: bytes, new: Callable[[], Any]) -> None:
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

    def skip(self, size: int) -> None:
        """Skip ``size`` bytes, or to the end."""
        while size and (piece := self.some(size)):
            size -= len(piece)

    def remainder(self) -> int:
        """Return the number of bytes after the stream, after it has been read to its end."""
        return len(self._packed) + self._file.size - self._file.position

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
        except DECODING_ERRORS as error:
            if "limit" in str(error):  # which only the decoder of xz has
                self._file.exceeded(f"{self._name} data requires more than {DECODER_MEMORY} bytes of memory")
            self._file.damaged(f"damaged {self._name} data ({error})")
        # zlib returns unused input, the other decoders keep it.
        self._packed = getattr(self._decoder, "unconsumed_tail", b"")
        if is_last and not block and not self._decoder.eof:
            self._file.damaged(f"truncated {self._name} data")
        return block

    def _begin(self) -> bool:
        """Start the next stream: several may follow each other, and zeros may follow the last."""
        while True:
            if self._begun:
                self._packed = self._packed.lstrip(b"\0")
            if len(self._packed) >= len(self._magic) or not (data := self._file.read(BLOCK)):
                break
            self._packed += data
        if not self._packed.startswith(self._magic):
            self._ended = True
            return False
        self._begun = True
        self._decoder = self._new()
        return True


Stream = Plain | Compressed

# For each compression, the first bytes of a file and the decompressor.
COMPRESSIONS: dict[str, tuple[bytes, Callable[[], Any]]] = {
    "gzip": (b"\x1f\x8b", lambda: zlib.decompressobj(31)),
    "bzip2": (b"BZh", bz2.BZ2Decompressor),
}
if lzma is not None:
    COMPRESSIONS["xz"] = (b"\xfd7zXZ\0", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=DECODER_MEMORY))
