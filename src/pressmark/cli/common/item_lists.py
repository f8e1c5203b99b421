"""The lists of ``--from``: one item per line, or with NUL after each."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from pressmark.cli.common.files import open_source
from pressmark.errors import FormatError
from pressmark.fs.gzipped import unpacked
from pressmark.tabular.formats import Crlf, ListStream, format_of, open_list

__all__ = ["count_lines", "listed_items", "open_lines"]


def listed_items(path: str, null: bool, crlf: Crlf | None) -> Iterator[bytes]:
    """Yield the items of a list. A TAB is part of the item."""
    with open_lines(path, null, crlf) as source:
        for lines in source.lines(b"\0" if null else b"\n"):
            yield from lines


def count_lines(path: str | None, null: bool, crlf: Crlf | None) -> Callable[[], Iterator[int]] | None:
    """Return a function that yields the number of lines in each block of a list; :data:`None` without a list that can
    be read once more.
    """
    if path is None or not os.path.isfile(path):
        return None

    def counts() -> Iterator[int]:
        with open_lines(path, null, crlf) as source:
            yield from map(len, source.lines(b"\0" if null else b"\n"))

    return counts


@contextlib.contextmanager
def open_lines(path: str, null: bool, crlf: Crlf | None) -> Iterator[ListStream]:
    """Open a list of lines, which may be gzipped."""
    if format_of(path) not in (None, "lines", "tsv"):
        raise FormatError(path, "not a list of lines; save it as plain lines")
    with open_source(path) as source:
        end = b"\0" if null else b"\n"
        yield open_list(unpacked(source, path), name=source.name, delimiter=end, crlf=crlf, json_lines=False)
