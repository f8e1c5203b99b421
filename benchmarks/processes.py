"""Run a command and measure it with all processes that it starts: time, processor time, memory."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pressmark
from benchmarks.timing import Cost, Failed

__all__ = ["Measured", "our_environment", "python", "python_script", "run"]

# Seconds between two measurements of memory: a hundredth of the time that the command has run, within these limits.
_SOONEST, _LATEST = 0.005, 0.25


class Measured(NamedTuple):
    """A command that has ended."""

    cost: Cost
    output: str

    def json(self) -> Any:
        """Return the last line of the output, parsed."""
        return json.loads(self.output.splitlines()[-1])


def run(
    command: Sequence[str | Path], environment: Mapping[str, str] | None = None, limit: float | None = None
) -> Measured:
    """Run a command to its end; an interruption ends it and its children.

    :param limit: seconds after which it is ended
    :raises Failed: it took longer than ``limit``, or its exit status is not 0
    """
    # Python compiles every module in each run without it, ours and those of the peers.
    variables = {
        name: value for name, value in (environment or os.environ).items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    process = subprocess.Popen(
        list(map(str, command)),
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    watch = _Watch(process.pid)
    watch.start()
    try:
        output, errors = process.communicate(timeout=limit)
        seconds = time.perf_counter() - begin
    except subprocess.TimeoutExpired:
        raise Failed(f"ended after {limit:.0f} s") from None
    finally:
        watch.ended.set()
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        watch.join()
    if process.returncode:
        last = (errors.strip().splitlines() or [f"exit status {process.returncode}"])[-1]
        raise Failed(f"failed: {last[:200]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured(Cost(seconds, seconds, cpu, watch.max_rss), output)


def python(code: str, *arguments: str | Path) -> Measured:
    """Run Python code in a process that finds this Pressmark."""
    return run([sys.executable, "-c", code, *arguments], our_environment())


def python_script(script: Path, *arguments: str | Path) -> Measured:
    """Run a Python script in a process that finds this Pressmark."""
    return run([sys.executable, script, *arguments], our_environment())


def our_environment() -> dict[str, str]:
    """Return environment variables under which a Python process finds the Pressmark of this process."""
    return {**os.environ, "PYTHONPATH": str(Path(pressmark.__file__).parents[1])}


class _Watch(threading.Thread):
    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.max_rss = 0
        self._pid = pid

    def run(self) -> None:
        begin = time.perf_counter()
        while not self.ended.wait(min(_LATEST, max(_SOONEST, (time.perf_counter() - begin) / 100))):
            self.max_rss = max(self.max_rss, _memory(self._pid))


def _memory(pid: int) -> int:
    """Return the memory of a process and its descendants in bytes (Linux only, elsewhere 0).

    One process reports its high-water mark. Of several, the resident sets are added; pages that two of them share
    count twice.
    """
    states = []
    waiting = [str(pid)]
    while waiting:
        folder = Path("/proc", waiting.pop())
        try:
            states.append((folder / "status").read_text())
            for task in os.listdir(folder / "task"):
                waiting += (folder / "task" / task / "children").read_text().split()
        except OSError:  # the process has just ended
            continue
    field = "VmHWM" if len(states) == 1 else "VmRSS"
    return sum(1024 * int(found[1]) for state in states if (found := re.search(rf"{field}:\s*(\d+)", state)))
