"""The names that OCFL reserves, and the files in which a storage root and its objects declare what they are.

Conformance declarations: sections 3.2 and 4.2; an object's root: 3.1; ``ocfl_layout.json`` and extensions: 4.1, 4.4.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from pressmark.errors import LayoutConfigError, StoreError, quoted, quoted_path, quoted_value
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.fs.trees import DirectoryEntry
from pressmark.layouts import Layout, find_built_in, layout_from_config, list_layouts
from pressmark.reports import Problem
from pressmark.stores.ocfl.inventory import ALGORITHMS, inventory_bytes, inventory_type, sidecar_name
from pressmark.stores.ocfl.storage import Reader, Storage, status_or_none
from pressmark.stores.problems import code_in, problem

__all__ = [
    *("CONFIG", "EXTENSIONS", "LAYOUT", "LOGS", "MUTABLE_HEAD", "NEW", "OBJECT", "ROOT", "UNFINISHED", "VERSIONS"),
    *("WORK_DIRECTORY", "NotJsonError", "RootFacts", "create_root", "declaration", "declaration_of", "declares_object"),
    *("extension_files", "has_mutable_head", "is_object_directory", "is_object_name", "is_object_root"),
    *(
        "is_registered",
        "is_version_name",
        "later",
        "layout_file",
        "open_root",
        "outdated_names",
        "read_declaration",
        "read_json",
        "read_root",
    ),
    *("refused_layout",),
]

#: The supported versions of OCFL, the newest first.
VERSIONS = ("1.1", "1.0")
ROOT, OBJECT = b"0=ocfl_", b"0=ocfl_object_"
EXTENSIONS, LOGS = b"extensions", b"logs"
#: Where the Mutable HEAD extension stages the next version, relative to the object's root.
MUTABLE_HEAD = EXTENSIONS + b"/0005-mutable-head"
_SIDECAR = re.compile(rb"inventory\.json\.[A-Za-z0-9_\-]+")
_VERSION = re.compile(rb"v[0-9]+")
# Declarations are a dozen bytes; a larger file is not read to its end.
_ENOUGH = 100
_CODES = {ROOT: ("E076", "E079", "E080"), OBJECT: ("E003", "E006", "E007")}
LAYOUT = b"ocfl_layout.json"
#: Where changes are staged, below :data:`EXTENSIONS`.
WORK_DIRECTORY = b"pressmark-staging"
#: The configuration of an extension, in its directory.
CONFIG = b"config.json"
#: The temporary name of a file of a root on a disk.
NEW = b"declaration.pressmark-new"
#: The names in a root while it is created, before its declaration.
UNFINISHED = frozenset({EXTENSIONS, LAYOUT, NEW})
# The names of the extensions in https://ocfl.github.io/extensions/ that are not layouts.
_NOT_LAYOUTS = frozenset(
    {
        "0000-example-extension",
        "0001-digest-algorithms",
        "0005-mutable-head",
        "0008-schema-registry",
        "0009-digest-algorithms",
        "initial",
    }
)
# A configuration has a few hundred bytes.
_LARGEST = 1 << 20


def declaration(prefix: bytes, version: str) -> tuple[bytes, bytes]:
    """Return name and content of a declaration.

    >>> declaration(OBJECT, "1.1")
    (b'0=ocfl_object_1.1', b'ocfl_object_1.1\\n')
    """
    name = prefix + version.encode()
    return name, name[2:] + b"\n"


def declaration_of(document: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """Return name and content of the declaration of the object with a valid inventory."""
    return declaration(OBJECT, next(one for one in VERSIONS if inventory_type(one) == document["type"]))


def outdated_names(sidecar: bytes, declared: bytes) -> list[bytes]:
    """Return the names that the sidecar and the declaration of an object can have had before.

    :param sidecar: name of the sidecar
    :param declared: name of the declaration
    """
    sidecars = [encode_fs(sidecar_name(algorithm)) for algorithm in ALGORITHMS]
    names = [*sidecars, *(declaration(OBJECT, version)[0] for version in VERSIONS)]
    return [name for name in names if name not in (sidecar, declared)]


def is_registered(extension: str) -> bool:
    """Return whether https://ocfl.github.io/extensions/ has an extension (sections 3.9 and 4.4)."""
    layout = find_built_in(extension)
    return extension in _NOT_LAYOUTS or (layout is not None and layout.alias is not None and layout.name == extension)


# Paths in a directory that show an object.
_SIGNS = (b"/inventory.json", *(b"/" + declaration(OBJECT, version)[0] for version in VERSIONS))


def later(version: str, than: str) -> bool:
    """Return whether an OCFL version is later than another."""
    return tuple(map(int, version.split("."))) > tuple(map(int, than.split(".")))


def read_declaration(
    storage: Reader, directory: bytes, prefix: bytes, names: Iterable[bytes]
) -> tuple[str | None, list[Problem]]:
    """Return the version that a directory declares, and the problems of its declarations.

    :param directory: the directory
    :param names: names of all files in it
    :return: the version is :data:`None` if no supported one is declared
    """
    several, unknown, malformed = _CODES[prefix]
    problems = []
    found = sorted(name for name in names if name.startswith(b"0="))
    known = [version for version in VERSIONS if declaration(prefix, version)[0] in found]
    for name in found:
        path = os.path.join(directory, name)
        if name not in {declaration(prefix, version)[0] for version in known}:
            what = f"{quoted_path(name)} is not a known declaration"
            problems.append(problem("declaration-unknown", path, what, code=unknown))
            continue
        try:
            content = storage.read(path, _ENOUGH)
        except OSError as error:
            problems.append(problem("unreadable", path, error.strerror or str(error)))
            continue
        if content != name[2:] + b"\n":
            what = f"the declaration's content is not {name[2:].decode()!r} and a line feed"
            problems.append(
                problem("declaration-malformed", path, what, code=malformed, found=repr(content)[1:].strip("'"))
            )
    if len(found) > 1:
        what = f"more than one declaration: {', '.join(map(os.fsdecode, found))}"
        problems.append(problem("declaration-several", directory, what, code=several))
    return (known[0] if known else None), problems


def is_version_name(name: bytes) -> bool:
    """Return whether a directory of an object has the name of a version (section 3.3)."""
    return _VERSION.fullmatch(name) is not None


def is_object_directory(name: bytes) -> bool:
    """Return whether OCFL defines this name of a directory in an object's root (section 3.1)."""
    return name in (EXTENSIONS, LOGS) or is_version_name(name)


def is_object_root(entries: Sequence[DirectoryEntry]) -> bool:
    """Return whether a directory with these entries declares itself to be an object's root."""
    return any(entry.name.startswith(OBJECT) and entry.kind == "file" for entry in entries)


def is_object_name(entry: DirectoryEntry) -> bool:
    """Return whether OCFL defines this name in an object's root (section 3.1)."""
    if entry.kind == "directory":
        return is_object_directory(entry.name)
    name = entry.name
    return entry.kind == "file" and (
        name == b"inventory.json" or name.startswith(b"0=") or _SIDECAR.fullmatch(name) is not None
    )


def declares_object(storage: Storage, path: bytes) -> bool:
    """Return whether a directory is an object's, or declares to be one.

    :raises OSError: this cannot be determined
    """
    # By name, because directories above objects may have thousands of entries.
    return any(storage.exists(path + sign) for sign in _SIGNS)


def has_mutable_head(storage: Storage, path: bytes) -> bool:
    """Return whether the object at ``path`` has content staged for its next version (extension 0005)."""
    return storage.exists(os.path.join(path, MUTABLE_HEAD))


# --- the files of a storage root -------------------------------------------------------------------------------------


class RootFacts(NamedTuple):
    """The declarations in the files of a storage root.

    :ivar version: version of OCFL; :data:`None` if no supported one is declared
    :ivar layout: places the objects; :data:`None` if unknown
    :ivar why_no_layout: the reason on one line; empty if there is a layout
    :ivar problems: problems with paths relative to the root
    """

    version: str | None
    layout: Layout | None
    why_no_layout: str
    problems: list[Problem]


def refused_layout(layout: Layout, version: str) -> str | None:
    """Return why a layout cannot place the objects of a storage root; :data:`None` if it can."""
    if layout.alias is None:
        known = ", ".join(one.alias for one in list_layouts() if one.alias)
        return f"{layout.name} is not an OCFL layout; use one of {known}"
    if layout.alias == "0010" and version == "1.0":
        return f"{layout.name} needs OCFL 1.1"
    return None


def layout_file(layout: Layout, description: str | None = None) -> bytes:
    """Return the content of ``ocfl_layout.json``."""
    summary = layout.summary
    return inventory_bytes(
        {"extension": layout.name, "description": description or f"{summary[:1].upper()}{summary[1:]}"}
    )


def create_root(storage: Storage, root: bytes, layout: Layout, version: str, description: str | None = None) -> None:
    """Create a storage root in a place that is empty or does not exist; the declaration is written last.

    :param root: for messages
    :raises StoreError: the place is not empty, or the layout cannot be used
    :raises OSError: the root cannot be written
    """
    if version not in VERSIONS:
        raise StoreError(root, f"OCFL {quoted_value(version)} is not supported; use one of {', '.join(VERSIONS)}")
    why = refused_layout(layout, version)
    if why is not None:
        raise StoreError(root, why)
    # ocfl-py 2.1.0 rejects a configuration of 0002, which has no parameters
    files = extension_files(layout) if layout.parameters() else {}
    storage.create({**files, LAYOUT: layout_file(layout, description)}, *declaration(ROOT, version))


def extension_files(layout: Layout) -> dict[bytes, bytes | None]:
    """Return the configuration of an extension, with all parameters: the file, after the directories above it."""
    folder = os.path.join(EXTENSIONS, encode_fs(layout.name))
    return {EXTENSIONS: None, folder: None, os.path.join(folder, CONFIG): inventory_bytes(layout.config())}


def read_root(storage: Storage) -> RootFacts:
    """Return the declarations of a storage root, and its problems.

    :raises OSError: the root cannot be read
    """
    entries = storage.scan(b"")
    files = [entry.name for entry in entries if entry.kind == "file"]
    version, problems = read_declaration(storage, b"", ROOT, files)
    if version is None:
        names = " or ".join(os.fsdecode(declaration(ROOT, one)[0]) for one in VERSIONS)
        problems.append(problem("declaration-missing", b"", f"no declaration; restore {names}"))
    layout: Layout | None = None
    if LAYOUT not in files:
        why = f"no {os.fsdecode(LAYOUT)}"
        problems.append(problem("layout-missing", LAYOUT))
    else:
        layout, why, found = _layout(storage, version)
        problems += found
    problems += _extensions(storage, entries, version)
    return RootFacts(version, layout, why, problems)


def open_root(storage: Storage) -> RootFacts:
    """Return the declarations of a storage root, like :func:`read_root`, but without collecting all problems.

    The root is not listed: it may have many directories.

    :raises OSError: the root cannot be read
    """
    names = [declaration(ROOT, version)[0] for version in VERSIONS]
    files = [name for name in (*names, LAYOUT) if _is_file(storage, name)]
    version, problems = read_declaration(storage, b"", ROOT, files)
    if version is None or LAYOUT not in files:
        return read_root(storage)
    layout, why, found = _layout(storage, version)
    return RootFacts(version, layout, why, [*problems, *found])


def _is_file(storage: Storage, name: bytes) -> bool:
    status = status_or_none(storage, name)
    return status is not None and stat.S_ISREG(status.st_mode)


def _layout(storage: Storage, version: str | None) -> tuple[Layout | None, str, list[Problem]]:
    try:
        document = read_json(storage, LAYOUT)
    except (NotJsonError, FileNotFoundError) as error:  # removed since it was found
        return None, f"{os.fsdecode(LAYOUT)}: {error}", [problem("layout-malformed", LAYOUT, str(error))]
    problems = [
        problem("layout-malformed", LAYOUT, f"{key} is missing or not a string")
        for key in ("extension", "description")
        if not isinstance(document.get(key), str)
    ]
    name = document.get("extension")
    if not isinstance(name, str):
        return None, f"{os.fsdecode(LAYOUT)} does not specify an extension", problems
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        why = f"{os.fsdecode(LAYOUT)} names {quoted(name)}, which is not a valid extension name"
        return None, why, [*problems, problem("layout-unknown", LAYOUT, why)]
    path = os.path.join(EXTENSIONS, encode_fs(name), CONFIG)
    config: dict[str, Any] = {"extensionName": name}
    try:
        with suppress(FileNotFoundError, NotADirectoryError):
            config = read_json(storage, path)
            if config.setdefault("extensionName", name) != name:
                raise LayoutConfigError(
                    "extensionName", f"{quoted_value(config['extensionName'])} is not {quoted(name)}"
                )
        layout = layout_from_config(config)
    except (NotJsonError, LayoutConfigError) as error:
        known = "unknown layout" in str(error)
        where = LAYOUT if known else path
        why = f"{os.fsdecode(LAYOUT)} names {quoted(name)}: {error}"
        return None, why, [*problems, problem("layout-unknown", where, str(error))]
    refused = refused_layout(layout, version or VERSIONS[0])
    if refused is not None:
        return None, refused, [*problems, problem("layout-unknown", LAYOUT, refused)]
    if name == layout.alias:
        what = f"{quoted(name)} is not the registered name of an extension; write {quoted(layout.name)}"
        problems.append(problem("layout-unknown", LAYOUT, what))
    return layout, "", problems


class NotJsonError(Exception):
    """A file that does not contain a JSON object."""


def read_json(storage: Storage, path: bytes) -> dict[str, Any]:
    """Return the content of a small file.

    :raises NotJsonError: it is not a JSON object, or cannot be read
    :raises FileNotFoundError: it does not exist, like :exc:`NotADirectoryError`
    """
    name = os.fsdecode(os.path.basename(path))
    try:
        document = json.loads(storage.read(path, _LARGEST).decode())
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise NotJsonError(f"{name} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise NotJsonError(f"{name} is not valid JSON: {error}") from None
    if not isinstance(document, dict):
        raise NotJsonError(f"{name} is not a JSON object")
    return document


def _extensions(storage: Storage, entries: Sequence[DirectoryEntry], version: str | None) -> list[Problem]:
    if not any(entry.name == EXTENSIONS and entry.kind == "directory" for entry in entries):
        return []
    try:
        inside = storage.scan(EXTENSIONS)
    except OSError as error:
        return [problem("unreadable", EXTENSIONS, error.strerror or str(error))]
    found = [] if inside else [problem("directory-empty", EXTENSIONS)]
    for entry in inside:
        path = EXTENSIONS + b"/" + entry.name
        if entry.kind != "directory":
            code = None if entry.is_link else code_in(version, "E112")
            found.append(problem("symbolic-link" if entry.is_link else "extensions-file", path, code=code))
        # Leftovers in our own directory are reported as such.
        elif entry.name != WORK_DIRECTORY and not is_registered(decode_fs(entry.name)):
            what = f"{quoted_path(entry.name)} is not the name of a registered extension"
            found.append(problem("extension-unregistered", path, what, code="W016"))
    return found
