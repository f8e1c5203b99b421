"""The kinds of stores: their classes, how a directory shows its kind, and how one is opened or made."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from typing import Any

from pressmark.errors import StoreError
from pressmark.layouts import Layout
from pressmark.layouts import layout as layout_by_name
from pressmark.stores.exceptions import store_errors
from pressmark.stores.store import Path, Store, encode_path

__all__ = ["CLASSES", "KINDS", "create", "kind_of", "open", "store_class"]

# Loaded when a store of the kind is opened, or the class asked for.
CLASSES = {
    "pairtree": ("pressmark.stores.pairtree.pairtree_store", "PairtreeStore"),
    "vitro": ("pressmark.stores.vitro.vitro_store", "VitroStore"),
    "ocfl": ("pressmark.stores.ocfl.root", "OcflRoot"),
    "bags": ("pressmark.stores.bags.bag_folder", "BagFolder"),
}
#: The kinds of stores.
KINDS = tuple(CLASSES)


def store_class(kind: str) -> type[Any]:
    """Return the class of the stores of a kind.

    :raises ValueError: there is no such kind
    """
    if kind not in CLASSES:
        raise ValueError(f"kind={kind!r}: expected one of {', '.join(KINDS)}")
    module, name = CLASSES[kind]
    found: type[Any] = getattr(importlib.import_module(module), name)
    return found


def kind_of(path: Path) -> str:
    """Find out which kind of store a directory is.

    A Pairtree has ``pairtree_root`` (or is it), a Vitro store ``file_storage_root``, an OCFL storage root the
    declaration ``0=ocfl_…``; a folder of bags has a bag in it, or was made as one.

    :raises StoreError: it is none of them, or several at once
    """
    given = encode_path(path)
    with store_errors(given):
        if not os.path.isdir(given):
            what = "it is not a directory" if os.path.lexists(given) else "it is not there"
            raise StoreError(given, f"{what}; name a store's directory")
        names = os.listdir(given)
    found = list(_signs(given, names))
    if len(found) > 1:
        raise StoreError(given, f"it has the signs of several kinds of store ({', '.join(found)}); say which is meant")
    if found:
        return found[0]
    for name in sorted(names):
        if os.path.isfile(os.path.join(given, name, b"bagit.txt")) or _is_serialized_bag(os.path.join(given, name)):
            return "bags"
    raise StoreError(
        given,
        "it is no store: there is no pairtree_root, no file_storage_root, no 0=ocfl_1.x and no bag in it; "
        "create one, or say which kind it is",
    )


def _is_serialized_bag(path: bytes) -> bool:
    from pressmark.stores.bags import archives

    return archives.stem(os.path.basename(path)) is not None and not archives.describe(path).problems


def _signs(given: bytes, names: list[bytes]) -> Iterator[str]:
    at_itself = os.path.basename(os.path.abspath(given))
    for kind, sign in (("pairtree", b"pairtree_root"), ("vitro", b"file_storage_root")):
        if sign in names or at_itself == sign:
            yield kind
    # A directory of an object has a declaration too, 0=ocfl_object_…
    if any(name.startswith(b"0=ocfl_") and not name.startswith(b"0=ocfl_object") for name in names):
        yield "ocfl"
    # An empty folder of bags says so, where it was made for that.
    if b".pressmark-bags.json" in names:
        yield "bags"


def open(path: Path, kind: str | None = None, **options: Any) -> Store:
    """Open a store.

    :param path: its directory
    :param kind: one of :data:`KINDS`; :data:`None` to find out
    :param options: of the kind's class; ``layout`` may be a name
    :raises StoreError: it is no store, or none of that kind, or cannot be read
    :raises ValueError: there is no such kind
    :raises LayoutConfigError: there is no layout of that name
    """
    if isinstance(options.get("layout"), str):
        options["layout"] = layout_by_name(options["layout"])
    store: Store = store_class(kind or kind_of(path))(path, **options)
    return store


def create(kind: str, path: Path, layout: Layout | str | None = None, **options: Any) -> Store:
    """Make an empty store, and open it.

    :param kind: one of :data:`KINDS`
    :param path: a directory that is empty or not there
    :param layout: how identifiers are mapped, where the kind leaves a choice: a layout, or the name of one; an OCFL
        storage root needs one
    :param options: of the kind's class
    :raises StoreError: there is something in the directory, or it cannot be written, or a layout is missing
    :raises ValueError: there is no such kind
    :raises LayoutConfigError: there is no layout of that name
    """
    if isinstance(layout, str):
        layout = layout_by_name(layout)
    kind_class = store_class(kind)
    given = encode_path(path)
    if os.path.lexists(given) and not os.path.isdir(given):
        raise StoreError(given, "it is not a directory; name a directory that is empty or not there")
    made: Store = kind_class.create(path, layout, **options)
    return made
