"""Changes of many directories at a time: one that fails is unchanged, and the others are made."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pressmark.fs import steps
from pressmark.fs.changes import Change, ChangeError, ChangeFormat, Moves, commit, enter, is_decided, leave
from pressmark.fs.steps import FLUSH, MAKE, MOVE, UNLINK, WRITE, Phase, Step, StepError, run_phases, run_steps
from support.steps import killed_between_moves, observed
from support.trees import snapshot, write

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="needs locks as steps"),
    pytest.mark.usefixtures("implementation"),
]

FORM = ChangeFormat(b".work", "format", 1, b"marker", b"content")
BEFORE = {b"a": b"1", b"b": None, b"b/c": b"2", b"marker": b"old"}
NEW = {b"marker": b"new", b"m": b"3"}
NESTED = {b"content": None, **{b"content/" + path: data for path, data in BEFORE.items()}, **NEW}
REPLACED = {b"b": None, b"b/c": b"2", **NEW}
REQUEST = {"command": "test"}


def folders(top: Path, count: int) -> list[bytes]:
    for number in range(count):
        write(top / str(number), {"a": b"1", "b/c": b"2", "marker": b"old"})
    return [os.fsencode(top / str(number)) for number in range(count)]


def change_all(bases: list[bytes], nested: bool = True, **options: Any) -> list[str]:
    """Change directories together; return the error of each."""
    changes = [change for change in enter(bases, FORM) if isinstance(change, Change)]
    assert len(changes) == len(bases)
    contents: list[Mapping[bytes, bytes]] = [NEW] * len(bases)
    out = [b"a", b"b", b"marker"] if nested else [b"marker", b"a"]
    try:
        moves = [Moves.ordered(FORM, out, NEW, nested)] * len(bases)
        errors = commit(changes, REQUEST, moves, contents, **options)
    finally:
        leave(changes)
    return ["" if error is None else error.reason for error in errors]


def found(base: bytes) -> dict[bytes, bytes | None]:
    return snapshot(Path(os.fsdecode(base)))


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("count", [1, 3, 40])
def test_all_are_changed(tmp_path: Path, count: int, nested: bool) -> None:
    """Nothing but the change remains."""
    bases = folders(tmp_path, count)
    assert change_all(bases, nested) == [""] * count
    assert [found(base) for base in bases] == [NESTED if nested else REPLACED] * count


@pytest.mark.parametrize("nested", [True, False])
def test_one_that_fails(tmp_path: Path, nested: bool) -> None:
    """Whichever step fails in one directory, that one is unchanged, and its error says so."""
    step = 2  # the first two create the hidden directory, which is tried again
    while True:
        step += 1
        bases = folders(tmp_path / str(step), 3)
        left = step

        def fail(base: bytes, tried: Step) -> None:
            nonlocal left
            left -= base.endswith(b"/1") and tried[0] in (MAKE, WRITE, MOVE)
            if left == 0:
                left = -1
                raise OSError(errno.EIO, "")

        with observed(fail):
            errors = change_all(bases, nested)
        if not any(errors):
            break
        assert errors == ["", "Input/output error; nothing was changed", ""]
        after = NESTED if nested else REPLACED
        assert [found(base) for base in bases] == [after, BEFORE, after]
    assert step > 8


def test_a_name_that_appears(tmp_path: Path) -> None:
    """The change of that directory is reversed, with the reason that the caller gives."""
    bases = folders(tmp_path, 3)

    def appear(base: bytes, step: Step) -> None:
        if base == bases[1] and step[0] == MOVE and step[1] == b"b":
            (tmp_path / "1" / "new").write_bytes(b"4")

    with observed(appear):
        assert change_all(bases, alone="a new file") == ["", "a new file", ""]
    assert found(bases[1]) == {**BEFORE, b"new": b"4"}
    assert found(bases[0]) == found(bases[2]) == NESTED


def test_changes_that_are_not_to_be_made(tmp_path: Path) -> None:
    """The caller decides when all new files are written; an exception leaves everything unchanged."""
    bases = folders(tmp_path, 3)

    def check(changes: list[Change]) -> list[bool]:
        assert all(os.path.exists(os.path.join(change.new, b"m")) for change in changes)
        return [change.base != bases[1] for change in changes]

    assert change_all(bases, check=check) == ["", "nothing was changed", ""]
    assert [found(base) for base in bases] == [NESTED, BEFORE, NESTED]
    with pytest.raises(ZeroDivisionError):
        change_all(bases[1:2], check=lambda _changes: 1 / 0)
    assert found(bases[1]) == BEFORE


@pytest.mark.parametrize("call", range(1, 6))
def test_file_systems_that_cannot_be_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    """If a phase of many changes is not on disk, none of them is made."""
    bases = folders(tmp_path, 40)
    calls = 0
    flush = steps.flush_filesystem

    def fail(base: bytes) -> None:
        nonlocal calls
        calls += 1
        if calls == call:
            raise OSError(errno.EIO, os.strerror(errno.EIO), base)
        flush(base)

    if not steps.can_flush_filesystem():
        pytest.skip("no such call")
    monkeypatch.setattr(steps, "flush_filesystem", fail)
    assert change_all(bases) == ["Input/output error; nothing was changed"] * 40
    assert [found(base) for base in bases] == [BEFORE] * 40


def test_interrupted_changes(tmp_path: Path) -> None:
    """They are finished, or left alone on request."""
    bases = folders(tmp_path, 3)
    with killed_between_moves(FORM.staging):
        change_all(bases[1:2])
    assert is_decided(bases[1], FORM)
    before = found(bases[1])
    entered = enter(bases, FORM, resume=False)
    assert [isinstance(change, Change) for change in entered] == [True, False, True]
    leave([change for change in entered if isinstance(change, Change)])
    assert found(bases[1]) == before
    entered = enter(bases, FORM)
    changes = [change for change in entered if isinstance(change, Change)]
    assert [change.recovered for change in changes] == [None, REQUEST, None]
    again = enter(bases, FORM)
    assert [type(error) for error in again] == [BlockingIOError] * 3
    leave(changes)
    assert [found(base) for base in bases] == [BEFORE, NESTED, BEFORE]


def test_directories_that_cannot_be_entered(tmp_path: Path) -> None:
    """Each has its own error: it is missing, or a change cannot be finished."""
    bases = folders(tmp_path, 2)
    write(tmp_path / "0", {".work/journal": b"damaged"})
    missing, damaged, change = enter([b"", *bases], FORM)
    assert isinstance(missing, FileNotFoundError)
    assert isinstance(damaged, ChangeError)
    assert isinstance(change, Change)
    leave([change])


def test_the_path_of_a_step_that_failed(tmp_path: Path) -> None:
    """It is the one that the error is about."""
    base = os.fsencode(tmp_path)
    write(tmp_path, {"a": b"1", "b": b"2"})
    cases: list[tuple[Step, int, bytes]] = [
        ((MOVE, b"a", b"b"), errno.EEXIST, b"b"),
        ((MOVE, b"x", b"y"), errno.ENOENT, b"x"),
        ((UNLINK, b"x", None), errno.ENOENT, b"x"),
        ((steps.ALONE, b"", b"a"), errno.EEXIST, b"b"),
    ]
    for step, number, name in cases:
        [error] = run_steps([base], [[(MAKE, b"made", 0o700), step]])
        assert isinstance(error, StepError)
        assert (error.errno, error.step, error.done, error.lock) == (number, step, 1, -1)
        assert error.filename == os.path.join(base, name)
        os.rmdir(tmp_path / "made")
    [failed] = run_phases([base], [[Phase.of([(UNLINK, b"b", None)], [b""]), Phase.of([], [b"none"])]], [0])
    assert failed is not None
    number, error = failed
    assert (number, error.step, error.done) == (1, (FLUSH, b"none", None), 2)
    assert error.filename == os.path.join(base, b"none")
