"""Whether an object that exists already is equal to the source of a put: then nothing has to be stored."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

from pressmark.buckets.address import absolute
from pressmark.errors import PressmarkError, is_store_wide
from pressmark.fixity.outcomes import Readable
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.stores.object_sources import source_entries
from pressmark.stores.objects import ObjectSource, StoreObject
from pressmark.stores.stored_object import StoredObject

if TYPE_CHECKING:
    import hashlib

    from pressmark.stores.bags.bag_object import BagObject

__all__ = ["equal_object"]

_BLOCK = 1 << 20  # 1 MiB
# Kinds of stores whose objects may have empty directories.
_HOLD_EMPTY = frozenset({"pairtree", "bags"})


def equal_object(
    root: str,
    kind: str,
    find: Callable[[], StoredObject],
    source: ObjectSource,
    follow: bool,
    info: Mapping[str, str] | None = None,
    *,
    is_local: bool = True,
) -> StoreObject | None:
    """Return the record of an existing object that has the same files as a source, with equal digests; :data:`None` if
    the object is not equal, or this cannot be determined.

    Both are read; of open files only those that can be rewound. An OCFL object is compared by its newest version, a bag
    by its payload.

    :param root: the store
    :param kind: its kind
    :param find: returns the object
    :param follow: follow symbolic links in the source
    :param info: elements that the bag-info.txt of a bag must contain
    :param is_local: the store is on a disk
    :raises StoreError: the store cannot be read, as when its server no longer answers
    """
    try:
        found = find()
        if info and not info.items() <= set(cast("BagObject", found).bag().info.elements):
            return None
        if not _is_equal(root, kind, found, source, follow, is_local):
            return None
        found.confirm()
    except (PressmarkError, OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        if is_store_wide(error):
            raise
        return None
    return _record(root, kind, found)


def _is_equal(root: str, kind: str, found: StoredObject, source: ObjectSource, follow: bool, is_local: bool) -> bool:
    stored = dict(found.files())
    empty: list[bytes] = []
    # The target of a copy, which must not be in the source.
    target = os.path.join(encode_fs(root), b"object")
    files: dict[str, Any] = {}
    for entry in source_entries(source, target, follow):
        if entry.content is not None:
            files[decode_fs(entry.name)] = entry.content
        elif entry.is_empty:
            empty.append(entry.name)
    if files.keys() != stored.keys():
        return False
    if kind in _HOLD_EMPTY and set(map(decode_fs, empty)) != {name for name, _path in found.empty_directories()}:
        return False
    # Sizes first: most objects that differ need not be read. In object storage, opening a file already costs a request.
    for name, content in files.items():
        if isinstance(content, bytes):
            status = os.stat(content)
            if not stat.S_ISREG(status.st_mode) or (is_local and status.st_size != os.stat(stored[name]).st_size):
                return False
    return all(_has_content(found, name, content) for name, content in files.items())


def _has_content(found: StoredObject, name: str, content: Any) -> bool:
    """Return whether a file of an object has the content of a file, an open file, or bytes."""
    with closing(found.open(name)) as stored:
        expected = _digest(stored)
    if isinstance(content, bytes):
        with open(content, "rb", buffering=0) as file:
            return _digest(file) == expected
    content = content.data
    if not hasattr(content, "read"):
        return _sha512(content).digest() == expected
    position = content.tell()
    try:
        # At its end, it was read before.
        return _digest(content) == expected and not (position and content.tell() == position)
    finally:
        content.seek(position)


def _digest(file: Readable) -> bytes:
    digest = _sha512()
    while block := file.read(_BLOCK):
        digest.update(block)
    return digest.digest()


def _record(root: str, kind: str, found: StoredObject) -> StoreObject:
    """Return the record of an object."""
    path = os.path.relpath(_directory(found), encode_fs(absolute(root)))
    encapsulation = None
    if kind == "pairtree" and found.is_directory:
        path, name = os.path.split(path)
        encapsulation = decode_fs(name)
    proper = kind != "pairtree" or encapsulation is not None
    return StoreObject(found.id, decode_fs(path).replace(os.sep, "/"), proper, encapsulation, (), exists_same=True)


def _directory(found: StoredObject) -> bytes:
    """Return the path of an object; that of a bag, not of its payload."""
    return os.fsencode(getattr(found, "bag_path", found.path))


def _sha512(data: Any = b"") -> hashlib._Hash:
    import hashlib  # few runs compare objects

    return hashlib.sha512(data, usedforsecurity=False)
