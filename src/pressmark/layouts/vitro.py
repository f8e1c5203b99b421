"""Vitro file storage: paths of three-character groups, with namespaces, and encoded file names."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from pressmark.errors import IdentifierError, PathError
from pressmark.layouts.base import NAME_MAX, Check, Layout, Text, parameter
from pressmark.layouts.batch import BoundKernel

__all__ = ["Vitro"]


class _Namespaces(Check[Any]):
    """A mapping of one ASCII letter or digit to a namespace."""

    allowed = "an object from prefixes, one ASCII letter or digit each, to namespaces"

    def __call__(self, key: str, value: Any) -> tuple[tuple[str, str], ...]:
        # A frozen layout stores pairs, which are checked again when it is copied or unpickled.
        pairs = value.items() if isinstance(value, Mapping) else value
        if not isinstance(value, (Mapping, tuple)):
            raise self.refusal(key, value)
        checked = {}
        for pair in pairs:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise self.refusal(key, value)
            prefix, namespace = pair
            if not (isinstance(prefix, str) and re.fullmatch("[0-9A-Za-z]", prefix)):
                raise self.refusal(key, value)
            if not isinstance(namespace, str):
                raise self.refusal(key, value)
            checked[prefix] = Text()(key, namespace)
        return tuple(sorted(checked.items()))

    def to_json(self, value: tuple[tuple[str, str], ...]) -> dict[str, str]:
        return dict(value)


@dataclasses.dataclass(frozen=True)
class Vitro(Layout):
    """Vitro: the encoded identifier in groups of three characters; one file per object.

    Identifiers are Latin-1 text (characters up to U+00FF) after their namespace. Strictly reversible.

    >>> Vitro({"a": "http://vivo.myDomain.edu/file/"}).map_id("http://vivo.myDomain.edu/file/n3424")
    'a~n/342/4'
    """

    name = "vitro"
    summary = "groups of three characters, with namespaces"
    specification = "Package edu.cornell.mannlib.vitro.webapp.filestorage.impl (Vitro file storage)"
    url = "https://github.com/vivo-project/Vitro"
    reversibility = "always"

    namespaces: Mapping[str, str] | tuple[tuple[str, str], ...] = parameter(
        _Namespaces(), "the namespace of each one-character prefix (section Namespaces)", ()
    )

    def _namespace_bytes(self) -> dict[bytes, bytes]:
        return {prefix.encode(): namespace.encode() for prefix, namespace in dict(self.namespaces).items()}

    def _map_kernel(self, kernels: ModuleType) -> Any:
        return kernels.VitroMap(self._namespace_bytes())

    def _unmap_kernel(self, kernels: ModuleType) -> Any:
        return kernels.VitroUnmap(self._namespace_bytes())

    def encode_filename(self, name: str | bytes) -> str:
        """Return the stored name of a file (section Filename encoding).

        ``""``, ``.`` and ``..`` map to themselves; :meth:`object_path` refuses them.

        :raises IdentifierError: a character above U+00FF
        """
        return self._filename_kernel().one(name)

    def _filename_kernel(self) -> BoundKernel:
        return self._bound_kernel("encode filename", lambda k: k.VitroEncodeFilename(), IdentifierError)

    def decode_filename(self, stored: str | bytes) -> str:
        """Return the original name of a stored file; accept hex digits of either case and needless escapes.

        :raises PathError: a ``^`` that is not followed by two hex digits
        """
        return self._bound_kernel("decode filename", lambda k: k.VitroDecodeFilename(), PathError).one(stored)

    def object_path(self, id: str | bytes, filename: str | bytes) -> str:
        """Return the path of the file of an object.

        :raises IdentifierError: the identifier or the file name cannot be stored
        """
        stored = self.encode_filename(filename)
        if stored in ("", ".", ".."):
            raise IdentifierError(filename, None, "not allowed as a file name")
        if len(stored) > NAME_MAX:
            raise IdentifierError(filename, None, f"stored name has {len(stored)} bytes; the limit is {NAME_MAX}")
        return f"{self.map_id(id)}/{stored}"

    def object_paths(self, ids: Sequence[str | bytes], filenames: Sequence[str | bytes]) -> list[str | None]:
        """Return the paths of the files of many objects; :data:`None` where :meth:`object_path` raises an error."""
        stored = self._filename_kernel().many(filenames, "none")
        return [
            None if above is None or name in (None, "", ".", "..") or len(name) > NAME_MAX else f"{above}/{name}"
            for above, name in zip(self.map_ids(ids, on_error="none"), stored, strict=True)
        ]
