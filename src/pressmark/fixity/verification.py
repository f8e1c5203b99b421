"""Files against what a manifest says of them."""

from __future__ import annotations

import os
from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from hashlib import blake2b
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from pressmark.fixity.manifests import ManifestEntry
from pressmark.fixity.outcomes import Outcome
from pressmark.fixity.pool import Event, hash_files
from pressmark.fixity.tree import walk

if TYPE_CHECKING:
    from pressmark.fixity.ledger import Ledger

__all__ = ["Verdict", "verify"]

_MISSING = ("missing", "dangling-link")


class Verdict(NamedTuple):
    """What was found out about one file.

    :ivar path: its name in the manifest, as bytes; of a new file, its name below the root
    :ivar state: ``ok``, ``changed``, ``missing``, ``unreadable`` or ``new``
    :ivar algorithm: of a changed file, the first algorithm whose digest differs
    :ivar expected: the digest in the manifest
    :ivar found: the digest of what is there
    :ivar kind: of a missing or unreadable file, the kind of its outcome; otherwise the state
    :ivar message: one line that says what is wrong, without the path
    :ivar size: bytes that were read
    """

    path: bytes
    state: str
    algorithm: str | None = None
    expected: str | None = None
    found: str | None = None
    kind: str = "ok"
    message: str = ""
    size: int | None = None

    @property
    def ok(self) -> bool:
        """Whether the file is as the manifest says."""
        return self.state == "ok"


def verify(
    entries: Iterable[ManifestEntry],
    root: str | bytes | os.PathLike[str] | None = None,
    threads: int | None = None,
    on_event: Callable[[Event], object] | None = None,
    *,
    links: str = "follow",
    read: str = "parallel",
    ledger: Ledger | None = None,
    leave_out: Collection[tuple[int, int]] = (),
) -> Iterator[Verdict]:
    """Read every file of ``entries`` and give a verdict on each, in their order; then one on every new file.

    :param entries: what is expected, as :func:`~pressmark.fixity.manifests.read_manifest` gives it
    :param root: the directory that relative names are below, and in which new files are looked for; without it, names
        are below the current directory and nothing is looked for
    :param leave_out: device and inode of files that are not new: the manifest itself, a ledger
    :raises AlgorithmError: an algorithm is not available
    :raises ManifestError: from ``entries``; verdicts until there have been given

    The other parameters are those of :func:`~pressmark.fixity.pool.hash_files`.
    """
    base = None if root is None else os.fsencode(root)
    known = _Known()
    for names, group in groupby(entries, key=lambda entry: tuple(entry.digests)):
        waiting: deque[ManifestEntry] = deque()
        paths = _paths(group, base, waiting, known)
        for outcome in hash_files(paths, names, threads, on_event, links=links, read=read, ledger=ledger):
            yield _verdict(waiting.popleft(), outcome)
    if base is not None:
        yield from _new(base, links, known, leave_out)


class _Known:
    """The paths of a manifest, eight octets each and not the paths themselves: there may be a hundred million.

    What is kept of a path is a digest with a key of this run. That a file which the manifest does not have is taken for
    one that it has is as likely as one to the number of its files in 2^64, and nobody can bring it about.
    """

    def __init__(self) -> None:
        self._key = os.urandom(16)
        self._table = array("Q", bytes(8)) * 1024  # its size a power of two, two thirds full at most; 0 is free
        self._count = 0

    def add(self, path: bytes) -> None:
        """Take note of ``path``."""
        if 3 * self._count >= 2 * len(self._table):
            old, self._table = self._table, array("Q", bytes(8)) * (2 * len(self._table))
            for mark in old:
                if mark:
                    self._table[self._slot(mark)] = mark
        mark = self._mark(path)
        slot = self._slot(mark)
        if not self._table[slot]:
            self._table[slot] = mark
            self._count += 1

    def __contains__(self, path: bytes) -> bool:
        return self._table[self._slot(self._mark(path))] != 0

    def _mark(self, path: bytes) -> int:
        return int.from_bytes(blake2b(path, digest_size=8, key=self._key).digest(), "little") or 1

    def _slot(self, mark: int) -> int:
        """Return where ``mark`` is, or the free place where it belongs."""
        table = self._table
        mask = len(table) - 1
        slot = mark & mask
        while table[slot] and table[slot] != mark:
            slot = (slot + 1) & mask
        return slot


def _paths(
    group: Iterable[ManifestEntry], base: bytes | None, waiting: deque[ManifestEntry], known: _Known
) -> Iterator[bytes]:
    for entry in group:
        waiting.append(entry)
        path = entry.path if base is None else os.path.join(base, entry.path)
        if base is not None:
            known.add(os.path.normpath(path))
        yield path


def _verdict(entry: ManifestEntry, outcome: Outcome) -> Verdict:
    if outcome.digests is None:
        state = "missing" if outcome.kind in _MISSING else "unreadable"
        return Verdict(entry.path, state, kind=str(outcome.kind), message=outcome.message)
    for name, expected in entry.digests.items():
        found = outcome.digests[name]
        if found != expected:
            message = f"its {name} is {found}, expected {expected}"
            if entry.size is not None and entry.size != outcome.size:
                message = f"it has {outcome.size} bytes, expected {entry.size}; {message}"
            return Verdict(entry.path, "changed", name, expected, found, "changed", message, outcome.size)
    return Verdict(entry.path, "ok", size=outcome.size)


def _new(base: bytes, links: str, known: _Known, leave_out: Collection[tuple[int, int]]) -> Iterator[Verdict]:
    for item in walk(base, links=links, leave_out=leave_out):
        path = os.fsencode(item.path if isinstance(item, Outcome) else item)
        if os.path.normpath(path) in known:
            continue
        name = os.path.relpath(path, base)
        if isinstance(item, Outcome):
            # It might be what the manifest calls missing; whoever reads the report decides.
            yield Verdict(name, "unreadable", kind=str(item.kind), message=item.message)
        else:
            yield Verdict(name, "new", kind="new", message="the manifest does not have it")
