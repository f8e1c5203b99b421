"""One URL to one temporary file: from where it may come only, no more than was announced, resumed where it stopped.

A URL of a fetch file is untrusted input, so every step on its way is checked: the scheme; each address that the
host's name stands for, and the connection goes to the very address that was looked at; each redirection, as if it were
a URL of its own. Bytes are taken as they are sent and never decompressed.

Proxies are not used: they would look up names in our place.

What arrives is hashed at once and kept in a :class:`~pressmark.bagit.fetch.partial.PartialFile`. If the connection
drops, or the whole run ends, the next request asks for the rest, on condition that the file is still the same one.
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import os
import re
import socket
import ssl
import stat
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, unquote_to_bytes, urljoin

from pressmark.bagit.fetch.addresses import resolve, why_not_public
from pressmark.bagit.fetch.download_errors import DownloadError
from pressmark.bagit.fetch.partial import (
    BLOCK,
    OPEN_FLAGS,
    RESUMABLE,
    Directory,
    PartialFile,
    remove_partial,
    validator_of,
)
from pressmark.bagit.fetch.urls import ParsedUrl, encoded, parse_url, redacted_url, split_url
from pressmark.errors import BagError, quoted
from pressmark.version import __version__

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, HTTPConnectionPool

__all__ = ["NO_SPACE", "Download", "DownloadPolicy", "Downloader"]

REDIRECTS = 10
# A server that gives less than this in so many times the time after which silence is an error is as good as silent.
LEAST = 1 << 10  # 1 KiB
PATIENCE = 2
CONNECT_TIMEOUT = 30.0  # seconds, where less is not asked for
LONGEST_PAUSE = 30.0  # seconds between two tries of our own accord
LONGEST_RETRY_AFTER = 120.0  # seconds that a server may ask us to wait
POOLS = 64  # hosts to which connections are kept open
CONNECTIONS = 64  # that are kept open to one of them
NO_SPACE = frozenset({errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG})

_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
_REDIRECTIONS = frozenset({301, 302, 303, 307, 308})
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)", re.ASCII)


@dataclass(frozen=True)
class DownloadPolicy:
    """What is allowed, and how patient to be.

    :ivar allow_http: unencrypted HTTP, of the URLs and of what they redirect to
    :ivar allow_file: ``file:`` URLs, and with them any file that this user may read
    :ivar allow_private: hosts with any address
    :ivar allow_hosts: names of hosts that may have any address
    :ivar maximum: bytes that a file of unspecified length may have; :data:`None` for as many as there is space for
    :ivar retries: how often a request is tried again, counted anew after each mebibyte
    :ivar timeout: seconds without an answer after which a connection counts as broken
    :ivar pause: seconds before the first new try, doubled each time
    :ivar certificates: a file of the certificates to trust, instead of the system's
    """

    allow_http: bool = False
    allow_file: bool = False
    allow_private: bool = False
    allow_hosts: frozenset[str] = frozenset()
    maximum: int | None = None
    retries: int = 4
    timeout: float = 60.0
    pause: float = 0.5
    certificates: str | None = None


class Download(NamedTuple):
    """What became of one file.

    ============= ==================================================================================
    kind          meaning
    ============= ==================================================================================
    ``refused``   the URL, or where it leads, is not allowed
    ``failed``    the server does not give it, or not whole
    ``too-long``  it is longer than it may be; nothing beyond was taken
    ``mismatch``  it is whole, and does not have the digests that it should have
    ``disk``      it could not be written
    ``full``      there is no space left for it
    ``cancelled`` the run was ended
    ============= ==================================================================================

    :ivar kind: a word from the table; :data:`None` where all went well
    :ivar message: one line that says why
    :ivar size: bytes that there are of it
    :ivar digests: official name of each algorithm to lower-case hex, where it is whole
    """

    kind: str | None
    message: str
    size: int
    digests: Mapping[str, str]


class _Watch:
    """A connection on which something must come before a moment, or it is ended."""

    __slots__ = ("connection", "deadline", "expired", "socket")

    def __init__(self, connection: Any, deadline: float) -> None:
        self.connection = connection
        # The connection forgets it when nothing but the answer is to come; while it is being made, it has none yet.
        self.socket = connection.sock
        self.deadline = deadline
        self.expired = False

    def end(self) -> None:
        """Let whoever waits for the connection see its end."""
        # Of the connection itself, not of the TLS on it: another thread is in the middle of that.
        with contextlib.suppress(OSError, TypeError):  # closed, or not open yet
            socket.socket.shutdown(self.socket or self.connection.sock, socket.SHUT_RDWR)


# --- requests ---------------------------------------------------------------------------------------------------------


class Downloader:
    """What the downloads of one run share: terms, connections, and a way to end all of them; thread-safe.

    A timeout for each read is no protection: headers, chunks and trailers can come one byte at a time, for ever. So a
    thread watches all connections, and ends those on which not enough comes.

    :raises BagError: urllib3 is not there, or the certificates to trust cannot be read
    """

    def __init__(self, policy: DownloadPolicy) -> None:
        try:
            import urllib3
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "urllib3":
                raise
            raise BagError("fetch.txt", "fetching files needs urllib3: pip install pressmark[fetch]") from None
        self._urllib3 = urllib3
        self._policy = policy
        self._hosts = frozenset(host.lower().rstrip(".").strip("[]") for host in policy.allow_hosts)
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._pools: dict[tuple[str, str, int, str], HTTPConnectionPool] = {}
        # By the thread that has a request under way.
        self._watches: dict[int, _Watch] = {}
        self._watchman: threading.Thread | None = None
        self._closed = threading.Event()
        self._context: ssl.SSLContext | None = None
        if policy.certificates is not None:
            try:
                self._context = ssl.create_default_context(cafile=policy.certificates)
            except OSError as error:
                raise BagError(policy.certificates, f"no certificates can be read from it: {_words(error)}") from None

    def cancel(self) -> None:
        """End all downloads within a moment; each is an outcome of kind ``cancelled``."""
        self._ended.set()
        for watch in list(self._watches.values()):
            watch.end()

    def cancelled(self) -> bool:
        """Return whether all this was ended."""
        return self._ended.is_set()

    def close(self) -> None:
        """Close the connections that nobody uses."""
        self._closed.set()
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
        """Fetch ``url`` into the part ``name``, whole, on the disk and with the digests expected, or say why not.

        A part that is there is gone on with; after a failure that another run may overcome, it is kept.

        :param directory: where the part is
        :param length: bytes that it should have; it is never longer
        :param expected: official name of each algorithm to lower-case hex
        :param on_bytes: called with the number of bytes of each read, in this thread
        """
        limit = self._policy.maximum if length is None else length
        part = None
        try:
            with PartialFile(directory, name, url, expected, length, self._ended.is_set) as part:
                if limit is not None and part.size > limit:
                    part.restart()
                # Once more from the beginning, where the digests do not fit what came in several pieces.
                for _ in range(2):
                    if not 0 < part.size == length:
                        self._fetch(url, part, length, limit, on_bytes or (lambda _size: None))
                    digests, size = part.digests(), part.size
                    if digests == expected:
                        part.flush()
                        return Download(None, "", part.size, digests)
                    spliced = part.spliced
                    part.restart()
                    if not spliced:
                        break
            remove_partial(directory, name)
            reason = f"{redacted_url(url)} does not have the checksums that it should have"
            if part.encoding != "identity":
                reason += f"; the server sent it in the encoding {quoted(part.encoding)}, unasked"
            return Download("mismatch", reason, size, digests)
        except DownloadError as failure:
            if part is not None and failure.kind in ("refused", "too-long"):
                remove_partial(directory, name)
            return Download(failure.kind, failure.reason, part.size if part else 0, {})
        except OSError as error:
            if error.errno in NO_SPACE:
                if length is None:  # nobody says that there is an end to it
                    remove_partial(directory, name)
                return Download("full", "there is no space left on the disk", part.size if part else 0, {})
            return Download("disk", f"it cannot be written: {error.strerror or error}", part.size if part else 0, {})

    def _fetch(
        self, url: str, part: PartialFile, length: int | None, limit: int | None, on_bytes: Callable[[int], object]
    ) -> None:
        """Make the part whole, in as many requests as that takes."""
        tries = 0
        while True:
            before = part.size
            try:
                try:
                    self._request(url, part, length, limit, on_bytes)
                finally:
                    self._watches.pop(threading.get_ident(), None)
                return
            except DownloadError as failure:
                if self._ended.is_set():
                    raise DownloadError("cancelled", "the run was ended") from None
                if part.size - before >= RESUMABLE:
                    tries = 0
                if not failure.again or tries >= self._policy.retries:
                    raise
                pause = min(self._policy.pause * 2**tries, LONGEST_PAUSE)
                if self._ended.wait(pause if failure.wait is None else failure.wait):
                    raise DownloadError("cancelled", "the run was ended") from None
                tries += 1
                if part.size and part.validator is None:
                    part.restart()

    def _request(
        self, url: str, part: PartialFile, length: int | None, limit: int | None, on_bytes: Callable[[int], object]
    ) -> None:
        """Follow ``url`` to an answer, and take from it what is missing of the part."""
        if self._ended.is_set():
            raise DownloadError("cancelled", "the run was ended")
        parts = split_url(url)
        if parts.scheme == "file":
            self._read_file(url, parts, part, limit, on_bytes)
            return
        self._check_scheme(url, parts, None)
        place = parse_url(url, parts)
        passed = {url}
        authorization = place.authorization
        for _ in range(REDIRECTS + 1):
            response = self._ask(place, authorization, part)
            try:
                if response.status not in _REDIRECTIONS:
                    self._take(response, place, part, length, limit, on_bytes)
                    return
                onward = response.headers.get("Location")
                if onward is None:
                    raise DownloadError("failed", f"{redacted_url(place.url)} redirects to nowhere")
            finally:
                self._let_go(response)
            # What follows the # is for the reader, and would come back with every turn of a circle.
            onward = urljoin(place.url, encoded(onward)).partition("#")[0]
            if onward in passed:
                raise DownloadError("failed", f"{redacted_url(place.url)} redirects in a circle")
            passed.add(onward)
            parts = split_url(onward)
            self._check_scheme(onward, parts, place)
            following = parse_url(onward, parts)
            # Credentials go to nobody but the origin that they were given for.
            authorization = following.authorization or (authorization if following.origin == place.origin else None)
            place = following
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
            raise DownloadError("refused", f"{what} is not encrypted; allow HTTP if you trust the way to it")
        if not parts.scheme:
            raise DownloadError("refused", f"{what} has no scheme; it should begin with https:")
        raise DownloadError("refused", f"{what} has the scheme {quoted(parts.scheme)}; only https is fetched")

    def _addresses(self, place: ParsedUrl) -> list[str]:
        """Return the addresses of a host, all of which may be connected to."""
        try:
            addresses = resolve(place.host, place.port)
        except socket.gaierror as error:
            again = error.errno == socket.EAI_AGAIN
            raise DownloadError(
                "failed", f"the host {quoted(place.host)} is not known: {error.strerror}", again
            ) from None
        except (OSError, UnicodeError) as error:
            raise DownloadError("failed", f"the host {quoted(place.host)} is not known: {error}") from None
        if not self._policy.allow_private and place.host.rstrip(".") not in self._hosts:
            for address in addresses:
                fault = why_not_public(address)
                # One is enough: a name that leads to both kinds is no mistake of its owner.
                if fault is not None:
                    raise DownloadError(
                        "refused",
                        f"the host {quoted(place.host)} has the address {address}, which is {fault}; "
                        "allow the host if you trust it",
                    )
        return addresses

    def _ask(self, place: ParsedUrl, authorization: str | None, part: PartialFile) -> BaseHTTPResponse:
        """Send the request, and return the answer without its body."""
        default = 443 if place.scheme == "https" else 80
        host = f"[{place.host}]" if ":" in place.host else place.host
        headers = {
            "Host": host if place.port == default else f"{host}:{place.port}",
            "User-Agent": f"pressmark/{__version__}",
            "Accept": "*/*",
            # What is compressed on the way has neither the length nor the digests that it should have.
            "Accept-Encoding": "identity",
        }
        if authorization is not None:
            headers["Authorization"] = authorization
        if part.size and part.validator is not None:
            headers["Range"] = f"bytes={part.size}-"
            headers["If-Range"] = part.validator[1]
        timeout = self._urllib3.Timeout(connect=min(self._policy.timeout, CONNECT_TIMEOUT), read=self._policy.timeout)
        last: DownloadError | None = None
        for address in self._addresses(place):
            if self._ended.is_set():
                break
            pool = self._pool(place, address)
            with self._failures(place):
                try:
                    return pool.urlopen(
                        "GET",
                        place.target,
                        headers=headers,
                        retries=False,
                        redirect=False,
                        assert_same_host=False,
                        timeout=timeout,
                        preload_content=False,
                        decode_content=False,
                    )
                except (self._urllib3.exceptions.NewConnectionError, self._urllib3.exceptions.ConnectTimeoutError):
                    last = DownloadError("failed", f"{redacted_url(place.url)}: no connection to {address}", again=True)
        raise last or DownloadError("failed", f"the host {quoted(place.host)} has no address")

    @contextlib.contextmanager
    def _failures(self, place: ParsedUrl) -> Any:
        """Turn what a connection may do into a failure of ours."""
        try:
            yield
        except DownloadError:
            raise
        except (self._urllib3.exceptions.HTTPError, http.client.HTTPException, OSError, ValueError) as error:
            raise self._failure(error, place) from None

    def _failure(self, error: Exception, place: ParsedUrl) -> DownloadError:
        where = redacted_url(place.url)
        if self._too_slow():
            return self._slowness(place)
        if isinstance(error, self._urllib3.exceptions.SSLError):
            cause = error.args[0] if error.args else error
            if isinstance(cause, ssl.SSLCertVerificationError):
                return DownloadError("failed", f"{where}: its certificate is not accepted: {cause.verify_message}")
            return DownloadError("failed", f"{where}: TLS fails: {_words(cause)}", again=True)
        if isinstance(error, self._urllib3.exceptions.TimeoutError):
            return DownloadError("failed", f"{where}: nothing came for {self._policy.timeout:g} seconds", again=True)
        return DownloadError("failed", f"{where}: {_words(error)}", again=True)

    def _slowness(self, place: ParsedUrl) -> DownloadError:
        return DownloadError("failed", f"{redacted_url(place.url)}: it comes too slowly", again=True)

    def _pool(self, place: ParsedUrl, address: str) -> HTTPConnectionPool:
        """Return the connections to a host under one of its addresses."""
        key = (*place.origin, address)
        with self._lock:
            pool = self._pools.pop(key, None)
            if pool is None:
                pool = self._new_pool(place, address)
                while len(self._pools) >= POOLS:
                    self._pools.pop(next(iter(self._pools))).close()
            self._pools[key] = pool  # the last that was used
            return pool

    def _new_pool(self, place: ParsedUrl, address: str) -> HTTPConnectionPool:
        made: HTTPConnectionPool
        if place.scheme == "http":
            made = self._urllib3.HTTPConnectionPool(address, place.port, maxsize=CONNECTIONS)
        else:
            if self._context is None:
                self._context = ssl.create_default_context()
            made = self._urllib3.HTTPSConnectionPool(
                address, place.port, maxsize=CONNECTIONS, ssl_context=self._context, server_hostname=place.host
            )
        watch, ended = self._watch, self._ended

        class Connection(made.ConnectionCls):  # type: ignore[misc,name-defined]
            """A connection that can be ended from another thread."""

            def connect(self) -> None:
                watch(self)
                super().connect()

            def getresponse(self) -> Any:
                watch(self)
                if ended.is_set():
                    raise OSError(errno.ECONNABORTED, "the run was ended")
                return super().getresponse()

        made.ConnectionCls = Connection
        return made

    def _watch(self, connection: Any) -> None:
        """Watch the connection that this thread uses now."""
        with self._lock:
            if self._watchman is None:
                self._watchman = threading.Thread(target=self._keep_watch, name="pressmark-watch", daemon=True)
                self._watchman.start()
        self._watches[threading.get_ident()] = _Watch(connection, monotonic() + PATIENCE * self._policy.timeout)

    def _keep_watch(self) -> None:
        while not self._closed.wait(min(1.0, self._policy.timeout / 4)):
            now = monotonic()
            for watch in list(self._watches.values()):
                if now > watch.deadline:
                    watch.expired = True
                    watch.end()

    def _renew(self) -> None:
        """Note that enough has come on this thread's connection."""
        watch = self._watches.get(threading.get_ident())
        if watch is not None:
            watch.deadline = monotonic() + PATIENCE * self._policy.timeout

    def _too_slow(self) -> bool:
        """Return whether this thread's connection was ended because not enough came."""
        watch = self._watches.get(threading.get_ident())
        return watch is not None and watch.expired

    def _let_go(self, response: BaseHTTPResponse) -> None:
        """Keep the connection where there is nothing left to be read from it, else close it."""
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
        place: ParsedUrl,
        part: PartialFile,
        length: int | None,
        limit: int | None,
        on_bytes: Callable[[int], object],
    ) -> None:
        """Take from an answer what is missing of the part."""
        if response.status == 206:
            whole = self._check_range(response, place, part)
            part.spliced = True
        elif response.status == 200:
            whole = _length_of(response)
            part.restart()
            part.validator = validator_of(response.headers)
        else:
            if response.status == 416 and part.size:
                part.restart()
                raise DownloadError("failed", f"{redacted_url(place.url)}: the file has changed", again=True, wait=0)
            raise _refusal(response, place)
        if limit is not None and whole is not None and whole > limit:
            raise DownloadError("too-long", f"{redacted_url(place.url)} has {whole} bytes, and may have {limit}")
        self._read_body(response, place, part, limit, on_bytes)
        # What was ended by us looks like an end of the answer, too.
        if self._ended.is_set():
            raise DownloadError("cancelled", "the run was ended")
        if self._too_slow():
            raise self._slowness(place)
        part.encoding = response.headers.get("Content-Encoding", "identity")
        # Where nobody said how long the answer would be, its end and a broken connection look the same.
        if part.size < (whole if whole is not None else length or 0):
            raise DownloadError("failed", f"{redacted_url(place.url)}: the connection was closed too early", again=True)

    def _read_body(
        self,
        response: BaseHTTPResponse,
        place: ParsedUrl,
        part: PartialFile,
        limit: int | None,
        on_bytes: Callable[[int], object],
    ) -> None:
        given = 0
        while True:
            # One byte more than there should be tells that there is more.
            most = BLOCK if limit is None else min(BLOCK, limit - part.size + 1)
            with self._failures(place):
                data = response.read1(most)
            if not data:
                return
            if limit is not None and part.size + len(data) > limit:
                raise DownloadError(
                    "too-long", f"{redacted_url(place.url)} has more bytes than the {limit} that it may have"
                )
            part.write(data)
            on_bytes(len(data))
            given += len(data)
            if given >= LEAST:
                given = 0
                self._renew()

    def _check_range(self, response: BaseHTTPResponse, place: ParsedUrl, part: PartialFile) -> int | None:
        """Return how long the whole file is; the answer must be the rest of the very file of which there is a part."""
        found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        same = validator_of(response.headers)
        fits = (
            found is not None
            and part.size > 0
            and int(found[1]) == part.size <= int(found[2])
            and (same is None or part.validator is None or same[0] != part.validator[0] or same == part.validator)
        )
        if not fits:
            part.restart()
            raise DownloadError(
                "failed", f"{redacted_url(place.url)}: the answer is not the part that was asked for", True, 0
            )
        assert found is not None
        return None if found[3] == "*" else int(found[3])

    def _read_file(
        self, url: str, parts: SplitResult, part: PartialFile, limit: int | None, on_bytes: Callable[[int], object]
    ) -> None:
        """Take a file of this machine."""
        if not self._policy.allow_file:
            raise DownloadError(
                "refused", f"{redacted_url(url)} is a file of this machine; allow files if you trust the bag"
            )
        if parts.netloc not in ("", "localhost"):
            raise DownloadError("refused", f"{redacted_url(url)} is a file of another machine")
        part.restart()
        path = unquote_to_bytes(parts.path)
        try:
            descriptor = os.open(path, os.O_RDONLY | OPEN_FLAGS)
        except (OSError, ValueError) as error:
            raise DownloadError("failed", f"{redacted_url(url)}: {_words(error)}") from None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise DownloadError("refused", f"{redacted_url(url)} is no regular file")
            if limit is not None and status.st_size > limit:
                raise DownloadError("too-long", f"{redacted_url(url)} has {status.st_size} bytes, and may have {limit}")
            while data := _read(descriptor, url):
                if limit is not None and part.size + len(data) > limit:
                    raise DownloadError(
                        "too-long", f"{redacted_url(url)} has more bytes than the {limit} that it may have"
                    )
                part.write(data)
                on_bytes(len(data))
        finally:
            os.close(descriptor)


def _read(descriptor: int, url: str) -> bytes:
    try:
        return os.read(descriptor, BLOCK)
    except OSError as error:
        raise DownloadError("failed", f"{redacted_url(url)}: {_words(error)}") from None


def _length_of(response: BaseHTTPResponse) -> int | None:
    """Return how many bytes an answer says that its body has."""
    return response.length_remaining if isinstance(response.length_remaining, int) else None


def _refusal(response: BaseHTTPResponse, place: ParsedUrl) -> DownloadError:
    """Return what an answer that has no file in it means."""
    try:
        status = f"{response.status} {http.HTTPStatus(response.status).phrase}"
    except ValueError:
        status = str(response.status)
    reason = f"{redacted_url(place.url)}: the server answers {status}"
    wait = _retry_after(response.headers)
    if wait is not None and wait > LONGEST_RETRY_AFTER:
        return DownloadError("failed", f"{reason}, and to come again in {wait:.0f} seconds")
    return DownloadError("failed", reason, response.status in _AGAIN, wait)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds the server asks to wait; its own clock says when it asked."""
    value = headers.get("Retry-After", "")
    if re.fullmatch("[0-9]{1,9}", value, re.ASCII):
        return float(value)
    try:
        moment, now = parsedate_to_datetime(value), parsedate_to_datetime(headers.get("Date", ""))
        return max(0.0, (moment - now).total_seconds())
    except (ValueError, TypeError):
        return None


def _words(error: BaseException) -> str:
    """Return what went wrong, on one line."""
    if len(error.args) > 1 and isinstance(error.args[-1], Exception):
        # urllib3 wraps what it was told: the innermost says it best.
        return _words(error.args[-1])
    text = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return quoted(text)[1:-1] if not text.isprintable() or len(text) > 200 else text
