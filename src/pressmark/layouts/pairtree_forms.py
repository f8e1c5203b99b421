"""Pairtree in other forms: object paths, cleaned identifiers and dialects, in Python in both implementations."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

from pressmark._kernels.python_kernel import ItemKernel, KernelError
from pressmark._kernels.tables import MAX_PATH_BYTES, PAIRTREE_CLEANED, ErrorCode
from pressmark.layouts import pairtree_dialects

__all__ = ["Cleaning", "FormMap", "FormUnmap", "in_path", "split"]

_STANDARD = "standard"


def split(path: bytes) -> tuple[list[tuple[bytes, int]], bytes]:
    """Split a path into the components of its ppath, each with its offset, and the rest.

    Everything up to the last ``pairtree_root`` is dropped, and so are components ``.``.
    """
    components = [(match[0], match.start()) for match in re.finditer(rb"[^/]+", path) if match[0] != b"."]
    roots = [number for number, (component, _) in enumerate(components) if component == b"pairtree_root"]
    if roots:
        components = components[roots[-1] + 1 :]
    end = 0
    for component, start in components:
        # Lengths are in characters: some dialects do not escape them.
        length = len(_text(component))
        if length > 2:
            break
        if component == b"..":
            raise KernelError(ErrorCode.SEGMENT_DOTDOT, start)
        end += 1
        if length == 1:
            break
    if not end:
        raise KernelError(ErrorCode.NO_PPATH)
    return components[:end], b"/".join(component for component, _ in components[end:])


class Cleaning:
    """How identifiers are cleaned: by a dialect, or by the caller.

    :param kernels: the implementation
    :param prefix: the prefix of all identifiers, not cleaned
    :param dialect: ``standard`` or one of the dialects
    :param cleaned: identifiers are cleaned already
    """

    def __init__(self, kernels: ModuleType, prefix: str, dialect: str, cleaned: bool) -> None:
        self._kernels = kernels
        self._dialect = dialect
        self._cleaned = cleaned
        self.prefix = self._clean(prefix.encode()) if cleaned else prefix.encode()

    def clean(self, identifier: bytes) -> bytes:
        """Return the cleaned identifier; refuse one that has to be cleaned but is not."""
        if not self._cleaned:
            return self._clean(identifier)
        if self._dialect == _STANDARD:
            uncleanable = identifier.translate(None, _CLEANED)
            if uncleanable:
                raise KernelError(ErrorCode.NOT_CLEANED, identifier.index(uncleanable[0]))
        self._unclean(identifier)
        return identifier

    def unclean(self, cleaned: bytes) -> bytes:
        """Return the identifier of a cleaned text, with the prefix."""
        identifier = self._unclean(cleaned)
        return self.prefix + (cleaned if self._cleaned else identifier)

    def run(self, kernel: Any, item: bytes) -> bytes:
        """Return the result of a kernel for one item."""
        results, errors = kernel(self._kernels.ByteColumn.from_texts((item,))[0])
        if errors:
            raise KernelError(ErrorCode(errors[0][1]), errors[0][2])
        result: bytes = results[0]
        return result

    def _clean(self, identifier: bytes) -> bytes:
        if self._dialect == _STANDARD:
            return self.run(self._kernels.PairtreeClean(), identifier)
        return _bytes(pairtree_dialects.cleaned(self._dialect, _text(identifier)))

    def _unclean(self, cleaned: bytes) -> bytes:
        if self._dialect == _STANDARD:
            return self.run(self._kernels.PairtreeUnclean(), cleaned)
        try:
            return _bytes(pairtree_dialects.read(self._dialect, _text(cleaned)))
        except pairtree_dialects.DialectError as error:
            raise KernelError(ErrorCode.AMBIGUOUS if error.kind == "ambiguous" else ErrorCode.NOT_DIALECT) from None


class FormMap(ItemKernel):
    """Map an identifier to its ppath, or to its object path.

    :param name_of: the name of the encapsulating directory of a cleaned identifier; :data:`None` for ppaths
    """

    def __init__(
        self,
        kernels: ModuleType,
        cleaning: Cleaning,
        prefix_required: bool,
        name_of: Callable[[str], str] | None,
    ) -> None:
        super().__init__(kernels.ByteColumn)
        self.cleaning = cleaning
        self.prefix_required = prefix_required
        self.name_of = name_of

    def convert(self, item: bytes) -> bytes:
        """Return the path of an identifier."""
        if item.startswith(self.cleaning.prefix):
            item = item[len(self.cleaning.prefix) :]
        elif self.prefix_required and item:
            raise KernelError(ErrorCode.PREFIX_MISSING)
        if not item:
            raise KernelError(ErrorCode.EMPTY)
        cleaned = _text(self.cleaning.clean(item))
        components = [cleaned[at : at + 2] for at in range(0, len(cleaned), 2)]
        if self.name_of is not None:
            components.append(self.name_of(cleaned))
        return _bytes("/".join(components))


class FormUnmap(ItemKernel):
    """Map a ppath to its identifier, or with ``in_object`` the path of an object or of a file in it."""

    limit = MAX_PATH_BYTES

    def __init__(self, kernels: ModuleType, cleaning: Cleaning, standard: bool, in_object: bool) -> None:
        super().__init__(kernels.ByteColumn)
        self.kernels = kernels
        self.cleaning = cleaning
        self.standard = standard
        self.in_object = in_object

    def convert(self, item: bytes) -> bytes:
        """Return the identifier of a path."""
        if not item:
            raise KernelError(ErrorCode.EMPTY_PATH)
        if self.in_object:
            found, rest = split(item)
            if not rest:
                raise KernelError(ErrorCode.NO_ENCAPSULATION)
        else:
            found, at = [], 0
            for component in item.removesuffix(b"/").split(b"/"):
                found.append((component, at))
                at += len(component) + 1
            for number, (component, start) in enumerate(found):
                if len(_text(component)) not in ((2,) if number < len(found) - 1 else (1, 2)):
                    raise KernelError(ErrorCode.BAD_COMPONENT, start)
            if self.standard:
                self.cleaning.run(self.kernels.PairtreeUnmap(b""), item)  # refuses what cleaning cannot produce
        try:
            return self.cleaning.unclean(b"".join(component for component, _ in found))
        except KernelError as error:
            raise KernelError(error.code, in_path(found, error.position)) from None


def in_path(components: list[tuple[bytes, int]], position: int) -> int:
    """Return the offset in a path of an offset in its joined components."""
    for component, start in components:
        if 0 <= position < len(component):
            return start + position
        position -= len(component)
    return -1


_CLEANED = bytes(byte for byte in range(256) if PAIRTREE_CLEANED[byte])


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
