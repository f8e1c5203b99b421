"""Columns of pyarrow of any type, chunk, slice and nesting, against lists, in both implementations.

With ``PRESSMARK_FUZZ_MINUTES``, columns are drawn that long.
"""

from __future__ import annotations

import os
import random
import time
from typing import Any

import pytest

from arrow import foreign
from pressmark import FlatDirect, Pairtree
from support.implementations import Implementation, use

ITEMS = [b"", b"a", b"ark:/13030/xt12t3", b"twelve bytes", b"thirteen byte", "\u00e9\u4f8b".encode(), b"b" * 40, None]
TYPES = ["string", "large_string", "string_view", "binary", "large_binary", "binary_view", "null"]
INDICES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"]
COLUMNS = 300

pa: Any = pytest.importorskip("pyarrow", minversion="17")


def drawn(rng: random.Random) -> tuple[list[bytes | None], Any, str | None]:
    """Return the items of a column, the column, and the field of a struct that it is."""
    kind, index = rng.choice(TYPES), rng.choice(INDICES)
    coded, nested, parts = rng.random() < 0.3, rng.random() < 0.3, rng.randrange(4)
    items: list[bytes | None] = []
    chunks: list[Any] = []
    for _ in range(max(1, parts)):
        own, chunk = _array(rng, kind, index if coded else None)
        if nested:
            beside = pa.array(range(len(own)), pa.int64())
            missing = [rng.random() < 0.2 for _ in own] if rng.random() < 0.5 else None
            mask = None if missing is None else pa.array(missing, pa.bool_())
            chunk = pa.StructArray.from_arrays([beside, chunk], ["n", "id"], mask=mask)
            own = [None if missing is not None and missing[number] else one for number, one in enumerate(own)]
        begin = rng.randrange(len(own) + 1)
        end = rng.randrange(begin, len(own) + 1)
        items += own[begin:end]
        chunks.append(chunk.slice(begin, end - begin))
    return items, pa.chunked_array(chunks) if parts else chunks[0], "id" if nested else None


def _array(rng: random.Random, kind: str, index: str | None) -> tuple[list[bytes | None], Any]:
    items: list[bytes | None] = [None if kind == "null" else rng.choice(ITEMS) for _ in range(rng.randrange(30))]
    ahead = rng.randrange(3)
    binary = pa.null() if kind == "null" else pa.binary()
    array = pa.array([*([None] * ahead), *items], binary).cast(getattr(pa, kind)()).slice(ahead)
    if index is None:
        return items, array
    numbers = [rng.choice([None, *range(len(items))]) for _ in range(rng.randrange(30))]
    coded = pa.DictionaryArray.from_arrays(pa.array(numbers, getattr(pa, index)()), array)
    return [None if number is None else items[number] for number in numbers], coded


def test_any_column_has_the_paths_of_a_list(implementations: list[Implementation]) -> None:
    """Native and pure, for every type, dictionary, struct, chunk, slice and offset."""
    end = time.monotonic() + 60 * float(os.environ.get("PRESSMARK_FUZZ_MINUTES", "0"))
    seed = 0
    while seed < COLUMNS or time.monotonic() < end:
        items, column, field = drawn(random.Random(seed))
        for implementation in implementations:
            with use(implementation):
                for layout in (Pairtree(), FlatDirect()):
                    paths = iter(layout.map_ids([item for item in items if item is not None], on_error="none"))
                    expected = [None if item is None else next(paths) for item in items]
                    assert foreign.items_of(column, field) == items, f"seed {seed}, {implementation}, {column.type}"
                    if field is not None:  # a table, of which a program maps one column
                        continue
                    found = list(layout.map(foreign.Opaque(column), on_error="none"))
                    assert found == expected, f"seed {seed}, {implementation}, {column.type}"
        seed += 1
