"""Download one URL to a temporary file, within limits, and resume interrupted downloads.

The URLs of a fetch file are untrusted input, so each step is checked: the scheme; each address of the host, and the
connection goes to the checked address; each redirect, like a URL of fetch.txt. Content is never decompressed. Hosts and
buckets receive the user's credentials only if the user named them.

Proxies are not used, because they would resolve host names themselves.

Content is hashed while it arrives, and written to a :class:`~pressmark.bagit.fetch.partial.PartialFile`. After a broken
connection or an interrupted run, the next request asks for the rest, provided that the file has not changed.
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import io
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult

from pressmark.bagit.fetch.addresses import resolve, why_not_public
from pressmark.bagit.fetch.allowed_buckets import AllowedBuckets, key_failures
from pressmark.bagit.fetch.credentials import Credentials
from pressmark.bagit.fetch.partial import (
    BLOCK,
    RESUMABLE,
    PartialFile,
    remove_partial,
    validator_of,
)
from pressmark.bagit.fetch.urls import DownloadError, ParsedUrl, joined, parse_url, redacted_url, split_url
from pressmark.buckets.bucket import KeyChangedError
from pressmark.buckets.remote_file import RemoteFile
from pressmark.errors import BagError, quoted
from pressmark.fs.beneath import Directory
from pressmark.option_names import option
from pressmark.version import __version__

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, HTTPConnectionPool

__all__ = ["NO_SPACE", "Download", "DownloadPolicy", "Downloader"]

REDIRECTS = 10
# A connection with less data than this in PATIENCE times the timeout is too slow.
LEAST = 1 << 10  # 1 KiB
PATIENCE = 2
LONGEST_TIMEOUT = 86_400  # seconds: a day
CONNECT_TIMEOUT = 30.0  # seconds, if the timeout is not shorter
LONGEST_PAUSE = 30.0  # seconds between two tries, unless the server asks for more
LONGEST_RETRY_AFTER = 120.0  # seconds that a server may ask us to wait
POOLS = 64  # hosts with open connections
CONNECTIONS = 64  # open connections to a host
NO_SPACE = frozenset({errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG})

_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
_REDIRECTIONS = frozenset({301, 302, 303, 307, 308})
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)", re.ASCII)


@dataclass(frozen=True)
class DownloadPolicy:
    """The rules of downloads: allowed URLs, limits, timeouts and retries.

    :ivar allow_http: allow unencrypted HTTP, also in redirects
    :ivar allow_private: allow hosts with any address
    :ivar allow_hosts: names of hosts that may have any address
    :ivar allow_buckets: names of buckets whose ``s3:`` URLs are allowed
    :ivar credentials: header fields for named hosts
    :ivar maximum: size limit in bytes for files of unknown length; :data:`None` for no limit
    :ivar retries: number of retries of a request, counted from 0 again after each mebibyte
    :ivar timeout: seconds without data after which a connection fails
    :ivar pause: seconds before the first retry, doubled each time
    :ivar certificates: a file with the certificates to trust instead of the system's
    :raises ValueError: a number is out of range
    """

    allow_http: bool = False
    allow_private: bool = False
    allow_hosts: frozenset[str] = frozenset()
    allow_buckets: frozenset[str] = frozenset()
    credentials: Credentials = field(default=Credentials(), repr=False)
    maximum: int | None = None
    retries: int = 4
    timeout: float = 60.0
    pause: float = 0.5
    certificates: str | None = None

    def __post_init__(self) -> None:
        if self.retries < 0:
            raise ValueError(f"retries={self.retries}: expected 0 or more")
        if not 0 < self.timeout <= LONGEST_TIMEOUT:
            raise ValueError(f"timeout={self.timeout}: expected more than 0, and at most {LONGEST_TIMEOUT}")
        if self.maximum is not None and self.maximum < 0:
            raise ValueError(f"maximum={self.maximum}: expected 0 or more")


class Download(NamedTuple):
    """The result of a download.

    ============= ==================================================================================
    kind          meaning
    ============= ==================================================================================
    ``refused``   the URL, or a redirect, is not allowed
    ``failed``    the server does not send the complete file
    ``too-long``  the file is longer than allowed; the download stopped
    ``mismatch``  the complete file has wrong digests
    ``disk``      the file could not be written
    ``full``      no space left on the disk
    ``cancelled`` the run was cancelled
    ============= ==================================================================================

    :ivar kind: a word of the table; :data:`None` for success
    :ivar message: one line that explains the kind
    :ivar size: present size in bytes
    :ivar digests: lower-case hex digests by official algorithm name, if the file is complete
    """

    kind: str | None
    message: str
    size: int
    digests: Mapping[str, str]


class _Exchange:
    """A request and its response.

    :ivar deadline: when reading fails, if not enough content has arrived until then
    :ivar socket: where the response is read from; :data:`None` while connecting
    """

    __slots__ = ("deadline", "location", "socket")

    def __init__(self, location: ParsedUrl) -> None:
        self.location = location
        self.deadline = 0.0
        self.socket: socket.socket | None = None


class _TimedReads(io.RawIOBase):
    """The bytes of a connection, until a deadline.

    A timeout for each read is not sufficient: a status line, headers, chunks and trailers can arrive one byte at a
    time, forever, within one call of :mod:`http.client`.
    """

    def __init__(self, raw: Any, exchange: _Exchange) -> None:
        super().__init__()
        self._raw = raw
        self._exchange = exchange

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if monotonic() > self._exchange.deadline:
            where = redacted_url(self._exchange.location.url)
            raise DownloadError("failed", f"{where}: transfer too slow", again=True)
        count: int | None = self._raw.readinto(buffer)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


# --- requests ---------------------------------------------------------------------------------------------------------


class Downloader:
    """The policy, connections and cancellation that the downloads of a run share; thread-safe.

    :raises BagError: urllib3 or, for buckets, botocore is missing, or the certificates cannot be read
    """

    def __init__(self, policy: DownloadPolicy) -> None:
        try:
            import urllib3
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "urllib3":
                raise
            raise BagError("fetch.txt", "downloads require urllib3: pip install 'pressmark[fetch]'") from None
        self._urllib3 = urllib3
        self._policy = policy
        self._hosts = frozenset(host.lower().rstrip(".").strip("[]") for host in policy.allow_hosts)
        self._buckets = AllowedBuckets(policy.allow_buckets)
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._pools: dict[tuple[str, str, int, str], HTTPConnectionPool] = {}
        # The request of each thread.
        self._exchanges: dict[int, _Exchange] = {}
        self._context: ssl.SSLContext | None = None
        if policy.certificates is not None:
            try:
                self._context = ssl.create_default_context(cafile=policy.certificates)
            except OSError as error:
                raise BagError(policy.certificates, f"cannot read certificates: {_words(error)}") from None

    def cancel(self) -> None:
        """Cancel all downloads; each one returns the kind ``cancelled``."""
        self._ended.set()
        for exchange in list(self._exchanges.values()):
            if exchange.socket is not None:
                # The TCP connection, not TLS, which another thread is using.
                with contextlib.suppress(OSError):  # closed
                    socket.socket.shutdown(exchange.socket, socket.SHUT_RDWR)

    def cancelled(self) -> bool:
        """Return whether the downloads were cancelled."""
        return self._ended.is_set()

    def close(self) -> None:
        """Close idle connections."""
        with self._lock:
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.close()

    def download(
        self,
        url: str,
        directory: Directory,
        name: bytes,
        length: int | None,
        expected: Mapping[str, str],
        on_bytes: Callable[[int], object] | None = None,
    ) -> Download:
        """Download ``url`` to the temporary file ``name``: complete, on disk, and with the expected digests.

        The download of an existing file is continued. If a later run can succeed after a failure, the file is kept.

        :param directory: directory of the file
        :param length: size in bytes; also a limit
        :param expected: lower-case hex digests by official algorithm name
        :param on_bytes: called with the number of bytes of each read, in this thread
        """
        part = None
        try:
            with PartialFile(directory, name, url, expected, length, self._ended.is_set) as part:
                if (limit := self._limit(length)) is not None and part.size > limit:
                    part.restart()
                found = self._compare(url, part, length, expected, on_bytes)
                if found.kind is None:
                    part.flush()
                    return found
            remove_partial(directory, name)
            return found
        except DownloadError as failure:
            if part is not None and failure.kind in ("refused", "too-long"):
                remove_partial(directory, name)
            return Download(failure.kind, failure.reason, part.size if part else 0, {})
        except OSError as error:
            if error.errno in NO_SPACE:
                if length is None:  # it may be endless
                    remove_partial(directory, name)
                return Download("full", "no space left on the disk", part.size if part else 0, {})
            return Download("disk", f"cannot be written: {error.strerror or error}", part.size if part else 0, {})

    def _limit(self, length: int | None) -> int | None:
        return self._policy.maximum if length is None else length

    def _compare(
        self,
        url: str,
        part: PartialFile,
        length: int | None,
        expected: Mapping[str, str],
        on_bytes: Callable[[int], object] | None,
    ) -> Download:
        """Complete the content, and compare its digests."""
        limit = self._limit(length)
        # If content from several responses has wrong digests, read it once more.
        for _ in range(2):
            if not 0 < part.size == length:
                self._retry(part, lambda: self._request(url, part, length, limit, on_bytes or (lambda _size: None)))
            digests, size = part.digests(), part.size
            if digests == expected:
                return Download(None, "", size, digests)
            spliced = part.spliced
            part.restart()
            if not spliced:
                break
        return Download("mismatch", f"{redacted_url(url)} has wrong checksums", size, digests)

    def _retry(self, part: PartialFile, request: Callable[[], object]) -> None:
        """Call ``request`` until it succeeds, within the limits of the policy."""
        tries = 0
        while True:
            if self._ended.is_set():
                raise DownloadError("cancelled", "run cancelled")
            before = part.size
            try:
                try:
                    request()
                finally:
                    self._exchanges.pop(threading.get_ident(), None)
                return
            except DownloadError as failure:
                if self._ended.is_set():
                    raise DownloadError("cancelled", "run cancelled") from None
                # Without a validator, the next request begins again: nothing is gained.
                if part.size - before >= RESUMABLE and part.validator is not None:
                    tries = 0
                if not failure.again or tries >= self._policy.retries:
                    raise
                pause = min(self._policy.pause * 2 ** min(tries, 32), LONGEST_PAUSE)
                if self._ended.wait(pause if failure.wait is None else failure.wait):
                    raise DownloadError("cancelled", "run cancelled") from None
                tries += 1
                if part.size and part.validator is None:
                    part.restart()

    def _request(
        self, url: str, part: PartialFile, length: int | None, limit: int | None, on_bytes: Callable[[int], object]
    ) -> None:
        """Follow ``url`` to a response, and read the missing part of the file."""
        parts = split_url(url)
        if parts.scheme == "s3":
            self._take_key(url, parts, part, limit, on_bytes)
            return
        with self._answered(url, parts, part) as (response, location):
            self._take(response, location, part, length, limit, on_bytes)

    @contextlib.contextmanager
    def _answered(
        self, url: str, parts: SplitResult, part: PartialFile
    ) -> Iterator[tuple[BaseHTTPResponse, ParsedUrl]]:
        """Send a request, follow redirects, and return the response without its body."""
        self._check_scheme(url, parts, None)
        location = parse_url(url, parts)
        authorization = location.authorization
        for _ in range(REDIRECTS + 1):
            response = self._ask(location, authorization, part)
            try:
                if response.status not in _REDIRECTIONS:
                    yield response, location
                    return
                onward = response.headers.get("Location")
                if onward is None:
                    raise DownloadError("failed", f"{redacted_url(location.url)} redirects without a location")
            finally:
                self._let_go(response)
            onward = joined(location.url, onward)
            parts = split_url(onward)
            self._check_scheme(onward, parts, location)
            following = parse_url(onward, parts)
            # Credentials are only sent to their own origin.
            authorization = following.authorization or (authorization if following.origin == location.origin else None)
            location = following
        raise DownloadError("failed", f"{redacted_url(url)} redirects more than {REDIRECTS} times")

    def _check_scheme(self, url: str, parts: SplitResult, before: ParsedUrl | None) -> None:
        if parts.scheme == "https" or (parts.scheme == "http" and self._policy.allow_http):
            return
        what = (
            redacted_url(url)
            if before is None
            else f"{redacted_url(before.url)} redirects to {redacted_url(url)}, which"
        )
        if parts.scheme == "http":
            how = f"use {option('allow_http', True)} if you trust the network"
            raise DownloadError("refused", f"{what} is not encrypted; {how}")
        if not parts.scheme:
            raise DownloadError("refused", f"{what} has no scheme; expected https:")
        if parts.scheme == "file" and before is None:
            raise DownloadError("refused", f"{what} is a local file; copy it to its path in the bag")
        raise DownloadError("refused", f"{what} has the scheme {quoted(parts.scheme)}; expected https:")

    def _addresses(self, location: ParsedUrl) -> list[str]:
        """Return the addresses of a host, all of which are allowed."""
        try:
            addresses = resolve(location.host, location.port)
        except socket.gaierror as error:
            again = error.errno == socket.EAI_AGAIN
            raise DownloadError("failed", f"unknown host {quoted(location.host)}: {error.strerror}", again) from None
        except (OSError, UnicodeError) as error:
            raise DownloadError("failed", f"unknown host {quoted(location.host)}: {error}") from None
        if not self._policy.allow_private and location.host.rstrip(".") not in self._hosts:
            for address in addresses:
                fault = why_not_public(address)
                # One is enough: a host with both kinds of addresses is suspicious.
                if fault is not None:
                    raise DownloadError(
                        "refused",
                        f"host {quoted(location.host)} has the address {address}, which is {fault}; "
                        f"use {option('allow_hosts', [location.host])} if you trust it",
                    )
        return addresses

    def _ask(self, location: ParsedUrl, authorization: str | None, part: PartialFile) -> BaseHTTPResponse:
        """Send the request, and return the response without its body."""
        headers = {
            "Host": location.authority,
            "User-Agent": f"pressmark/{__version__}",
            "Accept": "*/*",
            # Compressed content would have another length and other digests.
            "Accept-Encoding": "identity",
        }
        if authorization is not None:
            headers["Authorization"] = authorization
        named = self._policy.credentials.headers(location)
        headers = {name: value for name, value in headers.items() if name.lower() not in named} | named
        if part.size and part.validator is not None:
            headers["Range"] = f"bytes={part.size}-"
            headers["If-Range"] = part.validator[1]
        timeout = self._urllib3.Timeout(connect=min(self._policy.timeout, CONNECT_TIMEOUT), read=self._policy.timeout)
        last: DownloadError | None = None
        for address in self._addresses(location):
            if self._ended.is_set():
                break
            pool = self._pool(location, address)
            self._exchanges[threading.get_ident()] = _Exchange(location)
            with self._failures(location):
                try:
                    return pool.urlopen(
                        "GET",
                        location.target,
                        headers=headers,
                        retries=False,
                        redirect=False,
                        assert_same_host=False,
                        timeout=timeout,
                        preload_content=False,
                        decode_content=False,
                    )
                except (self._urllib3.exceptions.NewConnectionError, self._urllib3.exceptions.ConnectTimeoutError):
                    last = DownloadError(
                        "failed", f"{redacted_url(location.url)}: cannot connect to {address}", again=True
                    )
        raise last or DownloadError("failed", f"host {quoted(location.host)} has no address")

    @contextlib.contextmanager
    def _failures(self, location: ParsedUrl) -> Any:
        """Turn errors of a connection into a :class:`DownloadError`."""
        try:
            yield
        except DownloadError:
            raise
        except (self._urllib3.exceptions.HTTPError, http.client.HTTPException, OSError, ValueError) as error:
            raise self._failure(error, location) from None

    def _failure(self, error: Exception, location: ParsedUrl) -> DownloadError:
        where = redacted_url(location.url)
        if isinstance(error, self._urllib3.exceptions.SSLError):
            cause = error.args[0] if error.args else error
            if isinstance(cause, ssl.SSLCertVerificationError):
                return DownloadError("failed", f"{where}: certificate not accepted: {cause.verify_message}")
            return DownloadError("failed", f"{where}: TLS error: {_words(cause)}", again=True)
        if isinstance(error, self._urllib3.exceptions.TimeoutError):
            return DownloadError("failed", f"{where}: no data for {self._policy.timeout:g} seconds", again=True)
        return DownloadError("failed", f"{where}: {_words(error)}", again=True)

    def _pool(self, location: ParsedUrl, address: str) -> HTTPConnectionPool:
        """Return the connections to an address of a host."""
        key = (*location.origin, address)
        with self._lock:
            pool = self._pools.pop(key, None)
            if pool is None:
                pool = self._new_pool(location, address)
                while len(self._pools) >= POOLS:
                    self._pools.pop(next(iter(self._pools))).close()
            self._pools[key] = pool  # the most recently used one
            return pool

    def _new_pool(self, location: ParsedUrl, address: str) -> HTTPConnectionPool:
        pool: HTTPConnectionPool
        if location.scheme == "http":
            pool = self._urllib3.HTTPConnectionPool(address, location.port, maxsize=CONNECTIONS)
        else:
            if self._context is None:
                self._context = ssl.create_default_context()
            pool = self._urllib3.HTTPSConnectionPool(
                address, location.port, maxsize=CONNECTIONS, ssl_context=self._context, server_hostname=location.host
            )
        exchange, renew, ended = self._exchange, self._renew, self._ended

        class Response(http.client.HTTPResponse):
            """A response that must arrive before a deadline."""

            def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:
                super().__init__(sock, *arguments, **options)
                self.fp: Any = io.BufferedReader(_TimedReads(self.fp.detach(), exchange()))

        class Connection(pool.ConnectionCls):  # type: ignore[misc,name-defined]
            """A connection that another thread can end."""

            response_class = Response

            def getresponse(self) -> Any:
                exchange().socket = self.sock
                if ended.is_set():
                    raise OSError(errno.ECONNABORTED, "run cancelled")
                renew()
                return super().getresponse()

        pool.ConnectionCls = Connection
        return pool

    def _exchange(self) -> _Exchange:
        """Return the request of this thread."""
        return self._exchanges[threading.get_ident()]

    def _renew(self) -> None:
        """Extend the deadline of this thread's request."""
        self._exchange().deadline = monotonic() + PATIENCE * self._policy.timeout

    def _let_go(self, response: BaseHTTPResponse) -> None:
        """Keep the connection if the response was read completely, else close it."""
        with contextlib.suppress(Exception):
            if response.length_remaining == 0:
                response.drain_conn()
                response.release_conn()
            else:
                response.close()

    # --- answers --------------------------------------------------------------------------------------------------

    def _take(
        self,
        response: BaseHTTPResponse,
        location: ParsedUrl,
        part: PartialFile,
        length: int | None,
        limit: int | None,
        on_bytes: Callable[[int], object],
    ) -> None:
        """Read the missing part of the file from a response."""
        if response.status == 206:
            whole = self._check_range(response, location, part)
            part.spliced = True
        elif response.status == 200:
            whole = _length_of(response)
            part.restart()
            part.validator = validator_of(response.headers)
        else:
            if response.status == 416 and part.size:
                part.restart()
                raise DownloadError("failed", f"{redacted_url(location.url)}: file has changed", again=True, wait=0)
            raise _refusal(response, location)
        if limit is not None and whole is not None and whole > limit:
            raise DownloadError("too-long", f"{redacted_url(location.url)} has {whole} bytes; the limit is {limit}")
        self._read_body(self._reader(response, location), location.url, part, limit, on_bytes)
        # A cancelled connection looks like the end of the response.
        if self._ended.is_set():
            raise DownloadError("cancelled", "run cancelled")
        # Without a stated length, the end of the response and a broken connection look the same.
        if part.size < (whole if whole is not None else length or 0):
            raise DownloadError(
                "failed", f"{redacted_url(location.url)}: connection closed before the end of the file", again=True
            )

    def _reader(self, response: BaseHTTPResponse, location: ParsedUrl) -> Callable[[int], bytes]:
        """Return a function that reads a body, and extends the deadline while enough of it arrives."""
        received = 0

        def read(most: int) -> bytes:
            nonlocal received
            if received >= LEAST:
                received = 0
                self._renew()
            with self._failures(location):
                data = response.read1(most)
            received += len(data)
            return data

        return read

    def _read_body(
        self,
        read: Callable[[int], bytes],
        url: str,
        part: PartialFile,
        limit: int | None,
        on_bytes: Callable[[int], object],
    ) -> None:
        # Read one more byte than allowed, to detect excess data.
        while data := read(BLOCK if limit is None else min(BLOCK, limit - part.size + 1)):
            if limit is not None and part.size + len(data) > limit:
                what = f"is longer than the limit of {limit} bytes"
                raise DownloadError("too-long", f"{redacted_url(url)} {what}")
            part.write(data)
            on_bytes(len(data))

    def _check_range(self, response: BaseHTTPResponse, location: ParsedUrl, part: PartialFile) -> int | None:
        """Return the size of the complete file. The response must continue exactly the present file."""
        found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        name, value = part.validator or ("", "")
        fits = (
            found is not None
            and part.size > 0
            and int(found[1]) == part.size <= int(found[2])
            and response.headers.get(name, value) == value
        )
        if not fits:
            part.restart()
            raise DownloadError("failed", f"{redacted_url(location.url)}: response is not the requested range", True, 0)
        assert found is not None
        return None if found[3] == "*" else int(found[3])

    # --- object storage -------------------------------------------------------------------------------------------

    def _take_key(
        self,
        url: str,
        parts: SplitResult,
        part: PartialFile,
        limit: int | None,
        on_bytes: Callable[[int], object],
    ) -> None:
        """Read the missing part of the file from a key of an allowed bucket."""
        bucket, key = self._buckets.find_key(url, parts)
        if part.validator is None:
            part.restart()
        token = None if part.validator is None else part.validator[1].strip('"')
        where = redacted_url(url)
        try:
            with key_failures(where):
                file = RemoteFile(bucket, key, token=token, begin=part.size)
            with file:
                if limit is not None and file.status.size > limit:
                    raise DownloadError("too-long", f"{where} has {file.status.size} bytes; the limit is {limit}")
                part.validator = validator_of({"ETag": f'"{file.status.token}"'})
                part.spliced = part.spliced or part.size > 0

                def read(most: int) -> bytes:
                    with key_failures(where):
                        return file.read(most)

                self._read_body(read, url, part, limit, on_bytes)
        except KeyChangedError:
            part.restart()
            raise DownloadError("failed", f"{where}: file has changed", again=True, wait=0) from None


def _length_of(response: BaseHTTPResponse) -> int | None:
    """Return the length of a response's body, if stated."""
    return response.length_remaining if isinstance(response.length_remaining, int) else None


def _refusal(response: BaseHTTPResponse, location: ParsedUrl) -> DownloadError:
    """Return the error of a response without a file."""
    try:
        status = f"{response.status} {http.HTTPStatus(response.status).phrase}"
    except ValueError:
        status = str(response.status)
    reason = f"{redacted_url(location.url)}: server responded with {status}"
    if response.status == http.HTTPStatus.UNAUTHORIZED:
        reason += f"; specify valid credentials for {location.authority} with {option('header_from')}"
    wait = _retry_after(response.headers)
    if wait is not None and wait > LONGEST_RETRY_AFTER:
        return DownloadError("failed", f"{reason}, and requests a delay of {wait:.0f} seconds")
    return DownloadError("failed", reason, response.status in _AGAIN, wait)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server asks to wait, by the server's own clock."""
    value = headers.get("Retry-After", "")
    if re.fullmatch("[0-9]{1,9}", value, re.ASCII):
        return float(value)
    try:
        moment, now = parsedate_to_datetime(value), parsedate_to_datetime(headers.get("Date", ""))
        return max(0.0, (moment - now).total_seconds())
    except (ValueError, TypeError):
        return None


def _words(error: BaseException) -> str:
    """Return the cause of an error, as one line."""
    if len(error.args) > 1 and isinstance(error.args[-1], Exception):
        # urllib3 wraps errors; the innermost is the cause.
        return _words(error.args[-1])
    text = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return quoted(text)[1:-1] if not text.isprintable() or len(text) > 200 else text
