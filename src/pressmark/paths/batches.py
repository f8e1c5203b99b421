"""Columns of paths, from sequences or Arrow, divided into batches for the kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from pressmark._kernels.tables import ErrorCode
from pressmark.arrow import PackedColumn, StringColumn
from pressmark.errors import PathError

__all__ = ["Texts", "batches"]

#: Columns of paths or labels.
Texts = Sequence[str | bytes] | StringColumn | PackedColumn

# Limits of a batch.
ITEMS = 1 << 16
BYTES = 8 << 20


def batches(kernels: ModuleType, texts: Texts) -> Iterator[tuple[Any, list[int]]]:
    """Yield packed batches of ``texts``, each with the indices of its nulls, which are empty there.

    :raises PathError: an item has an unpaired surrogate
    :raises TypeError: an item is neither str nor bytes
    """
    if isinstance(texts, (StringColumn, PackedColumn)):
        yield from texts.packed(kernels, ITEMS, BYTES)
        return
    items = texts if isinstance(texts, (list, tuple)) else list(texts)
    for start in range(0, len(items), ITEMS):
        batch, faults = kernels.ByteColumn.from_texts(items, start, start + ITEMS)
        for index, code, position in faults:
            item = items[start + index]
            if code == ErrorCode.SURROGATE:
                raise PathError(item, start + index, f"unpaired surrogate at index {position}")
            raise TypeError(f"item {start + index}: expected str or bytes, not {type(item).__name__}")
        yield batch, []
