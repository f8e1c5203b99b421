"""Progress of a run over files: bytes, rate, time left; and the lines for what failed, in between."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType

from pressmark.cli.progress import DISPLAY_AFTER, FAILURES_AT_ONCE, LOG_EVERY, Display, Manner, duration
from pressmark.cli.talk import say, say_lines
from pressmark.fixity import Finished, Outcome, Progress

__all__ = ["Tally", "shown_bytes"]

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def shown_bytes(count: float) -> str:
    """Return a number of bytes in the decimal units of disks and networks."""
    power = 0
    while count >= 999.5 and power < len(_UNITS) - 1:
        count /= 1000
        power += 1
    return f"{count:.0f} {_UNITS[0]}" if power == 0 else f"{count:.3g} {_UNITS[power]}"


class Tally:
    """Tells of one run; a context manager that leaves nothing unsaid.

    :param paths: gives all files once more, to find out in the background how many bytes there are; an :class:`Outcome`
        among them is none
    :param on_pause: called a few times a second, when results may wait to be written
    """

    def __init__(
        self,
        manner: Manner,
        paths: Callable[[], Iterable[str | bytes | Outcome]],
        on_pause: Callable[[], object] = lambda: None,
    ) -> None:
        self.failed = 0
        self.files = 0
        self._manner = manner
        self._paths = paths
        self._on_pause = on_pause
        self._held: list[str] = []
        self._display: Display | None = None
        self._sizing: _Sizing | None = None
        self._begin = time.monotonic()
        self._next_log = self._begin + LOG_EVERY

    def __enter__(self) -> Tally:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if self._sizing is not None:
            self._sizing.stop()
        self._tell_failures()
        if self._display is not None:
            self._display.stop()

    def fail(self, text: str) -> None:
        """Take note of a file that failed, in the words of ``text``."""
        self.failed += 1
        self._held.append(text)
        if len(self._held) >= FAILURES_AT_ONCE:
            self._tell_failures()

    def on_event(self, event: Finished | Progress) -> None:
        """Tell what has failed, and where it is time, how far the run is."""
        if isinstance(event, Finished):
            return
        self._tell_failures()
        self._on_pause()
        seconds = time.monotonic() - self._begin
        if self._manner is Manner.NONE or seconds < DISPLAY_AFTER:
            return
        if self._sizing is None:
            # Not from the start: a short run is over before anybody wants to know how long it takes.
            self._sizing = _Sizing(self._paths)
        if self._manner is Manner.LOG:
            if time.monotonic() >= self._next_log:
                self._next_log = time.monotonic() + LOG_EVERY
                say(self._text(event, seconds))
        else:
            if self._display is None:
                self._display = Display(None)
            self._display.update(event.bytes, self._text(event, seconds), self._sizing.total)

    def _tell_failures(self) -> None:
        if self._held:
            texts, self._held = self._held, []
            if self._display is None:
                say_lines(texts)
            else:
                self._display.say_lines(texts)

    def _text(self, event: Progress, seconds: float) -> str:
        total = self._sizing.total if self._sizing else None
        text = f"{event.files:,} files, {shown_bytes(event.bytes)}"
        if total is not None:
            text += f" of {shown_bytes(total)}"
        text += f", {shown_bytes(event.bytes / seconds)}/s"
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
