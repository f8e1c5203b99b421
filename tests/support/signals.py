"""Signals of processes that tests start."""

from __future__ import annotations

import signal


def restore_signals() -> None:
    """Let a new process, as its ``preexec_fn``, end by Ctrl-C and by the end of its terminal.

    A shell's background job ignores the first, and a command of ``nohup`` the second; so do their child processes.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
