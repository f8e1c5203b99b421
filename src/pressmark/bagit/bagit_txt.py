"""The bag declaration, bagit.txt (section 2.1.1): the bag's version, and the character set of its tag files.

>>> read_declaration(b"BagIt-Version: 1.0\\nTag-File-Character-Encoding: UTF-8\\n")
(Declaration(version=(1, 0), encoding='UTF-8'), [])
"""

from __future__ import annotations

import io
import re
from typing import NamedTuple

from pressmark.bagit.encodings import UTF8, Line, LineReader, find_charset
from pressmark.bagit.problems import problem
from pressmark.bagit.versions import VERSIONS
from pressmark.errors import quoted
from pressmark.reports import Problem

__all__ = ["DECLARATION_LIMIT", "NAME", "Declaration", "declaration_bytes", "read_declaration"]

NAME = b"bagit.txt"

# Two lines need no more; of a file that has more, only so much is looked at.
DECLARATION_LIMIT = 64 << 10  # 64 KiB

_VERSION_LABEL = "BagIt-Version"
_ENCODING_LABEL = "Tag-File-Character-Encoding"
_ELEMENT = re.compile(r"([^:]*):[ \t]*(.*?)[ \t]*")
_VERSION = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})")


class Declaration(NamedTuple):
    """What bagit.txt says.

    :ivar version: major and minor number
    :ivar encoding: the character set of all other tag files, as it is spelled there; one that is known here
    """

    version: tuple[int, int] = (1, 0)
    encoding: str = UTF8.name


def declaration_bytes(declaration: Declaration = Declaration()) -> bytes:  # noqa: B008, an immutable tuple
    """Return bagit.txt."""
    major, minor = declaration.version
    return f"{_VERSION_LABEL}: {major}.{minor}\n{_ENCODING_LABEL}: {declaration.encoding}\n".encode()


def read_declaration(data: bytes) -> tuple[Declaration, list[Problem]]:
    """Read bagit.txt, and say what is wrong with it; what cannot be read is taken to be 1.0 and UTF-8.

    :param data: the file's bytes, at least the first :data:`DECLARATION_LIMIT`
    """
    if len(data) > DECLARATION_LIMIT:
        declaration, _ = read_declaration(data[:DECLARATION_LIMIT])
        return declaration, [_malformed(f"it has more than {DECLARATION_LIMIT} bytes, where two lines are required")]
    problems = []
    reader = LineReader(io.BytesIO(data), UTF8, NAME)
    lines = []
    while (found := reader.line()) is not None:
        if isinstance(found, Line):
            lines.append(found.data)
        else:
            problems.append(_of_the_declaration(found))
    values = {}
    for label, line in zip((_VERSION_LABEL, _ENCODING_LABEL), lines, strict=False):
        values[label] = _value(label, line, problems)
    if len(lines) != 2:
        problems.append(_malformed(f"it has {len(lines)} lines, where two are required"))
    version = _read_version(values.get(_VERSION_LABEL), problems)
    return Declaration(version, _read_encoding(values.get(_ENCODING_LABEL), problems)), problems


def _malformed(message: str) -> Problem:
    return problem("declaration-malformed", NAME, message)


def _of_the_declaration(found: Problem) -> Problem:
    """The declaration is UTF-8 by itself, so its byte-order mark has a section of its own."""
    return found._replace(section="2.1.1") if found.kind == "bom" else found


def _value(label: str, line: bytes, problems: list[Problem]) -> str | None:
    """Return the value that a line has for the label; :data:`None` where there is nothing like it."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        problems.append(problem("undecodable", NAME, f"the line {quoted(line)} is not UTF-8", section="2.1.1"))
        return None
    found = _ELEMENT.fullmatch(text)
    if found is None or found[1].strip(" \t").lower() != label.lower():
        problems.append(_malformed(f"{quoted(text)}, where '{label}: …' is required"))
        return None
    if found[1].strip(" \t") != label:
        problems.append(problem("declaration-label", NAME, f"the label {quoted(found[1])} is not spelled '{label}'"))
    if text != f"{found[1].strip()}: {found[2]}":
        problems.append(_malformed(f"{quoted(text)}, where one blank is required, after the colon"))
    return found[2]


def _read_version(value: str | None, problems: list[Problem]) -> tuple[int, int]:
    if value is None:
        return Declaration().version
    found = _VERSION.fullmatch(value)
    if found is None:
        problems.append(_malformed(f"the version {quoted(value)} is not two numbers with a full stop between them"))
        return Declaration().version
    version = int(found[1]), int(found[2])
    if version not in VERSIONS:
        problems.append(problem("version-unknown", NAME, found=value))
    return version


def _read_encoding(value: str | None, problems: list[Problem]) -> str:
    if value is None:
        return UTF8.name
    charset = find_charset(value)
    if charset is None:
        problems.append(problem("encoding-unknown", NAME, f"the character encoding {quoted(value)} is not known"))
        return UTF8.name
    if not charset.is_utf8:
        problems.append(problem("encoding-not-utf8", NAME, found=value))
    return value
