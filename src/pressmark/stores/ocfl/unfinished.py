"""New versions that an interrupted run left unfinished.

A version appears in three steps: its directory, the object's inventory, the sidecar of the inventory. The directory
contains everything: content, inventory and sidecar. So a run that was killed between two steps leaves one of two
states, and both can be finished without loss:

- a complete version directory that the object's inventory does not list
- the new inventory of the object with the sidecar of the earlier one

A version can have another digest algorithm or OCFL version than the one before. Then the old sidecar is removed before
the new one is written, and after that the new declaration is written before the old one is removed. So an inventory
without a sidecar, or two declarations, can be left, too; the inventories of both versions prove what is missing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from pressmark.fs.names import decode_fs, encode_fs
from pressmark.reports import Problem
from pressmark.stores.ocfl.declarations import declaration_of
from pressmark.stores.ocfl.history_rules import is_same_state, order_finding
from pressmark.stores.ocfl.inventory import (
    INVENTORY,
    InventoryError,
    content_directory,
    next_version,
    read_inventory,
    sidecar_digest,
    sidecar_name,
    version_number,
)
from pressmark.stores.ocfl.inventory_rules import inventory_errors
from pressmark.stores.ocfl.storage import Reader
from pressmark.stores.problems import problem

__all__ = ["UnfinishedVersion", "content_of", "find_unfinished", "find_unlisted", "matches_sidecar"]

_INVENTORY = encode_fs(INVENTORY)


class UnfinishedVersion(NamedTuple):
    """A complete version whose publishing was interrupted.

    :ivar name: its name
    :ivar document: its inventory
    :ivar data: the bytes of its inventory
    :ivar is_listed: whether the object's inventory is that of the version; then only what is beside it is old
    :ivar declared: the name of the declaration to write, if the OCFL version or the digest algorithm has changed;
        otherwise empty
    """

    name: str
    document: dict[str, Any]
    data: bytes
    is_listed: bool
    declared: bytes = b""

    def problem(self, path: bytes) -> Problem:
        """Return the problem of the object at ``path``."""
        what_to_do = "an interrupted change; run pressmark store repair, or change the object again"
        if self.is_listed and self.declared:
            what = f"{self.name} is complete, but its sidecar or declaration is not published: {what_to_do}"
            return problem("version-unfinished", os.path.join(path, _INVENTORY), what, code="E038")
        if self.is_listed:
            what = f"{self.name} is complete, but the sidecar is that of an earlier inventory: {what_to_do}"
            return problem("version-unfinished", os.path.join(path, _INVENTORY), what, code="E060")
        what = f"{self.name} is complete, but the inventory does not list it: {what_to_do}"
        return problem("version-unfinished", os.path.join(path, encode_fs(self.name)), what, code="E046")


def find_unfinished(storage: Reader, path: bytes, document: Mapping[str, Any], data: bytes) -> UnfinishedVersion | None:
    """Return the version of an object that an interrupted run left unfinished.

    :param path: the object's directory
    :param document: its inventory
    :param data: the bytes of its inventory
    :return: :data:`None` without one, also if a directory with the name of the next version is not a complete version
    """
    head = document.get("head")
    if not isinstance(head, str) or version_number(head) is None or inventory_errors(document):
        return None
    fits = False
    with suppress(OSError):
        fits = matches_sidecar(storage, path, document, data)
    with suppress(OSError):  # no directory with the name of the next version
        if fits and (found := find_unlisted(storage, path, document, data)) is not None:
            return found
    with suppress(OSError):
        return _listed(storage, path, document, data, fits)
    return None


def matches_sidecar(storage: Reader, directory: bytes, document: Mapping[str, Any], data: bytes) -> bool:
    """Return whether an inventory matches its sidecar.

    :raises OSError: the sidecar is missing or cannot be read
    """
    algorithm = str(document["digestAlgorithm"])
    return sidecar_digest(_read(storage, directory, sidecar_name(algorithm))) == _digest(algorithm, data)


def content_of(document: Mapping[str, Any], name: str) -> dict[bytes, str]:
    """Return the digest of each content path in the directory of a version."""
    return {
        encode_fs(path): digest
        for digest, paths in document["manifest"].items()
        for path in paths
        if path.startswith(f"{name}/")
    }


def find_unlisted(
    storage: Reader, object_path: bytes, before: Mapping[str, Any], data_before: bytes
) -> UnfinishedVersion | None:
    """Return the version after the newest that an inventory of an object lists.

    :param before: the inventory, already checked
    :param data_before: its bytes
    :return: :data:`None` if the next version is not complete
    :raises OSError: there is no such version, or it cannot be read
    """
    name = next_version(before["head"])
    if name is None or _inventory_of(storage, object_path, before["head"]) not in (data_before, None):
        return None
    directory = os.path.join(object_path, encode_fs(name))
    data = _read(storage, directory, INVENTORY)
    try:
        document = _parsed(data)
    except InventoryError:
        return None
    is_next = not inventory_errors(document) and document["head"] == name and _extends(document, before)
    if not is_next or not matches_sidecar(storage, directory, document, data):
        return None
    usual = {_INVENTORY, encode_fs(sidecar_name(document["digestAlgorithm"]))}
    files = _files(storage, directory)
    if files is None or {os.path.join(directory, file) for file in files - usual} != {
        os.path.join(object_path, path) for path in content_of(document, name)
    }:
        return None
    return UnfinishedVersion(name, document, data, False, _declared(document, before))


def _listed(
    storage: Reader, path: bytes, document: Mapping[str, Any], data: bytes, fits: bool
) -> UnfinishedVersion | None:
    """Return the newest version if the object's sidecar or declaration is that of the version before it.

    :param fits: whether the sidecar is that of the newest
    :raises OSError: a file cannot be read
    """
    name, algorithm = document["head"], document["digestAlgorithm"]
    directory = os.path.join(path, encode_fs(name))
    earlier = next((other for other in document["versions"] if next_version(other) == name), None)
    is_whole = _read(storage, directory, INVENTORY) == data and matches_sidecar(storage, directory, document, data)
    if earlier is None or not is_whole:
        return None
    data_before = _inventory_of(storage, path, earlier)
    before = None if data_before is None else _before(data_before, document)
    declared = b"" if before is None else _declared(document, before)
    unfinished = UnfinishedVersion(name, dict(document), data, True, declared)
    if fits:
        is_declared = before is None or not declared or _is_declared(storage, path, before, document)
        return None if is_declared else unfinished
    if before is not None and before["digestAlgorithm"] != algorithm:
        return None if _exists(storage, path, sidecar_name(algorithm)) else unfinished
    sidecar = sidecar_digest(_read(storage, path, sidecar_name(algorithm)))
    if sidecar is None or (data_before is not None and _digest(algorithm, data_before) != sidecar):
        return None
    return unfinished


def _before(data: bytes, document: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the inventory of the version before; :data:`None` if another version does not follow it."""
    try:
        before = _parsed(data)
    except InventoryError:
        return None
    return before if not inventory_errors(before) and _extends(document, before) else None


def _declared(document: Mapping[str, Any], before: Mapping[str, Any]) -> bytes:
    """Return the name of an object's declaration if its OCFL version or its digest algorithm has changed, or empty."""
    is_same = all(document[key] == before[key] for key in ("type", "digestAlgorithm"))
    return b"" if is_same else declaration_of(document)[0]


def _is_declared(storage: Reader, path: bytes, before: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Return whether the declaration of the version before is gone, or is still right."""
    old = declaration_of(before)[0]
    return old == declaration_of(document)[0] or not _exists(storage, path, decode_fs(old))


def _exists(storage: Reader, path: bytes, name: str) -> bool:
    return any(entry.name == encode_fs(name) for entry in storage.scan(path))


def _extends(document: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Return whether an inventory adds one version to another inventory, and changes nothing else but the OCFL version
    to a later one, or the digest algorithm.
    """
    name, manifest = document["head"], document["manifest"]
    new = {path for paths in manifest.values() for path in paths}
    has_same_digests = document["digestAlgorithm"] == before["digestAlgorithm"]
    for digest, paths in before["manifest"].items():
        if not set(paths) <= (set(manifest.get(digest, ())) if has_same_digests else new):
            return False
        new -= set(paths)
    versions = {other: block for other, block in document["versions"].items() if other != name}
    folder = f"{name}/{content_directory(document)}/"
    return (
        all(document.get(key) == before.get(key) for key in ("id", "contentDirectory"))
        and order_finding(before["head"], before, document) is None
        and versions.keys() == before["versions"].keys()
        and all(
            block == versions[other]
            if has_same_digests
            else {**block, "state": 0} == {**versions[other], "state": 0}
            and is_same_state(block, before, versions[other], document)
            for other, block in before["versions"].items()
        )
        and all(path.startswith(folder) for path in new)
    )


def _inventory_of(storage: Reader, path: bytes, version: str) -> bytes | None:
    """Return the inventory in a version's directory; :data:`None` without one, which is only recommended (W010)."""
    try:
        return _read(storage, os.path.join(path, encode_fs(version)), INVENTORY)
    except FileNotFoundError:
        return None


def _parsed(data: bytes) -> dict[str, Any]:
    repeated: list[str] = []
    document = read_inventory(data, repeated)
    if repeated:
        raise InventoryError("repeated keys")
    return document


def _read(storage: Reader, directory: bytes, name: str) -> bytes:
    return storage.read(os.path.join(directory, encode_fs(name)))


def _digest(algorithm: str, data: bytes) -> str:
    return hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()


def _files(storage: Reader, directory: bytes) -> set[bytes] | None:
    """Return the files below a directory, relative to it.

    :return: :data:`None` with links, special files or empty directories
    """
    found: set[bytes] = set()
    waiting = [b""]
    while waiting:
        folder = waiting.pop()
        entries = storage.scan(directory + b"/" + folder if folder else directory)
        if not entries:
            return None
        for entry in entries:
            path = folder + b"/" + entry.name if folder else entry.name
            if entry.kind == "directory":
                waiting.append(path)
            elif entry.kind == "file":
                found.add(path)
            else:
                return None
    return found
