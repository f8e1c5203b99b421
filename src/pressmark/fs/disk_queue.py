"""What has to wait for a later turn, in order, in memory that does not grow with it."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import Generic, TypeVar

__all__ = ["DiskQueue"]

T = TypeVar("T")

# Nearly always nothing or a few items wait; beyond this they go to a file that nobody else can open.
IN_MEMORY = 1 << 22  # 4 MiB


class DiskQueue(Generic[T]):
    """Items that are taken in one after another, and given back in that order once; a context manager.

    Items are tuples of plain values.
    """

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
        """Take in an item."""
        pickle.dump(item, self._file)
        self._count += 1

    def __iter__(self) -> Iterator[T]:
        self._file.seek(0)
        for _ in range(self._count):
            yield pickle.load(self._file)
