"""The bag of a new object. One of few files with plain names is written without the checks that others need, with the
same result.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping

from pressmark.bagit.bag import create as create_bag
from pressmark.bagit.bag_directory import STAGING
from pressmark.bagit.bag_info import BagInfo, unfolded
from pressmark.bagit.changes import Notice
from pressmark.bagit.paths import PAYLOAD
from pressmark.bagit.writing.options import CreateOptions
from pressmark.bagit.writing.preflight import empty_directories, why_unlistable
from pressmark.bagit.writing.small_folders import Entries, list_small_folders
from pressmark.bagit.writing.tag_writer import TagWriter
from pressmark.bagit.writing.write import build_bag
from pressmark.errors import BagError
from pressmark.fixity.copying import Copying
from pressmark.fixity.hasher import keep_status
from pressmark.fixity.outcomes import Outcome
from pressmark.fs.beneath import real_path
from pressmark.fs.durable import exists, is_directory
from pressmark.fs.moves import remove_tree
from pressmark.fs.names import decode_fs
from pressmark.fs.steps import write_new
from pressmark.stores.bags.walk import IDENTIFIER
from pressmark.stores.exceptions import SourceError
from pressmark.stores.object_sources import SourceCopy, Task, copy_source
from pressmark.stores.objects import ObjectSource

__all__ = ["BagCopy", "is_writable_identifier", "write_bag"]

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


def write_bag(
    source: ObjectSource,
    new: bytes,
    algorithms: tuple[str, ...],
    info: list[tuple[str, str]],
    mode: str,
    links: str,
) -> str | None:
    """Write a bag with all checks, and return how its files were transferred; it is not flushed.

    :param new: path of the new bag
    :param algorithms: of the manifests
    :param info: elements of bag-info.txt
    :param mode: as for :func:`~pressmark.fixity.copying.copy_files`
    :param links: ``"refuse"`` or ``"follow"`` symbolic links in the source
    :raises SourceError: the source cannot be stored
    :raises OSError: a file cannot be written
    """
    refused_for: set[str] = set()
    used: str | None = None

    def note(event: object) -> None:
        nonlocal used
        if isinstance(event, Notice) and event.problem.severity == "error":
            refused_for.add(event.problem.kind)
        elif isinstance(event, Copying):
            used = event.mode

    try:
        if isinstance(source, Mapping):
            used = copy_source(source, new, mode=mode, links=links).mode
            if exists(os.path.join(new, STAGING)):  # it would be taken for our own and removed
                reason = f"{decode_fs(STAGING)!r} is reserved for changes of the bag; rename the file"
                raise SourceError("bad-name", reason)
            create_bag(new, None, algorithms, info, nested=True, on_event=note)
            # A remaining staging directory would look like an interrupted change.
            remove_tree(os.path.join(new, STAGING))
            return used
        given = os.fsencode(source)
        fault = None if is_directory(given) else why_unlistable(os.path.basename(given))
        if fault is not None:
            raise SourceError("bad-name", f"{decode_fs(given)}: {fault}")
        folder = new + b"-parts"
        options = CreateOptions.from_arguments(algorithms, info, links, (), None, "parallel", None)
        try:
            os.rename(build_bag(given, folder, options, mode, True, note), new)
        finally:
            remove_tree(folder)
    except BagError as error:
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from None
        if refused_for and refused_for <= _OF_NAMES:
            kind = "bad-name"
        else:
            kind = "unreadable" if "file-unreadable" in refused_for else "source"
        raise SourceError(kind, str(error)) from None
    return used


# --- a bag of few files -----------------------------------------------------------------------------------------------


class BagCopy(SourceCopy):
    """A directory of few files that is copied into a new bag.

    :param source: the directory of the payload
    :param new: path of the new bag
    :param options: of the bag, without tag files and with links refused
    :param listed: the directories and files in it
    :ivar digests: the name of each payload file in ``data``, and its digests
    """

    def __init__(
        self,
        source: bytes,
        new: bytes,
        options: CreateOptions,
        listed: Entries,
    ) -> None:
        super().__init__(source, new, "refuse", algorithms=options.algorithms)
        self.entries = ()  # the walk was made before
        self.expected = sum(facts[0] for _name, facts in listed if facts is not None)
        self.digests: list[tuple[bytes, Mapping[str, str]]] = []
        self._directory = source
        self._options = options
        self._listed = listed
        self._states: dict[bytes, tuple[int | None, int | None]] = {}

    @classmethod
    def of(
        cls,
        source: bytes,
        new: bytes,
        algorithms: tuple[str, ...],
        info: list[tuple[str, str]],
    ) -> BagCopy | None:
        """Return the copy of a directory; :data:`None` if the bag may have errors or warnings."""
        (listed,) = list_small_folders([source], b"")
        if not listed or empty_directories(listed) or not all(_is_listable(name) for name, _facts in listed):
            return None
        options = CreateOptions.from_arguments(algorithms, info, "refuse", (), None, "parallel", None)
        return cls(source, new, options, listed)

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


def _is_listable(name: bytes) -> bool:
    return not name.startswith(STAGING + b"/") and name != STAGING and why_unlistable(name) is None


def _directories(name: bytes) -> Iterable[bytes]:
    """Return the directories above a file."""
    parts = name.split(b"/")
    return [b"/".join(parts[:depth]) for depth in range(1, len(parts))]
