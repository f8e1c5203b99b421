"""New OCFL objects, written to a staging directory (sections 3.1 to 3.7).

Content is hashed while it is copied, and content with the same digest is stored once. Files are written in the order
content, inventories with sidecars, declaration.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from pressmark import _kernels
from pressmark.errors import IdentifierError, quoted, short_digest
from pressmark.fixity import Outcome, algorithm_name
from pressmark.fixity.algorithms import ALGORITHMS
from pressmark.fixity.copying import Copying, copy_files
from pressmark.fixity.outcomes import Content
from pressmark.fs.beneath import real_path
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.fs.trees import DirectoryEntry
from pressmark.layouts import Layout
from pressmark.reports import Problem
from pressmark.stores.exceptions import SourceError
from pressmark.stores.object_sources import is_content, require_copied, source_tree
from pressmark.stores.objects import ObjectSource
from pressmark.stores.ocfl.declarations import OBJECT, declaration
from pressmark.stores.ocfl.inventory import (
    CONTENT_DIRECTORY,
    INVENTORY,
    first_version,
    inventory_bytes,
    path_fault,
    sidecar_bytes,
    sidecar_name,
)
from pressmark.stores.problems import problem

__all__ = [
    "CopiedFiles",
    "CopyOptions",
    "Files",
    "Provenance",
    "Written",
    "dropped_directories",
    "inventory_files",
    "logical_name",
    "now",
    "source_files",
    "write_all",
    "write_extension",
    "write_inventories",
    "write_object",
]

Key = TypeVar("Key")
Fixity = Mapping[str, Mapping[str, str]]
#: A name in an object, and the path of the file to copy there, or its content.
File = tuple[bytes, bytes | Content]
#: Files that the caller has checked.
Files = list[tuple[bytes, bytes]] | list[File]
# Maximal depth of directories in a source; walking is recursive.
DEEPEST = 400
# Copied files that are compared with stored content together, at most: files and bytes.
BATCH, BATCH_BYTES = 256, 1 << 26
_EXTENSIONS = b"extensions"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True)
class Provenance:
    """Date, message and user of a version (section 3.5.3.1).

    :ivar created: RFC 3339 date and time; :data:`None` for now
    :ivar message: the reason for the version
    :ivar user: ``name`` and ``address`` of the user
    """

    created: str | None = None
    message: str | None = None
    user: Mapping[str, str] | None = None

    def block(self, state: Mapping[str, list[str]]) -> dict[str, Any]:
        """Return a version's block of the inventory."""
        block: dict[str, Any] = {"created": self.created or now()}
        if self.message is not None:
            block["message"] = self.message
        if self.user is not None:
            block["user"] = dict(self.user)
        return {**block, "state": dict(state)}


@dataclass
class CopyOptions:
    """Options for copying sources.

    :ivar mode: ``copy``, ``reflink`` or ``auto``
    :ivar links: ``refuse`` or ``follow``
    :ivar threads: number of files copied at a time; :data:`None` for one per core
    :ivar copied: devices where ``auto`` turned out to copy
    :ivar used: how the files of the last source were transferred: ``copy`` or ``reflink``; :data:`None` without files
    """

    mode: str = "auto"
    links: str = "refuse"
    threads: int | None = None
    copied: set[int] = field(default_factory=set)
    used: str | None = None

    def copy(
        self,
        tasks: Iterator[tuple[Key, bytes | Content, bytes]],
        algorithms: tuple[str, ...],
        is_real: bool = False,
    ) -> Generator[tuple[Key, Outcome], None, None]:
        """Copy files, and yield their keys and outcomes in order.

        :param tasks: as for :func:`~pressmark.fixity.copying.copy_files`
        :param is_real: the paths are from :func:`~pressmark.fs.beneath.real_path`
        """
        self.used = None
        first = next(tasks, None)
        if first is None:
            return
        mode, source = self.mode, first[1]
        device = -1 if mode != "auto" or isinstance(source, Content) else os.stat(source).st_dev
        if device in self.copied:
            mode = "copy"

        def note(event: object) -> None:
            if isinstance(event, Copying):
                self.used = event.mode
                if event.mode == "copy" and device >= 0:
                    self.copied.add(device)

        tasks = chain([first], tasks)
        yield from copy_files(
            tasks, algorithms, mode=mode, links=self.links, real=is_real, threads=self.threads, on_event=note
        )


def now() -> str:
    """Return the current time as stored in inventories: in UTC, to the second."""
    return _moment(int(time.time()))


@lru_cache(maxsize=16)
def _moment(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


@dataclass
class Written:
    """A written object.

    :ivar document: the inventory
    :ivar dropped: directories of the source without any file, which OCFL cannot store
    :ivar outcomes: outcome of each file by its logical path, with all computed digests
    """

    document: dict[str, Any]
    dropped: list[bytes] = field(default_factory=list)
    outcomes: dict[str, Outcome] = field(default_factory=dict)


def write_object(
    top: bytes,
    identifier: str,
    source: ObjectSource | Files,
    *,
    version: str,
    algorithm: str,
    provenance: Provenance,
    fixity: Fixity,
    content_paths: Layout | None,
    copy_options: CopyOptions,
    also: tuple[str, ...] = (),
) -> Written:
    """Write version 1 of an object to the new directory ``top``.

    :param version: version of OCFL
    :param algorithm: ``sha512`` or ``sha256``
    :param fixity: known digests, by algorithm and logical path: they are compared with the copied content and stored in
        the inventory; if an algorithm has no digests, they are computed for all files
    :param content_paths: maps logical paths to content paths; :data:`None` for equal paths
    :param copy_options: how the source is copied
    :param also: additional algorithms for the outcomes; not recorded in the inventory
    :raises SourceError: the source cannot be stored
    :raises OSError: the object cannot be written
    """
    write_all([top, top + b"/v1"], [None, None])
    copied = CopiedFiles(algorithm, fixity, content_paths, also=also)
    copied.copy(source, top, f"v1/{CONTENT_DIRECTORY}", copy_options)
    document = first_version(identifier, version, algorithm, copied.manifest, provenance.block(copied.state))
    if copied.fixity:
        document["fixity"] = copied.fixity
    if content_paths is not None:
        write_extension(top, content_paths)
    write_inventories(top, document, version)
    return Written(document, copied.dropped, copied.outcomes)


def dropped_directories(place: bytes, dropped: Iterable[bytes]) -> tuple[Problem, ...]:
    """Return the warnings of directories without any file, which were not stored in the object at ``place``."""
    why = "not stored: OCFL does not allow empty directories"
    return tuple(
        problem("directory-empty", place, f"{decode_fs(folder)!r} {why}", severity="warning") for folder in dropped
    )


def write_inventories(top: bytes, document: Mapping[str, Any], version: str) -> None:
    """Write inventories, sidecars and declaration."""
    data, sidecar = inventory_files(document)
    inventory, beside, name, content = _file_parts(document["digestAlgorithm"], version)
    folder = top + b"/" + encode_fs(document["head"])
    write_all(
        [folder + inventory, folder + beside, top + inventory, top + beside, top + name],
        [data, sidecar, data, sidecar, content],
    )


def inventory_files(document: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """Return the content of an inventory and of its sidecar."""
    data = inventory_bytes(document)
    hasher = ALGORITHMS[document["digestAlgorithm"]].make(1)
    hasher.update(data)
    return data, sidecar_bytes(hasher.hexdigest())


@cache
def _file_parts(algorithm: str, version: str) -> tuple[bytes, bytes, bytes, bytes]:
    """Return the names of inventory and sidecar, and name and content of the declaration.

    All names begin with a slash.
    """
    name, content = declaration(OBJECT, version)
    return b"/" + encode_fs(INVENTORY), b"/" + encode_fs(sidecar_name(algorithm)), b"/" + name, content


def write_all(paths: list[bytes], contents: list[bytes | None]) -> None:
    """Write new files, and create the directories whose content is :data:`None`, in this order."""
    done = _kernels.active.write_small(paths, contents)
    if done is False:
        for path, data in zip(paths, contents, strict=True):
            if data is None:
                os.mkdir(path)
            else:
                _write(path, data)
    elif done is not True:
        index, number = done
        raise OSError(number, os.strerror(number), paths[index])


def _write(path: bytes, data: bytes) -> None:
    descriptor = os.open(path, _NEW, 0o666)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)


def write_extension(top: bytes, layout: Layout) -> None:
    """Write the configuration of an extension below ``top``, with all parameters."""
    folder = os.path.join(top, _EXTENSIONS, encode_fs(layout.name))
    os.makedirs(folder)
    _write(os.path.join(folder, b"config.json"), inventory_bytes(layout.config()))


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


class CopiedFiles:
    """The files of a source on their way into an object.

    :param manifest: of earlier versions
    :param hash_stored: hashes content files of earlier versions with ``algorithm``: stored content takes the place of
        a copy only if it has been read and matches its digest
    :param also: more algorithms for the outcomes
    :param dedup: store content once that is in the manifest, or occurs several times
    :ivar manifest: digests to content paths, including those of earlier versions
    :ivar damaged: the outcome of each stored content that was read for this and does not match its digest
    :ivar restored: logical paths of files that were stored because the stored content with their digest is damaged
    :ivar state: digests to logical paths
    :ivar fixity: digests for the inventory's fixity block, by algorithm
    :ivar dropped: directories without files
    :ivar outcomes: of each file, by its logical path
    """

    def __init__(
        self,
        algorithm: str,
        fixity: Fixity,
        content_paths: Layout | None,
        manifest: Mapping[str, list[str]] | None = None,
        hash_stored: Callable[[list[tuple[tuple[str, str], str]]], Iterable[tuple[tuple[str, str], Outcome]]] = (
            lambda _tasks: ()
        ),
        *,
        also: tuple[str, ...] = (),
        dedup: bool = True,
    ) -> None:
        self._stored = manifest or {}
        self.manifest = {digest: list(paths) for digest, paths in self._stored.items()}
        self.damaged: dict[str, Outcome] = {}
        self.restored: set[str] = set()
        self.state: dict[str, list[str]] = {}
        self.fixity: dict[str, dict[str, list[str]]] = {}
        self.dropped: list[bytes] = []
        self.outcomes: dict[str, Outcome] = {}
        self._algorithm = algorithm
        self._hash_stored = hash_stored
        self._dedup = dedup
        self._is_emptied = False  # a directory may be left without files
        self._intact: dict[str, str] = {}  # digest -> content path that can take the place of a copy
        self._known = {algorithm_name(name): dict(block) for name, block in fixity.items()}
        # Algorithms without known digests: computed for all files.
        self._all = {name for name, block in self._known.items() if not block}
        self._algorithms = tuple(dict.fromkeys((algorithm, *self._known, *also)))
        self._content_paths = content_paths
        self._files: dict[str, str] = {}  # content path below the content directory -> logical path
        self._folders: set[str] = set()

    def copy(self, source: ObjectSource | Files, top: bytes, folder: str, copy_options: CopyOptions) -> None:
        """Copy all files of ``source`` below ``folder``, and record their digests."""
        spelling = {digest.lower(): digest for digest in self.manifest}
        batch: list[_Copied] = []
        size = 0
        tasks = self._tasks(source, top, folder, copy_options.links == "follow")
        is_real = not isinstance(source, list)
        with closing(copy_options.copy(tasks, self._algorithms, is_real)) as copies:
            for (logical, content, target), outcome in copies:
                require_copied(outcome)
                assert outcome.digests is not None
                self.outcomes[logical] = outcome
                if self._known:
                    self._compare(logical, outcome.digests)
                digest = outcome.digests[self._algorithm]
                digest = spelling.setdefault(digest, digest)
                batch.append(_Copied(logical, content, target, digest, outcome.digests))
                size += outcome.size or 0
                if len(batch) >= BATCH or size >= BATCH_BYTES:
                    self._record(batch)
                    batch, size = [], 0
            self._record(batch)
        for name, block in self._known.items():
            for logical in block:
                raise SourceError("mismatch", f"{name} digest given for {quoted(logical)}, which is not in the source")
        if self._is_emptied:
            self._prune(top, folder)

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
            else:
                os.unlink(target)
                self._is_emptied = True
            self.state.setdefault(digest, []).append(logical)
            if self._known:
                self._note(logical, digests, stored)

    def is_stored(self) -> bool:
        """Return whether intact content of earlier versions can take the place of every copied file."""
        self._read_stored(self.state.keys() - self._intact.keys())
        self.restored.update(path for digest in self.state.keys() - self._intact.keys() for path in self.state[digest])
        return not self.restored

    def _read_stored(self, digests: Iterable[str]) -> None:
        """Read the stored content with these digests, and record which is intact."""
        left = {digest: list(paths) for digest in digests if (paths := self._stored.get(digest))}
        while left:
            contents = [(digest, paths.pop(0)) for digest, paths in left.items()]
            for (digest, content), outcome in self._hash_stored([(key, key[1]) for key in contents]):
                if outcome.digests is not None and outcome.digests[self._algorithm] == digest.lower():
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
                    f"{decode_fs(encode_fs(logical))}: {name} digest {short_digest(digests[name])}"
                    f" differs from the given {short_digest(expected)}"
                )
                raise SourceError("mismatch", what)

    def _note(self, logical: str, digests: Mapping[str, str], content: str) -> None:
        for name, block in self._known.items():
            if name in self._all or block.pop(logical, None) is not None:
                if name == self._algorithm:
                    continue  # already in the manifest
                paths = self.fixity.setdefault(name, {}).setdefault(digests[name], [])
                if content not in paths:
                    paths.append(content)

    def _prune(self, top: bytes, folder: str) -> None:
        """Remove directories that only contained content stored elsewhere."""
        base = os.path.join(top, encode_fs(folder))
        for below in sorted(self._folders, key=len, reverse=True):
            _rmdir(os.path.join(base, encode_fs(below)))
        _rmdir(base)

    def _tasks(
        self, source: ObjectSource | Files, top: bytes, folder: str, follow: bool
    ) -> Iterator[tuple[tuple[str, str, bytes], bytes | Content, bytes]]:
        """Yield logical path, content path and copy of each file as its key, its source and the path of its copy."""
        base = top + b"/" + encode_fs(folder)
        made = False
        for name, path in source_files(source, top, follow, self.dropped):
            if not made:
                os.mkdir(base)
                made = True
            logical = logical_name(name)
            content = logical if self._content_paths is None else self._content_path(logical)
            self._claim(content, logical)
            target = base + b"/" + encode_fs(content)
            parent = content.rpartition("/")[0]
            if parent and parent not in self._folders:
                os.makedirs(os.path.join(base, encode_fs(parent)), exist_ok=True)
                while parent and parent not in self._folders:
                    self._folders.add(parent)
                    parent = parent.rpartition("/")[0]
            yield (logical, f"{folder}/{content}", target), path, target

    def _content_path(self, logical: str) -> str:
        assert self._content_paths is not None
        try:
            return self._content_paths.map_id(logical)
        except IdentifierError as error:
            raise SourceError(
                "bad-name", f"{self._content_paths.name} cannot map a file to a content path: {error}"
            ) from None

    def _claim(self, content: str, logical: str) -> None:
        """Check that no other file has this content path, or needs it as a directory."""
        other = self._files.setdefault(content, logical)
        above = None
        if "/" in content:
            parents = content.split("/")[:-1]
            above = next((path for path in _prefixes(parents) if path in self._files), None)
        if other != logical or content in self._folders or above is not None:
            what = f"{decode_fs(encode_fs(logical))}: content path {quoted(content)} already used by another file"
            raise SourceError("collision", f"{what}; rename one of the files, or use a layout with encodeUTF")


def _prefixes(parts: Iterable[str]) -> Iterator[str]:
    path = ""
    for part in parts:
        path = f"{path}/{part}" if path else part
        yield path


def _rmdir(path: bytes) -> None:
    try:
        os.rmdir(path)
    except OSError:
        if not os.listdir(path):
            raise


# --- sources ----------------------------------------------------------------------------------------------------------


def logical_name(name: bytes) -> str:
    """Return a name in an object as a logical path.

    :raises SourceError: of kind ``bad-name``: OCFL does not allow it
    """
    try:
        logical = name.decode()
    except UnicodeDecodeError:
        what = f"{decode_fs(name)!r} is not UTF-8, which OCFL requires; rename the file"
        raise SourceError("bad-name", what) from None
    fault = path_fault(logical)
    if fault is not None or "\0" in logical:
        raise SourceError("bad-name", fault or f"the path {quoted(logical)} contains a NUL character")
    return logical


def source_files(source: ObjectSource | Files, target: bytes, follow: bool, dropped: list[bytes]) -> Iterator[File]:
    """Yield names and paths of the files of a source; directories without files are added to ``dropped``.

    :param target: the destination of the copy
    """
    if isinstance(source, list):
        yield from source
        return
    seen = set()
    tops: Iterable[tuple[Any, bytes, bytes]]
    if isinstance(source, Mapping):
        tops = [(content, encode_fs(logical), b"") for logical, content in source.items()]
    else:
        # A source that is a link stands for its target, under the link's name.
        tops = [(os.fsdecode(source), b"", os.path.basename(os.fsencode(source)))]
    for content, inside, alone in tops:
        for name, path, entries in _tree(content, inside, target, follow, alone):
            if entries is None:
                if name in seen:
                    raise SourceError("bad-name", f"{decode_fs(name)!r} is specified twice")
                seen.add(name)
                yield name, path
            elif not entries and name:
                dropped.append(name)


def _tree(
    content: Any, inside: bytes, target: bytes, follow: bool, alone: bytes
) -> Iterator[tuple[bytes, bytes | Content, list[DirectoryEntry] | None]]:
    """Yield the files of one item of a source: see :func:`source_tree`."""
    if is_content(content):
        yield inside, Content(content, inside), None
        return
    top = real_path(os.fsencode(content))
    yield from source_tree(top, inside, target, follow, alone=alone, deepest=DEEPEST)
