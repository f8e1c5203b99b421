"""All or nothing: interrupted at any step, a change is not made, or the next run finishes it."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pressmark import _kernels
from pressmark.bagit.bag_directory import STAGING
from pressmark.bagit.changes.bag_changes import BagChange, is_decided, recover
from pressmark.errors import BagError
from pressmark.fs import changes
from pressmark.fs.steps import MOVE, Step
from support.steps import Killed, observed, stopped

from ..bags import tree

pytestmark = pytest.mark.usefixtures("implementation")

REQUEST = {"command": "test", "number": 1}


def folder(path: Path) -> bytes:
    """Make a directory with names of every kind."""
    path.mkdir()
    (path / "a").write_bytes(b"1")
    (path / os.fsdecode(b"b\xff\n")).write_bytes(b"2")
    (path / "data").mkdir()
    (path / "data" / "new").write_bytes(b"3")
    (path / "bagit.txt").write_bytes(b"old")
    return os.fsencode(path)


BEFORE = {b"a": b"1", b"b\xff\n": b"2", b"data/new": b"3", b"bagit.txt": b"old"}
AFTER = {b"data/" + path: data for path, data in BEFORE.items()} | {b"m.txt": b"m", b"t/x": b"x", b"bagit.txt": b"new"}


def contents(base: bytes) -> dict[bytes, bytes]:
    """Return all files except those of the hidden directory."""
    return {path: data for path, data in tree(base).items() if not path.startswith(STAGING)}


def make_payload(base: bytes, between: Callable[[], None] | None = None) -> None:
    """Change the directory as the creation of a bag in place does."""
    with BagChange(base) as change:
        new = Path(os.fsdecode(change.new))
        (new / "m.txt").write_bytes(b"m")
        (new / "t").mkdir()
        (new / "t" / "x").write_bytes(b"x")
        (new / "bagit.txt").write_bytes(b"new")
        names = [name for name in os.listdir(base) if name != STAGING]

        def before(_base: bytes, step: Step) -> None:
            if between is not None and step[:2] == (MOVE, STAGING + b"/data"):
                between()

        with observed(before):
            change.commit(REQUEST, names, [b"m.txt", b"t", b"bagit.txt"], nested=True)


def replace(base: bytes) -> None:
    """Change the directory as an update does."""
    with BagChange(base) as change:
        (Path(os.fsdecode(change.new)) / "bagit.txt").write_bytes(b"new")
        change.commit(REQUEST, [b"bagit.txt", b"a"], [b"bagit.txt"])


REPLACED = {path: data for path, data in BEFORE.items() if path != b"a"} | {b"bagit.txt": b"new"}
CHANGES = {"payload": (make_payload, AFTER), "replace": (replace, REPLACED)}


@pytest.fixture(params=CHANGES)
def change(request: pytest.FixtureRequest) -> tuple[Callable[[bytes], None], dict[bytes, bytes]]:
    """A change, and the resulting directory."""
    return CHANGES[request.param]


Change = tuple[Callable[[bytes], None], dict[bytes, bytes]]


def test_a_change(tmp_path: Path, change: Change) -> None:
    """The change is made, and no other files remain."""
    base = folder(tmp_path / "b")
    make, after = change
    make(base)
    assert tree(base) == after
    assert not is_decided(base)
    assert recover(base) is None


def test_inaccessible_names(tmp_path: Path, change: Change, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever access fails, the change is refused or made completely."""
    make, after = change
    looks, failing = 0, 0

    def looking(real: Callable[..., Any]) -> Callable[..., Any]:
        def look(path: bytes, **how: int) -> Any:
            nonlocal looks
            looks += 1
            if looks == failing:
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), path)
            return real(path, **how)

        return look

    while looks >= failing:
        failing += 1
        base = folder(tmp_path / f"b{failing}")
        looks, refused = 0, False
        with monkeypatch.context() as patched:
            for name in ("lstat", "scandir"):
                patched.setattr(os, name, looking(getattr(os, name)))
            try:
                make(base)
            except BagError:
                refused = True
        recover(base)
        assert contents(base) in ((BEFORE, after) if refused else (after,)), failing
    assert failing > (5 if _kernels.active.NAME == "pure" else 2)  # in C, no step looks by a call of Python


def test_nothing_committed(tmp_path: Path) -> None:
    """Without a commit, with or without an exception, nothing is changed."""
    base = folder(tmp_path / "b")
    with BagChange(base) as change:
        (Path(os.fsdecode(change.new)) / "x").write_bytes(b"x")
    assert tree(base) == BEFORE

    def failing() -> None:
        with BagChange(base) as change:
            (Path(os.fsdecode(change.new)) / "x").write_bytes(b"x")
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert tree(base) == BEFORE


def test_killed_at_every_step(tmp_path: Path, change: Change) -> None:
    """After a kill at any call, the next run finds no change or finishes it; no file is lost."""
    make, after = change
    finished = 0
    for stop in range(200):
        base = folder(tmp_path / str(stop))
        killed = False
        try:
            with stopped(stop, Killed()):
                make(base)
        except Killed:
            killed = True
        decided = is_decided(base)
        if not decided:
            assert contents(base) in (BEFORE, after)
        else:
            found = contents(base)
            # Never a directory with bagit.txt that is not complete.
            assert found in (BEFORE, after) or b"bagit.txt" not in found
        whole = contents(base) == after
        recovered = recover(base)
        assert recovered == (REQUEST if decided else None)
        assert tree(base) == (after if decided or whole else BEFORE)
        finished += decided
        if not killed:
            break
    else:
        raise AssertionError("more steps than there can be")
    assert finished > 5


@pytest.mark.parametrize("first", range(14, 30, 3))
def test_killed_while_recovering(tmp_path: Path, change: Change, first: int) -> None:
    """However often the process that finishes a change is killed, the next one continues."""
    make, after = change
    base = folder(tmp_path / "b")
    for stop in (first, *range(100)):
        killed = False
        try:
            with stopped(stop, Killed()):
                if contents(base) == BEFORE and not is_decided(base):
                    make(base)
                else:
                    recover(base)
        except Killed:
            killed = True
        if not killed:
            break
    assert tree(base) == after


@pytest.mark.parametrize("number", range(1, 14))
def test_a_move_that_fails(tmp_path: Path, change: Change, number: int) -> None:
    """A failed move is reversed at once; the message names the failure, and states that nothing was changed."""
    make, after = change
    base = folder(tmp_path / "b")
    count = 0

    def before(_base: bytes, step: Step) -> None:
        nonlocal count
        count += step[0] == MOVE
        if step[0] == MOVE and count == number:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    if number <= 1 + (8 if make is make_payload else 3):  # the journal, and the moves
        with observed(before), pytest.raises(BagError, match="link; nothing was changed"):
            make(base)
        assert tree(base) == BEFORE
    else:
        with observed(before):
            make(base)
        assert tree(base) == after


def test_undoing_that_fails(tmp_path: Path, change: Change) -> None:
    """If the file system fails permanently, so that undoing fails too, the next run finishes or undoes the change."""
    make, after = change
    for stop in range(60):
        base = folder(tmp_path / str(stop))
        with contextlib.suppress(BagError, OSError), stopped(stop, OSError(errno.EIO, os.strerror(errno.EIO))):
            make(base)
        recover(base)
        assert tree(base) in (BEFORE, after)


def test_an_exception_between_the_moves(tmp_path: Path) -> None:
    """An exception between moving out and moving in undoes the change."""
    base = folder(tmp_path / "b")

    def no() -> None:
        assert os.listdir(base) == [STAGING]
        raise BagError("x", "something new")

    with pytest.raises(BagError, match="something new"):
        make_payload(base, no)
    assert tree(base) == BEFORE


def test_a_file_that_appears_during_the_change(tmp_path: Path) -> None:
    """A file that appears during the change is not overwritten, by this run or by the next."""
    base = folder(tmp_path / "b")

    def intrude() -> None:
        (tmp_path / "b" / "m.txt").write_bytes(b"mine")

    with pytest.raises(BagError, match="path is occupied"):
        make_payload(base, intrude)
    assert tree(base) == {**BEFORE, b"m.txt": b"mine"}
    (tmp_path / "b" / "m.txt").unlink()

    def die() -> None:
        intrude()
        raise Killed

    # Killed, and not undone either.
    def killed(*_args: object) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changes, "_reverse", killed)
        with pytest.raises(Killed):
            make_payload(base, die)
    assert is_decided(base)
    with pytest.raises(BagError, match="path is occupied"):
        recover(base)
    (tmp_path / "b" / "m.txt").unlink()
    assert recover(base) == REQUEST
    assert tree(base) == AFTER


def test_two_runs(tmp_path: Path) -> None:
    """A second run is refused, in this process and in another."""
    base = folder(tmp_path / "b")
    code = (
        "import sys\n"
        "from pressmark.bagit.changes.bag_changes import BagChange\n"
        "from pressmark.errors import BagError\n"
        "try:\n    BagChange(sys.argv[1].encode())\nexcept BagError as error:\n    print(error.reason)\n"
    )
    with BagChange(base):
        with pytest.raises(BagError, match="in use by another run; wait for it to finish"):
            BagChange(base)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        run = subprocess.run(
            [sys.executable, "-c", code, os.fsdecode(base)], capture_output=True, text=True, check=True, env=environment
        )
        assert run.stdout == "in use by another run; wait for it to finish\n"
    assert tree(base) == BEFORE


def test_a_foreign_hidden_directory(tmp_path: Path) -> None:
    """A file or link with the name of the hidden directory is not changed."""
    base = folder(tmp_path / "b")
    (tmp_path / "elsewhere").mkdir()
    for make in (lambda path: path.write_bytes(b"mine"), lambda path: path.symlink_to(tmp_path / "elsewhere")):
        path = tmp_path / "b" / os.fsdecode(STAGING)
        make(path)
        with pytest.raises(BagError, match=r"not a directory; move it elsewhere|symbolic link; move it elsewhere"):
            BagChange(base)
        path.unlink()
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize(
    ("journal", "reason"),
    [
        (b"", "damaged"),
        (b"{}", "damaged"),
        (b"[]", "damaged"),
        (b'{"pressmark_bag": 1, "request": {}, "out": ["a"], "in": [], "payload": false}', "damaged"),
        (b'{"pressmark_bag": 1, "request": {}, "out": [3], "in": ["b"], "payload": false}', "damaged"),
        (b'{"pressmark_bag": 1, "request": 7, "out": ["a"], "in": ["b"], "payload": false}', "damaged"),
        (b"[" * 100_000, "damaged"),
        (json.dumps({"pressmark_bag": 99}).encode(), "unsupported journal format 99; finish the change"),
    ],
)
def test_unreadable_journals(tmp_path: Path, journal: bytes, reason: str) -> None:
    """An unreadable journal is refused, and no file is changed."""
    base = folder(tmp_path / "b")
    staging = tmp_path / "b" / os.fsdecode(STAGING)
    staging.mkdir()
    (staging / "journal").write_bytes(journal)
    for _ in range(2):
        with pytest.raises(BagError, match=reason):
            recover(base)
    assert contents(base) == BEFORE
    assert (staging / "journal").read_bytes() == journal


def test_forged_journals(tmp_path: Path) -> None:
    """A forged journal cannot move files out of the bag."""
    base = folder(tmp_path / "b")
    (tmp_path / "secret").write_bytes(b"s")
    staging = tmp_path / "b" / os.fsdecode(STAGING)
    staging.mkdir()
    for name in ("../secret", str(tmp_path / "secret"), "..", ".", "", "a/b", ".pressmark-bag", "a\0"):
        for key in ("out", "in"):
            journal = {"pressmark_bag": 1, "request": {}, "out": [], "in": [], "payload": False} | {key: [name]}
            (staging / "journal").write_text(json.dumps(journal))
            with pytest.raises(BagError, match="damaged"):
                recover(base)
    for name in ("../secret", "data/../../secret", "/secret", "", "data//new", "data/.pressmark-bag/x", "data/a\0"):
        journal = {"pressmark_bag": 2, "request": {}, "out": [], "in": ["m"], "payload": False, "discarded": [name]}
        (staging / "journal").write_text(json.dumps(journal))
        with pytest.raises(BagError, match="damaged"):
            recover(base)
    (staging / "journal").unlink()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_bytes(b"s")
    for name in ("new", "old", "data"):
        (staging / name).symlink_to(tmp_path / "elsewhere")
        journal = {"pressmark_bag": 1, "request": {}, "out": ["a"], "in": ["secret"], "payload": name == "data"}
        (staging / "journal").write_text(json.dumps(journal))
        with pytest.raises(BagError, match="not created by an interrupted run"):
            recover(base)
        (staging / name).unlink()
    (staging / "journal").unlink()
    (staging / "journal").symlink_to(tmp_path / "secret")
    with pytest.raises(BagError, match="damaged"):
        recover(base)
    assert (tmp_path / "elsewhere" / "secret").read_bytes() == b"s"
    assert contents(base) == BEFORE
    assert (tmp_path / "secret").read_bytes() == b"s"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_not_writable(tmp_path: Path) -> None:
    """A directory without write permission is named in the error."""
    base = folder(tmp_path / "b")
    os.chmod(base, 0o500)
    with pytest.raises(BagError, match="Permission denied"):
        BagChange(base)
    assert recover(base) is None


def test_a_forged_journal_discards_nothing_behind_a_link(tmp_path: Path) -> None:
    """A path that leads through a symbolic link is refused, and its target is unchanged."""
    base = folder(tmp_path / "b")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_bytes(b"s")
    (tmp_path / "b" / "link").symlink_to(tmp_path / "elsewhere")
    staging = tmp_path / "b" / os.fsdecode(STAGING)
    for name in ("new", "old"):
        (staging / name).mkdir(parents=True)
    (staging / "new" / "m").write_bytes(b"m")
    journal = {"pressmark_bag": 2, "request": {}, "out": [], "in": ["m"], "payload": False}
    (staging / "journal").write_text(json.dumps({**journal, "discarded": ["link/secret"]}))
    with pytest.raises(BagError, match="leads through a symbolic link"):
        recover(base)
    assert (tmp_path / "elsewhere" / "secret").read_bytes() == b"s"


def test_the_content_of_a_journal() -> None:
    """JSON of one line; with discarded files, its format has another number."""
    form = changes.ChangeFormat(STAGING, "pressmark_bag", 1, b"bagit.txt", b"data")
    journal = {"pressmark_bag": 1, "request": REQUEST, "out": ['a"', "\udcff"], "in": ["m"], "payload": True}
    write = changes.journal_writer(form, REQUEST, [b"m"], True)
    assert write([b'a"', b"\xff"]) == json.dumps(journal).encode()
    assert write([]) == json.dumps({**journal, "out": []}).encode()
    write = changes.journal_writer(form, REQUEST, [b"m"], False, [b"a/b"])
    journal |= {"pressmark_bag": 2, "out": ["c"], "payload": False, "discarded": ["a/b"]}
    assert write([b"c"]) == json.dumps(journal).encode()
