"""The digest algorithms of the OCFL fixity block: five of the OCFL specification, four of OCFL extension 0009."""

import hashlib


def hex_digest(algorithm: str, data: bytes) -> str:
    """Return the digest of `data` in lower-case hex."""
    # OCFL 1.1, section 3.4 "Digests"
    if algorithm == "md5":
        return hashlib.md5(data).hexdigest()
    if algorithm == "sha1":
        return hashlib.sha1(data).hexdigest()
    if algorithm == "sha256":
        return hashlib.sha256(data).hexdigest()
    if algorithm == "sha512":
        return hashlib.sha512(data).hexdigest()
    if algorithm == "blake2b-512":
        return hashlib.blake2b(data, digest_size=512 // 8).hexdigest()
    # OCFL extension 0009
    if algorithm == "blake2b-160":
        return hashlib.blake2b(data, digest_size=160 // 8).hexdigest()
    if algorithm == "blake2b-256":
        return hashlib.blake2b(data, digest_size=256 // 8).hexdigest()
    if algorithm == "blake2b-384":
        return hashlib.blake2b(data, digest_size=384 // 8).hexdigest()
    if algorithm == "sha512/256":
        return hashlib.new("sha512_256", data).hexdigest()
    raise ValueError(f"no OCFL digest algorithm: {algorithm!r}")
