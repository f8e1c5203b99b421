"""Lists of steps: made in order, until the first failure; alike in both implementations."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, strategies as some

from pressmark._kernels.records import ALONE, FLUSH, LOCK, MAKE, MODE, MOVE, RMDIR, UNLINK, WRITE, Step
from pressmark.fs.locks import FileLock
from support.disk_faults import DISK_FAULTS
from support.implementations import Implementation
from support.preloading import preloadable, run_preloaded
from support.trees import snapshot

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")


def test_steps_end_with_the_first_failure(implementation: Implementation, tmp_path: Path) -> None:
    """Each list of steps ends on its own; a lock is held until its descriptor is closed."""
    base = os.fsencode(tmp_path)
    run = implementation.kernels.run_steps
    steps: list[Step] = [(MAKE, b"d", 0o750), (MODE, b"d", 0o700), (LOCK, b"d/lock", None)]
    [(error, made, lock)] = run([base], [steps])
    assert (error, made, stat.S_IMODE((tmp_path / "d").stat().st_mode)) == (0, 3, 0o700)
    with pytest.raises(BlockingIOError):
        FileLock(base + b"/d/lock")
    os.close(lock)
    (tmp_path / "there").touch()
    lists: list[list[Step]] = [
        [(WRITE, b"f", b"data"), (MOVE, b"f", b"g"), (ALONE, b"d", b"lock")],
        [(ALONE, b"d", b"lock"), (ALONE, b"", b"d"), (UNLINK, b"there", None)],
        [(MOVE, b"there", b"d/lock")],
        [(MOVE, b"missing", b"d/lock")],
        [(MOVE, b"missing", b"new")],
        [(LOCK, b"d/lock", None)],
        [(UNLINK, b"nul\0", None)],
        [(MOVE, b"there", b"nul\0")],
        [(UNLINK, b"x" * 5000, None)],
        [(RMDIR, b"d", None)],
        [(UNLINK, b"d/lock", None), (RMDIR, b"d", None)],
    ]
    ends = [
        *((0, 3), (errno.EEXIST, 1), (errno.EEXIST, 0), (errno.ENOENT, 0), (errno.ENOENT, 0), (errno.EEXIST, 0)),
        *((errno.EINVAL, 0), (errno.EINVAL, 0), (errno.ENAMETOOLONG, 0), (errno.ENOTEMPTY, 0), (0, 2)),
    ]
    assert run([base] * len(lists), lists) == [(number, made, -1) for number, made in ends]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"g": b"data", "there": b""}
    # A base directory that is empty or has a NUL is not the root of the file system.
    assert run([b"", base + b"\0"], [[(MAKE, b"new", 0o777)]] * 2) == [(errno.EINVAL, 0, -1)] * 2
    with pytest.raises(ValueError, match="one list of steps"):
        run([base], [])


def test_a_lock_before_a_failure(implementation: Implementation, tmp_path: Path) -> None:
    """The caller receives a lock also if a later step fails, and closes it."""
    [(error, made, lock)] = implementation.kernels.run_steps(
        [os.fsencode(tmp_path)], [[(LOCK, b"lock", None), (RMDIR, b"none", None)]]
    )
    assert (error, made) == (errno.ENOENT, 1)
    with pytest.raises(BlockingIOError):
        FileLock(os.fsencode(tmp_path / "lock"))
    os.close(lock)


def test_directories_share_steps(implementation: Implementation, tmp_path: Path) -> None:
    """The same list of steps changes each directory."""
    bases = [os.fsencode(tmp_path / name) for name in "abcde"]
    for base in bases[:4]:
        os.mkdir(base)
    one: list[Step] = [(WRITE, b"f", b"1"), (MOVE, b"f", b"g")]
    other: list[Step] = [(WRITE, b"f", b"2")]
    found = implementation.kernels.run_steps(bases, [one, one, other, one, one])
    assert found == [(0, 2, -1), (0, 2, -1), (0, 1, -1), (0, 2, -1), (errno.ENOENT, 0, -1)]
    files = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {"a/g": b"1", "b/g": b"1", "c/f": b"2", "d/g": b"1"}


NAMES = some.sampled_from([b"a", b"b", b"d", b"d/a", b"d/e", b"d/e/a", b"link", b"link/a", b"none/a"])
STEPS = some.one_of(
    some.tuples(some.sampled_from([MAKE, MODE]), NAMES, some.sampled_from([0o700, 0o755, 0o777])),
    some.tuples(some.just(WRITE), NAMES, some.binary(max_size=3)),
    some.tuples(some.just(MOVE), NAMES, NAMES),
    some.tuples(some.just(ALONE), some.one_of(NAMES, some.just(b"")), some.sampled_from([b"a", b"d", b"e"])),
    some.tuples(some.sampled_from([LOCK, UNLINK, RMDIR, FLUSH]), NAMES, some.none()),
)


@given(lists=some.lists(some.lists(STEPS, max_size=8), min_size=1, max_size=4))
def test_both_make_the_same_steps(
    lists: list[list[Step]], pair: tuple[Implementation, Implementation], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Random steps have the same outcomes, and leave the same files."""
    found = []
    for implementation in pair:
        top = tmp_path_factory.mktemp("steps")
        bases = []
        for number in range(len(lists)):
            base = top / str(number)
            (base / "d" / "e").mkdir(parents=True)
            (base / "a").write_bytes(b"a")
            (base / "link").symlink_to("d")
            bases.append(os.fsencode(base))
        outcomes = []
        for error, made, lock in implementation.kernels.run_steps(bases, lists):
            outcomes.append((error, made, lock >= 0))
            if lock >= 0:
                os.close(lock)
        found.append((outcomes, snapshot(top)))
    assert found[0] == found[1]


@pytest.mark.usefixtures("pair")
def test_faults_at_every_change_of_the_disk(tmp_path: Path) -> None:
    """Both implementations stop at the same step, with the same error and the same files."""
    library = preloadable(DISK_FAULTS, tmp_path)
    run_preloaded(library, Path(__file__).with_name("file_steps.py"), str(tmp_path / "at"))
