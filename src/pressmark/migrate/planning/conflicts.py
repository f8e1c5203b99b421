"""Conflicts and warnings of a plan, each with a stable kind and its objects."""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import accumulate, chain
from typing import BinaryIO, NamedTuple

from pressmark.errors import quoted
from pressmark.fs.atomic import new_file
from pressmark.fs.names import encode_fs, is_case_insensitive
from pressmark.migrate.options import Options, nearest_existing
from pressmark.migrate.workdir import REFUSED, WARNINGS
from pressmark.paths import PathIndex, folded, name_violations
from pressmark.reports import ERROR, WARNING, Kind

__all__ = ["KINDS", "ConflictMember", "NameRules", "ObjectConflict", "PlanConflicts", "add_paths", "first_collision"]

#: Errors refuse a plan, warnings do not. Collisions by case or normalization are errors if the target system ignores
#: case or normalization, and warnings otherwise.
KINDS: dict[str, Kind] = {
    "equal": Kind(ERROR, "", "path collision: several objects map to the same path"),
    "inside": Kind(ERROR, "", "path collision: the path of one object is inside the path of another"),
    "case": Kind(ERROR, "", "paths or names differ only in case, or in case and Unicode normalization"),
    "normalization": Kind(ERROR, "", "paths or names differ only in Unicode normalization"),
    "refused-name": Kind(ERROR, "", "the target system does not allow the name or its length"),
    "reserved": Kind(ERROR, "", "the path is reserved by the store"),
    "unmapped": Kind(ERROR, "", "the layout cannot map the identifier to a path"),
    "identifier-fixed": Kind(ERROR, "", "the object contains its identifier, which cannot be changed"),
    "files-several": Kind(ERROR, "", "an object in a Vitro store must be exactly one file"),
    "map-unknown": Kind(ERROR, "", "the identifier in the map is not in the source"),
    "improper": Kind(ERROR, "", "the source object does not conform to its specification"),
    "space": Kind(ERROR, "", "not enough space on the destination file system"),
    "inodes": Kind(ERROR, "", "not enough inodes on the destination file system"),
    "unreadable": Kind(WARNING, "", "the object, or a part of it, cannot be read"),
    "left-out": Kind(WARNING, "", "the destination does not support a part of the object"),
    "missing": Kind(WARNING, "", "the identifier in the list is not in the source"),
    "version-missing": Kind(WARNING, "", "the object does not have the version to migrate; it is not migrated"),
    "list-repeated": Kind(WARNING, "", "the list contains an identifier more than once; the object is migrated once"),
    "stray": Kind(WARNING, "", "a file or directory in the source does not belong to any object; it is not migrated"),
    "layout-0011": Kind(WARNING, "", "extension 0011 is registered for paths inside objects, not for storage roots"),
    "gone": Kind(WARNING, "", "an object of an earlier run is no longer in the source"),
}
# Target systems that ignore case and normalization of names.
_IGNORING_CASE = frozenset({"windows", "all"})
#: Kind, path and reason.
ObjectConflict = tuple[str, str, str]
# Objects of a collision in its list, and conflicts in the message of the plan.
_LISTED = 1000
_IN_MESSAGE = 3
_encode = json.JSONEncoder(separators=(",", ":")).encode


class ConflictMember(NamedTuple):
    """An object of a conflict.

    :ivar source_id: the identifier in the source; :data:`None` if it cannot be read
    :ivar source: the path in the source
    :ivar target: the path in the destination of the object, or of one of its files
    """

    source_id: str | None
    source: str
    target: str | None = None


class PlanConflicts:
    """The files ``refused.jsonl`` and ``warnings.jsonl`` of a plan.

    :param folder: the work folder
    :param resources: the files are open until these are closed

    :ivar errors: number of errors of each kind
    :ivar warnings: number of warnings of each kind
    :ivar path: of ``refused.jsonl``
    """

    def __init__(self, folder: str, resources: ExitStack) -> None:
        self.errors: Counter[str] = Counter()
        self.warnings: Counter[str] = Counter()
        self.path = os.path.join(folder, REFUSED)
        self._first: list[str] = []
        self._files: dict[str, BinaryIO] = {}
        for severity, name in ((ERROR, self.path), (WARNING, os.path.join(folder, WARNINGS))):
            file = open(name, "wb", opener=new_file)  # noqa: SIM115  # closed by resources
            self._files[severity] = resources.enter_context(file)

    def add(
        self,
        kind: str,
        members: Sequence[ConflictMember] = (),
        message: str = "",
        *,
        count: int | None = None,
        severity: str | None = None,
    ) -> None:
        """Write a conflict or a warning.

        :param members: its objects
        :param message: the meaning of the kind by default
        :param count: the total number of objects, if ``members`` is incomplete
        :param severity: default: the severity of the kind
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
        if severity == ERROR and len(self._first) < _IN_MESSAGE:
            self._first.append(_line(kind, members, number, message or known.meaning))

    def add_collisions(self, paths: PathIndex, folding: bool) -> None:
        """Write every collision.

        :param paths: of all objects, added by :func:`add_paths`
        :param folding: whether the target system ignores case or normalization
        """
        for collision in paths.collisions(first=_LISTED):
            members = []
            for member in collision.members:
                identifier, _, source = member.label.rpartition("\0")
                members.append(ConflictMember(identifier, source, member.path))
            kind = collision.kind
            if kind == "inside" and not folding and not collision.exact:
                kind = "case"
            binds = folding or kind in ("equal", "inside")
            self.add(kind, members, count=collision.count, severity=ERROR if binds else WARNING)

    def reason(self) -> str:
        """Return the reason for refusing the plan, in one line."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.errors.items()))
        more = "; …" if sum(self.errors.values()) > len(self._first) else ""
        return f"refused ({kinds}): {'; '.join(self._first)}{more}; see {self.path}"


def _line(kind: str, members: Sequence[ConflictMember], count: int, message: str) -> str:
    if not members:
        return message
    names = " and ".join(quoted(one.source if one.source_id is None else one.source_id) for one in members[:2])
    others = f" and {count - 2} more" if count > 2 else ""
    at = f" at {quoted(members[0].target)}" if members[0].target is not None else ""
    return f"{kind}: {names}{others}{at}: {message}"


def add_paths(paths: PathIndex, members: Sequence[ConflictMember]) -> None:
    """Add the paths of objects to an index, with the objects as labels."""
    paths.add([one.target or "" for one in members], [f"{one.source_id}\0{one.source}" for one in members])


class NameRules:
    """The rules of the target system for the names of objects and of their files.

    :param options: options of the migration
    :ivar ignores_case: whether the target system ignores case or normalization of names
    """

    def __init__(self, options: Options) -> None:
        self._profile = options.profile
        self._root_length = len(os.fsencode(options.destination))
        there = os.fsencode(nearest_existing(options.destination))
        self.ignores_case = options.profile in _IGNORING_CASE or is_case_insensitive(there)

    def conflicts_of(self, objects: Sequence[Sequence[str]]) -> list[ObjectConflict | None]:
        """Return the first conflict among the paths of each object; :data:`None` for objects without conflict."""
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
        """Return the first path of an object that differs from another one only in case or normalization."""
        collision = first_collision(paths, folded)
        if collision is None:
            return None
        path, other = collision
        kind = "normalization" if other.casefold() != path.casefold() else "case"
        return kind, path, f"{quoted(other)} is the same name on the target system; rename one of them"


def first_collision(paths: Iterable[str], key: Callable[[bytes], bytes]) -> tuple[str, str] | None:
    """Return the first path, or directory above one, with the key of another, and that other."""
    seen: dict[bytes, str] = {}
    distinct: set[str] = set()
    for path in paths:
        while path and path not in distinct:
            other = seen.setdefault(key(encode_fs(path)), path)
            if other != path:
                return path, other
            distinct.add(path)
            path = path.rpartition("/")[0]
    return None
