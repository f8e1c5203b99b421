"""Run a change in a child process in which the disk fails at one step, or which is killed or stopped there.

The process needs the library ``DISK_FAULTS`` preloaded (``support/preloading.py``).
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

#: The source of the library.
DISK_FAULTS = Path(__file__).with_name("disk_faults.c")

FINISHED, FAILED, IGNORED, UNEXPECTED, KILLED = 0, 3, 4, 9, -9
#: How long a second change may take before it is taken to wait for the first one, in seconds.
PATIENCE = 0.1


class Ending(NamedTuple):
    """How a child process ended.

    :ivar status: ``FINISHED`` before the step; ``FAILED`` with one of the expected errors; ``IGNORED``: finished
        although the change failed; ``KILLED``
    :ivar error: the message of the error
    """

    status: int
    error: str


class DiskFault:
    """A fault of the disk.

    :param how: ``kill``; the errno of the change that fails; or a negative errno if all later changes fail as well; for
        :meth:`beside` ``kill``, or ``continue``
    :param errors: the errors that the change may end with
    """

    def __init__(self, how: str, *errors: type[Exception]) -> None:
        self.kills = how == "kill"
        self._number = 0 if how in ("kill", "continue") else int(how)
        self._errors = errors
        self._library = ctypes.CDLL(None)
        self._armed = (0, 0, 0)

    def run(self, step: int, change: Callable[[], object]) -> Ending:
        """Make a change in a child process.

        :param step: the change of the disk that fails, from 1
        :param change: the change; if it returns ``False``, it has failed
        :raises AssertionError: if the child ended in another way, or the message has several lines
        """
        ending = self._end(*self._start(signal.SIGKILL if self.kills else 0, step, change))
        assert ending.status in ((FINISHED, KILLED) if self.kills else (FINISHED, FAILED, IGNORED)), (step, ending)
        return ending

    def beside(
        self, step: int, change: Callable[[], object], other: Callable[[], object]
    ) -> tuple[Ending, Ending] | None:
        """Stop a change before one of its steps, make another one in another process, and kill or continue the first.

        If the other change waits for a lock of the first, the first one ends before it.

        :param step: the change of the disk before which to stop, from 1
        :return: how the two ended; :data:`None` if the first has fewer steps
        :raises AssertionError: as for :meth:`run`
        """
        first = self._start(signal.SIGSTOP, step, change)
        found = os.waitid(os.P_PID, first[0], os.WEXITED | os.WSTOPPED | os.WNOWAIT)
        is_stopped = found is not None and found.si_code == os.CLD_STOPPED
        second = self._start(0, 0, other)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and not os.waitid(os.P_PID, second[0], os.WEXITED | os.WNOHANG | os.WNOWAIT):
            time.sleep(0.002)
        os.kill(first[0], signal.SIGKILL if self.kills else signal.SIGCONT)
        endings = self._end(*first), self._end(*second)
        allowed = {FINISHED, IGNORED, FAILED, *([KILLED] if self.kills else [])}
        assert {ending.status for ending in endings} <= allowed, (step, endings)
        return endings if is_stopped else None

    def arm(self) -> None:
        """Count the steps of this process from here."""
        self._library.disk_arm(*self._armed)

    def disarm(self) -> None:
        """Count no steps of this process."""
        self._library.disk_arm(0, 0, 0)

    def _start(self, number: int, step: int, change: Callable[[], object]) -> tuple[int, int]:
        """Start a child process; return its id, and the descriptor from which its message can be read.

        :param number: the signal that it receives before the step
        """
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            status, error = UNEXPECTED, ""
            try:
                status, error = self._make(number, step, change)
            finally:
                os.write(writing, error.encode()[:60_000])
                os._exit(status)
        os.close(writing)
        return child, reading

    def _end(self, child: int, reading: int) -> Ending:
        with open(reading, "rb") as file:
            error = file.read().decode()
        ending = Ending(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), error)
        assert "\n" not in ending.error, ending
        return ending

    def _make(self, number: int, step: int, change: Callable[[], object]) -> tuple[int, str]:
        self._armed = (number, step, self._number)
        try:
            self.arm()
            is_done = change() is not False
            changes = self._library.disk_changes()
            return FAILED if not is_done else FINISHED if changes < step or not step else IGNORED, ""
        except self._errors as error:
            return FAILED, str(error)
        except BaseException as error:
            return UNEXPECTED, repr(error)
        finally:
            self.disarm()
