"""What objects are made of: how many files, how large, when they were changed, what they are called."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from pressmark.errors import ObjectError
from pressmark.migrate.entries import Entry
from pressmark.migrate.options import Options
from pressmark.migrate.transfer.failures import Trouble
from pressmark.migrate.transfer.reading import Reader
from pressmark.stores import Store, StoreObject
from pressmark.stores.bags import BagObject
from pressmark.stores.base import object_errors, octets, text

__all__ = ["Measure", "measure"]

_BLOCK = 4096


class Measure(NamedTuple):
    """An object's size.

    :ivar files: how many it has
    :ivar bytes: they have together
    :ivar changed: when the newest of them was changed last, in nanoseconds since 1970: content or status
    :ivar blocks: the bytes that they take on a disk with blocks of 4 KiB
    :ivar directories: that they are in
    :ivar fault: why it cannot be read; :data:`None` where it can
    """

    files: int
    bytes: int
    changed: int
    blocks: int
    directories: int
    fault: str | None = None


def measure(store: Store, record: StoreObject, options: Options) -> tuple[Measure, list[str]]:
    """Return how large an object is, and what its files are called that the destination sees."""
    count = size = blocks = changed = 0
    names: list[str] = []
    directories = set()
    fault = None
    try:
        with object_errors(store.root, record.id or ""):
            for name, status in _files(store, record, options):
                count += 1
                size += status.st_size
                blocks += -(-status.st_size // _BLOCK) * _BLOCK
                changed = max(changed, status.st_mtime_ns, status.st_ctime_ns)
                names.append(name)
                directories.add(name.rpartition("/")[0])
    except (ObjectError, Trouble) as error:
        fault = error.reason if isinstance(error, ObjectError) else error.failure.message
    return Measure(count, size, changed, blocks, len(directories), fault), names


def _files(store: Store, record: StoreObject, options: Options) -> Iterator[tuple[str, os.stat_result]]:
    """Give name and status of each file of an object that is to be migrated."""
    top = os.path.join(os.fsencode(store.root), octets(record.path))
    if options.source_kind == "ocfl" and options.verbatim:
        yield from _below(top)
        return
    if record.encapsulation is not None:
        files = list(_below(os.path.join(top, octets(record.encapsulation))))
        # What links lead to is for the store to say.
        if not any(_is_link(status) for _name, status in files):
            yield from files
            return
    found = store.locate(record)
    if not isinstance(found, BagObject) or found.serialized:
        for name, path in found.files():
            yield name, os.stat(path)
    elif options.verbatim:
        yield from _below(top)
    else:
        # A bag that a migration has made around an object is unwrapped.
        for octets_, path in Reader(options, store).content(_entry(record)).files:
            yield text(octets_), os.stat(path)


def _entry(record: StoreObject) -> Entry:
    return Entry(record.id or "", record.id or "", record.path, "", record.encapsulation, 0, 0, 0)


def _is_link(status: os.stat_result) -> bool:
    return stat.S_ISLNK(status.st_mode)


def _below(top: bytes) -> Iterator[tuple[str, os.stat_result]]:
    """Give everything below a directory that is none itself."""
    left = [b""]
    while left:
        inside = left.pop()
        with os.scandir(os.path.join(top, inside) if inside else top) as entries:
            for entry in entries:
                name = inside + b"/" + entry.name if inside else entry.name
                if entry.is_dir(follow_symlinks=False):
                    left.append(name)
                else:
                    yield text(name), entry.stat(follow_symlinks=False)
