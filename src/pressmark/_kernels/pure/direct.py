"""OCFL 0002: the identifier is the path, if it is safe."""

from __future__ import annotations

from pressmark._kernels.pure.column import Kernel
from pressmark._kernels.pure.text import checked_path, decode_utf8
from pressmark._kernels.tables import MAX_IDENTIFIER_BYTES

__all__ = ["DirectMap"]


class DirectMap(Kernel):
    """Map an identifier to itself; this is its own inverse."""

    def __init__(self) -> None:
        super().__init__(MAX_IDENTIFIER_BYTES)

    def map(self, item: bytes) -> bytes:
        decode_utf8(item)
        return checked_path(item)
