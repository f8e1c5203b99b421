"""The walk of a Pairtree: every object, and every name outside of objects, in the order of bytes.

A kernel reads most directories, many at a time and on several threads. Directories that need a special rule are
deferred to this module, one at a time. Encapsulating directories are only opened to check whether their content can be
read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import repeat

from pressmark import _kernels
from pressmark.errors import IdentifierError, ObjectError, PathError, quoted_path
from pressmark.fs.names import decode_fs, encode_fs, is_junk_directory
from pressmark.fs.staging import LOCK
from pressmark.fs.trees import DirectoryEntry
from pressmark.fs.walk import ordered_tree
from pressmark.layouts import Pairtree, pairtree_dialects as dialects
from pressmark.reports import Problem
from pressmark.stores.directories.store_directory import StoreDirectory
from pressmark.stores.exceptions import store_errors
from pressmark.stores.objects import OnProblem, StoreObject
from pressmark.stores.pairtree.object_directory import (
    REPAIRING,
    REPLACED,
    RESERVED,
    ROOT,
    WORK_DIRECTORY,
    Contents,
    contents,
    encapsulate,
    take_back,
    unreached,
)
from pressmark.stores.problems import problem
from pressmark.stores.recheck import Item
from pressmark.stores.stored_object import status_of
from pressmark.stores.walked_store import StoreWalk
from pressmark.threads import require_use, resolve_threads

__all__ = ["Walk", "Work"]

# Directories that a thread reads before it returns results: a few milliseconds and kilobytes.
BUDGET = 2048
# Maximal number of results that wait for those before them.
WAITING = 16_384
SHOWN_NAMES = 5


@dataclass
class Work:
    """Directories to read, with everything below them.

    :ivar ppaths: relative to the root, in order
    """

    ppaths: list[str]

    def cut(self, threads: int) -> tuple[Work, Work | None]:
        """Return a share for each thread, and one to spare: see :func:`pressmark.fs.walk.ordered_tree`."""
        share = len(self.ppaths) if threads == 1 else -(-len(self.ppaths) // (threads + 1))
        left = self.ppaths[share:]
        return (Work(self.ppaths[:share]), Work(left)) if left else (self, None)


# Results of a part of the tree, or work still to be done.
Part = list[Item] | Work


class Walk(StoreWalk):
    """One walk of a tree.

    :param directory: the directory that contains pairtree_root
    :param layout: layout that decodes the paths
    :param dialect: dialect of the tree; :data:`None` for the specification
    :param follow: follow symbolic links
    :param ignore: globs of names to ignore
    :ivar tree: the directory pairtree_root
    :ivar tree_directory: what is in it
    """

    work_name = WORK_DIRECTORY

    def __init__(
        self,
        directory: StoreDirectory,
        layout: Pairtree,
        *,
        dialect: str | None = None,
        follow: bool = True,
        ignore: Sequence[str] = (),
    ) -> None:
        self.directory = directory
        self.tree_directory = directory.below(encode_fs(ROOT))
        super().__init__(directory.path(b""), self.tree_directory.path(b""), ignore)
        self.is_read_only = directory.is_remote
        self._layout = layout
        self._dialect = dialect
        self._follow = follow
        self._kernels = _kernels.active

    # --- in order -------------------------------------------------------------------------------------------------

    def objects(
        self,
        threads: int | None = None,
        on_problem: OnProblem | None = None,
        items: Iterable[Item] | None = None,
    ) -> Iterator[StoreObject]:
        """Yield the objects, in the order of the bytes of the ppaths' names.

        Memory grows only with the number of ppaths that are not canonical.
        """
        others: dict[str, str] = {}
        with store_errors(self.base):
            for record in super().objects(threads, on_problem, items):
                yield self._with_duplicates(record, others) if record.problems else record

    def items(self, threads: int | None = None) -> Iterator[Item]:
        yield from self._beside()
        count = resolve_threads(threads)
        walk = copy(self)
        with self.tree_directory.ahead() as walk.tree_directory:
            first, below = walk._looked_at("")
            yield from first
            yield from walk._walk(below, count)

    def again(self, item: Item) -> list[Item]:
        """Return the object at the path of an item now, or everything there if the item is a problem."""
        items, below = self._looked_at(decode_fs(encode_fs(item.path)).removeprefix(ROOT).lstrip("/"))
        if isinstance(item, StoreObject):
            return [one for one in items if encode_fs(one.path) == encode_fs(item.path)]
        return [*items, *self._walk(below, 1)]

    def _with_duplicates(self, record: StoreObject, others: dict[str, str]) -> StoreObject:
        """Add the problem that another ppath has the same identifier; one of the two is not canonical."""
        if not any(found.kind == "not-canonical" for found in record.problems):
            return record
        assert record.id is not None
        canonical = next(found.expected for found in record.problems if found.kind == "not-canonical")
        other = others.setdefault(record.id, record.path)
        if not self.is_object(other.removeprefix(f"{ROOT}/")):
            other = others[record.id] = record.path  # removed meanwhile
        if canonical is not None and self.is_object(canonical.removeprefix(f"{ROOT}/")):
            other = canonical
        if other == record.path:
            return record
        message = f"{other} has the same identifier; compare both, and move one of them"
        found = problem("duplicate-id", encode_fs(record.path), message, expected=canonical, found=other)
        return record._replace(problems=(*record.problems, found))

    def _walk(self, below: Work, threads: int) -> Iterator[Item]:
        if self.tree_directory.is_remote:
            # Keys are listed ahead in the order of the walk.
            waiting = below.ppaths[::-1]
            while waiting:
                require_use()
                found, below = self._looked_at(waiting.pop())
                yield from found
                waiting += reversed(below.ppaths)
            return
        for items in ordered_tree([below], self._look_through, threads=threads, ahead=WAITING):
            yield from items

    # --- many directories -----------------------------------------------------------------------------------------

    def _look_through(self, work: Work) -> list[Part]:
        """Read directories and those below them, within the budget; return the results and the remaining work."""
        parts: list[Part] = []
        ppaths = work.ppaths
        budget = BUDGET
        while ppaths and budget > 0:
            plain = next((n for n, ppath in enumerate(ppaths) if not ppath.rpartition("/")[2].isascii()), len(ppaths))
            if not plain:
                self._defer(ppaths[0], parts)
                ppaths = ppaths[1:]
                budget -= 1
                continue
            packed, _ = self._kernels.ByteColumn.from_texts(ppaths[:plain])
            proper, names, rest = self._kernels.scan_pairtree(self.tree, packed, self._follow, budget)
            left = rest.to_texts()
            # The number of directories read is at least the number of results.
            budget = 0 if left else budget - max(len(proper), plain)
            ppaths = left + ppaths[plain:]
            self._take_in(proper.to_texts(), names.to_texts(), parts)
        if ppaths:
            parts.append(Work(ppaths))
        return parts

    def _take_in(self, ppaths: list[str], names: list[str], parts: list[Part]) -> None:
        """Add the kernel's results to ``parts``: objects in batches, and deferred directories where they belong."""
        # An ignored name, or junk, may be the only one that the kernel has seen.
        ignored = {index for index, name in enumerate(names) if is_junk_directory(name)}
        if self.ignore:
            ignored.update(index for index, name in enumerate(names) if self.is_ignored(name))
        if "" not in names and not ignored:
            self._append(parts, self._proper(ppaths, names))
            return
        start = 0
        for index, name in enumerate(names):
            if not name or index in ignored:
                self._append(parts, self._proper(ppaths[start:index], names[start:index]))
                # The kernel has read the directories below a name, but not those below a deferred directory.
                self._defer(ppaths[index], parts, descend=not name)
                start = index + 1
        self._append(parts, self._proper(ppaths[start:], names[start:]))

    @staticmethod
    def _append(parts: list[Part], items: list[Item]) -> None:
        last = parts[-1] if parts else None
        if isinstance(last, list):
            last += items
        elif items:
            parts.append(items)

    def _defer(self, ppath: str, parts: list[Part], *, descend: bool = True) -> None:
        require_use()
        items, below = self._looked_at(ppath)
        self._append(parts, items)
        if below.ppaths and descend:
            parts.append(below)

    def _proper(self, ppaths: list[str], names: list[str]) -> list[Item]:
        """Return the properly encapsulated objects of a batch."""
        if not ppaths:
            return []
        paths = [f"{ROOT}/{ppath}" for ppath in ppaths]
        identifiers = self._plain_identifiers(ppaths)
        if identifiers is not None:
            # Calling the NamedTuple takes twice as long.
            make = partial(tuple.__new__, StoreObject)
            unreadable = map(self._unreadable_in, paths, names) if self.readable else repeat(())
            no_change = (repeat(None), repeat(None), repeat(False))
            return list(map(make, zip(identifiers, paths, repeat(True), names, unreadable, *no_change)))
        items: list[Item] = []
        for ppath, path, name in zip(ppaths, paths, names, strict=True):
            identifier, problems = self.identified(ppath)
            items.append(StoreObject(identifier, path, True, name, (*problems, *self._unreadable_in(path, name))))
        return items

    def _unreadable_among(self, path: str, entries: Contents) -> tuple[Problem, ...]:
        """Return a problem for each unreadable file in the object of a directory; empty unless requested."""
        members = [decode_fs(entry.name) for entry in entries.members if entry.kind in ("directory", "file")]
        return self._unreadable_in(path, *members, *map(decode_fs, entries.ours))

    def _unreadable_in(self, directory: str, *names: str) -> tuple[Problem, ...]:
        if not self.readable:
            return ()
        links = "follow" if self._follow else "refuse"
        found: list[Problem] = []
        for name in names:
            path = encode_fs(f"{directory}/{name}")
            below = path.partition(b"/")[2]
            found += self.tree_directory.find_unreadable(below, path, links=links, ignored=self.is_ignored)
        return tuple(found)

    def _plain_identifiers(self, ppaths: list[str]) -> list[str] | None:
        """Return the identifiers of paths; :data:`None` if any of them has a problem."""
        if self._dialect is not None:
            return None
        try:
            identifiers = self._layout.unmap(ppaths)
        except PathError:
            return None
        # Only escapes have several spellings, and only escaped bytes are not ASCII.
        if "^" not in "".join(ppaths):
            return identifiers
        everything = "".join(identifiers)
        if not everything.isascii():
            try:
                everything.encode()
            except UnicodeEncodeError:
                return None
        return identifiers if self._layout.map_ids(identifiers) == ppaths else None

    # --- identifiers ----------------------------------------------------------------------------------------------

    def identified(self, ppath: str) -> tuple[str | None, list[Problem]]:
        """Return the identifier of a ppath, and the problems of both."""
        path = encode_fs(f"{ROOT}/{ppath}")
        if self._dialect is not None:
            try:
                identifier = self._layout.prefix + dialects.read(self._dialect, ppath)
            except dialects.DialectError as refused:
                return None, [problem(refused.kind, path, refused.reason)]
            return identifier, self._not_utf8(identifier, path)
        try:
            identifier = self._layout.unmap_path(ppath)
        except PathError:
            try:
                # Other programs leave characters that cleaning changes.
                identifier, _ = self._layout.split_path(ppath)
            except PathError as error:
                written = ", ".join(dialects.recognised(ppath))
                return None, [problem("undecodable", path, error.reason, found=written or None)]
        problems = self._not_utf8(identifier, path)
        try:
            canonical = self._layout.map_id(identifier)
        except IdentifierError as error:
            return identifier, [*problems, problem("not-canonical", path, error.reason)]
        if canonical != ppath:
            message = f"the identifier maps to {quoted_path(f'{ROOT}/{canonical}')}"
            written = ", ".join(dialects.recognised(ppath))
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

    # --- the object at a ppath ----------------------------------------------------------------------------------------

    def contents(self, ppath: str) -> Contents | None:
        """Return the content of a ppath's last directory; :data:`None` if it does not exist."""
        if self.link(ppath) is not None:
            return None
        try:
            return self._scanned(ppath)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            if self.tree_directory.is_absent(encode_fs(ppath)):
                return None
            raise

    def is_object(self, ppath: str) -> bool:
        """Return whether a ppath is that of an object.

        :raises OSError: its directory cannot be read
        """
        entries = self.contents(ppath)
        return entries is not None and bool(entries.members or entries.ours)

    def record_at(self, ppath: str) -> StoreObject | None:
        entries = self.contents(ppath)
        if entries is None or not (entries.members or entries.ours):
            return None
        return self._object(ppath, encode_fs(f"{ROOT}/{ppath}" if ppath else ROOT), entries)

    def unreadable(self, record: StoreObject) -> tuple[Problem, ...]:
        try:
            entries = self.contents(record.path.removeprefix(ROOT).lstrip("/"))
        except OSError as error:
            return (problem("unreadable", encode_fs(record.path), error.strerror or str(error)),)
        return () if entries is None else self._unreadable_among(record.path, entries)

    def link(self, ppath: str) -> str | None:
        """Return the path of the first symbolic link above a directory that a walk does not follow."""
        link = self.tree_directory.first_link(encode_fs(ppath))
        if link is not None and self._follow:
            link = self._loop(encode_fs(ppath))
        return None if link is None else f"{ROOT}/{decode_fs(link)}"

    def _loop(self, ppath: bytes) -> bytes | None:
        """Return the first part of a ppath that is a symbolic link to a directory above it."""
        at = b""
        above = [status_of(self.tree)]
        for name in ppath.split(b"/"):
            at = os.path.join(at, name)
            path = os.path.join(self.tree, at)
            status = status_of(path)
            if status is None:
                return None
            if os.path.islink(path) and any(one is not None and os.path.samestat(status, one) for one in above):
                return at
            above.append(status)
        return None

    def refuse_links(self, identifier: str | bytes, ppath: str) -> None:
        """Refuse to remove files behind a symbolic link, which may be another store's.

        :raises ObjectError: a directory above the object is a symbolic link
        """
        link = self.tree_directory.first_link(encode_fs(ppath))
        if link is not None:
            where = quoted_path(f"{ROOT}/{decode_fs(link)}")
            what = f"{where} is a symbolic link, behind which nothing is removed or replaced"
            way_out = "change the object where the link leads to, or replace the link with its target"
            raise ObjectError(self.root, identifier, "link", f"{what}; {way_out}")

    def finish(self, identifier: str | bytes, ppath: str) -> Contents:
        """Complete an interrupted change of one object, and return the content of its last directory; the caller holds
        the lock.

        :raises ObjectError: the object's files cannot be determined
        :raises OSError: the directory does not exist or cannot be read, or the change cannot be completed
        """
        entries = self._scanned(ppath)
        links = unreached(entries, ppath)
        if links:
            link = quoted_path(f"{ROOT}/{ppath}/{decode_fs(links[0])}")
            reason = "is a symbolic link without a target, possibly a branch of the tree"
            way_out = "mount its target"
            raise ObjectError(self.root, identifier, "unreadable", f"{link} {reason}; {way_out}")
        if not entries.ours:
            return entries
        directory = os.path.join(self.tree, encode_fs(ppath))
        if REPLACED in entries.ours:
            take_back(directory)
            entries = self._scanned(ppath)
        if REPAIRING in entries.ours:
            encapsulate(directory, entries.members)
        return self._scanned(ppath)

    def _scanned(self, ppath: str) -> Contents:
        return contents(self.tree_directory.scan(encode_fs(ppath), follow=self._follow), ppath, ignore=self.ignore)

    # --- one directory --------------------------------------------------------------------------------------------

    def _looked_at(self, ppath: str) -> tuple[list[Item], Work]:
        """Return the content of one directory: the object, problems, and the directories below."""
        encoded = encode_fs(ppath)
        path = encode_fs(f"{ROOT}/{ppath}" if ppath else ROOT)
        try:
            entries = self._scanned(ppath)
        except FileNotFoundError:
            return [], Work([])  # removed since its name was read
        except OSError as error:
            return [problem("unreadable", path, error.strerror or str(error))], Work([])
        items: list[Item] = []
        if entries.members or entries.ours:
            items.append(self._object(ppath, path, entries))
        for entry in entries.reserved:
            items += self._reserved(entry, path + b"/" + entry.name)
        items += [problem(kind, path + b"/" + name) for name, kind in entries.strays]
        items += [problem("link", path + b"/" + entry.name) for entry in entries.links]
        below = []
        for entry in entries.below:
            if entry.is_link and self._leads_up(encoded, entry.name):
                items.append(problem("link-loop", path + b"/" + entry.name))
            else:
                below.append(f"{ppath}/{decode_fs(entry.name)}" if ppath else decode_fs(entry.name))
        if ppath and not (items or below or entries.reserved or entries.ignored):
            items.append(problem("empty", path))
        return items, Work(below)

    def _reserved(self, reserved: DirectoryEntry, path: bytes) -> list[Item]:
        if reserved.name != WORK_DIRECTORY or reserved.is_link:
            return [problem("reserved", path)]
        left = dict(self.directory.leftovers(path))
        problems: list[Item] = []
        try:
            for entry in self.directory.scan(path):
                if entry.name in left:
                    problems.append(problem(left[entry.name], path + b"/" + entry.name))
                elif entry.kind != "directory" and entry.name != LOCK:
                    problems.append(problem("reserved", path + b"/" + entry.name))
        except FileNotFoundError:
            pass  # the last run has ended
        except NotADirectoryError:
            return [problem("reserved", path)]
        return problems

    def _object(self, ppath: str, path: bytes, entries: Contents) -> StoreObject:
        """Return the object in a directory."""
        members = entries.members
        encapsulation = None
        if not ppath:
            identifier: str | None = None
            problems = [
                problem(
                    "empty-id",
                    path,
                    f"no identifier: {_listed(members)}; move the object to the path of its identifier",
                )
            ]
        else:
            identifier, problems = self.identified(ppath)
            problems += [problem("unfinished", path, found=decode_fs(name)) for name in entries.ours]
            short = [entry for entry in members if entry.kind == "directory" and len(decode_fs(entry.name)) <= 2]
            if REPAIRING in entries.ours:
                pass  # an interrupted repair
            elif len(members) > 1:
                problems.append(problem("split-end", path, f"{len(members)} files and directories: {_listed(members)}"))
            elif members and members[0].kind == "directory" and not short:
                encapsulation = None if entries.ours else decode_fs(members[0].name)
            elif members and not short and members[0].kind != "link":
                problems.append(problem("bare-file", path, f"single file: {_listed(members)}"))
            if short and REPAIRING not in entries.ours:
                problems.append(problem("post-morty", path, f"the ppath ends here: {_listed(short)}"))
        for entry in members:
            if entry.kind in ("link", "dangling"):
                kind = "link" if entry.kind == "link" else "link-dangling"
                problems.append(problem(kind, path + b"/" + entry.name))
        problems += self._unreadable_among(decode_fs(path), entries)
        shown = f"{ROOT}/{ppath}" if ppath else ROOT
        return StoreObject(identifier, shown, encapsulation is not None, encapsulation, tuple(problems))

    def _leads_up(self, ppath: bytes, name: bytes) -> bool:
        """Return whether a symbolic link leads to a directory above it."""
        path = os.path.join(self.tree, ppath)
        try:
            target = os.stat(os.path.join(path, name))
            while True:
                if os.path.samestat(target, os.stat(path)):
                    return True
                if len(path) <= len(self.tree):
                    return False
                path = os.path.dirname(path)
        except OSError:
            return False

    def _beside(self) -> Iterator[Item]:
        """Yield everything beside pairtree_root that does not belong to the Pairtree."""
        for entry in self.directory.scan(b""):
            name = decode_fs(entry.name)
            if entry.name == WORK_DIRECTORY:
                yield from self._reserved(entry, entry.name)
            elif not entry.name.startswith(RESERVED) and not self.is_ignored(name):
                yield problem("beside", entry.name)


def _listed(entries: Sequence[DirectoryEntry]) -> str:
    names = [decode_fs(entry.name) for entry in entries[:SHOWN_NAMES]]
    return ", ".join(map(repr, names)) + (", …" if len(entries) > SHOWN_NAMES else "")
