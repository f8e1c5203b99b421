"""What is asked of a new bag, checked, whatever the way to it."""

from __future__ import annotations

import datetime
import os
import stat
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pressmark.bagit.bag_directory import STAGING
from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.changes.refusals import refusing
from pressmark.bagit.paths import FETCH_TXT, PAYLOAD, canonical, normal_key, why_unsafe
from pressmark.errors import BagError
from pressmark.fixity.algorithms import algorithm_names

__all__ = ["CreateOptions", "Elements", "Path", "checked_elements", "checked_tag_files"]

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Elements = Mapping[str, str | Iterable[str]] | Iterable[tuple[str, str]]

LINKS = ("refuse", "follow")


class CreateOptions(NamedTuple):
    """What is asked for, whatever the way to it."""

    algorithms: tuple[str, ...]
    info: list[tuple[str, str]]
    links: str
    tag_files: list[tuple[bytes, bytes]]
    threads: int | None
    read: str
    date: datetime.date

    @classmethod
    def from_arguments(
        cls,
        algorithms: Iterable[str] | str,
        info: Elements | None,
        links: str,
        tag_files: Mapping[str, Path] | Iterable[Path],
        threads: int | None,
        read: str,
        date: datetime.date | None,
    ) -> CreateOptions:
        """Check the arguments of :func:`pressmark.bagit.create`."""
        if links not in LINKS:
            raise ValueError(f"links={links!r}: expected {', '.join(LINKS)}")
        names, elements, files = algorithm_names(algorithms), checked_elements(info), checked_tag_files(tag_files)
        return cls(names, elements, links, files, threads, read, date or datetime.date.today())

    def request(self, **more: Any) -> dict[str, Any]:
        """Return what a later run has to ask for so that it is taken for the same, as JSON gives it back."""
        files = [[os.fsdecode(path), os.fsdecode(os.path.abspath(where))] for path, where in self.tag_files]
        elements = [list(element) for element in self.info]
        request = {"algorithms": list(self.algorithms), "info": elements, "links": self.links, "tag_files": files}
        return {"command": "create", **request, **more}


def checked_elements(info: Elements | None) -> list[tuple[str, str]]:
    """Return the elements of bag-info.txt as pairs."""
    if info is None:
        return []
    pairs: list[tuple[str, str]] = []
    for label, value in info.items() if isinstance(info, Mapping) else info:
        if label.lower() == "payload-oxum":
            raise ValueError("Payload-Oxum is computed; omit it")
        pairs += [(label, value)] if isinstance(value, str) else [(label, one) for one in value]
    BagInfo(pairs)  # which says what is wrong with them
    return pairs


def checked_tag_files(given: Mapping[str, Path] | Iterable[Path]) -> list[tuple[bytes, bytes]]:
    """Return of each tag file its path in the bag, and where it is."""
    if isinstance(given, Mapping):
        files = [(os.fsencode(path), os.fsencode(where)) for path, where in given.items()]
    else:
        files = [(os.path.basename(os.fsencode(where)), os.fsencode(where)) for where in given]
    seen: set[bytes] = set()
    for path, where in files:
        if reason := _why_not_a_tag_file(path):
            raise BagError(path, f"no tag file can be called so: {reason}")
        if normal_key(path) in seen:
            raise BagError(path, "two tag files would have this path; name another for one of them")
        seen.add(normal_key(path))
        with refusing(where):
            if not stat.S_ISREG(os.stat(where).st_mode):
                raise BagError(where, "a tag file has to be a regular file")
    return files


def _why_not_a_tag_file(path: bytes) -> str | None:
    first, _, rest = path.partition(b"/")
    if path.endswith(b"/") or b"//" in path or not _is_text(path):
        return "it is no path of a file in UTF-8"
    if fault := why_unsafe(path):
        return fault
    # Else ./bagit.txt would pass for another file than bagit.txt.
    if canonical(path)[1]:
        return "a segment '.' says nothing; leave it out"
    if path[:1] in b" \t*":
        return "in a manifest, its beginning would be lost"
    if first in (PAYLOAD, STAGING):
        return "the directory is not for tag files"
    names = (b"bagit.txt", b"bag-info.txt", FETCH_TXT)
    described = first.startswith((b"manifest-", b"tagmanifest-"))
    # Also for directories: where one of these should be, nothing else may be.
    if first in names or (described and (not rest or first.endswith(b".txt"))):
        return "the name is reserved"
    return None


def _is_text(path: bytes) -> bool:
    try:
        path.decode()
    except UnicodeDecodeError:
        return False
    return True
