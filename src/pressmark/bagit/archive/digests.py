"""Digests of the members of an archive: which ones, before all manifests are known, and how.

The digests of many streams are computed in threads while the caller reads and writes their blocks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from pressmark.bagit.manifest_format import official_name, split_manifest_name
from pressmark.fixity.algorithms import ALGORITHMS, Hasher
from pressmark.threads import Threads

__all__ = ["BLOCK", "USUAL", "DigestChoice", "DigestStream", "StreamHasher", "WaitingStreams", "manifest_algorithms"]

T = TypeVar("T")
# The usual algorithms of bags, for payload before the first manifest.
USUAL = ("md5", "sha1", "sha256", "sha512")
BLOCK = 1 << 20  # 1 MiB, the largest block of a stream

# Smaller blocks are hashed at once: threads that take turns cost more.
TINY = 4 << 10  # bytes
# Smaller blocks are hashed together, because a call in another thread costs as much as hashing 16 KiB.
SMALL = 128 << 10  # bytes
TOGETHER = 1 << 20  # bytes
# Limits of streams that ended but whose digests are not known.
STREAMS_WAITING, BYTES_WAITING = 4096, 32 << 20  # 32 MiB


# --- which ones ------------------------------------------------------------------------------------------------------


def manifest_algorithms(names: Iterable[bytes]) -> tuple[str, ...]:
    """Return the known algorithms of those names that are names of manifests."""
    found = {official_name(parts[1]) for parts in map(split_manifest_name, names) if parts is not None}
    return tuple(sorted(name for name in found if name is not None))


class DigestChoice:
    """Chooses the algorithms for each file, and tells at the end whether they were enough.

    :param names: the algorithms of all manifests; :data:`None` if they are not known yet
    :param is_pipe: the archive is read once, and a manifest may follow the payload
    :ivar has_links: a file can be both tag file and payload
    """

    def __init__(self, names: tuple[str, ...] | None, *, is_pipe: bool = False) -> None:
        self.has_links = False
        self._names = names
        self._is_pipe = is_pipe
        self._seen: set[str] = set()
        self._of_payload: tuple[str, ...] | None = None
        # Those of tag files and of payload files.
        self._used: tuple[set[tuple[str, ...]], set[tuple[str, ...]]] = (set(), set())

    def add_tag_file(self, name: bytes) -> None:
        """Record the name of a tag file, which may be a manifest."""
        self._seen.update(manifest_algorithms([name]))

    def algorithms(self, is_payload: bool) -> tuple[str, ...]:
        """Return the algorithms for the next file, as far as they are known."""
        if self._names is not None:
            names = self._names
        elif not is_payload or self._is_pipe:
            names = tuple(sorted({*USUAL, *self._seen}))
        else:
            if self._of_payload is None:
                self._of_payload = tuple(sorted(self._seen)) or USUAL
            names = self._of_payload
        self.use(is_payload, names)
        return names

    def use(self, is_payload: bool, names: tuple[str, ...]) -> None:
        """Record the algorithms of a file."""
        self._used[is_payload].add(names)

    def lacking(self, names: Iterable[bytes]) -> tuple[str, ...]:
        """Return all needed algorithms if some digests are missing, otherwise ``()``.

        :param names: names in the base directory
        """
        needed: tuple[set[str], set[str]] = (set(), set())
        for parts in map(split_manifest_name, names):
            if parts is not None and (name := official_name(parts[1])) is not None:
                needed[not parts[0]].add(name)
        if self.has_links:
            needed = (needed[0] | needed[1],) * 2
        for wanted, used in zip(needed, self._used, strict=True):
            if any(not wanted <= set(known) for known in used):
                return tuple(sorted(needed[0] | needed[1]))
        return ()


# --- how -------------------------------------------------------------------------------------------------------------


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
        if self._pool is None or len(block) < TINY:
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
        if self._running:
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

    def add(self, item: T, size: int, stream: DigestStream) -> Iterator[tuple[T, dict[str, str]]]:
        """Add a stream, and yield the first ones, until one is not done and the others take little memory.

        :param item: is returned with its digests
        :param size: size of the stream in bytes
        """
        size = min(size, BLOCK)
        self._held += size
        self._waiting.append((item, size, stream))
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
