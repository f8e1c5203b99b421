"""OCFL extension 0002: the identifier is the path."""

from __future__ import annotations

import dataclasses
from types import ModuleType
from typing import Any

from pressmark.layouts.base import Layout

__all__ = ["FlatDirect"]


@dataclasses.dataclass(frozen=True)
class FlatDirect(Layout):
    """OCFL 0002: the identifier unchanged, if it is a safe path. Reversible.

    >>> FlatDirect().map_id("object-01")
    'object-01'
    """

    name = "0002-flat-direct-storage-layout"
    summary = "the identifier itself"
    specification = "OCFL Community Extension 0002: Flat Direct Storage Layout"
    url = "https://ocfl.github.io/extensions/0002-flat-direct-storage-layout.html"
    reversibility = "always"

    def _map_kernel(self, kernels: ModuleType) -> Any:
        return kernels.DirectMap()

    _unmap_kernel = _map_kernel
