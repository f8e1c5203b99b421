"""The ledger: finished files are not read again, however the earlier run ended."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import re
import signal
import stat
import subprocess
import time
import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest

from pressmark.errors import LedgerError
from pressmark.fixity import Ledger, Outcome, hash_files, ledger as ledger_module, walk
from support.effort import repeats
from support.implementations import Implementation
from support.signals import restore_signals

from .conftest import COMMAND, Run, environment
from .trees import make

KILLS = repeats(2, 50)


def opened(path: Path, algorithms: str = "sha512", roots: tuple[str, ...] = ("/r",)) -> Ledger:
    return Ledger(path, algorithms.split(","), roots)


def hashed(path: Path, folder: Path, algorithms: str = "sha512") -> tuple[list[Outcome], int]:
    """Hash a tree with a ledger, and return the outcomes and the number of those from the ledger."""
    with opened(path, algorithms) as ledger:
        known = 0
        find = ledger.find

        def counted(*args: object) -> dict[str, str] | None:
            nonlocal known
            found = find(*args)  # type: ignore[arg-type]
            known += found is not None
            return found

        ledger.find = counted  # type: ignore[method-assign]
        outcomes = list(hash_files(walk(folder), algorithms.split(","), threads=2, ledger=ledger))
    return outcomes, known


def test_a_second_run_reads_nothing(implementation: Implementation, tmp_path: Path) -> None:
    """All outcomes come from the ledger and equal computed ones; changed files are read."""
    paths = make(tmp_path / "t", (0, 1, 5000, 300_000, 17))
    name = tmp_path / "t" / os.fsdecode(b'9 \xff\n"\\')
    name.write_bytes(b"hostile")
    first, known = hashed(tmp_path / "l", tmp_path / "t", "sha512,md5")
    assert known == 0
    again, known = hashed(tmp_path / "l", tmp_path / "t", "sha512,md5")
    assert (again, known) == (first, 6)
    Path(paths[1]).write_bytes(b"22")
    third, known = hashed(tmp_path / "l", tmp_path / "t", "sha512,md5")
    assert known == 5
    assert third[1] != first[1]
    assert third[:1] + third[2:] == first[:1] + first[2:]
    assert hashed(tmp_path / "l", tmp_path / "t", "sha512,md5") == (third, 6)


def edit(path: Path, data: bytes) -> None:
    """Replace the content of a file, and set its modification time back."""
    status = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size


@pytest.mark.skipif(os.name != "posix", reason="needs the time of status changes")
@pytest.mark.parametrize("size", [5, 70_000, 600_000])
def test_an_edit_that_keeps_size_and_time(implementation: Implementation, tmp_path: Path, size: int) -> None:
    """A file whose content was replaced is read again, also if another file took its place."""
    folder = tmp_path / "t"
    folder.mkdir()
    for name in "abc":
        (folder / name).write_bytes(b"1" * size)
    first, _ = hashed(tmp_path / "l", folder)
    time.sleep(0.02)  # longer than a tick of the clock of a file system
    edit(folder / "a", b"2" * size)
    (folder / "new").write_bytes(b"3" * size)
    status = (folder / "b").stat()
    os.utime(folder / "new", ns=(status.st_atime_ns, status.st_mtime_ns))
    (folder / "new").rename(folder / "b")
    again, known = hashed(tmp_path / "l", folder)
    assert known == 1
    assert [outcome.digests for outcome in again] == [
        {"sha512": hashlib.sha512(digit * size).hexdigest()} for digit in (b"2", b"3", b"1")
    ]
    assert again[2] == first[2]


@pytest.mark.skipif(os.name != "posix", reason="needs the time of status changes")
def test_a_file_that_changes_while_it_is_read(
    implementation: Implementation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record has the times of the file before it was read: an edit in the meantime is noticed by the next run."""
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "a").write_bytes(b"old")
    append = Ledger.append

    def editing(self: Ledger, outcomes: Iterable[Outcome]) -> None:
        time.sleep(0.02)
        edit(tmp_path / "t" / "a", b"new")
        append(self, outcomes)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "append", editing)
        hashed(tmp_path / "l", tmp_path / "t")
    [outcome], known = hashed(tmp_path / "l", tmp_path / "t")
    assert (outcome.digests, known) == ({"sha512": hashlib.sha512(b"new").hexdigest()}, 0)


def test_a_ledger_of_an_earlier_version(implementation: Implementation, tmp_path: Path) -> None:
    """Records without the time of the status change: the ledger is refused and stays as it is."""
    path = Path(make(tmp_path / "t", (5,))[0])
    opened(tmp_path / "l").close()
    status = path.stat()
    record = [str(path), status.st_size, status.st_mtime_ns, status.st_ino, ["0" * 128]]
    text = json.dumps(record, separators=(",", ":")).encode()
    with open(tmp_path / "l", "ab") as file:
        file.write(b"%08x %b\n" % (zlib.crc32(text), text))
        file.write(b"00000000 [")  # killed
    before = (tmp_path / "l").read_bytes()
    with pytest.raises(LedgerError) as caught:
        opened(tmp_path / "l")
    assert caught.value.reason == "written by another version of Pressmark; choose another file for the ledger"
    assert (tmp_path / "l").read_bytes() == before


def test_what_comes_from_the_ledger_is_counted(implementation: Implementation, tmp_path: Path) -> None:
    """The ledger counts the files that were read and recorded, and those that were not read, and knows since when."""
    folder = tmp_path / "t"
    make(folder, (1, 2, 3))
    with opened(tmp_path / "l") as ledger:
        list(hash_files(walk(folder), "sha512", ledger=ledger))
        assert (ledger.added, ledger.found, ledger.since) == (3, 0, "")
    lines = (tmp_path / "l").read_bytes().splitlines()
    for number in (1, 2):
        text = re.sub(rb'"20[0-9-]+",\[', b'"2025-01-0%d",[' % number, lines[number][9:])
        lines[number] = b"%08x %b" % (zlib.crc32(text), text)
    (tmp_path / "l").write_bytes(b"\n".join([*lines, b""]))
    (folder / "new").write_bytes(b"new")
    with opened(tmp_path / "l") as ledger:
        list(hash_files(walk(folder), "sha512", ledger=ledger))
        assert (ledger.added, ledger.found, ledger.since) == (1, 3, "2025-01-01")


def test_failures_are_not_recorded(implementation: Implementation, tmp_path: Path) -> None:
    """A failed file is tried again."""
    make(tmp_path / "t", (1, 2))
    (tmp_path / "t" / "x").symlink_to("nowhere")
    hashed(tmp_path / "l", tmp_path / "t")
    assert len((tmp_path / "l").read_bytes().splitlines()) == 3
    (tmp_path / "t" / "x").unlink()
    (tmp_path / "t" / "x").write_bytes(b"now")
    outcomes, known = hashed(tmp_path / "l", tmp_path / "t")
    assert (known, [outcome.ok for outcome in outcomes]) == (2, [True] * 3)


@pytest.mark.slow_under_sanitizers
def test_every_truncation(tmp_path: Path) -> None:
    """A ledger truncated at any byte opens, keeps the complete records, and can be extended."""
    make(tmp_path / "t", (1, 20, 300))
    first, _ = hashed(tmp_path / "l", tmp_path / "t", "md5")
    whole = (tmp_path / "l").read_bytes()
    for size in range(len(whole)):
        (tmp_path / "l").write_bytes(whole[:size])
        outcomes, known = hashed(tmp_path / "l", tmp_path / "t", "md5")
        assert outcomes == first
        assert known == max(0, whole[:size].count(b"\n") - 1)
        assert sorted((tmp_path / "l").read_bytes().splitlines()) == sorted(whole.splitlines())


def test_damaged_records_are_read_again(tmp_path: Path) -> None:
    """A flipped bit after the header costs a record, never a wrong digest."""
    make(tmp_path / "t", (1, 20, 300))
    first, _ = hashed(tmp_path / "l", tmp_path / "t", "md5")
    whole = (tmp_path / "l").read_bytes()
    draw = random.Random(3)
    for _ in range(60):
        place = draw.randrange(whole.index(b"\n") + 1, len(whole))
        damaged = bytearray(whole)
        damaged[place] ^= 1 << draw.randrange(8)
        (tmp_path / "l").write_bytes(damaged)
        outcomes, known = hashed(tmp_path / "l", tmp_path / "t", "md5")
        assert outcomes == first
        assert known in (1, 2)  # the record, and its neighbour if the line feed between them is lost
    (tmp_path / "l").write_bytes(whole.replace(b"\n", b"\nnonsense\n"))
    assert hashed(tmp_path / "l", tmp_path / "t", "md5") == (first, 3)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"a file of mine\n", "not a ledger"),
        (b"without line feed", "not a ledger"),
        (b'12345678 {"pressmark_ledger": 1}\n', "not a ledger"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    """A file that is not a ledger is refused and not changed."""
    (tmp_path / "l").write_bytes(content)
    with pytest.raises(LedgerError, match=reason):
        opened(tmp_path / "l")
    assert (tmp_path / "l").read_bytes() == content
    with pytest.raises(LedgerError, match="not a regular file"):
        opened(tmp_path)


def test_other_runs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger is bound to its algorithms, its paths and, if these are relative, its directory."""
    opened(tmp_path / "l", "sha512,md5").close()
    opened(tmp_path / "l", "SHA-512,md5").close()
    with pytest.raises(LedgerError, match=r'other algorithms: \["sha512", "md5"\], not \["sha512"\]'):
        opened(tmp_path / "l", "sha512")
    with pytest.raises(LedgerError, match="other paths"):
        opened(tmp_path / "l", "sha512,md5", ("/r", "/s"))
    monkeypatch.chdir(tmp_path)
    opened(tmp_path / "m", roots=("r",)).close()
    (tmp_path / "d").mkdir()
    monkeypatch.chdir(tmp_path / "d")
    with pytest.raises(LedgerError, match="other directory"):
        opened(tmp_path / "m", roots=("r",))
    with pytest.raises(ValueError, match="other algorithms"), opened(tmp_path / "n") as ledger:
        hash_files([], ["md5"], ledger=ledger)


def test_two_writers(tmp_path: Path) -> None:
    """A ledger in use is refused, and accepted afterwards."""
    with opened(tmp_path / "l"), pytest.raises(LedgerError, match="in use by another run"):
        opened(tmp_path / "l")
    opened(tmp_path / "l").close()


@pytest.mark.slow_under_sanitizers
def test_many_records(tmp_path: Path) -> None:
    """Each of ten thousand records is found, and only with its own size, time and inode."""
    outcomes = [Outcome(f"p{n}", {"md5": f"{n:032x}"}, n, 10 * n, 100 * n) for n in range(10_000)]
    with opened(tmp_path / "l", "md5") as ledger:
        ledger.append(outcomes)

    def status(size: int, mtime_ns: int, inode: int, mode: int = 0o100644) -> os.stat_result:
        fields = [mode, inode, 1, 1, 0, 0, size, 0, 0, 0, 0.0, 0.0, 0.0, 0, mtime_ns, 0]
        return os.stat_result(fields)

    with opened(tmp_path / "l", "md5") as ledger:
        assert (ledger.records, ledger.damaged) == (10_000, 0)
        for n in range(0, 10_000, 7):
            assert ledger.find(f"p{n}", status(n, 10 * n, 100 * n)) == {"md5": f"{n:032x}"}
            assert ledger.find(f"p{n}", status(n + 1, 10 * n, 100 * n)) is None
            assert ledger.find(f"p{n}", status(n, 10 * n + 1, 100 * n)) is None
            assert ledger.find(f"p{n}", status(n, 10 * n, 100 * n + 1)) is None
        assert ledger.find("q", status(1, 10, 100)) is None
        assert ledger.find("p1", status(1, 10, 100, stat.S_IFBLK)) is None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_a_full_disk(tmp_path: Path) -> None:
    """A write error of the ledger ends the run with the ledger's name."""
    ledger = opened(tmp_path / "l", "md5")
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, ledger._descriptor)
    os.close(full)
    with pytest.raises(LedgerError, match="No space left on device"):
        ledger.append([Outcome("p", {"md5": "0" * 32}, 1, 2, 3)])
    os.close(ledger._descriptor)


@pytest.mark.parametrize("when", ["append", "close"])
def test_a_failing_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    """A ledger that does not reach the disk, as on a network file system, is an error; its lock is released."""

    def fail(_descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    name = tmp_path / "t" / "a"
    name.parent.mkdir()
    name.write_bytes(b"a")
    outcomes = list(hash_files([name], ["sha512"]))
    ledger = opened(tmp_path / "l")
    ledger._next_sync = 0.0
    calls = {"append": lambda: ledger.append(outcomes), "close": ledger.close}
    with monkeypatch.context() as patch:
        patch.setattr(ledger_module, "flush_file", fail)
        with pytest.raises(LedgerError, match=os.strerror(errno.EIO)):
            calls[when]()
    ledger.close()
    opened(tmp_path / "l").close()


@pytest.mark.kill
@pytest.mark.slow_under_sanitizers
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_killed_runs_are_resumed(implementation: Implementation, faults: str, tmp_path: Path) -> None:
    """Killed at random moments, the run completes with the correct manifest, and reads nothing twice.

    A file counts as finished once its record is in the ledger; reads are counted by a library between the program and
    the operating system.
    """
    folder = tmp_path / "files"
    folder.mkdir()
    draw = random.Random(time.time_ns())
    for number in range(400):
        (folder / f"count-{number:04}").write_bytes(draw.randbytes(draw.choice([10, 5000, 70_000, 600_000])))
    command = [*COMMAND, "hash", "files", "-a", "sha512,md5", "--threads", "2", "--format", "json"]
    environ = environment(PRESSMARK_IMPLEMENTATION=str(implementation))
    undisturbed = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, check=True).stdout
    assert undisturbed.count(b"\n") == 400
    log, journal, output = tmp_path / "reads", tmp_path / "ledger", tmp_path / "manifest"
    command += ["--ledger", str(journal), "-o", str(output)]
    environ |= {"LD_PRELOAD": faults, "READS": str(log), "SLOW": "4000"}
    finished: set[str] = set()
    kills = 0
    while True:
        log.unlink(missing_ok=True)
        process = subprocess.Popen(command, cwd=tmp_path, env=environ, stderr=subprocess.DEVNULL)
        if kills < KILLS:
            try:
                process.wait(draw.uniform(0.1, 0.7))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                kills += 1
        status = process.wait(60)
        read = log.read_text().split() if log.exists() else []
        assert not finished & set(read)
        assert len(read) == len(set(read))
        assert status in (0, -signal.SIGKILL)
        if output.exists():  # including a run killed between its last action and its end
            assert output.read_bytes() == undisturbed
            output.unlink()
        if status == 0:
            if kills == KILLS:
                break
            # More kills than this run allowed: start again.
            journal.unlink()
        lines = journal.read_bytes().split(b"\n")[1:-1] if journal.exists() else []
        finished = {os.path.basename(json.loads(line[9:])[0]) for line in lines}


@pytest.mark.slow_under_sanitizers
@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("with_ledger", [False, True])
def test_interruption(implementation: Implementation, faults: str, tmp_path: Path, with_ledger: bool) -> None:
    """Ctrl-C ends a run soon, with one line that names the remedy, and leaves no output."""
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(2000):
        (folder / f"count-{number:04}").write_bytes(b"x" * 1000)
    command = [*COMMAND, "hash", "files", "-o", "out", *(["--ledger", "my.ledger"] if with_ledger else [])]
    environ = environment(
        PRESSMARK_IMPLEMENTATION=str(implementation), LD_PRELOAD=faults, READS=str(tmp_path / "reads"), SLOW="5000"
    )
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environ,
        stderr=subprocess.PIPE,
        preexec_fn=restore_signals,
    )
    while not (tmp_path / "reads").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    how = (
        "run the same command to continue from my.ledger"
        if with_ledger
        else "use --ledger FILE to make a run resumable"
    )
    assert (process.returncode, stderr.decode()) == (130, f"pressmark: interrupted; {how}\n")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "reads") == (
        ["files", "my.ledger"] if with_ledger else ["files"]
    )


def test_sequential_and_parallel_share_a_ledger(run: Run, tmp_path: Path) -> None:
    """A ledger serves sequential and parallel runs alike."""
    make(tmp_path / "t", (1, 2, 3))
    first = run("hash", "t", "--ledger", "l", "--read", "sequential")
    second = run("hash", "t", "--ledger", "l", "--threads", "1")
    assert (first.returncode, first.stdout) == (second.returncode, second.stdout)
    assert second.returncode == 0
