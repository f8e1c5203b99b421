"""Digests of short messages, by their OCFL names."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any

from pressmark._kernels.tables import DIGESTS

__all__ = ["hexdigest_function", "supported"]


def supported(algorithm: str) -> bool:
    """Return whether hashlib supports ``algorithm``; sha512/256 depends on its OpenSSL."""
    name = DIGESTS[algorithm][0]
    return name in hashlib.algorithms_available


def hexdigest_function(algorithm: str) -> Callable[[bytes], bytes]:
    """Return a function that returns the digest of a message in lower-case hex."""
    name, size = DIGESTS[algorithm]
    new: Callable[[bytes], Any]
    if name == "blake2b":
        new = partial(hashlib.blake2b, digest_size=size)
    else:
        # Paths are not a matter of security: a FIPS build must still compute the MD5 that a layout prescribes.
        new = partial(hashlib.new, name, usedforsecurity=False)

    def hexdigest(message: bytes) -> bytes:
        digest: str = new(message).hexdigest()
        return digest.encode()

    return hexdigest
