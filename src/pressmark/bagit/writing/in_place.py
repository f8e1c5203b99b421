"""Create a bag from a directory in place, atomically.

All files are checked and hashed in place. Files are moved only after all tag files are written; ``bagit.txt`` is moved
in last.
"""

from __future__ import annotations

import errno
import os

from pressmark.bagit.bag_directory import STAGING, BagDirectory
from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.changes import Listener, refusing
from pressmark.bagit.changes.bag_changes import BagChange, is_decided, recover
from pressmark.bagit.walk import BagEntry
from pressmark.bagit.writing.options import CreateOptions
from pressmark.bagit.writing.payload import APPEARED, ChangeDetector
from pressmark.bagit.writing.preflight import Preflight, payload_files, real_path, refuse_bag
from pressmark.bagit.writing.small_in_place import create_small, is_supported
from pressmark.bagit.writing.tag_writer import Contents, TagWriter
from pressmark.bagit.writing.write import write_payload
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
            payload = _Directory(base, options, ledger, on_event)
            with refusing(path, "nothing was changed"):
                payload.examine()
                tags = TagWriter(options, change.new)
                contents = payload.write(tags)
                discarded = payload.preflight.discarded
                away = [name for name in os.listdir(where) if name not in (STAGING, *discarded)]
            on_event(Progress("move"))
            names = {name.partition(b"/")[0] for name in contents}
            change.commit(request, away, names, contents, nested=True, discarded=discarded, alone=APPEARED)
            return tags.info()


def _entered(where: bytes) -> BagChange:
    try:
        return BagChange(where)
    except BagError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise BagError(error.path, f"{error.reason}; or create the bag elsewhere (-o)") from cause
        raise


class _Directory:
    """A directory whose content becomes the payload in place.

    :param base: the open directory
    :param ledger: of files that need not be read again
    :ivar path: the path as given
    :ivar preflight: what is found in it
    """

    def __init__(self, base: BagDirectory, options: CreateOptions, ledger: Ledger | None, on_event: Listener) -> None:
        self.path = base.path
        self.preflight = Preflight(options, on_event)
        self._base = base
        self._options = options
        self._ledger = ledger
        self._on_event = on_event

    def examine(self) -> None:
        """Check all files and directories.

        :raises BagError: the bag cannot be created
        """
        self._on_event(Progress("examine"))
        self.preflight.check_directory(self._base)
        self.preflight.raise_if_refused(self.path)

    def write(self, tags: TagWriter) -> Contents:
        """Hash all files, and return the content of the tag files."""
        outcomes = hash_tasks(
            ((found.path, real_path(found)) for found in self.preflight.payload(self._base)),
            self._options.algorithms,
            self._options.threads,
            self._on_event,
            read=self._options.read,
            ledger=self._ledger,
            beneath=self._base.beneath,
        )
        return write_payload(self, "hash", outcomes, tags, self._on_event)

    def check_unchanged(self, detector: ChangeDetector) -> None:
        """Compare the files with those that were read.

        :raises BagError: a file was changed, added or removed
        """
        excluded: list[bytes] = []

        def add(found: BagEntry) -> None:
            if found.real == found.path:
                excluded.append(found.path)

        links, exclusion = self.preflight.links_to_follow(in_place=True), self.preflight.exclusion(add)
        files = payload_files(self._base, links, exclusion)
        detector.compare(self.path, ((found.path, self._base.status(real_path(found))) for found in files))
        if changed := set(excluded) ^ set(self.preflight.discarded):
            raise BagError(os.path.join(self.path, min(changed)), APPEARED)
