"""OCFL extensions 0003, 0004 and 0012: n-tuple trees from the digest of an identifier."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self, cast

from pressmark import _kernels
from pressmark._kernels.tables import DIGESTS
from pressmark.errors import LayoutConfigError
from pressmark.layouts.base import Boolean, Check, Choice, Integer, Layout, Text, parameter
from pressmark.option_names import parameter_name

__all__ = [
    "HashAndIdNTuple",
    "HashAndNoPrefixIdNTuple",
    "HashedNTuple",
    "check_digest_supported",
    "digest_algorithm",
    "hex_length",
]


#: The algorithms of OCFL's fixity block (OCFL 1.1 section 2.4 and extension 0009), without ``size``.
digest_algorithm = Choice(tuple(DIGESTS))


def hex_length(algorithm: str) -> int:
    """Return the length of a digest of ``algorithm`` in hex digits."""
    return 2 * DIGESTS[algorithm][1]


def check_digest_supported(name: str, algorithm: str) -> None:
    """Check that the kernels or hashlib compute ``algorithm``, the value of the parameter ``name``.

    :raises LayoutConfigError: neither does
    """
    if not _kernels.active.supported(algorithm):
        reason = f"{algorithm} is not in this Python's hashlib; install the native implementation"
        raise LayoutConfigError(parameter_name(name), reason)


@dataclasses.dataclass(frozen=True)
class _Hashed(Layout):
    """The common parameters of the three layouts, and their constraints."""

    digest_algorithm: str = parameter(digest_algorithm, "digest of the identifier", "sha256")
    tuple_size: int = parameter(Integer(0, 32), "hex digits per tuple", 3)
    number_of_tuples: int = parameter(Integer(0, 32), "tuples, one directory each", 3)

    def _check_together(self) -> None:
        check_digest_supported("digest_algorithm", self.digest_algorithm)
        size, number = parameter_name("tuple_size"), parameter_name("number_of_tuples")
        if (self.tuple_size == 0) != (self.number_of_tuples == 0):
            zero, other = (size, number) if self.tuple_size == 0 else (number, size)
            raise LayoutConfigError(zero, f"0 is allowed only if {other} is 0")
        digits = hex_length(self.digest_algorithm)
        if self.tuple_size * self.number_of_tuples > digits:
            raise LayoutConfigError(
                size,
                f"{self.tuple_size} times {number} {self.number_of_tuples} exceeds the {digits} hex digits of"
                f" {self.digest_algorithm}",
            )


@dataclasses.dataclass(frozen=True)
class HashAndIdNTuple(_Hashed):
    """OCFL 0003: digest tuples, then the encoded identifier. Reversible unless truncated at 100 characters.

    With ``delimiters`` it is OCFL 0012, :class:`HashAndNoPrefixIdNTuple`.

    >>> HashAndIdNTuple().map_id("..hor/rib:le-$id")
    '487/326/d8c/%2e%2ehor%2frib%3ale-%24id'
    >>> HashAndIdNTuple(delimiters=["/"]).map_id("..hor/rib:le-$id")
    'a6b/979/238/rib%3ale-%24id'
    """

    name = "0003-hash-and-id-n-tuple-storage-layout"
    summary = "digest tuples, then the encoded identifier"
    specification = (
        "OCFL Community Extension 0003: Hashed Truncated N-tuple Trees with Object ID Encapsulating Directory"
    )
    url = "https://ocfl.github.io/extensions/0003-hash-and-id-n-tuple-storage-layout.html"
    reversibility = "unless truncated"
    escape_mark = "%"

    if TYPE_CHECKING:

        def __init__(
            self,
            digest_algorithm: str = ...,
            tuple_size: int = ...,
            number_of_tuples: int = ...,
            delimiters: Sequence[str] = ...,
        ) -> None: ...

    def __new__(cls, *arguments: Any, **parameters: Any) -> Self:
        layout_class: Any = HashAndNoPrefixIdNTuple if cls is HashAndIdNTuple and "delimiters" in parameters else cls
        return cast(Self, super().__new__(layout_class, *arguments, **parameters))

    def _map_kernel(self, kernels: ModuleType) -> Any:
        return kernels.HashAndIdMap(self.digest_algorithm, self.tuple_size, self.number_of_tuples, [])

    def _unmap_kernel(self, kernels: ModuleType) -> Any:
        return kernels.HashAndIdUnmap(self.digest_algorithm, self.tuple_size, self.number_of_tuples)


class _Texts(Check[tuple[str, ...]]):
    """An array of strings of at least one character."""

    allowed = "an array of strings of at least one character"

    def __call__(self, key: str, value: Any) -> tuple[str, ...]:
        if not isinstance(value, (list, tuple)):
            raise self.refusal(key, value)
        values = tuple(value)
        check = Text(empty=False)
        for one in values:
            if not isinstance(one, str) or not one:
                raise self.refusal(key, list(values))
            check(key, one)
        return values

    def from_text(self, key: str, text: str) -> object:
        """Return the value of a JSON array; any other text is an array of that one string."""
        return super().from_text(key, text) if text.startswith("[") else [text]

    def to_json(self, value: tuple[str, ...]) -> list[str]:
        return list(value)


@dataclasses.dataclass(frozen=True)
class HashAndNoPrefixIdNTuple(HashAndIdNTuple):
    """OCFL 0012: as 0003, after removing the prefix of the identifier. Not reversible.

    >>> HashAndNoPrefixIdNTuple(delimiters=["/"]).map_id("..hor/rib:le-$id")
    'a6b/979/238/rib%3ale-%24id'
    """

    name = "0012-hash-and-no-prefix-id-n-tuple-storage-layout"
    summary = "as 0003, without the prefix of the identifier"
    specification = (
        "OCFL Community Extension 0012: Hashed Truncated N-tuple Trees with Non-prefixed Object ID Encapsulating"
        " Directory"
    )
    url = "https://ocfl.github.io/extensions/0012-hash-and-no-prefix-id-n-tuple-storage-layout.html"
    reversibility = "never"

    delimiters: tuple[str, ...] = parameter(
        _Texts(), "strings that may end the prefix to remove; case-sensitive, the last occurrence counts", ()
    )

    def _map_kernel(self, kernels: ModuleType) -> Any:
        delimiters = [delimiter.encode() for delimiter in self.delimiters]
        return kernels.HashAndIdMap(self.digest_algorithm, self.tuple_size, self.number_of_tuples, delimiters)


@dataclasses.dataclass(frozen=True)
class HashedNTuple(_Hashed):
    """OCFL 0004: digest tuples, then the digest. Not reversible.

    >>> layout = HashedNTuple(digest_algorithm="md5", tuple_size=2, number_of_tuples=15, short_object_root=True)
    >>> layout.map_id("object-01")
    'ff/75/53/44/92/48/5e/ab/b3/9f/86/35/67/28/88/4e'
    """

    name = "0004-hashed-n-tuple-storage-layout"
    summary = "digest tuples, then the digest"
    specification = "OCFL Community Extension 0004: Hashed N-tuple Storage Layout"
    url = "https://ocfl.github.io/extensions/0004-hashed-n-tuple-storage-layout.html"

    short_object_root: bool = parameter(
        Boolean(), "use only the remaining digits as the name of the object root", False
    )

    def _check_together(self) -> None:
        super()._check_together()
        used = self.tuple_size * self.number_of_tuples
        if self.short_object_root and used == hex_length(self.digest_algorithm):
            raise LayoutConfigError(
                parameter_name("short_object_root"), "must be false if the tuples use the whole digest"
            )

    def _map_kernel(self, kernels: ModuleType) -> Any:
        return kernels.HashedMap(self.digest_algorithm, self.tuple_size, self.number_of_tuples, self.short_object_root)
