"""The numbers of a store: counters, which one object fills, and which are added to those of all others.

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


@dataclass
class Statistics:
    """The numbers of an object, or of a store.

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
    :ivar versions: number of objects by their number of versions; from five on, in classes
    :ivar all_versions: the number of versions
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
    largest_file: Largest = _NONE
    largest_object: Largest = _NONE

    @classmethod
    def of_unreadable(cls) -> Statistics:
        """Return the numbers of an object that cannot be read."""
        return cls(objects=1, unreadable=1)

    def add_file(self, name: str, size: int) -> None:
        """Count a file of the newest version.

        :param name: its name in the object
        """
        self.files += 1
        self.bytes += size
        _add(self.endings, ending_of(name), Amount(1, size))
        _add(self.file_sizes, size_class(size), Amount(1, size))
        if size > self.largest_file.bytes:
            self.largest_file = Largest(size, name)

    def add_stored(self, month: str, count: int, size: int, objects: int = 0) -> None:
        """Count stored files.

        :param month: when they were stored; empty if unknown
        :param objects: number of objects that are new in this month
        """
        self.stored_files += count
        self.stored_bytes += size
        _add(self.months, month, Amount(count, size, objects))

    def end_object(self, name: str, dates: str, versions: int = 0) -> Statistics:
        """Count the object whose files these are, and return its numbers.

        :param name: its identifier, or its path in the store
        :param dates: where its dates are from
        :param versions: number of its versions; 0 if objects have none
        """
        self.objects = 1
        self.dates[dates] = 1
        self.object_sizes[size_class(self.bytes)] = Amount(1, self.bytes)
        self.largest_object = Largest(self.bytes, name)
        if self.largest_file.bytes >= 0:
            self.largest_file = Largest(self.largest_file.bytes, f"{name}: {self.largest_file.name}")
        if versions:
            self.all_versions = versions
            self.versions[next((most for most in _VERSIONS if versions <= most), _VERSIONS[-1] + 1)] = 1
        return self

    def add(self, other: Statistics) -> None:
        """Add the numbers of an object."""
        for name in ("objects", "unreadable", "files", "bytes", "stored_files", "stored_bytes", "all_versions"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        _add_all(self.months, other.months)
        _add_all(self.file_sizes, other.file_sizes)
        _add_all(self.object_sizes, other.object_sizes)
        for ending, amount in other.endings.items():
            is_known = ending in self.endings or len(self.endings) < _MOST_ENDINGS
            _add(self.endings, ending if is_known else OTHER, amount)
        self.dates.update(other.dates)
        self.versions.update(other.versions)
        self.largest_file = max(self.largest_file, other.largest_file, key=lambda one: one.bytes)
        self.largest_object = max(self.largest_object, other.largest_object, key=lambda one: one.bytes)

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


def _add_all(amounts: dict, others: Mapping) -> None:  # type: ignore[type-arg]
    for key, amount in others.items():
        _add(amounts, key, amount)


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
