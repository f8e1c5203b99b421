"""Vitro file storage: paths of three-character groups, and file names."""

from __future__ import annotations

from collections.abc import Mapping

from pressmark._kernels.pure.column import Inverse, Kernel, KernelError
from pressmark._kernels.pure.text import decode_utf8, unescape
from pressmark._kernels.tables import (
    COMMON_FROM,
    COMMON_TO,
    FILENAME_FROM,
    FILENAME_TO,
    MAX_IDENTIFIER_BYTES,
    MAX_PATH_BYTES,
    VITRO_HEX,
    WINDOWS_RESERVED,
    ErrorCode,
)

__all__ = ["VitroDecodeFilename", "VitroEncodeFilename", "VitroMap", "VitroUnmap"]

_COMMON_BACK = bytes.maketrans(COMMON_TO, COMMON_FROM)
_FILENAME_BACK = bytes.maketrans(FILENAME_TO, FILENAME_FROM)
_RESERVED = {name.encode() for name in WINDOWS_RESERVED}
# The only case folding in a kernel: ASCII letters, independent of the interpreter's Unicode data.
_UPPER = bytes.maketrans(b"abcdefghijklmnopqrstuvwxyz", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def _encodings(source: bytes, target: bytes) -> list[bytes]:
    """Return the encoding of each byte: hex (rare), or the substitutions (common)."""
    common = bytes.maketrans(source, target)
    return [b"^%02x" % byte if VITRO_HEX[byte] else bytes([byte]).translate(common) for byte in range(256)]


_LATIN1 = [chr(byte).encode() for byte in range(256)]
_IDENTIFIER = _encodings(COMMON_FROM, COMMON_TO)
_FILENAME = _encodings(FILENAME_FROM, FILENAME_TO)


def _latin1(text: str, before: int) -> bytes:
    """Return one byte for each character; ``before`` is the offset of ``text`` in the identifier, in bytes."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError as error:
        raise KernelError(ErrorCode.BEYOND_LATIN1, before + len(text[: error.start].encode())) from None


def _reserved(name: bytes) -> bool:
    return name.translate(_UPPER) in _RESERVED


def _guarded(name: bytes) -> bytes:
    return b"~" + name if _reserved(name) else name


def _unguarded(name: bytes) -> bytes:
    return name[1:] if name.startswith(b"~") and _reserved(name[1:]) else name


class VitroMap(Kernel):
    """Map an identifier to its path under ``file_storage_root``."""

    def __init__(self, namespaces: Mapping[bytes, bytes]) -> None:
        super().__init__(MAX_IDENTIFIER_BYTES)
        # If several namespaces match, the lowest prefix character wins.
        self.namespaces = sorted(namespaces.items())

    def map(self, item: bytes) -> bytes:
        if not item:
            raise KernelError(ErrorCode.EMPTY)
        text = decode_utf8(item)
        mark, before = b"", 0
        for prefix, namespace in self.namespaces:
            if item.startswith(namespace):
                mark, before = prefix + b"~", len(namespace)
                text = item[before:].decode()
                break
        encoded = mark + b"".join([_IDENTIFIER[byte] for byte in _latin1(text, before)])
        return b"/".join([_guarded(encoded[start : start + 3]) for start in range(0, len(encoded), 3)])


class _VitroDecode(Kernel):
    """The lenient half of the inverse; :class:`VitroUnmap` checks its result."""

    def __init__(self, namespaces: Mapping[bytes, bytes]) -> None:
        super().__init__(MAX_PATH_BYTES)
        self.namespaces = dict(namespaces)

    def map(self, item: bytes) -> bytes:
        if not item:
            raise KernelError(ErrorCode.EMPTY_PATH)
        encoded = b"".join(map(_unguarded, item.split(b"/")))
        namespace, start = b"", 0
        if encoded[1:2] == b"~":
            if encoded[:1] not in self.namespaces:
                raise KernelError(ErrorCode.UNKNOWN_PREFIX, 0)
            namespace, start = self.namespaces[encoded[:1]], 2
        if b"~" in encoded[start:]:
            raise KernelError(ErrorCode.STRAY_TILDE, encoded.index(b"~", start))
        try:
            remainder = unescape(encoded[start:], b"^", _COMMON_BACK)
        except KernelError as error:
            raise KernelError(error.code, start + error.position) from None
        return namespace + remainder.decode("latin-1").encode()


class VitroUnmap(Inverse):
    """Map a path under ``file_storage_root`` to its identifier, strictly."""

    def __init__(self, namespaces: Mapping[bytes, bytes]) -> None:
        super().__init__(_VitroDecode(namespaces), VitroMap(namespaces))


class VitroEncodeFilename(Kernel):
    """Encode a file name: the same steps as for identifiers, but periods stay and nothing is split."""

    def __init__(self) -> None:
        super().__init__(MAX_IDENTIFIER_BYTES)

    def map(self, item: bytes) -> bytes:
        return _guarded(b"".join([_FILENAME[byte] for byte in _latin1(decode_utf8(item), 0)]))


class VitroDecodeFilename(Kernel):
    """Decode a stored file name: the guard, the substitutions, and escapes of either case."""

    def __init__(self) -> None:
        super().__init__(MAX_PATH_BYTES)

    def map(self, item: bytes) -> bytes:
        return unescape(_unguarded(item), b"^", _FILENAME_BACK, _LATIN1)
