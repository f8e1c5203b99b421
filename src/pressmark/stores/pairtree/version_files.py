"""The files next to pairtree_root: the Pairtree version, and the common prefix of identifiers (section 4)."""

from __future__ import annotations

import os

from pressmark.errors import StoreError
from pressmark.fs.atomic import replace_file
from pressmark.reports import Problem
from pressmark.stores.directories.store_directory import StoreDirectory
from pressmark.stores.exceptions import store_errors
from pressmark.stores.problems import problem

__all__ = ["UNFINISHED", "encoded_prefix", "prefix_of", "version_problems", "write_prefix", "write_version"]

PREFIX = b"pairtree_prefix"
VERSION = b"pairtree_version0_1"
_PART = b".new"
#: The files that an interrupted creation may leave beside pairtree_root.
UNFINISHED = frozenset({PREFIX, VERSION, PREFIX + _PART, VERSION + _PART})
VERSION_TEXT = (
    "This directory conforms to Pairtree Version 0.1. Updated spec:\n"
    "http://www.cdlib.org/inside/diglib/pairtree/pairtreespec.html\n"
)
# The text that identifies a version file.
_SAYS = b"Pairtree Version 0.1"
# A longer file is not a prefix.
LONGEST_PREFIX = 4096  # bytes
_SPACE = b" \t\n\v\f\r"
_BOM = b"\xef\xbb\xbf"


def prefix_of(directory: StoreDirectory) -> str:
    """Return the prefix of a tree, without BOM and surrounding white space.

    :raises StoreError: the file cannot be read, or is not a prefix
    """
    path = directory.path(PREFIX)
    try:
        with store_errors(path):
            data = directory.beginning(PREFIX, LONGEST_PREFIX + 1)
    except StoreError as error:
        if isinstance(error.__cause__, FileNotFoundError) and not directory.is_link(PREFIX):
            return ""
        raise
    prefix = data.removeprefix(_BOM).strip(_SPACE)
    if len(data) > LONGEST_PREFIX:
        raise StoreError(path, f"not a prefix, because it is longer than {LONGEST_PREFIX} bytes; restore the file")
    if b"\n" in prefix or b"\r" in prefix:
        raise StoreError(path, "the prefix has more than one line; expected only the prefix")
    if b"\0" in prefix:
        raise StoreError(path, "the prefix contains a NUL character; restore the file")
    try:
        return prefix.decode()
    except UnicodeDecodeError as error:
        raise StoreError(path, f"not UTF-8 at byte {error.start}; restore the file") from None


def encoded_prefix(base: bytes, prefix: str) -> bytes:
    """Return the content of the prefix file: the prefix without a newline.

    :raises StoreError: the prefix would be read back differently
    """
    path = os.path.join(base, PREFIX)
    try:
        data = prefix.encode()
    except UnicodeEncodeError:
        raise StoreError(path, "the prefix is not UTF-8; choose another prefix") from None
    unreadable = data != data.removeprefix(_BOM).strip(_SPACE) or {0, 10, 13} & set(data)
    if unreadable or len(data) > LONGEST_PREFIX:
        raise StoreError(
            path, "invalid prefix; use at most 4096 bytes without surrounding white space, line breaks and NUL"
        )
    return data


def write_prefix(base: bytes, data: bytes) -> None:
    """Write the content returned by :func:`encoded_prefix`; no file for the empty prefix."""
    path = os.path.join(base, PREFIX)
    if data:
        replace_file(path, data, part=path + _PART)
    elif os.path.exists(path):  # from an interrupted call
        os.unlink(path)


def write_version(base: bytes) -> None:
    path = os.path.join(base, VERSION)
    replace_file(path, VERSION_TEXT.encode(), part=path + _PART)


def version_problems(directory: StoreDirectory) -> list[Problem]:
    """Return the problems of the version file, which is not required."""
    try:
        known = _SAYS in directory.beginning(VERSION, LONGEST_PREFIX)
    except FileNotFoundError:
        return [problem("version-missing", VERSION)]
    except OSError as error:
        return [problem("unreadable", VERSION, error.strerror or str(error))]
    return [] if known else [problem("version-unknown", VERSION)]
