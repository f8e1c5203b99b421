"""The fetch file, fetch.txt (section 2.2.3): files to download, their URLs and lengths.

>>> fetch_line(FetchEntry("https://example.org/a.tif", 12, b"data/a.tif"))
b'https://example.org/a.tif 12 data/a.tif\\n'
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import BinaryIO, NamedTuple
from urllib.parse import quote

from pressmark.bagit.bag_directory import BaseDirectory, open_tag_file
from pressmark.bagit.encodings import UTF8, Charset, Line, LineReader, find_charset, line_location, undecodable
from pressmark.bagit.manifest import PATH_LIMIT
from pressmark.bagit.paths import (
    BELOW_PAYLOAD,
    FETCH_TXT,
    PAYLOAD,
    canonical,
    decode_path,
    encode_path,
    has_raw_percent,
    why_unsafe,
)
from pressmark.bagit.problems import applies, problem
from pressmark.errors import BagError, quoted
from pressmark.reports import WARNING, Problem

__all__ = ["FetchEntry", "FetchList", "base_url", "fetch_line", "is_absolute_uri", "read_fetch", "url_below"]

_LINE = re.compile(rb"([^ \t]+)[ \t]+([^ \t]+)[ \t]+(.+)", re.DOTALL)
# Larger numbers are invalid: int() of a million digits would take minutes.
_LENGTH = re.compile(rb"0*+([0-9]{1,18})|0+")


class FetchEntry(NamedTuple):
    """A file to download.

    :ivar url: as written; :func:`is_absolute_uri` checks it
    :ivar length: length in bytes; :data:`None` if fetch.txt leaves it open
    :ivar path: relative to the base directory of the bag, decoded and normalized; safe, and in ``data/``
    :ivar line: its number in fetch.txt, counted from 1
    """

    url: str
    length: int | None
    path: bytes
    line: int = 0


class FetchList:
    """The entries of a bag's fetch.txt, read from the file on each iteration; empty if the file does not exist.

    :param files: opens the files of the bag
    :raises BagError: on iteration: the file cannot be read
    """

    def __init__(
        self,
        path: bytes,
        encoding: str,
        version: tuple[int, int],
        files: Callable[[], AbstractContextManager[BaseDirectory]],
    ) -> None:
        self._files = files
        self._path = path
        self._encoding = encoding
        self._version = version

    def __iter__(self) -> Iterator[FetchEntry]:
        problems: list[Problem] = []
        with self._files() as base:
            file = open_tag_file(base, FETCH_TXT, problems)
            if problems:
                raise BagError(os.path.join(os.fsdecode(self._path), problems[0].path), problems[0].message)
            if file is None:
                return
            with file:
                for found in read_fetch(file, self._encoding, self._version):
                    if isinstance(found, FetchEntry):
                        yield found

    def __len__(self) -> int:
        return sum(1 for _ in self)


def fetch_line(entry: FetchEntry, version: tuple[int, int] = (1, 0)) -> bytes:
    """Return the line of an entry in UTF-8, with its line feed.

    :param version: BagIt version of the bag
    :raises ValueError: the URL is not an absolute URI
    """
    if not is_absolute_uri(entry.url):
        raise ValueError(f"{quoted(entry.url)} is not an absolute URI")
    length = "-" if entry.length is None else str(entry.length)
    return f"{entry.url} {length} ".encode("ascii") + encode_path(entry.path, version) + b"\n"


def base_url(url: str) -> str:
    """Return ``url`` with a slash at its end, for :func:`url_below`.

    :raises ValueError: it is not an absolute URI, or has a part that every URL of fetch.txt would disclose or change
    """
    found = _ABSOLUTE_URI.fullmatch(url)
    if found is None or found["authority"] is None or _is_odd(url):
        raise ValueError("not an absolute URL; expected one like https://example.org/bags/1/data/")
    if "?" in url:
        raise ValueError("URL has a query; file names are appended to the URL, so it must end with a directory")
    if "@" in found["authority"]:
        raise ValueError("URL has a user name or password, which fetch.txt would disclose; omit it")
    return url if url.endswith("/") else f"{url}/"


def url_below(base: str, path: bytes) -> str:
    """Return the URL of a payload file.

    All bytes of the path except ``A-Z a-z 0-9 - . _ ~`` (the unreserved characters of RFC 3986, section 2.3) and the
    slashes between its names are percent-encoded.

    >>> url_below("https://example.org/1/", b"data/50% of a b.tif")
    'https://example.org/1/50%25%20of%20a%20b.tif'

    :param base: a result of :func:`base_url`
    :param path: relative to the base directory of the bag; ``data/`` is not part of the URL
    """
    return base + quote(path.removeprefix(BELOW_PAYLOAD), safe="/")


# --- RFC 3986 -----------------------------------------------------------------------------------------------------
# Section 4.3, absolute-URI, from Appendix A. Possessive, so that matching takes linear time.

_HEX_DIGIT = "[0-9A-Fa-f]"
_ENCODED = f"%{_HEX_DIGIT}{{2}}"
_UNRESERVED = r"A-Za-z0-9._~\-"
_SUB_DELIMS = "!$&'()*+,;="
_PCHAR = f"(?:[{_UNRESERVED}{_SUB_DELIMS}:@]|{_ENCODED})"
_SEGMENTS = f"(?:/{_PCHAR}*+)*+"
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_H16 = f"{_HEX_DIGIT}{{1,4}}"
_LS32 = f"(?:{_H16}:{_H16}|{_IPV4})"
_IPV6 = "|".join(
    (
        f"(?:{_H16}:){{6}}{_LS32}",
        f"::(?:{_H16}:){{5}}{_LS32}",
        f"(?:{_H16})?::(?:{_H16}:){{4}}{_LS32}",
        f"(?:(?:{_H16}:){{0,1}}{_H16})?::(?:{_H16}:){{3}}{_LS32}",
        f"(?:(?:{_H16}:){{0,2}}{_H16})?::(?:{_H16}:){{2}}{_LS32}",
        f"(?:(?:{_H16}:){{0,3}}{_H16})?::{_H16}:{_LS32}",
        f"(?:(?:{_H16}:){{0,4}}{_H16})?::{_LS32}",
        f"(?:(?:{_H16}:){{0,5}}{_H16})?::{_H16}",
        f"(?:(?:{_H16}:){{0,6}}{_H16})?::",
    )
)
_FUTURE = rf"v{_HEX_DIGIT}++\.[{_UNRESERVED}{_SUB_DELIMS}:]++"
_USER = f"(?:[{_UNRESERVED}{_SUB_DELIMS}:]|{_ENCODED})*+"
_HOST = rf"(?:\[(?:{_IPV6}|{_FUTURE})\]|(?:[{_UNRESERVED}{_SUB_DELIMS}]|{_ENCODED})*+)"
_AUTHORITY = f"(?:{_USER}@)?(?P<host>{_HOST})(?::[0-9]*+)?"
_HIERARCHY = f"(?://(?P<authority>{_AUTHORITY}){_SEGMENTS}|/(?:{_PCHAR}++{_SEGMENTS})?|{_PCHAR}++{_SEGMENTS})?"
_ABSOLUTE_URI = re.compile(rf"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*+):{_HIERARCHY}(?:\?(?:{_PCHAR}|[/?])*+)?", re.ASCII)

# Schemes whose URLs name a host.
_WITH_HOST = frozenset(("http", "https", "ftp", "ftps", "sftp", "s3", "gs", "globus"))


def is_absolute_uri(url: str) -> bool:
    """Return whether ``url`` is an absolute URI: RFC 3986, section 4.3, so without a fragment."""
    return _ABSOLUTE_URI.fullmatch(url) is not None


def _is_odd(url: str) -> bool:
    """Return whether a valid URL has no host although its scheme requires one, as in ``http:/x``."""
    found = _ABSOLUTE_URI.fullmatch(url)
    return found is not None and found["scheme"].lower() in _WITH_HOST and not found["host"]


# --- reading ------------------------------------------------------------------------------------------------------


def read_fetch(
    file: BinaryIO,
    encoding: str = UTF8.name,
    version: tuple[int, int] = (1, 0),
    *,
    name: bytes = FETCH_TXT,
    lenient: bool = False,
) -> Iterator[FetchEntry | Problem]:
    """Read a fetch file from a binary stream: yield its entries, each after its problems.

    Lines with paths that are unsafe, or outside the payload, yield no entry. Memory is bounded.

    :param encoding: the character set that bagit.txt names
    :param name: path of the file, for problems
    :param lenient: report blank and malformed lines as warnings
    :raises ValueError: the encoding is unknown
    """
    charset = find_charset(encoding)
    if charset is None:
        raise ValueError(f"encoding={encoding!r}: unknown")
    return _entries(LineReader(file, charset, name), name, version, lenient)


def _entries(
    reader: LineReader, name: bytes, version: tuple[int, int], lenient: bool
) -> Iterator[FetchEntry | Problem]:
    while (found := reader.line()) is not None:
        if not isinstance(found, Line):
            yield found
            continue
        problems: list[Problem] = []
        entry = _read(found, reader.charset, name, version, lenient, problems)
        yield from problems
        if entry is not None:
            yield entry


def _read(
    line: Line, charset: Charset, name: bytes, version: tuple[int, int], lenient: bool, problems: list[Problem]
) -> FetchEntry | None:
    def fault(kind: str, reason: str) -> None:
        # A file that only a malformed line lists is missing, by the manifests.
        severity = WARNING if lenient and kind in ("line-blank", "line-malformed") else None
        problems.append(problem(kind, name, f"line {line.number}: {reason}", severity=severity, section="2.2.3"))

    def report_path(kind: str, path: bytes, reason: str = "") -> None:
        message = f"{line_location(name, line.number)}{reason and ': '}{reason}"
        section = "5.1" if kind == "path-unsafe" else "2.2.3"
        problems.append(problem(kind, path[:PATH_LIMIT], message, section=section))

    try:
        data = charset.to_utf8(line.data)
        if charset.is_utf8 and not data.isascii():
            data.decode("utf-8")
    except UnicodeDecodeError as error:
        problems.append(undecodable(line, charset, name, error))
        if not charset.is_utf8:
            return None
        data = line.data
    if not data.strip(b" \t"):
        fault("line-blank", "a blank line")
        return None
    found = _LINE.fullmatch(data)
    if found is None:
        fault("line-malformed", f"expected a URL, a length and a path: {quoted(data)}")
        return None
    length = None
    if found[2] != b"-":
        number = _LENGTH.fullmatch(found[2])
        if number is None:
            fault("line-malformed", f"malformed length {quoted(found[2])}; expected a number of bytes or '-'")
        else:
            length = int(number[1] or b"0")
    text = found[3]
    if applies("percent-encoded", version) and has_raw_percent(text):
        report_path("percent-raw", text)
    path = decode_path(text, version)
    reason = why_unsafe(path) or why_unsafe(canonical(path)[0])
    if reason is not None:
        report_path("path-unsafe", path, reason)
        return None
    path, changed = canonical(path)
    if changed:
        report_path("path-not-canonical", path, f"written {quoted(text)}")
    if not path.startswith(BELOW_PAYLOAD):
        report_path("path-directory" if path == PAYLOAD else "fetch-tag-file", path)
        return None
    if path.endswith(b"/"):
        report_path("path-directory", path)
        return None
    url = found[1].decode("utf-8", "surrogateescape")
    if not is_absolute_uri(url):
        fault("fetch-url", f"not an absolute URI: {quoted(url)}")
    elif _is_odd(url):
        fault("fetch-url-odd", f"URL without a host: {quoted(url)}")
    return FetchEntry(url, length, path, line.number)
