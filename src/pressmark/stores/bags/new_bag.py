"""The bag of a new object: its source is copied into the payload."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

from pressmark.bagit.bag_info import BagInfo, unfolded
from pressmark.bagit.changes import Listener
from pressmark.bagit.manifest_format import manifest_name
from pressmark.bagit.paths import BELOW_PAYLOAD
from pressmark.bagit.writing.options import CreateOptions
from pressmark.bagit.writing.payload import (
    FileFacts,
    Payload,
    SourceChangedError,
    Sources,
    name_problems,
    why_unlistable,
)
from pressmark.bagit.writing.small_folders import Entries, are_plain, list_small_folders, small_files
from pressmark.bagit.writing.write import NewDirectory
from pressmark.errors import BagError, quoted_path
from pressmark.fixity.hasher import CHANGED
from pressmark.fixity.outcomes import Content, Outcome
from pressmark.fs.durable import is_directory
from pressmark.reports import Problem
from pressmark.stores.bags.walk import IDENTIFIER
from pressmark.stores.exceptions import SourceError, is_unsafe_name
from pressmark.stores.object_sources import SourceCopy, SourceEntry, Task, refuse_within, require_copied
from pressmark.stores.objects import ObjectSource

__all__ = ["BagCopy", "is_writable_identifier"]

_PLAIN = re.compile("[!-~]{1,1000}")
# Problems of file names that no manifest can contain.
_OF_NAMES = frozenset({"name-clash", "path-unsafe"})


def is_writable_identifier(identifier: str) -> bool:
    """Return whether a bag-info.txt can contain an identifier."""
    if _PLAIN.fullmatch(identifier):  # written as it is, on one line
        return True
    try:
        written = BagInfo([(IDENTIFIER, identifier)]).to_bytes()
        return bool(identifier) and unfolded(BagInfo.parse(written)[0].all(IDENTIFIER)[0]) == identifier
    except (BagError, ValueError):
        return False


class BagCopy(SourceCopy):
    """A source that is copied into a new bag.

    :param source: as for :meth:`pressmark.stores.Store.put`
    :param new: path of the new bag
    :param options: of the bag; its links are those of the source
    :param on_file: called with each file's name in the payload and its outcome
    """

    _bag: NewDirectory | None = None
    _payload: Payload

    def __init__(
        self,
        source: ObjectSource,
        new: bytes,
        options: CreateOptions,
        on_file: Callable[[bytes, Outcome], object] | None = None,
    ) -> None:
        super().__init__(source, new, options.links, algorithms=options.algorithms, on_file=on_file)
        self._options = options
        self._refused_for: set[str] = set()

    def tasks(self) -> Iterator[Task]:
        with self._source_errors():
            self._payload = self._new_payload()
            with self._payload:
                self._payload.examine(self.target)
                self._bag = NewDirectory(self.target, self._payload, self._options, self._note)
                yield from self._bag.copies()

    def _new_payload(self) -> Payload:
        if isinstance(self.source, Mapping):
            return _Files(self, self._options, self._note)
        folder = os.fsencode(self.source)
        if isinstance(self.entries, list) and are_plain([entry.name for entry in self.entries]):
            return _SmallFolder(folder, self.entries, self._options, self._note)
        fault = None if is_directory(folder) else why_unlistable(os.path.basename(folder))
        if fault is not None:
            raise SourceError("bad-name", f"{quoted_path(folder)}: {fault}")
        refuse_within(folder, self.target)
        return Sources([folder], False, True, self._options, self._note)

    def add(self, key: bytes, outcome: Outcome) -> None:
        assert self._bag is not None
        if isinstance(self.source, Mapping):
            require_copied(outcome)  # a directory is read to its end, to name all of its problems
        self._bag.add(key, outcome)
        if outcome.ok:
            super().add(key, outcome)
            self.note_path(BELOW_PAYLOAD + key)

    @classmethod
    def end(cls, copies: Sequence[BagCopy]) -> None:
        small = [one._payload for one in copies if one.error is None and isinstance(one._payload, _SmallFolder)]
        for payload, now in zip(small, list_small_folders([one.path for one in small], b""), strict=True):
            payload.now = now

    def raise_error(self) -> None:
        if self.error is not None and self._bag is not None:
            self._bag.close()
        super().raise_error()

    def finish(self) -> None:
        """Write the tag files, after the last file.

        :raises SourceError: the source cannot be stored
        :raises OSError: a file cannot be written
        """
        assert self._bag is not None
        with self._source_errors(), self._payload, closing(self._bag):
            self._bag.finish()
        for path, _status in self._payload.folders:
            self.note_path(BELOW_PAYLOAD + path)
        for algorithm in self.algorithms:
            self.note_path(manifest_name(algorithm, tag=True))

    def _note(self, event: object) -> None:
        if isinstance(event, Problem) and event.severity == "error":
            self._refused_for.add(event.kind)

    @contextmanager
    def _source_errors(self) -> Iterator[None]:
        """Turn errors of the bag into errors of the source, or of the disk."""
        try:
            yield
        except BagError as error:
            if isinstance(error.__cause__, OSError):
                raise error.__cause__ from None
            if isinstance(error, SourceChangedError) or self._refused_for == {"file-changing"}:
                kind = CHANGED
            elif self._refused_for and self._refused_for <= _OF_NAMES:
                kind = "bad-name"
            else:
                kind = "unreadable" if "file-unreadable" in self._refused_for else "source"
            raise SourceError(kind, str(error)) from None


class _SmallFolder(Payload):
    """A directory of a few files with plain names.

    :param entries: what is in it
    :ivar now: what is in it after the copy
    """

    now: Entries | None = None

    def __init__(self, path: bytes, entries: list[SourceEntry], options: CreateOptions, on_event: Listener) -> None:
        super().__init__(path, options, on_event)
        self._entries = entries

    def _examine(self, _destination: bytes) -> None:
        """A bag can contain every plain name."""

    def entries(self) -> Iterator[tuple[bytes, str, bytes | Content]]:
        for name, content, _is_empty in self._entries:
            yield name, "directory" if content is None else "file", content or b""

    def _files_now(self) -> Iterator[FileFacts]:
        folders = [b"", *(entry.name for entry in self._entries if entry.content is None)]
        self.folders = [(name, os.stat(os.path.join(self.path, name))) for name in folders]
        return small_files(self.path, self.now)


class _Files(Payload):
    """The files, directories and content of a mapping. Their names are checked.

    :param copy: of the mapping
    """

    def __init__(self, copy: SourceCopy, options: CreateOptions, on_event: Listener) -> None:
        super().__init__(b"", options, on_event)
        self._copy = copy
        self._entries: list[SourceEntry] = []

    def _examine(self, _destination: bytes) -> None:
        self._entries = list(self._copy.listed())
        for name, _content, _is_empty in self._entries:
            if is_unsafe_name(name):
                raise SourceError("bad-name", f"{quoted_path(name)} is not a valid file name in an object")
        for found in name_problems(entry.name for entry in self._entries):
            raise SourceError("bad-name", str(BagError(found.path, found.message)))

    def entries(self) -> Iterator[tuple[bytes, str, bytes | Content]]:
        existing = {b""}
        for name, content, _is_empty in self._entries:
            folder = name if content is None else os.path.dirname(name)
            for above in _missing(folder, existing):
                yield above, "directory", b""
            if content is not None:
                yield name, "file", content

    def check_unchanged(self) -> None:
        """The files have no common directory, so no later file can be found."""

    def _files_now(self) -> Iterator[FileFacts]:
        return iter(())


def _missing(folder: bytes, existing: set[bytes]) -> list[bytes]:
    """Return a directory and those above it that are not in ``existing``, the highest first; add them."""
    missing = []
    while folder not in existing:
        existing.add(folder)
        missing.append(folder)
        folder = os.path.dirname(folder)
    return missing[::-1]
