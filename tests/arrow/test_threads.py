"""Threads: the results, errors and order do not depend on their number."""

from __future__ import annotations

import random
import threading

import pytest

from arrow import foreign
from arrow.foreign import Array, Stream, changed, strings
from pressmark import ColumnError, HashAndIdNTuple, IdentifierError, Layout, Pairtree, arrow as columns
from support.implementations import NATIVE, Implementation

pytestmark = pytest.mark.usefixtures("_under")


@pytest.fixture(autouse=True)
def _short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make parts short, so that short columns have many."""
    monkeypatch.setattr(columns, "PART_ITEMS", 10)
    monkeypatch.setattr(columns, "MANY_BYTES", 100)


def items(count: int, seed: int = 1) -> list[bytes | None]:
    generator = random.Random(seed)
    return [
        None if generator.random() < 0.1 else b"%x" % generator.getrandbits(generator.choice((4, 60, 200)))
        for _ in range(count)
    ]


@pytest.mark.parametrize(
    ("layout", "threads"),
    [
        *((Pairtree(), threads) for threads in (1, 2, 3, 8, None)),
        *((HashAndIdNTuple(), threads) for threads in (1, 8)),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_same_result(layout: Layout, threads: int | None) -> None:
    """Long chunks are split, short ones merged; order is kept."""
    for sizes in ((1000,), (0, 3, 4, 5, 300, 1, 0, 40), (1,) * 50):
        parts = [items(size, size) for size in sizes]
        every = [item for part in parts for item in part]
        expected = [None if item is None else layout.map_id(item) for item in every]
        for form in ("u", "U", "vu"):
            arrays = [strings(part, form, ahead=number % 9) for number, part in enumerate(parts)]
            column = layout.map(Stream(arrays[0], *arrays), threads=threads)
            assert column.to_list() == expected
            assert [None if item is None else item.decode() for item in foreign.read_array(column).items] == expected


def test_parts() -> None:
    """One thread keeps the chunks of a stream; several split a long one."""
    array = strings(items(1000))
    assert Pairtree().map(Array(array), threads=1).chunk_count == 1
    assert Pairtree().map(Array(array), threads=2).chunk_count == 8
    assert Pairtree().map(Array(strings(items(9))), threads=2).chunk_count == 1


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_first_error(implementation: Implementation, threads: int) -> None:
    """The first failing item is reported, even if a later one or the column itself fails sooner."""
    parts = [items(500), [b"a"] * 3 + [b""] + [b"b"] * 400, [b""] * 100]
    arrays = [strings(part) for part in parts]
    broken = ([*arrays[:2], changed(arrays[0], length=-1)], (5, b"gone"))
    # pyarrow reads the whole stream, and sees later data first.
    for arrays_behind, failure in ((arrays, None), *([broken] if implementation == NATIVE else [])):
        with pytest.raises(IdentifierError) as caught:
            Pairtree().map(Stream(arrays[0], *arrays_behind, failure=failure), threads=threads)
        assert caught.value.index == 503
    with pytest.raises(ColumnError, match="gone"):
        Pairtree().map(Stream(arrays[0], arrays[0], failure=(5, b"gone")), threads=threads)


def test_one_layout_in_many_threads() -> None:
    """A layout may map columns in several threads at once."""
    array = strings(items(300))
    layout = Pairtree()
    expected = layout.map(Array(array)).to_list()
    found: list[bool] = []

    def work() -> None:
        found.extend(layout.map(Array(array), threads=2).to_list() == expected for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 20
