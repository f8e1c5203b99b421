"""Serialized bags in a folder of bags: their names, and the content of their tag files."""

from __future__ import annotations

import re
from typing import NamedTuple

from pressmark.bagit import bag_info as infos, bagit_txt as declarations
from pressmark.bagit.archive import Archive, Member, open_archive
from pressmark.bagit.archive.members import clean_name
from pressmark.bagit.archive.reader import ENDINGS
from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.bag_tags import is_described
from pressmark.bagit.paths import PAYLOAD
from pressmark.bagit.problems import problem
from pressmark.errors import ArchiveError, BagError
from pressmark.fs.names import is_junk
from pressmark.reports import Problem

__all__ = ["SERIALIZED", "Described", "describe", "stem"]

#: The endings of serialized bags that are found by the name of the bag.
SERIALIZED = (*ENDINGS, *(ending.upper() for ending in ENDINGS))
_NAME = re.compile(rb"(.+)(?:%b)" % b"|".join(map(re.escape, ENDINGS)), re.DOTALL | re.IGNORECASE)
# An archive whose first members, or first bytes if compressed, contain nothing of a bag is not a bag: a bag of
# any size has its payload or tag files among them.
FIRST_MEMBERS = 1000
FIRST_BYTES = 64 << 20  # 64 MiB


class Described(NamedTuple):
    """The content of the tag files in an archive.

    :ivar info: elements of bag-info.txt; empty without one
    :ivar problems: the reasons why the archive could not be read, each with an empty ``path``
    :ivar refused: the error of the operating system, if that is the reason; the archive's content is unknown then
    """

    info: BagInfo
    problems: list[Problem]
    refused: OSError | None = None


def stem(name: bytes) -> bytes | None:
    """Return a serialized bag's name without its ending; :data:`None` for other names."""
    found = _NAME.fullmatch(name)
    return found[1] if found else None


def describe(path: bytes) -> Described:
    """Read the bag-info.txt of a serialized bag, without unpacking it.

    Only the first members are read to find out whether the archive is a bag at all.
    """
    try:
        with open_archive(path) as archive:
            tag_files = _tag_files(archive)
    except ArchiveError as error:
        return Described(BagInfo(), [problem(error.kind, b"", error.reason)])
    except BagError as error:
        refused = error.__cause__ if isinstance(error.__cause__, OSError) else None
        return Described(BagInfo(), [problem("archive-malformed", b"", error.reason)], refused)
    if declarations.NAME not in tag_files:
        message = "not a bag: no bagit.txt in a single top-level directory among its first members"
        return Described(BagInfo(), [problem("archive-malformed", b"", message)])
    declaration, _ = declarations.read_declaration(tag_files[declarations.NAME])
    info, _ = BagInfo.parse(tag_files.get(infos.NAME, b""), declaration.encoding, declaration.version)
    return Described(info, [])


def _tag_files(archive: Archive) -> dict[bytes, bytes]:
    """Return the content of bagit.txt and bag-info.txt; empty if the archive is not a bag."""
    wanted = {declarations.NAME: declarations.DECLARATION_LIMIT, infos.NAME: infos.INFO_LIMIT}
    contents: dict[bytes, bytes] = {}
    tops: set[bytes] = set()
    looked_at = 0
    is_like_a_bag = False
    for number, member in enumerate(archive.members(), 1):
        top, slash, name = clean_name(member.name)[0].partition(b"/")
        # A serialized bag has one top-level directory; macOS adds files beside it.
        if top and not is_junk(top, directory=bool(slash) or member.kind == "directory"):
            tops.add(top)
        if len(tops) > 1 and declarations.NAME not in contents:
            break
        is_like_a_bag = is_like_a_bag or name.partition(b"/")[0] == PAYLOAD or is_described(name)
        if member.kind == "file" and top and name in wanted and name not in contents:
            contents[name] = _head(member, wanted[name] + 1)
            if len(contents) == len(wanted):
                break
        looked_at += 0 if archive.seekable else member.size
        if not is_like_a_bag and (number >= FIRST_MEMBERS or looked_at > FIRST_BYTES):
            break
    return contents


def _head(member: Member, size: int) -> bytes:
    data = bytearray()
    for block in member.blocks():
        data += block[: size - len(data)]
        if len(data) >= size:
            break
    return bytes(data)
