"""Signals that end a command like Ctrl-C, with cleanup."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

__all__ = ["Ending", "on_ctrl_c", "signals_as_ctrl_c"]

# Sent by "kill", "timeout", a system shutdown, and a terminal that is closed.
_NAMES = ("SIGTERM", "SIGHUP")


class Ending:
    """Records the signal that ended the command.

    :ivar status: its exit status, as in shells: 128 + number of the signal; :data:`None` before
    """

    status: int | None = None

    def handle(self, number: int, _frame: FrameType | None) -> None:
        """Handle the signal ``number``."""
        # "timeout" sends its signal twice, to the process and to its group: the second must not stop the cleanup.
        if self.status is None:
            self.status = 128 + number
            raise KeyboardInterrupt


@contextlib.contextmanager
def signals_as_ctrl_c() -> Iterator[Ending]:
    """Convert these signals to :class:`KeyboardInterrupt` until the block ends."""
    ending = Ending()
    before = {}
    # ValueError: only the main thread can set handlers. A signal that is ignored ("nohup") stays ignored.
    with contextlib.suppress(ValueError):
        for name in _NAMES:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, ending.handle)
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def on_ctrl_c(callback: Callable[[], object]) -> Iterator[None]:
    """Call ``callback`` on Ctrl-C, before the :class:`KeyboardInterrupt`, until the block ends."""

    def handler(_number: int, _frame: FrameType | None) -> None:
        callback()
        raise KeyboardInterrupt

    before = None
    with contextlib.suppress(ValueError):
        # Only the default handler is replaced: Ctrl-C may be ignored, as in background jobs of scripts.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
