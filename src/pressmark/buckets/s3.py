"""A bucket of S3, or of a server that speaks its protocol, on boto3.

Nothing is left to the defaults of boto3: no checksum is sent that the server was not seen to accept, every wait has a
time-out, and requests are repeated here, where a refusal after a lost answer is recognised. The content of each request
is part of its signature, so a server stores no other bytes than those that were sent.
"""

from __future__ import annotations

import errno
import os
import random
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from hashlib import md5, sha256
from itertools import pairwise
from threading import Lock
from typing import Any
from urllib.parse import unquote_plus

from pressmark.buckets.bucket import (
    ANY,
    DIGESTS,
    NEW,
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

__all__ = ["S3Bucket"]

#: How often a request is sent, and the seconds before the second time; each further wait is twice as long.
TRIES, FIRST_WAIT = 6, 0.25
CONNECT_TIMEOUT = 10.0
# From this size on, content is sent in blocks, after the server has agreed to it.
BLOCKWISE = 1 << 20
# Keys that a request may remove.
REMOVALS = 1000
# Nothing in a directory sorts after its name and this.
END = "\U0010ffff".encode()

# The metadata of every key that is written here.
_OURS: dict[str, Any] = {"Metadata": {"pressmark": __version__}}
_ARCHIVES = ("GLACIER", "DEEP_ARCHIVE")
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
    :param endpoint: the URL of a server; without one, that of boto3's settings (``AWS_ENDPOINT_URL_S3``), or AWS
    :param profile: of boto3's settings
    :param region: without one, that of boto3's settings
    :param timeout: seconds that a server may be silent
    :param connections: number of threads that can use the bucket at once without waiting for a connection
    :raises StoreError: boto3 is not installed, or the endpoint or the region is malformed
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
        connections: int = 16,
    ) -> None:
        self.name = name
        self.url = f"s3://{name}"
        self.accepted = {"sha256"}
        self.requests = self.sent = self.received = 0
        self._lock = Lock()
        try:
            import boto3
        except ModuleNotFoundError as error:
            if error.name != "boto3":
                raise
            raise StoreError(self.url, "object storage requires boto3: pip install 'pressmark[s3]'") from None
        from botocore import exceptions
        from botocore.parsers import ResponseParserError
        from botocore.session import Session

        self._errors = exceptions
        # Of a connection, or of an answer that breaks off.
        self._broken = (exceptions.ConnectionError, exceptions.HTTPClientError, ResponseParserError, OSError)
        try:
            settings = Session(profile=profile)
            # The parser of boto3 takes three quarters of the time of a listing.
            settings.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=_time)
            session = boto3.Session(botocore_session=settings, region_name=region)
            s3 = _client(session, endpoint, timeout, connections)
            style = (settings.get_scoped_config().get("s3") or {}).get("addressing_style")
            # Few servers other than Amazon's have a host name for each bucket.
            if ".amazonaws." not in s3.meta.endpoint_url and style is None:
                s3.close()
                s3 = _client(session, endpoint, timeout, connections, s3={"addressing_style": "path"})
        except exceptions.ProfileNotFound:
            named = profile or os.environ.get("AWS_PROFILE")
            reason = f"profile {named!r} not found; set AWS_PROFILE to one that exists"
            raise PermissionError(errno.EACCES, reason, self.url) from None
        except (exceptions.BotoCoreError, ValueError) as error:
            raise StoreError(self.url, _line(error)) from None
        s3.meta.events.register("before-send.s3", self._before_send)
        s3.meta.events.register("before-sign.s3.DeleteObjects", _add_md5)
        self._s3 = s3
        self._endpoint: str = s3.meta.endpoint_url

    def close(self) -> None:
        """Close the connections."""
        self._s3.close()

    # --- read ---------------------------------------------------------------------------------------------------------

    def list(self, prefix: bytes, *, after: bytes = b"", delimiter: bool = False, limit: int = 1000) -> Page:
        directory_end = after.find(b"/", len(prefix)) + 1 if delimiter and after.startswith(prefix) else 0
        if directory_end:
            after = after[:directory_end] + END
        more: dict[str, Any] = {"StartAfter": utf8_text(after)} if after else {}
        if delimiter:
            more["Delimiter"] = "/"
        answer = self._call(
            "list_objects_v2", prefix, Prefix=utf8_text(prefix), MaxKeys=limit, EncodingType="url", **more
        )
        decoded = _decoder(answer)
        keys = [
            ListedKey(
                decoded(one["Key"]),
                one["Size"],
                _token(one),
                one["LastModified"].timestamp(),
                one.get("StorageClass", "STANDARD"),
            )
            for one in answer.get("Contents", ())
        ]
        directories = [decoded(one["Prefix"]) for one in answer.get("CommonPrefixes", ())]
        for names in ([one.key for one in keys], directories):
            if any(one >= other for one, other in pairwise([after, *names])):
                raise OSError(errno.EIO, "the server does not list keys in the order of their bytes", prefix)
        last = max([one.key for one in keys[-1:]] + [one + END for one in directories[-1:]], default=None)
        if not answer.get("IsTruncated"):
            last = None
        elif last is None:
            raise OSError(errno.EIO, "the server returned an incomplete listing without keys", prefix)
        return Page(keys, directories, last, _date(answer))

    def head(self, key: bytes) -> KeyStatus:
        return self._head(key, None)

    def _head(self, key: bytes, token: str | None) -> KeyStatus:
        answer = self._call("head_object", key, Key=key_text(key), ChecksumMode="ENABLED", **_if_match(token))
        return _status(answer, answer["ContentLength"])

    def get(self, key: bytes, *, begin: int = 0, end: int | None = None, token: str | None = None) -> Download:
        more = _if_match(token)
        if end is not None and begin >= end:
            return _Download(None, self._head(key, token), key, self)
        if begin or end is not None:
            more["Range"] = f"bytes={begin}-{'' if end is None else end - 1}"
        try:
            answer = self._call("get_object", key, Key=key_text(key), **more)
        except _BeyondEnd:
            return _Download(None, self._head(key, token), key, self)
        size = answer["ContentLength"]
        if "Range" in more:
            answered, _, whole = answer.get("ContentRange", "").partition("/")
            if not answered.startswith(f"bytes {begin}-"):
                answer["Body"].close()
                raise OSError(errno.EIO, "the server does not return the requested range", key)
            size = int(whole)
        status = _status(answer, size)
        if token not in (None, status.token):  # some servers ignore the condition
            answer["Body"].close()
            raise KeyChangedError(key)
        return _Download(answer["Body"], status, key, self)

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
        more = _condition(over) | _storage_class(storage_class) | _OURS
        for name, digest in sent_digests(digests, self.accepted).items():
            more[f"Checksum{name.upper()}"] = _base64(digest)
        return _token(self._call("put_object", key, over=over, data=data, Key=key_text(key), **more))

    def start(self, key: bytes, *, storage_class: str | None = None) -> str:
        more = _storage_class(storage_class) | _OURS
        if "sha256" in self.accepted:
            more["ChecksumAlgorithm"] = "SHA256"
        answer = self._call("create_multipart_upload", key, Key=key_text(key), **more)
        return str(answer["UploadId"])

    def part(self, key: bytes, upload: str, number: int, data: bytes | memoryview) -> Part:
        digest = sha256(data).hexdigest() if "sha256" in self.accepted else None
        more: dict[str, Any] = {} if digest is None else {"ChecksumSHA256": _base64(digest)}
        answer = self._call(
            "upload_part", key, data=data, Key=key_text(key), UploadId=upload, PartNumber=number, **more
        )
        return Part(number, len(data), _token(answer), digest if answer.get("ChecksumSHA256") else None)

    def complete(self, key: bytes, upload: str, parts: Sequence[Part], *, over: str = NEW) -> str:
        listed = [
            {"PartNumber": one.number, "ETag": f'"{one.token}"'}
            | ({} if one.sha256 is None else {"ChecksumSHA256": _base64(one.sha256)})
            for one in parts
        ]
        token = None
        with suppress(_Missing):  # also if the answer to a first request was lost
            answer = self._call(
                "complete_multipart_upload",
                key,
                over=over,
                Key=key_text(key),
                UploadId=upload,
                MultipartUpload={"Parts": listed},
                **_condition(over),
            )
            token = _token(answer)
        # If the key exists, versitygw reports success for an upload that does not.
        try:
            found = self.head(key).token
        except _Missing:
            raise FileNotFoundError(errno.ENOENT, "no such upload", key) from None
        if found != token:
            raise FileExistsError(errno.EEXIST, "the key exists", key) if over == NEW else KeyChangedError(key)
        return found

    def parts(self, key: bytes, upload: str) -> Sequence[Part]:
        found: list[Part] = []
        more: dict[str, Any] = {}
        while True:
            answer = self._call("list_parts", key, Key=key_text(key), UploadId=upload, **more)
            for one in answer.get("Parts", ()):
                digest = _hex(one["ChecksumSHA256"]) if one.get("ChecksumSHA256") else None
                found.append(Part(one["PartNumber"], one["Size"], _token(one), digest))
            if not answer.get("IsTruncated"):
                return found
            more = {"PartNumberMarker": answer["NextPartNumberMarker"]}

    def abort(self, key: bytes, upload: str) -> None:
        with suppress(_Missing):
            self._call("abort_multipart_upload", key, Key=key_text(key), UploadId=upload)

    def uploads(self, prefix: bytes) -> Iterator[Upload]:
        more: dict[str, Any] = {}
        while True:
            answer = self._call("list_multipart_uploads", prefix, Prefix=utf8_text(prefix), EncodingType="url", **more)
            decoded = _decoder(answer)
            for one in answer.get("Uploads", ()):
                key = decoded(one["Key"])
                if key.startswith(prefix):
                    yield Upload(key, one["UploadId"], one["Initiated"].timestamp())
            if not answer.get("IsTruncated"):
                return
            marker = answer.get("NextUploadIdMarker", "")
            more = {"KeyMarker": decoded(answer["NextKeyMarker"]).decode(), "UploadIdMarker": marker}

    def copy(self, source: bytes, key: bytes, *, over: str = NEW, storage_class: str | None = None) -> str:
        answer = self._call(
            "copy_object",
            key,
            over=over,
            Key=key_text(key),
            CopySource={"Bucket": self.name, "Key": key_text(source)},
            **_condition(over),
            **_storage_class(storage_class),
        )
        return _token(answer["CopyObjectResult"])

    def delete(self, keys: Sequence[bytes], *, token: str | None = None) -> None:
        # Control characters cannot be written in the list of a request.
        lone = {key for key in keys if len(keys) == 1 or min(key, default=0) < 0x20}
        for key in lone:
            with suppress(_Missing):
                self._call("delete_object", key, Key=key_text(key), **_if_match(token))
        texts = [key_text(key) for key in keys if key not in lone]
        for at in range(0, len(texts), REMOVALS):
            listed = [{"Key": text} for text in texts[at : at + REMOVALS]]
            self._call("delete_objects", b"", Delete={"Objects": listed, "Quiet": True})

    # --- requests -----------------------------------------------------------------------------------------------------

    def _call(
        self,
        operation: str,
        key: bytes,
        *,
        over: str = ANY,
        data: bytes | memoryview | None = None,
        **parameters: Any,
    ) -> Any:
        """Send a request, several times if it fails for a time, and return the answer.

        :param key: for messages
        :param over: the condition of a request that writes
        :param data: the content
        """
        attempt = 0
        while True:
            attempt += 1
            if data is not None:
                parameters["Body"] = bytes(data) if len(data) < BLOCKWISE else _Blocks(data)
                with self._lock:
                    self.sent += len(data)
            try:
                answer = getattr(self._s3, operation)(Bucket=self.name, **parameters)
                for one in answer.get("Errors", ()):
                    raise self._errors.ClientError({"Error": one, "ResponseMetadata": {}}, operation)
                return answer
            except (self._errors.ClientError, self._errors.BotoCoreError, *self._broken) as error:
                if attempt == TRIES or not self._is_temporary(error):
                    raise self._translated(error, key, over) from error
            pause(FIRST_WAIT * 2 ** (attempt - 1) * random.uniform(0.5, 1))

    def _before_send(self, **_details: object) -> None:
        with self._lock:
            self.requests += 1

    def _is_temporary(self, error: Exception) -> bool:
        if isinstance(error, self._errors.ClientError):
            _, status = _code(error)
            return status in _TEMPORARY
        if isinstance(error, self._errors.SSLError):
            return False
        return isinstance(error, self._broken)

    def _translated(self, error: Exception, key: bytes, over: str) -> OSError:
        """Return the error for the caller."""
        if not isinstance(error, self._errors.ClientError):
            return self._of_connection(error)
        code, status = _code(error)
        key = key or error.response["Error"].get("Key", "").encode()
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
            return OSError(errno.EIO, "the content is archived; restore it from the archive before it is read", key)
        if code in _MISMATCHES:
            return OSError(errno.EIO, "the content does not have the digest; it has changed since it was hashed", key)
        if status in (401, 403):
            reason = "access denied; use credentials with this right (AWS_ACCESS_KEY_ID or AWS_PROFILE)"
            return PermissionError(errno.EACCES, f"{error.operation_name}: {reason}", key or self.url)
        message = error.response["Error"].get("Message") or f"status {status}"
        advice = "; try again later" if self._is_temporary(error) else ""
        return OSError(errno.EIO, f"the server reports {code}: {_line(message)}{advice}", key or self.url)

    def _of_connection(self, error: Exception) -> OSError:
        errors = self._errors
        if isinstance(error, errors.ParamValidationError):
            return OSError(errno.EINVAL, _line(error), self.url)
        if isinstance(error, errors.ConnectTimeoutError | errors.ReadTimeoutError):
            reason = f"{self._endpoint} does not answer; check the endpoint and the network"
            return TimeoutError(errno.ETIMEDOUT, reason, self.url)
        if isinstance(error, self._broken):
            advice = "set AWS_CA_BUNDLE" if isinstance(error, errors.SSLError) else "check the endpoint and the network"
            reason = f"no connection to {self._endpoint}: {_innermost(error)}; {advice}"
            return ConnectionError(errno.ECONNRESET, reason, self.url)
        return PermissionError(errno.EACCES, f"no credentials: {_line(error)}; {_SIGN_IN}", self.url)


class _Missing(FileNotFoundError):
    """A key or an upload does not exist."""


class _BeyondEnd(OSError):
    """A range begins at the end of the content or beyond."""


class _Blocks:
    """Content as a file, which is not copied."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)
        self._at = 0

    def __len__(self) -> int:
        return len(self._data)

    def read(self, size: int | None = -1) -> memoryview:
        begin = self._at
        self._at = len(self) if size is None or size < 0 else min(begin + size, len(self))
        return self._data[begin : self._at]

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, len(self))[whence]
        return self._at

    def tell(self) -> int:
        return self._at


class _Download:
    def __init__(self, body: Any, status: KeyStatus, key: bytes, bucket: S3Bucket) -> None:
        self.status = status
        self._body = body
        self._key = key
        self._bucket = bucket

    def read(self, size: int = -1) -> bytes:
        if self._body is None:
            return b""
        from urllib3.exceptions import HTTPError

        try:
            data: bytes = self._body.read(None if size < 0 else size)
        except (self._bucket._errors.BotoCoreError, HTTPError, OSError) as error:
            reason = f"the connection was lost while the content was read: {_innermost(error)}; try again"
            raise ConnectionError(errno.ECONNRESET, reason, self._key) from error
        with self._bucket._lock:
            self._bucket.received += len(data)
        return data

    def close(self) -> None:
        if self._body is not None:
            self._body.close()


def _client(session: Any, endpoint: str | None, timeout: float, connections: int, **more: Any) -> Any:
    """Return a client of boto3 that repeats no request and sends no checksum by itself."""
    from botocore.config import Config

    config = Config(
        connect_timeout=min(timeout, CONNECT_TIMEOUT),
        read_timeout=timeout,
        max_pool_connections=connections,
        tcp_keepalive=True,
        retries={"total_max_attempts": 1, "mode": "standard"},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        user_agent_extra=f"pressmark/{__version__}",
        **more,
    )
    return session.client("s3", endpoint_url=endpoint, config=config)


def _add_md5(request: Any, **_details: object) -> None:
    """Add the digest that older servers demand when keys are removed."""
    request.headers["Content-MD5"] = b64encode(md5(request.body, usedforsecurity=False).digest()).decode()


def _code(error: Any) -> tuple[str, int]:
    """Return the code and the status of an error."""
    code = str(error.response["Error"].get("Code", ""))
    return code, _STATUSES.get(code) or error.response["ResponseMetadata"].get("HTTPStatusCode", 0)


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


def _condition(over: str) -> dict[str, Any]:
    if not over:
        raise OSError(errno.EIO, "the server has no ETag for the key, which cannot be replaced safely; write it anew")
    return {"IfNoneMatch": "*"} if over == NEW else _if_match(None if over == ANY else over)


def _if_match(token: str | None) -> dict[str, Any]:
    return {"IfMatch": f'"{token}"'} if token else {}


def _storage_class(name: str | None) -> dict[str, Any]:
    return {} if name is None else {"StorageClass": name}


def _token(answer: Mapping[str, Any]) -> str:
    """Return the token of a key; empty if the server has none, as for files copied into its directory."""
    return str(answer.get("ETag", "")).strip('"')


def _date(answer: Mapping[str, Any]) -> float:
    return parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"]).timestamp()


def _status(answer: Mapping[str, Any], size: int) -> KeyStatus:
    digests = {}
    for name in DIGESTS:
        value = answer.get(f"Checksum{name.upper()}")
        # Of an upload in parts, it is a digest of digests.
        if value and "-" not in value and answer.get("ChecksumType") != "COMPOSITE":
            digests[name] = _hex(value)
    storage_class = answer.get("StorageClass", "STANDARD")
    is_restored = 'ongoing-request="false"' in answer.get("Restore", "")
    is_archived = (storage_class in _ARCHIVES or bool(answer.get("ArchiveStatus"))) and not is_restored
    modified = answer["LastModified"].timestamp()
    is_ours = "pressmark" in answer.get("Metadata", {})
    return KeyStatus(size, _token(answer), modified, storage_class, digests, is_archived, is_ours)


def _time(text: Any) -> Any:
    """Parse a time: of a listing, or of a header."""
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        from botocore.utils import parse_timestamp

        return parse_timestamp(text)


def _decoder(answer: Mapping[str, Any]) -> Any:
    """Return the function that decodes keys of a listing; some servers ignore the encoding that was asked for."""
    if answer.get("EncodingType") == "url":
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
