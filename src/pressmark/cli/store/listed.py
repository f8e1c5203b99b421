"""The lists of ``--from``: one object per line, its identifier and, after a TAB, a path."""

from __future__ import annotations

from collections.abc import Iterator

from pressmark.cli.common.console import Failure
from pressmark.cli.common.files import open_lines
from pressmark.stores import ObjectSource
from pressmark.tabular.detection import Crlf, ListStream

__all__ = ["listed_identifiers", "listed_sources"]


def listed_sources(path: str, null: bool, crlf: Crlf | None) -> Iterator[tuple[bytes, ObjectSource | Failure]]:
    """Yield identifier and source of each object to store; for a line without a TAB, the failure."""
    with open_lines(path, null, crlf) as source:
        for number, identifier, found in _pairs(source, null):
            if found:
                yield identifier, found
            else:
                yield identifier, Failure(f"{source.name}:{number}: expected identifier, TAB and source")


def listed_identifiers(path: str, null: bool, crlf: Crlf | None) -> Iterator[bytes]:
    """Yield the identifiers of a list. A TAB is part of the identifier."""
    with open_lines(path, null, crlf) as source:
        for _number, identifier, more in _pairs(source, null):
            yield identifier if more is None else identifier + b"\t" + more


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
