"""Turn the content of directories into the payload of bags, many directories at a time.

The steps and the files on disk are those of :class:`~pressmark.fs.transaction.Transaction`: the next run finishes or
reverses the changes that an interrupted run has committed. But each step is one call for all directories, and many
directories are flushed together. The caller changes the directories that fail one by one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from stat import S_IMODE
from types import TracebackType
from typing import Any, Self

from pressmark import _kernels
from pressmark.bagit.bag_directory import STAGING
from pressmark.bagit.changes.bag_transaction import FORMAT, recover
from pressmark.errors import BagError
from pressmark.fs.durable import can_flush_filesystem, flush_filesystem
from pressmark.fs.owners import shared_mode
from pressmark.fs.staging import LOCK
from pressmark.fs.transaction import JOURNAL, NESTED, NEW, PART, UNDO, Moves, journal_bytes

__all__ = ["SmallChange", "SmallChanges"]

# The numbers of the kernel's steps.
_MAKE, _MODE, _LOCK, _WRITE, _FLUSH, _MOVE, _ALONE, _UNLINK, _RMDIR = range(9)
_Step = tuple[int, bytes, bytes | int | None]
# More directories are flushed with their whole file systems.
_FEW = 4


class SmallChange:
    """A change of a directory.

    :param base: the real path of the directory
    :param out: all names in it, which become the payload
    :ivar new: the content of the new files by name; set before :meth:`SmallChanges.prepare`
    """

    __slots__ = ("base", "device", "lock", "mode", "moves", "new", "out", "staging")

    def __init__(self, base: bytes, out: list[bytes]) -> None:
        status = os.stat(base)
        self.base, self.out = base, out
        self.staging = base + b"/" + STAGING
        self.mode, self.device = status.st_mode, status.st_dev
        self.new: Mapping[bytes, bytes] = {}
        self.moves = Moves([], [], True)
        self.lock = -1

    def abandon(self) -> None:
        """Release the lock. The next run reverses the change, or removes its files if it was not committed."""
        if self.lock >= 0:
            with suppress(OSError):
                os.rename(self._path(JOURNAL), self._path(UNDO))
            self.close()

    def close(self) -> None:
        """Release the lock."""
        if self.lock >= 0:
            os.close(self.lock)
        self.lock = -1

    def _path(self, name: bytes) -> bytes:
        return self.staging + b"/" + name

    # --- steps; after each, these files and directories must be on disk ---------------------------------------------

    def enter(self) -> list[_Step]:
        """Return the steps that create and lock the hidden directory."""
        return [(_MAKE, self.staging, shared_mode(self.mode)), (_LOCK, self._path(LOCK), None)]

    def prepare(self, request: dict[str, Any]) -> tuple[list[_Step], list[bytes]]:
        """Return the steps that write the new files and the journal, not yet under its name."""
        new, nested, part = self._path(NEW), self._path(NESTED), self._path(PART)
        files = [(new + b"/" + name, content) for name, content in self.new.items()]
        self.moves = Moves.ordered(FORMAT, self.out, self.new, True)
        files.append((part, journal_bytes(FORMAT, request, self.moves)))
        steps: list[_Step] = [(_MAKE, new, 0o777), (_MAKE, nested, 0o777), (_MODE, nested, S_IMODE(self.mode))]
        steps += [(_WRITE, *file) for file in files]
        return steps, [*(path for path, _content in files), new]

    def decide(self) -> tuple[list[_Step], list[bytes]]:
        """Return the step that commits the change."""
        return [(_MOVE, self._path(PART), self._path(JOURNAL))], [self.staging]

    def move_out(self) -> tuple[list[_Step], list[bytes]]:
        """Return the steps that move everything out."""
        base, nested = self.base + b"/", self._path(NESTED) + b"/"
        moves: list[_Step] = [(_MOVE, base + name, nested + name) for name in self.moves.out]
        # A name that has appeared in between is not part of the change.
        return [*moves, (_ALONE, self.base, STAGING)], [self._path(NESTED), self.base]

    def move_in(self) -> tuple[list[_Step], list[bytes]]:
        """Return the steps that move everything in, except the marker."""
        base, new = self.base + b"/", self._path(NEW) + b"/"
        steps: list[_Step] = [(_MOVE, self._path(NESTED), base + FORMAT.content)]
        steps += [(_MOVE, new + name, base + name) for name in self.moves.into[:-1]]
        return steps, [self.base]

    def finish(self) -> tuple[list[_Step], list[bytes]]:
        """Return the step that moves the marker in."""
        marker = self.moves.into[-1]
        return [(_MOVE, self._path(NEW) + b"/" + marker, self.base + b"/" + marker)], [self.base]

    def close_journal(self) -> list[_Step]:
        """Return the step after which the change is complete."""
        return [(_UNLINK, self._path(JOURNAL), None)]

    def clean(self) -> list[_Step]:
        """Return the steps that remove the hidden directory."""
        return [(_RMDIR, self._path(NEW), None), (_UNLINK, self._path(LOCK), None), (_RMDIR, self.staging, None)]


class SmallChanges:
    """Changes of directories; a context manager. A change that fails is left out of :attr:`changes`.

    The hidden directory of a failed change remains for the next run, unless an exception leaves the context.

    :param changes: the changes to make
    :ivar changes: those that have not failed
    """

    def __init__(self, changes: Sequence[SmallChange]) -> None:
        self.changes = self._all = list(changes)
        self._flushes_together = len(changes) > _FEW and can_flush_filesystem()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for change in self._all:
            if change.lock >= 0:
                change.abandon()
                if kind is not None:
                    with suppress(BagError):
                        recover(change.base)

    def enter(self) -> None:
        """Create and lock the hidden directories."""
        self._run([change.enter() for change in self.changes])

    def prepare(self, request: dict[str, Any]) -> None:
        """Write the new files.

        :param request: a record of the change: see :meth:`~pressmark.fs.transaction.Transaction.commit`
        """
        self._run_flushed(lambda change: change.prepare(request))

    def discard(self, change: SmallChange) -> None:
        """Leave out a change."""
        change.abandon()
        self.changes = [one for one in self.changes if one is not change]

    def commit(self) -> None:
        """Make the changes."""
        for steps in (
            SmallChange.decide,
            SmallChange.move_out,
            SmallChange.move_in,
            SmallChange.finish,
        ):
            self._run_flushed(steps)
        if not self.changes:
            return
        self._run([change.close_journal() for change in self.changes])
        # What cannot be removed is left to the next run.
        _kernels.active.run_steps([change.clean() for change in self.changes])
        for change in self.changes:
            change.close()

    def _run_flushed(self, make: Callable[[SmallChange], tuple[list[_Step], list[bytes]]]) -> None:
        if not self.changes:
            return
        made = [make(change) for change in self.changes]
        if not self._flushes_together:
            self._run([[*steps, *((_FLUSH, path, None) for path in paths)] for steps, paths in made])
            return
        self._run([steps for steps, _paths in made])
        for device, base in {change.device: change.base for change in self.changes}.items():
            try:
                flush_filesystem(base)
            except OSError:
                self._keep([change.device != device for change in self.changes])

    def _run(self, steps: list[list[_Step]]) -> None:
        results = _kernels.active.run_steps(steps)
        for change, (_error, lock) in zip(self.changes, results, strict=True):
            if lock >= 0:
                change.lock = lock
        self._keep([not error for error, _lock in results])

    def _keep(self, are_kept: list[bool]) -> None:
        if all(are_kept):
            return
        for change, is_kept in zip(self.changes, are_kept, strict=True):
            if not is_kept:
                change.abandon()
        self.changes = [change for change, is_kept in zip(self.changes, are_kept, strict=True) if is_kept]
