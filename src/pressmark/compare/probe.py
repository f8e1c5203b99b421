"""Measure the cost of directories on a file system: create a sample of a tree, time it, and remove it."""

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

__all__ = ["file_system_type", "probe_tree"]

PREFIX = "pressmark-probe-"
_FILE = b"probe"
_CACHES = "/proc/sys/vm/drop_caches"
# Errors that concern a single path.
_PATH_ERRORS = frozenset({errno.ENAMETOOLONG, errno.EINVAL, errno.ENOTDIR, errno.EEXIST, errno.EILSEQ, errno.EISDIR})
# File systems in memory have no cache to drop.
_IN_MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs"})


def probe_tree(folder: Path, paths: Iterable[str]) -> Probe:
    """Create the directories of ``paths`` in a new directory in ``folder``, time them, and remove them.

    :param paths: paths of objects, relative to the root; each gets an empty file
    :raises OSError: ``folder`` is not a writable directory
    """
    with _temporary_tree(folder) as (root, created):
        begin = perf_counter()
        objects, skipped = _create(root, paths, created)
        create = perf_counter() - begin
        count = len(created.directories)
        begin = perf_counter()
        for name in created.files:
            os.lstat(name)
        stat = perf_counter() - begin
        kib = _kib(created.directories)
        _walk(root)
        begin = perf_counter()
        walked = _walk(root)
        warm = perf_counter() - begin
        assert walked == count, "the walk must find every directory that was created"
        kind = file_system_type(folder)
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
            stat=_times(stat, len(created.files)),
            walk_warm=_times(warm, count),
            walk_cold=cold,
        )


class _Created:
    """The directories and files of a sample in order of creation. Nothing else is removed."""

    def __init__(self) -> None:
        self.directories: list[bytes] = []
        self.files: list[bytes] = []


@contextmanager
def _temporary_tree(folder: Path) -> Iterator[tuple[bytes, _Created]]:
    """Create a new directory, and remove it with its content in any case."""
    root = os.fsencode(tempfile.mkdtemp(prefix=PREFIX, dir=folder))
    created = _Created()
    try:
        yield root, created
    finally:
        # By list, not by walk: a tree can be deeper than the recursion limit.
        for remove, names in ((os.unlink, created.files), (os.rmdir, created.directories[::-1])):
            _remove(remove, names)
        os.rmdir(root)


def _remove(remove: Callable[[bytes], None], names: Iterable[bytes]) -> None:
    for name in names:
        # The name is recorded before the file or directory is created.
        with suppress(FileNotFoundError):
            remove(name)


def _create(root: bytes, paths: Iterable[str], created: _Created) -> tuple[int, int]:
    """Create directories and files; return the number of objects created and of paths rejected."""
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
                _make_directories(root, segments, known, created)
                file = name + b"/" + _FILE
                created.files.append(file)
                os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                own.add(name)
            objects += 1
        except OSError as error:
            if error.errno not in _PATH_ERRORS:
                raise
            skipped += 1
            if created.files and created.files[-1] == name + b"/" + _FILE:
                created.files.pop()
    return objects, skipped


def _make_directories(root: bytes, segments: list[bytes], known: set[bytes], created: _Created) -> None:
    # From the bottom up: most parent directories exist already.
    name = b"/".join((root, *segments))
    missing = []
    for segment in reversed(segments):
        if name in known:
            break
        missing.append(name)
        name = name[: -len(segment) - 1]
    for name in reversed(missing):
        # Record the name first: an interrupted run must still remove the directory.
        created.directories.append(name)
        try:
            os.mkdir(name)
        except OSError:
            created.directories.pop()
            raise
        known.add(name)


def _walk(root: bytes) -> int:
    """Read every directory below ``root`` and return the number of directories."""
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
    size = 0
    for name in directories:
        blocks: Any = getattr(os.lstat(name), "st_blocks", None)
        if blocks is None:
            return None
        size += 512 * blocks
    return size // 1024


def _times(seconds: float, count: int) -> ProbeTimes:
    return ProbeTimes(seconds, 1e6 * seconds / count if count else None)


def _drop_caches(kind: str) -> str:
    """Drop the file system caches; return why that failed, or an empty string."""
    if kind in _IN_MEMORY:
        return f"{kind} is in memory: no cache to drop"
    if not os.path.exists(_CACHES):
        return "this system cannot drop its caches"
    try:
        # Dirty pages cannot be dropped; write them first.
        os.sync()
        with open(_CACHES, "w", encoding="ascii") as file:
            file.write("3\n")
    except OSError as error:
        return f"caches cannot be dropped ({error.strerror}); only root can drop them"
    return ""


def file_system_type(folder: Path) -> str:
    """Return the file system type of a directory, or an empty string if unknown."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            mounts = [line.split() for line in file]
    except OSError:
        return ""
    path = os.path.realpath(folder)
    best, kind = "", ""
    for fields in mounts:
        # The mount point has white space as octal escapes. The type follows a field that is a dash.
        point = fields[4].replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best) and "-" in fields:
            best, kind = point, fields[fields.index("-") + 1]
    return kind
