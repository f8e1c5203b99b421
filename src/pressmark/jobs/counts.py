"""What a job counts while it does a chunk, and writes beside its output."""

from __future__ import annotations

import json
from collections import Counter
from time import monotonic
from types import TracebackType
from typing import Any

from pressmark.fs.atomic import OutputFile
from pressmark.jobs.chunks import Chunk
from pressmark.jobs.receipts import Receipt
from pressmark.jobs.workdir import WorkFolder

__all__ = ["Tally"]


class Tally:
    """The numbers of a receipt, and ``<chunk>.errors.jsonl`` where an item goes wrong; a context manager.

    :param chunk: that is done
    :param work: where it is done
    """

    def __init__(self, chunk: Chunk, work: WorkFolder) -> None:
        self.bytes = 0
        self.by_status: Counter[str] = Counter()
        self._errors = 0
        self._chunk = chunk
        self._work = work
        self._file: OutputFile | None = None
        self._started = monotonic()

    def __enter__(self) -> Tally:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.__exit__(kind, value, traceback)

    def count(self, status: str, items: int = 1) -> None:
        """Count items that went well, or as well as can be."""
        if items:
            self.by_status[status] += items

    def fail(self, status: str, **record: Any) -> None:
        """Count an item that went wrong, and write down what it was."""
        if self._file is None:
            self._file = self._work.writing(f"{self._chunk.id}.errors.jsonl")
        self.by_status[status] += 1
        self._errors += 1
        self._file.write(json.dumps({"status": status, **record}).encode() + b"\n")

    def receipt(self, job_key: str, output: OutputFile | None, name: str | None) -> Receipt:
        """Return the receipt; the context is over, and the output is in place."""
        return Receipt(
            self._chunk.id,
            job_key,
            n=sum(self.by_status.values()),
            bytes=self.bytes,
            errors=self._errors,
            by_status=dict(self.by_status),
            output=name,
            sha256=None if output is None else output.sha256,
            seconds=Receipt.since(self._started),
        )
