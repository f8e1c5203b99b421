"""What a bag's manifests list: an index over one or several manifest files that holds no text.

Of each line a fingerprint of its path, its offset and a slot of a hash table are kept, some 24 bytes; checksums and
paths are read from the manifest again when they are asked for, and paths are really compared. So a manifest of any
length is opened in one pass, and takes about a tenth of its size in memory
(:class:`pressmark._kernels.active.ManifestIndex`).

How a validation uses it::

    with Listing([Source(b"manifest-sha512.txt", "sha512", file)], encoding, version) as listing:
        report.add(listing.problems)
        for path in walk:  # every file of the payload
            digests = listing.find(path, mark=True)  # {"sha512": "…"}; empty where nothing lists it
        for path in those_not_found:
            again = listing.find_respelled(path)  # a raw percent sign, another normalization: among unmarked lines only
        for path, digests in listing.unmarked():  # what is listed and was not there
            ...
        for first, second in listing.clashes():  # names of which some file systems hold only one
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
from pressmark.bagit.paths import BELOW_PAYLOAD, collision_key, decode_path, encode_path, normal_key, possible_paths
from pressmark.bagit.problems import problem
from pressmark.bagit.versions import judge_violation
from pressmark.errors import BagError
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


class ManifestSource(NamedTuple):
    """One manifest file.

    :ivar name: its path in the bag
    :ivar algorithm: the official name of its algorithm, or an unknown one as it stands in the manifest's name
    :ivar file: binary, seekable, at its beginning; the listing closes it
    """

    name: bytes
    algorithm: str
    file: BinaryIO


class ListedFile(NamedTuple):
    """A file that is listed.

    :ivar path: as it is listed, decoded
    :ivar digests: name of the algorithm to lower-case hex, for each manifest that lists it; empty where the checksum is
        malformed, which is among the problems
    """

    path: bytes
    digests: dict[str, str]


class RespelledEntry(NamedTuple):
    """A file that is listed under another spelling of its name.

    :ivar kind: of the problem: ``percent-raw``, ``md5sum-mark``, ``name-normalized``
    :ivar path: as it is listed, decoded
    :ivar digests: as of :class:`ListedFile`
    """

    kind: str
    path: bytes
    digests: dict[str, str]


class Listing:
    """An index over manifests of one kind: payload manifests, or tag manifests.

    Reading is safe from several threads; marking is for one.

    :param sources: the manifests; they are read once, now
    :param encoding: the character set that bagit.txt names
    :param version: the bag's
    :param tag: whether they are tag manifests
    :param lenient: blank lines are warnings
    :raises BagError: a manifest changes while it is read, cannot be read, or has more than 4 billion lines
    :raises ValueError: the encoding is not known
    :ivar problems: of all lines, in order; after :data:`PROBLEMS_LIMIT` of a kind in a manifest one more problem,
        ``problems-omitted``, says how many there are
    :ivar algorithms: of the manifests, in their order
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
            raise ValueError(f"encoding={encoding!r}: not known")
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
        """Close the manifests; nothing can be asked for any more."""
        self._files.close()

    def __enter__(self) -> Listing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        """How many files are listed, each counted once."""
        if self._length is None:
            # One manifest lists no file twice; of several, those of the others are looked for in the first.
            only = len(self._manifests) == 1
            self._length = len(self._manifests[0].index) if only else sum(1 for _ in self.entries())
        return self._length

    def __bool__(self) -> bool:
        return any(len(manifest.index) for manifest in self._manifests)

    def __contains__(self, path: bytes) -> bool:
        return any(manifest.find(path) is not None for manifest in self._manifests)

    def find(self, path: bytes, *, mark: bool = False) -> dict[str, str]:
        """Return the checksums of a file, by the official names of their algorithms; empty where nothing lists it.

        :param mark: note that the file is there
        :raises BagError: a manifest was changed
        """
        digests = {}
        for manifest in self._manifests:
            found = manifest.find(path)
            if found is not None:
                place, digests[manifest.algorithm] = found
                if mark:
                    manifest.index.mark(place)
        return digests

    def mark_seen(self, path: bytes) -> bool:
        """Note that a file is there; return whether it is listed."""
        return bool(self.find(path, mark=True))

    def is_marked(self, path: bytes) -> bool:
        """Return whether a file is listed and was noted to be there."""
        hits = ((manifest, manifest.find(path)) for manifest in self._manifests)
        return any(found is not None and manifest.index.is_marked(found[0]) for manifest, found in hits)

    def find_rest(self, path: bytes, found: Iterable[str], *, mark: bool = True) -> Iterator[RespelledEntry]:
        """Yield under which other spellings those manifests list a file that do not list it under its own name.

        Ask when all files that are listed under their own names are marked, as with :meth:`find_respelled`.

        :param found: algorithms of the manifests that list it under its own name
        :param mark: note that the file is there
        """
        known = set(found)
        while not known.issuperset(self.algorithms):
            again = self.find_respelled(path, mark=mark, known=known)
            if again is None:
                return
            yield again
            known |= again.digests.keys()

    def find_respelled(self, path: bytes, *, mark: bool = True, known: Collection[str] = ()) -> RespelledEntry | None:
        """Return under which other spelling a file is listed, of those that are not marked; the second chance.

        Ask when all files that are listed under their own names are marked. Then a line that holds ``%25`` and means a
        file that is not there may mean one with these three characters, and a name may differ in its normalization.

        :param mark: note that the file is there
        :param known: algorithms of manifests that are not asked
        """
        asked = [manifest for manifest in self._manifests if manifest.algorithm not in known]
        return self._find_spelling(path, asked, mark) or self._normalized(path, asked, mark)

    def find_normalized(self, path: bytes, *, mark: bool = True) -> RespelledEntry | None:
        """Return which unmarked name is the same in Unicode's normalization form C (6.1.1.3).

        :param mark: note that the file is there
        """
        return self._normalized(path, self._manifests, mark)

    def _normalized(self, path: bytes, asked: list[IndexedManifest], mark: bool) -> RespelledEntry | None:
        key = normal_key(path)
        hits = []
        for manifest in asked:
            place = manifest.find_normalized(path, key)
            if place is not None:
                hits.append((manifest, place))
        return self._respelled("name-normalized", hits, mark)

    def _find_spelling(self, path: bytes, asked: list[IndexedManifest], mark: bool) -> RespelledEntry | None:
        """Find an unmarked line by what may have become of its path on its way from line to index."""
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
        places = [(manifest, manifest.find_spelling(others, fits)) for manifest in asked]
        return [(manifest, place) for manifest, place in places if place is not None]

    def _respelled(self, kind: str, hits: list[tuple[IndexedManifest, int]], mark: bool) -> RespelledEntry | None:
        if not hits:
            return None
        listed = None
        digests = {}
        for manifest, place in hits:
            found, _, digest = manifest.read(place)
            listed = found if listed is None else listed
            digests[manifest.algorithm] = digest
            if mark:
                manifest.index.mark(place)
        assert listed is not None
        return RespelledEntry(kind, listed, digests)

    def entries(self) -> Iterator[ListedFile]:
        """Yield every file that is listed, once, in the order of the manifests and their lines."""
        for number, manifest in enumerate(self._manifests):
            for place in range(len(manifest.index)):
                listed = self._listed(number, manifest, place)
                if listed is not None:
                    yield listed

    def unmarked(self) -> Iterator[ListedFile]:
        """Yield every file that is listed and not marked, once, in the order of the manifests and their lines."""
        for number, manifest in enumerate(self._manifests):
            place = -1
            while (place := manifest.index.next_unmarked(place + 1)) >= 0:
                listed = self._listed(number, manifest, place)
                if listed is not None:
                    yield listed

    def _listed(self, number: int, manifest: IndexedManifest, place: int) -> ListedFile | None:
        """Return what the line lists; :data:`None` where a manifest before lists it as well."""
        path, _, digest = manifest.read(place)
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

        Each name is in one pair at most as the second. Memory is that of the index of those names that are not ASCII in
        lower case.
        """
        keys = path_index()
        count = len(self._manifests)
        for number, manifest in enumerate(self._manifests):
            place = -1
            while (place := manifest.index.next_folding(place + 1)) >= 0:
                path, _, _ = manifest.read(place)
                if any(earlier.find(path) is not None for earlier in self._manifests[:number]):
                    continue
                key = collision_key(path)
                other = self._of_key(keys, key)
                if other is None:
                    # A name that is its own key is in no list of those that fold.
                    keys.add(key, place * count + number, False)
                    other = key if key.isascii() and key in self else None
                if other is not None:
                    yield other, path

    def _of_key(self, keys: Any, key: bytes) -> bytes | None:
        for found in keys.find(key):
            place, number = divmod(keys.line(found), len(self._manifests))
            path: bytes = self._manifests[number].read(place)[0]
            if collision_key(path) == key:
                return path
        return None


def path_index(digits: int = 0) -> Any:
    """Return an empty index of paths; its scan takes in no line unless the checksums' number of digits is said."""
    return _kernels.active.ManifestIndex(digits, BELOW_PAYLOAD, LINE_LIMIT, os.urandom(8))


class _BoundedProblems:
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
        self._problems = _BoundedProblems(form.name, form.algorithm)
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
                if status == LineStatus.MORE and not reader.final and len(reader.block) - position <= LINE_LIMIT:
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
        message = f"{line_location(self._form.name, line.number)}: listed before"
        path = entry.path[:PATH_LIMIT]
        if digest == entry.digest:
            again = problem("path-duplicate", path, message, algorithm=self.algorithm)
            return judge_violation("listed-once", self._form.version, again)
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

    def find_spelling(self, others: Iterable[bytes], fits: Callable[[bytes], bool]) -> int | None:
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
            if size > LINE_LIMIT:
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
