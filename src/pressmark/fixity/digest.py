"""Digests of bytes in memory, by every algorithm, with the interface of hashlib."""

from __future__ import annotations

from collections.abc import Iterable

from pressmark.fixity.algorithms import ALGORITHMS, algorithm_names

__all__ = ["Digest", "hash_bytes", "new"]

Buffer = bytes | bytearray | memoryview


class Digest:
    """The computation of one digest, as hashlib has it: see :func:`new`.

    :ivar name: official name of the algorithm
    :ivar digest_size: length of the digest in bytes
    """

    __slots__ = ("_hasher", "digest_size", "name")
    name: str
    digest_size: int

    def __init__(self, name: str, data: Buffer = b"") -> None:
        [self.name] = algorithm_names(name)
        algorithm = ALGORITHMS[self.name]
        self.digest_size = algorithm.size
        self._hasher = algorithm.make(1)
        self.update(data)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.hexdigest()}>"

    def update(self, data: Buffer, /) -> None:
        """Add the bytes of an object such as ``bytes`` or a ``memoryview``."""
        self._hasher.update(data)

    def digest(self) -> bytes:
        """Return the digest of all bytes so far."""
        return bytes.fromhex(self._hasher.hexdigest())

    def hexdigest(self) -> str:
        """Return the digest of all bytes so far, in lower-case hex."""
        return self._hasher.hexdigest()

    def copy(self) -> Digest:
        """Return an independent computation that has the same bytes so far."""
        other = object.__new__(Digest)
        other.name, other.digest_size, other._hasher = self.name, self.digest_size, self._hasher.copy()
        return other


def new(name: str, data: Buffer = b"") -> Digest:
    """Return a new computation of a digest, with ``update``, ``digest``, ``hexdigest`` and ``copy`` as in hashlib.

    >>> import pressmark
    >>> pressmark.fixity.new("xxh3-64", b"abc").hexdigest()
    '78af5f94892f3950'

    :param name: a name accepted by :func:`~pressmark.fixity.algorithm_name`
    :param data: the first bytes
    :raises AlgorithmError: the algorithm is unknown or not available
    """
    return Digest(name, data)


def hash_bytes(data: Buffer, algorithms: Iterable[str] | str = ("sha512",)) -> dict[str, str]:
    """Return the digests of bytes in memory, by the official names of their algorithms, in lower-case hex.

    >>> import pressmark
    >>> pressmark.fixity.hash_bytes(b"abc", ["md5", "xxh32"])
    {'md5': '900150983cd24fb0d6963f7d28e17f72', 'xxh32': '32d153ff'}

    :param algorithms: names accepted by :func:`~pressmark.fixity.algorithm_name`
    :raises AlgorithmError: an algorithm is unknown or not available
    """
    return {name: ALGORITHMS[name].one_shot()(data) for name in algorithm_names(algorithms)}
