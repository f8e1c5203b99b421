"""Layouts: mappings of identifiers to storage paths, by official name or from a configuration file.

The class of a layout is imported when it is first used.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pressmark.errors import LayoutConfigError, quoted
from pressmark.layouts.base import CLASSES, Layout as Layout, Parameter as Parameter
from pressmark.lazy import face

if TYPE_CHECKING:
    from pressmark.layouts.ocfl_clean_path import DirectClean as DirectClean
    from pressmark.layouts.ocfl_direct import FlatDirect as FlatDirect
    from pressmark.layouts.ocfl_hashed import (
        HashAndIdNTuple as HashAndIdNTuple,
        HashAndNoPrefixIdNTuple as HashAndNoPrefixIdNTuple,
        HashedNTuple as HashedNTuple,
    )
    from pressmark.layouts.ocfl_omit_prefix import (
        DifferentialNTupleOmitPrefix as DifferentialNTupleOmitPrefix,
        FlatOmitPrefix as FlatOmitPrefix,
        NTupleOmitPrefix as NTupleOmitPrefix,
    )
    from pressmark.layouts.pairtree import Pairtree as Pairtree, clean as clean, unclean as unclean
    from pressmark.layouts.streams import LineCounts as LineCounts
    from pressmark.layouts.vitro import Vitro as Vitro

__all__, __getattr__, __dir__ = face(
    __name__,
    {
        ".ocfl_clean_path": "DirectClean",
        ".ocfl_direct": "FlatDirect",
        ".ocfl_hashed": "HashAndIdNTuple HashAndNoPrefixIdNTuple HashedNTuple",
        ".ocfl_omit_prefix": "DifferentialNTupleOmitPrefix FlatOmitPrefix NTupleOmitPrefix",
        ".pairtree": "Pairtree clean unclean",
        ".streams": "LineCounts",
        ".vitro": "Vitro",
    },
    "Layout Parameter find_layout layout layout_from_config list_layouts",
)

# The layouts of this package in the order of list_layouts(), by the first part of their names.
_BUILT_IN = {
    "pairtree": "Pairtree",
    "vitro": "Vitro",
    "0002": "FlatDirect",
    "0003": "HashAndIdNTuple",
    "0004": "HashedNTuple",
    "0006": "FlatOmitPrefix",
    "0007": "NTupleOmitPrefix",
    "0010": "DifferentialNTupleOmitPrefix",
    "0011": "DirectClean",
    "0012": "HashAndNoPrefixIdNTuple",
}


def list_layouts() -> tuple[type[Layout], ...]:
    """Return the class of every layout: those of this package, then every other subclass of ``Layout`` with a name."""
    return tuple(dict.fromkeys([*map(__getattr__, _BUILT_IN.values()), *CLASSES.values()]))


def find_layout(name: str) -> type[Layout]:
    """Return the class of the layout ``name``, an official name or a four-digit alias.

    :raises LayoutConfigError: no layout has this name
    """
    key = name if name in _BUILT_IN else name[:4]
    for cls in (__getattr__(_BUILT_IN[key]),) if key in _BUILT_IN else list_layouts():
        if name in (cls.name, cls.alias, *cls.foreign_names):
            return cls
    known = ", ".join(cls.alias or cls.name for cls in list_layouts())
    raise LayoutConfigError("layout", f"unknown layout {quoted(str(name))}; known layouts: {known}")


# A comma inside a value does not separate settings.
_NEXT_SETTING = re.compile(r",(?=[A-Za-z]+=)")


def find_with_settings(text: str) -> tuple[type[Layout], list[str]]:
    """Return the class of the layout ``NAME[:KEY=VALUE,...]``, and each ``KEY=VALUE``.

    :raises LayoutConfigError: no layout has this name
    """
    name, colon, settings = text.partition(":")
    return find_layout(name), _NEXT_SETTING.split(settings) if colon else []


def layout(name: str, **parameters: Any) -> Layout:
    """Return the layout ``name``, an official name or a four-digit alias.

    The name may have parameters as on the command line, with the keys of the specification.

    >>> layout("0012", delimiters=[":"]).map("prefix:object-01")
    '3c0/ff4/240/object-01'
    >>> layout("0003:tupleSize=2,numberOfTuples=2").map("object-01")
    '3c/0f/object-01'

    :param parameters: the layout's parameters in snake_case; they replace those of the name
    :raises LayoutConfigError: a name or parameter is unknown, a value has the wrong type or is out of range
    """
    cls, settings = find_with_settings(name)
    cls.check_names(parameters)  # a parameter that selects another class is unknown here
    return cls(**{**cls.read_settings(settings), **parameters})


def layout_from_config(config: str | os.PathLike[str] | Mapping[str, Any], **overrides: Any) -> Layout:
    """Return the layout that an OCFL extension's ``config.json`` describes.

    The key ``extensionName`` determines the layout. For 0011 the keys of gocfl are accepted, with a
    :class:`LayoutConfigWarning` if gocfl has a different default for a missing key.

    :param config: the path of the file, or its content as a mapping
    :param overrides: parameters in snake_case that replace those of the file
    :raises LayoutConfigError: not a JSON object, ``extensionName`` is absent or unknown, or a parameter is refused
    :raises OSError: the file cannot be read
    """
    where = "config"
    if not isinstance(config, Mapping):
        where = os.fspath(config)
        with open(where, "rb") as file:
            content = file.read()
        try:
            config = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise LayoutConfigError(where, f"not JSON: {error}") from None
        if not isinstance(config, dict):
            raise LayoutConfigError(where, "not a JSON object")
    keys = dict(config)
    name = keys.pop("extensionName", None)
    if not isinstance(name, str):
        raise LayoutConfigError(where, "no extensionName; it is required to choose the layout")
    cls = find_layout(name)
    cls.check_names(overrides)
    return cls(**{**cls.read_config(keys, where), **overrides})
