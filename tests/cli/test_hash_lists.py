"""``pressmark hash --from``: the files of a list."""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from pressmark.buckets import address
from pressmark.buckets.memory import MemoryBucket
from pressmark.fixity.pool import LOOK_AHEAD

from .conftest import COMMAND, Run, environment

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX names")


def sums(*names: str | bytes, folder: Path) -> bytes:
    """Return the lines of files."""
    paths = [os.fsencode(name) for name in names]
    return b"".join(
        hashlib.sha512((folder / os.fsdecode(path)).read_bytes()).hexdigest().encode() + b"  " + path + b"\n"
        for path in paths
    )


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name in ("b", "a", "d/z", "d/y", "with space", "tab\tin"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    return tmp_path


@pytest.mark.parametrize("more", [(), ("--workers", "1")])
def test_the_order_of_the_list(quick: Run, files: Path, more: tuple[str, ...]) -> None:
    """Files are hashed in the order of the list, and directories as if they were arguments."""
    if more:
        done = quick("hash", "--from", "-", *more, stdin=b"b\n")
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"--workers: not supported with --from" in done.stderr
        return
    names = ["with space", "b", "d/y", "tab\tin", "a", "b"]
    (files / "list").write_text("".join(f"{name}\n" for name in names))
    with gzip.open(files / "list.gz", "wt") as packed:
        packed.write("\n".join(names))
    expected = sums(*names, folder=files)
    for listed in ("list", "list.gz"):
        done = quick("hash", "--from", listed)
        assert (done.stdout, done.stderr, done.returncode) == (expected, b"", 0)
    for null, end in (((), "\n"), (("--null",), "\0")):
        done = quick("hash", "--from", "-", *null, stdin=end.join(names).encode())
        assert (done.stdout, done.stderr, done.returncode) == (expected, b"", 0)
    done = quick("hash", "--from", "-", "--exclude", "y", stdin=b"b\nd\na")
    assert (done.stdout, done.returncode) == (sums("b", "d/z", "a", folder=files), 0)
    assert done.stderr == b"pressmark: excluded: d/y\n"


def test_names_that_fail(quick: Run, files: Path) -> None:
    """Each failure is reported as that of an argument, and the others are hashed."""
    by_argument = quick("hash", "b", "gone", "a", "s3://")
    done = quick("hash", "--from", "-", stdin=b"b\ngone\n\na\ns3://\n")
    assert (done.stdout, done.returncode) == (sums("b", "a", folder=files), 1)
    lines = done.stderr.decode().splitlines()
    assert lines[:2] == ["pressmark: gone: No such file or directory", "pressmark: -:3: the name is empty"]
    assert lines[2].startswith("pressmark: s3://: ")
    assert lines[3] == "pressmark: 3 of 5 files failed"
    assert b"s3://" in by_argument.stderr


@posix
def test_any_name(run: Run, tmp_path: Path) -> None:
    """With NUL, a name can be any bytes, also those that look like another encoding or line ends of Windows."""
    folder = os.fsencode(tmp_path)
    names = [b"\xef\xbb\xbfmark", b"a\r", b"line\nfeed", b"\xff", b"p", b"q", b"r", b"s"]
    try:
        for name in names:
            Path(os.fsdecode(os.path.join(folder, name))).write_bytes(name)
    except OSError:
        pytest.skip("the file system has names in UTF-8 only")
    done = run("hash", "--from", "-", "--null", "--format", "json", stdin=b"\0".join(names) + b"\0")
    assert (done.stderr, done.returncode) == (b"", 0)
    assert done.stdout.count(b"\n") == len(names)
    assert all(hashlib.sha512(name).hexdigest().encode() in done.stdout for name in names)
    done = run("hash", "--from", "-", stdin=b"./one\0./two\0")
    assert done.returncode == 2
    assert b"NUL byte in line 1; use -0 if items end with NUL" in done.stderr


def test_line_ends_of_windows(quick: Run, files: Path) -> None:
    done = quick("hash", "--from", "-", stdin=b"a\r\nb\r\n")
    assert (done.stdout, done.returncode) == (b"", 2)
    assert done.stderr == (
        b"pressmark: <stdin>: carriage return at the end of lines; use --crlf strip to remove it, --crlf keep to keep"
        b" it\n"
    )
    assert quick("hash", "--from", "-", "--crlf", "strip", stdin=b"a\r\nb\r\n").stdout == sums("a", "b", folder=files)


def test_lists_that_are_refused(quick: Run, files: Path) -> None:
    for words, stdin, message in (
        ((), b"", "missing argument; specify PATH, or --from FILE"),
        (("--from", "nowhere"), b"", "nowhere: No such file or directory"),
        (("--from", "x.csv"), b"", "x.csv: not a list of lines; save it as plain lines"),
        (("--from", "-", "a"), b"b", "PATH: not supported with --from, because FILE lists all files; omit one of them"),
        (("a", "--null"), b"", "--null requires --from"),
    ):
        done = quick("hash", *words, stdin=stdin)
        assert (done.stdout, done.stderr.decode(), done.returncode) == (b"", f"pressmark: {message}\n", 2)


def test_a_ledger_and_an_output(quick: Run, files: Path) -> None:
    """A second run with the same list reads nothing, and the output in the list is not hashed."""
    (files / "list").write_bytes(b"b\na\nsums\n")
    (files / "sums").write_bytes(b"old")
    call = ("hash", "--from", "list", "--ledger", "ledger", "-o", "sums")
    assert quick(*call).returncode == 0
    assert (files / "sums").read_bytes() == sums("b", "a", folder=files)
    done = quick(*call)
    assert b"0 read, 2 from the ledger" in done.stderr
    done = quick("hash", "--from", "-", "--ledger", "ledger", stdin=b"b\n")
    assert (done.returncode, done.stdout) == (2, b"")


def test_a_list_is_a_stream(tmp_path: Path) -> None:
    """Lines are printed before the list ends, so that a list of any length takes no more memory."""
    (tmp_path / "a").write_bytes(b"a")
    with subprocess.Popen(
        [*COMMAND, "hash", "--from", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
        cwd=tmp_path,
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(b"a\n" * 4 * LOOK_AHEAD)
        process.stdin.flush()
        line = sums("a", folder=tmp_path)
        assert process.stdout.readline() == line
        process.stdin.close()
        assert process.stdout.read() == line * (4 * LOOK_AHEAD - 1)


def test_keys(quick: Run, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address in a list is that of a key."""
    bucket = MemoryBucket()
    monkeypatch.setattr(address, "open_bucket", lambda text: (bucket, address.parse(text)[1]))
    bucket.put(b"x", b"of a key")
    done = quick("hash", "--from", "-", stdin=b"a\ns3://books/x\ns3://books/gone\nb\n")
    key = hashlib.sha512(b"of a key").hexdigest().encode() + b"  s3://books/x\n"
    assert done.stdout == sums("a", folder=files) + key + sums("b", folder=files)
    assert done.stderr.startswith(b"pressmark: s3://books/gone: ")
    assert done.returncode == 1
