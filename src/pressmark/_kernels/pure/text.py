"""UTF-8, hexadecimal escapes, and the check of a path."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pressmark._kernels.pure.column import KernelError
from pressmark._kernels.tables import ErrorCode

HEX_PAIR = re.compile(rb"[0-9A-Fa-f]{2}")
BYTES = [bytes([byte]) for byte in range(256)]


def decode_utf8(item: bytes) -> str:
    """Decode ``item`` as UTF-8, or raise :class:`KernelError`."""
    try:
        return item.decode("utf-8")
    except UnicodeDecodeError as error:
        raise KernelError(ErrorCode.NOT_UTF8, error.start) from None


def unescape(text: bytes, mark: bytes, back: bytes | None = None, spelled: Sequence[bytes] = BYTES) -> bytes:
    """Decode each escape in ``text``: ``mark`` and two hex digits. Raise :class:`KernelError` if digits are missing.

    The text between escapes is translated with ``back``; an escape of byte ``n`` becomes ``spelled[n]``. Both happen in
    one pass, so that a decoded byte is not translated again.
    """
    first, *rest = text.split(mark)
    result, position = [first.translate(back)], len(first)
    for piece in rest:
        if not HEX_PAIR.match(piece):
            raise KernelError(ErrorCode.BAD_ESCAPE, position)
        result += [spelled[int(piece[:2], 16)], piece[2:].translate(back)]
        position += 1 + len(piece)
    return b"".join(result)


def checked_path(path: bytes) -> bytes:
    """Return ``path``, or raise :class:`KernelError`.

    A path must not be empty or absolute, and no segment may be empty, ``.``, ``..`` or contain a NUL.
    """
    if not path:
        raise KernelError(ErrorCode.EMPTY_PATH)
    if path.startswith(b"/"):
        raise KernelError(ErrorCode.ABSOLUTE, 0)
    start = 0
    for segment in path.split(b"/"):
        if segment in _BAD_SEGMENTS:
            raise KernelError(_BAD_SEGMENTS[segment], start)
        if b"\0" in segment:
            raise KernelError(ErrorCode.NUL, start + segment.index(b"\0"))
        start += len(segment) + 1
    return path


_BAD_SEGMENTS = {b"": ErrorCode.SEGMENT_EMPTY, b".": ErrorCode.SEGMENT_DOT, b"..": ErrorCode.SEGMENT_DOTDOT}
