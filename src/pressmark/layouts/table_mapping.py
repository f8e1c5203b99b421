"""Tables through a kernel: one column is mapped."""

from __future__ import annotations

import io
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pressmark.errors import IdentifierError, PathError
from pressmark.layouts.batch import BoundKernel
from pressmark.layouts.streams import LineCounts, LineErrors, check_on_error, pass_lines
from pressmark.progress_event import Progress
from pressmark.tabular.columns import Column
from pressmark.tabular.tables import Block, open_table, open_writer
from pressmark.threads import Threads

if TYPE_CHECKING:
    from pressmark.arrow import ErrorList

__all__ = ["map_table"]


def map_table(
    bound: BoundKernel,
    source: Any,
    sink: Any,
    name: str,
    format: str,
    column: Column,
    on_error: LineErrors,
    threads: int | None,
    errors: ErrorList[Any] | None,
    progress: Progress | None,
) -> LineCounts:
    """Write a table with the results of a column as a new last column: see ``Layout.map_file``.

    :param name: the name of ``source`` in messages
    """
    check_on_error(on_error)
    mapper = _Mapper(bound)
    workers = bound.workers(threads)
    reader = open_table(source, name, format, column)
    writer = open_writer(reader, format, sink)
    counts = LineCounts()

    def work(block: Block) -> tuple[Block, Any, list[int], int | None]:
        block.map(mapper)
        failed, kept, stop = _failures(block, on_error)
        return block, block.written(kept), failed, stop

    try:
        writer.begin()
        with Threads(workers, "pressmark-table") as pool:
            for block, rows, failed, stop in pool.map(work, reader.blocks(), inline=attrgetter("inline")):
                writer.write(block, rows)
                for index in failed:
                    if errors is not None:
                        errors.append(_error(bound, block, index))
                if stop is not None:
                    raise _error(bound, block, stop)
                items, failures = counts.items + len(block), counts.failed + len(failed)
                counts = LineCounts(items, failures, reader.source.bytes_read, writer.bytes_written)
                if progress is not None:
                    progress(counts.event())
        writer.finish()
    except BaseException:
        writer.abandon()
        raise
    return counts._replace(bytes_read=reader.source.bytes_read, bytes_written=writer.bytes_written)


def _failures(block: Block, on_error: LineErrors) -> tuple[list[int], list[int] | None, int | None]:
    """Return the failed rows, the rows to write (:data:`None`: all), and the row at which the run ends."""
    failed = sorted(block.faults)
    if not failed:
        return failed, None, None
    if on_error == "raise":
        return [], list(range(failed[0])), failed[0]
    # A malformed row cannot be written, even if results may be empty.
    left_out = block.faults if on_error == "skip" else block.unwritable
    return failed, [index for index in range(len(block)) if index not in left_out] if left_out else None, None


def _error(bound: BoundKernel, block: Block, index: int) -> IdentifierError | PathError:
    """Return the error of a failed row; its ``index`` counts lines, or rows of Parquet, from 0."""
    item = block.item(index)
    text = item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else item
    return bound.error(text, block.number(index) - 1, block.faults[index])


class _Mapper:
    """Maps the items of a table by a kernel: an ``ItemMapper``."""

    def __init__(self, bound: BoundKernel) -> None:
        self._bound = bound
        self.result = "identifier" if bound.error is PathError else "path"

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
        errors: list[Any] = []
        written = io.BytesIO()
        # Other blocks are mapped by the other threads.
        pass_lines(
            self._bound,
            io.BytesIO(lines),
            written,
            delimiter,
            1,
            "none",
            False,
            False,
            errors,
            None,
        )
        results = written.getvalue().split(delimiter)
        results.pop()
        if errors:
            failed = [error.index for error in errors]
            # Map them again one by one: a result that contains the delimiter is valid here.
            again, faults = self._one_by_one(items, failed)
            for index, result in zip(failed, again, strict=True):
                results[index] = result
            return results, faults
        return results, {}

    def array(self, array: Any) -> Any:
        """Return the ``StringColumn`` of an Arrow array; null for null and for items without result."""
        from pressmark.arrow import map_column  # other tables have no arrays

        bound = self._bound
        return map_column(bound.kernels, bound.kernel, bound.error_of, array, "none", None, 1)

    def reason(self, item: bytes | str) -> str:
        """Return the reason why ``item`` has no result."""
        try:
            self._bound.one(item)
        except (IdentifierError, PathError) as error:
            return error.reason
        raise AssertionError(f"{item!r} fails only in a batch")

    def _one_by_one(self, items: list[bytes], indices: Any) -> tuple[list[bytes], dict[int, str]]:
        results: list[bytes] = []
        faults: dict[int, str] = {}
        for index in indices:
            try:
                results.append(self._bound.one(items[index]).encode("utf-8", "surrogateescape"))
            except (IdentifierError, PathError) as error:
                results.append(b"")
                faults[index] = error.reason
        return results, faults
