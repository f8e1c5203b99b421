"""The files beside pairtree_root: which version this is, and what every identifier begins with (section 4)."""

from __future__ import annotations

import os

from pressmark.errors import StoreError
from pressmark.fs.atomic import replace_file
from pressmark.reports import Problem
from pressmark.stores.exceptions import store_errors
from pressmark.stores.problems import problem

__all__ = ["UNFINISHED", "encoded_prefix", "prefix_of", "version_problems", "write_prefix", "write_version"]

PREFIX = b"pairtree_prefix"
VERSION = b"pairtree_version0_1"
_PART = b".new"
#: What an interrupted creation may leave beside pairtree_root.
UNFINISHED = frozenset({PREFIX, VERSION, PREFIX + _PART, VERSION + _PART})
VERSION_TEXT = (
    "This directory conforms to Pairtree Version 0.1. Updated spec:\n"
    "http://www.cdlib.org/inside/diglib/pairtree/pairtreespec.html\n"
)
# What a version file says, whatever else it says.
_SAYS = b"Pairtree Version 0.1"
# A prefix is the beginning of an identifier. What is longer is another file under its name.
LONGEST_PREFIX = 4096  # bytes
_SPACE = b" \t\n\v\f\r"
_BOM = b"\xef\xbb\xbf"


def prefix_of(base: bytes) -> str:
    """Return the prefix of a tree, without a BOM and without white space at either end (rule A8).

    :raises StoreError: the file cannot be read, or is no prefix
    """
    path = os.path.join(base, PREFIX)
    try:
        with store_errors(path), open(path, "rb") as file:
            data = file.read(LONGEST_PREFIX + 1)
    except StoreError as error:
        if isinstance(error.__cause__, FileNotFoundError) and not os.path.islink(path):
            return ""
        raise
    prefix = data.removeprefix(_BOM).strip(_SPACE)
    if len(data) > LONGEST_PREFIX:
        raise StoreError(path, f"it is longer than {LONGEST_PREFIX} bytes: that is no prefix; restore the file")
    if b"\n" in prefix or b"\r" in prefix:
        raise StoreError(path, "it has more than one line, and a prefix is one; leave the one that is meant")
    if b"\0" in prefix:
        raise StoreError(path, "there is a NUL in it, which no prefix has; restore the file")
    try:
        return prefix.decode()
    except UnicodeDecodeError as error:
        raise StoreError(path, f"it is not UTF-8 at byte {error.start}; restore the file") from None


def encoded_prefix(base: bytes, prefix: str) -> bytes:
    """Return what the file of a prefix holds: exactly that, without a newline.

    :raises StoreError: it would not be read back as it is
    """
    path = os.path.join(base, PREFIX)
    try:
        data = prefix.encode()
    except UnicodeEncodeError:
        raise StoreError(path, "the prefix is not UTF-8; choose another") from None
    unreadable = data != data.removeprefix(_BOM).strip(_SPACE) or {0, 10, 13} & set(data)
    if unreadable or len(data) > LONGEST_PREFIX:
        raise StoreError(path, "a prefix has no white space at its ends, no line breaks, no NUL and at most 4096 bytes")
    return data


def write_prefix(base: bytes, data: bytes) -> None:
    """Write what :func:`encoded_prefix` has given; no file for the empty prefix."""
    path = os.path.join(base, PREFIX)
    if data:
        replace_file(path, data, part=path + _PART)
    elif os.path.exists(path):  # of an interrupted call
        os.unlink(path)


def write_version(base: bytes) -> None:
    """Write the file that says which version of Pairtree this is."""
    path = os.path.join(base, VERSION)
    replace_file(path, VERSION_TEXT.encode(), part=path + _PART)


def version_problems(base: bytes) -> list[Problem]:
    """Return what is to be said of the version file, which nobody needs (rule A10)."""
    path = os.path.join(base, VERSION)
    try:
        with open(path, "rb") as file:
            known = _SAYS in file.read(LONGEST_PREFIX)
    except FileNotFoundError:
        return [problem("version-missing", VERSION)]
    except OSError as error:
        return [problem("unreadable", VERSION, error.strerror or str(error))]
    return [] if known else [problem("version-unknown", VERSION)]
