"""Keys in object storage, hashed while they arrive, or with the digests that the server keeps."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Literal, cast

from pressmark.buckets import address
from pressmark.buckets.bucket import ArchivedError, Bucket, KeyStatus, ListedKey
from pressmark.buckets.listing import listed
from pressmark.buckets.remote_file import RemoteFile
from pressmark.errors import StoreError
from pressmark.fixity.hasher import transfer_content
from pressmark.fixity.outcomes import Content, Fetched, Outcome, Path
from pressmark.fs.beneath import Directory
from pressmark.fs.file_errors import kind_of_error
from pressmark.fs.names import decode_fs, glob_matcher
from pressmark.option_names import option
from pressmark.threads import require_use

__all__ = [
    *("ARCHIVED", "UNVERIFIED", "DigestSource", "KeyFile", "KeyTree"),
    *("hash_key", "keys_at", "source_of", "sources_of", "stored_digests", "without_digest"),
]

#: Where digests are from: the content is read, or the server has stored them.
DigestSource = Literal["read", "stored"]
#: Kinds of outcomes without digests: the content is archived; the server keeps no digest.
ARCHIVED, UNVERIFIED = "archived", "unverified"


class _NeededFile(RemoteFile):
    """A key that is read as long as its digests are needed.

    :ivar on_bytes: called with the size of each block; it may raise to end the read
    """

    on_bytes: Callable[[int], object]

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self.on_bytes(len(data))
        return data


def hash_key(
    bucket: Bucket,
    key: bytes,
    path: bytes,
    algorithms: Sequence[str],
    on_bytes: Callable[[int], object] = lambda _size: require_use(),
) -> Outcome:
    """Read a key, and return its outcome.

    :param path: of the outcome
    :param algorithms: official names
    :param on_bytes: called with the size of each block; it may raise to end the read
    """
    try:
        with _NeededFile(bucket, key) as opened:
            opened.on_bytes = on_bytes
            outcome = transfer_content(Content(opened, path), algorithms)
            return outcome._replace(mtime_ns=_nanoseconds(opened.status))
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
    return Outcome(decode_fs(path), digests, status.size, _nanoseconds(status), None)


def without_digest(path: bytes, what: str, *, is_archived: bool = False) -> Outcome:
    """Return the outcome of a key that can only be verified by reading it.

    :param what: the reason
    """
    advice = "restore it from the archive, and read it" if is_archived else "read it"
    message = f"{what}; {advice} with {option('digests', 'read')}"
    return Outcome(decode_fs(path), None, None, None, None, UNVERIFIED, message)


def _nanoseconds(status: KeyStatus) -> int:
    return int(status.modified * 1_000_000_000)


def _failed(path: bytes, error: OSError) -> Outcome:
    kind = ARCHIVED if isinstance(error, ArchivedError) else kind_of_error(error.errno or 0, None)
    return Outcome(decode_fs(path), None, None, None, None, kind, error.strerror or str(error))


class KeyFile(Fetched):
    """A key in object storage as a source to hash.

    :param path: its address, the path of its outcome
    :param digests: read the content, or use the digests that the server has stored
    """

    __slots__ = ("_bucket", "_digests", "_key", "path")

    def __init__(self, bucket: Bucket, key: bytes, path: bytes, digests: DigestSource = "read") -> None:
        self._bucket = bucket
        self._key = key
        self.path = path
        self._digests = digests

    def outcome(self, names: Sequence[str], on_bytes: Callable[[int], object]) -> Outcome:
        """Fetch the key or its status, and return its outcome."""
        if self._digests == "stored":
            return stored_digests(self._bucket, self._key, self.path, names)
        return hash_key(self._bucket, self._key, self.path, names, on_bytes)


def keys_at(digests: DigestSource = "read") -> Callable[[str | bytes], KeyFile | Outcome]:
    """Return a function that returns the key at an address, or the outcome of a malformed one; no request is sent.

    :param digests: as for :class:`KeyFile`
    """
    buckets: dict[str, Bucket] = {}

    def key_at(text: str | bytes) -> KeyFile | Outcome:
        try:
            name, key = address.parse_key(text)
        except StoreError as error:
            return Outcome(decode_fs(os.fsencode(text)), None, None, None, None, "bad-name", error.reason)
        if name not in buckets:
            buckets[name], _ = address.open_bucket(f"s3://{name}")
        return KeyFile(buckets[name], key, os.fsencode(text), digests)

    return key_at


def source_of(
    digests: DigestSource = "read", beneath: Directory | None = None
) -> Callable[[Path | Outcome], str | bytes | KeyFile | Outcome]:
    """Return a function that returns the source of a path to hash, or the outcome that it is called with.

    The source of an address is a key, unless the paths are beneath a directory.

    :param digests: as for :class:`KeyFile`; a file that is no key has no stored digest
    """
    if digests not in ("read", "stored"):
        raise ValueError(f"digests={digests!r}: expected read or stored")
    key_at = keys_at(digests)

    def source(path: Path | Outcome) -> str | bytes | KeyFile | Outcome:
        given = path if isinstance(path, str | bytes | Outcome) else os.fspath(path)
        if isinstance(given, Outcome):
            return given
        if beneath is None and address.is_address(given):
            return key_at(given)
        if digests == "read":
            return given
        what = "not in object storage, where servers keep digests"
        return Outcome(os.fsdecode(given), None, None, None, None, UNVERIFIED, what)

    return source


def sources_of(
    digests: DigestSource = "read", beneath: Directory | None = None
) -> Callable[[list[Path | Outcome]], list[Any]]:
    """Return a function that returns the sources of many paths; the parameters are those of :func:`source_of`."""
    source = source_of(digests, beneath)
    scheme = address.SCHEME.decode()

    def sources(paths: list[Path | Outcome]) -> list[Any]:
        # Most lists have no address: finding that out for all together takes a tenth of the time.
        if digests == "read" and set(map(type, paths)) == {str} and scheme not in "".join(cast(list[str], paths)):
            return paths
        return list(map(source, paths))

    return sources


class KeyTree:
    """The keys below an address, or the key that has it.

    :param root: such as ``s3://bucket/prefix``
    :param digests: as for :class:`KeyFile`
    :raises StoreError: the address is malformed, or botocore is not installed
    """

    def __init__(self, root: str | bytes, digests: DigestSource = "read") -> None:
        self._bucket, self._prefix = address.open_bucket(root)
        self._digests = digests
        self._above = f"s3://{address.parse(root)[0]}/".encode()
        self._is_directory = os.fsencode(root).endswith(b"/")

    def file(self, name: bytes) -> KeyFile:
        """Return the key with a name relative to the address, whether it exists or not."""
        while name.startswith(b"./"):
            name = name[2:].lstrip(b"/")
        return self._file(self._prefix + name)

    def _file(self, key: bytes) -> KeyFile:
        return KeyFile(self._bucket, key, self._above + key, self._digests)

    def files(
        self, exclude: Sequence[str] | str = (), excluded: list[Any] | None = None
    ) -> Iterator[KeyFile | Outcome]:
        """Yield the keys in the order of their bytes; an outcome if there is none.

        Empty keys that stand for directories are left out: their names end with a slash.

        :param exclude: globs of names of files and directories below the address to leave out
        :param excluded: receives the address of each, that of a directory with a slash at its end
        """
        is_excluded = glob_matcher(exclude) if exclude else None
        found = False
        last = b""  # directory that is left out
        for one in self._listed():
            found = True
            if one.key.endswith(b"/") and not one.size:
                continue
            if last and one.key.startswith(last):
                continue
            cut = None if is_excluded is None else self._excluded_end(one.key, is_excluded)
            if cut is None:
                yield self._file(one.key)
                continue
            last = one.key[:cut] if cut < len(one.key) else b""
            if excluded is not None:
                excluded.append(self._above + one.key[:cut])
        if not found:
            path = decode_fs(self._above + self._prefix.rstrip(b"/"))
            yield Outcome(path, None, None, None, None, "missing", "no key has this address or is below it")

    def _excluded_end(self, key: bytes, is_excluded: Callable[[str], object]) -> int | None:
        """Return where the first name in a key ends that is left out; with the slash of a directory."""
        begin = len(self._prefix)
        while begin < len(key):
            end = key.find(b"/", begin)
            if is_excluded(decode_fs(key[begin : end if end >= 0 else len(key)])):
                return end + 1 or len(key)
            if end < 0:
                return None
            begin = end + 1
        return None

    def _listed(self) -> Iterator[ListedKey]:
        itself = self._prefix.rstrip(b"/")
        if itself and not self._is_directory:
            # The first key that begins with the address is the address itself, if there is such a key.
            yield from (one for one in self._bucket.list(itself, limit=1).keys if one.key == itself)
        yield from listed(self._bucket, self._prefix)
