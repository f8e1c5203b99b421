"""A queue in constant memory."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import Generic, TypeVar

__all__ = ["DiskQueue"]

T = TypeVar("T")

# Longer queues go to a temporary file.
IN_MEMORY = 1 << 22  # 4 MiB


class DiskQueue(Generic[T]):
    """A queue that is filled, then iterated once in order; a context manager. Items are tuples of plain values."""

    def __init__(self) -> None:
        self._count = 0
        self._file = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115, closed by close()

    def __enter__(self) -> DiskQueue[T]:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, item: T) -> None:
        """Add an item."""
        pickle.dump(item, self._file)
        self._count += 1

    def __iter__(self) -> Iterator[T]:
        self._file.seek(0)
        for _ in range(self._count):
            yield pickle.load(self._file)
