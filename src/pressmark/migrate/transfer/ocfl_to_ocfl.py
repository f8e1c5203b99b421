"""Objects of an OCFL storage root into another one as they are, with all their versions: moved, or copied.

An object that is moved is in one of the two roots at every moment. Directories above it that are empty then are removed
before the next one is moved: OCFL has none (E073).
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import Any

from pressmark.errors import ObjectError
from pressmark.fs.durable import can_flush_filesystem
from pressmark.fs.moves import prune_empty_parents
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.fs.removal import remove_tree
from pressmark.migrate.object_digest import ALGORITHM, Read, object_digest, read_files
from pressmark.migrate.options import Options
from pressmark.migrate.planning.entry import Entry
from pressmark.migrate.transfer.direction import Copied, Way, all_files, changed_at, newest, place_of
from pressmark.migrate.transfer.failures import TransferError, status_of_problem
from pressmark.migrate.transfer.in_flight import InFlight
from pressmark.migrate.transfer.reading import Content
from pressmark.stores import Store
from pressmark.stores.object_sources import copy_source
from pressmark.stores.ocfl.bulk_writer import Staged
from pressmark.stores.ocfl.declarations import OBJECT, declaration
from pressmark.stores.ocfl.inventory import (
    ALGORITHMS,
    INVENTORY,
    InventoryError,
    logical_files,
    read_inventory,
    sidecar_digest,
    sidecar_name,
)
from pressmark.stores.ocfl.object_check import check_object
from pressmark.stores.ocfl.root import OcflRoot
from pressmark.stores.ocfl.storage import LocalStorage
from pressmark.stores.refusals import object_errors

__all__ = ["Relayout"]

_INVENTORY = encode_fs(INVENTORY)


class Relayout(Way):
    """Moves or copies whole objects, many at a time."""

    verbatim = True
    source: OcflRoot
    destination: OcflRoot

    def __init__(self, options: Options, source: Store, destination: OcflRoot) -> None:
        super().__init__(options, source, destination)
        self._base = os.fsencode(destination.root)
        self._from = os.path.abspath(os.fsencode(source.root))
        self._bulk_writer = destination.bulk_writer(durable_places=not can_flush_filesystem())
        self._items: list[InFlight] = []
        self._places: dict[str, bytes | None] = {}
        self._renames = options.renames()
        self._turn = ExitStack()
        self._is_our_turn = False
        self._stack = ExitStack()

    def __enter__(self) -> Relayout:
        self._stack.enter_context(self._bulk_writer)
        if self._renames:
            self._staging = self._stack.enter_context(self.source.staging())
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def prepare(self, entries: Sequence[Entry]) -> None:
        identifiers = [entry.id for entry in entries]
        self._places = dict(zip(identifiers, self.destination.places(identifiers), strict=True))

    def begin(self, item: InFlight, replace: bool = False) -> bool:
        entry = item.entry
        if entry.id != entry.source_id:
            what = f"its inventories say {entry.source_id!r}, so it cannot go as it is under another identifier"
            raise TransferError("refused_name", "id-in-inventory", f"{what}; leave it out of the mapping")
        if replace:
            what = f"another one is at {entry.target!r}, and objects with their versions replace none; remove it first"
            raise TransferError("exists_different", "exists", what)
        if os.path.lexists(os.path.join(self._base, encode_fs(entry.target))):
            self.destination.check_place_free(entry.id, encode_fs(entry.target))
        if self.target_names is not None:
            self.check_names(entry, all_files(self.source, entry.source_id, entry.source))
        path = place_of(self.source, entry)
        if self._renames:
            if not self._is_sound(entry, path):
                _checked(entry, path, self.destination.version)
            item.files, item.bytes, item.mode = entry.files, entry.bytes, "rename"
            self._bulk_writer.adopt(entry.id, path, self._places.get(entry.id))
        else:
            self._copy(item, path)
        self._items.append(item)
        return False

    def _is_sound(self, entry: Entry, path: bytes) -> bool:
        """Return whether an object is as it should be, as far as a quick look tells; if not, look closely.

        Of the many objects with one version, and nothing in them but that, everything is looked at that says so.
        """
        with object_errors(self.source.root, entry.source_id):
            try:
                names = set(os.listdir(path))
                data = _read(path + b"/" + _INVENTORY)
            except (FileNotFoundError, NotADirectoryError):
                raise ObjectError(
                    self.source.root, entry.source_id, "missing", f"there is no object at {entry.source!r}"
                ) from None
            try:
                document = read_inventory(data)
                algorithm, head = document["digestAlgorithm"], encode_fs(document["head"])
                contents = sorted(paths for listed in document["manifest"].values() for paths in listed)
                folder = encode_fs(document.get("contentDirectory", "content"))
            except (InventoryError, KeyError, TypeError, AttributeError):
                return False
            if algorithm not in ALGORITHMS or document.get("id") != entry.source_id or len(document["versions"]) != 1:
                return False
            sidecar = encode_fs(sidecar_name(algorithm))
            name, declared = declaration(OBJECT, self.destination.version)
            if names != {name, _INVENTORY, sidecar, head}:
                return False
            version = path + b"/" + head
            inside = os.listdir(version)
            if {*inside, folder} != {_INVENTORY, sidecar, folder}:
                return False
            digest = hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()
            if sidecar_digest(_read(path + b"/" + sidecar)) != digest or _read(path + b"/" + name) != declared:
                return False
            found: list[str] = []
            if folder in inside:
                _regular(version + b"/" + folder, decode_fs(head + b"/" + folder + b"/"), found)
            return sorted(found) == contents and _read(version + b"/" + _INVENTORY) == data

    def _copy(self, item: InFlight, path: bytes) -> None:
        """Copy an object aside, and compare all that was copied with its inventories."""
        entry = item.entry
        if self.options.move:
            item.changed = newest(all_files(self.source, entry.source_id, entry.source))
        room = self._bulk_writer.new_path()
        copied = Copied(item, Content([], {}, []))
        digests: dict[bytes, dict[str, str]] = {}

        def note(name: bytes, outcome: Any) -> None:
            copied.file(name, outcome)
            digests[name] = outcome.digests

        try:
            with object_errors(self.source.root, entry.source_id):
                algorithms = self._algorithms(entry, path)
                copy_source(path, room, mode=self.mode, algorithms=algorithms, on_file=note, on_event=copied.event)
            checked = _checked(entry, room, self.destination.version)
            for file in checked.files:
                for algorithm, expected in file.digests.items():
                    found = digests[file.path].get(algorithm)
                    if found is not None and found != expected.lower():
                        what = (
                            f"{decode_fs(file.path)}: its {algorithm} is {found}, not {expected} as the inventory says"
                        )
                        raise TransferError("digest_mismatch", "mismatch", what)
            document = read_inventory(_read(room + b"/" + _INVENTORY))
            item.digest = object_digest(
                {
                    logical: digests[encode_fs(content)][ALGORITHM]
                    for logical, content, _digest in logical_files(document)
                }
            )
            self._bulk_writer.adopt(entry.id, room, self._places.get(entry.id))
        except BaseException:
            with suppress(OSError):  # what cannot be removed now goes with the run's directory
                remove_tree(room)
            raise

    def _algorithms(self, entry: Entry, path: bytes) -> tuple[str, ...]:
        try:
            document = read_inventory(_read(path + b"/" + _INVENTORY))
        except (FileNotFoundError, NotADirectoryError):
            raise ObjectError(
                self.source.root, entry.source_id, "missing", f"there is no object at {entry.source!r}"
            ) from None
        except InventoryError as error:
            raise ObjectError(self.source.root, entry.source_id, "improper", f"its inventory: {error}") from None
        algorithm = document.get("digestAlgorithm")
        return (ALGORITHM, algorithm) if algorithm == "sha256" else (ALGORITHM,)

    def of_source(self, entry: Entry) -> Read:
        files = all_files(self.source, entry.source_id, entry.source)
        return read_files((decode_fs(name), path) for name, path in files)

    def of_target(self, entry: Entry) -> list[Read]:
        files = all_files(self.destination, entry.id, entry.target)
        return [read_files((decode_fs(name), path) for name, path in files)]

    def note_left_out(self, item: InFlight) -> None:
        """Note nothing: objects go as they are."""

    def measured(self, entry: Entry) -> tuple[int, int]:
        with object_errors(self.source.root, entry.source_id):
            statuses = [os.stat(path) for _name, path in all_files(self.source, entry.source_id, entry.source)]
        return sum(one.st_size for one in statuses), changed_at(statuses)

    def settle(self) -> Iterator[tuple[InFlight, ObjectError | None]]:
        items, self._items = self._items, []
        if not items:
            return
        try:
            admitted = list(self._bulk_writer.commit(self._prune_above if self._renames else None))
        finally:
            self._turn.close()
            self._is_our_turn = False
        results = [(item, error) for item, (_staged, error) in zip(items, admitted, strict=True)]
        if self._renames:
            # What could not be removed at once.
            self.prune(item.entry for item, error in results if error is None)
        yield from results

    def _prune_above(self, moved: Staged) -> None:
        """Remove what is empty above an object that has just gone, if it can be our turn in the source now."""
        self._is_our_turn = self._is_our_turn or self._try_turn()
        if self._is_our_turn:
            with suppress(OSError):  # it may not be removed
                prune_empty_parents(self._from, os.path.dirname(moved.path)[len(self._from) + 1 :])

    def _try_turn(self) -> bool:
        """Take our turn in the source without waiting: the destination's is ours, and another run may have both."""
        try:
            self._turn.enter_context(self._staging.lock(wait=False))
        except OSError:
            return False
        return True

    def prune(self, entries: Iterator[Entry]) -> None:
        """Remove what is empty above objects that are gone from the source."""
        with self._staging.lock():
            for above in sorted({os.path.dirname(encode_fs(entry.source)) for entry in entries}):
                # The objects are in their new places: an empty directory that may not be removed undoes nothing.
                with suppress(OSError):
                    prune_empty_parents(self._from, above)

    def waiting(self) -> int:
        return len(self._items)


def _checked(entry: Entry, directory: bytes, root_version: str) -> Any:
    """Look at an object strictly.

    :raises TransferError: it is not as it should be
    """
    storage = LocalStorage(directory)
    checked = check_object(storage, b"", storage.scan(b""), root_version)
    wrong = [one for one in checked.problems if one.severity == "error"]
    if wrong:
        what = f"{decode_fs(os.path.join(encode_fs(entry.source), wrong[0].path))}: {wrong[0].message}"
        raise TransferError(
            status_of_problem(wrong[0].kind), wrong[0].kind, f"the object is not valid: {what}; check the store"
        )
    if checked.identifier != entry.source_id:
        what = f"its inventory says it is {checked.identifier!r}"
        raise TransferError("source_invalid", "misplaced", f"{what}, not {entry.source_id!r}; check the store")
    return checked


def _regular(folder: bytes, below: str, found: list[str]) -> None:
    """Add the paths of all regular files with one name; of anything else one that is in no manifest."""
    with os.scandir(folder) as entries:
        for entry in entries:
            name = below + decode_fs(entry.name)
            if entry.is_dir(follow_symlinks=False):
                before = len(found)
                _regular(entry.path, name + "/", found)
                if len(found) == before:
                    found.append(name + "/")
                continue
            status = entry.stat(follow_symlinks=False)
            found.append(name if stat.S_ISREG(status.st_mode) and status.st_nlink == 1 else name + "/")


def _read(path: bytes) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0))
    try:
        size = os.fstat(descriptor).st_size
        data = os.read(descriptor, size + 1)
        while len(data) < size and (more := os.read(descriptor, size - len(data))):
            data += more
        return data
    finally:
        os.close(descriptor)
