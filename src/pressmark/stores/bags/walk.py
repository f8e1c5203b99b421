"""The walk of a folder of bags: every bag, everything else in the folder, and the identifiers of bags."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import ClassVar

from pressmark.bagit.bag_directory import BagDirectory
from pressmark.bagit.bag_info import BagInfo, unfolded
from pressmark.bagit.bag_tags import read_tag_files
from pressmark.errors import BagError, IdentifierError, ObjectError, PathError, quoted_path
from pressmark.fs.durable import exists, is_directory
from pressmark.fs.file_errors import kind_of_mode
from pressmark.fs.names import decode_fs, encode_fs, first_link, is_absent, is_junk, too_long
from pressmark.fs.staging import kind_of_leftover
from pressmark.fs.trees import DirectoryEntry, scan
from pressmark.layouts import Layout, Pairtree
from pressmark.reports import Problem
from pressmark.stores.bags import archives
from pressmark.stores.bags.bag_index import NAME, BagIndex, key_of
from pressmark.stores.bags.folder_config import CONFIG
from pressmark.stores.exceptions import check_identifier, store_errors
from pressmark.stores.objects import OnProblem, StoreObject
from pressmark.stores.placement import FirstObjects, first_directories
from pressmark.stores.problems import problem
from pressmark.stores.recheck import Item, abandoned
from pressmark.stores.walked_store import StoreWalk

__all__ = [
    *("IDENTIFIER", "REPLACED", "WORK_DIRECTORY"),
    *("BagWalk", "is_bag", "is_bag_directory", "is_reserved", "record_of", "within"),
]

WORK_DIRECTORY = b".pressmark-work"
# The suffix of a bag that is being replaced, where two names cannot be exchanged.
REPLACED = b".pressmark-old"
IDENTIFIER = "External-Identifier"
_PAIRTREE = Pairtree()


class BagWalk(StoreWalk):
    """A walk of a folder of bags. Only tag files are read.

    :param base: the folder
    :param identifiers: where identifiers of bags are: ``external``, ``name`` or ``layout``
    :param layout: maps identifiers to the paths of bags
    :param ignore: globs of names to ignore outside of bags
    :ivar first_objects: the first bags
    :ivar is_remote: whether the folder is in object storage, where no index is kept
    :ivar index: the paths of bags that are not where new ones would be; it is filled on first use
    """

    is_remote: ClassVar[bool] = False

    def __init__(self, base: bytes, identifiers: str, layout: Layout | None, ignore: Sequence[str]) -> None:
        super().__init__(base, base, ignore)
        self._identifiers = identifiers
        self._layout = layout
        is_kept = layout is None and not self.ignore
        self.first_objects = FirstObjects(self.first_bags, self._is_misplaced)
        self.index = BagIndex(base, self.work_directory, is_kept, is_bag_directory, self.read)

    @property
    def work_directory(self) -> bytes:
        return os.path.join(self.base, WORK_DIRECTORY)

    def scan(self, path: bytes) -> list[DirectoryEntry]:
        """Return the entries of a directory, sorted.

        :raises OSError: it cannot be read
        """
        return scan(os.path.join(self.base, path) if path else self.base, follow=False)

    def is_tree(self, path: bytes) -> bool:
        """Return whether a bag is a directory, and not an archive.

        :raises OSError: this cannot be determined
        """
        return is_directory(os.path.join(self.base, path))

    def is_fine(self, item: Item) -> bool:
        path = encode_fs(item.path)
        return (isinstance(item, StoreObject) and item.proper) or path.startswith(WORK_DIRECTORY) or not path

    def objects(
        self,
        threads: int | None = None,
        on_problem: OnProblem | None = None,
        items: Iterable[Item] | None = None,
    ) -> Iterator[StoreObject]:
        """Yield the bags, in the order of the bytes of their names.

        The first path of each identifier is kept in memory to find duplicates.

        :param threads: no effect; bags are opened one after another
        :param items: yield the bags among these instead of all
        """
        first: dict[str, str] = {}
        with store_errors(self.base):
            for record in super().objects(threads, on_problem, items):
                yield self._with_duplicate(record, first)

    def again(self, item: Item) -> list[Item]:
        path = encode_fs(item.path)
        try:
            mode = os.lstat(os.path.join(self.base, path)).st_mode
        except (FileNotFoundError, NotADirectoryError):
            own = path.removesuffix(REPLACED)
            if own == path or isinstance(item, Problem):
                return []
            # The walk saw only the old bag; the new one may be in place now.
            return self.again(item._replace(path=decode_fs(own)))
        except OSError:
            return [item]  # unknown
        kind = kind_of_mode(mode) or "file"
        known = kind if kind in ("directory", "file", "link") else "special"
        return list(self._items_at([(path, known)], self.is_ignored))

    def _with_duplicate(self, record: StoreObject, first: dict[str, str]) -> StoreObject:
        """Add a problem if another existing bag has the same identifier."""
        identifier, path = record.id, record.path
        if identifier is None or first.setdefault(identifier, path) == path:
            return record
        if not self._has(encode_fs(first[identifier]), identifier):
            first[identifier] = path
            return record
        message = f"{first[identifier]} has the same identifier; change one of them"
        found = problem("duplicate-id", encode_fs(path), message, section="", found=first[identifier])
        return record._replace(proper=False, problems=(*record.problems, found))

    def _has(self, path: bytes, identifier: str) -> bool:
        """Return whether the bag at a path has the identifier, or cannot be read."""
        try:
            return self.has_identifier(path, identifier)
        except (ObjectError, OSError):
            return True

    def items(self, threads: int | None = None) -> Iterator[Item]:
        for left in abandoned(self.work_directory):
            yield problem(kind_of_leftover(left), WORK_DIRECTORY + b"/" + os.path.basename(left))
        try:
            entries = scan(self.base, follow=False)
        except FileNotFoundError:
            return
        except OSError as error:
            yield problem("unreadable", b"", error.strerror or str(error))
            return
        kept = [entry for entry in reversed(entries) if not self._is_left_out(b"", entry.name)]
        keys = self.index.keys() if self._layout is None else {}
        edited = []
        for item in self._items_at([(entry.name, entry.kind) for entry in kept], self.is_ignored):
            yield item
            if keys and isinstance(item, StoreObject) and item.id is not None:
                key = key_of(item.id)
                if keys.get(encode_fs(item.path), key) != key:
                    edited.append(item.path)
        if edited:
            yield from self._outdated(edited)

    def _outdated(self, paths: Iterable[str]) -> Iterator[Problem]:
        """Yield a problem if the index has other identifiers than the bags at some paths."""
        keys = self.index.keys(refresh=True)
        for shown in paths:
            path = encode_fs(shown)
            kind = "file" if _is_plain_file(os.path.join(self.base, path)) else "directory"
            for item in self.read(path, kind):
                if isinstance(item, Problem) or item.id is None or keys.get(path) in (None, key_of(item.id)):
                    continue
                if not self.index.is_on_disk():
                    self.index.discard()
                    return
                message = f"the identifier of {shown} was changed; repair the folder"
                yield problem("index-outdated", os.path.join(WORK_DIRECTORY, NAME), message)
                return

    def _items_at(
        self,
        waiting: list[tuple[bytes, str]],
        ignored: Callable[[str], object],
        visit: Callable[[bytes], object] = lambda _path: None,
    ) -> Iterator[Item]:
        """Yield everything at and below the waiting paths, the last one first.

        :param visit: called with the path of each directory and archive before it is read
        """
        while waiting:
            path, kind = waiting.pop()
            if kind != "directory":
                yield from self._other(path, kind, visit)
                continue
            visit(path)
            try:
                entries = self.scan(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                junk = is_junk(os.path.basename(path), directory=True)
                yield problem("junk", path) if junk else problem("unreadable", path, error.strerror or str(error))
                continue
            if is_bag(entries):
                yield from self._bag(path, entries)
                continue
            if is_junk(os.path.basename(path), directory=True):
                yield problem("junk", path)
                continue
            if not entries:
                yield problem("empty", path, "an empty directory", section="")
            below = [entry for entry in entries if not ignored(decode_fs(entry.name))]
            waiting += [(os.path.join(path, entry.name), entry.kind) for entry in reversed(below)]

    def _other(self, path: bytes, kind: str, visit: Callable[[bytes], object]) -> Iterator[StoreObject | Problem]:
        """Yield an item that is not a directory."""
        if kind == "file" and is_junk(os.path.basename(path)):
            yield problem("junk", path)
            return
        name = archives.stem(os.path.basename(path)) if kind == "file" else None
        if name is not None:
            visit(path)
            yield self._serialised(path, name, archives.describe(os.path.join(self.base, path)))
        elif kind == "link":
            yield problem("link", path, section="")
        elif kind == "special":
            yield problem("special-file", path, section="")
        else:
            yield problem("beside", path, "does not belong to any bag")

    def _serialised(self, path: bytes, name: bytes, described: archives.Described) -> StoreObject:
        """Return a serialized bag.

        :param name: its file name without the ending
        """
        problems = [found._replace(path=os.fsdecode(path)) for found in described.problems]
        if problems:
            # The content is unknown, whatever the name.
            return record_of(None, path, problems)
        identifier, problems = self.identified(os.path.join(os.path.dirname(path), name), described.info, path)
        return record_of(identifier, path, problems)

    def _bag(self, path: bytes, entries: Sequence[DirectoryEntry]) -> Iterator[StoreObject | Problem]:
        """Yield the bag in a directory with these entries."""
        own = path.removesuffix(REPLACED)
        problems: list[Problem] = []
        if own != path:
            try:
                is_replaced = exists(os.path.join(self.base, own))
            except OSError as error:
                yield problem("unreadable", own, error.strerror or str(error))
                return
            if is_replaced:
                yield problem("leftover", path)
                return
            problems.append(problem("unfinished", path))
        identifier, found = self._described(path, own)
        yield record_of(identifier, path, problems + found)

    def _described(self, path: bytes, own: bytes) -> tuple[str | None, list[Problem]]:
        """Return the identifier of the bag in a directory, and the problems of its tag files."""
        full = os.path.join(self.base, path)
        while True:
            problems: list[Problem] = []
            try:
                with BagDirectory(full) as base:
                    bag, _ = read_tag_files(base, problems)
                    if _leads_to(full, base.status(b"")):
                        break  # otherwise another run has replaced it
            except BagError as error:
                return None, [problem("unreadable", path, error.reason)]
            except OSError as error:
                return None, [problem("unreadable", path, error.strerror or str(error))]
        if any(one.kind == "file-unreadable" for one in problems) and not self._path_gives_identifier(own):
            return None, [within(path, found) for found in problems]
        identifier, more = self.identified(own, bag.info, path)
        return identifier, [within(path, found) for found in problems] + more

    # --- identifiers --------------------------------------------------------------------------------------------------

    def implied_identifier(self, path: bytes) -> str | None:
        """Return the identifier that a path implies without an External-Identifier."""
        if self._identifiers == "name":
            return decode_fs(path)
        if self._layout is None:
            return decode_fs(os.path.basename(path))
        try:
            return self._layout.unmap_path(path) if self._layout.reversible else None
        except PathError:
            return None

    def _path_gives_identifier(self, path: bytes) -> bool:
        """Return whether the path of a bag determines its identifier, whatever is in the bag."""
        return self._identifiers != "external" and self.implied_identifier(path) is not None

    def identified(self, stem: bytes, info: BagInfo, path: bytes) -> tuple[str | None, list[Problem]]:
        """Return a bag's identifier, and its problems.

        :param stem: without the ending of a serialized bag
        """
        if self._identifiers == "name":
            return decode_fs(stem), []
        external = list(map(unfolded, info.all(IDENTIFIER)))  # other programs fold long ones
        problems = []
        if len(external) > 1:
            message = f"{len(external)} {IDENTIFIER}s; keep one of them"
            problems.append(problem("identifier-several", path, message))
        identifier = self.implied_identifier(stem)
        if len(external) == 1 and (self._identifiers == "external" or identifier is None):
            identifier = external[0]
        if identifier is None:
            problems.append(
                problem("identifier-missing", path, f"no {IDENTIFIER}, and none can be derived from the path")
            )
        elif self._identifiers == "layout":
            problems += self._path_problems(external, identifier, stem, path)
        return identifier, problems

    def _path_problems(self, external: list[str], identifier: str, stem: bytes, path: bytes) -> list[Problem]:
        """Compare identifier and path."""
        assert self._layout is not None
        for one in (identifier, *external[:1]):
            try:
                expected = self._layout.map_id(one)
            except IdentifierError as error:
                return [problem("identifier-unplaced", path, error.reason, section="")]
            if encode_fs(expected) != stem:
                message = f"the layout maps {quoted_path(one)} to {expected}"
                return [problem("misplaced", path, message, section="", expected=expected)]
        return []

    def identifier_of(self, full: bytes, path: bytes) -> str | None:
        """Return the identifier that a bag would have at ``path``.

        :param full: its base directory or file
        :raises BagError: it cannot be read
        """
        if not os.path.isdir(full):
            name = archives.stem(os.path.basename(path)) or os.path.basename(path)
            info = archives.describe(full).info
            return self.identified(os.path.join(os.path.dirname(path), name), info, path)[0]
        with BagDirectory(full) as base:
            bag, _ = read_tag_files(base, [])
        return self.identified(path, bag.info, path)[0]

    # --- one bag ------------------------------------------------------------------------------------------------------

    def record_at(self, path: str) -> StoreObject | None:
        encoded = encode_fs(path)
        if {b"", b".", b".."} & set(encoded.split(b"/")) or first_link(self.base, encoded) is not None:
            return None
        full = os.path.join(self.base, encoded)
        kind = "directory" if is_directory(full) else "file"
        if not exists(full) or (kind == "directory" and not is_bag(scan(full, follow=False))):
            return None
        return next((one for one in self.read(encoded, kind) if isinstance(one, StoreObject)), None)

    def find(self, identifier: str, soon: bool) -> list[bytes]:
        """Return the paths of the bags with an identifier.

        :param soon: bags that other programs have just added need not be found
        :raises ObjectError: a bag cannot be read, or its path is reserved
        :raises IdentifierError: the identifier has no path in the folder
        """
        failure: IdentifierError | ObjectError | None = None
        bags: list[bytes] = []
        try:
            bags = self._bags_at(self._expected(identifier), identifier)
        except IdentifierError as error:
            failure = error
        except ObjectError as error:
            if self._layout is not None and not is_absent(self.base, encode_fs(self._layout.map_id(identifier))):
                failure = error
        if bags:
            seen = {*bags, bags[0] + REPLACED}
            others = set(map(encode_fs, self.first_objects.paths(identifier))) - seen
            bags += [path for path in sorted(others) if self.has_identifier(path, identifier)]
        elif self._layout is None or self.first_objects.misplaced(anew=not soon) is not None:
            bags = self._elsewhere(identifier, soon)
        if not bags and failure is not None and self._layout is not None:
            raise failure
        return bags

    def _expected(self, identifier: str) -> bytes:
        """Return the path where a bag is looked for first; the errors are those of :meth:`path_for`."""
        check_identifier(identifier)
        names = encode_fs(identifier).split(b"/")
        if self._identifiers == "name" and len(names) > 1 and not {b"", b".", b".."} & set(names):
            return encode_fs(identifier)  # only new bags are never in directories
        return encode_fs(self.path_for(identifier))

    def path_for(self, identifier: str | bytes) -> str:
        """Return the path of a new bag.

        :raises IdentifierError: the identifier has no path
        :raises ObjectError: the path is reserved for the folder itself
        """
        if self._layout is not None:
            path = self._layout.map_id(identifier)
        else:
            path = _PAIRTREE.clean(identifier)
            if path in ("", ".", ".."):
                raise IdentifierError(identifier, None, "no directory name can be derived from it")
        if is_reserved(encode_fs(path)):
            reason = f"path {quoted_path(path)} is reserved for the folder itself; use another layout"
            raise ObjectError(self.root, identifier, "reserved", reason)
        why = too_long(self.base, encode_fs(path) + REPLACED)
        if why is not None:
            raise ObjectError(self.root, identifier, "bad-name", f"{why}; use another layout, such as 0004")
        return path

    def _bags_at(self, path: bytes, identifier: str) -> list[bytes]:
        """Return the paths of the bags that belong at ``path`` and have the identifier."""
        # Twice, because the new bag may have been moved into place after the first check.
        candidates = (path, path + REPLACED, path)
        bags = list(islice((one for one in candidates if self.has_identifier(one, identifier)), 1))
        # By name, because a folder may have millions of entries.
        serialized = (path + ending for ending in archives.SERIALIZED)
        there = (one for one in serialized if _is_plain_file(os.path.join(self.base, one)))
        return bags + [one for one in there if self.has_identifier(one, identifier)]

    def _elsewhere(self, identifier: str, soon: bool) -> list[bytes]:
        """Return the paths of the bags with an identifier; bags of other programs may be anywhere."""
        again: list[dict[str, bool]] = [{"soon": soon}, {}, {"whole": True}]
        for options in again:
            paths = self.index.paths(identifier, **options)
            bags = [path for path in paths if self.has_identifier(path, identifier)]
            if bags or not paths:
                return bags
        return []

    def first_bags(self) -> Iterator[StoreObject]:
        """Yield the bags in the first directories, without archives, which may take long to read."""
        names = [name for name in first_directories(self.base) if not self._is_left_out(b"", name)]
        waiting = [(name, "directory") for name in reversed(names)]
        items = self._items_at(
            waiting, lambda name: self.is_ignored(name) or archives.stem(encode_fs(name)) is not None
        )
        return (one for one in items if isinstance(one, StoreObject))

    def _is_misplaced(self, record: StoreObject) -> bool:
        # Otherwise, no path is wrong: a name is an identifier, and a bag with its identifier inside may be anywhere.
        if self._layout is None or self._identifiers != "layout" or record.id is None:
            return False
        try:
            return encode_fs(self._layout.map_id(record.id)) != encode_fs(record.path).removesuffix(REPLACED)
        except IdentifierError:
            return True

    def read(self, path: bytes, kind: str, visit: Callable[[bytes], object] = lambda _path: None) -> Iterator[Item]:
        """Yield the bags and problems at and below an entry of a directory."""
        if self._is_left_out(*os.path.split(path)):
            return iter(())
        return self._items_at([(path, kind)], self.is_ignored, visit)

    def _is_left_out(self, directory: bytes, name: bytes) -> bool:
        """Return whether an entry of a directory is ignored, or the folder's own."""
        return bool(self.is_ignored(decode_fs(name))) or (not directory and name in (CONFIG, WORK_DIRECTORY))

    def has_identifier(self, path: bytes, identifier: str) -> bool:
        """Return whether the bag at ``path`` has the identifier.

        :raises ObjectError: the bag cannot be read
        :raises OSError: a file or directory of the bag cannot be read
        """
        full = os.path.join(self.base, path)
        if first_link(self.base, path) is not None:  # not followed, as in a walk
            return False
        if _is_plain_file(full):
            name = archives.stem(os.path.basename(path))
            if name is None:
                return False
            described = archives.describe(full)
            if described.refused is not None and _is_plain_file(full):  # otherwise another run has removed it
                raise described.refused
            return self._serialised(path, name, described).id == identifier
        seen: os.stat_result | None = None
        while True:
            try:
                if not is_bag(scan(full, follow=False)):
                    return False
                own, problems = self._described(path, path.removesuffix(REPLACED))
                unreadable = [one for one in problems if one.kind in ("unreadable", "file-unreadable")]
                if own is not None or not unreadable:
                    return own == identifier
                if seen is not None and _leads_to(full, seen):
                    break
                seen = os.stat(full)  # another run may have moved it
            except (FileNotFoundError, NotADirectoryError):
                return False
        reason = f"{quoted_path(unreadable[0].path)}: {unreadable[0].message}"
        raise ObjectError(self.root, identifier, "unreadable", reason)


def is_reserved(path: bytes) -> bool:
    """Return whether the folder reserves a path for itself."""
    # A file system that ignores case takes other spellings for the same names.
    names = path.lower().split(b"/")
    return any(name in (CONFIG, WORK_DIRECTORY) or name.endswith(REPLACED) for name in names)


def record_of(identifier: str | None, path: bytes, problems: Sequence[Problem]) -> StoreObject:
    """Return the record of a bag."""
    proper = not any(one.severity == "error" for one in problems)
    return StoreObject(identifier, decode_fs(path), proper, None, tuple(problems))


def within(path: bytes, found: Problem) -> Problem:
    """Return a bag's problem as one of the folder."""
    return found._replace(path=os.path.join(os.fsdecode(path), found.path) if found.path else os.fsdecode(path))


def _leads_to(path: bytes, status: os.stat_result) -> bool:
    """Return whether the file at a path has this status."""
    try:
        return os.path.samestat(os.stat(path), status)
    except FileNotFoundError:
        return False


def _is_plain_file(path: bytes) -> bool:
    """Return whether there is a regular file, and no link, at a path."""
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def is_bag(entries: Sequence[DirectoryEntry]) -> bool:
    """Return whether a directory is a bag, or was one before it lost its bagit.txt."""
    kinds = {entry.name: entry.kind for entry in entries}
    if kinds.get(b"bagit.txt") not in (None, "directory"):
        return True
    manifests = (name.startswith(b"manifest-") and name.endswith(b".txt") for name in kinds if kinds[name] == "file")
    return kinds.get(b"data") == "directory" and any(manifests)


def is_bag_directory(path: bytes) -> bool:
    """Return the result of :func:`is_bag` for a directory, which is listed only if that is necessary."""
    return any(exists(os.path.join(path, name)) for name in (b"bagit.txt", b"data")) and is_bag(
        scan(path, follow=False)
    )
