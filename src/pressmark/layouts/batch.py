"""Python's strings through a kernel: one item, a list, or an Arrow column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pressmark.errors import IdentifierError, PathError

if TYPE_CHECKING:
    from pressmark.arrow import StringColumn, StringTable

__all__ = ["BoundKernel"]

# Items per kernel call: few enough for packed, mapped and unpacked items to stay in the second-level cache, many enough
# to spread the cost of a call.
BLOCK_ITEMS = 2048


class BoundKernel:
    """A kernel with the layout and the error class that its error codes are reported with."""

    def __init__(self, kernels: ModuleType, kernel: Any, error: type[IdentifierError | PathError], layout: Any) -> None:
        self.kernels = kernels
        self.packed = kernels.ByteColumn
        self.releases_gil = kernels.RELEASES_GIL
        self.kernel = kernel
        self.error = error
        self.layout = layout

    def one(self, item: str | bytes) -> str:
        """Return the result for one item.

        :raises IdentifierError: the item has no result; :exc:`PathError` for a path
        """
        found = self.located(item)
        if isinstance(found, tuple):
            raise self.error_of(item, None, *found)
        return found

    def located(self, item: str | bytes) -> str | tuple[int, int]:
        """Return the result for one item, or its error code and position."""
        result, faults = self._run((item,))
        return faults[0][1:] if faults else result.to_texts()[0]

    def many(self, items: Iterable[str | bytes], on_error: str) -> list[Any]:
        """Return the results in order.

        :param on_error: ``"raise"`` an error for the first item without a result, or return :data:`None` for each
            (``"none"``)
        :raises IdentifierError: an item has no result, under ``"raise"``; :exc:`PathError` for a path
        :raises TypeError: ``items`` is a single string, or an item is neither ``str`` nor ``bytes``
        :raises ValueError: ``on_error`` is unknown
        """
        if on_error not in ("raise", "none"):
            raise ValueError(f"on_error={on_error!r}: expected 'raise' or 'none'")
        if isinstance(items, (str, bytes)):
            raise TypeError(f"expected an iterable of str or bytes, not a single {type(items).__name__}")
        results: list[Any] = []
        for sequence, start in _blocks(items):
            packed, faults = self._run(sequence, start, start + BLOCK_ITEMS)
            texts = packed.to_texts()
            for index, code, position in faults:
                item = sequence[start + index]
                if on_error == "raise" or not isinstance(item, (str, bytes)):
                    raise self.error_of(item, len(results) + index, code, position)
                texts[index] = None
            results += texts
        return results

    def column(self, column: Any, on_error: str, field: str | None, threads: int) -> StringColumn:
        """Return the results for the items of an Arrow column."""
        from pressmark.arrow import StringColumn, map_column

        results, _ = map_column(self.kernels, self.kernel, self.error_of, column, on_error, field, threads)
        return StringColumn(self.kernels, results, threads)

    def table(self, column: Any, on_error: str, field: str | None, threads: int, identifier_last: bool) -> StringTable:
        """Return identifiers and paths, one of which is an Arrow column.

        :param identifier_last: the kernel returns identifiers
        """
        from pressmark.arrow import StringTable, map_column

        results, items = map_column(
            self.kernels, self.kernel, self.error_of, column, on_error, field, threads, keep=True
        )
        identifiers, paths = (results, items) if identifier_last else (items, results)
        return StringTable(self.kernels, identifiers, paths, threads)

    def _run(
        self, items: Sequence[str | bytes], start: int = 0, stop: int = 1
    ) -> tuple[Any, list[tuple[int, int, int]]]:
        packed, unpackable = self.packed.from_texts(items, start, stop)
        results, faults = self.kernel(packed)
        if unpackable:
            # These were packed as empty items, so the kernel's codes for them do not count.
            known = {index for index, _, _ in unpackable}
            faults = sorted(unpackable + [fault for fault in faults if fault[0] not in known])
            results = results.blanked(known)
        return results, faults

    def error_of(self, item: Any, index: int | None, code: int, position: int) -> Exception:
        """Return the exception for the error code of ``item``."""
        if not isinstance(item, (str, bytes)):
            location = "" if index is None else f" {index}"
            return TypeError(f"{self.error.what}{location}: expected str or bytes, not {type(item).__name__}")
        from pressmark.layouts.messages import reason

        return self.error(item, index, reason(code, position, item, self.layout))


def _blocks(items: Iterable[str | bytes]) -> Iterator[tuple[Sequence[str | bytes], int]]:
    """Yield sequences with the start of a block in each: a list or tuple is not copied."""
    if isinstance(items, (list, tuple)):
        for start in range(0, len(items), BLOCK_ITEMS):
            yield items, start
        return
    iterator = iter(items)
    while block := list(islice(iterator, BLOCK_ITEMS)):
        yield block, 0
