"""Objects on standard output, as text lines or JSON."""

from __future__ import annotations

import json
from typing import Any

from pressmark.cli.common.buffered_lines import BufferedLines
from pressmark.cli.common.file_progress import FileProgress
from pressmark.cli.common.files import OutputStream
from pressmark.errors import quoted
from pressmark.stores import StoreObject

__all__ = ["Objects"]


class Objects:
    """Write objects, several at a time.

    :param null: end items with NUL instead of a line feed
    :param go_on: continue when the reader closes the pipe, because the store is being changed
    :param done: what happened to an object that cannot be written, for the error message
    :ivar unwritten: number of objects that do not fit on one line
    """

    def __init__(
        self,
        sink: OutputStream,
        reporter: FileProgress | None,
        as_json: bool,
        null: bool,
        *,
        go_on: bool = False,
        done: str = "",
    ) -> None:
        self.unwritten = 0
        self._lines = BufferedLines(sink, go_on=go_on)
        self._reporter = reporter
        self._as_json = as_json
        self._done = f"{done}, but " if done else ""
        self._end = b"\0" if null else b"\n"

    def write(self, record: StoreObject) -> None:
        """Write one object: identifier, TAB and path."""
        if self._as_json:
            self.write_json(record.record())
            return
        identifier = _octets(record.id or "")
        path = _octets(record.path)
        if record.id is None:
            self._fail(f"{quoted(record.path)}: identifier cannot be read")
        elif self._end in identifier + path or b"\t" in identifier:
            self._fail(f"{quoted(record.id)}: {self._done}contains a separator; use --json")
        else:
            self._lines.add(identifier + b"\t" + path + self._end)

    def write_json(self, record: dict[str, Any]) -> None:
        """Write a JSON object on a line of its own."""
        self._lines.add(json.dumps(record).encode() + b"\n")

    def flush(self) -> None:
        """Write all buffered lines."""
        self._lines.flush()

    def _fail(self, text: str) -> None:
        self.unwritten += 1
        if self._reporter is not None:
            self._reporter.fail(text)


def _octets(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
