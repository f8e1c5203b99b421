"""OCFL inventories: read from JSON, written so that people can read them, and the sidecars with their digests.

The specification is OCFL 1.1, sections 3.5 to 3.7; inventories of 1.0 differ in their ``type`` alone. What they must be
is in :mod:`pressmark.stores.ocfl.inventory_rules`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pressmark.errors import PressmarkError, quoted, quoted_value

__all__ = [
    "ALGORITHMS",
    "CONTENT_DIRECTORY",
    "INVENTORY",
    "InventoryError",
    "content_directory",
    "first_version",
    "head_state",
    "inventory_bytes",
    "inventory_type",
    "logical_files",
    "path_fault",
    "read_inventory",
    "scan_identifier",
    "sidecar_bytes",
    "sidecar_digest",
    "sidecar_name",
    "version_number",
]

INVENTORY = "inventory.json"
CONTENT_DIRECTORY = "content"  # where contentDirectory does not say otherwise
#: What content may be addressed by (section 3.4), the recommended one first.
ALGORITHMS = ("sha512", "sha256")

_SIDECAR = re.compile(rb"([0-9A-Fa-f]+)[ \t]+inventory\.json\n?")
# No directory has a longer name, and Python no limit for so few digits.
_VERSION = re.compile(r"v(0*)([1-9][0-9]{0,253})")
# An element that is empty, '.' or '..': also before a leading and behind a trailing '/'.
_BAD_ELEMENT = re.compile(r"(?:\A|/)\.{0,2}(?:/|\Z)")
# Half of a surrogate pair in JSON; most inventories hold no escape at all.
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
# The beginning of an inventory as far as it is plain text: keys with texts before the identifier may be skipped.
_TEXT = rb'"(?:[^"\\\x00-\x1f]|\\.)*"'
_IDENTIFIER = re.compile(rb'\s*\{\s*(?:"(?!id")[A-Za-z]+"\s*:\s*' + _TEXT + rb'\s*,\s*)*"id"\s*:\s*(' + _TEXT + rb")")


class InventoryError(PressmarkError):
    """An inventory from which nothing can be read; ``str`` says why."""


def inventory_type(version: str) -> str:
    """Return the ``type`` of inventories of the OCFL ``version``, such as ``1.1``."""
    return f"https://ocfl.io/{version}/spec/#inventory"


def read_inventory(data: bytes, repeated: list[str] | None = None) -> dict[str, Any]:
    """Return an inventory's JSON object.

    :param repeated: keys that an object has more than once are added to it
    :raises InventoryError: it is no JSON object of UTF-8
    """

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            keys = [key for key, _ in pairs]
            repeated.extend(key for key in found if keys.count(key) > 1)  # type: ignore[union-attr]
        return found

    try:
        text = data.decode()
        hook = None if repeated is None else collect
        document = json.loads(text, object_pairs_hook=hook, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise InventoryError(f"it is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise InventoryError("it is not a JSON object")
    if _SURROGATE.search(data) is not None:
        try:
            json.dumps(document, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise InventoryError("it holds half of a surrogate pair, which is no character") from None
    return document


def scan_identifier(head: bytes) -> str | None:
    """Return the identifier from the beginning of an inventory, :data:`None` where only all of it can tell.

    Keys before ``id`` are skipped as long as their values are texts, so that nothing inside of another value can be
    taken for it.
    """
    match = _IDENTIFIER.match(head)
    if match is None or _SURROGATE.search(match[1]) is not None:
        return None
    try:
        found = json.loads(match[1])
    except ValueError:
        return None
    return found if isinstance(found, str) else None


def version_number(name: str) -> tuple[int, int] | None:
    """Return the number of a version directory and how many digits it is padded to (0 for none).

    >>> version_number("v0002")
    (2, 4)
    """
    match = _VERSION.fullmatch(name)
    if match is None:
        return None
    return int(match[2]), len(name) - 1 if match[1] else 0


def path_fault(path: Any) -> str | None:
    """Return why ``path`` is neither a logical nor a content path, :data:`None` where it can be both."""
    if not isinstance(path, str):
        return f"{quoted_value(path)} is no text"
    if path.startswith("/") or path.endswith("/"):
        return f"the path {quoted(path)} begins or ends with '/'"
    if _BAD_ELEMENT.search(path) is not None:
        return f"the path {quoted(path)} has an element that is empty, '.' or '..'"
    return None


def content_directory(document: Mapping[str, Any]) -> str:
    """Return the name of the content directories of an object."""
    name = document.get("contentDirectory", CONTENT_DIRECTORY)
    return name if isinstance(name, str) else CONTENT_DIRECTORY


def head_state(document: Mapping[str, Any]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return manifest and state of an object's newest version.

    :raises InventoryError: they are not there, or not what they should be
    """
    try:
        manifest = document["manifest"]
        state = document["versions"][document["head"]]["state"]
        for block in (manifest, state):
            if not all(isinstance(paths, list) and paths and _are_texts(paths) for paths in block.values()):
                raise InventoryError("its manifest or the state of its newest version does not list paths")
        if not all(digest in manifest for digest in state):
            raise InventoryError("the state of its newest version has digests that are not in the manifest")
    except (KeyError, TypeError, AttributeError):
        raise InventoryError("it has no manifest, or no state of its newest version") from None
    return manifest, state


def _are_texts(paths: list[Any]) -> bool:
    return set(map(type, paths)) <= {str}


def logical_files(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Give logical path, content path and digest of every file of the newest version, by logical path.

    :raises InventoryError: as :func:`head_state`
    """
    manifest, state = head_state(document)
    yield from sorted((path, manifest[digest][0], digest) for digest, paths in state.items() for path in paths)


# --- writing ----------------------------------------------------------------------------------------------------------


def inventory_bytes(document: Mapping[str, Any]) -> bytes:
    """Return an inventory as it is stored: a line for each key, and for each digest."""
    return (_object(document, "") + "\n").encode()


def first_version(
    identifier: str, version: str, algorithm: str, manifest: Mapping[str, list[str]], block: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the inventory of an object's first version.

    :param version: of OCFL
    :param block: of the version
    """
    return {
        "id": identifier,
        "type": inventory_type(version),
        "digestAlgorithm": algorithm,
        "head": "v1",
        "manifest": manifest,
        "versions": {"v1": block},
    }


# The encoders of C, which cannot indent; only objects are broken into lines, and there are few of them.
_encode = json.JSONEncoder(ensure_ascii=False).encode
_encode_text = json.encoder.encode_basestring


def _object(value: Mapping[str, Any], indent: str) -> str:
    if not value:
        return "{}"
    inner = f"{indent}  "
    lines = []
    for key, item in value.items():
        kind = type(item)
        # The usual ones first: there is an inventory for each of millions of objects.
        if kind is str:
            text = _encode_text(item)
        elif kind is list and len(item) == 1 and type(item[0]) is str:
            text = f"[{_encode_text(item[0])}]"
        elif kind is dict or isinstance(item, Mapping):
            text = _object(item, inner)
        elif kind is list and _are_texts(item):
            text = f"[{', '.join(map(_encode_text, item))}]"
        else:
            text = _encode(item)
        lines.append(f"{inner}{_encode_text(key)}: {text}")
    body = ",\n".join(lines)
    return f"{{\n{body}\n{indent}}}"


def sidecar_name(algorithm: str) -> str:
    """Return the name of the file that holds an inventory's digest."""
    return f"{INVENTORY}.{algorithm}"


def sidecar_bytes(digest: str) -> bytes:
    """Return the content of a sidecar."""
    return f"{digest} {INVENTORY}\n".encode()


def sidecar_digest(data: bytes) -> str | None:
    """Return the digest in a sidecar, in lower case; :data:`None` where it has not its form (section 3.6)."""
    match = _SIDECAR.fullmatch(data)
    return None if match is None else match[1].decode().lower()
