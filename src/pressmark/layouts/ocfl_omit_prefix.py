"""OCFL extensions 0006, 0007 and 0010: paths from the identifier without its prefix."""

from __future__ import annotations

import dataclasses
from types import ModuleType
from typing import Any

from pressmark.layouts.base import LARGEST_INTEGER, Boolean, Check, Choice, Integer, Layout, Text, parameter

__all__ = ["DifferentialNTupleOmitPrefix", "FlatOmitPrefix", "NTupleOmitPrefix"]

_DELIMITER = "string that ends the prefix to remove; ASCII case is ignored, the last occurrence counts"


@dataclasses.dataclass(frozen=True)
class FlatOmitPrefix(Layout):
    """OCFL 0006: the identifier without its prefix. Not reversible.

    >>> FlatOmitPrefix(delimiter=":").map_id("namespace:12887296")
    '12887296'
    """

    name = "0006-flat-omit-prefix-storage-layout"
    summary = "the identifier without its prefix"
    specification = "OCFL Community Extension 0006: Flat Omit Prefix Storage Layout"
    url = "https://ocfl.github.io/extensions/0006-flat-omit-prefix-storage-layout.html"

    delimiter: str = parameter(Text(empty=False), _DELIMITER)

    def _map_kernel(self, kernels: ModuleType) -> Any:
        return kernels.FlatOmitPrefixMap(self.delimiter.encode())


@dataclasses.dataclass(frozen=True)
class NTupleOmitPrefix(Layout):
    """OCFL 0007: tuples of the zero-padded, optionally reversed identifier without its prefix, then the identifier
    without its prefix. ASCII only; not reversible.

    >>> NTupleOmitPrefix(tuple_size=4, number_of_tuples=2, reverse_object_root=True).map_id("namespace:12887296")
    '6927/8821/12887296'
    """

    name = "0007-n-tuple-omit-prefix-storage-layout"
    summary = "tuples of the identifier without its prefix, then the rest"
    specification = "OCFL Community Extension 0007: N Tuple Omit Prefix Storage Layout"
    url = "https://ocfl.github.io/extensions/0007-n-tuple-omit-prefix-storage-layout.html"

    delimiter: str = parameter(Text(empty=False), _DELIMITER, ":")
    tuple_size: int = parameter(Integer(1, 32), "characters per tuple", 3)
    number_of_tuples: int = parameter(Integer(1, 32), "tuples, one directory each", 3)
    zero_padding: str = parameter(Choice(("left", "right")), "pad short identifiers with zeros on this side", "left")
    reverse_object_root: bool = parameter(
        Boolean(), "reverse the padded identifier before it is split into tuples", False
    )

    def _map_kernel(self, kernels: ModuleType) -> Any:
        return kernels.NTupleOmitPrefixMap(
            self.delimiter.encode(),
            self.tuple_size,
            self.number_of_tuples,
            self.zero_padding == "left",
            self.reverse_object_root,
        )


class _Integers(Check[tuple[int, ...]]):
    """A non-empty array of integers, each at least ``first``."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.allowed = f"an array of one or more integers from {first} to {LARGEST_INTEGER}"

    def __call__(self, key: str, value: Any) -> tuple[int, ...]:
        if not isinstance(value, (list, tuple)):
            raise self.refusal(key, value)
        values = tuple(value)
        if not values or any(type(one) is not int or not self.first <= one <= LARGEST_INTEGER for one in values):
            raise self.refusal(key, list(values))
        return values

    def to_json(self, value: tuple[int, ...]) -> list[int]:
        return list(value)


@dataclasses.dataclass(frozen=True)
class DifferentialNTupleOmitPrefix(Layout):
    """OCFL 0010: the identifier without its prefix, in segments of different sizes. ASCII only; not reversible.

    >>> DifferentialNTupleOmitPrefix().map_id("druid:gh875jh5489")
    'gh/875/jh/5489'
    """

    name = "0010-differential-n-tuple-omit-prefix-storage-layout"
    summary = "the identifier without its prefix, in segments of different sizes"
    specification = "OCFL Community Extension 0010: Differential N-Tuple Omit Prefix Storage Layout"
    url = "https://ocfl.github.io/extensions/0010-differential-n-tuple-omit-prefix-storage-layout.html"

    delimiter: str = parameter(Text(empty=False), _DELIMITER, ":")
    tuple_segment_sizes: tuple[int, ...] = parameter(_Integers(1), "characters per segment", (2, 3, 2, 4))
    full_identifier_as_object_root: bool = parameter(
        Boolean(), "use the whole identifier without its prefix as the name of the object root", False
    )

    def _map_kernel(self, kernels: ModuleType) -> Any:
        return kernels.DifferentialMap(
            self.delimiter.encode(), self.tuple_segment_sizes, self.full_identifier_as_object_root
        )
