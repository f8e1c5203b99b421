"""New versions of existing OCFL objects (sections 3.3 to 3.7).

Only new files are written: the version's directory with content, inventory and sidecar, and the object's next inventory
and sidecar. It is published in three steps, each flushed before the next: the directory is moved into the object, the
inventory is replaced, the sidecar is replaced. If the version has another OCFL version, the declaration is replaced
last. :mod:`pressmark.stores.ocfl.unfinished` finds a version whose publishing was interrupted, and
:func:`finish_version` makes the remaining steps.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator, Mapping
from errno import ENOENT
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

from pressmark.errors import ObjectError, quoted, quoted_path
from pressmark.fixity.outcomes import Outcome, failed_outcome
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.reports import Problem
from pressmark.stores.exceptions import SourceError
from pressmark.stores.objects import StoreObject
from pressmark.stores.ocfl.declarations import (
    OBJECT,
    VERSIONS,
    declaration,
    declaration_of,
    later,
    read_declaration,
)
from pressmark.stores.ocfl.differences import Changes as Differences, compare_states
from pressmark.stores.ocfl.inventory import (
    INVENTORY,
    InventoryError,
    Provenance,
    content_directory,
    next_version,
    read_inventory,
    sidecar_name,
)
from pressmark.stores.ocfl.inventory_rules import inventory_errors
from pressmark.stores.ocfl.storage import Changes, Storage, status_or_none
from pressmark.stores.ocfl.storage_root import FoundInventory, StorageRoot
from pressmark.stores.ocfl.unfinished import UnfinishedVersion, content_of, find_unfinished, matches_sidecar
from pressmark.stores.ocfl.unversioned import refuse_mutable_head
from pressmark.stores.ocfl.writing.edits import Edit, damage, damaged_content, kept_files, next_files
from pressmark.stores.ocfl.writing.object_writer import (
    CopiedFiles,
    Fixity,
    dropped_directories,
    inventory_files,
)
from pressmark.stores.problems import problem
from pressmark.threads import resolve_threads

__all__ = ["NextVersion", "check_content", "finish_version"]

Key = TypeVar("Key")

_INVENTORY = encode_fs(INVENTORY)


class NextVersion:
    """The next version of an object, while it is written.

    :param changes: publish it
    :param found: the object
    :param edit: its difference from the newest version
    :param dedup: do not store content that is in the object already
    :ivar path: the object
    :raises ObjectError: of kind ``improper``, ``mutable-head`` or ``changed``: nothing can be added to the object
    :raises SourceError: no version number is left
    """

    def __init__(
        self,
        root: StorageRoot,
        changes: Changes,
        identifier: str,
        found: FoundInventory,
        edit: Edit,
        provenance: Provenance,
        dedup: bool,
    ) -> None:
        self.path = found.path
        self._root = root
        self._storage = root.storage
        self._publishing = changes
        self._identifier = identifier
        self._current = found
        self._edit = edit
        self._provenance = provenance
        self._dedup = dedup
        self._check_ready()
        self._name = _next_name(found.document)
        #: The inventory of the object in the form of this version.
        self._document = edit.form.applied(found.document, self._hash_contents)
        self._before = kept_files(self._document)
        self._kept: dict[str, str] = {}
        self._changes = Differences()
        self._is_new = False

    def copy(self, new: bytes, links: str, fixity: Fixity, also: tuple[str, ...], threads: int | None) -> CopiedFiles:
        """Return the copy of its new files; the parameters are those of :class:`CopiedFiles`.

        :param new: the new directory for the version
        :raises SourceError: the changes contradict the object or each other
        """
        document = self._document
        self._kept, source = next_files(self._edit, document, self._before, new, links)
        return CopiedFiles(
            source,
            new,
            self._name,
            self._publishing,
            links,
            document["digestAlgorithm"],
            fixity,
            self._root.content_paths,
            document["manifest"],
            content_directory(document),
            self._hash_stored,
            also=also,
            dedup=self._dedup,
            threads=threads,
        )

    def complete(self, copied: CopiedFiles) -> None:
        """Write inventory and sidecar, unless the version equals the newest one.

        :raises ObjectError: a path would be too long
        :raises SourceError: the files cannot be stored
        :raises OSError: a file cannot be written
        """
        copied.finish()
        if self._edit.restored is not None:
            self._refuse_damaged(copied, self._edit.restored.verify)
        after = {**self._kept, **{path: digest for digest, paths in copied.state.items() for path in paths}}
        self._changes = compare_states(self._before, after)
        self._is_new = self._declared != b"" or not (self._changes.is_empty and copied.is_stored())
        if self._is_new:
            _write(self._document, self._name, after, copied, self._provenance, declares=bool(self._declared))
            self._root.refuse_too_long(self._identifier, self.path, copied.longest)

    def record(self, copied: CopiedFiles) -> StoreObject:
        """Return the record of the object with this version, or with its newest one if that is equal."""
        problems = (*dropped_directories(self.path, copied.dropped), *self._damaged(copied.damaged))
        counts = self._changes.counts()
        if restored := copied.restored & set(self._changes.unchanged):
            counts = {**counts, "restored": len(restored), "unchanged": counts["unchanged"] - len(restored)}
        name = self._name if self._is_new else self._current.document["head"]
        return StoreObject(self._identifier, decode_fs(self.path), True, None, problems, name, counts)

    def _refuse_damaged(self, copied: CopiedFiles, verify: bool) -> None:
        """Check the content of files that come back.

        :param verify: read it; otherwise it only has to exist
        :raises SourceError: of the kind of its outcome
        """
        back = {digest: path for path, digest in self._kept.items() if self._before.get(path) != digest}
        manifest = self._document["manifest"]
        if verify:
            intact = copied.intact(back)
        else:
            intact = {digest for digest in back if any(map(self._is_file, manifest[digest]))}
        for digest in sorted(back.keys() - intact, key=lambda digest: back[digest]):
            content = manifest[digest][0]
            raise damaged_content(
                content, copied.damaged.get(content) or failed_outcome(encode_fs(content), "missing", ENOENT)
            )

    def _is_file(self, content: str) -> bool:
        status = status_or_none(self._storage, self._path(encode_fs(content)))
        return status is not None and stat.S_ISREG(status.st_mode)

    # --- before -------------------------------------------------------------------------------------------------------

    def _check_ready(self) -> None:
        """Check what must hold before a version is added, from the object's inventory; first finish another version.

        :raises ObjectError: of kind ``improper``, ``mutable-head`` or ``changed``
        """
        refuse_mutable_head(self._storage, self._root.root, self._identifier, self.path)
        why = self._fault()
        finish = partial(finish_version, self._root, self._publishing, self.path)
        if why is not None:
            if not self._publishing.recover(self.path):
                finish()
            why = self._fault()  # another run may have finished it instead
        if why is not None:
            raise self._improper(why)
        if self._irregularity() is None:
            return
        self._publishing.recover(self.path)
        finish()
        with self._publishing.lock():
            if not self._is_as_found():
                raise self._changed()
            if (why := self._irregularity()) is not None:
                name = next_version(self._current.document["head"])
                if name is not None and self._storage.is_decided(self.path, encode_fs(name)):
                    raise self._exists(name)
                raise self._improper(why)

    def _fault(self) -> str | None:
        """Return the first error of the declaration and the inventory."""
        there = self._declarations()
        version, problems = read_declaration(self._storage, self.path, OBJECT, there)
        while problems and there != (now := self._declarations()):  # another run upgrades the object
            there = now
            version, problems = read_declaration(self._storage, self.path, OBJECT, there)
        if version is None:
            return "declaration-missing: the object declares no supported version of OCFL"
        if later(version, self._root.version):
            self._root.read_declaration()  # another run may have upgraded it
        if later(version, self._root.version):
            return (
                f"version-later: the object declares OCFL {version},"
                f" but its storage root declares OCFL {self._root.version}"
            )
        repeated: list[str] = []
        read_inventory(self._current.data, repeated)
        if repeated:
            return f"inventory-key-repeated: the key {quoted(repeated[0])} occurs more than once"
        if problems:
            return f"{problems[0].kind}: {problems[0].message}"
        errors = inventory_errors(self._current.document, version)
        return f"{errors[0].kind}: {errors[0].message}" if errors else None

    def _declarations(self) -> list[bytes]:
        """Return the names of the object's declarations."""
        names = [declaration(OBJECT, version)[0] for version in VERSIONS]
        return [name for name in names if self._storage.exists(self._path(name))]

    def _irregularity(self) -> str | None:
        """Return what another run, killed or not, may have left unfinished."""
        document, data = self._current.document, self._current.data
        try:
            if not matches_sidecar(self._storage, self.path, document, data):
                return "sidecar-mismatch: the inventory differs from its sidecar"
        except FileNotFoundError:
            return "sidecar-missing: the inventory has no sidecar"
        head = encode_fs(document["head"])
        try:
            if self._storage.read(self._path(head, _INVENTORY)) != data:
                return f"inventory-differs: the inventory differs from that of {document['head']}"
        except FileNotFoundError:
            if not self._storage.exists(self._path(head)):
                return f"version-absent: the directory of {document['head']} is missing"
        name = next_version(document["head"])
        is_there = name is not None and self._storage.exists(self._path(encode_fs(name)))
        if name is not None and is_there and not self._storage.is_leftover(self.path, encode_fs(name)):
            return f"version-extra: {name} is not a complete version, and the inventory does not list it"
        return None

    def _hash_stored(self, contents: Iterable[tuple[Key, str]]) -> Iterator[tuple[Key, Outcome]]:
        """Hash content files of the object, and yield key and outcome of each; links are not followed."""
        return self._hash_contents(contents, (self._document["digestAlgorithm"],))

    def _hash_contents(
        self, contents: Iterable[tuple[Key, str]], algorithms: tuple[str, ...]
    ) -> Iterator[tuple[Key, Outcome]]:
        for link, group in groupby(contents, lambda task: self._link(task[1])):
            tasks = [(key, self._path(encode_fs(content))) for key, content in group]
            if link is None:
                yield from self._storage.hash_tasks(tasks, algorithms, resolve_threads(None))
            else:
                yield from ((key, failed_outcome(path, "link")) for key, path in tasks)

    def _link(self, content: str) -> bytes | None:
        """Return the directory above a content file that is a symbolic link, if any."""
        parts = encode_fs(content).split(b"/")
        for depth in range(1, len(parts)):
            status = status_or_none(self._storage, self._path(*parts[:depth]))
            if status is not None and stat.S_ISLNK(status.st_mode):
                return b"/".join(parts[:depth])
        return None

    def _damaged(self, damaged: Mapping[str, Outcome]) -> Iterator[Problem]:
        """Yield a warning for each stored content that was not used in place of a new file."""
        for content, outcome in damaged.items():
            path = self._path(encode_fs(content))
            if outcome.kind == "archived":
                what = f"{quoted(content)} has the digest of a new file, which was stored, too: {outcome.message}"
                yield problem("content-archived", path, what)
                continue
            kind = "content-missing" if outcome.kind == "missing" else "content-mismatch"
            what = f"{quoted(content)} has the digest of a new file, but is damaged: {damage(outcome)}; check the store"
            yield problem(kind, path, what, severity="warning")

    # --- publishing ---------------------------------------------------------------------------------------------------

    def publish(self, new: bytes) -> None:
        """Move the version into the object, and replace the object's inventory and sidecar, while the lock is held.

        :param new: its directory
        :raises ObjectError: nothing was changed; of kind ``changed`` or ``exists``, another run has changed the object
        :raises OSError: a file cannot be moved
        """
        if not self._is_new:
            return
        if not self._is_as_found():
            raise self._changed()
        refuse_mutable_head(self._storage, self._root.root, self._identifier, self.path)
        sidecar = encode_fs(sidecar_name(self._document["digestAlgorithm"]))
        name, data = encode_fs(self._name), self._current.data
        try:
            self._publishing.publish_version(new, self.path, name, sidecar, data, self._declared)
        except FileExistsError:
            # Another host, whose lock this one does not see: finished or refused on the next attempt.
            raise self._exists(self._name) from None

    @property
    def _declared(self) -> bytes:
        """The name of the declaration, if the version has another form than the one before; otherwise empty."""
        return b"" if self._document is self._current.document else declaration_of(self._document)[0]

    def is_published(self) -> bool:
        """Return whether the version is in the object."""
        return not self._is_new or self._storage.exists(self._path(encode_fs(self._name)))

    def _is_as_found(self) -> bool:
        try:
            return self._storage.read(self._path(_INVENTORY)) == self._current.data
        except FileNotFoundError:
            return False

    def _path(self, *names: bytes) -> bytes:
        return b"/".join((self.path, *names))

    def _exists(self, name: str) -> ObjectError:
        return self._error("exists", f"{name} exists already; run the command again")

    def _changed(self) -> ObjectError:
        return self._error("changed", "changed by another run; run the command again")

    def _improper(self, why: str) -> ObjectError:
        return self._error("improper", f"object not valid ({why}); check the store")

    def _error(self, kind: str, reason: str) -> ObjectError:
        return ObjectError(self._root.root, self._identifier, kind, reason)


# --- staging ----------------------------------------------------------------------------------------------------------


def _next_name(document: Mapping[str, Any]) -> str:
    """Return the name of the next version.

    :raises SourceError: no number is left
    """
    name = next_version(document["head"])
    if name is None:
        what = f"no version number of this width is available after {document['head']}"
        raise SourceError("improper", f"{what}; store the content as a new object")
    return name


def _write(
    document: Mapping[str, Any],
    name: str,
    after: Mapping[str, str],
    copied: CopiedFiles,
    provenance: Provenance,
    *,
    declares: bool,
) -> None:
    """Write the inventory and the sidecar of the next version of an object.

    :param document: the object's inventory, already checked, in the form of the version
    :param after: the digests of the version, by logical path
    :param copied: the new files
    :param declares: write the declaration of the object, too
    :raises OSError: a file cannot be written
    """
    state: dict[str, list[str]] = {}
    for path in sorted(after):
        state.setdefault(after[path], []).append(path)
    versions = {**document["versions"], name: provenance.block(state)}
    new = {**document, "head": name, "manifest": copied.manifest, "versions": versions}
    if fixity := _joined_fixity(document.get("fixity", {}), copied.fixity):
        new["fixity"] = fixity
    data, sidecar = inventory_files(new)
    beside, folder = encode_fs(sidecar_name(document["digestAlgorithm"])), encode_fs(name) + b"/"
    inventories = {folder + _INVENTORY: data, folder + beside: sidecar, _INVENTORY: data, beside: sidecar}
    declared = dict([declaration_of(document)]) if declares else {}
    copied.changes.write(copied.target, {**inventories, **declared})
    copied.note_path(folder + beside)


def _joined_fixity(
    before: Mapping[str, Mapping[str, list[str]]], new: Mapping[str, Mapping[str, list[str]]]
) -> dict[str, dict[str, list[str]]]:
    """Return the fixity block of an inventory with the digests of new files added."""
    joined = {name: {digest: list(paths) for digest, paths in block.items()} for name, block in before.items()}
    for name, block in new.items():
        for digest, paths in block.items():
            known = joined.setdefault(name, {}).setdefault(digest, [])
            known += [path for path in paths if path not in known]
    return joined


# --- finishing --------------------------------------------------------------------------------------------------------


def finish_version(root: StorageRoot, changes: Changes, path: bytes) -> bool:
    """Finish a version whose publishing was interrupted; return whether there was one.

    :param path: the object
    :raises SourceError: of kind ``improper``: the content of the version does not match its inventory
    :raises OSError: the version cannot be read, or the object cannot be written
    """
    with changes.lock():  # no run is publishing
        unfinished = _unfinished(root.storage, path)
    if unfinished is None:
        return False
    check_content(root.storage, path, unfinished)
    new = changes.begin(path)
    sidecar = encode_fs(sidecar_name(unfinished.document["digestAlgorithm"]))
    folder = path + b"/" + encode_fs(unfinished.name)
    contents = {b"": None, _INVENTORY: unfinished.data, sidecar: root.storage.read(folder + b"/" + sidecar)}
    if unfinished.declared:
        contents |= dict([declaration_of(unfinished.document)])
    try:
        changes.write(new, contents)
        changes.flush(new, folder)
        with changes.lock():
            if _unfinished(root.storage, path) == unfinished:
                changes.publish_inventory(new, path, sidecar, unfinished.declared)
    finally:
        changes.discard(new)
    return True


def check_content(storage: Storage, object_path: bytes, unfinished: UnfinishedVersion) -> None:
    """Compare the content of an unfinished version with its inventory.

    :param object_path: the object
    :raises SourceError: of kind ``improper``
    """
    expected = content_of(unfinished.document, unfinished.name)
    algorithm = unfinished.document["digestAlgorithm"]
    tasks = ((path, object_path + b"/" + path) for path in expected)
    for path, outcome in storage.hash_tasks(tasks, (algorithm,), resolve_threads(None)):
        if outcome.digests is None or outcome.digests[algorithm] != expected[path].lower():
            what = f"{unfinished.name} cannot be finished: {quoted_path(path)}: {damage(outcome)}"
            raise SourceError("improper", f"{what}; restore the file, or move {unfinished.name} out of the object")


def _unfinished(storage: Storage, path: bytes) -> UnfinishedVersion | None:
    try:
        data = storage.read(path + b"/" + _INVENTORY)
        return find_unfinished(storage, path, read_inventory(data), data)
    except (FileNotFoundError, InventoryError):
        return None
