"""Delimited streams, cut anywhere, mapped in constant memory by any number of threads."""

from __future__ import annotations

import io
import itertools
import tracemalloc
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import pressmark
from pressmark import (
    DirectClean,
    FlatDirect,
    FlatOmitPrefix,
    IdentifierError,
    Layout,
    LineCounts,
    Pairtree,
    PathError,
    Progress,
)
from pressmark._kernels.tables import MAX_IDENTIFIER_BYTES
from pressmark.layouts import streams as lines
from pressmark.threads import AHEAD
from support.implementations import Implementation
from support.streams import Passed, Pieces, map_lines, pass_through, unmap_lines

ON_ERROR = ("raise", "skip", "none")


def oracle(
    layout: Layout, blob: bytes, delimiter: bytes, on_error: str, both: bool, back: bool
) -> tuple[bytes, list[tuple[int, str]]]:
    """Return the expected output, and index and text of each expected failure, computed item by item."""
    call = layout.unmap_path if back else layout.map_id
    items = blob.split(delimiter)
    terminated = not items[-1]
    if terminated:
        items.pop()
    written, failed = b"", []
    for index, item in enumerate(items):
        try:
            result, bad = call(item).encode("utf-8", "surrogateescape"), False
        except (IdentifierError, PathError):
            result, bad = b"", True
        identifier, path = (result, item) if back else (item, result)
        # By lines each line has one TAB; by NUL the last TAB of a record is the one before the path.
        three_columns = both and (b"\t" in path or (b"\t" in identifier and delimiter != b"\0"))
        if bad or three_columns or delimiter in result:
            failed.append((index, item.decode("utf-8", "surrogateescape")))
            if on_error == "raise":
                break
            if on_error == "skip":
                continue
            shown = b"" if three_columns else item
            identifier, path = (b"", shown) if back else (shown, b"")
        line = identifier + b"\t" + path if both else (identifier if back else path)
        written += line + (delimiter if terminated or index < len(items) - 1 else b"")
    return written, failed


def places(passed: Passed) -> list[tuple[int, str]]:
    """Return the index and the item of every error of a call."""
    errors = [args for _, _, args in passed.failures]
    if passed.result[0] in (IdentifierError, PathError):
        errors.append(passed.result[2])
    return [(index, item) for item, index, _ in errors]


def check(layout: Layout, blob: bytes, source: Any = None, back: bool = False, **options: Any) -> Passed:
    """Pass ``blob``, or a source of it, and compare everything with the oracle."""
    delimiter, on_error = options.get("delimiter", b"\n"), options.get("on_error", "raise")
    written, failed = oracle(layout, blob, delimiter, on_error, options.get("both", False), back)
    call = partial(unmap_lines if back else map_lines, layout)
    passed = pass_through(call, blob if source is None else source, **options)
    assert passed.written == written
    assert places(passed) == failed
    if on_error == "raise" and failed:
        assert passed.result[0] in (IdentifierError, PathError)
    else:
        count = len(blob.split(delimiter)) - (blob.endswith(delimiter) or not blob)
        assert passed.result == ("ok", LineCounts(count, len(failed), len(blob), len(written)))
    return passed


BLOB = b"ark:/13030/xt\n\na\r\n..\nb\tc\n\xff\n/d\ne.f\nlast"


@pytest.mark.parametrize("on_error", ON_ERROR)
@pytest.mark.parametrize("ending", [b"", b"\n", b"\n\n"])
def test_a_stream_may_be_cut_anywhere(implementation: Implementation, on_error: str, ending: bytes) -> None:
    """A stream has the same result byte by byte, or cut in one or two places."""
    blob = BLOB + ending
    check(FlatDirect(), blob, on_error=on_error)
    check(FlatDirect(), blob, Pieces(blob[i : i + 1] for i in range(len(blob))), on_error=on_error)
    for cut in range(1, len(blob)):
        check(FlatDirect(), blob, Pieces([blob[:cut], blob[cut:]]), on_error=on_error)
    for first, second in itertools.combinations(range(1, len(blob)), 2):
        check(FlatDirect(), blob, Pieces([blob[:first], blob[first:second], blob[second:]]), on_error=on_error)


def test_a_source_may_have_read_only(implementation: Implementation) -> None:
    """A source needs no ``read1``: raw streams have only ``read``."""
    for size in range(1, 12):
        pieces = [BLOB[start : start + size] for start in range(0, len(BLOB), size)]
        check(FlatDirect(), BLOB, Pieces(pieces, "read"), on_error="skip")

    class Raw(io.RawIOBase):
        def __init__(self) -> None:
            self.left = BLOB

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            taken, self.left = self.left[:3], self.left[3:]
            buffer[: len(taken)] = taken
            return len(taken)

    check(FlatDirect(), BLOB, Raw(), on_error="skip")


@pytest.mark.parametrize("blob", [b"", b"a", b"a\n", b"\n", b"\n\n", b"a\nb", b"a\n\nb", b"\na", b"a\n\n"])
@pytest.mark.parametrize("on_error", ON_ERROR)
def test_the_last_item_may_lack_its_delimiter(implementation: Implementation, blob: bytes, on_error: str) -> None:
    """If the last item lacks its delimiter, so does the output; an empty stream gives nothing, an empty line fails."""
    check(Pairtree(), blob, on_error=on_error)
    check(Pairtree(), blob.replace(b"a", b".."), on_error=on_error)


def test_nothing_but_the_delimiter_ends_an_item(implementation: Implementation) -> None:
    """A carriage return, and every other line end of Unicode, belongs to its item."""
    blob = b"a\r\nb\rc\x0b\x0c\x1c\x1d\x1e\xc2\x85\xe2\x80\xa8\xe2\x80\xa9\nd"
    assert check(FlatDirect(), blob).written == blob
    assert check(Pairtree(), b"a\r\n").written == b"a^/0d\n"


@pytest.mark.parametrize("delimiter", [bytes([byte]) for byte in b"\0\n\t ,/:a\x7f\x80\xff"], ids=repr)
@pytest.mark.parametrize("on_error", ON_ERROR)
def test_any_byte_may_be_the_delimiter(implementation: Implementation, delimiter: bytes, on_error: str) -> None:
    """Any byte may be the delimiter; a result that contains it fails, because readers would split it."""
    blob = delimiter.join([b"x", b"x.y", b"x/z", b"", b"\xc3\xa9", b"w:v", b"x y", b"n\nm", b"xyz"])
    for layout in (Pairtree(), FlatDirect(), FlatOmitPrefix(":"), DirectClean()):
        for ending in (b"", delimiter):
            check(layout, blob + ending, delimiter=delimiter, on_error=on_error)


def test_a_result_that_contains_the_delimiter_fails(implementation: Implementation) -> None:
    """An identifier that contains a line feed fails in lines, with advice in the reason, and is mapped with NUL."""
    passed = check(Pairtree(), b"ab\nx^/0a\ncd", back=True, on_error="skip")
    assert passed.written == b"ab\ncd"
    assert "contains the line delimiter; use NUL as the delimiter (null=True)" in passed.failures[0][1]
    assert check(Pairtree(), b"ab\0x^/0a\0cd", back=True, delimiter=b"\0").written == b"ab\0x\n\0cd"
    check(Pairtree(), b"ab\0x^/00\0cd", back=True, delimiter=b"\0", on_error="none")


@pytest.mark.parametrize("on_error", ON_ERROR)
def test_two_columns_stay_two(implementation: Implementation, on_error: str) -> None:
    """With ``both``, a TAB in either column fails in lines; with NUL only a TAB in the path does."""
    for delimiter in (b"\n", b"\0"):
        blob = delimiter.join([b"a", b"\tb", b"b\t", b"b\tc", b"..", b"", b"d"])
        for layout in (Pairtree(), FlatDirect(), FlatOmitPrefix("b"), DirectClean(replacement_string="\t")):
            check(layout, blob, delimiter=delimiter, on_error=on_error, both=True)
            check(layout, blob, delimiter=delimiter, on_error=on_error)
        blob = delimiter.join([b"a", b"a^/09", b"^0/9a", b"^zz", b"", b"d"])
        check(Pairtree(), blob, back=True, delimiter=delimiter, on_error=on_error, both=True)
        check(FlatDirect(), b"a\t" + delimiter + b"b", back=True, delimiter=delimiter, on_error=on_error, both=True)


def test_both_columns_are_identifier_and_path_in_either_direction(implementation: Implementation) -> None:
    """With ``both`` a line is identifier, TAB, path, in either direction."""
    forth = check(Pairtree(), b"ark:/x\n\xff\n", both=True).written
    assert forth == b"ark:/x\tar/k+/=x\n\xff\t^f/f\n"
    assert check(Pairtree(), b"ar/k+/=x\n^f/f\n", both=True, back=True).written == forth


def test_raise_writes_everything_before_the_failing_item(implementation: Implementation) -> None:
    """With ``raise``, all items before the first failing one are written, none after; its index counts items."""
    for count in (0, 1, 2, 1000):
        blob = b"ok\n" * count + b"..\n" + b"ok\n" * 5 + b"..\n"
        passed = pass_through(partial(map_lines, FlatDirect()), blob)
        assert passed.written == b"ok\n" * count
        kind, text, (item, index, _) = passed.result
        assert (kind, item, index) == (IdentifierError, "..", count)
        assert text.startswith(f"identifier {count} '..': ")


def test_skip_and_empty_continue(implementation: Implementation) -> None:
    """``skip`` omits failing items, ``empty`` keeps every line; both report each error, in order."""
    blob = b"a\n..\n.\nb\n\nc"
    assert check(FlatDirect(), blob, on_error="skip").written == b"a\nb\nc"
    assert check(FlatDirect(), blob, on_error="none").written == b"a\n\n\nb\n\nc"
    assert check(FlatDirect(), blob, on_error="none", both=True).written == b"a\ta\n..\t\n.\t\nb\tb\n\t\nc\tc"


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 64 bytes, so that a short stream has many."""
    monkeypatch.setattr(lines, "BLOCK_BYTES", 64)


MANY = b"\n".join(b"item %d" % number if number % 97 else b".." for number in range(1, 700)) + b"\n"


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("on_error", ON_ERROR)
def test_threads_keep_the_order(implementation: Implementation, threads: int, on_error: str) -> None:
    """Output and errors are in input order for any number of threads."""
    for both in (False, True):
        check(FlatDirect(), MANY, threads=threads, on_error=on_error, both=both)
    check(FlatDirect(), MANY[:-1], threads=threads, on_error=on_error)
    # Short reads are mapped at once, between those that wait for a thread.
    full = [MANY[start : start + 64] for start in range(0, len(MANY), 64)]
    mixed = [part for number, read in enumerate(full) for part in ([read] if number % 5 else [read[:7], read[7:]])]
    check(FlatDirect(), MANY, Pieces(mixed), threads=threads, on_error=on_error)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("threads", [1, 3])
def test_items_may_be_longer_than_blocks(implementation: Implementation, threads: int) -> None:
    """An item may span many blocks, start and end anywhere, and be followed by short ones."""
    for length in (62, 63, 64, 65, 127, 128, 129, 1000):
        blob = b"\n".join([b"x" * length, b"ab", b"y" * length, b"", b"z" * 63, b"w" * length])
        for ending in (b"", b"\n"):
            check(Pairtree(), blob + ending, threads=threads, on_error="none")


@pytest.mark.parametrize("threads", [1, 2])
def test_slow_input_is_written_at_once(implementation: Implementation, threads: int) -> None:
    """Complete lines are flushed before the next read, so that a writer may wait for the answer."""
    flushed: list[bytes] = []

    class Sink(io.BytesIO):
        def flush(self) -> None:
            flushed.append(self.getvalue())

    def conversation() -> Any:
        for line in (b"a\n", b"b\n", b"c"):
            yield line
            if line.endswith(b"\n"):
                assert flushed[-1].endswith(line)

    sink = Sink()
    map_lines(FlatDirect(), Pieces(conversation()), sink, threads=threads)
    assert sink.getvalue() == b"a\nb\nc"


class Endless:
    """An endless source that counts the bytes it returned."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.given = 0

    def read1(self, size: int) -> bytes:
        self.given += size
        return (self.text * (size // len(self.text) + 1))[:size]

    read = read1


class Drain:
    """A sink that stores nothing, and fails like a broken pipe."""

    def __init__(self, enough: int) -> None:
        self.enough = enough
        self.taken = 0

    def write(self, data: bytes) -> int:
        self.taken += len(data)
        if self.taken > self.enough:
            raise BrokenPipeError
        return len(data)

    def flush(self) -> None:
        pass


def peak_of(call: Callable[[], Any]) -> int:
    """Return the peak of Python's memory during a call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("threads", [1, 3])
def test_an_endless_stream_in_constant_memory(implementation: Implementation, threads: int) -> None:
    """An endless stream is read only as its output is consumed, and ends with the pipe."""
    source, sink = Endless(b"x" * 511 + b"\n"), Drain(50_000_000)

    def run() -> None:
        with pytest.raises(BrokenPipeError):
            map_lines(FlatDirect(), source, sink, threads=threads)

    assert peak_of(run) < 40_000_000
    assert source.given < 60_000_000 + threads * (AHEAD + 1) * lines.BLOCK_BYTES


def test_a_line_without_end_is_refused_in_constant_memory(implementation: Implementation) -> None:
    """A stream without delimiters is one item, too long, and never in memory as a whole."""
    source = Pieces(itertools.repeat(b"x" * lines.BLOCK_BYTES, 60))
    found: list[Passed] = []
    assert peak_of(lambda: found.append(pass_through(partial(map_lines, Pairtree()), source))) < 20_000_000
    kind, text, (_, index, reason) = found[0].result
    assert (kind, index) == (IdentifierError, 0)
    assert "too long" in reason
    assert len(text) < 300


@pytest.mark.parametrize("extra", [0, 1, 2, 5_000_000])
def test_a_line_too_long_fails_alone(implementation: Implementation, extra: int) -> None:
    """An item of 1 MiB is mapped, a longer one fails, and the lines around it are mapped."""
    long = b"x" * (MAX_IDENTIFIER_BYTES + extra)
    blob = b"a\n" + long + b"\nb\n"
    failures: list[IdentifierError] = []
    sink = io.BytesIO()
    counts = map_lines(FlatDirect(), io.BytesIO(blob), sink, on_error="skip", errors=failures)
    assert sink.getvalue() == (b"a\nb\n" if extra else blob)
    assert [error.index for error in failures] == ([1] if extra else [])
    assert counts == LineCounts(3, len(failures), len(blob), len(sink.getvalue()))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("threads", [1, 3])
def test_progress_counts_processed_items(implementation: Implementation, threads: int) -> None:
    """Progress is reported after each block, never decreases, and ends at the returned counts."""
    reports: list[tuple[int, int, int]] = []
    progress = Progress(lambda now: reports.append((now.done, now.failed, now.bytes)))
    sink = io.BytesIO()
    counts = map_lines(FlatDirect(), io.BytesIO(MANY), sink, threads=threads, on_error="skip", progress=progress)
    assert len(reports) > 50
    assert all(
        before <= after for one, other in itertools.pairwise(reports) for before, after in zip(one, other, strict=True)
    )
    assert reports[-1] == (699, 7, len(MANY))
    assert counts == LineCounts(699, 7, len(MANY), len(sink.getvalue()))


def test_the_default_number_of_threads(implementation: Implementation) -> None:
    """``None`` means one per core; the result is the same."""
    check(FlatDirect(), MANY, threads=None, on_error="skip")


@pytest.mark.parametrize(
    "options",
    [
        {"delimiter": b""},
        {"delimiter": b"\r\n"},
        {"delimiter": "\n"},
        {"delimiter": None},
        {"on_error": "empty"},
        {"on_error": None},
        {"threads": 0},
        {"threads": -1},
    ],
    ids=str,
)
def test_an_invalid_argument_is_refused_before_anything_is_read(
    implementation: Implementation, options: dict[str, Any]
) -> None:
    """A delimiter that is not one byte, an unknown policy, a negative number of threads: ``ValueError``, naming it."""
    source = Pieces([b"a\n"])
    for call in (partial(map_lines, Pairtree()), partial(unmap_lines, Pairtree())):
        with pytest.raises(ValueError, match=f"{next(iter(options))}="):
            call(source, io.BytesIO(), **options)
    assert source.pieces_read == 0


def test_a_failing_source_is_reported(implementation: Implementation) -> None:
    """An error of the source or a callback is passed on, after earlier results were written."""

    def broken() -> Any:
        yield b"a\nb"
        raise OSError("gone")

    sink = io.BytesIO()
    with pytest.raises(OSError, match="gone"):
        map_lines(FlatDirect(), Pieces(broken()), sink)
    assert sink.getvalue() == b"a\n"

    def refuse(_: Any) -> None:
        raise KeyError("stop")

    class Errors:
        append = staticmethod(refuse)

    for options in ({"errors": Errors()}, {"progress": Progress(refuse)}):
        with pytest.raises(KeyError, match="stop"):
            map_lines(FlatDirect(), io.BytesIO(b"..\na\n"), io.BytesIO(), on_error="skip", **options)


@pytest.mark.parametrize("column", [None, "id"])
def test_errors_of_a_file_have_text(implementation: Implementation, column: str | None) -> None:
    """The identifier of an error is a str, with surrogates, as in other records; its index is the line, from 0."""
    head = b"" if column is None else b"id,title\n"
    rows = [b"a", b"\xff", b""]
    data = head + b"".join(row + (b"\n" if column is None else b",x\n") for row in rows)
    errors: list[IdentifierError] = []
    how: Any = {"on_error": "none", "errors": errors, "column": column, "format": column and "csv"}
    pressmark.layout("0007").map_file(io.BytesIO(data), io.BytesIO(), **how)
    first = 0 if column is None else 1
    assert [(error.id, error.index) for error in errors if error.id] == [("\udcff", first + 1)]
    with pytest.raises(IdentifierError) as caught:
        pressmark.layout("pairtree").map_file(io.BytesIO(data), io.BytesIO(), **{**how, "on_error": "raise"})
    assert (caught.value.id, caught.value.index) == ("", first + 2)
