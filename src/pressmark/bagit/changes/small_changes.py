"""Turn the content of directories into the payload of bags, many directories at a time.

The steps and the files on disk are those of :class:`~pressmark.fs.transaction.Transaction`: the next run finishes or
reverses the changes that an interrupted run has committed. But each step is one call for all directories, and many
directories are flushed together. The caller changes the directories that fail one by one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
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
from pressmark.fs.transaction import JOURNAL, NESTED, NEW, PART, UNDO, Moves, journal_writer

__all__ = ["SmallChange", "SmallChanges"]

# The numbers of the kernel's steps.
_MAKE, _MODE, _LOCK, _WRITE, _FLUSH, _MOVE, _ALONE, _UNLINK, _RMDIR = range(9)
_Step = tuple[int, bytes, bytes | int | None]
# More directories are flushed with their whole file systems.
_FEW = 4


def _hidden(*names: bytes) -> bytes:
    """Return a path in the hidden directory, relative to the base directory."""
    return b"/".join((STAGING, *names))


_JOURNAL = _hidden(JOURNAL)


class SmallChange:
    """A change of a directory.

    :param base: the real path of the directory
    :param out: all names in it, which become the payload
    :ivar new: the content of the new files by name; set before :meth:`SmallChanges.prepare`
    """

    __slots__ = ("base", "device", "lock", "mode", "new", "out")

    def __init__(self, base: bytes, out: list[bytes]) -> None:
        status = os.stat(base)
        self.base, self.out = base, Moves.ordered(FORMAT, out, (), True).out
        self.mode, self.device = status.st_mode, status.st_dev
        self.new: Mapping[bytes, bytes] = {}
        self.lock = -1

    def abandon(self) -> None:
        """Release the lock. The next run reverses the change, or removes its files if it was not committed."""
        if self.lock >= 0:
            with suppress(OSError):
                os.rename(self.base + b"/" + _JOURNAL, self.base + b"/" + _hidden(UNDO))
            self.close()

    def close(self) -> None:
        """Release the lock."""
        if self.lock >= 0:
            os.close(self.lock)
        self.lock = -1


class SmallChanges:
    """Changes of directories; a context manager. A change that fails is left out of :attr:`changes`.

    The hidden directory of a failed change remains for the next run, unless an exception leaves the context.

    :param changes: the changes to make
    :ivar changes: those that have not failed
    """

    def __init__(self, changes: Sequence[SmallChange]) -> None:
        self.changes = self._all = list(changes)
        self._into: list[bytes] = []
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
        lock: _Step = (_LOCK, _hidden(LOCK), None)
        self._run([[(_MAKE, STAGING, shared_mode(change.mode)), lock] for change in self.changes])

    def prepare(self, request: dict[str, Any]) -> None:
        """Write the new files and the journals, not yet under their name.

        :param request: a record of the change: see :meth:`~pressmark.fs.transaction.Transaction.commit`
        """
        if not self.changes:
            return
        names = self.changes[0].new
        self._into = Moves.ordered(FORMAT, [], names, True).into
        write_journal = journal_writer(FORMAT, request, self._into, True)
        make: list[_Step] = [(_MAKE, _hidden(NEW), 0o777), (_MAKE, _hidden(NESTED), 0o777)]
        paths = [(name, _hidden(NEW, name)) for name in names]
        all_steps = []
        for change in self.changes:
            steps: list[_Step] = [*make, (_MODE, _hidden(NESTED), S_IMODE(change.mode))]
            steps += [(_WRITE, path, change.new[name]) for name, path in paths]
            steps.append((_WRITE, _hidden(PART), write_journal(change.out)))
            all_steps.append(steps)
        self._run(all_steps, [*(path for _name, path in paths), _hidden(PART), _hidden(NEW)])

    def discard(self, change: SmallChange) -> None:
        """Leave out a change."""
        change.abandon()
        self.changes = [one for one in self.changes if one is not change]

    def commit(self) -> None:
        """Make the changes."""
        if not self.changes:
            return
        *others, marker = [(_MOVE, _hidden(NEW, name), name) for name in self._into]
        self._run_all([(_MOVE, _hidden(PART), _JOURNAL)], [STAGING])
        # A name that has appeared in between is not part of the change.
        alone: _Step = (_ALONE, b"", STAGING)
        moves = [[*((_MOVE, name, _hidden(NESTED, name)) for name in change.out), alone] for change in self.changes]
        self._run(moves, [_hidden(NESTED), b""])
        self._run_all([(_MOVE, _hidden(NESTED), FORMAT.content), *others], [b""])
        self._run_all([marker], [b""])
        self._run_all([(_UNLINK, _JOURNAL, None)])
        # What cannot be removed is left to the next run.
        clean: list[_Step] = [(_RMDIR, _hidden(NEW), None), (_UNLINK, _hidden(LOCK), None), (_RMDIR, STAGING, None)]
        _kernels.active.run_steps([change.base for change in self.changes], [clean] * len(self.changes))
        for change in self.changes:
            change.close()

    def _run_all(self, steps: list[_Step], written: Sequence[bytes] = ()) -> None:
        self._run([steps] * len(self.changes), written)

    def _run(self, changes: list[list[_Step]], written: Sequence[bytes] = ()) -> None:
        """Run the steps of each change.

        :param written: after the steps, these files and directories must be on disk
        """
        if written and not self._flushes_together:
            flushes: list[_Step] = [(_FLUSH, path, None) for path in written]
            changes = [[*steps, *flushes] for steps in changes]
        results = _kernels.active.run_steps([change.base for change in self.changes], changes)
        for change, (_error, lock) in zip(self.changes, results, strict=True):
            if lock >= 0:
                change.lock = lock
        self._keep([not error for error, _lock in results])
        if not written or not self._flushes_together:
            return
        for device, base in {change.device: change.base for change in self.changes}.items():
            try:
                flush_filesystem(base)
            except OSError:
                self._keep([change.device != device for change in self.changes])

    def _keep(self, are_kept: list[bool]) -> None:
        if all(are_kept):
            return
        for change, is_kept in zip(self.changes, are_kept, strict=True):
            if not is_kept:
                change.abandon()
        self.changes = [change for change, is_kept in zip(self.changes, are_kept, strict=True) if is_kept]
