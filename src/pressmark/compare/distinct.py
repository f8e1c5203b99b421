"""The distinct identifiers of an input: read once, sorted to find repetitions, and yielded again from a temporary file.

All counts of a comparison are over distinct identifiers, because a comparison sees only these.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import Lock
from types import TracebackType

from pressmark import _kernels
from pressmark.arrow import PackedColumn
from pressmark.errors import IdentifierError
from pressmark.layouts.blocks import Block
from pressmark.paths import PathIndex

__all__ = ["DistinctIdentifiers"]


class DistinctIdentifiers:
    """Identifiers of any number, in bounded memory: a bit for each, if any repeat. A context manager.

    Add all blocks, then call :meth:`find_repetitions`. Identifiers are numbered from 0 as they occur in the input.

    :param folder: folder for temporary files; by default that of the system
    :param memory: bytes for sorting
    :ivar items: number of identifiers, with repetitions
    :ivar blank: number of empty ones, which count once in other counts
    :ivar first_blank: number of the first of them; :data:`None` if there are none
    :ivar repeated: number of identifiers that occur more than once, except empty ones
    :ivar duplicates: number of their occurrences
    """

    def __init__(self, folder: Path | None, memory: int) -> None:
        self.items = self.blank = self.repeated = self.duplicates = 0
        self.first_blank: int | None = None
        self._index = PathIndex(folder, memory=memory)
        self._lock = Lock()
        self._absent = _Numbers()
        # Identifiers that cannot be encoded: few, and only in lists of Python.
        self._faults: dict[int, IdentifierError] = {}
        self._faulty: Counter[str | bytes] = Counter()

    def __enter__(self) -> DistinctIdentifiers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._index.close()

    def __len__(self) -> int:
        """Return the number of distinct identifiers."""
        return self.items - (self.duplicates - self.repeated) - max(self.blank - 1, 0)

    def add(self, block: Block, lines: bytes) -> None:
        """Add the next identifiers.

        :param lines: the same, each between line feeds
        """
        column, first = block.column, len(self._index)
        self.items += block.identifiers
        absent = set(column.nulls)
        blank = []
        if b"\n\n" in lines:
            blank = [index for index in range(len(column)) if index not in absent and not column[index]]
        # Nulls are no identifiers, and one empty identifier stands for all.
        self._absent.update(first + index for index in column.nulls)
        self._absent.update(first + index for index in (blank if self.blank else blank[1:]))
        if blank and self.first_blank is None:
            self.first_blank = first + blank[0]
        self.blank += len(blank)
        for index, error in block.faults.items():
            self._faulty[error.item] += 1
            if self._faulty[error.item] == 1:
                self._faults[first + index] = error
        self._index.add(PackedColumn(column.kernels, column.batch, sorted(absent.union(blank))), column)

    def find_repetitions(self) -> None:
        """Find the identifiers that occur more than once, after the last block.

        :raises SpillError: a temporary file cannot be read
        """
        for numbers in self._index.repetitions():
            self.repeated += 1
            self.duplicates += len(numbers)
            self._absent.update(numbers[1:])
        often = [times for times in self._faulty.values() if times > 1]
        self.repeated += len(often)
        self.duplicates += sum(often)

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks again; repetitions are null, as other items that are no identifiers.

        :raises SpillError: a temporary file cannot be read
        """
        faulty = list(self._faults)
        first = 0
        for batch in self._index.labels():
            stop = first + len(batch)
            numbers = faulty[bisect_left(faulty, first) : bisect_left(faulty, stop)]
            faults = {number - first: self._faults[number] for number in numbers}
            absent = [number - first for number in self._absent.between(first, stop)]
            yield Block(PackedColumn(_kernels.active, batch, absent), faults)
            first = stop

    def label(self, number: int) -> str:
        """Return an identifier by its number; several threads may ask.

        :raises SpillError: a temporary file cannot be read
        """
        with self._lock:
            return self._index.label(number)

    @property
    def spilled(self) -> int:
        """Bytes written to temporary files."""
        return self._index.spilled


class _Numbers:
    """A set of numbers, one bit for each."""

    def __init__(self) -> None:
        self._bits = bytearray()

    def update(self, numbers: Iterable[int]) -> None:
        bits = self._bits
        for number in numbers:
            if number >> 3 >= len(bits):
                bits.extend(bytes((number >> 3) + 1 - len(bits)))
            bits[number >> 3] |= 1 << (number & 7)

    def between(self, start: int, stop: int) -> list[int]:
        bits = self._bits
        if not any(bits[start >> 3 : (stop + 7) >> 3]):
            return []
        return [number for number in range(start, min(stop, 8 * len(bits))) if bits[number >> 3] >> (number & 7) & 1]
