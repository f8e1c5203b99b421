"""Objects of the destination, read again and compared with the rows of a migration."""

from __future__ import annotations

from pressmark.errors import PressmarkError
from pressmark.migrate.object_digest import ALGORITHM
from pressmark.migrate.rows import GOOD, Row
from pressmark.migrate.transfer.failures import failure_of
from pressmark.migrate.transfer.target import has_recorded_digests, read_target
from pressmark.stores import Store
from pressmark.stores.exceptions import SourceError

__all__ = ["verify_object"]


def verify_object(store: Store, row: Row) -> Row:
    """Read the object of a row, and return the row with the result; rows of failed objects are unchanged.

    :param store: the destination
    """
    if row.status not in GOOD and row.status not in ("unverified", "digest_mismatch"):
        return row
    entry = row.entry()
    try:
        found = read_target(store, entry, thorough=True)
    except SourceError as error:
        return _failed(row, "digest_mismatch", "mismatch", f"in the destination: {error.reason}")
    except (PressmarkError, OSError) as error:
        failure = failure_of(error)
        if failure.code == "missing":
            return _failed(row, "copy_failed", "missing", "no longer in the destination")
        return _failed(row, "unverified", failure.code, f"cannot be read: {failure.message}")
    if row.digest is None:
        if not has_recorded_digests(store, entry):
            return _failed(row, "unverified", "no-digest", "moved without being read, and no digest is recorded")
        # The object was compared with its inventory or its manifests.
        return _good(row)._replace(algorithm=ALGORITHM, digest=found[0].whole)
    if any(one.whole == row.digest for one in found):
        return _good(row)
    return _failed(row, "digest_mismatch", "mismatch", "the object in the destination differs from the migrated one")


def _good(row: Row) -> Row:
    if row.status in GOOD:
        return row._replace(verify="reread")  # with its note
    return row._replace(status="ok", verify="reread", error_code=None, error=None)


def _failed(row: Row, status: str, code: str, message: str) -> Row:
    return row._replace(status=status, verify="reread", error_code=code, error=message)
