"""New OCFL objects, written to a staging directory (sections 3.1 to 3.7).

Content is hashed while it is copied, and content with the same digest is stored once. Files are written in the order
content, inventories with sidecars, declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from pressmark.errors import IdentifierError, quoted, quoted_path, short_digest
from pressmark.fixity import Outcome, algorithm_name
from pressmark.fixity.algorithms import ALGORITHMS
from pressmark.fixity.outcomes import Content
from pressmark.fs.names import encode_fs
from pressmark.layouts import Layout
from pressmark.reports import Problem
from pressmark.stores.exceptions import SourceError
from pressmark.stores.object_sources import SourceCopy, SourceEntry, Task, is_remote
from pressmark.stores.objects import ObjectSource
from pressmark.stores.ocfl.declarations import OBJECT, declaration, extension_files
from pressmark.stores.ocfl.inventory import (
    CONTENT_DIRECTORY,
    INVENTORY,
    Provenance,
    first_version,
    inventory_bytes,
    path_fault,
    sidecar_bytes,
    sidecar_name,
)
from pressmark.stores.ocfl.storage import Changes
from pressmark.stores.problems import problem

__all__ = [
    "CopiedFiles",
    "Files",
    "Fixity",
    "dropped_directories",
    "inventory_files",
    "logical_name",
    "write_object",
]

#: Digests by algorithm and logical path.
Fixity = Mapping[str, Mapping[str, str]]
#: A name in an object, and the path of the file to copy there, or its content.
File = tuple[bytes, bytes | Content]
#: Files that the caller has checked.
Files = list[tuple[bytes, bytes]] | list[File] | list[SourceEntry]
# Copied files that are compared with stored content together, at most: files and bytes.
BATCH, BATCH_BYTES = 256, 1 << 26
_INVENTORY = encode_fs(INVENTORY)


def write_object(copied: CopiedFiles, identifier: str, version: str, provenance: Provenance) -> None:
    """Complete version 1 of an object whose files were copied.

    :param version: version of OCFL
    :raises SourceError: the files cannot be stored
    :raises OSError: the object cannot be written
    """
    copied.finish()
    document = first_version(identifier, version, copied.algorithm, copied.manifest, provenance.block(copied.state))
    if copied.fixity:
        document["fixity"] = copied.fixity
    extension = {} if copied.content_paths is None else extension_files(copied.content_paths)
    for path in extension:
        copied.note_path(path)
    copied.changes.write(copied.target, {**extension, **_inventories(document, version)})
    copied.note_path(b"v1/" + encode_fs(sidecar_name(copied.algorithm)))


def dropped_directories(path: bytes, dropped: Iterable[bytes]) -> tuple[Problem, ...]:
    """Return the warnings of directories without any file, which were not stored in the object at ``path``."""
    why = "not stored: OCFL does not allow empty directories"
    return tuple(
        problem("directory-empty", path, f"{quoted_path(folder)} {why}", severity="warning") for folder in dropped
    )


def _inventories(document: Mapping[str, Any], version: str) -> dict[bytes, bytes]:
    """Return inventories, sidecars and declaration."""
    data, sidecar = inventory_files(document)
    beside, name, content = _file_parts(document["digestAlgorithm"], version)
    folder = encode_fs(document["head"]) + b"/"
    inventories = {folder + _INVENTORY: data, folder + beside: sidecar, _INVENTORY: data, beside: sidecar}
    return {**inventories, name: content}


def inventory_files(document: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """Return the content of an inventory and of its sidecar."""
    data = inventory_bytes(document)
    hasher = ALGORITHMS[document["digestAlgorithm"]].make(1)
    hasher.update(data)
    return data, sidecar_bytes(hasher.hexdigest())


@cache
def _file_parts(algorithm: str, version: str) -> tuple[bytes, bytes, bytes]:
    """Return the name of the sidecar, and name and content of the declaration."""
    return encode_fs(sidecar_name(algorithm)), *declaration(OBJECT, version)


class _Copied(NamedTuple):
    """A copied file whose content the object may contain already.

    :ivar content: its content path
    :ivar target: its path in the staging directory
    :ivar digest: as the manifest spells it
    """

    logical: str
    content: str
    target: bytes
    digest: str
    digests: Mapping[str, str]


class CopiedFiles(SourceCopy):
    """The files of a source on their way into a new version of an object.

    :param source: as for :meth:`pressmark.stores.Store.put`, or files that the caller has checked
    :param top: the new directory of the object
    :param version: the directory of the version, such as ``v1``
    :param changes: prepare it
    :param links: as for :class:`SourceCopy`, like ``threads``
    :param fixity: known digests, by algorithm and logical path: they are compared with the copied content and stored in
        the inventory; if an algorithm has no digests, they are computed for all files
    :param content_paths: maps logical paths to content paths; :data:`None` for equal paths
    :param manifest: of earlier versions
    :param folder: the content directory of the object
    :param hash_stored: hashes content files of earlier versions with ``algorithm``: stored content takes the place of
        a copy only if it has been read and matches its digest
    :param also: more algorithms for the outcomes
    :param dedup: store content once that is in the manifest, or occurs several times
    :ivar algorithm: of the object
    :ivar changes: as given, like ``content_paths``
    :ivar manifest: digests to content paths, including those of earlier versions
    :ivar damaged: the outcome of each stored content that was read for this and does not match its digest
    :ivar restored: logical paths of files that were stored because the stored content with their digest is damaged
    :ivar state: digests to logical paths
    :ivar fixity: digests for the inventory's fixity block, by algorithm
    :ivar dropped: directories without files, which OCFL cannot store
    :ivar outcomes: of each file, by its logical path
    """

    # Walking is recursive.
    DEEPEST = 400

    def __init__(
        self,
        source: ObjectSource | Files,
        top: bytes,
        version: str,
        changes: Changes,
        links: str,
        algorithm: str,
        fixity: Fixity,
        content_paths: Layout | None,
        manifest: Mapping[str, list[str]] | None = None,
        folder: str = CONTENT_DIRECTORY,
        hash_stored: Callable[[list[tuple[tuple[str, str], str]]], Iterable[tuple[tuple[str, str], Outcome]]] = (
            lambda _tasks: ()
        ),
        *,
        also: tuple[str, ...] = (),
        dedup: bool = True,
        threads: int | None = None,
    ) -> None:
        self._known = {algorithm_name(name): dict(block) for name, block in fixity.items()}
        algorithms = tuple(dict.fromkeys((algorithm, *self._known, *also)))
        files: ObjectSource = {} if isinstance(source, list) else source
        super().__init__(files, top, links, algorithms=algorithms, threads=threads)
        if isinstance(source, list):
            self.entries, self.is_real = [SourceEntry(*file) for file in source], False
            self.is_remote = any(is_remote(file[1]) for file in source[:1])
        self._stored = manifest or {}
        self.manifest = {digest: list(paths) for digest, paths in self._stored.items()}
        self.damaged: dict[str, Outcome] = {}
        self.restored: set[str] = set()
        self.state: dict[str, list[str]] = {}
        self.fixity: dict[str, dict[str, list[str]]] = {}
        self.dropped: list[bytes] = []
        self.outcomes: dict[str, Outcome] = {}
        self._version = version
        self.changes = changes
        self._folder = f"{version}/{folder}"
        self.algorithm = algorithm
        self._hash_stored = hash_stored
        self._dedup = dedup
        self._is_emptied = False  # a directory may be left without files
        self._intact: dict[str, str] = {}  # digest -> content path that can take the place of a copy
        # Algorithms without known digests: computed for all files.
        self._all = {name for name, block in self._known.items() if not block}
        self.content_paths = content_paths
        self._files: dict[str, str] = {}  # content path below the content directory -> logical path
        self._folders: set[str] = set()
        self._spelling = {digest.lower(): digest for digest in self.manifest}
        self._batch: list[_Copied] = []
        self._batch_size = 0

    def tasks(self) -> Iterator[Task]:
        """Create the directories, and yield the files to copy: the key is the logical path, the content path and the
        path of the copy.
        """
        folders: dict[bytes, bytes | None] = {b"": None, encode_fs(self._version): None}
        base = self.target + b"/" + encode_fs(self._folder)
        is_created = False
        for name, path, is_empty in self.listed():
            if path is None:
                if is_empty:
                    self.dropped.append(name)
                continue
            if not is_created:
                self.changes.write(self.target, {**folders, encode_fs(self._folder): None})
                is_created = True
            logical = logical_name(name)
            content = logical if self.content_paths is None else self._content_path(logical)
            self._claim(content, logical)
            inside = encode_fs(content)
            target = base + b"/" + inside
            parent = content.rpartition("/")[0]
            if parent and parent not in self._folders:
                self.changes.make(base + b"/" + encode_fs(parent))
                while parent and parent not in self._folders:
                    self._folders.add(parent)
                    parent = parent.rpartition("/")[0]
            stored = f"{self._folder}/{content}"
            self.note_path(encode_fs(stored))
            yield (logical, stored, target), path, target
        if not is_created:  # no files
            self.changes.write(self.target, folders)

    def add(self, key: tuple[str, str, bytes], outcome: Outcome) -> None:
        """Record a copied file, and its digests.

        :raises SourceError: it could not be copied, or differs from a known digest
        :raises OSError: the copy could not be written
        """
        logical, content, target = key
        super().add(key, outcome)
        assert outcome.digests is not None
        self.outcomes[logical] = outcome
        if self._known:
            self._compare(logical, outcome.digests)
        digest = outcome.digests[self.algorithm]
        digest = self._spelling.setdefault(digest, digest)
        self._batch.append(_Copied(logical, content, target, digest, outcome.digests))
        self._batch_size += outcome.size or 0
        if len(self._batch) >= BATCH or self._batch_size >= BATCH_BYTES:
            self._record_batch()

    def finish(self) -> None:
        """Record the rest, after the last file.

        :raises SourceError: a file with a known digest is missing
        :raises OSError: stored content cannot be removed from the copy
        """
        self._record_batch()
        for name, block in self._known.items():
            for logical in block:
                raise SourceError("mismatch", f"{name} digest given for {quoted(logical)}, which is not in the source")
        if self._is_emptied:
            self._prune()

    def _record_batch(self) -> None:
        batch, self._batch, self._batch_size = self._batch, [], 0
        self._record(batch)

    def _record(self, batch: list[_Copied]) -> None:
        """Record copied files, and remove those whose content is stored already."""
        if self._dedup:
            self._read_stored({copied.digest for copied in batch} - self._intact.keys())
        for logical, content, target, digest, digests in batch:
            paths = self.manifest.setdefault(digest, [])
            stored = self._intact.get(digest)
            if stored is None:
                if paths and self._dedup:
                    self.restored.add(logical)
                # Readers open the first path: not one of stored content that may be damaged.
                paths.insert(0, content)
                stored = content
                if self._dedup:
                    self._intact[digest] = content
                self.changes.added(target, digests)
            else:
                self.changes.drop(target)
                self._is_emptied = True
            self.state.setdefault(digest, []).append(logical)
            if self._known:
                self._note(logical, digests, stored)

    def is_stored(self) -> bool:
        """Return whether intact content of earlier versions can take the place of every copied file."""
        stored = self.intact(self.state)
        self.restored.update(path for digest in self.state.keys() - stored for path in self.state[digest])
        return not self.restored

    def intact(self, digests: Iterable[str]) -> set[str]:
        """Read the stored content with these digests, and return those of which some is intact."""
        wanted = set(digests)
        self._read_stored(wanted - self._intact.keys())
        return wanted & self._intact.keys()

    def _read_stored(self, digests: Iterable[str]) -> None:
        """Read the stored content with these digests, and record which is intact."""
        left = {digest: list(paths) for digest in digests if (paths := self._stored.get(digest))}
        while left:
            contents = [(digest, paths.pop(0)) for digest, paths in left.items()]
            for (digest, content), outcome in self._hash_stored([(key, key[1]) for key in contents]):
                if outcome.digests is not None and outcome.digests[self.algorithm] == digest.lower():
                    self._intact[digest] = content
                else:
                    self.damaged[content] = outcome
                if digest in self._intact or not left[digest]:
                    del left[digest]

    def _compare(self, logical: str, digests: Mapping[str, str]) -> None:
        for name, block in self._known.items():
            expected = block.get(logical)
            if expected is not None and expected.lower() != digests[name]:
                what = (
                    f"{quoted_path(logical)}: {name} digest {short_digest(digests[name])}"
                    f" differs from the given {short_digest(expected)}"
                )
                raise SourceError("mismatch", what)

    def _note(self, logical: str, digests: Mapping[str, str], content: str) -> None:
        for name, block in self._known.items():
            if name in self._all or block.pop(logical, None) is not None:
                if name == self.algorithm:
                    continue  # already in the manifest
                paths = self.fixity.setdefault(name, {}).setdefault(digests[name], [])
                if content not in paths:
                    paths.append(content)

    def _prune(self) -> None:
        """Remove directories that only contained content stored elsewhere."""
        base = self.target + b"/" + encode_fs(self._folder)
        for below in sorted(self._folders, key=len, reverse=True):
            self.changes.prune(base + b"/" + encode_fs(below))
        self.changes.prune(base)

    def _content_path(self, logical: str) -> str:
        assert self.content_paths is not None
        try:
            return self.content_paths.map_id(logical)
        except IdentifierError as error:
            raise SourceError(
                "bad-name", f"{self.content_paths.name} cannot map a file to a content path: {error}"
            ) from None

    def _claim(self, content: str, logical: str) -> None:
        """Check that no other file has this content path, or needs it as a directory."""
        other = self._files.setdefault(content, logical)
        above = None
        if "/" in content:
            parents = content.split("/")[:-1]
            above = next((path for path in _prefixes(parents) if path in self._files), None)
        if other != logical or content in self._folders or above is not None:
            what = f"{quoted_path(logical)}: content path {quoted(content)} already used by another file"
            raise SourceError("collision", f"{what}; rename one of the files, or use a layout with encodeUTF")


def _prefixes(parts: Iterable[str]) -> Iterator[str]:
    path = ""
    for part in parts:
        path = f"{path}/{part}" if path else part
        yield path


def logical_name(name: bytes) -> str:
    """Return a name in an object as a logical path.

    :raises SourceError: of kind ``bad-name``: OCFL does not allow it
    """
    try:
        logical = name.decode()
    except UnicodeDecodeError:
        what = f"{quoted_path(name)} is not UTF-8, which OCFL requires; rename the file"
        raise SourceError("bad-name", what) from None
    fault = path_fault(logical)
    if fault is not None or "\0" in logical:
        raise SourceError("bad-name", fault or f"the path {quoted(logical)} contains a NUL character")
    return logical
