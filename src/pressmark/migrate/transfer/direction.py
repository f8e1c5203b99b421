"""Code shared by all directions of a migration: an object is read, checked, stored and compared."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self, cast

from pressmark.buckets.address import absolute
from pressmark.errors import ObjectError, quoted_path
from pressmark.fixity import Outcome
from pressmark.fs.durable import can_flush_filesystem
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.migrate.entry import Entry, TransferError
from pressmark.migrate.object_digest import (
    ALGORITHM,
    FileDigests,
    compare,
    has_same_content_times,
    mismatch,
    object_digest,
    with_known,
)
from pressmark.migrate.options import Options
from pressmark.migrate.planning.conflicts import NameRules
from pressmark.migrate.planning.targets import Targets
from pressmark.migrate.transfer.content import Content, entries_of
from pressmark.migrate.transfer.places import File, read_files
from pressmark.migrate.transfer.reading import read_content, read_target
from pressmark.stores.exceptions import SourceError, object_errors
from pressmark.stores.staging_writer import Staged

if TYPE_CHECKING:
    from pressmark.stores.ocfl.root import OcflRoot

__all__ = ["CopyRecorder", "Direction", "Storing"]

#: Yields an object whose files are to be copied; returns whether it is stored.
Storing = Generator[Staged, None, bool]


class Direction(ABC):
    """A migration from one kind of store to another: both stores, opened for a chunk; a context manager.

    :param options: options of the migration
    :ivar source: the source of the objects
    :ivar source_base: its absolute path
    :ivar destination: the destination of the objects
    :ivar mode: how files are copied
    :ivar renames: whether objects are moved by renaming their directories
    :raises StoreError: the source or the destination cannot be used
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.source = options.open_source()
        self.source_base = os.fsencode(absolute(self.source.root))
        self.destination: Any = cast("Any", options.open_destination())  # of the kind that a subclass stores in
        self.mode: Any = "auto" if options.copy_mode == "rename" else options.copy_mode
        self.renames = options.renames()
        # The chunk is flushed as a whole.
        durable = not can_flush_filesystem()
        self.writer: Any = self.destination._writer(self.mode, options.links, durable_names=durable)
        # Objects that wait to be published, by identifier.
        self.items: dict[str | bytes, Entry] = {}
        # The local file system enforces its own rules: other profiles are checked here.
        self.target_names = None if options.profile == "unix" else (NameRules(options), Targets(options))

    def __enter__(self) -> Self:
        self.writer.__enter__()
        with object_errors(self.destination.root, ""):
            self.writer.open()
        return self

    def __exit__(self, *error: Any) -> None:
        self.writer.__exit__(*error)

    def prepare(self, entries: Sequence[Entry]) -> None:
        """Prepare all entries of the chunk at once, which is faster than one by one."""
        return None

    @abstractmethod
    def begin(self, entry: Entry, replace: bool = False) -> Storing:
        """Store an object, and record its digest, size and copy mode in ``entry``.

        This is a generator. It yields the object when its files are to be copied, and goes on when they are: so the
        files of many objects are copied together.

        :param replace: replace the object at its path
        :return: whether it is stored; otherwise :meth:`finish_batch` reports it
        :raises ObjectError: it is not stored; of kind ``exists`` if its path is occupied
        """

    def store(
        self, entry: Entry, content: Content, replace: bool, files: dict[str, Any] | None = None, **options: Any
    ) -> Storing:
        """Write an object aside, until :meth:`finish_batch`; or replace the object at its path.

        :param content: of the object
        :param files: paths by name, without empty directories; :data:`None` for everything in the object
        :param options: of the ``begin`` of the destination's writer
        :return: as for :meth:`begin`
        """
        source: Any = files or content.by_name()
        links = "follow"  # the reader has refused links
        if files is None and content.top is not None:
            source, links = os.fsdecode(content.top), self.options.links
        self.record_entries(entry, content)
        with self.writing(entry, replace) as writer:
            staged = writer.begin(entry.id, source, links=links, **options)
            yield staged
            writer.end(staged)
            entry.mode = staged.mode
        self.record_copied(entry, content)
        return replace

    @contextmanager
    def writing(self, entry: Entry, replace: bool) -> Iterator[Any]:
        """Yield the writer for an object, which waits for :meth:`finish_batch`, or replaces the object at its path.

        :raises ObjectError: the object could not be replaced
        """
        if not replace:
            yield self.writer
            self.items[entry.id] = entry
            return
        with self.destination._writer(self.mode, self.options.links, True) as writer:
            yield writer
            [stored] = writer.publish()
        if isinstance(stored, ObjectError):
            raise stored

    def replace(self, entry: Entry, content: Content, ours: FileDigests, _theirs: list[FileDigests]) -> Storing:
        """Replace the different object at the path of an object, and record its copy mode in ``entry``.

        :param content: of the object
        :param ours: its digests, by :meth:`read_source`
        :param _theirs: those of the other, by :meth:`read_target`
        :return: as for :meth:`begin`
        :raises ObjectError: it is not stored
        """
        return (yield from self.begin(entry, replace=True))

    def finish_batch(self) -> Iterator[tuple[Entry, ObjectError | None]]:
        """Publish all waiting objects, and yield each with its error."""
        items, self.items = self.items, {}
        for staged, error in self.writer.commit():
            yield items[staged.identifier], error

    def prune(self, entry: Entry) -> None:
        """Remove empty directories above an object that is no longer in the source, if the kind requires it."""
        return None

    def content(self, entry: Entry) -> Content:
        """Return the content of an object, after checking its names, and an OCFL object itself.

        :raises ObjectError: the object does not exist, or cannot be read
        :raises TransferError: the object is invalid, or a name is not allowed
        :raises FileError: a file cannot be read
        """
        content = read_content(self.options, self.source, entry)
        if self.options.source_kind == "ocfl" and self.options.improper != "take":
            from pressmark.migrate.transfer.ocfl_content import check_ocfl_object, check_rest  # only for OCFL objects

            # Whether an object is valid does not depend on where it goes.
            path = self.source_path(entry)
            root = cast("OcflRoot", self.source)
            storage = root.storage.below(encode_fs(entry.source))
            check_rest(check_ocfl_object(entry, storage, root.version, content), path, content)
        self.check_names(entry, content.files)
        return content

    def check_names(self, entry: Entry, files: Iterable[File]) -> None:
        """Check the names of the files against the target system: they may have changed since the plan.

        :raises TransferError: a name is not allowed
        """
        if self.target_names is None:
            return
        rules, targets = self.target_names
        inside = [decode_fs(name) for name, _path in files]
        own_path = targets.own_path(entry.id, entry.target, inside, entry.encapsulation)
        (conflict,) = rules.conflicts_of([[own_path, *(f"{own_path}/{name}" for name in targets.files(inside))]])
        if conflict is not None:
            kind, path, why = conflict
            raise TransferError("refused_name", kind, f"{quoted_path(path)}: {why}")

    def source_path(self, entry: Entry) -> bytes:
        """Return the absolute path of an object in the source."""
        return os.path.join(self.source_base, encode_fs(entry.source))

    def record_entries(self, entry: Entry, content: Content) -> None:
        """With ``move`` and with hard links, record the state of the source before it is read: the source is removed
        only if it does not change again."""
        if self.options.move or self.options.copy_mode == "hardlink":
            entry.entries = self._entries(entry, content)

    def _entries(self, entry: Entry, content: Content) -> str:
        with object_errors(self.source.root, entry.source_id):
            return entries_of(content)

    def record_copied(self, entry: Entry, content: Content) -> None:
        """Record the parts that the destination does not support, and the change of status by a hard link."""
        if entry.mode == "hardlink":
            linked = self._entries(entry, content)
            # Linking changes only times of status change: any other change came from elsewhere.
            if has_same_content_times(entry.entries, linked):
                entry.entries = linked
        entry.error = content.left_out(self.options.to)

    def read_source(self, content: Content) -> FileDigests:
        """Read an object of the source, and compare it with its recorded digests.

        :raises FileError: a file cannot be read
        :raises SourceError: of kind ``mismatch``
        """
        files = ((decode_fs(name), path) for name, path in content.files)
        read = read_files(content.place, files, with_known(content.known))
        compare(read, content.known)
        return read

    def read_target(self, entry: Entry) -> list[FileDigests]:
        """Read the object at the path of the new one: see :func:`pressmark.migrate.transfer.reading.read_target`."""
        return read_target(self.destination, entry)

    def digest_of(self, _entry: Entry, read: FileDigests) -> str:
        """Return the digest of an object of the source.

        :param read: its digests, by :meth:`read_source`
        """
        return read.whole


class CopyRecorder:
    """Records files while they are copied, and compares them with recorded digests.

    :param entry: the object
    :param content: its content
    """

    def __init__(self, entry: Entry, content: Content) -> None:
        self.algorithms = with_known(content.known)
        self._entry = entry
        self._known = content.known
        self._digests: dict[str, str] = {}
        entry.files = entry.bytes = 0

    def file(self, name: bytes, outcome: Outcome) -> None:
        """Record a file.

        :raises SourceError: of kind ``mismatch``
        """
        digests = outcome.digests
        assert digests is not None
        logical = decode_fs(name)
        for algorithm, block in self._known.items():
            expected = block.get(logical)
            if expected is not None and digests[algorithm] != expected:
                raise mismatch(logical, algorithm, digests[algorithm], expected)
        self._digests[logical] = digests[ALGORITHM]
        entry = self._entry
        entry.files += 1
        entry.bytes += outcome.size or 0

    def finish(self) -> None:
        """Record the digest of the object, and check that no file is missing.

        :raises SourceError: of kind ``mismatch``
        """
        for algorithm, block in self._known.items():
            for name in block.keys() - self._digests.keys():
                raise SourceError("mismatch", f"{quoted_path(name)} not found, but its {algorithm} digest is recorded")
        self._entry.digest = object_digest(self._digests)
