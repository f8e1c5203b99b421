"""The bag declaration, bagit.txt (section 2.1.1): the version of the bag and the character set of its tag files.

>>> read_declaration(b"BagIt-Version: 1.0\\nTag-File-Character-Encoding: UTF-8\\n")
(Declaration(version=(1, 0), encoding='UTF-8'), ())
"""

from __future__ import annotations

import io
import re
from functools import lru_cache
from typing import NamedTuple

from pressmark.bagit.encodings import UTF8, Line, LineReader, find_charset
from pressmark.bagit.problems import VERSIONS, problem
from pressmark.errors import quoted
from pressmark.reports import Problem

__all__ = ["DECLARATION_LIMIT", "NAME", "Declaration", "declaration_bytes", "read_declaration"]

NAME = b"bagit.txt"

# Two lines fit easily; the rest of a longer file is ignored.
DECLARATION_LIMIT = 64 << 10  # 64 KiB

_VERSION_LABEL = "BagIt-Version"
_ENCODING_LABEL = "Tag-File-Character-Encoding"
_ELEMENT = re.compile(r"([^:]*):[ \t]*(.*?)[ \t]*")
_VERSION = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})")


class Declaration(NamedTuple):
    """The content of bagit.txt.

    :ivar version: major and minor number
    :ivar encoding: the character set of all other tag files, as spelled there
    """

    version: tuple[int, int] = (1, 0)
    encoding: str = UTF8.name


def declaration_bytes(declaration: Declaration = Declaration()) -> bytes:  # noqa: B008, an immutable tuple
    """Return the content of bagit.txt as bytes."""
    major, minor = declaration.version
    return f"{_VERSION_LABEL}: {major}.{minor}\n{_ENCODING_LABEL}: {declaration.encoding}\n".encode()


def read_declaration(data: bytes) -> tuple[Declaration, tuple[Problem, ...]]:
    """Read bagit.txt and return its content and its problems; unreadable values default to 1.0 and UTF-8.

    :param data: the bytes of the file, at least the first :data:`DECLARATION_LIMIT`
    """
    declaration, problems = _read(data[:DECLARATION_LIMIT])
    if len(data) > DECLARATION_LIMIT:
        return declaration, (_malformed(f"more than {DECLARATION_LIMIT} bytes; expected two lines"),)
    return declaration, problems


@lru_cache(16)  # most bags of a collection have the same
def _read(data: bytes) -> tuple[Declaration, tuple[Problem, ...]]:
    problems: list[Problem] = []
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
        problems.append(_malformed(f"{len(lines)} lines; expected two"))
    version = _read_version(values.get(_VERSION_LABEL), problems)
    return Declaration(version, _read_encoding(values.get(_ENCODING_LABEL), problems)), tuple(problems)


def _malformed(message: str) -> Problem:
    return problem("declaration-malformed", NAME, message)


def _of_the_declaration(found: Problem) -> Problem:
    """Return a problem with the section for bagit.txt, which has its own rule on byte-order marks."""
    return found._replace(section="2.1.1") if found.kind == "bom" else found


def _value(label: str, line: bytes, problems: list[Problem]) -> str | None:
    """Return the value of a line with the given label; :data:`None` if the line has another label."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        problems.append(problem("undecodable", NAME, f"the line {quoted(line)} is not UTF-8", section="2.1.1"))
        return None
    found = _ELEMENT.fullmatch(text)
    if found is None or found[1].strip(" \t").lower() != label.lower():
        problems.append(_malformed(f"{quoted(text)}; expected '{label}: …'"))
        return None
    if found[1].strip(" \t") != label:
        problems.append(problem("declaration-label", NAME, f"label {quoted(found[1])}; expected '{label}'"))
    if text != f"{found[1].strip()}: {found[2]}":
        problems.append(_malformed(f"{quoted(text)}; expected a single space after the colon"))
    return found[2]


def _read_version(value: str | None, problems: list[Problem]) -> tuple[int, int]:
    if value is None:
        return Declaration().version
    found = _VERSION.fullmatch(value)
    if found is None:
        problems.append(_malformed(f"malformed version {quoted(value)}; expected two numbers separated by a full stop"))
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
        problems.append(problem("encoding-unknown", NAME, f"unknown character encoding {quoted(value)}"))
        return UTF8.name
    if not charset.is_utf8:
        problems.append(problem("encoding-not-utf8", NAME, found=value))
    return value
