"""Layouts by official name, and the reading of configuration files."""

from __future__ import annotations

import dataclasses
import json
import os
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

from pressmark.errors import LayoutConfigError, LayoutConfigWarning, quoted
from pressmark.layouts.base import Layout, Parameter
from pressmark.layouts.ocfl_clean_path import DirectClean
from pressmark.layouts.ocfl_direct import FlatDirect
from pressmark.layouts.ocfl_hashed import HashAndIdNTuple, HashedNTuple
from pressmark.layouts.ocfl_omit_prefix import DifferentialNTupleOmitPrefix, FlatOmitPrefix, NTupleOmitPrefix
from pressmark.layouts.pairtree import Pairtree
from pressmark.layouts.parameters import Texts, camel_case, unknown_key
from pressmark.layouts.vitro import Vitro

__all__ = ["REGISTRY", "Entry", "entry", "layout", "layout_from_config"]


class Entry(NamedTuple):
    """A name of the registry: the class behind it, and the parameters that the name itself settles."""

    name: str
    cls: type[Layout]
    summary: str
    reversible: str
    settled: Mapping[str, Any]
    hidden: tuple[str, ...] = ()

    @property
    def alias(self) -> str | None:
        """The four digits of an OCFL extension."""
        return self.name[:4] if self.name[:4].isdigit() else None

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the parameters that this name takes, with this name's defaults."""
        return tuple(
            dataclasses.replace(parameter, default=self.settled.get(parameter.name, parameter.default))
            for parameter in _all_parameters(self.cls)
            if parameter.name not in self.hidden
        )


def _all_parameters(cls: type[Layout]) -> tuple[Parameter, ...]:
    # What a class declares does not depend on an instance, and a required parameter keeps one from being made.
    return Layout.parameters(cls)  # type: ignore[arg-type]


#: Every layout, in the order of the specifications' numbers.
REGISTRY: dict[str, Entry] = {
    e.name: e
    for e in (
        Entry("pairtree", Pairtree, "pairs of characters of the cleaned identifier", "always", {}),
        Entry("vitro", Vitro, "groups of three characters, with namespaces", "always", {}),
        Entry("0002-flat-direct-storage-layout", FlatDirect, "the identifier itself", "always", {}),
        Entry(
            "0003-hash-and-id-n-tuple-storage-layout",
            HashAndIdNTuple,
            "digest tuples, then the encoded identifier",
            "unless truncated",
            {},
            ("delimiters",),
        ),
        Entry("0004-hashed-n-tuple-storage-layout", HashedNTuple, "digest tuples, then the digest", "never", {}),
        Entry("0006-flat-omit-prefix-storage-layout", FlatOmitPrefix, "the identifier without its prefix", "never", {}),
        Entry(
            "0007-n-tuple-omit-prefix-storage-layout",
            NTupleOmitPrefix,
            "tuples of the identifier without its prefix, then that",
            "never",
            {},
        ),
        Entry(
            "0010-differential-n-tuple-omit-prefix-storage-layout",
            DifferentialNTupleOmitPrefix,
            "segments of different sizes of the identifier without its prefix",
            "never",
            {},
        ),
        Entry(
            "0011-direct-clean-path-layout",
            DirectClean,
            "the identifier or logical path, cleaned segment by segment",
            "with encodeUTF, unless the fallback was taken",
            {},
        ),
        Entry(
            "0012-hash-and-no-prefix-id-n-tuple-storage-layout",
            HashAndIdNTuple,
            "as 0003, without the identifier's prefix",
            "never",
            {"delimiters": ()},
        ),
    )
}

_ALIASES = {e.alias: e for e in REGISTRY.values() if e.alias}
# gocfl writes these unregistered names for storage roots (rules/ocfl.md section 1.1); they are read, never written.
_READ_ALIASES = {
    "NNNN-direct-clean-path-layout": "0011-direct-clean-path-layout",
    "NNNN-direct-path-layout": "0011-direct-clean-path-layout",
}
# How gocfl spells, or once spelled, parameters of 0011 (section 1.2 there).
_GOCFL_KEYS = {
    "utfEncode": "encodeUTF",
    "maxFilenameLen": "maxPathSegmentLen",
    "fallbackSubdirs": "numberOfFallbackTuples",
    "fallbackSubFolders": "numberOfFallbackTuples",
}
# What gocfl takes for a key that is absent, where that is not the document's default.
_GOCFL_DEFAULTS = {
    "replacementString": "",
    "whitespaceReplacementString": "",
    "fallbackDigestAlgorithm": "sha512",
    "fallbackTupleSize": 0,
}


def entry(name: str) -> Entry:
    """Return the registry's entry for an official name or a four-digit alias.

    :raises LayoutConfigError: nothing is called so
    """
    found = REGISTRY.get(_READ_ALIASES.get(name, name)) or _ALIASES.get(name)
    if found is None:
        known = ", ".join(e.alias or e.name for e in REGISTRY.values())
        raise LayoutConfigError("layout", f"unknown layout {quoted(str(name))}; known are {known}")
    return found


def layout(name: str, **parameters: Any) -> Layout:
    """Return the layout called ``name`` (official name or four-digit alias).

    >>> layout("0012", delimiters=[":"]).map_id("prefix:object-01")
    '3c0/ff4/240/object-01'

    :param parameters: its parameters in snake_case
    :raises LayoutConfigError: unknown name or parameter, wrong type, value out of range
    """
    found = entry(name)
    known = [parameter.name for parameter in found.parameters()]
    for key, value in parameters.items():
        if key not in known:
            raise unknown_key(key, known)
        if value is None and key in found.settled:
            # To the class, absent delimiters mean another layout.
            raise LayoutConfigError(camel_case(key), f"null is not {Texts.allowed}")
    return found.cls(**{**found.settled, **parameters})


def layout_from_config(config: str | os.PathLike[str] | Mapping[str, Any], **overrides: Any) -> Layout:
    """Return the layout of an OCFL extension's ``config.json``, given as a file's path or as its mapping.

    ``extensionName`` decides which. The spellings of gocfl for 0011 are understood, with a
    :class:`LayoutConfigWarning` where gocfl would take another default for a key that is absent.

    :param overrides: parameters in snake_case that replace those of the file
    :raises LayoutConfigError: not a JSON object, no or an unknown ``extensionName``, or a refused parameter
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
        raise LayoutConfigError(where, "no extensionName, which says what layout this is")
    found = entry(name)
    if found.cls is DirectClean:
        keys = _from_gocfl(keys, where)
    by_key = {parameter.key: parameter.name for parameter in found.parameters()}
    parameters = {}
    for key, value in keys.items():
        if key not in by_key:
            raise unknown_key(key, by_key)
        parameters[by_key[key]] = value
    return layout(found.name, **{**parameters, **overrides})


def _from_gocfl(keys: dict[str, Any], where: str) -> dict[str, Any]:
    """Return ``keys`` in the document's spelling."""
    result = {key: value for key, value in keys.items() if key not in _GOCFL_KEYS}
    for old, new in _GOCFL_KEYS.items():
        if old not in keys:
            continue
        if new in result and result[new] != keys[old]:
            raise LayoutConfigError(old, f"contradicts {new}, its name in the specification")
        result[new] = keys[old]
    if "utfEncode" in keys and result.get("fallbackTupleSize") == 0:
        # gocfl's own default: tuples of nothing, which its joining of paths drops.
        del result["fallbackTupleSize"]
        result["numberOfFallbackTuples"] = 0
    if "utfEncode" in keys and "rules" not in keys:
        absent = {key: value for key, value in _GOCFL_DEFAULTS.items() if key not in result}
        others = "".join(f"; {key} is absent, gocfl takes {json.dumps(value)}" for key, value in absent.items())
        warnings.warn(
            f"{where}: written by gocfl (utfEncode); give rules=gocfl if its code wrote the paths too{others}",
            LayoutConfigWarning,
            stacklevel=3,
        )
    return result
