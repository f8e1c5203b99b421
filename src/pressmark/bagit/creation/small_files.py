"""The files of a directory with few small files, read in one call."""

from __future__ import annotations

from typing import Any, NamedTuple

from pressmark import _kernels
from pressmark.bagit.bag_directory import STAGING, BagDirectory
from pressmark.fixity.algorithms import ALGORITHMS

__all__ = ["SmallFile", "SmallFiles"]


class SmallFile(NamedTuple):
    """A file that was read.

    :ivar digests: hex digests by official name
    """

    size: int
    mtime_ns: int
    inode: int
    digests: dict[str, str]


class SmallFiles:
    """All files and directories below ``base``, as the kernel has read them; without links and unusual names.

    :ivar files: the files by path, in the order of a walk
    :ivar directories: each directory, and whether it is empty
    """

    def __init__(self, base: int, entries: list[tuple[bytes, Any]]) -> None:
        self._base = base
        self._entries = entries
        self.files = {path: SmallFile(*facts) for path, facts in entries if facts is not None}
        self.directories: list[tuple[bytes, bool]] = []
        if len(self.files) < len(entries):
            following = [path for path, _facts in entries[1:]] + [b""]
            for (path, facts), after in zip(entries, following, strict=True):
                if facts is None:
                    self.directories.append((path, not after.startswith(path + b"/")))

    @classmethod
    def read(cls, base: BagDirectory, algorithms: tuple[str, ...]) -> SmallFiles | None:
        """Read and hash all files; :data:`None` if they are not few and small, or anything is unusual."""
        if not isinstance(base.beneath, int):
            return None
        hashers = tuple((name, ALGORITHMS[name].make) for name in algorithms)
        entries = _kernels.active.read_small_folder(base.beneath, STAGING, hashers)
        return None if entries is None else cls(base.beneath, entries)

    def top_level(self) -> list[bytes]:
        """Return the names in the directory itself."""
        return [path for path, _facts in self._entries if b"/" not in path]

    def is_unchanged(self) -> bool:
        """Return whether the same files have the same sizes and times of modification now."""
        now = _kernels.active.read_small_folder(self._base, STAGING, (), False)
        return now is not None and _states(now) == _states(self._entries)


def _states(entries: list[tuple[bytes, Any]]) -> list[tuple[bytes, Any]]:
    return [(path, facts and facts[:3]) for path, facts in entries]
