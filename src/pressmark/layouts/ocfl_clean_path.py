"""OCFL extension 0011: clean paths for identifiers and for logical paths inside objects."""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from pressmark.errors import LayoutConfigError, LayoutConfigWarning, quoted
from pressmark.layouts.base import Boolean, Choice, Integer, Layout, Text, parameter
from pressmark.layouts.ocfl_hashed import check_digest_supported, digest_algorithm, hex_length
from pressmark.option_names import parameter_name

__all__ = ["DirectClean"]

# A replacement must not create segments, end strings or break lines.
_REPLACEMENT = Text(without={"/": "'/'", "\0": "NUL", "\n": "line feed"})

# Parameters of 0011 in the spelling of gocfl, current and former.
_GOCFL_KEYS = {
    "utfEncode": "encodeUTF",
    "maxFilenameLen": "maxPathSegmentLen",
    "fallbackSubdirs": "numberOfFallbackTuples",
    "fallbackSubFolders": "numberOfFallbackTuples",
}
# Defaults of gocfl that differ from those of the document.
_GOCFL_DEFAULTS = {
    "replacementString": "",
    "whitespaceReplacementString": "",
    "fallbackDigestAlgorithm": "sha512",
    "fallbackTupleSize": 0,
}


class _Folder(Text):
    """Plain relative segments."""

    def __init__(self) -> None:
        super().__init__(empty=False)
        self.allowed = "a relative path of plain segments (none empty, '.' or '..', no NUL)"

    def __call__(self, key: str, value: Any) -> str:
        text = super().__call__(key, value)
        if "\0" in text or any(segment in ("", ".", "..") for segment in text.split("/")):
            raise self.refusal(key, value)
        return text


@dataclasses.dataclass(frozen=True)
class DirectClean(Layout):
    """OCFL 0011: dangerous characters are replaced in every segment; a digest replaces paths that are too long.

    The extension is registered for logical paths inside an object; for storage roots only gocfl uses it.
    ``rules="spec"`` follows the text of the specification, as interpreted by its examples. ``rules="gocfl"`` follows
    the Go code of the specification byte for byte, for stores written by gocfl. Reversible under ``encode_utf`` unless
    the fallback was used, except for information that the specification discards: empty segments (``a//b`` has the path
    of ``a/b``) and bytes that are not UTF-8.

    >>> DirectClean().map_id("info:fedora/object-01")
    'info_fedora/object-01'
    >>> DirectClean(encode_utf=True).map_id("info:fedora/object-01")
    'info=u003Afedora/object-01'
    """

    name = "0011-direct-clean-path-layout"
    summary = "the identifier or logical path, cleaned segment by segment"
    specification = "OCFL Community Extension 0011: Direct Clean Path Layout"
    url = "https://ocfl.github.io/extensions/0011-direct-clean-path-layout.html"
    reversibility = "with encodeUTF, unless the fallback was used"
    # gocfl writes these unregistered names for storage roots.
    foreign_names = ("NNNN-direct-clean-path-layout", "NNNN-direct-path-layout")

    max_path_segment_len: int = parameter(Integer(1), "longest segment in bytes", 127)
    max_pathname_len: int = parameter(Integer(1), "longest path in bytes", 32000)
    encode_utf: bool = parameter(Boolean(), "encode dangerous characters as =uXXXX instead of replacing them", False)
    replacement_string: str = parameter(_REPLACEMENT, "replaces dangerous characters and bytes that are not UTF-8", "_")
    whitespace_replacement_string: str = parameter(_REPLACEMENT, "replaces white space, unless encodeUTF is set", " ")
    fallback_digest_algorithm: str = parameter(
        digest_algorithm, "digest algorithm for paths and segments that are too long", "md5"
    )
    fallback_folder: str = parameter(_Folder(), "directory of the fallback paths", "fallback")
    number_of_fallback_tuples: int = parameter(Integer(0), "tuples of the digest, one directory each", 0)
    fallback_tuple_size: int = parameter(Integer(1), "hex digits per tuple of the fallback", 1)
    rules: str = parameter(
        Choice(("spec", "gocfl")), "follow the text of the specification, or its Go code where they differ", "spec"
    )

    @property
    def reversible_when(self) -> str:
        return "unless the fallback was used" if self.encode_utf else "never"

    def _check_together(self) -> None:
        check_digest_supported("fallback_digest_algorithm", self.fallback_digest_algorithm)
        digits = hex_length(self.fallback_digest_algorithm)
        used = self.number_of_fallback_tuples * self.fallback_tuple_size
        if used >= digits:
            raise LayoutConfigError(
                parameter_name("number_of_fallback_tuples"),
                f"{self.number_of_fallback_tuples} times {parameter_name('fallback_tuple_size')}"
                f" {self.fallback_tuple_size} must be less than the {digits} hex digits of"
                f" {self.fallback_digest_algorithm}",
            )
        for name, value in (
            ("replacement_string", self.replacement_string),
            ("whitespace_replacement_string", self.whitespace_replacement_string),
        ):
            # Go's ReplaceAllString expands $name in a replacement, in some steps and not in others.
            if self.rules == "gocfl" and "$" in value:
                raise LayoutConfigError(parameter_name(name), f"{quoted(value)} contains '$', which gocfl expands")

    def config(self) -> dict[str, object]:
        """Return the complete content of a ``config.json``; for gocfl also with its spelling of ``encodeUTF``."""
        config = super().config()
        if self.rules == "gocfl":
            config["utfEncode"] = self.encode_utf
        return config

    @classmethod
    def read_config(cls, config: Mapping[str, object], where: str) -> dict[str, object]:
        """Return the parameters of a ``config.json`` in snake_case; also accept the keys of gocfl."""
        return super().read_config(_from_gocfl(config, where), where)

    def _kernel_parameters(self) -> tuple[Any, ...]:
        return (
            self.encode_utf,
            self.max_path_segment_len,
            self.max_pathname_len,
            self.replacement_string.encode(),
            self.whitespace_replacement_string.encode(),
            self.fallback_digest_algorithm,
            self.fallback_folder.encode(),
            self.number_of_fallback_tuples,
            self.fallback_tuple_size,
            self.rules == "gocfl",
        )

    def _map_kernel(self, kernels: ModuleType) -> Any:
        return kernels.CleanPathMap(*self._kernel_parameters())

    def _unmap_kernel(self, kernels: ModuleType) -> Any:
        return kernels.CleanPathUnmap(*self._kernel_parameters())


def _from_gocfl(keys: Mapping[str, object], where: str) -> dict[str, object]:
    """Return ``keys`` in the spelling of the document."""
    result = {key: value for key, value in keys.items() if key not in _GOCFL_KEYS}
    for old, new in _GOCFL_KEYS.items():
        if old not in keys:
            continue
        if new in result and result[new] != keys[old]:
            raise LayoutConfigError(old, f"contradicts {new}, its spelling in the specification")
        result[new] = keys[old]
    if "utfEncode" in keys and result.get("fallbackTupleSize") == 0:
        # The default of gocfl: empty tuples, which it drops from the path.
        del result["fallbackTupleSize"]
        result["numberOfFallbackTuples"] = 0
    if "utfEncode" in keys and "rules" not in keys:
        absent = {key: value for key, value in _GOCFL_DEFAULTS.items() if key not in result}
        others = "".join(f"; {key} is absent, gocfl uses {json.dumps(value)}" for key, value in absent.items())
        warnings.warn(
            f"{where}: written by gocfl (utfEncode); set rules=gocfl if gocfl also wrote the paths{others}",
            LayoutConfigWarning,
            stacklevel=4,
        )
    return result
