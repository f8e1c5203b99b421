"""Names of algorithms, and their digests."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import pytest

from pressmark import fixity
from pressmark.errors import AlgorithmError
from pressmark.fixity import ALGORITHMS, algorithm_name, algorithm_names

ABC = {
    "md5": "900150983cd24fb0d6963f7d28e17f72",
    "sha1": "a9993e364706816aba3e25717850c26c9cd0d89d",
    "sha224": "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7",
    "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    "sha512/256": "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23",
    "sha3-256": "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532",
    "blake2b-160": "384264f676f39536840523f284921cdc68b6846b",
    "blake2s": "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982",
    "blake3": "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85",
    "xxh32": "32d153ff",
    "xxh64": "44bc2cf5ad770999",
    "xxh3-64": "78af5f94892f3950",
    "xxh128": "06b05ab6733a618578af5f94892f3950",
}


@pytest.mark.parametrize("name", ABC)
def test_known_digests(name: str) -> None:
    """The digests of "abc" are those of the standards."""
    hasher = ALGORITHMS[name].make(1)
    hasher.update(b"abc")
    assert hasher.hexdigest() == ABC[name]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_digest_is_computed_as_by_hashlib(name: str) -> None:
    """``update``, ``digest``, ``hexdigest`` and ``copy``; the digests are those of one call, and of a file."""
    whole = fixity.new(name.upper(), b"abc")
    begun = fixity.new(name)
    begun.update(memoryview(b"ab"))
    other = begun.copy()
    begun.update(bytearray(b"c"))
    other.update(b"x")
    assert (
        begun.hexdigest()
        == whole.hexdigest()
        == fixity.hash_bytes(b"abc", name)[name]
        == ABC.get(name, whole.hexdigest())
    )
    assert other.hexdigest() == fixity.new(name, b"abx").hexdigest()
    assert begun.digest().hex() == begun.hexdigest()
    assert (begun.name, begun.digest_size) == (name, len(begun.digest()))
    assert repr(begun) == f"<Digest {name}: {begun.hexdigest()}>"


def test_bytes_have_several_digests() -> None:
    """By official names, without repetition; an unknown algorithm is named."""
    assert fixity.hash_bytes(b"abc", ["MD5", "xxh32", "md5"]) == {name: ABC[name] for name in ("md5", "xxh32")}
    for call in (fixity.new, lambda name: fixity.hash_bytes(b"", name)):
        with pytest.raises(AlgorithmError, match="sha-7"):
            call("sha-7")


@pytest.mark.parametrize("name", ALGORITHMS)
def test_sizes(name: str) -> None:
    """The digests of each algorithm have the size in the table."""
    assert len(ALGORITHMS[name].make(1).hexdigest()) == 2 * ALGORITHMS[name].size


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("SHA-256", "sha256"),
        ("SHA512", "sha512"),
        ("sha_512", "sha512"),
        ("sha512-256", "sha512/256"),
        ("SHA3_256", "sha3-256"),
        ("sha3256", "sha3-256"),
        ("BLAKE2b", "blake2b-512"),
        ("blake2b512", "blake2b-512"),
        ("BLAKE2s-256", "blake2s"),
        ("b3", "blake3"),
        ("XXH3", "xxh3-64"),
        ("xxh3-128", "xxh128"),
        ("SHA2-384", "sha384"),
        ("MD5", "md5"),
        *((name, name) for name in ALGORITHMS),
        *((algorithm.tag, algorithm.name) for algorithm in ALGORITHMS.values()),
    ],
)
def test_aliases(given: str, name: str) -> None:
    """Names of BagIt, coreutils, BSD and OpenSSL are known."""
    assert algorithm_name(given) == name


@pytest.mark.parametrize("name", ["", "sha", "sha5", "crc32", "\u017fha256", "md5\n"])
def test_unknown_algorithms(name: str) -> None:
    """An unknown name is an error that lists the known ones."""
    with pytest.raises(AlgorithmError, match=r"unknown; choose from md5, sha1, .*xxh128"):
        algorithm_name(name)


def test_several_names() -> None:
    """Each algorithm occurs once, in the given order; an empty list is an error."""
    assert algorithm_names(["SHA-512", "md5", "sha512"]) == ("sha512", "md5")
    assert algorithm_names("md5") == ("md5",)
    with pytest.raises(AlgorithmError, match="no algorithm given"):
        algorithm_names([])


def test_a_library_that_cannot_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """hashlib loads its libraries on first use: without a free descriptor, a file fails, and the run goes on."""

    def refused(*_arguments: object, **_more: object) -> None:
        raise ValueError("unsupported hash type sha512")

    (tmp_path / "large").write_bytes(bytes(1 << 20))
    monkeypatch.setattr(hashlib, "sha512", refused)
    (outcome,) = fixity.hash_files([tmp_path / "large"], "sha512")
    assert (outcome.digests, outcome.kind, outcome.message) == (None, "io-error", os.strerror(errno.EMFILE))
