"""Layouts: one module a family, a registry by official name, configuration in and out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pressmark.layouts.base import Layout, Parameter
from pressmark.layouts.ocfl_clean_path import DirectClean
from pressmark.layouts.ocfl_direct import FlatDirect
from pressmark.layouts.ocfl_hashed import HashAndIdNTuple, HashedNTuple
from pressmark.layouts.ocfl_omit_prefix import DifferentialNTupleOmitPrefix, FlatOmitPrefix, NTupleOmitPrefix
from pressmark.layouts.pairtree import Pairtree, clean, unclean
from pressmark.layouts.registry import REGISTRY, Entry, entry, layout, layout_from_config
from pressmark.layouts.streams import LineCounts
from pressmark.layouts.vitro import Vitro

if TYPE_CHECKING:
    from pressmark.layouts.job import MapIds

__all__ = [
    "REGISTRY",
    "DifferentialNTupleOmitPrefix",
    "DirectClean",
    "Entry",
    "FlatDirect",
    "FlatOmitPrefix",
    "HashAndIdNTuple",
    "HashedNTuple",
    "Layout",
    "LineCounts",
    "MapIds",
    "NTupleOmitPrefix",
    "Pairtree",
    "Parameter",
    "Vitro",
    "clean",
    "entry",
    "layout",
    "layout_from_config",
    "unclean",
]


def __getattr__(name: str) -> Any:
    """Import the job when it is first asked for."""
    if name == "MapIds":
        from pressmark.layouts.job import MapIds

        return MapIds
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
