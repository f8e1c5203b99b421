"""Source objects looked up by identifier, as a walk of the store yields them."""

from __future__ import annotations

from pressmark.errors import IdentifierError, ObjectError
from pressmark.migrate.entry import Entry, status_of_problem
from pressmark.stores import Store, StoreObject

__all__ = ["look_up", "missing"]


def look_up(store: Store, identifier: str) -> StoreObject | Entry:
    """Return the record of an object, or a row that reports why it cannot be migrated."""
    try:
        return store.find(identifier)
    except IdentifierError as error:
        return missing(identifier, error.reason)
    except ObjectError as error:
        if error.kind == "missing":
            return missing(identifier, error.reason)
        status = status_of_problem(error.kind)
        return Entry(identifier, identifier, "", "", status, error_code=error.kind, error=error.reason)


def missing(identifier: str, why: str) -> Entry:
    """Return the row of an identifier that is not in the source."""
    return Entry(identifier, identifier, "", "", "source_missing", error_code="missing", error=why)
