"""OCFL 0003, 0004 and 0012: tuples of the identifier's digest."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pressmark._kernels.pure.column import Inverse, Kernel, KernelError
from pressmark._kernels.pure.digests import hexdigest_function
from pressmark._kernels.pure.text import decode_utf8, unescape
from pressmark._kernels.tables import (
    ENCAPSULATION_LONGEST,
    ENCAPSULATION_SAFE,
    MAX_IDENTIFIER_BYTES,
    MAX_PATH_BYTES,
    ErrorCode,
)

__all__ = ["HashAndIdMap", "HashAndIdUnmap", "HashedMap"]

_UNSAFE = re.compile(b"[^" + re.escape(bytes(o for o in range(256) if ENCAPSULATION_SAFE[o])) + b"]")


def _percent(match: re.Match[bytes]) -> bytes:
    return b"%%%02x" % match[0][0]


class _Tuples(Kernel):
    """Base of the three layouts: ``number_of_tuples`` pieces of ``tuple_size`` from the start of the digest."""

    def __init__(self, algorithm: str, tuple_size: int, number_of_tuples: int) -> None:
        super().__init__(MAX_IDENTIFIER_BYTES)
        self.hexdigest = hexdigest_function(algorithm)
        self.used = tuple_size * number_of_tuples
        self.spans = [slice(start, start + tuple_size) for start in range(0, self.used, tuple_size or 1)]

    def tuples(self, digest: bytes) -> list[bytes]:
        return [digest[span] for span in self.spans]


class HashAndIdMap(_Tuples):
    """OCFL 0003, and with ``delimiters`` 0012: digest tuples, then the percent-encoded identifier."""

    def __init__(self, algorithm: str, tuple_size: int, number_of_tuples: int, delimiters: Sequence[bytes]) -> None:
        super().__init__(algorithm, tuple_size, number_of_tuples)
        self.delimiters = delimiters

    def map(self, item: bytes) -> bytes:
        if not item:
            raise KernelError(ErrorCode.EMPTY)
        text = decode_utf8(item)
        rest = self.without_prefix(item, text) if self.delimiters else item
        digest = self.hexdigest(rest)
        name = _UNSAFE.sub(_percent, rest)
        if len(name) > ENCAPSULATION_LONGEST:
            name = name[:ENCAPSULATION_LONGEST] + b"-" + digest
        return b"/".join([*self.tuples(digest), name])

    def without_prefix(self, identifier: bytes, text: str) -> bytes:
        """OCFL 0012, procedure step 1: return the rest after the last delimiter that is not at the end."""
        # A delimiter must end before the last character, which may be several bytes.
        before_last = len(identifier) - len(text[-1].encode())
        end = 0
        for delimiter in self.delimiters:
            found = identifier.rfind(delimiter, 0, before_last)
            if found >= 0:
                end = max(end, found + len(delimiter))
        return identifier[end:]


class HashedMap(_Tuples):
    """OCFL 0004: digest tuples, then the digest or its rest."""

    def __init__(self, algorithm: str, tuple_size: int, number_of_tuples: int, short_root: bool) -> None:
        super().__init__(algorithm, tuple_size, number_of_tuples)
        self.name_start = self.used if short_root else 0

    def map(self, item: bytes) -> bytes:
        if not item:
            raise KernelError(ErrorCode.EMPTY)
        decode_utf8(item)
        digest = self.hexdigest(item)
        return b"/".join([*self.tuples(digest), digest[self.name_start :]])


class _EncapsulationDecode(Kernel):
    """The lenient half of the inverse: percent-decodes the last segment."""

    def __init__(self) -> None:
        super().__init__(MAX_PATH_BYTES)

    def map(self, item: bytes) -> bytes:
        if not item:
            raise KernelError(ErrorCode.EMPTY_PATH)
        start = item.rfind(b"/") + 1
        name = item[start:]
        if len(name) > ENCAPSULATION_LONGEST:
            raise KernelError(ErrorCode.TRUNCATED, len(name))
        try:
            return unescape(name, b"%")
        except KernelError as error:
            raise KernelError(error.code, start + error.position) from None


class HashAndIdUnmap(Inverse):
    """The strict inverse of OCFL 0003: checks the digest tuples against the decoded identifier."""

    def __init__(self, algorithm: str, tuple_size: int, number_of_tuples: int) -> None:
        super().__init__(_EncapsulationDecode(), HashAndIdMap(algorithm, tuple_size, number_of_tuples, ()))
