"""Run a change in a child process in which the disk fails at one step, or which is killed there.

The process needs the library ``DISK_FAULTS`` preloaded (``support/preloading.py``).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

#: The source of the library.
DISK_FAULTS = Path(__file__).with_name("disk_faults.c")

FINISHED, FAILED, IGNORED, UNEXPECTED, KILLED = 0, 3, 4, 9, -9


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

    :param how: ``kill``; the errno of the change that fails; or a negative errno if all later changes fail as well
    :param errors: the errors that the change may end with
    """

    def __init__(self, how: str, *errors: type[Exception]) -> None:
        self.kills = how == "kill"
        self._number = 0 if self.kills else int(how)
        self._errors = errors
        self._library = ctypes.CDLL(None)

    def run(self, step: int, change: Callable[[], object]) -> Ending:
        """Make a change in a child process.

        :param step: the change of the disk that fails, from 1
        :param change: the change; if it returns ``False``, it has failed
        :raises AssertionError: if the child ended in another way, or the message has several lines
        """
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            status, error = UNEXPECTED, ""
            try:
                status, error = self._make(step, change)
            finally:
                os.write(writing, error.encode()[:60_000])
                os._exit(status)
        os.close(writing)
        with open(reading, "rb") as file:
            error = file.read().decode()
        ending = Ending(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), error)
        assert ending.status in ((FINISHED, KILLED) if self.kills else (FINISHED, FAILED, IGNORED)), (step, ending)
        assert "\n" not in ending.error, (step, ending)
        return ending

    def _make(self, step: int, change: Callable[[], object]) -> tuple[int, str]:
        try:
            self._library.disk_arm(self.kills, step, self._number)
            is_done = change() is not False
            changes = self._library.disk_changes()
            return FAILED if not is_done else FINISHED if changes < step else IGNORED, ""
        except self._errors as error:
            return FAILED, str(error)
        except BaseException as error:
            return UNEXPECTED, repr(error)
        finally:
            self._library.disk_arm(0, 0, 0)
