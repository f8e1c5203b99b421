"""Pressmark: identifiers to storage paths and back, under every preservation layout in use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pressmark import _kernels
from pressmark.columns import StringColumn, StringTable
from pressmark.errors import (
    ColumnError,
    IdentifierError,
    LayoutConfigError,
    LayoutConfigWarning,
    NotReversibleError,
    PathError,
    PressmarkError,
)
from pressmark.layouts import (
    DifferentialNTupleOmitPrefix,
    DirectClean,
    FlatDirect,
    FlatOmitPrefix,
    HashAndIdNTuple,
    HashedNTuple,
    Layout,
    LineCounts,
    NTupleOmitPrefix,
    Pairtree,
    Vitro,
    layout,
    layout_from_config,
)
from pressmark.version import __version__

if TYPE_CHECKING:
    from pressmark import fixity

__all__ = [
    "ColumnError",
    "DifferentialNTupleOmitPrefix",
    "DirectClean",
    "FlatDirect",
    "FlatOmitPrefix",
    "HashAndIdNTuple",
    "HashedNTuple",
    "IdentifierError",
    "Layout",
    "LayoutConfigError",
    "LayoutConfigWarning",
    "LineCounts",
    "NTupleOmitPrefix",
    "NotReversibleError",
    "Pairtree",
    "PathError",
    "PressmarkError",
    "StringColumn",
    "StringTable",
    "Vitro",
    "__version__",
    "fixity",
    "implementation",
    "layout",
    "layout_from_config",
]

#: Which twin runs, ``"native"`` or ``"pure"``, and on which vector level (``pressmark --version`` says both).
implementation: str = _kernels.active.NAME

# Parts that a program which only maps identifiers need not wait for.
_LAZY = frozenset({"fixity"})


def __getattr__(name: str) -> Any:
    """Import a part of the package when it is first asked for."""
    if name in _LAZY:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
