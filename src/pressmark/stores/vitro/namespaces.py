"""The namespaces file of a Vitro store: ``file_storage_namespaces.properties``.

It is read as :class:`java.util.Properties` reads text. Vitro writes it without escapes, ``k = namespace`` a line, and
so does this module. A namespace that would not be read back as it was written cannot be declared; where one is in the
file already, it is read as Vitro reads it, and reported.
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
from pressmark.stores.exceptions import store_errors
from pressmark.stores.problems import problem

__all__ = ["NAMESPACES", "NamespacesFile", "parse", "read_namespaces", "render", "with_declared"]

NAMESPACES = b"file_storage_namespaces.properties"
# A file of so many bytes is no list of 62 namespaces at most.
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

    :ivar namespaces: what each prefix stands for, as Vitro reads it; lines that cannot be read are left out
    :ivar problems: what is wrong with the file; with an error among them its meaning is in doubt, and what depends on
        it is not to be written
    """

    namespaces: dict[str, str]
    problems: tuple[Problem, ...]

    @property
    def doubt(self) -> str | None:
        """The first error; :data:`None` where the file's meaning is certain."""
        return next((found.message for found in self.problems if found.severity == ERROR), None)


def parse(text: str) -> list[tuple[str, str]]:
    r"""Return keys and values as :class:`java.util.Properties` reads them, in their order.

    :raises ValueError: a ``\u`` that is not followed by four hex digits, or stands for no character
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
    """Yield each logical line with the number of the first line that it is made of."""
    # A backslash before the very last line end does not continue the line.
    lines = _LINE_END.split(text[:-1] if text.endswith(("\r", "\n")) else text)
    number, line, goes_on = 0, "", False
    for at, natural in enumerate(lines, 1):
        part = natural.lstrip(_SPACE)
        # As long as nothing but a backslash has come, a comment may begin.
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
            raise ValueError("a \\u is not followed by four hex digits; correct it")
        return chr(int(escaped[1:], 16))

    plain = _ESCAPE.sub(character, text)
    try:
        # Two escapes make one character beyond U+FFFF.
        return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise ValueError("a \\u is half a character; correct it") from None


def render(namespaces: Mapping[str, str]) -> str:
    """Return the file's text, as Vitro writes it."""
    return "".join(f"{prefix} = {namespace}\n" for prefix, namespace in sorted(namespaces.items()))


def _fault(namespace: str) -> str | None:
    """Return why a namespace would not be read back as it is written; :data:`None` where it would."""
    if not namespace:
        return "it is empty, and every identifier begins with it"
    try:
        namespace.encode()
        if parse(render({"a": namespace})) == [("a", namespace)]:
            return None
    except (UnicodeEncodeError, ValueError):
        pass
    return (
        "Vitro writes it without escapes, so that it would not read back; it cannot begin with blanks, nor have "
        "backslashes or line ends"
    )


def read_namespaces(base: bytes, encoding: str = "utf-8") -> NamespacesFile:
    """Read the file in the directory ``base``.

    :raises StoreError: the file is not there, cannot be read, or is no list of namespaces
    """
    path = os.path.join(base, NAMESPACES)
    with store_errors(path), open(path, "rb") as file:
        data = file.read(LONGEST + 1)
    if len(data) > LONGEST:
        raise StoreError(path, f"it is longer than {LONGEST} bytes: that is no list of namespaces; restore the file")
    problems = []
    if data.startswith(codecs.BOM_UTF8):
        problems.append(_malformed("a byte order mark at the beginning, which Vitro takes for a prefix; remove it"))
        data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode(encoding, "surrogateescape")
    except UnicodeDecodeError as error:
        reason = f"it is not {encoding} at byte {error.start}; name its encoding, or restore the file"
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
            what = f"the prefix {quoted(key)} is longer than one character, and Vitro uses {prefix!r}; shorten it"
            problems.append(_malformed(f"line {number}: {what}"))
            if prefix in read:
                continue
        elif prefix in read:
            what = f"line {number}: the prefix {prefix!r} is repeated, and Vitro uses the last line; remove the others"
            problems.append(problem("namespaces-repeated", NAMESPACES, what, found=prefix))
        read[prefix] = namespace
    return NamespacesFile(read, (*problems, *_namespaces_problems(read)))


def _malformed(message: str) -> Problem:
    return problem("namespaces-malformed", NAMESPACES, message)


def _entry(line: str, encoding: str) -> tuple[str, str]:
    """Return the key and the namespace of a logical line.

    :raises ValueError: there are none that can be used
    """
    try:
        line.encode()
    except UnicodeEncodeError:
        raise ValueError(f"not {encoding}; convert the file, or name its encoding") from None
    key, namespace = _pair(line)
    if not key:
        raise ValueError("no prefix; write one letter before the namespace")
    if not _PREFIX.match(key):
        raise ValueError(f"the prefix {quoted(key)} is not an ASCII letter or digit; correct it")
    return key, namespace


def with_declared(base: bytes, namespaces: Mapping[str, str], declared: Iterable[str]) -> dict[str, str]:
    """Return the namespaces with those ``declared`` that are not there under the first letters that are free.

    :raises StoreError: one would not be read back, or there is no letter left
    """
    path = os.path.join(base, NAMESPACES)
    result = dict(namespaces)
    for namespace in declared:
        if fault := _fault(namespace):
            raise StoreError(path, f"the namespace {quoted(namespace)} cannot be declared: {fault}")
        if namespace in result.values():
            continue
        free = next((letter for letter in ascii_lowercase if letter not in result), None)
        if free is None:
            raise StoreError(path, f"no letter is left for the namespace {quoted(namespace)}: there are 26 at most")
        result[free] = namespace
    return result


def _namespaces_problems(namespaces: Mapping[str, str]) -> list[Problem]:
    """Return what is wrong with namespaces as they were read."""
    found = []
    items = sorted(namespaces.items())
    for prefix, namespace in items:
        if _fault(namespace):
            what = "is empty, so every identifier begins with it"
            if namespace:
                what = f"{quoted(namespace)} changes when Vitro writes the file again"
            way_out = f"migrate the objects below '{prefix}~' before changing the line"
            message = f"the namespace of {prefix!r} {what}; {way_out}"
            found.append(problem("namespaces-value", NAMESPACES, message, found=prefix))
        elif namespace[-1] in _SPACE:
            message = (
                f"the namespace {quoted(namespace)} of {prefix!r} ends with a blank; check that identifiers have it"
            )
            found.append(problem("namespaces-blank", NAMESPACES, message, found=prefix))
    for number, (prefix, namespace) in enumerate(items):
        earlier = next((letter for letter, other in items[:number] if other == namespace), None)
        if earlier is not None:
            message = f"{prefix!r} stands for the same as {earlier!r}, and is never used"
            found.append(problem("namespaces-repeated", NAMESPACES, message, expected=earlier, found=prefix))
    letters = [prefix for prefix, _ in items]
    if letters != list(ascii_lowercase[: len(letters)]):
        for prefix, namespace in items:
            for other, longer in items:
                if other != prefix and longer != namespace and longer.startswith(namespace):
                    message = f"that of {other!r} begins with that of {prefix!r}, and letters are left out"
                    found.append(
                        problem("namespaces-order", NAMESPACES, f"{message}: Java versions disagree which one wins")
                    )
    return found
