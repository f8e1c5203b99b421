"""Binary streams of every kind, and one call of ``map_lines`` with everything that it did."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from support.outcomes import outcome


class Passed(NamedTuple):
    """What a call of ``map_lines`` or ``unmap_lines`` did."""

    result: tuple[Any, ...]
    written: bytes
    failures: list[tuple[Any, ...]]


def pass_through(call: Callable[..., Any], blob: bytes | Any, **options: Any) -> Passed:
    """Call ``map_lines`` or ``unmap_lines`` on bytes, or on a source, and return all that came of it."""
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
    """A source of which every read gives one piece, whatever was asked for; ``name`` is the method it has."""

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
