"""Addresses of places in object storage: ``s3://bucket/prefix``."""

from __future__ import annotations

import os
import re
from functools import lru_cache

from pressmark.buckets.bucket import MAX_KEY, Bucket
from pressmark.errors import StoreError
from pressmark.fs.names import decode_fs, encode_fs, is_inside

__all__ = ["absolute", "find_key", "is_address", "is_below", "open_bucket", "parse", "parse_key"]

SCHEME = b"s3://"
_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{1,254}")


def is_address(text: str | bytes) -> bool:
    """Return whether a path is an address in object storage."""
    return text.startswith("s3://") if isinstance(text, str) else text.startswith(SCHEME)


def absolute(path: str | os.PathLike[str]) -> str:
    """Return the absolute form of a path, or of an address without ``/`` at its end.

    :raises StoreError: the address is malformed
    """
    text = os.fspath(path)
    if not is_address(text):
        return os.path.abspath(text)
    parse(text)
    return text.rstrip("/")


def is_below(path: str, other: str) -> bool:
    """Return whether a path or an address is another one or below it; neither need exist."""
    if is_address(path) or is_address(other):
        return f"{path}/".startswith(f"{other}/")
    return is_inside(path, other)


def parse(text: str | bytes) -> tuple[str, bytes]:
    """Return the bucket of an address, and the beginning of the keys below it: empty, or with ``/`` at its end.

    :raises StoreError: the address is malformed
    """
    address = encode_fs(text)
    bucket, rest = _parts(address)
    prefix = rest.rstrip(b"/")
    reason = ""
    try:
        prefix.decode()
    except UnicodeDecodeError:
        reason = "the prefix is not UTF-8, which object storage requires"
    if len(prefix) >= MAX_KEY:
        reason = f"the prefix is too long; at most {MAX_KEY - 1:,} bytes are allowed"
    if rest.startswith(b"/") or (prefix and not {b"", b".", b".."}.isdisjoint(prefix.split(b"/"))):
        reason = "the prefix has an empty part, or the part '.' or '..'; use one such as s3://bucket/prefix"
    if reason:
        raise StoreError(decode_fs(address), reason)
    return bucket, prefix and prefix + b"/"


def parse_key(text: str | bytes) -> tuple[str, bytes]:
    """Return the bucket and the key of an address, whatever the parts of the key are.

    :raises StoreError: the address is malformed
    """
    bucket, key = _parts(encode_fs(text))
    if not key:
        raise StoreError(
            decode_fs(encode_fs(text)), "the address names only a bucket; specify a key, such as s3://bucket/key"
        )
    return bucket, key


def _parts(address: bytes) -> tuple[str, bytes]:
    if not address.startswith(SCHEME):
        raise StoreError(decode_fs(address), "not an address in object storage, such as s3://bucket/prefix")
    name, _, rest = address.removeprefix(SCHEME).partition(b"/")
    bucket = decode_fs(name)
    if not _NAME.fullmatch(bucket):
        raise StoreError(
            decode_fs(address), f"invalid bucket name {bucket!r}; use an address such as s3://bucket/prefix"
        )
    return bucket, rest


def open_bucket(
    address: str | bytes, endpoint: str | None = None, profile: str | None = None, region: str | None = None
) -> tuple[Bucket, bytes]:
    """Return the bucket of an address, and the beginning of the keys below the address; no request is sent. Buckets
    with equal settings share their connections.

    :param address: such as ``s3://bucket/prefix``
    :param endpoint: see :class:`~pressmark.buckets.s3.S3Bucket`, as for the others
    :raises StoreError: the address or a setting is malformed, or botocore is not installed
    """
    name, prefix = parse(address)
    variables = frozenset(item for item in os.environ.items() if item[0].startswith("AWS_"))
    # Processes must not share connections.
    return _opened(name, endpoint, profile, region, variables, os.getpid()), prefix


@lru_cache(8)
def _opened(
    name: str,
    endpoint: str | None,
    profile: str | None,
    region: str | None,
    _variables: frozenset[tuple[str, str]],
    _process: int,
) -> Bucket:
    from pressmark.buckets.s3 import S3Bucket

    return S3Bucket(name, endpoint=endpoint, profile=profile, region=region)


def find_key(address: str | bytes) -> tuple[Bucket, bytes]:
    """Return the bucket and the key of an address, which ends without ``/``.

    :param address: such as ``s3://bucket/key``; for ``s3://bucket``, the key is empty
    :raises StoreError: the address or a setting is malformed, or botocore is not installed
    """
    bucket, prefix = open_bucket(address)
    return bucket, prefix[:-1]
