"""The frame of a command: its results on stdout or in a file, its progress on stderr, and how it ends."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from click.exceptions import Exit

from pressmark.cli.common.console import Failure, Interrupted, problem_text, say
from pressmark.cli.common.files import InputStream, OutputStream, discard_stdout, open_sink
from pressmark.cli.common.progress import Reporter, progress_mode
from pressmark.errors import quoted
from pressmark.progress_event import EventListener, ProgressEvent

if TYPE_CHECKING:
    from pressmark.fixity.outcomes import Fetched, Outcome
    from pressmark.reports import Problem, Report

__all__ = ["Output"]

WRITE_SIZE = 1 << 16  # 64 KiB


class Output:
    """What a command writes; a context manager.

    Lines are written in blocks, or at once on a terminal. A command whose reader closes the pipe ends with its exit
    status, and an interrupted one with a message; what it has found until then is written.

    :param progress: ``--progress`` or ``--quiet``; :data:`None` if neither is given
    :param noun: what is counted, in the singular
    :param as_json: write JSON lines instead of text
    :param null: items end with NUL instead of a line feed
    :param data: the output is data, such as a manifest; otherwise results, such as the problems of a bag
    :param go_on: continue if the reader closes the pipe, because something is being changed
    :param path: ``--output``, which is compressed if it ends in ``.gz``; :data:`None` for stdout
    :param source: the input, which must not be the output
    :param interrupted: the message of an interrupted command, or a function that returns it
    :param stages: see :class:`~pressmark.cli.common.progress.Reporter`
    :param paths: see :class:`~pressmark.cli.common.progress.Reporter`
    :param count: see :class:`~pressmark.cli.common.progress.Reporter`
    :ivar sink: where the results go
    :ivar target: compresses for ``sink``, or is ``sink`` itself
    :ivar reporter: shows the progress, and reports failures
    :ivar progress: for the call that does the work: the reporter shows its progress, and its problems are written
    :ivar errors: number of problems that are errors
    :ivar bag: the bag of the following problems, if there are several
    """

    sink: OutputStream
    target: Any
    reporter: Reporter
    progress: EventListener

    def __init__(
        self,
        progress: bool | None,
        noun: str = "file",
        *,
        as_json: bool = False,
        null: bool = False,
        data: bool = False,
        go_on: bool = False,
        path: str | None = None,
        source: InputStream | None = None,
        interrupted: str | Callable[[], str] = "interrupted",
        stages: Mapping[str, str | tuple[str, str]] | None = None,
        paths: Callable[[], Iterable[str | bytes | Fetched | Outcome]] | None = None,
        count: Callable[[], Iterable[int]] | None = None,
    ) -> None:
        self.as_json = as_json
        self.errors = 0
        self._is_quiet = progress is False
        self._is_data = data
        self._has_ended = False
        self.bag: bytes | None = None
        self._interrupted = interrupted
        self._go_on = go_on
        self._is_closed = False
        self._end = b"\0" if null else b"\n"
        self._blocks: list[bytes] = []
        self._size = 0
        with contextlib.ExitStack() as stack:
            self.sink = stack.enter_context(open_sink(path, source))
            self.target = self.sink
            if path is not None and path.lower().endswith(".gz"):
                from pressmark.fs.gzipped import packed  # few outputs are compressed

                self.target = stack.enter_context(packed(self.sink, self.sink.name))
            mode = progress_mode(progress, self.sink, data=data)
            self.reporter = stack.enter_context(
                Reporter(mode, noun, stages, paths=paths, count=count, on_pause=self.flush)
            )
            self.progress = EventListener(self._on_event)
            self._stack = stack.pop_all()

    def __enter__(self) -> Output:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._has_ended = True
        try:
            with self._stack:
                if value is not None:
                    if not isinstance(value, BrokenPipeError):
                        with contextlib.suppress(BrokenPipeError):
                            self.flush()
                    raise value
                self.flush()
        except BrokenPipeError:
            discard_stdout()
            raise Exit(self.status) from None
        except KeyboardInterrupt:
            message = self._interrupted
            raise Interrupted(message if isinstance(message, str) else message()) from None

    @property
    def status(self) -> int:
        """The exit status: 1 if a failure or a problem that is an error was reported."""
        return Failure.exit_code if self.errors or self.reporter.failed else 0

    def data(self, block: bytes) -> None:
        """Write bytes, soon.

        :raises BrokenPipeError: the reader has closed the pipe, and ``go_on`` is false
        """
        self._blocks.append(block)
        self._size += len(block)
        if self._size >= WRITE_SIZE or self.sink.terminal:
            self.flush()

    def line(self, line: bytes) -> None:
        """Write a line, which is given without its end."""
        self.data(line + self._end)

    def row(self, name: str, *fields: str, done: str = "") -> None:
        """Write fields with a TAB between them; only the last one may contain a TAB. Any other row is a failure.

        :param name: name of the object or file, for messages
        :param done: what was done to it, for messages
        """
        encoded = [field.encode("utf-8", "surrogateescape") for field in fields]
        if self._end in b"".join(encoded) or b"\t" in b"".join(encoded[:-1]):
            self.reporter.fail(f"{quoted(name)}: {done and f'{done}, but '}contains a separator; use --json")
        else:
            self.line(b"\t".join(encoded))

    def record(self, record: Mapping[str, Any]) -> None:
        """Write a JSON object on a separate line."""
        import json  # few runs write JSON

        self.data(json.dumps(record).encode() + b"\n")

    def _on_event(self, event: object) -> None:
        if isinstance(event, ProgressEvent):
            self.reporter.on_event(event)
            return
        from pressmark.reports import Problem  # only checks find problems

        if isinstance(event, Problem):
            self.problem(event)

    def problem(self, problem: Problem) -> None:
        """Write a problem."""
        self.errors += problem.severity == "error"
        if self.as_json:
            self.record(self._of_bag(problem.record()))
        else:
            self.data(problem_text(problem, self.bag or b"").encode() + b"\n")

    def summary(self, summary: Mapping[str, Any]) -> None:
        """With JSON, write the summary; without, nothing. All buffered lines are written."""
        if self.as_json:
            self.record(self._of_bag({"summary": summary}))
        self.flush()

    def summarize(self, report: Report, **more: Any) -> None:
        """Write the summary of a report as in :meth:`summary`, preceded by ``more``."""
        # All problems were written, even those that the report does not keep.
        self.summary({**more, **{name: value for name, value in report.summary().items() if name != "omitted"}})

    def tell(self, text: str, *, failed: bool = False) -> None:
        """Write a line on the result to stderr, also after the end; with ``--quiet``, only if something failed."""
        if not self._is_quiet or failed or self.status:
            (say if self._has_ended else self.reporter.report)(text)

    def flush(self) -> None:
        """Write the buffered lines; raises the errors of :meth:`data`."""
        data, self._blocks, self._size = b"".join(self._blocks), [], 0
        if data and not self._is_closed:
            if not self._is_data:
                self.reporter.clear()
            try:
                self.target.write(data)
                self.target.flush()
            except BrokenPipeError:
                if not self._go_on:
                    raise
                discard_stdout()
                self._is_closed = True

    def _of_bag(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        return record if self.bag is None else {"bag": os.fsdecode(self.bag), **record}
