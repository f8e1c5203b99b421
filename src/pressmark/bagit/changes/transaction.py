"""All or nothing: a change of a directory that is made whole or not at all, wherever it is interrupted.

Everything new is written into a hidden directory inside the one that is changed. Then a journal says what is to be
moved out of the way and what is to be moved in; writing it is one rename, and that rename is the decision. Before it,
nothing but the hidden directory is there; after it, whoever comes next (this run, or another after a crash) makes the
same moves, however many of them were made already. Where a move is refused, the moves are made backwards.

::

    .pressmark-bag/
    ├── lock            held while a run is at work
    ├── new/            what is to be moved in
    ├── old/            what is moved out, and removed in the end
    ├── data/           what is moved out to be moved in again as a whole
    ├── journal         decided: the moves are to be made
    └── journal.undo    decided: the moves are to be made backwards

Nothing is ever overwritten: every move has a target that is not there. All moves out come before all moves in, so what
is left to be done can be read off the hidden directory alone: what is to be moved in and is no longer in it was.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from time import sleep
from types import TracebackType
from typing import Any, NamedTuple

from pressmark.bagit.bag_directory import STAGING
from pressmark.errors import BagError
from pressmark.fs.durable import exists, flush_directory, flush_tree
from pressmark.fs.owners import UntrustedError
from pressmark.fs.removal import remove_tree
from pressmark.fs.staging import StagingDirectory

__all__ = [
    "Transaction",
    "enter",
    "is_decided",
    "recover",
    "refusing",
]

DECLARATION = b"bagit.txt"
JOURNAL, UNDO, PART = b"journal", b"journal.undo", b"journal.part"
VERSION = 1
AGAIN = "run the same command again"
# A virus scanner may hold a file that was just written: Windows refuses to rename it for a moment.
RENAME_TRIES, RENAME_PAUSE = 8, 0.05  # seconds, doubled each time


class _Moves(NamedTuple):
    """What is to be moved, all of it by names in the base directory: a journal cannot lead anywhere else.

    :ivar out: names that are moved out of the way
    :ivar into: names that are moved in, in this order, after everything was moved out
    :ivar payload: what is moved out is moved in again, first of all, as the directory ``data``
    """

    out: list[bytes]
    into: list[bytes]
    payload: bool

    @property
    def moves_out(self) -> list[tuple[bytes, bytes]]:
        """From where to where, relative to the base directory."""
        away = os.path.join(STAGING, b"data" if self.payload else b"old")
        return [(name, os.path.join(away, name)) for name in self.out]

    @property
    def moves_in(self) -> list[tuple[bytes, bytes]]:
        """From where to where, relative to the base directory."""
        data = [(os.path.join(STAGING, b"data"), b"data")] if self.payload else []
        return data + [(os.path.join(STAGING, b"new", name), name) for name in self.into]


@contextlib.contextmanager
def refusing(path: str | bytes, way_out: str = "") -> Iterator[None]:
    """Turn what the operating system refuses into a :class:`BagError` for ``path``, or for the file it names.

    :param way_out: what to do about it, where there is more to say than to mend it
    """
    try:
        yield
    except OSError as error:
        named = error.filename if isinstance(error.filename, (str, bytes)) else path
        reason = error.strerror or str(error)
        raise BagError(named, f"{reason}; {way_out}" if way_out else reason) from error


def enter(
    staging: bytes, base: bytes, *, holds: frozenset[bytes] | None = None, shared: bool = False
) -> StagingDirectory:
    """Make the hidden directory of a change of ``base``, or take it over from a run that was killed, and lock it.

    :param holds: as for :class:`~pressmark.fs.staging.StagingDirectory`, as is ``shared``
    :raises BagError: it cannot be made, another run is at work, or somebody else could have made or filled it
    :raises OSError: its lock cannot be made
    """
    try:
        return StagingDirectory(staging, holds=holds, shared=shared)
    except BlockingIOError:
        raise BagError(base, "another run is changing it; wait for its end") from None
    except UntrustedError as error:
        raise BagError(error.filename, error.reason) from None
    except OSError as error:
        if error.filename != staging:
            raise
        # Nobody knows the hidden name; what cannot be changed is the directory that it would be in.
        raise BagError(base, f"nothing can be written there: {error.strerror or error}") from error


def is_decided(base: bytes) -> bool:
    """Return whether a change of ``base`` was decided and not finished: it is neither as it was nor as it will be.

    :raises BagError: the system cannot say
    """
    with refusing(base):
        return any(exists(os.path.join(base, STAGING, name)) for name in (JOURNAL, UNDO))


def recover(base: bytes) -> dict[str, Any] | None:
    """Finish what an interrupted run had decided to do to ``base``, or remove what it had only prepared.

    :return: the request of the change that was finished; :data:`None` where there was none
    :raises BagError: another run is at work, or a move cannot be made
    """
    with refusing(base):
        if not exists(os.path.join(base, STAGING)):
            return None
    with Transaction(base) as transaction:
        return transaction.recovered


class Transaction:
    """A change of the directory ``base``; a context manager. Whatever is not committed in it never happened.

    It locks ``base`` against other runs, and finishes what an interrupted one had decided.

    :param base: a directory

    :ivar new: a directory for what will be moved in
    :ivar data: a path for a directory that payload is moved into before it is moved in as a whole; it does not exist
    :ivar recovered: the request of an interrupted change that was finished first; else :data:`None`
    :raises BagError: ``base`` cannot be written to, another run is at work, or an interrupted change cannot be finished
    """

    def __init__(self, base: bytes) -> None:
        self._base = base
        self.staging = os.path.join(base, STAGING)
        self.new = os.path.join(self.staging, b"new")
        self.data = os.path.join(self.staging, b"data")
        self._old = os.path.join(self.staging, b"old")
        self.recovered: dict[str, Any] | None = None
        with refusing(base):
            # A team finishes what one of them began: whoever may write to the bag may change it.
            self._entered = enter(self.staging, base, shared=True)
            try:
                self._recover()
                os.mkdir(self.new)
            except BaseException:
                self._entered.abandon()
                raise

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if self._may_be_decided():
            self._entered.abandon()
            return
        with contextlib.suppress(OSError):  # what is left is removed by the next run
            self._clean()
        self._entered.leave()

    def _may_be_decided(self) -> bool:
        """Return whether a change could be neither finished nor undone, as far as anybody can say: nothing may go."""
        try:
            return is_decided(self._base)
        except BagError:
            return True

    def commit(
        self,
        request: dict[str, Any],
        moves_out: Iterable[bytes],
        moves_in: Iterable[bytes],
        *,
        payload: bool = False,
        between: Callable[[], None] | None = None,
    ) -> None:
        """Make the change: move some names out of the base directory, then others in, or leave all as it was.

        ``bagit.txt`` is the first to go and the last to come; before it comes, all others are on the disk.

        :param request: what is being done, as JSON can hold it; a later run gets it as :attr:`recovered`
        :param moves_out: names in the base directory
        :param moves_in: names in :attr:`new`
        :param payload: what is moved out goes to :attr:`data`, which is moved in first, and is not removed
        :param between: called when everything is moved out; what it raises undoes the change
        :raises BagError: something could not be moved; everything is as it was, or the next run makes it so or finishes
        """
        # Whatever is missing or half new, nobody takes it for a bag as long as this is away.
        out = sorted(moves_out, key=lambda name: (name != DECLARATION, name))
        into = sorted(moves_in, key=lambda name: (name == DECLARATION, name))
        moves = _Moves(out, into, payload)
        with refusing(self._base, "nothing was changed"):
            if payload:
                os.mkdir(self.data)
                shutil.copymode(self._base, self.data)
            else:
                os.mkdir(self._old)
            flush_tree(self.new)
            self._decide(request, moves)
        try:
            with refusing(self._base, "nothing was changed"):
                self._move_out(moves)
                if between is not None:
                    between()
                self._move_in(moves)
        except BaseException:
            with refusing(self._base, AGAIN):
                os.rename(self._path(JOURNAL), self._path(UNDO))
                self._undo(moves)
                os.unlink(self._path(UNDO))
            raise
        # From here on the change is made, whatever else happens.
        with refusing(self._base, AGAIN):
            os.unlink(self._path(JOURNAL))

    def _decide(self, request: dict[str, Any], moves: _Moves) -> None:
        journal = {
            "pressmark_bag": VERSION,
            "request": request,
            "out": list(map(os.fsdecode, moves.out)),
            "in": list(map(os.fsdecode, moves.into)),
            "payload": moves.payload,
        }
        with open(self._path(PART), "xb") as file:
            file.write(json.dumps(journal).encode())
            file.flush()
            os.fsync(file.fileno())
        os.rename(self._path(PART), self._path(JOURNAL))
        try:
            flush_directory(self.staging)
        except OSError:
            # Who is told that nothing was changed must not find it changed by the next run.
            with refusing(self._base, AGAIN):
                os.unlink(self._path(JOURNAL))
            raise

    # --- the moves, each of which may have been made already ------------------------------------------------------

    def _move_out(self, moves: _Moves) -> None:
        for source, target in moves.moves_out:
            if not self._there(target):
                self._move(source, target)
        flush_directory(self.data if moves.payload else self._old)
        flush_directory(self._base)

    def _move_in(self, moves: _Moves) -> None:
        *others, last = moves.moves_in
        for source, target in (*others, last):
            if (source, target) == last:
                flush_directory(self._base)
            if self._there(source):
                if self._there(target):
                    raise BagError(os.path.join(self._base, target), "it came in the way of a change; move it away")
                self._move(source, target)
        flush_directory(self._base)

    def _undo(self, moves: _Moves) -> None:
        with refusing(self._base, AGAIN):
            for source, target in reversed(moves.moves_in):
                if not self._there(source):
                    self._move(target, source)
            for source, target in reversed(moves.moves_out):
                if self._there(target):
                    if self._there(source):
                        raise BagError(os.path.join(self._base, source), "it came in the way; move it away")
                    self._move(target, source)
            flush_directory(self._base)

    def _move(self, source: bytes, target: bytes) -> None:
        source, target = os.path.join(self._base, source), os.path.join(self._base, target)
        for again in range(RENAME_TRIES):
            try:
                os.rename(source, target)
                return
            except PermissionError:
                if os.name != "nt" or again == RENAME_TRIES - 1:
                    raise
                sleep(RENAME_PAUSE * 2**again)

    def _there(self, name: bytes) -> bool:
        return exists(os.path.join(self._base, name))

    # --- what an earlier run has left -----------------------------------------------------------------------------

    def _recover(self) -> None:
        for folder in (self.new, self._old, self.data):
            if exists(folder) and not stat.S_ISDIR(os.lstat(folder).st_mode):
                raise BagError(folder, "it is not what an interrupted run leaves; move it away")
        for name in (UNDO, JOURNAL):
            path = self._path(name)
            if not exists(path):
                continue
            request, moves = _read(path)
            with refusing(self._base, AGAIN):
                if name == UNDO:
                    self._undo(moves)
                else:
                    # Once something was moved in, everything had been moved out; the names may be taken again.
                    if all(self._there(source) for source, _target in moves.moves_in):
                        self._move_out(moves)
                    self._move_in(moves)
                    self.recovered = request
                os.unlink(path)
        self._clean()

    def _clean(self) -> None:
        for folder in (self.new, self._old):
            remove_tree(folder)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path(PART))
        # Never with what is in it: that would be payload.
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(self.data)

    def _path(self, name: bytes) -> bytes:
        return os.path.join(self.staging, name)


def _read(path: bytes) -> tuple[dict[str, Any], _Moves]:
    """Return the request and the moves of a journal, which anybody may have written who made the bag."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as file:
            journal = json.load(file)
        if journal["pressmark_bag"] != VERSION:
            raise BagError(path, "it was written by another version of Pressmark; finish the change with that one")
        moves = _Moves(
            list(map(os.fsencode, journal["out"])), list(map(os.fsencode, journal["in"])), journal["payload"] is True
        )
        request = dict(journal["request"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise BagError(path, f"the journal of an interrupted change is damaged: {error}; move it away") from None
    for name in (*moves.out, *moves.into):
        if name in (b"", b".", b"..", STAGING) or os.path.basename(name) != name or b"\0" in name:
            raise BagError(path, f"the journal of an interrupted change is damaged: no name {name!r}; move it away")
    if not moves.moves_in:
        raise BagError(path, "the journal of an interrupted change is damaged: it moves nothing in; move it away")
    return request, moves
