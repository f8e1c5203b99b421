"""The strict check of one OCFL object: its files, and what its inventories state about them (section 3).

Links are not followed, and only inventories, sidecars and declarations are read. Content files are returned with their
expected digests, so that the files of many objects can be read in one run.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from pressmark.errors import quoted
from pressmark.fixity import ALGORITHMS as DIGESTS
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.fs.trees import DirectoryEntry
from pressmark.reports import Problem
from pressmark.stores.ocfl.declarations import (
    EXTENSIONS,
    LOGS,
    MUTABLE_HEAD,
    OBJECT,
    is_object_name,
    is_version_name,
    later,
    read_declaration,
)
from pressmark.stores.ocfl.inventory import (
    ALGORITHMS,
    INVENTORY,
    InventoryError,
    content_directory,
    next_version,
    read_inventory,
    sidecar_digest,
    sidecar_name,
    version_number,
)
from pressmark.stores.ocfl.inventory_rules import (
    Finding,
    history_findings,
    inventory_findings,
    order_finding,
    plain_advice,
    unset_finding,
)
from pressmark.stores.ocfl.layout_files import REGISTERED
from pressmark.stores.ocfl.storage import PlainObjects, Storage
from pressmark.stores.ocfl.unfinished import find_unfinished
from pressmark.stores.ocfl.unversioned import is_content_path_layout
from pressmark.stores.problems import problem
from pressmark.stores.readability import unreadable_file

__all__ = ["Advice", "Checked", "ContentFile", "check_object", "plain_objects"]

_INVENTORY = encode_fs(INVENTORY)
_SIDECAR = re.compile(rb"inventory\.json\.[A-Za-z0-9_\-]+")


class ContentFile(NamedTuple):
    """A content file that exists.

    :ivar path: relative to the object's root
    :ivar digests: the expected digest for each algorithm, as in the inventory
    :ivar fixity: the algorithms whose digests are only in fixity blocks
    """

    path: bytes
    digests: dict[str, str]
    fixity: Collection[str] = ()


class Advice(NamedTuple):
    """A recommendation that an object does not follow: usually all objects of a root, or none."""

    code: str
    message: str
    kind: str = "inventory-advice"


class Checked(NamedTuple):
    """The result of checking one object.

    :ivar identifier: identifier in its inventory; :data:`None` without an inventory
    :ivar algorithm: digest algorithm of the manifest; :data:`None` if it is not allowed
    :ivar problems: their paths are relative to the store's root
    :ivar advice: each code once
    :ivar files: the content files that can be verified
    :ivar seen: the status of the inventory before the check; :data:`None` without one
    :ivar verified: number of content files, not in ``files``, that need no further check
    :ivar bytes: their size, if they were read and have the expected digests
    """

    identifier: str | None
    algorithm: str | None
    problems: list[Problem]
    advice: list[Advice]
    files: list[ContentFile]
    seen: os.stat_result | None
    verified: int = 0
    bytes: int = 0


def plain_objects(found: PlainObjects) -> Iterator[tuple[bytes, Checked]]:
    """Yield the place and the result of each object."""
    for place, identifier, advice, files, size in zip(*found, strict=True):
        findings = plain_advice(advice, identifier)
        more = [Advice(finding.code, finding.message) for finding in findings]
        yield encode_fs(place), Checked(identifier, ALGORITHMS[0], [], more, [], None, files, size)


def check_object(
    storage: Storage, place: bytes, entries: Sequence[DirectoryEntry], root_version: str | None = None
) -> Checked:
    """Check an object without reading its content.

    :param place: its directory
    :param entries: the entries of the directory
    :param root_version: the OCFL version that the storage root declares
    """
    return _Check(storage, place).all(entries, root_version)


class _Check:
    def __init__(self, storage: Storage, place: bytes) -> None:
        self._storage = storage
        self._place = place
        self._problems: list[Problem] = []
        self._advice: dict[str, Advice] = {}
        self._seen: os.stat_result | None = None
        # Inventories of earlier versions, which also describe the content, in the order of their numbers.
        self._earlier: list[tuple[bytes, dict[str, Any]]] = []
        # The content files of each version directory.
        self._contents: dict[bytes, set[bytes]] = {}

    # --- problems -------------------------------------------------------------------------------------------------

    def _path(self, *names: bytes) -> bytes:
        return b"/".join((self._place, *names)) if self._place else b"/".join(names)

    def _tell(self, kind: str, names: tuple[bytes, ...], message: str = "", **more: Any) -> None:
        self._problems.append(problem(kind, self._path(*names), message, **more))

    def _take(self, findings: Sequence[Finding], path: tuple[bytes, ...]) -> None:
        for finding in findings:
            kind, code, message, algorithm, expected, found = finding
            if kind == "inventory-advice":
                self._advice.setdefault(code, Advice(code, message))
            else:
                self._tell(kind, path, message, code=code, algorithm=algorithm, expected=expected, found=found)

    # --- reading --------------------------------------------------------------------------------------------------

    def _scan(self, *names: bytes) -> list[DirectoryEntry]:
        """Return the entries of a directory in the object; links and special files are reported and left out."""
        try:
            entries = self._storage.scan(self._path(*names))
        except OSError as error:
            self._tell("unreadable", names, error.strerror or str(error))
            return []
        return self._usable(entries, names)

    def _usable(self, entries: Sequence[DirectoryEntry], names: tuple[bytes, ...]) -> list[DirectoryEntry]:
        usable = []
        for entry in entries:
            if entry.kind == "file":
                try:
                    status = self._storage.status(self._path(*names, entry.name))
                except OSError as error:
                    self._tell("content-unreadable", (*names, entry.name), error.strerror or str(error))
                    continue
                if not names and entry.name == _INVENTORY:
                    self._seen = status
                if status.st_nlink > 1:
                    what = f"the file has {status.st_nlink} hard links, which OCFL forbids; replace it with a copy"
                    self._tell("hard-link", (*names, entry.name), what)
                usable.append(entry)
            elif entry.kind == "directory":
                usable.append(entry)
            else:
                self._tell("symbolic-link" if entry.is_link else "special-file", (*names, entry.name))
        return usable

    def _read(self, *names: bytes) -> bytes | None:
        try:
            return self._storage.read(self._path(*names))
        except OSError as error:
            self._tell("unreadable", names, error.strerror or str(error))
            return None

    # --- the object -----------------------------------------------------------------------------------------------

    def all(self, entries: Sequence[DirectoryEntry], root_version: str | None) -> Checked:
        entries = self._usable(entries, ())
        files = {entry.name for entry in entries if entry.kind == "file"}
        version, problems = read_declaration(self._storage, self._place, OBJECT, files)
        self._problems += problems
        if version is not None and root_version is not None and later(version, root_version):
            what = f"the object declares OCFL {version}, but its storage root declares OCFL {root_version}"
            self._tell("version-later", (), what, expected=root_version, found=version)
        document, data = self._inventory(files, version)
        self._names(entries, document)
        versions = {entry.name for entry in entries if entry.kind == "directory" and is_version_name(entry.name)}
        self._extensions(entries)
        if document is None or data is None:
            return Checked(None, None, self._problems, list(self._advice.values()), [], self._seen)
        document, data = self._with_unfinished(versions, document, data)
        self._versions(versions, document, data)
        identifier, algorithm = document.get("id"), document.get("digestAlgorithm")
        return Checked(
            identifier if isinstance(identifier, str) and identifier else None,
            algorithm if algorithm in ALGORITHMS else None,
            self._problems,
            list(self._advice.values()),
            self._files(document),
            self._seen,
        )

    def _names(self, entries: Sequence[DirectoryEntry], document: Mapping[str, Any] | None) -> None:
        """Report names that do not belong in an object's root."""
        algorithm = document.get("digestAlgorithm") if document is not None else None
        for entry in entries:
            if not is_object_name(entry):
                what = "directory" if entry.kind == "directory" else "file"
                self._tell("object-extra", (entry.name,), f"unknown {what} in the root of the object")
            elif (
                algorithm in ALGORITHMS
                and _SIDECAR.fullmatch(entry.name)
                and entry.name != encode_fs(sidecar_name(str(algorithm)))
            ):
                what = f"not the sidecar of the inventory, whose digest algorithm is {algorithm}"
                self._tell("object-extra", (entry.name,), what)

    def _inventory(self, files: set[bytes], version: str | None) -> tuple[dict[str, Any] | None, bytes | None]:
        if _INVENTORY not in files:
            self._tell("inventory-missing", ())
            return None, None
        data = self._read(_INVENTORY)
        document = None if data is None else self._parse(data, (_INVENTORY,))
        if data is None or document is None:
            return None, None
        self._take(inventory_findings(document, version), (_INVENTORY,))
        self._sidecar(files, document, data, ())
        return document, data

    def _parse(self, data: bytes, path: tuple[bytes, ...]) -> dict[str, Any] | None:
        repeated: list[str] = []
        try:
            document = read_inventory(data, repeated)
        except InventoryError as error:
            self._tell("inventory-malformed", path, str(error))
            return None
        for key in repeated:
            self._tell("inventory-key-repeated", path, f"the key {quoted(key)} occurs more than once")
        return document

    def _sidecar(self, files: set[bytes], document: Mapping[str, Any], data: bytes, folder: tuple[bytes, ...]) -> None:
        algorithm = document.get("digestAlgorithm")
        if algorithm not in ALGORITHMS:
            return  # reported already
        name = encode_fs(sidecar_name(algorithm))
        if name not in files:
            self._tell("sidecar-missing", (*folder, _INVENTORY), f"{name.decode()} is missing")
            return
        content = self._read(*folder, name)
        if content is None:
            return
        expected = sidecar_digest(content)
        if expected is None:
            what = f"the sidecar is not a digest, white space and {INVENTORY}"
            self._tell("sidecar-malformed", (*folder, name), what)
            return
        found = hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()
        if found == expected:
            return
        unfinished = None if folder else find_unfinished(self._storage, self._place, document, data)
        if unfinished is not None and unfinished.is_listed:
            self._problems.append(unfinished.problem(self._place))
        else:
            what = f"the {algorithm} digest of the inventory differs from its sidecar"
            self._tell(
                "sidecar-mismatch", (*folder, _INVENTORY), what, algorithm=algorithm, expected=expected, found=found
            )

    def _extensions(self, entries: Sequence[DirectoryEntry]) -> None:
        for entry in entries:
            if entry.kind != "directory" or entry.name not in (EXTENSIONS, LOGS):
                continue
            found = self._scan(entry.name)
            for inside in found:
                if inside.kind == "directory":
                    self._undescribed(entry.name, inside.name)
                    if entry.name == EXTENSIONS and decode_fs(inside.name) not in REGISTERED:
                        what = f"{os.fsdecode(inside.name)!r} is not the name of a registered extension"
                        self._advice.setdefault("W013", Advice("W013", what, "extension-unregistered"))
                elif entry.name == EXTENSIONS:
                    self._tell("extensions-file", (entry.name, inside.name), code="E067")
                else:
                    self._readable(entry.name, inside.name)
            self._unversioned(entry.name, found)

    def _unversioned(self, folder: bytes, found: Sequence[DirectoryEntry]) -> None:
        """Warn of logs and extensions, which are lost when the object's versions are copied one by one."""
        if folder == LOGS and found:
            self._tell("unversioned", (folder,), section="3.8")
        for entry in found if folder == EXTENSIONS else ():
            path = folder + b"/" + entry.name
            if path == MUTABLE_HEAD:
                what = "the object has a mutable HEAD; commit its content with ocfl-java"
                self._tell("unversioned", (folder, entry.name), what, section="3.9")
            elif entry.kind == "directory" and not is_content_path_layout(entry.name):
                self._tell("unversioned", (folder, entry.name), section="3.9")

    def _undescribed(self, *names: bytes) -> None:
        """Look for links and unreadable files in a directory that OCFL does not describe further."""
        waiting = [names]
        while waiting:
            folder = waiting.pop()
            entries = self._scan(*folder)
            for entry in entries:
                if entry.kind == "file":
                    self._readable(*folder, entry.name)
            waiting += [(*folder, entry.name) for entry in entries[::-1] if entry.kind == "directory"]

    def _readable(self, *names: bytes) -> None:
        self._problems += unreadable_file(self._storage.why_unreadable(self._path(*names)), self._path(*names))

    # --- versions -------------------------------------------------------------------------------------------------

    def _with_unfinished(
        self, on_disk: set[bytes], document: dict[str, Any], data: bytes
    ) -> tuple[dict[str, Any], bytes]:
        """Report a complete version that the inventory does not list yet.

        :return: the inventory that describes the whole object, and its bytes
        """
        name = next_version(str(document.get("head")))
        if name is None or encode_fs(name) not in on_disk:
            return document, data
        unfinished = find_unfinished(self._storage, self._place, document, data)
        if unfinished is None or unfinished.is_listed:
            return document, data
        self._problems.append(unfinished.problem(self._place))
        return unfinished.document, unfinished.data

    def _versions(self, on_disk: set[bytes], document: dict[str, Any], data: bytes) -> None:
        """Check the version directories, and collect content files and earlier inventories."""
        blocks = document.get("versions")
        named = {encode_fs(name) for name in blocks} if isinstance(blocks, dict) else set()
        for name in sorted(named - on_disk):
            if version_number(os.fsdecode(name)) is not None:
                what = f"the directory of the version {quoted(name)} is missing"
                self._tell("version-absent", (name,), what, code="E046")
        for name in sorted(on_disk, key=_in_order):
            if name not in named:
                what = "the inventory does not list this version"
                self._tell("version-extra", (name,), what)
            self._contents[name] = self._version(name, document, data)
        self._history(document)

    def _history(self, newest: dict[str, Any]) -> None:
        """Compare each inventory of the object with the next one (sections 3.3.1 and 3.7.1)."""
        if not self._earlier:
            return
        inventories = [*self._earlier, (b"", newest)]
        for (name, earlier), (_name, following) in pairwise(inventories):
            finding = order_finding(os.fsdecode(name), earlier, following)
            if finding is not None:
                self._take([finding], (name, _INVENTORY))
        first, inventory = self._earlier[0]
        finding = unset_finding(os.fsdecode(first), inventory, [document for _name, document in inventories])
        if finding is not None:
            self._take([finding], (first, _INVENTORY))

    def _version(self, name: bytes, document: dict[str, Any], data: bytes) -> set[bytes]:
        folder = encode_fs(content_directory(document))
        entries = self._scan(name)
        files = {entry.name for entry in entries if entry.kind == "file"}
        for entry in entries:
            if entry.kind == "directory":
                if entry.name != folder:
                    self._tell("version-directory", (name, entry.name))
                    self._undescribed(name, entry.name)
            elif entry.name != _INVENTORY and _SIDECAR.fullmatch(entry.name) is None:
                self._tell("version-file", (name, entry.name))
        own = self._version_inventory(name, files, document, data)
        self._sidecars(name, files, own)
        if not any(entry.name == folder and entry.kind == "directory" for entry in entries):
            return set()
        found: set[bytes] = set()
        if not self._content(found, name, folder):
            advice = Advice("W003", f"the content directory of {os.fsdecode(name)} is empty")
            self._advice.setdefault("W003", advice)
        return found

    def _sidecars(self, name: bytes, files: set[bytes], own: Mapping[str, Any] | None) -> None:
        """Report sidecars in a version's directory that do not belong to its inventory."""
        algorithm = None if own is None else own.get("digestAlgorithm")
        if _INVENTORY in files and algorithm not in ALGORITHMS:
            return  # unknown; reported already
        right = encode_fs(sidecar_name(str(algorithm))) if _INVENTORY in files else None
        for file in sorted(files):
            if _SIDECAR.fullmatch(file) and file != right:
                self._tell("version-file", (name, file), "not the sidecar of the version's inventory")

    def _version_inventory(
        self, name: bytes, files: set[bytes], document: dict[str, Any], data: bytes
    ) -> dict[str, Any] | None:
        """Check the inventory in a version's directory, and return it if it can be read."""
        if _INVENTORY not in files:
            self._advice.setdefault("W010", Advice("W010", f"{os.fsdecode(name)} has no inventory"))
            return None
        copy = self._read(name, _INVENTORY)
        if copy is None:
            return None
        if encode_fs(str(document.get("head"))) == name:
            if copy != data:
                self._tell("inventory-differs", (name, _INVENTORY))
            else:
                self._sidecar(files, document, copy, (name,))
                return document
        earlier = self._parse(copy, (name, _INVENTORY))
        if earlier is None:
            return None
        self._take(inventory_findings(earlier), (name, _INVENTORY))
        self._sidecar(files, earlier, copy, (name,))
        if encode_fs(str(document.get("head"))) != name:
            self._take(history_findings(os.fsdecode(name), earlier, document), (name, _INVENTORY))
            self._earlier.append((name, earlier))
        return earlier

    def _content(self, found: set[bytes], *names: bytes) -> bool:
        """Collect the files of a content directory, and return whether it contains anything."""
        # No recursion: a path can have more elements than Python allows recursive calls.
        waiting = [names]
        is_empty = False
        while waiting:
            folder = waiting.pop()
            entries = self._scan(*folder)
            if not entries and folder == names:
                is_empty = True
            elif not entries:
                self._tell("content-directory-empty", folder)
            found.update(b"/".join((*folder, entry.name)) for entry in entries if entry.kind == "file")
            waiting += [(*folder, entry.name) for entry in entries[::-1] if entry.kind == "directory"]
        return not is_empty

    # --- content --------------------------------------------------------------------------------------------------

    def _files(self, document: Mapping[str, Any]) -> list[ContentFile]:
        """Compare the manifests with the files, and return the files that can be verified."""
        on_disk = set().union(*self._contents.values())
        expected, fixity = self._expected(document)
        listed = _content_paths(document)
        for path in sorted(listed - on_disk):
            self._tell("content-missing", (path,))
        for path in sorted(on_disk - listed):
            self._tell("content-extra", (path,))
        if self._earlier:
            self._earlier_manifests(on_disk, listed)
            self._add_earlier(expected, fixity)
        there = sorted(listed & on_disk)
        return [ContentFile(path, expected[path], fixity.get(path, ())) for path in there if path in expected]

    def _earlier_manifests(self, on_disk: set[bytes], listed: set[bytes]) -> None:
        """Compare the manifest of each earlier version with the content up to that version (section 3.3.1).

        :param listed: the paths of the newest manifest, which was compared with all content
        """
        waiting = sorted(self._contents, key=_in_order, reverse=True)
        before: set[bytes] = set()
        absent: dict[bytes, bytes] = {}
        for name, earlier in self._earlier:
            while waiting and _in_order(waiting[-1]) <= _in_order(name):
                before |= self._contents[waiting.pop()] & listed
            if not isinstance(earlier.get("manifest"), dict):
                continue  # reported already
            own = _content_paths(earlier)
            if unlisted := sorted(before - own):
                more = f" and {len(unlisted) - 1} more" if len(unlisted) > 1 else ""
                what = f"the manifest of {os.fsdecode(name)} lacks the content file {quoted(unlisted[0])}{more}"
                self._tell("history-differs", (name, _INVENTORY), what, code="E023")
            for path in own - on_disk - listed:
                absent.setdefault(path, name)
        for path, name in sorted(absent.items()):
            what = f"missing; listed in the manifest of {os.fsdecode(name)}"
            self._tell("content-missing", (path,), what)

    def _expected(self, document: Mapping[str, Any]) -> tuple[dict[bytes, dict[str, str]], dict[bytes, set[str]]]:
        """Return the digests of each content path by algorithm, and the algorithms that only fixity blocks have."""
        expected: dict[bytes, dict[str, str]] = {}
        fixity: dict[bytes, set[str]] = {}
        for name, block, is_manifest in self._blocks(document):
            for path, digest in _pairs(block):
                known = expected.setdefault(path, {})
                if name not in known:
                    known[name] = digest
                    if not is_manifest:
                        fixity.setdefault(path, set()).add(name)
                elif not is_manifest and known[name].lower() != digest.lower():
                    what = f"the fixity block contradicts another {name} digest of this file"
                    self._tell("fixity-mismatch", (path,), what, algorithm=name, expected=known[name], found=digest)
        return expected, fixity

    def _add_earlier(self, expected: dict[bytes, dict[str, str]], fixity: dict[bytes, set[str]]) -> None:
        """Add the digests in the inventories of earlier versions."""
        for version, earlier in self._earlier:
            for name, block, is_manifest in self._blocks(earlier):
                for path, digest in _pairs(block):
                    known = expected.setdefault(path, {})
                    new = name not in known
                    if new and not is_manifest:
                        fixity.setdefault(path, set()).add(name)
                    elif is_manifest and path in fixity:
                        fixity[path].discard(name)
                    other = known.setdefault(name, digest)
                    if other.lower() != digest.lower():
                        what = f"the {name} digest of {quoted(path)} differs from another inventory"
                        code = "E092" if is_manifest else "E093"
                        self._tell(
                            "history-differs", (version, _INVENTORY), what, code=code, expected=other, found=digest
                        )

    @staticmethod
    def _blocks(document: Mapping[str, Any]) -> list[tuple[str, dict[str, Any], bool]]:
        """Return manifest and fixity blocks by algorithm, as far as the digests can be computed, and which is the
        manifest.
        """
        blocks = []
        algorithm, manifest, fixity = (document.get(key) for key in ("digestAlgorithm", "manifest", "fixity"))
        if isinstance(manifest, dict) and algorithm in ALGORITHMS:
            blocks.append((str(algorithm), manifest, True))
        if isinstance(fixity, dict):
            known = ((name, block) for name, block in fixity.items() if name in DIGESTS)
            blocks += [(name, block, False) for name, block in known if isinstance(block, dict)]
        return blocks


def _in_order(name: bytes) -> tuple[int, bytes]:
    """Return the sort key of a version directory: its number."""
    return int(name[1:]), name


def _pairs(block: Mapping[str, Any]) -> Iterator[tuple[bytes, str]]:
    """Yield path and digest of each file in a manifest or fixity block."""
    for digest, paths in block.items():
        for path in paths if isinstance(paths, list) else ():
            if isinstance(path, str):
                yield encode_fs(path), digest


def _content_paths(document: Mapping[str, Any]) -> set[bytes]:
    manifest = document.get("manifest")
    return {path for path, _digest in _pairs(manifest)} if isinstance(manifest, dict) else set()
