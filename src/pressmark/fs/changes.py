"""Change directories atomically, even if the change is interrupted.

New files are written to a hidden directory inside the directory that is changed. A journal then lists the names to move
out and in. The rename that creates the journal commits the change. Before it, only the hidden directory exists. After
it, the next run (this one, or another after a crash) completes the remaining moves. If a move fails, all moves are
reversed.

::

    .hidden/
    ├── lock            held during a run
    ├── new/            files to move in
    ├── old/            files that were moved out or discarded; removed at the end
    ├── data/           files that were moved out and are moved in again as one directory, or a directory that was moved
    │                   out and whose files are moved in again
    ├── journal         committed: make the moves
    └── journal.undo    committed: reverse the moves

:func:`phases` is the list of all moves, which a run makes, resumes and reverses. No move overwrites anything: each
target must be free. Each has one end in the hidden directory, and that end alone tells whether it was made. All moves
of a phase are on disk before the next phase begins. So the last phase with a move that was made is the one that was
interrupted: those before it are complete.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from errno import EEXIST
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from pressmark.errors import quoted_path
from pressmark.fs.beneath import read_regular
from pressmark.fs.durable import exists, flush_trees
from pressmark.fs.file_errors import raising
from pressmark.fs.moves import remove_tree
from pressmark.fs.names import first_link
from pressmark.fs.owners import shared_mode
from pressmark.fs.staging import LOCK as LOCK_FILE, lock_shared
from pressmark.fs.steps import (
    ALONE,
    LOCK,
    MAKE,
    MODE,
    MOVE,
    RMDIR,
    UNLINK,
    WRITE,
    Phase,
    Step,
    StepError,
    run_phases,
    run_steps,
)

__all__ = [
    *("JOURNAL", "NESTED", "NEW", "OLD", "PART", "UNDO"),
    *("Change", "ChangeError", "ChangeFormat", "Moves"),
    *("commit", "enter", "is_decided", "journal_writer", "leave", "phases"),
]

JOURNAL, UNDO, PART = b"journal", b"journal.undo", b"journal.part"
NEW, OLD, NESTED = b"new", b"old", b"data"
# The phases of moves, after the one that decides the change.
PHASES = 4
RUN_AGAIN = "run the same command again"
UNCHANGED = "nothing was changed"
OCCUPIED = "path is occupied by a file that is not part of the change; move that file"


class ChangeError(Exception):
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

    def hidden(self, *names: bytes) -> bytes:
        """Return a path in the hidden directory, relative to the base directory."""
        return b"/".join((self.staging, *names))


class Moves(NamedTuple):
    """The moves of a journal, as names in the base directory only: a journal cannot move anything elsewhere.

    :ivar out: names to move out
    :ivar into: names to move in, in this order, after all moves out
    :ivar nested: everything that is moved out is moved in again first, as one directory
    :ivar discarded: paths below the base directory to remove; they are moved to ``old/`` before all others
    :ivar unnested: ``into`` are the names in a directory that is moved out, whose place they take
    """

    out: list[bytes]
    into: list[bytes]
    nested: bool
    discarded: Sequence[bytes] = ()
    unnested: bool = False

    @classmethod
    def ordered(
        cls,
        form: ChangeFormat,
        out: Iterable[bytes],
        into: Iterable[bytes],
        nested: bool = False,
        discarded: Sequence[bytes] = (),
        unnested: bool = False,
    ) -> Moves:
        """Return the moves with the marker first out and last in."""
        out, into = sorted(out), sorted(into)
        for names, end in ((out, 0), (into, len(into))):
            if form.marker in names:
                names.remove(form.marker)
                names.insert(end, form.marker)
        return cls(out, into, nested, discarded, unnested)


_NOTHING = Phase([], [])


def phases(form: ChangeFormat, moves: Moves) -> list[Phase]:
    """Return all moves, in four phases: the marker and the discarded files out, the others out, all but the marker in,
    and the marker in."""
    away, changed, inward = _inward(form, moves.nested, tuple(moves.into), moves.unnested)
    out: list[Step] = [(MOVE, name, away + name) for name in moves.out]
    if moves.unnested:
        out = [(MOVE, one, form.hidden(NESTED) if one == form.content else away + one) for one in moves.out]
    first = _NOTHING
    if moves.discarded:
        old = form.hidden(OLD)
        steps: list[Step] = [(MOVE, path, b"%b/%d" % (old, number)) for number, path in enumerate(moves.discarded)]
        if moves.out[:1] == [form.marker]:
            steps.insert(0, out.pop(0))
        flush = Phase.of([], [old, *map(os.path.dirname, moves.discarded)]).flush
        first = Phase(steps, list(dict.fromkeys(flush + changed)))
    return [first, Phase(out, changed), *inward]


@lru_cache(maxsize=8)  # the same for many directories
def _inward(
    form: ChangeFormat, nested: bool, into: tuple[bytes, ...], unnested: bool
) -> tuple[bytes, list[Step], list[Phase]]:
    """Return what the phases of directories share: the beginning of the paths to which names are moved out, the
    flushing of what this changes, and the phases of moves in."""
    away = form.hidden(NESTED if nested else OLD)
    steps: list[Step] = [(MOVE, away, form.content)] if nested else []
    source = NESTED if unnested else NEW
    steps += [(MOVE, form.hidden(source, name), name) for name in into]
    inward = [Phase.of(some, [b""] if some else []) for some in (steps[:-1], steps[-1:])]
    return away + b"/", Phase.of([], [away, b""]).flush, inward


def journal_writer(
    form: ChangeFormat,
    request: dict[str, Any],
    into: Sequence[bytes],
    nested: bool,
    discarded: Sequence[bytes] = (),
    unnested: bool = False,
) -> Callable[[Iterable[bytes]], bytes]:
    """Return a function that returns the content of a journal, from the names to move out.

    :param request: a JSON-serializable record of the change
    :param into: the other moves: see :class:`Moves`
    """
    head = {form.key: _number(form, discarded, unnested), "request": request}
    tail: dict[str, Any] = {"in": list(map(os.fsdecode, into)), "payload": nested}  # the key is part of the format
    if discarded:
        tail["discarded"] = list(map(os.fsdecode, discarded))
    if unnested:
        tail["unnested"] = True
    before, after = json.dumps(head)[:-1] + ', "out": [', "], " + json.dumps(tail)[1:]
    quoted = json.encoder.encode_basestring_ascii  # what dumps calls, many layers below
    return lambda out: (before + ", ".join([quoted(os.fsdecode(name)) for name in out]) + after).encode()


def _number(form: ChangeFormat, discarded: object, unnested: object) -> int:
    """Return the format number of a journal: one more if it lists discarded files, and two if it moves a directory's
    files to its place.
    """
    return form.number + (2 if unnested else bool(discarded))


def is_decided(base: bytes, form: ChangeFormat) -> bool:
    """Return whether a change of ``base`` was committed and is unfinished.

    :raises OSError: the journal's directory cannot be read
    """
    return any(exists(os.path.join(base, form.staging, name)) for name in (JOURNAL, UNDO))


# --- the directories of changes -----------------------------------------------------------------------------------


class Change:
    """A directory to change: its hidden directory is locked, and an interrupted change is finished.

    :ivar base: path of the directory
    :ivar new: directory for the files to move in
    :ivar recovered: the request of an interrupted change that was finished; else :data:`None`
    """

    recovered: dict[str, Any] | None = None
    lock = -1
    error: ChangeError | None = None
    is_complete = False
    # Set by commit.
    moves: Moves
    contents: Mapping[bytes, bytes] = MappingProxyType({})

    def __init__(self, base: bytes, form: ChangeFormat, status: os.stat_result) -> None:
        self.base = base
        self.form = form
        self.mode, self.device = status.st_mode, status.st_dev

    @property
    def new(self) -> bytes:
        return self.hidden(NEW)

    def hidden(self, name: bytes) -> bytes:
        """Return a path in the hidden directory."""
        return b"%b/%b/%b" % (self.base, self.form.staging, name)

    def release(self) -> None:
        """Release the lock. What is left in the hidden directory, the next run finishes or removes."""
        if self.lock >= 0:
            os.close(self.lock)
        self.lock = -1


def enter(bases: Sequence[bytes], form: ChangeFormat, *, resume: bool = True) -> list[Change | OSError | ChangeError]:
    """Begin changes of directories: create and lock their hidden directories. Each lock is an open file.

    The hidden directories are shared: every user with write access to a base directory can finish its change.

    :param resume: finish the changes of directories in which a run was interrupted; otherwise they are errors
    :return: for each directory its change, or the error: a :class:`BlockingIOError` if another run is changing it, a
        :class:`ChangeError` if an interrupted change cannot be finished
    """
    found: list[Change | OSError | ChangeError] = []
    for base in bases:
        try:
            found.append(Change(base, form, os.stat(base)))
        except OSError as error:
            found.append(error)
    changes = [change for change in found if isinstance(change, Change)]
    rest: list[Step] = [(LOCK, form.hidden(LOCK_FILE), None), (MAKE, form.hidden(NEW), 0o777)]
    steps: list[list[Step]] = [[(MAKE, form.staging, shared_mode(change.mode)), *rest] for change in changes]
    errors: dict[Change, OSError | ChangeError] = {}
    for change, outcome in zip(changes, run_steps([change.base for change in changes], steps), strict=True):
        change.lock = outcome.lock if isinstance(outcome, StepError) else outcome
        if isinstance(outcome, StepError):
            errors[change] = outcome
    try:
        for change in list(errors):
            change.release()
            if resume:
                try:
                    _enter_old(change)
                    del errors[change]
                except (OSError, ChangeError) as error:
                    errors[change] = error
    except BaseException:
        leave(changes)
        raise
    return [errors.get(change, change) if isinstance(change, Change) else change for change in found]


def _enter_old(change: Change) -> None:
    """Enter a hidden directory that exists, or that cannot be created.

    :raises OSError: it cannot be created, locked or trusted
    :raises ChangeError: an interrupted change cannot be finished
    """
    hidden = os.path.join(change.base, change.form.staging)
    change.lock = lock_shared(hidden)
    try:
        with raising(ChangeError, change.base):
            if os.listdir(hidden) != [LOCK_FILE]:
                _recover(change)
            os.mkdir(change.new)
    except BaseException:
        try:
            with suppress(OSError):
                if os.listdir(hidden) == [LOCK_FILE]:
                    _remove_hidden([change])
        finally:
            change.release()
        raise


def leave(changes: Iterable[Change]) -> None:
    """End changes: remove their hidden directories, or leave those of unfinished changes to the next run."""
    changes = [change for change in changes if change.lock >= 0]
    try:
        ended = [change for change in changes if change.is_complete or not _may_be_decided(change)]
        for change in ended:
            if not change.is_complete:
                with suppress(OSError):  # the next run removes the rest
                    _clean(change)
        _remove_hidden(ended)
    finally:
        for change in changes:
            change.release()


def _may_be_decided(change: Change) -> bool:
    """Return whether a decided change is, or could be, unfinished: then nothing may be removed."""
    try:
        return is_decided(change.base, change.form)
    except OSError:
        return True


def _remove_hidden(changes: Sequence[Change]) -> None:
    """Remove hidden directories that contain at most the lock and empty directories; those that contain more stay."""
    if not changes:
        return
    hidden = changes[0].form.hidden
    ending: list[Step] = [(UNLINK, hidden(LOCK_FILE), None), (RMDIR, changes[0].form.staging, None)]
    complete: list[Step] = [(RMDIR, hidden(NEW), None), *ending]
    if os.name == "nt":  # an open file cannot be removed
        for change in changes:
            os.close(change.lock)
            change.lock = -1
    run_steps([change.base for change in changes], [complete if change.is_complete else ending for change in changes])


def _clean(change: Change) -> None:
    """Remove everything from the hidden directory except the lock.

    :raises OSError: something cannot be removed
    """
    for folder in (NEW, OLD):
        remove_tree(change.hidden(folder))
    with suppress(FileNotFoundError):
        os.unlink(change.hidden(PART))
    # Only if it is empty: its files belong to the base directory.
    with suppress(FileNotFoundError):
        os.rmdir(change.hidden(NESTED))


# --- making changes -----------------------------------------------------------------------------------------------


def commit(
    changes: Sequence[Change],
    request: dict[str, Any],
    moves: Sequence[Moves],
    contents: Sequence[Mapping[bytes, bytes | None]] = (),
    *,
    check: Callable[[list[Change]], Sequence[bool]] | None = None,
    alone: str = "",
) -> list[ChangeError | None]:
    """Move names out of directories, then others in; or leave them unchanged. One that fails does not affect others.

    The marker file is moved out first and moved in last, when all other names are on disk.

    :param request: a JSON-serializable record of the changes; a later run finds it in :attr:`Change.recovered`
    :param moves: the names of each change; those moved in are in :attr:`Change.new`
    :param contents: for each change, new small files to write to :attr:`Change.new` first, by name; :data:`None` for a
        file that is there
    :param check: called with changes before they are decided, when all new files are on disk; returns for each whether
        to make it. An exception leaves all directories unchanged
    :param alone: refuse a name that is in a directory after the moves out, for this reason
    :return: for each change its error, if any: its directory is unchanged, or the next run reverses or finishes the
        change
    """
    if not changes:
        return []
    hidden = changes[0].form.hidden
    for change, one in zip(changes, moves, strict=True):
        change.moves = one
    for change, files in zip(changes, contents, strict=False):
        change.contents = {name: data for name, data in files.items() if data is not None}
    _prepare(changes, request)
    if check is not None:
        going = _without_error(changes)
        for change, is_kept in zip(going, check(going), strict=True):
            if not is_kept:
                change.error = ChangeError(change.base, UNCHANGED)
    for change in changes:
        if change.moves.discarded and change.error is None:
            _call(_refuse_links, change)
    decide = Phase.of([(MOVE, hidden(PART), hidden(JOURNAL))], [hidden()])
    # A name that has appeared in between is not part of the change.
    more: list[Step] = [(ALONE, b"", changes[0].form.staging)] if alone else []
    end = Phase([(UNLINK, hidden(JOURNAL), None)], [])

    def plan(change: Change) -> list[Phase]:
        first, second, *inward = phases(change.form, change.moves)
        if change.moves.unnested:
            steps, flush = inward[-1]
            inward[-1] = Phase([*steps, (ALONE, hidden(NESTED), b"")], flush)
        return [decide, first, Phase(second.steps + more, second.flush), *inward, end]

    try:
        advice = [UNCHANGED] * (1 + PHASES) + [RUN_AGAIN]
        for change, number in _run(_without_error(changes), plan, advice, alone):
            if number == 0:
                # The caller learns that nothing was changed, so the next run must not make the change.
                _call(_withdraw, change, RUN_AGAIN)
            elif number <= PHASES:
                _call(_reverse, change, RUN_AGAIN)
    except BaseException:
        for change in _without_error(changes):
            _call(_reverse, change, RUN_AGAIN)
        raise
    for change in _without_error(changes):
        change.is_complete = True
        if change.moves.unnested:
            with suppress(OSError):
                os.rmdir(change.hidden(NESTED))
        if change.moves.discarded or not change.moves.nested:
            with suppress(OSError):  # the next run removes the rest
                remove_tree(change.hidden(OLD))
    return [change.error for change in changes]


def _prepare(changes: Sequence[Change], request: dict[str, Any]) -> None:
    """Write the new files and the journals, not yet under their name."""
    hidden = changes[0].form.hidden
    new, nested, old, part = hidden(NEW), hidden(NESTED), hidden(OLD), hidden(PART)
    begin = new + b"/"
    write: Callable[[Iterable[bytes]], bytes] | None = None
    written: Moves | None = None

    def steps(change: Change) -> list[Step]:
        nonlocal write, written
        moves = change.moves
        made: list[Step] = [(WRITE, begin + name, data) for name, data in change.contents.items()]
        if moves.nested:
            made += [(MAKE, nested, 0o777), (MODE, nested, stat.S_IMODE(change.mode))]
        if moves.discarded or not moves.nested:
            made.append((MAKE, old, 0o777))
        if write is None or written is None or moves[1:] != written[1:]:  # most differ in the names moved out only
            write, written = journal_writer(change.form, request, *moves[1:]), moves
        made.append((WRITE, part, write(moves.out)))
        return made

    for change in changes:
        if len(change.contents) < len(change.moves.into):  # the other files are there
            _call(lambda change: flush_trees(change.new), change)

    def plan(change: Change) -> list[Phase]:
        return [Phase.of(steps(change), [*map(begin.__add__, change.contents), new, part])]

    _run(_without_error(changes), plan, [UNCHANGED])


def _without_error(changes: Sequence[Change]) -> list[Change]:
    return [change for change in changes if change.error is None]


def _run(
    changes: list[Change], plan: Callable[[Change], list[Phase]], advice: Sequence[str], alone: str = ""
) -> list[tuple[Change, int]]:
    """Run the phases of each change; return the changes that fail, with their errors, and the phase of each.

    :param advice: for each phase, what to do if it fails
    :param alone: the reason of an error if the step ``ALONE`` fails
    """
    if not changes:
        return []
    found = run_phases([change.base for change in changes], list(map(plan, changes)), [one.device for one in changes])
    failed = []
    for change, outcome in zip(changes, found, strict=True):
        if outcome is not None:
            number, error = outcome
            reason = f"{error.strerror}; {advice[number]}"
            if error.step is not None and error.errno == EEXIST:
                reason = OCCUPIED if error.step[0] == MOVE else alone or reason
            change.error = ChangeError(error.filename, reason)
            change.error.__cause__ = error
            failed.append((change, number))
    return failed


def _call(function: Callable[[Change], object], change: Change, advice: str = UNCHANGED) -> None:
    """Call a function for a change; if it fails, so does the change."""
    try:
        with raising(ChangeError, change.base, advice):
            function(change)
    except ChangeError as error:
        change.error = error


def _refuse_links(change: Change) -> None:
    for path in change.moves.discarded:
        if first_link(change.base, os.path.dirname(path)) is not None:
            raise ChangeError(os.path.join(change.base, path), "path leads through a symbolic link")


def _withdraw(change: Change) -> None:
    """Remove the journal of a change that failed while it was decided."""
    with suppress(FileNotFoundError):
        os.unlink(change.hidden(JOURNAL))


# --- finishing and reversing changes ----------------------------------------------------------------------------------


def _reverse(change: Change) -> None:
    """Reverse a decided change.

    :raises ChangeError: a move fails; the next run reverses or finishes the change
    """
    os.rename(change.hidden(JOURNAL), change.hidden(UNDO))
    _undo(change)
    os.unlink(change.hidden(UNDO))


def _undo(change: Change) -> None:
    """Reverse all moves that were made, the last one first."""
    plan = phases(change.form, change.moves)
    for phase in reversed(plan[: _interrupted(change, plan) + 1]):
        finished = [step for step in reversed(phase.steps) if _is_made(change, step)]
        _run_alone(change, Phase(list(map(_back, finished)), phase.flush))


def _back(move: Step) -> Step:
    _kind, source, target = move
    assert isinstance(target, bytes)
    return MOVE, target, source


def _resume(change: Change) -> None:
    """Make all moves that were not made."""
    plan = phases(change.form, change.moves)
    for phase in plan[_interrupted(change, plan) :]:
        if phase is plan[0]:
            _refuse_links(change)
        left = [step for step in phase.steps if not _is_made(change, step)]
        _run_alone(change, Phase(left, phase.flush))


def _interrupted(change: Change, plan: list[Phase]) -> int:
    """Return the index of the last phase with a move that was made."""
    have_moves = [any(_is_made(change, step) for step in phase.steps) for phase in plan]
    return max((number for number, has_moves in enumerate(have_moves) if has_moves), default=0)


def _is_made(change: Change, move: Step) -> bool:
    """Return whether a move was made, by its end in the hidden directory.

    :raises OSError: this cannot be determined
    """
    _kind, source, target = move
    assert isinstance(target, bytes)
    is_inward = source.startswith(change.form.staging + b"/")
    if is_inward and change.moves.unnested and not exists(change.hidden(NESTED)):
        return False  # what it moves in was not moved out yet
    return exists(b"%b/%b" % (change.base, source if is_inward else target)) != is_inward


def _run_alone(change: Change, phase: Phase) -> None:
    """Run the steps of one change.

    :raises ChangeError: one fails
    """
    if _run([change], lambda _change: [phase], [RUN_AGAIN]) and change.error is not None:
        raise change.error


def _recover(change: Change) -> None:
    """Finish or reverse the change of an interrupted run, if one was decided; remove its other files."""
    for name in (NEW, OLD, NESTED):
        folder = change.hidden(name)
        if exists(folder) and not stat.S_ISDIR(os.lstat(folder).st_mode):
            raise ChangeError(folder, "not created by an interrupted run; move it elsewhere")
    for name in (UNDO, JOURNAL):
        path = change.hidden(name)
        if not exists(path):
            continue
        request, change.moves = _read(path, change.form)
        with raising(ChangeError, change.base, RUN_AGAIN):
            if name == UNDO:
                _undo(change)
            else:
                _resume(change)
                change.recovered = request
            os.unlink(path)
    _clean(change)


def _read(path: bytes, form: ChangeFormat) -> tuple[dict[str, Any], Moves]:
    """Return request and moves of a journal, which is untrusted input: it may have come with the directory."""
    damaged = "damaged journal of an interrupted change"
    # Without the journal, the next run would remove the files in old/.
    advice = "copy this directory before anything else: old/ and data/ in it contain files that the change moved"
    try:
        journal = json.loads(read_regular(path))
        number = journal[form.key]
        if number != _number(form, journal.get("discarded"), journal.get("unnested")):
            reason = f"unsupported journal format {number!r}"
            reason += "; finish the change with the version of Pressmark that started it"
            raise ChangeError(path, reason)
        moves = Moves(
            list(map(os.fsencode, journal["out"])),
            list(map(os.fsencode, journal["in"])),
            journal["payload"] is True,
            list(map(os.fsencode, journal.get("discarded", ()))),
            journal.get("unnested") is True,
        )
        request = dict(journal["request"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise ChangeError(path, f"{damaged}: {error}; {advice}") from None
    names = [part for one in moves.discarded for part in one.split(b"/")]
    for name in (*moves.out, *moves.into, *names):
        is_name = name not in (b"", b".", b"..", form.staging) and os.path.basename(name) == name
        if not is_name or b"\0" in name:
            raise ChangeError(path, f"{damaged}: {quoted_path(name)} is not a file name; {advice}")
    if not (moves.into or moves.nested or moves.unnested):
        raise ChangeError(path, f"{damaged}: no files to add; {advice}")
    return request, moves
