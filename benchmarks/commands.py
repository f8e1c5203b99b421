"""The real command in a process of its own: what it costs in seconds, processor seconds and memory."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["Cost", "run_command"]

# The command, and at its end the most memory it had: what a parent is told of that includes its own, before the exec.
COMMAND = r"""
import atexit, re, resource, runpy, sys
def tell(path=sys.argv.pop(1)):
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    if sys.platform == "linux":
        with open("/proc/self/status") as file:
            most = 1024 * int(re.search(r"VmHWM:\s*(\d+)", file.read())[1])
    with open(path, "w") as file:
        file.write(str(most))
atexit.register(tell)
runpy.run_module("pressmark", run_name="__main__")
"""


class Cost(NamedTuple):
    """What a command cost.

    :ivar status: its exit status
    :ivar max_rss: the most memory that it had at any moment, in bytes
    """

    status: int
    seconds: float
    cpu_seconds: float
    max_rss: int


def run_command(arguments: Sequence[str], so_far: Callable[[float, float], object] | None = None) -> Cost:
    """Run ``pressmark`` with ``arguments``; should we be killed, it is, too.

    :param so_far: called now and then with the wall and processor seconds that it has cost until then
    """
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder, "max_rss")
        begin = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, str(told), *arguments, "--no-progress"], preexec_fn=_end_with_parent
        )
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            seconds = time.perf_counter() - begin
            if pid:
                break
            if so_far is not None:
                so_far(seconds, _used_until_now(process.pid))
            time.sleep(min(1.0, 0.01 + 0.05 * seconds))
        process.returncode = os.waitstatus_to_exitcode(status)
        max_rss = int(told.read_text()) if told.exists() else 0
    return Cost(process.returncode, seconds, usage.ru_utime + usage.ru_stime, max_rss)


def _end_with_parent() -> None:
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def _used_until_now(pid: int) -> float:
    """Return the processor seconds of a running process (Linux only, elsewhere 0)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
