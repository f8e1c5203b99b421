"""One manifest, indexed: read once, and then lines of it again, as they are asked for.

Only fingerprints of paths and offsets of lines are kept (:class:`pressmark._kernels.active.ManifestIndex`).
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO

from pressmark import _kernels
from pressmark._kernels.tables import LineStatus
from pressmark.bagit.encodings import LIMIT, Line, LineReader, place_of
from pressmark.bagit.manifest import PATH_SHOWN, PAYLOAD, ManifestEntry, ManifestForm
from pressmark.bagit.paths import normal_key
from pressmark.bagit.problems import problem
from pressmark.bagit.versions import breach
from pressmark.errors import BagError
from pressmark.reports import Problem

__all__ = ["PROBLEMS_LIMIT", "IndexedManifest", "path_index"]

# Of each kind in each manifest; what is more is counted.
PROBLEMS_LIMIT = 100_000
# Of all in each manifest, in bytes of memory: long paths are dear. Of each kind the first is kept all the same.
PROBLEMS_SIZE = 64 << 20  # 64 MiB
PROBLEM_SIZE = 512  # bytes of one, without its path and message

# Lines are read again through so many blocks; a directory of a thousand files has its lines in a dozen of them.
BLOCK_BITS = 13  # 8 KiB
BLOCK_MASK = (1 << BLOCK_BITS) - 1
BLOCKS = 128

_HAS_PREAD = hasattr(os, "pread")
# What may follow a line's path; nothing does at the end of the file.
_AFTER = (b"\n", b"\r", b"")
_BLANKS = (b" ", b"\t")


def path_index(digits: int = 0) -> Any:
    """Return an empty index of paths; its scan takes in no line unless the checksums' number of digits is said."""
    return _kernels.active.ManifestIndex(digits, PAYLOAD, LIMIT, os.urandom(8))


class _Problems:
    """The problems of one manifest, no more of a kind than the limit."""

    def __init__(self, name: bytes, algorithm: str) -> None:
        self.found: list[Problem] = []
        self._name = name
        self._algorithm = algorithm
        self._counts: Counter[str] = Counter()
        self._left = PROBLEMS_SIZE
        self._omitted: dict[str, str] = {}
        self._more: Counter[str] = Counter()

    def add(self, found: Problem) -> None:
        self._counts[found.kind] += 1
        size = PROBLEM_SIZE + len(found.path) + len(found.message)
        over = self._counts[found.kind] > PROBLEMS_LIMIT or (size > self._left and self._counts[found.kind] > 1)
        if over or found.kind in self._omitted:
            self._omitted.setdefault(found.kind, found.severity)
            self._more[found.kind] += 1
            return
        self._left -= size
        self.found.append(found)

    def close(self) -> list[Problem]:
        """Return all problems, and one for each kind of which there are more."""
        for kind, severity in self._omitted.items():
            message = f"{self._more[kind]} more of {kind}"
            more = problem("problems-omitted", self._name, message, severity=severity, algorithm=self._algorithm)
            self.found.append(more)
        return self.found


class IndexedManifest:
    """The index of one manifest, and the file from which its lines are read again.

    :param file: binary, seekable, at its beginning
    :param form: how its lines are read
    :raises BagError: it changes while it is read, cannot be read, or has more lines than can be numbered
    :ivar algorithm: of its checksums
    :ivar index: of its lines, each path once
    :ivar problems: of all its lines
    """

    def __init__(self, file: BinaryIO, form: ManifestForm) -> None:
        self.algorithm = form.algorithm
        self._file = file
        self._form = form
        self._digits = form.digits
        self._lock = threading.Lock()
        self._blocks: dict[int, bytes] = {}
        self._normalized: Any = None
        self._descriptor = _descriptor(file)
        self._state = self._stat()
        # Tag manifests have rules of their own, and other character sets must be decoded: no line of theirs is plain.
        self._plain = form.charset.is_utf8 and not form.tag and self._digits > 0
        self.index = path_index(self._digits if self._plain else 0)
        self._problems = _Problems(form.name, form.algorithm)
        try:
            self._scan()
        except OSError as error:
            raise BagError(form.name, f"cannot be read: {error.strerror}") from error
        except OverflowError:
            raise BagError(form.name, "it has more than 4 billion lines; divide the bag") from None
        self._check_unchanged()
        self.problems = self._problems.close()

    # --- the one pass

    def _scan(self) -> None:
        reader = LineReader(self._file, self._form.charset, self._form.name)
        # The reader knows the byte order of what it reads.
        self._form = dataclasses.replace(self._form, charset=reader.charset)
        while True:
            if self._plain and not reader.pending:
                position, lines, status = self.index.scan(reader.block, reader.position, reader.base, reader.final)
                reader.advance(position, lines)
                if status == LineStatus.MORE and not reader.final and len(reader.block) - position <= LIMIT:
                    reader.fill()
                    continue
            found = reader.line()
            if found is None:
                return
            self._take(found)

    def _take(self, found: Line | Problem) -> None:
        """Take in a line that is not plain, or that has a fingerprint that is there already."""
        if not isinstance(found, Line):
            self._problems.add(found._replace(algorithm=self.algorithm))
            return
        entry, text, problems = self._form.read(found)
        for one in problems:
            self._problems.add(one)
        if entry is None:
            return
        before = self.find(entry.path)
        if before is not None:
            for one in self._duplicate(found, entry, before[1]):
                self._problems.add(one)
            return
        # Whether it can be read again without its rules: as the kernel would say of it.
        blanks = len(found.data) - self._digits - len(text)
        plain = not problems and self._digits > 0 and text == entry.path and 1 <= blanks <= 2
        self.index.add(entry.path, found.offset, not (plain and self._form.charset.is_utf8))

    def _duplicate(self, line: Line, entry: ManifestEntry, digest: str) -> list[Problem]:
        message = f"{place_of(self._form.name, line.number)}: listed before"
        path = entry.path[:PATH_SHOWN]
        if digest == entry.digest:
            again = problem("path-duplicate", path, message, algorithm=self.algorithm)
            return breach("listed-once", self._form.version, again)
        message += ", with another checksum"
        # One of the two is wrong, in any version.
        found = problem("path-duplicate", path, message, algorithm=self.algorithm, expected=digest, found=entry.digest)
        return [found]

    # --- lines again

    def find(self, path: bytes) -> tuple[int, str] | None:
        """Return the place of the line that lists a path, and the checksum there; :data:`None` where none does."""
        index, digits = self.index, self._digits
        for place in index.find(path):
            offset = index.line(place)
            if offset < 0:
                found, _, digest = self.read(place)
                if found == path:
                    return place, digest
                continue
            # The checksum, one or two blanks, the path, and an octet of the line's end.
            size = digits + 3 + len(path)
            begin = offset & BLOCK_MASK
            block = self._blocks.get(offset >> BLOCK_BITS) or self._block(offset >> BLOCK_BITS)
            line = block[begin : begin + size]
            if len(line) < size:
                line = self._across(offset, size)
            begin = digits + 2 if line[digits + 1 : digits + 2] in _BLANKS else digits + 1
            end = begin + len(path)
            if line[begin:end] == path and line[end : end + 1] in _AFTER:
                return place, line[:digits].decode("latin-1").lower()
        return None

    def read(self, place: int) -> tuple[bytes, bytes, str]:
        """Return the path that a line lists, the path as it stands there, and the checksum."""
        offset = self.index.line(place)
        if offset < 0:
            entry, text, _ = self._form.read(self._line(~offset))
            if entry is None:
                raise self._changed()
            return entry.path, text, entry.digest
        data, digits = self._line(offset).data, self._digits
        path = data[digits + (2 if data[digits + 1 : digits + 2] in _BLANKS else 1) :]
        return path, path, data[:digits].decode("latin-1").lower()

    def spelled(self, others: Iterable[bytes], fits: Callable[[bytes], bool]) -> int | None:
        """Return the place of the first unmarked line that lists one of the other paths, and whose text fits."""
        for other in others:
            found = self.find(other)
            if found is not None and not self.index.is_marked(found[0]) and fits(self.read(found[0])[1]):
                return found[0]
        return None

    def find_normalized(self, path: bytes, key: bytes) -> int | None:
        """Return the place of the first unmarked line whose path has the key and is another one."""
        if key != path and (found := self.find(key)) is not None and not self.index.is_marked(found[0]):
            return found[0]
        if self._normalized is None:
            self._normalized = self._keys()
        for number in self._normalized.find(key):
            place: int = self._normalized.line(number)
            if not self.index.is_marked(place):
                other = self.read(place)[0]
                if other != path and normal_key(other) == key:
                    return place
        return None

    def _keys(self) -> Any:
        """Return an index of the normalized names of all lines that are not marked and not ASCII."""
        keys = path_index()
        place = -1
        while (place := self.index.next_folding(place + 1)) >= 0:
            if not self.index.is_marked(place):
                path = self.read(place)[0]
                if not path.isascii():
                    keys.add(normal_key(path), place, False)
        return keys

    # --- the file again

    def _line(self, offset: int) -> Line:
        """Return the line that begins at the offset."""
        find_end = self._form.charset.find_end
        block, begin = self._block(offset >> BLOCK_BITS), offset & BLOCK_MASK
        ends = find_end(block, begin, False)
        if ends is not None:
            return Line(0, offset, block[begin : ends[0]])
        # Fourfold each time, so that a line of any length is searched once and a third.
        size = 4 << BLOCK_BITS
        while True:
            data = self._across(offset, size)
            whole = len(data) < size
            ends = find_end(data, 0, whole)
            if ends is not None or whole:
                return Line(0, offset, data[: ends[0]] if ends else data)
            if size > LIMIT:
                raise self._changed()
            size *= 4

    def _across(self, offset: int, size: int) -> bytes:
        """Return what begins at the offset, over the edges of blocks; less at the end of the file."""
        number, begin = offset >> BLOCK_BITS, offset & BLOCK_MASK
        pieces = [self._block(number)[begin:]]
        length = len(pieces[0])
        while length < size and (more := self._block(number := number + 1)):
            pieces.append(more)
            length += len(more)
        return b"".join(pieces)[:size]

    def _block(self, number: int) -> bytes:
        block = self._blocks.get(number)
        if block is None:
            block = self._read_block(number)
            with self._lock:
                if len(self._blocks) >= BLOCKS:
                    del self._blocks[next(iter(self._blocks))]
                self._blocks[number] = block
        return block

    def _read_block(self, number: int) -> bytes:
        size, offset = 1 << BLOCK_BITS, number << BLOCK_BITS
        try:
            data = self._read(size, offset)
            while data and len(data) < size and (more := self._read(size - len(data), offset + len(data))):
                data += more
        except (OSError, ValueError) as error:
            raise BagError(self._form.name, f"cannot be read: {error}") from error
        self._check_unchanged()
        return data

    def _read(self, size: int, offset: int) -> bytes:
        if self._descriptor is not None and _HAS_PREAD:
            return os.pread(self._descriptor, size, offset)
        with self._lock:
            # The first pass may still be under way.
            here = self._file.tell()
            self._file.seek(offset)
            data = self._file.read(size)
            self._file.seek(here)
            return data

    def _stat(self) -> tuple[int, int, int] | None:
        if self._descriptor is None:
            return None
        state = os.fstat(self._descriptor)
        return state.st_size, state.st_mtime_ns, state.st_ino

    def _check_unchanged(self) -> None:
        if self._stat() != self._state:
            raise self._changed()

    def _changed(self) -> BagError:
        return BagError(
            self._form.name, "it was changed while it was in use; begin again when nobody writes to the bag"
        )


def _descriptor(file: BinaryIO) -> int | None:
    try:
        return file.fileno()
    except OSError:
        return None
