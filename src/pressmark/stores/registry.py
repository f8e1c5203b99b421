"""The kinds of stores: their classes, detection, opening and creation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, overload

from pressmark.buckets.address import is_address
from pressmark.errors import StoreError
from pressmark.layouts import Layout
from pressmark.option_names import option
from pressmark.stores.exceptions import store_errors
from pressmark.stores.objects import Path, encode_path
from pressmark.stores.store import Store

if TYPE_CHECKING:
    from pressmark.stores.bags.bag_folder import BagFolder
    from pressmark.stores.ocfl.root import OcflRoot
    from pressmark.stores.pairtree.pairtree_store import PairtreeStore
    from pressmark.stores.vitro.vitro_store import VitroStore

__all__ = ["KINDS", "create", "detect_kind", "is_object", "kind_of", "names_at", "open", "store_class"]

#: The kinds of stores: ``pairtree``, ``vitro``, ``ocfl``, ``bags``.
KINDS = ("pairtree", "vitro", "ocfl", "bags")
# Names that one request lists.
_PAGE = 1000


def store_class(kind: str) -> type[Any]:
    """Return the class of the stores of a kind, which is imported on first use.

    :raises ValueError: unknown kind
    """
    if kind == "pairtree":
        from pressmark.stores.pairtree.pairtree_store import PairtreeStore

        return PairtreeStore
    if kind == "vitro":
        from pressmark.stores.vitro.vitro_store import VitroStore

        return VitroStore
    if kind == "ocfl":
        from pressmark.stores.ocfl.root import OcflRoot

        return OcflRoot
    if kind == "bags":
        from pressmark.stores.bags.bag_folder import BagFolder

        return BagFolder
    raise ValueError(f"kind={kind!r}: expected one of {', '.join(KINDS)}")


def is_object(path: Path) -> bool:
    """Return whether there is an OCFL object at a path, or at an address in object storage.

    :raises StoreError: the bucket cannot be read
    """
    base = encode_path(path, remote=True)
    if not is_address(base):
        return any(os.path.isfile(os.path.join(base, name)) for name in _OBJECTS)
    from pressmark.buckets.address import open_bucket

    with store_errors(base):
        bucket, prefix = open_bucket(base)
        return bool(prefix) and bool(bucket.list(prefix + b"0=ocfl_object_", limit=1).keys)


def kind_of(path: Path) -> str:
    """Detect the kind of store in a directory, or at an address in object storage.

    A Pairtree contains ``pairtree_root`` (or is that directory), a Vitro store ``file_storage_root``, an OCFL storage
    root the declaration ``0=ocfl_…``; a folder of bags contains a bag, or was created as one.

    :raises StoreError: no kind was detected, or several
    """
    return detect_kind(path, "kind")


def detect_kind(path: Path, keyword: str | None) -> str:
    """Return the kind of a store: see :func:`kind_of`.

    :param keyword: which specifies the kind, for errors; :data:`None` if the caller has none
    """
    base = encode_path(path, remote=True)
    with store_errors(base):
        if is_address(base):
            return _kind_at(base, keyword)
        if not os.path.isdir(base):
            what = "not a directory" if os.path.lexists(base) else "No such file or directory"
            raise StoreError(base, f"{what}; specify the directory of a store")
        if (marked := _marked(base)) is not None:
            return marked
        names = os.listdir(base)
    if kind := _only_kind(base, names, keyword):
        return kind
    if b"bagit.txt" in names:
        raise StoreError(base, "a bag, not a store; use pressmark bag, or specify the directory that contains it")
    if any(name.startswith(b"0=ocfl_object") for name in names):
        raise StoreError(base, "an OCFL object; specify the storage root that contains it")
    for name in sorted(names):
        if os.path.isfile(os.path.join(base, name, b"bagit.txt")) or _is_serialized_bag(os.path.join(base, name)):
            return "bags"
    what = "not a store: no pairtree_root, file_storage_root, 0=ocfl_1.x or bag found"
    advice = f"create a store, or specify the kind ({option(keyword)})" if keyword else "specify the directory of one"
    raise StoreError(base, f"{what}; {advice}")


def names_at(address: bytes) -> list[bytes]:
    """Return the names at an address, as those in a directory; of very many the first, and those that show a kind."""
    from pressmark.buckets.address import open_bucket
    from pressmark.buckets.remote_directory import RemoteDirectory

    found = RemoteDirectory(*open_bucket(address))
    names = [entry.name for entry in islice(found.entries(b""), _PAGE)]
    if len(names) == _PAGE:  # a root with many objects, or a tree with many files beside it
        names += [name for name in (b"pairtree_root", b"file_storage_root") if found.is_directory(name)]
    return [name for name in names if name]


def _kind_at(address: bytes, keyword: str | None) -> str:
    """Return the kind of the store at an address; if there is none, that of a storage root: opening it says so."""
    if (kind := _only_kind(address, names_at(address), keyword)) is not None:
        return kind
    from pressmark.stores.bags.remote_walk import contains_bags

    return "bags" if contains_bags(address) else "ocfl"


def _only_kind(base: bytes, names: list[bytes], keyword: str | None) -> str | None:
    """Return the kind that names in a directory show; :data:`None` if they show none.

    :raises StoreError: they show several kinds
    """
    kinds = list(dict.fromkeys(_signs(base, names)))
    if len(kinds) > 1:
        what = f"several kinds of store detected ({', '.join(kinds)})"
        advice = f"specify the kind ({option(keyword)})" if keyword else "specify a directory with one"
        raise StoreError(base, f"{what}; {advice}")
    return kinds[0] if kinds else None


def _is_serialized_bag(path: bytes) -> bool:
    from pressmark.stores.bags import archives

    return archives.stem(os.path.basename(path)) is not None and not archives.describe(path).problems


# The declarations of an OCFL object.
_OBJECTS = (b"0=ocfl_object_1.1", b"0=ocfl_object_1.0")
# Files and directories that show the kind of a store.
_MARKS = {
    "pairtree": (b"pairtree_root",),
    "vitro": (b"file_storage_root",),
    "ocfl": (b"0=ocfl_1.1", b"0=ocfl_1.0"),
    "bags": (b".pressmark-bags.json", b".pressmark-work/index"),
}


def _marked(base: bytes) -> str | None:
    """Return the kind of a store whose objects may be beside its marks, without listing it: it may have many objects.

    :return: :data:`None` if the kind needs a closer look
    """
    if os.path.basename(os.path.abspath(base)) in (b"pairtree_root", b"file_storage_root"):
        return None
    kinds = [kind for kind, names in _MARKS.items() if any(os.path.lexists(os.path.join(base, name)) for name in names)]
    return kinds[0] if kinds in (["ocfl"], ["bags"]) else None


def _signs(base: bytes, names: list[bytes]) -> Iterator[str]:
    at_itself = os.path.basename(os.path.abspath(base))
    for kind, sign in (("pairtree", b"pairtree_root"), ("vitro", b"file_storage_root")):
        if sign in names or at_itself == sign:
            yield kind
    # The declaration of an object is 0=ocfl_object_…
    if any(name.startswith(b"0=ocfl_") and not name.startswith(b"0=ocfl_object") for name in names):
        yield "ocfl"
    # Marks a folder of bags that was created as one.
    if b".pressmark-bags.json" in names:
        yield "bags"


@overload
def open(path: Path, kind: Literal["pairtree"]) -> PairtreeStore: ...


@overload
def open(path: Path, kind: Literal["vitro"]) -> VitroStore: ...


@overload
def open(path: Path, kind: Literal["ocfl"]) -> OcflRoot: ...


@overload
def open(path: Path, kind: Literal["bags"]) -> BagFolder: ...


@overload
def open(path: Path, kind: str | None = None) -> Store: ...


def open(path: Path, kind: str | None = None) -> Store:
    """Open a store with the default options of its class; call the class for others: ``OcflRoot(path, user=…)``.

    :param path: directory of the store, or its address in object storage, such as ``s3://bucket/prefix``, where
        Pairtrees, Vitro stores and folders of bags are read-only
    :param kind: one of :data:`KINDS`; :data:`None` to detect it
    :raises StoreError: not a store, not one of that kind, or not readable
    :raises ValueError: unknown kind
    """
    store: Store = store_class(kind or kind_of(path))(path)
    return store


@overload
def create(kind: Literal["pairtree"], path: Path, layout: Layout | str | None = None) -> PairtreeStore: ...


@overload
def create(kind: Literal["vitro"], path: Path, layout: Layout | str | None = None) -> VitroStore: ...


@overload
def create(kind: Literal["ocfl"], path: Path, layout: Layout | str) -> OcflRoot: ...


@overload
def create(kind: Literal["bags"], path: Path, layout: Layout | str | None = None) -> BagFolder: ...


@overload
def create(kind: str, path: Path, layout: Layout | str | None = None) -> Store: ...


def create(kind: str, path: Path, layout: Layout | str | None = None) -> Store:
    """Create an empty store, and open it; ``create`` of the class has more options, such as ``OcflRoot.create(…)``.

    :param kind: one of :data:`KINDS`
    :param path: a directory that is empty or does not exist; missing directories above it are created
    :param layout: a layout or its name; required for an OCFL storage root
    :raises StoreError: the directory is not empty or cannot be written, or the kind has another layout
    :raises TypeError: an OCFL storage root without a layout
    :raises ValueError: unknown kind
    :raises LayoutConfigError: unknown layout
    """
    store: Store = store_class(kind).create(path, layout)
    return store
