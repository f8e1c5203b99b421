"""Walk the files of a bag.

Directories are entered by descriptor, and each symbolic link is resolved. A link to a file or directory of the bag is
followed, with a warning. A link that leads outside is a problem and is not followed unless the caller trusts links.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from pressmark.bagit.bag_directory import STAGING, BagFiles, FileEntry
from pressmark.bagit.problems import problem
from pressmark.fs.names import decode_fs
from pressmark.fs.trees import LINKED
from pressmark.paths.folding import folded
from pressmark.reports import WARNING, Problem

__all__ = ["LINKS", "BagEntry", "Exclusion", "SeenNames", "UnreadableDirectories", "walk"]

LINKS = ("inside", "trusted")
# Number of names that are sorted at once. A larger directory is returned in several sorted runs, to bound memory.
TOGETHER = 1 << 16
# What several links lead to is limited to LINKED names, and as many as a link costs for each name that the walk reads
# for the first time.
# A link behind a link to where another link led already costs as much as this number of names: such links multiply.
LINK_COST = 256  # names


class BagEntry(NamedTuple):
    """A file or directory of a bag.

    :ivar path: relative to the base directory, including the names of links
    :ivar real: the path without links; :data:`None` if a trusted link led out of the bag
    :ivar kind: ``file`` or ``directory``; empty if it can be neither read nor entered, as ``fault`` explains
    :ivar size: size of a file in bytes; otherwise -1
    :ivar fault: the problem of the entry, which can be a warning; :data:`None` if it has no problem
    """

    path: bytes
    real: bytes | None
    kind: str
    size: int = -1
    fault: Problem | None = None


class Exclusion(NamedTuple):
    """The files and directories that a walk leaves out.

    :ivar matches: returns whether a name is left out
    :ivar on_match: called with each entry that is left out, whose kind can also be ``link``, ``special`` or
        ``unreadable``
    :ivar one_file_system: leave out directories on other file systems than the base directory
    """

    matches: Callable[[str], object]
    on_match: Callable[[BagEntry], object] = lambda _entry: None
    one_file_system: bool = False


def walk(
    base: BagFiles,
    *,
    links: str = "inside",
    exclusion: Exclusion | None = None,
    order: Callable[[bytes], Any] | None = None,
) -> Iterator[BagEntry]:
    """Yield every file and directory below ``base``, each directory before its content.

    The names of a directory are sorted by their bytes, directories among files. The leftovers of an interrupted change
    are reported but not entered.

    :param links: ``"inside"`` follows links that stay in the bag, ``"trusted"`` all links
    :param exclusion: names to leave out; a directory is left out with everything in it
    :param order: returns the sort key of a name in the base directory. With it, each directory is sorted as a whole,
        in memory
    """
    return _Walk(base, links == "trusted", exclusion, order).found()


Fact = tuple[bytes, str, int]
Identity = tuple[int, int]


class _Walk:
    def __init__(
        self,
        base: BagFiles,
        trusted: bool,
        exclusion: Exclusion | None,
        order: Callable[[bytes], Any] | None,
    ) -> None:
        self._base = base
        self._exclusion = exclusion
        self._order = order
        self._trusted = trusted
        self._left = LINKED
        self._is_over = False
        # Directories that links led to.
        self._linked: set[Identity] = set()

    def found(self) -> Iterator[BagEntry]:
        """Yield all entries, depth first."""
        status = self._base.status(b"")
        # The open directories: only a link or a mount can lead back to one of them.
        above: list[Identity] = [(status.st_dev, status.st_ino)]
        levels = [self._names(b"", b"", is_repeated=False)]
        # For each of them: is it behind a link, and behind one to where another link led already?
        behind = [(False, False)]
        while levels:
            found = next(levels[-1], None)
            if found is None:
                levels.pop()
                above.pop()
                behind.pop()
                continue
            if found.kind != "directory":
                yield found
                continue
            try:
                status = self._status(found)
            except OSError as error:
                yield _unreadable(found.path, error)
                continue
            identity = (status.st_dev, status.st_ino)
            limits = self._exclusion
            if limits is not None and limits.one_file_system and status.st_dev != above[0][0]:
                limits.on_match(found)
                continue
            is_link = found.fault is not None
            is_loop = identity in above
            is_again = is_loop or (is_link and identity in self._linked)
            is_behind, is_repeated = behind[-1]
            if is_behind and is_link and is_again:
                self._left -= LINK_COST
            if is_loop:
                yield BagEntry(found.path, found.real, "", fault=problem("link-loop", found.path))
                continue
            yield found
            if is_link:
                self._linked.add(identity)
            above.append(identity)
            behind.append((is_behind or is_link, is_repeated or is_again))
            levels.append(self._names(found.path, found.real, behind[-1][1]))

    def _names(self, path: bytes, real: bytes | None, is_repeated: bool) -> Iterator[BagEntry]:
        """Yield the entries of one directory.

        :param is_repeated: it is behind a link to where another link led already
        """
        prefix = path + b"/" if path else b""
        below = real + b"/" if real else real
        facts = self._facts(path, real)
        order = self._order
        key = None if order is None or path else lambda fact: order(fact[0])
        together_at_most = TOGETHER if order is None else None
        seen = SeenNames()
        try:
            while together := sorted(islice(facts, together_at_most), key=key, reverse=True):
                while together:
                    name, kind, size = together.pop()
                    if self._exclusion is not None and self._leaves_out(self._exclusion, prefix + name):
                        found = BagEntry(prefix + name, None if below is None else below + name, kind, size)
                        self._exclusion.on_match(found)
                        continue
                    if self._is_over and is_repeated:
                        return
                    self._left += -1 if is_repeated else LINK_COST
                    if self._left < 0 and is_repeated:
                        self._is_over = True
                        yield BagEntry(prefix + name, None, "", fault=problem("links-too-many", prefix + name))
                        return
                    yield self._one(prefix + name, None if below is None else below + name, kind, size)
                    if not seen.add(folded(name)):
                        yield BagEntry(prefix + name, None, "", fault=problem("name-clash", prefix + name))
        except OSError as error:
            yield _unreadable(path, error)

    @staticmethod
    def _leaves_out(exclusion: Exclusion, path: bytes) -> bool:
        return path != STAGING and bool(exclusion.matches(decode_fs(path.rpartition(b"/")[2])))

    def _facts(self, path: bytes, real: bytes | None) -> Iterator[Fact]:
        """Yield the names in a directory with their types and sizes."""
        if real is not None:
            yield from map(self._fact, self._base.scan(real))
            return
        with os.scandir(os.fsdecode(os.path.join(self._base.path, path))) as entries:
            yield from map(self._fact, entries)

    def _fact(self, entry: FileEntry) -> Fact:
        name = os.fsencode(entry.name)
        try:
            if entry.is_symlink():
                return name, "link", -1
            if entry.is_file(follow_symlinks=False):
                return name, "file", entry.stat(follow_symlinks=False).st_size
            return name, "directory" if entry.is_dir(follow_symlinks=False) else "special", -1
        except OSError:  # deleted meanwhile, or the file system fails
            return name, "unreadable", -1

    def _one(self, path: bytes, real: bytes | None, kind: str, size: int) -> BagEntry:
        """Return the entry of a name."""
        if kind == "file":
            return BagEntry(path, real, kind, size)
        if kind == "link":
            return self._link(path, real)
        if path == STAGING:
            return BagEntry(path, real, "", fault=self._unfinished())
        if kind == "directory":
            return BagEntry(path, real, kind)
        return BagEntry(path, real, "", fault=problem(f"file-{kind}", path))

    def _unfinished(self) -> Problem:
        """Return the problem of the hidden directory of a change: an error if names were moved, or could have been."""
        from pressmark.fs.changes import JOURNAL, UNDO  # few bags have the directory

        journals = (b"%b/%b" % (STAGING, name) for name in (JOURNAL, UNDO))
        if any(self._base.resolve(journal).kind != "dangling" for journal in journals):
            return problem("change-unfinished", STAGING)
        message = "a change is in progress, or left this directory behind, which the next change removes"
        return problem("change-unfinished", STAGING, message, severity=WARNING)

    def _link(self, path: bytes, real: bytes | None) -> BagEntry:
        """Return the entry of a symbolic link."""
        target = self._base.resolve(real) if real is not None else None
        if target is None or (target.kind == "outside" and self._trusted):
            return self._trusted_link(path)
        if target.kind in ("file", "directory") and target.status is not None:
            note = problem("link-inside", path, found=os.fsdecode(target.path))
            return BagEntry(
                path, target.path, target.kind, target.status.st_size if target.kind == "file" else -1, note
            )
        return BagEntry(path, real, "", fault=problem(_LINK_KINDS[target.kind], path))

    def _trusted_link(self, path: bytes) -> BagEntry:
        full = os.path.join(self._base.path, path)
        message = "symbolic link to a target outside the bag; followed because links are trusted"
        note = problem("link-outside", path, message, severity="warning")
        try:
            status = os.stat(full)
        except OSError:
            return BagEntry(path, None, "", fault=problem("link-dangling", path))
        if stat.S_ISREG(status.st_mode):
            return BagEntry(path, None, "file", status.st_size, note)
        if stat.S_ISDIR(status.st_mode):
            return BagEntry(path, None, "directory", fault=note)
        return BagEntry(path, None, "", fault=problem("file-special", path))

    def _status(self, found: BagEntry) -> os.stat_result:
        if found.real is None:
            return os.stat(os.path.join(self._base.path, found.path))
        return self._base.status(found.real)


class UnreadableDirectories:
    """What a walk could not list: nothing is known about the files that manifests list there."""

    def __init__(self) -> None:
        self._faults: dict[bytes, Problem] = {}
        self._hidden: Counter[bytes] = Counter()

    def add(self, fault: Problem) -> None:
        """Add the fault of an entry that may be a directory."""
        self._faults.setdefault(os.fsencode(fault.path), fault)

    def hides(self, path: bytes) -> bool:
        """Return whether a listed file that was not found is one of the entries or in one, which counts it."""
        if not self._faults or path in self._faults:
            return bool(self._faults)
        above = path
        while above:
            above = above.rpartition(b"/")[0]
            if above in self._faults:
                self._hidden[above] += 1
                return True
        return False

    def problems(self) -> Iterator[Problem]:
        """Yield the problem of each directory, with the number of listed files in it."""
        for path, fault in self._faults.items():
            if count := self._hidden[path]:
                files = "1 listed file in it was" if count == 1 else f"{count:,} listed files in it were"
                fault = fault._replace(message=f"{fault.message}; {files} not checked")
            yield fault


class SeenNames:
    """The names of a directory, as a file system that ignores case and normalization distinguishes them."""

    def __init__(self) -> None:
        self._keys: set[bytes] = set()
        self._many: Any = None

    def add(self, key: bytes) -> bool:
        """Add a key, and return whether it is new."""
        if self._many is None:
            if key in self._keys:
                return False
            self._keys.add(key)
            if len(self._keys) >= TOGETHER:
                from pressmark.bagit.manifest_index import path_index  # few directories are that large

                self._many = path_index()
                for one in self._keys:
                    self._many.add(one, 0, False)
                self._keys.clear()
            return True
        if self._many.find(key):
            return False
        self._many.add(key, 0, False)
        return True


_LINK_KINDS = {
    "outside": "link-outside",
    "dangling": "link-dangling",
    "loop": "link-dangling",
    "special": "file-special",
    "unreadable": "file-unreadable",
}


def _unreadable(path: bytes, error: OSError) -> BagEntry:
    return BagEntry(path, None, "", fault=problem("file-unreadable", path, error.strerror or str(error)))
