"""The digest algorithms: their names, sizes and implementations for a single message.

The names are those of OCFL and BagIt. All algorithms are from hashlib, except BLAKE3 and the xxHash family, which are
from the packages ``blake3`` and ``xxhash``.
"""

from __future__ import annotations

import copy
import errno
import os
import re
import zlib
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

from pressmark.errors import AlgorithmError

__all__ = [
    "ALGORITHMS",
    "CHECKSUMS",
    "Algorithm",
    "Hasher",
    "algorithm_name",
    "algorithm_names",
    "algorithms_in_name",
    "algorithms_of_size",
    "implementation",
]


class Hasher(Protocol):
    """The computation of a digest, as in hashlib."""

    def update(self, data: Any, /) -> object:
        """Add the bytes of ``data``."""

    def hexdigest(self) -> str:
        """Return the digest in lower-case hex."""

    def copy(self) -> Self:
        """Return an independent computation that has the same bytes so far."""


class Algorithm(NamedTuple):
    """A digest algorithm.

    :ivar name: official name
    :ivar size: length of a digest in bytes
    :ivar tag: name in lines of the BSD format
    :ivar make: returns a new :class:`Hasher`; the argument is the number of threads per update (BLAKE3 only)
    :ivar direct: returns a function for the digest of a small message, if that is faster than reading a file of its
        size; otherwise :data:`None`
    """

    name: str
    size: int
    tag: str
    make: Callable[[int], Hasher]
    direct: Callable[[], Callable[[Any], str]] | None = None

    def one_shot(self) -> Callable[[Any], str]:
        """Return a function for the digest of a message, in lower-case hex."""
        if self.direct is not None:
            return self.direct()

        def hexdigest(data: Any) -> str:
            hasher = self.make(1)
            hasher.update(data)
            return hasher.hexdigest()

        return hexdigest


def _hashlib(name: str, _threads: int) -> Hasher:
    # Not for security: a FIPS build must compute the md5 of an old manifest. The named functions start ten times faster
    # than hashlib.new, which matters for small files.
    import hashlib  # with OpenSSL: other algorithms do not need it

    begin: Callable[..., Hasher] | None = getattr(hashlib, name, None)
    try:
        return hashlib.new(name, usedforsecurity=False) if begin is None else begin(usedforsecurity=False)
    except ValueError:
        if name not in _IN_EVERY_PYTHON:
            raise
        # Its library was to be loaded while no descriptor was free.
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE)) from None


def _blake2b(size: int, _threads: int) -> Hasher:
    import hashlib

    return hashlib.blake2b(digest_size=size)


def _blake3(threads: int) -> Hasher:
    # Imported on first use: most runs do not need it.
    import blake3

    made: Hasher = blake3.blake3(max_threads=threads)
    return made


def _blake3_direct() -> Callable[[Any], str]:
    from blake3 import blake3

    def hexdigest(data: Any) -> str:
        digest: str = blake3(data).hexdigest()
        return digest

    return hexdigest


def _xxhash(name: str, _threads: int) -> Hasher:
    import xxhash

    made: Hasher = getattr(xxhash, name)()
    return made


def _xxhash_direct(name: str) -> Callable[[Any], str]:
    import xxhash

    made: Callable[[Any], str] = getattr(xxhash, f"{name}_hexdigest")
    return made


#: Every algorithm by its official name, such as ``sha512/256``.
ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("md5", 16, "MD5", partial(_hashlib, "md5")),
        Algorithm("sha1", 20, "SHA1", partial(_hashlib, "sha1")),
        Algorithm("sha224", 28, "SHA224", partial(_hashlib, "sha224")),
        Algorithm("sha256", 32, "SHA256", partial(_hashlib, "sha256")),
        Algorithm("sha384", 48, "SHA384", partial(_hashlib, "sha384")),
        Algorithm("sha512", 64, "SHA512", partial(_hashlib, "sha512")),
        Algorithm("sha512/256", 32, "SHA512/256", partial(_hashlib, "sha512_256")),
        Algorithm("sha3-224", 28, "SHA3-224", partial(_hashlib, "sha3_224")),
        Algorithm("sha3-256", 32, "SHA3-256", partial(_hashlib, "sha3_256")),
        Algorithm("sha3-384", 48, "SHA3-384", partial(_hashlib, "sha3_384")),
        Algorithm("sha3-512", 64, "SHA3-512", partial(_hashlib, "sha3_512")),
        Algorithm("blake2b-160", 20, "BLAKE2b-160", partial(_blake2b, 20)),
        Algorithm("blake2b-256", 32, "BLAKE2b-256", partial(_blake2b, 32)),
        Algorithm("blake2b-384", 48, "BLAKE2b-384", partial(_blake2b, 48)),
        # b2sum writes its default length without a number.
        Algorithm("blake2b-512", 64, "BLAKE2b", partial(_blake2b, 64)),
        Algorithm("blake2s", 32, "BLAKE2s", partial(_hashlib, "blake2s")),
        Algorithm("blake3", 32, "BLAKE3", _blake3, _blake3_direct),
        Algorithm("xxh32", 4, "XXH32", partial(_xxhash, "xxh32"), partial(_xxhash_direct, "xxh32")),
        Algorithm("xxh64", 8, "XXH64", partial(_xxhash, "xxh64"), partial(_xxhash_direct, "xxh64")),
        Algorithm("xxh3-64", 8, "XXH3", partial(_xxhash, "xxh3_64"), partial(_xxhash_direct, "xxh3_64")),
        Algorithm("xxh128", 16, "XXH128", partial(_xxhash, "xxh128"), partial(_xxhash_direct, "xxh128")),
    )
}


class _Crc32:
    def __init__(self, _threads: int) -> None:
        self._value = 0

    def update(self, data: Any) -> None:
        self._value = zlib.crc32(data, self._value)

    def copy(self) -> Self:
        return copy.copy(self)

    def hexdigest(self) -> str:
        return f"{self._value:08x}"


#: Checksums of archives, which are no algorithms of manifests.
CHECKSUMS: dict[str, Algorithm] = {"crc32": Algorithm("crc32", 4, "CRC32", _Crc32)}


def implementation(name: str) -> Algorithm:
    """Return the algorithm or checksum of an official name."""
    return ALGORITHMS.get(name) or CHECKSUMS[name]


# Every Python has these; asking hashlib would load OpenSSL, which the kernels do without.
_IN_EVERY_PYTHON = frozenset({"sha224", "sha256", "sha384", "sha512"})
_IGNORED = str.maketrans("", "", "-_/. ")


def _key(name: str) -> str:
    # ASCII only: str.lower maps other characters to ASCII letters.
    return name.lower().translate(_IGNORED) if name.isascii() else name


_BY_KEY: dict[str, str] = {_key(name): name for name in ALGORITHMS} | {
    "blake2b": "blake2b-512",
    "blake2s256": "blake2s",
    "b2": "blake2b-512",
    "b3": "blake3",
    "sha512t256": "sha512/256",
    "xxh3": "xxh3-64",
    "xxh3128": "xxh128",
    # openssl dgst -r and OpenSSL 3's own lines
    "sha2224": "sha224",
    "sha2256": "sha256",
    "sha2384": "sha384",
    "sha2512": "sha512",
    "sha2512256": "sha512/256",
}


def algorithm_name(name: str) -> str:
    """Return the official name of an algorithm: ``sha256`` for ``SHA-256``.

    Case, hyphens, underscores, slashes, full stops and spaces are ignored.

    :raises AlgorithmError: the algorithm is unknown
    """
    try:
        return _BY_KEY[_key(name)]
    except KeyError:
        raise AlgorithmError(name, f"unknown; choose from {', '.join(ALGORITHMS)}") from None


def algorithm_names(names: Iterable[str] | str) -> tuple[str, ...]:
    """Return the official names of ``names``, without repetition, in order; a :class:`str` is one name.

    :raises AlgorithmError: an algorithm is unknown or not available, or ``names`` is empty
    """
    given = [names] if isinstance(names, str) else list(names)
    found = tuple(dict.fromkeys(map(algorithm_name, given)))
    if not found:
        raise AlgorithmError("", "no algorithm given")
    for name in found:
        if name in _IN_EVERY_PYTHON:
            continue
        try:
            ALGORITHMS[name].make(1)
        except (ValueError, ImportError) as error:
            raise AlgorithmError(name, f"not available in this installation: {error}") from None
    return found


# SHA512SUMS, manifest-md5.txt, x.sha1, b3sum; SHASUMS256.txt is that of Node.js. The short names of BLAKE mean nothing
# without "sum", unless they are the extension.
_IN_NAME = re.compile(
    r"(?<![a-z0-9])(?:("
    r"md-?5|sha-?1|sha-?(?:2-?)?(?:224|256|384|512(?:[-_t]?256)?)|sha-?3[-_]?(?:224|256|384|512)"
    r"|blake-?2b(?:[-_]?(?:160|256|384|512))?|blake-?2s(?:[-_]?256)?|blake-?3|xxh(?:32|64|128|3(?:[-_]?(?:64|128))?)"
    r")(?:[-_.]?(?:check)?sums?)?|(?<=\.)(b[23])(?=$)|(b[23])sums?|(sha)sums?(1|224|256|384|512))(?![a-z0-9])"
)


def algorithms_in_name(name: str) -> tuple[str, ...]:
    """Return the algorithms that the file name of a list of checksums contains, in order.

    >>> algorithms_in_name("SHA512SUMS"), algorithms_in_name("manifest-md5.txt"), algorithms_in_name("scans.txt")
    (('sha512',), ('md5',), ())
    """
    text = os.path.basename(name).lower().removesuffix(".gz")
    return tuple(algorithm_name("".join(filter(None, found.groups()))) for found in _IN_NAME.finditer(text))


def algorithms_of_size(size: int) -> tuple[str, ...]:
    """Return the available algorithms whose digests have ``size`` bytes."""
    found: list[str] = []
    for name, algorithm in ALGORITHMS.items():
        if algorithm.size == size:
            try:
                found += algorithm_names(name)
            except AlgorithmError:
                continue
    return tuple(found)
