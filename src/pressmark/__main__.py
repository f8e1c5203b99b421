"""The entry point of the command: ``pressmark``, and ``python -m pressmark``."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]

# Until main() runs, an interrupt ends the process at once: imports would end with a traceback.
if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

import _thread
import contextlib
import gc
import signal
import sys
import time
from typing import Any

# Most of what every command imports, while an interrupt ends the process.
import pressmark._kernels  # noqa: F401

__all__ = ["main"]

# New objects before a garbage collection: imports create many, and hardly any garbage.
NEW_OBJECTS = 50_000
# Seconds until a discarded interrupt is repeated.
REPEAT_AFTER = 0.02


def main() -> None:
    """Run the command line and exit with its status; an interrupt before or after a command is one line as well."""
    gc.set_threshold(NEW_OBJECTS)
    ordinary = sys.unraisablehook
    sys.unraisablehook = _repeat_interrupt
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        from pressmark.cli import main as command

        command()
    except (KeyboardInterrupt, RuntimeError) as error:
        # Before CPython 3.12, one raised in __set_name__ becomes the cause of a RuntimeError.
        if not isinstance(error, KeyboardInterrupt) and not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stderr.write("pressmark: interrupted\n")
        sys.exit(130)
    finally:
        sys.unraisablehook = ordinary
        # The exit status is decided.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        # CPython ends by the signal if an exec was interrupted, as in dataclasses; another exec clears that.
        exec("")
        # CPython would examine every object several times before it ends.
        gc.freeze()


def _repeat_interrupt(unraisable: Any) -> None:
    """Repeat an interrupt that Python discards, as in ``__del__`` or the callback of a weak reference."""
    if not isinstance(unraisable.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
    elif hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _interrupt)
        # More than once: a system call that begins just after a signal waits until the next one.
        signal.setitimer(signal.ITIMER_REAL, REPEAT_AFTER, REPEAT_AFTER)
    else:
        _thread.start_new_thread(_interrupt_later, ())


def _interrupt(_number: int, _frame: Any) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)
    raise KeyboardInterrupt


def _interrupt_later() -> None:
    time.sleep(REPEAT_AFTER)
    _thread.interrupt_main()


if __name__ == "__main__":
    main()
