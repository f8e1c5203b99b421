"""Files through a kernel: lists of lines, and tables of which one column is mapped."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

from pressmark.errors import IdentifierError, PathError
from pressmark.layouts.batch import BoundKernel
from pressmark.layouts.streams import LineCounts, LineErrors, check_on_error, pass_lines
from pressmark.tabular.formats import Crlf, check_output, chosen_format, open_list, packed, unpacked
from pressmark.threads import resolve_threads

if TYPE_CHECKING:
    from pressmark.tabular.tables import Block

__all__ = ["ItemFile", "map_file"]

ItemFile = str | os.PathLike[str] | BinaryIO


def map_file(
    bound: BoundKernel,
    source: ItemFile,
    destination: ItemFile,
    column: str | int | None,
    format: str | None,
    header: bool | None,
    result: str | None,
    delimiter: str | None,
    crlf: Crlf | None,
    null: bool,
    both: bool,
    on_error: LineErrors,
    threads: int | None,
    on_failure: Callable[[Any], None] | None,
    on_progress: Callable[[LineCounts], None] | None,
) -> LineCounts:
    """Write the results of the items of a file to another one: see ``Layout.map_file``."""
    name, output = _name_of(source), _name_of(destination)
    chosen = chosen_format(
        name,
        format,
        column,
        header=header,
        delimiter=delimiter,
        crlf=crlf,
        null=null,
        both=both,
        result=result,
    )
    check_output(output, chosen)
    check_on_error(on_error)
    with _opened(source) as stream, _created(destination) as sink:
        if column is None:
            end = b"\0" if null else b"\n"
            listed: Any = open_list(stream, name=name, delimiter=end, crlf=crlf, json_lines=format is None)
            unmap = bound.error is PathError
            return pass_lines(bound, listed, sink, end, threads, on_error, both, unmap, on_failure, on_progress)
        # Imported here: most runs are about lines.
        from pressmark.tabular.columns import chosen_column
        from pressmark.tabular.tables import open_table, open_writer

        mapper = _Mapper(bound, threads)
        selected = chosen_column(chosen, column, header, result, mapper.result, delimiter)
        reader = open_table(stream, name, chosen, selected)
        writer = open_writer(reader, chosen, sink)
        counts = LineCounts()
        try:
            writer.begin()
            for block in reader.blocks():
                block.map(mapper)
                failed, kept, stop = _failures(block, on_error)
                writer.write(block, kept)
                for index in failed:
                    if on_failure is not None:
                        on_failure(_error(bound, block, index))
                if stop is not None:
                    raise _error(bound, block, stop)
                items, failures = counts.items + len(block), counts.failed + len(failed)
                counts = LineCounts(items, failures, reader.source.bytes_read, writer.bytes_written)
                if on_progress is not None:
                    on_progress(counts)
            writer.finish()
        except BaseException:
            writer.abandon()
            raise
        return counts._replace(bytes_read=reader.source.bytes_read, bytes_written=writer.bytes_written)


def _name_of(file: ItemFile) -> str:
    name = getattr(file, "name", "") if hasattr(file, "read") or hasattr(file, "write") else os.fspath(file)
    return name if isinstance(name, str) else ""


@contextmanager
def _opened(source: ItemFile) -> Iterator[Any]:
    """Open a file to read, decompressed if its name ends in ``.gz``; a stream is used as it is."""
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            yield unpacked(file, os.fspath(source))
    else:
        yield source


@contextmanager
def _created(destination: ItemFile) -> Iterator[Any]:
    """Open a file to write, compressed if its name ends in ``.gz``; a stream is used as it is."""
    if isinstance(destination, (str, os.PathLike)):
        from pressmark.fs.atomic import open_output  # the command opens its files itself

        path = os.fspath(destination)
        with open_output(path) as file, packed(file, path) as sink:
            yield sink
    else:
        yield destination


def _failures(block: Block, on_error: LineErrors) -> tuple[list[int], list[int] | None, int | None]:
    """Return the failed rows, the rows to write (:data:`None`: all), and the row at which the run ends."""
    failed = sorted(block.faults)
    if not failed:
        return failed, None, None
    if on_error == "skip":
        return failed, [index for index in range(len(block)) if index not in block.faults], None
    # A row that cannot be written ends the run, even if results may be empty.
    stop = failed[0] if on_error == "raise" else min(block.unwritable, default=None)
    if stop is None:
        return failed, None, None
    return [index for index in failed if index < stop], list(range(stop)), stop


def _error(bound: BoundKernel, block: Block, index: int) -> IdentifierError | PathError:
    """Return the error of a failed row; its ``index`` counts lines, or rows of Parquet, from 0."""
    return bound.error(block.item(index), block.number(index) - 1, block.faults[index])


class _Mapper:
    """Maps the items of a table by a kernel: an ``ItemMapper``."""

    def __init__(self, bound: BoundKernel, threads: int | None) -> None:
        self._bound = bound
        self._threads = resolve_threads(threads)
        self.result = "identifier" if bound.error is PathError else "path"

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
        # One thread is done with a block before others would start.
        pass_lines(
            self._bound,
            io.BytesIO(lines),
            written,
            delimiter,
            1,
            "empty",
            False,
            False,
            lambda error: failed.append(error.index),
            None,
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
        return self._bound.column(array, "none", None, self._threads)

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
