"""The entry point of the command: ``pressmark``, and ``python -m pressmark``."""

from __future__ import annotations

import _thread
import contextlib
import gc
import signal
import sys
import time
from typing import Any

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
        from pressmark.cli import main as command

        command()
    except KeyboardInterrupt:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stderr.write("pressmark: interrupted\n")
        sys.exit(130)
    finally:
        sys.unraisablehook = ordinary
        # The exit status is decided.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # CPython ends by the signal if an exec was interrupted, as in dataclasses; another exec clears that.
        exec("")
        # CPython would examine every object several times before it ends.
        gc.freeze()


def _repeat_interrupt(unraisable: Any) -> None:
    """Repeat an interrupt that Python discards, as in ``__del__`` or the callback of a weak reference."""
    if not isinstance(unraisable.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    # SIGTERM also raises KeyboardInterrupt, and background jobs of scripts ignore SIGINT.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "pthread_kill"):
        signal.signal(signal.SIGURG, lambda *_: None)  # see _interrupt
    # Without threading, whose locks may be held here.
    _thread.start_new_thread(_interrupt, (_thread.get_ident(),))


def _interrupt(thread: int) -> None:
    time.sleep(REPEAT_AFTER)
    while _is_in_hook(thread):
        # It would be discarded again.
        time.sleep(REPEAT_AFTER)
    if hasattr(signal, "pthread_kill"):
        # Ends a system call that waits, too.
        signal.pthread_kill(thread, signal.SIGINT)
        # A system call that began just after the signal waits, and Python handles the signal when another one ends it.
        time.sleep(REPEAT_AFTER)
        signal.pthread_kill(thread, signal.SIGURG)
    else:
        signal.raise_signal(signal.SIGINT)


def _is_in_hook(thread: int) -> bool:
    frame = sys._current_frames().get(thread)
    while frame is not None and frame.f_code is not _repeat_interrupt.__code__:
        frame = frame.f_back
    return frame is not None


if __name__ == "__main__":
    main()
