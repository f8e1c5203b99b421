"""An index over the lines of one or several manifests that does not keep their text.

For each line it keeps a fingerprint of the path, its offset and a slot of a hash table, about 24 bytes; checksums and
paths are read from the manifest again when they are requested, and paths are compared in full. A manifest of any length
is indexed in one pass, in about a tenth of its size in memory (:class:`pressmark._kernels.active.ManifestIndex`).

A validation uses it like this::

    with Listing([ManifestSource(b"manifest-sha512.txt", "sha512", file)], encoding, version) as listing:
        report.add(listing.problems)
        for path in walk:  # every file of the payload
            digests = listing.find(path, mark=True)  # {"sha512": "…"}; empty if no manifest lists it
        for path in not_found:
            entry = listing.find_respelled(path)  # raw percent sign, other normalization; unmarked lines only
        for path, digests in listing.unmarked():  # listed but not found
            ...
        for first, second in listing.collisions():  # names that collide on some file systems
            ...
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple

from pressmark import _kernels
from pressmark._kernels.tables import LineStatus
from pressmark.bagit.encodings import LINE_LIMIT, UTF8, Line, LineReader, find_charset, line_location
from pressmark.bagit.manifest import PATH_LIMIT, ManifestEntry, ManifestForm, unescaped
from pressmark.bagit.paths import BELOW_PAYLOAD, decode_path, encode_path, normal_key, possible_paths
from pressmark.bagit.problems import judge_violation, problem
from pressmark.errors import BagError
from pressmark.paths.folding import folded
from pressmark.reports import Problem

__all__ = [
    "PROBLEMS_LIMIT",
    "IndexedManifest",
    "ListedFile",
    "Listing",
    "ManifestSource",
    "RespelledEntry",
    "path_index",
]

# The problems of each kind to keep in each manifest; further ones are only counted.
PROBLEMS_LIMIT = 100_000
# The memory for all problems of a manifest. The first problem of each kind is always kept.
PROBLEMS_SIZE = 64 << 20  # 64 MiB
PROBLEM_SIZE = 512  # bytes of one, without its path and message

# A cache of this many blocks; the lines of a directory with a thousand files are in a dozen blocks.
BLOCK_BITS = 13  # 8 KiB
BLOCK_MASK = (1 << BLOCK_BITS) - 1
BLOCKS = 128

_HAS_PREAD = hasattr(os, "pread")
# Bytes that end a line, or the file.
_AFTER = (b"\n", b"\r", b"")
_BLANKS = (b" ", b"\t")


class ManifestSource(NamedTuple):
    """A manifest file.

    :ivar name: its path in the bag
    :ivar algorithm: official name of its algorithm; if unknown, as the file name spells it
    :ivar file: binary, seekable, at its start; the listing closes it
    """

    name: bytes
    algorithm: str
    file: BinaryIO


class ListedFile(NamedTuple):
    """A listed file.

    :ivar path: the listed path, decoded
    :ivar digests: lower-case hex by algorithm, for each manifest that lists the file; empty if the checksum is
        malformed, which is reported
    """

    path: bytes
    digests: dict[str, str]


class RespelledEntry(NamedTuple):
    """A file that is listed under another spelling of its name.

    :ivar kind: kind of the problem: ``percent-raw``, ``md5sum-mark``, ``name-normalized``
    :ivar path: the listed path, decoded
    :ivar digests: as in :class:`ListedFile`
    """

    kind: str
    path: bytes
    digests: dict[str, str]


class Listing:
    """An index over payload manifests, or over tag manifests.

    Reading is thread-safe; only one thread may mark.

    :param sources: the manifests, which are read once, now
    :param encoding: the character set that bagit.txt names
    :param version: BagIt version of the bag
    :param tag: whether they are tag manifests
    :param lenient: report blank lines as warnings
    :raises BagError: a manifest cannot be read, changes while it is read, or has more than 4 billion lines
    :raises ValueError: the encoding is unknown
    :ivar problems: the problems of all lines, in order. After :data:`PROBLEMS_LIMIT` problems of a kind in a manifest,
        one problem ``problems-omitted`` states the number of the others
    :ivar algorithms: the algorithms of the manifests, in order
    """

    def __init__(
        self,
        sources: Iterable[ManifestSource],
        encoding: str = UTF8.name,
        version: tuple[int, int] = (1, 0),
        *,
        tag: bool = False,
        lenient: bool = False,
    ) -> None:
        charset = find_charset(encoding)
        if charset is None:
            raise ValueError(f"encoding={encoding!r}: unknown encoding")
        self._version = version
        self._files = contextlib.ExitStack()
        self._length: int | None = None
        self._manifests: list[IndexedManifest] = []
        sources = list(sources)
        try:
            for source in sources:
                self._files.callback(source.file.close)
            for source in sources:
                form = ManifestForm(source.name, source.algorithm, charset, version, tag, lenient)
                self._manifests.append(IndexedManifest(source.file, form))
        except BaseException:
            self._files.close()
            raise
        self.problems: list[Problem] = [found for manifest in self._manifests for found in manifest.problems]
        self.algorithms = tuple(source.algorithm for source in sources)

    def close(self) -> None:
        """Close the manifests."""
        self._files.close()

    def __enter__(self) -> Listing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def length(self) -> int | None:
        """The number of listed files, by the lengths of the manifests; :data:`None` if these differ."""
        lengths = {len(one.index) for one in self._manifests} or {0}
        return lengths.pop() if len(lengths) == 1 else None

    def __len__(self) -> int:
        """Return the number of listed files; a file in several manifests counts once."""
        if self._length is None:
            # A single manifest lists each file once.
            only = len(self._manifests) == 1
            self._length = len(self._manifests[0].index) if only else sum(1 for _ in self.entries())
        return self._length

    def __bool__(self) -> bool:
        return any(len(manifest.index) for manifest in self._manifests)

    def __contains__(self, path: bytes) -> bool:
        return any(manifest.find(path) is not None for manifest in self._manifests)

    def find(self, path: bytes, *, mark: bool = False) -> dict[str, str]:
        """Return the checksums of a file by official algorithm name; empty if no manifest lists it.

        :param mark: mark the file as found
        :raises BagError: a manifest was changed
        """
        digests = {}
        for manifest in self._manifests:
            found = manifest.find(path)
            if found is not None:
                entry, digests[manifest.algorithm] = found
                if mark:
                    manifest.index.mark(entry)
        return digests

    def mark_seen(self, path: bytes) -> bool:
        """Mark a file as found; return whether it is listed."""
        return bool(self.find(path, mark=True))

    def is_marked(self, path: bytes) -> bool:
        """Return whether a file is listed and marked as found."""
        hits = ((manifest, manifest.find(path)) for manifest in self._manifests)
        return any(found is not None and manifest.index.is_marked(found[0]) for manifest, found in hits)

    def find_rest(self, path: bytes, found: Iterable[str], *, mark: bool = True) -> Iterator[RespelledEntry]:
        """Yield the other spellings under which manifests list a file, for manifests that do not list its own name.

        Like :meth:`find_respelled`, this requires that all exact matches are marked.

        :param found: algorithms of the manifests that list its own name
        :param mark: mark the file as found
        """
        known = set(found)
        while not known.issuperset(self.algorithms):
            again = self.find_respelled(path, mark=mark, known=known)
            if again is None:
                return
            yield again
            known |= again.digests.keys()

    def find_respelled(self, path: bytes, *, mark: bool = True, known: Collection[str] = ()) -> RespelledEntry | None:
        """Return the other spelling under which a file is listed, among the lines that are not marked.

        Call this when all exact matches are marked. Then a line with ``%25`` whose file is missing may mean these three
        characters, and a name may differ in its normalization.

        :param mark: mark the file as found
        :param known: algorithms of manifests to skip
        """
        asked = [manifest for manifest in self._manifests if manifest.algorithm not in known]
        return self._find_spelling(path, asked, mark) or self._normalized(path, asked, mark)

    def find_normalized(self, path: bytes, *, mark: bool = True) -> RespelledEntry | None:
        """Return the unmarked name that is equal in Unicode normalization form C (6.1.1.3).

        :param mark: mark the file as found
        """
        return self._normalized(path, self._manifests, mark)

    def _normalized(self, path: bytes, asked: list[IndexedManifest], mark: bool) -> RespelledEntry | None:
        key = normal_key(path)
        hits = []
        for manifest in asked:
            entry = manifest.find_normalized(path, key)
            if entry is not None:
                hits.append((manifest, entry))
        return self._respelled("name-normalized", hits, mark)

    def _find_spelling(self, path: bytes, asked: list[IndexedManifest], mark: bool) -> RespelledEntry | None:
        """Find an unmarked line whose path was encoded or escaped differently."""
        if b"%" in path or b"\n" in path or b"\r" in path:
            others = {decode_path(path, self._version), decode_path(encode_path(path), self._version)} - {path}
            hits = self._hits(asked, others, lambda text: path in possible_paths(text, self._version))
            found = self._respelled("percent-raw", hits, mark)
            if found is not None:
                return found
        if b"\\" in path and (other := unescaped(path)) != path:
            return self._respelled("md5sum-mark", self._hits(asked, {other}, lambda text: text == path), mark)
        return None

    @staticmethod
    def _hits(
        asked: list[IndexedManifest], others: set[bytes], fits: Callable[[bytes], bool]
    ) -> list[tuple[IndexedManifest, int]]:
        entries = [(manifest, manifest.find_spelling(others, fits)) for manifest in asked]
        return [(manifest, entry) for manifest, entry in entries if entry is not None]

    def _respelled(self, kind: str, hits: list[tuple[IndexedManifest, int]], mark: bool) -> RespelledEntry | None:
        if not hits:
            return None
        listed = None
        digests = {}
        for manifest, entry in hits:
            found, _, digest = manifest.read(entry)
            listed = found if listed is None else listed
            digests[manifest.algorithm] = digest
            if mark:
                manifest.index.mark(entry)
        assert listed is not None
        return RespelledEntry(kind, listed, digests)

    def entries(self) -> Iterator[ListedFile]:
        """Yield every listed file once, in the order of the manifests and their lines."""
        for number, manifest in enumerate(self._manifests):
            for entry in range(len(manifest.index)):
                listed = self._listed(number, manifest, entry)
                if listed is not None:
                    yield listed

    def unmarked(self) -> Iterator[ListedFile]:
        """Yield every listed file that is not marked once, in the order of the manifests and their lines."""
        for number, manifest in enumerate(self._manifests):
            entry = -1
            while (entry := manifest.index.next_unmarked(entry + 1)) >= 0:
                listed = self._listed(number, manifest, entry)
                if listed is not None:
                    yield listed

    def _listed(self, number: int, manifest: IndexedManifest, entry: int) -> ListedFile | None:
        """Return the file of a line; :data:`None` if an earlier manifest lists it too."""
        path, _, digest = manifest.read(entry)
        digests = {manifest.algorithm: digest}
        for other, another in enumerate(self._manifests):
            if other != number:
                found = another.find(path)
                if found is not None:
                    if other < number:
                        return None
                    digests[another.algorithm] = found[1]
        return ListedFile(path, digests)

    def collisions(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield pairs of names that differ only in case or Unicode normalization (6.1.1).

        Each name is the second of at most one pair. Memory use is that of an index of the names that are not lower-case
        ASCII.
        """
        keys = path_index()
        count = len(self._manifests)
        for number, manifest in enumerate(self._manifests):
            entry = -1
            while (entry := manifest.index.next_folding(entry + 1)) >= 0:
                path, _, _ = manifest.read(entry)
                if any(earlier.find(path) is not None for earlier in self._manifests[:number]):
                    continue
                key = folded(path)
                other = self._of_key(keys, key)
                if other is None:
                    # Names that equal their own key are not in this index.
                    keys.add(key, entry * count + number, False)
                    other = key if key.isascii() and key in self else None
                if other is not None:
                    yield other, path

    def _of_key(self, keys: Any, key: bytes) -> bytes | None:
        for found in keys.find(key):
            entry, number = divmod(keys.line(found), len(self._manifests))
            path: bytes = self._manifests[number].read(entry)[0]
            if folded(path) == key:
                return path
        return None


def path_index(digits: int = 0) -> Any:
    """Return an empty index of paths. Its scan accepts no lines unless the number of digits of a checksum is given."""
    return _kernels.active.ManifestIndex(digits, BELOW_PAYLOAD, LINE_LIMIT, os.urandom(8))


class _BoundedProblems:
    """The problems of a manifest, up to a limit for each kind."""

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
        """Return all problems, and one for each kind that exceeds the limit."""
        for kind, severity in self._omitted.items():
            message = f"{self._more[kind]} more of kind {kind}"
            more = problem("problems-omitted", self._name, message, severity=severity, algorithm=self._algorithm)
            self.found.append(more)
        return self.found


class IndexedManifest:
    """The index of one manifest, and its file.

    :param file: binary, seekable, at its start
    :param form: the form of its lines
    :raises BagError: the file cannot be read, changes while it is read, or has too many lines
    :ivar algorithm: the algorithm of its checksums
    :ivar index: the index of its lines, each path once
    :ivar problems: the problems of all lines
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
        # Lines of tag manifests, and lines that must be decoded, are not plain.
        self._plain = form.charset.is_utf8 and not form.tag and self._digits > 0
        self.index = path_index(self._digits if self._plain else 0)
        self._problems = _BoundedProblems(form.name, form.algorithm)
        try:
            self._scan()
        except OSError as error:
            raise BagError(form.name, f"cannot be read: {error.strerror}") from error
        except OverflowError:
            raise BagError(form.name, "more than 4 billion lines; split the bag") from None
        self._check_unchanged()
        self.problems = self._problems.close()

    # --- indexing

    def _scan(self) -> None:
        reader = LineReader(self._file, self._form.charset, self._form.name)
        if reader.charset is not self._form.charset:  # the reader has detected the byte order
            self._form = dataclasses.replace(self._form, charset=reader.charset)
        while True:
            if self._plain and not reader.pending:
                position, lines, status = self.index.scan(reader.block, reader.position, reader.base, reader.final)
                reader.advance(position, lines)
                if status == LineStatus.MORE and not reader.final and len(reader.block) - position <= LINE_LIMIT:
                    reader.fill()
                    continue
            found = reader.line()
            if found is None:
                return
            self._take(found)

    def _take(self, found: Line | Problem) -> None:
        """Add a line that the kernel did not add: it is not plain, or its fingerprint exists."""
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
        # Whether the line is plain, as the kernel defines it.
        blanks = len(found.data) - self._digits - len(text)
        plain = not problems and self._digits > 0 and text == entry.path and 1 <= blanks <= 2
        self.index.add(entry.path, found.offset, not (plain and self._form.charset.is_utf8))

    def _duplicate(self, line: Line, entry: ManifestEntry, digest: str) -> list[Problem]:
        message = f"{line_location(self._form.name, line.number)}: duplicate entry"
        path = entry.path[:PATH_LIMIT]
        if digest == entry.digest:
            again = problem("path-duplicate", path, message, algorithm=self.algorithm)
            return judge_violation("listed-once", self._form.version, again)
        message += ", with another checksum"
        # An error in all versions: one of the two is wrong.
        found = problem("path-duplicate", path, message, algorithm=self.algorithm, expected=digest, found=entry.digest)
        return [found]

    # --- lookup

    def find(self, path: bytes) -> tuple[int, str] | None:
        """Return the position of the line that lists a path, and its checksum; :data:`None` if no line does."""
        index, digits = self.index, self._digits
        for entry in index.find(path):
            offset = index.line(entry)
            if offset < 0:
                found, _, digest = self.read(entry)
                if found == path:
                    return entry, digest
                continue
            # The checksum, one or two spaces, the path, and a byte of the line end.
            size = digits + 3 + len(path)
            begin = offset & BLOCK_MASK
            block = self._blocks.get(offset >> BLOCK_BITS) or self._block(offset >> BLOCK_BITS)
            line = block[begin : begin + size]
            if len(line) < size:
                line = self._across(offset, size)
            begin = digits + 2 if line[digits + 1 : digits + 2] in _BLANKS else digits + 1
            end = begin + len(path)
            if line[begin:end] == path and line[end : end + 1] in _AFTER:
                return entry, line[:digits].decode("latin-1").lower()
        return None

    def read(self, entry: int) -> tuple[bytes, bytes, str]:
        """Return the path of a line, the path as written, and the checksum."""
        offset = self.index.line(entry)
        if offset < 0:
            listed, text, _ = self._form.read(self._line(~offset))
            if listed is None:
                raise self._changed()
            return listed.path, text, listed.digest
        data, digits = self._line(offset).data, self._digits
        path = data[digits + (2 if data[digits + 1 : digits + 2] in _BLANKS else 1) :]
        return path, path, data[:digits].decode("latin-1").lower()

    def find_spelling(self, others: Iterable[bytes], fits: Callable[[bytes], bool]) -> int | None:
        """Return the position of the first unmarked line that lists one of the other paths and whose text fits."""
        for other in others:
            found = self.find(other)
            if found is not None and not self.index.is_marked(found[0]) and fits(self.read(found[0])[1]):
                return found[0]
        return None

    def find_normalized(self, path: bytes, key: bytes) -> int | None:
        """Return the position of the first unmarked line whose path differs but has the same key."""
        if key != path and (found := self.find(key)) is not None and not self.index.is_marked(found[0]):
            return found[0]
        if self._normalized is None:
            self._normalized = self._keys()
        for number in self._normalized.find(key):
            entry: int = self._normalized.line(number)
            if not self.index.is_marked(entry):
                other = self.read(entry)[0]
                if other != path and normal_key(other) == key:
                    return entry
        return None

    def _keys(self) -> Any:
        """Return an index of the normalized names of all unmarked lines that are not ASCII."""
        keys = path_index()
        entry = -1
        while (entry := self.index.next_folding(entry + 1)) >= 0:
            if not self.index.is_marked(entry):
                path = self.read(entry)[0]
                if not path.isascii():
                    keys.add(normal_key(path), entry, False)
        return keys

    # --- reading lines again

    def _line(self, offset: int) -> Line:
        """Return the line at an offset."""
        find_end = self._form.charset.find_end
        block, begin = self._block(offset >> BLOCK_BITS), offset & BLOCK_MASK
        ends = find_end(block, begin, False)
        if ends is not None:
            return Line(0, offset, block[begin : ends[0]])
        # Growing by a factor of 4 bounds the total to 4/3 of the line's length.
        size = 4 << BLOCK_BITS
        while True:
            data = self._across(offset, size)
            whole = len(data) < size
            ends = find_end(data, 0, whole)
            if ends is not None or whole:
                return Line(0, offset, data[: ends[0]] if ends else data)
            if size > LINE_LIMIT:
                raise self._changed()
            size *= 4

    def _across(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes at an offset, across blocks; less at the end of the file."""
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
            # Indexing may still be in progress.
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
        return BagError(self._form.name, "changed while in use; run again when no other process writes to the bag")


def _descriptor(file: BinaryIO) -> int | None:
    try:
        return file.fileno()
    except OSError:
        return None
