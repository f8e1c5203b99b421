"""Pairtree V0.1 (draft-kunze-pairtree-01): paths of character pairs, and names of encapsulating directories."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from pressmark import _kernels
from pressmark.errors import IdentifierError, LayoutConfigError, PathError, quoted, quoted_value
from pressmark.layouts.base import NAME_MAX, Boolean, Check, Choice, Layout, Text, parameter
from pressmark.layouts.batch import BoundKernel
from pressmark.layouts.pairtree_dialects import DIALECTS

__all__ = ["Encapsulation", "Pairtree", "clean", "unclean"]

# The name if a policy gives none, and in the repair of a split end (section 2).
OBJECT = "obj"
_RESERVED_PREFIX = "pairtree"
_SHORTEST = 3


def _unfit(name: str) -> str | None:
    """Return why ``name`` is not allowed for an encapsulating directory, or :data:`None`."""
    from pressmark._kernels.tables import WINDOWS_RESERVED  # mapping alone needs no table

    if len(name) < _SHORTEST:
        return "fewer than three characters; it would extend the ppath"
    if name.startswith(_RESERVED_PREFIX):
        return "names that start with 'pairtree' are reserved"
    if "/" in name or "\0" in name or name == "...":
        return "not a portable directory name"
    if len(name.encode("utf-8", "surrogateescape")) > NAME_MAX:
        return f"more than {NAME_MAX} bytes"
    if name.upper() in WINDOWS_RESERVED:
        return "device name on Windows"
    return None


class Encapsulation(Check[Any]):
    """A policy for the name of the encapsulating directory: ``id``, ``tail:N``, ``fixed:NAME`` or a callable."""

    allowed = "'id', 'tail:N' (N at least 1), 'fixed:NAME' (at least three characters) or a callable"

    def __call__(self, key: str, value: Any) -> Any:
        if callable(value):
            return value
        if not isinstance(value, str):
            raise self.refusal(key, value)
        kind, separator, argument = value.partition(":")
        if kind == "fixed" and separator:
            why = _unfit(argument)
            if why:
                raise LayoutConfigError(key, f"{quoted(value)}: {why}")
        elif not (value == "id" or re.fullmatch("tail:[1-9][0-9]*", value)):
            raise self.refusal(key, value)
        return value

    def from_text(self, _key: str, text: str) -> str:
        return text

    def to_json(self, value: Any) -> str:
        if not isinstance(value, str):
            raise LayoutConfigError("encapsulation", "a callable cannot be part of a configuration file")
        return value


@dataclasses.dataclass(frozen=True)
class Pairtree(Layout):
    """Pairtree: the cleaned identifier in pairs of characters, each a directory.

    Paths are ppaths without the trailing slash and without the encapsulating directory, which
    :meth:`object_path` adds; with ``paths="object"`` they include it. Reversible for identifiers of any bytes.

    >>> Pairtree().map_id("ark:/13030/xt12t3")
    'ar/k+/=1/30/30/=x/t1/2t/3'
    """

    name = "pairtree"
    summary = "pairs of characters of the cleaned identifier"
    specification = "Pairtrees for Object Storage (V0.1), draft-kunze-pairtree-01"
    url = "https://datatracker.ietf.org/doc/html/draft-kunze-pairtree-01"
    reversibility = "always"

    prefix: str = parameter(
        Text(),
        "prefix to remove from every identifier before mapping (section 4); the content of the file pairtree_prefix"
        " of a store",
        "",
    )
    encapsulation: str | Callable[[str], str] = parameter(
        Encapsulation(), "name of the encapsulating directory in object_path (section 2)", "id"
    )
    prefix_required: bool = parameter(
        Boolean(), "refuse identifiers that do not start with the prefix, instead of mapping them whole", True
    )

    paths: str = parameter(
        Choice(("ppath", "object")),
        "paths end with the ppath, or with the encapsulating directory; unmap then accepts the path of a file in it",
        "ppath",
    )
    cleaned: bool = parameter(Boolean(), "identifiers are cleaned already (section 3): split them only", False)
    dialect: str = parameter(
        Choice(("standard", *DIALECTS)), "the cleaning of the specification, or of another program", "standard"
    )

    def _check_together(self) -> None:
        if self.paths == "object" and not isinstance(self.encapsulation, str):
            raise LayoutConfigError("encapsulation", "a callable cannot be combined with paths; use object_path")

    @property
    def is_plain(self) -> bool:
        """Whether paths are ppaths, and identifiers are cleaned as in the specification."""
        return self.paths == "ppath" and not self.cleaned and self.dialect == "standard"

    def check_plain(self) -> None:
        """Refuse settings that a store does not have.

        :raises LayoutConfigError: :attr:`paths`, :attr:`cleaned` or :attr:`dialect` is not the default
        """
        if not self.is_plain:
            raise LayoutConfigError("layout", "paths, cleaned and dialect are for mapping, not for stores; omit them")

    @property
    def reversible_when(self) -> str:
        """The paths for which :meth:`unmap_path` works under this configuration."""
        return "unless the path is ambiguous" if self.dialect == "unpadded-hex" else self.reversibility

    def _map_kernel(self, kernels: ModuleType) -> Any:
        # Forms that few use are mapped in Python in both implementations.
        if self.is_plain:
            return kernels.PairtreeMap(self.prefix.encode(), self.prefix_required)
        return self._form_map(kernels, self._encapsulation_of if self.paths == "object" else None)

    def _form_map(self, kernels: ModuleType, name_of: Callable[[str], str] | None) -> Any:
        from pressmark.layouts.pairtree_forms import FormMap

        return FormMap(kernels, self._cleaning(kernels), self.prefix_required, name_of)

    def _cleaning(self, kernels: ModuleType) -> Any:
        from pressmark.layouts.pairtree_forms import Cleaning

        return Cleaning(kernels, self.prefix, self.dialect, self.cleaned)

    def _unmap_kernel(self, kernels: ModuleType) -> Any:
        if self.is_plain:
            return kernels.PairtreeUnmap(self.prefix.encode())
        from pressmark.layouts.pairtree_forms import FormUnmap

        return FormUnmap(kernels, self._cleaning(kernels), self.dialect == "standard", self.paths == "object")

    def _ppath(self, identifier: str | bytes) -> str:
        """Return the ppath of an identifier, also if :attr:`paths` are paths of objects."""
        if self.paths == "ppath":
            return self.map_id(identifier)
        return self._bound_kernel("ppath", lambda kernels: self._form_map(kernels, None), IdentifierError).one(
            identifier
        )

    def encapsulation_name(self, id: str | bytes) -> str:
        """Return the name of the encapsulating directory (section 2).

        :raises IdentifierError: the identifier has no path, or a callable policy returned a name that is not allowed
        """
        return self._name(id, self._ppath(id))

    def object_path(self, id: str | bytes) -> str:
        """Return the ppath with the encapsulating directory.

        :raises IdentifierError: as :meth:`encapsulation_name`
        """
        ppath = self._ppath(id)
        return f"{ppath}/{self._name(id, ppath)}"

    def object_paths(self, ids: Sequence[str | bytes]) -> list[str | None]:
        """Return the paths of many objects; :data:`None` where :meth:`object_path` raises an error."""
        if self.paths == "object":
            return self.map_ids(ids, on_error="none")
        ppaths = self.map_ids(ids, on_error="none")
        found: list[str | None] = []
        for identifier, ppath in zip(ids, ppaths, strict=True):
            try:
                found.append(None if ppath is None else f"{ppath}/{self._name(identifier, ppath)}")
            except IdentifierError:
                found.append(None)
        return found

    def _name(self, identifier: str | bytes, ppath: str) -> str:
        policy = self.encapsulation
        if not isinstance(policy, str):
            name = policy(_text(identifier))
            why = _unfit(name) if isinstance(name, str) else "not a str"
            if why:
                raise IdentifierError(identifier, None, f"encapsulation name {quoted_value(name)}: {why}")
            return name
        # The ppath without its separators is the cleaned identifier, without the prefix.
        return self._encapsulation_of(ppath.replace("/", ""))

    def _encapsulation_of(self, name: str) -> str:
        """Return the name of the encapsulating directory of a cleaned identifier; the policy is not a callable."""
        kind, _, argument = str(self.encapsulation).partition(":")
        if kind == "fixed":
            return argument
        if kind == "tail":
            name = name[-int(argument) :]
        name = name.rjust(_SHORTEST, "0")
        return OBJECT if _unfit(name) else name

    def split_path(self, path: str | bytes) -> tuple[str, str]:
        """Split a path into a pairtree into the identifier and the rest after its ppath.

        Unlike :meth:`unmap_path`, this accepts repeated slashes, components ``.``, and characters that cleaning would
        have changed.
        Everything up to the last ``pairtree_root`` is dropped. The ppath ends before the first component of more than
        two characters, or after the first component of one character.

        :raises PathError: ``path`` has no ppath or a ``..`` in it, or a ``^`` is not followed by two hex digits
        :raises TypeError: ``path`` is neither ``str`` nor ``bytes``
        """
        if not isinstance(path, (str, bytes)):
            raise TypeError(f"path: expected str or bytes, not {type(path).__name__}")
        from pressmark._kernels.python_kernel import KernelError
        from pressmark._kernels.tables import ErrorCode
        from pressmark.layouts.pairtree_forms import in_path, split

        error_of = self._unmapping().error_of
        try:
            data = path.encode("utf-8", "surrogateescape") if isinstance(path, str) else path
        except UnicodeEncodeError as error:
            raise error_of(path, None, ErrorCode.SURROGATE, error.start) from None
        try:
            components, rest = split(data)
        except KernelError as error:
            raise error_of(path, None, error.code, error.position) from None
        try:
            identifier = self._cleaning(_kernels.active).unclean(b"".join(component for component, _ in components))
        except KernelError as error:
            raise error_of(path, None, error.code, in_path(components, error.position)) from None
        return _text(identifier), _text(rest)

    @staticmethod
    def clean(id: str | bytes) -> str:
        """Return the cleaned identifier: see :func:`pressmark.layouts.pairtree.clean`."""
        return clean(id)

    @staticmethod
    def unclean(text: str | bytes) -> str:
        """Return the identifier of a cleaned text: see :func:`pressmark.layouts.pairtree.unclean`."""
        return unclean(text)


def clean(id: str | bytes) -> str:
    """Return the identifier cleaned but not split (section 3); an empty identifier is returned unchanged.

    >>> clean("what-the-*@?#!^!?")
    'what-the-^2a@^3f#!^5e!^3f'

    :raises IdentifierError: an unpaired surrogate, or more than 1 MiB
    """
    return BoundKernel(_kernels.active, _kernels.active.PairtreeClean(), IdentifierError, Pairtree).one(id)


def unclean(text: str | bytes) -> str:
    """Return the identifier that was cleaned to ``text``: the inverse of :func:`clean`.

    :raises PathError: a ``^`` that is not followed by two hex digits
    """
    return _unclean_kernel().one(text)


def _unclean_kernel() -> BoundKernel:
    return BoundKernel(_kernels.active, _kernels.active.PairtreeUnclean(), PathError, Pairtree)


def _text(item: str | bytes) -> str:
    return item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else item
