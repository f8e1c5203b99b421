"""What an OCFL storage root says of itself: its declaration, ``ocfl_layout.json`` and the layout's configuration.

Sections 4.1, 4.2 and 4.4 of the specification, and the storage hierarchies of the layouts' extensions.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from pressmark.errors import LayoutConfigError, StoreError, quoted, quoted_value
from pressmark.fs.atomic import replace_file
from pressmark.fs.durable import flush_tree
from pressmark.fs.entries import DirectoryEntry, scan
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.layouts import Layout, layout_from_config, list_layouts
from pressmark.reports import Problem
from pressmark.stores.ocfl.declarations import EXTENSIONS, ROOT, VERSIONS, declaration, read_declaration
from pressmark.stores.ocfl.inventory import inventory_bytes
from pressmark.stores.ocfl.object_writer import write_extension
from pressmark.stores.ocfl.storage import Storage
from pressmark.stores.problems import problem

__all__ = ["LAYOUT", "REGISTERED", "WORKSHOP", "RootFacts", "create_root", "layout_file", "read_root", "refused_layout"]

LAYOUT = b"ocfl_layout.json"
#: Where objects are prepared, below :data:`EXTENSIONS`: an extension may keep what it likes there.
WORKSHOP = b"pressmark-staging"
_CONFIG = b"config.json"
# What the declaration is written as, so that it is never there in part.
_NEW = b"declaration.pressmark-new"
#: The names of the extensions in https://ocfl.github.io/extensions/ (sections 3.9 and 4.4).
REGISTERED = frozenset(
    {
        "0000-example-extension",
        "0001-digest-algorithms",
        "0002-flat-direct-storage-layout",
        "0003-hash-and-id-n-tuple-storage-layout",
        "0004-hashed-n-tuple-storage-layout",
        "0005-mutable-head",
        "0006-flat-omit-prefix-storage-layout",
        "0007-n-tuple-omit-prefix-storage-layout",
        "0008-schema-registry",
        "0009-digest-algorithms",
        "0010-differential-n-tuple-omit-prefix-storage-layout",
        "0011-direct-clean-path-layout",
        "0012-hash-and-no-prefix-id-n-tuple-storage-layout",
        "initial",
    }
)
# A configuration is a few hundred bytes; nothing sensible is larger.
_LARGEST = 1 << 20


class RootFacts(NamedTuple):
    """What a storage root says of itself.

    :ivar version: of OCFL; :data:`None` where none is declared
    :ivar layout: that places the objects; :data:`None` where none is known
    :ivar why_no_layout: one line, empty where there is one
    :ivar problems: with paths relative to the root
    """

    version: str | None
    layout: Layout | None
    why_no_layout: str
    problems: list[Problem]


def refused_layout(layout: Layout, version: str) -> str | None:
    """Return why a layout cannot place the objects of a storage root, :data:`None` where it can."""
    if layout.alias is None:
        known = ", ".join(one.alias for one in list_layouts() if one.alias)
        return f"{layout.name} is no layout of OCFL; take one of {known}"
    if layout.name.startswith("0010") and version == "1.0":
        return f"{layout.name} needs OCFL 1.1"
    return None


def layout_file(layout: Layout, description: str | None = None) -> bytes:
    """Return the content of ``ocfl_layout.json``."""
    summary = layout.summary
    return inventory_bytes(
        {"extension": layout.name, "description": description or f"{summary[:1].upper()}{summary[1:]}"}
    )


def create_root(root: bytes, layout: Layout, version: str, description: str | None = None) -> None:
    """Make a storage root in a directory that is not there, or is empty; its declaration is written last.

    :raises StoreError: it is there and not empty, or the layout cannot be used
    :raises OSError: it cannot be written
    """
    if version not in VERSIONS:
        raise StoreError(root, f"OCFL {quoted_value(version)} is not known; take one of {', '.join(VERSIONS)}")
    why = refused_layout(layout, version)
    if why is not None:
        raise StoreError(root, why)
    try:
        os.makedirs(root)
    except FileExistsError:
        _clear_unfinished(root)
    if layout.parameters():  # ocfl-py 2.1.0 stops at a configuration of 0002, which has nothing to configure
        write_extension(root, layout)
    part = os.path.join(root, _NEW)
    replace_file(os.path.join(root, LAYOUT), layout_file(layout, description), part=part)
    flush_tree(root)
    name, content = declaration(ROOT, version)
    replace_file(os.path.join(root, name), content, part=part)


def _clear_unfinished(root: bytes) -> None:
    """Remove what a killed creation has left, which has no declaration yet.

    :raises StoreError: there is something else
    """
    try:
        entries = scan(root, follow=False)
    except NotADirectoryError:
        raise StoreError(root, "it is no directory") from None
    folders = []
    if any(entry.name == EXTENSIONS and entry.kind == "directory" for entry in entries):
        folders = [os.path.join(EXTENSIONS, entry.name) for entry in scan(os.path.join(root, EXTENSIONS), follow=False)]
    known = {os.fsencode(one.name) for one in list_layouts()} if folders else set()
    configs = [os.path.join(folder, _CONFIG) for folder in folders if os.path.basename(folder) in known]
    foreign = [entry.name for entry in entries if entry.name not in (LAYOUT, _NEW, EXTENSIONS)]
    foreign += [folder for folder in folders if os.path.join(folder, _CONFIG) not in configs]
    if foreign:
        raise StoreError(root, f"it is there and holds {quoted(foreign[0])}; name a new directory, or an empty one")
    for name in (*configs, LAYOUT, _NEW):
        if os.path.lexists(os.path.join(root, name)):
            os.unlink(os.path.join(root, name))
    for name in (*folders, EXTENSIONS):
        if os.path.isdir(os.path.join(root, name)):
            os.rmdir(os.path.join(root, name))


def read_root(storage: Storage) -> RootFacts:
    """Return what a storage root says of itself, and what is wrong with that.

    :raises OSError: it cannot be read
    """
    entries = storage.scan(b"")
    files = [entry.name for entry in entries if entry.kind == "file"]
    version, problems = read_declaration(storage, b"", ROOT, files)
    if version is None:
        names = " or ".join(os.fsdecode(declaration(ROOT, one)[0]) for one in VERSIONS)
        problems.append(problem("declaration-missing", b"", f"the storage root has no declaration; restore {names}"))
    layout: Layout | None = None
    if LAYOUT not in files:
        why = f"it has no {os.fsdecode(LAYOUT)}, which says where objects belong"
        problems.append(problem("layout-missing", LAYOUT))
    else:
        layout, why, found = _layout(storage, version)
        problems += found
    problems += _extensions(storage, entries)
    return RootFacts(version, layout, why, problems)


def _layout(storage: Storage, version: str | None) -> tuple[Layout | None, str, list[Problem]]:
    try:
        document = _read_json(storage, LAYOUT)
    except _NotJson as error:
        return None, f"{os.fsdecode(LAYOUT)}: {error}", [problem("layout-malformed", LAYOUT, str(error))]
    problems = [
        problem("layout-malformed", LAYOUT, f"{key} is required, a text")
        for key in ("extension", "description")
        if not isinstance(document.get(key), str)
    ]
    name = document.get("extension")
    if not isinstance(name, str):
        return None, f"{os.fsdecode(LAYOUT)} names no extension", problems
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        why = f"{os.fsdecode(LAYOUT)} names {quoted(name)}, which is no extension"
        return None, why, [*problems, problem("layout-unknown", LAYOUT, why)]
    path = os.path.join(EXTENSIONS, encode_fs(name), _CONFIG)
    config: dict[str, Any] = {"extensionName": name}
    try:
        if storage.exists(path):
            config = _read_json(storage, path)
            if config.setdefault("extensionName", name) != name:
                raise LayoutConfigError(
                    "extensionName", f"{quoted_value(config['extensionName'])} is not {quoted(name)}"
                )
        layout = layout_from_config(config)
    except OSError as error:
        # Without its configuration, the layout would give other paths.
        why = f"{os.fsdecode(path)} cannot be read: {error.strerror}"
        return None, why, [*problems, problem("layout-unknown", path, f"{why} (E071)")]
    except (_NotJson, LayoutConfigError) as error:
        known = "unknown layout" in str(error)
        where = LAYOUT if known else path
        why = f"{os.fsdecode(LAYOUT)} names {quoted(name)}: {error}"
        return None, why, [*problems, problem("layout-unknown", where, str(error))]
    refused = refused_layout(layout, version or VERSIONS[0])
    if refused is not None:
        return None, refused, [*problems, problem("layout-unknown", LAYOUT, refused)]
    return layout, "", problems


class _NotJson(Exception):
    """A file that should hold a JSON object does not."""


def _read_json(storage: Storage, path: bytes) -> dict[str, Any]:
    name = os.fsdecode(os.path.basename(path))
    try:
        document = json.loads(storage.read(path, _LARGEST).decode())
    except OSError as error:
        raise _NotJson(f"{name} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise _NotJson(f"{name} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise _NotJson(f"{name} is not a JSON object")
    return document


def _extensions(storage: Storage, entries: Sequence[DirectoryEntry]) -> list[Problem]:
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
            code = None if entry.is_link else "E112"
            found.append(problem("symbolic-link" if entry.is_link else "extensions-file", path, code=code))
        # Ours is there for as long as a run lasts; what a killed run leaves in it is reported as such.
        elif entry.name != WORKSHOP and decode_fs(entry.name) not in REGISTERED:
            what = f"{os.fsdecode(entry.name)!r} is not the name of a registered extension"
            found.append(problem("extension-unregistered", path, what, code="W016"))
    return found
