"""Layouts: mappings of identifiers to storage paths, by official name or from a configuration file.

The class of a layout is imported when it is first used.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from pressmark.errors import LayoutConfigError, quoted
from pressmark.layouts.base import (
    CLASSES,
    Boolean as Boolean,
    Check as Check,
    Choice as Choice,
    Integer as Integer,
    Layout as Layout,
    Parameter as Parameter,
    Text as Text,
    parameter as parameter,
)
from pressmark.lazy import face
from pressmark.option_names import named_by_key

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

#: The value of a parameter of a layout.
ParameterValue: TypeAlias = "str | int | bool | Sequence[str | int] | Mapping[str, str] | Callable[[str], str] | None"

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
    "Boolean Check Choice Integer Layout Parameter Text find_layout layout layout_from_config list_layouts parameter",
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


def find_built_in(name: str) -> type[Layout] | None:
    """Return the class of this package that has ``name``."""
    key = name if name in _BUILT_IN else name[:4]
    if key in _BUILT_IN:
        cls: type[Layout] = __getattr__(_BUILT_IN[key])
        if name in (cls.name, cls.alias, *cls.foreign_names):
            return cls
    return None


def list_layouts(errors: list[LayoutConfigError] | None = None) -> tuple[type[Layout], ...]:
    """Return the class of every layout: of this package, then other subclasses of ``Layout``, then of entry points.

    :param errors: receives the error of each entry point that does not lead to a layout; such a one is left out
    """
    from pressmark.layouts.entry_points import find_entry_points, load_layout, refusal

    own: dict[str, type[Layout]] = {cls.name: cls for cls in map(__getattr__, _BUILT_IN.values())}
    for name, entry in find_entry_points().items():
        try:
            if find_built_in(name) is not None:
                raise refusal(entry, "Pressmark has a layout of this name; rename the entry point")
            load_layout(entry)
        except LayoutConfigError as error:
            if errors is not None:
                errors.append(error)
    # Ours first, also where another class has taken the name of one.
    return tuple((own | CLASSES | own).values())


def find_layout(name: str) -> type[Layout]:
    """Return the class of the layout ``name``, an official name or a four-digit alias.

    Other names are those of subclasses of ``Layout``, and of entry points of the group ``pressmark.layouts``.

    :raises LayoutConfigError: no layout has this name, or its entry point does not lead to a layout
    """
    own = find_built_in(name)
    if own is not None:
        return own
    defined: list[type[Layout]] = [*map(__getattr__, _BUILT_IN.values()), *CLASSES.values()]
    for cls in defined:
        if name in (cls.name, cls.alias, *cls.foreign_names):
            return cls
    # Entry points are looked up only for names that are not ours: reading them takes longer than mapping.
    from pressmark.layouts.entry_points import find_entry_points, load_layout

    entries = find_entry_points()
    if name in entries:
        return load_layout(entries[name])
    known = ", ".join(dict.fromkeys([*(cls.alias or cls.name for cls in defined), *entries]))
    raise LayoutConfigError("layout", f"unknown layout {quoted(str(name))}; known layouts: {known}")


# A comma inside a value does not separate settings.
_NEXT_SETTING = re.compile(r",(?=[A-Za-z]+=)")


def find_with_settings(text: str) -> tuple[type[Layout], list[str]]:
    """Return the class of the layout ``NAME[:KEY=VALUE,...]``, and each ``KEY=VALUE``.

    :raises LayoutConfigError: no layout has this name
    """
    name, colon, settings = text.partition(":")
    return find_layout(name), _NEXT_SETTING.split(settings) if colon else []


def layout(name: str, **parameters: ParameterValue) -> Layout:
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
    if not settings:
        return cls(**parameters)
    with named_by_key(except_for=parameters):
        return cls(**{**cls.read_settings(settings), **parameters})


def as_layout(value: Layout | str | None) -> Layout | None:
    """Return the layout of an argument that is a layout or its name; :data:`None` for :data:`None`.

    :raises LayoutConfigError: no layout has this name
    :raises TypeError: the argument is something else
    """
    if value is None or isinstance(value, Layout):
        return value
    if not isinstance(value, str):
        raise TypeError(f"layout: expected a layout or its name, such as 0003, not {type(value).__name__}")
    return layout(value)


def layout_from_config(config: str | os.PathLike[str] | Mapping[str, object], **overrides: ParameterValue) -> Layout:
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
    with named_by_key(except_for=overrides):
        return cls(**{**cls.read_config(keys, where), **overrides})
