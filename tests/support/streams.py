"""Binary streams of every kind, and the mapping of their lines with all its results."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from pressmark import Layout, LineCounts
from pressmark.layouts.streams import pass_lines
from support.outcomes import outcome


def map_lines(
    layout: Layout, source: Any, sink: Any, delimiter: bytes = b"\n", threads: int | None = None, **options: Any
) -> LineCounts:
    """Map the lines of a stream as ``map_file`` does, with any delimiter."""
    return _pass_lines(layout._mapping(), source, sink, delimiter, threads, **options)


def unmap_lines(
    layout: Layout, source: Any, sink: Any, delimiter: bytes = b"\n", threads: int | None = None, **options: Any
) -> LineCounts:
    """Map lines of paths back."""
    return _pass_lines(layout._unmapping(), source, sink, delimiter, threads, is_back=True, **options)


def _pass_lines(
    bound: Any,
    source: Any,
    sink: Any,
    delimiter: bytes,
    threads: int | None,
    *,
    is_back: bool = False,
    on_error: Any = "raise",
    both: bool = False,
    errors: Any = None,
    progress: Any = None,
) -> LineCounts:
    return pass_lines(bound, source, sink, delimiter, threads, on_error, both, is_back, errors, progress)


class Passed(NamedTuple):
    """The results of a call of :func:`map_lines` or :func:`unmap_lines`."""

    result: tuple[Any, ...]
    written: bytes
    failures: list[tuple[Any, ...]]


def pass_through(call: Callable[..., Any], blob: bytes | Any, **options: Any) -> Passed:
    """Map the lines of bytes, or of a source, and return all results of the call."""
    source = io.BytesIO(blob) if isinstance(blob, bytes) else blob
    sink = io.BytesIO()
    errors: list[Exception] = []
    result = outcome(lambda: call(source, sink, errors=errors, **options))
    return Passed(result, sink.getvalue(), [(type(error), str(error), error.args) for error in errors])


class Pieces:
    """A source whose reads return one piece each, whatever their size; ``name`` is the name of its read method."""

    def __init__(self, pieces: Iterable[bytes], name: str = "read1") -> None:
        self.pieces: Iterator[bytes] = iter(pieces)
        self.pieces_read = 0
        setattr(self, name, self._next)
        if name == "read1":
            self.read = self._refuse

    def _next(self, size: int) -> bytes:
        piece = next(self.pieces, b"")
        assert len(piece) <= size
        self.pieces_read += 1
        return piece

    @staticmethod
    def _refuse(_size: int = -1) -> bytes:
        raise AssertionError("read waits for a full block; read1 does not")
