"""Parse URLs of a fetch file, and redact their secrets in messages."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import NamedTuple
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from pressmark.errors import quoted

__all__ = [
    "DEFAULT_PORTS",
    "URL_LENGTH",
    "DownloadError",
    "ParsedUrl",
    "encoded",
    "joined",
    "parse_url",
    "redacted_url",
    "split_url",
]

URL_LENGTH = 1 << 16  # longer than any server accepts
DEFAULT_PORTS = {"https": 443, "http": 80}


class DownloadError(Exception):
    """A failed request.

    :ivar again: whether a retry can succeed
    :ivar wait: seconds that the server asks to wait first
    """

    def __init__(self, kind: str, reason: str, again: bool = False, wait: float | None = None) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.again = again
        self.wait = wait


class ParsedUrl(NamedTuple):
    """A URL, parsed once, so that all checks see the same parts."""

    scheme: str
    host: str
    port: int
    target: str
    authorization: str | None
    url: str

    @property
    def origin(self) -> tuple[str, str, int]:
        """The scheme, host and port: the scope of credentials."""
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """The host, with the port if it is not the default one of the scheme."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def redacted_url(url: str) -> str:
    """Return ``url`` for a message, without user, password, fragment and query.

    >>> redacted_url("https://me:secret@example.org/a.tif?signature=abc")
    "'https://example.org/a.tif?…'"
    """
    scheme, colon, rest = url.partition("#")[0].partition(":")
    rest, question, _query = rest.partition("?")
    rest = re.sub("^(/*)[^/]*@", r"\1", rest)
    return quoted(f"{scheme}{colon}{rest}{question}{'…' if question else ''}")


def split_url(url: str) -> SplitResult:
    if len(url) > URL_LENGTH:
        raise DownloadError("refused", f"URL longer than {URL_LENGTH} characters")
    if not all(character >= "!" and character != "\x7f" for character in url):
        raise DownloadError("refused", f"{redacted_url(url)} contains a space or control character; encode it as %20")
    try:
        return urlsplit(url)
    except ValueError as error:
        raise DownloadError("refused", f"{redacted_url(url)} is not a valid URL: {error}") from None


def encoded(location: str) -> str:
    """Return the target of a redirect, which http.client decodes as Latin-1, with invalid characters
    percent-encoded.
    """
    return quote(location.strip(" \t").encode("latin-1", "replace"), safe="".join(map(chr, range(0x21, 0x7F))))


def joined(url: str, location: str) -> str:
    """Return the URL to which ``url`` redirects, without its fragment.

    :raises DownloadError: the location is not a valid URL
    """
    try:
        return urljoin(url, encoded(location)).partition("#")[0]
    except ValueError as error:
        raise DownloadError("refused", f"{redacted_url(url)} redirects to an invalid URL: {error}") from None


def parse_url(url: str, parts: SplitResult) -> ParsedUrl:
    """Parse an ``http:`` or ``https:`` URL.

    :raises DownloadError: the URL is invalid, or has no host
    """
    try:
        host, port = parts.hostname or "", parts.port
        host = host if host.isascii() else host.encode("idna").decode("ascii")
    except ValueError as error:
        raise DownloadError("refused", f"{redacted_url(url)} is not a valid URL: {error}") from None
    if not re.fullmatch(r"[a-z0-9_.-]+|[0-9a-f:.]+", host) or host.strip(".") == "":
        raise DownloadError("refused", f"{redacted_url(url)} has no host")
    authorization = None
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Basic {b64encode(pair.encode()).decode('ascii')}"
    target = quote(parts.path or "/", safe="/%:=&~+!$,;'@()*[]")
    if parts.query:
        target += "?" + quote(parts.query, safe="/%:=&~+!$,;'@()*[]?")
    port = DEFAULT_PORTS[parts.scheme] if port is None else port
    return ParsedUrl(parts.scheme, host, port, target, authorization, url)
