"""The lists of ``--from``: one object per line, its identifier and, after a TAB, a path."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

from pressmark.cli.common.console import Failure
from pressmark.cli.common.files import open_source
from pressmark.errors import FormatError
from pressmark.fs.gzipped import unpacked
from pressmark.stores import Store, StoreObject
from pressmark.tabular.formats import Crlf, ListStream, format_of, open_list

__all__ = ["count_lines", "listed_identifiers", "store_listed"]

_Line = tuple[int, bytes, bytes | None]


def store_listed(
    store: Store,
    path: str,
    null: bool,
    crlf: Crlf | None,
    report: Callable[[StoreObject | Exception], object],
    **how: Any,
) -> None:
    """Store the objects of a list.

    :param report: called with the record or the error of each object, once it is on disk
    :param how: options of :meth:`Store.put_all`
    """

    def objects(source: ListStream) -> Iterator[tuple[bytes, str] | None]:
        for pairs in _blocks(source, null):
            for number, identifier, found in pairs:
                if found:
                    yield identifier, os.fsdecode(found)
                else:
                    report(Failure(f"{source.name}:{number}: expected identifier, TAB and source"))
            yield None  # nothing waits while the command waits for input

    with _open_lines(path, null, crlf) as source, contextlib.closing(store.put_all(objects(source), **how)) as results:
        for result in results:
            found = result.error or result.record
            assert found is not None
            if result.error is None or result.error.kind != "interrupted":  # the command says so once
                report(found)


def listed_identifiers(path: str, null: bool, crlf: Crlf | None) -> Iterator[bytes]:
    """Yield the identifiers of a list. A TAB is part of the identifier."""
    with _open_lines(path, null, crlf) as source:
        for pairs in _blocks(source, null):
            for _number, identifier, more in pairs:
                yield identifier if more is None else identifier + b"\t" + more


def count_lines(path: str | None, null: bool, crlf: Crlf | None) -> Callable[[], Iterator[int]] | None:
    """Return a function that yields the number of lines in each block of a list; :data:`None` without a list that can
    be read once more.
    """
    if path is None or not os.path.isfile(path):
        return None

    def counts() -> Iterator[int]:
        with _open_lines(path, null, crlf) as source:
            yield from map(len, source.lines(b"\0" if null else b"\n"))

    return counts


@contextlib.contextmanager
def _open_lines(path: str, null: bool, crlf: Crlf | None) -> Iterator[ListStream]:
    """Open a list of lines, which may be gzipped."""
    if format_of(path) not in (None, "lines", "tsv"):
        raise FormatError(path, "not a list of lines; save it as lines with a TAB in each line")
    with open_source(path) as source:
        end = b"\0" if null else b"\n"
        yield open_list(unpacked(source, path), name=source.name, delimiter=end, crlf=crlf, json_lines=False)


def _blocks(source: ListStream, null: bool) -> Iterator[Iterator[_Line]]:
    """Yield number, identifier and path of each line of a list, in blocks as they are read; without a TAB no path."""
    number = 1
    for lines in source.lines(b"\0" if null else b"\n"):
        yield ((at, *_pair(line)) for at, line in enumerate(lines, number))
        number += len(lines)


def _pair(line: bytes) -> tuple[bytes, bytes | None]:
    identifier, tab, path = line.partition(b"\t")
    return identifier, path if tab else None
