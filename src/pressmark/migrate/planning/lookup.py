"""Source objects looked up by identifier, as a walk of the store yields them."""

from __future__ import annotations

import os

from pressmark.errors import IdentifierError, ObjectError
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.migrate.rows import Row
from pressmark.migrate.transfer.failures import status_of_problem
from pressmark.migrate.transfer.reading import object_path
from pressmark.stores import Store, StoredObject, StoreObject
from pressmark.stores.pairtree import dialects
from pressmark.stores.pairtree.pairtree_store import PairtreeStore
from pressmark.stores.problems import problem

__all__ = ["look_up", "missing"]


def look_up(store: Store, identifier: str) -> StoreObject | Row:
    """Return the record of an object, or a row that reports why it cannot be migrated."""
    try:
        found = store.get(identifier)
    except IdentifierError as error:
        return missing(identifier, error.reason)
    except ObjectError as error:
        if error.kind == "missing":
            return missing(identifier, error.reason)
        status = status_of_problem(error.kind)
        return Row(identifier, identifier, "", "", status, error_code=error.kind, error=error.reason)
    if isinstance(store, PairtreeStore):
        return _of_pairtree(store, identifier, found)
    return StoreObject(identifier, _relative(store, object_path(store, found)), True, None, ())


def missing(identifier: str, why: str) -> Row:
    """Return the row of an identifier that is not in the source."""
    return Row(identifier, identifier, "", "", "source_missing", error_code="missing", error=why)


def _of_pairtree(store: PairtreeStore, identifier: str, found: StoredObject) -> StoreObject:
    if store.dialect is None:
        ppath = store.layout.map_id(identifier)
    else:
        ppath = dialects.path(store.dialect, identifier.removeprefix(store.prefix))
    place, within = f"pairtree_root/{ppath}", _relative(store, found.path)
    if within != place:
        return StoreObject(identifier, place, True, within.removeprefix(f"{place}/"), ())
    return StoreObject(identifier, place, False, None, (problem("split-end", encode_fs(place)),))


def _relative(store: Store, path: bytes) -> str:
    return decode_fs(os.path.relpath(path, os.path.abspath(os.fsencode(store.root))))
