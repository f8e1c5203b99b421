"""Run a command to its end: its output, and its peak memory."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pressmark

__all__ = ["Done", "Failed", "our_environment", "python", "run"]


class Failed(Exception):
    """A command cannot finish; the message is one line."""


class Done(NamedTuple):
    """A command that has ended.

    :ivar output: its standard output
    :ivar cpu: its processor time in seconds, with that of the processes it waited for
    :ivar max_rss: the peak memory of the largest of them in bytes; 0 if this process used more, whose memory the system
        counts until the program starts
    """

    output: str
    cpu: float
    max_rss: int

    def json(self) -> Any:
        """Return the last line of the output, parsed."""
        return json.loads(self.output.splitlines()[-1])


def run(command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> Done:
    """Run a command; an interruption ends it and its children.

    :raises Failed: its exit status is not 0
    """
    # Python compiles every module in each run without it, ours and those of the peers.
    variables = {
        name: value for name, value in (environment or os.environ).items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            list(map(str, command)),
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        try:
            _pid, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    if process.returncode:
        last = (texts[1].strip().splitlines() or [f"exit status {process.returncode}"])[-1]
        raise Failed(f"{command[0]} failed: {last[:200]}")
    unit = 1 if sys.platform == "darwin" else 1024
    ours = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Done(texts[0], usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit if usage.ru_maxrss > ours else 0)


def python(code: str, *arguments: str | Path) -> Done:
    """Run Python code in a process that finds this Pressmark."""
    return run([sys.executable, "-c", code, *arguments], our_environment())


def our_environment() -> dict[str, str]:
    """Return environment variables under which a Python process finds the Pressmark of this process."""
    user = {"PRESSMARK_USER": "Benchmark", "PRESSMARK_USER_ADDRESS": "https://example.org/benchmark"}
    return {**os.environ, **user, "PYTHONPATH": str(Path(pressmark.__file__).parents[1])}
