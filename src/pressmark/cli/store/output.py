"""Objects and their files on standard output, as text lines or JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pressmark.cli.common.console import say
from pressmark.cli.common.files import BufferedLines, OutputStream
from pressmark.cli.common.progress import FileProgress
from pressmark.errors import quoted
from pressmark.stores import StoreObject

__all__ = ["Objects", "changes_text"]


def changes_text(counts: Mapping[str, int]) -> str:
    """Return the number of files that were added, removed, changed and so on."""
    found = [f"{count:,} {kind}" for kind, count in counts.items() if count and kind != "unchanged"]
    return ", ".join([*(found or ["no changes"]), f"{counts['unchanged']:,} unchanged"])


class Objects:
    """Write objects or their files, several at a time.

    :param null: end items with NUL instead of a line feed
    :param go_on: continue when the reader closes the pipe, because the store is being changed
    :param done: the operation on an object that cannot be written, for the error message
    :ivar unwritten: number of objects or files that do not fit on one line
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
        if record.id is None:
            self._fail(f"{quoted(record.path)}: identifier cannot be read")
            return
        line = f"{record.id}\t{record.path}".encode("utf-8", "surrogateescape")
        if self._end in line or "\t" in record.id:
            self.write_row(record.id, record.id, record.path)  # fails
        else:
            self._lines.add(line + self._end)

    def write_row(self, name: str, *fields: str) -> None:
        """Write fields with a TAB between them; only the last one may contain a TAB.

        :param name: name of the object or file, for messages
        """
        encoded = [field.encode("utf-8", "surrogateescape") for field in fields]
        if self._end in b"".join(encoded) or b"\t" in b"".join(encoded[:-1]):
            self._fail(f"{quoted(name)}: {self._done}contains a separator; use --json")
        else:
            self._lines.add(b"\t".join(encoded) + self._end)

    def write_json(self, record: dict[str, Any]) -> None:
        """Write a JSON object on a separate line."""
        self._lines.add(json.dumps(record).encode() + b"\n")

    def flush(self) -> None:
        """Write all buffered lines."""
        self._lines.flush()

    def _fail(self, text: str) -> None:
        self.unwritten += 1
        if self._reporter is not None:
            self._reporter.fail(text)
        else:
            say(text)
