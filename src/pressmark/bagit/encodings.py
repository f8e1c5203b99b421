"""Text tag files (section 2.3): character sets, byte-order marks, and lines of any length.

Lines end with LF, CR or CRLF **after** decoding: in UTF-16 these are units of two bytes. Nothing else ends a line, so
``str.splitlines`` is not used. Files are read in blocks, and lines longer than :data:`LINE_LIMIT` are skipped, so
memory is bounded.
"""

from __future__ import annotations

import codecs
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import BinaryIO, NamedTuple

from pressmark.bagit.problems import problem
from pressmark.errors import quoted
from pressmark.reports import Problem

__all__ = ["LINE_LIMIT", "UTF8", "Charset", "Line", "LineReader", "find_charset", "line_location", "undecodable"]

# 256 times the maximum length of a Unix path.
LINE_LIMIT = 1 << 20  # 1 MiB
# Bytes to read at a time: few at first, since most tag files are small.
FIRST_BLOCK = 8 << 10  # 8 KiB
BLOCK = 256 << 10  # 256 KiB


# --- character sets -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Charset:
    """A character set, with a search for line ends that does not decode.

    :ivar name: as the bag declaration spells it
    :ivar codec: the name of the Python codec
    :ivar unit: bytes per unit: 1, 2 or 4
    :ivar marks: byte-order marks that a file may start with, and the codec of each
    :ivar needs_mark: whether the byte order is unknown without a mark
    """

    name: str
    codec: str
    unit: int = 1
    marks: tuple[tuple[bytes, str], ...] = ()
    needs_mark: bool = False
    _ends: re.Pattern[bytes] = field(init=False, repr=False, compare=False)
    _returns: bytes = field(init=False, repr=False, compare=False)
    _feeds: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Only EBCDIC has other line ends.
        feeds, returns = "\n".encode(self.codec), "\r".encode(self.codec)
        object.__setattr__(self, "_feeds", feeds)
        object.__setattr__(self, "_returns", returns)
        object.__setattr__(self, "_ends", re.compile(re.escape(returns) + b"|" + re.escape(feeds)))

    @property
    def line_ends(self) -> tuple[bytes, bytes]:
        """A line feed and a carriage return in this character set."""
        return self._feeds, self._returns

    @property
    def is_utf8(self) -> bool:
        """Whether it is UTF-8, which needs only a check, no decoding."""
        return self.codec == "utf-8"

    def decode(self, data: bytes) -> str:
        """Decode ``data``, which has no byte-order mark.

        :raises UnicodeDecodeError: ``data`` is invalid in this character set
        """
        return data.decode(self.codec)

    def encode(self, text: str) -> bytes:
        """Encode ``text``, without a byte-order mark.

        :raises UnicodeEncodeError: the character set lacks a character of ``text``
        """
        return text.encode(self.codec)

    def to_utf8(self, line: bytes) -> bytes:
        """Return a line in UTF-8. A line in UTF-8 is returned unchanged, even if invalid.

        :raises UnicodeDecodeError: the line is invalid, or contains an encoded line end, as UTF-7 allows
        """
        if self.is_utf8:
            return line
        text = self.decode(line)
        if "\n" in text or "\r" in text:
            raise UnicodeDecodeError(self.codec, line, 0, len(line), "a line break inside a line")
        try:
            return text.encode("utf-8")
        except UnicodeEncodeError as error:
            # UTF-7 can encode unpaired surrogates.
            raise UnicodeDecodeError(self.codec, line, 0, len(line), error.reason) from None

    def find_end(self, block: bytes, start: int, whole: bool) -> tuple[int, int] | None:
        """Return the end of the line at ``start``, and the start of the next line.

        :param whole: the block ends the file, so that a CR at its end is not the start of a CRLF
        :returns: :data:`None` if the block does not contain the end of the line
        """
        position = start
        while (found := self._ends.search(block, position)) is not None:
            position = found.start()
            if (position - start) % self.unit:
                position += 1
                continue
            after = position + self.unit
            if found[0] == self._returns:
                if not whole and after + self.unit > len(block):
                    return None
                if block.startswith(self._feeds, after):
                    after += self.unit
            return position, after
        return None


UTF8 = Charset("UTF-8", "utf-8", 1, ((codecs.BOM_UTF8, "utf-8"),))

_UTF16 = ((codecs.BOM_UTF16_BE, "utf-16-be"), (codecs.BOM_UTF16_LE, "utf-16-le"))
_UTF32 = ((codecs.BOM_UTF32_BE, "utf-32-be"), (codecs.BOM_UTF32_LE, "utf-32-le"))

# Python's names of registered character sets. Its other codecs are not character sets (rot13, idna, unicode_escape),
# or depend on the Windows system (mbcs, oem).
_CHARSETS = re.compile(
    r"ascii|utf-(?:7|8|16|16-[bl]e|32|32-[bl]e)|iso8859-[0-9]+|cp[0-9]+|koi8-[ru]|mac-roman|tis-620|kz1048|ptcp154"
    r"|big5|big5hkscs|euc-(?:jp|kr)|gb2312|gbk|gb18030|hz|iso2022-(?:jp|jp-2|kr)|shift-jis"
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:()+-]{0,39}")


@lru_cache
def find_charset(name: str) -> Charset | None:
    """Return the character set registered under ``name``; :data:`None` if it is unknown."""
    if not _NAME.fullmatch(name):
        return None
    try:
        found = codecs.lookup(name)
    except LookupError:
        return None
    codec = found.name.replace("_", "-")
    if not _CHARSETS.fullmatch(codec):
        return None
    if codec == "utf-8":
        return UTF8
    if codec in ("utf-16", "utf-32"):
        wide = codec == "utf-32"
        return Charset(name, f"{codec}-be", 4 if wide else 2, _UTF32 if wide else _UTF16, needs_mark=True)
    if codec.startswith(("utf-16", "utf-32")):
        wide = codec.startswith("utf-32")
        marks = tuple((mark, other) for mark, other in (_UTF32 if wide else _UTF16) if other == codec)
        return Charset(name, codec, 4 if wide else 2, marks)
    return Charset(name, codec)


# --- lines --------------------------------------------------------------------------------------------------------


class Line(NamedTuple):
    """A line of a tag file.

    :ivar number: number of the line, from 1
    :ivar offset: offset of its first byte in the file
    :ivar data: its bytes, without the line end
    :ivar end: the bytes of the line end; empty at the end of the file
    """

    number: int
    offset: int
    data: bytes
    end: bytes = b""


class LineReader:
    """Reads a tag file in blocks, and returns its lines and problems.

    A caller that processes many lines at once reads them from :attr:`block`, reports its progress to :meth:`advance`,
    and calls :meth:`line` for the next line.

    :param file: a binary file, at its start
    :param charset: character set of the text
    :param name: path of the file, for problems
    :ivar charset: the character set, with its byte order once the file has been read
    :ivar block: bytes that were read but not consumed
    :ivar position: position of the next line in the block
    :ivar base: offset of the block in the file, in bytes
    :ivar number: number of lines before the position
    :ivar final: whether the block ends the file
    """

    def __init__(self, file: BinaryIO, charset: Charset, name: bytes) -> None:
        self.charset = charset
        self.block = b""
        self.position = 0
        self.base = 0
        self.number = 0
        self.final = False
        self._file = file
        self._read_size = FIRST_BLOCK
        self._name = name
        self._items: deque[Line | Problem] = deque()
        self._begin()

    def _begin(self) -> None:
        while len(self.block) < 4 and not self.final:
            self.fill()
        for mark, codec in self.charset.marks:
            if self.block.startswith(mark):
                self.position = len(mark)
                self._items.extend(self._marked(codec))
                return
        if self.charset.needs_mark and self.block:
            self._items.append(
                problem(
                    "bom-missing",
                    self._name,
                    f"missing byte-order mark for {self.charset.name}; add it or declare the LE or BE variant",
                )
            )
            # Tag files start with ASCII, so the position of the zeros in the first unit shows the byte order.
            if self.block[0] != 0 and not any(self.block[1 : self.charset.unit]):
                self._in_order(self.charset.codec.replace("-be", "-le"))

    def _marked(self, codec: str) -> Iterator[Problem]:
        if self.charset.needs_mark:
            self._in_order(codec)
        else:
            yield problem("bom", self._name, f"byte-order mark not allowed for {self.charset.name}")

    def _in_order(self, codec: str) -> None:
        self.charset = Charset(self.charset.name, codec, self.charset.unit)

    def fill(self) -> None:
        """Drop the consumed bytes and read the next block; at the end of the file, set :attr:`final`."""
        data = self._file.read(self._read_size)
        if len(data) == self._read_size:
            self._read_size = BLOCK
        self.base += self.position
        self.block = self.block[self.position :] + data
        self.position = 0
        self.final = not data

    def advance(self, position: int, lines: int) -> None:
        """Record that the caller consumed ``lines`` lines up to ``position``."""
        self.position = position
        self.number += lines

    @property
    def pending(self) -> bool:
        """Whether :meth:`line` can return without searching for a line end."""
        return bool(self._items)

    def line(self) -> Line | Problem | None:
        """Return the next line or problem; :data:`None` at the end."""
        return self._items.popleft() if self._items else self._read()

    def _read(self) -> Line | Problem | None:
        while (ends := self.charset.find_end(self.block, self.position, self.final)) is None:
            if self.final:
                if self.position == len(self.block):
                    return None
                ends = len(self.block), len(self.block)
                self._items.append(problem("line-unterminated", self._name))
                break
            if len(self.block) - self.position > LINE_LIMIT:
                return self._skip()
            self.fill()
        position, (end, self.position) = self.position, ends
        self.number += 1
        if end - position > LINE_LIMIT:
            return self._too_long(end - position)
        return Line(self.number, self.base + position, self.block[position:end], self.block[end : self.position])

    def _skip(self) -> Problem:
        """Skip a line that is too long, without keeping it in memory."""
        self.number += 1
        begun = self.base + self.position
        while (ends := self.charset.find_end(self.block, self.position, self.final)) is None:
            if self.final:
                ends = (len(self.block), len(self.block))
                self._items.append(problem("line-unterminated", self._name))
                break
            # Keep the last two units, which can be half of a line end. Drop whole units to stay aligned.
            remaining = len(self.block) - self.position
            self.position += max(0, remaining - remaining % self.charset.unit - 2 * self.charset.unit)
            self.fill()
        self.position = ends[1]
        return self._too_long(self.base + ends[0] - begun)

    def _too_long(self, length: int) -> Problem:
        reason = f"line {self.number} is {length} bytes long, more than {LINE_LIMIT}; not read"
        return problem("line-too-long", self._name, reason)


def line_location(name: bytes, line: int) -> str:
    """Return the location of a line for messages: the file name and the line number."""
    text = name.decode("utf-8", "replace")
    return f"{text if text.isprintable() else quoted(name)}, line {line}"


def undecodable(line: Line, charset: Charset, name: bytes, error: UnicodeDecodeError) -> Problem:
    """Return the problem of a line that is invalid in the character set."""
    found = quoted(line.data[error.start : error.start + 8])
    return problem("undecodable", name, f"line {line.number} is not {charset.name}: {found}")
