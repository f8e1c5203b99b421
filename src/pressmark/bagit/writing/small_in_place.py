"""Create bags in place of directories of few small files: read, hashed and changed many at a time.

Directories that need special handling or fail are left to :mod:`.in_place`, which also creates the messages.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from pressmark.bagit.bag_directory import STAGING
from pressmark.bagit.bag_info import BagInfo
from pressmark.bagit.changes import Listener, Notice
from pressmark.bagit.changes.bag_changes import FORMAT
from pressmark.bagit.problems import problem
from pressmark.bagit.writing.options import CreateOptions
from pressmark.bagit.writing.payload import APPEARED
from pressmark.bagit.writing.preflight import empty_directories, is_writable
from pressmark.bagit.writing.small_folders import Digests, Entries, list_small_folders, read_small_folders
from pressmark.bagit.writing.tag_writer import Contents, TagWriter
from pressmark.errors import BagError
from pressmark.fs.changes import Change, Moves, commit, enter, leave
from pressmark.fs.names import decode_fs
from pressmark.reports import Problem, Progress
from pressmark.threads import ordered_map, resolve_threads

__all__ = ["NewBag", "create_small", "create_small_bags", "is_supported"]

# Directories changed at the same time, on all threads. The lock of each is an open file; some systems allow 256.
LOCKS = 128
# Directories in a batch.
LEAST = 16


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


class _Folder:
    """A directory that becomes a bag.

    :param base: its real path
    :ivar contents: of its tag files
    :ivar info: returns the elements of its bag-info.txt
    :ivar is_created: whether it is a bag now
    :ivar changed: path of a file that was changed after it was read, which prevented the bag; else :data:`None`
    """

    __slots__ = (
        "base",
        "bytes",
        "changed",
        "contents",
        "digests",
        "entries",
        "files",
        "info",
        "is_created",
        "problems",
    )

    def __init__(self, base: bytes, entries: Entries, digests: Digests) -> None:
        self.base = base
        self.entries = entries
        self.files = [(path, facts) for path, facts in entries if facts is not None]
        self.digests = digests
        self.bytes = sum([facts[0] for _path, facts in self.files])
        self.problems: list[Problem] = []
        if len(self.files) < len(entries):
            self.problems = [
                problem("directory-empty", path)._replace(severity="warning") for path in empty_directories(entries)
            ]
        self.contents: Contents = {}
        self.is_created = False
        self.changed: bytes | None = None

    def is_movable(self) -> bool:
        """Return whether all directories can be moved, which writes to them."""
        return len(self.files) == len(self.entries) or all(
            is_writable(b"%b/%b" % (self.base, path))
            for path, facts in self.entries
            if facts is None and b"/" not in path
        )

    def write_tag_files(self, options: CreateOptions, new: bytes) -> None:
        """Set :attr:`contents`.

        :param new: directory for tag files that are large
        """
        with TagWriter(options, new) as tags:
            for (path, _facts), digests in zip(self.files, self.digests, strict=True):
                tags.add(path, digests)
            self.contents, self.info = tags.finish(self.bytes, len(self.files)), tags.info

    def moves(self) -> Moves:
        """Return the moves that make it a bag with its tag files."""
        names = [path for path, _facts in self.entries if b"/" not in path]
        return Moves.ordered(FORMAT, names, self.contents, nested=True)

    def compare(self, now: Entries | None) -> None:
        """Set :attr:`changed` if its files are no longer as they were read."""
        if now != self.entries:
            differing = set(self.entries).symmetric_difference(now or ())
            self.changed = min((path for path, _facts in differing), default=b"")


def is_supported(options: CreateOptions) -> bool:
    """Return whether bags with these options can be created here."""
    return not options.tag_files and options.read == "parallel"


def create_small(path: bytes, options: CreateOptions, nested: bool, on_event: Listener) -> BagInfo | None:
    """Create a bag in place; return the content of bag-info.txt.

    :return: :data:`None` if nothing was changed, or the next run finishes or reverses the change
    :raises BagError: a file was changed while the bag was created; nothing was changed
    """
    folder = _read(_real_paths([path]), options, nested)[0]
    if folder is None:
        return None
    _create([folder], options, nested, on_event)
    if folder.changed is not None:
        raise BagError(os.path.join(path, folder.changed), APPEARED)
    return folder.info() if folder.is_created else None


def create_small_bags(paths: Sequence[bytes], options: CreateOptions, nested: bool) -> Generator[NewBag | None]:
    """Create bags in place of many directories; yield each bag in order, once it is on disk.

    :return: :data:`None` for a directory that :func:`create_small` leaves unchanged, or that was changed in the
        meantime
    """
    workers = min(resolve_threads(options.threads), LOCKS // LEAST)
    bases = _real_paths(paths)
    if not is_supported(options) or _are_nested(bases):
        yield from [None] * len(paths)
        return
    size = max(LEAST, min(LOCKS // workers, len(paths) // (4 * workers)))
    batches = [bases[begin : begin + size] for begin in range(0, len(bases), size)]
    create = partial(_create_batch, options=options, nested=nested)
    for found in ordered_map(create, batches, threads=workers, name="pressmark-bags"):
        yield from found


def _create_batch(bases: list[bytes], options: CreateOptions, nested: bool) -> list[NewBag | None]:
    folders = _read(bases, options, nested)
    _create([folder for folder in folders if folder is not None], options, nested, lambda _event: None)
    names = tuple(sorted(options.algorithms))
    return [
        NewBag(len(folder.files), folder.bytes, names, folder.problems)
        if folder is not None and folder.is_created
        else None
        for folder in folders
    ]


def _create(folders: Sequence[_Folder], options: CreateOptions, nested: bool, on_event: Listener) -> None:
    """Create bags of directories that were read; one that fails is unchanged, or left to the next run."""
    entered = enter([folder.base for folder in folders], FORMAT, resume=False)
    changes = [change for change in entered if isinstance(change, Change)]
    folders = [folder for folder, change in zip(folders, entered, strict=True) if isinstance(change, Change)]
    if not folders:
        return
    by_change = dict(zip(changes, folders, strict=True))
    files, nbytes = sum(len(folder.files) for folder in folders), sum(folder.bytes for folder in folders)

    def check(going: list[Change]) -> list[bool]:
        on_event(Progress("check", of_items=files, of_bytes=nbytes))
        read = [by_change[change] for change in going]
        for folder, now in zip(read, list_small_folders([folder.base for folder in read], STAGING), strict=True):
            folder.compare(now)
        unchanged = [folder.changed is None for folder in read]
        if any(unchanged):
            on_event(Progress("move"))
        return unchanged

    try:
        on_event(Progress("examine"))
        for found in [found for folder in folders for found in folder.problems]:
            on_event(Notice(found))
        on_event(Progress("hash", of_items=files, of_bytes=nbytes))
        on_event(Progress(items=files, bytes=nbytes))
        on_event(Progress("tag"))
        for folder, change in zip(folders, changes, strict=True):
            folder.write_tag_files(options, change.new)
        moves, contents = [folder.moves() for folder in folders], [folder.contents for folder in folders]
        errors = commit(changes, options.request(nested=nested), moves, contents, check=check, alone=APPEARED)
    finally:
        leave(changes)
    for folder, error in zip(folders, errors, strict=True):
        folder.is_created = error is None


def _read(bases: list[bytes], options: CreateOptions, nested: bool) -> list[_Folder | None]:
    """Read directories; :data:`None` for one that is unusual.

    :param bases: their real paths
    """
    is_excluded = options.is_excluded
    folders: list[_Folder | None] = []
    for base, found in zip(bases, read_small_folders(bases, STAGING, options.algorithms), strict=True):
        folder = None
        if found is not None and _is_plain(found[0], nested, is_excluded):
            with suppress(OSError):
                folder = _Folder(base, *found)
        folders.append(folder if folder is not None and folder.is_movable() else None)
    return folders


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
