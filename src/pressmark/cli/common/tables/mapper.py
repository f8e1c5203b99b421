"""Results of the items of a block, and reasons for the failed ones."""

from __future__ import annotations

import io
from typing import Any

from pressmark.errors import IdentifierError, PathError
from pressmark.layouts import Layout

__all__ = ["Mapper"]


class Mapper:
    """A layout in one direction."""

    def __init__(self, layout: Layout, unmap: bool, threads: int) -> None:
        self._lines: Any = layout.unmap_lines if unmap else layout.map_lines
        self._arrow: Any = layout.unmap_arrow if unmap else layout.map_arrow
        self._one: Any = layout.unmap_path if unmap else layout.map_id
        self._error: Any = PathError if unmap else IdentifierError
        self._bound: Any = layout._unmapping() if unmap else layout._mapping()
        self._threads = threads
        self.result = "identifier" if unmap else "path"

    def error(self, item: bytes | str, number: int, reason: str) -> IdentifierError | PathError:
        """Return the error of an item in the row ``number``, from 1."""
        error: IdentifierError | PathError = self._error(item, number - 1, reason)
        return error

    def fields(self, rows: bytes, separator: bytes, index: int, width: int) -> Any:
        """Return field ``index`` of ``rows`` as a ``ByteColumn``, or None if a row does not have ``width`` fields."""
        return self._bound.packed.from_fields(rows, separator, index, width)

    def column(self, items: Any) -> tuple[Any, dict[int, str]]:
        """Return the ``ByteColumn`` of results, empty for failed items, and their reasons by index."""
        results, failures = self._bound.kernel(items)
        return results, {index: self.reason(items[index]) for index, _, _ in failures}

    def texts(self, items: list[bytes]) -> tuple[list[bytes], dict[int, str]]:
        """Return the result of every item, empty for failed items, and their reasons by index."""
        # As lines, which a layout maps without creating a Python object for each.
        for delimiter in (b"\n", b"\0"):
            lines = delimiter.join([*items, b""])
            if lines.count(delimiter) == len(items):
                break
        else:
            return self._one_by_one(items, range(len(items)))
        failed: list[int] = []
        written = io.BytesIO()
        self._lines(
            io.BytesIO(lines),
            written,
            delimiter,
            # One thread is done with a block before others would start.
            1,
            on_error="empty",
            on_failure=lambda error: failed.append(error.index),
        )
        results = written.getvalue().split(delimiter)
        results.pop()
        if failed:
            # Map them again one by one: a result that contains the delimiter is valid here.
            again, faults = self._one_by_one(items, failed)
            for index, result in zip(failed, again, strict=True):
                results[index] = result
            return results, faults
        return results, {}

    def array(self, array: Any) -> Any:
        """Return the ``StringColumn`` of an Arrow array; null for null and for items without result."""
        return self._arrow(array, on_error="none", threads=self._threads)

    def reason(self, item: bytes | str) -> str:
        """Return the reason why ``item`` has no result."""
        try:
            self._one(item)
        except (IdentifierError, PathError) as error:
            return error.reason
        raise AssertionError(f"{item!r} fails only in a batch")

    def _one_by_one(self, items: list[bytes], indices: Any) -> tuple[list[bytes], dict[int, str]]:
        results: list[bytes] = []
        faults: dict[int, str] = {}
        for index in indices:
            try:
                results.append(self._one(items[index]).encode("utf-8", "surrogateescape"))
            except (IdentifierError, PathError) as error:
                results.append(b"")
                faults[index] = error.reason
        return results, faults
