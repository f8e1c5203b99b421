"""The results of chunks and of runs. A receipt is a small file, written once the output of its chunk is in place."""

from __future__ import annotations

import builtins
import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from time import monotonic
from types import TracebackType
from typing import Any, NamedTuple, Protocol
from zlib import crc32

from pressmark.fs.atomic import OutputFile
from pressmark.fs.locks import host
from pressmark.jobs.chunks import Chunk

__all__ = ["FailedChunk", "Receipt", "ReceiptBuilder", "Summary"]


@dataclass(frozen=True)
class Receipt:
    """The receipt of a completed chunk.

    :ivar chunk: id of the chunk
    :ivar job_key: key of the job
    :ivar n: number of items
    :ivar bytes: bytes read or copied
    :ivar errors: number of items that failed
    :ivar by_status: number of items by status
    :ivar output: name of the output file in the folder ``output``, if any
    :ivar sha256: SHA-256 of the output file, in hex
    :ivar host: machine of the worker
    :ivar pid: process id of the worker
    :ivar seconds: working time
    """

    chunk: str
    job_key: str
    n: int = 0
    bytes: int = 0
    errors: int = 0
    by_status: Mapping[str, int] = field(default_factory=dict)
    output: str | None = None
    sha256: str | None = None
    host: str = field(default_factory=host)
    pid: int = field(default_factory=os.getpid)
    seconds: float = 0.0

    @staticmethod
    def since(started: float) -> float:
        """Return the seconds since ``started``, a value of :func:`time.monotonic`."""
        return round(monotonic() - started, 6)

    def record(self) -> dict[str, object]:
        """Return the receipt as a JSON object."""
        return {**asdict(self), "by_status": dict(sorted(self.by_status.items()))}

    def text(self) -> builtins.bytes:
        """Return the content of the receipt file, with a CRC."""
        record = self.record()
        return json.dumps({**record, "crc32": _sum(record)}, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_record(cls, record: Mapping[str, object]) -> Receipt:
        """Return the receipt of a JSON object, the inverse of :meth:`record`.

        :raises ValueError: the object is not a receipt
        """
        if set(record) != set(_TYPES):
            raise ValueError("invalid receipt: keys are missing or unknown")
        for name, types in _TYPES.items():
            if type(record[name]) not in types:
                raise ValueError(f"invalid receipt: {name} is {record[name]!r}")
        fields: dict[str, Any] = {**record}
        if any(type(count) is not int for count in fields["by_status"].values()):
            raise ValueError("invalid receipt: by_status has a value that is not a number")
        return cls(**fields)

    @classmethod
    def parse(cls, text: builtins.bytes) -> Receipt:
        """Parse the content of a receipt file.

        :raises ValueError: it is not a receipt, or is damaged
        """
        record = json.loads(text)
        if not isinstance(record, dict):
            raise ValueError("not a receipt")
        found = record.pop("crc32", None)
        if found != _sum(record):
            raise ValueError("CRC mismatch")
        return cls.from_record(record)


_TYPES: dict[str, tuple[type, ...]] = {
    "chunk": (str,),
    "job_key": (str,),
    "n": (int,),
    "bytes": (int,),
    "errors": (int,),
    "by_status": (dict,),
    "output": (str, type(None)),
    "sha256": (str, type(None)),
    "host": (str,),
    "pid": (int,),
    "seconds": (int, float),
}


def _sum(record: Mapping[str, Any]) -> str:
    return f"{crc32(json.dumps(record, sort_keys=True, separators=(',', ':')).encode()):08x}"


class _Outputs(Protocol):
    """A work folder, whose module imports this one."""

    def writing(self, name: str) -> OutputFile: ...


class ReceiptBuilder:
    """Counts the items of a chunk for its receipt, and writes failed items to ``<chunk>.errors.jsonl``.

    A context manager; :meth:`build` is called after its end.
    """

    def __init__(self, chunk: Chunk, work: _Outputs) -> None:
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


class FailedChunk(NamedTuple):
    """A chunk that a worker could not complete.

    :ivar chunk: id of the chunk
    :ivar kind: the class of the exception, or ``lost`` if its worker died or was lost
    :ivar reason: one line
    :ivar retryable: whether another attempt may succeed
    :ivar fatal: whether the other chunks would fail as well
    """

    chunk: str
    kind: str
    reason: str
    retryable: bool = False
    fatal: bool = False


class Summary(NamedTuple):
    """The state of a run, computed from its receipts.

    :ivar chunks: number of chunks in the plan
    :ivar done: number of chunks with a receipt
    :ivar n: number of items
    :ivar bytes: bytes read or copied
    :ivar errors: number of items that failed
    :ivar by_status: number of items by status
    :ivar seconds: working time of all workers together
    :ivar failed: chunks that failed
    :ivar stopped: why the scheduler ended early: ``stop`` or ``max_errors``; :data:`None` if it did not
    """

    chunks: int
    done: int
    n: int
    bytes: int
    errors: int
    by_status: dict[str, int]
    seconds: float
    failed: tuple[FailedChunk, ...] = ()
    stopped: str | None = None

    @property
    def complete(self) -> bool:
        """Whether every chunk has a receipt."""
        return self.done == self.chunks

    @property
    def ok(self) -> bool:
        """Whether every chunk has a receipt and no item failed."""
        return self.complete and not self.errors

    def record(self) -> dict[str, object]:
        """Return the summary as a JSON object."""
        return {"ok": self.ok, **self._asdict(), "failed": [one._asdict() for one in self.failed]}
