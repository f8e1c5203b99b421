"""Progress of a run over files: bytes, rate, time left; and the lines for what failed, in between."""

from __future__ import annotations

import operator
import os
import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType

from pressmark.cli.common.console import say, say_lines
from pressmark.cli.common.progress import DISPLAY_AFTER, FAILURES_AT_ONCE, LOG_EVERY, Display, Manner, duration
from pressmark.fixity import Outcome, Progress

__all__ = ["Tally", "counted", "rate", "shown_bytes"]

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def shown_bytes(count: float) -> str:
    """Return a number of bytes in the decimal units of disks and networks."""
    power = 0
    while count >= 999.5 and power < len(_UNITS) - 1:
        count /= 1000
        power += 1
    return f"{count:.0f} {_UNITS[0]}" if power == 0 else f"{count:.3g} {_UNITS[power]}"


def counted(count: int, noun: str) -> str:
    """Return ``count`` and the ``noun`` it is of, in the singular where there is one: ``1 file``, ``1,000 files``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def rate(size: int, seconds: float) -> list[str]:
    """Return bytes a second in a list, to be joined with what was counted; nothing for a run too short to mean much."""
    return [f"{shown_bytes(size / seconds)}/s"] if seconds >= 1 else []


class Tally:
    """Tells of one run; a context manager that leaves nothing unsaid.

    :param paths: gives all files once more, to find out in the background how many bytes there are; an :class:`Outcome`
        among them is none; :data:`None` where only :meth:`stage` says it
    :param on_pause: called a few times a second, when results may wait to be written
    :param transient: nothing is left of the display in the end: the run has a line of its own to say how it was
    :param noun: what is counted
    """

    def __init__(
        self,
        manner: Manner,
        paths: Callable[[], Iterable[str | bytes | Outcome]] | None,
        on_pause: Callable[[], object] = lambda: None,
        *,
        transient: bool = False,
        noun: str = "file",
    ) -> None:
        self.failed = 0
        self.files = 0
        self._manner = manner
        self._paths = paths
        self._on_pause = on_pause
        self._transient = transient
        self._noun = noun
        self._before = self._now = Progress(0, 0, 0)
        self._held: list[str] = []
        self._display: Display | None = None
        self._sizing: _Sizing | None = None
        self._stage = ""
        self._expected: int | None = None
        self._begin = self._stage_begin = time.monotonic()
        self._next_log = self._begin + LOG_EVERY

    def __enter__(self) -> Tally:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if self._sizing is not None:
            self._sizing.stop()
        self._tell_held()
        if self._display is not None:
            self._display.stop()

    def fail(self, text: str) -> None:
        """Take note of a file that failed, in the words of ``text``."""
        self.failed += 1
        self.tell(text)

    def tell(self, text: str) -> None:
        """Say ``text``, soon."""
        self._held.append(text)
        if len(self._held) >= FAILURES_AT_ONCE:
            self._tell_held()

    def next_run(self) -> None:
        """Count on: what is told from now on is another run's, which begins at nothing."""
        self._before = self._now

    def stage(self, text: str, expected: int | None = None) -> None:
        """Say what is done from now on, and where it is known, how many bytes it is about."""
        self._stage = f"{text}: "
        self._expected = expected
        self._stage_begin = time.monotonic()
        self._before = self._now = Progress(0, 0, 0)
        if self._display is not None:
            self._display.update(0, text, expected)
        elif self._manner is Manner.LOG and self._is_time():
            say(text)

    def on_event(self, event: object) -> None:
        """Tell what has failed, and where it is time, how far the run is; events of other kinds say nothing of that."""
        if not isinstance(event, Progress):
            return
        event = self._now = Progress(*map(operator.add, self._before, event))
        self._tell_held()
        self._on_pause()
        now = time.monotonic()
        if self._manner is Manner.NONE or now - self._begin < DISPLAY_AFTER:
            return
        if self._sizing is None and self._paths is not None:
            # Not from the start: a short run is over before anybody wants to know how long it takes.
            self._sizing = _Sizing(self._paths)
        total = self._sizing.total if self._sizing else self._expected
        if self._manner is Manner.LOG:
            if self._is_time():
                say(self._text(event, now - self._stage_begin, total))
        else:
            if self._display is None:
                self._display = Display(None, self._transient)
            self._display.update(event.bytes, self._text(event, now - self._stage_begin, total), total)

    def _is_time(self) -> bool:
        """Return whether a line in the log is due, and say when the next one is."""
        now = time.monotonic()
        if now < self._next_log:
            return False
        self._next_log = now + LOG_EVERY
        return True

    def _tell_held(self) -> None:
        if self._held:
            texts, self._held = self._held, []
            if self._display is None:
                say_lines(texts)
            else:
                self._display.say_lines(texts)

    def _text(self, event: Progress, seconds: float, total: int | None) -> str:
        text = f"{self._stage}{counted(event.files, self._noun)}"
        if event.bytes or total:
            text += f", {shown_bytes(event.bytes)}"
        if total is not None:
            text += f" of {shown_bytes(total)}"
        if seconds:
            text += f", {shown_bytes(event.bytes / seconds)}/s" if event.bytes else f", {event.files / seconds:,.0f}/s"
        if total and event.bytes:
            text += f", {duration(max(0, total - event.bytes) * seconds / event.bytes)} left"
        return f"{text}, {event.failed:,} failed" if event.failed else text


class _Sizing:
    """Adds up sizes in a thread of its own.

    :ivar total: bytes of all files; :data:`None` until it is known
    """

    def __init__(self, paths: Callable[[], Iterable[str | bytes | Outcome]]) -> None:
        self.total: int | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._run, args=[paths], name="pressmark-sizes", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it, whether it knows the answer or not."""
        self._stopped = True
        self._thread.join()

    def _run(self, paths: Callable[[], Iterable[str | bytes | Outcome]]) -> None:
        total = 0
        try:
            for path in paths():
                if self._stopped:
                    return
                if not isinstance(path, Outcome):
                    try:
                        total += os.stat(path).st_size
                    except (OSError, ValueError):
                        continue  # the run says so, not the estimate
        except Exception:
            return  # then nobody knows how long it takes
        self.total = total
