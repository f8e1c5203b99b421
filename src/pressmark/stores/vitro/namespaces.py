"""The namespaces file of a Vitro store: ``file_storage_namespaces.properties`` (section "Namespaces").

The file is parsed like :class:`java.util.Properties`. Vitro writes it without escapes, one line ``k = namespace`` per
prefix, and so does this module. A namespace that would be read back differently cannot be declared; one that is already
in the file is read as Vitro reads it, and reported.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from string import ascii_lowercase
from typing import NamedTuple

from pressmark.errors import StoreError, quoted
from pressmark.reports import ERROR, Problem
from pressmark.stores.directories.store_directory import StoreDirectory
from pressmark.stores.exceptions import store_errors
from pressmark.stores.problems import problem

__all__ = ["NAMESPACES", "NamespacesFile", "parse", "read_namespaces", "render", "with_declared"]

NAMESPACES = b"file_storage_namespaces.properties"
# There are at most 62 namespaces, so a longer file is something else.
LONGEST = 1 << 20

_SPACE = " \t\f"
_LINE_END = re.compile("\r\n|\r|\n")
# A key ends before the first separator that is not escaped.
_KEY = re.compile(r"(?:[^=: \t\f\\]|\\.)*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.|$)", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_PREFIX = re.compile("[0-9A-Za-z]")


class NamespacesFile(NamedTuple):
    """The content of a namespaces file.

    :ivar namespaces: the namespace of each prefix, as Vitro reads it, without unreadable lines
    :ivar problems: the problems of the file; after an error, paths are uncertain, and the store must not be changed
    """

    namespaces: dict[str, str]
    problems: tuple[Problem, ...]

    @property
    def doubt(self) -> str | None:
        """The first error; :data:`None` if the file is unambiguous."""
        return next((found.message for found in self.problems if found.severity == ERROR), None)


def parse(text: str) -> list[tuple[str, str]]:
    r"""Return keys and values in order, as :class:`java.util.Properties` reads them.

    :raises ValueError: a ``\u`` without four hex digits, or an unpaired surrogate
    """
    return [_pair(line) for _number, line in _logical_lines(text)]


def _pair(line: str) -> tuple[str, str]:
    """Return the key and the value of a logical line.

    :raises ValueError: as :func:`parse`
    """
    key = _KEY.match(line)
    assert key is not None  # it may be empty
    separator = _SEPARATOR.match(line, key.end())
    assert separator is not None
    return _unescaped(key[0]), _unescaped(line[separator.end() :])


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each logical line with the number of its first physical line."""
    # A backslash before the last line end does not continue the line.
    lines = _LINE_END.split(text[:-1] if text.endswith(("\r", "\n")) else text)
    number, line, goes_on = 0, "", False
    for at, natural in enumerate(lines, 1):
        part = natural.lstrip(_SPACE)
        # After nothing but a backslash, a comment may begin.
        if not line and (not part or part[0] in "#!"):
            goes_on = False
            continue
        number = number if goes_on and line else at
        goes_on = _goes_on(part)
        line += part[:-1] if goes_on else part
        if line and not goes_on:
            yield number, line
            line = ""
    if line or goes_on:
        yield number, line


def _goes_on(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescaped(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        escaped = found[1]
        if escaped[:1] != "u":
            return _CONTROLS.get(escaped, escaped)
        if len(escaped) != 5:
            raise ValueError("\\u without four hex digits; correct the line")
        return chr(int(escaped[1:], 16))

    plain = _ESCAPE.sub(character, text)
    try:
        # Two escapes are one character beyond U+FFFF.
        return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise ValueError("\\u with an unpaired surrogate; correct the line") from None


def render(namespaces: Mapping[str, str]) -> str:
    """Return the text of the file, as Vitro writes it."""
    return "".join(f"{prefix} = {namespace}\n" for prefix, namespace in sorted(namespaces.items()))


def _fault(namespace: str) -> str | None:
    """Return why a namespace would be read back differently; :data:`None` if it would not."""
    if not namespace:
        return "the namespace is empty"
    try:
        namespace.encode()
        if parse(render({"a": namespace})) == [("a", namespace)]:
            return None
    except (UnicodeEncodeError, ValueError):
        pass
    return "Vitro writes namespaces without escapes; use one without leading white space, backslashes and line breaks"


def read_namespaces(directory: StoreDirectory, encoding: str = "utf-8") -> NamespacesFile:
    """Read the file in a directory.

    :raises StoreError: the file does not exist, cannot be read, or is not a namespaces file
    """
    path = directory.path(NAMESPACES)
    with store_errors(path):
        data = directory.beginning(NAMESPACES, LONGEST + 1)
    if len(data) > LONGEST:
        raise StoreError(path, f"not a namespaces file, because it is longer than {LONGEST} bytes; restore the file")
    problems = []
    if data.startswith(codecs.BOM_UTF8):
        problems.append(
            _malformed("byte order mark at the beginning, which Vitro reads as a prefix; save the file without it")
        )
        data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode(encoding, "surrogateescape")
    except UnicodeDecodeError as error:
        reason = f"not {encoding} at byte {error.start}; specify the encoding, or restore the file"
        raise StoreError(path, reason) from None
    read: dict[str, str] = {}
    for number, line in _logical_lines(text):
        try:
            key, namespace = _entry(line, encoding)
        except ValueError as error:
            problems.append(_malformed(f"line {number}: {error}"))
            continue
        prefix = key[0]
        if key != prefix:
            what = f"prefix {quoted(key)} is longer than one character, and Vitro uses {prefix!r}; shorten it"
            problems.append(_malformed(f"line {number}: {what}"))
            if prefix in read:
                continue
        elif prefix in read:
            what = f"line {number}: prefix {prefix!r} is repeated, and Vitro uses the last line; keep the correct one"
            problems.append(problem("namespaces-repeated", NAMESPACES, what, found=prefix))
        read[prefix] = namespace
    return NamespacesFile(read, (*problems, *_namespaces_problems(read)))


def _malformed(message: str) -> Problem:
    return problem("namespaces-malformed", NAMESPACES, message)


def _entry(line: str, encoding: str) -> tuple[str, str]:
    """Return prefix and namespace of a logical line.

    :raises ValueError: the line is invalid
    """
    try:
        line.encode()
    except UnicodeEncodeError:
        raise ValueError(f"not {encoding}; convert the file, or specify its encoding") from None
    key, namespace = _pair(line)
    if not key:
        raise ValueError("no prefix; add one letter before the namespace")
    if not _PREFIX.match(key):
        raise ValueError(f"prefix {quoted(key)} is not an ASCII letter or digit; correct it")
    return key, namespace


def with_declared(base: bytes, namespaces: Mapping[str, str], declared: Iterable[str]) -> dict[str, str]:
    """Return the namespaces with those ``declared`` added under the first free letters.

    :raises StoreError: a namespace is invalid, or no letter is left
    """
    path = os.path.join(base, NAMESPACES)
    result = dict(namespaces)
    for namespace in declared:
        if fault := _fault(namespace):
            raise StoreError(path, f"namespace {quoted(namespace)} cannot be declared: {fault}")
        if namespace in result.values():
            continue
        free = next((letter for letter in ascii_lowercase if letter not in result), None)
        if free is None:
            raise StoreError(
                path, f"no letter is available for the namespace {quoted(namespace)}; at most 26 can be declared"
            )
        result[free] = namespace
    return result


def _namespaces_problems(namespaces: Mapping[str, str]) -> list[Problem]:
    """Return the problems of namespaces as read."""
    found = []
    items = sorted(namespaces.items())
    for prefix, namespace in items:
        if _fault(namespace):
            what = "is empty"
            if namespace:
                what = f"{quoted(namespace)} changes when Vitro writes the file again"
            way_out = f"migrate the objects below '{prefix}~' before changing the line"
            message = f"the namespace of {prefix!r} {what}; {way_out}"
            found.append(problem("namespaces-value", NAMESPACES, message, found=prefix))
        elif namespace[-1] in _SPACE:
            what = f"the namespace {quoted(namespace)} of {prefix!r} ends with white space"
            message = f"{what}; check whether identifiers contain it"
            found.append(problem("namespaces-blank", NAMESPACES, message, found=prefix))
    for number, (prefix, namespace) in enumerate(items):
        earlier = next((letter for letter, other in items[:number] if other == namespace), None)
        if earlier is not None:
            message = f"{prefix!r} has the same namespace as {earlier!r}, and is never used"
            found.append(problem("namespaces-repeated", NAMESPACES, message, expected=earlier, found=prefix))
    letters = [prefix for prefix, _ in items]
    if letters != list(ascii_lowercase[: len(letters)]):
        for prefix, namespace in items:
            for other, longer in items:
                if other != prefix and longer != namespace and longer.startswith(namespace):
                    message = f"the namespace of {other!r} begins with that of {prefix!r}"
                    message += ", and the prefixes are not consecutive letters"
                    found.append(
                        problem("namespaces-order", NAMESPACES, f"{message}; the result depends on the version of Java")
                    )
    return found
