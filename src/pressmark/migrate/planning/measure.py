"""The size of objects: the number, bytes, names and state of their files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pressmark import _kernels
from pressmark.errors import ObjectError
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.migrate.entry import Entry, TransferError
from pressmark.migrate.object_digest import entries_digest, entries_digest_of
from pressmark.migrate.options import Options
from pressmark.migrate.transfer.content import INVENTORY_ENTRY, Content, File, content_of
from pressmark.migrate.transfer.reading import ContentReader, bag_directory, locate_source, ocfl_content
from pressmark.stores import Store, StoreObject
from pressmark.stores.exceptions import object_errors
from pressmark.stores.ocfl.inventory import INVENTORY
from pressmark.stores.ocfl.ocfl_object import OcflObject

__all__ = ["Measure", "measure"]

_BLOCK = 4096


class Measure(NamedTuple):
    """The size of an object.

    :ivar files: number of files
    :ivar bytes: total size of all files
    :ivar entries: the state of all entries, of an OCFL object also of its inventory:
        :func:`~pressmark.migrate.object_digest.entries_digest`
    :ivar blocks: bytes on a disk with blocks of 4 KiB
    :ivar directories: number of directories with files
    :ivar unreadable: why the object cannot be read; :data:`None` if it can
    :ivar left_out: the parts that the destination does not support, or :data:`None`
    :ivar missing: why the object is not migrated: it does not have the version to migrate; :data:`None` if it has
    """

    files: int
    bytes: int
    entries: str
    blocks: int
    directories: int
    unreadable: str | None = None
    left_out: str | None = None
    missing: str | None = None


def measure(store: Store, records: Sequence[StoreObject], options: Options) -> Iterator[tuple[Measure, list[str]]]:
    """Yield the size of each object, and the names of the files that the destination receives."""
    kernels = _kernels.active
    left = [_tree(store, record, options) or b"" for record in records]
    remaining = iter(records)
    while left:
        trees, _ = kernels.ByteColumn.from_texts(left)
        sizes, names, stamps = kernels.tree_sizes(trees)
        for index, (size, record) in enumerate(zip(sizes, remaining, strict=False)):
            if size is None:
                yield _measure_files(store, record, options)
            else:
                files, nbytes, blocks, directories = size
                inside = names[index].split(b"\0")[:-1]
                entries = entries_digest(inside, stamps[index])
                yield Measure(files, nbytes, entries, blocks, directories), [*map(decode_fs, inside)]
        left = left[len(sizes) :]


def _tree(store: Store, record: StoreObject, options: Options) -> bytes | None:
    """Return the directory that contains just the files of an object; :data:`None` if only the store knows them."""
    top = os.path.join(os.fsencode(store.root), encode_fs(record.path))
    if record.encapsulation is not None:
        return os.path.join(top, encode_fs(record.encapsulation))
    return top if options.source_kind == "ocfl" and options.verbatim else None


def _measure_files(store: Store, record: StoreObject, options: Options) -> tuple[Measure, list[str]]:
    """Return the size and the names of one object, file by file; it may contain links, or be unreadable."""
    found: list[tuple[bytes, os.stat_result]] = []
    empty: list[bytes] = []
    inventory: list[tuple[bytes, os.stat_result]] = []
    unreadable = left_out = missing = None
    try:
        with object_errors(store.root, record.id or ""):
            files, left_out = _files(store, record, options, empty, inventory)
            found.extend(files)
    except (ObjectError, TransferError) as error:
        unreadable = error.reason if isinstance(error, ObjectError) else error.failure.message
        if options.version is not None and isinstance(error, ObjectError) and error.kind == "missing":
            unreadable, missing = None, error.reason
    names = [decode_fs(name) for name, _status in found]
    sizes = [status.st_size for _name, status in found]
    blocks = sum(-(-size // _BLOCK) * _BLOCK for size in sizes)
    directories = len({name.rpartition("/")[0] for name in names})
    entries = entries_digest_of([*found, *inventory], empty)
    return Measure(len(found), sum(sizes), entries, blocks, directories, unreadable, left_out, missing), names


def _files(
    store: Store,
    record: StoreObject,
    options: Options,
    empty: list[bytes],
    inventory: list[tuple[bytes, os.stat_result]],
) -> tuple[Iterable[tuple[bytes, os.stat_result]], str | None]:
    """Return name and status of each file to migrate, and the parts of the object that stay behind.

    :param empty: receives the names of empty directories
    :param inventory: receives the inventory that names the files, under a name that no file has
    """
    tree = _tree(store, record, options)
    if tree is not None:
        directories: list[File] = []
        files = list(_below(tree, directories))
        # The store resolves links.
        if record.encapsulation is None or not any(stat.S_ISLNK(status.st_mode) for _name, status in files):
            empty += [name for name, _path in directories]
            left_out = None if record.encapsulation is None else Content([], {}, directories).left_out(options.to)
            return files, left_out
    found = locate_source(options, store, record)
    is_bag = bag_directory(store, found) is not None
    if is_bag and options.verbatim:
        directories = []
        files = list(_below(os.path.join(os.fsencode(store.root), encode_fs(record.path)), directories))
        empty += [name for name, _path in directories]
        return files, None
    if isinstance(found, OcflObject):
        # Files keep their content paths when another version renames them.
        inventory.append((INVENTORY_ENTRY, os.stat(os.path.join(found.path, encode_fs(INVENTORY)))))
        content = ocfl_content(found)
    elif is_bag:
        identifier = record.id or ""
        entry = Entry(identifier, identifier, record.path, "", encapsulation=record.encapsulation)
        content = ContentReader(options, store).content(entry)
    else:
        content = content_of(found)
    empty += [name for name, _path in content.empty]
    return ((name, os.stat(path)) for name, path in content.files), content.left_out(options.to)


def _below(top: bytes, empty: list[File]) -> Iterator[tuple[bytes, os.stat_result]]:
    """Yield name and status of everything below a directory except directories.

    :param empty: names and paths of empty directories are appended
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
                    yield name, entry.stat(follow_symlinks=False)
        if is_empty and inside:
            empty.append((inside, here))
