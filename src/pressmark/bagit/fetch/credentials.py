"""Credentials of named hosts: header fields of a file, and logins of a netrc file.

The URLs in fetch.txt are untrusted, so a host receives only the credentials that the user specified for it. A host
without a port means its default port. Errors name the file and the line, never their content.
"""

from __future__ import annotations

import os
import re
import stat
from base64 import b64encode
from collections.abc import Mapping
from netrc import NetrcParseError, netrc
from typing import NamedTuple

from pressmark.bagit.fetch.urls import DEFAULT_PORTS, DownloadError, ParsedUrl, parse_url, split_url
from pressmark.errors import BagError, quoted

__all__ = ["Credentials", "read_credentials"]

SIZE = 1 << 20  # 1 MiB, the size limit of a file
# The requests of a download need their own values of these.
RESERVED = frozenset(
    (
        *("accept-encoding", "connection", "content-length", "expect", "host", "if-range", "keep-alive", "range"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    )
)

_LINE = re.compile(r"(?P<host>[^\s/@?#\\]+)[ \t]+(?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(?P<value>[!-~][ -~\t]*)")
_EXPECTED = "expected a host, a header and its value, such as: repository.example Authorization: Bearer TOKEN"


class _Name(NamedTuple):
    """A named host.

    :ivar port: :data:`None` for the default port
    """

    host: str
    port: int | None


class Credentials:
    """Header fields for named hosts. No message or ``repr`` shows them.

    :param fields: the fields of each host, by name
    """

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[_Name, Mapping[str, str]] = {}) -> None:
        self._fields = fields

    def headers(self, location: ParsedUrl) -> dict[str, str]:
        """Return the header fields of a request, their names in lower case."""
        host = location.host.rstrip(".")
        is_default = location.port == DEFAULT_PORTS[location.scheme]
        found = dict(self._fields.get(_Name(host, None), {})) if is_default else {}
        return found | dict(self._fields.get(_Name(host, location.port), {}))


def read_credentials(header_from: str | os.PathLike[str] | None, with_netrc: bool) -> Credentials:
    """Return the credentials of a file of header fields, and of the user's netrc file. For the same host, the fields
    of the first take precedence.

    :raises BagError: a file cannot be read, is malformed, or is readable by all users
    """
    fields = _read_netrc() if with_netrc else {}
    if header_from is not None:
        for name, values in _read_headers(os.fspath(header_from)).items():
            fields[name] = fields.get(name, {}) | values
    return Credentials(fields)


def _read_headers(path: str) -> dict[_Name, dict[str, str]]:
    fields: dict[_Name, dict[str, str]] = {}
    for number, line in enumerate(_read(path).split("\n"), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        found = _LINE.fullmatch(text)
        name = found and _name(found["host"])
        if not found or name is None:
            raise BagError(path, f"line {number}: {_EXPECTED}")
        header = found["name"].lower()
        if header in RESERVED:
            raise BagError(path, f"line {number}: header {quoted(header)} is set by each request; omit the line")
        if header in fields.setdefault(name, {}):
            raise BagError(path, f"line {number}: header {quoted(header)} is not unique for its host; keep one line")
        fields[name][header] = found["value"]
    return fields


def _read_netrc() -> dict[_Name, dict[str, str]]:
    """Return the logins of the user's netrc file. Its default login is not used: it names no host."""
    path = os.environ.get("NETRC") or os.path.join(os.path.expanduser("~"), ".netrc")
    _read(path)  # for the errors
    try:
        hosts = netrc(path).hosts
    except NetrcParseError:  # its message shows a word of the file
        raise BagError(path, "not in the format of netrc: machine HOST login USER password PASSWORD") from None
    fields = {}
    for machine, (login, _account, password) in hosts.items():
        name = _name(machine)
        if name is not None and machine != "default":
            pair = f"{login or ''}:{password or ''}".encode()
            fields[name] = {"authorization": f"Basic {b64encode(pair).decode('ascii')}"}
    return fields


def _name(text: str) -> _Name | None:
    """Return a host with an optional port; :data:`None` if ``text`` is not one."""
    url = f"https://{text}/"
    try:
        parts = split_url(url)
        return _Name(parse_url(url, parts).host.rstrip("."), parts.port)
    except DownloadError:
        return None


def _read(path: str) -> str:
    """Return the content of a file with secrets."""
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if os.name == "posix" and mode & stat.S_IROTH and stat.S_ISREG(mode):
                raise BagError(path, f"readable by all users of this machine; run: chmod 600 {path}")
            data = file.read(SIZE + 1)
    except OSError as error:
        raise BagError(path, error.strerror or str(error)) from None
    if len(data) > SIZE:
        raise BagError(path, f"longer than {SIZE:,} bytes; not a file of credentials")
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise BagError(path, "not in UTF-8; save it in UTF-8") from None
