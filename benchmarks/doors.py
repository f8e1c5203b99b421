"""The doors of a layout in one form: make the input ready, map it, and read the paths back for the checksum."""

from __future__ import annotations

import ctypes
import hashlib
import inspect
import io
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from pressmark.layouts import Layout

__all__ = ["DOORS", "Door", "arrow_column", "arrow_threads", "checksum", "has_arrow"]


class Door(NamedTuple):
    """A way in and out; ``prepare`` and ``paths`` are outside the timed part, ``run`` is the timed part."""

    name: str
    prepare: Callable[[list[str]], Any]
    run: Callable[[Layout, Any, int], Any]
    paths: Callable[[Any], Iterable[bytes]]
    threaded: bool


def checksum(paths: Iterable[bytes]) -> str:
    """Return the SHA-256 of all paths joined by NUL; an identifier without a path counts as an empty one."""
    return hashlib.sha256(b"\0".join(paths)).hexdigest()


def _octets(text: str | None) -> bytes:
    return (text or "").encode("utf-8", "surrogateescape")


# --- lists --------------------------------------------------------------------------------------------------------


def _list_run(layout: Layout, ids: list[str], _threads: int) -> list[str]:
    return layout.map_ids(ids, on_error="none")


# --- lines --------------------------------------------------------------------------------------------------------


def _lines_prepare(ids: list[str]) -> bytes:
    # NUL-delimited, because hostile identifiers hold line feeds.
    return b"\0".join([*map(_octets, ids), b""])


def _lines_run(layout: Layout, octets: bytes, threads: int) -> bytes:
    sink = io.BytesIO()
    layout.map_lines(io.BytesIO(octets), sink, b"\0", threads, on_error="empty")
    return sink.getvalue()


def _lines_paths(octets: bytes) -> list[bytes]:
    return octets.split(b"\0")[:-1]


# --- Arrow --------------------------------------------------------------------------------------------------------


def has_arrow() -> bool:
    """Return whether layouts have the Arrow door, and pyarrow is here to make columns and read them."""
    try:
        import pyarrow  # noqa: F401
    except ModuleNotFoundError:
        return False
    return hasattr(Layout, "map_arrow")


def arrow_threads() -> bool:
    """Return whether the Arrow door spreads a column over threads."""
    return has_arrow() and "threads" in inspect.signature(Layout.map_arrow).parameters


def arrow_column(ids: list[str]) -> Any:
    """Return ``ids`` as a pyarrow array of strings, of octets where some are not UTF-8."""
    import pyarrow as pa

    try:
        return pa.array(ids, pa.large_utf8())
    except UnicodeEncodeError:
        return pa.array([_octets(identifier) for identifier in ids], pa.large_binary())


def _arrow_run(layout: Layout, column: Any, threads: int) -> Any:
    if arrow_threads():
        return layout.map_arrow(column, on_error="none", threads=threads)
    return layout.map_arrow(column, on_error="none")


def _arrow_paths(column: Any) -> Iterable[bytes]:
    import pyarrow as pa

    arrays = pa.chunked_array(column).chunks if hasattr(column, "__arrow_c_stream__") else [pa.array(column)]
    for array in arrays:
        # Read from the buffers: to_pylist would refuse octets that are not UTF-8.
        _, offsets, data = array.buffers()
        positions = (ctypes.c_int64 * (len(array) + 1)).from_buffer_copy(offsets, 8 * array.offset)
        octets = data.to_pybytes() if data is not None else b""
        for index, valid in enumerate(array.is_valid().to_pylist()):
            yield octets[positions[index] : positions[index + 1]] if valid else b""


DOORS = {
    door.name: door
    for door in (
        Door("list", lambda ids: ids, _list_run, lambda paths: map(_octets, paths), False),
        Door("lines", _lines_prepare, _lines_run, _lines_paths, True),
        Door("arrow", arrow_column, _arrow_run, _arrow_paths, True),
    )
}
