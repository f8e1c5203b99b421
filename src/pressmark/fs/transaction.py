"""Change a directory atomically, even if the change is interrupted.

New files are written to a hidden directory inside the directory that is changed. A journal then lists the names to move
out and in. The rename that creates the journal commits the change. Before it, only the hidden directory exists. After
it, the next run (this one, or another after a crash) completes the remaining moves. If a move fails, all moves are
reversed.

::

    .hidden/
    ├── lock            held during a run
    ├── new/            files to move in
    ├── old/            files that were moved out or discarded; removed at the end
    ├── data/           files that were moved out and are moved in again as one directory
    ├── journal         committed: make the moves
    └── journal.undo    committed: reverse the moves

No move overwrites anything: each target must be free. The marker is moved out first, then all discarded files, then all
others; and all moves out precede all moves in. So the state of an interrupted change follows from the hidden directory
alone: a name that is listed under "in" and is missing from ``new/`` was moved in.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from time import sleep
from types import TracebackType
from typing import Any, NamedTuple, Self

from pressmark.fs.beneath import read_regular
from pressmark.fs.durable import exists, flush_directory, flush_tree, write_flushed
from pressmark.fs.file_errors import raising
from pressmark.fs.names import first_link
from pressmark.fs.removal import remove_tree
from pressmark.fs.staging import LOCK, StagingDirectory

__all__ = [
    *("JOURNAL", "NESTED", "NEW", "OLD", "PART", "UNDO"),
    *("ChangeFormat", "Moves", "Transaction", "TransactionError", "is_decided", "journal_writer"),
]

JOURNAL, UNDO, PART = b"journal", b"journal.undo", b"journal.part"
NEW, OLD, NESTED = b"new", b"old", b"data"
RUN_AGAIN = "run the same command again"
# On Windows, a virus scanner that holds a new file makes renaming it fail for a moment.
RENAME_TRIES, RENAME_PAUSE = 8, 0.05  # seconds, doubled after each try


class TransactionError(Exception):
    """A change that could not be made, finished or undone; its cause is the :class:`OSError`, if any.

    :ivar path: the affected file or directory
    :ivar reason: the problem and what to do, on one line
    """

    def __init__(self, path: str | bytes, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason


class ChangeFormat(NamedTuple):
    """The format in which changes of one kind of directory are recorded.

    :ivar staging: name of the hidden directory
    :ivar key: key of the format number in the journal
    :ivar number: the format number
    :ivar marker: a file that is moved out first and moved in last: a directory without it counts as incomplete
    :ivar content: name of the directory that can receive everything that is moved out
    """

    staging: bytes
    key: str
    number: int
    marker: bytes
    content: bytes


class Moves(NamedTuple):
    """The moves of a journal, as names in the base directory only: a journal cannot move anything elsewhere.

    :ivar out: names to move out
    :ivar into: names to move in, in this order, after all moves out
    :ivar nested: everything that is moved out is moved in again first, as one directory
    :ivar discarded: paths below the base directory to remove; they are moved to ``old/`` before all others
    """

    out: list[bytes]
    into: list[bytes]
    nested: bool
    discarded: Sequence[bytes] = ()

    @classmethod
    def ordered(
        cls,
        form: ChangeFormat,
        out: Iterable[bytes],
        into: Iterable[bytes],
        nested: bool,
        discarded: Sequence[bytes] = (),
    ) -> Moves:
        """Return the moves with the marker first out and last in."""
        out, into = sorted(out), sorted(into)
        for names, end in ((out, 0), (into, len(into))):
            if form.marker in names:
                names.remove(form.marker)
                names.insert(end, form.marker)
        return cls(out, into, nested, discarded)


def journal_writer(
    form: ChangeFormat, request: dict[str, Any], into: Sequence[bytes], nested: bool, discarded: Sequence[bytes] = ()
) -> Callable[[Iterable[bytes]], bytes]:
    """Return a function that returns the content of a journal, from the names to move out.

    :param request: a JSON-serializable record of the change
    :param into: the other moves: see :class:`Moves`
    """
    head = {form.key: _number(form, discarded), "request": request}
    tail: dict[str, Any] = {"in": list(map(os.fsdecode, into)), "payload": nested}  # the key is part of the format
    if discarded:
        tail["discarded"] = list(map(os.fsdecode, discarded))
    before, after = json.dumps(head)[:-1] + ', "out": [', "], " + json.dumps(tail)[1:]
    return lambda out: (before + ", ".join(json.dumps(os.fsdecode(name)) for name in out) + after).encode()


def _number(form: ChangeFormat, discarded: object) -> int:
    """Return the format number of a journal: one more if it lists discarded files."""
    return form.number + bool(discarded)


def is_decided(base: bytes, staging: bytes) -> bool:
    """Return whether a change of ``base`` was committed and is unfinished.

    :param staging: name of the hidden directory
    :raises OSError: the journal's directory cannot be read
    """
    return any(exists(os.path.join(base, staging, name)) for name in (JOURNAL, UNDO))


class Transaction:
    """A change of the directory ``base``; a context manager. Without :meth:`commit`, nothing changes.

    It first finishes a change that an interrupted run had committed.

    :param base: the directory to change
    :param staging: its hidden directory, entered and locked; the transaction leaves it
    :param form: the format in which the change is recorded

    :ivar new: directory for the files to move in
    :ivar recovered: the request of an interrupted change that was finished; else :data:`None`
    :raises TransactionError: an interrupted change cannot be finished
    """

    def __init__(self, base: bytes, staging: StagingDirectory, form: ChangeFormat) -> None:
        self._base = base
        self._form = form
        self._entered = staging
        self.staging = staging.path
        self.new = self._path(NEW)
        self._old = self._path(OLD)
        self._nested = self._path(NESTED)
        self.recovered: dict[str, Any] | None = None
        self._is_complete = False
        try:
            with raising(TransactionError, base):
                if os.listdir(self.staging) != [LOCK]:
                    self._recover()
                os.mkdir(self.new)
        except BaseException:
            names = None
            with contextlib.suppress(OSError):
                names = os.listdir(self.staging)
            if names == [LOCK]:
                self._entered.leave()
            else:
                self._entered.abandon()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if not self._is_complete and self._may_be_decided():
            self._entered.abandon()
            return
        with contextlib.suppress(OSError):  # the next run removes the rest
            if self._is_complete:
                remove_tree(self.new)
                remove_tree(self._old)
            else:
                self._clean()
        self._entered.leave()

    def _may_be_decided(self) -> bool:
        """Return whether a decided change is, or could be, unfinished: then nothing may be removed."""
        try:
            return is_decided(self._base, self._form.staging)
        except OSError:
            return True

    def commit(
        self,
        request: dict[str, Any],
        moves_out: Iterable[bytes],
        moves_in: Iterable[bytes],
        *,
        nested: bool = False,
        discarded: Sequence[bytes] = (),
        between: Callable[[], None] | None = None,
    ) -> None:
        """Move names out of the base directory, then others in; or leave everything unchanged.

        The marker file is moved out first and moved in last, when all other names are on disk.

        :param request: a JSON-serializable record of the change; a later run finds it in :attr:`recovered`
        :param moves_out: names in the base directory
        :param moves_in: names in :attr:`new`
        :param nested: move everything that is moved out in again, as one directory
        :param discarded: paths below the base directory, none inside another or in ``moves_out``, to remove at the end
        :param between: called after the moves out; an exception reverses the change
        :raises TransactionError: a move failed; everything is unchanged, or the next run reverses or finishes the
            change
        """
        moves = Moves.ordered(self._form, moves_out, moves_in, nested, discarded)
        with raising(TransactionError, self._base, "nothing was changed"):
            if nested:
                os.mkdir(self._nested)
                os.chmod(self._nested, stat.S_IMODE(os.stat(self._base).st_mode))
            if moves.discarded or not nested:
                os.mkdir(self._old)
            flush_tree(self.new)
            self._decide(request, moves)
        try:
            with raising(TransactionError, self._base, "nothing was changed"):
                self._discard(moves)
                self._move_out(moves)
                if between is not None:
                    between()
                self._move_in(moves, first=True)
        except BaseException:
            with raising(TransactionError, self._base, RUN_AGAIN):
                os.rename(self._path(JOURNAL), self._path(UNDO))
                self._undo(moves)
                os.unlink(self._path(UNDO))
            raise
        # The change is complete from here on, whatever fails later.
        with raising(TransactionError, self._base, RUN_AGAIN):
            os.unlink(self._path(JOURNAL))
        self._is_complete = True

    def _decide(self, request: dict[str, Any], moves: Moves) -> None:
        journal = self._path(JOURNAL)
        write = journal_writer(self._form, request, moves.into, moves.nested, moves.discarded)
        write_flushed(self._path(PART), write(moves.out))
        os.rename(self._path(PART), journal)
        try:
            flush_directory(self.staging)
        except OSError:
            # The caller learns that nothing was changed, so the next run must not make the change.
            with raising(TransactionError, self._base, RUN_AGAIN):
                os.unlink(journal)
            raise

    # --- moves; each one may already be done ----------------------------------------------------------------------

    def _moves_out(self, moves: Moves) -> list[tuple[bytes, bytes]]:
        """Return source and target of each move out, relative to the base directory."""
        target = b"%b/%b" % (self._form.staging, NESTED if moves.nested else OLD)
        return [(name, b"%b/%b" % (target, name)) for name in moves.out]

    def _discards(self, moves: Moves) -> list[tuple[bytes, bytes]]:
        """Return source and target of each discarded path, relative to the base directory."""
        return [(path, b"%b/%b/%d" % (self._form.staging, OLD, n)) for n, path in enumerate(moves.discarded)]

    def _moves_in(self, moves: Moves) -> list[tuple[bytes, bytes]]:
        """Return source and target of each move in, relative to the base directory."""
        staging = self._form.staging
        nested = [(b"%b/%b" % (staging, NESTED), self._form.content)] if moves.nested else []
        return nested + [(b"%b/%b/%b" % (staging, NEW, name), name) for name in moves.into]

    def _marker_out(self, moves: Moves) -> list[tuple[bytes, bytes]]:
        """Return the move out of the marker, if there is one."""
        return self._moves_out(moves)[:1] if moves.out[:1] == [self._form.marker] else []

    def _discard(self, moves: Moves) -> None:
        for source, target in self._marker_out(moves) if moves.discarded else ():
            if not self._exists(target):
                self._move(source, target)
        for source, target in self._discards(moves):
            if not self._exists(target):
                if first_link(self._base, os.path.dirname(source)) is not None:
                    raise TransactionError(os.path.join(self._base, source), "path leads through a symbolic link")
                self._move(source, target)
        if moves.discarded:
            self._flush_discarded(moves)

    def _flush_discarded(self, moves: Moves) -> None:
        flush_directory(self._old)
        for above in {os.path.dirname(path) for path in moves.discarded}:
            with contextlib.suppress(FileNotFoundError):  # moved out, after it was flushed
                flush_directory(os.path.join(self._base, above))

    def _move_out(self, moves: Moves) -> None:
        for source, target in self._moves_out(moves):
            if not self._exists(target):
                self._move(source, target)
        flush_directory(self._nested if moves.nested else self._old)
        flush_directory(self._base)

    def _move_in(self, moves: Moves, *, first: bool = False) -> None:
        *others, last = self._moves_in(moves)
        for source, target in (*others, last):
            if (source, target) == last:
                flush_directory(self._base)
            if first or self._exists(source):
                self._move_to_free(source, target)
        flush_directory(self._base)

    def _undo(self, moves: Moves) -> None:
        with raising(TransactionError, self._base, RUN_AGAIN):
            for source, target in reversed(self._moves_in(moves)):
                if not self._exists(source):
                    self._move(target, source)
            marker = self._marker_out(moves)
            others = self._moves_out(moves)[len(marker) :]
            for source, target in reversed([*marker, *self._discards(moves), *others]):
                if self._exists(target):
                    self._move_to_free(target, source)
            flush_directory(self._base)
            if moves.discarded:
                self._flush_discarded(moves)

    def _move_to_free(self, source: bytes, target: bytes) -> None:
        if self._exists(target):
            path = os.path.join(self._base, target)
            raise TransactionError(path, "path is occupied by a file that is not part of the change; move that file")
        self._move(source, target)

    def _move(self, source: bytes, target: bytes) -> None:
        source, target = b"%b/%b" % (self._base, source), b"%b/%b" % (self._base, target)
        for attempt in range(RENAME_TRIES):
            try:
                os.rename(source, target)
                return
            except PermissionError:
                if os.name != "nt" or attempt == RENAME_TRIES - 1:
                    raise
                sleep(RENAME_PAUSE * 2**attempt)

    def _exists(self, name: bytes) -> bool:
        return exists(b"%b/%b" % (self._base, name))

    # --- recovery -------------------------------------------------------------------------------------------------

    def _recover(self) -> None:
        for folder in (self.new, self._old, self._nested):
            if exists(folder) and not stat.S_ISDIR(os.lstat(folder).st_mode):
                raise TransactionError(folder, "not created by an interrupted run; move it elsewhere")
        for name in (UNDO, JOURNAL):
            path = self._path(name)
            if not exists(path):
                continue
            request, moves = self._read(path)
            with raising(TransactionError, self._base, RUN_AGAIN):
                if name == UNDO:
                    self._undo(moves)
                else:
                    # After the first move in, all moves out are done, and their names may be in use again.
                    if all(self._exists(source) for source, _target in self._moves_in(moves)):
                        self._discard(moves)
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
        # Only if it is empty: its files belong to the base directory.
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(self._nested)

    def _path(self, name: bytes) -> bytes:
        return b"%b/%b" % (self.staging, name)

    def _read(self, path: bytes) -> tuple[dict[str, Any], Moves]:
        """Return request and moves of a journal, which is untrusted input: it may have come with the directory."""
        damaged = "damaged journal of an interrupted change"
        # Without the journal, the next run would remove the files in old/.
        advice = "copy this directory before anything else: old/ and data/ in it contain files that the change moved"
        try:
            journal = json.loads(read_regular(path))
            number = journal[self._form.key]
            if number != _number(self._form, journal.get("discarded")):
                reason = f"unsupported journal format {number!r}"
                reason += "; finish the change with the version of Pressmark that started it"
                raise TransactionError(path, reason)
            moves = Moves(
                list(map(os.fsencode, journal["out"])),
                list(map(os.fsencode, journal["in"])),
                journal["payload"] is True,
                list(map(os.fsencode, journal.get("discarded", ()))),
            )
            request = dict(journal["request"])
        except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
            raise TransactionError(path, f"{damaged}: {error}; {advice}") from None
        names = [part for one in moves.discarded for part in one.split(b"/")]
        for name in (*moves.out, *moves.into, *names):
            is_name = name not in (b"", b".", b"..", self._form.staging) and os.path.basename(name) == name
            if not is_name or b"\0" in name:
                raise TransactionError(path, f"{damaged}: {name!r} is not a file name; {advice}")
        if not self._moves_in(moves):
            raise TransactionError(path, f"{damaged}: no files to add; {advice}")
        return request, moves
