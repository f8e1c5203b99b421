"""Pressmark: identifiers to storage paths and back, under every preservation layout in use."""

from __future__ import annotations

from pressmark import _kernels
from pressmark.errors import (
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

__all__ = [
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
    "Vitro",
    "__version__",
    "implementation",
    "layout",
    "layout_from_config",
]

#: Which twin runs, ``"native"`` or ``"pure"``, and on which vector level (``pressmark --version`` says both).
implementation: str = _kernels.active.NAME
