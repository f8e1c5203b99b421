"""Later OCFL versions and other digest algorithms for the objects of a storage root.

Each object gets a version that refers to the content that is there. The root declares its version first, so that no
object has a later version than its root; an object that has the form already is left as it is. So a run that was
interrupted is continued by the next one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any

from pressmark.errors import ObjectError, StoreError, quoted
from pressmark.fs.names import encode_fs
from pressmark.option_names import option
from pressmark.stores.exceptions import object_errors, store_errors
from pressmark.stores.ingest import Ingest, IngestResult
from pressmark.stores.objects import ObjectSource, StoreObject
from pressmark.stores.ocfl.declarations import (
    EXTENSIONS,
    OBJECT,
    ROOT,
    VERSIONS,
    WORK_DIRECTORY,
    declaration,
    declaration_of,
    later,
)
from pressmark.stores.ocfl.inventory import ALGORITHMS, INVENTORY, Provenance, sidecar_name
from pressmark.stores.ocfl.storage_root import FoundInventory, StorageRoot
from pressmark.stores.ocfl.writing.bulk_writer import BulkWriter, StagedObject
from pressmark.stores.ocfl.writing.edits import Edit, Form

__all__ = ["check_form", "check_removal", "upgrade_objects", "upgrade_root"]


def check_form(root: StorageRoot, form: Form) -> None:
    """Check the form that a root and its objects are to have.

    :raises StoreError: it is unknown, or the root has a later one
    """
    used = option("to")
    if form == (None, None):
        raise StoreError(root.root, f"nothing to upgrade; specify {used} or {option('algorithm')}")
    if form.algorithm not in (None, *ALGORITHMS):
        raise StoreError(root.root, f"digest algorithm {quoted(form.algorithm)} not allowed; use sha512 or sha256")
    if form.version is None:
        return
    if form.version not in VERSIONS:
        known = ", ".join(VERSIONS)
        raise StoreError(root.root, f"OCFL {quoted(form.version)} is not supported; use one of {known} ({used})")
    if later(root.version, form.version):
        raise StoreError(root.root, f"the root declares OCFL {root.version}, which is later; use {used} {root.version}")


def check_removal(root: StorageRoot) -> None:
    """Check that files can be removed: a user of object storage may be allowed to write only.

    :raises StoreError: they cannot, so that old declarations and sidecars would stay
    """
    if root.bucket is None:
        return
    name = b"/".join((EXTENSIONS, WORK_DIRECTORY, b"probe-upgrade"))
    with store_errors(root.root), root.changes() as changes:
        changes.put(name, b"")
        try:
            changes.remove(name)
        except PermissionError:
            what = "an upgrade removes old declarations and sidecars; run it as a user who may delete keys"
            raise StoreError(root.root, f"permission to delete keys denied: {what}") from None


def upgrade_root(root: StorageRoot, version: str) -> None:
    """Let a root declare an OCFL version: the new declaration is written before the old one is removed.

    :raises StoreError: the declaration cannot be written
    """
    name, content = declaration(ROOT, version)
    outdated = [declaration(ROOT, one)[0] for one in VERSIONS if later(version, one)]
    with store_errors(root.root):
        if root.version == version and not any(map(root.storage.exists, outdated)):
            return
        with root.changes() as changes, changes.lock():
            if root.version != version:
                changes.put(name, content)
            for one in outdated:
                changes.remove(one)
    root.read_declaration()


def upgrade_objects(
    root: StorageRoot,
    records: Iterable[StoreObject],
    edit: Edit,
    provenance: Provenance,
    change: Callable[[StoreObject], StoreObject],
    dry_run: bool,
) -> Generator[IngestResult[StoreObject]]:
    """Give objects a form, and yield the result of each once it is on disk; several are published together.

    :param edit: has the form
    :param change: gives it to one object, again if other runs change it meanwhile
    :param dry_run: only yield what would be done
    """
    results: deque[IngestResult[StoreObject]] = deque()
    writer = _Upgrade(root, edit, provenance, change, dry_run)
    batch = Ingest(root.root, writer, find_stored=writer.again, results=results)

    def ready() -> Iterator[IngestResult[StoreObject]]:
        while results:
            path, record, error = results.popleft()
            yield IngestResult(path if record is None else record.id or path, record, error)

    raised: BaseException | None = None
    try:
        with batch:
            for _ in batch.steps((record.path, {}) for record in records):
                yield from ready()
    except GeneratorExit:
        raise
    except BaseException as error:
        raised = error
    yield from ready()
    if raised is not None:
        raise raised


class _Upgrade(BulkWriter):
    """Writes the versions; the parameters are those of :func:`upgrade_objects`. Objects are found by their paths."""

    def __init__(
        self,
        root: StorageRoot,
        edit: Edit,
        provenance: Provenance,
        change: Callable[[StoreObject], StoreObject],
        dry_run: bool,
    ) -> None:
        super().__init__(root, "auto", "refuse", None)
        self._edit = edit
        self._provenance = provenance
        self._change = change
        self._dry_run = dry_run

    def open(self) -> None:
        if not self._dry_run:
            super().open()

    def _destinations(self, objects: Sequence[tuple[str | bytes, ObjectSource]]) -> Sequence[None]:
        return [None] * len(objects)

    def begin(
        self, identifier: str | bytes, source: ObjectSource, destination: bytes | None = None, **options: Any
    ) -> StagedObject | StoreObject:
        path = encode_fs(identifier)
        found = self._root._read_inventory(str(identifier), path)
        if found is None:
            raise ObjectError(self._name, identifier, "missing", "object not found; another run has removed it")
        name = str(found.document.get("id"))
        with object_errors(self._name, name):
            has_form = self._edit.form.fits(found.document) and self._is_published(found)
        if has_form or self._dry_run:
            head = str(found.document.get("head"))
            return StoreObject(name, str(identifier), True, None, (), head, exists_same=has_form)
        return self._begin_version(name, found, {}, self._edit, True)

    def _is_published(self, found: FoundInventory) -> bool:
        """Return whether nothing is left of an earlier form of an object."""
        right = {declaration_of(found.document)[0], encode_fs(sidecar_name(found.document["digestAlgorithm"]))}
        names = {entry.name for entry in self._root.storage.scan(found.path)}
        return {name for name in names if name.startswith((OBJECT, encode_fs(INVENTORY) + b"."))} == right

    def again(self, identifier: str | bytes, source: ObjectSource, error: ObjectError) -> StoreObject:
        is_overtaken = error.kind in ("changed", "exists") or isinstance(error.__cause__, FileNotFoundError)
        record = self._root.at(str(identifier)) if is_overtaken else None
        if record is None:
            raise error
        return self._change(record)
