"""What a bag's manifests list: an index over one or several manifest files that holds no text.

Of each line a fingerprint of its path, its offset and a slot of a hash table are kept, some 24 bytes; checksums and
paths are read from the manifest again when they are asked for, and paths are really compared. So a manifest of any
length is opened in one pass, and takes about a tenth of its size in memory.

How a validation uses it::

    with Listing([Source(b"manifest-sha512.txt", "sha512", file)], encoding, version) as listing:
        report.add(listing.problems)
        for path in walk:  # every file of the payload
            digests = listing.find(path, mark=True)  # {"sha512": "…"}; empty where nothing lists it
        for path in those_not_found:
            again = listing.find_again(path)  # a raw percent sign, another normalization: among unmarked lines only
        for path, digests in listing.unmarked():  # what is listed and was not there
            ...
        for first, second in listing.clashes():  # names of which some file systems hold only one
            ...
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple

from pressmark.bagit.encodings import UTF8, find_charset
from pressmark.bagit.indexed import PROBLEMS_LIMIT, IndexedManifest, path_index
from pressmark.bagit.manifest import ManifestForm, unescaped
from pressmark.bagit.paths import clash_key, decode_path, encode_path, normal_key, readings
from pressmark.reports import Problem

__all__ = ["PROBLEMS_LIMIT", "Again", "Listed", "Listing", "Source"]


class Source(NamedTuple):
    """One manifest file.

    :ivar name: its path in the bag
    :ivar algorithm: the official name of its algorithm, or an unknown one as it stands in the manifest's name
    :ivar file: binary, seekable, at its beginning; the listing closes it
    """

    name: bytes
    algorithm: str
    file: BinaryIO


class Listed(NamedTuple):
    """A file that is listed.

    :ivar path: as it is listed, decoded
    :ivar digests: name of the algorithm to lower-case hex, for each manifest that lists it; empty where the checksum is
        malformed, which is among the problems
    """

    path: bytes
    digests: dict[str, str]


class Again(NamedTuple):
    """A file that is listed under another spelling of its name.

    :ivar kind: of the problem: ``percent-raw``, ``md5sum-mark``, ``name-normalized``
    :ivar path: as it is listed, decoded
    :ivar digests: as of :class:`Listed`
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
        sources: Iterable[Source],
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

    def mark(self, path: bytes) -> bool:
        """Note that a file is there; return whether it is listed."""
        return bool(self.find(path, mark=True))

    def is_marked(self, path: bytes) -> bool:
        """Return whether a file is listed and was noted to be there."""
        hits = ((manifest, manifest.find(path)) for manifest in self._manifests)
        return any(found is not None and manifest.index.is_marked(found[0]) for manifest, found in hits)

    def find_rest(self, path: bytes, found: Iterable[str], *, mark: bool = True) -> Iterator[Again]:
        """Yield under which other spellings those manifests list a file that do not list it under its own name.

        Ask when all files that are listed under their own names are marked, as with :meth:`find_again`.

        :param found: algorithms of the manifests that list it under its own name
        :param mark: note that the file is there
        """
        known = set(found)
        while not known.issuperset(self.algorithms):
            again = self.find_again(path, mark=mark, known=known)
            if again is None:
                return
            yield again
            known |= again.digests.keys()

    def find_again(self, path: bytes, *, mark: bool = True, known: Collection[str] = ()) -> Again | None:
        """Return under which other spelling a file is listed, of those that are not marked; the second chance.

        Ask when all files that are listed under their own names are marked. Then a line that holds ``%25`` and means a
        file that is not there may mean one with these three characters, and a name may differ in its normalization.

        :param mark: note that the file is there
        :param known: algorithms of manifests that are not asked
        """
        asked = [manifest for manifest in self._manifests if manifest.algorithm not in known]
        return self._spelled(path, asked, mark) or self._normalized(path, asked, mark)

    def find_normalized(self, path: bytes, *, mark: bool = True) -> Again | None:
        """Return which unmarked name is the same in Unicode's normalization form C (6.1.1.3).

        :param mark: note that the file is there
        """
        return self._normalized(path, self._manifests, mark)

    def _normalized(self, path: bytes, asked: list[IndexedManifest], mark: bool) -> Again | None:
        key = normal_key(path)
        hits = []
        for manifest in asked:
            place = manifest.find_normalized(path, key)
            if place is not None:
                hits.append((manifest, place))
        return self._again("name-normalized", hits, mark)

    def _spelled(self, path: bytes, asked: list[IndexedManifest], mark: bool) -> Again | None:
        """Find an unmarked line by what may have become of its path on its way from line to index."""
        if b"%" in path or b"\n" in path or b"\r" in path:
            others = {decode_path(path, self._version), decode_path(encode_path(path), self._version)} - {path}
            hits = self._hits(asked, others, lambda text: path in readings(text, self._version))
            found = self._again("percent-raw", hits, mark)
            if found is not None:
                return found
        if b"\\" in path and (other := unescaped(path)) != path:
            return self._again("md5sum-mark", self._hits(asked, {other}, lambda text: text == path), mark)
        return None

    @staticmethod
    def _hits(
        asked: list[IndexedManifest], others: set[bytes], fits: Callable[[bytes], bool]
    ) -> list[tuple[IndexedManifest, int]]:
        places = [(manifest, manifest.spelled(others, fits)) for manifest in asked]
        return [(manifest, place) for manifest, place in places if place is not None]

    def _again(self, kind: str, hits: list[tuple[IndexedManifest, int]], mark: bool) -> Again | None:
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
        return Again(kind, listed, digests)

    def entries(self) -> Iterator[Listed]:
        """Yield every file that is listed, once, in the order of the manifests and their lines."""
        for number, manifest in enumerate(self._manifests):
            for place in range(len(manifest.index)):
                listed = self._listed(number, manifest, place)
                if listed is not None:
                    yield listed

    def unmarked(self) -> Iterator[Listed]:
        """Yield every file that is listed and not marked, once, in the order of the manifests and their lines."""
        for number, manifest in enumerate(self._manifests):
            place = -1
            while (place := manifest.index.next_unmarked(place + 1)) >= 0:
                listed = self._listed(number, manifest, place)
                if listed is not None:
                    yield listed

    def _listed(self, number: int, manifest: IndexedManifest, place: int) -> Listed | None:
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
        return Listed(path, digests)

    def clashes(self) -> Iterator[tuple[bytes, bytes]]:
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
                key = clash_key(path)
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
            if clash_key(path) == key:
                return path
        return None
