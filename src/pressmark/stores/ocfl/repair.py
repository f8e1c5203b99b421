"""Repairs of an OCFL storage root that lose no data.

=========== ==================================================================================================
action      change
=========== ==================================================================================================
``finish``  a complete version that an interrupted run left out of the inventory, or without its sidecar, is
            published if its content matches its inventory
``prune``   an empty directory is removed (E073, E024)
``remove``  a temporary directory of a killed run in ``extensions/pressmark-staging`` is removed; an earlier declaration
            of the root beside a later one (E076)
``write``   ``ocfl_layout.json``, if ``extensions`` configures one layout that places all objects (E070); a
            declaration or a sidecar whose line end is wrong (E007, E080, E061); a sidecar (E058), if the identical
            other copy of the inventory has one; an object's lost or damaged inventory (E063, E033, E060), if the newest
            version has a copy that its own sidecar and, if there is one, that of the object prove; an object's lost
            declaration (E003), if its inventory, its sidecar and the copy of the newest version agree; that of the
            root (E069), with the latest version that an object declares
=========== ==================================================================================================
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any, cast

from pressmark import _kernels
from pressmark.errors import LayoutConfigError
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.fs.trees import DirectoryEntry, Tree
from pressmark.layouts import Layout, layout_from_config
from pressmark.reports import Problem, Report
from pressmark.stores.exceptions import SourceError
from pressmark.stores.objects import OnEvent, RepairStep
from pressmark.stores.ocfl.check import Check
from pressmark.stores.ocfl.checking.checked import Checked
from pressmark.stores.ocfl.checking.object_check import check_object
from pressmark.stores.ocfl.checking.object_tree import ObjectTree, StoredTree
from pressmark.stores.ocfl.declarations import (
    EXTENSIONS,
    LAYOUT,
    OBJECT,
    ROOT,
    VERSIONS,
    NotJsonError,
    declaration,
    declaration_of,
    is_version_name,
    later,
    layout_file,
    outdated_names,
    read_json,
    read_root,
    refused_layout,
)
from pressmark.stores.ocfl.inventory import (
    ALGORITHMS,
    INVENTORY,
    InventoryError,
    inventory_type,
    read_inventory,
    sidecar_bytes,
    sidecar_digest,
    sidecar_name,
    version_number,
)
from pressmark.stores.ocfl.inventory_rules import inventory_errors
from pressmark.stores.ocfl.storage import Changes, Reads, Storage
from pressmark.stores.ocfl.storage_root import StorageRoot
from pressmark.stores.ocfl.unfinished import find_unfinished, matches_sidecar
from pressmark.stores.ocfl.walk import Walk, ignored
from pressmark.stores.ocfl.writing.version_writer import check_content, finish_version
from pressmark.stores.repairing.repairs import Repairs
from pressmark.threads import resolve_threads

__all__ = ["repair"]

_INVENTORY = encode_fs(INVENTORY)


def repair(
    store: StorageRoot, dry_run: bool, on_event: OnEvent | None, ignore: Sequence[str], *, alone: bool = False
) -> Report:
    """Repair a storage root, and report the remaining problems.

    :param alone: no other program writes to the root
    :raises StoreError: the root has no declaration, and it is not known which it had
    :raises OSError: the root cannot be read
    """
    with _RootRepairs(store, store.storage.path(b""), dry_run, on_event) as run:
        run.alone = alone
        if dry_run:
            store = copy(store)
            store.storage = cast("Storage", _RepairedStorage(store.storage, run))
        _Repair(store, run, ignore).make()
    report = run.remaining(Check(store, None).report(False, resolve_threads(None), ignore))
    report.add(run.stuck)
    return report


class _RootRepairs(Repairs):
    """The repairs of a storage root, through its storage."""

    _store: StorageRoot
    alone = False

    @property
    def changes(self) -> Changes:
        changes = cast("Changes", self.staging)
        changes.alone = self.alone
        return changes

    def _exists(self, path: bytes) -> bool:
        return self._store.storage.exists(path)

    def _listed(self, path: bytes) -> list[bytes] | None:
        storage = self._store.storage
        return [one.name for one in storage.scan(path)] if stat.S_ISDIR(storage.status(path).st_mode) else None

    def _replace(self, path: bytes, data: bytes) -> None:
        self.changes.put(path, data)

    def _remove(self, path: bytes) -> None:
        self.changes.remove(path)

    def _remove_empty(self, path: bytes, stop: bytes, removed: list[bytes], *, strict: bool) -> None:
        self.changes.remove_empty(path, stop, removed, strict=strict)


class _RepairedStorage:
    """A storage root as a dry run would have left it.

    :param run: the dry run
    """

    def __init__(self, storage: Storage, run: Repairs) -> None:
        self._storage = storage
        self._run = run

    def __getattr__(self, name: str) -> Any:
        return getattr(self._storage, name)  # what repairs do not change

    def scan(self, directory: bytes) -> list[DirectoryEntry]:
        entries = {entry.name: entry for entry in self._storage.scan(directory)}
        names = self._run.names(directory, entries)
        return [entries.get(name) or DirectoryEntry(name, "file", False) for name in names]

    def trees(self, path: bytes, names: Sequence[bytes], reads: Reads, **options: Any) -> _kernels.active.TreeBatch:
        """Leave out all directories, which are then read one by one, if anything has changed."""
        if not self._run.counts:
            found: _kernels.active.TreeBatch = self._storage.trees(path, names, reads, **options)
            return found
        return _kernels.active.TreeBatch.of(
            [Tree(name, "odd", 0, 0, 0, 0, 0, {}, {}, [], [], []) for name in names], []
        )

    def exists(self, path: bytes) -> bool:
        return self._run.exists(path)

    def status(self, path: bytes) -> os.stat_result:
        data = self._run.written.get(path)
        if data is None:
            return self._storage.status(path)
        return os.stat_result((stat.S_IFREG | 0o644, 0, 0, 1, 0, 0, len(data), 0, 0, 0))

    def why_unreadable(self, file: bytes) -> OSError | None:
        return None if file in self._run.written else self._storage.why_unreadable(file)

    def read(self, file: bytes, limit: int = -1) -> bytes:
        data = self._run.written.get(file)
        if data is None:
            return self._storage.read(file, limit)
        return data if limit < 0 else data[:limit]


class _Repair:
    def __init__(self, store: StorageRoot, run: _RootRepairs, ignore: Sequence[str]) -> None:
        self._store = store
        self._storage = store.storage
        self._run = run
        self._ignore = ignore
        # The objects that get a declaration.
        self._declared: set[bytes] = set()

    def make(self) -> None:
        """Make all repairs.

        :raises StoreError: the root has no declaration, and it is not known which it had
        """
        if self._store.is_undeclared:
            self._declare_root()
        if self._storage.work_directory is not None:
            self._run.clear(self._storage.work_directory, self._store.changes())
        for path in () if self._run.dry_run else self._storage.leftovers():
            if self._run.changes.clear(path):
                self._run.note([RepairStep.of("remove", path)], "leftover", path)
        for path in () if self._run.dry_run else self._storage.removals():
            with contextlib.suppress(SourceError):  # a run is removing it
                if self._run.changes.recover(path):
                    self._run.note([RepairStep.of("remove", path)], "leftover", path)
        problems = read_root(self._storage).problems
        for item in Walk(self._storage, check_object, reads="rules", ignore=self._ignore):
            if isinstance(item, Checked):
                self._mend_object(item.path, item.problems)
            elif item.kind == "file-stray" and item.code == "E003":
                self._mend_object(os.path.dirname(os.fsencode(item.path)), [item])
            elif not self._is_declared(os.fsencode(item.path)):  # otherwise repaired with the object
                self._mend(item, b"")
        for found in problems:  # the objects prove the layout
            self._mend(found, b"")

    def _is_declared(self, path: bytes) -> bool:
        """Return whether a path is in an object whose declaration was missing."""
        while path := os.path.dirname(path):
            if path in self._declared:
                return True
        return False

    def _mend_object(self, path: bytes, problems: Sequence[Problem]) -> None:
        """Repair the problems of an object, then those that repairs reveal, or that can be repaired only now."""
        repaired: set[tuple[str, str]] = set()
        with contextlib.suppress(FileNotFoundError):  # removed by another run
            while new := [one for one in problems if (one.kind, one.path) not in repaired and self._mend(one, path)]:
                repaired.update((one.kind, one.path) for one in new)
                tree = StoredTree(self._storage, path, self._storage.scan(path), None, ignored(self._ignore))
                problems = check_object(tree, self._store.version).problems

    def _mend(self, found: Problem, object_path: bytes) -> bool:
        """Repair one problem, if that is possible.

        :param object_path: the path of its object; empty for a problem outside of objects
        """
        change = self._change(found, object_path)
        if change is not None and object_path:
            change = partial(self._claimed, object_path, change)
        with contextlib.suppress(InventoryError):  # without a proof, nothing is written
            return change is not None and self._run.repair(found, change, locked=found.kind != "version-unfinished")
        return False

    def _claimed(self, path: bytes, change: Callable[[], Iterable[RepairStep]]) -> Iterator[RepairStep]:
        """Repair an object while no other run changes it."""
        with contextlib.nullcontext() if self._run.dry_run else self._run.changes.claimed(path):
            yield from change()

    def _change(self, found: Problem, object_path: bytes) -> Callable[[], Iterable[RepairStep]] | None:
        """Return what repairs a problem, if that is possible."""
        path = os.fsencode(found.path)
        match found.kind:
            case "directory-empty":
                return partial(self._prune, path)
            case "content-directory-empty":
                # The version's directory stays, because the inventory lists it.
                version = path[len(object_path) + 1 :].partition(b"/")[0]
                return partial(self._prune, path, os.path.join(object_path, version))
            case "declaration-several" if not found.path:
                return self._remove_declarations
            case "declaration-malformed":
                return partial(self._write_declaration, path)
            case "file-stray" if object_path and not is_version_name(os.path.basename(object_path)):
                return partial(self._declare_object, object_path)
            case "sidecar-missing":
                return partial(self._write_sidecar, path)
            case "sidecar-malformed":
                return partial(self._write_line_end, path)
            case "inventory-missing" | "inventory-malformed" | "sidecar-mismatch":
                is_own = path in (object_path, os.path.join(object_path, _INVENTORY))
                return partial(self._restore_inventory, object_path) if is_own else None
            case "layout-missing":
                layout = self._proven_layout()  # reads all objects: not while the lock is held
                return None if layout is None else partial(self._write, LAYOUT, layout_file(layout))
            case "version-unfinished":
                return partial(self._finish_version, path, object_path)
            case "version-extra" | "content-extra" | "file-stray":
                return partial(self._recover, path, object_path)
        return None

    def _prune(self, path: bytes, stop: bytes = b"") -> Iterator[RepairStep]:
        """Remove an empty directory, and those above it that become empty, up to ``stop``."""
        if path == EXTENSIONS:
            yield RepairStep.of("prune", path)  # removed with the staging directory in it
            return
        yield from (step for step in self._run.prune(path, stop) if os.fsencode(step.path) == path)

    def _finish_version(self, path: bytes, object_path: bytes) -> Iterator[RepairStep]:
        """Finish the publishing of an object's newest version.

        :raises SourceError: its content does not match its inventory
        """
        if self._run.dry_run:
            data = self._storage.read(os.path.join(object_path, _INVENTORY))
            unfinished = find_unfinished(self._storage, object_path, read_inventory(data), data)
            if unfinished is None:
                return
            check_content(self._storage, object_path, unfinished)
            self._write(os.path.join(object_path, _INVENTORY), unfinished.data)
            self._write_digest(object_path, unfinished.document, unfinished.data)
            if unfinished.declared:
                sidecar = encode_fs(sidecar_name(unfinished.document["digestAlgorithm"]))
                for name in outdated_names(sidecar, unfinished.declared):
                    self._run.remove(os.path.join(object_path, name))
                name, content = declaration_of(unfinished.document)
                self._write(os.path.join(object_path, name), content)
        elif not finish_version(self._store, self._run.changes, object_path):
            return  # another run was publishing it
        yield RepairStep.of("finish", path)

    def _recover(self, path: bytes, object_path: bytes) -> Iterator[RepairStep]:
        """Finish what an interrupted run has decided, or remove what it left."""
        if self._run.dry_run:
            return
        changes = self._run.changes
        parts = path.split(b"/")
        # An object that was not published yet is found by the names of its versions.
        objects = [b"/".join(parts[:end]) for end, name in enumerate(parts) if end and is_version_name(name)]
        if any(map(changes.recover, [object_path] if object_path in objects else objects)):
            yield RepairStep.of("finish", path)
        elif changes.remove_leftover(path, objects):
            yield RepairStep.of("remove", path)

    def _write_declaration(self, path: bytes) -> Sequence[RepairStep]:
        line = os.path.basename(path)[2:]
        content = self._storage.read(path, len(line) + len(b"\r\n") + 1)
        if len(content) > len(line) + len(b"\r\n") or content.strip() != line:
            return ()  # different content
        return self._write(path, line + b"\n")

    def _remove_declarations(self) -> Iterator[RepairStep]:
        """Remove the earlier declarations of the root, whose objects may have the version of the latest one."""
        known = [declaration(ROOT, version) for version in VERSIONS]
        (latest, content), *others = [one for one in known if self._storage.exists(one[0])]
        if self._storage.read(latest, len(content) + 1) != content:
            return
        for name, _content in others:
            self._run.remove(name)
            yield RepairStep.of("remove", name)

    def _declare_object(self, path: bytes) -> Sequence[RepairStep]:
        """Write the declaration of an object whose inventory, sidecar and newest version agree."""
        document, data = self._proven(path)
        version = next((one for one in VERSIONS if inventory_type(one) == document.get("type")), None)
        if inventory_errors(document) or version is None or later(version, self._store.version):
            return ()
        if self._storage.read(os.path.join(path, encode_fs(document["head"]), _INVENTORY)) != data:
            return ()
        name, content = declaration(OBJECT, version)
        steps = self._write(os.path.join(path, name), content)
        self._declared.update([path] if steps else [])
        return steps

    def _declare_root(self) -> None:
        """Write the declaration of the root, with the latest version that an object declares.

        :raises StoreError: no object declares a version, or the root declares another one
        """
        found: set[str] = set()

        def note(tree: ObjectTree) -> None:
            found.update([one for one in VERSIONS if decode_fs(declaration(OBJECT, one)[0]) in tree.files])

        for _problem in Walk(self._storage, note, reads="paths", ignore=self._ignore):
            pass
        strange = any(entry.name.startswith(b"0=") for entry in self._storage.scan(b""))
        if not found or strange:
            self._store.refuse_undeclared()
        name, content = declaration(ROOT, next(one for one in VERSIONS if one in found))
        if self._run.dry_run:
            self._write(name, content)
        else:  # changes of the store begin with its declaration
            with self._storage.changes(self._store.durable) as changes:
                changes.put(name, content)
        self._store.read_declaration()
        self._run.note([RepairStep.of("write", name)], "declaration-missing", b"")

    def _write_sidecar(self, path: bytes) -> Sequence[RepairStep]:
        """Write the sidecar of an inventory whose other copy has a matching one."""
        data = self._storage.read(path)
        head = read_inventory(data).get("head")
        if not isinstance(head, str) or "/" in head:
            return ()
        directory = os.path.dirname(path)
        in_version = os.path.basename(directory) == encode_fs(head)
        other = os.path.dirname(directory) if in_version else os.path.join(directory, encode_fs(head))
        try:
            document, copy_of_data = self._proven(other)
        except OSError:
            return ()
        return self._write_digest(directory, document, data) if copy_of_data == data else ()

    def _write_line_end(self, path: bytes) -> Sequence[RepairStep]:
        """Write a sidecar whose line ends with CR LF, as text editors and version control write it."""
        content = self._storage.read(path).replace(b"\r\n", b"\n")
        digest, data = sidecar_digest(content), self._storage.read(os.path.join(os.path.dirname(path), _INVENTORY))
        algorithm = decode_fs(path).rpartition(".")[2]
        if algorithm not in ALGORITHMS or digest != _digest(algorithm, data):
            return ()
        return self._write(path, content)

    def _restore_inventory(self, path: bytes) -> Iterator[RepairStep]:
        """Write the inventory of an object, and its sidecar, from the copy of the newest version."""
        entries = [entry for entry in self._storage.scan(path) if entry.kind == "directory"]
        numbers = [(parsed[0], entry.name) for entry in entries if (parsed := version_number(decode_fs(entry.name)))]
        if not numbers:
            return
        name = max(numbers)[1]
        document, data = self._proven(os.path.join(path, name))
        if document.get("head") != decode_fs(name) or inventory_errors(document):
            return
        algorithm = document["digestAlgorithm"]
        own = self._content(os.path.join(path, _INVENTORY))
        beside = self._content(os.path.join(path, encode_fs(sidecar_name(algorithm))))
        known, digest = sidecar_digest(beside or b""), _digest(algorithm, data)
        # The sidecar of another inventory: perhaps of a version that is lost.
        if known not in (None, digest) and own != data:
            return
        if own != data:
            steps = self._write(os.path.join(path, _INVENTORY), data)
            if not steps:
                return
            yield from steps
        if known != digest:
            yield from self._write_digest(path, document, data)

    def _proven(self, directory: bytes) -> tuple[dict[str, Any], bytes]:
        """Return the inventory in a directory, and its bytes.

        :raises InventoryError: its sidecar does not prove it
        :raises OSError: a file cannot be read
        """
        data = self._storage.read(os.path.join(directory, _INVENTORY))
        document = read_inventory(data)
        if document.get("digestAlgorithm") not in ALGORITHMS or not matches_sidecar(
            self._storage, directory, document, data
        ):
            raise InventoryError("not the inventory of its sidecar")
        return document, data

    def _content(self, path: bytes) -> bytes | None:
        """Return the content of a file; :data:`None` if it does not exist."""
        try:
            return self._storage.read(path)
        except FileNotFoundError:
            return None

    def _proven_layout(self) -> Layout | None:
        """Return the only layout that ``extensions`` configures, if it maps all objects to their paths."""
        layouts = []
        for entry in self._storage.scan(EXTENSIONS) if self._storage.exists(EXTENSIONS) else ():
            if entry.kind == "directory":
                config = os.path.join(EXTENSIONS, entry.name, b"config.json")
                with contextlib.suppress(LayoutConfigError, NotJsonError, OSError):
                    layout = layout_from_config(read_json(self._storage, config))
                    if encode_fs(layout.name) == entry.name and not refused_layout(layout, self._store.version or ""):
                        layouts.append(layout)
        if len(layouts) != 1:
            return None
        for record in self._store.objects(ignore=self._ignore):
            if record.id is None or layouts[0].map_ids([record.id], on_error="none") != [record.path]:
                return None
        return layouts[0]

    def _write_digest(self, directory: bytes, document: Mapping[str, Any], data: bytes) -> Sequence[RepairStep]:
        """Write the sidecar of an inventory."""
        algorithm = document["digestAlgorithm"]
        sidecar = os.path.join(directory, encode_fs(sidecar_name(algorithm)))
        return self._write(sidecar, sidecar_bytes(_digest(algorithm, data)))

    def _write(self, path: bytes, data: bytes) -> Sequence[RepairStep]:
        """Write a file, unless its path is a link or the like."""
        if self._storage.exists(path) and not stat.S_ISREG(self._storage.status(path).st_mode):
            return ()
        self._run.write(path, data)
        return (RepairStep.of("write", path),)


def _digest(algorithm: str, data: bytes) -> str:
    return hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()
