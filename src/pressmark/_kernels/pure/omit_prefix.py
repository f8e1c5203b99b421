"""OCFL 0006, 0007 and 0010: the rest after the right-most delimiter is the name of the object."""

from __future__ import annotations

from collections.abc import Sequence

from pressmark._kernels.pure.column import Kernel, KernelError
from pressmark._kernels.pure.text import checked_path, decode_utf8
from pressmark._kernels.tables import ASCII_FIRST, ASCII_LAST, MAX_IDENTIFIER_BYTES, ErrorCode

__all__ = ["DifferentialMap", "FlatOmitPrefixMap", "NTupleOmitPrefixMap"]

_ASCII = bytes(range(ASCII_FIRST, ASCII_LAST + 1))
# "Case-insensitive" means ASCII only: other case folding changes lengths, and offsets must stay valid.
_LOWER = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz")


def _check_ascii(identifier: bytes) -> None:
    outside = identifier.translate(None, _ASCII)
    if outside:
        raise KernelError(ErrorCode.NOT_ASCII, identifier.index(outside[0]))


class _OmitPrefix(Kernel):
    """Base of the three layouts: removes the prefix up to and including the right-most delimiter."""

    def __init__(self, delimiter: bytes) -> None:
        super().__init__(MAX_IDENTIFIER_BYTES)
        self.delimiter = delimiter.translate(_LOWER)

    def without_prefix(self, identifier: bytes) -> bytes:
        if not identifier:
            raise KernelError(ErrorCode.EMPTY)
        found = identifier.translate(_LOWER).rfind(self.delimiter)
        if found < 0:
            return identifier
        end = found + len(self.delimiter)
        if end == len(identifier):
            raise KernelError(ErrorCode.DELIMITER_AT_END, found)
        return identifier[end:]


class FlatOmitPrefixMap(_OmitPrefix):
    """OCFL 0006: the rest is the path."""

    def map(self, item: bytes) -> bytes:
        decode_utf8(item)
        return checked_path(self.without_prefix(item))


class NTupleOmitPrefixMap(_OmitPrefix):
    """OCFL 0007: tuples of the padded and optionally reversed rest, then the rest."""

    def __init__(self, delimiter: bytes, tuple_size: int, number_of_tuples: int, pad_left: bool, reverse: bool) -> None:
        super().__init__(delimiter)
        self.tuple_size = tuple_size
        self.needed = tuple_size * number_of_tuples
        self.pad_left = pad_left
        self.reverse = reverse

    def map(self, item: bytes) -> bytes:
        _check_ascii(item)
        rest = self.without_prefix(item)
        padded = rest.rjust(self.needed, b"0") if self.pad_left else rest.ljust(self.needed, b"0")
        if self.reverse:
            padded = padded[::-1]
        tuples = [padded[start : start + self.tuple_size] for start in range(0, self.needed, self.tuple_size)]
        return checked_path(b"/".join([*tuples, rest]))


class DifferentialMap(_OmitPrefix):
    """OCFL 0010: segments of the given sizes, which must add up to the rest, then optionally the rest."""

    def __init__(self, delimiter: bytes, sizes: Sequence[int], full_identifier: bool) -> None:
        super().__init__(delimiter)
        self.sizes = sizes
        self.full_identifier = full_identifier

    def map(self, item: bytes) -> bytes:
        _check_ascii(item)
        rest = self.without_prefix(item)
        if len(rest) != sum(self.sizes):
            raise KernelError(ErrorCode.WRONG_LENGTH, len(rest))
        segments, start = [], 0
        for size in self.sizes:
            segments.append(rest[start : start + size])
            start += size
        if self.full_identifier:
            segments.append(rest)
        return checked_path(b"/".join(segments))
