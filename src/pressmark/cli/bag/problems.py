"""What is wrong with a bag, on standard output: a line for people or a JSON object for programs."""

from __future__ import annotations

import json
import os
from typing import Any

from pressmark.bagit.report import BagReport
from pressmark.cli.bag.options import problem_text
from pressmark.cli.common.buffered_lines import BufferedLines
from pressmark.cli.common.files import Sink
from pressmark.reports import Problem, Report

__all__ = ["Problems"]


class Problems:
    """Writes problems, some of them at a time.

    :param as_json: JSON lines instead of text
    :param several: there are several bags, and each problem says of which
    :param go_on: a reader who leaves does not end what is done to a bag

    :ivar report: how many problems there were, of all bags; it keeps none of them
    """

    def __init__(self, sink: Sink, as_json: bool, *, several: bool = False, go_on: bool = False) -> None:
        self.report = BagReport(keep=0)
        self._lines = BufferedLines(sink, go_on=go_on)
        self._as_json = as_json
        self._several = several
        self._bag = b""

    def begin(self, bag: bytes) -> None:
        """Say that what follows is about ``bag``."""
        self._bag = bag

    def write(self, problem: Problem) -> None:
        """Write one problem, soon."""
        self.report.add([problem])
        if self._as_json:
            self._add_json(problem.record(), of_bag=True)
        else:
            self.write_line(problem_text(problem, self._bag if self._several else b"").encode())

    def write_line(self, line: bytes) -> None:
        """Write a line that is no problem, soon."""
        self._lines.add(line + b"\n")

    def summarize(self, report: Report, *, of_bag: bool = True, **more: Any) -> None:
        """Write the summary of a report in JSON, where that is wanted, with ``more`` in front.

        :param of_bag: it is about this bag, not about all of them
        """
        if self._as_json:
            summary = {**more, **report.summary()}
            # Here all were written, whether the report keeps them or not.
            summary.pop("omitted", None)
            self._add_json({"summary": summary}, of_bag)

    def flush(self) -> None:
        """Write what waits."""
        self._lines.flush()

    def _add_json(self, record: dict[str, Any], of_bag: bool) -> None:
        if self._several and of_bag:
            record = {"bag": os.fsdecode(self._bag), **record}
        self.write_line(json.dumps(record).encode())
