"""OCFL inventories: reading, writing, and sidecars with their digests (OCFL 1.1, sections 3.5 to 3.7).

Inventories of OCFL 1.0 differ in their ``type`` alone. :mod:`pressmark.stores.ocfl.inventory_rules` checks inventories.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pressmark import _kernels
from pressmark.errors import PressmarkError, quoted, quoted_value

__all__ = [
    "ALGORITHMS",
    "CONTENT_DIRECTORY",
    "INVENTORY",
    "InventoryError",
    "Provenance",
    "content_directory",
    "first_version",
    "inventory_bytes",
    "inventory_type",
    "logical_files",
    "next_version",
    "path_fault",
    "read_inventory",
    "scan_identifier",
    "sidecar_bytes",
    "sidecar_digest",
    "sidecar_name",
    "version_number",
    "version_state",
]

INVENTORY = "inventory.json"
CONTENT_DIRECTORY = "content"  # the default of contentDirectory
#: The digest algorithms that may address content (section 3.4), the recommended one first.
ALGORITHMS = ("sha512", "sha256")

_SIDECAR = re.compile(rb"([0-9A-Fa-f]+)[ \t]+inventory\.json\n?")
# File names are not longer, and Python converts as many digits.
_VERSION = re.compile(r"v(0*)([1-9][0-9]{0,253})")
# An element that is empty, '.' or '..', including before a leading and after a trailing '/'.
_BAD_ELEMENT = re.compile(r"(?:\A|/)\.{0,2}(?:/|\Z)")
# An escaped surrogate in JSON; most inventories contain no escape.
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
# The beginning of an inventory: keys with strings as values before the identifier are skipped.
_TEXT = rb'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"'
_IDENTIFIER = re.compile(rb'\s*\{\s*(?:"(?!id")[A-Za-z]+"\s*:\s*' + _TEXT + rb'\s*,\s*)*"id"\s*:\s*(' + _TEXT + rb")")


class InventoryError(PressmarkError):
    """An inventory that cannot be used; ``str`` is the reason."""

    kind = "inventory"


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
        block: dict[str, Any] = {"created": self.created or _moment(int(time.time()))}
        if self.message is not None:
            block["message"] = self.message
        if self.user is not None:
            block["user"] = dict(self.user)
        return {**block, "state": dict(state)}


@lru_cache(maxsize=16)
def _moment(seconds: int) -> str:
    """Return a time as stored in inventories: in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def inventory_type(version: str) -> str:
    """Return the ``type`` of inventories of an OCFL version, such as ``1.1``."""
    return f"https://ocfl.io/{version}/spec/#inventory"


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _explain(text: str, repeated: list[str] | None) -> Any:
    """Decode a text with repeated keys, or raise the error."""

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if repeated is not None and len(found) != len(pairs):
            keys = [key for key, _ in pairs]
            repeated.extend(key for key in found if keys.count(key) > 1)
        return found

    return json.loads(text, object_pairs_hook=collect, parse_constant=_refuse)


def read_inventory(data: bytes, repeated: list[str] | None = None) -> dict[str, Any]:
    """Return an inventory's JSON object.

    :param repeated: receives keys that occur more than once in an object
    :raises InventoryError: not a JSON object in UTF-8
    """
    try:
        try:
            document = _kernels.active.read_json(data)
        except ValueError:
            document = _explain(data.decode(), repeated)
    except (ValueError, RecursionError) as error:
        raise InventoryError(f"not valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise InventoryError("not a JSON object")
    # Most inventories have no escape; a search for two bytes takes ten times as long as for one.
    if b"\\" in data and _SURROGATE.search(data) is not None:
        try:
            json.dumps(document, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise InventoryError("contains an unpaired surrogate") from None
    return document


def scan_identifier(head: bytes) -> str | None:
    """Return the identifier from the beginning of an inventory, or :data:`None` if the whole inventory must be read.

    Keys before ``id`` are skipped as long as their values are strings, so no nested value is mistaken for the
    identifier.
    """
    match = _IDENTIFIER.match(head)
    if match is None:
        return None
    if match[1].isascii() and b"\\" not in match[1]:
        return match[1][1:-1].decode()
    if _SURROGATE.search(match[1]) is not None:
        return None
    try:
        text = match[1].decode()
        return json.loads(text) if "\\" in text else text[1:-1]
    except ValueError:
        return None


def version_number(name: str) -> tuple[int, int] | None:
    """Return the number of a version directory and the number of digits that it is padded to, 0 for none (section 3.3).

    >>> version_number("v0002")
    (2, 4)
    """
    match = _VERSION.fullmatch(name)
    if match is None:
        return None
    return int(match[2]), len(name) - 1 if match[1] else 0


def next_version(name: str) -> str | None:
    """Return the name of the version after ``name``, padded like it; :data:`None` if no number of that width is left.

    >>> next_version("v0009"), next_version("v9"), next_version("v09")
    ('v0010', 'v10', None)
    """
    parsed = version_number(name)
    if parsed is None:
        return None
    number, width = parsed
    following = f"v{number + 1:0{max(width, 1)}}"
    return following if not width or following.startswith("v0") else None


def path_fault(path: Any) -> str | None:
    """Return why ``path`` is neither a valid logical path nor a valid content path; :data:`None` if it is valid."""
    if not isinstance(path, str):
        return f"{quoted_value(path)} is not a string"
    if path.startswith("/") or path.endswith("/"):
        return f"the path {quoted(path)} begins or ends with '/'"
    if _BAD_ELEMENT.search(path) is not None:
        return f"the path {quoted(path)} has an element that is empty, '.' or '..'"
    return None


def content_directory(document: Mapping[str, Any]) -> str:
    """Return the name of an object's content directories (section 3.5.1)."""
    name = document.get("contentDirectory", CONTENT_DIRECTORY)
    return name if isinstance(name, str) else CONTENT_DIRECTORY


def version_state(
    document: Mapping[str, Any], version: str | None = None
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the manifest, and the state of a version.

    :param version: its name in the inventory; :data:`None` for the newest
    :raises InventoryError: they are missing or malformed
    """
    what = f"the state of {'the newest version' if version is None else quoted(version)}"
    try:
        manifest = document["manifest"]
        state = document["versions"][document["head"] if version is None else version]["state"]
        for block in (manifest, state):
            if not all(isinstance(paths, list) and paths and _are_texts(paths) for paths in block.values()):
                raise InventoryError(f"the manifest or {what} contains an invalid list of paths")
        if not all(digest in manifest for digest in state):
            raise InventoryError(f"{what} uses digests that are not in the manifest")
    except (KeyError, TypeError, AttributeError):
        raise InventoryError(f"no manifest, or {what} is missing") from None
    return manifest, state


def _are_texts(paths: list[Any]) -> bool:
    return set(map(type, paths)) <= {str}


def logical_files(document: Mapping[str, Any], version: str | None = None) -> Iterator[tuple[str, str, str]]:
    """Yield logical path, content path and digest of every file of a version, in the order of logical paths.

    :param version: its name in the inventory; :data:`None` for the newest
    :raises InventoryError: as for :func:`version_state`
    """
    manifest, state = version_state(document, version)
    yield from sorted((path, manifest[digest][0], digest) for digest, paths in state.items() for path in paths)


# --- writing ----------------------------------------------------------------------------------------------------------


def inventory_bytes(document: Mapping[str, Any]) -> bytes:
    """Return an inventory as stored: one line for each key and each digest."""
    return (_object(document, "") + "\n").encode()


def first_version(
    identifier: str, version: str, algorithm: str, manifest: Mapping[str, list[str]], block: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the inventory of an object's first version.

    :param version: version of OCFL
    :param block: the version's block
    """
    return {
        "id": identifier,
        "type": inventory_type(version),
        "digestAlgorithm": algorithm,
        "head": "v1",
        "manifest": manifest,
        "versions": {"v1": block},
    }


# The C encoders cannot indent; only objects are split into lines.
_encode = json.JSONEncoder(ensure_ascii=False).encode
_encode_text = json.encoder.encode_basestring


def _object(value: Mapping[str, Any], indent: str) -> str:
    if not value:
        return "{}"
    inner = f"{indent}  "
    lines = []
    for key, item in value.items():
        kind = type(item)
        # The frequent types first: each of millions of objects has an inventory.
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
    """Return the name of the file that contains an inventory's digest (section 3.6)."""
    return f"{INVENTORY}.{algorithm}"


def sidecar_bytes(digest: str) -> bytes:
    """Return the content of a sidecar."""
    return f"{digest} {INVENTORY}\n".encode()


def sidecar_digest(data: bytes) -> str | None:
    """Return the digest in a sidecar, in lower case; :data:`None` if the sidecar is malformed (section 3.6)."""
    match = _SIDECAR.fullmatch(data)
    return None if match is None else match[1].decode().lower()
