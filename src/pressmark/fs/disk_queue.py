"""A queue in constant memory."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import IO, Generic, TypeVar

__all__ = ["DiskQueue"]

T = TypeVar("T")

# Longer queues go to a temporary file.
IN_MEMORY = 1 << 10  # items


class DiskQueue(Generic[T]):
    """A queue that is filled, then iterated once in order; a context manager. Items are tuples of plain values."""

    def __init__(self) -> None:
        self._first: list[T] = []
        self._count = 0
        self._file: IO[bytes] | None = None

    def __enter__(self) -> DiskQueue[T]:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def __len__(self) -> int:
        return len(self._first) + self._count

    def add(self, item: T) -> None:
        """Add an item."""
        if len(self._first) < IN_MEMORY:
            self._first.append(item)
            return
        import pickle  # few queues are that long

        if self._file is None:
            from tempfile import TemporaryFile

            self._file = TemporaryFile()  # noqa: SIM115, closed at the end of the context
        pickle.dump(item, self._file)
        self._count += 1

    def __iter__(self) -> Iterator[T]:
        yield from self._first
        if self._file is not None:
            import pickle

            self._file.seek(0)
            for _ in range(self._count):
                yield pickle.load(self._file)
