"""What became of a chunk: one small file, written when its work is in place."""

from __future__ import annotations

import builtins
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from time import monotonic
from typing import Any
from zlib import crc32

from pressmark.fs.locks import host

__all__ = ["Receipt"]


@dataclass(frozen=True)
class Receipt:
    """A chunk that is done.

    :ivar chunk: its id
    :ivar job_key: of the job that did it
    :ivar n: how many items it had
    :ivar bytes: how many bytes were read or copied
    :ivar errors: how many of its items went wrong
    :ivar by_status: how many items had each status
    :ivar output: its file in the work folder's ``output``; :data:`None` where there is none
    :ivar sha256: of that file, in hex
    :ivar host: the machine that did it
    :ivar pid: the process that did it
    :ivar seconds: it took
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
        """Return the seconds since :func:`time.monotonic` was ``started``, as a receipt has them."""
        return round(monotonic() - started, 6)

    def record(self) -> dict[str, Any]:
        """Return it as it stands in JSON."""
        return {**asdict(self), "by_status": dict(sorted(self.by_status.items()))}

    def text(self) -> builtins.bytes:
        """Return it as a file, which says itself whether it is whole."""
        record = self.record()
        return json.dumps({**record, "crc32": _sum(record)}, separators=(",", ":")).encode() + b"\n"

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Receipt:
        """Return the receipt of a JSON object.

        :raises ValueError: it is none
        """
        wanted = {one.name: _TYPES[one.name] for one in fields(cls)}
        if set(record) != set(wanted):
            raise ValueError("it has not the keys of a receipt")
        for name, types in wanted.items():
            if type(record[name]) not in types:
                raise ValueError(f"a receipt's {name} cannot be {record[name]!r}")
        if any(type(count) is not int for count in record["by_status"].values()):
            raise ValueError("a receipt's by_status holds numbers only")
        return cls(**record)

    @classmethod
    def parse(cls, text: builtins.bytes) -> Receipt:
        """Return the receipt of a file.

        :raises ValueError: it is none, or not whole
        """
        record = json.loads(text)
        if not isinstance(record, dict):
            raise ValueError("it is no receipt")
        found = record.pop("crc32", None)
        if found != _sum(record):
            raise ValueError("its CRC does not hold")
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
