"""The difference between two versions of an OCFL object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Changes", "compare_states"]


class Changes(NamedTuple):
    """The differences between two versions, by logical path; each tuple is sorted.

    :ivar added: files that are only in the later version
    :ivar removed: files that are only in the earlier version
    :ivar changed: files whose content differs
    :ivar renamed: old and new logical path of each file with the same content under another path
    :ivar unchanged: files with the same content
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    unchanged: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether both versions have the same files."""
        return not (self.added or self.removed or self.changed or self.renamed)

    def counts(self) -> dict[str, int]:
        """Return the number of files of each kind."""
        return {kind: len(files) for kind, files in self._asdict().items()}

    def record(self) -> dict[str, object]:
        """Return the differences as a JSON-compatible dictionary; ``unchanged`` is a number."""
        return {**self._asdict(), "unchanged": len(self.unchanged)}


def compare_states(before: Mapping[str, str], after: Mapping[str, str]) -> Changes:
    """Return the changes from one version to another.

    A renamed file is one that was removed and one that was added with the same digest; several are paired in the order
    of their paths.

    :param before: the digest of each logical path, in upper or lower case
    :param after: the same of the later version
    """
    common = sorted(before.keys() & after.keys())
    unchanged = tuple(path for path in common if before[path].lower() == after[path].lower())
    changed = tuple(path for path in common if before[path].lower() != after[path].lower())
    gone: dict[str, list[str]] = {}  # by digest
    for path in sorted(before.keys() - after.keys(), reverse=True):
        gone.setdefault(before[path].lower(), []).append(path)
    added, renamed = [], []
    for path in sorted(after.keys() - before.keys()):
        if paths := gone.get(after[path].lower()):
            renamed.append((paths.pop(), path))
        else:
            added.append(path)
    removed = sorted(path for paths in gone.values() for path in paths)
    return Changes(tuple(added), tuple(removed), changed, tuple(sorted(renamed)), unchanged)
