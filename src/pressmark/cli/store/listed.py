"""The lists of ``--from``: one object per line, its identifier and, after a TAB, a path."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pressmark.cli.common.console import CallError, Failure
from pressmark.cli.common.files import checked_list, open_source, unpacked
from pressmark.stores import ObjectSource
from pressmark.tabular.detection import Crlf, FormatError, ListStream, format_of, is_gzip

__all__ = ["listed_identifiers", "listed_sources"]


def listed_sources(path: str, null: bool, crlf: Crlf | None) -> Iterator[tuple[bytes, ObjectSource | Failure]]:
    """Yield identifier and source of each object to store; for a line without a TAB, the failure."""
    with _open_lines(path, null, crlf) as source:
        for number, identifier, found in _pairs(source, null):
            if found:
                yield identifier, found
            else:
                yield identifier, Failure(f"{source.name}:{number}: expected identifier, TAB and source")


def listed_identifiers(path: str, null: bool, crlf: Crlf | None) -> Iterator[bytes]:
    """Yield the identifiers of a list. A TAB is part of the identifier."""
    with _open_lines(path, null, crlf) as source:
        for _number, identifier, more in _pairs(source, null):
            yield identifier if more is None else identifier + b"\t" + more


@contextlib.contextmanager
def _open_lines(path: str, null: bool, crlf: Crlf | None) -> Iterator[ListStream]:
    """Open a list of lines, which may be gzipped."""
    try:
        format = format_of(path)
    except FormatError as error:
        raise CallError(f"{path}: {error}") from None
    if format not in (None, "lines", "tsv"):
        raise CallError(f"{path}: not a list of lines; save it as lines with a TAB in each")
    with open_source(path) as source:
        yield checked_list(unpacked(source, is_gzip(path)), "lines", null, crlf, json_lines=False)


def _pairs(source: ListStream, null: bool) -> Iterator[tuple[int, bytes, bytes | None]]:
    """Yield number, identifier and path of each line of a list; the path is :data:`None` without a TAB."""
    end = b"\0" if null else b"\n"
    number = 0
    held: list[bytes] = []  # the beginning of an incomplete line
    while data := source.read(1 << 16):
        held.append(data)
        if end in data:
            *lines, rest = b"".join(held).split(end)
            held = [rest]
            for line in lines:
                number += 1
                yield number, *_pair(line)
    if rest := b"".join(held):
        yield number + 1, *_pair(rest)


def _pair(line: bytes) -> tuple[bytes, bytes | None]:
    identifier, tab, path = line.partition(b"\t")
    return identifier, path if tab else None
