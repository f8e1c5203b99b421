"""Counts items while a job runs a chunk, and records those that fail."""

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

__all__ = ["ReceiptBuilder"]


class ReceiptBuilder:
    """Counts the items of a chunk for its receipt, and writes failed items to ``<chunk>.errors.jsonl``.

    A context manager; :meth:`build` is called after its end.
    """

    def __init__(self, chunk: Chunk, work: WorkFolder) -> None:
        self.bytes = 0
        self.by_status: Counter[str] = Counter()
        self._errors = 0
        self._chunk = chunk
        self._work = work
        self._file: OutputFile | None = None
        self._started = monotonic()

    def __enter__(self) -> ReceiptBuilder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.__exit__(kind, value, traceback)

    def count(self, status: str, items: int = 1) -> None:
        """Count items that did not fail."""
        if items:
            self.by_status[status] += items

    def fail(self, status: str, **record: Any) -> None:
        """Count an item that failed, and write its record."""
        if self._file is None:
            self._file = self._work.writing(f"{self._chunk.id}.errors.jsonl")
        self.by_status[status] += 1
        self._errors += 1
        self._file.write(json.dumps({"status": status, **record}).encode() + b"\n")

    def build(self, job_key: str, output: OutputFile | None, name: str | None) -> Receipt:
        """Return the receipt of the chunk, whose output ``name`` is in place."""
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
