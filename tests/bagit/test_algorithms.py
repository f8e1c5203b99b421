"""Names of algorithms in the names of manifests."""

from __future__ import annotations

import pytest

from pressmark.bagit.manifest_algorithms import REGISTERED, bag_name, digest_digits, is_normalized, official_name
from pressmark.fixity import ALGORITHMS


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_has_its_own_name(name: str) -> None:
    """Each is normalized, and leads back to its algorithm."""
    assert is_normalized(bag_name(name))
    assert official_name(bag_name(name)) == official_name(name) == name
    assert digest_digits(bag_name(name)) == digest_digits(name) == 2 * ALGORITHMS[name].size


@pytest.mark.parametrize(
    ("common", "normalized"),
    [
        ("MD5", "md5"),
        ("SHA-1", "sha1"),
        ("sha-256", "sha256"),
        ("sha-512", "sha512"),
        ("SHA512/256", "sha512256"),
        ("SHA3-256", "sha3256"),
        ("\u017fha-1", "ha1"),
    ],
)
def test_normalization(common: str, normalized: str) -> None:
    """Lower case, and only letters and digits: the draft's own examples, and others."""
    assert bag_name(common) == normalized


@pytest.mark.parametrize("name", ["sha3_256", "SHA256", "sha-256", "", "sha256\n", "\u017fha1", "md\uff15"])
def test_what_is_not_normalized(name: str) -> None:
    """Case, punctuation and what is not ASCII."""
    assert not is_normalized(name)


def test_unknown_algorithms() -> None:
    """An unknown name is no error: a bag that has it is complete, and not valid."""
    assert official_name("crc64") is None
    assert official_name("") is None
    assert digest_digits("crc64") == 0


def test_the_registry() -> None:
    """All that are recommended are registered; what is only fast is not."""
    assert {bag_name(name) for name in ALGORITHMS} - REGISTERED == {
        *("sha224", "sha512256", "blake2b160", "blake2b384", "blake3"),
        *("xxh32", "xxh64", "xxh364", "xxh128"),
    }
    assert all(map(is_normalized, REGISTERED))
