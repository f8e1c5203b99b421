"""The comparison itself: identifiers are read once, in blocks; every layout maps each block, and it is forgotten.

What a layout keeps of a block are sorted records of its paths, on disk beyond the memory that it may take, and
counters. When all were read, the records are merged: that shows what clashes, and passes every directory once.
"""

from __future__ import annotations

import contextlib
import os
import platform
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any, NamedTuple

from pressmark.compare import metrics
from pressmark.compare.growth import growth
from pressmark.compare.probe import probe_tree
from pressmark.compare.report import write_report
from pressmark.compare.result import (
    KINDS,
    Clashes,
    ComparisonData,
    Group,
    LayoutResult,
    Named,
    Probe,
    Refused,
    Throughput,
)
from pressmark.layouts import DirectClean, HashAndIdNTuple, Layout, Pairtree, Vitro
from pressmark.layouts.blocks import (
    Block,
    MappedBlock,
    failure_reason,
    identifier_blocks,
    map_block,
    running,
    starting_with,
)
from pressmark.paths import PROFILES, Collision, PathIndex, PathLengths, name_violations
from pressmark.stores.store import Store
from pressmark.tabular.detection import Crlf
from pressmark.threads import resolve_threads
from pressmark.version import __version__

__all__ = ["MEMORY", "Comparison", "OnEvent", "Progress", "called", "compare", "machine"]

#: How many examples are named: identifiers that are refused, groups of each kind, members of a group.
FIRST = 20
#: How many characters are shown of an identifier or a path.
SHOWN = 1000
#: Octets that all sorting together may take.
MEMORY = 256 << 20
#: How many identifiers are made on disk by a probe, at most.
PROBED = 5_000

# The encoded identifier of 0003 and 0012 is cut behind so many characters, all ASCII, and made longer by its digest.
_WHOLE = 100
# The longest segment and path that 0011 can be told to take.
_LONGEST = (1 << 31) - 1


class Progress(NamedTuple):
    """An event, given for each block and each layout that is done.

    :ivar step: ``read``, ``merge`` or ``probe``
    :ivar identifiers: that were read so far
    :ivar layouts: that were merged, or probed, so far
    """

    step: str
    identifiers: int
    layouts: int


OnEvent = Callable[[Progress], object]
Label = Callable[[int], str]


class Comparison(ComparisonData):
    """The result of :func:`compare`, with its report."""

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write one self-contained HTML page; needs the extra ``report``.

        :raises ReportError: a package is missing, or the file cannot be written
        """
        write_report(self, path)


def compare(
    ids: Any,
    layouts: Sequence[Layout],
    *,
    names: Sequence[str | None] | None = None,
    field: str | None = None,
    files_per_object: int = 1,
    versions: int = 1,
    profile: str = "all",
    root_length: int = 0,
    directory_limit: int | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
    folder: str | os.PathLike[str] | None = None,
    probe: str | os.PathLike[str] | None = None,
    source: str = "",
    crlf: Crlf | None = None,
    on_event: OnEvent | None = None,
) -> Comparison:
    """Return what each layout makes of identifiers.

    >>> import pressmark
    >>> from pressmark.compare import compare
    >>> ids = ["miun.aje1563.0001.001", "miun.aje1563.0002.001", "uc1.b1"]
    >>> found = compare(ids, [pressmark.layout("0012", delimiters=["."]), pressmark.layout("0003")])
    >>> [(one.name[:4], one.lengths.path_octets.max, one.clashes.equal) for one in found.layouts]
    [('0012', 15, 0), ('0003', 33, 0)]

    :param ids: a file's path (:class:`os.PathLike`) or binary stream of lines, an
        Arrow column, an iterable of ``str`` or ``bytes``, or a :class:`~pressmark.stores.Store` to be walked; read once
    :param layouts: one or more
    :param names: what to call each; the official name for None, told apart where two are the same
    :param field: which column of an Arrow table
    :param files_per_object: files of content in an object, in all versions together
    :param versions: of an OCFL object
    :param profile: the systems whose refusals count: ``unix``, ``windows``, ``azure``, ``s3``, or ``all`` of them
    :param root_length: octets of the directory that the store will be in
    :param directory_limit: how many entries a directory should have at most
    :param threads: how many at most; None or 0 for as many as there are cores
    :param memory: octets that sorting may take in all; what is more goes to temporary files
    :param folder: where these are; the system's folder if None
    :param probe: a directory, on the file system that the store will be on, in which samples of the trees are made,
        timed and removed again
    :param source: what the identifiers were read from, for people
    :param crlf: of a file's path: ``strip`` carriage returns before line feeds and a byte-order mark, or ``keep`` them
        as parts of identifiers; None refuses a file that has any
    :param on_event: called with each :class:`Progress`
    :raises TypeError: ``ids`` holds something else
    :raises ValueError: a parameter is out of range
    :raises SpillError: a temporary file cannot be written
    :raises OSError: the file of identifiers cannot be read, or ``probe`` is no directory to write to
    """
    unique = called(layouts, names)
    for name, number, least in (("files_per_object", files_per_object, 0), ("versions", versions, 1)):
        if number < least:
            raise ValueError(f"{name}={number}: expected {least} or more")
    if profile not in PROFILES:
        raise ValueError(f"profile={profile!r}: expected {', '.join(PROFILES)}")
    if directory_limit is not None and directory_limit < 1:
        raise ValueError(f"directory_limit={directory_limit}: expected 1 or more")
    if memory < 1:
        raise ValueError(f"memory={memory}: expected a number of octets from 1 on")
    begin = perf_counter()
    made = datetime.now(UTC).isoformat(timespec="seconds")
    workers = resolve_threads(threads)
    if not running().side_by_side:
        workers = 1
    tell = on_event or (lambda event: None)
    profiles = [name for name in PROFILES if name != "all"] if profile == "all" else [profile]
    place = None if folder is None else Path(folder)
    # The identifiers themselves are an index more: it knows their repetitions, and what a path's number stands for.
    share = max(memory // (len(layouts) + 1), 1)
    with contextlib.ExitStack() as stack:
        known = stack.enter_context(PathIndex(place, memory=share))
        columns = [
            _Column(name, layout, stack.enter_context(PathIndex(place, memory=share, tree=True)), profiles, root_length)
            for name, layout in zip(unique, layouts, strict=True)
        ]
        pool = stack.enter_context(ThreadPoolExecutor(workers)) if workers > 1 else None
        read = 0
        sample = _Sample(PROBED if probe is not None else 0)
        for block in identifier_blocks(_identifiers(ids), field=field, crlf=crlf):
            steps: list[Callable[[], object]] = [column.taking(block) for column in columns]
            steps.append(_taking(known, block))
            _all(pool, steps)
            sample.take(block)
            read += block.identifiers
            tell(Progress("read", read, 0))
        done = 0
        # One file, and many who look something up in it.
        looking = Lock()

        def label(number: int) -> str:
            with looking:
                return known.label(number)

        def finish(column: _Column) -> LayoutResult:
            nonlocal done
            result = column.result(label, files_per_object, versions, directory_limit)
            done += 1
            tell(Progress("merge", read, done))
            return result

        totals = known.totals()
        results = list(pool.map(finish, columns)) if pool is not None else [finish(column) for column in columns]
        if probe is not None:
            results = _probed(results, layouts, sample, Path(probe), read, tell)
        spilled = known.spilled + sum(column.index.spilled for column in columns)
    return Comparison(
        identifiers=read,
        duplicates=totals.equal,
        layouts=tuple(results),
        profile=profile,
        directory_limit=directory_limit,
        source=source,
        seconds=perf_counter() - begin,
        spilled=spilled,
        threads=workers,
        machine=machine(),
        made=made,
    )


def machine() -> dict[str, Any]:
    """Return what numbers of this machine depend on."""
    return {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": resolve_threads(None),
        "python": platform.python_version(),
        "pressmark": __version__,
        "implementation": running().implementation,
        "level": running().level,
    }


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def called(layouts: Sequence[Layout], names: Sequence[str | None] | None) -> list[str]:
    """Return what each layout is called: all differently."""
    if not layouts:
        raise ValueError("no layouts: expected one or more")
    if names is not None and len(names) != len(layouts):
        raise ValueError(f"{len(names)} names for {len(layouts)} layouts")
    wanted = [name or layout.name for name, layout in zip(names or [None] * len(layouts), layouts, strict=True)]
    unique: list[str] = []
    for name in wanted:
        numbers = (f"{name} #{number}" for number in count(1))
        unique.append(
            name if wanted.count(name) == 1 else next(one for one in numbers if one not in (*wanted, *unique))
        )
    return unique


def _identifiers(ids: Any) -> Any:
    """Return what identifiers are read from; of a store, those of its objects."""
    if isinstance(ids, Store):
        return (found.id for found in ids.objects() if found.id is not None)
    return ids


def _all(pool: Executor | None, steps: Iterable[Callable[[], object]]) -> None:
    """Do all steps, side by side where there is a pool; what one of them raises is raised."""
    if pool is None:
        for step in steps:
            step()
    else:
        for _ in pool.map(lambda step: step(), list(steps)):
            pass


def _taking(known: PathIndex, block: Block) -> Callable[[], None]:
    return lambda: known.add(block.column, block.column)


class _Column:
    """One layout, and all that is counted of it."""

    def __init__(self, name: str, layout: Layout, index: PathIndex, profiles: Sequence[str], root_length: int) -> None:
        self.index = index
        self._name = name
        self._layout = layout
        self._profiles = profiles
        self._root_length = root_length
        self._lengths = PathLengths()
        self._number = 0
        self._unmapped = self._mapped = self._advised = self._fallback = self._lost = 0
        self._first_unmapped: list[Named] = []
        self._refused: Counter[str] = Counter()
        self._first_refused: dict[str, list[Named]] = {profile: [] for profile in profiles}
        self._seconds = 0.0
        self._without_fallback = _without_fallback(layout)

    def taking(self, block: Block) -> Callable[[], None]:
        """Return what takes in the next block."""
        return lambda: self._take(block)

    def _take(self, block: Block) -> None:
        mapped = map_block(self._layout, block)
        self._seconds += mapped.seconds
        self._note_unmapped(block, mapped)
        self._mapped += len(mapped.paths) - len(mapped.paths.nulls)
        self.index.add(mapped.paths)
        self._lengths.add(mapped.paths)
        self._note_refused(block, mapped)
        self._note_fallback(block, mapped)
        self._note_lost(block, mapped)
        self._number += len(block.column)

    def _note_unmapped(self, block: Block, mapped: MappedBlock) -> None:
        self._unmapped += len(mapped.failures) + len(block.faults)
        room = FIRST - len(self._first_unmapped)
        if room <= 0:
            return
        named = [(index, error.reason) for index, error in list(block.faults.items())[:room]]
        named += [(failure[0], failure_reason(self._layout, block, failure)) for failure in mapped.failures[:room]]
        self._first_unmapped += [
            _named(self._number + index, block.text(index), "", reason) for index, reason in sorted(named)[:room]
        ]

    def _note_refused(self, block: Block, mapped: MappedBlock) -> None:
        for place, profile in enumerate(self._profiles):
            first = self._first_refused[profile]
            found = name_violations(mapped.paths, profile, root_length=self._root_length, first=FIRST - len(first))
            self._refused[profile] += found.count
            first += [
                _named(self._number + one.number, block.text(one.number), one.path, one.reason) for one in found.first
            ]
            # It is the same for all.
            self._advised += found.advised if place == 0 else 0

    def _note_fallback(self, block: Block, mapped: MappedBlock) -> None:
        """Count digests: paths in the folder of fallbacks that would be others if nothing could be too long."""
        if self._without_fallback is None or not isinstance(self._layout, DirectClean):
            return
        folder = self._layout.fallback_folder.encode() + b"/"
        absent = set(mapped.paths.nulls)
        found = [index for index in starting_with(mapped.paths, folder) if index not in absent]
        whole = self._without_fallback.map_ids([block.column[index] for index in found], on_error="none")
        for index, path in zip(found, whole, strict=True):
            self._fallback += path is None or path.encode("utf-8", "surrogateescape") != mapped.paths[index]

    def _note_lost(self, block: Block, mapped: MappedBlock) -> None:
        """Count identifiers that 0011 does not give back: digests, and what lost empty segments or octets."""
        if not isinstance(self._layout, DirectClean) or not self._layout.reversible:
            return
        absent = set(mapped.paths.nulls)
        found = [index for index in range(len(mapped.paths)) if index not in absent]
        back = self._layout.unmap_paths([mapped.paths[index] for index in found], on_error="none")
        for index, identifier in zip(found, back, strict=True):
            self._lost += identifier is None or identifier.encode("utf-8", "surrogateescape") != block.column[index]

    def result(self, label: Label, files: int, versions: int, limit: int | None) -> LayoutResult:
        """Merge, and return all that is known now.

        :param label: says what a path's number stands for
        """
        layout, index, mapped = self._layout, self.index, self._mapped
        clashes = _clashes(index, label)
        tree = index.tree()
        truncated = 0
        if isinstance(layout, HashAndIdNTuple):
            truncated = sum(times for length, times in self._lengths.last_bytes if length > _WHOLE)
        found = metrics.directories(tree, mapped)
        enough = self._seconds > 0.001
        return LayoutResult(
            name=self._name,
            layout=layout.name,
            config=layout.config(),
            mapped=mapped,
            unmapped=Refused(self._unmapped, tuple(self._first_unmapped)),
            clashes=clashes,
            nesting=isinstance(layout, (Pairtree, Vitro)),
            refused={
                profile: Refused(self._refused[profile], tuple(self._first_refused[profile]))
                for profile in self._profiles
            },
            advised=self._advised,
            truncated=truncated,
            fallback=self._fallback,
            lengths=metrics.lengths(self._lengths),
            depth=metrics.depth(self._lengths),
            directories=found,
            fan_out=metrics.fan_out(tree, limit),
            first_segments=metrics.first_segments(tree),
            costs=metrics.costs(layout, found, mapped, files, versions),
            reversible=layout.reversible_when,
            irreversible=truncated + self._lost if layout.reversible else mapped,
            locality=metrics.locality(self._lengths),
            throughput=Throughput(self._seconds, mapped / self._seconds if enough else 0.0),
            growth=growth(layout, tree, mapped),
        )


def _without_fallback(layout: Layout) -> DirectClean | None:
    """Return a layout of cleaned paths that are never too long."""
    if not isinstance(layout, DirectClean):
        return None
    return replace(layout, max_path_segment_len=_LONGEST, max_pathname_len=_LONGEST)


def _clashes(index: PathIndex, label: Label) -> Clashes:
    first: dict[str, tuple[Group, ...]] = dict.fromkeys(KINDS, ())
    for collision in index.collisions(first=FIRST, most=FIRST):
        first[collision.kind] += (_group(collision, label),)
    totals = index.totals()
    return Clashes(
        equal=totals.equal,
        case=totals.case,
        normalization=totals.normalization,
        folded=totals.folded,
        inside=totals.inside,
        inside_exact=totals.inside_exact,
        paths=index.tree().leaves,
        groups=index.groups(),
        first=first,
    )


def _group(collision: Collision, label: Label) -> Group:
    members = tuple(_named(member.number, label(member.number), member.path) for member in collision.members)
    return Group(collision.kind, collision.count, collision.exact, members)


def _named(number: int, identifier: str, path: str, reason: str = "") -> Named:
    return Named(number, _shortened(identifier), _shortened(path), reason)


def _shortened(text: str) -> str:
    # Identifiers may have a megabyte, of which some thousands would be named.
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


# --- probing ------------------------------------------------------------------------------------------------------


class _Sample:
    """The first identifiers: what follows each other shares directories, there as in the whole."""

    def __init__(self, room: int) -> None:
        self.identifiers: list[str] = []
        self._room = room

    def take(self, block: Block) -> None:
        absent = set(block.column.nulls)
        for index in range(len(block.column)):
            if len(self.identifiers) >= self._room:
                return
            if index not in absent:
                self.identifiers.append(block.text(index))


def _probed(
    results: Sequence[LayoutResult],
    layouts: Sequence[Layout],
    sample: _Sample,
    folder: Path,
    read: int,
    tell: OnEvent,
) -> list[LayoutResult]:
    probed = []
    for done, (result, layout) in enumerate(zip(results, layouts, strict=True), 1):
        paths = [path for path in layout.map_ids(sample.identifiers, on_error="none") if path is not None]
        found: Probe = probe_tree(folder, paths)
        probed.append(replace(result, probe=found))
        tell(Progress("probe", read, done))
    return probed
