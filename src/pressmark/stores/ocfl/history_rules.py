"""The requirements of OCFL on several inventories of one object (sections 3.3.1, 3.5.1 and 3.7), as findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pressmark.errors import quoted, quoted_value
from pressmark.stores.ocfl.declarations import VERSIONS, later
from pressmark.stores.ocfl.inventory import CONTENT_DIRECTORY, version_number
from pressmark.stores.ocfl.inventory_rules import ARE_OBJECTS, TYPE, Finding, usual_names

__all__ = ["history_findings", "is_contained", "is_same_state", "order_finding", "unset_finding"]

# Those whose values grow with each version.
_BLOCKS = ("versions", "manifest", "fixity")


def is_contained(name: str, earlier: Mapping[str, Any], newest: Mapping[str, Any]) -> bool:
    """Return whether the inventory of an earlier version has nothing that the newest inventory lacks.

    If the newest has no violation, it violates nothing then, and does not contradict the newest.

    :param name: the version directory of ``earlier``
    :param newest: an inventory without violations
    """
    number = version_number(name)
    if number is None or name != f"v{number[0]}" or earlier.keys() != newest.keys() or earlier["head"] != name:
        return False
    blocks = {key: earlier.get(key, {}) for key in _BLOCKS}
    versions, manifest, fixity = blocks.values()
    return (
        all(earlier[key] == value for key, value in newest.items() if key not in _BLOCKS and key != "head")
        and ARE_OBJECTS(map(type, blocks.values()))
        and ARE_OBJECTS(map(type, fixity.values()))
        and versions.keys() == usual_names(number[0])
        and versions.items() <= newest["versions"].items()
        and manifest.items() <= newest["manifest"].items()
        and all(block.items() <= newest["fixity"].get(algorithm, {}).items() for algorithm, block in fixity.items())
        # Each digest is used in a state, and each state uses only these.
        and manifest.keys() == set().union(*[block["state"] for block in versions.values()])
    )


def history_findings(name: str, earlier: Mapping[str, Any], newest: Mapping[str, Any]) -> list[Finding]:
    """Return where the inventory of an earlier version contradicts the newest inventory (sections 3.5.1 and 3.7).

    :param name: the version directory of ``earlier``
    """
    found: list[Finding] = []
    if isinstance(newest.get("id"), str) and earlier.get("id") != newest["id"]:
        what = f"the inventory of {quoted(name)} has another identifier, {quoted_value(earlier.get('id'))}"
        found.append(Finding("history-differs", "E110", what))
    if earlier.get("head") != name:
        what = (
            f"head in the inventory of {quoted(name)} is {quoted_value(earlier.get('head'))}; expected {quoted(name)}"
        )
        found.append(Finding("history-differs", "E040", what, expected=name, found=str(earlier.get("head"))))
    folder = earlier.get("contentDirectory", CONTENT_DIRECTORY)
    if folder != newest.get("contentDirectory", CONTENT_DIRECTORY):
        what = (
            f"contentDirectory in the inventory of {quoted(name)} is {quoted_value(folder)}, which differs from the"
            " newest inventory"
        )
        found.append(Finding("history-differs", "E020", what))
    blocks, others = earlier.get("versions"), newest.get("versions")
    if not isinstance(blocks, dict) or not isinstance(others, dict):
        return found
    for version, block in blocks.items():
        other = others.get(version)
        if not isinstance(other, dict) or not isinstance(block, dict):
            what = f"the inventory of {quoted(name)} has a version {quoted(version)} that the newest inventory lacks"
            found.append(Finding("history-differs", "E066", what))
            continue
        if not is_same_state(block, earlier, other, newest):
            what = f"the inventories of {quoted(name)} and head have different states of the version {quoted(version)}"
            found.append(Finding("history-differs", "E066", what))
        for key in ("created", "message", "user"):
            if block.get(key) != other.get(key):
                what = f"{key} of {quoted(version)} differs between the inventories of {quoted(name)} and head"
                found.append(Finding("inventory-advice", "W011", what))
    return found


def unset_finding(name: str, first: Mapping[str, Any], inventories: Iterable[Mapping[str, Any]]) -> Finding | None:
    """Return the violation if a later inventory sets contentDirectory and the first does not (section 3.3.1).

    :param name: the version directory of the inventory ``first``
    """
    number = version_number(name)
    if number is None or number[0] != 1 or "contentDirectory" in first:
        return None
    if not any("contentDirectory" in inventory for inventory in inventories):
        return None
    what = f"contentDirectory is set in a later inventory, but not in that of the first version {quoted(name)}"
    return Finding("history-differs", "E019", what)


def order_finding(name: str, inventory: Mapping[str, Any], next_one: Mapping[str, Any]) -> Finding | None:
    """Return the violation if an inventory has a later OCFL version than the next one (section 3.7.1)."""
    if inventory.get("type") == next_one.get("type"):
        return None
    before, now = _spec_version(inventory), _spec_version(next_one)
    if before is None or now is None or not later(before, now):
        return None
    what = f"the inventory of {quoted(name)} has OCFL version {before}, the next inventory the earlier version {now}"
    return Finding("history-differs", "E103", what, expected=now, found=before)


def _spec_version(document: Mapping[str, Any]) -> str | None:
    type_uri = document.get("type")
    match = TYPE.fullmatch(type_uri) if isinstance(type_uri, str) else None
    return match[1] if match is not None and match[1] in VERSIONS else None


def is_same_state(
    block: Mapping[str, Any], earlier: Mapping[str, Any], other: Mapping[str, Any], newest: Mapping[str, Any]
) -> bool:
    """Return whether two inventories have the same state of a version, even with different digest algorithms."""
    before, now = _contents_of(block, earlier), _contents_of(other, newest)
    if before is None or now is None:
        return before is now
    # Later versions may add copies of the same content.
    if before.keys() != now.keys() or not all(contents <= now[path] for path, contents in before.items()):
        return False
    # With one algorithm, the digests must agree as well.
    same_algorithm = earlier.get("digestAlgorithm") == newest.get("digestAlgorithm")
    return not same_algorithm or _folded(block["state"]) == _folded(other["state"])


def _folded(state: Mapping[str, Any]) -> set[str]:
    return {digest.lower() for digest in state}


def _contents_of(block: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, frozenset[str]] | None:
    """Return the content paths of each logical path."""
    state, manifest = block.get("state"), document.get("manifest")
    if not isinstance(state, dict) or not isinstance(manifest, dict):
        return None
    same: dict[str, frozenset[str]] = {}
    for digest, paths in state.items():
        contents = manifest.get(digest)
        if isinstance(paths, list) and isinstance(contents, list):
            where = frozenset(path for path in contents if isinstance(path, str))
            same.update((path, where) for path in paths if isinstance(path, str))
    return same
