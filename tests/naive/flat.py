"""OCFL extension 0002: Flat Direct Storage Layout. "The object identifier is used, without any changes"."""

from . import safe_path, utf8_text


def map_id(identifier: bytes) -> bytes:
    utf8_text(identifier)  # OCFL identifiers are UTF-8
    return safe_path(identifier)


def unmap_path(path: bytes) -> bytes:
    return map_id(path)
