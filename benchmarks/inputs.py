"""Lists, lines and Arrow columns of identifiers in one form: prepare, map, read the paths back for the checksum."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pyarrow

from benchmarks.calls import map_column, map_lines
from pressmark.layouts import Layout

__all__ = ["INPUTS", "Input", "checksum"]


class Input(NamedTuple):
    """A kind of input; only ``run`` is timed."""

    name: str
    prepare: Callable[[list[str]], Any]
    run: Callable[[Layout, Any, int], Any]
    paths: Callable[[Any], Iterable[bytes]]
    threaded: bool


def checksum(paths: Iterable[bytes]) -> str:
    """Return the SHA-256 of all paths joined by NUL; a refused identifier has an empty path."""
    return hashlib.sha256(b"\0".join(paths)).hexdigest()


def _encoded(text: str | None) -> bytes:
    return (text or "").encode("utf-8", "surrogateescape")


def _run_list(layout: Layout, ids: list[str], _threads: int) -> list[str]:
    return layout.map_ids(ids, on_error="none")


def _prepare_lines(ids: list[str]) -> bytes:
    # NUL-delimited: hostile identifiers contain line feeds.
    return b"\0".join([*map(_encoded, ids), b""])


def _run_lines(layout: Layout, lines: bytes, threads: int) -> bytes:
    return map_lines(layout, lines, threads)


def _prepare_arrow(ids: list[str]) -> Any:
    try:
        return pyarrow.array(ids, pyarrow.large_utf8())
    except UnicodeEncodeError:
        return pyarrow.array(map(_encoded, ids), pyarrow.large_binary())


def _run_arrow(layout: Layout, column: Any, threads: int) -> Any:
    return map_column(layout, column, on_error="none", threads=threads)


def _arrow_paths(column: Any) -> Iterable[bytes]:
    arrays = pyarrow.chunked_array(column).chunks if hasattr(column, "__arrow_c_stream__") else [pyarrow.array(column)]
    for array in arrays:
        # From the buffers: to_pylist refuses bytes that are not UTF-8.
        _, offsets, data = array.buffers()
        positions = (ctypes.c_int64 * (len(array) + 1)).from_buffer_copy(offsets, 8 * array.offset)
        encoded = data.to_pybytes() if data is not None else b""
        for index, valid in enumerate(array.is_valid().to_pylist()):
            yield encoded[positions[index] : positions[index + 1]] if valid else b""


INPUTS = {
    kind.name: kind
    for kind in (
        Input("list", lambda ids: ids, _run_list, lambda paths: map(_encoded, paths), False),
        Input("lines", _prepare_lines, _run_lines, lambda lines: lines.split(b"\0")[:-1], True),
        Input("arrow", _prepare_arrow, _run_arrow, _arrow_paths, True),
    )
}
