"""The requirements of OCFL on inventories (sections 3.5.1 to 3.5.4), as findings with validation codes.

:mod:`pressmark.stores.ocfl.checking.object_check` turns findings into problems. Codes that begin with E are violations
of a MUST, those that begin with W of a SHOULD.

A rule compares sets first: of keys, digests and paths. Only where they are not as usual, it looks at each of them, and
explains what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Set
from datetime import date
from functools import lru_cache
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

from pressmark.errors import DIGEST_DIGITS, quoted, quoted_value
from pressmark.fixity import ALGORITHMS as DIGESTS
from pressmark.reports import ERROR
from pressmark.stores.ocfl.declarations import VERSIONS
from pressmark.stores.ocfl.inventory import (
    ALGORITHMS,
    content_directory,
    inventory_type,
    path_fault,
    version_number,
)
from pressmark.stores.problems import KINDS

__all__ = [
    "ARE_OBJECTS",
    "TYPE",
    "Finding",
    "content_digests",
    "inventory_errors",
    "inventory_findings",
    "is_date_time",
    "is_uri",
    "path_conflicts",
    "usual_names",
]

# The required keys, with the codes of their absence.
_REQUIRED = {
    **dict.fromkeys(("id", "type", "digestAlgorithm", "head"), "E036"),
    **dict.fromkeys(("manifest", "versions"), "E041"),
}
_KEYS = {*_REQUIRED, "contentDirectory", "fixity"}
_VERSION_KEYS = {"created", "state", "message", "user"}
_USER_KEYS = {"name", "address"}
_TYPES: dict[str | None, str] = {version: inventory_type(version) for version in VERSIONS}
TYPE = re.compile(r"https://ocfl\.io/([0-9]+\.[0-9]+)/spec/#inventory")
# RFC 3986, section 2: ASCII characters alone; others are percent-encoded.
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+")
# RFC 3339, section 5.6: date-time; the zone is required.
_CREATED = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:(?:[0-5][0-9]|60)(?:\.[0-9]+)?"
    r"(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_DIGITS = {name: 2 * DIGESTS[name].size for name in DIGESTS}
_LENGTHS: dict[str | None, frozenset[int]] = {name: frozenset({digits}) for name, digits in _DIGITS.items()}
_NO_LENGTH = frozenset[int]()
#: Return whether all types are that of lists, or of JSON objects.
_ARE_LISTS, ARE_OBJECTS = frozenset({list}).issuperset, frozenset({dict}).issuperset
_HEX = {name: re.compile(f"[0-9A-Fa-f]{{{digits}}}") for name, digits in _DIGITS.items()}
# The digest algorithms that OCFL and its extension 0009 define for fixity blocks.
_FIXITY = {*ALGORITHMS, "md5", "sha1", "blake2b-512", "blake2b-160", "blake2b-256", "blake2b-384", "sha512/256", "size"}


class Finding(NamedTuple):
    """One violation of OCFL's requirements.

    :ivar kind: a word of :mod:`pressmark.stores.problems`
    :ivar code: the validation code, such as ``E036``
    :ivar message: one human-readable line
    """

    kind: str
    code: str
    message: str
    algorithm: str | None = None
    expected: str | None = None
    found: str | None = None


def is_uri(text: str) -> bool:
    """Return whether a text has the form of a URI (RFC 3986): a scheme, a colon, and no white space."""
    return _URI.fullmatch(text) is not None


def inventory_findings(
    document: Mapping[str, Any],
    version: str | None = None,
    files: Mapping[str, Any] = MappingProxyType({}),
    contents: Mapping[str, str] | None = None,
) -> list[Finding]:
    """Return all violations within one inventory.

    :param document: its JSON object
    :param version: the OCFL version that the object declares; :data:`None` for that of the inventory
    :param files: files of the object: a content path that exists is well-formed
    :param contents: :func:`content_digests` of the inventory, if that is known
    """
    found: list[Finding] = []
    add = found.append
    get = document.get
    if document.keys() != _REQUIRED.keys():
        _explain_keys(document, add)
    if not isinstance(identifier := get("id"), str) or _URI.fullmatch(identifier) is None:
        _explain_identifier(document, add)
    if get("type") != _TYPES.get(version):
        _explain_type(document, version, add)
    if "contentDirectory" in document:
        _explain_content_directory(document["contentDirectory"], add)
    algorithm, manifest, versions = get("digestAlgorithm"), get("manifest", {}), get("versions", {})
    if algorithm != ALGORITHMS[0]:
        algorithm = _explain_algorithm(document, add)
    if (
        not isinstance(versions, dict)
        or not versions
        or versions.keys() != usual_names(len(versions))
        or get("head") != f"v{len(versions)}"
    ):
        versions = _explain_version_names(document, add)
    contents = content_digests(document) if contents is None else contents
    paths: Collection[str] = contents
    are_plain = isinstance(manifest, dict) and _are_plain(manifest, algorithm)
    if are_plain and contents and files.keys() >= contents.keys():
        folder = content_directory(document)
        prefixes = tuple([f"{name}/{folder}/" for name in versions if "/" not in name])
        for path in [path for path in contents if not path.startswith(prefixes)]:
            add(_misplaced(path, folder))
    else:
        paths = _explain_manifest(document, algorithm, versions, add)
    digests = _Digests(manifest.keys() if isinstance(manifest, dict) else None, are_plain)
    used = _states(versions, algorithm, digests, add)
    if digests.known is not None and used is not None and "versions" in document and digests.known != used:
        for digest in sorted(digests.known - used):
            what = f"the manifest has the digest {quoted(digest, DIGEST_DIGITS)}, which no version's state uses"
            add(Finding("digest-unused", "E107", what))
    if "fixity" in document:
        _fixity(document["fixity"], set(paths), add)
    return found


def inventory_errors(document: Mapping[str, Any], version: str | None = None) -> list[Finding]:
    """Return the findings of :func:`inventory_findings` that make an object invalid."""
    return [finding for finding in inventory_findings(document, version) if KINDS[finding.kind].severity == ERROR]


def _explain_keys(document: Mapping[str, Any], add: Any) -> None:
    for key, code in _REQUIRED.items():
        if key not in document:
            add(Finding("inventory-key-missing", code, f"the inventory has no {key}"))
    for key in sorted(document.keys() - _KEYS):
        add(Finding("inventory-key-unknown", "E102", f"the inventory has the unknown key {quoted(key)}"))


def _explain_identifier(document: Mapping[str, Any], add: Any) -> None:
    identifier = document.get("id", "")
    if "id" in document and (not isinstance(identifier, str) or not identifier):
        add(Finding("inventory-value", "E037", f"id is {quoted_value(identifier)}; a non-empty string is required"))
    elif identifier and not is_uri(identifier):
        add(Finding("inventory-advice", "W005", f"the identifier {quoted(identifier)} should be a URI"))


def _explain_type(document: Mapping[str, Any], version: str | None, add: Any) -> None:
    if "type" not in document:
        return
    type_uri = document["type"]
    match = TYPE.fullmatch(type_uri) if isinstance(type_uri, str) else None
    if match is None:
        what = f"type is {quoted_value(type_uri)}, not {inventory_type(version or '1.1')}"
        add(Finding("inventory-value", "E038", what))
    elif version is not None and match[1] != version:
        what = f"type is OCFL {match[1]}, but the object declares OCFL {version}"
        add(Finding("inventory-value", "E038", what, expected=version, found=match[1]))
    elif match[1] not in VERSIONS:
        what = f"type is OCFL {match[1]}, an unknown version"
        add(Finding("inventory-value", "E038", what, found=match[1]))


def _explain_content_directory(name: Any, add: Any) -> None:
    if not isinstance(name, str) or not name or "/" in name:
        what = f"contentDirectory is {quoted_value(name)}; expected a single name"
        add(Finding("inventory-value", "E017", what))
    elif name in (".", ".."):
        add(Finding("inventory-value", "E018", f"contentDirectory is {quoted(name)}; expected a directory name"))


def _explain_algorithm(document: Mapping[str, Any], add: Any) -> str | None:
    """Return the digest algorithm of the manifest, if OCFL allows it."""
    algorithm = document.get("digestAlgorithm")
    if algorithm in ALGORITHMS:
        add(Finding("inventory-advice", "W004", f"digestAlgorithm is {algorithm}; sha512 is recommended"))
        return str(algorithm)
    if "digestAlgorithm" in document:
        what = f"digestAlgorithm is {quoted_value(algorithm)}; expected sha512 or sha256"
        add(Finding("digest-algorithm", "E025", what))
    return None


@lru_cache(maxsize=64)
def usual_names(count: int) -> frozenset[str]:
    """Return the names of the first versions, without padding."""
    return frozenset(f"v{number}" for number in range(1, count + 1))


def _explain_version_names(document: Mapping[str, Any], add: Any) -> Mapping[str, Any]:
    """Check the names and sequence of the versions, and ``head``; return the versions."""
    versions: Any = document.get("versions", {})
    if not isinstance(versions, dict):
        add(Finding("inventory-value", "E044", "versions is not a JSON object"))
        return _NO_VERSIONS
    if "versions" in document and not versions:
        add(Finding("version-absent", "E008", "the inventory has no version"))
    numbers: dict[int, str] = {}
    paddings = set()
    for name in versions:
        parsed = version_number(name)
        if parsed is None:
            add(Finding("version-name", "E104", f"{quoted(name)} is not a version name such as v1"))
            continue
        numbers[parsed[0]] = name
        paddings.add(parsed[1])
    if len(paddings) > 1:
        add(Finding("version-name", "E012", "version names are not zero-padded to the same width"))
    elif paddings - {0}:
        add(Finding("inventory-advice", "W001", "version names should not be zero-padded"))
    for number in range(1, max(numbers, default=0)):
        if number not in numbers:
            code = "E009" if number == 1 else "E010"
            add(Finding("version-absent", code, f"version {number} is missing in the inventory"))
            break
    head = document.get("head")
    if "head" in document and numbers:
        newest = numbers[max(numbers)]
        if head != newest:
            what = f"head is {quoted_value(head)}; the newest version is {newest}"
            add(Finding("inventory-value", "E040", what, expected=newest, found=str(head)))
    return versions


# In place of versions that are not a JSON object.
_NO_VERSIONS: Mapping[str, Any] = {}


class _Digests(NamedTuple):
    """The digests of a manifest.

    :ivar known: themselves; :data:`None` if the manifest is not a JSON object
    :ivar are_plain: whether they are digests in lower case
    """

    known: Set[str] | None
    are_plain: bool


def _are_plain(block: Mapping[str, Any], algorithm: str | None) -> bool:
    """Return whether the keys of a block are digests in lower case: then none is there in upper case as well."""
    text = "".join(block)
    return (
        _LENGTHS.get(algorithm, _NO_LENGTH).issuperset(map(len, block))
        and text.isascii()
        and not text.encode().translate(None, b"0123456789abcdef")
    )


def _digests(block: Mapping[str, Any], algorithm: str | None, what: str, codes: tuple[str, str], add: Any) -> None:
    """Check the keys of a block that maps digests to paths."""
    if _are_plain(block, algorithm):
        return
    pattern = None if algorithm is None else _HEX.get(algorithm)
    seen = set()
    for digest in block:
        if pattern is not None and pattern.fullmatch(digest) is None:
            text = f"{what} has {quoted(digest)}, which is not a digest of {algorithm}"
            add(Finding("digest-malformed", codes[0], text, algorithm=algorithm, found=digest))
        folded = digest.lower()
        if folded in seen:
            text = f"{what} has the digest {quoted(digest, DIGEST_DIGITS)} in upper and lower case"
            add(Finding("digest-repeated", codes[1], text, algorithm=algorithm, found=digest))
        seen.add(folded)


def content_digests(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the digest of each content path in the manifest; none if a digest has no list of paths, or a path occurs
    twice.
    """
    manifest = document.get("manifest")
    if not isinstance(manifest, dict) or not _ARE_LISTS(map(type, lists := manifest.values())) or not all(lists):
        return {}
    try:
        contents = {path: digest for digest, paths in manifest.items() for path in paths}
    except TypeError:  # a path that is an object or a list
        return {}
    return contents if len(contents) == sum(map(len, lists)) else {}


def _paths(block: Mapping[str, Any]) -> Mapping[Any, None]:
    """Return the paths of a block; none if a digest has no list of paths, or a path occurs twice."""
    lists = block.values()
    if not _ARE_LISTS(map(type, lists)) or not all(lists):
        return {}
    try:
        paths = dict.fromkeys(chain.from_iterable(lists))
    except TypeError:  # a path that is an object or a list
        return {}
    return paths if len(paths) == sum(map(len, lists)) else {}


def _explain_manifest(
    document: Mapping[str, Any], algorithm: str | None, names: Collection[str], add: Any
) -> Collection[str]:
    """Check each digest and path of the manifest, and return the well-formed content paths."""
    manifest = document.get("manifest", {})
    if not isinstance(manifest, dict):
        add(Finding("inventory-value", "E106", "manifest is not a JSON object"))
        return ()
    _digests(manifest, algorithm, "the manifest", ("E025", "E096"), add)
    folder = content_directory(document)
    contents: set[str] = set()
    for digest, listed in manifest.items():
        if not isinstance(listed, list) or not listed:
            what = f"the manifest has no list of paths for the digest {quoted(digest, DIGEST_DIGITS)}"
            add(Finding("inventory-value", "E092", what))
            continue
        for path in listed:
            if (fault := path_fault(path)) is not None:
                slash = isinstance(path, str) and (path.startswith("/") or path.endswith("/"))
                add(Finding("path-malformed", "E100" if slash else "E099", f"manifest: {fault}"))
                continue
            if path in contents:
                add(Finding("path-repeated", "E101", f"the manifest has the path {quoted(path)} more than once"))
            contents.add(path)
            first, _, rest = path.partition("/")
            if first not in names or not rest.startswith(f"{folder}/"):
                add(_misplaced(path, folder))
    for path in path_conflicts(contents):
        add(Finding("path-conflict", "E101", f"the manifest has {quoted(path)} as a file and as a directory"))
    return contents


def _misplaced(path: str, folder: str) -> Finding:
    what = f"the manifest has the path {quoted(path)}, which is not in a version's {quoted(folder)}"
    return Finding("path-malformed", "E042", what)


def path_conflicts(paths: Iterable[str]) -> list[str]:
    """Return the paths that are also directories of other paths."""
    folders: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return sorted(folders.intersection(paths))


def _states(versions: Mapping[str, Any], algorithm: str | None, digests: _Digests, add: Any) -> set[str] | None:
    """Check every version's block, and return all digests that the states use."""
    used: set[str] = set()
    whole = versions is not _NO_VERSIONS
    for name, block in versions.items():
        if not isinstance(block, dict):
            add(Finding("inventory-value", "E047", f"the version {quoted(name)} is not a JSON object"))
            whole = False
            continue
        if not _has_usual_metadata(block):
            _explain_metadata(name, block, add)
        state = block.get("state")
        if isinstance(state, dict):
            used.update(state)
            _state(name, state, algorithm, digests, add)
            continue
        whole = False
        if "state" not in block:
            add(Finding("inventory-key-missing", "E048", f"the version {quoted(name)} has no state"))
        else:
            add(Finding("inventory-value", "E050", f"the state of the version {quoted(name)} is not a JSON object"))
    return used if whole else None


def _has_usual_metadata(block: Mapping[str, Any]) -> bool:
    """Return whether a version has a message, and a user with an address."""
    if block.keys() != _VERSION_KEYS or not isinstance(user := block["user"], dict) or user.keys() != _USER_KEYS:
        return False
    name, address = user["name"], user["address"]
    are_texts = isinstance(name, str) and isinstance(address, str) and isinstance(block["message"], str)
    return are_texts and name != "" and _is_known_uri(address) and is_date_time(block["created"])


def _explain_metadata(name: str, block: Mapping[str, Any], add: Any) -> None:
    for key in sorted(block.keys() - _VERSION_KEYS):
        what = f"the version {quoted(name)} has the unknown key {quoted(key)}"
        add(Finding("inventory-key-unknown", "E102", what))
    created = block.get("created")
    if "created" not in block:
        add(Finding("inventory-key-missing", "E048", f"the version {quoted(name)} has no creation date"))
    elif not is_date_time(created):
        what = (
            f"creation date of the version {quoted(name)} is {quoted_value(created)}; an RFC 3339 date and time is"
            " required"
        )
        add(Finding("inventory-value", "E049", what))
    if "message" not in block:
        add(_missing(name, "message"))
    elif not isinstance(block["message"], str):
        add(Finding("inventory-value", "E094", f"message of the version {quoted(name)} is not a string"))
    user = block.get("user")
    if "user" not in block:
        add(_missing(name, "user"))
    elif not isinstance(user, dict) or not isinstance(user.get("name"), str) or not user["name"]:
        what = f"user of the version {quoted(name)} is not an object with a name"
        add(Finding("inventory-value", "E054", what))
    else:
        for key in sorted(user.keys() - _USER_KEYS):
            what = f"user of the version {quoted(name)} has the unknown key {quoted(key)}"
            add(Finding("inventory-key-unknown", "E102", what))
        address = user.get("address", "")
        if "address" not in user:
            add(Finding("inventory-advice", "W008", f"user of the version {quoted(name)} has no address"))
        elif not isinstance(address, str):
            add(Finding("inventory-value", "E054", f"address of the user of {quoted(name)} is not a string"))
        elif not _is_known_uri(address):
            what = f"address of the user of {quoted(name)} is not a URI"
            add(Finding("inventory-advice", "W009", what))


# Usually the same for many objects.
@lru_cache(maxsize=64)
def _missing(name: str, key: str) -> Finding:
    return Finding("inventory-advice", "W007", f"the version {quoted(name)} has no {key}")


_is_known_uri = lru_cache(maxsize=64)(is_uri)


def is_date_time(value: Any) -> bool:
    """Return whether a value is a date and time of RFC 3339."""
    return isinstance(value, str) and _is_date_time(value)


@lru_cache(maxsize=256)  # many objects are stored in one second
def _is_date_time(text: str) -> bool:
    match = _CREATED.fullmatch(text)
    if match is None:
        return False
    try:
        date(*map(int, match.groups()[:3]))
    except ValueError:
        return False
    return True


def _state(name: str, state: Mapping[str, Any], algorithm: str | None, digests: _Digests, add: Any) -> None:
    is_known = digests.are_plain and digests.known is not None and state.keys() <= digests.known
    if not is_known:
        _digests(state, algorithm, f"the state of {quoted(name)}", ("E050", "E050"), add)
    logical: Collection[str] = _paths(state)
    try:
        # Each path between slashes: a malformed one has an element that is empty, '.' or '..'.
        joined = f"/{'/|/'.join(logical)}/"
    except TypeError:
        joined = "//"
    if not is_known or "//" in joined or "/./" in joined or "/../" in joined:
        logical = _explain_state(name, state, digests, add)
    elif joined.count("/") == 2 * len(logical):  # no path has a directory
        return
    for path in path_conflicts(logical):
        what = f"the state of {quoted(name)} has {quoted(path)} as a file and as a directory"
        add(Finding("path-conflict", "E095", what))


def _explain_state(name: str, state: Mapping[str, Any], digests: _Digests, add: Any) -> set[str]:
    """Check each digest and path of a state, and return the well-formed paths."""
    logical: set[str] = set()
    for digest, paths in state.items():
        if digests.known is not None and digest not in digests.known:
            what = f"the state of {quoted(name)} has the digest {quoted(digest, DIGEST_DIGITS)}, not in the manifest"
            add(Finding("digest-unknown", "E050", what, found=digest))
        if not isinstance(paths, list) or not paths:
            what = f"the state of {quoted(name)} has no list of paths for the digest {quoted(digest, DIGEST_DIGITS)}"
            add(Finding("inventory-value", "E050", what))
            continue
        for path in paths:
            if (fault := path_fault(path)) is not None:
                slash = isinstance(path, str) and (path.startswith("/") or path.endswith("/"))
                add(Finding("path-malformed", "E053" if slash else "E052", f"state of {quoted(name)}: {fault}"))
            elif path in logical:
                what = f"the state of {quoted(name)} has the path {quoted(path)} more than once"
                add(Finding("path-repeated", "E095", what))
            else:
                logical.add(path)
    return logical


def _fixity(fixity: Any, known: set[str], add: Any) -> None:
    """Check the fixity block.

    :param known: the content paths of the manifest
    """
    if not isinstance(fixity, dict):
        add(Finding("inventory-value", "E111", "fixity is not a JSON object"))
        return
    for algorithm, block in fixity.items():
        if algorithm not in _FIXITY:
            # A warning, because any extension may define more algorithms (section 3.5.4).
            what = f"fixity uses the algorithm {quoted(algorithm)}, which neither OCFL nor its extension 0009 defines"
            add(Finding("fixity-algorithm", "E056", what, algorithm=algorithm))
        if not isinstance(block, dict):
            add(Finding("inventory-value", "E057", f"fixity of {quoted(algorithm)} is not a JSON object"))
            continue
        _digests(block, algorithm, f"fixity of {quoted(algorithm)}", ("E057", "E097"), add)
        if (listed := _paths(block)) and known.issuperset(listed):
            continue
        for digest, paths in block.items():
            if not isinstance(paths, list) or not paths:
                what = (
                    f"fixity of {quoted(algorithm)} has no list of paths for the digest {quoted(digest, DIGEST_DIGITS)}"
                )
                add(Finding("inventory-value", "E057", what))
                continue
            for path in paths:
                if not isinstance(path, str) or path not in known:
                    what = f"fixity of {quoted(algorithm)} lists {quoted_value(path)}, which is not in the manifest"
                    add(Finding("path-unknown", "E057", what))
