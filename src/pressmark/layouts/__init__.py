"""Layouts: mappings of identifiers to storage paths, by official name or from a configuration file.

The class of a layout is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pressmark.layouts.base import Layout, Parameter
from pressmark.layouts.registry import BUILT_IN, find_layout, layout, layout_from_config, list_layouts

if TYPE_CHECKING:
    from pressmark.layouts.job import MapIds
    from pressmark.layouts.ocfl_clean_path import DirectClean
    from pressmark.layouts.ocfl_direct import FlatDirect
    from pressmark.layouts.ocfl_hashed import HashAndIdNTuple, HashAndNoPrefixIdNTuple, HashedNTuple
    from pressmark.layouts.ocfl_omit_prefix import DifferentialNTupleOmitPrefix, FlatOmitPrefix, NTupleOmitPrefix
    from pressmark.layouts.pairtree import Pairtree, clean, unclean
    from pressmark.layouts.streams import LineCounts
    from pressmark.layouts.vitro import Vitro

__all__ = [
    "DifferentialNTupleOmitPrefix",
    "DirectClean",
    "FlatDirect",
    "FlatOmitPrefix",
    "HashAndIdNTuple",
    "HashAndNoPrefixIdNTuple",
    "HashedNTuple",
    "Layout",
    "LineCounts",
    "MapIds",
    "NTupleOmitPrefix",
    "Pairtree",
    "Parameter",
    "Vitro",
    "clean",
    "find_layout",
    "layout",
    "layout_from_config",
    "list_layouts",
    "unclean",
]

_MODULES = {name: module for module, _, name in (place.partition(":") for place in BUILT_IN.values())}
_MODULES |= {"LineCounts": "streams", "MapIds": "job", "clean": "pairtree", "unclean": "pairtree"}


def __getattr__(name: str) -> Any:
    """Import a layout or another part when it is first used."""
    if name in _MODULES:
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
