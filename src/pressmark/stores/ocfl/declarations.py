"""OCFL's conformance declarations: the files ``0=ocfl_1.1`` and ``0=ocfl_object_1.1`` (sections 3.2 and 4.2)."""

from __future__ import annotations

import os
from collections.abc import Iterable

from pressmark.reports import Problem
from pressmark.stores.problems import problem

__all__ = ["OBJECT", "ROOT", "VERSIONS", "declaration", "later", "read_declaration"]

#: The versions of OCFL that are known, the newest first.
VERSIONS = ("1.1", "1.0")
ROOT, OBJECT = b"0=ocfl_", b"0=ocfl_object_"
# Declarations are a dozen bytes; whoever puts a gigabyte there need not be read.
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
    """Return whether an OCFL version comes after another."""
    return tuple(map(int, version.split("."))) > tuple(map(int, than.split(".")))


def read_declaration(
    directory: bytes, place: bytes, prefix: bytes, names: Iterable[bytes]
) -> tuple[str | None, list[Problem]]:
    """Return the version that a directory declares, and what is wrong with its declarations.

    :param directory: where it is
    :param place: its path in problems
    :param names: of all files in it
    :return: the version is :data:`None` where no known one is declared
    """
    several, unknown, malformed = _CODES[prefix]
    problems = []
    found = sorted(name for name in names if name.startswith(b"0="))
    known = [version for version in VERSIONS if declaration(prefix, version)[0] in found]
    for name in found:
        path = os.path.join(place, name)
        if name not in {declaration(prefix, version)[0] for version in known}:
            what = f"{os.fsdecode(name)!r} declares nothing that is known here"
            problems.append(problem("declaration-unknown", path, what, code=unknown))
            continue
        try:
            with open(os.path.join(directory, name), "rb") as file:
                content = file.read(_ENOUGH)
        except OSError as error:
            problems.append(problem("unreadable", path, error.strerror or str(error)))
            continue
        if content != name[2:] + b"\n":
            what = f"the declaration's content is not {name[2:].decode()!r} and a line feed"
            problems.append(
                problem("declaration-malformed", path, what, code=malformed, found=repr(content)[1:].strip("'"))
            )
    if len(found) > 1:
        what = f"there is more than one declaration: {', '.join(map(os.fsdecode, found))}"
        problems.append(problem("declaration-several", place, what, code=several))
    return (known[0] if known else None), problems
