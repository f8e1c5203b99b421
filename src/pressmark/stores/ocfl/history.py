"""The versions of an OCFL object, as its inventory lists them (OCFL 1.1, section 3.5.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pressmark.errors import quoted
from pressmark.stores.ocfl.inventory import InventoryError, version_number, version_state

__all__ = ["VersionInfo", "VersionMissingError", "describe_versions", "find_version", "version_names", "version_pair"]


class VersionInfo(NamedTuple):
    """One version of an object.

    :ivar version: its name, such as ``v2``
    :ivar created: RFC 3339 date and time; :data:`None` if missing in the inventory
    :ivar user: ``name`` and ``address`` of the user; :data:`None` if missing in the inventory
    :ivar message: the message of the version; :data:`None` if missing in the inventory
    :ivar files: number of files
    :ivar bytes: their total size; :data:`None` if a file is missing or cannot be read
    """

    version: str
    created: str | None
    user: Mapping[str, str] | None
    message: str | None
    files: int
    bytes: int | None


class VersionMissingError(InventoryError):
    """An inventory without the version that was asked for."""

    kind = "missing"


def version_names(document: Mapping[str, Any]) -> list[str]:
    """Return the names of an object's versions, the oldest first.

    :raises InventoryError: the inventory lists no versions, or one with an invalid name
    """
    versions = document.get("versions")
    if not isinstance(versions, dict) or not versions:
        raise InventoryError("no versions")
    numbers = {name: version_number(name) for name in versions}
    for name, number in numbers.items():
        if number is None:
            raise InventoryError(f"{quoted(name)} is not a version name such as v1")
    return sorted(versions, key=lambda name: numbers[name] or (0, 0))


def find_version(document: Mapping[str, Any], version: str | int) -> str:
    """Return the name of a version as the inventory spells it.

    :param version: its name or number; zero-padding does not matter: ``v2``, ``v0002`` or 2
    :raises VersionMissingError: the object has no such version
    :raises InventoryError: as for :func:`version_names`
    """
    names = version_names(document)
    wanted = version_number(f"v{str(version).removeprefix('v')}")
    for name in names:
        if wanted is not None and (version_number(name) or wanted)[0] == wanted[0]:
            return name
    present = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
    raise VersionMissingError(f"version {quoted(str(version))} not found; the object has {present}")


def version_pair(
    document: Mapping[str, Any], before: str | int | None = None, after: str | int | None = None
) -> tuple[str | None, str]:
    """Return the names of two versions to be compared.

    :param before: :data:`None` for the version before the newest; there is none if the object has one version
    :param after: :data:`None` for the newest version
    :raises VersionMissingError: the object has no such version
    :raises InventoryError: as for :func:`version_names`
    """
    *older, newest = version_names(document)
    earlier = older[-1] if older else None
    return (
        earlier if before is None else find_version(document, before),
        newest if after is None else find_version(document, after),
    )


def describe_versions(document: Mapping[str, Any], size_of: Callable[[str], int | None]) -> list[VersionInfo]:
    """Return all versions of an object, the oldest first.

    :param size_of: returns the size of a content path in bytes, or :data:`None`; called once for each digest
    :raises InventoryError: as for :func:`version_names`, or a state is malformed
    """
    sizes: dict[str, int | None] = {}
    found = []
    for name in version_names(document):
        manifest, state = version_state(document, name)
        files, total = 0, 0
        whole = True
        for digest, paths in state.items():
            if digest not in sizes:
                sizes[digest] = size_of(manifest[digest][0])
            size = sizes[digest]
            whole = whole and size is not None
            files += len(paths)
            total += len(paths) * (size or 0)
        block = document["versions"][name]
        created, message = block.get("created"), block.get("message")
        found.append(
            VersionInfo(
                name,
                created if isinstance(created, str) else None,
                _user(block.get("user")),
                message if isinstance(message, str) else None,
                files,
                total if whole else None,
            )
        )
    return found


def _user(user: Any) -> dict[str, str] | None:
    if not isinstance(user, dict):
        return None
    return {key: user[key] for key in ("name", "address") if isinstance(user.get(key), str)} or None
