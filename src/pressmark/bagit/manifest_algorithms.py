"""The names of checksum algorithms as they stand in the names of manifests (section 2.4).

>>> bag_name("sha512/256"), official_name("sha512256")
('sha512256', 'sha512/256')
"""

from __future__ import annotations

import re

from pressmark.errors import AlgorithmError
from pressmark.fixity.algorithms import ALGORITHMS, algorithm_name

__all__ = ["REGISTERED", "bag_name", "digest_digits", "is_normalized", "official_name"]

_NORMALIZED = re.compile("[a-z0-9]+")

# IANA's "Named Information Hash Algorithm Registry", normalized, and the two that section 2.4 allows besides. BLAKE2 is
# registered with its length; without, it is what everybody's tools write, and the same algorithm.
REGISTERED = frozenset(
    (
        *("sha256", "sha256128", "sha256120", "sha25696", "sha25664", "sha25632", "sha384", "sha512"),
        *("sha3224", "sha3256", "sha3384", "sha3512"),
        *("blake2s256", "blake2b256", "blake2b512", "blake2s", "blake2b"),
        *("k12256", "k12512"),
        *("md5", "sha1"),
    )
)


def bag_name(name: str) -> str:
    """Return an algorithm's name as it stands in a manifest's: lower case, letters and digits alone."""
    return "".join(character for character in name.lower() if character.isascii() and character.isalnum())


def official_name(name: str) -> str | None:
    """Return the official name of the algorithm that a manifest's name calls ``name``; :data:`None` when it is unknown.

    Names that are not normalized are known too: ``sha3_256`` is ``sha3-256``.
    """
    try:
        return algorithm_name(name)
    except AlgorithmError:
        return None


def is_normalized(name: str) -> bool:
    """Return whether ``name`` is lower case, letters and digits alone, as section 2.4 wants it."""
    return _NORMALIZED.fullmatch(name) is not None


def digest_digits(algorithm: str) -> int:
    """Return how many hex digits a checksum of the algorithm has; 0 when it is unknown."""
    official = official_name(algorithm)
    return 0 if official is None else 2 * ALGORITHMS[official].size
