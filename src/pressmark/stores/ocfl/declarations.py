"""The names that OCFL reserves: conformance declarations (sections 3.2 and 4.2) and the content of an object's root
(3.1).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from pressmark.fs.trees import DirectoryEntry
from pressmark.reports import Problem
from pressmark.stores.ocfl.storage import Reader, Storage
from pressmark.stores.problems import problem

__all__ = [
    *("EXTENSIONS", "LOGS", "MUTABLE_HEAD", "OBJECT", "ROOT", "VERSIONS"),
    *(
        "declaration",
        "has_mutable_head",
        "is_object_directory",
        "is_object_name",
        "is_object_root",
        "is_version_name",
        "later",
        "read_declaration",
    ),
]

#: The supported versions of OCFL, the newest first.
VERSIONS = ("1.1", "1.0")
ROOT, OBJECT = b"0=ocfl_", b"0=ocfl_object_"
EXTENSIONS, LOGS = b"extensions", b"logs"
#: Where the Mutable HEAD extension stages the next version, relative to the object's root.
MUTABLE_HEAD = EXTENSIONS + b"/0005-mutable-head"
_SIDECAR = re.compile(rb"inventory\.json\.[A-Za-z0-9_\-]+")
_VERSION = re.compile(rb"v[0-9]+")
# Declarations are a dozen bytes; a larger file is not read to its end.
_ENOUGH = 100
_CODES = {ROOT: ("E076", "E079", "E080"), OBJECT: ("E003", "E006", "E007")}


def declaration(prefix: bytes, version: str) -> tuple[bytes, bytes]:
    """Return name and content of a declaration.

    >>> declaration(OBJECT, "1.1")
    (b'0=ocfl_object_1.1', b'ocfl_object_1.1\\n')
    """
    name = prefix + version.encode()
    return name, name[2:] + b"\n"


def later(version: str, than: str) -> bool:
    """Return whether an OCFL version is later than another."""
    return tuple(map(int, version.split("."))) > tuple(map(int, than.split(".")))


def read_declaration(
    storage: Reader, place: bytes, prefix: bytes, names: Iterable[bytes]
) -> tuple[str | None, list[Problem]]:
    """Return the version that a directory declares, and the problems of its declarations.

    :param place: the directory
    :param names: names of all files in it
    :return: the version is :data:`None` if no supported one is declared
    """
    several, unknown, malformed = _CODES[prefix]
    problems = []
    found = sorted(name for name in names if name.startswith(b"0="))
    known = [version for version in VERSIONS if declaration(prefix, version)[0] in found]
    for name in found:
        path = os.path.join(place, name)
        if name not in {declaration(prefix, version)[0] for version in known}:
            what = f"{os.fsdecode(name)!r} is not a known declaration"
            problems.append(problem("declaration-unknown", path, what, code=unknown))
            continue
        try:
            content = storage.read(path, _ENOUGH)
        except OSError as error:
            problems.append(problem("unreadable", path, error.strerror or str(error)))
            continue
        if content != name[2:] + b"\n":
            what = f"the declaration's content is not {name[2:].decode()!r} and a line feed"
            problems.append(
                problem("declaration-malformed", path, what, code=malformed, found=repr(content)[1:].strip("'"))
            )
    if len(found) > 1:
        what = f"more than one declaration: {', '.join(map(os.fsdecode, found))}"
        problems.append(problem("declaration-several", place, what, code=several))
    return (known[0] if known else None), problems


def is_version_name(name: bytes) -> bool:
    """Return whether a directory of an object has the name of a version (section 3.3)."""
    return _VERSION.fullmatch(name) is not None


def is_object_directory(name: bytes) -> bool:
    """Return whether OCFL defines this name of a directory in an object's root (section 3.1)."""
    return name in (EXTENSIONS, LOGS) or is_version_name(name)


def is_object_root(entries: Sequence[DirectoryEntry]) -> bool:
    """Return whether a directory with these entries declares itself to be an object's root."""
    return any(entry.name.startswith(OBJECT) and entry.kind == "file" for entry in entries)


def is_object_name(entry: DirectoryEntry) -> bool:
    """Return whether OCFL defines this name in an object's root (section 3.1)."""
    if entry.kind == "directory":
        return is_object_directory(entry.name)
    name = entry.name
    return entry.kind == "file" and (
        name == b"inventory.json" or name.startswith(b"0=") or _SIDECAR.fullmatch(name) is not None
    )


def has_mutable_head(storage: Storage, place: bytes) -> bool:
    """Return whether the object at ``place`` has content staged for its next version (extension 0005)."""
    return storage.exists(os.path.join(place, MUTABLE_HEAD))
