"""Shared by the commands that pack and unpack a bag: options, problems, and the last line."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from pressmark.bagit.problems import BagReport
from pressmark.cli.bag.change_progress import STAGES, Listener
from pressmark.cli.bag.options import JSON
from pressmark.cli.bag.problems import Problems
from pressmark.cli.common.console import Failure, Interrupted
from pressmark.cli.common.files import open_sink
from pressmark.cli.common.fixity_options import THREADS
from pressmark.cli.common.progress import PROGRESS, Reporter, format_bytes, format_count, format_rate, progress_mode
from pressmark.errors import BagInvalidError

__all__ = ["ArchiveRun", "run_options"]

Function = TypeVar("Function", bound=Callable[..., Any])


def run_options(command: Function) -> Function:
    """Add the options of both commands."""
    return JSON(THREADS(PROGRESS(command)))


class ArchiveRun:
    """One run of a command; a context manager.

    :param source: what is read, for messages
    :ivar listener: receives the events
    """

    def __init__(self, source: bytes, as_json: bool, progress: bool | None) -> None:
        self._source = source
        with contextlib.ExitStack() as stack:
            sink = stack.enter_context(open_sink(None, None))
            self._problems = Problems(sink, as_json, go_on=True)
            mode = progress_mode(progress, sink)
            self._reporter = stack.enter_context(Reporter(mode, stages=STAGES, on_pause=self._problems.flush))
            self._stack = stack.pop_all()
        self.listener = Listener(self._reporter, self._problems.write)

    def __enter__(self) -> ArchiveRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, value, traceback)

    def make(self, run: Callable[[], BagReport], destination: bytes, done: str) -> None:
        """Run, write the problems and the summary, and report the result.

        :param done: ``packed`` or ``unpacked``
        """
        begin = time.monotonic()
        failure: Failure | None = None
        try:
            report = run()
        except BagInvalidError as error:
            report, failure = error.report, Failure(str(error))
        except KeyboardInterrupt:
            if os.path.lexists(destination):
                raise Interrupted(f"interrupted when {os.fsdecode(destination)} was complete") from None
            raise Interrupted("interrupted; nothing was written; run the same command again") from None
        self._problems.summarize(report, **{done: failure is None})
        self._problems.flush()
        if failure is not None:
            raise failure
        size = report.counts["bytes"]
        pieces = [format_count(report.counts["files"], "file"), format_bytes(size)]
        pieces += format_rate(size, time.monotonic() - begin)
        status = os.stat(destination)
        if stat.S_ISREG(status.st_mode):
            pieces.append(f"archive of {format_bytes(status.st_size)}")
        if missing := report.summary()["kinds"].get("file-not-fetched"):
            pieces.append(f"{format_count(missing, 'file')} of fetch.txt not downloaded yet")
        self._reporter.report(f"{os.fsdecode(destination)}: bag {done}: {', '.join(pieces)}")
