"""The guard of lists: bytes that are no part of an identifier, wherever they occur in a list.

Carriage returns, byte-order marks and UTF-16 would become part of identifiers and lead to wrong paths. The first bytes
of a list show most of them before anything is written (:mod:`pressmark.tabular.detection`). The guard checks all
blocks, because joined files differ in the middle.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

__all__ = ["BOM", "CRLF", "UTF16", "Crlf", "FormatError", "Guard", "first_return", "is_utf16"]

Crlf = Literal["strip", "keep"]
CRLF = ("strip", "keep")
BOM = b"\xef\xbb\xbf"

UTF16 = "UTF-16; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"
_KEEP = "use --crlf keep to keep it in identifiers"
_STRIP = f"use --crlf strip to remove it, {_KEEP.removeprefix('use ')}"

# Four letters or digits of UTF-16; text with single NUL bytes does not look like this.
_UTF16_RUN = re.compile(rb"(?:[0-9A-Za-z]\0){4}|(?:\0[0-9A-Za-z]){4}")
# A carriage return that is not part of a line end; the byte after the last one of a block is not known yet.
_BARE = re.compile(rb"\r[^\r\n]")
_TWO_BARE = re.compile(rb"\r[^\r\n][^\n]*?\r[^\r\n]")


class FormatError(ValueError):
    """A file that is not a list; the message does not name the file."""


def is_utf16(head: bytes, *, without_line_end: bool) -> bool:
    """Return whether the first bytes of a file are UTF-16 without a byte-order mark.

    :param without_line_end: whether letters alone count; a list of one-letter items that end with NUL looks the same
    """
    if b"\0" not in head:
        return False
    even = head[: len(head) & ~1]
    for codec, letters in (("utf-16-le", head[::2]), ("utf-16-be", head[1::2])):
        if letters.count(b"\0") * 8 > head.count(b"\0"):
            continue
        text = even.decode(codec, "replace")
        # Single NUL bytes among other text leave few letters.
        if not re.search("[0-9A-Za-z]", text) or sum(map(str.isascii, text)) * 4 < len(text):
            continue
        if "\n" in text or "\r" in text or (without_line_end and len(text) > 1 and text.isascii() and even == head):
            return True
    return False


def first_return(text: bytes, *, open_end: bool = False) -> int:
    """Return the index of the first carriage return that was meant as the end of a line; -1 without one.

    A single one inside a line is data. Two in a line are line ends, and so is one in a last line without line feed.

    :param text: whole lines
    :param open_end: the last line has no line feed
    """
    if b"\r" not in text or not _BARE.search(text):
        return -1
    found = _TWO_BARE.search(text) or (_BARE.search(text, text.rfind(b"\n") + 1) if open_end else None)
    return found.start() if found else -1


class Guard:
    """Checks the blocks of a list, in order; see the module.

    :param format: ``lines``, ``csv``, ``tsv`` or ``jsonl``
    :param delimiter: the end of a line
    :param crlf: for lines: whether carriage returns before line feeds and byte-order marks at the start of lines were
        removed (``strip``)
    :param start: the offset of the first block in the file
    :ivar refuse: creates the exception from a message that does not name the file
    """

    def __init__(
        self,
        format: str,
        delimiter: bytes = b"\n",
        crlf: Crlf | None = None,
        refuse: Callable[[str], Exception] = FormatError,
        start: int = 0,
    ) -> None:
        self.refuse = refuse
        self._feeds = format == "lines" and delimiter == b"\n"
        self._returns = self._feeds and crlf is None
        self._table = format != "lines"
        self._delimiter = delimiter
        self._advice = _STRIP if crlf is None else _KEEP
        self._read = start
        self._last = delimiter  # the last bytes, which may begin a byte-order mark
        self._line = b""  # the carriage returns of the last line

    def check(self, data: bytes) -> None:
        """Check a block; an empty one is the end of the list."""
        if (b"\r" in data or self._line) and self._feeds:
            self._check_returns(data)
        if b"\0" in data:
            self._check_nul(data)
        if b"\xef" in data or b"\xef" in self._last:
            self._check_mark(data)
        self._last = (self._last + data)[-3:] if len(data) < 3 else data[-3:]
        self._read += len(data)

    def _check_returns(self, data: bytes) -> None:
        text = self._line + data
        found = text.find(b"\r\n") if self._returns else -1
        if found >= 0 or (self._returns and not data and text.endswith(b"\r")):
            raise self.refuse(f"carriage return at the end of a line, {self._near(found)}; {self._advice}")
        found = first_return(text, open_end=not data)
        if found >= 0:
            what = f"lines end with carriage returns only, {self._near(found)}"
            raise self.refuse(f"{what}; convert them to line feeds, or use --crlf keep to keep them in identifiers")
        last = text[text.rfind(b"\n") + 1 :]
        self._line = (b"\r." if _BARE.search(last) else b"") + last[-1:] * last.endswith(b"\r")

    def _check_nul(self, data: bytes) -> None:
        if self._feeds:
            found = f"unexpected NUL, {self._near(data.index(0))}"
            raise self.refuse(f"{found}; use -0 if NUL ends all identifiers, --crlf keep if they contain it")
        if self._table and (run := _UTF16_RUN.search(data)):
            raise self.refuse(f"UTF-16 inside the file, {self._near(run.start())}; convert each part to UTF-8")

    def _check_mark(self, data: bytes) -> None:
        # A mark inside a line of a list was the start of a file, joined to one without a last line end. In tables it
        # may be part of a text.
        found = (self._last + data).find(BOM if self._feeds else self._delimiter + BOM)
        if found >= 0:
            what = f"byte-order mark, {self._near(found)}, as in joined files"
            raise self.refuse(f"{what}; {'remove it' if self._table else self._advice}")

    def _near(self, index: int) -> str:
        return f"near byte {self._read + max(0, index):,}"
