"""The size of objects: the number, bytes, names and latest change of their files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pressmark import _kernels
from pressmark.errors import ObjectError
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.migrate.options import Options
from pressmark.migrate.planning.entry import PlanEntry
from pressmark.migrate.transfer.content import Content, File, changed_at, content_of
from pressmark.migrate.transfer.failures import TransferError
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
    :ivar changed: latest change of a file's content or status, in nanoseconds since 1970; of an OCFL object also of its
        inventory
    :ivar blocks: bytes on a disk with blocks of 4 KiB
    :ivar directories: number of directories with files
    :ivar unreadable: why the object cannot be read; :data:`None` if it can
    :ivar left_out: the parts that the destination does not support, or :data:`None`
    :ivar missing: why the object is not migrated: it does not have the version to migrate; :data:`None` if it has
    """

    files: int
    bytes: int
    changed: int
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
        sizes, names = kernels.tree_sizes(trees)
        for index, (size, record) in enumerate(zip(sizes, remaining, strict=False)):
            if size is None:
                yield _measure_files(store, record, options)
            else:
                yield Measure(*size), decode_fs(names[index]).split("\0")[:-1]
        left = left[len(sizes) :]


def _tree(store: Store, record: StoreObject, options: Options) -> bytes | None:
    """Return the directory that contains just the files of an object; :data:`None` if only the store knows them."""
    top = os.path.join(os.fsencode(store.root), encode_fs(record.path))
    if record.encapsulation is not None:
        return os.path.join(top, encode_fs(record.encapsulation))
    return top if options.source_kind == "ocfl" and options.verbatim else None


def _measure_files(store: Store, record: StoreObject, options: Options) -> tuple[Measure, list[str]]:
    """Return the size and the names of one object, file by file; it may contain links, or be unreadable."""
    count = size = blocks = changed = 0
    names: list[str] = []
    directories = set()
    unreadable = left_out = missing = None
    try:
        with object_errors(store.root, record.id or ""):
            files, left_out, changed = _files(store, record, options)
            for name, status in files:
                count += 1
                size += status.st_size
                blocks += -(-status.st_size // _BLOCK) * _BLOCK
                changed = max(changed, status.st_mtime_ns, status.st_ctime_ns)
                names.append(name)
                directories.add(name.rpartition("/")[0])
    except (ObjectError, TransferError) as error:
        unreadable = error.reason if isinstance(error, ObjectError) else error.failure.message
        if options.version is not None and isinstance(error, ObjectError) and error.kind == "missing":
            unreadable, missing = None, error.reason
    return Measure(count, size, changed, blocks, len(directories), unreadable, left_out, missing), names


def _files(
    store: Store, record: StoreObject, options: Options
) -> tuple[Iterable[tuple[str, os.stat_result]], str | None, int]:
    """Return name and status of each file to migrate, the parts of the object that stay behind, and the latest change
    of the inventory that names the files, or 0."""
    tree = _tree(store, record, options)
    if tree is not None:
        if record.encapsulation is None:
            return _below(tree), None, 0
        empty: list[File] = []
        files = list(_below(tree, empty))
        # The store resolves links.
        if not any(stat.S_ISLNK(status.st_mode) for _name, status in files):
            return files, Content([], {}, empty).left_out(options.to), 0
    found = locate_source(options, store, record)
    is_bag = bag_directory(store, found) is not None
    if is_bag and options.verbatim:
        return _below(os.path.join(os.fsencode(store.root), encode_fs(record.path))), None, 0
    changed = 0
    if isinstance(found, OcflObject):
        # Files keep their content paths when another version renames them.
        changed = changed_at([os.stat(os.path.join(found.path, encode_fs(INVENTORY)))])
        content = ocfl_content(found)
    elif is_bag:
        identifier = record.id or ""
        entry = PlanEntry(identifier, identifier, record.path, "", record.encapsulation, 0, 0, 0)
        content = ContentReader(options, store).content(entry)
    else:
        content = content_of(found)
    files_of = ((decode_fs(name), os.stat(path)) for name, path in content.files)
    return files_of, content.left_out(options.to), changed


def _below(top: bytes, empty: list[File] | None = None) -> Iterator[tuple[str, os.stat_result]]:
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
                    yield decode_fs(name), entry.stat(follow_symlinks=False)
        if is_empty and inside and empty is not None:
            empty.append((inside, here))
