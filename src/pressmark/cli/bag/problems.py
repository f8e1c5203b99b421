"""Print the problems of bags: a human-readable line, or a JSON object."""

from __future__ import annotations

import os
from typing import Any

from pressmark.bagit.paths import BELOW_PAYLOAD
from pressmark.bagit.problems import BagReport, Cause
from pressmark.cli.common.console import problem_text
from pressmark.cli.common.files import BufferedLines, OutputStream
from pressmark.reports import Problem, Report

__all__ = ["Problems", "accept_word"]

_ACCEPTED_BY = {"file-unlisted": "added", "file-missing": "removed", "checksum-mismatch": "changed"}


def accept_word(problem: Problem) -> str | None:
    """Return the word for ``bag update --accept`` that accepts a change; :data:`None` for any other problem."""
    word = _ACCEPTED_BY.get(problem.kind)
    return word if word is None or problem.path.startswith(BELOW_PAYLOAD) else "tag-files"


class Problems:
    """Writes problems, buffered.

    :param as_json: write JSON lines instead of text
    :param several: there are several bags, so each problem names its bag
    :param go_on: continue the operation if the reader of standard output closes it

    :ivar report: number of problems of all bags; problems are not kept
    :ivar accept: words for ``--accept``, of all changes that can be accepted
    :ivar cause: the cause of the problems of all bags
    """

    def __init__(self, sink: OutputStream, as_json: bool, *, several: bool = False, go_on: bool = False) -> None:
        self.report = BagReport(keep=0)
        self.accept: set[str] = set()
        self.cause = Cause()
        self._lines = BufferedLines(sink, go_on=go_on)
        self._as_json = as_json
        self._several = several
        self._bag = b""

    def begin(self, bag: bytes) -> None:
        """Set the bag of the following problems."""
        self._bag = bag

    def write(self, problem: Problem) -> None:
        """Write a problem."""
        self.report.add([problem])
        self.cause.add(problem)
        if (word := accept_word(problem)) is not None:
            self.accept.add(word)
        if self._as_json:
            self._add_json(problem.record(), of_bag=True)
        else:
            self.write_line(problem_text(problem, self._bag if self._several else b"").encode())

    def write_line(self, line: bytes) -> None:
        """Write a line that is not a problem."""
        self._lines.add(line + b"\n")

    def summarize(self, report: Report, *, of_bag: bool = True, **more: Any) -> None:
        """With JSON, write the summary of a report, preceded by ``more``.

        :param of_bag: whether the summary is about this bag, not about all bags
        """
        if self._as_json:
            summary = {**more, **report.summary()}
            # All problems were written, even those that the report does not keep.
            summary.pop("omitted", None)
            self._add_json({"summary": summary}, of_bag)

    def flush(self) -> None:
        """Write buffered lines."""
        self._lines.flush()

    def _add_json(self, record: dict[str, Any], of_bag: bool) -> None:
        import json  # few runs write JSON

        if self._several and of_bag:
            record = {"bag": os.fsdecode(self._bag), **record}
        self.write_line(json.dumps(record).encode())
