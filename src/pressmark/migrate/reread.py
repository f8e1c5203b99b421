"""Objects that are in the destination, read again and compared with the rows of a migration."""

from __future__ import annotations

from pressmark.errors import PressmarkError
from pressmark.migrate.object_digest import ALGORITHM
from pressmark.migrate.planning.entry import Entry
from pressmark.migrate.rows import GOOD, Row
from pressmark.migrate.transfer.direction import read_target, says_what_it_is
from pressmark.migrate.transfer.failures import failure_of
from pressmark.stores import Store
from pressmark.stores.refusals import SourceError

__all__ = ["verified"]


def verified(store: Store, row: Row) -> Row:
    """Read the object of a row again, and return the row with what was found.

    Rows of objects that did not arrive stay as they are.

    :param store: the destination
    """
    if row.status not in GOOD and row.status not in ("unverified", "digest_mismatch"):
        return row
    entry = Entry(row.id, row.source_id, row.source, row.target, None, row.files, row.bytes, row.changed)
    try:
        found = read_target(store, entry, thorough=True)
    except SourceError as error:
        return _failed(row, "digest_mismatch", "mismatch", f"in the destination: {error.reason}")
    except (PressmarkError, OSError) as error:
        failure = failure_of(error)
        if failure.code == "missing":
            return _failed(row, "copy_failed", "missing", "it is not in the destination any more")
        return _failed(row, "unverified", failure.code, f"it cannot be read: {failure.message}")
    if row.digest is None:
        if not says_what_it_is(store, entry):
            what = "it was moved unread, and nothing says what it must be"
            return _failed(row, "unverified", "no-digest", what)
        # What was read is what its inventory or its manifests say.
        return _good(row)._replace(algorithm=ALGORITHM, digest=found[0].whole)
    if any(one.whole == row.digest for one in found):
        return _good(row)
    return _failed(row, "digest_mismatch", "mismatch", "in the destination it is not what was copied")


def _good(row: Row) -> Row:
    status = row.status if row.status in GOOD else "ok"
    kept = row.status in GOOD  # a note that was there stays
    return row._replace(
        status=status,
        verify="reread",
        error_code=row.error_code if kept else None,
        error=row.error if kept else None,
    )


def _failed(row: Row, status: str, code: str, message: str) -> Row:
    return row._replace(status=status, verify="reread", error_code=code, error=message)
