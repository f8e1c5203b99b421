"""Read the lines of manifests and tag manifests (sections 2.1.3, 2.2.1).

A violation of the specification is a :class:`Problem`. The entry is still returned if it can be parsed, so one run
reports all problems. Files listed in a manifest are not opened here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import BinaryIO, NamedTuple

from pressmark.bagit.encodings import UTF8, Charset, Line, LineReader, find_charset, line_location, undecodable
from pressmark.bagit.manifest_format import official_name
from pressmark.bagit.paths import BELOW_PAYLOAD, PAYLOAD, canonical, decode_path, has_raw_percent, why_unsafe
from pressmark.bagit.problems import applies, judge_violation, problem
from pressmark.errors import quoted
from pressmark.fixity.algorithms import ALGORITHMS
from pressmark.reports import SEVERITIES, Problem

__all__ = ["PATH_LIMIT", "ManifestEntry", "ManifestForm", "digest_digits", "read_manifest", "unescaped"]

_TAG_MANIFEST = re.compile(rb"tagmanifest-[^/]*\.txt")

# Greedy: a name cannot start with a space or tab.
_LINE = re.compile(rb"(\\?)([^ \t]+)([ \t]+)(.*)", re.DOTALL)
_HEX = re.compile(rb"[0-9A-Fa-f]+")
_ESCAPE = re.compile(rb"\\([\\nr])")
_UNESCAPED = {b"\\": b"\\", b"n": b"\n", b"r": b"\r"}

# Lines of other programs, and what is wrong with them.
_OTHER_FORMS = (
    (
        re.compile(rb"\\?[A-Za-z0-9/-]+ ?\(.*\) ?= ?[0-9A-Fa-f]+", re.DOTALL),
        "format of BSD tools (md5sum --tag), not of BagIt",
    ),
    (
        re.compile(rb"(?:%%%%|##)(?: .*)?|[0-9]+(?:,[0-9A-Fa-f]{32,})+,.+", re.DOTALL),
        "format of hashdeep, not of BagIt",
    ),
    (re.compile(rb".*[^ \t][ \t]+[0-9A-Fa-f]{32,128}", re.DOTALL), "path before the checksum, not after it"),
)
# A line of a program on Windows: the separators of the path are backslashes.
_OF_WINDOWS = re.compile(rb"[0-9A-Fa-f]+[ \t]+\*?(?:\.\\)?data\\.+", re.DOTALL)
# The problems of such lines, which result from their form.
_OF_OTHER_FORMS = frozenset(("line-malformed", "checksum-malformed", "path-outside-payload", "path-unsafe"))

# Longer paths are cut in problems, to bound memory.
PATH_LIMIT = 4096


@lru_cache
def digest_digits(algorithm: str) -> int:
    """Return the number of hex digits of a checksum of the algorithm; 0 if it is unknown."""
    official = official_name(algorithm)
    return 0 if official is None else 2 * ALGORITHMS[official].size


class ManifestEntry(NamedTuple):
    """A line of a manifest that lists a file.

    :ivar path: relative to the base directory of the bag, decoded and normalized
    :ivar digest: the checksum in lower-case hex; empty if it is malformed, which is reported: the file is listed but
        cannot be verified
    :ivar line: its number, counted from 1
    """

    path: bytes
    digest: str
    line: int


def unescaped(text: bytes) -> bytes:
    """Undo the escapes of md5sum in a line that starts with a backslash (6.1.3)."""
    return _ESCAPE.sub(lambda found: _UNESCAPED[found[1]], text)


@dataclass(frozen=True)
class ManifestForm:
    """The form of the lines of a manifest.

    :ivar name: path of the manifest, for problems
    :ivar algorithm: official name of its algorithm; if unknown, as the file name spells it
    :ivar charset: character set of its text
    :ivar version: BagIt version of the bag
    :ivar tag: whether it is a tag manifest
    :ivar lenient: report blank lines as warnings
    """

    name: bytes
    algorithm: str
    charset: Charset = UTF8
    version: tuple[int, int] = (1, 0)
    tag: bool = False
    lenient: bool = False

    @cached_property
    def digits(self) -> int:
        """Number of hex digits of a checksum; 0 if unknown."""
        return digest_digits(self.algorithm)

    def read(self, line: Line) -> tuple[ManifestEntry | None, bytes, list[Problem]]:
        """Return the entry of a line, its path as written (in UTF-8, not decoded), and its problems."""
        entry, text, problems = self._read(line)
        if any(found.kind in _OF_OTHER_FORMS for found in problems):
            data = line.data if self.charset.is_utf8 else self.charset.to_utf8(line.data)
            if self.charset.is_utf8 and _OF_WINDOWS.fullmatch(data):
                entry, text, problems = self._read(line._replace(data=data.replace(b"\\", b"/")))
                written = f"backslashes as separators: {quoted(data.split(maxsplit=1)[1])}"
                return entry, text, [self._of_path("path-backslashes", text, line, written), *problems]
            reason = next((reason for form, reason in _OTHER_FORMS if form.fullmatch(data)), None)
            if reason is not None:
                message = f"{reason}; convert the lines to the form 'checksum  path': {quoted(data)}"
                return None, text, [self._problem("line-malformed", line, message)]
        return entry, text, problems

    def _read(self, line: Line) -> tuple[ManifestEntry | None, bytes, list[Problem]]:
        problems: list[Problem] = []
        try:
            data = self.charset.to_utf8(line.data)
            if self.charset.is_utf8 and not data.isascii():
                data.decode("utf-8")
        except UnicodeDecodeError as error:
            problems.append(undecodable(line, self.charset, self.name, error)._replace(algorithm=self.algorithm))
            if not self.charset.is_utf8:
                return None, b"", problems
            # A file name may consist of these bytes.
            data = line.data
        found = _LINE.fullmatch(data)
        if not data.strip(b" \t"):
            severity = SEVERITIES[1] if self.lenient else None
            problems.append(self._problem("line-blank", line, "a blank line", severity))
            return None, b"", problems
        if found is None or not found[4]:
            problems.append(
                self._problem("line-malformed", line, f"expected a checksum, spaces and a path: {quoted(data)}")
            )
            return None, b"", problems
        backslash, checksum, blanks, text = found.groups()
        if backslash:
            problems.append(self._problem("md5sum-mark", line, "backslash before the checksum (md5sum format)"))
        if text.startswith(b"*") and (blanks == b" " or not self.tag):
            problems.append(self._problem("md5sum-mark", line, "asterisk before the path (md5sum format)"))
            text = text[1:]
        path = self._path(line, text, bool(backslash), problems)
        if path is None:
            return None, text, problems
        return ManifestEntry(path, self._digest(line, checksum, path, problems), line.number), text, problems

    def _problem(self, kind: str, line: Line, message: str, severity: str | None = None) -> Problem:
        return problem(kind, self.name, f"line {line.number}: {message}", severity=severity, algorithm=self.algorithm)

    def _of_path(self, kind: str, path: bytes, line: Line, reason: str = "") -> Problem:
        message = f"{line_location(self.name, line.number)}{reason and ': '}{reason}"
        return problem(kind, path[:PATH_LIMIT], message, algorithm=self.algorithm)

    def _digest(self, line: Line, checksum: bytes, path: bytes, problems: list[Problem]) -> str:
        digits = self.digits
        if _HEX.fullmatch(checksum) and (len(checksum) == digits or not digits):
            return checksum.decode("ascii").lower()
        wanted = f"{digits} hex digits" if digits else "hex digits"
        fault = self._of_path(
            "checksum-malformed", path, line, f"malformed checksum {quoted(checksum)}; expected {wanted}"
        )
        problems.append(fault)
        return ""

    def _path(self, line: Line, text: bytes, escaped: bool, problems: list[Problem]) -> bytes | None:
        """Return the decoded path, if it is safe and of the right kind."""
        if has_raw_percent(text):
            problems += judge_violation("percent-encoded", self.version, self._of_path("percent-raw", text, line))
        path = decode_path(unescaped(text) if escaped else text, self.version)
        fault = why_unsafe(path) or why_unsafe(canonical(path)[0])
        if fault is not None:
            problems.append(self._of_path("path-unsafe", path, line, fault))
            return None
        path, changed = canonical(path)
        if changed:
            problems.append(self._of_path("path-not-canonical", path, line, f"written {quoted(text)}"))
        if path.endswith(b"/") or path == PAYLOAD:
            problems.append(self._of_path("path-directory", path, line))
            return None
        kind = self._fault_of_tag_file(path) if self.tag else _fault_of_payload_file(path)
        if kind is not None:
            problems.append(self._of_path(kind, path, line))
            return None
        return path

    def _fault_of_tag_file(self, path: bytes) -> str | None:
        if path.startswith(BELOW_PAYLOAD):
            return "tag-manifest-payload"
        listed = _TAG_MANIFEST.fullmatch(path) and applies("tag-manifests-unlisted", self.version)
        return "tag-manifest-itself" if listed else None


def _fault_of_payload_file(path: bytes) -> str | None:
    return None if path.startswith(BELOW_PAYLOAD) else "path-outside-payload"


def read_manifest(
    file: BinaryIO,
    name: bytes,
    algorithm: str,
    encoding: str = UTF8.name,
    version: tuple[int, int] = (1, 0),
    *,
    tag: bool = False,
    lenient: bool = False,
) -> Iterator[ManifestEntry | Problem]:
    """Read a manifest from a binary stream: yield its entries, each after its problems.

    Memory is bounded. :class:`pressmark.bagit.manifest_index.Listing` finds repeated entries.

    :param name: path of the manifest, for problems
    :param algorithm: official name; if unknown, as the file name spells it
    :param encoding: the character set that bagit.txt names
    :param tag: whether it is a tag manifest
    :param lenient: report blank lines as warnings
    :raises ValueError: the encoding is unknown
    """
    charset = find_charset(encoding)
    if charset is None:
        raise ValueError(f"encoding={encoding!r}: unknown")
    return _entries(LineReader(file, charset, name), name, algorithm, version, tag, lenient)


def _entries(
    reader: LineReader, name: bytes, algorithm: str, version: tuple[int, int], tag: bool, lenient: bool
) -> Iterator[ManifestEntry | Problem]:
    # The reader has detected the byte order.
    form = ManifestForm(name, algorithm, reader.charset, version, tag, lenient)
    while (found := reader.line()) is not None:
        if isinstance(found, Line):
            entry, _, problems = form.read(found)
            yield from problems
            if entry is not None:
                yield entry
        else:
            yield found
