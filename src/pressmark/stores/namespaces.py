"""The namespaces file of a Vitro store: ``file_storage_namespaces.properties``.

It is read as :class:`java.util.Properties` reads text. Vitro writes it without escapes, ``k = namespace`` a line, and
so does this module; a namespace that would not be read back as it was written is refused, read or declared.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from string import ascii_lowercase

from pressmark.errors import StoreError, shown
from pressmark.reports import Problem
from pressmark.stores.base import store_errors
from pressmark.stores.kinds import problem

__all__ = ["NAMESPACES", "namespaces_problems", "parse", "read_namespaces", "render", "with_declared"]

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


def parse(text: str) -> list[tuple[str, str]]:
    r"""Return keys and values as :class:`java.util.Properties` reads them, in their order.

    :raises ValueError: a ``\u`` that is not followed by four hex digits, or stands for no character
    """
    pairs = []
    for line in _logical_lines(text):
        key = _KEY.match(line)
        assert key is not None  # it may be empty
        separator = _SEPARATOR.match(line, key.end())
        assert separator is not None
        pairs.append((_unescaped(key[0]), _unescaped(line[separator.end() :])))
    return pairs


def _logical_lines(text: str) -> Iterator[str]:
    lines = iter(_LINE_END.split(text))
    for first in lines:
        line = first.lstrip(_SPACE)
        if not line or line[0] in "#!":
            continue
        while _goes_on(line):
            line = line[:-1] + next(lines, "").lstrip(_SPACE)
        if line:
            yield line


def _goes_on(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescaped(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        escaped = found[1]
        if escaped[:1] != "u":
            return _CONTROLS.get(escaped, escaped)
        if len(escaped) != 5:
            raise ValueError("a \\u is not followed by four hex digits")
        return chr(int(escaped[1:], 16))

    plain = _ESCAPE.sub(character, text)
    try:
        # Two escapes make one character beyond U+FFFF.
        return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise ValueError("a \\u is half a character") from None


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


def read_namespaces(base: bytes, encoding: str = "utf-8") -> dict[str, str]:
    """Return what each prefix stands for, from the file in the directory ``base``.

    :raises StoreError: the file is not there, cannot be read, or is malformed
    """
    path = os.path.join(base, NAMESPACES)
    with store_errors(path), open(path, "rb") as file:
        data = file.read(LONGEST + 1)
    if len(data) > LONGEST:
        raise StoreError(path, f"it is longer than {LONGEST} bytes: that is no list of namespaces; restore the file")
    if data.startswith(codecs.BOM_UTF8):
        raise StoreError(path, "it begins with a byte order mark, which Vitro takes for a prefix; remove that")
    try:
        pairs = parse(data.decode(encoding))
    except UnicodeDecodeError as error:
        reason = f"it is not {encoding} at byte {error.start}; name its encoding, or restore the file"
        raise StoreError(path, reason) from None
    except ValueError as error:
        raise StoreError(path, f"{error}; mend the line") from None
    for prefix, namespace in pairs:
        if not _PREFIX.fullmatch(prefix):
            raise StoreError(path, f"{shown(prefix)} is no prefix: that is one ASCII letter or digit; mend the line")
        if fault := _fault(namespace):
            raise StoreError(path, f"the namespace {shown(namespace)} of {prefix!r}: {fault}; mend the line")
    return dict(pairs)


def with_declared(base: bytes, namespaces: Mapping[str, str], declared: Iterable[str]) -> dict[str, str]:
    """Return the namespaces with those ``declared`` that are not there under the first letters that are free.

    :raises StoreError: one would not be read back, or there is no letter left
    """
    path = os.path.join(base, NAMESPACES)
    result = dict(namespaces)
    for namespace in declared:
        if fault := _fault(namespace):
            raise StoreError(path, f"the namespace {shown(namespace)} cannot be declared: {fault}")
        if namespace in result.values():
            continue
        free = next((letter for letter in ascii_lowercase if letter not in result), None)
        if free is None:
            raise StoreError(path, f"no letter is left for the namespace {shown(namespace)}: there are 26 at most")
        result[free] = namespace
    return result


def namespaces_problems(namespaces: Mapping[str, str]) -> list[Problem]:
    """Return what is to be said of namespaces that can be read."""
    found = []
    items = sorted(namespaces.items())
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
