"""The objects that a command selects, and the lists of ``--from``: one object per line, its identifier and, after a
TAB, a path.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import click

from pressmark.cli.common.console import CallError, Failure
from pressmark.cli.common.item_lists import count_lines, open_lines
from pressmark.cli.common.options import CRLF, gathered
from pressmark.reports import Problem
from pressmark.stores import Store, StoreObject
from pressmark.tabular.formats import Crlf, ListStream

__all__ = ["Selection", "listed_identifiers", "listed_objects", "selection_options", "store_listed"]

_Line = tuple[int, bytes, bytes | None]


def selection_options(verb: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options of :class:`Selection`, except ``--null``. The command gets it as ``selection``.

    :param verb: what the command does with the objects
    """

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        function = gathered("selection", Selection)(function)
        for option in (
            click.option(
                "--match",
                metavar="GLOB",
                multiple=True,
                callback=_check_match,
                help=f"{verb} the objects whose whole identifier matches GLOB, such as 'ark:/13030/*'; repeatable.",
            ),
            CRLF,
            click.option(
                "--from",
                "listed",
                metavar="FILE",
                type=click.Path(readable=False),
                help=f'{verb} the objects listed in FILE ("-" for standard input), one identifier per line.',
            ),
        ):
            function = option(function)
        return function

    return add


def _check_match(context: click.Context, _parameter: click.Parameter, match: tuple[str, ...]) -> tuple[str, ...]:
    """Return the globs of a call, after checking that none is empty."""
    if "" in match and not context.resilient_parsing:
        raise CallError("--match: the glob is empty; specify one such as 'ark:/13030/*'")
    return match


@dataclass(frozen=True)
class Selection:
    """The objects that a call selects.

    :ivar listed: of ``--from``
    :ivar match: of ``--match``
    :ivar null: whether the lines of the list end with NUL
    :ivar crlf: of ``--crlf``
    :ivar ids: its identifiers
    """

    listed: str | None
    match: tuple[str, ...]
    null: bool
    crlf: Crlf | None
    ids: tuple[str, ...] = ()

    def arguments(self, store: Callable[[], Store]) -> dict[str, Any]:
        """Return the arguments of :meth:`Store.objects` and :meth:`Store.check`; none if no objects are selected.

        :param store: returns the store, when the list is read
        """
        if self.listed is not None:
            return {"ids": listed_identifiers(self.listed, self.null, self.crlf, store)}
        if self.match:
            return {"match": self.match}
        return {"ids": self.ids} if self.ids else {}

    def count(self) -> Callable[[], Iterable[int]] | None:
        """Return a function that yields the number of identifiers in each part; :data:`None` if it is unknown."""
        return partial(list, [len(self.ids)]) if self.ids else count_lines(self.listed, self.null, self.crlf)


def listed_identifiers(path: str, null: bool, crlf: Crlf | None, store: Callable[[], Store]) -> Iterator[bytes]:
    """Yield the identifiers of a list. An identifier may contain a TAB, but so do the lines that ``ls`` prints.

    :raises Failure: the first line with a TAB names no object
    """
    is_checked = null
    with open_lines(path, null, crlf) as source:
        for number, identifier, rest in chain.from_iterable(_blocks(source, null)):
            line = identifier if rest is None else b"\t".join((identifier, rest))
            if rest is not None and not is_checked:
                is_checked = True
                problems: list[Problem] = []
                found = next(store().objects(ids=[line], problems=problems), None)
                if found is None and any(one.kind == "object-missing" for one in problems):
                    raise Failure(f"{source.name}:{number}: has a TAB; specify one identifier per line")
            yield line


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
        for found in listed_objects(source, null):
            if isinstance(found, Failure):
                report(found)
            else:
                yield found

    with open_lines(path, null, crlf) as source, contextlib.closing(store.put_all(objects(source), **how)) as results:
        for result in results:
            found = result.error or result.record
            assert found is not None
            if result.error is None or result.error.kind != "interrupted":  # the command says so once
                report(found)


def listed_objects(source: ListStream, null: bool) -> Iterator[tuple[bytes, str] | Failure | None]:
    """Yield identifier and source of each line of a list, or what is wrong with it; :data:`None` after what is read at
    once: nothing waits while the command waits for input.
    """
    for pairs in _blocks(source, null):
        for number, identifier, found in pairs:
            if found:
                yield identifier, os.fsdecode(found)
            else:
                yield Failure(f"{source.name}:{number}: expected identifier, TAB and source")
        yield None


def _blocks(source: ListStream, null: bool) -> Iterator[Iterator[_Line]]:
    """Yield number, identifier and path of each line of a list, in blocks as they are read; without a TAB no path."""
    number = 1
    for lines in source.lines(b"\0" if null else b"\n"):
        yield ((at, *_pair(line)) for at, line in enumerate(lines, number))
        number += len(lines)


def _pair(line: bytes) -> tuple[bytes, bytes | None]:
    identifier, tab, path = line.partition(b"\t")
    return identifier, path if tab else None
