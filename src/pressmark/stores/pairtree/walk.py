"""The walk of a Pairtree: every object, and every name outside of objects, in the order of bytes.

A kernel reads most directories, many at a time and on several threads. Directories that need a special rule are
deferred to this module, one at a time. Encapsulating directories are only opened to check whether their content can be
read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import NamedTuple

from pressmark import _kernels
from pressmark.errors import IdentifierError, PathError
from pressmark.fs.names import decode_fs, encode_fs, glob_matcher, is_junk_directory
from pressmark.fs.staging import LOCK, kind_of_leftover
from pressmark.fs.trees import DirectoryEntry, scan
from pressmark.fs.walk import ordered_tree
from pressmark.layouts import Pairtree
from pressmark.reports import Problem
from pressmark.stores.objects import StoreObject
from pressmark.stores.pairtree import dialects
from pressmark.stores.problems import problem
from pressmark.stores.recheck import Item, abandoned
from pressmark.threads import require_use, resolve_threads

__all__ = [
    *("OBJECT", "REPAIRING", "REPLACED", "RESERVED", "ROOT", "WORK_DIRECTORY"),
    *("Contents", "Walk", "Work", "contents", "is_morty"),
]

ROOT = "pairtree_root"
RESERVED = b"pairtree"
# Names of Pressmark; they are reserved, so that no other program takes their content for an object.
WORK_DIRECTORY = b"pairtree_pressmark"
REPAIRING = b"pairtree_pressmark-obj"  # the temporary name of a repaired object's directory
REPLACED = b"pairtree_pressmark-old"  # holds a replaced object where two names cannot be exchanged
# The encapsulating directory of a repaired object (section 2).
OBJECT = b"obj"

# Directories that a thread reads before it returns results: a few milliseconds and kilobytes.
BUDGET = 2048
# Maximal number of results that wait for those before them.
WAITING = 16_384
SHOWN_NAMES = 5


@dataclass
class Work:
    """Directories to read, with everything below them.

    :ivar places: relative to the root, in order
    """

    places: list[str]

    def cut(self, threads: int) -> tuple[Work, Work | None]:
        """Return a share for each thread, and one to spare: see :func:`pressmark.fs.walk.ordered_tree`."""
        share = len(self.places) if threads == 1 else -(-len(self.places) // (threads + 1))
        left = self.places[share:]
        return (Work(self.places[:share]), Work(left)) if left else (self, None)


# Results of a part of the tree, or work still to be done.
Part = list[Item] | Work


class Contents(NamedTuple):
    """The content of a directory of the tree.

    :ivar members: names that do not extend the ppath: they belong to the object
    :ivar below: directories of one or two characters, which extend the ppath
    :ivar reserved: names that begin with ``pairtree``
    :ivar ours: names of an interrupted change by Pressmark
    :ivar ignored: ignored names
    :ivar strays: files that belong to no object, with the kinds of their problems
    :ivar links: symbolic links that are not followed and could extend the ppath, so that they belong to no object
    """

    members: list[DirectoryEntry]
    below: list[DirectoryEntry]
    reserved: list[DirectoryEntry]
    ours: list[bytes]
    ignored: list[DirectoryEntry]
    strays: list[tuple[bytes, str]]
    links: list[DirectoryEntry]


def contents(directory: bytes, place: str, *, follow: bool = True, ignore: Sequence[str] = ()) -> Contents:
    """Classify the entries of a directory of the tree.

    :param place: its path below pairtree_root; empty for pairtree_root itself
    :param follow: follow symbolic links
    :param ignore: globs of names to ignore, unless they extend a ppath
    :raises OSError: the directory cannot be read
    """
    ignored = glob_matcher(ignore) if ignore else None
    extends = not is_morty(place)
    # An encapsulating directory with the name of the object is the object, even if systems also use this name.
    cleaned = place.replace("/", "")
    found = Contents([], [], [], [], [], [], [])
    for entry in scan(directory, follow=follow):
        name = decode_fs(entry.name)
        if entry.name.startswith(RESERVED):
            if entry.name in (REPAIRING, REPLACED) and entry.kind == "directory" and not entry.is_link:
                found.ours.append(entry.name)
            else:
                found.reserved.append(entry)
        elif entry.kind == "directory" and len(name) <= 2 and extends:
            found.below.append(entry)
        elif ignored is not None and ignored(name):
            found.ignored.append(entry)
        elif entry.kind == "link" and len(name) <= 2 and extends:
            found.links.append(entry)
        elif entry.is_junk and name != cleaned:
            found.strays.append((entry.name, "junk"))
        elif entry.kind in ("file", "special") and not place:
            found.strays.append((entry.name, "root-file"))
        else:
            found.members.append(entry)
    return found


def is_morty(path: str) -> bool:
    """Return whether the last name of ``path`` has one character."""
    return len(path.rpartition("/")[2]) == 1


class Walk:
    """One walk of a tree.

    :param base: the directory that contains pairtree_root
    :param layout: layout that decodes the paths
    :param dialect: dialect of the tree; :data:`None` for the specification
    :param follow: follow symbolic links
    :param ignore: globs of names to ignore
    :param readable: report unreadable files in objects
    """

    def __init__(
        self,
        base: bytes,
        layout: Pairtree,
        *,
        dialect: str | None = None,
        follow: bool = True,
        ignore: Sequence[str] = (),
        readable: bool = False,
    ) -> None:
        self._base = base
        self._root = os.path.join(base, encode_fs(ROOT))
        self._layout = layout
        self._dialect = dialect
        self._follow = follow
        self._ignore = tuple(ignore)
        self._ignored = glob_matcher(ignore) if ignore else None
        self._readable = readable
        self._kernels = _kernels.active

    # --- in order -------------------------------------------------------------------------------------------------

    def items(self, threads: int | None = None) -> Iterator[Item]:
        """Yield objects and problems in order.

        :param threads: number of threads that read directories; :data:`None` or 0 for one per core
        """
        yield from self._beside()
        first, below = self._looked_at("")
        yield from first
        yield from self._walk(below, resolve_threads(threads))

    def again(self, item: Item) -> list[Item]:
        """Read the place of an item again: the object, or everything there if the item is a problem."""
        found, below = self._looked_at(decode_fs(encode_fs(item.path)).removeprefix(ROOT).lstrip("/"))
        if isinstance(item, StoreObject):
            return [one for one in found if encode_fs(one.path) == encode_fs(item.path)]
        return [*found, *self._walk(below, 1)]

    def _walk(self, below: Work, threads: int) -> Iterator[Item]:
        for items in ordered_tree([below], self._look_through, threads=threads, ahead=WAITING):
            yield from items

    # --- many directories -----------------------------------------------------------------------------------------

    def _look_through(self, work: Work) -> list[Part]:
        """Read directories and those below them, within the budget; return the results and the remaining work."""
        parts: list[Part] = []
        places = work.places
        budget = BUDGET
        while places and budget > 0:
            plain = next((n for n, place in enumerate(places) if not place.rpartition("/")[2].isascii()), len(places))
            if not plain:
                self._defer(places[0], parts)
                places = places[1:]
                budget -= 1
                continue
            packed, _ = self._kernels.ByteColumn.from_texts(places[:plain])
            found, names, rest = self._kernels.scan_pairtree(self._root, packed, self._follow, budget)
            left = rest.to_texts()
            # The number of directories read is at least the number of results.
            budget = 0 if left else budget - max(len(found), plain)
            places = left + places[plain:]
            self._take_in(found.to_texts(), names.to_texts(), parts)
        if places:
            parts.append(Work(places))
        return parts

    def _take_in(self, places: list[str], names: list[str], parts: list[Part]) -> None:
        """Add the kernel's results to ``parts``: objects in batches, and deferred directories in their place."""
        # An ignored name, or junk, may be the only one that the kernel has seen.
        ignored = {index for index, name in enumerate(names) if is_junk_directory(name)}
        if self._ignored:
            ignored.update(index for index, name in enumerate(names) if self._ignored(name))
        if "" not in names and not ignored:
            self._append(parts, self._proper(places, names))
            return
        start = 0
        for index, name in enumerate(names):
            if not name or index in ignored:
                self._append(parts, self._proper(places[start:index], names[start:index]))
                # The kernel has read the directories below a name, but not those below a deferred directory.
                self._defer(places[index], parts, descend=not name)
                start = index + 1
        self._append(parts, self._proper(places[start:], names[start:]))

    @staticmethod
    def _append(parts: list[Part], items: list[Item]) -> None:
        last = parts[-1] if parts else None
        if isinstance(last, list):
            last += items
        elif items:
            parts.append(items)

    def _defer(self, place: str, parts: list[Part], *, descend: bool = True) -> None:
        require_use()
        items, below = self._looked_at(place)
        self._append(parts, items)
        if below.places and descend:
            parts.append(below)

    def _proper(self, places: list[str], names: list[str]) -> list[Item]:
        """Return the properly encapsulated objects of a batch."""
        if not places:
            return []
        paths = [f"{ROOT}/{place}" for place in places]
        identifiers = self._plain_identifiers(places)
        if identifiers is not None:
            # Calling the NamedTuple takes twice as long.
            make = partial(tuple.__new__, StoreObject)
            unreadable = map(self._unreadable_in, paths, names) if self._readable else repeat(())
            no_change = (repeat(None), repeat(None), repeat(False))
            return list(map(make, zip(identifiers, paths, repeat(True), names, unreadable, *no_change)))
        found: list[Item] = []
        for place, path, name in zip(places, paths, names, strict=True):
            identifier, problems = self.identified(place)
            found.append(StoreObject(identifier, path, True, name, (*problems, *self._unreadable_in(path, name))))
        return found

    def unreadable_in(self, path: str, found: Contents) -> tuple[Problem, ...]:
        """Return a problem for each unreadable file in the object of a directory; empty unless requested."""
        members = [decode_fs(entry.name) for entry in found.members if entry.kind in ("directory", "file")]
        return self._unreadable_in(path, *members, *map(decode_fs, found.ours))

    def _unreadable_in(self, path: str, *names: str) -> tuple[Problem, ...]:
        if not self._readable:
            return ()
        from pressmark.stores.readability import find_unreadable  # only a check needs it

        links = "follow" if self._follow else "refuse"
        places = (encode_fs(f"{path}/{name}") for name in names)
        return tuple(
            found
            for place in places
            for found in find_unreadable(os.path.join(self._base, place), place, links=links, ignored=self._ignored)
        )

    def _plain_identifiers(self, places: list[str]) -> list[str] | None:
        """Return the identifiers of paths; :data:`None` if any of them has a problem."""
        if self._dialect is not None:
            return None
        try:
            identifiers = self._layout.unmap_paths(places)
        except PathError:
            return None
        # Only escapes have several spellings, and only escaped bytes are not ASCII.
        if "^" not in "".join(places):
            return identifiers
        everything = "".join(identifiers)
        if not everything.isascii():
            try:
                everything.encode()
            except UnicodeEncodeError:
                return None
        return identifiers if self._layout.map_ids(identifiers) == places else None

    # --- identifiers ----------------------------------------------------------------------------------------------

    def identified(self, place: str) -> tuple[str | None, list[Problem]]:
        """Return the identifier of a ppath, and the problems of both."""
        path = encode_fs(f"{ROOT}/{place}")
        if self._dialect is not None:
            try:
                identifier = self._layout.prefix + dialects.read(self._dialect, place)
            except dialects.DialectError as refused:
                return None, [problem(refused.kind, path, refused.reason)]
            return identifier, self._not_utf8(identifier, path)
        try:
            identifier = self._layout.unmap_path(place)
        except PathError:
            try:
                # Other programs leave characters that cleaning changes.
                identifier, _ = self._layout.split_path(place)
            except PathError as error:
                written = ", ".join(dialects.recognised(place))
                return None, [problem("undecodable", path, error.reason, found=written or None)]
        problems = self._not_utf8(identifier, path)
        try:
            canonical = self._layout.map_id(identifier)
        except IdentifierError as error:
            return identifier, [*problems, problem("not-canonical", path, error.reason)]
        if canonical != place:
            message = f"the identifier maps to {ROOT}/{canonical}"
            written = ", ".join(dialects.recognised(place))
            problems.append(
                problem("not-canonical", path, message, expected=f"{ROOT}/{canonical}", found=written or None)
            )
        return identifier, problems

    @staticmethod
    def _not_utf8(identifier: str, path: bytes) -> list[Problem]:
        try:
            identifier.encode()
        except UnicodeEncodeError:
            return [problem("not-utf8", path)]
        return []

    # --- one directory --------------------------------------------------------------------------------------------

    def _looked_at(self, place: str) -> tuple[list[Item], Work]:
        """Return the content of one directory: the object, problems, and the directories below."""
        place_bytes = encode_fs(place)
        directory = os.path.join(self._root, place_bytes)
        path = encode_fs(f"{ROOT}/{place}" if place else ROOT)
        try:
            found = contents(directory, place, follow=self._follow, ignore=self._ignore)
        except FileNotFoundError:
            return [], Work([])  # removed since its name was read
        except OSError as error:
            return [problem("unreadable", path, error.strerror or str(error))], Work([])
        items: list[Item] = []
        if found.members or found.ours:
            items.append(self._object(place, path, found))
        for entry in found.reserved:
            items += self._reserved(os.path.join(directory, entry.name), path + b"/" + entry.name)
        items += [problem(kind, path + b"/" + name) for name, kind in found.strays]
        items += [problem("link", path + b"/" + entry.name) for entry in found.links]
        below = []
        for entry in found.below:
            if entry.is_link and self._leads_up(place_bytes, entry.name):
                items.append(problem("link-loop", path + b"/" + entry.name))
            else:
                below.append(f"{place}/{decode_fs(entry.name)}" if place else decode_fs(entry.name))
        if place and not (items or below or found.reserved or found.ignored):
            items.append(problem("empty", path))
        return items, Work(below)

    def _reserved(self, directory: bytes, path: bytes) -> list[Item]:
        if os.path.basename(directory) != WORK_DIRECTORY or os.path.islink(directory):
            return [problem("reserved", path)]
        left = {os.path.basename(name) for name in abandoned(directory)}
        found: list[Item] = []
        try:
            for entry in scan(directory, follow=False):
                if entry.name in left:
                    kind = kind_of_leftover(os.path.join(directory, entry.name))
                    found.append(problem(kind, path + b"/" + entry.name))
                elif entry.kind != "directory" and entry.name != LOCK:
                    found.append(problem("reserved", path + b"/" + entry.name))
        except FileNotFoundError:
            pass  # the last run has ended
        except NotADirectoryError:
            return [problem("reserved", path)]
        return found

    def _object(self, place: str, path: bytes, found: Contents) -> StoreObject:
        """Return the object in a directory."""
        members = found.members
        encapsulation = None
        if not place:
            identifier: str | None = None
            problems = [
                problem(
                    "empty-id",
                    path,
                    f"no identifier: {_listed(members)}; move the object to the path of its identifier",
                )
            ]
        else:
            identifier, problems = self.identified(place)
            problems += [problem("unfinished", path, found=decode_fs(name)) for name in found.ours]
            short = [entry for entry in members if entry.kind == "directory" and len(decode_fs(entry.name)) <= 2]
            if REPAIRING in found.ours:
                pass  # an interrupted repair
            elif len(members) > 1:
                problems.append(problem("split-end", path, f"{len(members)} files and directories: {_listed(members)}"))
            elif members and members[0].kind == "directory" and not short:
                encapsulation = None if found.ours else decode_fs(members[0].name)
            elif members and not short and members[0].kind != "link":
                problems.append(problem("bare-file", path, f"single file: {_listed(members)}"))
            if short and REPAIRING not in found.ours:
                problems.append(problem("post-morty", path, f"the ppath ends here: {_listed(short)}"))
        for entry in members:
            if entry.kind in ("link", "dangling"):
                kind = "link" if entry.kind == "link" else "link-dangling"
                problems.append(problem(kind, path + b"/" + entry.name))
        problems += self.unreadable_in(decode_fs(path), found)
        shown = f"{ROOT}/{place}" if place else ROOT
        return StoreObject(identifier, shown, encapsulation is not None, encapsulation, tuple(problems))

    def _leads_up(self, place: bytes, name: bytes) -> bool:
        """Return whether a symbolic link leads to a directory above it."""
        path = os.path.join(self._root, place)
        try:
            target = os.stat(os.path.join(path, name))
            while True:
                if os.path.samestat(target, os.stat(path)):
                    return True
                if len(path) <= len(self._root):
                    return False
                path = os.path.dirname(path)
        except OSError:
            return False

    def _beside(self) -> Iterator[Item]:
        """Yield everything beside pairtree_root that does not belong to the Pairtree."""
        for entry in scan(self._base, follow=False):
            name = decode_fs(entry.name)
            if entry.name == WORK_DIRECTORY:
                yield from self._reserved(os.path.join(self._base, entry.name), entry.name)
            elif not entry.name.startswith(RESERVED) and not (self._ignored is not None and self._ignored(name)):
                yield problem("beside", entry.name)


def _listed(entries: Sequence[DirectoryEntry]) -> str:
    names = [decode_fs(entry.name) for entry in entries[:SHOWN_NAMES]]
    return ", ".join(map(repr, names)) + (", …" if len(entries) > SHOWN_NAMES else "")
