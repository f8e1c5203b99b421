"""What an OCFL storage root is: its version and layout, where objects are, and how they come into their places.

What is done to a root as a whole (checks, repairs, changes of objects) is above this module.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from pressmark.errors import IdentifierError, ObjectError, StoreError, quoted
from pressmark.fs.durable import exists
from pressmark.fs.entries import longest_inside, scan
from pressmark.fs.moves import prune_empty_parents
from pressmark.fs.names import NAME_MAX, PATH_MAX, decode_fs, encode_fs, is_absent, too_long
from pressmark.fs.run_directories import RunDirectory
from pressmark.layouts import HashAndIdNTuple, Layout
from pressmark.reports import Problem
from pressmark.stores.exceptions import object_errors, store_errors
from pressmark.stores.ocfl.declarations import EXTENSIONS, OBJECT, ROOT, VERSIONS, declaration, is_object_root
from pressmark.stores.ocfl.inventory import ALGORITHMS, INVENTORY, InventoryError, read_inventory
from pressmark.stores.ocfl.layout_files import (
    LAYOUT,
    WORKSHOP,
    RootFacts,
    create_root,
    read_root,
    refused_layout,
)
from pressmark.stores.ocfl.storage import LocalStorage, Storage
from pressmark.stores.problems import problem
from pressmark.stores.store import OnProblem, Path, Store, StoreObject, encode_path

if TYPE_CHECKING:
    from pressmark.stores.ocfl.ocfl_object import OcflObject

__all__ = ["Held", "StorageRoot"]

_INVENTORY = encode_fs(INVENTORY)
# What is in every object's directory, or should be.
_SIGNS = (b"/" + _INVENTORY, *(b"/" + declaration(OBJECT, version)[0] for version in VERSIONS))
TRIES = 100  # how often something is begun again because another run was quicker
# ocfl-java 2.2.3 spells the first hex digit of a character's first byte in upper case where it has three bytes or more.
_LONG_ESCAPE = re.compile("%[ef](?=[0-9a-f])")


class Held(NamedTuple):
    """An object that was found.

    :ivar place: relative to the root
    :ivar document: its inventory
    :ivar status: of the inventory's file
    """

    place: bytes
    document: dict[str, Any]
    status: os.stat_result


class StorageRoot(Store):
    """An OCFL storage root: its version, its layout, and the objects in it.

    :param root: its directory
    :param layout: places the objects, instead of the one that ``ocfl_layout.json`` names
    :param algorithm: of new objects' digests: ``sha512`` or ``sha256``
    :param user: ``name`` and ``address`` (a URI) of whoever makes versions
    :param message: why versions are made, where :meth:`put` is not told
    :param content_paths: maps logical paths to content paths in new versions: extension 0011
    :param flush: have each object on the disk before it appears; without, a power failure may leave empty files
    :param undeclared: open a directory that declares no known version too, for :meth:`check`: nothing is written to it

    :ivar version: of OCFL; the newest where none is declared
    :ivar storage: where it is kept
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
        self.storage: Storage = LocalStorage(self._root)
        if algorithm not in ALGORITHMS:
            raise StoreError(self.root, f"objects cannot be addressed by {quoted(algorithm)}; take sha512 or sha256")
        if content_paths is not None and not content_paths.name.startswith("0011"):
            raise StoreError(self.root, f"{content_paths.name} maps no content paths; take 0011")
        if user is not None and (not user.get("name") or user.keys() - {"name", "address"}):
            raise StoreError(self.root, "a user has a name, may have an address, and nothing else")
        with store_errors(self.root):
            facts = read_root(self.storage)
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
        self._shared: RunDirectory | None = None
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
    ) -> Self:
        """Make an empty storage root.

        :param root: a directory that is not there yet, or is empty
        :param layout: of its objects; there is none of its own, so it must be given
        :param version: of OCFL
        :param description: of the layout, for ``ocfl_layout.json``
        :param options: as for :class:`StorageRoot`
        :raises StoreError: it cannot be made
        """
        if layout is None:
            raise StoreError(os.fspath(root), "an OCFL storage root needs a layout; give one, such as 0003")
        with store_errors(os.fspath(root)):
            create_root(encode_path(root), layout, version, description)
        return cls(root, **options)

    # --- places -------------------------------------------------------------------------------------------------------

    def _layout(self, purpose: str) -> Layout:
        if self.layout is None:
            raise StoreError(self.root, f"{self._why_no_layout}; to {purpose} objects, give a layout that is known")
        return self.layout

    def _identifier(self, identifier: str | bytes) -> str:
        try:
            name = encode_fs(identifier).decode()
        except UnicodeError:
            raise IdentifierError(
                identifier, None, "it is not UTF-8, and an OCFL inventory can hold no other"
            ) from None
        return name

    def _place(self, identifier: str, purpose: str) -> bytes:
        """Return where the layout places an object.

        :raises ObjectError: of kind ``reserved`` or ``bad-name``: nothing can be there
        """
        place = encode_fs(self._layout(purpose).map_id(identifier))
        first = place.split(b"/", 1)[0]
        if first.lower() in (EXTENSIONS, LAYOUT) or first.startswith(b"0="):
            what = f"its place {decode_fs(place)!r} is reserved for the storage root itself; take another layout"
            raise ObjectError(self.root, identifier, "reserved", what)
        why = too_long(self._root, place)
        if why is not None:
            if purpose != "put" and is_absent(self._root, place):
                raise ObjectError(self.root, identifier, "missing", f"there is no object at {decode_fs(place)!r}")
            raise ObjectError(self.root, identifier, "bad-name", f"{why}; take another layout, such as 0004")
        return place

    def _foreign_place(self, place: bytes) -> bytes | None:
        """Return where ocfl-java puts an object that layout 0003 places at ``place``, if elsewhere."""
        if not isinstance(self.layout, HashAndIdNTuple) or b"%" not in place:
            return None
        other = encode_fs(_LONG_ESCAPE.sub(lambda match: match[0].upper(), decode_fs(place)))
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
            place = encode_fs(path or "") if identifier.isascii() or _is_text(identifier) else b""
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
        return other is not None and self.storage.exists(other)

    def _absolute(self, place: bytes) -> bytes:
        return self.storage.path(place)

    def _read_inventory(self, identifier: str, place: bytes) -> Held | None:
        """Return the object whose directory is at ``place``, :data:`None` where there is no inventory.

        :raises ObjectError: it cannot be read
        """
        try:
            with object_errors(self.root, identifier):
                file, status = self.storage.open(place + b"/" + _INVENTORY)
                with file:
                    return Held(place, read_inventory(file.read()), status)
        except ObjectError as error:
            if isinstance(error.__cause__, (FileNotFoundError, NotADirectoryError)):
                return None
            raise
        except InventoryError as error:
            what = f"{decode_fs(self._absolute(place))}: the inventory there is malformed: {error}"
            raise ObjectError(self.root, identifier, "improper", what) from None

    def _find(self, identifier: str, place: bytes) -> Held | None:
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
                holder = quoted(str(found.document.get("id")))
                what = f"its place {decode_fs(place)!r} is held by the object {holder}: the layout maps both there"
                raise ObjectError(self.root, identifier, "collision", what)
            return found
        return None

    # --- walking ------------------------------------------------------------------------------------------------------

    def objects(
        self, *, threads: int | None = None, on_problem: OnProblem | None = None, ignore: Sequence[str] = ()
    ) -> Iterator[StoreObject]:
        """Give every object, by the octets of their paths; see :meth:`Store.objects`.

        Identifiers are those of the inventories, and compared with where the layout places them.
        """
        from pressmark.stores.ocfl.walk import walk_objects  # putting walks nothing

        with store_errors(self.root):
            for item in walk_objects(self.storage, self.misplacements, threads or os.cpu_count() or 1, ignore):
                if isinstance(item, StoreObject):
                    yield item
                elif on_problem is not None:
                    on_problem(item)

    def misplacements(self, found: Sequence[tuple[bytes, bytes | None, str | None]]) -> list[list[Problem]]:
        """Return what is wrong with the places of objects.

        :param found: place, the object that it is in, and identifier, of each
        """
        wrong: list[list[Problem]] = [[] for _ in found]
        for problems, (place, inside, _identifier) in zip(wrong, found, strict=True):
            if inside is not None:
                what = f"the object is inside the object {decode_fs(inside)!r}"
                problems.append(problem("object-inside", place, what))
        if self.layout is None:
            return wrong
        known = [(number, item[2]) for number, item in enumerate(found) if item[2] is not None]
        paths = self.layout.map_ids([identifier for _number, identifier in known], on_error="none")
        for (number, identifier), path in zip(known, paths, strict=True):
            place = found[number][0]
            if path is None:
                what = f"the layout has no place for the identifier {quoted(identifier)}"
                wrong[number].append(problem("identifier-unplaced", place, what))
            elif (right := encode_fs(path)) != place:
                kind = "path-ocfl-java" if self._foreign_place(right) == place else "misplaced"
                what = {
                    "path-ocfl-java": f"ocfl-java's spelling; {self.layout.name} places it at {path!r}",
                    "misplaced": f"the object {quoted(identifier)} belongs at {path!r}",
                }[kind]
                wrong[number].append(problem(kind, place, what, expected=path, found=decode_fs(place)))
        return wrong

    # --- one object ---------------------------------------------------------------------------------------------------

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
            raise ObjectError(self.root, name, "missing", f"there is no object at {decode_fs(place)!r}")
        return self._object(name, found)

    def locate(self, record: StoreObject) -> OcflObject:
        """Return the object of a record of :meth:`objects`: also one that is not where its identifier belongs.

        :raises ObjectError: of kind ``missing``: there is none, or one of another identifier; or ``improper``
        """
        found = self._read_inventory(record.id or "", encode_fs(record.path))
        held = None if found is None else found.document.get("id")
        if found is None or (record.id is not None and held != record.id):
            what = "there is no object" if found is None else f"there is {quoted(str(held))} instead"
            raise ObjectError(self.root, record.id or "", "missing", f"{what} at {record.path!r}")
        return self._object(str(held), found)

    def _object(self, identifier: str, found: Held) -> OcflObject:
        from pressmark.stores.ocfl.ocfl_object import OcflObject  # putting reads none

        return OcflObject(self.storage.below(found.place), self.root, identifier, found.document, found.status)

    # --- taking turns -------------------------------------------------------------------------------------------------

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

    @contextmanager
    def workshop(self) -> Iterator[RunDirectory]:
        """Give a private directory to prepare changes in.

        :raises OSError: it cannot be made
        :raises StoreError: the root declares no known version
        """
        self._refuse_undeclared()
        folder = os.path.join(self._root, EXTENSIONS)
        with ExitStack() as stack:
            # A root whose layout has no parameters has no extensions: nothing empty must stay behind.
            stack.callback(prune_empty_parents, self._root, EXTENSIONS, strict=False)
            for _ in range(TRIES):
                with suppress(FileExistsError):
                    os.mkdir(folder)
                try:
                    workshop = stack.enter_context(RunDirectory(os.path.join(folder, WORKSHOP)))
                except FileNotFoundError:
                    continue  # another run has just removed it as empty
                break
            else:
                raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), folder)
            yield workshop

    def _refuse_undeclared(self) -> None:
        if self._why_undeclared:
            raise StoreError(self.root, self._why_undeclared)

    @contextmanager
    def _changing(self, identifier: str) -> Iterator[RunDirectory]:
        """Give a private directory, and turn what goes wrong in it into an :class:`ObjectError`."""
        with object_errors(self.root, identifier):
            if self._shared is not None:
                yield self._shared
                return
            with self.workshop() as workshop:
                yield workshop

    def new_name(self) -> bytes:
        """Return a name in a private directory that no other change has."""
        return str(next(self._numbers)).encode()

    # --- moving in ----------------------------------------------------------------------------------------------------

    def check_place_free(self, identifier: str, place: bytes) -> None:
        """Make sure that an object can be at ``place``: it is free, and neither above nor below another.

        :raises ObjectError: it cannot
        """
        with object_errors(self.root, identifier):
            self._check_place_free(identifier, place)

    def _check_place_free_in_turn(self, identifier: str, place: bytes) -> None:
        """Check as :meth:`check_place_free` does, and again while no run moves anything: that is nobody's fault."""
        try:
            self.check_place_free(identifier, place)
        except ObjectError:
            with self._changing(identifier) as workshop, workshop.lock():
                self.check_place_free(identifier, place)

    def _check_place_free(self, identifier: str, place: bytes) -> None:
        parts = place.split(b"/")
        path = self._root
        for number, part in enumerate(parts[:-1], 1):
            path = os.path.join(path, part)
            if not exists(path):
                return
            above = b"/".join(parts[:number])
            if os.path.islink(path) or not os.path.isdir(path):
                what = f"{decode_fs(above)!r}, above its place, is no directory; move it out of the storage root"
                raise ObjectError(self.root, identifier, "object-inside", what)
            if self.declares_object(path):
                what = (
                    f"its place {decode_fs(place)!r} is inside the object {decode_fs(above)!r}, and objects cannot nest"
                )
                raise ObjectError(self.root, identifier, "object-inside", what)
        path = os.path.join(path, parts[-1])
        try:
            entries = None if os.path.islink(path) else scan(path, follow=False)
        except FileNotFoundError:
            return
        except NotADirectoryError:
            entries = None
        if entries is None:
            what = f"at its place {decode_fs(place)!r} is no directory; move it out of the storage root"
            raise ObjectError(self.root, identifier, "collision", what)
        found = self._find(identifier, place)  # raises where another object holds it
        if found is not None:
            raise ObjectError(self.root, identifier, "exists", f"it is there already, at {decode_fs(place)!r}")
        if is_object_root(entries):
            what = f"at its place {decode_fs(place)!r} is an object without an inventory; check the store"
            raise ObjectError(self.root, identifier, "improper", what)
        if entries:
            what = f"below its place {decode_fs(place)!r} are other objects or files, and objects cannot nest"
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
        try:
            self.storage.publish(new, place)
        except FileExistsError:
            self.check_place_free(identifier, place)
            raise

    def refuse_too_long(self, identifier: str, place: bytes, new: bytes) -> None:
        """Make sure that every path of an object can be opened at ``place``.

        :raises ObjectError: of kind ``bad-name``: one would be too long
        """
        reason = too_long(self._root, place + longest_inside(new))
        if reason is not None:
            raise ObjectError(self.root, identifier, "bad-name", f"{reason}; use shorter names, or another layout")


def _undeclared(facts: RootFacts) -> str:
    """Return why a directory is not a storage root, or not one of a known version; empty where it is."""
    if facts.version is not None:
        return ""
    known = " or ".join(os.fsdecode(declaration(ROOT, version)[0]) for version in VERSIONS)
    declared = [found for found in facts.problems if found.kind == "declaration-unknown"]
    what = f"it declares {os.fsdecode(declared[0].path)}, " if declared else "it is no OCFL storage root: "
    return f"{what}there is no {known}; pressmark store init makes one"


def _is_text(identifier: str) -> bool:
    try:
        identifier.encode()
    except UnicodeEncodeError:
        return False
    return True
