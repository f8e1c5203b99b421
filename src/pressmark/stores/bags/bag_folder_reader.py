"""A folder of bags: each bag, a directory or a serialized bag, is an object.

::

    <root>/
    ├── .pressmark-bags.json     how identifiers are found, if specified on creation
    ├── .pressmark-work/         during a change: see :mod:`pressmark.fs.staging`
    │   └── index                of many bags: see :mod:`pressmark.stores.bags.bag_index`
    ├── ark+=13030=xt12t3/       a bag
    └── scans/2019.tar.gz        a serialized bag; bags may be in directories

=========== ==========================================================================================================
identifiers source of a bag's identifier
=========== ==========================================================================================================
external    its only ``External-Identifier``; if missing, the name of its directory. New bags are named after the
            cleaned identifier (Pairtree, section 3)
name        the name of its directory, or its path if it is in a directory
layout      the path of its directory, if the layout has an inverse; otherwise its ``External-Identifier``
=========== ==========================================================================================================

New bags are directories. A serialized bag is listed, checked, returned as one file, and removed, but never changed.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import ClassVar, Literal

from pressmark.bagit.bag_directory import BagDirectory
from pressmark.bagit.bag_info import BagInfo, unfolded
from pressmark.bagit.bag_tags import read_tag_files
from pressmark.errors import BagError, IdentifierError, LayoutConfigError, ObjectError, PathError, StoreError
from pressmark.fs.beneath import read_regular
from pressmark.fs.durable import exists, is_directory
from pressmark.fs.file_errors import kind_of_mode
from pressmark.fs.names import decode_fs, encode_fs, first_link, glob_matcher, is_absent, is_junk, too_long
from pressmark.fs.staging import kind_of_leftover
from pressmark.fs.trees import DirectoryEntry, scan
from pressmark.layouts import Layout, Pairtree, layout as layout_by_name, layout_from_config
from pressmark.reports import Problem
from pressmark.stores.bags import archives
from pressmark.stores.bags.bag_index import NAME, BagIndex, key_of
from pressmark.stores.bags.bag_object import BagObject
from pressmark.stores.exceptions import object_errors, store_errors
from pressmark.stores.objects import OnProblem, Path, StoreObject, encode_path
from pressmark.stores.placement import FirstObjects, first_directories
from pressmark.stores.problems import problem
from pressmark.stores.recheck import Item, abandoned, settled, settled_objects
from pressmark.stores.store import Store

__all__ = [
    "CONFIG",
    "IDENTIFIER",
    "REPLACED",
    "WORK_DIRECTORY",
    "BagFolderReader",
    "BagObject",
    "check_identifiers",
    "is_bag",
    "is_writable_identifier",
    "record_of",
    "within",
]

CONFIG = b".pressmark-bags.json"
WORK_DIRECTORY = b".pressmark-work"
# The suffix of a bag that is being replaced, where two names cannot be exchanged.
REPLACED = b".pressmark-old"
IDENTIFIER = "External-Identifier"
IDENTIFIERS = ("external", "name", "layout")
_CONFIG_LIMIT = 1 << 20
_PAIRTREE = Pairtree()
_PLAIN = re.compile("[!-~]{1,1000}")


def is_writable_identifier(identifier: str) -> bool:
    """Return whether a bag-info.txt can contain an identifier."""
    if _PLAIN.fullmatch(identifier):  # written as it is, on one line
        return True
    try:
        written = BagInfo([(IDENTIFIER, identifier)]).to_bytes()
        return bool(identifier) and unfolded(BagInfo.parse(written)[0].all(IDENTIFIER)[0]) == identifier
    except (BagError, ValueError):
        return False


class BagFolderReader(Store):
    """An existing folder of bags, and the bags in it.

    :param path: the directory that contains the bags
    :param identifiers: ``external``, ``name`` or ``layout``; :data:`None` for the folder's own setting, otherwise
        ``layout`` with a layout and ``external`` without
    :param layout: maps identifiers to the paths of bags
    :param algorithms: algorithms of the manifests of new bags; also an attribute
    :param info: more elements for the bag-info.txt of new bags
    :param ignore: globs of names to ignore outside of bags
    :raises StoreError: not a folder of bags, or not readable
    """

    kind: ClassVar[str] = "bags"
    unfinished_names = frozenset({CONFIG + b".new"})

    def __init__(
        self,
        path: Path,
        *,
        identifiers: Literal["external", "name", "layout"] | None = None,
        layout: Layout | None = None,
        algorithms: Iterable[str] = ("sha512",),
        info: Mapping[str, str] | None = None,
        ignore: Sequence[str] = (),
    ) -> None:
        self._base = encode_path(path)
        self.root = os.fsdecode(self._base)
        with store_errors(self._base):
            if not is_directory(self._base):
                what = "not a directory" if exists(self._base) else "No such file or directory"
                raise StoreError(self._base, f"{what}; specify the directory that contains the bags")
            if _is_bag_directory(self._base):
                raise StoreError(self._base, "the directory is a bag; specify the directory that contains it")
        said = _read_config(self._base)
        #: Whether the caller has specified the layout.
        self.layout_is_given = layout is not None
        if layout is None and identifiers in (None, "layout"):
            layout = said[1]
        self.identifiers = identifiers or ("layout" if layout is not None else said[0])
        check_identifiers(self._base, self.identifiers, layout)
        self.layout = layout_by_name("0002") if self.identifiers == "name" else layout
        self.algorithms = tuple(algorithms)
        self._info = dict(info or {})
        self._ignore = tuple(ignore)
        self.first_objects = FirstObjects(self._first_bags, self._is_misplaced)
        # The paths of bags that are not where new ones would be; filled on first use.
        work = os.path.join(self._base, WORK_DIRECTORY)
        is_kept = self.layout is None and not self._ignore
        self._index = BagIndex(self._base, work, is_kept, _is_bag_directory, self._read)

    # --- identifiers and places ---------------------------------------------------------------------------------------

    def _place(self, identifier: str | bytes) -> str:
        """Return the path of a new bag.

        :raises IdentifierError: the identifier has no path
        :raises ObjectError: the path is reserved for the folder itself
        """
        if self.layout is not None:
            place = self.layout.map_id(identifier)
        else:
            place = _PAIRTREE.clean(identifier)
            if place in ("", ".", ".."):
                raise IdentifierError(identifier, None, "no directory name can be derived from it")
        if self.is_reserved(encode_fs(place)):
            reason = f"path {place!r} is reserved for the folder itself; use another layout"
            raise ObjectError(self.root, identifier, "reserved", reason)
        why = too_long(self._base, encode_fs(place) + REPLACED)
        if why is not None:
            raise ObjectError(self.root, identifier, "bad-name", f"{why}; use another layout, such as 0004")
        return place

    @staticmethod
    def is_reserved(place: bytes) -> bool:
        # A file system that ignores case takes other spellings for the same names.
        names = place.lower().split(b"/")
        return any(name in (CONFIG, WORK_DIRECTORY) or name.endswith(REPLACED) for name in names)

    def _from_place(self, place: bytes) -> str | None:
        """Return the identifier that a path implies without an External-Identifier."""
        if self.identifiers == "name":
            return decode_fs(place)
        if self.layout is None:
            return decode_fs(os.path.basename(place))
        try:
            return self.layout.unmap_path(place) if self.layout.reversible else None
        except PathError:
            return None

    def _place_gives_identifier(self, place: bytes) -> bool:
        """Return whether the path of a bag determines its identifier, whatever is in the bag."""
        return self.identifiers != "external" and self._from_place(place) is not None

    def _identified(self, place: bytes, info: BagInfo, path: bytes) -> tuple[str | None, list[Problem]]:
        """Return a bag's identifier, and its problems.

        :param place: without the ending of a serialized bag
        """
        if self.identifiers == "name":
            return decode_fs(place), []
        given = list(map(unfolded, info.all(IDENTIFIER)))  # other programs fold long ones
        problems = []
        if len(given) > 1:
            message = f"{len(given)} {IDENTIFIER}s; keep one of them"
            problems.append(problem("identifier-several", path, message))
        identifier = self._from_place(place)
        if len(given) == 1 and (self.identifiers == "external" or identifier is None):
            identifier = given[0]
        if identifier is None:
            problems.append(
                problem("identifier-missing", path, f"no {IDENTIFIER}, and none can be derived from the path")
            )
        elif self.identifiers == "layout":
            problems += self._placed(given, identifier, place, path)
        return identifier, problems

    def _placed(self, given: list[str], identifier: str, place: bytes, path: bytes) -> list[Problem]:
        """Compare identifier and path."""
        assert self.layout is not None
        for one in (identifier, *given[:1]):
            try:
                expected = self.layout.map_id(one)
            except IdentifierError as error:
                return [problem("identifier-unplaced", path, error.reason, section="")]
            if encode_fs(expected) != place:
                message = f"the layout maps {one!r} to {expected}"
                return [problem("misplaced", path, message, section="", expected=expected)]
        return []

    # --- all bags -----------------------------------------------------------------------------------------------------

    def objects(
        self, *, threads: int | None = None, on_problem: OnProblem | None = None, ignore: Sequence[str] = ()
    ) -> Iterator[StoreObject]:
        """Yield every bag lazily, in the order of the bytes of their names.

        Only tag files are read. The first path of each identifier is kept in memory to find duplicates.

        :param threads: no effect; bags are opened one after another
        """
        first: dict[str, str] = {}
        with store_errors(self._base):
            for record in settled_objects(self._walk(ignore), partial(self._second_look, ignore), on_problem):
                yield self._with_duplicate(record, first)

    def _second_look(self, ignore: Sequence[str], item: Item) -> list[Item]:
        """Return the item of a walk, or the items in its place if another run was changing it."""
        place = encode_fs(item.path)
        if (isinstance(item, StoreObject) and item.proper) or place.startswith(WORK_DIRECTORY) or not place:
            return [item]
        return settled(item, lambda: self._again(item, ignore), os.path.join(self._base, WORK_DIRECTORY))

    def _again(self, item: Item, ignore: Sequence[str]) -> list[Item]:
        """Return the items that the walk finds in the place of an item now; empty if it no longer exists."""
        place = encode_fs(item.path)
        try:
            mode = os.lstat(os.path.join(self._base, place)).st_mode
        except (FileNotFoundError, NotADirectoryError):
            own = place.removesuffix(REPLACED)
            if own == place or isinstance(item, Problem):
                return []
            # The walk has found only the old bag; the new one may be in place now.
            return self._again(item._replace(path=decode_fs(own)), ignore)
        except OSError:
            return [item]  # unknown
        kind = kind_of_mode(mode) or "file"
        known = kind if kind in ("directory", "file", "link") else "special"
        return list(self._walk_places([(place, known)], self._ignored(ignore)))

    def _with_duplicate(self, record: StoreObject, first: dict[str, str]) -> StoreObject:
        """Add a problem if another existing bag has the same identifier."""
        identifier, place = record.id, record.path
        if identifier is None or first.setdefault(identifier, place) == place:
            return record
        if not self._has(encode_fs(first[identifier]), identifier):
            first[identifier] = place
            return record
        message = f"{first[identifier]} has the same identifier; change one of them"
        found = problem("duplicate-id", encode_fs(place), message, section="", found=first[identifier])
        return record._replace(proper=False, problems=(*record.problems, found))

    def _has(self, place: bytes, identifier: str) -> bool:
        """Return whether the bag at a path has the identifier, or cannot be read."""
        try:
            return self._is(place, identifier)
        except (ObjectError, OSError):
            return True

    def _walk(self, ignore: Sequence[str] = ()) -> Iterator[Item]:
        for left in abandoned(os.path.join(self._base, WORK_DIRECTORY)):
            yield problem(kind_of_leftover(left), WORK_DIRECTORY + b"/" + os.path.basename(left))
        try:
            entries = scan(self._base, follow=False)
        except FileNotFoundError:
            return
        except OSError as error:
            yield problem("unreadable", b"", error.strerror or str(error))
            return
        ignored = self._ignored(ignore)
        kept = [entry for entry in reversed(entries) if not self._is_ignored(b"", entry.name, ignored)]
        keys = self._index.keys() if self.layout is None else {}
        edited = []
        for item in self._walk_places([(entry.name, entry.kind) for entry in kept], ignored):
            yield item
            if keys and isinstance(item, StoreObject) and item.id is not None:
                key = key_of(item.id)
                if keys.get(encode_fs(item.path), key) != key:
                    edited.append(item.path)
        if edited:
            yield from self._outdated(edited)

    def _outdated(self, paths: Iterable[str]) -> Iterator[Problem]:
        """Yield a problem if the index has other identifiers than the bags at some paths."""
        keys = self._index.keys(refresh=True)
        for path in paths:
            place = encode_fs(path)
            kind = "file" if _is_plain_file(os.path.join(self._base, place)) else "directory"
            for item in self._read(place, kind):
                if isinstance(item, Problem) or item.id is None or keys.get(place) in (None, key_of(item.id)):
                    continue
                if not self._index.is_on_disk():
                    self._index.discard()
                    return
                message = f"the identifier of {path} was changed; repair the folder"
                yield problem("index-outdated", os.path.join(WORK_DIRECTORY, NAME), message)
                return

    def _ignored(self, ignore: Sequence[str]) -> Callable[[str], object]:
        """Return a function that returns whether a name is ignored."""
        return glob_matcher((*self._ignore, *ignore))

    def _walk_places(
        self,
        places: list[tuple[bytes, str]],
        ignored: Callable[[str], object],
        visit: Callable[[bytes], object] = lambda _place: None,
    ) -> Iterator[Item]:
        """Yield everything at and below places, the last one first.

        :param visit: called with the path of each directory and archive before it is read
        """
        while places:
            place, kind = places.pop()
            if kind != "directory":
                yield from self._found(place, kind, visit)
                continue
            visit(place)
            try:
                entries = scan(os.path.join(self._base, place), follow=False)
            except FileNotFoundError:
                continue
            except OSError as error:
                junk = is_junk(os.path.basename(place), directory=True)
                yield problem("junk", place) if junk else problem("unreadable", place, error.strerror or str(error))
                continue
            if is_bag(entries):
                yield from self._bag(place)
                continue
            if is_junk(os.path.basename(place), directory=True):
                yield problem("junk", place)
                continue
            if not entries:
                yield problem("empty", place, "an empty directory", section="")
            below = [entry for entry in entries if not ignored(decode_fs(entry.name))]
            places += [(os.path.join(place, entry.name), entry.kind) for entry in reversed(below)]

    def _found(self, place: bytes, kind: str, visit: Callable[[bytes], object]) -> Iterator[StoreObject | Problem]:
        """Yield an item that is not a directory."""
        if kind == "file" and is_junk(os.path.basename(place)):
            yield problem("junk", place)
            return
        name = archives.stem(os.path.basename(place)) if kind == "file" else None
        if name is not None:
            visit(place)
            yield self._serialised(place, name, archives.describe(os.path.join(self._base, place)))
        elif kind == "link":
            yield problem("link", place, section="")
        elif kind == "special":
            yield problem("special-file", place, section="")
        else:
            yield problem("beside", place, "does not belong to any bag")

    def _serialised(self, place: bytes, name: bytes, described: archives.Described) -> StoreObject:
        """Return a serialized bag.

        :param name: its file name without the ending
        """
        problems = [found._replace(path=place) for found in described.problems]
        if problems:
            # The content is unknown, whatever the name.
            return record_of(None, place, problems)
        identifier, problems = self._identified(os.path.join(os.path.dirname(place), name), described.info, place)
        return record_of(identifier, place, problems)

    def _bag(self, place: bytes) -> Iterator[StoreObject | Problem]:
        """Yield the bag in a directory."""
        own = place.removesuffix(REPLACED)
        problems: list[Problem] = []
        if own != place:
            try:
                is_replaced = exists(os.path.join(self._base, own))
            except OSError as error:
                yield problem("unreadable", own, error.strerror or str(error))
                return
            if is_replaced:
                yield problem("leftover", place)
                return
            problems.append(problem("unfinished", place))
        identifier, found = self._described(place, own)
        yield record_of(identifier, place, problems + found)

    def _described(self, place: bytes, own: bytes) -> tuple[str | None, list[Problem]]:
        """Return the identifier of the bag in a directory, and the problems of its tag files."""
        path = os.path.join(self._base, place)
        while True:
            problems: list[Problem] = []
            try:
                with BagDirectory(path) as base:
                    bag, _ = read_tag_files(base, problems)
                    if _leads_to(path, base.status(b"")):
                        break  # otherwise another run has replaced it
            except BagError as error:
                return None, [problem("unreadable", place, error.reason)]
            except OSError as error:
                return None, [problem("unreadable", place, error.strerror or str(error))]
        if any(one.kind == "file-unreadable" for one in problems) and not self._place_gives_identifier(own):
            return None, [within(place, found) for found in problems]
        identifier, more = self._identified(own, bag.info, place)
        return identifier, [within(place, found) for found in problems] + more

    # --- one bag ------------------------------------------------------------------------------------------------------

    def get(self, identifier: str | bytes) -> BagObject:
        """Return a bag, or a serialized bag.

        :raises ObjectError: of kind ``missing``: the folder has no such bag
        :raises IdentifierError: the identifier has no path in this folder
        """
        shown = decode_fs(identifier) if isinstance(identifier, bytes) else identifier
        with object_errors(self.root, identifier):
            place = self._find(shown)
            self._index.save()
            if place is None:
                raise self._missing(identifier)
            path = os.path.abspath(os.path.join(self._base, place))
            return BagObject(self.root, shown, path, not is_directory(path))

    def locate(self, record: StoreObject) -> BagObject:
        """Return the bag of a record of :meth:`objects`.

        :raises ObjectError: of kind ``missing``: the bag was removed
        """
        path = os.path.abspath(os.path.join(self._base, encode_fs(record.path)))
        with object_errors(self.root, record.id or ""):
            if not exists(path) or first_link(self._base, encode_fs(record.path)) is not None:
                raise ObjectError(self.root, record.id or "", "missing", f"nothing found at {record.path!r}")
            return BagObject(self.root, record.id or "", path, not is_directory(path))

    def _missing(self, identifier: str | bytes) -> ObjectError:
        what = "no bag with this identifier found"
        with suppress(IdentifierError, ObjectError):
            link = first_link(self._base, encode_fs(self._place(identifier)))
            if link is not None:
                what += f": {decode_fs(link)!r} is a symbolic link, which is not followed; replace it with its target"
        return ObjectError(self.root, identifier, "missing", what)

    def find(self, identifier: str | bytes) -> StoreObject:
        shown = decode_fs(identifier) if isinstance(identifier, bytes) else identifier
        with object_errors(self.root, identifier):
            place = self._find(shown)
            self._index.save()
            record = None if place is None else self.at(decode_fs(place))
        if record is None:
            raise self._missing(identifier)
        return record

    def at(self, path: str) -> StoreObject | None:
        place = encode_fs(path.rstrip("/"))
        if {b"", b".", b".."} & set(place.split(b"/")) or first_link(self._base, place) is not None:
            return None
        full = os.path.join(self._base, place)
        kind = "directory" if is_directory(full) else "file"
        if not exists(full) or (kind == "directory" and not is_bag(scan(full, follow=False))):
            return None
        return next((one for one in self._read(place, kind) if isinstance(one, StoreObject)), None)

    def _find(self, identifier: str, *, soon: bool = False) -> bytes | None:
        """Return the path of the bag with an identifier; :data:`None` if it does not exist.

        :param soon: bags that other programs have just added need not be found
        """
        failure: IdentifierError | ObjectError | None = None
        found: list[bytes] = []
        try:
            found = self._at(self._expected(identifier), identifier)
        except IdentifierError as error:
            failure = error
        except ObjectError as error:
            if self.layout is not None and not is_absent(self._base, encode_fs(self.layout.map_id(identifier))):
                failure = error
        if found:
            seen = {*found, found[0] + REPLACED}
            others = set(map(encode_fs, self.first_objects.paths(identifier))) - seen
            found += [place for place in sorted(others) if self._is(place, identifier)]
        elif self.layout is None or self.first_objects.misplaced(anew=not soon) is not None:
            found = self._elsewhere(identifier, soon)
        if len(found) > 1:
            raise self._duplicate(identifier, list(map(decode_fs, found)))
        if not found and failure is not None and self.layout is not None:
            raise failure
        return found[0] if found else None

    def _expected(self, identifier: str) -> bytes:
        """Return the path where a bag is looked for first; the errors are those of :meth:`_place`."""
        names = encode_fs(identifier).split(b"/")
        if self.identifiers == "name" and len(names) > 1 and not {b"", b".", b".."} & set(names):
            return encode_fs(identifier)  # only new bags are never in directories
        return encode_fs(self._place(identifier))

    def _elsewhere(self, identifier: str, soon: bool) -> list[bytes]:
        """Return the paths of the bags with an identifier; bags of other programs may be anywhere."""
        again: list[dict[str, bool]] = [{"soon": soon}, {}, {"whole": True}]
        for options in again:
            places = self._index.places(identifier, **options)
            found = [place for place in places if self._is(place, identifier)]
            if found or not places:
                return found
        return []

    def _first_bags(self) -> Iterator[StoreObject]:
        """Yield the bags in the first directories, without archives, which may take long to read."""
        ignored = self._ignored(())
        names = [name for name in first_directories(self._base) if not self._is_ignored(b"", name, ignored)]
        places = [(name, "directory") for name in reversed(names)]
        found = self._walk_places(places, lambda name: ignored(name) or archives.stem(encode_fs(name)) is not None)
        return (one for one in found if isinstance(one, StoreObject))

    def _is_misplaced(self, record: StoreObject) -> bool:
        # Otherwise, no path is wrong: a name is an identifier, and a bag with its identifier inside may be anywhere.
        if self.layout is None or self.identifiers != "layout" or record.id is None:
            return False
        try:
            return encode_fs(self.layout.map_id(record.id)) != encode_fs(record.path).removesuffix(REPLACED)
        except IdentifierError:
            return True

    def refuse_misplaced(self) -> None:
        """Check that new bags have a path; see :mod:`pressmark.stores.placement`.

        :raises StoreError: a bag is not where the layout puts it
        """
        if self.layout is not None and self.identifiers == "layout" and not self.layout_is_given:
            with store_errors(self._base):
                self.first_objects.refuse_misplaced(self.root, self.layout)

    def _read(self, place: bytes, kind: str, visit: Callable[[bytes], object] = lambda _place: None) -> Iterator[Item]:
        """Yield the bags and problems at and below an entry of a directory."""
        ignored = self._ignored(())
        if self._is_ignored(*os.path.split(place), ignored):
            return iter(())
        return self._walk_places([(place, kind)], ignored, visit)

    @staticmethod
    def _is_ignored(directory: bytes, name: bytes, ignored: Callable[[str], object]) -> bool:
        """Return whether an entry of a directory is ignored, or the folder's own."""
        return bool(ignored(decode_fs(name))) or (not directory and name in (CONFIG, WORK_DIRECTORY))

    def _at(self, place: bytes, identifier: str) -> list[bytes]:
        """Return the paths of the bags that belong at ``place`` and have the identifier."""
        # Twice, because the new bag may have been moved into place after the first check.
        candidates = (place, place + REPLACED, place)
        found = list(islice((one for one in candidates if self._is(one, identifier)), 1))
        # By name, because a folder may have millions of entries.
        serialized = (place + ending for ending in archives.SERIALIZED)
        return found + [
            one for one in serialized if _is_plain_file(os.path.join(self._base, one)) and self._is(one, identifier)
        ]

    def _is(self, place: bytes, identifier: str) -> bool:
        """Return whether the bag at ``place`` has the identifier.

        :raises ObjectError: the bag cannot be read
        :raises OSError: a file or directory of the bag cannot be read
        """
        path = os.path.join(self._base, place)
        if first_link(self._base, place) is not None:  # not followed, as in a walk
            return False
        if _is_plain_file(path):
            name = archives.stem(os.path.basename(place))
            if name is None:
                return False
            described = archives.describe(path)
            if described.refused is not None and _is_plain_file(path):  # otherwise another run has removed it
                raise described.refused
            return self._serialised(place, name, described).id == identifier
        seen: os.stat_result | None = None
        while True:
            try:
                if not is_bag(scan(path, follow=False)):
                    return False
                own, problems = self._described(place, place.removesuffix(REPLACED))
                unreadable = [one for one in problems if one.kind in ("unreadable", "file-unreadable")]
                if own is not None or not unreadable:
                    return own == identifier
                if seen is not None and _leads_to(path, seen):
                    break
                seen = os.stat(path)  # another run may have moved it
            except (FileNotFoundError, NotADirectoryError):
                return False
        reason = f"{decode_fs(encode_fs(unreadable[0].path))}: {unreadable[0].message}"
        raise ObjectError(self.root, identifier, "unreadable", reason)


def record_of(identifier: str | None, place: bytes, problems: Sequence[Problem]) -> StoreObject:
    proper = not any(one.severity == "error" for one in problems)
    return StoreObject(identifier, decode_fs(place), proper, None, tuple(problems))


def within(place: bytes, found: Problem) -> Problem:
    """Return a bag's problem as one of the folder."""
    return found._replace(path=os.path.join(place, found.path) if found.path else place)


def _leads_to(path: bytes, status: os.stat_result) -> bool:
    """Return whether the file at a path has this status."""
    try:
        return os.path.samestat(os.stat(path), status)
    except FileNotFoundError:
        return False


def _is_plain_file(path: bytes) -> bool:
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


def _is_bag_directory(path: bytes) -> bool:
    """Return the result of :func:`is_bag` for a directory, which is listed only if that is necessary."""
    return any(exists(os.path.join(path, name)) for name in (b"bagit.txt", b"data")) and is_bag(
        scan(path, follow=False)
    )


def check_identifiers(base: bytes, identifiers: str, layout: Layout | None) -> None:
    """Check the source of identifiers.

    :raises StoreError: it requires a layout, or does not allow one
    :raises ValueError: it is unknown
    """
    if identifiers not in IDENTIFIERS:
        raise ValueError(f"identifiers={identifiers!r}: expected {', '.join(IDENTIFIERS)}")
    if (identifiers == "layout") != (layout is not None):
        what = "required; specify a layout" if layout is None else f"{layout.name} not allowed; omit the layout"
        raise StoreError(base, f"identifiers from {identifiers!r}: layout {what}")


def _read_config(base: bytes) -> tuple[str, Layout | None]:
    """Return the folder's setting for identifiers, or the default."""
    path = os.path.join(base, CONFIG)
    try:
        config = json.loads(read_regular(path, _CONFIG_LIMIT))
        identifiers, given = config["identifiers"], config["layout"]
        if identifiers not in IDENTIFIERS or (identifiers == "layout") != (given is not None):
            raise ValueError("unknown source of identifiers")
        return identifiers, layout_from_config(given) if given is not None else None
    except FileNotFoundError:
        return "external", None
    except OSError as error:
        raise StoreError(path, error.strerror or str(error)) from error
    except LayoutConfigError as error:
        raise StoreError(path, f"{error}; correct the file") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(path, f"malformed ({error}); correct the file, or specify --identifiers") from None
