"""Pairtree V0.1 (draft-kunze-pairtree-01): paths of character pairs, and names of encapsulating directories."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from pressmark import _kernels
from pressmark.errors import IdentifierError, LayoutConfigError, PathError, quoted, quoted_value
from pressmark.layouts.base import NAME_MAX, Boolean, Check, Layout, Text, parameter
from pressmark.layouts.batch import BoundKernel

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


class Encapsulation(Check):
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
    :meth:`object_path` adds. Reversible for identifiers of any bytes.

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

    def _map_kernel(self, kernels: ModuleType) -> Any:
        return kernels.PairtreeMap(self.prefix.encode(), self.prefix_required)

    def _unmap_kernel(self, kernels: ModuleType) -> Any:
        return kernels.PairtreeUnmap(self.prefix.encode())

    def encapsulation_name(self, identifier: str | bytes) -> str:
        """Return the name of the encapsulating directory (section 2).

        :raises IdentifierError: the identifier has no path, or a callable policy returned a name that is not allowed
        """
        return self._name(identifier, self.map_id(identifier))

    def object_path(self, identifier: str | bytes) -> str:
        """Return the ppath with the encapsulating directory.

        :raises IdentifierError: as :meth:`encapsulation_name`
        """
        ppath = self.map_id(identifier)
        return f"{ppath}/{self._name(identifier, ppath)}"

    def object_paths(self, identifiers: Sequence[str | bytes]) -> list[str | None]:
        """Return the paths of many objects; :data:`None` where :meth:`object_path` raises an error."""
        ppaths = self.map_ids(identifiers, on_error="none")
        found: list[str | None] = []
        for identifier, ppath in zip(identifiers, ppaths, strict=True):
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
        kind, _, argument = policy.partition(":")
        if kind == "fixed":
            return argument
        # The ppath without its separators is the cleaned identifier, without the prefix.
        name = ppath.replace("/", "")
        if kind == "tail":
            name = name[-int(argument) :]
        name = name.rjust(_SHORTEST, "0")
        return OBJECT if _unfit(name) else name

    def split_path(self, path: str | bytes) -> tuple[str, str]:
        """Split a path into a pairtree into the identifier and the rest after its ppath.

        Unlike :meth:`unmap_path`, this accepts repeated slashes, and characters that cleaning would have changed.
        Everything up to the last ``pairtree_root`` is dropped. The ppath ends before the first component of more than
        two characters, or after the first component of one character.

        :raises PathError: ``path`` has no ppath, or a ``^`` is not followed by two hex digits
        :raises TypeError: ``path`` is neither ``str`` nor ``bytes``
        """
        if not isinstance(path, (str, bytes)):
            raise TypeError(f"path: expected str or bytes, not {type(path).__name__}")
        bound = _unclean_kernel()
        try:
            data = path.encode("utf-8", "surrogateescape") if isinstance(path, str) else path
        except UnicodeEncodeError as error:
            from pressmark._kernels.tables import ErrorCode

            raise bound.error_of(path, None, ErrorCode.SURROGATE, error.start) from None
        components = [(match[0], match.start()) for match in re.finditer(rb"[^/]+", data)]
        roots = [number for number, (component, _) in enumerate(components) if component == b"pairtree_root"]
        if roots:
            components = components[roots[-1] + 1 :]
        end = 0
        for component, _ in components:
            # Lengths are in characters: other dialects do not escape them.
            length = len(component.decode("utf-8", "surrogateescape"))
            if length > 2:
                break
            end += 1
            if length == 1:
                break
        if not end:
            raise PathError(path, None, "no ppath; it starts with a component of one or two characters")
        found = bound.located(b"".join(component for component, _ in components[:end]))
        if isinstance(found, tuple):
            code, position = found
            # The position is an offset in the joined components; the message needs one in the path.
            for component, start in components:
                if position < len(component):
                    raise bound.error_of(path, None, code, start + position)
                position -= len(component)
        assert isinstance(found, str)
        rest = b"/".join(component for component, _ in components[end:])
        return self.prefix + found, rest.decode("utf-8", "surrogateescape")

    @staticmethod
    def clean(identifier: str | bytes) -> str:
        """Return the cleaned identifier: see :func:`pressmark.layouts.pairtree.clean`."""
        return clean(identifier)

    @staticmethod
    def unclean(text: str | bytes) -> str:
        """Return the identifier of a cleaned text: see :func:`pressmark.layouts.pairtree.unclean`."""
        return unclean(text)


def clean(identifier: str | bytes) -> str:
    """Return the identifier cleaned but not split (section 3); an empty identifier is returned unchanged.

    >>> clean("what-the-*@?#!^!?")
    'what-the-^2a@^3f#!^5e!^3f'

    :raises IdentifierError: an unpaired surrogate, or more than 1 MiB
    """
    return BoundKernel(_kernels.active, _kernels.active.PairtreeClean(), IdentifierError, Pairtree).one(identifier)


def unclean(text: str | bytes) -> str:
    """Return the identifier that was cleaned to ``text``: the inverse of :func:`clean`.

    :raises PathError: a ``^`` that is not followed by two hex digits
    """
    return _unclean_kernel().one(text)


def _unclean_kernel() -> BoundKernel:
    return BoundKernel(_kernels.active, _kernels.active.PairtreeUnclean(), PathError, Pairtree)


def _text(item: str | bytes) -> str:
    return item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else item
