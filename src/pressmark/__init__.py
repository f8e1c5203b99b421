"""Pressmark: identifiers to storage paths and back, under every preservation layout in use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pressmark import _kernels
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

if TYPE_CHECKING:
    from pressmark import bagit, compare, fixity, jobs, layouts, migrate, stores
    from pressmark.arrow import StringColumn, StringTable
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

#: Which implementation runs, ``"native"`` or ``"pure"``; ``pressmark --version`` adds the vector level.
implementation: str
#: The version of Pressmark.
__version__: str

_PACKAGES = frozenset({"bagit", "compare", "fixity", "jobs", "layouts", "migrate", "stores"})
_COLUMNS = frozenset({"StringColumn", "StringTable"})


def __getattr__(name: str) -> Any:
    """Import a part of the package when it is first used."""
    if name == "implementation":
        return _kernels.active.NAME
    if name == "__version__":
        from pressmark.version import __version__

        return __version__
    if name in _PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{'arrow' if name in _COLUMNS else 'layouts'}")
    globals()[name] = getattr(module, name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)
