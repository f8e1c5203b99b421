"""Calls of the library that had another name in an older commit, beside which ``ci/bench`` measures this one."""

from __future__ import annotations

import io
from typing import Any

from pressmark import Layout, bagit

__all__ = ["make_bag", "map_column", "map_lines", "unmap_column", "unmap_list"]

IS_OLD = not hasattr(Layout, "map")


def map_column(layout: Any, column: Any, **options: Any) -> Any:
    """Return the paths of a column of pyarrow, as one."""
    return _as_pyarrow(layout.map_arrow(column, **options)) if IS_OLD else layout.map(column, **options)


def unmap_column(layout: Any, column: Any, **options: Any) -> Any:
    """Return the identifiers of a column of pyarrow, as one."""
    return _as_pyarrow(layout.unmap_arrow(column, **options)) if IS_OLD else layout.unmap(column, **options)


def _as_pyarrow(column: Any) -> Any:
    import pyarrow

    return pyarrow.array(column)


def unmap_list(layout: Any, paths: list[str]) -> Any:
    """Return the identifiers of a list."""
    return (layout.unmap_paths if IS_OLD else layout.unmap)(paths)


def map_lines(layout: Any, lines: bytes, threads: int, *, unmap: bool = False) -> bytes:
    """Return the paths of lines that NUL ends, empty for those without one."""
    sink = io.BytesIO()
    options = {"unmap": unmap, "null": True, "crlf": "keep", "threads": threads}
    layout.map_file(io.BytesIO(lines), sink, on_error="empty" if IS_OLD else "none", **options)
    return sink.getvalue()


def make_bag(directory: Any, **options: Any) -> Any:
    """Turn a directory into a bag."""
    return getattr(bagit, "make_bag", bagit.create)(directory, **options)
