"""What a plan refuses, and what it warns of: each with a stable kind and the objects concerned."""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, chain
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple

from pressmark.errors import quoted
from pressmark.fs.atomic import new_file
from pressmark.fs.names import encode_fs, is_case_insensitive
from pressmark.migrate.options import Options, nearest_existing
from pressmark.paths import PathIndex, folded, name_violations
from pressmark.reports import ERROR, WARNING, Kind

__all__ = ["KINDS", "Collisions", "ConflictMember", "NameRules", "ObjectConflict", "PlanConflicts", "ignores_case"]

#: Errors refuse a plan, warnings do not. Collisions by case or normalisation are errors where the destination's system
#: takes such names for equal, and warnings elsewhere.
KINDS: dict[str, Kind] = {
    "equal": Kind(ERROR, "", "path collision: several objects map to the same path"),
    "inside": Kind(ERROR, "", "path collision: the path of one object is inside the path of another"),
    "case": Kind(ERROR, "", "paths or names differ only in case, or in case and Unicode normalisation"),
    "normalization": Kind(ERROR, "", "paths or names differ only in Unicode normalisation"),
    "refused-name": Kind(ERROR, "", "the target system does not allow the name or its length"),
    "reserved": Kind(ERROR, "", "the path is reserved by the store"),
    "unmapped": Kind(ERROR, "", "the layout cannot map the identifier to a path"),
    "identifier-fixed": Kind(ERROR, "", "the object contains its identifier, which cannot be changed"),
    "files-several": Kind(ERROR, "", "a Vitro store holds objects of exactly one file"),
    "map-unknown": Kind(ERROR, "", "the identifier in the map is not in the source"),
    "improper": Kind(ERROR, "", "the source object does not conform to its specification"),
    "space": Kind(ERROR, "", "not enough space on the destination file system"),
    "inodes": Kind(ERROR, "", "not enough inodes on the destination file system"),
    "unreadable": Kind(WARNING, "", "the object, or a part of it, cannot be read"),
    "left-out": Kind(WARNING, "", "the destination format cannot hold a part of the object"),
    "missing": Kind(WARNING, "", "the identifier in the list is not in the source"),
    "list-repeated": Kind(WARNING, "", "the list contains an identifier more than once; the object is migrated once"),
    "stray": Kind(WARNING, "", "a file or directory in the source belongs to no object; it is not migrated"),
    "layout-0011": Kind(WARNING, "", "extension 0011 is registered for paths inside objects, not for storage roots"),
    "gone": Kind(WARNING, "", "an object of an earlier run is no longer in the source"),
}
# Target systems that take names for equal which differ in case or normalisation.
_FOLDING = frozenset({"windows", "all"})
#: Kind, path and reason.
ObjectConflict = tuple[str, str, str]
# So many members of a collision are listed.
_LISTED = 1000
_TOLD = 3
_encode = json.JSONEncoder(separators=(",", ":")).encode


class ConflictMember(NamedTuple):
    """An object that takes part.

    :ivar source_id: its identifier in the source; :data:`None` where it has none
    :ivar source: its place there
    :ivar target: its place in the destination, or the path of its file there
    """

    source_id: str | None
    source: str
    target: str | None = None


class PlanConflicts:
    """The files ``refused.jsonl`` and ``warnings.jsonl`` of a plan; a context manager.

    :param folder: the work folder

    :ivar errors: how many there are of each kind
    :ivar warnings: likewise
    :ivar path: of ``refused.jsonl``
    """

    def __init__(self, folder: str) -> None:
        self.errors: Counter[str] = Counter()
        self.warnings: Counter[str] = Counter()
        self.path = os.path.join(folder, "refused.jsonl")
        self._first: list[str] = []
        self._files: dict[str, BinaryIO] = {}
        for severity, name in ((ERROR, self.path), (WARNING, os.path.join(folder, "warnings.jsonl"))):
            self._files[severity] = open(name, "wb", opener=new_file)  # noqa: SIM115  # closed in the end

    def __enter__(self) -> PlanConflicts:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.close()

    def add(
        self,
        kind: str,
        members: Sequence[ConflictMember] = (),
        message: str = "",
        *,
        count: int | None = None,
        severity: str | None = None,
    ) -> None:
        """Note one.

        :param members: the objects concerned
        :param count: how many they are, where not all are given
        """
        known = KINDS[kind]
        severity = severity or known.severity
        number = len(members) if count is None else count
        record = {
            "kind": kind,
            "severity": severity,
            "count": number,
            "message": message or known.meaning,
            "objects": [one._asdict() for one in members],
        }
        self._files[severity].write(_encode(record).encode() + b"\n")
        (self.errors if severity == ERROR else self.warnings)[kind] += 1
        if severity == ERROR and len(self._first) < _TOLD:
            self._first.append(_line(kind, members, number, message or known.meaning))

    def reason(self) -> str:
        """Return in one line what is refused."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.errors.items()))
        more = "; …" if sum(self.errors.values()) > len(self._first) else ""
        return f"refused ({kinds}): {'; '.join(self._first)}{more}; all of it is listed in {self.path}"


def _line(kind: str, members: Sequence[ConflictMember], count: int, message: str) -> str:
    if not members:
        return message
    names = " and ".join(quoted(one.source if one.source_id is None else one.source_id) for one in members[:2])
    others = f" and {count - 2} more" if count > 2 else ""
    at = f" at {quoted(members[0].target)}" if members[0].target is not None else ""
    return f"{kind}: {names}{others}{at}: {message}"


class NameRules:
    """What the target system takes as names: of objects' places and of the files in them.

    :param options: of the migration
    """

    def __init__(self, options: Options) -> None:
        self._profile = options.profile
        self._root_length = len(os.fsencode(options.destination))
        #: Whether names that differ only in case or normalisation are one name there.
        self.ignores_case = ignores_case(options)

    def conflicts_of(self, objects: Sequence[Sequence[str]]) -> list[ObjectConflict | None]:
        """Return the first fault of the paths of each object, :data:`None` where there is none."""
        found_conflicts: list[ObjectConflict | None] = [None] * len(objects)
        if self.ignores_case:
            found_conflicts = [self._folded(paths) for paths in objects]
        every = list(chain.from_iterable(objects))
        refused = name_violations(every, self._profile, root_length=self._root_length, first=len(every))
        if refused.first:
            ends = list(accumulate(map(len, objects)))
            for found in reversed(refused.first):
                found_conflicts[bisect_right(ends, found.number)] = "refused-name", found.path, found.reason
        return found_conflicts

    @staticmethod
    def _folded(paths: Sequence[str]) -> ObjectConflict | None:
        """Return two paths of one object, of files or of directories above them, that are one to the target system."""
        seen: dict[bytes, str] = {}
        told_apart: set[str] = set()
        for path in paths:
            while path and path not in told_apart:
                other = seen.setdefault(folded(encode_fs(path)), path)
                if other != path:
                    kind = "normalization" if other.casefold() != path.casefold() else "case"
                    return kind, path, f"{quoted(other)} is the same name there"
                told_apart.add(path)
                path = path.rpartition("/")[0]
        return None


def ignores_case(options: Options) -> bool:
    """Return whether names are equal, to the target system, that differ in case or normalisation."""
    return options.profile in _FOLDING or is_case_insensitive(os.fsencode(nearest_existing(options.destination)))


class Collisions:
    """The places of all objects, compared on the disk; a context manager.

    :param folder: the work folder
    """

    def __init__(self, folder: str, memory: int) -> None:
        self._index = PathIndex(Path(folder), memory=memory)

    def __enter__(self) -> Collisions:
        self._index.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._index.__exit__(kind, value, traceback)

    def add(self, members: Sequence[ConflictMember]) -> None:
        """Take in more objects."""
        self._index.add(
            [one.target or "" for one in members], [_encode([one.source_id, one.source]) for one in members]
        )

    def add_conflicts(self, found: PlanConflicts, folding: bool) -> None:
        """Note every collision.

        :param folding: whether the target system takes names for equal that differ in case or normalisation
        """
        for collision in self._index.collisions(first=_LISTED):
            members = []
            for member in collision.members:
                identifier, source = json.loads(member.label)
                members.append(ConflictMember(identifier, source, member.path))
            kind = collision.kind
            if kind == "inside" and not folding and not collision.exact:
                kind = "case"
            binds = folding or kind in ("equal", "inside")
            found.add(kind, members, count=collision.count, severity=ERROR if binds else WARNING)
