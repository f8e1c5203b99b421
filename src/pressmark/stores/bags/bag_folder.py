"""A folder of bags: each bag, a directory or serialised, is an object.

::

    <root>/
    ├── .pressmark-bags.json     how identifiers are found, where that was said when the folder was made
    ├── .pressmark-work/         while something is changed: see :mod:`pressmark.stores.directories`
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

import contextlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import translate
from itertools import chain
from typing import Any, ClassVar, Literal, cast

from pressmark.bagit.archive import validate_archive
from pressmark.bagit.bag import Bag, survey
from pressmark.bagit.bag_directory import Base
from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.creation.in_place import create as create_bag
from pressmark.bagit.creation.preflight import fault_of_name
from pressmark.bagit.events import Noticed
from pressmark.bagit.problems import problem as bag_problem
from pressmark.bagit.report import BagReport
from pressmark.bagit.transaction import STAGING
from pressmark.bagit.validation.validate import validate
from pressmark.errors import (
    BagError,
    IdentifierError,
    LayoutConfigError,
    ObjectError,
    PathError,
    SpillError,
    StoreError,
)
from pressmark.fixity import Outcome
from pressmark.fs.atomic import replace_file
from pressmark.fs.durable import exists, flush_directory, is_directory
from pressmark.fs.file_errors import kind_of_mode
from pressmark.fs.removal import remove_tree
from pressmark.layouts import Layout, Pairtree, layout_from_config
from pressmark.layouts import layout as layout_by_name
from pressmark.reports import Problem, Report
from pressmark.stores.bags import archives
from pressmark.stores.bags.bag_index import BagIndex
from pressmark.stores.directories import (
    Entry,
    Refused,
    Workshop,
    copy_source,
    exchange,
    folds_case,
    is_absent,
    is_in_the_way,
    kind_of_leftover,
    longest_inside,
    make_parents,
    misspelled,
    prune_upward,
    refuse_within,
    rename_new,
    scan,
    tidy_upward,
    too_long,
    would_be_empty,
)
from pressmark.stores.problems import problem
from pressmark.stores.recheck import LOOKS, Item, abandoned, await_turn, changing, settled
from pressmark.stores.store import (
    Changed,
    CopyMode,
    OnEvent,
    OnProblem,
    Path,
    Progress,
    Source,
    Store,
    StoredObject,
    StoreObject,
    encode_path,
    is_same_version,
    object_errors,
    octets,
    status_of,
    store_errors,
    text,
    unrepaired,
)

__all__ = ["CONFIG", "BagFolder", "BagObject", "can_be_said"]

CONFIG = b".pressmark-bags.json"
WORKSHOP = b".pressmark-work"
# A bag that is being replaced, where two names cannot be exchanged at once.
REPLACED = b".pressmark-old"
IDENTIFIER = "External-Identifier"
IDENTIFIERS = ("external", "name", "layout")
PROGRESS_EVERY = 100  # bags
# A bag with a file that is written to is read so often: it may be large.
REREADS = 3
_CONFIG_LIMIT = 1 << 20
# Problems for which no bag is made of a source: of what is called so that no manifest can list it.
_OF_NAMES = frozenset({"name-clash", "path-unsafe"})
# A serialised bag of which that is known is not read once more.
_UNREAD = ("archive-malformed", "archive-limit")


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


class BagFolder(Store):
    """A folder of bags that is there; :meth:`create` makes one.

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
            if _is_bag(scan(self._base, follow=False)):
                raise StoreError(self._base, "it is a bag itself; name the directory that holds it")
        said = _read_config(self._base)
        if layout is None and identifiers in (None, "layout"):
            layout = said[1]
        self.identifiers = identifiers or ("layout" if layout is not None else said[0])
        _check_identifiers(self._base, self.identifiers, layout)
        self.layout = layout_by_name("0002") if self.identifiers == "name" else layout
        self._algorithms = tuple(algorithms)
        self._info = dict(info or {})
        self._ignore = tuple(ignore)
        # Where bags are that do not lie where new ones would; made when it is first needed.
        self._index = BagIndex(self._base, self._read)

    @classmethod
    def create(
        cls,
        path: Path,
        layout: Layout | None = None,
        *,
        identifiers: Literal["external", "name", "layout"] | None = None,
        **options: Any,
    ) -> BagFolder:
        """Make an empty folder in a directory that is empty or not there, and open it.

        :param layout: places the bags
        :param options: as for opening
        :raises StoreError: there is something in the directory, it cannot be written, or ``identifiers`` and the layout
            do not go together
        """
        base = encode_path(path)
        wanted = identifiers or ("layout" if layout is not None else "external")
        _check_identifiers(base, wanted, layout)
        config = {"identifiers": wanted, "layout": layout.config() if layout is not None else None}
        with store_errors(base):
            os.makedirs(base, exist_ok=True)
            strangers = sorted(set(os.listdir(base)) - {CONFIG + b".new"})
            if strangers:
                raise StoreError(base, f"it holds {text(strangers[0])!r}: name a directory that is empty or not there")
            new = os.path.join(base, CONFIG)
            replace_file(new, json.dumps(config, indent=2).encode() + b"\n", part=new + b".new")
        return cls(path, identifiers=identifiers, layout=layout, **options)

    # --- identifiers and places -----------------------------------------------------------------------------------

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
        for name in octets(place).split(b"/"):
            if name in (CONFIG, WORKSHOP) or name.endswith(REPLACED):
                reason = f"its place {place!r} is a name of the folder itself; take another layout"
                raise ObjectError(self.root, identifier, "reserved", reason)
        why = too_long(self._base, octets(place) + REPLACED)
        if why is not None:
            raise ObjectError(self.root, identifier, "bad-name", f"{why}; take another layout, such as 0004")
        return place

    def _from_place(self, place: bytes) -> str | None:
        """Return the identifier that a place without an External-Identifier has."""
        if self.identifiers == "name":
            return text(place)
        if self.layout is None:
            return text(os.path.basename(place))
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
            return text(place), []
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
            if octets(expected) != place:
                message = f"the layout places {one!r} at {expected}"
                return [problem("misplaced", path, message, section="", expected=expected)]
        return []

    # --- reading --------------------------------------------------------------------------------------------------

    def objects(
        self, *, threads: int | None = None, on_problem: OnProblem | None = None, ignore: Sequence[str] = ()
    ) -> Iterator[StoreObject]:
        """Give every bag, lazily, in the order of the octets of their names.

        Only tag files are read. Of each identifier the first path is kept, to find those that several bags have.

        :param threads: has no effect: bags are opened one after another
        """
        first: dict[str, str] = {}
        with store_errors(self._base):
            for found in self._walk(ignore):
                for item in self._second_look(found, ignore):
                    if isinstance(item, StoreObject):
                        yield self._with_duplicate(item, first)
                    elif on_problem is not None:
                        on_problem(item)

    def _second_look(self, item: Item, ignore: Sequence[str]) -> list[Item]:
        """Return what the walk has found, or what is there in its place where another run was changing that."""
        place = octets(item.path)
        if (isinstance(item, StoreObject) and item.proper) or place.startswith(WORKSHOP) or not place:
            return [item]
        return settled(item, lambda: self._again(item, ignore), os.path.join(self._base, WORKSHOP))

    def _again(self, item: Item, ignore: Sequence[str]) -> list[Item]:
        """Return what the walk finds in the place of an item now; nothing where that is gone."""
        place = octets(item.path)
        try:
            mode = os.lstat(os.path.join(self._base, place)).st_mode
        except (FileNotFoundError, NotADirectoryError):
            own = place.removesuffix(REPLACED)
            if own == place or isinstance(item, Problem):
                return []
            # The walk has met the old one alone. The new one may have come.
            return self._again(item._replace(path=text(own)), ignore)
        except OSError:
            return [item]  # nobody can say
        kind = kind_of_mode(mode) or "file"
        known = kind if kind in ("directory", "file", "link") else "special"
        return list(self._walk_places([(place, known)], self._ignored(ignore)))

    def _with_duplicate(self, record: StoreObject, first: dict[str, str]) -> StoreObject:
        """Add that another bag has the same identifier, if that one is still there."""
        identifier, place = record.id, record.path
        if identifier is None or first.setdefault(identifier, place) == place:
            return record
        if not self._has(octets(first[identifier]), identifier):
            first[identifier] = place
            return record
        message = f"{first[identifier]} has the same identifier; change one"
        found = problem("duplicate-id", octets(place), message, section="", found=first[identifier])
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
            (name, kind) for name, kind in reversed(found) if not ignored(text(name)) and name not in (CONFIG, WORKSHOP)
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
            if _is_bag(entries):
                yield from self._bag(place)
                continue
            if not entries:
                yield problem("empty", place, "an empty directory; it holds no bag", section="")
            below = [entry for entry in entries if not ignored(text(entry.name))]
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
            return _record(None, place, problems)
        identifier, problems = self._identified(os.path.join(os.path.dirname(place), name), described.info, place)
        return _record(identifier, place, problems)

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
        yield _record(identifier, place, problems + found)

    def _described(self, place: bytes, own: bytes) -> tuple[str | None, list[Problem]]:
        """Return the identifier of the bag in a directory, and what its tag files are to be blamed for."""
        path = os.path.join(self._base, place)
        while True:
            problems: list[Problem] = []
            try:
                with Base(path) as base:
                    bag, _ = survey(base, problems)
                    if _leads_to(path, base.status(b"")):
                        break  # else another run has replaced it, and removed what was being read
            except BagError as error:
                return None, [problem("unreadable", place, error.reason)]
            except OSError as error:
                return None, [problem("unreadable", place, error.strerror or str(error))]
        if any(one.kind == "file-unreadable" for one in problems) and not self._is_said_by(own):
            return None, [_within(place, found) for found in problems]
        identifier, more = self._identified(own, bag.info, place)
        return identifier, [_within(place, found) for found in problems] + more

    def get(self, identifier: str | bytes) -> BagObject:
        """Return a bag, or a serialised bag.

        :raises ObjectError: of kind ``missing``: it is not there
        :raises IdentifierError: the identifier has no place in this folder
        """
        shown = text(identifier) if isinstance(identifier, bytes) else identifier
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
        path = os.path.abspath(os.path.join(self._base, octets(record.path)))
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
            expected = octets(self._place(identifier))
        except IdentifierError:
            if self.layout is not None:
                raise
        except ObjectError:
            if self.layout is not None and not is_absent(self._base, octets(self.layout.map_id(identifier))):
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

    def _read(self, entries: Iterable[Entry]) -> Iterator[StoreObject | Problem]:
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
                if not _is_bag(scan(path, follow=False)):
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
        reason = f"{text(octets(unreadable[0].path))}: {unreadable[0].message}"
        raise ObjectError(self.root, identifier, "unreadable", reason)

    # --- changing -------------------------------------------------------------------------------------------------

    def put(
        self,
        identifier: str | bytes,
        source: Source,
        *,
        replace: bool = False,
        mode: CopyMode = "auto",
        links: Literal["refuse", "follow"] = "refuse",
        info: Mapping[str, str] | None = None,
        check: Callable[[bytes], object] | None = None,
        on_event: Callable[[object], object] | None = None,
    ) -> StoreObject:
        """Make a bag of a source, with the identifier as its ``External-Identifier``: whole or not at all.

        A bag is replaced in one step where the system can exchange two names (Linux).

        :param info: more elements for this bag's bag-info.txt
        :param check: called with the path of the bag before it appears; what it raises ends this
        :param on_event: called with events of the copying
        :raises ObjectError: nothing was stored; its ``kind`` says why
        :raises IdentifierError: the identifier has no place in this folder
        """
        place = octets(self._place(identifier))
        name = text(identifier) if isinstance(identifier, bytes) else identifier
        elements = [*self._elements(name, place), *(info or {}).items()]

        def make(new: bytes) -> bytes:
            self._make(identifier, source, new, elements, mode, links, on_event)
            return new

        return self._put(identifier, place, make, check, replace)

    def adopt(
        self,
        identifier: str | bytes,
        bag: bytes | Mapping[str, Path],
        *,
        mode: str = "copy",
        replace: bool = False,
        check: Callable[[bytes], object] | None = None,
        algorithms: tuple[str, ...] = (),
        on_file: Callable[[bytes, Outcome], object] | None = None,
        on_event: Callable[[object], object] | None = None,
    ) -> StoreObject:
        """Store a bag as it is, a directory or a serialised one: copied, or with ``rename`` moved in.

        :param bag: its base directory or file; or all of its files, by their names in it
        :param mode: as of :meth:`put`; or ``rename``: it lies on the same file system
        :param check: called with the path of the bag before it appears; what it raises ends this
        :param on_event: called with events of the copying
        :param algorithms: of the digests that ``on_file`` gets
        :param on_file: called with the name and the outcome of each file that was copied; what it raises ends this
        :raises ObjectError: nothing was stored; of kind ``improper``: this folder would not find the identifier in it
        :raises IdentifierError: the identifier has no place in this folder
        """
        place = octets(self._place(identifier))
        name = text(identifier) if isinstance(identifier, bytes) else identifier
        file = b""
        if isinstance(bag, bytes) and not os.path.isdir(bag):
            file = os.path.basename(bag)
            place += file[len(archives.stem(file) or file) :]

        def make(new: bytes) -> bytes:
            made = bag
            if mode != "rename" or isinstance(made, Mapping):
                try:
                    copy_source(
                        bag,
                        new,
                        mode=mode,
                        algorithms=algorithms,
                        on_file=on_file,
                        on_event=on_event,
                    )
                except Refused as refused:
                    raise ObjectError(self.root, identifier, refused.kind, refused.reason) from refused
                made = os.path.join(new, file) if file else new
                if isinstance(bag, Mapping):
                    os.makedirs(os.path.join(made, b"data"), exist_ok=True)  # of a bag without payload
            own = self._own_identifier(made, place)
            if own != name:
                what = f"the bag's own identifier is {own!r}: it would not be found by the one that it should have"
                raise ObjectError(self.root, identifier, "improper", what)
            return made

        return self._put(identifier, place, make, check, replace)

    def _own_identifier(self, path: bytes, place: bytes) -> str | None:
        """Return the identifier that a bag would have at ``place``."""
        if not os.path.isdir(path):
            stem = archives.stem(os.path.basename(place)) or os.path.basename(place)
            info = archives.describe(path).info
            return self._identified(os.path.join(os.path.dirname(place), stem), info, place)[0]
        with Base(path) as base:
            bag, _ = survey(base, [])
        return self._identified(place, bag.info, place)[0]

    def _put(
        self,
        identifier: str | bytes,
        place: bytes,
        make: Callable[[bytes], bytes],
        check: Callable[[bytes], object] | None,
        replace: bool,
    ) -> StoreObject:
        """Have a bag made aside, and move it in."""
        name = text(identifier) if isinstance(identifier, bytes) else identifier
        with object_errors(self.root, identifier):
            old = self._find(name, soon=True)
            if old is not None:
                self._refuse(identifier, place, old, replace)
            with Workshop(os.path.join(self._base, WORKSHOP)) as shop:
                # Before the bag is made, and again before it is moved in; what another run is moving is nobody's clash.
                with shop.turn():
                    self._refuse(identifier, place, self._find(name, soon=True), replace)
                new = make(shop / b"bag")
                if check is not None:
                    check(new)
                # It may take the place of a bag elsewhere, and may have to make way under a longer name.
                reason = too_long(self._base, max(place, old or b"", key=len) + REPLACED + longest_inside(new))
                if reason is not None:
                    raise ObjectError(self.root, identifier, "bad-name", f"{reason}; use shorter file names")
                with shop.turn():
                    old = self._find(name, soon=True)
                    self._refuse(identifier, place, old, replace)
                    if old is None:
                        self._move_in(identifier, new, place)
                    else:
                        place = self._replace(shop, identifier, new, old)
                    if self.layout is None:
                        # Before the next run's turn, in which it may go again.
                        self._index.note(name, place)
        identifier_, problems = self._described(place, place)
        return _record(identifier_, place, problems)

    def _elements(self, identifier: str, place: bytes) -> list[tuple[str, str]]:
        """Return the elements of a new bag's bag-info.txt."""
        elements = [(label, value) for label, value in self._info.items() if label.lower() != IDENTIFIER.lower()]
        if can_be_said(identifier):
            return [(IDENTIFIER, identifier), *elements]
        if self.layout is not None and self._from_place(place) == identifier:
            return elements
        raise IdentifierError(identifier, None, f"it cannot be written as an {IDENTIFIER}, on one line of text")

    def _refuse(self, identifier: str | bytes, place: bytes, old: bytes | None, replace: bool) -> None:
        """Refuse what cannot be stored.

        :raises ObjectError: as said
        """
        if old is not None:
            if not replace:
                reason = f"there is one at {text(old)}: replace it, or delete it first"
                raise ObjectError(self.root, identifier, "exists", reason)
            # Asked once: another run may be removing it.
            if is_in_the_way(os.path.join(self._base, old)):
                reason = f"there is a serialised one at {text(old)}: delete that first"
                raise ObjectError(self.root, identifier, "exists", reason)
            return
        parts = place.split(b"/")
        for depth in range(1, len(parts)):
            above = b"/".join(parts[:depth])
            path = os.path.join(self._base, above)
            if not exists(path):
                break
            if not is_directory(path) or os.path.islink(path) or _is_bag(scan(path, follow=False)):
                reason = f"{text(above)} is there already, and no directory of bags; take another layout"
                raise ObjectError(self.root, identifier, "collision", reason)
        if folds_case(self._base):
            clash = misspelled(self._base, place)
            if clash is not None:
                reason = f"{text(clash)!r} is there in the other case, and this file system has one name for both"
                raise ObjectError(self.root, identifier, "collision", f"{reason}; use one that distinguishes case")
        if exists(os.path.join(self._base, place)):
            reason = f"{text(place)} is there, and is another's; move it away"
            raise ObjectError(self.root, identifier, "collision", reason)

    def _make(
        self,
        identifier: str | bytes,
        source: Source,
        new: bytes,
        info: list[tuple[str, str]],
        mode: str,
        links: str,
        on_event: Callable[[object], object] | None,
    ) -> None:
        """Make the bag ``new``."""
        refused_for: set[str] = set()

        def note(event: object) -> None:
            if isinstance(event, Noticed) and event.problem.severity == "error":
                refused_for.add(event.problem.kind)
            elif on_event is not None:
                on_event(event)

        try:
            if isinstance(source, Mapping):
                copy_source(source, new, mode=mode, links=links, on_event=on_event)
                if exists(os.path.join(new, STAGING)):  # it would be taken for our own, and removed
                    reason = f"a bag keeps {text(STAGING)!r} for changes of it; leave it out, or call it otherwise"
                    raise Refused("bad-name", reason)
                create_bag(new, None, self._algorithms, info, nested=True, on_event=note)
            else:
                given = os.fsencode(source)
                refuse_within(given, new)
                # Whoever names a link means what it leads to.
                one = given if is_directory(given) else [given]
                fault = None if one is given else fault_of_name(os.path.basename(given))
                if fault is not None:
                    raise Refused("bad-name", f"{text(given)}: {fault}")
                create_bag(one, new, self._algorithms, info, mode=mode, links=links, nested=True, on_event=note)
            # What making it could not remove would be a change that nobody goes on with.
            remove_tree(os.path.join(new, STAGING))
        except Refused as refused:
            raise ObjectError(self.root, identifier, refused.kind, refused.reason) from refused
        except BagError as error:
            if isinstance(error.__cause__, OSError):
                raise error.__cause__ from None
            if refused_for and refused_for <= _OF_NAMES:
                kind = "bad-name"
            else:
                kind = "unreadable" if "file-unreadable" in refused_for else "source"
            raise ObjectError(self.root, identifier, kind, str(error)) from None

    def _move_in(self, identifier: str | bytes, new: bytes, place: bytes) -> None:
        parent = os.path.dirname(place)
        made: list[bytes] = []
        try:
            if parent:
                made = make_parents(self._base, parent)
            rename_new(new, os.path.join(self._base, place))
        except BaseException:
            tidy_upward(self._base, parent)
            raise
        flush_directory(os.path.join(self._base, parent))
        for above in made:
            flush_directory(os.path.dirname(os.path.join(self._base, above)))

    def _replace(self, shop: Workshop, identifier: str | bytes, new: bytes, old: bytes) -> bytes:
        """Put the new bag in the place of the old one; return that place."""
        place = old.removesuffix(REPLACED)
        path = os.path.join(self._base, place)
        aside = path + REPLACED
        if old == place:
            self._sweep(shop, place)
        elif exists(path):
            reason = f"{text(place)} is there, and is another's; move it away"
            raise ObjectError(self.root, identifier, "collision", reason)
        if old != place or not exchange(new, path):
            if old == place:
                os.rename(path, aside)
            try:
                rename_new(new, path)
            except BaseException:
                if old == place:
                    os.rename(aside, path)
                raise
            os.rename(aside, shop / b"replaced")
        flush_directory(os.path.dirname(path))
        return place

    def _sweep(self, shop: Workshop, place: bytes) -> None:
        """Remove the old bag that a killed run has left beside the one that took its place."""
        aside = os.path.join(self._base, place + REPLACED)
        if is_directory(aside) and _is_bag(scan(aside, follow=False)):
            _discard(shop, aside)

    def delete(self, identifier: str | bytes) -> None:
        """Remove a bag, then directories above it that are empty.

        :raises ObjectError: of kind ``missing``, or it could not be removed
        :raises IdentifierError: the identifier has no place in this folder
        """
        name = text(identifier) if isinstance(identifier, bytes) else identifier
        with object_errors(self.root, identifier):
            if self._find(name) is None:
                raise self._missing(identifier)
            with Workshop(os.path.join(self._base, WORKSHOP)) as shop, shop.turn():
                place = self._find(name)
                if place is None:
                    raise self._missing(identifier)
                # First: else the old one would be found when the new one is gone.
                self._sweep(shop, place)
                os.rename(os.path.join(self._base, place), shop / b"object")
                self._index.forget(name, place)
                flush_directory(os.path.dirname(os.path.join(self._base, place)))
                tidy_upward(self._base, os.path.dirname(place))

    # --- checking and repairing -----------------------------------------------------------------------------------

    def check(
        self,
        *,
        digests: bool = False,
        threads: int | None = None,
        on_event: OnEvent | None = None,
        on_problem: OnProblem | None = None,
        ignore: Sequence[str] = (),
    ) -> Report:
        """Validate every bag, and join the reports; paths are relative to the folder.

        Serialised bags are validated with ``digests`` only, without being unpacked. Without, that they are unchecked is
        a warning.

        :param digests: verify the checksums; without, only that all files are there and no others
        :raises StoreError: a temporary file cannot be written: large manifests of serialised bags are kept in one
        """
        report = Report(counts={"objects": 0, "proper": 0, "files": 0, "bytes": 0})

        def found(problems: Iterable[Problem]) -> None:
            for each in problems:
                report.problems.append(each)
                if on_problem is not None:
                    on_problem(each)

        for walked in self.objects(on_problem=lambda each: found([each]), ignore=ignore):
            for item in self.examined(walked, digests, threads, report, ignore):
                if isinstance(item, Problem):
                    found([item])
                    continue
                report.counts["objects"] += 1
                report.counts["proper"] += item.proper
                found(item.problems)
            if on_event is not None and (digests or report.counts["objects"] % PROGRESS_EVERY == 0):
                on_event(Progress(report.counts["objects"], len(report.problems)))
        if on_event is not None:
            on_event(Progress(report.counts["objects"], len(report.problems)))
        return report

    def examined(
        self, record: StoreObject, digests: bool, threads: int | None, report: Report, ignore: Sequence[str] = ()
    ) -> list[Item]:
        """Validate the bag of a record of :meth:`objects`, again where another run has changed it meanwhile.

        :param report: whose counts of files and bytes go up
        :return: the record with all that is wrong with the bag, or what is in its place now; nothing where it has gone
        """
        double = tuple(one for one in record.problems if one.kind == "duplicate-id")
        for look in range(LOOKS):
            place = octets(record.path)
            seen = self._state(place)
            counts = Report(counts={"files": 0, "bytes": 0})
            problems = list(self.validated(record, digests, threads, counts))
            # What its tag files were blamed for comes again when it is validated.
            problems = [one for one in record.problems if one not in problems] + problems
            if not any(one.severity == "error" for one in problems):
                break
            await_turn(os.path.join(self._base, WORKSHOP))
            now = self._again(record, ignore)
            is_same = _without_double(now) == _without_double([record])
            if is_same and all(map(is_same_version, seen, self._state(place))):
                # A file that is written to in its place leaves no other trace.
                if look + 1 >= REREADS or not any(one.kind == "file-changing" for one in problems):
                    break
            elif len(now) != 1 or isinstance(now[0], Problem):
                # There is nothing now, no bag, or a directory with bags in it.
                parts = (
                    [one] if isinstance(one, Problem) else self.examined(one, digests, threads, report) for one in now
                )
                return list(chain.from_iterable(parts))
            record = cast(StoreObject, now[0])
            if record.id is not None and double:
                record = record._replace(proper=False, problems=(*_walked(record), *double))
        else:
            return [changing(record)]
        for name, count in counts.counts.items():
            report.counts[name] += count
        return [record._replace(problems=tuple(problems))]

    def _state(self, place: bytes) -> list[os.stat_result | None]:
        """Return what tells the version of a bag that is at a place from those before and after it."""
        path = os.path.join(self._base, place)
        return [status_of(path), status_of(os.path.join(path, b"data"))]

    def validated(self, record: StoreObject, digests: bool, threads: int | None, report: Report) -> Iterator[Problem]:
        """Validate the bag of a record of :meth:`objects` as it is at this moment, and give what is wrong.

        :param report: whose counts of files and bytes go up
        """
        place = octets(record.path)
        path = os.path.join(self._base, place)
        try:
            is_folder = is_directory(path)
        except OSError as error:
            yield problem("unreadable", place, error.strerror or str(error))
            return
        if is_folder:
            level = "full" if digests else "complete"
            yield from self._validated_by(lambda: validate(path, level, threads=threads), place, report)
        elif not digests:
            yield problem("archive-unchecked", place)
        elif not any(one.kind in _UNREAD for one in record.problems):
            yield from self._validated_by(lambda: validate_archive(path, threads=threads), place, report)

    def _validated_by(self, validation: Callable[[], BagReport], place: bytes, report: Report) -> Iterator[Problem]:
        try:
            # No bag is to be blamed for the disk that takes temporary files.
            with store_errors(self._base):
                found = validation()
        except BagError as error:
            yield problem("unreadable", place, error.reason)
            return
        except SpillError as error:
            raise StoreError(error.path, error.reason) from error.__cause__
        for name in ("files", "bytes"):
            report.counts[name] += found.counts.get(name, 0)
        yield from (_within(place, one) for one in found.problems)
        omitted = found.tally.total() - len(found.problems)
        if omitted:  # there may be errors among them, behind as many warnings as are kept
            severity = "warning" if found.ok else "error"
            yield bag_problem("problems-omitted", place, f"{omitted} more problems of the bag", severity=severity)

    def repair(self, *, dry_run: bool = False, on_event: OnEvent | None = None, ignore: Sequence[str] = ()) -> Report:
        """Mend what lies around the bags, and report what remains; nothing in a bag is changed.

        =========== ==========================================================================================
        ``finish``  a replacement that was interrupted is finished
        ``prune``   empty directories are removed
        ``remove``  what killed runs have left
        =========== ==========================================================================================
        """
        tell = on_event or (lambda _event: None)
        report = Report(counts={"objects": 0, "repaired": 0})
        folder = os.path.join(self._base, WORKSHOP)
        with store_errors(self._base), contextlib.ExitStack() as stack:
            # All of it before anything is removed.
            items = list(self._walk(ignore))
            shop = None
            if not dry_run and (os.path.isdir(folder) or any(self._mendable(item) for item in items)):
                shop = stack.enter_context(Workshop(folder))
            gone: set[bytes] = set()
            for item in items:
                if isinstance(item, StoreObject):
                    report.counts["objects"] += 1
                action = self._mendable(item)
                if action is None:
                    report.add(item.problems if isinstance(item, StoreObject) else [item])
                    continue
                try:
                    with shop.turn() if shop is not None else contextlib.nullcontext():
                        done = list(self._mend(action, item, shop, gone))
                except OSError as error:
                    report.add([unrepaired(octets(item.path), error)])
                    report.add(item.problems if isinstance(item, StoreObject) else [item])
                    continue
                for path in done:
                    tell(Changed(action, path))
                report.counts["repaired"] += bool(done)
                if isinstance(item, StoreObject):
                    report.add(one for one in item.problems if one.kind != "unfinished")
        return report

    @staticmethod
    def _mendable(item: StoreObject | Problem) -> str | None:
        if isinstance(item, StoreObject):
            return "finish" if any(one.kind == "unfinished" for one in item.problems) else None
        return {"empty": "prune", "leftover": "remove"}.get(item.kind)

    def _mend(
        self, action: str, item: StoreObject | Problem, shop: Workshop | None, gone: set[bytes]
    ) -> Iterator[bytes]:
        """Mend one thing, and give the paths that are concerned; without a workshop only these."""
        place = octets(item.path)
        path = os.path.join(self._base, place)
        own = path.removesuffix(REPLACED)
        if action == "finish":
            if shop is None:
                yield place
            elif os.path.lexists(path) and not os.path.lexists(own):  # else another run has finished it
                rename_new(path, own)
                flush_directory(os.path.dirname(path))
                yield place
        elif action == "remove":
            yield place
            if shop is not None and not place.startswith(WORKSHOP) and os.path.lexists(path) and os.path.lexists(own):
                _discard(shop, path)
        elif shop is not None:
            yield from prune_upward(self._base, place)
        else:
            while place and would_be_empty(os.path.join(self._base, place), place, gone):
                gone.add(place)
                yield place
                place = os.path.dirname(place)


def _walked(record: StoreObject) -> tuple[Problem, ...]:
    """Return the problems of a record that the bag itself has."""
    return tuple(one for one in record.problems if one.kind != "duplicate-id")


def _without_double(items: Sequence[Item]) -> list[object]:
    """Return what two looks at a place have in common, if nothing was changed between them."""
    return [one if isinstance(one, Problem) else (one.id, one.path, _walked(one)) for one in items]


def _discard(shop: Workshop, path: bytes) -> None:
    """Move into a workshop what is to be removed; there may be others of its name in it."""
    os.rename(path, os.path.join(tempfile.mkdtemp(dir=shop.path), os.path.basename(path)))


def _record(identifier: str | None, place: bytes, problems: Sequence[Problem]) -> StoreObject:
    proper = not any(one.severity == "error" for one in problems)
    return StoreObject(identifier, text(place), proper, None, tuple(problems))


def _within(place: bytes, found: Problem) -> Problem:
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


def _is_bag(entries: Sequence[Entry]) -> bool:
    """Return whether a directory is a bag, or was one before it lost its bagit.txt."""
    kinds = {entry.name: entry.kind for entry in entries}
    if kinds.get(b"bagit.txt") not in (None, "directory"):
        return True
    manifests = (name.startswith(b"manifest-") and name.endswith(b".txt") for name in kinds if kinds[name] == "file")
    return kinds.get(b"data") == "directory" and any(manifests)


def _check_identifiers(base: bytes, identifiers: str, layout: Layout | None) -> None:
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
