"""Signals that ask for the end of a command: they end it as Ctrl-C does, with everything cleaned up."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType

__all__ = ["Ending", "on_ctrl_c", "signals_as_ctrl_c"]

# What "kill", "timeout" and a system that goes down send, and what a terminal sends when it is closed.
_NAMES = ("SIGTERM", "SIGHUP")


class Ending:
    """Which signal has asked for the end.

    :ivar status: the exit status for it, as shells count: 128 and its number; :data:`None` until there is one
    """

    status: int | None = None

    def take(self, number: int, _frame: FrameType | None) -> None:
        """Handle the signal ``number``."""
        # "timeout" sends its signal twice, to the process and to its group: the second must not stop the cleaning up.
        if self.status is None:
            self.status = 128 + number
            raise KeyboardInterrupt


@contextlib.contextmanager
def signals_as_ctrl_c() -> Iterator[Ending]:
    """Turn those signals into a :class:`KeyboardInterrupt` until the block ends."""
    ending = Ending()
    before = {}
    # In another thread than the main one there are no handlers; a signal that is ignored ("nohup") stays so.
    with contextlib.suppress(ValueError):
        for name in _NAMES:
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, ending.take)
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def on_ctrl_c(tell: Callable[[], object]) -> Iterator[None]:
    """Call ``tell`` when Ctrl-C is pressed, before it is what it always is, until the block ends."""

    def handler(_number: int, _frame: FrameType | None) -> None:
        tell()
        raise KeyboardInterrupt

    before = None
    with contextlib.suppress(ValueError):
        # Where Ctrl-C is ignored, as in the background of a shell's script, or is somebody else's, it stays so.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
