"""A bucket of S3, or of a server that speaks its protocol.

A request has a checksum only after a probe has shown that the server accepts it. Every wait has a time-out. Requests
are repeated here, because a refusal after a lost answer must be recognised. The signature of a request covers its
content or the checksum of it, so a server stores exactly the bytes that were sent.
"""

from __future__ import annotations

import errno
import os
import random
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from hashlib import md5, sha256
from itertools import pairwise
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote_plus
from xml.etree import ElementTree
from xml.sax.saxutils import escape
from zlib import crc32

from pressmark.buckets.bucket import (
    ANY,
    ARCHIVES,
    DIGESTS,
    NEW,
    ArchivedError,
    Bucket,
    Download,
    KeyChangedError,
    KeyStatus,
    ListedKey,
    Page,
    Part,
    Upload,
    key_text,
    sent_digests,
    utf8_text,
)
from pressmark.buckets.requests import pause
from pressmark.errors import StoreError
from pressmark.version import __version__

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

__all__ = ["S3Bucket"]

#: Attempts of a request, and seconds before the second one; each further wait is twice as long.
TRIES, FIRST_WAIT = 6, 0.25
#: Seconds without any answer after which a run ends, instead of trying all of its files one after another.
SILENCE = 300.0
# Keys that a request may remove.
REMOVALS = 1000
# Nothing in a directory sorts after its name and this.
END = "\U0010ffff".encode()

# The metadata of every key that is written here.
_OURS = {"x-amz-meta-pressmark": __version__}
# Requests whose answers are XML.
_WITH_XML = frozenset(
    {"CompleteMultipartUpload", "CopyObject", "CreateMultipartUpload", "DeleteObjects", "ListMultipartUploads"}
    | {"ListObjectsV2", "ListParts"}
)
_NAME = re.compile("[A-Za-z0-9._-]{3,255}")
_XMLNS = ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
_ROOT = re.compile(rb"""(<\w+)\s+xmlns=["'][^"']*["']""")
_TEMPORARY = (409, 429, 500, 502, 503, 504)
_SIGN_IN = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
_EXPIRED = f"the credentials have expired; sign in again, or {_SIGN_IN}"
_UNKNOWN = "the server rejects the access key; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_PROFILE"
_DENIED = {
    "ExpiredToken": _EXPIRED,
    "TokenRefreshRequired": _EXPIRED,
    "InvalidToken": "the session token is invalid; check AWS_SESSION_TOKEN",
    "InvalidAccessKeyId": _UNKNOWN,
    "XAdminUserNotFound": _UNKNOWN,  # of versitygw, with the status 404
    "SignatureDoesNotMatch": _UNKNOWN,
    "RequestTimeTooSkewed": "the clock of this computer differs from the server's; correct it",
}
_MISMATCHES = ("BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch")


class S3Bucket:
    """A bucket; see :class:`pressmark.buckets.bucket.Bucket`.

    :param name: its name
    :param endpoint: the URL of a server; without one, that of the AWS settings (``AWS_ENDPOINT_URL_S3``), or Amazon
    :param profile: of the AWS settings
    :param region: without one, that of the AWS settings
    :param timeout: seconds that a server may be silent
    :param connections: number of connections to keep open
    :raises StoreError: botocore is not installed, or the endpoint or the region is malformed
    :raises PermissionError: the profile does not exist
    """

    def __init__(
        self,
        name: str,
        *,
        endpoint: str | None = None,
        profile: str | None = None,
        region: str | None = None,
        timeout: float = 60.0,
        connections: int = 32,
    ) -> None:
        self.name = name
        self.url = f"s3://{name}"
        self.accepted = {"sha256"}
        self.requests = self.sent = self.received = 0
        self._lock = Lock()
        # When a request failed for the first time since the last answer; and whether that is long ago.
        self._silent_since: float | None = None
        self._is_lost = False
        if not _NAME.fullmatch(name):
            raise OSError(errno.EINVAL, "invalid bucket name", self.url)
        try:
            from botocore.exceptions import BotoCoreError, ProfileNotFound
            from urllib3 import exceptions

            from pressmark.buckets.s3_requests import S3Requests
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if missing not in ("botocore", "urllib3"):
                raise
            what = f"object storage requires {missing}: pip install 'pressmark[s3]'"
            raise StoreError(self.url, what) from None
        self._errors = exceptions
        # Errors of a connection, or of an answer that breaks off.
        self._broken = (exceptions.HTTPError, ElementTree.ParseError, OSError)
        self._no_credentials = (BotoCoreError, RuntimeError)
        try:
            self._server = S3Requests(endpoint, profile, region, timeout, connections)
        except ProfileNotFound:
            named = profile or os.environ.get("AWS_PROFILE")
            reason = f"profile {named!r} not found; set AWS_PROFILE to one that exists"
            raise PermissionError(errno.EACCES, reason, self.url) from None
        except (BotoCoreError, ValueError) as error:
            raise StoreError(self.url, _line(error)) from None

    def close(self) -> None:
        """Close the connections."""
        self._server.close()

    # --- read ---------------------------------------------------------------------------------------------------------

    def list(self, prefix: bytes, *, after: bytes = b"", delimiter: bool = False, limit: int = 1000) -> Page:
        directory_end = after.find(b"/", len(prefix)) + 1 if delimiter and after.startswith(prefix) else 0
        if directory_end:
            after = after[:directory_end] + END
        query = {"list-type": "2", "max-keys": str(limit), "prefix": utf8_text(prefix), "encoding-type": "url"}
        query |= {"start-after": utf8_text(after)} if after else {}
        query |= {"delimiter": "/"} if delimiter else {}
        answer = self._call("ListObjectsV2", "GET", prefix, query)
        fields = _fields(answer.xml)
        decoded = _decoder(fields)
        keys = [
            ListedKey(
                decoded(one["Key"]),
                int(one["Size"]),
                _token(one.get("ETag")),
                _time(one["LastModified"]),
                one.get("StorageClass") or "STANDARD",
            )
            for one in _listed(answer.xml, "Contents")
        ]
        directories = [decoded(one["Prefix"]) for one in _listed(answer.xml, "CommonPrefixes")]
        for names in ([one.key for one in keys], directories):
            if any(one >= other for one, other in pairwise([after, *names])):
                raise OSError(errno.EIO, "the server does not list keys in the order of their bytes", prefix)
        last = max([one.key for one in keys[-1:]] + [one + END for one in directories[-1:]], default=None)
        if fields.get("IsTruncated") != "true":
            last = None
        elif last is None:
            raise OSError(errno.EIO, "the server returned an incomplete listing without keys", prefix)
        return Page(keys, directories, last, _date(answer.headers["date"]))

    def head(self, key: bytes) -> KeyStatus:
        return self._head(key, None)

    def _head(self, key: bytes, token: str | None) -> KeyStatus:
        headers = {"x-amz-checksum-mode": "ENABLED"} | _if_match(token)
        answer = self._call("HeadObject", "HEAD", key, headers=headers, text=key_text(key))
        return _status(answer.headers, int(answer.headers["content-length"]))

    def get(self, key: bytes, *, begin: int = 0, end: int | None = None, token: str | None = None) -> Download:
        headers = _if_match(token)
        if end is not None and begin >= end:
            return _Download(None, self._head(key, token), key, self)
        if begin or end is not None:
            headers["range"] = f"bytes={begin}-{'' if end is None else end - 1}"
        try:
            answer = self._call("GetObject", "GET", key, headers=headers, text=key_text(key))
        except _BeyondEnd:
            return _Download(None, self._head(key, token), key, self)
        download = _Download(answer.body, _status(answer.headers, 0), key, self)
        size = answer.headers.get("content-length", "")
        if "range" in headers:
            answered, _, size = answer.headers.get("content-range", "").partition("/")
            if not answered.startswith(f"bytes {begin}-"):
                download.close()
                raise OSError(errno.EIO, "the server does not return the requested range", key)
        if not size.isdecimal():
            download.close()
            raise OSError(errno.EIO, "the server does not return the size of the content", key)
        download.status = download.status._replace(size=int(size))
        if token not in (None, download.status.token):  # some servers ignore the condition
            download.close()
            raise KeyChangedError(key)
        return download

    # --- write --------------------------------------------------------------------------------------------------------

    def put(
        self,
        key: bytes,
        data: bytes | memoryview,
        *,
        over: str = NEW,
        digests: Mapping[str, str] = {},
        storage_class: str | None = None,
    ) -> str:
        headers = _condition(over) | _storage_class(storage_class) | _OURS
        for name, digest in sent_digests(digests, self.accepted).items():
            headers[f"x-amz-checksum-{name}"] = _base64(digest)
        known = digests.get("sha256") if "sha256" in self.accepted else None
        answer = self._call(
            "PutObject", "PUT", key, headers=headers, over=over, data=data, digest=known, text=key_text(key)
        )
        return _token(answer.headers.get("etag"))

    def start(self, key: bytes, *, storage_class: str | None = None) -> str:
        headers = _storage_class(storage_class) | _OURS
        if "sha256" in self.accepted:
            headers["x-amz-checksum-algorithm"] = "SHA256"
        answer = self._call("CreateMultipartUpload", "POST", key, {"uploads": None}, headers, text=key_text(key))
        return _fields(answer.xml)["UploadId"]

    def part(self, key: bytes, upload: str, number: int, data: bytes | memoryview) -> Part:
        digest = sha256(data).hexdigest() if "sha256" in self.accepted else None
        headers = {} if digest is None else {"x-amz-checksum-sha256": _base64(digest)}
        query = {"partNumber": str(number), "uploadId": upload}
        answer = self._call("UploadPart", "PUT", key, query, headers, data=data, digest=digest, text=key_text(key))
        is_kept = "x-amz-checksum-sha256" in answer.headers
        return Part(number, len(data), _token(answer.headers.get("etag")), digest if is_kept else None)

    def complete(self, key: bytes, upload: str, parts: Sequence[Part], *, over: str = NEW) -> str:
        listed = "".join(
            f'<Part><PartNumber>{one.number}</PartNumber><ETag>"{escape(one.token)}"</ETag>'
            + ("" if one.sha256 is None else f"<ChecksumSHA256>{_base64(one.sha256)}</ChecksumSHA256>")
            + "</Part>"
            for one in parts
        )
        body = f"<CompleteMultipartUpload{_XMLNS}>{listed}</CompleteMultipartUpload>".encode()
        token = None
        with suppress(_Missing):  # also if the answer to a first request was lost
            answer = self._call(
                *("CompleteMultipartUpload", "POST", key, {"uploadId": upload}, _condition(over)),
                over=over,
                body=body,
                text=key_text(key),
            )
            token = _token(_fields(answer.xml).get("ETag"))
        # versitygw reports success for an upload that does not exist, if the key exists.
        try:
            found = self.head(key).token
        except _Missing:
            raise FileNotFoundError(errno.ENOENT, "no such upload", key) from None
        if found != token:
            raise FileExistsError(errno.EEXIST, "the key exists", key) if over == NEW else KeyChangedError(key)
        return found

    def parts(self, key: bytes, upload: str) -> Sequence[Part]:
        found: list[Part] = []
        query: dict[str, str | None] = {"uploadId": upload}
        while True:
            answer = self._call("ListParts", "GET", key, query, text=key_text(key))
            for one in _listed(answer.xml, "Part"):
                digest = _hex(one["ChecksumSHA256"]) if one.get("ChecksumSHA256") else None
                found.append(Part(int(one["PartNumber"]), int(one["Size"]), _token(one.get("ETag")), digest))
            fields = _fields(answer.xml)
            if fields.get("IsTruncated") != "true":
                return found
            query["part-number-marker"] = fields["NextPartNumberMarker"]

    def abort(self, key: bytes, upload: str) -> None:
        with suppress(_Missing):
            self._call("AbortMultipartUpload", "DELETE", key, {"uploadId": upload}, text=key_text(key))

    def uploads(self, prefix: bytes) -> Iterator[Upload]:
        query = {"uploads": None, "prefix": utf8_text(prefix), "encoding-type": "url"}
        while True:
            answer = self._call("ListMultipartUploads", "GET", prefix, query)
            fields = _fields(answer.xml)
            decoded = _decoder(fields)
            for one in _listed(answer.xml, "Upload"):
                key = decoded(one["Key"])
                if key.startswith(prefix):
                    yield Upload(key, one["UploadId"], _time(one["Initiated"]))
            if fields.get("IsTruncated") != "true":
                return
            query["key-marker"] = decoded(fields["NextKeyMarker"]).decode()
            query["upload-id-marker"] = fields.get("NextUploadIdMarker", "")

    @property
    def server(self) -> object:
        """The address of the server."""
        return self._server.endpoint

    def copy(
        self,
        source: bytes,
        key: bytes,
        *,
        over: str = NEW,
        storage_class: str | None = None,
        of: Bucket | None = None,
    ) -> str:
        headers = _condition(over) | _storage_class(storage_class) | _OURS | {"x-amz-metadata-directive": "REPLACE"}
        bucket = (of or self).url.removeprefix("s3://")
        headers["x-amz-copy-source"] = quote(f"{bucket}/{key_text(source)}", safe="/~")
        answer = self._call("CopyObject", "PUT", key, headers=headers, over=over, text=key_text(key))
        return _token(_fields(answer.xml).get("ETag"))

    def delete(self, keys: Sequence[bytes], *, token: str | None = None) -> None:
        # XML, the list of a request, cannot contain control characters.
        lone = {key for key in keys if len(keys) == 1 or min(key, default=0) < 0x20}
        for key in lone:
            with suppress(_Missing):
                self._call("DeleteObject", "DELETE", key, headers=_if_match(token), text=key_text(key))
        texts = [key_text(key) for key in keys if key not in lone]
        for at in range(0, len(texts), REMOVALS):
            listed = "".join(f"<Object><Key>{escape(text)}</Key></Object>" for text in texts[at : at + REMOVALS])
            body = f"<Delete{_XMLNS}>{listed}<Quiet>true</Quiet></Delete>".encode()
            headers = {  # older servers demand the first, Amazon one of them
                "content-md5": b64encode(md5(body, usedforsecurity=False).digest()).decode(),
                "x-amz-checksum-crc32": b64encode(crc32(body).to_bytes(4)).decode(),
            }
            self._call("DeleteObjects", "POST", b"", {"delete": None}, headers, body=body)

    # --- requests -----------------------------------------------------------------------------------------------------

    def _call(
        self,
        operation: str,
        method: str,
        key: bytes,
        query: Mapping[str, str | None] = {},
        headers: Mapping[str, str] = {},
        *,
        text: str = "",
        over: str = ANY,
        data: bytes | memoryview = b"",
        digest: str | None = None,
        body: bytes = b"",
    ) -> _Answer:
        """Send a request, repeat it after temporary failures, and return the answer.

        :param operation: for messages, by its name in policies
        :param key: for messages
        :param text: the key that the request is for; empty for the bucket
        :param over: the condition of a request that writes
        :param data: content
        :param digest: its SHA-256 digest, if it is known
        :param body: other content, such as XML
        :raises StoreError: no request was answered for a long time; it is no :class:`OSError`, which callers report for
            one key before they continue with the next
        """
        attempt = 0
        while True:
            attempt += 1
            with self._lock:
                self.requests += 1
                self.sent += len(data)
            region = self._server.region
            try:
                answer = _Answer(
                    self._server.send(
                        *(method, self.name, text, query, headers, data or body, digest),
                        is_streamed=operation == "GetObject",
                    ),
                    is_xml=operation in _WITH_XML,
                )
                if answer.error is None:
                    self._silent_since, self._is_lost = None, False
                    return answer
                error: Exception = answer.error
            except (*self._no_credentials, *self._broken) as caught:
                error = caught
            if attempt < TRIES and isinstance(error, _Refused) and error.region not in ("", region):
                self._server.move(error.region)
                continue
            since = self._silent_since
            if isinstance(error, _Refused) and error.status < 500:
                self._silent_since, self._is_lost = None, False
            elif since is None:
                self._silent_since = monotonic()
            if attempt >= TRIES or self._is_lost or not self._is_temporary(error):
                translated = self._translated(operation, error, key, over)
                if since is not None and self._silent_since is not None and monotonic() > since + SILENCE:
                    self._is_lost = True
                    what = f"no request was answered for more than {SILENCE / 60:.0f} minutes"
                    raise StoreError(self.url, f"{what}: {translated.strerror}") from translated
                raise translated from error
            pause(FIRST_WAIT * 2 ** (attempt - 1) * random.uniform(0.5, 1))

    def _is_temporary(self, error: Exception) -> bool:
        if isinstance(error, _Refused):
            return error.status in _TEMPORARY
        return isinstance(error, self._broken) and not isinstance(error, self._errors.SSLError)

    def _translated(self, operation: str, error: Exception, key: bytes, over: str) -> OSError:
        """Return the error for the caller."""
        if not isinstance(error, _Refused):
            return self._of_connection(error)
        code, status = error.code, error.status
        key = key or error.key.encode()
        if code in _DENIED:
            return PermissionError(errno.EACCES, _DENIED[code], self.url)
        if code == "NoSuchBucket":
            return FileNotFoundError(errno.ENOENT, "bucket not found; check its name and the endpoint", self.url)
        if code == "NoSuchUpload":
            return _Missing(errno.ENOENT, "no such upload", key)
        if status == 412:
            return FileExistsError(errno.EEXIST, "the key exists", key) if over == NEW else KeyChangedError(key)
        if status == 404:
            if over in (NEW, ANY):
                return _Missing(errno.ENOENT, "no such key", key)
            return KeyChangedError(key)
        if status == 416:
            return _BeyondEnd(errno.EINVAL, "no such range", key)
        if code == "InvalidObjectState":
            return ArchivedError(key)
        if code in _MISMATCHES:
            return OSError(errno.EIO, "the content does not have the digest; it has changed since it was hashed", key)
        if status in (401, 403):
            reason = "access denied; use credentials with this right (AWS_ACCESS_KEY_ID or AWS_PROFILE)"
            return PermissionError(errno.EACCES, f"{operation}: {reason}", key or self.url)
        advice = "; try again later" if self._is_temporary(error) else ""
        return OSError(errno.EIO, f"the server reports {code}: {_line(error)}{advice}", key or self.url)

    def _of_connection(self, error: Exception) -> OSError:
        errors, endpoint = self._errors, self._server.endpoint
        if isinstance(error, errors.TimeoutError) and not isinstance(error, errors.NewConnectionError):
            reason = f"{endpoint} does not answer; check the endpoint and the network"
            return TimeoutError(errno.ETIMEDOUT, reason, self.url)
        if isinstance(error, self._broken):
            advice = "set AWS_CA_BUNDLE" if isinstance(error, errors.SSLError) else "check the endpoint and the network"
            reason = f"no connection to {endpoint}: {_innermost(error)}; {advice}"
            return ConnectionError(errno.ECONNRESET, reason, self.url)
        return PermissionError(errno.EACCES, f"no credentials: {_line(error)}; {_SIGN_IN}", self.url)


class _Refused(Exception):
    """An answer that is an error.

    :ivar key: the refused key, if the request has many
    :ivar region: of the bucket, if the server names it
    """

    def __init__(self, status: int, fields: Mapping[str, str], headers: Mapping[str, str] = {}) -> None:
        self.code = fields.get("Code") or str(status)
        self.status = _STATUSES.get(self.code, status)
        self.key = fields.get("Key", "")
        self.region = headers.get("x-amz-bucket-region") or fields.get("Region") or ""
        if status not in (301, 302, 307, 400):
            self.region = ""
        super().__init__(fields.get("Message") or f"status {status}")


class _Answer:
    """The answer to a request.

    :ivar body: to be read, if it is streamed
    :ivar xml: its content, if it is XML
    :ivar error: if it is one
    """

    def __init__(self, answer: BaseHTTPResponse, *, is_xml: bool) -> None:
        self.body = answer
        self.headers = answer.headers
        self.error: _Refused | None = None
        self.xml = ElementTree.Element("")
        if answer.status >= 300:
            fields: Mapping[str, str] = {}
            with suppress(ElementTree.ParseError):  # of a proxy, or of HEAD
                fields = _fields(_parsed(answer.data))
            self.error = _Refused(answer.status, fields, self.headers)
        elif is_xml:
            self.xml = _parsed(answer.data)
            listed = [self.xml] if self.xml.tag == "Error" else self.xml.findall("Error")
            for one in listed[:1]:
                self.error = _Refused(0, _fields(one))


class _Missing(FileNotFoundError):
    """A key or an upload does not exist."""


class _BeyondEnd(OSError):
    """A range begins at the end of the content or beyond."""


class _Download:
    def __init__(self, body: Any, status: KeyStatus, key: bytes, bucket: S3Bucket) -> None:
        self.status = status
        self._body = body
        self._key = key
        self._bucket = bucket

    def read(self, size: int = -1) -> bytes:
        if self._body is None:
            return b""
        try:
            data: bytes = self._body.read(None if size < 0 else size)
        except self._bucket._broken as error:
            reason = f"the connection was lost while the content was read: {_innermost(error)}; try again"
            raise ConnectionError(errno.ECONNRESET, reason, self._key) from error
        with self._bucket._lock:
            self._bucket.received += len(data)
        return data

    def close(self) -> None:
        if self._body is not None:
            self._body.close()


# Errors that servers also report after the status 200, or for single keys.
_STATUSES = {
    "AccessDenied": 403,
    "ConditionalRequestConflict": 409,
    "InternalError": 500,
    "PreconditionFailed": 412,
    "RequestTimeout": 503,  # with the status 400
    "ServiceUnavailable": 503,
    "SlowDown": 503,
}


def _condition(over: str) -> dict[str, str]:
    if not over:
        raise OSError(
            errno.EIO, "the server has no ETag for the key, so the key cannot be replaced safely; upload it again"
        )
    return {"if-none-match": "*"} if over == NEW else _if_match(None if over == ANY else over)


def _if_match(token: str | None) -> dict[str, str]:
    return {"if-match": f'"{token}"'} if token else {}


def _storage_class(name: str | None) -> dict[str, str]:
    return {} if name is None else {"x-amz-storage-class": name}


def _token(etag: str | None) -> str:
    """Return the token of a key; empty if the server has none, as for files copied into its directory."""
    return (etag or "").strip('"')


def _status(headers: Mapping[str, str], size: int) -> KeyStatus:
    digests = {}
    for name in DIGESTS:
        value = headers.get(f"x-amz-checksum-{name}")
        # Of an upload in parts, it is a digest of digests.
        if value and "-" not in value and headers.get("x-amz-checksum-type") != "COMPOSITE":
            digests[name] = _hex(value)
    storage_class = headers.get("x-amz-storage-class") or "STANDARD"
    is_restored = 'ongoing-request="false"' in headers.get("x-amz-restore", "")
    is_archived = (storage_class in ARCHIVES or "x-amz-archive-status" in headers) and not is_restored
    modified = _date(headers["last-modified"])
    is_ours = "x-amz-meta-pressmark" in headers
    return KeyStatus(size, _token(headers.get("etag")), modified, storage_class, digests, is_archived, is_ours)


def _date(text: str) -> float:
    """Parse a time of a header."""
    return parsedate_to_datetime(text).timestamp()


def _time(text: str) -> float:
    """Parse a time of a listing."""
    return datetime.fromisoformat(text).timestamp()


def _parsed(data: bytes) -> ElementTree.Element:
    """Parse XML, without its namespace."""
    return ElementTree.fromstring(_ROOT.sub(rb"\1", data.lstrip(), count=1))


def _fields(element: ElementTree.Element) -> dict[str, str]:
    return {one.tag: one.text or "" for one in element}


def _listed(element: ElementTree.Element, tag: str) -> Iterator[dict[str, str]]:
    return map(_fields, element.iterfind(tag))


def _decoder(fields: Mapping[str, str]) -> Callable[[str], bytes]:
    """Return the function that decodes keys of a listing; some servers ignore the requested encoding."""
    if fields.get("EncodingType") == "url":
        return lambda text: unquote_plus(text).encode()
    return str.encode


def _base64(digest: str) -> str:
    return b64encode(bytes.fromhex(digest)).decode()


def _hex(value: str) -> str:
    return b64decode(value).hex()


def _line(error: object) -> str:
    """Return a message as a part of a line."""
    return " ".join(str(error).split()).rstrip(".")


def _innermost(error: BaseException) -> str:
    """Return the message of the error that caused the others."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return (isinstance(error, OSError) and error.strerror) or _line(error)
