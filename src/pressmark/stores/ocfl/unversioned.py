"""What an OCFL object's root holds beside its versions: logs, extensions, staged content, files that nobody lists.

No inventory has them, so that whoever copies an object version by version leaves them behind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pressmark.fs.names import encode_fs
from pressmark.stores.ocfl.declarations import EXTENSIONS, LOGS, OBJECT, VERSIONS, declaration
from pressmark.stores.ocfl.inventory import INVENTORY, content_directory, sidecar_name
from pressmark.stores.ocfl.storage import Storage

__all__ = ["is_content_path_layout", "unversioned"]

_CONFIG = b"config.json"
_INVENTORY = encode_fs(INVENTORY)
_DECLARATIONS = {declaration(OBJECT, version)[0] for version in VERSIONS}


def is_content_path_layout(name: bytes) -> bool:
    """Return whether an object's extension says how its content paths are made, and nothing else."""
    return name.startswith((b"0011-", b"NNNN-direct-clean-path"))


def unversioned(storage: Storage, inventory: Mapping[str, Any]) -> list[bytes]:
    """Return what is in an object's root, and is neither in one of its versions nor made from them.

    A directory with nothing in it has a slash at its end; those that OCFL itself names may be empty.

    :param storage: of the object's root
    :param inventory: the object's
    :return: paths relative to the root, in the order of their octets
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
    """Return the content paths that are in any version's state."""
    blocks = [block for block in inventory["versions"].values() if isinstance(block, dict)]
    states = [block["state"] for block in blocks if isinstance(block.get("state"), dict)]
    used = {digest.lower() for state in states for digest in state}
    manifest = inventory["manifest"]
    return {encode_fs(path) for digest, paths in manifest.items() if digest.lower() in used for path in paths}


def _is_derived(parts: list[bytes], versions: Collection[bytes]) -> bool:
    """Return whether a file says nothing but what the versions say."""
    if len(parts) == 2 and parts[0] in versions:
        # Earlier versions may have had another digest algorithm.
        return parts[1] == _INVENTORY or parts[1].startswith(_INVENTORY + b".")
    return len(parts) == 3 and parts[0] == EXTENSIONS and is_content_path_layout(parts[1]) and parts[2] == _CONFIG


def _below(storage: Storage, usual: Collection[bytes]) -> Iterator[tuple[bytes, str]]:
    """Give path and kind of everything below an object's root but directories that hold something, or are usual."""
    waiting = [b""]
    while waiting:
        place = waiting.pop()
        entries = storage.scan(place)
        if not entries and place and place not in usual:
            yield place, "directory"
        for entry in entries:
            path = place + b"/" + entry.name if place else entry.name
            if entry.kind == "directory":
                waiting.append(path)
            else:
                yield path, entry.kind
