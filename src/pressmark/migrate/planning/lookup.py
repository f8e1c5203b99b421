"""Objects of the source by identifier, as a walk would give them."""

from __future__ import annotations

import os

from pressmark.errors import IdentifierError, ObjectError
from pressmark.fs.names import decode_fs
from pressmark.migrate.rows import Row
from pressmark.migrate.transfer.failures import status_of_problem
from pressmark.reports import Problem
from pressmark.stores import Store, StoredObject, StoreObject
from pressmark.stores.bags.bag_folder_reader import BagObject
from pressmark.stores.pairtree import dialects
from pressmark.stores.pairtree.pairtree_store import PairtreeStore
from pressmark.stores.problems import problem

__all__ = ["looked_up", "missing"]


def looked_up(store: Store, identifier: str) -> StoreObject | Row:
    """Return an object's record, or the row that says why there is none."""
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
    path = found.bag_path if isinstance(found, BagObject) else found.path
    return StoreObject(identifier, _relative(store, path), True, None, ())


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
    wrong: tuple[Problem, ...] = (problem("split-end", place.encode("utf-8", "surrogateescape")),)
    return StoreObject(identifier, place, False, None, wrong)


def _relative(store: Store, path: bytes) -> str:
    return decode_fs(os.path.relpath(path, os.path.abspath(os.fsencode(store.root))))
