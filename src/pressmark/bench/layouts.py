"""Identifiers a second: a layout through the doors for lists, Arrow columns and lines, beside a plain loop."""

from __future__ import annotations

import hashlib
import importlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, BinaryIO, cast

from pressmark.bench.loops import LOOPS, Loop
from pressmark.bench.samples import druids, volumes
from pressmark.bench.timing import best
from pressmark.layouts import Layout, layout
from pressmark.threads import resolve_threads

__all__ = ["DOORS", "IDENTIFIERS", "Case", "LayoutRates", "bench_layout", "cases"]

#: How many identifiers a round has at most: enough for several threads, few enough to be made in a moment.
IDENTIFIERS = 100_000
# How many show how fast a door is, to choose how many a round shall have.
_FEW = 2_000
#: The measurements of a layout, in their order.
DOORS = ("list", "arrow", "lines", "loop", "hashlib")


@dataclass(frozen=True)
class Case:
    """A layout to be measured.

    :ivar title: its name and parameters, as on the command line
    :ivar layout: itself
    :ivar sample: gives so many identifiers that it can map
    :ivar loop: the same in plain Python, where there is such a loop
    """

    title: str
    layout: Layout
    sample: Callable[[int], list[str]] = volumes
    loop: Loop | None = None


def _case(title: str, name: str, sample: Callable[[int], list[str]] = volumes, **parameters: Any) -> Case:
    return Case(title, layout(name, **parameters), sample, LOOPS[title])


@cache
def cases() -> tuple[Case, ...]:
    """Return every layout with parameters that suit the samples; made when asked for, since layouts choose a kernel."""
    return (
        _case("pairtree", "pairtree"),
        _case("vitro", "vitro"),
        _case("0002", "0002"),
        _case("0003", "0003"),
        _case("0004", "0004"),
        _case("0006:delimiter=.", "0006", delimiter="."),
        _case("0007:delimiter=.", "0007", delimiter="."),
        _case("0010", "0010", druids),
        _case("0011", "0011"),
        _case("0011:encodeUTF=true", "0011", encode_utf=True),
        _case("0012:delimiters=.", "0012", delimiters=["."]),
    )


@dataclass(frozen=True)
class LayoutRates:
    """Identifiers a second; None where something was not measured.

    :ivar layout: the title of the case
    :ivar list: :meth:`~pressmark.Layout.map_ids`, one thread
    :ivar arrow: :meth:`~pressmark.Layout.map_arrow`; None without pyarrow, of which the column is
    :ivar lines: :meth:`~pressmark.Layout.map_lines`, from memory to nowhere
    :ivar loop: the same in plain Python
    :ivar hashlib: no paths at all, only the digest of each identifier; None for layouts that need none
    """

    layout: str
    list: float | None = None
    arrow: float | None = None
    lines: float | None = None
    loop: float | None = None
    hashlib: float | None = None

    @property
    def ratio(self) -> float | None:
        """How many times as fast as the loop the fastest door is."""
        doors = [rate for rate in (self.list, self.arrow, self.lines) if rate is not None]
        return max(doors) / self.loop if doors and self.loop else None


def bench_layout(case: Case, seconds: float = 0.5, threads: int | None = None) -> LayoutRates:
    """Measure ``case`` for about ``seconds`` in all.

    :param threads: how many the doors for columns and lines may use; ``None`` or ``0`` for as many as there are cores
    """
    workers = resolve_threads(threads)
    prepared = {door: made for door in DOORS if (made := _WAYS[door](case, workers)) is not None}
    # A few first, to choose how many each shall have in a round: all of them five rounds in the time there is.
    few = best([one(_FEW) for one in prepared.values()], seconds / 10)
    share = seconds / len(prepared) / 5
    counts = [int(min(IDENTIFIERS, max(_FEW, _FEW * share / one))) for one in few]
    runs = [one(count) for one, count in zip(prepared.values(), counts, strict=True)]
    rates = [count / one for count, one in zip(counts, best(runs, seconds), strict=True)]
    return LayoutRates(case.title, **dict(zip(prepared, rates, strict=True)))


# Takes how many identifiers, and returns what maps them.
_Prepared = Callable[[int], Callable[[], object]]


@cache
def _identifiers(sample: Callable[[int], list[str]]) -> list[str]:
    return sample(IDENTIFIERS)


@cache
def _column(sample: Callable[[int], list[str]]) -> Any:
    try:
        pyarrow: Any = importlib.import_module("pyarrow")
    except ImportError:
        return None
    return pyarrow.array(_identifiers(sample), pyarrow.large_utf8())


def _list(case: Case, _threads: int) -> _Prepared:
    def prepare(count: int) -> Callable[[], object]:
        ids = _identifiers(case.sample)[:count]
        return lambda: case.layout.map_ids(ids)

    return prepare


def _arrow(case: Case, threads: int) -> _Prepared | None:
    column = _column(case.sample)
    if column is None:
        return None

    def prepare(count: int) -> Callable[[], object]:
        some = column.slice(0, count)
        return lambda: case.layout.map_arrow(some, threads=threads)

    return prepare


def _lines(case: Case, threads: int) -> _Prepared:
    def prepare(count: int) -> Callable[[], object]:
        octets = "\n".join(_identifiers(case.sample)[:count]).encode()
        return lambda: case.layout.map_lines(io.BytesIO(octets), cast(BinaryIO, _Nowhere()), b"\n", threads)

    return prepare


def _loop(case: Case, _threads: int) -> _Prepared | None:
    loop = case.loop
    if loop is None:
        return None

    def prepare(count: int) -> Callable[[], object]:
        ids = _identifiers(case.sample)[:count]
        return lambda: loop(ids)

    return prepare


def _hashlib(case: Case, _threads: int) -> _Prepared | None:
    algorithm = case.layout.config().get("digestAlgorithm")
    if algorithm is None:
        return None
    make = _hashing(algorithm)

    def digests(ids: Sequence[str]) -> list[str]:
        return [make(identifier.encode()).hexdigest() for identifier in ids]

    def prepare(count: int) -> Callable[[], object]:
        ids = _identifiers(case.sample)[:count]
        return lambda: digests(ids)

    return prepare


def _hashing(algorithm: str) -> Callable[[bytes], Any]:
    """Return hashlib's own function of an algorithm of layouts."""
    family, _, bits = algorithm.partition("-")
    if family == "blake2b":
        size = int(bits) // 8
        return lambda octets: hashlib.blake2b(octets, digest_size=size)
    name = algorithm.replace("/", "_")
    return getattr(hashlib, name, None) or (lambda octets: hashlib.new(name, octets, usedforsecurity=False))


_WAYS: dict[str, Callable[[Case, int], _Prepared | None]] = {
    "list": _list,
    "arrow": _arrow,
    "lines": _lines,
    "loop": _loop,
    "hashlib": _hashlib,
}


class _Nowhere:
    """Takes bytes and forgets them."""

    def write(self, data: bytes) -> int:
        return len(data)

    def flush(self) -> None:
        """Do nothing: there is nothing to flush."""
