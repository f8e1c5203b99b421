"""Small directory trees read into memory, many at a time, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from pressmark import _kernels
from pressmark._kernels.records import Other, Tree, Wanted
from pressmark.threads import GeneratorPool, resolve_threads

if TYPE_CHECKING:
    from concurrent.futures import Future

    from pressmark._kernels.pure import TreeBatch

__all__ = ["Other", "Tree", "Wanted", "trees"]

# Names in one call.
_SLICE = 64


def trees(
    top: bytes, names: Iterable[bytes], wanted: Wanted | None = None, threads: int | None = None
) -> Iterator[TreeBatch]:
    """Read directory trees, and yield them in order, many in a batch.

    Without a marker there is one tree for each name, with a marker those below each name, by the bytes of their names.
    Below ``top``, no symbolic link is followed. Trees and files that are not in memory must be read by other means;
    their states tell why.

    :param top: the directory that the names are relative to, which may be a link; or empty, and each name may be one
    :param names: the paths of trees, or with a marker of directories above them; an error that they raise is raised
        after the trees before it
    :param wanted: what to read
    :param threads: number of threads; :data:`None` for one per core
    :raises MemoryError: the system has not enough memory
    """
    count = resolve_threads(threads)
    reading = _Reading(top, names, wanted or Wanted(), 1 if count == 1 else 2 * count)
    # Few trees need no threads.
    yield from reading.batches(until=2 if count > 1 else None)
    if reading.parts:
        with GeneratorPool(count, "pressmark-trees") as pool:
            yield from reading.batches(pool)
    if reading.failure is not None:
        raise reading.failure


class _Part:
    """Names for one call."""

    __slots__ = ("call", "names")

    def __init__(self, names: list[bytes]) -> None:
        self.names = names
        self.call: Future[tuple[TreeBatch, list[_Part]]] | None = None


class _Reading:
    """Names that are read in order. A call may leave some of its names, which are read before those of later calls.

    :param ahead: the maximum number of calls at a time

    :ivar parts: the next names
    :ivar failure: what the names raised
    """

    def __init__(self, top: bytes, names: Iterable[bytes], wanted: Wanted, ahead: int) -> None:
        self.parts: deque[_Part] = deque()
        self.failure: Exception | None = None
        self._top = top
        self._names = iter(names)
        self._wanted = wanted
        self._ahead = ahead
        self._running = 0

    def batches(self, pool: GeneratorPool | None = None, until: int | None = None) -> Iterator[TreeBatch]:
        """Yield batches until no names are left, or until so many parts are known."""
        while self._fill() and (until is None or len(self.parts) < until):
            if pool is not None:
                self._submit(pool)
            part = self.parts.popleft()
            if part.call is None:
                batch, left = self._read(part)
            else:
                batch, left = part.call.result()
                self._running -= 1
            self.parts.extendleft(reversed(left))
            if batch.trees:
                yield batch

    def _fill(self) -> bool:
        """Take further names if few are known; return whether there are any."""
        while len(self.parts) < self._ahead:
            names: list[bytes] = []
            try:
                names.extend(islice(self._names, _SLICE))
            except Exception as error:  # the names before it are in the list
                self.failure, self._names = error, iter(())
            if not names:
                break
            self.parts.append(_Part(names))
        return bool(self.parts)

    def _submit(self, pool: GeneratorPool) -> None:
        """Start calls for the next names; always for the first."""
        for part in islice(self.parts, self._ahead):
            if part.call is None and (self._running < self._ahead or part is self.parts[0]):
                part.call = pool.submit(self._read, part)
                self._running += 1

    def _read(self, part: _Part) -> tuple[TreeBatch, list[_Part]]:
        """Return trees, and the names that the call left."""
        batch = _kernels.active.read_trees(self._top, part.names, self._wanted)
        left = _parts(part.names[batch.begun :])
        # Those of directories above trees are at the end, of the outermost last.
        while batch.trees and batch.trees[-1].state == "rest":
            rest = batch.trees.pop()
            above = rest.path + b"/" if rest.path else b""
            left = _parts([above + name for name in rest.directories if isinstance(name, bytes)]) + left
        return batch, left


def _parts(names: list[bytes]) -> list[_Part]:
    return [_Part(names[start : start + _SLICE]) for start in range(0, len(names), _SLICE)]
