"""Two stores compared: objects are found by their identifiers, and compared file by file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from pressmark.errors import ObjectError, quoted_path
from pressmark.fixity.outcomes import Outcome
from pressmark.fixity.pool import hash_files
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.fs.spilling import TemporaryDatabase
from pressmark.progress_event import Progress, ProgressEvent
from pressmark.reports import Problem
from pressmark.stores.comparing.object_pairs import (
    Difference,
    FilePair,
    beside,
    digest_reason,
    files_of,
    matched,
    size_differences,
)
from pressmark.stores.exceptions import object_errors
from pressmark.stores.objects import StoreObject
from pressmark.stores.store import Store
from pressmark.stores.stored_object import StoredObject
from pressmark.threads import ordered_map, resolve_threads

__all__ = ["StoreComparison", "compare"]

# Objects that are compared together, so that many small files are read in one stream.
TOGETHER = 256
ALGORITHM = "sha256"
TELL_EVERY = 1000  # objects


class _Pair(NamedTuple):
    """An object in both stores.

    :ivar differences: which are known without content
    :ivar unknown: the files that recorded digests do not tell
    :ivar by_digests: number of the other files
    :ivar found: the objects; empty for an object that is not compared
    """

    identifier: str
    differences: list[Difference]
    unknown: Sequence[FilePair] = ()
    by_digests: int = 0
    found: Sequence[StoredObject] = ()


class StoreComparison:
    """The comparison of two stores: iterate over it once, for the differences.

    Objects have the order of the first store; those that only the other one has follow, in its order.

    :ivar counts: after the iteration. Objects: ``equal``, ``different``, ``only_here``, ``only_there`` and
        ``unreadable``; and the files of objects in both stores, by how they were compared: by recorded ``digests``, by
        their ``content``, or only by their ``sizes``
    """

    def __init__(
        self,
        here: Store,
        there: Store,
        digests: bool,
        ignore: Sequence[str],
        threads: int | None,
        progress: Progress | None,
    ) -> None:
        self._here, self._there = here, there
        self._reads = digests
        self._ignore = ignore
        self._threads = resolve_threads(threads)
        self._progress = progress
        objects = ("equal", "different", "only_here", "only_there", "unreadable")
        self._objects = 0
        self.counts: dict[str, int] = dict.fromkeys((*objects, "digests", "content", "sizes"), 0)

    @property
    def ok(self) -> bool:
        """Whether all objects that have been compared are equal."""
        return not any(self.counts[name] for name in ("different", "only_here", "only_there", "unreadable"))

    def __iter__(self) -> Iterator[Difference]:
        with _Index() as index:
            for pair in self._pairs(index):
                yield from self._counted(pair)

    def _pairs(self, index: _Index) -> Iterator[_Pair]:
        for record in self._records(self._there):
            if isinstance(record, Difference):
                yield _Pair(record.id, [record])
            elif not index.add(record):
                yield _Pair(str(record.id), [_several(record, self._there)])
        records = self._records(self._here)
        while some := list(islice(records, TOGETHER)):
            yield from self._read(list(self._each([self._found(one, index) for one in some])))
        for identifier in index.left():
            yield _Pair(identifier, [Difference("only-there", identifier)])

    def _found(self, one: StoreObject | Difference, index: _Index) -> tuple[StoreObject, StoreObject] | Difference:
        """Return an object of the first store, and that of the other one with its identifier."""
        if isinstance(one, Difference):
            return one
        there, is_first = index.take(one)
        if not is_first:
            return _several(one, self._here)
        return Difference("only-here", str(one.id)) if there is None else (one, there)

    def _records(self, store: Store) -> Iterator[StoreObject | Difference]:
        """Yield the records of a store's objects, and a difference for each object that cannot be identified, and for
        each directory that cannot be read.
        """
        problems: list[Problem] = []
        for record in store.objects(threads=self._threads, ignore=self._ignore, problems=problems):
            yield from _unreadable_directories(store, problems)
            if record.id is None:
                reason = record.problems[0].message if record.problems else "the identifier cannot be read"
                yield _unreadable(f"{store.root}/{record.path}", reason)
            else:
                yield record
        yield from _unreadable_directories(store, problems)

    def _each(self, some: Sequence[tuple[StoreObject, StoreObject] | Difference]) -> Iterator[_Pair]:
        if self._here.bucket is None and self._there.bucket is None:
            return ordered_map(self._pair, some, threads=self._threads, name="pressmark-compare")
        from pressmark.buckets.requests import in_order  # most stores are on a disk

        return in_order(self._pair, some)

    def _pair(self, records: tuple[StoreObject, StoreObject] | Difference) -> _Pair:
        """Compare an object without reading its content."""
        if isinstance(records, Difference):
            return _Pair(records.id, [records])
        identifier = str(records[0].id)
        try:
            return self._matched(identifier, self._here.locate(records[0]), self._there.locate(records[1]))
        except ObjectError as error:
            return _Pair(identifier, [_unreadable(identifier, error.reason)])

    def _matched(self, identifier: str, here: StoredObject, there: StoredObject) -> _Pair:
        uses = not self._reads
        ours, theirs = files_of(self._here, here, uses), files_of(self._there, there, uses)
        if self._here.kind != self._there.kind:
            ours, theirs = beside(self._here, here, ours, theirs), beside(self._there, there, theirs, ours)
        found = list(matched(identifier, ours, theirs))
        differences = [one for one in found if isinstance(one, Difference)]
        unknown = [one for one in found if isinstance(one, FilePair)]
        if uses and unknown:
            with object_errors(self._here.root, identifier):
                differences += size_differences(identifier, unknown, self._here, self._there)
        common = len(ours.paths.keys() & theirs.paths.keys())
        return _Pair(identifier, differences, unknown, common - len(unknown), (here, there))

    def _read(self, pairs: list[_Pair]) -> Iterator[_Pair]:
        """Compare the content of files, if it is read, many at a time."""
        paths = [path for pair in pairs for one in pair.unknown for path in (one.here, one.there)]
        outcomes = hash_files(paths if self._reads else (), ALGORITHM, self._threads)
        for pair in pairs:
            for file in pair.unknown if self._reads else ():
                pair.differences.extend(_content_difference(pair.identifier, file, next(outcomes), next(outcomes)))
            try:
                for found in pair.found:
                    found.confirm()
            except ObjectError as error:
                pair.differences.append(_unreadable(pair.identifier, error.reason))
            yield pair

    def _counted(self, pair: _Pair) -> list[Difference]:
        """Count an object, and return its differences in the order of the files."""
        kinds = {one.kind if one.file is None else "different" for one in pair.differences}
        result = next(
            (kind for kind in ("unreadable", "only-here", "only-there", "different") if kind in kinds), "equal"
        )
        self.counts[result.replace("-", "_")] += 1
        self.counts["digests"] += pair.by_digests
        self.counts["content" if self._reads else "sizes"] += len(pair.unknown)
        self._objects += 1
        if self._progress is not None and self._objects % TELL_EVERY == 0:
            self._progress(ProgressEvent(items=self._objects))
        return sorted(pair.differences, key=lambda one: encode_fs(one.file or ""))


def compare(
    store: Store,
    other: Store,
    *,
    digests: bool = False,
    ignore: Sequence[str] = (),
    threads: int | None = None,
    progress: Progress | None = None,
) -> StoreComparison:
    """Compare the objects of two stores, of any kinds, by their identifiers and files.

    Of OCFL objects, the newest versions are compared; of bags, the payload, or all files if the other object is a copy
    of the bag. Empty directories are not compared: not every kind of store has them.

    >>> from pressmark import stores
    >>> one, other = stores.create("pairtree", "one"), stores.create("pairtree", "other")
    >>> one.put("ark:/13030/xt12t3", {"page.txt": b"page 1"}).id
    'ark:/13030/xt12t3'
    >>> [(found.kind, found.id) for found in stores.compare(one, other)]
    [('only-here', 'ark:/13030/xt12t3')]

    :param digests: read all files; otherwise files are compared by the digests in inventories and manifests, and those
        for which both stores do not record the same algorithm only by their sizes
    :param ignore: globs of names to ignore, such as ``.DS_Store``, outside of objects
    :param threads: number of threads; :data:`None` for one per core
    :param progress: changed in the iterating thread
    :return: an iterator over the differences; a store that cannot be read raises :class:`pressmark.StoreError` there
    """
    return StoreComparison(store, other, digests, ignore, threads, progress)


class _Index(TemporaryDatabase):
    """The objects of the other store by their identifiers, in a temporary file if they need much memory.

    :raises SpillError: the temporary file cannot be written or read, like all methods
    """

    def __init__(self) -> None:
        super().__init__("CREATE TABLE objects (id BLOB PRIMARY KEY, path BLOB, inside BLOB, is_taken INT);")

    def add(self, record: StoreObject) -> bool:
        """Add an object, and return whether it is the first one with its identifier."""
        inside = None if record.encapsulation is None else encode_fs(record.encapsulation)
        row = (encode_fs(str(record.id)), encode_fs(record.path), inside)
        return self.execute("INSERT OR IGNORE INTO objects VALUES (?, ?, ?, 0)", row).rowcount == 1

    def take(self, record: StoreObject) -> tuple[StoreObject | None, bool]:
        """Return the object with the identifier of another one, and whether it is asked for the first time."""
        key = encode_fs(str(record.id))
        found = self.execute("SELECT path, inside, is_taken FROM objects WHERE id = ?", (key,)).fetchone()
        self.execute("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, 1)", (key, *(found or (None, None))[:2]))
        if found is None or found[0] is None:
            return None, found is None
        inside = None if found[1] is None else decode_fs(found[1])
        return StoreObject(record.id, decode_fs(found[0]), True, inside, ()), not found[2]

    def left(self) -> Iterator[str]:
        """Yield the identifiers of the objects that were not asked for, in the order of the other store."""
        for (key,) in self.rows("SELECT id FROM objects WHERE NOT is_taken ORDER BY rowid"):
            yield decode_fs(key)


def _content_difference(identifier: str, file: FilePair, here: Outcome, there: Outcome) -> Iterator[Difference]:
    for outcome in (here, there):
        if outcome.digests is None:
            yield _unreadable(identifier, f"{quoted_path(outcome.path)}: {outcome.message}")
            return
    assert here.digests is not None
    assert there.digests is not None
    one, other = here.digests[ALGORITHM], there.digests[ALGORITHM]
    if one != other:
        yield Difference("different", identifier, file.name, digest_reason(ALGORITHM, one, other))


def _unreadable(identifier: str, reason: str) -> Difference:
    return Difference("unreadable", identifier, None, reason)


def _several(one: StoreObject, store: Store) -> Difference:
    return _unreadable(str(one.id), f"several objects of {quoted_path(store.root)} have this identifier")


def _unreadable_directories(store: Store, problems: list[Problem]) -> Iterator[Difference]:
    """Yield a difference for each directory that a walk could not read, and forget the problems."""
    for one in problems:
        if one.kind == "unreadable":
            yield _unreadable(f"{store.root}/{one.path}", one.message)
    problems.clear()
