"""Pressmark: identifiers to storage paths and back, under every preservation layout in use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pressmark import _kernels
from pressmark.arrow import StringColumn, StringTable
from pressmark.errors import (
    BagError,
    BagInvalidError,
    ColumnError,
    IdentifierError,
    JobError,
    LayoutConfigError,
    LayoutConfigWarning,
    MigrationError,
    NotReversibleError,
    ObjectError,
    PathError,
    PressmarkError,
    ProfileError,
    StoreError,
)
from pressmark.layouts import (
    DifferentialNTupleOmitPrefix,
    DirectClean,
    FlatDirect,
    FlatOmitPrefix,
    HashAndIdNTuple,
    HashAndNoPrefixIdNTuple,
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
    from pressmark import bagit, compare, fixity, jobs, layouts, migrate, stores

__all__ = [
    "BagError",
    "BagInvalidError",
    "ColumnError",
    "DifferentialNTupleOmitPrefix",
    "DirectClean",
    "FlatDirect",
    "FlatOmitPrefix",
    "HashAndIdNTuple",
    "HashAndNoPrefixIdNTuple",
    "HashedNTuple",
    "IdentifierError",
    "JobError",
    "Layout",
    "LayoutConfigError",
    "LayoutConfigWarning",
    "LineCounts",
    "MigrationError",
    "NTupleOmitPrefix",
    "NotReversibleError",
    "ObjectError",
    "Pairtree",
    "PathError",
    "PressmarkError",
    "ProfileError",
    "StoreError",
    "StringColumn",
    "StringTable",
    "Vitro",
    "__version__",
    "bagit",
    "compare",
    "fixity",
    "implementation",
    "jobs",
    "layout",
    "layout_from_config",
    "layouts",
    "migrate",
    "stores",
]

#: Which twin runs, ``"native"`` or ``"pure"``; ``pressmark --version`` says on which vector level, too.
implementation: str

# Parts that a program which only maps identifiers need not wait for.
_LAZY = frozenset({"bagit", "compare", "fixity", "jobs", "migrate", "stores"})


def __getattr__(name: str) -> Any:
    """Import a part of the package when it is first asked for, and say which implementation runs."""
    if name == "implementation":
        return _kernels.active.NAME
    if name in _LAZY:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
