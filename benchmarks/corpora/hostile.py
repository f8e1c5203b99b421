"""Identifiers that try to break a layout. Some occur in real collections.

None contains a NUL, so that NUL-delimited lines carry all of them.
"""

from __future__ import annotations

from benchmarks.corpora.draw import Draw

__all__ = ["hostile"]

_FIXED = (
    "", "/", "//", ".", "..", "...", "a/../b", "../../etc/passwd", "/absolute", "a//b", "a/", "./a", "~", "~file",
    "-file", " file", "file ", "-", "^", "^2", "^2a", "%", "%2f", "%2e%2e", "=u003D", "=u123a", "=u13a-",
    "fallback/0/e/0eafabb3", "a:", ":a", ":", "a.", ".a", "ns:", "pairtree", "pairtree_root", "extensions",
    "0=ocfl_1.1", "ocfl_layout.json", "CON", "nul.txt", "COM1", "a\\b", "\\\\server\\share", "C:\\", "a\nb", "a\r\n",
    "\t", "\x01", "\x1f", "\x7f", "a\x85b", "\xa0", "\u2028", "\u200b", "\u3000", "\ufeff", "\ufffd", "\u0130stanbul",
    "e\u0301", "\xe9", "\U0001f350", "\U0010ffff", "<script>", "a*b?c|d", "\"quoted\"", "$(id)", "`id`", "&amp;",
    "a;b", "#", "@", "{}", "[]", "'",
)  # fmt: skip
_NOT_UTF8 = tuple(
    encoded.decode("utf-8", "surrogateescape")
    for encoded in (b"\xff", b"caf\xe9", b"\xc0\xaf", b"\xed\xa0\x80", b"a\xf8\x88b")
)
_PIECES = (
    "/", "//", ".", "..", ":", "%", "^", "=", "~", "-", " ", "\\", "\t", "\n", "\x1b", "\x7f", "\xa0", "\u2010",
    "\u202f", "\u0301", "\xdf", "\u0130", "\ud55c", "\U0001f4da", "a", "B", "0", "=u0041", "^5e", "%41",
)  # fmt: skip


def hostile(draw: Draw) -> str:
    """Draw a hostile identifier: a fixed one, bytes that are not UTF-8, a very long one, or a random mix."""
    kind = draw.random()
    if kind < 0.5:
        return draw.pick(_FIXED)
    if kind < 0.55:
        return draw.pick(_NOT_UTF8)
    if kind < 0.6:
        return draw.pick(("x", "/", "é", "a/", "%", ".")) * draw.between(50, 3000)
    return "".join([draw.pick(_PIECES) for _ in range(draw.between(1, 40))])
