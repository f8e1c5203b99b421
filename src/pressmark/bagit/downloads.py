"""One URL to one temporary file: from where it may come only, no more than was announced, resumed where it stopped.

A URL of a fetch file is somebody else's wish, so every step on its way is looked at: the scheme; each address that the
host's name stands for, and the connection goes to the very address that was looked at; each redirection, as if it were
a URL of its own. Bytes are taken as they are sent and never decompressed.

Proxies are not used: they would look up names in our place.

What has come of a file is hashed as it comes, and kept in a :class:`Part`: should the connection drop, or the whole
run end, the next request asks for the rest, on condition that the file is still the same one.
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import json
import os
import re
import socket
import ssl
import stat
import threading
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, quote, unquote, unquote_to_bytes, urljoin, urlsplit

from pressmark.bagit.addresses import fault_of_address, resolve
from pressmark.errors import BagError, shown
from pressmark.fixity.algorithms import ALGORITHMS, Hasher
from pressmark.version import __version__

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, HTTPConnectionPool

__all__ = ["Directory", "Download", "Downloader", "Part", "Terms", "shown_url"]

BLOCK = 1 << 18  # 256 KiB
REDIRECTS = 10
URL_LENGTH = 1 << 16  # no server takes a longer one
# A part of less is not worth a file beside it that says how to go on with it.
RESUMABLE = 1 << 20  # 1 MiB
VALIDATOR_SIZE = 1 << 12  # 4 KiB: the most that such a file is read of
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
_ALWAYS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
_OWN = _ALWAYS | getattr(os, "O_NOFOLLOW", 0)

# An open directory's descriptor; on systems that open nothing relative to a directory, its path.
Directory = int | bytes


@dataclass(frozen=True)
class Terms:
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


class _Failure(Exception):
    """A request that came to nothing.

    :ivar again: whether another try may do better
    :ivar wait: seconds that the server asks to wait before
    """

    def __init__(self, kind: str, reason: str, again: bool = False, wait: float | None = None) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.again = again
        self.wait = wait


class _Place(NamedTuple):
    """A URL, taken apart once, so that nobody reads it in another way."""

    scheme: str
    host: str
    port: int
    target: str
    authorization: str | None
    url: str

    @property
    def origin(self) -> tuple[str, str, int]:
        """What credentials are for."""
        return self.scheme, self.host, self.port


def shown_url(url: str) -> str:
    """Return ``url`` for a message: without user, password and fragment, and without what its query says.

    >>> shown_url("https://me:secret@example.org/a.tif?signature=abc")
    "'https://example.org/a.tif?…'"
    """
    scheme, colon, rest = url.partition("#")[0].partition(":")
    rest, question, _query = rest.partition("?")
    rest = re.sub("^(/*)[^/]*@", r"\1", rest)
    return shown(f"{scheme}{colon}{rest}{question}{'…' if question else ''}")


def _split(url: str) -> SplitResult:
    if len(url) > URL_LENGTH:
        raise _Failure("refused", f"the URL has more than {URL_LENGTH} characters")
    if not all(character >= "!" and character != "\x7f" for character in url):
        raise _Failure("refused", f"{shown_url(url)} has a blank or a control character in it; encode it as %20")
    try:
        return urlsplit(url)
    except ValueError as error:
        raise _Failure("refused", f"{shown_url(url)} is no URL: {error}") from None


def _encoded(location: str) -> str:
    """Return a redirection's target, which http.client gives as Latin-1, with what no URL has in it encoded."""
    return quote(location.strip(" \t").encode("latin-1", "replace"), safe="".join(map(chr, range(0x21, 0x7F))))


def _place(url: str, parts: SplitResult) -> _Place:
    """Return where an ``http:`` or ``https:`` URL leads."""
    try:
        host, port = parts.hostname or "", parts.port
        host = host if host.isascii() else host.encode("idna").decode("ascii")
    except ValueError as error:
        raise _Failure("refused", f"{shown_url(url)} is no URL: {error}") from None
    if not re.fullmatch(r"[a-z0-9_.-]+|[0-9a-f:.]+", host) or host.strip(".") == "":
        raise _Failure("refused", f"{shown_url(url)} names no host")
    authorization = None
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Basic {b64encode(pair.encode()).decode('ascii')}"
    target = quote(parts.path or "/", safe="/%:=&~+!$,;'@()*[]")
    if parts.query:
        target += "?" + quote(parts.query, safe="/%:=&~+!$,;'@()*[]?")
    port = (443 if parts.scheme == "https" else 80) if port is None else port
    return _Place(parts.scheme, host, port, target, authorization, url)


# --- the part that is there -------------------------------------------------------------------------------------------


class Part:
    """The beginning of a file under a temporary name, and the digests of what there is of it; a context manager.

    Beside a large part stands ``name.json``: the URL and what the server calls this state of the file.

    :param directory: where it is, and stays until it is moved
    :param name: what it is called there
    :param url: where it comes from
    :param algorithms: official names
    :param length: bytes of the whole file, where that is known
    :param cancelled: asked before anything is written

    :ivar size: bytes that there are
    :ivar spliced: they came in several pieces: nothing but a digest can say that these are of one file
    :ivar validator: what the server calls this state of the file: the header that says so, and its value
    :ivar encoding: how the server says that it has encoded the file on the way
    :raises OSError: it cannot be opened or read
    """

    def __init__(
        self,
        directory: Directory,
        name: bytes,
        url: str,
        algorithms: Iterable[str],
        length: int | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self.name = name
        self.size = 0
        self.spliced = False
        self.validator: tuple[str, str] | None = None
        self.encoding = "identity"
        self._url = url
        self._algorithms = tuple(algorithms)
        self._hashers: dict[str, Hasher] = {}
        self._cancelled = cancelled
        self._remembered = False
        # Its own: whoever gave the other may close it, and its number may then mean another directory.
        self._directory = os.dup(directory) if isinstance(directory, int) else directory
        self._descriptor = -1
        try:
            self._descriptor = self._open()
            self._take_up(length)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Part:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give back the descriptors; what there is stays."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)
        if isinstance(self._directory, int) and self._directory >= 0:
            directory, self._directory = self._directory, -1
            os.close(directory)

    def digests(self) -> dict[str, str]:
        """Return the digests of what there is."""
        return {name: hasher.hexdigest() for name, hasher in self._hashers.items()}

    def restart(self) -> None:
        """Throw away what there is."""
        self._forget()
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        self.size = 0
        self.spliced = False
        self.validator = None
        self._hashers = {name: ALGORITHMS[name].make(1) for name in self._algorithms}

    def write(self, data: bytes) -> None:
        """Append ``data``.

        :raises OSError: the disk is full, or fails
        """
        if self._cancelled():
            raise _Failure("cancelled", "the run was ended")
        view = memoryview(data)
        while view:
            # What was written counts even if the rest was not: the file and the digests must stay of one length.
            done = os.write(self._descriptor, view)
            for hasher in self._hashers.values():
                hasher.update(view[:done])
            self.size += done
            view = view[done:]
        if self.size >= RESUMABLE and self.validator is not None and not self._remembered:
            self._remember(self.validator)

    def flush(self) -> None:
        """Have what there is on the disk."""
        os.fsync(self._descriptor)

    # --- the file, and the one beside it --------------------------------------------------------------------------

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | _OWN
        for _ in range(2):
            try:
                descriptor = self._at(self.name, flags)
            except OSError as error:
                if error.errno not in (errno.ELOOP, errno.EMLINK, errno.ENXIO):
                    raise
                self._unlink(self.name)  # a link, or a socket: nothing of ours
                continue
            status = os.fstat(descriptor)
            # With a second name it would be somebody else's file too: perhaps it has been moved into place already.
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                return descriptor
            os.close(descriptor)
            self._unlink(self.name)
        return self._at(self.name, flags | os.O_EXCL)

    def _at(self, name: bytes, flags: int) -> int:
        if isinstance(self._directory, int):
            return os.open(name, flags, 0o666, dir_fd=self._directory)
        return os.open(os.path.join(self._directory, name), flags, 0o666)

    def _unlink(self, name: bytes) -> None:
        with contextlib.suppress(FileNotFoundError):
            if isinstance(self._directory, int):
                os.unlink(name, dir_fd=self._directory)
            else:
                os.unlink(os.path.join(self._directory, name))

    def _take_up(self, length: int | None) -> None:
        """Go on where an earlier run stopped: hash what it has left, where that is of any use."""
        found = os.fstat(self._descriptor).st_size
        validator = self._recall() if found else None
        if validator is None and found != length:
            self.restart()
            return
        self._hashers = {name: ALGORITHMS[name].make(1) for name in self._algorithms}
        while data := os.read(self._descriptor, BLOCK):
            if self._cancelled():
                raise _Failure("cancelled", "the run was ended")
            for hasher in self._hashers.values():
                hasher.update(data)
            self.size += len(data)
        self.spliced = self.size > 0
        self.validator = validator
        self._remembered = validator is not None

    def _remember(self, validator: tuple[str, str]) -> None:
        with open(self._at(self.name + b".json", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _OWN), "wb") as file:
            file.write(json.dumps({"url": self._url, "validator": validator}).encode())
        self._remembered = True

    def _recall(self) -> tuple[str, str] | None:
        try:
            with open(self._at(self.name + b".json", os.O_RDONLY | _OWN), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return None
                found = json.loads(file.read(URL_LENGTH + VALIDATOR_SIZE))
            if found["url"] != self._url:
                return None
            return _validator({str(found["validator"][0]): str(found["validator"][1])})
        except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError):
            return None

    def _forget(self) -> None:
        self._unlink(self.name + b".json")
        self._remembered = False


def _validator(headers: Mapping[str, str]) -> tuple[str, str] | None:
    """Return by what the server will know this very state of the file again; a weak ETag is not enough for ranges."""
    for name, form in (("ETag", r'"[\x21\x23-\x7e]{0,1000}"'), ("Last-Modified", r"[A-Za-z0-9,: +-]{1,64}")):
        value = headers.get(name)
        if value is not None and re.fullmatch(form, value):
            return name, value
    return None


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

    def __init__(self, terms: Terms) -> None:
        try:
            import urllib3
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "urllib3":
                raise
            raise BagError("fetch.txt", "fetching files needs urllib3: pip install pressmark[fetch]") from None
        self._urllib3 = urllib3
        self._terms = terms
        self._hosts = frozenset(host.lower().rstrip(".").strip("[]") for host in terms.allow_hosts)
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._pools: dict[tuple[str, str, int, str], HTTPConnectionPool] = {}
        # By the thread that has a request under way.
        self._watches: dict[int, _Watch] = {}
        self._watchman: threading.Thread | None = None
        self._closed = threading.Event()
        self._context: ssl.SSLContext | None = None
        if terms.certificates is not None:
            try:
                self._context = ssl.create_default_context(cafile=terms.certificates)
            except OSError as error:
                raise BagError(terms.certificates, f"no certificates can be read from it: {_words(error)}") from None

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
        limit = self._terms.maximum if length is None else length
        part = None
        try:
            with Part(directory, name, url, expected, length, self._ended.is_set) as part:
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
            _remove(directory, name)
            reason = f"{shown_url(url)} does not have the checksums that it should have"
            if part.encoding != "identity":
                reason += f"; the server sent it in the encoding {shown(part.encoding)}, unasked"
            return Download("mismatch", reason, size, digests)
        except _Failure as failure:
            if part is not None and failure.kind in ("refused", "too-long"):
                _remove(directory, name)
            return Download(failure.kind, failure.reason, part.size if part else 0, {})
        except OSError as error:
            if error.errno in NO_SPACE:
                if length is None:  # nobody says that there is an end to it
                    _remove(directory, name)
                return Download("full", "there is no space left on the disk", part.size if part else 0, {})
            return Download("disk", f"it cannot be written: {error.strerror or error}", part.size if part else 0, {})

    def _fetch(
        self, url: str, part: Part, length: int | None, limit: int | None, on_bytes: Callable[[int], object]
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
            except _Failure as failure:
                if self._ended.is_set():
                    raise _Failure("cancelled", "the run was ended") from None
                if part.size - before >= RESUMABLE:
                    tries = 0
                if not failure.again or tries >= self._terms.retries:
                    raise
                pause = min(self._terms.pause * 2**tries, LONGEST_PAUSE)
                if self._ended.wait(pause if failure.wait is None else failure.wait):
                    raise _Failure("cancelled", "the run was ended") from None
                tries += 1
                if part.size and part.validator is None:
                    part.restart()

    def _request(
        self, url: str, part: Part, length: int | None, limit: int | None, on_bytes: Callable[[int], object]
    ) -> None:
        """Follow ``url`` to an answer, and take from it what is missing of the part."""
        if self._ended.is_set():
            raise _Failure("cancelled", "the run was ended")
        parts = _split(url)
        if parts.scheme == "file":
            self._read_file(url, parts, part, limit, on_bytes)
            return
        self._check_scheme(url, parts, None)
        place = _place(url, parts)
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
                    raise _Failure("failed", f"{shown_url(place.url)} redirects to nowhere")
            finally:
                self._let_go(response)
            # What follows the # is for the reader, and would come back with every turn of a circle.
            onward = urljoin(place.url, _encoded(onward)).partition("#")[0]
            if onward in passed:
                raise _Failure("failed", f"{shown_url(place.url)} redirects in a circle")
            passed.add(onward)
            parts = _split(onward)
            self._check_scheme(onward, parts, place)
            following = _place(onward, parts)
            # Credentials go to nobody but the origin that they were given for.
            authorization = following.authorization or (authorization if following.origin == place.origin else None)
            place = following
        raise _Failure("failed", f"{shown_url(url)} redirects more than {REDIRECTS} times")

    def _check_scheme(self, url: str, parts: SplitResult, before: _Place | None) -> None:
        if parts.scheme == "https" or (parts.scheme == "http" and self._terms.allow_http):
            return
        what = shown_url(url) if before is None else f"{shown_url(before.url)} redirects to {shown_url(url)}, which"
        if parts.scheme == "http":
            raise _Failure("refused", f"{what} is not encrypted; allow HTTP if you trust the way to it")
        if not parts.scheme:
            raise _Failure("refused", f"{what} has no scheme; it should begin with https:")
        raise _Failure("refused", f"{what} has the scheme {shown(parts.scheme)}; only https is fetched")

    def _addresses(self, place: _Place) -> list[str]:
        """Return the addresses of a host, all of which may be connected to."""
        try:
            addresses = resolve(place.host, place.port)
        except socket.gaierror as error:
            again = error.errno == socket.EAI_AGAIN
            raise _Failure("failed", f"the host {shown(place.host)} is not known: {error.strerror}", again) from None
        except (OSError, UnicodeError) as error:
            raise _Failure("failed", f"the host {shown(place.host)} is not known: {error}") from None
        if not self._terms.allow_private and place.host.rstrip(".") not in self._hosts:
            for address in addresses:
                fault = fault_of_address(address)
                # One is enough: a name that leads to both kinds is no mistake of its owner.
                if fault is not None:
                    raise _Failure(
                        "refused",
                        f"the host {shown(place.host)} has the address {address}, which is {fault}; "
                        "allow the host if you trust it",
                    )
        return addresses

    def _ask(self, place: _Place, authorization: str | None, part: Part) -> BaseHTTPResponse:
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
        timeout = self._urllib3.Timeout(connect=min(self._terms.timeout, CONNECT_TIMEOUT), read=self._terms.timeout)
        last: _Failure | None = None
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
                    last = _Failure("failed", f"{shown_url(place.url)}: no connection to {address}", again=True)
        raise last or _Failure("failed", f"the host {shown(place.host)} has no address")

    @contextlib.contextmanager
    def _failures(self, place: _Place) -> Any:
        """Turn what a connection may do into a failure of ours."""
        try:
            yield
        except _Failure:
            raise
        except (self._urllib3.exceptions.HTTPError, http.client.HTTPException, OSError, ValueError) as error:
            raise self._failure(error, place) from None

    def _failure(self, error: Exception, place: _Place) -> _Failure:
        where = shown_url(place.url)
        if self._too_slow():
            return self._slowness(place)
        if isinstance(error, self._urllib3.exceptions.SSLError):
            cause = error.args[0] if error.args else error
            if isinstance(cause, ssl.SSLCertVerificationError):
                return _Failure("failed", f"{where}: its certificate is not accepted: {cause.verify_message}")
            return _Failure("failed", f"{where}: TLS fails: {_words(cause)}", again=True)
        if isinstance(error, self._urllib3.exceptions.TimeoutError):
            return _Failure("failed", f"{where}: nothing came for {self._terms.timeout:g} seconds", again=True)
        return _Failure("failed", f"{where}: {_words(error)}", again=True)

    def _slowness(self, place: _Place) -> _Failure:
        return _Failure("failed", f"{shown_url(place.url)}: it comes too slowly", again=True)

    def _pool(self, place: _Place, address: str) -> HTTPConnectionPool:
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

    def _new_pool(self, place: _Place, address: str) -> HTTPConnectionPool:
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
        self._watches[threading.get_ident()] = _Watch(connection, monotonic() + PATIENCE * self._terms.timeout)

    def _keep_watch(self) -> None:
        while not self._closed.wait(min(1.0, self._terms.timeout / 4)):
            now = monotonic()
            for watch in list(self._watches.values()):
                if now > watch.deadline:
                    watch.expired = True
                    watch.end()

    def _renew(self) -> None:
        """Note that enough has come on this thread's connection."""
        watch = self._watches.get(threading.get_ident())
        if watch is not None:
            watch.deadline = monotonic() + PATIENCE * self._terms.timeout

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
        place: _Place,
        part: Part,
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
            part.validator = _validator(response.headers)
        else:
            if response.status == 416 and part.size:
                part.restart()
                raise _Failure("failed", f"{shown_url(place.url)}: the file has changed", again=True, wait=0)
            raise _refusal(response, place)
        if limit is not None and whole is not None and whole > limit:
            raise _Failure("too-long", f"{shown_url(place.url)} has {whole} bytes, and may have {limit}")
        self._read_body(response, place, part, limit, on_bytes)
        # What was ended by us looks like an end of the answer, too.
        if self._ended.is_set():
            raise _Failure("cancelled", "the run was ended")
        if self._too_slow():
            raise self._slowness(place)
        part.encoding = response.headers.get("Content-Encoding", "identity")
        # Where nobody said how long the answer would be, its end and a broken connection look the same.
        if part.size < (whole if whole is not None else length or 0):
            raise _Failure("failed", f"{shown_url(place.url)}: the connection was closed too early", again=True)

    def _read_body(
        self,
        response: BaseHTTPResponse,
        place: _Place,
        part: Part,
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
                raise _Failure("too-long", f"{shown_url(place.url)} has more bytes than the {limit} that it may have")
            part.write(data)
            on_bytes(len(data))
            given += len(data)
            if given >= LEAST:
                given = 0
                self._renew()

    def _check_range(self, response: BaseHTTPResponse, place: _Place, part: Part) -> int | None:
        """Return how long the whole file is; the answer must be the rest of the very file of which there is a part."""
        found = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        same = _validator(response.headers)
        fits = (
            found is not None
            and part.size > 0
            and int(found[1]) == part.size <= int(found[2])
            and (same is None or part.validator is None or same[0] != part.validator[0] or same == part.validator)
        )
        if not fits:
            part.restart()
            raise _Failure("failed", f"{shown_url(place.url)}: the answer is not the part that was asked for", True, 0)
        assert found is not None
        return None if found[3] == "*" else int(found[3])

    def _read_file(
        self, url: str, parts: SplitResult, part: Part, limit: int | None, on_bytes: Callable[[int], object]
    ) -> None:
        """Take a file of this machine."""
        if not self._terms.allow_file:
            raise _Failure("refused", f"{shown_url(url)} is a file of this machine; allow files if you trust the bag")
        if parts.netloc not in ("", "localhost"):
            raise _Failure("refused", f"{shown_url(url)} is a file of another machine")
        part.restart()
        path = unquote_to_bytes(parts.path)
        try:
            descriptor = os.open(path, os.O_RDONLY | _ALWAYS)
        except (OSError, ValueError) as error:
            raise _Failure("failed", f"{shown_url(url)}: {_words(error)}") from None
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise _Failure("refused", f"{shown_url(url)} is no regular file")
            if limit is not None and status.st_size > limit:
                raise _Failure("too-long", f"{shown_url(url)} has {status.st_size} bytes, and may have {limit}")
            while data := _read(descriptor, url):
                if limit is not None and part.size + len(data) > limit:
                    raise _Failure("too-long", f"{shown_url(url)} has more bytes than the {limit} that it may have")
                part.write(data)
                on_bytes(len(data))
        finally:
            os.close(descriptor)


def _read(descriptor: int, url: str) -> bytes:
    try:
        return os.read(descriptor, BLOCK)
    except OSError as error:
        raise _Failure("failed", f"{shown_url(url)}: {_words(error)}") from None


def _length_of(response: BaseHTTPResponse) -> int | None:
    """Return how many bytes an answer says that its body has."""
    return response.length_remaining if isinstance(response.length_remaining, int) else None


def _refusal(response: BaseHTTPResponse, place: _Place) -> _Failure:
    """Return what an answer that has no file in it means."""
    try:
        status = f"{response.status} {http.HTTPStatus(response.status).phrase}"
    except ValueError:
        status = str(response.status)
    reason = f"{shown_url(place.url)}: the server answers {status}"
    wait = _retry_after(response.headers)
    if wait is not None and wait > LONGEST_RETRY_AFTER:
        return _Failure("failed", f"{reason}, and to come again in {wait:.0f} seconds")
    return _Failure("failed", reason, response.status in _AGAIN, wait)


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


def _remove(directory: Directory, name: bytes) -> None:
    """Remove a part and what is beside it."""
    for each in (name + b".json", name):
        with contextlib.suppress(OSError):
            if isinstance(directory, int):
                os.unlink(each, dir_fd=directory)
            else:
                os.unlink(os.path.join(directory, each))


def _words(error: BaseException) -> str:
    """Return what went wrong, on one line."""
    if len(error.args) > 1 and isinstance(error.args[-1], Exception):
        # urllib3 wraps what it was told: the innermost says it best.
        return _words(error.args[-1])
    text = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return shown(text)[1:-1] if not text.isprintable() or len(text) > 200 else text
