"""What can be mended in an OCFL storage root without losing a byte.

=========== ==================================================================================================
action      what is done
=========== ==================================================================================================
``prune``   an empty directory is removed (E073, E024)
``remove``  what a killed run left in ``extensions/pressmark-staging`` is removed
``write``   ``ocfl_layout.json`` where ``extensions`` configures one layout, and all objects are where it places them
            (E070); a declaration whose line end was lost (E007, E080); a sidecar (E058) where the same inventory
            has its sidecar beside the other copy
=========== ==================================================================================================
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

from pressmark.errors import LayoutConfigError
from pressmark.fs.atomic import replace_file
from pressmark.fs.entries import DirectoryEntry, scan
from pressmark.fs.moves import prune_empty_parents
from pressmark.fs.names import encode_fs
from pressmark.fs.run_directories import RunDirectory, own_leftovers
from pressmark.layouts import Layout, layout_from_config
from pressmark.reports import Problem, Report
from pressmark.stores.exceptions import store_errors, unrepaired
from pressmark.stores.ocfl.check import Check
from pressmark.stores.ocfl.declarations import EXTENSIONS
from pressmark.stores.ocfl.inventory import (
    ALGORITHMS,
    INVENTORY,
    InventoryError,
    read_inventory,
    sidecar_bytes,
    sidecar_digest,
    sidecar_name,
)
from pressmark.stores.ocfl.layout_files import LAYOUT, WORKSHOP, layout_file, read_root, refused_layout
from pressmark.stores.ocfl.object_check import Checked, check_object
from pressmark.stores.ocfl.storage_root import StorageRoot
from pressmark.stores.ocfl.walk import Found, Walk
from pressmark.stores.store import Changed, OnEvent

__all__ = ["repair"]

_INVENTORY = encode_fs(INVENTORY)


def repair(store: StorageRoot, dry_run: bool, on_event: OnEvent | None, ignore: Sequence[str]) -> Report:
    """Mend what can be mended, and report what remains.

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
        self._workshop = self._storage.path(EXTENSIONS + b"/" + WORKSHOP)

    def run(self) -> Report:
        """Do everything, and check again."""
        done: set[tuple[str, bytes]] = set()
        for path in own_leftovers(self._workshop):
            self._tell(Changed("remove", os.path.relpath(path, self._root)))
            done.add(("leftover", os.path.relpath(path, self._root)))
        if not self._dry_run and os.path.isdir(self._workshop):
            with self._shop():
                pass  # entering it clears it, leaving it removes it
        stuck: list[Problem] = []
        for found, place in self._problems():
            try:
                if self._mend(found, place):
                    done.add((found.kind, found.path))
            except FileNotFoundError:
                pass  # another run has removed or replaced the object since it was looked at
            except OSError as error:
                stuck.append(unrepaired(found.path, error))
        check = Check(self._store, None, None, None)
        report = check.report(False, os.cpu_count() or 1, self._ignore)
        report.add(stuck)
        if self._dry_run:
            report.problems = [one for one in report.problems if (one.kind, one.path) not in done]
        return report

    def _problems(self) -> Iterator[tuple[Problem, bytes]]:
        """Give each problem with the place of its object; that is empty for those of the root and the hierarchy."""
        yield from ((found, b"") for found in read_root(self._storage).problems)

        def visit(place: bytes, entries: Sequence[DirectoryEntry]) -> Checked:
            return check_object(self._storage, place, entries)

        for item in Walk(self._storage, visit, ignore=self._ignore):
            if isinstance(item, Found):
                yield from ((found, item.place) for found in item.value.problems)
            else:
                yield item, b""

    def _mend(self, found: Problem, place: bytes) -> bool:
        """Mend one problem, or on a dry run find out whether it could be."""
        match found.kind:
            case "directory-empty":
                return self._remove_empty(b"", found.path)
            case "content-directory-empty":
                # The version's directory stays: the inventory names it.
                version, _, content = found.path[len(place) + 1 :].partition(b"/")
                return self._remove_empty(os.path.join(place, version), content)
            case "declaration-malformed":
                return self._write_declaration(found.path)
            case "sidecar-missing":
                return self._write_sidecar(found.path)
            case "layout-missing":
                return self._write_layout()
        return False

    def _remove_empty(self, above: bytes, name: bytes) -> bool:
        """Remove an empty directory, and those that are empty then, up to ``above``."""
        with contextlib.suppress(FileNotFoundError):
            if os.listdir(os.path.join(self._root, above, name)):
                return False  # what the walk was told to ignore
        if not self._dry_run:
            with self._shop() as workshop, workshop.lock():
                prune_empty_parents(os.path.join(self._root, above), name)
        self._tell(Changed("prune", os.path.join(above, name)))
        return True

    def _write_declaration(self, place: bytes) -> bool:
        line = os.path.basename(place)[2:]
        content = self._storage.read(place, len(line) + len(b"\r\n") + 1)
        if len(content) > len(line) + len(b"\r\n") or content.strip() != line:
            return False  # it says something else, or more: who knows what it is
        return self._write(place, line + b"\n")

    def _write_sidecar(self, place: bytes) -> bool:
        """Write the sidecar of an inventory whose other copy has one that is right."""
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
        digest = hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()
        try:
            if self._storage.read(os.path.join(other, _INVENTORY)) != data:
                return False
            if sidecar_digest(self._storage.read(os.path.join(other, sidecar))) != digest:
                return False
        except OSError:
            return False
        return self._write(os.path.join(os.path.dirname(place), sidecar), sidecar_bytes(digest))

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
        """Have a file in its place at once, or on a dry run only say so; False where a link or the like is there."""
        target = os.path.join(self._root, place)
        if os.path.lexists(target) and (os.path.islink(target) or not os.path.isfile(target)):
            return False
        if not self._dry_run:
            self._replace(target, data)
        self._tell(Changed("write", place))
        return True

    def _replace(self, target: bytes, data: bytes) -> None:
        with self._shop() as workshop, workshop.lock():
            replace_file(target, data, part=workshop / b"file")

    @contextlib.contextmanager
    def _shop(self) -> Iterator[RunDirectory]:
        with contextlib.ExitStack() as stack:
            with store_errors(self._root):  # no repair at all without one
                workshop = stack.enter_context(self._store.workshop())
            yield workshop
