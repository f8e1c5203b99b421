"""Progress: the choice of display, and failures printed beside it."""

from __future__ import annotations

import io
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pressmark.cli.common import progress
from pressmark.cli.common.console import say
from pressmark.cli.common.files import OutputStream
from pressmark.cli.common.output import Output
from pressmark.cli.common.progress import ProgressMode, ProgressOutput, Reporter, progress_mode
from pressmark.cli.compare import STAGES as COMPARISON
from pressmark.cli.migrate.output import PHASES
from pressmark.reports import ProgressEvent


class Terminal(io.StringIO):
    """A stderr with given properties."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


def sink(terminal: bool, file: io.BytesIO | None = None) -> OutputStream:
    made = OutputStream(file or io.BytesIO(), "<stdout>")
    made.terminal = terminal
    return made


def shown(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Return a terminal of 60 columns, on which a display appears at once."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    made = Terminal(True)
    monkeypatch.setattr(sys, "stderr", made)
    monkeypatch.setattr(progress, "DISPLAY_AFTER", 0.0)
    monkeypatch.setattr(progress, "DRAW_EVERY", 0.01)
    return made


def until(condition: Callable[[], bool]) -> None:
    """Wait for the thread that draws."""
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("not shown")


@pytest.mark.parametrize(
    ("wanted", "stderr", "data", "terminal", "expected"),
    [
        (None, True, True, False, ProgressMode.DISPLAY),
        (None, True, False, True, ProgressMode.DISPLAY),
        (None, True, True, True, ProgressMode.NONE),
        (None, False, True, False, ProgressMode.LOG),
        (None, False, True, True, ProgressMode.LOG),
        (True, True, True, True, ProgressMode.LOG),
        (True, True, False, True, ProgressMode.DISPLAY),
        (True, False, True, False, ProgressMode.LOG),
        (False, True, False, False, ProgressMode.NONE),
        (False, False, False, False, ProgressMode.NONE),
    ],
)
def test_mode(
    monkeypatch: pytest.MonkeyPatch, wanted: bool | None, stderr: bool, data: bool, terminal: bool, expected: object
) -> None:
    """A display on a terminal that does not receive data, log lines elsewhere."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal(stderr))
    assert progress_mode(wanted, sink(terminal), data=data).mode is expected


def test_a_dumb_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dumb terminal gets log lines."""
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys, "stderr", Terminal(True))
    assert progress_mode(None, sink(False)).mode is ProgressMode.LOG


@pytest.mark.parametrize("size", [200, None], ids=["known size", "unknown size"])
def test_log_lines(monkeypatch: pytest.MonkeyPatch, size: int | None) -> None:
    """A line has items and rate, and with a known size percent and remaining time."""
    stderr = Terminal(False)
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(progress, "DISPLAY_AFTER", 0.0)
    monkeypatch.setattr(progress, "LOG_EVERY", 0.05)
    reporter = Reporter(ProgressOutput(ProgressMode.LOG), "identifier")
    reporter.on_event(ProgressEvent("", 12_000, 50, 3, of_bytes=size))
    # The rate of ten seconds.
    monkeypatch.setattr(reporter, "_since", time.monotonic() - 10)
    with reporter:
        until(lambda: "\n" in stderr.getvalue())
    end = ", 25 %, 0:30 left" if size else ""
    line = stderr.getvalue().splitlines()[0]
    size_read = "50 B of 200 B" if size else "50 B"
    line = re.sub("1,[12][0-9]{2}/s", "1,200/s", line)
    assert line == f"pressmark: 12,000 identifiers, {size_read}, 1,200/s, 5 B/s, 3 failed{end}"


def test_a_log_has_a_line_every_30_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines come at fixed intervals, also without events."""
    waits: list[float] = []

    class Ended:
        def wait(self, seconds: float) -> bool:
            waits.append(seconds)
            return len(waits) == 4

        def set(self) -> None: ...

        def clear(self) -> None: ...

    stderr = Terminal(False)
    monkeypatch.setattr(sys, "stderr", stderr)
    reporter = Reporter(ProgressOutput(ProgressMode.LOG))
    monkeypatch.setattr(reporter, "_ended", Ended())
    with reporter:
        until(lambda: len(waits) == 4)
    assert stderr.getvalue() == "pressmark: 0 files\n" * 2
    assert all(25 < seconds <= 30 for seconds in waits[1:])


@pytest.mark.parametrize("size", [100, None], ids=["known size", "unknown size"])
def test_failures_are_complete_above_a_display(monkeypatch: pytest.MonkeyPatch, size: int | None) -> None:
    """Long lines are neither cut nor wrapped, and markup in them is not interpreted."""
    stderr = shown(monkeypatch)
    identifier = "[bold]:smile:" * 6
    output = ProgressOutput(ProgressMode.DISPLAY, sink(False))
    with Reporter(output, "identifier") as reporter:
        reporter.on_event(ProgressEvent("", 10, 10, of_bytes=size))
        until(lambda: "10 identifiers" in stderr.getvalue())
        reporter.fail(f"ids:12: '{identifier}': {'it is no good, ' * 10}")
        reporter.on_event(ProgressEvent("", 20, 20, 1, of_bytes=size))
        until(lambda: "20 identifiers" in stderr.getvalue())
        say("of another part")
        reporter.fail(f"ids:26: '{identifier}': at the end")
    written = stderr.getvalue()
    assert f"pressmark: ids:12: '{identifier}': {'it is no good, ' * 10}\n" in written
    assert f"pressmark: of another part\npressmark: ids:26: '{identifier}': at the end\n" in written
    assert "1 failed" in written


def test_results_are_written_above_a_display(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output to the same terminal is written while the display is erased, in the order of all lines."""
    stderr = shown(monkeypatch)
    output = sink(True)
    written: list[tuple[str, str]] = []
    output.write_now = lambda data: written.append((data.decode(), stderr.getvalue()))  # type: ignore[method-assign]
    with Reporter(ProgressOutput(ProgressMode.DISPLAY, output)) as reporter:
        until(lambda: output.redirect is not None)
        reporter.report("first")
        assert output.write(b"second\n") == 7
        output.flush()
        until(lambda: bool(written))
    assert written[0][0] == "second\n"
    assert written[0][1].endswith("pressmark: first\n")
    output.write(b"not redirected any more")
    assert len(written) == 1


@pytest.mark.parametrize("is_data", [False, True], ids=["results", "data"])
def test_results_in_a_pipe_find_no_display(monkeypatch: pytest.MonkeyPatch, is_data: bool) -> None:
    """The display is erased before results go to a pipe, whose reader may write them to the same terminal."""
    stderr = shown(monkeypatch)
    monkeypatch.setattr(progress, "DRAW_EVERY", 1000.0)
    written: list[str] = []
    reader, writer = os.pipe()
    with open(reader, "rb"), open(writer, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        with Output(None, data=is_data) as output:
            until(lambda: "0 files" in stderr.getvalue())
            output.sink.write = lambda data: written.append(stderr.getvalue()) or len(data)  # type: ignore[method-assign, func-returns-value]
            output.line(b"changed: a")
            output.flush()
            output.flush()
            drawn = stderr.getvalue()
            output.reporter._draw()
            assert "0 files" in stderr.getvalue()[len(drawn) :]
    assert [text.endswith("\x1b[2K") for text in written] == [not is_data]


def test_every_line_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is lost or repeated, however many there are."""
    stderr = shown(monkeypatch)
    with Reporter(ProgressOutput(ProgressMode.DISPLAY, sink(False))) as reporter:
        for number in range(5000):
            reporter.report(f"line {number}.")
    assert re.findall(r"line (\d+)\.", stderr.getvalue()) == list(map(str, range(5000)))


@pytest.mark.parametrize("columns", [20, 80, 120])
def test_the_display_fits(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """The display is two lines, each shorter than the terminal."""
    stderr = shown(monkeypatch)
    monkeypatch.setenv("COLUMNS", str(columns))
    words = {"move": "moving everything into place"}
    with Reporter(ProgressOutput(ProgressMode.DISPLAY, sink(True)), stages=words) as reporter:
        reporter.on_event(ProgressEvent("move", of_bytes=10**15))
        reporter.on_event(ProgressEvent("move", items=123_456_789, bytes=123_456_789_012, failed=1_234))
        until(lambda: "123,456,789" in stderr.getvalue())
    drawn = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stderr.getvalue()).replace("\r", "\n").split("\n")
    assert max(map(len, drawn)) < max(columns, 21)
    assert any("moving" in line for line in drawn)


def test_every_reporter_shows_progress_as_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparisons and migrations have the same display; it is hidden, and shown again by the next event."""
    stderr = shown(monkeypatch)
    output = ProgressOutput(ProgressMode.DISPLAY, sink(True))
    with Reporter(output, "identifier", COMPARISON) as comparison:
        comparison.on_event(ProgressEvent("read", items=7))
        until(lambda: "reading" in stderr.getvalue() and "7 identifiers" in stderr.getvalue())
        comparison.on_event(ProgressEvent("merge", items=1, of_items=2))
        until(lambda: "sorting" in stderr.getvalue() and "1 of 2 layouts" in stderr.getvalue())
    with Reporter(output, "object", PHASES) as migration:
        migration.on_event(ProgressEvent("run", items=4, of_items=9))
        until(lambda: "4 of 9 objects" in stderr.getvalue())
        migration.hide()
        hidden = stderr.getvalue()
        time.sleep(0.05)
        assert stderr.getvalue() == hidden
        migration.on_event(ProgressEvent("run", items=8, of_items=9))
        until(lambda: "8 of 9 objects" in stderr.getvalue()[len(hidden) :])
    assert "migrating" in stderr.getvalue()


def test_a_short_run_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is drawn, and rich is not imported, before a run has lasted for a while."""
    stderr = shown(monkeypatch)
    monkeypatch.setattr(progress, "DISPLAY_AFTER", 1000.0)
    with Reporter(ProgressOutput(ProgressMode.DISPLAY, sink(True))) as reporter:
        reporter.on_event(ProgressEvent(items=1, bytes=1))
    assert stderr.getvalue() == ""


def test_a_list_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The items of a list are counted in the background, and are the total; an error leaves none."""
    shown(monkeypatch)

    def broken() -> Iterator[int]:
        yield 2
        raise OSError

    for count, text in ((lambda: [2, 3], "1 of 5 objects"), (broken, "1 object")):
        reporter = Reporter(ProgressOutput(ProgressMode.NONE), "object", count=count)
        reporter.on_long()
        assert reporter._counting is not None
        reporter._counting._thread.join()
        reporter.on_event(ProgressEvent(items=1))
        view = reporter.view()
        assert view.text.partition(",")[0] == text
        assert (view.done, view.total) == ((1, 5) if "of" in text else (0, None))


def test_sizes_decide_where_they_are_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The bar shows bytes where the sizes of the files were added up, and the number of files until then."""
    shown(monkeypatch)
    (tmp_path / "f").write_bytes(bytes(100))
    reporter = Reporter(ProgressOutput(ProgressMode.NONE), paths=lambda: [str(tmp_path / "f"), str(tmp_path / "none")])
    reporter.on_event(ProgressEvent(items=1, bytes=50, of_items=2))
    assert (reporter.view().done, reporter.view().total) == (1, 2)
    reporter.on_long()
    assert reporter._sizing is not None
    reporter._sizing._thread.join()
    assert (reporter.view().done, reporter.view().total) == (50, 100)
    # What is read in another step is not among these files.
    reporter.on_event(ProgressEvent("new", items=1, bytes=150))
    view = reporter.view()
    assert (view.text.partition("/s")[0].startswith("1 file, 150 B,"), view.total, view.left) == (True, None, None)
