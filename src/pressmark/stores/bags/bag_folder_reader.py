"""A folder of bags: each bag, a directory or serialised, is an object.

::

    <root>/
    ├── .pressmark-bags.json     how identifiers are found, where that was said when the folder was made
    ├── .pressmark-work/         while something is changed: see :mod:`pressmark.fs.run_directories`
    ├── ark+=13030=xt12t3/       a bag
    └── scans/2019.tar.gz        a serialised bag; bags may lie in directories

=========== ==========================================================================================================
identifiers of a bag
=========== ==========================================================================================================
external    its one ``External-Identifier``; without one, the name of its directory. New bags are called by the cleaned
            identifier (Pairtree, section 3)
name        the name of its directory; of one that lies deeper, its path
layout      the path of its directory, where the layout has an inverse; else its ``External-Identifier``
=========== ==========================================================================================================

New bags are directories. A serialised bag is listed, checked, given as one file, and deleted; it is never changed.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import translate
from functools import partial
from typing import ClassVar, Literal

from pressmark.bagit.bag import Bag
from pressmark.bagit.bag_directory import BagDirectory
from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.bag_tags import read_tag_files
from pressmark.errors import BagError, IdentifierError, LayoutConfigError, ObjectError, PathError, StoreError
from pressmark.fs.durable import exists, is_directory
from pressmark.fs.entries import DirectoryEntry, scan
from pressmark.fs.file_errors import kind_of_mode
from pressmark.fs.names import decode_fs, encode_fs, is_absent, too_long
from pressmark.fs.run_directories import kind_of_leftover
from pressmark.layouts import Layout, Pairtree, layout_from_config
from pressmark.layouts import layout as layout_by_name
from pressmark.reports import Problem
from pressmark.stores.bags import archives
from pressmark.stores.bags.bag_index import BagIndex
from pressmark.stores.exceptions import object_errors, store_errors
from pressmark.stores.problems import problem
from pressmark.stores.recheck import Item, abandoned, settled, settled_objects
from pressmark.stores.store import OnProblem, Path, Store, StoreObject, encode_path
from pressmark.stores.stored_object import StoredObject

__all__ = [
    "CONFIG",
    "IDENTIFIER",
    "REPLACED",
    "WORKSHOP",
    "BagFolderReader",
    "BagObject",
    "can_be_said",
    "check_identifiers",
    "is_bag",
    "record_of",
    "within",
]

CONFIG = b".pressmark-bags.json"
WORKSHOP = b".pressmark-work"
# A bag that is being replaced, where two names cannot be exchanged at once.
REPLACED = b".pressmark-old"
IDENTIFIER = "External-Identifier"
IDENTIFIERS = ("external", "name", "layout")
_CONFIG_LIMIT = 1 << 20


def can_be_said(identifier: str) -> bool:
    """Return whether a bag-info.txt can hold an identifier."""
    try:
        written = BagInfo([(IDENTIFIER, identifier)]).to_bytes()
        return BagInfo.parse(written)[0].all(IDENTIFIER) == [identifier]
    except (BagError, ValueError):
        return False


class BagObject(StoredObject):
    """A bag in a folder of bags; its files are those of the payload, or the one file that it is serialised in.

    :ivar bag_path: the bag's base directory or file, absolute
    :ivar serialized: whether it is a file
    """

    def __init__(self, store: str, identifier: str, path: bytes, serialized: bool) -> None:
        inside = os.path.dirname(path) if serialized else os.path.join(path, b"data")
        super().__init__(store, identifier, inside, (os.path.basename(path),) if serialized else None, "refuse")
        self.bag_path = path
        self.serialized = serialized

    def bag(self) -> Bag:
        """Open the bag.

        :raises BagError: it is serialised, or cannot be opened
        """
        return Bag.open(self.bag_path)


class BagFolderReader(Store):
    """A folder of bags that is there, and the bags in it.

    :param path: the directory that holds the bags
    :param identifiers: ``external``, ``name`` or ``layout``; :data:`None` for what the folder says, else ``layout``
        where there is one, else ``external``
    :param layout: places the bags
    :param algorithms: of new bags' manifests
    :param info: more elements for the bag-info.txt of new bags
    :param ignore: globs of names that are passed over beside the bags
    :raises StoreError: it is no folder of bags, or cannot be read
    """

    kind: ClassVar[str] = "bags"

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
                what = "it is not a directory" if exists(self._base) else "it is not there"
                raise StoreError(self._base, f"{what}; name the directory that holds the bags")
            if is_bag(scan(self._base, follow=False)):
                raise StoreError(self._base, "it is a bag itself; name the directory that holds it")
        said = _read_config(self._base)
        if layout is None and identifiers in (None, "layout"):
            layout = said[1]
        self.identifiers = identifiers or ("layout" if layout is not None else said[0])
        check_identifiers(self._base, self.identifiers, layout)
        self.layout = layout_by_name("0002") if self.identifiers == "name" else layout
        self._algorithms = tuple(algorithms)
        self._info = dict(info or {})
        self._ignore = tuple(ignore)
        # Where bags are that do not lie where new ones would; made when it is first needed.
        self._index = BagIndex(self._base, self._read)

    # --- identifiers and places ---------------------------------------------------------------------------------------

    def _place(self, identifier: str | bytes) -> str:
        """Return where a new bag belongs.

        :raises IdentifierError: nowhere
        :raises ObjectError: its place is taken by what the folder itself needs
        """
        if self.layout is not None:
            place = self.layout.map_id(identifier)
        else:
            place = Pairtree().clean(identifier)
            if place in ("", ".", ".."):
                raise IdentifierError(identifier, None, "it has no name")
        for name in encode_fs(place).split(b"/"):
            if name in (CONFIG, WORKSHOP) or name.endswith(REPLACED):
                reason = f"its place {place!r} is a name of the folder itself; take another layout"
                raise ObjectError(self.root, identifier, "reserved", reason)
        why = too_long(self._base, encode_fs(place) + REPLACED)
        if why is not None:
            raise ObjectError(self.root, identifier, "bad-name", f"{why}; take another layout, such as 0004")
        return place

    def _from_place(self, place: bytes) -> str | None:
        """Return the identifier that a place without an External-Identifier has."""
        if self.identifiers == "name":
            return decode_fs(place)
        if self.layout is None:
            return decode_fs(os.path.basename(place))
        try:
            return self.layout.unmap_path(place) if self.layout.reversible else None
        except PathError:
            return None

    def _is_said_by(self, place: bytes) -> bool:
        """Return whether the place of a bag says its identifier, whatever is in the bag."""
        return self.identifiers != "external" and self._from_place(place) is not None

    def _identified(self, place: bytes, info: BagInfo, path: bytes) -> tuple[str | None, list[Problem]]:
        """Return a bag's identifier, and what is to be said of it.

        :param place: without what says how it is serialised
        """
        if self.identifiers == "name":
            return decode_fs(place), []
        given = info.all(IDENTIFIER)
        problems = []
        if len(given) > 1:
            message = f"it has {len(given)} {IDENTIFIER}s; leave one"
            problems.append(problem("identifier-several", path, message))
        identifier = self._from_place(place)
        if len(given) == 1 and (self.identifiers == "external" or identifier is None):
            identifier = given[0]
        if identifier is None:
            problems.append(problem("identifier-missing", path, f"it has no {IDENTIFIER}, and its path says none"))
        elif self.identifiers == "layout":
            problems += self._placed(given, identifier, place, path)
        return identifier, problems

    def _placed(self, given: list[str], identifier: str, place: bytes, path: bytes) -> list[Problem]:
        """Compare identifier and place."""
        assert self.layout is not None
        for one in (identifier, *given[:1]):
            try:
                expected = self.layout.map_id(one)
            except IdentifierError as error:
                return [problem("identifier-unplaced", path, error.reason, section="")]
            if encode_fs(expected) != place:
                message = f"the layout places {one!r} at {expected}"
                return [problem("misplaced", path, message, section="", expected=expected)]
        return []

    # --- all bags -----------------------------------------------------------------------------------------------------

    def objects(
        self, *, threads: int | None = None, on_problem: OnProblem | None = None, ignore: Sequence[str] = ()
    ) -> Iterator[StoreObject]:
        """Give every bag, lazily, in the order of the octets of their names.

        Only tag files are read. Of each identifier the first path is kept, to find those that several bags have.

        :param threads: has no effect: bags are opened one after another
        """
        first: dict[str, str] = {}
        with store_errors(self._base):
            for record in settled_objects(self._walk(ignore), partial(self._second_look, ignore), on_problem):
                yield self._with_duplicate(record, first)

    def _second_look(self, ignore: Sequence[str], item: Item) -> list[Item]:
        """Return what the walk has found, or what is there in its place where another run was changing that."""
        place = encode_fs(item.path)
        if (isinstance(item, StoreObject) and item.proper) or place.startswith(WORKSHOP) or not place:
            return [item]
        return settled(item, lambda: self._again(item, ignore), os.path.join(self._base, WORKSHOP))

    def _again(self, item: Item, ignore: Sequence[str]) -> list[Item]:
        """Return what the walk finds in the place of an item now; nothing where that is gone."""
        place = encode_fs(item.path)
        try:
            mode = os.lstat(os.path.join(self._base, place)).st_mode
        except (FileNotFoundError, NotADirectoryError):
            own = place.removesuffix(REPLACED)
            if own == place or isinstance(item, Problem):
                return []
            # The walk has met the old one alone. The new one may have come.
            return self._again(item._replace(path=decode_fs(own)), ignore)
        except OSError:
            return [item]  # nobody can say
        kind = kind_of_mode(mode) or "file"
        known = kind if kind in ("directory", "file", "link") else "special"
        return list(self._walk_places([(place, known)], self._ignored(ignore)))

    def _with_duplicate(self, record: StoreObject, first: dict[str, str]) -> StoreObject:
        """Add a problem if another bag, which still exists, has the same identifier."""
        identifier, place = record.id, record.path
        if identifier is None or first.setdefault(identifier, place) == place:
            return record
        if not self._has(encode_fs(first[identifier]), identifier):
            first[identifier] = place
            return record
        message = f"{first[identifier]} has the same identifier; change one"
        found = problem("duplicate-id", encode_fs(place), message, section="", found=first[identifier])
        return record._replace(proper=False, problems=(*record.problems, found))

    def _has(self, place: bytes, identifier: str) -> bool:
        """Return whether the bag at a place has the identifier, as far as can be known."""
        try:
            return self._is(place, identifier)
        except (ObjectError, OSError):
            return True

    def _walk(self, ignore: Sequence[str] = ()) -> Iterator[Item]:
        for left in abandoned(os.path.join(self._base, WORKSHOP)):
            yield problem(kind_of_leftover(left), WORKSHOP + b"/" + os.path.basename(left))
        try:
            entries = scan(self._base, follow=False)
        except FileNotFoundError:
            return
        except OSError as error:
            yield problem("unreadable", b"", error.strerror or str(error))
            return
        yield from self._walk_from([(entry.name, entry.kind) for entry in entries], self._ignored(ignore))

    def _ignored(self, ignore: Sequence[str]) -> Callable[[str], object]:
        """Return what says whether an entry is passed over, by its name."""
        globs = (*self._ignore, *ignore)
        return re.compile("|".join(map(translate, globs))).match if globs else lambda _name: None

    def _walk_from(
        self, found: list[tuple[bytes, str]], ignored: Callable[[str], object]
    ) -> Iterator[StoreObject | Problem]:
        """Give what is at and below entries of the folder: names and kinds, in order."""
        places = [
            (name, kind)
            for name, kind in reversed(found)
            if not ignored(decode_fs(name)) and name not in (CONFIG, WORKSHOP)
        ]
        return self._walk_places(places, ignored)

    def _walk_places(self, places: list[tuple[bytes, str]], ignored: Callable[[str], object]) -> Iterator[Item]:
        """Give what is at and below places, the last of them first; of bags and files it is known what they are."""
        while places:
            place, kind = places.pop()
            if kind != "directory":
                yield from self._found(place, kind)
                continue
            try:
                entries = scan(os.path.join(self._base, place), follow=False)
            except FileNotFoundError:
                continue
            except OSError as error:
                yield problem("unreadable", place, error.strerror or str(error))
                continue
            if is_bag(entries):
                yield from self._bag(place)
                continue
            if not entries:
                yield problem("empty", place, "an empty directory; it holds no bag", section="")
            below = [entry for entry in entries if not ignored(decode_fs(entry.name))]
            places += [(os.path.join(place, entry.name), entry.kind) for entry in reversed(below)]

    def _found(self, place: bytes, kind: str) -> Iterator[StoreObject | Problem]:
        """Give what is no directory."""
        name = archives.stem(os.path.basename(place)) if kind == "file" else None
        if name is not None:
            yield self._serialised(place, name, archives.describe(os.path.join(self._base, place)))
        elif kind == "link":
            yield problem("link", place, section="")
        elif kind == "special":
            yield problem("special-file", place, section="")
        else:
            yield problem("beside", place, "it is no bag, and belongs to none")

    def _serialised(self, place: bytes, name: bytes, described: archives.Described) -> StoreObject:
        """Return a serialised bag.

        :param name: of its file, without what says how it is serialised
        """
        problems = [found._replace(path=place) for found in described.problems]
        if problems:
            # Whatever its name says, nobody can tell what it is.
            return record_of(None, place, problems)
        identifier, problems = self._identified(os.path.join(os.path.dirname(place), name), described.info, place)
        return record_of(identifier, place, problems)

    def _bag(self, place: bytes) -> Iterator[StoreObject | Problem]:
        """Give the bag in a directory."""
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
        """Return the identifier of the bag in a directory, and what its tag files are to be blamed for."""
        path = os.path.join(self._base, place)
        while True:
            problems: list[Problem] = []
            try:
                with BagDirectory(path) as base:
                    bag, _ = read_tag_files(base, problems)
                    if _leads_to(path, base.status(b"")):
                        break  # else another run has replaced it, and removed what was being read
            except BagError as error:
                return None, [problem("unreadable", place, error.reason)]
            except OSError as error:
                return None, [problem("unreadable", place, error.strerror or str(error))]
        if any(one.kind == "file-unreadable" for one in problems) and not self._is_said_by(own):
            return None, [within(place, found) for found in problems]
        identifier, more = self._identified(own, bag.info, place)
        return identifier, [within(place, found) for found in problems] + more

    # --- one bag ------------------------------------------------------------------------------------------------------

    def get(self, identifier: str | bytes) -> BagObject:
        """Return a bag, or a serialised bag.

        :raises ObjectError: of kind ``missing``: it is not there
        :raises IdentifierError: the identifier has no place in this folder
        """
        shown = decode_fs(identifier) if isinstance(identifier, bytes) else identifier
        with object_errors(self.root, identifier):
            place = self._find(shown)
            if place is None:
                raise self._missing(identifier)
            path = os.path.abspath(os.path.join(self._base, place))
            return BagObject(self.root, shown, path, not is_directory(path))

    def locate(self, record: StoreObject) -> BagObject:
        """Return the bag of a record of :meth:`objects`.

        :raises ObjectError: of kind ``missing``: it is no longer there
        """
        path = os.path.abspath(os.path.join(self._base, encode_fs(record.path)))
        with object_errors(self.root, record.id or ""):
            if not exists(path):
                raise ObjectError(self.root, record.id or "", "missing", f"there is nothing at {record.path!r}")
            return BagObject(self.root, record.id or "", path, not is_directory(path))

    def _missing(self, identifier: str | bytes) -> ObjectError:
        return ObjectError(self.root, identifier, "missing", "no bag in this folder has this identifier")

    def _find(self, identifier: str, *, soon: bool = False) -> bytes | None:
        """Return where the bag with an identifier is; :data:`None` where there is none.

        :param soon: whether others, who are none of our runs, have just put one elsewhere need not be known
        """
        found = None
        try:
            expected = encode_fs(self._place(identifier))
        except IdentifierError:
            if self.layout is not None:
                raise
        except ObjectError:
            if self.layout is not None and not is_absent(self._base, encode_fs(self.layout.map_id(identifier))):
                raise
        else:
            found = self._at(expected, identifier)
        if found is not None or self.layout is not None:
            return found
        # A bag that others have made lies anywhere.
        index = self._index
        if not (index.is_fresh() or (soon and index.is_recent())):
            index.look()
        place = index.find(identifier)
        if place is not None and not self._is(place, identifier):
            index.look(whole=True)
            place = index.find(identifier)
        return place if place is not None and self._is(place, identifier) else None

    def _read(self, entries: Iterable[DirectoryEntry]) -> Iterator[StoreObject | Problem]:
        """Give the bags at and below entries of the folder."""
        return self._walk_from([(entry.name, entry.kind) for entry in entries], self._ignored(()))

    def _at(self, place: bytes, identifier: str) -> bytes | None:
        """Return where the bag that belongs at ``place`` is, if it is there and has the identifier."""
        # In the end again: of a bag that is being replaced, the new one may have come after the first look.
        for candidate in (place, place + REPLACED, place):
            if self._is(candidate, identifier):
                return candidate
        # By name: a folder may have millions of entries.
        for ending in archives.endings():
            candidate = place + ending
            if _is_plain_file(os.path.join(self._base, candidate)) and self._is(candidate, identifier):
                return candidate
        return None

    def _is(self, place: bytes, identifier: str) -> bool:
        """Return whether there is a bag at ``place``, and it has the identifier.

        :raises ObjectError: nobody can say, because it cannot be read
        :raises OSError: nobody can say, because the system refuses to read it
        """
        path = os.path.join(self._base, place)
        if _is_plain_file(path):
            name = archives.stem(os.path.basename(place))
            if name is None:
                return False
            described = archives.describe(path)
            if described.refused is not None and _is_plain_file(path):  # else another run has removed it
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
                seen = os.stat(path)  # another run may have taken it away, or put another there
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
    """Return whether there is at a path what has this status."""
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


def check_identifiers(base: bytes, identifiers: str, layout: Layout | None) -> None:
    """Refuse a way to find identifiers that is unknown, or does not go with the layout."""
    if identifiers not in IDENTIFIERS:
        raise ValueError(f"identifiers={identifiers!r}: expected {', '.join(IDENTIFIERS)}")
    if (identifiers == "layout") != (layout is not None):
        what = "needs a layout" if layout is None else f"has no use for the layout {layout.name}"
        raise StoreError(base, f"identifiers from {identifiers!r}: that {what}")


def _read_config(base: bytes) -> tuple[str, Layout | None]:
    """Return how identifiers are found in a folder that says it, else the usual way."""
    path = os.path.join(base, CONFIG)
    try:
        with open(path, "rb") as file:
            config = json.loads(file.read(_CONFIG_LIMIT))
        identifiers, given = config["identifiers"], config["layout"]
        if identifiers not in IDENTIFIERS or (identifiers == "layout") != (given is not None):
            raise ValueError("it does not say how identifiers are found")
        return identifiers, layout_from_config(given) if given is not None else None
    except FileNotFoundError:
        return "external", None
    except OSError as error:
        raise StoreError(path, error.strerror or str(error)) from error
    except LayoutConfigError as error:
        raise StoreError(path, f"{error}; mend it") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(path, f"it is malformed ({error}); mend it, or say how identifiers are found") from None
