"""Write tar and zip files, compressed on several threads.

Names, content, times and permission bits determine every byte: there are no owners, and the number of threads does not
matter.
"""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from struct import Struct
from tarfile import BLOCKSIZE, DIRTYPE, PAX_FORMAT, RECORDSIZE, REGTYPE, TarInfo
from time import gmtime
from typing import BinaryIO, Protocol

from pressmark.bagit.archive.members import NTFS_EPOCH
from pressmark.errors import BagError
from pressmark.threads import Threads

__all__ = ["ArchiveWriter", "GzipOutput", "NullWriter", "Output", "PlainOutput", "TarWriter", "ZipWriter", "ZstdOutput"]

_LARGE = 8**11  # sizes and times from here on need an extended header
# The first and last time of MS-DOS, which each member of a zip file has: years 1980 to 2107.
_ZIP_TIMES = 315_532_800, 4_354_819_198
# Extra fields with times in UTC: that of Info-ZIP in seconds, on whose sign programs disagree, and that of Windows in
# units of 100 nanoseconds since 1601.
_UTC_TIME, _UTC_TIMES = Struct("<2HBL"), range(1 << 31)
_NTFS_TIME = Struct("<2HL2H3Q")
# Deflate finds repetitions at this distance: the dictionary of a block is the end of the block before.
WINDOW = 32 << 10  # bytes
BLOCK = 512 << 10  # bytes
# Without name and time: RFC 1952, section 2.3.
_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_LEVEL = 6
_ZSTD_LEVEL = 3
# Bytes that a thread compresses at a time: memory is about six times as much for each thread.
_ZSTD_JOB = 2 << 20


# --- members ---------------------------------------------------------------------------------------------------------


class ArchiveWriter(Protocol):
    """Writes the members of an archive."""

    def directory(self, path: bytes, time: int, mode: int) -> None:
        """Add a directory.

        :param time: modification time in seconds since 1970
        :param mode: permission bits
        """

    def file(self, path: bytes, size: int, blocks: Iterable[bytes], time: int, mode: int) -> None:
        """Add a file.

        :param size: size of the content in bytes
        :param blocks: the content; if it has another size, the archive is unusable
        :param time: as for a directory
        :param mode: as for a directory
        """

    def close(self) -> None:
        """Write the end of the archive. Its file stays open."""

    def abandon(self) -> None:
        """Release the file, after an error."""


class NullWriter:
    """Reads the files, and writes nothing."""

    def directory(self, path: bytes, time: int, mode: int) -> None:
        pass

    def file(self, path: bytes, size: int, blocks: Iterable[bytes], time: int, mode: int) -> None:
        for _ in blocks:
            pass

    def close(self) -> None:
        pass

    def abandon(self) -> None:
        pass


class TarWriter:
    """Writes a tar file in the POSIX.1-2001 (pax) format; headers of short ASCII names are plain ustar."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._size = 0
        # The header of a file without a name; :class:`tarfile.TarInfo` takes ten times as long as changing it.
        blank = self._header(b"", REGTYPE, 0, 0, 0)
        self._owner, self._end = blank[108:124], blank[156:]
        self._sum = sum(self._end) + 8 * 0x20

    def directory(self, path: bytes, time: int, mode: int) -> None:
        self._write(self._header(path, DIRTYPE, 0, time, mode))

    def file(self, path: bytes, size: int, blocks: Iterable[bytes], time: int, mode: int) -> None:
        if len(path) <= 100 and size < _LARGE and 0 <= time < _LARGE and path.isascii():
            self._write(self._file_header(path, size, time, mode))
        else:
            self._write(self._header(path, REGTYPE, size, time, mode))
        for block in blocks:
            self._write(block)
        if padding := -size % BLOCKSIZE:
            self._write(bytes(padding))

    def close(self) -> None:
        self._write(bytes(2 * BLOCKSIZE))
        self._write(bytes(-self._size % RECORDSIZE))
        self._output.close()

    def abandon(self) -> None:
        pass

    def _write(self, data: bytes) -> None:
        self._output.write(data)
        self._size += len(data)

    def _file_header(self, path: bytes, size: int, time: int, mode: int) -> bytes:
        """Return the header of a file with a short ASCII name."""
        fields = b"%07o\0%b%011o\0%011o\0" % (mode, self._owner, size, time)
        checksum = self._sum + sum(path) + sum(fields)
        return b"%b%b%06o\0 %b" % (path.ljust(100, b"\0"), fields, checksum, self._end)

    def _header(self, path: bytes, kind: bytes, size: int, time: int, mode: int) -> bytes:
        member = TarInfo(path.decode("utf-8", "surrogateescape"))
        member.type, member.size, member.mode, member.mtime = kind, size, mode, time
        return member.tobuf(PAX_FORMAT, "utf-8", "surrogateescape")


class ZipWriter:
    """Writes a zip file, with deflated files, UTF-8 names, and 64-bit sizes where they are needed.

    :param file: a seekable file
    """

    def __init__(self, file: BinaryIO) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED)

    def directory(self, path: bytes, time: int, mode: int) -> None:
        member = self._member(path + b"/", time, stat.S_IFDIR | mode)
        member.external_attr |= 0x10  # a directory, for MS-DOS
        member.compress_type = zipfile.ZIP_STORED
        self._zip.writestr(member, b"")

    def file(self, path: bytes, size: int, blocks: Iterable[bytes], time: int, mode: int) -> None:
        member = self._member(path, time, stat.S_IFREG | mode)
        member.compress_type = zipfile.ZIP_DEFLATED
        member.file_size = size
        with self._zip.open(member, "w") as file:
            for block in blocks:
                file.write(block)

    def close(self) -> None:
        self._zip.close()

    def abandon(self) -> None:
        with suppress(Exception):  # otherwise the garbage collector would try it
            self._zip.close()

    def _member(self, path: bytes, time: int, mode: int) -> zipfile.ZipInfo:
        first, last = _ZIP_TIMES
        member = zipfile.ZipInfo(path.decode(), gmtime(max(first, min(last, time)))[:6])
        if time in _UTC_TIMES:
            member.extra = _UTC_TIME.pack(0x5455, 5, 1, time)
        else:
            ticks = (time - NTFS_EPOCH) * 10**7
            member.extra = _NTFS_TIME.pack(0x000A, 32, 0, 1, 24, ticks, ticks, ticks)
        member.create_system = 3  # Unix, on every system
        member.external_attr = mode << 16
        return member


# --- compression -----------------------------------------------------------------------------------------------------


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
        options = zstandard.ZstdCompressionParameters.from_level(
            _ZSTD_LEVEL, threads=threads, write_checksum=True, job_size=_ZSTD_JOB
        )
        compressor = zstandard.ZstdCompressor(compression_params=options)
        self._writer = compressor.stream_writer(file, closefd=False)
        self.write = self._writer.write
        self.close = self._writer.close
