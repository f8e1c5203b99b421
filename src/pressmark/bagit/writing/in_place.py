"""Create bags from directories in place, each atomically.

All files are checked and hashed in place. Files are moved only after all tag files are written; ``bagit.txt`` is moved
in last. Directories of few small files with plain names are read and changed many at a time.
"""

from __future__ import annotations

import errno
import os
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from pressmark.bagit.bag_directory import STAGING, BagDirectory
from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.changes import Event, Listener, refusing
from pressmark.bagit.changes.bag_changes import FORMAT, BagChange, error_of_change, is_decided, recover
from pressmark.bagit.walk import BagEntry
from pressmark.bagit.writing.options import CreateOptions
from pressmark.bagit.writing.payload import (
    APPEARED,
    FileFacts,
    Payload,
    SourceChangedError,
    inner_path,
    is_writable,
    payload_files,
    refuse_bag,
)
from pressmark.bagit.writing.small_folders import Digests, Entries, list_small_folders, read_small_folders, small_files
from pressmark.bagit.writing.tag_writer import Contents, TagWriter
from pressmark.bagit.writing.write import Outcomes, read_payload
from pressmark.errors import BagError
from pressmark.fixity.ledger import Ledger
from pressmark.fixity.outcomes import Outcome
from pressmark.fixity.pool import hash_tasks
from pressmark.fs.changes import Change, Moves, commit, enter, leave
from pressmark.fs.durable import exists
from pressmark.fs.names import decode_fs, is_inside
from pressmark.progress_event import EventListener
from pressmark.reports import Problem, ProgressEvent
from pressmark.threads import ordered_map, require_use, resolve_threads

__all__ = ["NewBag", "create_in_place", "create_together"]

# Directories changed at the same time, on all threads. The lock of each is an open file; some systems allow 256.
LOCKS = 128
# Directories in a batch.
LEAST = 16


def create_in_place(
    path: bytes, options: CreateOptions, nested: bool, ledger: Ledger | None, on_event: Listener
) -> BagInfo | None:
    """Turn the directory ``path`` into a bag.

    :param nested: turn a bag into the payload of a new bag
    :return: the content of bag-info.txt; :data:`None` if an interrupted run was finished
    :raises BagError: the bag cannot be created; nothing was changed
    """
    resolve_threads(options.threads)  # raises ValueError
    if ledger is None and _can_be_small(options):
        [small] = _read_small([path], _real_paths([path]), options, nested, [on_event])
        if small is not None:
            [change] = enter([small.where], FORMAT, resume=False)
            if isinstance(change, Change):
                try:
                    return _create_one(small, change, options, nested)
                finally:
                    leave([change])
    with BagDirectory(path) as base:
        where = base.real_path
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
        with _entered(where) as entered:
            if entered.recovered is not None:
                on_event(ProgressEvent("recover"))
                if entered.recovered == options.request(nested=nested):
                    return None
                if entered.recovered.get("command") == "create":
                    raise BagError(
                        path,
                        "an interrupted run was completed: this is now a bag, but created with different options;"
                        " update the bag",
                    )
                refuse_bag(path, nested)
            return _create_one(_WalkedDirectory(base, options, ledger, on_event), entered.change, options, nested)


def _entered(where: bytes) -> BagChange:
    try:
        return BagChange(where)
    except BagError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and cause.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise BagError(error.path, f"{error.reason}; or create the bag in another directory") from cause
        raise


class NewBag(NamedTuple):
    """A bag that was created.

    :ivar files: number of payload files
    :ivar bytes: size of these files
    :ivar algorithms: the algorithms of its manifests, sorted
    :ivar problems: warnings
    """

    files: int
    bytes: int
    algorithms: tuple[str, ...]
    problems: list[Problem]


def create_together(paths: Sequence[bytes], options: CreateOptions, nested: bool) -> Generator[NewBag | None]:
    """Create bags in place of many directories of few small files; yield each bag in order, once it is on disk.

    :return: :data:`None` for a directory that is left to :func:`create_in_place`: it needs special handling, or failed
    """
    workers = min(resolve_threads(options.threads), LOCKS // LEAST)
    bases = _real_paths(paths)
    if not _can_be_small(options) or _are_nested(bases):
        yield from [None] * len(paths)
        return
    size = max(LEAST, min(LOCKS // workers, len(paths) // (4 * workers)))
    batches = [bases[begin : begin + size] for begin in range(0, len(bases), size)]
    create = partial(_create_batch, options=options, nested=nested)
    for found in ordered_map(create, batches, threads=workers, name="pressmark-bags"):
        yield from found


def _create_batch(bases: Sequence[bytes], options: CreateOptions, nested: bool) -> list[NewBag | None]:
    notices: list[list[Problem]] = [[] for _base in bases]
    names = tuple(sorted(options.algorithms))
    read = _read_small(bases, bases, options, nested, [partial(_keep_notice, kept) for kept in notices])
    small = [one for one in read if one is not None]
    require_use()  # reading takes long on a slow disk, and nothing was changed yet
    entered = enter([one.where for one in small], FORMAT, resume=False)
    changing = {change: one for change, one in zip(entered, small, strict=True) if isinstance(change, Change)}
    try:
        _create(changing, options, nested)
    finally:
        leave(changing)
    created = {one for one in changing.values() if one.error is None}
    return [
        NewBag(one.preflight.files, one.preflight.bytes, names, kept) if one in created else None
        for one, kept in zip(read, notices, strict=True)
    ]


def _keep_notice(kept: list[Problem], event: Event) -> None:
    if isinstance(event, Problem):
        kept.append(event)


def _create_one(directory: _Directory, change: Change, options: CreateOptions, nested: bool) -> BagInfo:
    """Turn one directory into a bag; see :func:`_create`.

    :raises BagError: nothing was changed, or the next run finishes or reverses the change
    """
    _create({change: directory}, options, nested)
    if directory.error is not None:
        raise directory.error
    return directory.info()


def _create(changing: Mapping[Change, _Directory], options: CreateOptions, nested: bool) -> None:
    """Turn directories into bags. Each that fails has an error, and does not affect the others."""

    def check(ready: list[Change]) -> list[bool]:
        directories = [changing[change] for change in ready]
        small = [one for one in directories if isinstance(one, _SmallDirectory)]
        listed = list_small_folders([one.where for one in small], STAGING)  # many in a call, when the first is checked
        for one in small:
            one.listed = listed
        for directory in directories:
            directory.call(directory.check_unchanged)
        return [one.error is None for one in directories]

    for change, one in changing.items():
        one.call(partial(one.prepare, change.new))
    ready = {change: one for change, one in changing.items() if one.error is None}
    moves, contents = [one.moves() for one in ready.values()], [one.contents for one in ready.values()]
    errors = commit(list(ready), options.request(nested=nested), moves, contents, check=check, alone=APPEARED)
    for (change, one), error in zip(ready.items(), errors, strict=True):
        if error is not None and one.error is None:
            one.error = error_of_change(error, change.base)


class _Directory(Payload):
    """A directory whose content becomes the payload in place.

    :param path: the path as given
    :param where: the path without links
    :ivar contents: of its tag files
    :ivar info: returns the elements of its bag-info.txt
    :ivar error: why it is not a bag
    """

    contents: Contents
    info: Callable[[], BagInfo]
    error: BagError | None = None
    _away: Sequence[bytes] = ()

    def __init__(self, path: bytes, where: bytes, options: CreateOptions, on_event: Listener) -> None:
        super().__init__(path, options, on_event)
        self.where = where
        self._options = options

    def call(self, function: Callable[[], object]) -> None:
        """Call a function, and keep its error."""
        try:
            with refusing(self.path, "nothing was changed"):
                function()
        except BagError as error:
            self.error = error

    def prepare(self, new: bytes) -> None:
        """Check and read all files, and write the tag files.

        :param new: directory for tag files that are large
        :raises BagError: the bag cannot be created
        """
        self.examine(self.where)
        tags = TagWriter(self._options, new)
        self.contents = read_payload(self, "hash", self._outcomes(), tags, self._on_event)
        self.info = tags.info
        self._away = self._names()

    def moves(self) -> Moves:
        """Return the moves that make it a bag with its tag files."""
        into = {name.partition(b"/")[0] for name in self.contents}
        return Moves.ordered(FORMAT, self._away, into, nested=True, discarded=self.preflight.discarded)

    def check_unchanged(self) -> None:
        super().check_unchanged()
        self._on_event(ProgressEvent("move"))

    @abstractmethod
    def _outcomes(self) -> Outcomes:
        """Yield path and outcome of each file."""

    @abstractmethod
    def _names(self) -> list[bytes]:
        """Return the names that are moved to ``data/``; one that appears later is an error of the moves."""


class _WalkedDirectory(_Directory):
    """A directory of any size. Its files are read one after another.

    :param base: the open directory
    :param ledger: of files that need not be read again
    """

    def __init__(self, base: BagDirectory, options: CreateOptions, ledger: Ledger | None, on_event: Listener) -> None:
        super().__init__(base.path, base.real_path, options, on_event)
        self._base = base
        self._ledger = ledger

    def _examine(self, _destination: bytes) -> None:
        self.preflight.check_directory(self._base)

    def _sizes(self) -> Iterator[tuple[bytes, int]]:
        return ((found.path, found.size) for found in self.preflight.payload(self._base))

    def _outcomes(self) -> Outcomes:
        return hash_tasks(
            ((found.path, inner_path(found)) for found in self.preflight.payload(self._base)),
            self._options.algorithms,
            self._options.threads,
            EventListener(self._on_event),
            read=self._options.read,
            ledger=self._ledger,
            beneath=self._base.beneath,
        )

    def _names(self) -> list[bytes]:
        return [name for name in os.listdir(self.where) if name not in (STAGING, *self.preflight.discarded)]

    def _files_now(self) -> Iterator[FileFacts]:
        excluded: list[bytes] = []

        def add(found: BagEntry) -> None:
            if found.real == found.path:
                excluded.append(found.path)

        links, exclusion = self.preflight.links_to_follow(in_place=True), self.preflight.exclusion(add)
        for found in payload_files(self._base, links, exclusion):
            status = self._base.status(inner_path(found))
            yield found.path, status.st_size, status.st_mtime_ns
        if changed := set(excluded) ^ set(self.preflight.discarded):
            raise SourceChangedError(os.path.join(self.path, min(changed)))


class _SmallDirectory(_Directory):
    """A directory of a few small files with plain names. All files are in memory.

    :param entries: what is in it
    :param digests: of the files
    :ivar listed: yields its entries at the time of the check
    """

    listed: Iterator[Entries | None]

    def __init__(
        self,
        path: bytes,
        where: bytes,
        entries: Entries,
        digests: Digests,
        options: CreateOptions,
        on_event: Listener,
    ) -> None:
        super().__init__(path, where, options, on_event)
        self._entries = entries
        self._digests = digests

    def is_movable(self) -> bool:
        """Return whether all directories can be moved, which writes to them."""
        return all(
            is_writable(b"%b/%b" % (self.where, path))
            for path, facts in self._entries
            if facts is None and b"/" not in path
        )

    def _examine(self, _destination: bytes) -> None:
        self.preflight.check_entries(self._entries)

    def _sizes(self) -> Iterator[tuple[bytes, int]]:
        return ((path, facts[0]) for path, facts in self._entries if facts is not None)

    def _outcomes(self) -> Outcomes:
        files = ((path, facts) for path, facts in self._entries if facts is not None)
        for (path, facts), digests in zip(files, self._digests, strict=True):
            yield path, Outcome(os.fsdecode(path), digests, *facts)
        self._on_event(ProgressEvent(items=self.preflight.files, bytes=self.preflight.bytes))

    def _names(self) -> list[bytes]:
        return [path for path, _facts in self._entries if b"/" not in path]

    def _files_now(self) -> Iterator[FileFacts]:
        return small_files(self.path, next(self.listed))


# --- directories of few small files -----------------------------------------------------------------------------------


def _can_be_small(options: CreateOptions) -> bool:
    """Return whether directories may be read many at a time with these options."""
    return not options.tag_files and options.read == "parallel"


def _read_small(
    paths: Sequence[bytes],
    bases: Sequence[bytes],
    options: CreateOptions,
    nested: bool,
    listeners: Sequence[Listener],
) -> list[_SmallDirectory | None]:
    """Read directories of few small files; :data:`None` for one in which anything is unusual, or that is a bag.

    :param bases: the paths without links
    """
    directories: list[_SmallDirectory | None] = []
    read = read_small_folders(bases, STAGING, options.algorithms)
    for path, base, found, on_event in zip(paths, bases, read, listeners, strict=True):
        small = None
        if found is not None and _is_plain(found[0], nested, options.is_excluded):
            small = _SmallDirectory(path, base, *found, options, on_event)
        directories.append(small if small is not None and small.is_movable() else None)
    return directories


def _is_plain(entries: Entries, nested: bool, is_excluded: Callable[[str], object] | None) -> bool:
    """Return whether a directory has content, is not a bag, and no name in it is excluded."""
    if not entries or not (nested or all(path != FORMAT.marker for path, _facts in entries)):
        return False
    return is_excluded is None or not any(is_excluded(decode_fs(os.path.basename(path))) for path, _facts in entries)


def _real_paths(paths: Sequence[bytes]) -> list[bytes]:
    """Return the real path of each directory; empty if it has none."""
    parents: dict[bytes, bytes] = {}
    found = []
    for path in paths:
        above, slash, name = path.rpartition(b"/")
        real = b""
        with suppress(OSError, ValueError):  # a NUL
            if name in (b"", b".", b".."):
                real = os.path.realpath(path)
            else:
                above += slash
                if above not in parents:
                    parents[above] = os.path.join(os.path.realpath(above or b"."), b"")
                real = parents[above] + name
                if os.path.islink(real):
                    real = os.path.realpath(real)
        found.append(real)
    return found


def _are_nested(bases: list[bytes]) -> bool:
    """Return whether one of several directories is, or is inside, another one."""
    tops = sorted(base + b"/" for base in bases)
    return any(after.startswith(before) for before, after in pairwise(tops))
