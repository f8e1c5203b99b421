"""Copies of many objects in a directory, each in a directory that is named after its identifier."""

from __future__ import annotations

import contextlib
import errno
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from pressmark.errors import IdentifierError, ObjectError, PressmarkError, is_store_wide, quoted_path
from pressmark.fs.names import encode_fs, existing_spelling, is_case_insensitive, too_long
from pressmark.fs.staging import NewPath
from pressmark.layouts.pairtree import clean
from pressmark.stores.exceptions import object_errors
from pressmark.stores.objects import StoreObject
from pressmark.stores.stored_object import StoredObject
from pressmark.threads import AHEAD, ordered_map

__all__ = ["CopiedObject", "copy_objects", "directory_name"]


class CopiedObject(NamedTuple):
    """What became of an object.

    :ivar record: the object
    :ivar path: the directory of the copy; empty if the identifier has none
    :ivar files: the number of files that were copied; :data:`None` if the directory existed, or after an error
    :ivar error: why the object was not copied
    """

    record: StoreObject
    path: str
    files: int | None = None
    error: PressmarkError | None = None


def directory_name(identifier: str) -> str:
    """Return the name of the directory for an object: its identifier, cleaned as in a Pairtree, so that no two
    identifiers have one name.

    :raises IdentifierError: it has none
    """
    name = clean(identifier)
    if not name:
        raise IdentifierError(identifier, None, "no directory name can be derived from it")
    return name


def copy_objects(
    store: str,
    records: Iterable[StoreObject],
    locate: Callable[[StoreObject], StoredObject],
    directory: bytes,
    *,
    copy_mode: str,
    verify: bool,
    threads: int,
) -> Iterator[CopiedObject]:
    """Copy objects, several at a time, and yield what became of each, in order.

    Each directory appears when it is complete. One that exists is from an earlier run, and is kept.

    :param store: the store, for messages
    :param records: the objects
    :param locate: returns the object of a record
    :param directory: the directory for the copies
    :param copy_mode: as for :meth:`StoredObject.copy_to`, like ``verify``
    :param threads: the number of objects at a time
    :raises StoreError: the store cannot be read, as when its server no longer answers; copies that are complete stay
    """
    ignores_case = is_case_insensitive(directory)
    # An identifier may be listed twice.
    recent: deque[str | None] = deque(maxlen=AHEAD * threads)

    def is_repeated(record: StoreObject) -> bool:
        is_known = record.id in recent
        recent.append(record.id)
        return is_known

    def copied(record: StoreObject) -> CopiedObject:
        path = b""
        try:
            if record.id is None:
                raise ObjectError(store, record.path, "unreadable", "identifier cannot be read; check the store")
            with object_errors(store, record.id):
                path = _path_in(directory, store, record.id, ignores_case)
                if _is_copied(path):
                    return CopiedObject(record, os.fsdecode(path))
                files, _ = locate(record).copy_to(path, copy_mode=copy_mode, verify=verify)
                return CopiedObject(record, os.fsdecode(path), len(files))
        except PressmarkError as error:
            if is_store_wide(error):
                raise
            if isinstance(error.__cause__, BlockingIOError):
                what = f"{quoted_path(path)}: in use by another run; wait for it to finish"
                error = ObjectError(store, record.id or "", "io-error", what)
            return CopiedObject(record, os.fsdecode(path), error=error)

    yield from ordered_map(copied, records, threads=threads, name="pressmark-get", inline=is_repeated)


def _path_in(directory: bytes, store: str, identifier: str, ignores_case: bool) -> bytes:
    """Return the path of the copy of an object.

    :raises ObjectError: of kind ``bad-name``: the name is too long
    :raises IdentifierError: the identifier has no name
    """
    name = encode_fs(directory_name(identifier))
    if (why := too_long(directory, name)) is not None:
        raise ObjectError(store, identifier, "bad-name", f"{why}; copy this object by itself, to a shorter name")
    if ignores_case and (other := existing_spelling(directory, name)) is not None:
        what = f"{quoted_path(other)} differs only in case; copy this object by itself, to another name"
        raise ObjectError(store, identifier, "collision", what)
    return os.path.join(directory, name)


def _is_copied(path: bytes) -> bool:
    """Return whether the copy of an object exists; remove what a run left that was killed just after its end.

    :raises NotADirectoryError: a file has its name
    """
    if not os.path.lexists(path):
        return False
    with contextlib.suppress(FileExistsError, BlockingIOError), NewPath(os.path.abspath(path), (b"files",)):
        pass
    if not os.path.isdir(path):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    return True
