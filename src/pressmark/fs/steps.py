"""Changes of names and small files as data: lists of steps, each in a directory, run in order.

Many directories are changed by one call. A step is a tuple: see :data:`~pressmark._kernels.records.Step`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from errno import EEXIST

from pressmark import _kernels
from pressmark._kernels.records import ALONE, FLUSH, LOCK, MAKE, MODE, MOVE, RMDIR, UNLINK, WRITE, Step
from pressmark.fs.durable import can_flush_filesystem, flush_filesystem

__all__ = [
    "ALONE",
    "FLUSH",
    "LOCK",
    "MAKE",
    "MODE",
    "MOVE",
    "RMDIR",
    "UNLINK",
    "WRITE",
    "Step",
    "StepError",
    "run_steps",
]

# Paths of more directories, or more paths, are flushed with their whole file systems.
DIRECTORIES, PATHS = 4, 32


class StepError(OSError):
    """A step that failed; the steps before it were made. ``filename`` is the path that it is about.

    :ivar step: the step; :data:`None` if all were made, and their file system could not be flushed
    :ivar made: the number of steps before it
    :ivar lock: descriptor of a file that one of them locked, or -1; the receiver closes it
    """

    def __init__(self, number: int, base: bytes, steps: list[Step], made: int, lock: int) -> None:
        self.step = step = steps[made] if made < len(steps) else None
        self.made = made
        self.lock = lock
        path = base
        if step is not None:
            name = step[2] if step[0] == MOVE and number == EEXIST else step[1]
            assert isinstance(name, bytes)
            path = os.path.join(base, name)
            if step[0] == ALONE and number == EEXIST:
                with suppress(OSError, ValueError):  # ValueError: removed again
                    path = os.path.join(path, min(other for other in os.listdir(path) if other != step[2]))
        super().__init__(number, os.strerror(number), path)


def run_steps(
    bases: list[bytes],
    lists: list[list[Step]],
    flush: Sequence[Sequence[bytes]] = (),
    devices: Sequence[int] = (),
) -> list[StepError | int]:
    """Run a list of steps in each directory, and stop there at the first failure; then flush.

    :param bases: the directories
    :param lists: the steps of each directory; several may share a list
    :param flush: for each directory, paths in it that must be on disk afterwards: files, directories, or empty for
        itself. Up to 32 in up to four directories are flushed one by one, more with their file systems
    :param devices: the number of each directory's file system, if the caller knows it
    :return: for each directory the descriptor of a file that was locked, which the caller closes, or -1; or the error
    """
    is_few = len(bases) <= DIRECTORIES and sum(map(len, flush)) <= PATHS
    if flush and (is_few or not can_flush_filesystem()):
        lists = [[*steps, *[(FLUSH, path, None) for path in paths]] for steps, paths in zip(lists, flush, strict=True)]
        flush = ()
    kernels = _kernels.load("pure") if os.name == "nt" else _kernels.active  # the steps in C are calls of POSIX
    found: list[StepError | int] = [
        StepError(error, base, steps, made, lock) if error else lock
        for base, steps, (error, made, lock) in zip(bases, lists, kernels.run_steps(bases, lists), strict=True)
    ]
    if flush:
        _flush_filesystems(bases, lists, devices, found)
    return found


def _flush_filesystems(
    bases: list[bytes], lists: list[list[Step]], devices: Sequence[int], found: list[StepError | int]
) -> None:
    """Flush the file systems of directories; replace the results of those that fail by errors."""
    devices = devices or [os.stat(base).st_dev for base in bases]
    for device, base in dict(zip(devices, bases, strict=True)).items():
        try:
            flush_filesystem(base)
        except OSError as error:
            for index in range(len(bases)):
                lock = found[index]
                if devices[index] == device and isinstance(lock, int):  # the first error of a directory counts
                    steps = lists[index]
                    found[index] = failed = StepError(error.errno or 0, bases[index], steps, len(steps), lock)
                    failed.filename = error.filename or failed.filename
