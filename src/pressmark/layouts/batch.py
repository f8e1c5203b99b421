"""Python's strings through a kernel: one item, a list, or an Arrow column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pressmark.errors import IdentifierError, PathError
from pressmark.threads import resolve_threads

if TYPE_CHECKING:
    from pressmark.arrow import ErrorList

__all__ = ["BoundKernel"]

# Items per kernel call: few enough for packed, mapped and unpacked items to stay in the second-level cache, many enough
# to spread the cost of a call.
BLOCK_ITEMS = 2048


class BoundKernel:
    """A kernel with the layout and the error class that its error codes are reported with."""

    def __init__(self, kernels: ModuleType, kernel: Any, error: type[IdentifierError | PathError], layout: Any) -> None:
        self.kernels = kernels
        self.packed = kernels.ByteColumn
        self.releases_gil = getattr(kernel, "releases_gil", kernels.RELEASES_GIL)
        self.kernel = kernel
        self.error = error
        self.layout = layout

    def workers(self, threads: int | None) -> int:
        """Return the number of threads to map blocks with: threads that hold the GIL only wait for each other."""
        count = resolve_threads(threads)
        return count if self.releases_gil else 1

    def values(self, values: Any, on_error: str, errors: ErrorList[Any] | None, threads: int | None) -> Any:
        """Return the result of one item, the list of results of many, or the column of results of an Arrow column.

        :raises IdentifierError: an item has no result, under ``"raise"``; :exc:`PathError` for a path
        :raises ColumnError: a column is malformed or is not text
        :raises TypeError: ``values`` or an item has another type
        :raises ValueError: ``on_error`` is unknown
        """
        _check(on_error)
        if isinstance(values, (str, bytes)):
            found = self.located(values)
            if not isinstance(found, tuple):
                return found
            self._refuse(self.error_of(values, None, *found), on_error, errors)
            return None
        if hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__"):
            from pressmark.arrow import as_column_of, map_column

            count = resolve_threads(threads)
            return as_column_of(
                values, map_column(self.kernels, self.kernel, self.error_of, values, on_error, errors, count)
            )
        return self.many(values, on_error, errors)

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

    def many(
        self, items: Iterable[str | bytes | None], on_error: str, errors: ErrorList[Any] | None = None
    ) -> list[Any]:
        """Return the results in order.

        :param on_error: ``"raise"`` an error for the first item without a result, or return :data:`None` for each, and
            for each item that is :data:`None` (``"none"``)
        :param errors: receives the error of each item without a result
        :raises IdentifierError: an item has no result, under ``"raise"``; :exc:`PathError` for a path
        :raises TypeError: ``items`` is a single string or not iterable, or an item is neither ``str`` nor ``bytes``
        :raises ValueError: ``on_error`` is unknown
        """
        _check(on_error)
        if isinstance(items, (str, bytes)):
            raise TypeError(f"expected an iterable of str or bytes, not a single {type(items).__name__}")
        results: list[Any] = []
        for sequence, start in _blocks(items):
            packed, faults = self._run(sequence, start, start + BLOCK_ITEMS)
            texts = packed.to_texts()
            for index, code, position in faults:
                item = sequence[start + index]
                if item is None and on_error == "none":
                    texts[index] = None  # like a null of a column: no identifier, and no failure
                    continue
                if on_error == "raise" or errors is not None or not isinstance(item, (str, bytes)):
                    self._refuse(self.error_of(item, len(results) + index, code, position), on_error, errors)
                texts[index] = None
            results += texts
        return results

    @staticmethod
    def _refuse(error: Exception, on_error: str, errors: ErrorList[Any] | None) -> None:
        """Raise the error of an item, or add it to ``errors``; an item of another type is an error of the caller."""
        if on_error == "raise" or isinstance(error, TypeError):
            raise error
        if errors is not None:
            errors.append(error)

    def _run(
        self, items: Sequence[str | bytes | None], start: int = 0, stop: int = 1
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
        if code < 0:
            # An exception of a layout of one's own.
            refused, cause = self.kernel.cause(item)
            error = self.error(item, index, refused)
            error.__cause__ = cause
            return error
        from pressmark.layouts.messages import reason

        return self.error(item, index, reason(code, position, item, self.layout))


def _check(on_error: str) -> None:
    if on_error not in ("raise", "none"):
        raise ValueError(f"on_error={on_error!r}: expected 'raise' or 'none'")


def _blocks(items: Iterable[str | bytes | None]) -> Iterator[tuple[Sequence[str | bytes | None], int]]:
    """Yield sequences with the start of a block in each: a list or tuple is not copied."""
    if isinstance(items, (list, tuple)):
        for start in range(0, len(items), BLOCK_ITEMS):
            yield items, start
        return
    if not isinstance(items, Iterable):
        advice = "; call .collect() first" if callable(getattr(items, "collect", None)) else ""
        raise TypeError(
            f"expected str, bytes, an iterable of them or an Arrow column, not {type(items).__name__}{advice}"
        )
    iterator = iter(items)
    while block := list(islice(iterator, BLOCK_ITEMS)):
        yield block, 0
