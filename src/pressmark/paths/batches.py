"""Columns of paths cut into pieces that the kernels take, from sequences and from Arrow alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from pressmark._kernels.tables import ErrorCode
from pressmark.arrow import PackedColumn, StringColumn
from pressmark.errors import PathError

__all__ = ["Texts", "pieces"]

#: Paths or labels, however they come.
Texts = Sequence[str | bytes] | StringColumn | PackedColumn

# A piece is packed, and looked at, as one.
ITEMS = 1 << 16
OCTETS = 8 << 20


def pieces(kernels: ModuleType, texts: Texts) -> Iterator[tuple[Any, list[int]]]:
    """Yield packed parts of ``texts``, and the indices of nulls in each, which are empty.

    :raises PathError: an item has a lone surrogate that stands for no octet
    :raises TypeError: an item is neither str nor bytes
    """
    if isinstance(texts, (StringColumn, PackedColumn)):
        yield from texts.packed(kernels, ITEMS, OCTETS)
        return
    items = texts if isinstance(texts, (list, tuple)) else list(texts)
    for start in range(0, len(items), ITEMS):
        piece, faults = kernels.ByteColumn.from_texts(items, start, start + ITEMS)
        for index, code, position in faults:
            item = items[start + index]
            if code == ErrorCode.SURROGATE:
                raise PathError(item, start + index, f"the lone surrogate at {position} stands for no octet")
            raise TypeError(f"item {start + index}: expected str or bytes, not {type(item).__name__}")
        yield piece, []
