"""Digests of many streams, computed in threads while the caller reads and writes their blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from pressmark.fixity.algorithms import ALGORITHMS, Hasher
from pressmark.threads import Threads

__all__ = ["BLOCK", "DigestStream", "StreamHasher", "WaitingStreams"]

T = TypeVar("T")
BLOCK = 1 << 20  # 1 MiB, the largest block of a stream

# Smaller blocks are hashed together, because a call in another thread costs as much as hashing 16 KiB.
SMALL = 128 << 10  # bytes
TOGETHER = 1 << 20  # bytes
# Limits of streams that ended but whose digests are not known.
STREAMS_WAITING, BYTES_WAITING = 4096, 32 << 20  # 32 MiB


class StreamHasher:
    """Hashes streams.

    :param pool: the threads; :data:`None` to use the calling thread
    """

    def __init__(self, pool: Threads | None) -> None:
        self._pool = pool
        self._batch = _Batch()

    def stream(self, names: Sequence[str]) -> DigestStream:
        """Return a new stream.

        :param names: official names of the algorithms
        """
        return DigestStream(self, {name: ALGORITHMS[name].make(1) for name in names})

    def begin(self, hashers: Collection[Hasher], block: bytes) -> list[Future[Any] | _Batch]:
        """Feed a block to hashers, and return what to wait for."""
        if self._pool is None:
            for hasher in hashers:
                hasher.update(block)
            return []
        if len(block) >= SMALL:
            return [self._pool.submit(hasher.update, block) for hasher in hashers]
        batch = self._batch
        batch.items.append((hashers, block))
        batch.size += len(block)
        if batch.size >= TOGETHER:
            self.flush(batch)
        return [batch]

    def flush(self, batch: _Batch) -> Future[None]:
        """Hash small blocks now, and return the future."""
        if batch.future is None:
            assert self._pool is not None
            batch.future = self._pool.submit(batch.run)
            self._batch = _Batch()
        return batch.future


class _Batch:
    """Small blocks of several streams."""

    def __init__(self) -> None:
        self.items: list[tuple[Collection[Hasher], bytes]] = []
        self.size = 0
        self.future: Future[None] | None = None

    def run(self) -> None:
        for hashers, block in self.items:
            for hasher in hashers:
                hasher.update(block)
        self.items.clear()


class DigestStream:
    """The digests of one stream; :meth:`StreamHasher.stream` returns one."""

    __slots__ = ("_hashers", "_owner", "_running")

    def __init__(self, owner: StreamHasher, hashers: dict[str, Hasher]) -> None:
        self._owner = owner
        self._hashers = hashers
        self._running: list[Future[Any] | _Batch] = []

    def update(self, block: bytes) -> None:
        """Add a block; it is hashed while the caller continues."""
        if self._hashers:
            if self._running:
                self._wait()
            self._running = self._owner.begin(self._hashers.values(), block)

    @property
    def is_done(self) -> bool:
        """Whether :meth:`digests` returns without waiting."""
        for one in self._running:
            future = one.future if isinstance(one, _Batch) else one
            if future is None or not future.done():
                return False
        return True

    def digests(self) -> dict[str, str]:
        """Return the digests in hex by algorithm; wait for them."""
        self._wait()
        return {name: hasher.hexdigest() for name, hasher in self._hashers.items()}

    def _wait(self) -> None:
        for one in self._running:
            (self._owner.flush(one) if isinstance(one, _Batch) else one).result()
        self._running = []


class WaitingStreams(Generic[T]):
    """The streams that ended, in order, until their digests are known."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[T, int, DigestStream]] = deque()
        self._held = 0  # bytes in memory

    def add(self, item: T, size: int, stream: DigestStream) -> None:
        """Add a stream.

        :param item: is returned with its digests
        :param size: size of the stream in bytes
        """
        size = min(size, BLOCK)
        self._held += size
        self._waiting.append((item, size, stream))

    def done(self) -> Iterator[tuple[T, dict[str, str]]]:
        """Yield the first streams, until one is not done and the others take little memory."""
        while self._waiting and (
            self._waiting[0][2].is_done or self._held > BYTES_WAITING or len(self._waiting) > STREAMS_WAITING
        ):
            yield self._next()

    def rest(self) -> Iterator[tuple[T, dict[str, str]]]:
        """Yield all streams."""
        while self._waiting:
            yield self._next()

    def _next(self) -> tuple[T, dict[str, str]]:
        item, size, stream = self._waiting.popleft()
        self._held -= size
        return item, stream.digests()
