"""Copying an object out of its store, verified where the store records digests."""

from __future__ import annotations

import os

from pressmark.fixity.outcomes import Outcome
from pressmark.fs.names import decode_fs
from pressmark.stores.exceptions import SourceError
from pressmark.stores.object_sources import copy_source
from pressmark.stores.stored_object import StoredObject

__all__ = ["copy_object"]


def copy_object(
    found: StoredObject, target: bytes, *, mode: str = "auto", verify: bool = True
) -> tuple[list[str], list[str]]:
    """Copy all files and empty directories of an object into the new directory ``target``.

    If this fails, ``target`` remains incomplete.

    :param mode: as for :func:`pressmark.fixity.copying.copy_files`
    :param verify: compare each copy with its recorded digest
    :return: the names of the files, and of the empty directories
    :raises ObjectError: the object was changed, or a file cannot be read
    :raises DamagedObjectError: content does not match its recorded digest, or cannot be verified
    :raises BagError: files cannot be cloned
    :raises OSError: a copy cannot be written
    """
    files = dict(found.files())
    empty = dict(found.empty_directories())
    recorded = found.recorded_digests(list(files), whole=True) if verify else None
    algorithms = tuple(sorted({digest.algorithm for digest in (recorded or {}).values()}))

    def compare(name: bytes, outcome: Outcome) -> None:
        if recorded is None:
            return
        expected = recorded[decode_fs(name)]
        digest = (outcome.digests or {}).get(expected.algorithm, "")
        if digest != expected.digest:
            raise found.damaged(decode_fs(name), expected, digest)

    sources = {**found.paths_to_read(files), **{name: os.fsdecode(path) for name, path in empty.items()}}
    try:
        copy_source(sources, target, mode=mode, algorithms=algorithms, on_file=compare)
    except SourceError as error:
        found.confirm()  # that may be why a file has gone
        raise found.error(error.kind, error.reason) from None
    found.confirm()
    return list(files), list(empty)
