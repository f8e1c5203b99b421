"""Process behaviour: exit statuses, pipes, replaced files, signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from pressmark import _kernels
from support.samples import KNOWN
from support.signals import restore_signals

from .conftest import COMMAND, Run, environment, feed_endlessly

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX devices and signals")


def test_maps_standard_input(run: Run) -> None:
    """Without FILE, standard input is mapped; "python -m pressmark" is the command."""
    done = run("map", "pairtree", stdin=b"ark:/13030/xt12t3\n")
    assert (done.stdout, done.stderr, done.returncode) == (b"ar/k+/=1/30/30/=x/t1/2t/3\n", b"", 0)


def test_version_names_the_implementation(run: Run) -> None:
    """--version prints the requested implementation."""
    done = run("--version")
    wanted = os.environ.get("PRESSMARK_IMPLEMENTATION", "auto")
    assert done.returncode == 0
    assert done.stdout.startswith(b"pressmark ")
    assert done.stdout.rstrip().endswith(b")")
    assert wanted == "auto" or f" ({wanted}" in done.stdout.decode()
    assert (b"vector level" in done.stdout) == (b"(native" in done.stdout)


@pytest.mark.parametrize("call", [["--version"], ["map", "0003"], ["hash", "."]], ids=" ".join)
def test_an_unknown_implementation_is_one_line_and_exit_2(
    run: Run, monkeypatch: pytest.MonkeyPatch, call: list[str]
) -> None:
    """An unknown implementation is a one-line error of every command; the help works."""
    monkeypatch.setenv("PRESSMARK_IMPLEMENTATION", "nonsense")
    done = run(*call, stdin=b"a\n")
    line = f"pressmark: PRESSMARK_IMPLEMENTATION=nonsense: expected auto, native or pure{os.linesep}"
    assert (done.stdout, done.stderr.decode(), done.returncode) == (b"", line, 2)
    assert run("--help").returncode == 0


@posix
def test_a_closed_stdout_is_reported(tmp_path: Path) -> None:
    """A closed standard output is a usage error without a traceback."""
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, "map", "0002"],
        input=b"a\n",
        stderr=subprocess.PIPE,
        env=environment(),
        check=False,
    )
    assert (done.stderr, done.returncode) == (b"pressmark: <stdout>: closed\n", 2)


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (["map", "nope"], f"unknown layout 'nope'; known layouts: {KNOWN}"),
        (
            ["map", "0012", "--set", "tupleSize=0"],
            "tupleSize: 0 is allowed only if numberOfTuples is 0",
        ),
        (["map", "0012", "--set", "tuple_size=2"], "tuple_size: unknown parameter; did you mean tupleSize?"),
        (["map", "pairtree", "missing.txt"], "missing.txt: No such file or directory"),
        (["map", "pairtree", "."], f".: {os.strerror(21) if os.name == 'posix' else 'Permission denied'}"),
    ],
    ids=["layout", "value", "key", "missing file", "directory"],
)
def test_a_usage_error_is_one_line_and_exit_2(run: Run, call: list[str], line: str) -> None:
    """A usage error is one line; nothing is read or written."""
    done = run(*call, stdin=b"a\n")
    assert (done.stdout, done.stderr.decode(), done.returncode) == (b"", f"pressmark: {line}{os.linesep}", 2)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("mapp", "map"),
        ("validate bag", "bag validate"),
        ("check books", "store check"),
        ("store list books", "store ls"),
        ("store create books", "store init"),
        ("store validate books", "store check"),
        ("bag verify bag", "bag validate"),
        ("bag vaildate bag", "bag validate"),
        ("frobnicate", ""),
    ],
)
def test_a_command_that_does_not_exist(quick: Run, words: str, meant: str) -> None:
    """A usage error names the command that was probably meant."""
    done = quick(*words.split())
    group = "pressmark" if " " not in words or meant.split()[0] != words.split()[0] else f"pressmark {words.split()[0]}"
    word = words.split()[1 if group != "pressmark" else 0]
    advice = f"; did you mean pressmark {meant}?" if meant else ""
    line = f"pressmark: no such command '{word}'{advice} (see '{group} --help')\n"
    assert (done.stdout, done.stderr.decode(), done.returncode) == (b"", line, 2)


@pytest.mark.parametrize(
    "words",
    ["store check x", "store put x id x", "bag update x", "bag create x", "bag create x -o y", "verify SUMS --root x"],
)
def test_arguments_that_cannot_be_read(quick: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    """An unreadable argument is a usage error that states the reason."""
    (tmp_path / "x").mkdir()
    (tmp_path / "SUMS").touch()
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    done = quick(*words.split())
    assert (done.stdout, done.stderr, done.returncode) == (b"", b"pressmark: x: Permission denied\n", 2)


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_input_from_a_terminal(run: Run) -> None:
    """A command that waits for input on a terminal says so, and how to end it."""
    keyboard, terminal = os.openpty()
    try:
        os.write(keyboard, b"a\n\x04")
        done = subprocess.run(
            [*COMMAND, "map", "pairtree"],
            stdin=terminal,
            capture_output=True,
            env=environment(),
            check=True,
            timeout=60,
        )
    finally:
        os.close(keyboard)
        os.close(terminal)
    assert done.stdout == b"a\n"
    assert done.stderr == b"pressmark: reading from the terminal; end with Ctrl-D\n"


def test_a_failing_item_stops_the_run(run: Run, tmp_path: Path) -> None:
    """By default the first failing item ends the run, with file and line, after all earlier results."""
    (tmp_path / "ids").write_bytes(b"a\nb\n\nc")
    done = run("map", "pairtree", "ids")
    assert (done.stdout, done.stderr.decode(), done.returncode) == (
        b"a\nb\n",
        f"pressmark: ids:3: '': identifier is empty{os.linesep}",
        1,
    )


def test_broken_pipe_is_success() -> None:
    """If the reader of an endless run leaves, the command ends silently with 0, in constant memory."""
    line = feed_endlessly(["map", "pairtree"], b"ark:/13030/xt12t3\n" * 4096)
    assert line == b"ar/k+/=1/30/30/=x/t1/2t/3\n"


@posix
@pytest.mark.parametrize("call", [["layouts"], ["map", "--help"]], ids=" ".join)
def test_a_closed_pipe_is_success(call: list[str]) -> None:
    """Tables and help end silently, too, and the interpreter's last flush does not fail."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*COMMAND, *call], stdout=write, stderr=subprocess.PIPE, env=environment(), timeout=60, check=False
    )
    os.close(write)
    assert (done.stderr, done.returncode) == (b"", 0)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("call", "name"),
    [
        (["map", "pairtree"], "<stdout>"),
        (["map", "pairtree", "-o", "/dev/full"], "/dev/full"),
        (["layouts"], "<stdout>"),
    ],
    ids=["data", "output", "table"],
)
def test_a_full_disk_is_one_line_and_exit_1(run: Run, call: list[str], name: str) -> None:
    """A write error is reported once; the interpreter's last flush does not fail again."""
    with open("/dev/full", "wb") as full:
        done = run(*call, stdin=b"a\n", stdout=full)
    assert (done.stderr, done.returncode) == (f"pressmark: {name}: No space left on device\n".encode(), 1)


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs a file that opens and cannot be read")
def test_a_read_error_is_one_line_and_exit_1(run: Run, tmp_path: Path) -> None:
    """A read error names the input, and OUTPUT is not created."""
    done = run("map", "pairtree", "/proc/self/mem", "-o", "paths")
    assert (done.stderr, done.returncode) == (b"pressmark: /proc/self/mem: Input/output error\n", 1)
    assert os.listdir(tmp_path) == []


def test_output_is_put_in_place_when_complete(run: Run, tmp_path: Path) -> None:
    """After a stop, OUTPUT is unchanged; with skipped items it is written, and the exit status is 1."""
    (tmp_path / "ids").write_bytes(b"a\n\nc\n")
    (tmp_path / "paths").write_bytes(b"as before\n")
    assert run("map", "0003", "ids", "-o", "paths").returncode == 1
    assert (tmp_path / "paths").read_bytes() == b"as before\n"
    assert run("map", "pairtree", "ids", "-o", "paths", "--on-error", "skip").returncode == 1
    assert (tmp_path / "paths").read_bytes() == b"a\nc\n"
    assert sorted(os.listdir(tmp_path)) == ["ids", "paths"]


@posix
def test_output_replaces_the_file_behind_a_link_and_keeps_its_mode(run: Run, tmp_path: Path) -> None:
    """A link stays a link; a new file has the usual permissions."""
    (tmp_path / "real").write_bytes(b"")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    assert run("map", "0002", "-o", "link", stdin=b"a\n").returncode == 0
    assert run("map", "0002", "-o", "new", stdin=b"a\n").returncode == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"a\n"
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o640
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o666 & ~mask


@posix
def test_input_and_output_must_differ(run: Run, tmp_path: Path) -> None:
    """Input and output must differ, by name or by redirection."""
    ids = tmp_path / "ids"
    ids.write_bytes(b"a\n")
    assert run("map", "0002", "ids", "-o", "./ids").stderr == (
        b"pressmark: ./ids: input and output are the same file; choose another output\n"
    )
    with open(ids, "ab") as appended:
        done = run("map", "0002", "ids", stdout=appended)
    assert (done.stderr, done.returncode) == (
        b"pressmark: <stdout>: input and output are the same file; choose another output\n",
        2,
    )
    assert ids.read_bytes() == b"a\n"


INTERRUPTED = b"pressmark: interrupted; paths is unchanged; run the same command again\n"


def end_by(signals: list[signal.Signals], folder: Path) -> tuple[bytes, int]:
    """Send ``signals`` to a command that waits for input, and return its output and exit status."""
    import fcntl  # not on Windows
    import termios

    process = subprocess.Popen(
        [*COMMAND, "map", "0002", "-o", "paths"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=environment(),
        preexec_fn=restore_signals,
    )
    assert process.stdin
    process.stdin.write(b"a\n")
    process.stdin.flush()
    # Once the command has read this line, it knows its temporary file.
    for _ in range(6000):
        if os.listdir(folder) and not any(fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4))):
            break
        assert process.poll() is None
        threading.Event().wait(0.01)
    for number in signals:
        process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    return stderr, process.returncode


@posix
def test_interrupt_is_one_line_and_exit_130(tmp_path: Path) -> None:
    """Ctrl-C during input gives no traceback and leaves no file."""
    written, status = end_by([signal.SIGINT], tmp_path)
    # The signal may come before the list is opened.
    assert written in (INTERRUPTED, b"pressmark: interrupted\n")
    assert status == 130
    assert os.listdir(tmp_path) == []


@posix
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_other_signals_are_like_an_interrupt(tmp_path: Path, name: str) -> None:
    """SIGTERM and SIGHUP also clean up, even if repeated, and determine the exit status."""
    number = signal.Signals[name]
    written, status = end_by([number, number, number], tmp_path)
    # The signal may come before the list is opened.
    assert written in (INTERRUPTED, b"pressmark: interrupted\n")
    assert status == 128 + number
    assert os.listdir(tmp_path) == []


# The command loses the exception of a signal, then waits for its input.
LOSING = """
import _thread, os, signal, sys, time, weakref
from pressmark import __main__
from pressmark.cli import map as command

way, name, sys.argv = sys.argv[1], sys.argv[2], ["pressmark", "map", "0002"]

def end(*_):
    os.kill(os.getpid(), getattr(signal, name))
    for _ in range(1000):
        pass

class Thing:
    if way != "weakref":
        __del__ = end

def losing(*given, real=command.unpacked):
    thing = Thing()
    reference = weakref.ref(thing, end if way == "weakref" else None)
    del thing
    return real(*given)

def start_slowly(*given, real=_thread.start_new_thread):
    real(*given)
    while time.monotonic() < begin + 0.2:
        pass

begin = time.monotonic()
command.unpacked = losing
if way == "ignored":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
if way == "slow":
    _thread.start_new_thread = start_slowly
__main__.main()
"""


@posix
@pytest.mark.parametrize(
    ("way", "name"),
    [("del", "SIGINT"), ("slow", "SIGINT"), ("weakref", "SIGINT"), ("weakref", "SIGTERM"), ("ignored", "SIGTERM")],
)
def test_a_discarded_interrupt_ends_the_command(way: str, name: str) -> None:
    """An interrupt in a callback whose exceptions Python discards also ends a command that waits."""
    process = subprocess.Popen(
        [sys.executable, "-c", LOSING, way, name],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        preexec_fn=restore_signals,
    )
    try:
        assert process.wait(timeout=20) == 128 + signal.Signals[name]
    finally:
        process.kill()
        _, stderr = process.communicate()
    assert stderr == b"pressmark: interrupted\n"


@posix
@pytest.mark.parametrize("how", ["raise KeyboardInterrupt", "exec('raise KeyboardInterrupt')"])
def test_an_interrupt_before_the_command(how: str, tmp_path: Path) -> None:
    """An interrupt while the command is imported gives one line and its exit status."""
    script = f"""
import sys
from pressmark.__main__ import main

class Interrupting:
    def __getattr__(self, name):
        {how}

sys.modules["pressmark.cli"] = Interrupting()
main()
"""
    (tmp_path / "interrupting.py").write_text(script)
    call = [sys.executable, "-m", "interrupting"]
    done = subprocess.run(call, capture_output=True, cwd=tmp_path, env=environment(), timeout=60, check=False)
    assert (done.returncode, done.stderr) == (130, b"pressmark: interrupted\n")


@posix
def test_nohup_is_respected(tmp_path: Path) -> None:
    """A signal ignored by the parent process stays ignored."""
    script = 'trap "" HUP; exec "$@"'
    process = subprocess.Popen(
        ["sh", "-c", script, "sh", *COMMAND, "map", "0002", "-o", "paths"],
        stdin=subprocess.PIPE,
        cwd=tmp_path,
        env=environment(),
    )
    while not os.listdir(tmp_path):
        assert process.poll() is None
        threading.Event().wait(0.01)
    process.send_signal(signal.SIGHUP)
    process.communicate(b"a\n", timeout=60)
    assert process.returncode == 0
    assert (tmp_path / "paths").read_bytes() == b"a\n"


@posix
def test_a_broken_stderr_does_not_affect_the_data(tmp_path: Path) -> None:
    """A closed or broken stderr changes neither data nor exit status."""
    read, write = os.pipe()
    os.close(read)
    options: dict[str, Any] = {"input": b"a\n\nb\n", "stdout": subprocess.PIPE, "env": environment(), "check": False}
    call = [*COMMAND, "map", "0002", "--on-error", "skip"]
    done = subprocess.run(call, stderr=write, **options)
    os.close(write)
    assert (done.stdout, done.returncode) == (b"a\nb\n", 1)
    done = subprocess.run(["sh", "-c", 'exec "$@" 2>&-', "sh", *call], **options)
    assert (done.stdout, done.returncode) == (b"a\nb\n", 1)


@posix
def test_names_that_are_not_text_stay_on_one_line(run: Run) -> None:
    """A file name with a line feed and bytes outside UTF-8 is escaped in the error line."""
    done = run("map", "0002", b"no\nsuch\xff")
    assert (done.stderr, done.returncode) == (b"pressmark: no\\nsuch\\xff: No such file or directory\n", 2)


@pytest.mark.parametrize(
    ("call", "unused"),
    [
        ("map 0002 ids", "rich tempfile pressmark.cli.layouts click.shell_completion"),
        ("hash ids", "rich dataclasses hashlib json logging"),
        ("bag create files -o new", "rich secrets random concurrent.futures logging"),
        ("bag validate bag", "rich shutil secrets json pickle concurrent.futures logging ctypes"),
        ("store put store b files", "rich shutil secrets random concurrent.futures logging"),
        ("store ls store --json", "rich shutil secrets hashlib ctypes"),
    ],
)
def test_a_short_run_imports_little(run: Run, tmp_path: Path, call: str, unused: str) -> None:
    """A short run imports neither other commands nor slow modules that it does not need."""
    (tmp_path / "ids").write_bytes(b"a\n")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "file").write_bytes(b"data")
    for prepare in ("bag create files -o bag", "store init pairtree store", "store put store a files"):
        assert run(*prepare.split()).returncode == 0
    code = (
        "import sys; before = set(sys.modules)\n"
        "from pressmark.__main__ import main\n"
        "try: main()\n"
        "finally: print(*set(sys.modules) - before, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *call.split()], capture_output=True, cwd=tmp_path, env=environment(), check=False
    )
    assert done.returncode == 0
    imported = set(done.stderr.decode().splitlines()[-1].split())
    if _kernels.active.NAME == "pure":
        imported.discard("hashlib")  # its lanes
    assert imported & set(unused.split()) == set()


def test_the_end_of_a_run_examines_no_objects() -> None:
    """Imports start few garbage collections, and the end of the process none that examine objects."""
    code = (
        "import gc; from pressmark.__main__ import main\n"
        "before = [one['collections'] for one in gc.get_stats()]\n"
        "try: main()\n"
        "finally: print([one['collections'] - n for one, n in zip(gc.get_stats(), before)], gc.get_freeze_count() > 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--version"], capture_output=True, env=environment(), check=False
    )
    assert done.stdout.splitlines()[1] == b"[0, 0, 0] True"
