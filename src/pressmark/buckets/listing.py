"""The keys of a bucket, in the order of their bytes, and their status."""

from __future__ import annotations

import os
import stat
from bisect import bisect_right
from collections.abc import Collection, Iterator

from pressmark.buckets.bucket import Bucket, KeyStatus, ListedKey, Page, utf8_text
from pressmark.threads import require_use

__all__ = ["find_keys", "key_before", "listed", "pages", "status_of_key"]


def pages(
    bucket: Bucket, prefix: bytes, *, after: bytes = b"", delimiter: bool = False, limit: int = 1000
) -> Iterator[Page]:
    """Yield all parts of a listing; see :meth:`Bucket.list` for the parameters."""
    following: bytes | None = after
    while following is not None:
        require_use()
        yield (page := bucket.list(prefix, after=following, delimiter=delimiter, limit=limit))
        following = page.after


def listed(bucket: Bucket, prefix: bytes, limit: int | None = None, *, start: bytes = b"") -> Iterator[ListedKey]:
    """Yield the keys that begin with ``prefix``.

    :param limit: maximum number of keys
    :param start: only keys after the prefix and this
    """
    for page in pages(bucket, prefix, after=prefix + start if start else b"", limit=limit or 1000):
        yield from page.keys
        if limit:
            return


def find_keys(bucket: Bucket, keys: Collection[bytes]) -> dict[bytes, ListedKey]:
    """Return those keys that exist, from listings: keys that are near each other cost one request.

    :raises OSError: the bucket cannot be read
    """
    wanted = sorted(set(keys))
    prefix = wanted[0] if wanted else b""
    while wanted and not wanted[-1].startswith(prefix):
        prefix = prefix[: prefix.rfind(b"/", 0, -1) + 1]
    found = dict.fromkeys(wanted)
    at = 0
    while at < len(wanted):
        require_use()
        page = bucket.list(prefix, after=key_before(wanted[at]), limit=1 if at == len(wanted) - 1 else 1000)
        found.update((one.key, one) for one in page.keys if one.key in found)
        at = bisect_right(wanted, page.after or wanted[-1], at + 1)
    return {key: one for key, one in found.items() if one is not None}


def key_before(key: bytes) -> bytes:
    """Return what sorts before a key, and after the keys before it that exist."""
    text = utf8_text(key)
    last = ord(text[-1]) - 1 if text else 0
    return (text[:-1] + chr(last if last != 0xDFFF else 0xD7FF) + "\U0010ffff").encode() if last > 0 else key[:-1]


def status_of_key(found: ListedKey | KeyStatus) -> os.stat_result:
    """Return the status of a key as of a file; the statuses of two versions differ, and not those of one version."""
    number = int.from_bytes(os.fsencode(found.token)[:32]) & 0x7FFF_FFFF_FFFF_FFFF
    # Listings of some servers have fractions of seconds, headers none.
    when = int(found.modified)
    # A version of a key may have the time of another: the token takes the place of the change of status, too.
    times = {"st_mtime_ns": when * 1_000_000_000, "st_ctime_ns": number}
    return os.stat_result((stat.S_IFREG | 0o644, number, 1, 1, 0, 0, found.size, when, when, when), times)
