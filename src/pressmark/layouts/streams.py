"""Delimited binary streams of any length through a kernel, in constant memory; and the files of such streams."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple

from pressmark.fs.gzipped import packed, unpacked
from pressmark.layouts.batch import BoundKernel
from pressmark.progress_event import Progress, ProgressEvent
from pressmark.threads import Threads

if TYPE_CHECKING:
    from pressmark.arrow import ErrorList

__all__ = [
    "ItemFile",
    "LineCounts",
    "LineErrors",
    "check_on_error",
    "cut_blocks",
    "name_of",
    "open_destination",
    "open_source",
    "pass_lines",
]

ItemFile = str | os.PathLike[str] | BinaryIO
LineErrors = Literal["raise", "skip", "none"]

BLOCK_BYTES = 1 << 20  # 1 MiB: read, cut at the last delimiter, mapped and written at once
# A block of empty lines would have a million items, each of which may fail and wait to be reported.
BLOCK_ITEMS = 1 << 16


class LineCounts(NamedTuple):
    """The result of ``map_file`` of a layout.

    :ivar items: number of items, including failed ones
    :ivar failed: number of items that failed
    :ivar bytes_read: bytes read
    :ivar bytes_written: bytes written
    """

    items: int = 0
    failed: int = 0
    bytes_read: int = 0
    bytes_written: int = 0

    def event(self) -> ProgressEvent:
        """Return the counts so far as an event."""
        return ProgressEvent(items=self.items, bytes=self.bytes_read, failed=self.failed)


class _Passed(NamedTuple):
    """A mapped block: the lines to write, the number of items, and (index, code, position, item) of failed items."""

    lines: bytes
    items: int
    failures: list[tuple[int, int, int, bytes]]
    bytes_read: int


def check_on_error(on_error: str) -> None:
    """Check what to do with failed items.

    :raises ValueError: ``on_error`` is unknown
    """
    if on_error not in ("raise", "skip", "none"):
        raise ValueError(f"on_error={on_error!r}: expected 'raise', 'skip' or 'none'")


def pass_lines(
    bound: BoundKernel,
    src: BinaryIO,
    dst: BinaryIO,
    delimiter: bytes,
    threads: int | None,
    on_error: LineErrors,
    both: bool,
    identifier_last: bool,
    errors: ErrorList[Any] | None,
    progress: Progress | None,
) -> LineCounts:
    """Write the result of every item of ``src`` to ``dst``: see ``Layout.map_file``.

    :param identifier_last: the kernel returns identifiers, so that ``both`` must swap the columns
    :raises ValueError: ``delimiter`` or ``on_error`` is invalid
    """
    if not isinstance(delimiter, bytes) or len(delimiter) != 1:
        raise ValueError(f"delimiter={delimiter!r}: expected one byte")
    if both and delimiter == b"\t":
        raise ValueError("delimiter=b'\\t': both columns are separated by a TAB")
    check_on_error(on_error)
    counts = LineCounts()

    def work(part: tuple[bytes, int, bool]) -> _Passed:
        block, consumed, _full = part
        return _pass_block(bound, block, consumed, delimiter, on_error, both, identifier_last)

    def write(passed: _Passed) -> None:
        nonlocal counts
        _write_all(dst, passed.lines)
        # Each block is flushed, so that slow input leaves at once.
        dst.flush()
        for index, code, position, item in passed.failures:
            text = item.decode("utf-8", "surrogateescape")
            error = bound.error_of(text, counts.items + index, code, position)
            if on_error == "raise":
                raise error
            if errors is not None:
                errors.append(error)
        counts = LineCounts(
            counts.items + passed.items,
            counts.failed + len(passed.failures),
            counts.bytes_read + passed.bytes_read,
            counts.bytes_written + len(passed.lines),
        )
        if progress is not None:
            progress(counts.event())

    def is_short(part: tuple[bytes, int, bool]) -> bool:
        """Return whether a block comes from a pipe or a terminal, whose writer may wait for the result."""
        return not part[2]

    with Threads(bound.workers(threads), "pressmark-lines") as pool:
        for passed in pool.map(work, cut_blocks(src, delimiter, bound.kernel.limit), inline=is_short):
            write(passed)
    return counts


def _write_all(dst: BinaryIO, lines: bytes) -> None:
    """Write all of ``lines`` to a stream that may be unbuffered."""
    left = memoryview(lines)
    while left:
        written = dst.write(left)
        # Some objects write everything and return None.
        left = left[len(left) if written is None else written :]


def cut_blocks(src: BinaryIO, delimiter: bytes, limit: int) -> Iterator[tuple[bytes, int, bool]]:
    """Yield blocks that end after a delimiter (the last may not), the bytes read for each, and whether it was full.

    An item longer than ``limit`` is cut one byte after it, which is enough for the kernel to refuse it: a stream
    without delimiters must not fill the memory.
    """
    # read1 returns the bytes in a pipe instead of waiting for a full block.
    read = getattr(src, "read1", src.read)
    waiting: list[bytes] = []
    waiting_bytes = dropped_bytes = 0
    while data := read(BLOCK_BYTES):
        cut = data.rfind(delimiter) + 1
        if cut:
            for block in _of_few_items(b"".join([*waiting, data[:cut]]), delimiter):
                yield block, len(block) + dropped_bytes, len(data) == BLOCK_BYTES
                dropped_bytes = 0
            waiting, waiting_bytes = [], 0
        rest = data[cut : cut + max(0, limit + 1 - waiting_bytes)]
        dropped_bytes += len(data) - cut - len(rest)
        if rest:
            waiting.append(rest)
            waiting_bytes += len(rest)
    if data is None:
        raise BlockingIOError("the source is non-blocking; use a blocking stream")
    if waiting:
        yield b"".join(waiting), waiting_bytes + dropped_bytes, False


def _of_few_items(block: bytes, delimiter: bytes) -> Iterator[bytes]:
    """Yield ``block``, which ends with a delimiter, in parts of at most :data:`BLOCK_ITEMS` items."""
    if block.count(delimiter) <= BLOCK_ITEMS:
        yield block
        return
    # After the last delimiter of the first half, or after the item that fills that half.
    middle = block.rfind(delimiter, 0, len(block) // 2) + 1 or block.index(delimiter) + 1
    yield from _of_few_items(block[:middle], delimiter)
    yield from _of_few_items(block[middle:], delimiter)


def _pass_block(
    bound: BoundKernel,
    block: bytes,
    consumed: int,
    delimiter: bytes,
    on_error: LineErrors,
    both: bool,
    identifier_last: bool,
) -> _Passed:
    source = bound.packed.from_lines(block, delimiter)
    results, faults = bound.kernel(source)
    found = {index: (code, position) for index, code, position in faults}
    broken = results.indices_containing(delimiter)
    unclear: set[int] = set()
    if both:
        # Readers split a line at its only TAB, and a NUL-delimited record at its last TAB, before the path.
        paths = source if identifier_last else results
        for column in (source, results) if delimiter != b"\0" else (paths,):
            unclear.update(column.indices_containing(b"\t"))
    if broken or unclear:
        from pressmark._kernels.tables import ErrorCode  # most lists have neither

        found.update(dict.fromkeys(broken, (ErrorCode.HOLDS_DELIMITER, -1)))
        for index in unclear:
            found.setdefault(index, (ErrorCode.HOLDS_SEPARATOR, -1))
    failed = sorted(found)
    skip: Sequence[int] = ()
    shown_source = source
    if failed and on_error == "raise":
        skip = range(failed[0], len(source))
        failed = failed[:1]
    elif failed and on_error == "skip":
        skip = failed
    elif failed:
        results = results.blanked(failed)
        shown_source = source.blanked(unclear)
    if not both:
        lines = results.to_lines(delimiter, skip)
    elif identifier_last:
        lines = shown_source.to_lines(delimiter, skip, results)
    else:
        lines = results.to_lines(delimiter, skip, shown_source)
    if not block.endswith(delimiter) and len(source) - 1 not in skip:
        lines = lines[:-1]
    return _Passed(lines, len(source), [(index, *found[index], source[index]) for index in failed], consumed)


# --- files ------------------------------------------------------------------------------------------------------------


def name_of(file: ItemFile) -> str:
    """Return the path of a file, or the name of a stream, which may be empty."""
    name = os.fspath(file) if isinstance(file, (str, os.PathLike)) else getattr(file, "name", "")
    return name if isinstance(name, str) else ""


@contextmanager
def open_source(source: ItemFile) -> Iterator[Any]:
    """Open a file to read, decompressed if its name ends in ``.gz``; a stream is used as it is."""
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            yield unpacked(file, os.fspath(source))
    else:
        yield source


@contextmanager
def open_destination(destination: ItemFile) -> Iterator[Any]:
    """Open a file to write, compressed if its name ends in ``.gz``; a stream is used as it is."""
    if isinstance(destination, (str, os.PathLike)):
        from pressmark.fs.atomic import open_output  # the command opens its files itself

        path = os.fspath(destination)
        with open_output(path) as file, packed(file, path) as sink:
            yield sink
    else:
        yield destination
