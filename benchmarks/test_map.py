"""Map identifiers to paths and back: every layout, from lists, lines and Arrow columns, beside a yardstick.

The yardstick of a layout with digests is ``hashlib`` over the same identifiers, of the others ``str.upper``. Every path
is compared with that of the pure implementation: see ``checksums.py``.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks import checksums, corpora
from benchmarks.calls import map_lines, unmap_column, unmap_list
from benchmarks.cases import CASES, Case, Collection
from benchmarks.conftest import Measure
from benchmarks.inputs import INPUTS, checksum
from pressmark.layouts import Layout

YARDSTICKS = {"0003-sha256": "sha256", "0003-md5": "md5", "0003-sha512": "sha512", "0004": "sha256", "0012": "sha256"}
THREADED = ("pairtree", "0003-sha256")
REVERSIBLE = ("pairtree", "0011-encode")


def collection_of(case: Case) -> Collection:
    return Collection("druid" if case.name == "0010" else corpora.real_or_made("hathitrust"))


def title(case: Case, kind: str) -> str:
    return f"map {case.name}, {kind}"


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("name", CASES)
def test_map(measure: Measure, implementation: str, name: str, kind: str, count: int) -> None:
    map_with(measure, CASES[name], kind, count, 1)


@pytest.mark.parametrize("kind", ["lines", "arrow"])
@pytest.mark.parametrize("name", THREADED)
@pytest.mark.parametrize("threads", [1, 2])
def test_threads(measure: Measure, name: str, kind: str, threads: int, count: int) -> None:
    map_with(measure, CASES[name], kind, 20 * count, threads, f"map {name}, {kind}, many on threads")


def map_with(measure: Measure, case: Case, kind: str, count: int, threads: int, group: str = "") -> None:
    collection = collection_of(case)
    corpus = collection.load(count)
    one, layout = INPUTS[kind], case.make(corpus.delimiter)
    prepared = one.prepare(corpus.ids)
    wanted = checksums.expected(case.name, collection, count)

    def check(made: Any) -> None:
        assert checksum(one.paths(made)) == wanted.sha256, f"{case.name}, {kind}: wrong paths"

    action = functools.partial(one.run, layout, prepared, threads)
    measure.call(group or title(case, kind), action, check=check, ids=count)


@pytest.mark.yardstick
@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("name", CASES)
def test_yardstick(measure: Measure, name: str, kind: str, count: int) -> None:
    case = CASES[name]
    ids = collection_of(case).load(count).ids
    digest = YARDSTICKS.get(name)
    action: Callable[[], list[str]] = functools.partial(upper, ids)
    if digest:
        action = functools.partial(digests, getattr(hashlib, digest), ids)
    measure.call(title(case, kind), action, check=lambda made: len(made) == count, ids=count)


@pytest.mark.yardstick
@pytest.mark.parametrize("into", ["kept memory", "new memory"])
@pytest.mark.parametrize("name", THREADED)
def test_memory(measure: Measure, name: str, into: str, count: int) -> None:
    """Copy as many bytes as the Arrow output has, into memory that is there, or that the system must provide."""
    case, kind = CASES[name], INPUTS["arrow"]
    corpus = collection_of(case).load(count)
    made = kind.run(case.make(corpus.delimiter), kind.prepare(corpus.ids), 1)
    size = sum(map(len, kind.paths(made))) + 8 * (count + 1)
    source, kept = ctypes.create_string_buffer(b"x" * size, size), ctypes.create_string_buffer(size)
    action: Callable[[], Any] = functools.partial(ctypes.memmove, kept, source, size)
    if into == "new memory":
        action = functools.partial(bytes, memoryview(source))
    measure.call(title(case, "arrow"), action, check=lambda _copy: True, ids=count, MB=size / 1e6)


def upper(ids: list[str]) -> list[str]:
    return list(map(str.upper, ids))


def digests(algorithm: Callable[..., Any], ids: list[str]) -> list[str]:
    return [algorithm(identifier.encode()).hexdigest() for identifier in ids]


# --- back to identifiers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("name", REVERSIBLE)
def test_unmap(measure: Measure, implementation: str, name: str, kind: str, count: int) -> None:
    corpus = collection_of(CASES[name]).load(count)
    layout = CASES[name].make(corpus.delimiter)
    paths = layout.map_ids(corpus.ids)
    one = INPUTS[kind]
    prepared = one.prepare(paths)

    def check(made: Any) -> None:
        assert list(one.paths(made)) == [identifier.encode() for identifier in corpus.ids]

    measure.call(f"unmap {name}, {kind}", lambda: unmapped(layout, kind, prepared), check=check, ids=count)


def unmapped(layout: Layout, kind: str, prepared: Any) -> Any:
    if kind == "list":
        return unmap_list(layout, prepared)
    if kind == "arrow":
        return unmap_column(layout, prepared, threads=1)
    return map_lines(layout, prepared, 1, unmap=True)


@pytest.mark.parametrize("name", ["pairtree", "0003-sha256"])
def test_one(measure: Measure, implementation: str, name: str) -> None:
    """One identifier a call, as in a loop."""
    layout = CASES[name].make(".")
    ids = corpora.load("hathitrust", 100).ids

    def each() -> list[str]:
        return [layout.map_id(identifier) for identifier in ids]

    wanted = layout.map_ids(ids)
    measure.call(f"map {name}, one at a time", each, check=lambda made: assert_equal(made, wanted), ids=len(ids))


def assert_equal(made: Any, wanted: Any) -> None:
    assert made == wanted
