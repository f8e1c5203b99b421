"""Verification of files against a manifest."""

from __future__ import annotations

import os
import stat
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from hashlib import blake2b
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from pressmark.errors import short_digest
from pressmark.fixity.algorithms import ALGORITHMS, algorithms_of_size
from pressmark.fixity.manifest_reader import ManifestEntry
from pressmark.fixity.outcomes import Outcome
from pressmark.fixity.pool import hash_files, hash_tasks
from pressmark.fixity.tree import walk
from pressmark.fs.beneath import HAS_DESCRIPTORS, open_directory
from pressmark.fs.names import first_link
from pressmark.progress_event import Progress

if TYPE_CHECKING:
    from pressmark.fixity.ledger import Ledger

__all__ = ["Verdict", "detect_algorithm", "verify"]

# Of the first files of a manifest, the smallest are read to detect the algorithm.
_LOOKED_AT = 256
_READ = 16

_MISSING = ("missing", "dangling-link")


class Verdict(NamedTuple):
    """The result of verifying a file.

    :ivar path: its name in the manifest, as bytes; for a new file, its path relative to the root
    :ivar state: ``ok``, ``changed``, ``missing``, ``unreadable`` or ``new``
    :ivar algorithm: for a changed file, the first algorithm whose digest differs
    :ivar expected: the digest in the manifest
    :ivar found: the digest of the file
    :ivar kind: the kind of the outcome for a missing or unreadable file; otherwise the state
    :ivar message: the problem, on one line, without the path
    :ivar size: bytes read
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
        """Whether the file matches the manifest."""
        return self.state == "ok"


def verify(
    entries: Iterable[ManifestEntry],
    root: str | bytes | os.PathLike[str] | None = None,
    threads: int | None = None,
    on_event: Callable[[Progress], object] | None = None,
    *,
    links: str = "follow",
    read: str = "parallel",
    ledger: Ledger | None = None,
    leave_out: Collection[tuple[int, int]] = (),
    exclude: Sequence[str] | str = (),
    on_excluded: Callable[[str | bytes], object] = lambda _path: None,
) -> Iterator[Verdict]:
    """Verify the files of a manifest, and yield a verdict for each file, in order; then a verdict for each new file.

    :param entries: the entries of the manifest, from :func:`~pressmark.fixity.manifest_reader.read_manifest`
    :param root: directory that names are relative to and that is searched for new files; by default names are relative
        to the current directory, and new files are not searched
    :param links: ``"follow"`` or ``"refuse"`` symbolic links, also those in the directories of a name; ``root`` itself
        is followed
    :param leave_out: device and inode of files that are not new, such as the manifest and the ledger
    :param exclude: globs of names that are not new, as for :func:`~pressmark.fixity.tree.walk`, like ``on_excluded``;
        files in the manifest are verified even if their names match
    :raises AlgorithmError: an algorithm is not available
    :raises ManifestError: raised by ``entries``, after the verdicts for earlier entries

    The other parameters are those of :func:`~pressmark.fixity.pool.hash_files`.
    """
    base = None if root is None else os.fsencode(root)
    known = _PathSet()
    # All names are opened from here, so that none leads through a link.
    top = real = None
    with ExitStack() as stack:
        if links == "refuse" and HAS_DESCRIPTORS:
            top = stack.enter_context(open_directory(os.sep))
            real = os.path.realpath(base or b".")
        for names, group in groupby(entries, key=lambda entry: tuple(entry.digests)):
            tasks = _tasks(group, base, real, known)
            for entry, outcome in hash_tasks(
                tasks, names, threads, on_event, links=links, read=read, ledger=ledger, beneath=top
            ):
                yield _verdict(entry, outcome)
    if base is not None:

        def report(path: str | bytes) -> None:
            if os.path.normpath(os.fsencode(path)) not in known:
                on_excluded(path)

        files = walk(base, links=links, leave_out=leave_out, exclude=exclude, on_excluded=report)
        yield from _new(base, files, known)


def detect_algorithm(
    entries: Iterable[ManifestEntry],
    root: str | bytes | os.PathLike[str] | None = None,
    *,
    links: str = "follow",
) -> str | None:
    """Detect the algorithm of a coreutils manifest from the content of its first files.

    Digests of 64 hex digits can be sha256, blake3 or others. Small files at the start of the manifest are hashed with
    all algorithms of that length, until one matches the digest in the manifest.

    :param entries: the entries of the manifest; all digests have the same length
    :param root: directory that names are relative to, by default the current directory
    :param links: ``"follow"`` or ``"refuse"`` symbolic links
    :return: the name of the algorithm; the algorithm of the entries if none of the files exists; :data:`None` if no
        file matches
    """
    base = b"" if root is None else os.fsencode(root)
    name = None
    found = []
    for number, entry in enumerate(entries):
        ((name, digest),) = entry.digests.items()
        path = os.path.join(base, entry.path)
        if links == "refuse" and first_link(b"/", _without_links(os.path.realpath(base or b"."), entry.path)):
            continue
        try:
            status = os.stat(path, follow_symlinks=links == "follow")
        except (OSError, ValueError):
            continue
        if stat.S_ISREG(status.st_mode):
            found.append((status.st_size, number, path, digest))
            if len(found) == _LOOKED_AT:
                break
    if name is None or not found:
        return name
    candidates = algorithms_of_size(ALGORITHMS[name].size)
    if len(candidates) == 1:
        return candidates[0]
    for _, _, path, digest in sorted(found)[:_READ]:
        for outcome in hash_files([path], candidates, 1, links=links):
            for candidate, given in (outcome.digests or {}).items():
                if given == digest:
                    return candidate
    return None


class _PathSet:
    """A set of paths, stored as keyed digests of eight bytes: there may be a hundred million.

    With n paths, another path is taken for one of them with a probability of n / 2^64. The random key prevents
    deliberate collisions.
    """

    def __init__(self) -> None:
        self._key = os.urandom(16)
        self._table = array("Q", bytes(8)) * 1024  # a power of two, at most two thirds full; 0 is free
        self._count = 0

    def add(self, path: bytes) -> None:
        """Add ``path``."""
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
        """Return the slot of ``mark``, or the free slot for it."""
        table = self._table
        mask = len(table) - 1
        slot = mark & mask
        while table[slot] and table[slot] != mark:
            slot = (slot + 1) & mask
        return slot


def _tasks(
    group: Iterable[ManifestEntry], base: bytes | None, real: bytes | None, known: _PathSet
) -> Iterator[tuple[ManifestEntry, bytes]]:
    """Yield each entry with the path of its file.

    :param real: the path of ``base`` without links: the paths are relative to the top directory
    """
    for entry in group:
        path = entry.path if base is None else os.path.join(base, entry.path)
        if base is not None:
            known.add(os.path.normpath(path))
        yield entry, path if real is None else _without_links(real, entry.path)


def _without_links(real: bytes, name: bytes) -> bytes:
    """Return the path of a name in the directory ``real``, relative to the top directory."""
    # As long as it has no links, its parent directory is that of its path.
    while name.startswith(b"../"):
        real, name = os.path.dirname(real), name[3:].lstrip(b"/")
    return os.path.join(real, name).lstrip(b"/")


def _verdict(entry: ManifestEntry, outcome: Outcome) -> Verdict:
    if outcome.digests is None:
        state = "missing" if outcome.kind in _MISSING else "unreadable"
        return Verdict(entry.path, state, kind=str(outcome.kind), message=outcome.message)
    for name, expected in entry.digests.items():
        found = outcome.digests[name]
        if found != expected:
            message = f"{name} is {short_digest(found)}, expected {short_digest(expected)}"
            if entry.size is not None and entry.size != outcome.size:
                message = f"size is {outcome.size} bytes, expected {entry.size}; {message}"
            return Verdict(entry.path, "changed", name, expected, found, "changed", message, outcome.size)
    return Verdict(entry.path, "ok", size=outcome.size)


def _new(base: bytes, files: Iterator[str | bytes | Outcome], known: _PathSet) -> Iterator[Verdict]:
    for item in files:
        path = os.fsencode(item.path if isinstance(item, Outcome) else item)
        if os.path.normpath(path) in known:
            continue
        name = os.path.relpath(path, base)
        if isinstance(item, Outcome):
            yield Verdict(name, "unreadable", kind=str(item.kind), message=item.message)
        else:
            yield Verdict(name, "new", kind="new", message="not in the manifest")
