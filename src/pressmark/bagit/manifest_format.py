"""Names of manifests and of their algorithms, and the lines of manifests as they are written (sections 2.1.3, 2.4).

>>> manifest_line("d41d8cd98f00b204e9800998ecf8427e", b"data/100%")
b'd41d8cd98f00b204e9800998ecf8427e  data/100%25\\n'
>>> bag_name("sha512/256"), official_name("sha512256")
('sha512256', 'sha512/256')
"""

from __future__ import annotations

import os
import re
from functools import lru_cache

from pressmark.bagit.paths import encode_path
from pressmark.errors import AlgorithmError
from pressmark.fixity.algorithms import algorithm_name

__all__ = [
    "REGISTERED",
    "bag_name",
    "is_normalized",
    "manifest_line",
    "manifest_name",
    "official_name",
    "split_manifest_name",
]

# IANA's "Named Information Hash Algorithm Registry", normalized, and the two that section 2.4 also allows. The registry
# lists BLAKE2 with its length; tools write the same algorithm without it.
REGISTERED = frozenset(
    (
        *("sha256", "sha256128", "sha256120", "sha25696", "sha25664", "sha25632", "sha384", "sha512"),
        *("sha3224", "sha3256", "sha3384", "sha3512"),
        *("blake2s256", "blake2b256", "blake2b512", "blake2s", "blake2b"),
        *("k12256", "k12512"),
        *("md5", "sha1"),
    )
)

_MANIFEST = re.compile(rb"(tag)?manifest-(.+)\.txt", re.DOTALL)
_NORMALIZED = re.compile("[a-z0-9]+")


def bag_name(name: str) -> str:
    """Return an algorithm's name as manifest names spell it: lower-case letters and digits only."""
    return "".join(character for character in name.lower() if character.isascii() and character.isalnum())


@lru_cache
def official_name(name: str) -> str | None:
    """Return the official name of the algorithm that manifests call ``name``; :data:`None` if it is unknown.

    Names that are not normalized are accepted: ``sha3_256`` is ``sha3-256``.
    """
    try:
        return algorithm_name(name)
    except AlgorithmError:
        return None


def is_normalized(name: str) -> bool:
    """Return whether ``name`` consists of lower-case letters and digits, as section 2.4 requires."""
    return _NORMALIZED.fullmatch(name) is not None


@lru_cache
def manifest_name(algorithm: str, *, tag: bool = False) -> bytes:
    """Return the file name of an algorithm's payload manifest, or of its tag manifest (2.1.3, 2.2.1)."""
    return b"%bmanifest-%b.txt" % (b"tag" if tag else b"", bag_name(algorithm).encode())


@lru_cache(maxsize=1024)  # the bags of a collection have the same names
def split_manifest_name(name: bytes) -> tuple[bool, str] | None:
    """Return whether a file name is that of a tag manifest, and the algorithm as the name spells it.

    :return: :data:`None` if it is not the name of a manifest
    """
    found = _MANIFEST.fullmatch(name)
    return None if found is None else (found[1] is not None, os.fsdecode(found[2]))


def manifest_line(digest: str, path: bytes, version: tuple[int, int] = (1, 0)) -> bytes:
    """Return the line of a file in UTF-8, with its line feed and the two spaces that sha512sum writes.

    A path that begins with a space or tab, which only tag files can have, is written as ``./ …``.
    """
    text = encode_path(path, version)
    return b"%b  %b%b\n" % (digest.encode("ascii"), b"./" if text[:1] in (b" ", b"\t") else b"", text)
