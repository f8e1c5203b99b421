"""Changes of names and small files as data: lists of steps, each in a directory, run in order.

Many directories are changed by one call. A step is a tuple: see :data:`~pressmark._kernels.records.Step`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from errno import EEXIST
from itertools import accumulate, chain
from typing import NamedTuple

from pressmark._kernels.records import ALONE, FLUSH, LOCK, MAKE, MODE, MOVE, RMDIR, UNLINK, WRITE, Step
from pressmark.fs.durable import can_flush_filesystem, flush_filesystem, step_kernels

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
    "Phase",
    "Step",
    "StepError",
    "run_phases",
    "run_steps",
    "write_new",
]

# Paths of more directories, or more paths, are flushed with their whole file systems.
DIRECTORIES, PATHS = 4, 64


class StepError(OSError):
    """A step that failed; the steps before it were made. ``filename`` is the path that it is about.

    :ivar step: the step; :data:`None` if all were made, and their file system could not be flushed
    :ivar done: the number of steps before it
    :ivar lock: descriptor of a file that one of them locked, or -1; the receiver closes it
    """

    def __init__(self, number: int, base: bytes, steps: list[Step], done: int, lock: int) -> None:
        self.step = step = steps[done] if done < len(steps) else None
        self.done = done
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


class Phase(NamedTuple):
    """Steps that are flushed to disk before the next phase begins.

    :ivar steps: the steps
    :ivar flush: the steps ``FLUSH`` of what they change
    """

    steps: list[Step]
    flush: list[Step]

    @classmethod
    def of(cls, steps: list[Step], changed: Iterable[bytes]) -> Phase:
        """Return a phase.

        :param changed: what the steps change, as paths in the directory: files, directories, or empty for itself
        """
        return cls(steps, [(FLUSH, path, None) for path in changed])


def run_steps(bases: list[bytes], lists: list[list[Step]]) -> list[StepError | int]:
    """Run a list of steps in each directory, and stop there at the first failure.

    :param bases: the directories
    :param lists: the steps of each directory; several may share a list
    :return: for each directory the descriptor of a file that was locked, which the caller closes, or -1; or the error
    """
    return [
        StepError(error, base, steps, done, lock) if error else lock
        for base, steps, (error, done, lock) in zip(bases, lists, step_kernels().run_steps(bases, lists), strict=True)
    ]


def write_new(base: bytes, contents: Mapping[bytes, bytes | None]) -> None:
    """Create files in a directory, in this order, and the directories whose content is :data:`None`.

    :param contents: by path in the directory, which is empty for itself
    :raises StepError: one cannot be created; those before it were
    """
    steps: list[Step] = [
        (MAKE, path, 0o777) if data is None else (WRITE, path, data) for path, data in contents.items()
    ]
    [outcome] = run_steps([base], [steps])
    if isinstance(outcome, StepError):
        raise outcome


def run_phases(
    bases: list[bytes], plans: Sequence[Sequence[Phase]], devices: Sequence[int]
) -> list[tuple[int, StepError] | None]:
    """Run the phases of each directory in order, and stop there at its first failure; each is flushed before the next.

    Up to 64 paths in up to four directories are flushed one by one, more with their file systems.

    :param plans: the phases of each directory; all have the same number
    :param devices: the number of each directory's file system
    :return: for each directory the number of the phase that failed, and its error; :data:`None` if none did
    """
    flushed = sum(len(phase.flush) for plan in plans for phase in plan)
    if (len(bases) <= DIRECTORIES and flushed <= PATHS) or not can_flush_filesystem():
        lists = [list(chain.from_iterable(chain.from_iterable(plan))) for plan in plans]
        return [
            (_phase_of(plan, outcome.done), outcome) if isinstance(outcome, StepError) else None
            for plan, outcome in zip(plans, run_steps(bases, lists), strict=True)
        ]
    failed: dict[int, tuple[int, StepError]] = {}
    for number in range(max(map(len, plans))):
        going = [index for index in range(len(bases)) if index not in failed and any(plans[index][number])]
        if not going:
            continue
        lists = [plans[index][number].steps for index in going]
        for index, outcome in zip(going, run_steps([bases[index] for index in going], lists), strict=True):
            if isinstance(outcome, StepError):
                failed[index] = number, outcome
        going = [index for index in going if index not in failed and plans[index][number].flush]
        errors = _flush_filesystems({devices[index]: bases[index] for index in going})
        for index in going:
            error = errors.get(devices[index])
            if error is not None:
                steps = plans[index][number].steps
                failed[index] = number, StepError(error.errno or 0, bases[index], steps, len(steps), -1)
    return [failed.get(index) for index in range(len(bases))]


def _phase_of(plan: Sequence[Phase], done: int) -> int:
    """Return the number of the phase that contains the first step that was not made.

    :param done: number of steps of all phases before it
    """
    ends = accumulate(len(phase.steps) + len(phase.flush) for phase in plan)
    return next(number for number, end in enumerate(ends) if done < end)


def _flush_filesystems(directories: Mapping[int, bytes]) -> dict[int, OSError]:
    """Flush file systems, and return the errors by their numbers.

    :param directories: a directory of each, by its number
    """
    errors = {}
    for device, directory in directories.items():
        try:
            flush_filesystem(directory)
        except OSError as error:
            errors[device] = error
    return errors
