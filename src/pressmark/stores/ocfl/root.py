"""OCFL storage roots, versions 1.0 and 1.1: objects where their layout places them.

::

    <root>/
    ├── 0=ocfl_1.1                           the declaration
    ├── ocfl_layout.json                     names the layout
    ├── extensions/<layout>/config.json      its parameters
    ├── extensions/pressmark-staging/        while something is changed: see :mod:`pressmark.stores.directories`
    └── …/<object>/                          see :mod:`pressmark.stores.ocfl.object`

An object appears by one rename and goes by one rename, while no other run of Pressmark moves anything.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from typing import Any, BinaryIO, Literal, NamedTuple

from pressmark.errors import IdentifierError, ObjectError, StoreError, shown
from pressmark.fs.durable import exists, flush_directory, flush_tree
from pressmark.fs.removal import remove_tree
from pressmark.layouts import HashAndIdNTuple, Layout
from pressmark.reports import Problem, Report
from pressmark.stores.directories import (
    NAME_MAX,
    PATH_MAX,
    Entry,
    Refused,
    Workshop,
    exchange,
    is_absent,
    longest_inside,
    make_parents,
    rename_new,
    scan,
    tidy_upward,
    too_long,
)
from pressmark.stores.ocfl import check as ocfl_check
from pressmark.stores.ocfl.bulk_writer import Loading
from pressmark.stores.ocfl.declarations import OBJECT, ROOT, VERSIONS, declaration
from pressmark.stores.ocfl.inventory import (
    ALGORITHMS,
    INVENTORY,
    InventoryError,
    head_state,
    logical_files,
    read_inventory,
    scan_identifier,
)
from pressmark.stores.ocfl.inventory_rules import path_fault
from pressmark.stores.ocfl.layout_files import (
    EXTENSIONS,
    LAYOUT,
    WORKSHOP,
    RootFacts,
    create_root,
    read_root,
    refused_layout,
)
from pressmark.stores.ocfl.object import check_object, is_object_name, is_object_root
from pressmark.stores.ocfl.object_writer import Manners, Provenance, write_object, write_version
from pressmark.stores.ocfl.unversioned import MUTABLE_HEAD, has_mutable_head, unversioned
from pressmark.stores.ocfl.walk import Found, Walk
from pressmark.stores.problems import problem
from pressmark.stores.store import (
    CopyMode,
    OnEvent,
    OnProblem,
    Path,
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
)

__all__ = ["OcflObject", "OcflRoot"]

_INVENTORY = octets(INVENTORY)
# What is in every object's directory, or should be.
_SIGNS = (b"/" + _INVENTORY, *(b"/" + declaration(OBJECT, version)[0] for version in VERSIONS))
_OPEN = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_OPEN_FILE = _OPEN | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_NO_EMPTY = "it is an empty directory, and OCFL has none"
TRIES = 100  # how often something is begun again because another run was quicker
# Identifiers are looked for in so much of an inventory before all of it is read.
_HEAD = 4096  # bytes
# ocfl-java 2.2.3 spells the first hex digit of a character's first byte in upper case where it has three bytes or more.
_LONG_ESCAPE = re.compile("%[ef](?=[0-9a-f])")


class OcflObject(StoredObject):
    """An object of an OCFL storage root: the files of its newest version, by their logical paths.

    A version that is put later changes none of them.

    :param seen: the status of the inventory's file, which was read
    :ivar inventory: its inventory's JSON object
    """

    def __init__(
        self, store: str, identifier: str, path: bytes, inventory: dict[str, Any], seen: os.stat_result
    ) -> None:
        super().__init__(store, identifier, path, ())
        self.inventory = inventory
        self._seen = {os.path.join(path, _INVENTORY): seen}
        # Directories that were seen not to lie below a link: files share them.
        self._folders: set[bytes] = set()
        try:
            self._contents = {logical: content for logical, content, _digest in logical_files(inventory)}
        except InventoryError as error:
            raise ObjectError(store, identifier, "improper", f"its inventory is malformed: {error}") from None

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Give logical path and place of each file, by logical paths.

        :raises ObjectError: the inventory gives a file a path that might lead out of the object; or as :meth:`confirm`
        """
        for logical in sorted(self._contents, key=octets):
            yield logical, self._place(self._contents[logical])
        self.confirm()

    def older_files(self) -> Iterator[tuple[str, bytes, str]]:
        """Give content path, place and digest of each file that is in older versions only, by content paths.

        :raises ObjectError: as :meth:`files`
        """
        newest = set(self._contents.values())
        for content, digest in sorted(_digests(self.inventory).items()):
            if content not in newest:
                yield content, self._place(content), digest
        self.confirm()

    def unversioned(self) -> list[bytes]:
        """Return what is in the object's root beside its versions; see :mod:`pressmark.stores.ocfl.unversioned`.

        :raises ObjectError: a directory cannot be read
        """
        with object_errors(self._store, self.id):
            return unversioned(self.path, self.inventory)

    def empty_directories(self) -> Iterator[tuple[str, bytes]]:
        """Give nothing: OCFL objects have none."""
        return iter(())

    def confirm(self) -> None:
        """Make sure that the object still has the files of the version that was got.

        :raises ObjectError: of kind ``changed``: it was replaced by another or removed; or nobody can say
        """
        (path,) = self._seen
        with object_errors(self._store, self.id):
            if is_same_version(status_of(path), self._seen[path]):
                return
            try:
                file, status = _open_file(path)
                with file:
                    document = read_inventory(file.read())
                head_state(document)
            except (FileNotFoundError, NotADirectoryError, InventoryError):
                raise self._changed() from None
        same = all(document.get(key) == self.inventory.get(key) for key in ("id", "digestAlgorithm"))
        if not same or not _digests(self.inventory).items() <= _digests(document).items():
            raise self._changed()
        self._seen[path] = status

    def open(self, name: str) -> BinaryIO:
        """Open the file whose logical path is ``name``.

        :raises ObjectError: there is no such file in it, or it cannot be read; or as :meth:`confirm`
        """
        if name not in self._contents:
            raise self._no_file(name)
        try:
            with object_errors(self._store, self.id):
                file, _status = _open_file(self._place(self._contents[name]))
        except ObjectError:
            self.confirm()
            raise
        try:
            self.confirm()
        except BaseException:
            file.close()
            raise
        return file

    def _place(self, content: str) -> bytes:
        fault = "a path has a NUL" if "\0" in content else path_fault(content)
        if fault is not None:
            raise ObjectError(self._store, self.id, "improper", f"its inventory is malformed: {fault}")
        self._refuse_links(octets(content))
        return os.path.join(self.path, octets(content))

    def _refuse_links(self, content: bytes) -> None:
        """Refuse a file that is, or lies below, a link: OCFL has none, and what it leads to is not the object's."""
        folder = os.path.dirname(content)
        if folder not in self._folders:
            path = b""
            for name in folder.split(b"/"):
                path = os.path.join(path, name)
                self._refuse_link(path)
            self._folders.add(folder)
        self._refuse_link(content)

    def _refuse_link(self, path: bytes) -> None:
        if os.path.islink(os.path.join(self.path, path)):
            what = f"{text(path)} is a symbolic link, and OCFL has none; check the store"
            raise ObjectError(self._store, self.id, "improper", what)


class _Held(NamedTuple):
    """An object that was found.

    :ivar place: relative to the root
    :ivar document: its inventory
    :ivar status: of the inventory's file
    """

    place: bytes
    document: dict[str, Any]
    status: os.stat_result


class _Identity(NamedTuple):
    """What a walk takes from an object's inventory.

    :ivar identifier: :data:`None` where there is none
    :ivar problems: why there is none
    """

    identifier: str | None
    problems: tuple[Problem, ...]


class OcflRoot(Store):
    """An OCFL storage root.

    :param root: its directory
    :param layout: places the objects, instead of the one that ``ocfl_layout.json`` names
    :param algorithm: of new objects' digests: ``sha512`` or ``sha256``
    :param user: ``name`` and ``address`` (a URI) of whoever makes versions
    :param message: why versions are made, where :meth:`put` is not told
    :param content_paths: maps logical paths to content paths in new versions: extension 0011
    :param flush: have each object on the disk before it appears; without, a power failure may leave empty files
    :param undeclared: open a directory that declares no known version too, for :meth:`check`: nothing is written to it

    :ivar version: of OCFL; the newest where none is declared
    :ivar copied: devices from which files turned out to be copied, where sharing blocks was tried
    :ivar signs: what makes a directory an object's: names of files in it, with a slash before each
    :ivar layout_is_given: whether the layout is not that of ``ocfl_layout.json``
    :raises StoreError: it is no storage root, or an argument cannot be used
    """

    kind = "ocfl"
    signs = _SIGNS

    def __init__(
        self,
        root: Path,
        *,
        layout: Layout | None = None,
        algorithm: str = "sha512",
        user: Mapping[str, str] | None = None,
        message: str | None = "Stored by pressmark",
        content_paths: Layout | None = None,
        flush: bool = True,
        undeclared: bool = False,
    ) -> None:
        self._root = encode_path(root)
        self.root = os.fsdecode(self._root)
        if algorithm not in ALGORITHMS:
            raise StoreError(self.root, f"objects cannot be addressed by {shown(algorithm)}; take sha512 or sha256")
        if content_paths is not None and not content_paths.name.startswith("0011"):
            raise StoreError(self.root, f"{content_paths.name} maps no content paths; take 0011")
        if user is not None and (not user.get("name") or user.keys() - {"name", "address"}):
            raise StoreError(self.root, "a user has a name, may have an address, and nothing else")
        with store_errors(self.root):
            facts = read_root(self._root)
        self._why_undeclared = _undeclared(facts)
        if self._why_undeclared and not undeclared:
            raise StoreError(self.root, self._why_undeclared)
        self.version = facts.version or VERSIONS[0]
        self._why_no_layout = facts.why_no_layout
        self.layout = facts.layout
        self.layout_is_given = layout is not None
        if layout is not None:
            why = refused_layout(layout, self.version)
            if why is not None:
                raise StoreError(self.root, why)
            self.layout = layout
        self.algorithm = algorithm
        self.user = user
        self.message = message
        self.content_paths = content_paths
        self.flush = flush
        self.copied: set[int] = set()
        self._shared: Workshop | None = None
        self._numbers = count()

    @classmethod
    def create(
        cls,
        root: Path,
        layout: Layout | None = None,
        *,
        version: str = VERSIONS[0],
        description: str | None = None,
        **options: Any,
    ) -> OcflRoot:
        """Make an empty storage root.

        :param root: a directory that is not there yet, or is empty
        :param layout: of its objects; there is none of its own, so it must be given
        :param version: of OCFL
        :param description: of the layout, for ``ocfl_layout.json``
        :param options: as for :class:`OcflRoot`
        :raises StoreError: it cannot be made
        """
        if layout is None:
            raise StoreError(os.fspath(root), "an OCFL storage root needs a layout; give one, such as 0003")
        with store_errors(os.fspath(root)):
            create_root(encode_path(root), layout, version, description)
        return cls(root, **options)

    # --- places ---------------------------------------------------------------------------------------------------

    def _layout(self, purpose: str) -> Layout:
        if self.layout is None:
            raise StoreError(self.root, f"{self._why_no_layout}; to {purpose} objects, give a layout that is known")
        return self.layout

    def _identifier(self, identifier: str | bytes) -> str:
        try:
            name = octets(identifier).decode()
        except UnicodeError:
            raise IdentifierError(
                identifier, None, "it is not UTF-8, and an OCFL inventory can hold no other"
            ) from None
        return name

    def _place(self, identifier: str, purpose: str) -> bytes:
        """Return where the layout places an object.

        :raises ObjectError: of kind ``reserved`` or ``bad-name``: nothing can be there
        """
        place = octets(self._layout(purpose).map_id(identifier))
        first = place.split(b"/", 1)[0]
        if first.lower() in (EXTENSIONS, LAYOUT) or first.startswith(b"0="):
            what = (
                f"its place {text(place)!r} is reserved for what the storage root says of itself; take another layout"
            )
            raise ObjectError(self.root, identifier, "reserved", what)
        why = too_long(self._root, place)
        if why is not None:
            if purpose != "put" and is_absent(self._root, place):
                raise ObjectError(self.root, identifier, "missing", f"there is no object at {text(place)!r}")
            raise ObjectError(self.root, identifier, "bad-name", f"{why}; take another layout, such as 0004")
        return place

    def _foreign_place(self, place: bytes) -> bytes | None:
        """Return where ocfl-java puts an object that layout 0003 places at ``place``, if elsewhere."""
        if not isinstance(self.layout, HashAndIdNTuple) or b"%" not in place:
            return None
        other = octets(_LONG_ESCAPE.sub(lambda match: match[0].upper(), text(place)))
        return None if other == place else other

    def place(self, identifier: str | bytes) -> bytes:
        """Return where a new object belongs, relative to the root.

        :raises ObjectError: of kind ``reserved`` or ``bad-name``: nothing can be there
        :raises IdentifierError: the identifier has no place in this store
        :raises StoreError: the layout is not known
        """
        return self._place(self._identifier(identifier), "put")

    def places(self, identifiers: Sequence[str]) -> list[bytes | None]:
        """Return where new objects belong, :data:`None` where :meth:`place` says why that is nowhere: all at once.

        :raises StoreError: the layout is not known
        """
        paths = self._layout("put").map_ids(identifiers, on_error="none")
        # What every path may have below the root, if no name is longer than a file system takes.
        room = PATH_MAX - len(os.path.abspath(self._root)) - 1
        found: list[bytes | None] = []
        for identifier, path in zip(identifiers, paths, strict=True):
            # An identifier that is not UTF-8 has no place, whatever the layout makes of it.
            place = octets(path or "") if identifier.isascii() or _is_text(identifier) else b""
            first = place.partition(b"/")[0]
            usual = first and first.lower() not in (EXTENSIONS, LAYOUT) and not first.startswith(b"0=")
            is_short = len(place) < NAME_MAX or (len(place) < room and max(map(len, place.split(b"/"))) <= NAME_MAX)
            found.append(place if usual and is_short and len(place) < room else None)
        return found

    def is_elsewhere(self, place: bytes) -> bool:
        """Return whether something is where ocfl-java puts the object that belongs at ``place``.

        :raises OSError: nobody can say
        """
        other = self._foreign_place(place)
        return other is not None and exists(self._absolute(other))

    def _absolute(self, place: bytes) -> bytes:
        return os.path.join(self._root, place)

    def _read_inventory(self, identifier: str, place: bytes) -> _Held | None:
        """Return the object whose directory is at ``place``, :data:`None` where there is no inventory.

        :raises ObjectError: it cannot be read
        """
        directory = self._absolute(place)
        try:
            with object_errors(self.root, identifier):
                file, status = _open_file(os.path.join(directory, _INVENTORY))
                with file:
                    return _Held(place, read_inventory(file.read()), status)
        except ObjectError as error:
            if isinstance(error.__cause__, (FileNotFoundError, NotADirectoryError)):
                return None
            raise
        except InventoryError as error:
            what = f"{text(directory)}: the inventory there is malformed: {error}"
            raise ObjectError(self.root, identifier, "improper", what) from None

    def _find(self, identifier: str, place: bytes) -> _Held | None:
        """Return the object that belongs at ``place``.

        :raises ObjectError: another object holds its place
        """
        for candidate in (place, self._foreign_place(place)):
            found = None if candidate is None else self._read_inventory(identifier, candidate)
            if found is None:
                continue
            if found.document.get("id") != identifier:
                if candidate is not place:
                    continue
                holder = shown(str(found.document.get("id")))
                what = f"its place {text(place)!r} is held by the object {holder}: the layout maps both there"
                raise ObjectError(self.root, identifier, "collision", what)
            return found
        return None

    # --- walking --------------------------------------------------------------------------------------------------

    def objects(
        self, *, threads: int | None = None, on_problem: OnProblem | None = None, ignore: Sequence[str] = ()
    ) -> Iterator[StoreObject]:
        """Give every object, by the octets of their paths; see :meth:`Store.objects`.

        Identifiers are those of the inventories, and compared with where the layout places them.
        """
        walk: Walk[_Identity | None] = Walk(
            self._root, self._identify, finish=self._compare, threads=threads or os.cpu_count() or 1, ignore=ignore
        )
        with store_errors(self.root):
            for item in walk:
                if isinstance(item, Found):
                    if item.value is None:
                        continue
                    identifier, problems = item.value
                    proper = not any(problem.severity == "error" for problem in problems)
                    yield StoreObject(identifier, text(item.place), proper, None, problems)
                elif on_problem is not None:
                    on_problem(item)

    def _identify(self, place: bytes, entries: Sequence[Entry]) -> _Identity | None:
        """Return what an object's inventory says of it; :data:`None` where another run has removed the object."""
        path = os.path.join(self._root, place, _INVENTORY)
        where = place + b"/" + _INVENTORY
        # A pipe would never be read to its end, and what a link leads to is not in the store.
        if not any(entry.name == _INVENTORY and entry.kind == "file" for entry in entries):
            return _Identity(None, (problem("inventory-missing", place),))
        try:
            with open(path, "rb", buffering=0) as file:
                data = file.read(_HEAD)
                identifier: Any = scan_identifier(data)
                if identifier is None:
                    identifier = read_inventory(data + file.readall()).get("id")
        except FileNotFoundError:
            return _Identity(None, (problem("inventory-missing", place),)) if exists(self._absolute(place)) else None
        except OSError as error:
            return _Identity(None, (problem("unreadable", where, error.strerror or str(error)),))
        except InventoryError as error:
            return _Identity(None, (problem("inventory-malformed", where, str(error)),))
        if not isinstance(identifier, str) or not identifier:
            what = "the inventory has no id, or one that is no text"
            return _Identity(None, (problem("inventory-value", where, what, code="E037"),))
        return _Identity(identifier, ())

    def _compare(self, found: list[Found[_Identity | None]]) -> list[Found[_Identity | None]]:
        """Add what is wrong with the places of objects."""
        there = [(item, item.value) for item in found if item.value is not None]
        wrong = self.misplacements([(item.place, item.inside, value.identifier) for item, value in there])
        worse = {
            item.place: item._replace(value=value._replace(problems=(*value.problems, *problems)))
            for (item, value), problems in zip(there, wrong, strict=True)
            if problems
        }
        return [worse.get(item.place, item) for item in found] if worse else found

    def misplacements(self, found: Sequence[tuple[bytes, bytes | None, str | None]]) -> list[list[Problem]]:
        """Return what is wrong with the places of objects.

        :param found: place, the object that it is in, and identifier, of each
        """
        wrong: list[list[Problem]] = [[] for _ in found]
        for problems, (place, inside, _identifier) in zip(wrong, found, strict=True):
            if inside is not None:
                what = f"the object is inside of the object {text(inside)!r}"
                problems.append(problem("object-inside", place, what))
        if self.layout is None:
            return wrong
        known = [(number, item[2]) for number, item in enumerate(found) if item[2] is not None]
        paths = self.layout.map_ids([identifier for _number, identifier in known], on_error="none")
        for (number, identifier), path in zip(known, paths, strict=True):
            place = found[number][0]
            if path is None:
                what = f"the layout has no place for the identifier {shown(identifier)}"
                wrong[number].append(problem("identifier-unplaced", place, what))
            elif (right := octets(path)) != place:
                kind = "path-ocfl-java" if self._foreign_place(right) == place else "misplaced"
                what = {
                    "path-ocfl-java": f"ocfl-java's spelling; {self.layout.name} places it at {path!r}",
                    "misplaced": f"the object {shown(identifier)} belongs at {path!r}",
                }[kind]
                wrong[number].append(problem(kind, place, what, expected=path, found=text(place)))
        return wrong

    # --- one object -----------------------------------------------------------------------------------------------

    def get(self, identifier: str | bytes) -> OcflObject:
        """Return an object's newest version.

        :raises ObjectError: of kind ``missing``, ``collision`` or ``improper``
        :raises IdentifierError: the identifier has no place in this store
        :raises StoreError: the layout is not known
        """
        name = self._identifier(identifier)
        place = self._place(name, "find")
        found = self._find(name, place)
        if found is None:
            raise ObjectError(self.root, name, "missing", f"there is no object at {text(place)!r}")
        return self._object(name, found)

    def locate(self, record: StoreObject) -> OcflObject:
        """Return the object of a record of :meth:`objects`: also one that is not where its identifier belongs.

        :raises ObjectError: of kind ``missing``: there is none, or one of another identifier; or ``improper``
        """
        found = self._read_inventory(record.id or "", octets(record.path))
        held = None if found is None else found.document.get("id")
        if found is None or (record.id is not None and held != record.id):
            what = "there is no object" if found is None else f"there is {shown(str(held))} instead"
            raise ObjectError(self.root, record.id or "", "missing", f"{what} at {record.path!r}")
        return self._object(str(held), found)

    def _object(self, identifier: str, found: _Held) -> OcflObject:
        directory = os.path.abspath(self._absolute(found.place))
        return OcflObject(self.root, identifier, directory, found.document, found.status)

    def put(
        self,
        identifier: str | bytes,
        source: Source,
        *,
        replace: bool = False,
        mode: CopyMode = "auto",
        links: Literal["refuse", "follow"] = "refuse",
        created: str | None = None,
        message: str | None = None,
        user: Mapping[str, str] | None = None,
        fixity: Mapping[str, Mapping[str, str]] | None = None,
        threads: int | None = None,
    ) -> StoreObject:
        """Store an object; with ``replace`` as a new version of the one that is there.

        :param created: date and time of RFC 3339; :data:`None` for now
        :param message: why; :data:`None` for the root's
        :param user: who; :data:`None` for the root's
        :param fixity: digests that are known, by algorithm and logical path, such as those of the source's manifest:
            they are compared with what is copied, and noted in the inventory; an algorithm without any is computed
            for all files
        :raises ObjectError: nothing was stored. Its ``kind`` is ``exists``, ``collision`` (another identifier holds
            its place), ``object-inside`` (its place is in an object, or has objects below it), ``reserved``,
            ``mismatch`` (a digest is not as given), ``mutable-head`` (it has staged content, extension 0005),
            ``bad-name``, ``source``, ``no-space``, …
        :raises IdentifierError: the identifier has no place in this store
        :raises StoreError: the layout is not known
        """
        if mode == "hardlink":
            raise StoreError(self.root, "OCFL forbids hard links (E090); take copy, reflink or auto")
        name = self._identifier(identifier)
        place = self._place(name, "put")
        provenance = Provenance(created, self.message if message is None else message, user or self.user)
        how: dict[str, Any] = {
            "provenance": provenance,
            "fixity": fixity or {},
            "content_paths": self.content_paths,
            "manners": Manners(mode, links, threads, self.copied),
        }
        for _ in range(TRIES):
            found = self._find(name, place)
            if found is not None and not replace:
                what = f"it is there already, at {text(found.place)!r}; replace it, or remove it first"
                raise ObjectError(self.root, name, "exists", what)
            try:
                if found is None:
                    self._make_sure_in_turn(name, place)
                return self._store(name, place, found, source, how)
            except ObjectError as error:
                # Another run may have put, replaced or removed it meanwhile: then this begins again.
                if not replace or (error.kind != "exists" and _is_as_found(self._find(name, place), found)):
                    raise
        raise ObjectError(self.root, name, "changed", "other runs change it again and again; try again")

    def _store(
        self,
        name: str,
        place: bytes,
        found: _Held | None,
        source: Source,
        how: dict[str, Any],
    ) -> StoreObject:
        """Write an object aside, and have it appear.

        :param found: the object that is there, if one is
        """
        with self._changing(name) as workshop:
            new = workshop / self.new_name()
            try:
                if found is None:
                    written = write_object(new, name, source, version=self.version, algorithm=self.algorithm, **how)
                else:
                    place = found.place
                    written = self._next_version(name, place, found.document, new, source, how)
                if written.document is not None:
                    self.refuse_too_long(name, place, new)
                    self._appear(workshop, name, new, place, None if found is None else found.document)
            finally:
                # What was not moved in, or what it took the place of.
                with suppress(OSError):
                    remove_tree(new)
        dropped = tuple(
            problem("directory-empty", place, f"{text(folder)!r} was not stored: {_NO_EMPTY}", severity="warning")
            for folder in written.dropped
        )
        return StoreObject(name, text(place), True, None, dropped)

    def refuse_too_long(self, identifier: str, place: bytes, new: bytes) -> None:
        """Make sure that every path of an object can be opened at ``place``.

        :raises ObjectError: of kind ``bad-name``: one would be too long
        """
        reason = too_long(self._root, place + longest_inside(new))
        if reason is not None:
            raise ObjectError(self.root, identifier, "bad-name", f"{reason}; use shorter names, or another layout")

    def _appear(
        self, workshop: Workshop, identifier: str, new: bytes, place: bytes, before: dict[str, Any] | None
    ) -> None:
        """Move an object that is written into its place, or exchange it with its earlier version."""
        if self.flush:
            flush_tree(new)
        with workshop.turn():
            if before is None:
                self.make_sure(identifier, place)
                self.move_in(identifier, new, place)
            else:
                self._exchange(identifier, new, place, before)
        if self.flush:
            while place:
                place = os.path.dirname(place)
                flush_directory(self._absolute(place))

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Let the changes made inside share what each would prepare for itself: for many of them, from any threads.

        :raises StoreError: the root cannot be written to
        """
        if self._shared is not None:
            yield
            return
        with store_errors(self.root), self.workshop() as self._shared:
            try:
                yield
            finally:
                self._shared = None

    def loading(self, flush_places: bool = True) -> Loading:
        """Return what takes many new objects in at a time; see :mod:`pressmark.stores.ocfl.bulk_writer`."""
        return Loading(self, flush_places)

    def _refuse_undeclared(self) -> None:
        if self._why_undeclared:
            raise StoreError(self.root, self._why_undeclared)

    @contextmanager
    def workshop(self) -> Iterator[Workshop]:
        """Give a private directory to prepare changes in.

        :raises OSError: it cannot be made
        :raises StoreError: the root declares no known version
        """
        self._refuse_undeclared()
        folder = os.path.join(self._root, EXTENSIONS)
        with ExitStack() as stack:
            # A root whose layout has no parameters has no extensions: nothing empty must stay behind.
            stack.callback(tidy_upward, self._root, EXTENSIONS)
            for _ in range(TRIES):
                with suppress(FileExistsError):
                    os.mkdir(folder)
                try:
                    workshop = stack.enter_context(Workshop(os.path.join(folder, WORKSHOP)))
                except FileNotFoundError:
                    continue  # another run has just removed it as empty
                break
            else:
                raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), folder)
            yield workshop

    @contextmanager
    def _changing(self, identifier: str) -> Iterator[Workshop]:
        """Give a private directory, and turn what goes wrong in it into an :class:`ObjectError`."""
        try:
            with object_errors(self.root, identifier):
                if self._shared is not None:
                    yield self._shared
                    return
                with self.workshop() as workshop:
                    yield workshop
        except Refused as error:
            raise ObjectError(self.root, identifier, error.kind, error.reason) from error

    def new_name(self) -> bytes:
        """Return a name in a private directory that no other change has."""
        return str(next(self._numbers)).encode()

    def make_sure(self, identifier: str, place: bytes) -> None:
        """Make sure that an object can be at ``place``: it is free, and neither above nor below another.

        :raises ObjectError: it cannot
        """
        with object_errors(self.root, identifier):
            self._make_sure(identifier, place)

    def _make_sure_in_turn(self, identifier: str, place: bytes) -> None:
        """Make sure as :meth:`make_sure` does, and again while no run moves anything: that is nobody's fault."""
        try:
            self.make_sure(identifier, place)
        except ObjectError:
            with self._changing(identifier) as workshop, workshop.turn():
                self.make_sure(identifier, place)

    def _make_sure(self, identifier: str, place: bytes) -> None:
        parts = place.split(b"/")
        path = self._root
        for number, part in enumerate(parts[:-1], 1):
            path = os.path.join(path, part)
            if not exists(path):
                return
            above = b"/".join(parts[:number])
            if os.path.islink(path) or not os.path.isdir(path):
                what = f"{text(above)!r}, above its place, is no directory; move it out of the storage root"
                raise ObjectError(self.root, identifier, "object-inside", what)
            if self.declares_object(path):
                what = f"its place {text(place)!r} is inside of the object {text(above)!r}, and objects cannot nest"
                raise ObjectError(self.root, identifier, "object-inside", what)
        path = os.path.join(path, parts[-1])
        try:
            entries = None if os.path.islink(path) else scan(path, follow=False)
        except FileNotFoundError:
            return
        except NotADirectoryError:
            entries = None
        if entries is None:
            what = f"at its place {text(place)!r} is no directory; move it out of the storage root"
            raise ObjectError(self.root, identifier, "collision", what)
        found = self._find(identifier, place)  # raises where another object holds it
        if found is not None:
            raise ObjectError(self.root, identifier, "exists", f"it is there already, at {text(place)!r}")
        if is_object_root(entries):
            what = f"at its place {text(place)!r} is an object without an inventory; check the store"
            raise ObjectError(self.root, identifier, "improper", what)
        if entries:
            what = f"below its place {text(place)!r} are other objects or files, and objects cannot nest"
            raise ObjectError(self.root, identifier, "object-inside", what)

    @staticmethod
    def declares_object(directory: bytes) -> bool:
        """Return whether a directory is an object's, or says so.

        :raises OSError: nobody can say
        """
        # Asked for by name: intermediate directories may have thousands of entries.
        return any(exists(directory + name) for name in _SIGNS)

    def move_in(self, identifier: str, new: bytes, place: bytes) -> None:
        """Make the directories above a place, and move an object there."""
        parent, target = os.path.dirname(place), self._absolute(place)
        try:
            if parent:
                make_parents(self._root, parent)
            if os.path.isdir(target):
                os.rmdir(target)  # an empty one, which a killed run or another program left behind
            rename_new(new, target)
        except OSError as error:
            tidy_upward(self._root, parent)
            if isinstance(error, FileExistsError):
                self.make_sure(identifier, place)
            raise

    def _next_version(
        self, identifier: str, place: bytes, document: dict[str, Any], new: bytes, source: Source, how: dict[str, Any]
    ) -> Any:
        """Write an object's next version aside.

        :raises ObjectError: the object is not as it should be
        """
        old = self._absolute(place)
        self._refuse_mutable_head(identifier, old)
        checked = check_object(old, place, scan(old, follow=False), self.version)
        # A run that was killed may have left the newest version's files with two names: they are only added to here.
        wrong = [one for one in checked.problems if one.severity == "error" and one.kind != "hard-link"]
        if wrong:
            what = f"it is not valid ({wrong[0].kind}: {wrong[0].message}); check the store"
            raise ObjectError(self.root, identifier, "improper", what)
        versions = (one for one in VERSIONS if os.path.lexists(os.path.join(old, declaration(OBJECT, one)[0])))
        declared = next(versions, None)
        if declared is None:
            raise ObjectError(self.root, identifier, "changed", "it was removed by another run meanwhile; try again")
        return write_version(new, old, document, source, version=declared, **how)

    def _refuse_mutable_head(self, identifier: str, directory: bytes) -> None:
        """Refuse to write a version beneath what is staged for the next one: ocfl-java would accept neither.

        :raises ObjectError: of kind ``mutable-head``
        """
        if has_mutable_head(directory):
            what = f"it has a mutable HEAD, staged content in {text(MUTABLE_HEAD)}, which a new version would cut off"
            raise ObjectError(self.root, identifier, "mutable-head", f"{what}; commit it with ocfl-java first")

    def _exchange(self, identifier: str, new: bytes, place: bytes, document: dict[str, Any]) -> None:
        """Put an object's next version in the place of the object."""
        found = self._read_inventory(identifier, place)
        if found is None or found.document != document:
            what = "it was changed by another run meanwhile; try again"
            raise ObjectError(self.root, identifier, "changed", what)
        self._refuse_mutable_head(identifier, self._absolute(place))
        if not exchange(new, self._absolute(place)):
            what = "the file system cannot exchange two directories at once, which a new version needs here"
            raise ObjectError(self.root, identifier, "unsupported", f"{what}; remove the object and put it again")

    def delete(self, identifier: str | bytes) -> None:
        """Remove an object with all its versions, and directories above it that are empty then.

        :raises ObjectError: nothing was removed; of kind ``missing``, ``collision``, ``object-inside``, …
        :raises IdentifierError: the identifier has no place in this store
        :raises StoreError: the layout is not known
        """
        name = self._identifier(identifier)
        place = self._place(name, "remove")
        with self._changing(name) as workshop:
            removed = workshop / self.new_name()
            with workshop.turn():
                found = self._find(name, place)
                if found is None:
                    raise ObjectError(self.root, name, "missing", f"there is no object at {text(place)!r}")
                path = self._absolute(found.place)
                strange = [e.name for e in scan(path, follow=False) if e.kind == "directory" and not is_object_name(e)]
                if strange:
                    inside = text(strange[0])
                    what = f"there may be other objects inside of it, in {inside!r}; move that out of it first"
                    raise ObjectError(self.root, name, "object-inside", what)
                os.rename(path, removed)
                tidy_upward(self._root, os.path.dirname(found.place))
            with suppress(OSError):  # it is gone for everybody already; the next run goes on with what remains
                remove_tree(removed)

    # --- all objects ----------------------------------------------------------------------------------------------

    def check(
        self,
        *,
        digests: bool = False,
        threads: int | None = None,
        on_event: OnEvent | None = None,
        on_problem: OnProblem | None = None,
        ignore: Sequence[str] = (),
        on_object: Callable[[ocfl_check.ObjectResult], object] | None = None,
    ) -> Report:
        """Check the root, its hierarchy, and every object strictly; see :meth:`Store.check`.

        :param digests: read all content and compare it with manifests and fixity blocks
        :param on_object: called with each object's own result, in the order of the walk
        """
        with store_errors(self.root):
            run = ocfl_check.Check(self, self._root, on_event, on_problem, on_object)
            return run.report(digests, threads or os.cpu_count() or 1, ignore)

    def repair(self, *, dry_run: bool = False, on_event: OnEvent | None = None, ignore: Sequence[str] = ()) -> Report:
        """Mend what can be mended without losing a byte; see :mod:`pressmark.stores.ocfl.repair`."""
        from pressmark.stores.ocfl.repair import repair

        self._refuse_undeclared()
        with store_errors(self.root):
            return repair(self, self._root, dry_run, on_event, ignore)


def _undeclared(facts: RootFacts) -> str:
    """Return why a directory is not a storage root, or not one of a known version; empty where it is."""
    if facts.version is not None:
        return ""
    known = " or ".join(os.fsdecode(declaration(ROOT, version)[0]) for version in VERSIONS)
    declared = [found for found in facts.problems if found.kind == "declaration-unknown"]
    what = f"it declares {os.fsdecode(declared[0].path)}, " if declared else "it is no OCFL storage root: "
    return f"{what}there is no {known}; pressmark store init makes one"


def _digests(inventory: Mapping[str, Any]) -> dict[str, str]:
    """Return the digest of each content path."""
    return {path: digest.lower() for digest, paths in inventory["manifest"].items() for path in paths}


def _is_as_found(now: _Held | None, found: _Held | None) -> bool:
    """Return whether two looks have found the same object at the same place, or none."""
    if now is None or found is None:
        return now is found
    return (now.place, now.document) == (found.place, found.document)


def _open_file(path: bytes) -> tuple[BinaryIO, os.stat_result]:
    """Open a file for reading. OCFL has no links: one in its place is not followed; nor is a pipe waited for.

    :return: the file and its status
    :raises OSError: it cannot be opened, or is no regular file
    """
    descriptor = os.open(path, _OPEN_FILE)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file", path)
    return open(descriptor, "rb"), status


def _is_text(identifier: str) -> bool:
    try:
        identifier.encode()
    except UnicodeEncodeError:
        return False
    return True
