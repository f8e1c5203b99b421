"""Binary streams of every kind, and a call of ``map_lines`` with all its results."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from support.outcomes import outcome


class Passed(NamedTuple):
    """The results of a call of ``map_lines`` or ``unmap_lines``."""

    result: tuple[Any, ...]
    written: bytes
    failures: list[tuple[Any, ...]]


def pass_through(call: Callable[..., Any], blob: bytes | Any, **options: Any) -> Passed:
    """Call ``map_lines`` or ``unmap_lines`` on bytes, or on a source, and return all its results."""
    source = io.BytesIO(blob) if isinstance(blob, bytes) else blob
    sink = io.BytesIO()
    failures: list[tuple[Any, ...]] = []
    result = outcome(
        lambda: call(
            source, sink, on_failure=lambda error: failures.append((type(error), str(error), error.args)), **options
        )
    )
    return Passed(result, sink.getvalue(), failures)


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
