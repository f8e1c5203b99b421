"""All counts of a comparison are over distinct identifiers: repetitions, blanks, refused ones, every kind of input."""

from __future__ import annotations

import io
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paths import naive
from pressmark.compare import Comparison, LayoutResult, compare
from pressmark.errors import IdentifierError
from pressmark.layouts import Layout, blocks
from pressmark.paths import name_violation
from support.implementations import Implementation

from . import samples

LAYOUTS = samples.layouts()
# Short, so that drawn lists repeat; each layout refuses or shares some of them.
DRAWN: list[str | bytes] = [
    *("", ".", "..", "a", "A", "a.x", "b.x", "B.x", "a.x/c", "a/b", "a//b", "x.a.b", "y.a.b", "é.1", "é.1", "É.1"),
    *(
        "con",
        "a:b",
        " a",
        "a ",
        "long" * 70,
        "short",
        "druid.gh875jh5489",
        "fallback/ab",
        b"\xff.1",
        b"\xff.2",
        b"caf\xe9",
    ),
]
SURROGATES = ["\ud800", "a\udfff"]


def encoded(item: str | bytes) -> bytes:
    return (
        item.encode("utf-8", "surrogatepass" if item in SURROGATES else "surrogateescape")
        if isinstance(item, str)
        else item
    )


def path_of(layout: Layout, item: str | bytes) -> bytes | None:
    try:
        return os.fsencode(layout.map_id(item))
    except IdentifierError:
        return None


def expected(items: list[str | bytes], layout: Layout) -> dict[str, Any]:
    """Return the counts of one layout from the definitions alone."""
    distinct = list(dict.fromkeys(map(encoded, items)))
    by_bytes = {encoded(item): item for item in items}
    paths = [path for one in distinct if (path := path_of(layout, by_bytes[one])) is not None]
    totals = dict(zip(("paths", *COUNTS), naive.totals(paths), strict=True))
    return {
        **{name: totals[name] for name in COUNTS},
        "distinct paths": len(set(paths)),
        "groups": sum(times > 1 for times in Counter(paths).values()),
        "mapped": len(paths),
        "unmapped": len(distinct) - len(paths),
        "refused": sum(name_violation(path, "windows") is not None for path in paths),
        "lengths": sorted(Counter(map(len, paths)).items()),
    }


COUNTS = ("equal", "case", "normalization", "folded", "inside", "inside_exact")


def counted(result: LayoutResult) -> dict[str, Any]:
    """Return the same counts of a comparison."""
    collisions = result.collisions
    for groups in collisions.first.values():
        for group in groups:
            assert len({member.id for member in group.members}) == len(group.members) > 1
    return {
        **{name: getattr(collisions, name) for name in COUNTS},
        "distinct paths": collisions.paths,
        "groups": collisions.groups["equal"],
        "mapped": result.mapped,
        "unmapped": result.unmapped.count,
        "refused": result.refused["windows"].count,
        "lengths": list(result.lengths.path_bytes.histogram),
    }


def of_input(items: list[str | bytes]) -> tuple[int, ...]:
    """Return the counts of the input: all, distinct, blank, repeated and how often these occur."""
    times = Counter(map(encoded, items))
    blank = times.pop(b"", 0)
    repeated = [count for count in times.values() if count > 1]
    return len(items), len(times) + bool(blank), blank, len(repeated), sum(repeated)


def of_comparison(found: Comparison) -> tuple[int, ...]:
    return found.identifiers, found.distinct, found.blank, found.repeated, found.duplicates


def arrow(items: list[str | bytes]) -> Any:
    pyarrow = pytest.importorskip("pyarrow")
    # Nulls are no identifiers.
    return pyarrow.array([one for item in items for one in (encoded(item), None)], pyarrow.binary())


def lines(items: list[str | bytes]) -> Any:
    return io.BytesIO(b"".join(encoded(item) + b"\n" for item in items))


@pytest.mark.parametrize("source", [list, iter, lines, arrow])
@pytest.mark.parametrize("threads", [1, 3])
def test_counts_are_those_of_the_definitions(
    implementation: Implementation,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: Callable[[list[str | bytes]], Any],
    threads: int,
) -> None:
    """Random lists with repetitions, blanks and refused identifiers, in blocks of several sizes."""
    drawn = random.Random(f"{source.__name__} {threads}")
    pool = DRAWN + (SURROGATES if source in (list, iter) else [])
    for size in (0, 1, 2, 3, 8, 30, 120):
        for _ in range(2):
            items = [drawn.choice(pool) for _ in range(size)]
            monkeypatch.setattr(blocks, "ITEMS", drawn.choice([1, 3, 1 << 16]))
            found = compare(
                source(items),
                list(LAYOUTS.values()),
                threads=threads,
                memory=drawn.choice([1, 3000, 1 << 20]),
                folder=tmp_path,
            )
            assert of_comparison(found) == of_input(items)
            for result, layout in zip(found.layouts, LAYOUTS.values(), strict=True):
                assert counted(result) == expected(items, layout), (items, layout)
    assert os.listdir(tmp_path) == []


def test_repetitions_and_blanks_hide_no_collision(implementation: Implementation) -> None:
    """Identifiers that share a path are counted whatever else repeats."""
    ids = ["a.x", "b.x", "c.y", "c.y", "", "", "", "d.z", "d.z"]
    (result,) = compare(ids, [LAYOUTS["0012"]]).layouts
    assert (result.collisions.equal, result.collisions.groups["equal"]) == (2, 1)
    assert (result.mapped, result.unmapped.count) == (4, 1)


def test_an_example_is_the_first_occurrence(implementation: Implementation) -> None:
    """The number of an example is that of the first occurrence in the input, with nulls and repetitions counted."""
    found = compare(["b.x", "", "b.x", "a.x", "\ud800", "\ud800", ""], [LAYOUTS["0012"]])
    (result,) = found.layouts
    assert [(one.number, one.id) for one in result.unmapped.first] == [(1, ""), (4, "\ud800")]
    assert [(one.number, one.id) for one in result.collisions.first["equal"][0].members] == [
        (0, "b.x"),
        (3, "a.x"),
    ]
    assert (found.duplicates, found.repeated, found.blank) == (4, 2, 2)


def test_many_repetitions(implementation: Implementation) -> None:
    """An identifier that occurs very often does not hide the others."""
    ids = ["x.y"] * 70_000 + ["z.y"]
    found = compare(iter(ids), [LAYOUTS["0012"], LAYOUTS["0002"]], memory=100_000)
    assert of_comparison(found) == (70_001, 2, 0, 1, 70_000)
    assert [result.collisions.equal for result in found.layouts] == [2, 0]
