"""Serialised bags in a folder of bags: their names, and what their tag files say of them."""

from __future__ import annotations

import re
from functools import cache
from itertools import product
from typing import NamedTuple

from pressmark.bagit import bag_info as infos
from pressmark.bagit import bagit_txt as declarations
from pressmark.bagit.archive import Archive, Member, open_archive
from pressmark.bagit.archive.members import clean_name
from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.bag_tags import is_described
from pressmark.bagit.paths import PAYLOAD
from pressmark.bagit.problems import problem
from pressmark.errors import ArchiveError, BagError
from pressmark.reports import Problem

__all__ = ["Described", "describe", "endings", "stem"]

_ENDINGS = (b".zip", b".tar", b".tar.gz", b".tgz")
_NAME = re.compile(rb"(.+)(?:%b)" % b"|".join(map(re.escape, _ENDINGS)), re.DOTALL | re.IGNORECASE)
# Where so many members, or so many bytes of a compressed archive, show nothing that is a bag's, it holds none: a bag of
# any size has its data/ or its tag files among them.
FIRST_MEMBERS = 1000
# A serialised bag has one directory at its top; macOS packs a file beside it, for what it knows of the directory.
_APPLE_DOUBLE = b"._"
FIRST_BYTES = 64 << 20  # 64 MiB


class Described(NamedTuple):
    """What the tag files in an archive say.

    :ivar info: of bag-info.txt; empty where there is none
    :ivar problems: why it could not be read, with ``path`` empty
    :ivar refused: what the system said where that is the reason: nothing is known of the archive then
    """

    info: BagInfo
    problems: list[Problem]
    refused: OSError | None = None


def stem(name: bytes) -> bytes | None:
    """Return a serialised bag's name without what says how it is serialised; :data:`None` if it is called otherwise."""
    found = _NAME.fullmatch(name)
    return found[1] if found else None


@cache
def endings() -> tuple[bytes, ...]:
    """Return how the names of serialised bags end, in every mixture of cases, the usual ones first."""
    mixed = {bytes(one) for ending in _ENDINGS for one in product(*map(set, zip(ending, ending.upper(), strict=True)))}
    return (*_ENDINGS, *sorted(mixed - set(_ENDINGS)))


def describe(path: bytes) -> Described:
    """Read the bag-info.txt of a serialised bag; nothing is unpacked to the disk.

    Whether it is one at all its first members show: no other archive is decompressed to its end.
    """
    try:
        with open_archive(path) as archive:
            found = _tag_files(archive)
    except ArchiveError as error:
        return Described(BagInfo(), [problem(error.kind, b"", error.reason)])
    except BagError as error:
        refused = error.__cause__ if isinstance(error.__cause__, OSError) else None
        return Described(BagInfo(), [problem("archive-malformed", b"", error.reason)], refused)
    if declarations.NAME not in found:
        message = "it is no bag: its first members show no bagit.txt in the one directory at its top"
        return Described(BagInfo(), [problem("archive-malformed", b"", message)])
    declaration, _ = declarations.read_declaration(found[declarations.NAME])
    info, _ = BagInfo.parse(found.get(infos.NAME, b""), declaration.encoding, declaration.version)
    return Described(info, [])


def _tag_files(archive: Archive) -> dict[bytes, bytes]:
    """Return the content of bagit.txt and bag-info.txt; without them where the archive holds no bag."""
    wanted = {declarations.NAME: declarations.DECLARATION_LIMIT, infos.NAME: infos.INFO_LIMIT}
    found: dict[bytes, bytes] = {}
    tops: set[bytes] = set()
    looked_at = 0
    is_like_a_bag = False
    for number, member in enumerate(archive.members(), 1):
        top, _, name = clean_name(member.name)[0].partition(b"/")
        if top and not top.startswith(_APPLE_DOUBLE):
            tops.add(top)
        if len(tops) > 1 and declarations.NAME not in found:
            break
        is_like_a_bag = is_like_a_bag or name.partition(b"/")[0] == PAYLOAD or is_described(name)
        if member.kind == "file" and top and name in wanted and name not in found:
            found[name] = _head(member, wanted[name] + 1)
            if len(found) == len(wanted):
                break
        looked_at += 0 if archive.seekable else member.size
        if not is_like_a_bag and (number >= FIRST_MEMBERS or looked_at > FIRST_BYTES):
            break
    return found


def _head(member: Member, size: int) -> bytes:
    data = bytearray()
    for block in member.blocks():
        data += block[: size - len(data)]
        if len(data) >= size:
            break
    return bytes(data)
