"""Progress: the choice of display, and failures printed beside it."""

from __future__ import annotations

import io
import sys

import pytest

from pressmark.cli.common import progress
from pressmark.cli.common.files import InputStream, OutputStream
from pressmark.cli.common.progress import LineProgress, ProgressMode, progress_mode
from pressmark.cli.compare import _ComparisonProgress
from pressmark.cli.migrate.reporter import ProgressReporter
from pressmark.compare.comparison import ComparisonProgress
from pressmark.errors import IdentifierError
from pressmark.layouts import LineCounts
from pressmark.migrate import MigrationProgress


class Terminal(io.StringIO):
    """A stderr with given properties."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


def sink(terminal: bool) -> OutputStream:
    made = OutputStream(io.BytesIO(), "<stdout>")
    made.terminal = terminal
    return made


@pytest.mark.parametrize(
    ("wanted", "stderr", "data", "expected"),
    [
        (None, True, False, ProgressMode.DISPLAY),
        (None, True, True, ProgressMode.NONE),
        (None, False, False, ProgressMode.LOG),
        (None, False, True, ProgressMode.LOG),
        (True, True, True, ProgressMode.LOG),
        (True, False, False, ProgressMode.LOG),
        (False, True, False, ProgressMode.NONE),
        (False, False, False, ProgressMode.NONE),
    ],
)
def test_mode(
    monkeypatch: pytest.MonkeyPatch, wanted: bool | None, stderr: bool, data: bool, expected: ProgressMode
) -> None:
    """A display on a terminal that does not receive data, log lines elsewhere."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal(stderr))
    assert progress_mode(wanted, sink(data)) is expected


def test_a_dumb_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dumb terminal gets log lines."""
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys, "stderr", Terminal(True))
    assert progress_mode(None, sink(False)) is ProgressMode.LOG


def source(size: int | None) -> InputStream:
    made = InputStream(io.BytesIO(b"x" * 100), "ids")
    made.size = size
    return made


@pytest.mark.parametrize("size", [200, None], ids=["known size", "unknown size"])
def test_log_lines(monkeypatch: pytest.MonkeyPatch, size: int | None) -> None:
    """A line has items and rate, and with a known size percent and remaining time."""
    stderr = Terminal(False)
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(progress, "LOG_EVERY", 0.0)
    now = iter([100.0, 110.0])
    monkeypatch.setattr("pressmark.cli.common.progress.time.monotonic", lambda: next(now))
    given = source(size)
    given.read(50)
    with LineProgress(ProgressMode.LOG, given, "identifiers", False) as reporter:
        reporter.on_progress(LineCounts(12_000, 3, 50, 50))
    end = ", 25 %, 0:30 left" if size else ""
    assert stderr.getvalue() == f"pressmark: 12,000 identifiers, 1,200 a second, 3 failed{end}\n"


@pytest.mark.parametrize("size", [100, None], ids=["known size", "unknown size"])
def test_failures_are_complete_above_a_display(monkeypatch: pytest.MonkeyPatch, size: int | None) -> None:
    """Long lines are neither cut nor wrapped, and markup in them is not interpreted."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    stderr = Terminal(True)
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(progress, "DISPLAY_AFTER", 0.0)
    identifier = "[bold]:smile:" * 6
    with LineProgress(ProgressMode.DISPLAY, source(size), "identifiers", False) as reporter:
        reporter.on_progress(LineCounts(10, 0, 10, 10))
        reporter.on_failure(IdentifierError(identifier, 11, "it is no good, " * 10))
        reporter.on_progress(LineCounts(20, 1, 20, 20))
        reporter.on_failure(IdentifierError(identifier, 25, "at the end"))
    written = stderr.getvalue()
    assert f"pressmark: ids:12: '{identifier}': {'it is no good, ' * 10}\n" in written
    assert f"pressmark: ids:26: '{identifier}': at the end\n" in written
    assert "20 identifiers" in written
    assert "1 failed" in written


def test_every_reporter_shows_progress_as_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparisons and migrations have a display after a second, without leaving it on the terminal."""
    monkeypatch.setenv("TERM", "xterm")
    stderr = Terminal(True)
    monkeypatch.setattr(sys, "stderr", stderr)
    comparison = _ComparisonProgress(ProgressMode.DISPLAY, 2)
    comparison.on_event(ComparisonProgress("merge", 7, 1))
    migration = ProgressReporter(ProgressMode.DISPLAY)
    migration.on_event(MigrationProgress("run", 3, 0, 9, 0))
    assert stderr.getvalue() == ""
    monkeypatch.setattr(progress, "DISPLAY_AFTER", 0.0)
    with comparison:
        comparison.on_event(ComparisonProgress("merge", 7, 1))
    assert "7 identifiers: 1 of 2 layouts sorted" in stderr.getvalue()
    with migration:
        migration.on_event(MigrationProgress("run", 4, 0, 9, 0))
        migration.hide()
        hidden = len(stderr.getvalue())
        migration.on_event(MigrationProgress("run", 8, 0, 9, 0))
    assert "migrating: 4 of 9 objects" in stderr.getvalue()[:hidden]
    assert "migrating: 8 of 9 objects" in stderr.getvalue()[hidden:]
