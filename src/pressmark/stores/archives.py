"""Serialised bags: zip, tar and gzipped tar files with one directory at their top, read without trusting them."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import product
from typing import IO, Any, NamedTuple

from pressmark.bagit import declaration as declarations
from pressmark.bagit import info as infos
from pressmark.bagit.info import BagInfo
from pressmark.reports import Problem
from pressmark.stores.base import octets, text
from pressmark.stores.kinds import problem

try:
    from lzma import LZMAError as _LZMAError
except ImportError:  # a Python without it reads no such archives
    _LZMAError = zlib.error  # type: ignore[misc,assignment]

__all__ = ["Described", "describe", "endings", "stem", "unpack"]

_ENDINGS = (b".zip", b".tar", b".tar.gz", b".tgz")
_NAME = re.compile(rb"(.+)(?:%b)" % b"|".join(map(re.escape, _ENDINGS)), re.DOTALL | re.IGNORECASE)
_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    _LZMAError,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    # What zipfile does not catch itself: names that are not in the encoding that they claim, or empty.
    ValueError,
    IndexError,
)
# What makes it impossible to unpack one member, whatever the disk is like.
_UNPACKABLE = {errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.EILSEQ}


class Described(NamedTuple):
    """What the tag files in an archive say.

    :ivar info: of bag-info.txt; empty where there is none
    :ivar problems: why it could not be read, with ``path`` empty
    :ivar refused: what the system said where that is the reason: nothing is known of the archive then
    """

    info: BagInfo
    problems: list[Problem]
    refused: OSError | None = None


class _Member(NamedTuple):
    """One member of an archive.

    :ivar kind: ``file``, ``directory`` or ``other``
    :ivar open: opens a file's content
    """

    name: bytes
    kind: str
    open: Any


def stem(name: bytes) -> bytes | None:
    """Return a serialised bag's name without what says how it is serialised; :data:`None` if it is called otherwise."""
    found = _NAME.fullmatch(name)
    return found[1] if found else None


@cache
def endings() -> tuple[bytes, ...]:
    """Return how the names of serialised bags end, in every mixture of cases, the usual ones first."""
    mixed = {bytes(one) for ending in _ENDINGS for one in product(*map(set, zip(ending, ending.upper(), strict=True)))}
    return (*_ENDINGS, *sorted(mixed - set(_ENDINGS)))


@contextmanager
def _members(path: bytes) -> Iterator[Iterator[_Member]]:
    """Open an archive, and give its members in their order."""
    name = os.fsdecode(path)
    if name.lower().endswith(".zip"):
        with zipfile.ZipFile(name) as archive:
            yield (_of_zip(archive, info) for info in archive.infolist())
    else:
        # A stream: nothing is looked for twice.
        with tarfile.open(name, "r|*") as tar:
            yield (_of_tar(tar, member) for member in tar)


def _of_zip(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Member:
    mode = info.external_attr >> 16 & 0o170000
    kind = "directory" if info.is_dir() else "file" if mode in (0, 0o100000) else "other"
    return _Member(octets(info.filename).rstrip(b"/"), kind, lambda: archive.open(info))


def _of_tar(tar: tarfile.TarFile, member: tarfile.TarInfo) -> _Member:
    kind = "directory" if member.isdir() else "file" if member.isreg() else "other"
    return _Member(os.fsencode(member.name).removeprefix(b"./").rstrip(b"/"), kind, lambda: tar.extractfile(member))


def describe(path: bytes) -> Described:
    """Read the bag-info.txt of a serialised bag; nothing is unpacked to the disk."""
    found: dict[bytes, bytes] = {}
    wanted = {declarations.NAME: declarations.DECLARATION_LIMIT, infos.NAME: infos.INFO_LIMIT}
    try:
        with _members(path) as members:
            for member in members:
                top, _, name = member.name.partition(b"/")
                if member.kind == "file" and top and name in wanted and name not in found:
                    with member.open() as file:
                        found[name] = file.read(wanted[name] + 1)
                if len(found) == len(wanted):
                    break
    except _BROKEN as error:
        # What is said of a broken archive has no number.
        refused = error if isinstance(error, OSError) and error.errno is not None else None
        return Described(BagInfo(), [_malformed(error)], refused)
    if declarations.NAME not in found:
        return Described(BagInfo(), [problem("archive-malformed", b"", "there is no directory with a bagit.txt in it")])
    declaration, _ = declarations.read_declaration(found[declarations.NAME])
    info, _ = BagInfo.parse(found.get(infos.NAME, b""), declaration.encoding, declaration.version)
    return Described(info, [])


def _malformed(error: BaseException) -> Problem:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
    return problem("archive-malformed", b"", " ".join(reason.split()))


def unpack(path: bytes, target: bytes) -> tuple[bytes | None, list[Problem]]:
    """Unpack the regular files of a serialised bag below the new directory ``target``.

    Names that lead elsewhere, links and special files are left out and reported.

    :return: the bag's base directory, :data:`None` where there is none; and what is wrong
    :raises OSError: ``target`` cannot be written
    """
    problems: list[Problem] = []
    tops: set[bytes] = set()
    os.mkdir(target)
    try:
        with _members(path) as members:
            for member in members:
                parts = member.name.split(b"/")
                if member.name in (b"", b"."):
                    continue
                if member.kind == "other" or {b"", b".", b".."} & set(parts) or b"\0" in member.name:
                    what = "neither file nor directory" if member.kind == "other" else "its name leads elsewhere"
                    problems.append(problem("archive-member", b"", f"{text(member.name)!r}: {what}"))
                    continue
                tops.add(parts[0])
                place = os.path.join(target, member.name)
                try:
                    os.makedirs(place if member.kind == "directory" else os.path.dirname(place), exist_ok=True)
                    if member.kind == "file" and not _write(member, place):
                        problems.append(problem("archive-member", b"", f"{text(member.name)!r} is in it twice"))
                except OSError as error:
                    if error.errno not in _UNPACKABLE:
                        raise
                    what = f"{text(member.name)!r} cannot be unpacked beside the others: {error.strerror}"
                    problems.append(problem("archive-member", b"", what))
    except _BROKEN as error:
        if isinstance(error, OSError) and error.filename and os.fsencode(error.filename).startswith(target):
            raise
        return None, [*problems, _malformed(error)]
    if len(tops) != 1:
        return None, [*problems, problem("archive-malformed", b"", f"it has {len(tops)} names at its top, not one")]
    return os.path.join(target, tops.pop()), problems


def _write(member: _Member, place: bytes) -> bool:
    if os.path.lexists(place):
        return False
    source: IO[bytes]
    with member.open() as source, open(place, "xb") as file:
        shutil.copyfileobj(source, file, 1 << 20)
    return True
