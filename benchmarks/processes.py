"""A process and all that it starts: how long it takes, and the most memory that the whole tree has at one moment."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["Measured", "TooSlow", "run"]

_PAGE = os.sysconf("SC_PAGE_SIZE")
# Between two looks at the tree, in seconds: a hundredth of the time that it has run, within these.
_SOONEST, _LATEST = 0.005, 0.25


class TooSlow(Exception):
    """The process was ended, because its time was up."""


class Measured(NamedTuple):
    """What a process cost.

    :ivar status: its exit status
    :ivar seconds: from before it was started until it had ended
    :ivar max_rss: the largest sum of the resident sets of all processes of the tree that was seen, in bytes; pages that
        two of them share count twice
    """

    status: int
    seconds: float
    max_rss: int
    output: str
    errors: str


def run(command: Sequence[str], environment: Mapping[str, str], limit: float | None = None) -> Measured:
    """Run a command; should we be interrupted, it and all that it has started end, too.

    :param limit: seconds after which it is ended
    :raises TooSlow: it was
    """
    begin = time.perf_counter()
    process = subprocess.Popen(
        command,
        env=environment,
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
        raise TooSlow(f"ended after {limit:.0f} s") from None
    finally:
        watch.ended.set()
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        watch.join()
    return Measured(process.returncode, seconds, watch.most, output, errors)


class _Watch(threading.Thread):
    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.most = 0
        self._pid = pid

    def run(self) -> None:
        begin = time.perf_counter()
        while not self.ended.wait(min(_LATEST, max(_SOONEST, (time.perf_counter() - begin) / 100))):
            self.most = max(self.most, _memory(self._pid))


def _memory(pid: int) -> int:
    """Return the sum of the resident sets of a process and all below it (Linux only, elsewhere 0)."""
    total = 0
    waiting = [str(pid)]
    while waiting:
        folder = Path("/proc", waiting.pop())
        try:
            total += int((folder / "statm").read_text().split()[1]) * _PAGE
            for task in os.listdir(folder / "task"):
                waiting += (folder / "task" / task / "children").read_text().split()
        except OSError:  # it has just ended
            continue
    return total
