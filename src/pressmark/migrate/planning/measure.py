"""What objects are made of: how many files, how large, when they were changed, what they are called."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pressmark.errors import ObjectError
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.migrate.options import Options
from pressmark.migrate.planning.entry import Entry
from pressmark.migrate.transfer.failures import TransferError
from pressmark.migrate.transfer.reading import Content, Reader, content_of
from pressmark.stores import Store, StoreObject
from pressmark.stores.bags.bag_folder_reader import BagObject
from pressmark.stores.ocfl.ocfl_object import OcflObject
from pressmark.stores.refusals import object_errors

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
    :ivar left_out: what of it the destination has no place for; :data:`None` where all of it goes
    """

    files: int
    bytes: int
    changed: int
    blocks: int
    directories: int
    fault: str | None = None
    left_out: str | None = None


def measure(store: Store, record: StoreObject, options: Options) -> tuple[Measure, list[str]]:
    """Return how large an object is, and what its files are called that the destination sees."""
    count = size = blocks = changed = 0
    names: list[str] = []
    directories = set()
    fault = None
    left_out = None
    try:
        with object_errors(store.root, record.id or ""):
            files, left_out = _files(store, record, options)
            for name, status in files:
                count += 1
                size += status.st_size
                blocks += -(-status.st_size // _BLOCK) * _BLOCK
                changed = max(changed, status.st_mtime_ns, status.st_ctime_ns)
                names.append(name)
                directories.add(name.rpartition("/")[0])
    except (ObjectError, TransferError) as error:
        fault = error.reason if isinstance(error, ObjectError) else error.failure.message
    return Measure(count, size, changed, blocks, len(directories), fault, left_out), names


def _files(
    store: Store, record: StoreObject, options: Options
) -> tuple[Iterable[tuple[str, os.stat_result]], str | None]:
    """Return name and status of each file of an object that is to be migrated, and what does not go with them."""
    top = os.path.join(os.fsencode(store.root), encode_fs(record.path))
    if options.source_kind == "ocfl" and options.verbatim:
        return _below(top), None
    if record.encapsulation is not None:
        empty: list[tuple[bytes, bytes]] = []
        files = list(_below(os.path.join(top, encode_fs(record.encapsulation)), empty))
        # What links lead to is for the store to say.
        if not any(_is_link(status) for _name, status in files):
            return files, Content([], {}, empty).left_out(options.to)
    found = store.locate(record)
    if isinstance(found, BagObject) and not found.serialized and options.verbatim:
        return _below(top), None
    if isinstance(found, OcflObject) or (isinstance(found, BagObject) and not found.serialized):
        # A bag that a migration has made around an object is unwrapped.
        content = Reader(options, store).content(_entry(record))
    else:
        content = content_of(found)
    return ((decode_fs(name), os.stat(path)) for name, path in content.files), content.left_out(options.to)


def _entry(record: StoreObject) -> Entry:
    return Entry(record.id or "", record.id or "", record.path, "", record.encapsulation, 0, 0, 0)


def _is_link(status: os.stat_result) -> bool:
    return stat.S_ISLNK(status.st_mode)


def _below(top: bytes, empty: list[tuple[bytes, bytes]] | None = None) -> Iterator[tuple[str, os.stat_result]]:
    """Give everything below a directory that is none itself.

    :param empty: names and paths of directories with nothing in them go there
    """
    left = [b""]
    while left:
        inside = left.pop()
        here = os.path.join(top, inside) if inside else top
        is_empty = True
        with os.scandir(here) as entries:
            for entry in entries:
                is_empty = False
                name = inside + b"/" + entry.name if inside else entry.name
                if entry.is_dir(follow_symlinks=False):
                    left.append(name)
                else:
                    yield decode_fs(name), entry.stat(follow_symlinks=False)
        if is_empty and inside and empty is not None:
            empty.append((inside, here))
