"""A bag of few files with plain names, written without the checks that others need; as :func:`pressmark.bagit.create`
writes it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pressmark.bagit.bag_directory import STAGING
from pressmark.bagit.paths import PAYLOAD
from pressmark.bagit.writing.options import CreateOptions
from pressmark.bagit.writing.preflight import empty_directories, why_unlistable
from pressmark.bagit.writing.small_folders import Entries, list_small_folders
from pressmark.bagit.writing.tag_writer import TagWriter
from pressmark.fixity.hasher import keep_status
from pressmark.fixity.outcomes import Outcome
from pressmark.fs.beneath import real_path
from pressmark.fs.steps import write_new
from pressmark.stores.source_copies import SourceCopy, Task

__all__ = ["BagCopy", "are_plain"]


class BagCopy(SourceCopy):
    """A directory of few files that is copied into a new bag.

    :param source: the directory of the payload
    :param new: path of the new bag
    :param options: of the bag, without tag files and with links refused
    :param listed: the directories and files in it, which are :func:`are_plain`
    :ivar digests: the name of each payload file in ``data``, and its digests
    """

    def __init__(
        self,
        source: bytes,
        new: bytes,
        options: CreateOptions,
        listed: Entries,
        on_event: Callable[[Any], object] | None = None,
    ) -> None:
        super().__init__(source, new, "refuse", algorithms=options.algorithms, on_event=on_event)
        self.entries = ()  # the walk was made before
        self.digests: list[tuple[bytes, Mapping[str, str]]] = []
        self._directory = source
        self._options = options
        self._listed = listed
        self._states: dict[bytes, tuple[int | None, int | None]] = {}

    def tasks(self) -> Iterator[Task]:
        """Create the directories, and yield the files to copy."""
        write_new(
            self.target,
            {b"": None, PAYLOAD: None, **{self._inside(name): None for name, facts in self._listed if facts is None}},
        )
        top, data = real_path(self._directory) + b"/", self.target + b"/" + PAYLOAD + b"/"
        for name, facts in self._listed:
            if facts is not None:
                yield name, top + name, data + name

    def add(self, key: bytes, outcome: Outcome) -> None:
        """Record a copied file."""
        super().add(key, outcome)
        assert outcome.digests is not None
        self._states[key] = outcome.size, outcome.mtime_ns
        self.digests.append((key, outcome.digests))
        self.note_path(self._inside(key))

    def is_unchanged(self) -> bool:
        """Return whether the directory is as it was copied."""
        (now,) = list_small_folders([self._directory], b"")
        return now is not None and self._states == {name: facts[:2] for name, facts in now if facts is not None}

    def write_tag_files(self) -> None:
        """Write the tag files, after the last file.

        :raises OSError: a file cannot be written
        """
        self.digests.sort(key=lambda file: file[0].split(b"/"))  # in the order of a walk
        inner = {above for name, _digests in self.digests for above in _directories(name)}
        for above in (*sorted(inner, reverse=True), b""):
            keep_status(os.path.join(self.target, PAYLOAD, above), os.stat(os.path.join(self._directory, above)))
        with TagWriter(self._options, self.target) as writer:
            for name, digests in self.digests:
                writer.add(name, digests)
            tags = writer.finish(self.size, len(self.digests))
        write_new(self.target, {name: data for name, data in tags.items() if data is not None})  # others are there
        for name in tags:
            self.note_path(name)

    def _inside(self, name: bytes) -> bytes:
        return PAYLOAD + b"/" + name


def are_plain(entries: Entries) -> bool:
    """Return whether a bag of a directory with these entries has neither errors nor warnings."""
    return bool(entries) and not empty_directories(entries) and all(_is_listable(name) for name, _facts in entries)


def _is_listable(name: bytes) -> bool:
    return not name.startswith(STAGING + b"/") and name != STAGING and why_unlistable(name) is None


def _directories(name: bytes) -> Iterable[bytes]:
    """Return the directories above a file."""
    parts = name.split(b"/")
    return [b"/".join(parts[:depth]) for depth in range(1, len(parts))]
