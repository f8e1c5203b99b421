"""Files in an OCFL object's root outside of its versions: logs, extensions, staged content, unlisted files.

No inventory lists them, so copying an object version by version loses them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pressmark.errors import ObjectError
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.stores.ocfl.declarations import (
    EXTENSIONS,
    LOGS,
    MUTABLE_HEAD,
    OBJECT,
    VERSIONS,
    declaration,
    has_mutable_head,
)
from pressmark.stores.ocfl.inventory import INVENTORY, content_directory, sidecar_name
from pressmark.stores.ocfl.storage import Storage

__all__ = ["is_content_path_layout", "refuse_mutable_head", "unversioned"]

_CONFIG = b"config.json"
_INVENTORY = encode_fs(INVENTORY)
_DECLARATIONS = {declaration(OBJECT, version)[0] for version in VERSIONS}


def is_content_path_layout(name: bytes) -> bool:
    """Return whether an object's extension only defines how content paths are derived."""
    return name.startswith((b"0011-", b"NNNN-direct-clean-path"))


def refuse_mutable_head(storage: Storage, root: str, identifier: str, path: bytes) -> None:
    """Refuse to change the object at ``path`` if it has changes that are staged (extension 0005).

    :param root: for the message
    :raises ObjectError: of kind ``mutable-head``
    """
    if has_mutable_head(storage, path):
        what = f"the object has a mutable HEAD, uncommitted content in {decode_fs(MUTABLE_HEAD)}"
        raise ObjectError(root, identifier, "mutable-head", f"{what}; commit it with ocfl-java first")


def unversioned(storage: Storage, inventory: Mapping[str, Any]) -> list[bytes]:
    """Return the files in an object's root that are neither in a version nor derived from one.

    An empty directory ends with a slash; directories that OCFL itself defines may be empty.

    :param storage: of the object's root
    :param inventory: the object's inventory
    :return: paths relative to the object's root, in the order of bytes
    :raises OSError: a directory cannot be read
    """
    versions = {encode_fs(name) for name in inventory["versions"]}
    folder = encode_fs(content_directory(inventory))
    known = _content_paths(inventory)
    known |= {_INVENTORY, encode_fs(sidecar_name(str(inventory.get("digestAlgorithm")))), *_DECLARATIONS}
    usual = {EXTENSIONS, LOGS, *versions, *(name + b"/" + folder for name in versions)}
    found = []
    for path, kind in _below(storage, usual):
        if kind == "directory":
            found.append(path + b"/")
        elif kind != "file" or not (path in known or _is_derived(path.split(b"/"), versions)):
            found.append(path)
    return sorted(found)


def _content_paths(inventory: Mapping[str, Any]) -> set[bytes]:
    """Return the content paths used by the state of any version."""
    blocks = [block for block in inventory["versions"].values() if isinstance(block, dict)]
    states = [block["state"] for block in blocks if isinstance(block.get("state"), dict)]
    used = {digest.lower() for state in states for digest in state}
    manifest = inventory["manifest"]
    return {encode_fs(path) for digest, paths in manifest.items() if digest.lower() in used for path in paths}


def _is_derived(parts: list[bytes], versions: Collection[bytes]) -> bool:
    """Return whether a file can be derived from the versions."""
    if len(parts) == 2 and parts[0] in versions:
        # Earlier versions may have another digest algorithm.
        return parts[1] == _INVENTORY or parts[1].startswith(_INVENTORY + b".")
    return len(parts) == 3 and parts[0] == EXTENSIONS and is_content_path_layout(parts[1]) and parts[2] == _CONFIG


def _below(storage: Storage, usual: Collection[bytes]) -> Iterator[tuple[bytes, str]]:
    """Yield path and kind of everything below an object's root, except directories that are usual or not empty."""
    listed = storage.all_entries()
    waiting = [b""]
    while waiting:
        directory = waiting.pop()
        entries = storage.scan(directory) if listed is None else listed.get(directory, ())
        if not entries and directory and directory not in usual:
            yield directory, "directory"
        for entry in entries:
            path = directory + b"/" + entry.name if directory else entry.name
            if entry.kind == "directory":
                waiting.append(path)
            else:
                yield path, entry.kind
