"""Identifiers per second: a layout applied to lists, Arrow columns and lines, compared with the pure implementation."""

from __future__ import annotations

import functools
import hashlib
import importlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

from pressmark import _kernels
from pressmark._kernels.tables import DIGESTS
from pressmark.bench.timing import best
from pressmark.errors import IdentifierError
from pressmark.layouts import Layout, list_layouts
from pressmark.layouts.batch import BoundKernel
from pressmark.threads import resolve_threads

__all__ = ["IDENTIFIERS", "LayoutRates", "bench_layout", "default_layouts", "sample_identifiers"]

#: Identifiers in a round at most: enough for several threads.
IDENTIFIERS = 100_000
# Identifiers in the first round, which shows how many the later ones can have.
_FEW = 2_000
# Values for required parameters, such that the sample identifiers can be mapped.
_REQUIRED = {"delimiter": ":"}
_LETTERS = "bcdfghjkmnpqrstvwxyz"
# Large, so that letters and digits change from one identifier to the next.
_STEP = 7_368_787


@dataclass(frozen=True)
class LayoutRates:
    """Identifiers per second; None if nothing was measured.

    :ivar layout: name and parameters, as on the command line
    :ivar list: :meth:`~pressmark.Layout.map_ids`, one thread
    :ivar arrow: :meth:`~pressmark.Layout.map_arrow`; needs pyarrow
    :ivar lines: :meth:`~pressmark.Layout.map_lines`, from memory
    :ivar pure: :meth:`~pressmark.Layout.map_ids` of the pure implementation, where the native one runs
    :ivar hashlib: the digest of each identifier alone, for layouts that need one
    """

    layout: str
    list: float | None = None
    arrow: float | None = None
    lines: float | None = None
    pure: float | None = None
    hashlib: float | None = None

    @property
    def ratio(self) -> float | None:
        """The fastest of lists, Arrow columns and lines, divided by the pure implementation."""
        rates = [rate for rate in (self.list, self.arrow, self.lines) if rate is not None]
        return max(rates) / self.pure if rates and self.pure else None


def default_layouts() -> dict[str, Layout]:
    """Return every layout with default parameters, by the name and parameters used on the command line."""
    layouts = {}
    for cls in list_layouts():
        given = {one.name: _REQUIRED[one.name] for one in cls.parameters() if one.required}
        settings = ",".join(f"{key}={value}" for key, value in given.items())
        layouts[f"{cls.alias or cls.name}{settings and ':'}{settings}"] = cls(**given)
    return layouts


@functools.cache
def sample_identifiers() -> list[str]:
    """Return :data:`IDENTIFIERS` druids, the same on every machine: every layout can map them."""
    identifiers = []
    for number in range(IDENTIFIERS):
        rest, digits = divmod(number * _STEP, 10_000_000)
        letters = ""
        for _ in range(4):
            rest, letter = divmod(rest, len(_LETTERS))
            letters += _LETTERS[letter]
        identifiers.append(f"druid:{letters[:2]}{digits // 10_000:03d}{letters[2:]}{digits % 10_000:04d}")
    return identifiers


def bench_layout(title: str, layout: Layout, seconds: float = 0.5, threads: int | None = None) -> LayoutRates:
    """Measure ``layout`` for about ``seconds`` in total.

    :param title: name of the layout in the result
    :param threads: maximum number of threads for columns and lines; ``None`` or ``0`` for one per core
    :raises IdentifierError: the layout cannot map the sample identifiers
    """
    runs = _runs(layout, resolve_threads(threads))
    few = best([functools.partial(run, _FEW) for run in runs.values()], seconds / 10)
    # Five rounds of each in the time that is left.
    share = seconds / len(runs) / 5
    counts = [int(min(IDENTIFIERS, max(_FEW, _FEW * share / time))) for time in few]
    times = best([functools.partial(run, count) for run, count in zip(runs.values(), counts, strict=True)], seconds)
    rates = [count / time for count, time in zip(counts, times, strict=True)]
    return LayoutRates(title, **dict(zip(runs, rates, strict=True)))


def _runs(layout: Layout, threads: int) -> dict[str, Callable[[int], object]]:
    """Return functions that process a number of identifiers, by what they measure."""
    ids = sample_identifiers()
    text = "\n".join(ids).encode()
    line_length = len(ids[0]) + 1
    runs: dict[str, Callable[[int], object]] = {
        "list": lambda count: layout.map_ids(ids[:count]),
        "lines": lambda count: layout.map_lines(
            io.BytesIO(text[: count * line_length]), cast(BinaryIO, _Nowhere()), threads=threads
        ),
    }
    column = _arrow_column()
    if column is not None:
        runs["arrow"] = lambda count: layout.map_arrow(column.slice(0, count), threads=threads)
    if _kernels.active.NAME != "pure":
        kernels = _kernels.load("pure")
        pure = BoundKernel(kernels, layout._map_kernel(kernels), IdentifierError, layout)
        runs["pure"] = lambda count: pure.many(ids[:count], "raise")
    algorithm = layout.config().get("digestAlgorithm")
    if algorithm is not None:
        name, size = DIGESTS[algorithm]
        options = {"digest_size": size} if name == "blake2b" else {}
        new: Any = functools.partial(cast(Any, hashlib.new), name, usedforsecurity=False, **options)
        runs["hashlib"] = lambda count: [new(identifier.encode()).hexdigest() for identifier in ids[:count]]
    return runs


@functools.cache
def _arrow_column() -> Any:
    try:
        pyarrow: Any = importlib.import_module("pyarrow")
    except ImportError:
        return None
    return pyarrow.array(sample_identifiers(), pyarrow.large_utf8())


class _Nowhere:
    """A binary stream that discards all data."""

    def write(self, data: bytes) -> int:
        return len(data)

    def flush(self) -> None:
        pass
