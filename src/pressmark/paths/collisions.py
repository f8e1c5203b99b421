"""Collisions between many paths, found by sorting them on disk: paths that are one, or lie one inside another.

Every path becomes a record that sorts by its folded key. Records are sorted as far as memory holds them; each such run
is written to a file without a name, which is gone with the process, however that ends. Then the runs are merged, once:
paths that are equal under folding follow each other, and what is inside a path follows it. The kernels do all that, and
let through only what collisions; here it is told apart.
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
from typing import IO, Any, NamedTuple

from pressmark import _kernels
from pressmark.errors import SpillError
from pressmark.paths.batches import Texts, pieces
from pressmark.paths.directories import Tree
from pressmark.paths.folding import casefolded, decomposed, folded

__all__ = ["Collision", "Member", "PathIndex", "Totals"]

# A run is read back in blocks; a thousand of them take as much memory as sorting did.
BLOCKS = 1024
SMALLEST_BLOCK, LARGEST_BLOCK = 1 << 12, 1 << 20
# Spellings that are told apart at a time.
BATCH = 4096


class Member(NamedTuple):
    """One path that takes part in a collision."""

    number: int
    path: str
    label: str


class Collision(NamedTuple):
    """Paths that cannot all be where they say.

    :ivar kind: ``equal``: the same octets. ``case``: they differ by case alone. ``normalization``: they differ by NFC
        and NFD, maybe by case too. ``inside``: the first is an ancestor of the others, all of them as folded
    :ivar count: how many paths take part
    :ivar members: the first of them, by spelling and number; where several paths are the outer one, one of them only
    :ivar exact: whether there is a collision without folding too; of ``case`` and ``normalization`` never
    """

    kind: str
    count: int  # type: ignore[assignment]  # not the method of tuples
    members: tuple[Member, ...]
    exact: bool


class Totals(NamedTuple):
    """How many paths share with at least one other.

    :ivar paths: all of them
    :ivar equal: they are the same octets
    :ivar case: they are the same once case is folded: what a file system that ignores case takes for one
    :ivar normalization: they have the same NFC
    :ivar folded: they are the same once both are folded
    :ivar inside: as folded, one is inside the other
    :ivar inside_exact: as they are, one is inside the other
    """

    paths: int
    equal: int
    case: int
    normalization: int
    folded: int
    inside: int
    inside_exact: int


# From the kernels: the key, the path, how many there are, the numbers of the first.
Spelling = tuple[bytes, bytes, int, tuple[int, ...]]


class PathIndex:
    """Paths with their labels, numbered in the order in which they are added, of which the collisions can be had once.

    Memory is bounded, whatever the number of paths: but for the different spellings of a single key, which are held.
    A context manager; its files are gone when it is closed, and also when the process is killed.

    :param folder: where to put what memory does not hold; the system's folder for temporary files if None
    :param memory: octets that sorting may take
    :param tree: whether to count the directories of the paths, too

    >>> with PathIndex() as index:
    ...     index.add(["a/b", "A/B", "c", "c/d"])
    ...     [(collision.kind, [member.path for member in collision.members]) for collision in index.collisions()]
    [('case', ['a/b', 'A/B']), ('inside', ['c', 'c/d'])]
    """

    def __init__(self, folder: Path | None = None, *, memory: int = 256 << 20, tree: bool = False) -> None:
        if memory < 1:
            raise ValueError(f"memory={memory}: expected a number of octets from 1 on")
        self._folder = folder
        self._memory = memory
        self._block = min(max(memory // BLOCKS, SMALLEST_BLOCK), LARGEST_BLOCK)
        self._kernels: ModuleType = _kernels.active
        self._sorter: Any = self._kernels.PathSorter()
        self._resources = contextlib.ExitStack()
        self._spill: IO[bytes] | None = None
        self._spilled = 0
        # For each run the place of its first block, and the lengths of all.
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
        """Give back memory and files; there is nothing more to be had but the totals."""
        self._state = "closed"
        self._sorter = None
        self._runs = []
        self._resources.close()

    def add(
        self,
        paths: Texts,
        labels: Texts | None = None,
    ) -> None:
        """Take in paths, numbered on from those before, with what they are to be called by.

        A null among the paths has a number, and is no path.

        :param labels: as many as there are paths; empty ones if None
        :raises PathError: a path or label has a lone surrogate that stands for no octet; as after the next two, the
            index is of no use then
        :raises TypeError: one is neither str nor bytes
        :raises SpillError: they cannot be written
        :raises ValueError: there are more or fewer labels than paths
        """
        if self._state != "open":
            raise ValueError(f"no paths can be added: the index is {self._state}")
        if labels is not None and len(labels) != len(paths):
            raise ValueError(f"{len(labels)} labels for {len(paths)} paths")
        # Nobody is to be told that what is lost does not collision.
        self._state = "incomplete, because paths could not be added"
        if labels is not None:
            self._labels.add(self._count, pieces(self._kernels, labels))
        for piece, nulls in pieces(self._kernels, paths):
            self._take(piece, nulls)
        self._state = "open"

    def collisions(self, *, first: int = 20, most: int | None = None) -> Iterator[Collision]:
        """Yield every collision, in the order of the folded paths; a collision inside another precedes it.

        Paths with one folded form give a collision for each path that occurs more than once, and one for all of them if
        they are spelled differently. Paths inside another path give one collision with everything inside it.

        :param first: how many members of each collision to name
        :param most: how many collisions of each kind to yield, or :data:`None` for all; the others are only counted
        :raises SpillError: what was written cannot be read
        :raises ValueError: they were asked for before
        """
        if first < 1:
            raise ValueError(f"first={first}: expected 1 or more")
        if self._state != "open":
            raise ValueError(f"collisions can be asked for once: the index is {self._state}")
        self._state = "being listed"
        return self._listed(first, most)

    def totals(self) -> Totals:
        """Return how many paths collision: without a listing, or when :meth:`collisions` has come to its end.

        :raises SpillError: what was written cannot be read
        :raises ValueError: the collisions are being listed still, or the index is closed
        """
        if self._state == "open":
            for _ in self.collisions(first=1, most=0):
                pass
        if self._totals is None:
            raise ValueError(f"totals are known when all collisions are listed: the index is {self._state}")
        return self._totals

    def groups(self) -> dict[str, int]:
        """Return how many collisions there are of each kind, once :meth:`totals` is known."""
        self.totals()
        return {kind: self._groups[kind] for kind in ("equal", "case", "normalization", "inside")}

    def tree(self) -> Tree:
        """Return the directories of the paths, once :meth:`totals` is known.

        :raises ValueError: the index was not made to count them
        """
        if self._counting is None:
            raise ValueError("directories were not counted: the index was made without tree=True")
        self.totals()
        if self._tree is None:
            self._tree = Tree.of(self._counting)
        return self._tree

    def label(self, number: int) -> str:
        """Return what a path is called by, empty if by nothing, until the index is closed.

        :raises SpillError: what was written cannot be read
        """
        return self._labels[number]

    @property
    def spilled(self) -> int:
        """How many octets were written to temporary files."""
        return self._spilled + self._labels.octets

    # --- in -------------------------------------------------------------------------------------------------

    def _take(self, piece: Any, nulls: list[int]) -> None:
        kernels = self._kernels
        others = [folded(piece[index]) for index in kernels.beyond_ascii(piece)]
        self._sorter.add(piece, kernels.ByteColumn.from_texts(others)[0], self._count, nulls)
        self._count += len(piece)
        self._paths += len(piece) - len(nulls)
        if self._sorter.size() >= self._memory:
            self._write_run()

    def _temporary(self) -> IO[bytes]:
        """Return a file without a name, to be closed with the index."""
        try:
            # Without a buffer: a disk that is full is to be heard of by who writes, not by who closes.
            file: Any = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115
        except OSError as error:
            raise self._failure("made", error) from error
        return self._resources.enter_context(file)

    def _failure(self, what: str, error: OSError) -> SpillError:
        folder = tempfile.gettempdir() if self._folder is None else str(self._folder)
        reason = error.strerror or str(error)
        return SpillError(
            folder, f"a temporary file cannot be {what} ({reason}); name another folder, or allow more memory"
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
                    raise OSError("it is shorter than it was")
                size -= len(pieces[-1])
        except OSError as error:
            raise self._failure("read", error) from error
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _write_run(self) -> None:
        """Sort what memory holds and write it."""
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
        """Return the blocks of each run: those written, and the one in memory."""

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

    def _spellings(self, first: int) -> Iterator[list[Spelling]]:
        """Yield what the kernels let through, some at a time."""
        runs = self._blocks()
        merge = self._kernels.PathMerge(len(runs), first, self._counting)
        while True:
            if self._state != "being listed":
                raise ValueError(f"the collisions cannot be listed further: the index is {self._state}")
            run, spellings = merge.step(BATCH)
            yield spellings
            if run == -1:
                if self._counting is not None:
                    self._counting.end()
                return
            if run >= 0:
                merge.feed(run, next(runs[run], b""))

    def _listed(self, first: int, most: int | None) -> Iterator[Collision]:
        reading = _Reading(first, most, self._paths, self._labels, self._groups)
        for spellings in self._spellings(first):
            for spelling in spellings:
                reading.take(*spelling)
            yield from reading.found()
        reading.end()
        yield from reading.found()
        self._totals = reading.totals()
        self._state = "listed"


class _Labels:
    """What paths are called by: pieces of packed labels, one behind the other, each behind its offsets."""

    def __init__(self, index: PathIndex) -> None:
        self._index = index
        self._file: IO[bytes] | None = None
        self._end = 0
        # Of each piece: the number of its first path, how many labels it has, and where it begins.
        self._firsts = array("Q")
        self._counts = array("Q")
        self._places = array("Q")

    def add(self, number: int, pieces: Iterator[tuple[Any, list[int]]]) -> None:
        index = self._index
        if self._file is None:
            self._file = index._temporary()
        for piece, _ in pieces:
            data, offsets = piece.buffers()
            index._write(self._file, offsets.tobytes())
            index._write(self._file, data)
            self._firsts.append(number)
            self._counts.append(len(piece))
            self._places.append(self._end)
            number += len(piece)
            self._end += len(offsets) * offsets.itemsize + len(data)

    @property
    def octets(self) -> int:
        """How many were written."""
        return self._end

    def __getitem__(self, number: int) -> str:
        piece = bisect_right(self._firsts, number) - 1
        if self._file is None or piece < 0 or number >= self._firsts[piece] + self._counts[piece]:
            return ""
        offsets = array("q")
        place = self._places[piece]
        offsets.frombytes(self._index._read(self._file, place + 8 * (number - self._firsts[piece]), 16))
        start, stop = offsets
        if start == stop:
            return ""
        data = self._index._read(self._file, place + 8 * (self._counts[piece] + 1) + start, stop - start)
        return data.decode("utf-8", "surrogateescape")


class _Spelled:
    """One way in which the paths of a group are spelled."""

    __slots__ = ("count", "inside", "numbers")

    def __init__(self, count: int, numbers: tuple[int, ...]) -> None:
        self.count = count
        self.numbers = numbers
        # Whether it was counted as inside another, or as having another inside it, without folding.
        self.inside = False


class _Group:
    """The paths of one key, and what is inside them."""

    __slots__ = ("count", "ended", "exact", "inner", "key", "members", "nested", "segments", "spelled")

    def __init__(self, key: bytes, nested: bool) -> None:
        self.key = key
        self.nested = nested  # it is inside another
        self.spelled: dict[bytes, _Spelled] = {}
        self.count = 0
        self.ended = False  # its own collisions are noted
        self.inner = 0  # how many are inside it
        self.exact = False
        # Where there are some: how many segments the paths of the key have, and the first that are inside.
        self.segments = 0
        self.members: list[tuple[int, bytes]] = []


class _Reading:
    """What follows from spellings in the order of their keys."""

    def __init__(self, first: int, most: int | None, paths: int, labels: _Labels, kinds: Counter[str]) -> None:
        self._first = first
        self._most = most
        self._paths = paths
        self._labels = labels
        self._kinds = kinds  # how many collisions there are of each
        # The last group and those that it is inside of, outermost first.
        self._groups: list[_Group] = []
        self._found: list[Collision] = []
        self._equal = self._case = self._normalization = self._folded = self._inside = self._inside_exact = 0

    def totals(self) -> Totals:
        return Totals(
            *(self._paths, self._equal, self._case, self._normalization),
            *(self._folded, self._inside, self._inside_exact),
        )

    def found(self) -> list[Collision]:
        """Return the collisions since the last time."""
        found, self._found = self._found, []
        return found

    def take(self, key: bytes, path: bytes, count: int, numbers: tuple[int, ...]) -> None:
        """Take in the next spelling, and note the collisions that it ends."""
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
        """Note what is left at the end."""
        if self._groups:
            self._end_group(self._groups[-1])
        while self._groups:
            self._end_inside(self._groups.pop())

    def _take_inner(self, path: bytes, spelled: _Spelled) -> None:
        """Count a path that is inside others."""
        self._inside += spelled.count
        for outer in self._groups[:-1]:
            if not outer.inner:
                # Folding leaves the slashes alone: all paths of a key have as many segments.
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
        """Count a group, and note the collisions in it; not again where others that were inside it came since."""
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
        """Note the collision of a group with what is inside it."""
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
    """Whether a key, as it is written in records, is inside another; the empty path holds all others."""
    return not outer or key.startswith(outer + b"\1")


def _head(path: bytes, segments: int) -> bytes:
    """Return the first segments of a path that has more of them."""
    end = -1
    for _ in range(segments):
        end = path.index(b"/", end + 1)
    return path[: max(end, 0)]


def _shared(spelled: dict[bytes, _Spelled], key: Any) -> tuple[int, int]:
    """Return how many keys the spellings have, and how many paths share theirs with another."""
    counts: Counter[bytes] = Counter()
    for path, one in spelled.items():
        counts[key(path)] += one.count
    return len(counts), sum(count for count in counts.values() if count > 1)
