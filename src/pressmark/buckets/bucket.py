"""A bucket: the twelve calls on which everything in object storage is built.

Keys are bytes, UTF-8 with ``/`` between their parts. Every call raises :class:`OSError` with a reason that names what
to do: :class:`FileNotFoundError` for a key that does not exist, :class:`PermissionError` for a refused request.

A call overwrites only what the caller names: :data:`NEW` (the default) writes only if the key does not exist, the token
of a key only replaces that version. The server decides both, so two writers cannot both succeed.
"""

from __future__ import annotations

import errno
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

__all__ = [
    *(
        "ANY",
        "ARCHIVED",
        "ARCHIVES",
        "DIGESTS",
        "MAX_COPY",
        "MAX_KEY",
        "MAX_PARTS",
        "MIN_PART",
        "NEW",
        "ArchivedError",
        "Bucket",
        "Download",
        "KeyChangedError",
        "KeyStatus",
    ),
    *("ListedKey", "Page", "Part", "Upload", "key_text", "sent_digests", "utf8_text"),
]

#: Write only if the key does not exist; write in any case.
NEW, ANY = "new", "any"
#: Bytes of a key, bytes of every part of an upload except the last, parts of an upload.
MAX_KEY, MIN_PART, MAX_PARTS = 1024, 5 << 20, 10_000
#: Bytes of a key that is copied in one request.
MAX_COPY = 5 << 30
#: The digests of content that servers can keep, the longest first.
DIGESTS = ("sha512", "sha256", "sha1", "md5")
#: Storage classes whose content must be restored before it can be read.
ARCHIVES = ("GLACIER", "DEEP_ARCHIVE")
#: Why the content of an archived key cannot be read.
ARCHIVED = "the content is archived; restore it from the archive before it is read"


class KeyChangedError(OSError):
    """A key no longer has the version to replace or remove."""

    def __init__(self, key: bytes) -> None:
        super().__init__(errno.ESTALE, "changed by another program", key)


class ArchivedError(OSError):
    """The content of a key is archived."""

    def __init__(self, key: bytes) -> None:
        super().__init__(errno.EIO, ARCHIVED, key)


def key_text(key: bytes) -> str:
    """Return a key as text, if it can be written.

    :raises OSError: it is empty, too long, or not UTF-8
    """
    if not key:
        raise OSError(errno.EINVAL, "the key is empty", key)
    if len(key) > MAX_KEY:
        reason = f"the key has {len(key):,} bytes; at most {MAX_KEY:,} are allowed"
        raise OSError(errno.ENAMETOOLONG, reason, key)
    return utf8_text(key)


def utf8_text(key: bytes) -> str:
    """Return a key, or the beginning of keys, as text.

    :raises OSError: it is not UTF-8
    """
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise OSError(errno.EILSEQ, "the key is not UTF-8, which object storage requires", key) from None


def sent_digests(digests: Mapping[str, str], accepted: Container[str]) -> dict[str, str]:
    """Return the longest digest that the server accepts, or nothing: a request to S3 has at most one."""
    names = [name for name in DIGESTS if name in digests and name in accepted]
    return {name: digests[name] for name in names[:1]}


class ListedKey(NamedTuple):
    """A key in a listing.

    :ivar token: changes whenever the key is written: the ETag
    :ivar modified: when it was written, in seconds since 1970, by the server's clock
    :ivar storage_class: such as ``STANDARD`` or ``DEEP_ARCHIVE``
    """

    key: bytes
    size: int
    token: str
    modified: float
    storage_class: str = "STANDARD"


class Page(NamedTuple):
    """A page of a listing.

    :ivar keys: in the order of their bytes
    :ivar directories: with a delimiter, the beginnings of further keys, each with its ``/`` at the end
    :ivar after: the key after which the next page begins; :data:`None` on the last page
    :ivar date: the server's clock, in seconds since 1970
    """

    keys: Sequence[ListedKey]
    directories: Sequence[bytes]
    after: bytes | None
    date: float


class KeyStatus(NamedTuple):
    """A key, as the server describes it.

    :ivar digests: lower-case hex digests of the whole content that the server keeps, by algorithm
    :ivar is_archived: whether it must be restored before it can be read
    :ivar is_ours: whether Pressmark wrote it, as its metadata shows
    """

    size: int
    token: str
    modified: float
    storage_class: str = "STANDARD"
    digests: Mapping[str, str] = {}
    is_archived: bool = False
    is_ours: bool = True


class Download(Protocol):
    """The content of a key during its download; the caller closes it."""

    status: KeyStatus

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most ``size``; none at the end.

        :raises OSError: the connection was lost
        """

    def close(self) -> None:
        """Close the connection, or return it for the next request."""


class Part(NamedTuple):
    """A part of an upload that has arrived.

    :ivar number: from 1
    :ivar token: of the part
    :ivar sha256: the digest of its content, if the server keeps it
    """

    number: int
    size: int
    token: str
    sha256: str | None = None


class Upload(NamedTuple):
    """An upload in parts that is not complete; no reader sees it.

    :ivar id: names it among the uploads of the key
    :ivar started: in seconds since 1970, by the server's clock
    """

    key: bytes
    id: str
    started: float


class Bucket(Protocol):
    """A bucket; see :mod:`pressmark.buckets.bucket`. Several threads may call it at once.

    :ivar url: such as ``s3://books``
    :ivar accepted: the algorithms of digests that the server verifies and keeps; others are not sent
    :ivar requests: number of requests so far, including repeated ones
    :ivar sent: bytes of content that were sent
    :ivar received: bytes of content that were received
    """

    url: str
    accepted: set[str]
    requests: int
    sent: int
    received: int

    @property
    def server(self) -> object:
        """An object that is equal for all buckets of one server."""

    def list(self, prefix: bytes, *, after: bytes = b"", delimiter: bool = False, limit: int = 1000) -> Page:
        """Return the next keys that begin with ``prefix``.

        :param after: only keys that sort after this one
        :param delimiter: return keys below a further ``/`` as directories
        :param limit: number of keys and directories, at most 1,000
        """

    def head(self, key: bytes) -> KeyStatus:
        """Return the status of a key, with the digests that the server keeps."""

    def get(self, key: bytes, *, begin: int = 0, end: int | None = None, token: str | None = None) -> Download:
        """Read a key.

        :param begin: first byte
        :param end: the byte after the last one; :data:`None` for the end of the key
        :param token: read only this version
        :raises KeyChangedError: the key has another version
        """

    def put(
        self,
        key: bytes,
        data: bytes | memoryview,
        *,
        over: str = NEW,
        digests: Mapping[str, str] = {},
        storage_class: str | None = None,
    ) -> str:
        """Write a key in one step, and return its token.

        :param over: :data:`NEW`, :data:`ANY`, or the token of the version to replace
        :param digests: hex digests of ``data`` by algorithm; the server compares and keeps the longest that it accepts
        :raises FileExistsError: the key exists, and ``over`` is :data:`NEW`
        :raises KeyChangedError: the key has another version, or none
        """

    def start(self, key: bytes, *, storage_class: str | None = None) -> str:
        """Begin an upload in parts, and return its id."""

    def part(self, key: bytes, upload: str, number: int, data: bytes | memoryview) -> Part:
        """Send a part of an upload; it replaces a part with the same number.

        :param data: at least :data:`MIN_PART` bytes, except in the last part
        """

    def complete(self, key: bytes, upload: str, parts: Sequence[Part], *, over: str = NEW) -> str:
        """Turn an upload into the content of its key in one step, and return the key's token.

        :param parts: all parts, in the order of their numbers
        :param over: as for :meth:`put`, like the errors
        """

    def parts(self, key: bytes, upload: str) -> Sequence[Part]:
        """Return the parts of an upload that have arrived, in the order of their numbers."""

    def abort(self, key: bytes, upload: str) -> None:
        """Discard an upload; nothing if it does not exist."""

    def uploads(self, prefix: bytes) -> Iterator[Upload]:
        """Yield the uploads of keys that begin with ``prefix``."""

    def copy(
        self,
        source: bytes,
        key: bytes,
        *,
        over: str = NEW,
        storage_class: str | None = None,
        of: Bucket | None = None,
    ) -> str:
        """Copy a key of at most :data:`MAX_COPY` bytes on the server, and return the token of the copy.

        :param of: the bucket of the source, of the same server; :data:`None` for this one
        :param over: as for :meth:`put`, like the errors
        """

    def delete(self, keys: Sequence[bytes], *, token: str | None = None) -> None:
        """Remove keys; nothing for those that do not exist.

        :param token: remove a single key only if it has this version
        :raises KeyChangedError: it has another one
        """
