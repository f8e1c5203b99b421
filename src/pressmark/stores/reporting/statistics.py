"""The numbers of a store: counters, to which those of each object are added.

Their size does not depend on the number of objects or files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

__all__ = [
    "NO_ENDING",
    "OTHER",
    "Amount",
    "Largest",
    "ObjectNumbers",
    "Statistics",
    "ending_of",
    "month_of",
    "most_frequent",
    "size_class",
]

#: The endings of files without one, and of files with endings that are not counted on their own.
NO_ENDING, OTHER = "", "*"
# Endings that are counted on their own.
_MOST_ENDINGS = 10_000
# What people call an ending: with a letter, and short.
_ENDING = re.compile(r"[^/]\.((?=[0-9]*[a-z])[0-9a-z]{1,10})\Z")
_MONTH = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])(?![0-9])")
# The number of digits from which sizes are in one class: 1 TB.
_LAST_CLASS = 13
# The upper ends of the classes of numbers of versions.
_VERSIONS = (1, 2, 3, 4, 5, 10, 20, 50, 100)


class Amount(NamedTuple):
    """A number of files, or of objects, and their size.

    :ivar number: how many
    :ivar bytes: their size
    :ivar objects: of a month: the number of objects that are new
    """

    number: int = 0
    bytes: int = 0
    objects: int = 0


class Largest(NamedTuple):
    """The largest file or object.

    :ivar bytes: its size
    :ivar name: the identifier of the object, or its path in the store; for a file, also the name of the file
    """

    bytes: int = -1
    name: str = ""


Amounts = dict[str, Amount]
_NONE = Largest()


@dataclass(slots=True)
class ObjectNumbers:
    """The numbers of an object: small, because many wait to be added.

    :ivar name: its identifier, or its path in the store
    :ivar dates: where its dates are from; see :class:`Statistics`
    :ivar first: its first month
    :ivar versions: number of its versions; 0 if objects have none
    :ivar formats: the files of the newest version, by ending and size class
    :ivar months: the stored files
    """

    name: str
    dates: str = "unknown"
    first: str = ""
    versions: int = 0
    bytes: int = 0
    largest: Largest = _NONE
    formats: dict[tuple[str, int], Amount] = field(default_factory=dict)
    months: Amounts = field(default_factory=dict)

    def add_file(self, name: str, size: int) -> None:
        """Count a file of the newest version.

        :param name: its name in the object
        """
        self.bytes += size
        _add(self.formats, (ending_of(name), size_class(size)), Amount(1, size))
        if size > self.largest.bytes:
            self.largest = Largest(size, name)

    def add_stored(self, month: str, size: int) -> None:
        """Count a stored file.

        :param month: when it was stored; empty if unknown
        """
        _add(self.months, month, Amount(1, size))


@dataclass
class Statistics:
    """The numbers of a store.

    Files are the content, without what describes it, such as inventories and tag files.

    :ivar objects: number of objects
    :ivar unreadable: those that cannot be read; their files are not counted
    :ivar files: of OCFL objects, those of the newest versions
    :ivar bytes: the size of these files
    :ivar stored_files: number of files on the disk; of OCFL objects, those of all versions, each once
    :ivar stored_bytes: their size
    :ivar months: what was stored in each month, such as ``2026-11``; the key is empty if this is unknown
    :ivar dates: number of objects by where their dates are from: ``versions``, ``bagging-date``, ``modified`` or
        ``unknown``
    :ivar endings: by ending, in lower case
    :ivar file_sizes: by size class; see :func:`size_class`
    :ivar object_sizes: by size class
    :ivar versions: number of objects by their number of versions; from six on, in classes
    :ivar all_versions: the number of versions
    :ivar advised: by the code of a recommendation, number of objects that do not follow it
    """

    objects: int = 0
    unreadable: int = 0
    files: int = 0
    bytes: int = 0
    stored_files: int = 0
    stored_bytes: int = 0
    all_versions: int = 0
    months: Amounts = field(default_factory=dict)
    dates: Counter[str] = field(default_factory=Counter)
    endings: Amounts = field(default_factory=dict)
    file_sizes: dict[int, Amount] = field(default_factory=dict)
    object_sizes: dict[int, Amount] = field(default_factory=dict)
    versions: Counter[int] = field(default_factory=Counter)
    advised: Counter[str] = field(default_factory=Counter)
    largest_file: Largest = _NONE
    largest_object: Largest = _NONE

    def add(self, found: ObjectNumbers | None) -> None:
        """Count an object; :data:`None` for one that cannot be read."""
        self.objects += 1
        if found is None:
            self.unreadable += 1
            return
        for (ending, size), amount in found.formats.items():
            is_known = ending in self.endings or len(self.endings) < _MOST_ENDINGS
            _add(self.endings, ending if is_known else OTHER, amount)
            _add(self.file_sizes, size, amount)
            self.files += amount.number
        for month, amount in found.months.items():
            _add(self.months, month, amount)
            self.stored_files += amount.number
            self.stored_bytes += amount.bytes
        _add(self.months, found.first, Amount(objects=1))
        self.dates[found.dates] += 1
        self.bytes += found.bytes
        _add(self.object_sizes, size_class(found.bytes), Amount(1, found.bytes))
        if found.bytes > self.largest_object.bytes:
            self.largest_object = Largest(found.bytes, found.name)
        if found.largest.bytes > self.largest_file.bytes:
            self.largest_file = Largest(found.largest.bytes, f"{found.name}: {found.largest.name}")
        if found.versions:
            self.all_versions += found.versions
            self.versions[next((most for most in _VERSIONS if found.versions <= most), _VERSIONS[-1] + 1)] += 1

    def record(self) -> dict[str, object]:
        """Return the numbers as a JSON object."""
        stored = {"files": self.stored_files, "bytes": self.stored_bytes}
        return {
            "objects": self.objects,
            "unreadable": self.unreadable,
            "files": self.files,
            "bytes": self.bytes,
            "stored": stored,
            "growth": [
                {"month": month or None, "objects": one.objects, "files": one.number, "bytes": one.bytes}
                for month, one in sorted(self.months.items(), key=lambda item: item[0] or "~")
            ],
            "dates": dict(sorted(self.dates.items())),
            "formats": [
                {"ending": ending or None, "files": one.number, "bytes": one.bytes}
                for ending, one in most_frequent(self.endings).items()
            ],
            "sizes": [
                {
                    "from": first,
                    "below": below,
                    "files": self.file_sizes.get(number, Amount()).number,
                    "file_bytes": self.file_sizes.get(number, Amount()).bytes,
                    "objects": self.object_sizes.get(number, Amount()).number,
                    "object_bytes": self.object_sizes.get(number, Amount()).bytes,
                }
                for number, first, below in self.size_classes()
            ],
            "largest_file": _largest(self.largest_file),
            "largest_object": _largest(self.largest_object),
            "versions": self.all_versions,
            "versions_per_object": [
                {"from": first, "to": last, "objects": self.versions[number]}
                for number, first, last in self.version_classes()
            ],
        }

    def size_classes(self) -> list[tuple[int, int, int | None]]:
        """Return the size classes from the smallest to the largest that occurs: number, first size, and the size that
        is too large; the last class has :data:`None`.
        """
        most = max([*self.file_sizes, *self.object_sizes], default=-1)
        return [_size_class(number) for number in range(most + 1) if number == 0 or number >= 3]

    def version_classes(self) -> list[tuple[int, int, int | None]]:
        """Return the classes of numbers of versions that occur: key, first and last number, or :data:`None`."""
        ends = [0, *_VERSIONS]
        classes: list[tuple[int, int, int | None]] = [(end, before + 1, end) for before, end in pairwise(ends)]
        classes.append((_VERSIONS[-1] + 1, _VERSIONS[-1] + 1, None))
        return [one for one in classes if self.versions[one[0]]]


def _add(amounts: dict, key: object, amount: Amount) -> None:  # type: ignore[type-arg]
    before = amounts.get(key)
    if before is not None:
        amount = Amount(before.number + amount.number, before.bytes + amount.bytes, before.objects + amount.objects)
    amounts[key] = amount


def _largest(one: Largest) -> dict[str, object] | None:
    return None if one.bytes < 0 else {"bytes": one.bytes, "name": one.name}


def most_frequent(endings: Mapping[str, Amount], most: int = 20) -> Amounts:
    """Return the endings with the most files, and the sum of all others as :data:`OTHER`, if there are any."""
    known = sorted((one for one in endings if one != OTHER), key=lambda one: (-endings[one].number, one))
    found = {one: endings[one] for one in known[:most]}
    for one in (*known[most:], *([OTHER] if OTHER in endings else [])):
        _add(found, OTHER, endings[one])
    return found


def ending_of(name: str) -> str:
    """Return the ending of a file, in lower case; empty if it has none.

    >>> ending_of("scans/page.TIFF"), ending_of("data.tar.gz"), ending_of(".profile"), ending_of("report.2")
    ('tiff', 'gz', '', '')
    """
    found = _ENDING.search(name.lower())
    return "" if found is None else found[1]


def month_of(date: object) -> str:
    """Return the month of a date, as written there; empty if it is none.

    >>> month_of("2026-11-29T20:00:00Z"), month_of("29.11.2026")
    ('2026-11', '')
    """
    found = _MONTH.match(date) if isinstance(date, str) else None
    return "" if found is None else found[0]


def size_class(size: int) -> int:
    """Return the class of a size: 0 for an empty file, 3 below 1 kB, and otherwise the number of digits."""
    return min(max(len(str(size)), 3), _LAST_CLASS) if size else 0


def _size_class(number: int) -> tuple[int, int, int | None]:
    if number == 0:
        return 0, 0, 1
    return number, 1 if number == 3 else 10 ** (number - 1), None if number == _LAST_CLASS else 10**number
