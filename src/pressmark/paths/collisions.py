"""Collisions between many paths, found by external sorting: equal paths, and paths inside other paths.

Each path becomes a record that sorts by its folded form. Records are sorted in memory; sorted runs are written to an
unnamed temporary file, which disappears with the process. Then the runs are merged: paths with the same folded form are
consecutive, and paths inside another path follow it. The kernels do this and return only collisions, which are
classified here.
"""

from __future__ import annotations

import contextlib
import tempfile
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType, TracebackType
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from pressmark import _kernels
from pressmark.errors import SpillError
from pressmark.paths.batches import Texts, batches
from pressmark.paths.folding import casefolded, decomposed, folded

if TYPE_CHECKING:
    from pressmark.paths.directories import Tree

__all__ = ["Collision", "Member", "PathIndex", "Totals"]

# Runs are read in blocks; a thousand blocks take as much memory as sorting.
BLOCKS = 1024
SMALLEST_BLOCK, LARGEST_BLOCK = 1 << 12, 1 << 20
# Spellings classified at a time.
BATCH = 4096


class Member(NamedTuple):
    """A path in a collision.

    :ivar number: number of the path in the index
    :ivar path: the path
    :ivar label: label of the path, or empty
    """

    number: int
    path: str
    label: str


class Collision(NamedTuple):
    """Paths that cannot both exist.

    :ivar kind: ``equal``: the same bytes. ``case``: they differ by case only. ``normalization``: they differ by NFC and
        NFD, and possibly by case. ``inside``: the first is a parent directory of the others, after folding
    :ivar count: number of paths
    :ivar members: the first paths, by spelling and number; if several are the outer path, only one of them
    :ivar exact: whether they also collide without folding; never for ``case`` and ``normalization``
    """

    kind: str
    count: int  # type: ignore[assignment]  # not the method of tuples
    members: tuple[Member, ...]
    exact: bool


class Totals(NamedTuple):
    """The numbers of paths that collide with at least one other path.

    :ivar paths: number of all paths
    :ivar equal: equal bytes
    :ivar case: equal on a file system that ignores case
    :ivar normalization: equal after normalization to NFC
    :ivar folded: equal after folding of case and normalization
    :ivar inside: one inside the other after folding
    :ivar inside_exact: one inside the other without folding
    """

    paths: int
    equal: int
    case: int
    normalization: int
    folded: int
    inside: int
    inside_exact: int


# From the kernels: folded form, path, count, numbers of the first.
Spelling = tuple[bytes, bytes, int, tuple[int, ...]]


class PathIndex:
    """An index that finds the collisions between paths, numbered in the order in which they are added.

    Memory is bounded for any number of paths, except for the spellings of one folded form. A context manager; its
    temporary files are removed when it is closed, or the process ends.

    :param folder: folder for temporary files; by default that of the system
    :param memory: bytes for sorting
    :param tree: also count the directories of the paths

    >>> with PathIndex() as index:
    ...     index.add(["a/b", "A/B", "c", "c/d"])
    ...     [(collision.kind, [member.path for member in collision.members]) for collision in index.collisions()]
    [('case', ['a/b', 'A/B']), ('inside', ['c', 'c/d'])]
    """

    def __init__(self, folder: Path | None = None, *, memory: int = 256 << 20, tree: bool = False) -> None:
        if memory < 1:
            raise ValueError(f"memory={memory}: expected 1 or more bytes")
        self._folder = folder
        self._memory = memory
        self._block = min(max(memory // BLOCKS, SMALLEST_BLOCK), LARGEST_BLOCK)
        self._kernels: ModuleType = _kernels.active
        self._sorter: Any = self._kernels.PathSorter()
        self._resources = contextlib.ExitStack()
        self._spill: IO[bytes] | None = None
        self._spilled = 0
        # For each run, the offset of its first block and the lengths of all blocks.
        self._runs: list[tuple[int, array[int]]] = []
        self._labels = _Labels(self)
        self._count = self._paths = 0
        self._state = "open"
        self._totals: Totals | None = None
        self._groups: Counter[str] = Counter()
        self._counting: Any = self._kernels.PathTree() if tree else None
        self._tree: Tree | None = None

    def __enter__(self) -> PathIndex:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return self._count

    def close(self) -> None:
        """Release memory and temporary files. The totals remain available."""
        self._state = "closed"
        self._sorter = None
        self._runs = []
        self._resources.close()

    def add(
        self,
        paths: Texts,
        labels: Texts | None = None,
    ) -> None:
        """Add paths. A null counts in the numbering, but is not a path.

        After any of these errors except :class:`ValueError`, the index can no longer be used.

        :param labels: a label for each path; empty by default
        :raises PathError: a path or label has an unpaired surrogate
        :raises TypeError: a path or label is neither str nor bytes
        :raises SpillError: a temporary file cannot be written
        :raises ValueError: the number of labels is not the number of paths
        """
        if self._state != "open":
            raise ValueError(f"cannot add paths: index is {self._state}")
        if labels is not None and len(labels) != len(paths):
            raise ValueError(f"{len(labels)} labels for {len(paths)} paths")
        # After an error, the index would miss collisions.
        self._state = "incomplete after an error"
        if labels is not None:
            self._labels.add(self._count, batches(self._kernels, labels))
        for batch, nulls in batches(self._kernels, paths):
            self._take(batch, nulls)
        self._state = "open"

    def collisions(self, *, first: int = 20, most: int | None = None) -> Iterator[Collision]:
        """Yield every collision, in the order of the folded paths; a collision inside another precedes it.

        Paths with the same folded form result in a collision for each path that occurs more than once, and in a
        collision of all of them if they are spelled differently. Paths inside another path result in one collision.

        :param first: maximum number of members to name in each collision
        :param most: maximum number of collisions of each kind to yield, :data:`None` for all; others are only counted
        :raises SpillError: a temporary file cannot be read
        :raises ValueError: the collisions have been listed before
        """
        if first < 1:
            raise ValueError(f"first={first}: expected 1 or more")
        if self._state != "open":
            raise ValueError(f"collisions can be listed only once: index is {self._state}")
        self._state = "being listed"
        return self._listed(first, most)

    def repetitions(self) -> Iterator[tuple[int, ...]]:
        """Yield the ascending numbers of each path that occurs more than once, instead of :meth:`collisions`.

        The labels remain available; the memory for sorting is released. All numbers of one path are in memory.

        :raises SpillError: a temporary file cannot be read
        :raises ValueError: the collisions have been listed before
        """
        if self._state != "open":
            raise ValueError(f"repetitions can be listed only once: index is {self._state}")
        self._state = "being listed"
        # Few at a time, since each may have many numbers.
        for spellings in self._spellings(self._count + 1, BATCH >> 6):
            yield from (numbers for _, _, count, numbers in spellings if count > 1)
        self._state = "listed"
        self._sorter, self._runs = None, []

    def totals(self) -> Totals:
        """Return the totals. If :meth:`collisions` has been called, it must have ended.

        :raises SpillError: a temporary file cannot be read
        :raises ValueError: the collisions are still being listed, or the index is closed
        """
        if self._state == "open":
            for _ in self.collisions(first=1, most=0):
                pass
        if self._totals is None:
            raise ValueError(f"totals are known only after all collisions are listed: index is {self._state}")
        return self._totals

    def groups(self) -> dict[str, int]:
        """Return the number of collisions of each kind, as soon as :meth:`totals` is known."""
        self.totals()
        return {kind: self._groups[kind] for kind in ("equal", "case", "normalization", "inside")}

    def tree(self) -> Tree:
        """Return the directories of the paths, as soon as :meth:`totals` is known.

        :raises ValueError: the index was created without ``tree=True``
        """
        if self._counting is None:
            raise ValueError("directories were not counted: the index was created without tree=True")
        self.totals()
        if self._tree is None:
            from pressmark.paths.directories import Tree  # collisions alone need no tree

            self._tree = Tree.of(self._counting)
        return self._tree

    def labels(self) -> Iterator[Any]:
        """Yield the labels of all paths in order: a ``ByteColumn`` for each batch that was added with labels.

        :raises SpillError: a temporary file cannot be read
        """
        return self._labels.batches(self._kernels)

    def label(self, number: int) -> str:
        """Return the label of a path, or empty. The index must not be closed.

        :raises SpillError: a temporary file cannot be read
        """
        return self._labels[number]

    @property
    def spilled(self) -> int:
        """Bytes written to temporary files."""
        return self._spilled + self._labels.size

    # --- in -------------------------------------------------------------------------------------------------

    def _take(self, batch: Any, nulls: list[int]) -> None:
        kernels = self._kernels
        others = [folded(batch[index]) for index in kernels.beyond_ascii(batch)]
        self._sorter.add(batch, kernels.ByteColumn.from_texts(others)[0], self._count, nulls)
        self._count += len(batch)
        self._paths += len(batch) - len(nulls)
        if self._sorter.size() >= self._memory:
            self._write_run()

    def _temporary(self) -> IO[bytes]:
        """Return an unnamed temporary file, closed with the index."""
        try:
            # Unbuffered, so that a full disk is reported by the write, not by the close.
            file: Any = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115
        except OSError as error:
            raise self._failure("created", error) from error
        return self._resources.enter_context(file)

    def _failure(self, what: str, error: OSError) -> SpillError:
        folder = tempfile.gettempdir() if self._folder is None else str(self._folder)
        reason = error.strerror or str(error)
        return SpillError(
            folder, f"temporary file cannot be {what} ({reason}); choose another folder, or allow more memory"
        )

    def _write(self, file: IO[bytes], data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[file.write(left) :]
        except OSError as error:
            raise self._failure("written", error) from error

    def _read(self, file: IO[bytes], place: int, size: int) -> bytes:
        pieces = []
        try:
            file.seek(place)
            while size > 0:
                pieces.append(file.read(size))
                if not pieces[-1]:
                    raise OSError("file was truncated")
                size -= len(pieces[-1])
        except OSError as error:
            raise self._failure("read", error) from error
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _write_run(self) -> None:
        """Sort the records in memory and write them as a run."""
        if self._spill is None:
            self._spill = self._temporary()
        self._sorter.sort()
        lengths = array("Q")
        begin = self._spilled
        while block := self._sorter.take(self._block):
            self._write(self._spill, block)
            lengths.append(len(block))
            self._spilled += len(block)
        self._runs.append((begin, lengths))

    # --- out ------------------------------------------------------------------------------------------------

    def _blocks(self) -> list[Iterator[bytes]]:
        """Return iterators over the blocks of each run: those written, and the one in memory."""

        def written(begin: int, lengths: array[int]) -> Iterator[bytes]:
            assert self._spill is not None
            for length in lengths:
                yield self._read(self._spill, begin, length)
                begin += length

        def held() -> Iterator[bytes]:
            self._sorter.sort()
            while block := self._sorter.take(self._block):
                yield block

        return [*(written(*run) for run in self._runs), held()]

    def _spellings(self, first: int, most: int = BATCH) -> Iterator[list[Spelling]]:
        """Yield the colliding spellings from the kernels, about ``most`` at a time."""
        runs = self._blocks()
        merge = self._kernels.PathMerge(len(runs), first, self._counting)
        while True:
            if self._state != "being listed":
                raise ValueError(f"cannot list more collisions: index is {self._state}")
            run, spellings = merge.step(most)
            yield spellings
            if run == -1:
                if self._counting is not None:
                    self._counting.end()
                return
            if run >= 0:
                merge.feed(run, next(runs[run], b""))

    def _listed(self, first: int, most: int | None) -> Iterator[Collision]:
        classifier = _Classifier(first, most, self._paths, self._labels, self._groups)
        for spellings in self._spellings(first):
            for spelling in spellings:
                classifier.add(*spelling)
            yield from classifier.found()
        classifier.end()
        yield from classifier.found()
        self._totals = classifier.totals()
        self._state = "listed"


class _Labels:
    """The labels of paths, in a temporary file: packed batches of labels, each after its offsets."""

    def __init__(self, index: PathIndex) -> None:
        self._index = index
        self._file: IO[bytes] | None = None
        self._end = 0
        # For each batch: number of its first path, number of labels, and offset in the file.
        self._firsts = array("Q")
        self._counts = array("Q")
        self._places = array("Q")

    def add(self, number: int, batches: Iterator[tuple[Any, list[int]]]) -> None:
        index = self._index
        if self._file is None:
            self._file = index._temporary()
        for batch, _ in batches:
            data, offsets = batch.buffers()
            index._write(self._file, offsets.tobytes())
            index._write(self._file, data)
            self._firsts.append(number)
            self._counts.append(len(batch))
            self._places.append(self._end)
            number += len(batch)
            self._end += len(offsets) * offsets.itemsize + len(data)

    @property
    def size(self) -> int:
        """Bytes written."""
        return self._end

    def batches(self, kernels: ModuleType) -> Iterator[Any]:
        ends = [*self._places, self._end][1:]
        for count, place, end in zip(self._counts, self._places, ends, strict=True):
            assert self._file is not None
            data = self._index._read(self._file, place, end - place)
            offsets = array("q")
            offsets.frombytes(data[: 8 * (count + 1)])
            yield kernels.ByteColumn.from_buffers(data[8 * (count + 1) :], offsets)

    def __getitem__(self, number: int) -> str:
        batch = bisect_right(self._firsts, number) - 1
        if self._file is None or batch < 0 or number >= self._firsts[batch] + self._counts[batch]:
            return ""
        offsets = array("q")
        place = self._places[batch]
        offsets.frombytes(self._index._read(self._file, place + 8 * (number - self._firsts[batch]), 16))
        start, stop = offsets
        if start == stop:
            return ""
        data = self._index._read(self._file, place + 8 * (self._counts[batch] + 1) + start, stop - start)
        return data.decode("utf-8", "surrogateescape")


class _Spelled:
    """A spelling of the paths of a group."""

    __slots__ = ("count", "inside", "numbers")

    def __init__(self, count: int, numbers: tuple[int, ...]) -> None:
        self.count = count
        self.numbers = numbers
        # Whether it was counted in inside_exact.
        self.inside = False


class _Group:
    """The paths with one folded form, and the paths inside them."""

    __slots__ = ("count", "ended", "exact", "inner", "key", "members", "nested", "segments", "spelled")

    def __init__(self, key: bytes, nested: bool) -> None:
        self.key = key
        self.nested = nested  # inside another group
        self.spelled: dict[bytes, _Spelled] = {}
        self.count = 0
        self.ended = False  # its own collisions are recorded
        self.inner = 0  # number of paths inside it
        self.exact = False
        # If there are any: number of segments of the paths of the group, and the first paths inside.
        self.segments = 0
        self.members: list[tuple[int, bytes]] = []


class _Classifier:
    """Classifies the collisions, from spellings in the order of their folded forms."""

    def __init__(self, first: int, most: int | None, paths: int, labels: _Labels, kinds: Counter[str]) -> None:
        self._first = first
        self._most = most
        self._paths = paths
        self._labels = labels
        self._kinds = kinds  # number of collisions of each kind
        # The groups that contain the current path, outermost first.
        self._groups: list[_Group] = []
        self._found: list[Collision] = []
        self._equal = self._case = self._normalization = self._folded = self._inside = self._inside_exact = 0

    def totals(self) -> Totals:
        return Totals(
            *(self._paths, self._equal, self._case, self._normalization),
            *(self._folded, self._inside, self._inside_exact),
        )

    def found(self) -> list[Collision]:
        """Return the collisions found since the last call."""
        found, self._found = self._found, []
        return found

    def add(self, key: bytes, path: bytes, count: int, numbers: tuple[int, ...]) -> None:
        """Add the next spelling, and record the collisions completed by it."""
        groups = self._groups
        group = groups[-1] if groups else None
        if group is None or group.key != key:
            if group is not None:
                self._end_group(group)
            while groups and not _is_inside(key, groups[-1].key):
                self._end_inside(groups.pop())
            group = _Group(key, bool(groups))
            groups.append(group)
        spelled = group.spelled[path] = _Spelled(count, numbers)
        group.count += count
        if group.nested:
            self._take_inner(path, spelled)

    def end(self) -> None:
        """Record the last collisions."""
        if self._groups:
            self._end_group(self._groups[-1])
        while self._groups:
            self._end_inside(self._groups.pop())

    def _take_inner(self, path: bytes, spelled: _Spelled) -> None:
        """Count a path inside others."""
        self._inside += spelled.count
        for outer in self._groups[:-1]:
            if not outer.inner:
                # Folding does not change slashes: all paths of a group have the same number of segments.
                outer.segments = next(iter(outer.spelled)).count(b"/") + 1 if outer.key else 0
                if not outer.nested:
                    self._inside += outer.count
            outer.inner += spelled.count
            room = self._first - 1 - len(outer.members)
            if room > 0:
                outer.members += [(number, path) for number in spelled.numbers[:room]]
            above = outer.spelled.get(_head(path, outer.segments))
            if above is None:
                continue
            outer.exact = True
            for one in (above, spelled):
                if not one.inside:
                    one.inside = True
                    self._inside_exact += one.count

    def _end_group(self, group: _Group) -> None:
        """Count the paths of a group, and record its own collisions, once."""
        if group.ended or group.count == 1:
            return
        group.ended = True
        self._folded += group.count
        spelled = group.spelled
        for path, one in spelled.items():
            if one.count > 1:
                self._equal += one.count
                if self._wanted("equal"):
                    self._note("equal", one.count, [(number, path) for number in one.numbers], True)
        if len(spelled) == 1:
            self._case += group.count
            self._normalization += group.count
            return
        if all(map(bytes.isascii, spelled)):
            cases = 1
            self._case += group.count
            self._normalization += sum(one.count for one in spelled.values() if one.count > 1)
        else:
            cases, shared = _shared(spelled, casefolded)
            self._case += shared
            self._normalization += _shared(spelled, decomposed)[1]
        kind = "case" if cases == 1 else "normalization"
        if self._wanted(kind):
            named = ((number, path) for path, one in spelled.items() for number in one.numbers)
            self._note(kind, group.count, list(islice(named, self._first)), False)

    def _end_inside(self, outer: _Group) -> None:
        """Record the collision of a group with the paths inside it."""
        if outer.inner and self._wanted("inside"):
            path, one = next(iter(outer.spelled.items()))
            members = [(one.numbers[0], path), *outer.members]
            self._note("inside", outer.count + outer.inner, members, outer.exact)

    def _wanted(self, kind: str) -> bool:
        self._kinds[kind] += 1
        return self._most is None or self._kinds[kind] <= self._most

    def _note(self, kind: str, count: int, members: list[tuple[int, bytes]], exact: bool) -> None:
        labels = self._labels
        named = [Member(number, path.decode("utf-8", "surrogateescape"), labels[number]) for number, path in members]
        self._found.append(Collision(kind, count, tuple(named), exact))


def _is_inside(key: bytes, outer: bytes) -> bool:
    """Return whether a folded form, as in the records, is inside another; all are inside the empty path."""
    return not outer or key.startswith(outer + b"\1")


def _head(path: bytes, segments: int) -> bytes:
    """Return the first segments of a longer path."""
    end = -1
    for _ in range(segments):
        end = path.index(b"/", end + 1)
    return path[: max(end, 0)]


def _shared(spelled: dict[bytes, _Spelled], key: Any) -> tuple[int, int]:
    """Return the number of different keys, and of paths that share theirs with another."""
    counts: Counter[bytes] = Counter()
    for path, one in spelled.items():
        counts[key(path)] += one.count
    return len(counts), sum(count for count in counts.values() if count > 1)
