"""Keys in object storage, hashed while they arrive, or with the digests that the server keeps."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pressmark.buckets.bucket import ArchivedError, Bucket
from pressmark.buckets.remote_file import RemoteFile
from pressmark.fixity.hasher import transfer_content
from pressmark.fixity.outcomes import Content, Outcome
from pressmark.fs.file_errors import kind_of_error
from pressmark.fs.names import decode_fs
from pressmark.option_names import option
from pressmark.threads import require_use

__all__ = ["ARCHIVED", "UNVERIFIED", "hash_key", "stored_digests", "without_digest"]

#: Kinds of outcomes without digests: the content is archived; the server keeps no digest.
ARCHIVED, UNVERIFIED = "archived", "unverified"


class _NeededFile(RemoteFile):
    """A key that is read as long as its digests are needed."""

    def read(self, size: int = -1) -> bytes:
        require_use()
        return super().read(size) or b""


def hash_key(bucket: Bucket, key: bytes, path: bytes, algorithms: Sequence[str]) -> Outcome:
    """Read a key, and return its outcome.

    :param path: of the outcome
    :param algorithms: official names
    """
    try:
        with _NeededFile(bucket, key) as opened:
            outcome = transfer_content(Content(opened, path), algorithms)
            return outcome._replace(mtime_ns=int(opened.status.modified * 1e9))
    except OSError as error:
        return _failed(path, error)


def stored_digests(
    bucket: Bucket, key: bytes, path: bytes, algorithms: Collection[str], *, every: bool = True
) -> Outcome:
    """Return the outcome of a key with the digests that the server keeps; no content is read.

    :param path: of the outcome
    :param algorithms: official names
    :param every: all digests are required; otherwise one of them
    """
    try:
        status = bucket.head(key)
    except OSError as error:
        return _failed(path, error)
    digests = {name: status.digests[name] for name in algorithms if name in status.digests}
    missing = [name for name in algorithms if name not in digests]
    if missing if every else not digests:
        what = f"the server keeps no {' or '.join(missing)} digest of it"
        return without_digest(path, what, is_archived=status.is_archived)
    return Outcome(decode_fs(path), digests, status.size, int(status.modified * 1e9), None)


def without_digest(path: bytes, what: str, *, is_archived: bool = False) -> Outcome:
    """Return the outcome of a key that can only be verified by reading it.

    :param what: the reason
    """
    advice = "restore it from the archive, and check it" if is_archived else "check it"
    message = f"{what}; {advice} with {option('digests', 'read')}"
    return Outcome(decode_fs(path), None, None, None, None, UNVERIFIED, message)


def _failed(path: bytes, error: OSError) -> Outcome:
    kind = ARCHIVED if isinstance(error, ArchivedError) else kind_of_error(error.errno or 0, None)
    return Outcome(decode_fs(path), None, None, None, None, kind, error.strerror or str(error))
