"""Create a bag from a directory in place, atomically.

All files are checked and hashed in place. Files are moved only after all tag files are written; ``bagit.txt`` is moved
in last.
"""

from __future__ import annotations

import errno
import os

from pressmark.bagit.bag_directory import STAGING, BagDirectory
from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.changes import RUN_AGAIN, Listener, refusing
from pressmark.bagit.changes.bag_changes import BagChange, is_decided, recover
from pressmark.bagit.creation.options import CreateOptions
from pressmark.bagit.creation.preflight import (
    APPEARED,
    CHANGED_MEANWHILE,
    ChangeDetector,
    Preflight,
    payload_files,
    real_path,
    record_outcomes,
    refuse_bag,
)
from pressmark.bagit.creation.small_in_place import create_small, is_supported
from pressmark.bagit.creation.tag_writer import ManifestWriter, write_tag_files
from pressmark.bagit.walk import BagEntry
from pressmark.errors import BagError
from pressmark.fixity.ledger import Ledger
from pressmark.fixity.pool import hash_tasks
from pressmark.fs.durable import exists
from pressmark.fs.names import is_inside
from pressmark.reports import Progress
from pressmark.threads import resolve_threads

__all__ = ["create_in_place"]


def create_in_place(
    path: bytes, options: CreateOptions, nested: bool, ledger: Ledger | None, on_event: Listener
) -> BagInfo | None:
    """Turn the directory ``path`` into a bag.

    :param nested: turn a bag into the payload of a new bag
    :return: the content of bag-info.txt; :data:`None` if an interrupted run was finished
    :raises BagError: the bag cannot be created; nothing was changed
    """
    if ledger is None and is_supported(options):
        resolve_threads(options.threads)  # raises ValueError
        small = create_small(path, options, nested, on_event)
        if small is not None:
            return small
    with BagDirectory(path) as base:
        where = base.real_path
        request = options.request(nested=nested)
        with refusing(where):
            is_left = exists(os.path.join(where, STAGING))
        if not (is_left and is_decided(where)):
            if is_left:
                # Remove the hidden directory of a run that was killed after its last move.
                recover(where)
            refuse_bag(path, nested)
            for _path, file in options.tag_files:
                if is_inside(file, where):
                    raise BagError(file, "the tag file is inside the source directory; move it elsewhere first")
        with _entered(where) as change:
            if change.recovered is not None:
                on_event(Progress("recover"))
                if change.recovered == request:
                    return None
                if change.recovered.get("command") == "create":
                    raise BagError(
                        path,
                        "an interrupted run was completed: this is now a bag, but created with different options;"
                        " update the bag",
                    )
                refuse_bag(path, nested)
            on_event(Progress("examine"))
            preflight = Preflight(options, on_event)
            with refusing(path, "nothing was changed"):
                preflight.check_directory(base)
                preflight.raise_if_refused(path)
                names, info = _stage(base, change.new, options, ledger, preflight, on_event)
                away = [name for name in os.listdir(where) if name not in (STAGING, *preflight.discarded)]
            on_event(Progress("move"))
            change.commit(request, away, names, nested=True, discarded=preflight.discarded, alone=APPEARED)
            return info


def _entered(where: bytes) -> BagChange:
    try:
        return BagChange(where)
    except BagError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise BagError(error.path, f"{error.reason}; or create the bag elsewhere (-o)") from cause
        raise


def _stage(
    base: BagDirectory,
    new: bytes,
    options: CreateOptions,
    ledger: Ledger | None,
    preflight: Preflight,
    on_event: Listener,
) -> tuple[list[bytes], BagInfo]:
    """Write all tag files for the files in ``base`` to ``new``; return their names and the content of bag-info.txt."""
    on_event(Progress("hash", of_items=preflight.files, of_bytes=preflight.bytes))
    detector = ChangeDetector()
    outcomes = hash_tasks(
        ((found.path, real_path(found)) for found in preflight.payload(base)),
        options.algorithms,
        options.threads,
        on_event,
        read=options.read,
        ledger=ledger,
        beneath=base.beneath,
    )
    with ManifestWriter(new, options.algorithms) as manifests:
        nbytes, files = record_outcomes(outcomes, manifests, detector, preflight)
    preflight.raise_if_refused(base.path)
    on_event(Progress("tag"))
    names, info = write_tag_files(new, options, nbytes, files)
    on_event(Progress("check", of_items=files, of_bytes=nbytes))
    _check_unchanged(base, preflight, detector)
    return names, info


def _check_unchanged(base: BagDirectory, preflight: Preflight, detector: ChangeDetector) -> None:
    """Compare the files in ``base`` with those that were read.

    :raises BagError: a file was changed, added or removed
    """
    excluded: list[bytes] = []

    def add(found: BagEntry) -> None:
        if found.real == found.path:
            excluded.append(found.path)

    files = payload_files(base, preflight.links_to_follow(in_place=True), preflight.exclusion(add))
    detector.compare(base.path, ((found.path, base.status(real_path(found))) for found in files))
    if changed := set(excluded) ^ set(preflight.discarded):
        raise BagError(os.path.join(base.path, min(changed)), f"{CHANGED_MEANWHILE}; {RUN_AGAIN}")
