"""Text tag files (section 2.3): character sets, byte-order marks, and lines, whatever their length and their ends.

Lines end with LF, CR or CRLF **after** decoding: in UTF-16 these are units of two bytes. Nothing else ends a line
(never ``str.splitlines``). Files are read in blocks, and lines longer than :data:`LINE_LIMIT` are skipped, so memory
is bounded.
"""

from __future__ import annotations

import codecs
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple

from pressmark.bagit.problems import problem
from pressmark.errors import quoted
from pressmark.reports import Problem

__all__ = ["LINE_LIMIT", "UTF8", "Charset", "Line", "LineReader", "find_charset", "line_location", "undecodable"]

# No path of any system comes near it: 256 times what a Unix path may hold.
LINE_LIMIT = 1 << 20  # 1 MiB
# How much is read at a time.
BLOCK = 256 << 10  # 256 KiB


# --- character sets -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Charset:
    """A character set, and how its lines are found without decoding them.

    :ivar name: as the bag declaration spells it
    :ivar codec: Python's name for it
    :ivar unit: bytes of its smallest unit: 1, 2 or 4
    :ivar marks: byte-order marks that a file may begin with, and the codec that each one means
    :ivar needs_mark: whether a file without one cannot be told big-endian from little-endian
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
        # EBCDIC has its line ends elsewhere; nobody else has, but asking costs nothing.
        feeds, returns = "\n".encode(self.codec), "\r".encode(self.codec)
        object.__setattr__(self, "_feeds", feeds)
        object.__setattr__(self, "_returns", returns)
        object.__setattr__(self, "_ends", re.compile(re.escape(returns) + b"|" + re.escape(feeds)))

    @property
    def is_utf8(self) -> bool:
        """Whether it is UTF-8: then text needs no decoding, only a check."""
        return self.codec == "utf-8"

    def decode(self, data: bytes) -> str:
        """Return the text of ``data``, without a byte-order mark.

        :raises UnicodeDecodeError: it is no text of this character set
        """
        return data.decode(self.codec)

    def encode(self, text: str) -> bytes:
        """Return ``text`` in this character set, without a byte-order mark.

        :raises UnicodeEncodeError: it holds a character that the set lacks
        """
        return text.encode(self.codec)

    def to_utf8(self, line: bytes) -> bytes:
        """Return a line in UTF-8; in UTF-8 the line as it is, valid or not.

        :raises UnicodeDecodeError: it is no text of this character set, or holds an encoded line end (UTF-7 can)
        """
        if self.is_utf8:
            return line
        text = self.decode(line)
        if "\n" in text or "\r" in text:
            raise UnicodeDecodeError(self.codec, line, 0, len(line), "a line end inside of a line")
        try:
            return text.encode("utf-8")
        except UnicodeEncodeError as error:
            # UTF-7 lets lone surrogates through.
            raise UnicodeDecodeError(self.codec, line, 0, len(line), error.reason) from None

    def find_end(self, block: bytes, start: int, whole: bool) -> tuple[int, int] | None:
        """Return where the line that begins at ``start`` ends, and where the next one begins.

        :param whole: nothing follows the block, so that a CR at its end is no half CRLF
        :returns: :data:`None` where the line's end is not in the block
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

# Python's names of the character sets that are registered. What else it calls an encoding is none (rot13, idna,
# unicode_escape), or differs from one Windows to the next (mbcs, oem).
_CHARSETS = re.compile(
    r"ascii|utf-(?:7|8|16|16-[bl]e|32|32-[bl]e)|iso8859-[0-9]+|cp[0-9]+|koi8-[ru]|mac-roman|tis-620|kz1048|ptcp154"
    r"|big5|big5hkscs|euc-(?:jp|kr)|gb2312|gbk|gb18030|hz|iso2022-(?:jp|jp-2|kr)|shift-jis"
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:()+-]{0,39}")


def find_charset(name: str) -> Charset | None:
    """Return the character set that is registered under ``name``; :data:`None` when none is known here."""
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
    """One line of a tag file.

    :ivar number: counted from 1
    :ivar offset: of its first byte in the file
    :ivar data: its bytes, without its end
    """

    number: int
    offset: int
    data: bytes


class LineReader:
    """Reads a tag file in blocks, and gives its lines and what is wrong with them.

    Whoever can take in many lines of a block at once looks at :attr:`block`, tells :meth:`advance` how far that went,
    and asks :meth:`line` for the next.

    :param file: binary, at its beginning
    :param charset: of the text
    :param name: the file's path in problems
    :ivar charset: the character set, its byte order known once the file has begun
    :ivar block: what has been read and not been given back
    :ivar position: in the block, where the next line begins
    :ivar base: where the block begins in the file, in bytes
    :ivar number: how many lines came before
    :ivar final: whether the file ends with the block
    """

    def __init__(self, file: BinaryIO, charset: Charset, name: bytes) -> None:
        self.charset = charset
        self.block = b""
        self.position = 0
        self.base = 0
        self.number = 0
        self.final = False
        self._file = file
        self._name = name
        self._found: deque[Line | Problem] = deque()
        self._begin()

    def _begin(self) -> None:
        while len(self.block) < 4 and not self.final:
            self.fill()
        for mark, codec in self.charset.marks:
            if self.block.startswith(mark):
                self.position = len(mark)
                self._found.extend(self._marked(codec))
                return
        if self.charset.needs_mark and self.block:
            self._found.append(
                problem(
                    "bom-missing", self._name, f"no byte-order mark: {self.charset.name} needs one; name its LE or BE"
                )
            )
            # A line of a tag file begins with ASCII: its first unit has the zeros where the great half is.
            if self.block[0] != 0 and not any(self.block[1 : self.charset.unit]):
                self._in_order(self.charset.codec.replace("-be", "-le"))

    def _marked(self, codec: str) -> Iterator[Problem]:
        if self.charset.needs_mark:
            self._in_order(codec)
        else:
            yield problem("bom", self._name, f"begins with a byte-order mark, which {self.charset.name} must not have")

    def _in_order(self, codec: str) -> None:
        self.charset = Charset(self.charset.name, codec, self.charset.unit)

    def fill(self) -> None:
        """Read on: drop what lies before the position, and add a block; the last one makes :attr:`final` true."""
        data = self._file.read(BLOCK)
        self.base += self.position
        self.block = self.block[self.position :] + data
        self.position = 0
        self.final = not data

    def advance(self, position: int, lines: int) -> None:
        """Say that so many lines up to the position were taken in by someone else."""
        self.position = position
        self.number += lines

    @property
    def pending(self) -> bool:
        """Whether :meth:`line` has something to give without looking for a line's end."""
        return bool(self._found)

    def line(self) -> Line | Problem | None:
        """Return the next line, or something that is wrong; :data:`None` at the end."""
        if not self._found:
            self._read()
        return self._found.popleft() if self._found else None

    def _read(self) -> None:
        while (ends := self.charset.find_end(self.block, self.position, self.final)) is None:
            if self.final:
                if self.position < len(self.block):
                    self._give(len(self.block))
                    self._found.append(problem("line-unterminated", self._name))
                    self.position = len(self.block)
                return
            if len(self.block) - self.position > LINE_LIMIT:
                self._skip()
                return
            self.fill()
        self._give(ends[0])
        self.position = ends[1]

    def _give(self, end: int) -> None:
        self.number += 1
        if end - self.position > LINE_LIMIT:
            self._too_long(end - self.position)
        else:
            self._found.append(Line(self.number, self.base + self.position, self.block[self.position : end]))

    def _skip(self) -> None:
        """Skip a line that is too long, keeping none of it."""
        self.number += 1
        begun = self.base + self.position
        while (ends := self.charset.find_end(self.block, self.position, self.final)) is None:
            if self.final:
                ends = (len(self.block), len(self.block))
                self._found.append(problem("line-unterminated", self._name))
                break
            # All but the last two units, which may be half of a line's end. Whole units are dropped, to stay aligned.
            held = len(self.block) - self.position
            self.position += max(0, held - held % self.charset.unit - 2 * self.charset.unit)
            self.fill()
        self._too_long(self.base + ends[0] - begun)
        self.position = ends[1]

    def _too_long(self, length: int) -> None:
        self._found.appendleft(
            problem(
                "line-too-long",
                self._name,
                f"line {self.number} has {length} bytes, more than {LINE_LIMIT}; it was not read",
            )
        )


def line_location(name: bytes, line: int) -> str:
    """Return where a line is, in words: the file's name on one line, and the line's number."""
    text = name.decode("utf-8", "replace")
    return f"{text if text.isprintable() else quoted(name)}, line {line}"


def undecodable(line: Line, charset: Charset, name: bytes, error: UnicodeDecodeError) -> Problem:
    """Return the problem that a line is not text of the character set."""
    found = quoted(line.data[error.start : error.start + 8])
    return problem("undecodable", name, f"line {line.number} is not {charset.name}: {found}")
