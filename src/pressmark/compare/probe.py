"""What directories cost on a file system: a sample of a tree is made there, timed, and removed again."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter
from typing import Any

from pressmark.compare.result import Probe, ProbeTimes

__all__ = ["file_system", "probe_tree"]

PREFIX = "pressmark-probe-"
_FILE = b"probe"
_CACHES = "/proc/sys/vm/drop_caches"
# Why one path cannot be made, where others can.
_REFUSALS = frozenset({errno.ENAMETOOLONG, errno.EINVAL, errno.ENOTDIR, errno.EEXIST, errno.EILSEQ, errno.EISDIR})
# File systems that are memory: there is nothing behind a cache.
_IN_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs"})


def probe_tree(folder: Path, paths: Iterable[str]) -> Probe:
    """Make the directories of ``paths`` in a new directory in ``folder``, time them, and remove them.

    :param paths: of objects, below the root; each gets a file of no octets
    :raises OSError: nothing can be made there
    """
    with _made_in(folder) as (root, made):
        begin = perf_counter()
        objects, skipped = _create(root, paths, made)
        create = perf_counter() - begin
        count = len(made.directories)
        begin = perf_counter()
        for name in made.files:
            os.lstat(name)
        stat = perf_counter() - begin
        kib = _kib(made.directories)
        _walk(root)
        begin = perf_counter()
        walked = _walk(root)
        warm = perf_counter() - begin
        assert walked == count, "the tree that was walked is the one that was made"
        kind = file_system(folder)
        cold = ProbeTimes(reason=_drop_caches(kind))
        if not cold.reason:
            begin = perf_counter()
            _walk(root)
            cold = _times(perf_counter() - begin, count)
        return Probe(
            folder=str(folder),
            file_system=kind,
            objects=objects,
            directories=count,
            skipped=skipped,
            kib=kib,
            create=_times(create, count),
            stat=_times(stat, len(made.files)),
            walk_warm=_times(warm, count),
            walk_cold=cold,
        )


class _Made:
    """What was made, in the order in which it was; nothing else is ever removed."""

    def __init__(self) -> None:
        self.directories: list[bytes] = []
        self.files: list[bytes] = []


@contextmanager
def _made_in(folder: Path) -> Iterator[tuple[bytes, _Made]]:
    """Give a new directory, and remove it with all that was made in it, whatever happens."""
    root = os.fsencode(tempfile.mkdtemp(prefix=PREFIX, dir=folder))
    made = _Made()
    try:
        yield root, made
    finally:
        # By the list, not by a walk: trees may be deeper than Python recurses.
        for remove, names in ((os.unlink, made.files), (os.rmdir, made.directories[::-1])):
            _remove(remove, names)
        os.rmdir(root)


def _remove(remove: Callable[[bytes], None], names: Iterable[bytes]) -> None:
    for name in names:
        # It may have been noted and not made when something came between.
        with suppress(FileNotFoundError):
            remove(name)


def _create(root: bytes, paths: Iterable[str], made: _Made) -> tuple[int, int]:
    """Make directories and files; return how many objects were made, and how many paths were refused."""
    known: set[bytes] = set()
    own: set[bytes] = set()
    objects = skipped = 0
    for path in paths:
        segments = os.fsencode(path).split(b"/")
        if not all(segment not in (b"", b".", b"..") and b"\0" not in segment for segment in segments):
            skipped += 1
            continue
        name = b"/".join((root, *segments))
        try:
            if name not in own:
                _make_directories(root, segments, known, made)
                file = name + b"/" + _FILE
                made.files.append(file)
                os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                own.add(name)
            objects += 1
        except OSError as error:
            if error.errno not in _REFUSALS:
                raise
            skipped += 1
            if made.files and made.files[-1] == name + b"/" + _FILE:
                made.files.pop()
    return objects, skipped


def _make_directories(root: bytes, segments: list[bytes], known: set[bytes], made: _Made) -> None:
    # From below: most of them are there.
    name = b"/".join((root, *segments))
    missing = []
    for segment in reversed(segments):
        if name in known:
            break
        missing.append(name)
        name = name[: -len(segment) - 1]
    for name in reversed(missing):
        # Noted before: what is made must be removed even if somebody has enough right now.
        made.directories.append(name)
        try:
            os.mkdir(name)
        except OSError:
            made.directories.pop()
            raise
        known.add(name)


def _walk(root: bytes) -> int:
    """Read every directory below ``root`` and return how many there are."""
    count = 0
    waiting = [root]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    count += 1
                    waiting.append(entry.path)
    return count


def _kib(directories: Iterable[bytes]) -> int | None:
    octets = 0
    for name in directories:
        blocks: Any = getattr(os.lstat(name), "st_blocks", None)
        if blocks is None:
            return None
        octets += 512 * blocks
    return octets // 1024


def _times(seconds: float, count: int) -> ProbeTimes:
    return ProbeTimes(seconds, 1e6 * seconds / count if count else None)


def _drop_caches(kind: str) -> str:
    """Have the system forget what it read of disks; return why it did not, or nothing."""
    if kind in _IN_MEMORY:
        return f"{kind} is memory: there is no cache to drop"
    if not os.path.exists(_CACHES):
        return "this system has no way to drop its caches"
    try:
        # What was not written yet cannot be dropped.
        os.sync()
        with open(_CACHES, "w", encoding="ascii") as file:
            file.write("3\n")
    except OSError as error:
        return f"caches cannot be dropped ({error.strerror}): that is for the superuser"
    return ""


def file_system(folder: Path) -> str:
    """Return the type of the file system of a directory, empty where it is not known."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            mounts = [line.split() for line in file]
    except OSError:
        return ""
    place = os.path.realpath(folder)
    best, kind = "", ""
    for fields in mounts:
        # The mount point, with blanks and the like in octal; the type is behind a field that is a dash.
        point = fields[4].replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
        inside = place == point or place.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best) and "-" in fields:
            best, kind = point, fields[fields.index("-") + 1]
    return kind
