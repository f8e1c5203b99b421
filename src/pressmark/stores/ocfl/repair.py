"""Repairs of an OCFL storage root that lose no data.

=========== ==================================================================================================
action      change
=========== ==================================================================================================
``finish``  a complete version that an interrupted run left out of the inventory, or without its sidecar, is
            published if its content matches its inventory
``prune``   an empty directory is removed (E073, E024)
``remove``  a temporary directory of a killed run in ``extensions/pressmark-staging`` is removed
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
from collections.abc import Iterator, Sequence
from typing import Any

from pressmark.errors import LayoutConfigError
from pressmark.fs.atomic import replace_file, write_new
from pressmark.fs.moves import prune_empty_parents
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.fs.staging import own_leftovers
from pressmark.fs.trees import scan
from pressmark.layouts import Layout, layout_from_config
from pressmark.reports import Problem, Report
from pressmark.stores.exceptions import SourceError, store_errors, unrepaired
from pressmark.stores.objects import OnEvent, RepairStep
from pressmark.stores.ocfl.check import Check
from pressmark.stores.ocfl.checking.object_check import check_object
from pressmark.stores.ocfl.checking.object_tree import ObjectTree
from pressmark.stores.ocfl.declarations import (
    EXTENSIONS,
    LAYOUT,
    OBJECT,
    ROOT,
    VERSIONS,
    WORK_DIRECTORY,
    declaration,
    later,
    layout_file,
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
from pressmark.stores.ocfl.storage import Changes
from pressmark.stores.ocfl.storage_root import StorageRoot
from pressmark.stores.ocfl.unfinished import find_unfinished
from pressmark.stores.ocfl.walk import Walk
from pressmark.stores.ocfl.writing.version_writer import check_content, finish_version
from pressmark.stores.problems import problem

__all__ = ["repair"]

_INVENTORY = encode_fs(INVENTORY)


def repair(store: StorageRoot, dry_run: bool, on_event: OnEvent | None, ignore: Sequence[str]) -> Report:
    """Repair a storage root, and report the remaining problems.

    :raises OSError: the root cannot be read
    """
    return _Repair(store, dry_run, on_event, ignore).run()


class _Repair:
    def __init__(self, store: StorageRoot, dry_run: bool, on_event: OnEvent | None, ignore: Sequence[str]) -> None:
        self._store = store
        self._storage = store.storage
        self._root = self._storage.path(b"")
        self._dry_run = dry_run
        self._tell = on_event or (lambda _event: None)
        self._ignore = ignore
        # The kinds and paths of the problems that are repaired, and the objects that get a declaration.
        self._done: set[tuple[str, bytes]] = set()
        self._declared: set[bytes] = set()
        self._work_directory = self._storage.path(EXTENSIONS + b"/" + WORK_DIRECTORY)

    def run(self) -> Report:
        """Make all repairs, and check again.

        :raises StoreError: the root has no declaration, and it is not known which it had
        """
        done = self._done
        if self._store.is_undeclared:
            self._declare_root()
        for path in own_leftovers(self._work_directory):
            self._tell(RepairStep("remove", os.path.relpath(path, self._root)))
            done.add(("leftover", os.path.relpath(path, self._root)))
        if not self._dry_run and os.path.isdir(self._work_directory):
            with self._staging():
                pass  # entering it removes leftovers, and leaving it the directory
        stuck: list[Problem] = []
        for found, place in self._problems():
            try:
                if self._mend(found, place):
                    done.add((found.kind, found.path))
            except FileNotFoundError:
                pass  # another run has removed or replaced the object
            except SourceError as error:
                stuck.append(problem("unrepaired", found.path, error.reason))
            except OSError as error:
                stuck.append(unrepaired(found.path, error))
        check = Check(self._store, None, None, None)
        report = check.report(False, os.cpu_count() or 1, self._ignore)
        report.add(stuck)
        if self._dry_run:
            report.problems = [one for one in report.problems if not self._is_repaired(one)]
        return report

    def _is_repaired(self, found: Problem) -> bool:
        """Return whether a problem would be repaired, after a dry run."""
        if found.kind == "file-stray" and any(found.path.startswith(place + b"/") for place in self._declared):
            return True
        return (found.kind, found.path) in self._done

    def _problems(self) -> Iterator[tuple[Problem, bytes]]:
        """Yield each problem with the path of its object, which is empty for problems outside of objects."""
        yield from ((found, b"") for found in read_root(self._storage).problems)

        for item in Walk(self._storage, check_object, ignore=self._ignore):
            if isinstance(item, Problem):
                yield item, b""
            else:
                yield from ((found, item.path) for found in item.problems)

    def _mend(self, found: Problem, place: bytes) -> bool:
        """Repair one problem, or on a dry run find out whether this is possible."""
        match found.kind:
            case "directory-empty":
                return self._remove_empty(b"", found.path)
            case "content-directory-empty":
                # The version's directory stays, because the inventory lists it.
                version, _, content = found.path[len(place) + 1 :].partition(b"/")
                return self._remove_empty(os.path.join(place, version), content)
            case "declaration-malformed":
                return self._write_declaration(found.path)
            case "file-stray":
                return found.code == "E003" and self._declare_object(os.path.dirname(found.path))
            case "sidecar-missing":
                return self._write_sidecar(found.path)
            case "sidecar-malformed":
                return self._write_line_end(found.path)
            case "inventory-missing" | "inventory-malformed" | "sidecar-mismatch":
                is_own = found.path in (place, os.path.join(place, _INVENTORY))
                return is_own and self._restore_inventory(place)
            case "layout-missing":
                return self._write_layout()
            case "version-unfinished":
                return self._finish_version(found.path, place)
        return False

    def _finish_version(self, path: bytes, place: bytes) -> bool:
        """Finish the publishing of an object's newest version.

        :raises SourceError: its content does not match its inventory
        """
        if self._dry_run:
            data = self._storage.read(os.path.join(place, _INVENTORY))
            unfinished = find_unfinished(self._storage, place, read_inventory(data), data)
            if unfinished is None:
                return False
            check_content(self._storage, place, unfinished)
        else:
            with self._staging() as staging:
                if not finish_version(self._store, staging, place):
                    return False  # another run was publishing it
        self._tell(RepairStep("finish", path))
        return True

    def _remove_empty(self, above: bytes, name: bytes) -> bool:
        """Remove an empty directory, and those above it that become empty, up to ``above``."""
        with contextlib.suppress(FileNotFoundError):
            if os.listdir(os.path.join(self._root, above, name)):
                return False  # it contains ignored files
        if not self._dry_run:
            with self._staging() as staging, staging.lock():
                prune_empty_parents(os.path.join(self._root, above), name)
        self._tell(RepairStep("prune", os.path.join(above, name)))
        return True

    def _write_declaration(self, place: bytes) -> bool:
        line = os.path.basename(place)[2:]
        content = self._storage.read(place, len(line) + len(b"\r\n") + 1)
        if len(content) > len(line) + len(b"\r\n") or content.strip() != line:
            return False  # different content
        return self._write(place, line + b"\n")

    def _declare_object(self, place: bytes) -> bool:
        """Write the declaration of an object whose inventory, sidecar and newest version agree."""
        data = self._storage.read(os.path.join(place, _INVENTORY))
        try:
            document = read_inventory(data)
        except InventoryError:
            return False
        version = next((one for one in VERSIONS if inventory_type(one) == document.get("type")), None)
        if inventory_errors(document) or version is None or later(version, self._store.version):
            return False
        algorithm = document["digestAlgorithm"]
        sidecar = self._content(os.path.join(place, encode_fs(sidecar_name(algorithm))))
        if sidecar is None or sidecar_digest(sidecar) != _digest(algorithm, data):
            return False
        if self._content(os.path.join(place, encode_fs(document["head"]), _INVENTORY)) != data:
            return False
        name, content = declaration(OBJECT, version)
        self._declared.add(place)
        return self._write(os.path.join(place, name), content)

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
        if not self._dry_run:
            write_new(os.path.join(self._root, name), content)
            self._store.read_declaration()
        self._done.add(("declaration-missing", b""))
        self._tell(RepairStep("write", name))

    def _write_sidecar(self, place: bytes) -> bool:
        """Write the sidecar of an inventory whose other copy has a matching one."""
        data = self._storage.read(place)
        try:
            document: dict[str, Any] = read_inventory(data)
        except InventoryError:
            return False
        algorithm, head = document.get("digestAlgorithm"), document.get("head")
        if algorithm not in ALGORITHMS or not isinstance(head, str) or "/" in head:
            return False
        directory = os.path.dirname(place)
        in_version = os.path.basename(directory) == encode_fs(head)
        other = os.path.dirname(directory) if in_version else os.path.join(directory, encode_fs(head))
        sidecar = encode_fs(sidecar_name(algorithm))
        digest = _digest(algorithm, data)
        try:
            if self._storage.read(os.path.join(other, _INVENTORY)) != data:
                return False
            if sidecar_digest(self._storage.read(os.path.join(other, sidecar))) != digest:
                return False
        except OSError:
            return False
        return self._write(os.path.join(os.path.dirname(place), sidecar), sidecar_bytes(digest))

    def _write_line_end(self, place: bytes) -> bool:
        """Write a sidecar whose line ends with CR LF, as text editors and version control write it."""
        content = self._storage.read(place).replace(b"\r\n", b"\n")
        digest, data = sidecar_digest(content), self._storage.read(os.path.join(os.path.dirname(place), _INVENTORY))
        algorithm = decode_fs(place).rpartition(".")[2]
        if algorithm not in ALGORITHMS or digest != _digest(algorithm, data):
            return False
        return self._write(place, content)

    def _restore_inventory(self, place: bytes) -> bool:
        """Write the inventory of an object, and its sidecar, from the copy of the newest version."""
        entries = [entry for entry in self._storage.scan(place) if entry.kind == "directory"]
        numbers = [(parsed[0], entry.name) for entry in entries if (parsed := version_number(decode_fs(entry.name)))]
        if not numbers:
            return False
        name = max(numbers)[1]
        data = self._storage.read(os.path.join(place, name, _INVENTORY))
        try:
            document = read_inventory(data)
        except InventoryError:
            return False
        if document.get("head") != decode_fs(name) or inventory_errors(document):
            return False
        algorithm = document["digestAlgorithm"]
        sidecar, digest = encode_fs(sidecar_name(algorithm)), _digest(algorithm, data)
        if sidecar_digest(self._storage.read(os.path.join(place, name, sidecar))) != digest:
            return False
        own, beside = self._content(os.path.join(place, _INVENTORY)), self._content(os.path.join(place, sidecar))
        known = None if beside is None else sidecar_digest(beside)
        # The sidecar of another inventory: perhaps of a version that is lost.
        if known not in (None, digest) and own != data:
            return False
        done = own == data or self._write(os.path.join(place, _INVENTORY), data)
        if done:
            self._done.add(("inventory-differs", os.path.join(place, name, _INVENTORY)))
        return done and (known == digest or self._write(os.path.join(place, sidecar), sidecar_bytes(digest)))

    def _content(self, place: bytes) -> bytes | None:
        """Return the content of a file; :data:`None` if it does not exist."""
        try:
            return self._storage.read(place)
        except FileNotFoundError:
            return None

    def _write_layout(self) -> bool:
        layout = self._configured()
        if layout is None:
            return False
        paths = ((record.id, record.path) for record in self._store.objects(ignore=self._ignore))
        for identifier, path in paths:
            if identifier is None or layout.map_ids([identifier], on_error="none") != [path]:
                return False
        return self._write(LAYOUT, layout_file(layout))

    def _configured(self) -> Layout | None:
        """Return the only layout that ``extensions`` configures."""
        found = []
        folder = os.path.join(self._root, EXTENSIONS)
        with contextlib.suppress(FileNotFoundError):
            for entry in scan(folder, follow=False):
                config = os.path.join(folder, entry.name, b"config.json")
                if entry.kind == "directory" and os.path.isfile(config):
                    try:
                        layout = layout_from_config(os.fsdecode(config))
                    except (LayoutConfigError, OSError):
                        continue
                    if (
                        encode_fs(layout.name) == entry.name
                        and refused_layout(layout, self._store.version or "") is None
                    ):
                        found.append(layout)
        return found[0] if len(found) == 1 else None

    def _write(self, place: bytes, data: bytes) -> bool:
        """Write a file, unless this is a dry run; return False if a link or the like is in its place."""
        target = os.path.join(self._root, place)
        if os.path.lexists(target) and (os.path.islink(target) or not os.path.isfile(target)):
            return False
        if not self._dry_run:
            self._replace(target, data)
        self._tell(RepairStep("write", place))
        return True

    def _replace(self, target: bytes, data: bytes) -> None:
        with self._staging() as staging, staging.lock():
            replace_file(target, data, part=staging.begin())

    @contextlib.contextmanager
    def _staging(self) -> Iterator[Changes]:
        with contextlib.ExitStack() as stack:
            with store_errors(self._root):  # required for any repair
                staging = stack.enter_context(self._store.staging())
            yield staging


def _digest(algorithm: str, data: bytes) -> str:
    return hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()
