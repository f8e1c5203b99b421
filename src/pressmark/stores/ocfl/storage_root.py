"""An OCFL storage root: its version and layout, the paths of objects, and staging and publishing of objects.

Checks, repairs and changes of whole roots are in the modules above this one.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from pressmark.buckets.address import is_address
from pressmark.errors import IdentifierError, ObjectError, StoreError, quoted, quoted_path
from pressmark.fs.beneath import read_all
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.layouts import HashAndIdNTuple, HashAndNoPrefixIdNTuple, HashedNTuple, Layout, as_layout
from pressmark.option_names import option
from pressmark.reports import Problem
from pressmark.stores.exceptions import check_identifier, object_errors, store_errors
from pressmark.stores.objects import Path, StoreObject, encode_path
from pressmark.stores.ocfl.declarations import (
    EXTENSIONS,
    LAYOUT,
    ROOT,
    UNFINISHED,
    VERSIONS,
    RootFacts,
    create_root,
    declaration,
    declares_object,
    is_object_root,
    open_root,
    refused_layout,
)
from pressmark.stores.ocfl.inventory import ALGORITHMS, INVENTORY, InventoryError, read_inventory
from pressmark.stores.ocfl.local.local_storage import LocalStorage
from pressmark.stores.ocfl.opening import storage_at
from pressmark.stores.ocfl.storage import Changes, Storage
from pressmark.stores.placement import FirstObjects
from pressmark.stores.problems import problem
from pressmark.stores.store import Store

if TYPE_CHECKING:
    from pressmark.stores.ocfl.differences import Changes as Differences
    from pressmark.stores.ocfl.history import VersionInfo
    from pressmark.stores.ocfl.ocfl_object import OcflObject

__all__ = ["MESSAGE", "FoundInventory", "StorageRoot", "check_user"]

#: The message of a version without its own.
MESSAGE = "Stored by pressmark"

_INVENTORY = encode_fs(INVENTORY)
_EQUALLY_DEEP = (HashAndIdNTuple, HashAndNoPrefixIdNTuple, HashedNTuple)
# ocfl-java 2.2.3 writes the first hex digit of characters with three bytes or more in upper case.
_LONG_ESCAPE = re.compile("%[ef](?=[0-9a-f])")


class FoundInventory(NamedTuple):
    """An object that was found.

    :ivar path: relative to the root
    :ivar document: its inventory
    :ivar status: of the inventory's file
    :ivar data: the bytes of its inventory
    """

    path: bytes
    document: dict[str, Any]
    status: os.stat_result
    data: bytes


def check_user(root: str | bytes, user: Mapping[str, str] | None) -> None:
    """Check the user of a version.

    :raises StoreError: OCFL does not allow it
    """
    if user is not None and (not user.get("name") or user.keys() - {"name", "address"}):
        raise StoreError(root, f"invalid user; specify a name and optionally an address ({option('user')})")


def _check_class(root: bytes, name: str | None) -> None:
    """Check the storage class of new content.

    :raises StoreError: the storage has no classes, or the name is malformed
    """
    if name is None:
        return
    used = option("content_class")
    if not is_address(root):
        raise StoreError(root, f"{used} requires an OCFL storage root in object storage; omit it")
    if not re.fullmatch("[A-Z0-9_]+", name):
        raise StoreError(root, f"{used} {quoted(name)}: not a storage class; specify one such as DEEP_ARCHIVE")


def _checked_options(
    root: bytes, algorithm: str, user: Mapping[str, str] | None, content_paths: Layout | str | None
) -> Layout | None:
    """Check options of new versions, and return the layout of content paths.

    :raises StoreError: an option is invalid
    """
    if algorithm not in ALGORITHMS:
        raise StoreError(root, f"digest algorithm {quoted(algorithm)} not allowed; use sha512 or sha256")
    layout = as_layout(content_paths)
    if layout is not None and layout.alias != "0011":
        raise StoreError(root, f"{layout.name} does not map content paths; use 0011")
    check_user(root, user)
    return layout


class StorageRoot(Store):
    """An OCFL storage root: its version, its layout, and the objects in it.

    :param path: its directory, or an address in object storage, such as ``s3://bucket/prefix``
    :param layout: a layout or its name; places the objects instead of the layout in ``ocfl_layout.json``
    :param algorithm: of new objects' digests: ``sha512`` or ``sha256``
    :param user: ``name`` and ``address`` (a URI) of the user who creates versions
    :param message: the default message of new versions
    :param content_paths: maps logical paths to content paths in new versions: extension 0011
    :param durable: flush each object before it appears; otherwise a power failure may leave empty files
    :param undeclared: also open a directory that declares no supported version, for :meth:`check`; it is not written to
    :param content_class: in object storage, the storage class of the content of new versions, such as ``DEEP_ARCHIVE``;
        inventories and declarations have the default of the bucket
    :param claims: in object storage whose server ignores conditions: claim each object while it is changed, which is
        safe if only Pressmark writes to the root, with this option
    :param single_writer: in object storage whose server ignores conditions: no other program writes to the root
    :param storage: where the files are; :data:`None` for the directory
    :ivar version: version of OCFL; the newest supported one if none is declared
    :ivar layout_is_given: whether the caller has specified the layout
    :ivar first_objects: the first objects of the root, which show whether objects are where the layout puts them
    :raises StoreError: not a storage root, or an argument is invalid
    """

    kind = "ocfl"
    unfinished_names = UNFINISHED
    version: str

    def __init__(
        self,
        path: Path,
        *,
        layout: Layout | str | None = None,
        algorithm: str = "sha512",
        user: Mapping[str, str] | None = None,
        message: str | None = MESSAGE,
        content_paths: Layout | str | None = None,
        durable: bool = True,
        undeclared: bool = False,
        content_class: str | None = None,
        claims: bool = False,
        single_writer: bool = False,
        storage: Storage | None = None,
    ) -> None:
        self._root = encode_path(path, remote=True)
        self.root = os.fsdecode(self._root)
        _check_class(self._root, content_class)
        self.storage = storage or storage_at(self._root, content_class, claims, single_writer)
        self.bucket = getattr(self.storage, "bucket", None)
        content_paths = _checked_options(self._root, algorithm, user, content_paths)
        layout = as_layout(layout)
        self.layout = layout
        self.layout_is_given: bool = layout is not None
        self.read_declaration()
        if not undeclared:
            self.refuse_undeclared()
        if layout is not None:
            why = refused_layout(layout, self.version)
            if why is not None:
                raise StoreError(self.root, why)
        self.algorithm = algorithm
        self.user = user
        self.message = message
        self.content_paths = content_paths
        # What a bucket has accepted is stored.
        self.durable = durable and isinstance(self.storage, LocalStorage)
        self.first_objects: FirstObjects = FirstObjects(self._first_objects, _is_misplaced)

    @classmethod
    def create(
        cls,
        path: Path,
        layout: Layout | str,
        *,
        version: str = VERSIONS[0],
        description: str | None = None,
        algorithm: str = "sha512",
        user: Mapping[str, str] | None = None,
        message: str | None = MESSAGE,
        content_paths: Layout | str | None = None,
        durable: bool = True,
        claims: bool = False,
        single_writer: bool = False,
    ) -> Self:
        """Create an empty storage root in a directory or prefix that is empty or does not exist, and open it.

        Missing directories above it are created.

        The other parameters are those of the class.

        :param layout: a layout or its name, such as ``0003``
        :param version: version of OCFL
        :param description: description of the layout, for ``ocfl_layout.json``
        :raises StoreError: the directory is not empty or cannot be written, or an argument is invalid
        :raises LayoutConfigError: unknown layout
        """
        chosen = as_layout(layout)
        if chosen is None:
            raise TypeError("layout: expected a layout or its name, such as 0003, not None")
        root = encode_path(path, remote=True)
        _checked_options(root, algorithm, user, content_paths)  # before anything is created
        with store_errors(root):
            create_root(storage_at(root, None, claims, single_writer), root, chosen, version, description)
        return cls(
            path,
            algorithm=algorithm,
            user=user,
            message=message,
            content_paths=content_paths,
            durable=durable,
            claims=claims,
            single_writer=single_writer,
        )

    # --- paths --------------------------------------------------------------------------------------------------------

    @property
    def shows_ids(self) -> bool:
        """Whether the path of an object shows its identifier."""
        return self.layout is not None and self.layout.reversible

    def _layout(self, purpose: str) -> Layout:
        if self.layout is None:
            what = f"specify a known layout ({option('layout')}) to {purpose} objects"
            raise StoreError(self.root, f"{self._why_no_layout}; {what}")
        return self.layout

    def _identifier(self, identifier: str | bytes) -> str:
        check_identifier(identifier)
        try:
            name = encode_fs(identifier).decode()
        except UnicodeError:
            raise IdentifierError(identifier, None, "not UTF-8, which an OCFL inventory requires") from None
        return name

    def _path_for(self, identifier: str, purpose: str) -> bytes:
        """Return the path that the layout gives an object.

        :raises ObjectError: of kind ``reserved`` or ``bad-name``: the path cannot be used
        """
        path = encode_fs(self._layout(purpose).map_id(identifier))
        if self.is_reserved(path):
            what = f"path {quoted_path(path)} is reserved for the storage root itself; use another layout"
            raise ObjectError(self.root, identifier, "reserved", what)
        why = self.storage.too_long(path)
        if why is not None:
            if purpose != "put" and self.storage.is_absent(path):
                raise self._missing(identifier, path)
            raise ObjectError(self.root, identifier, "bad-name", f"{why}; use another layout, such as 0004")
        return path

    @staticmethod
    def is_reserved(path: bytes) -> bool:
        # A file system that ignores case takes other spellings for the same names.
        first = path.partition(b"/")[0].lower()
        return first in (EXTENSIONS, LAYOUT) or first.startswith(b"0=")

    def _foreign_path(self, path: bytes) -> bytes | None:
        """Return ocfl-java's path of an object that layout 0003 maps to ``path``, if it differs."""
        if not isinstance(self.layout, HashAndIdNTuple) or b"%" not in path:
            return None
        other = encode_fs(_LONG_ESCAPE.sub(lambda match: match[0].upper(), decode_fs(path)))
        return None if other == path else other

    @property
    def may_nest(self) -> bool:
        """Whether the layout may put an object inside another: its paths have different numbers of directories."""
        return not isinstance(self.layout, _EQUALLY_DEEP)

    def path_for(self, identifier: str | bytes) -> str:
        """Return the path of a new object, relative to the root.

        :raises ObjectError: of kind ``reserved`` or ``bad-name``: the path cannot be used
        :raises IdentifierError: the identifier has no path in this store
        :raises StoreError: the layout is unknown
        """
        return decode_fs(self.name_and_path(identifier)[1])

    def name_and_path(self, identifier: str | bytes) -> tuple[str, bytes]:
        """Return the identifier of a new object as text, and its path: see :meth:`path_for`."""
        name = self._identifier(identifier)
        return name, self._path_for(name, "put")

    def paths_for(self, identifiers: Sequence[str]) -> list[bytes | None]:
        """Return the paths of many new objects at once; :data:`None` where :meth:`path_for` raises an error.

        :raises StoreError: the layout is unknown
        """
        paths = self._layout("put").map_ids(identifiers, on_error="none")
        found: list[bytes | None] = []
        for identifier, path in zip(identifiers, paths, strict=True):
            # An identifier that is not UTF-8 has no path.
            encoded = encode_fs(path or "") if identifier.isascii() or _is_text(identifier) else b""
            is_usable = encoded and self.storage.too_long(encoded) is None and not self.is_reserved(encoded)
            found.append(encoded if is_usable else None)
        return found

    def is_elsewhere(self, path: bytes) -> bool:
        """Return whether ocfl-java's path of the object that belongs at ``path`` is taken.

        :raises OSError: this cannot be determined
        """
        other = self._foreign_path(path)
        return other is not None and self.storage.exists(other)

    def _absolute(self, path: bytes) -> bytes:
        return self.storage.path(path)

    def _read_inventory(self, identifier: str, path: bytes) -> FoundInventory | None:
        """Return the object whose directory is at ``path``, or :data:`None` without an inventory.

        :raises ObjectError: the inventory cannot be read
        """
        try:
            with object_errors(self.root, identifier):
                file, status = self.storage.open(path + b"/" + _INVENTORY)
                with file:
                    data = read_all(file, status.st_size)
                return FoundInventory(path, read_inventory(data), status, data)
        except ObjectError as error:
            cause = error.__cause__
            if isinstance(cause, (FileNotFoundError, NotADirectoryError)):
                return None
            if isinstance(cause, OSError) and cause.errno == errno.ELOOP:
                if self.storage.first_link(path) is not None:  # as in a walk
                    return None
                where = quoted_path(f"{decode_fs(path)}/{INVENTORY}")
                what = f"{where} is a symbolic link, which OCFL does not allow; check the store"
                raise ObjectError(self.root, identifier, "improper", what) from None
            raise
        except InventoryError as error:
            what = f"{quoted_path(self._absolute(path))}: malformed inventory: {error}"
            raise ObjectError(self.root, identifier, "improper", what) from None

    def holds(self, identifier: str, path: bytes) -> bool:
        """Return whether the object whose directory is at ``path`` has the identifier.

        :raises ObjectError: the inventory cannot be read
        """
        found = self._read_inventory(identifier, path)
        return found is not None and found.document.get("id") == identifier

    def find_at(self, identifier: str, path: bytes) -> FoundInventory | None:
        """Return the object that belongs at ``path``.

        :raises ObjectError: another object is there
        """
        for candidate in (path, self._foreign_path(path)):
            found = None if candidate is None else self._read_inventory(identifier, candidate)
            if found is None:
                continue
            if found.document.get("id") != identifier:
                if candidate is not path:
                    continue
                holder = quoted(str(found.document.get("id")))
                what = (
                    f"path {quoted_path(path)} already used by object {holder}: the layout maps both identifiers to it"
                )
                raise ObjectError(self.root, identifier, "collision", what)
            return found
        return None

    # --- walking ------------------------------------------------------------------------------------------------------

    def _first_objects(self) -> Iterator[StoreObject]:
        from pressmark.stores.ocfl.walk import first_objects

        return first_objects(self.storage, self.misplacements, self.in_place)

    def in_place(self, paths: Sequence[str], identifiers: Sequence[str]) -> bool:
        """Return whether the layout maps each identifier to the path with the same index, or the layout is unknown."""
        return self.layout is None or self.layout.map_ids(identifiers, on_error="none") == paths

    def misplacements(self, found: Sequence[tuple[bytes, bytes | None, str | None]]) -> list[list[Problem]]:
        """Return the problems of objects' paths.

        :param found: path, surrounding object, and identifier of each object
        """
        wrong: list[list[Problem]] = [[] for _ in found]
        for problems, (path, inside, _identifier) in zip(wrong, found, strict=True):
            if inside is not None:
                what = f"the object is inside the object {quoted_path(inside)}"
                problems.append(problem("object-inside", path, what))
        if self.layout is None:
            return wrong
        known = [(number, item[2]) for number, item in enumerate(found) if item[2] is not None]
        paths = self.layout.map_ids([identifier for _number, identifier in known], on_error="none")
        for (number, identifier), expected in zip(known, paths, strict=True):
            path = found[number][0]
            if expected is None:
                what = f"the layout cannot map the identifier {quoted(identifier)}"
                wrong[number].append(problem("identifier-unplaced", path, what))
            elif (right := encode_fs(expected)) != path:
                kind = "path-ocfl-java" if self._foreign_path(right) == path else "misplaced"
                what = {
                    "path-ocfl-java": f"follows ocfl-java's variant; the path in {self.layout.name} is"
                    f" {quoted_path(expected)}",
                    "misplaced": f"the object {quoted(identifier)} belongs at {quoted_path(expected)}",
                }[kind]
                wrong[number].append(problem(kind, path, what, expected=expected, found=decode_fs(path)))
        return wrong

    # --- one object ---------------------------------------------------------------------------------------------------

    def get(self, id: str | bytes | StoreObject, version: str | int | None = None) -> OcflObject:
        """Return one version of an object, even if it is not where the layout puts it.

        Without a layout, or if the first objects of the root are not in place, the whole root may be walked.

        :param id: or the record of the object, from :meth:`objects`, :meth:`find` or :meth:`at`
        :param version: name or number, such as ``v2``, ``v0002`` or 2; :data:`None` for the newest
        :raises ObjectError: of kind ``missing`` (the object, or the version), ``duplicate-id``, ``collision`` or
            ``improper``
        :raises IdentifierError: the identifier has no path in this store
        """
        name, found = self.existing(id)
        return self._object(name, found, version)

    def existing(self, identifier: str | bytes | StoreObject) -> tuple[str, FoundInventory]:
        """Return an object, and its identifier as text.

        :param identifier: or the record of the object
        :raises ObjectError: as :meth:`get`
        :raises IdentifierError: the identifier has no path in this store
        """
        if isinstance(identifier, StoreObject):
            return self._recorded(identifier)
        name = self._identifier(identifier)
        found = self.look_up(name)
        if found is None:
            raise self._missing(name, None if self.layout is None else self._path_for(name, "find"))
        return name, found

    def look_up(self, identifier: str, *, anew: bool = True) -> FoundInventory | None:
        """Return the object with an identifier, wherever it is in the root; :data:`None` without such an object.

        :param anew: before the object is reported as missing, read the first objects of the root again
        :raises ObjectError: of kind ``duplicate-id``: several objects have it; or as :meth:`get`
        :raises IdentifierError: the layout cannot map the identifier
        """
        failure: IdentifierError | ObjectError | None = None
        found = None
        if self.layout is not None:
            try:
                found = self.find_at(identifier, self._path_for(identifier, "find"))
            except (IdentifierError, ObjectError) as error:
                failure = error
        paths: list[bytes] = []
        with store_errors(self.root):
            if found is not None:
                paths = [found.path]
                others = map(encode_fs, self.first_objects.paths(identifier))
                paths += [path for path in others if path != found.path and self.holds(identifier, path)]
            elif self.layout is None or self.first_objects.misplaced(anew=anew) is not None:
                paths = [encode_fs(one.path) for one in self.objects() if one.id == identifier]
        if len(paths) > 1:
            raise self._duplicate(identifier, [decode_fs(path) for path in paths])
        if found is None and paths:
            found = self.find_at(identifier, paths[0])
        # A path that is too long is reported as such where it would be written.
        if found is None and failure is not None and getattr(failure, "kind", None) != "missing":
            raise failure
        return found

    def _existing_path(self, identifier: str | bytes) -> bytes:
        """Return the path of the object with an identifier, even if its inventory cannot be read.

        :raises ObjectError: as :meth:`get`
        :raises IdentifierError: the identifier has no path in this store
        """
        name = self._identifier(identifier)
        try:
            found = self.look_up(name, anew=False)
            if found is not None:
                return found.path
            raise self._missing(name, self._path_for(name, "find"))
        except ObjectError as error:
            if error.kind not in ("collision", "duplicate-id"):
                path = self._path_for(name, "find")
                if self._is_object_at(path):
                    return path
            raise

    def _is_object_at(self, path: bytes) -> bool:
        """Return whether a path is that of an object, in any state.

        :raises OSError: this cannot be determined
        """
        return self._is_free_of_links(path) and declares_object(self.storage, path)

    def _is_free_of_links(self, path: bytes) -> bool:
        """Return whether an object can be at a path: nothing in it is a symbolic link, ``..`` or reserved."""
        if {b"", b".", b".."}.intersection(path.split(b"/")) or self.is_reserved(path):
            return False
        return self.storage.first_link(path) is None

    def misplaced_objects(self) -> dict[str, bytes]:
        """Return the paths of the objects that are not where the layout puts them, by identifier.

        A root whose first objects are in place is not walked.

        :raises StoreError: the root cannot be read
        """
        with store_errors(self.root):
            if self.first_objects.misplaced() is None:
                return {}
            return {one.id: encode_fs(one.path) for one in self.objects() if one.id is not None and _is_misplaced(one)}

    def _missing(self, identifier: str, path: bytes | None) -> ObjectError:
        what = "object not found"
        if path is not None:
            what += f" at {quoted_path(path)}"
            link = self.storage.first_link(path)
            if link is not None:
                what += f": {quoted_path(link)} is a symbolic link, which is not followed"
                what += "; replace the link with its target"
        return ObjectError(self.root, identifier, "missing", what)

    def find(self, id: str | bytes) -> StoreObject:
        name, found = self.existing(id)
        return self._record(name, found.path)

    def at(self, path: str) -> StoreObject | None:
        encoded = encode_fs(path.rstrip("/"))
        if not self._is_free_of_links(encoded):
            return None
        found = self._read_inventory(path, encoded)
        return None if found is None else self._record(str(found.document.get("id")), encoded)

    def _record(self, identifier: str, path: bytes) -> StoreObject:
        (problems,) = self.misplacements([(path, None, identifier)])
        proper = all(one.severity != "error" for one in problems)
        return StoreObject(identifier, decode_fs(path), proper, None, tuple(problems))

    def versions(self, id: str | bytes) -> list[VersionInfo]:
        """Return all versions of an object, the oldest first; raises the errors of :meth:`get`."""
        return self.get(id).versions()

    def diff(self, id: str | bytes, before: str | int | None = None, after: str | int | None = None) -> Differences:
        """Return the changes between two versions of an object; see :meth:`OcflObject.diff`.

        Raises the errors of :meth:`get`.
        """
        return self.get(id).diff(before, after)

    def locate(self, record: StoreObject, version: str | int | None = None) -> OcflObject:
        """Return the object of a record of :meth:`objects`, even if it is not at the path of its identifier.

        :param version: as for :meth:`get`
        :raises ObjectError: of kind ``missing``: it was removed, another object is there, or it does not have the
            version; or ``improper``
        """
        identifier, found = self._recorded(record)
        return self._object(identifier, found, version)

    def _recorded(self, record: StoreObject) -> tuple[str, FoundInventory]:
        """Return the object of a record, and its identifier."""
        found = self._read_inventory(record.id or "", encode_fs(record.path))
        stored_id = None if found is None else found.document.get("id")
        if found is None or (record.id is not None and stored_id != record.id):
            what = "object not found" if found is None else f"found object {quoted(str(stored_id))} instead"
            raise ObjectError(self.root, record.id or "", "missing", f"{what} at {quoted_path(record.path)}")
        return str(stored_id), found

    def _object(self, identifier: str, found: FoundInventory, version: str | int | None = None) -> OcflObject:
        from pressmark.stores.ocfl.ocfl_object import OcflObject  # not needed for put

        storage = self.storage.below(found.path)
        return OcflObject(storage, self.root, identifier, found.document, found.status, version)

    # --- staging ------------------------------------------------------------------------------------------------------

    def changes(self) -> AbstractContextManager[Changes]:
        """Return changes of the root.

        :raises OSError: they cannot be prepared
        :raises StoreError: the root declares no supported version
        """
        self.refuse_undeclared()
        return self.storage.changes(self.durable)

    def read_declaration(self) -> None:
        """Read the version and the layout that the root declares.

        :raises StoreError: the root cannot be read
        """
        with store_errors(self.root):
            facts = open_root(self.storage)
        self._why_undeclared = _undeclared(facts)
        self.version = facts.version or VERSIONS[0]
        self._why_no_layout = facts.why_no_layout
        if not self.layout_is_given:
            self.layout = facts.layout

    @property
    def is_undeclared(self) -> bool:
        """Whether the root declares no supported version."""
        return bool(self._why_undeclared)

    def refuse_undeclared(self) -> None:
        """Check that the root declares a supported version.

        :raises StoreError: it does not
        """
        if self._why_undeclared:
            raise StoreError(self.root, self._why_undeclared)

    # --- moving in ----------------------------------------------------------------------------------------------------

    def check_free(self, identifier: str, path: bytes) -> None:
        """Check that ``path`` is free, and neither inside nor around another object.

        :raises ObjectError: it is not
        """
        with object_errors(self.root, identifier):
            self._check_free(identifier, path)

    def _exists(self, identifier: str, path: bytes) -> ObjectError:
        how = f"use another identifier, or {option('replace', True)} to add a version"
        return ObjectError(self.root, identifier, "exists", f"object exists at {quoted_path(path)}; {how}")

    def _check_free(self, identifier: str, path: bytes) -> None:
        parts = path.split(b"/")
        for number in range(1, len(parts)):
            above = b"/".join(parts[:number])
            if not self.storage.exists(above):
                return
            if not stat.S_ISDIR(self.storage.status(above).st_mode):
                what = f"{quoted_path(above)}, a parent of its path, is not a directory; move it out of the root"
                raise ObjectError(self.root, identifier, "object-inside", what)
            if declares_object(self.storage, above):
                what = f"path {quoted_path(path)} is inside the object {quoted_path(above)}; use another layout"
                raise ObjectError(self.root, identifier, "object-inside", what)
        if not self.storage.exists(path):
            return
        if not stat.S_ISDIR(self.storage.status(path).st_mode):
            what = f"path {quoted_path(path)} is not a directory; move it out of the storage root"
            raise ObjectError(self.root, identifier, "collision", what)
        entries = self.storage.scan(path)
        found = self.find_at(identifier, path)  # raises if another object is there
        if found is not None:
            raise self._exists(identifier, path)
        if is_object_root(entries):
            what = f"path {quoted_path(path)} contains an object without an inventory; check the store"
            raise ObjectError(self.root, identifier, "improper", what)
        if entries and not self.storage.is_leftover(path):
            what = f"path {quoted_path(path)} contains other objects or files; use another layout"
            raise ObjectError(self.root, identifier, "object-inside", what)

    def refuse_too_long(self, identifier: str, path: bytes, longest: bytes) -> None:
        """Check that every path of an object at ``path`` is short enough.

        :param longest: the longest path in it, with a slash before it
        :raises ObjectError: of kind ``bad-name``
        """
        reason = self.storage.too_long(path + longest)
        if reason is not None:
            raise ObjectError(self.root, identifier, "bad-name", f"{reason}; use shorter names, or another layout")


def _undeclared(facts: RootFacts) -> str:
    """Return why a directory is not a storage root of a supported version; empty if it is one."""
    if facts.version is not None:
        return ""
    known = " or ".join(os.fsdecode(declaration(ROOT, version)[0]) for version in VERSIONS)
    declared = [found for found in facts.problems if found.kind == "declaration-unknown"]
    what = f"unsupported declaration {quoted_path(declared[0].path)}: " if declared else "not an OCFL storage root: "
    if declared or any(found.kind == "layout-missing" for found in facts.problems):
        return f"{what}no {known}; create a root with pressmark store init"
    return f'{what}no {known}; restore it with "pressmark store repair --kind ocfl"'


def _is_misplaced(record: StoreObject) -> bool:
    return any(one.kind in ("misplaced", "identifier-unplaced") for one in record.problems)


def _is_text(identifier: str) -> bool:
    try:
        identifier.encode()
    except UnicodeEncodeError:
        return False
    return True
