"""Compare layouts: read the identifiers once, in blocks, and map each block by every layout.

The blocks go to a temporary file, and their identifiers are sorted to find repetitions; what follows sees each once.
For each block, a layout keeps counters and sorted records of its paths; records that exceed the memory limit go to
temporary files. After the last block the records are merged; this finds collisions and visits every directory once.
"""

from __future__ import annotations

import contextlib
import os
import platform
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, cast

from pressmark.compare import metrics
from pressmark.compare.distinct import DistinctIdentifiers
from pressmark.compare.growth import predict_growth
from pressmark.compare.probe import probe_tree
from pressmark.compare.remarks import RemarkFinder
from pressmark.compare.report import Verdict, judge, write_report
from pressmark.compare.result import (
    FIRST,
    KINDS,
    CollisionGroup,
    Collisions,
    ComparisonData,
    Example,
    LayoutResult,
    Occurrences,
    Probe,
    Throughput,
)
from pressmark.layouts import DirectClean, HashAndIdNTuple, Layout, Pairtree, Vitro, layout
from pressmark.layouts.blocks import (
    Block,
    IdentifierSource,
    MappedBlock,
    failure_reason,
    identifier_blocks,
    map_block,
    running,
    starting_with,
)
from pressmark.paths import PROFILES, Collision, PathIndex, PathLengths, name_violations
from pressmark.progress_event import Progress
from pressmark.reports import ProgressEvent
from pressmark.summaries import html_table, text_table
from pressmark.tabular.formats import Crlf
from pressmark.threads import Threads, resolve_threads
from pressmark.version import __version__

if TYPE_CHECKING:
    from pressmark.stores import Store

__all__ = ["MEMORY", "Comparison", "OnEvent", "compare", "unique_names"]

#: Default memory limit for sorting, in bytes.
MEMORY = 256 << 20
#: Most objects that a probe creates for each layout.
PROBED = 5_000

# 0003 and 0012 truncate an encoded identifier at this length and append its digest.
_LONGEST_ENCODED = 100
# The largest length limit that 0011 accepts.
_LARGEST_LIMIT = (1 << 31) - 1


#: Called with the progress: ``read`` and ``map``, in identifiers, then ``merge`` and ``probe``, in layouts.
OnEvent = Callable[[ProgressEvent], object]
# Of a short table of results.
_COLUMNS = ("layout", "safe", "share a path", "nested", "no path", "directories", "longest path", "reversible")
Label = Callable[[int], str]


class Comparison(ComparisonData):
    """The result of :func:`compare`."""

    def __repr__(self) -> str:
        safe = ", ".join(one.name for one in self.layouts if one.ok)
        return f"<Comparison of {self._caption()}; safe: {safe or 'none'}>"

    def __str__(self) -> str:
        """Return a table with a row for each layout."""
        return f"{self._caption()}\n{text_table(_COLUMNS, self._rows())}"

    def _repr_html_(self) -> str:
        return html_table(self._caption(), _COLUMNS, self._rows())

    def _caption(self) -> str:
        counts = {"layout": len(self.layouts), "identifier": self.identifiers}
        return " on ".join(f"{count:,} {noun}{'' if count == 1 else 's'}" for noun, count in counts.items())

    def _rows(self) -> list[tuple[Any, ...]]:
        return [
            (
                *(one.name, "yes" if one.ok else "no", one.collisions.equal, one.collisions.inside_exact),
                *(one.unmapped.count, one.directories.total, one.lengths.path_bytes.max, one.reversible),
            )
            for one in self.layouts
        ]

    @property
    def verdict(self) -> Verdict:
        """What ``pressmark compare`` prints: the layout to choose for each kind of store, with reasons, and what speaks
        against the others, by the rules of :func:`pressmark.compare.report.judge`.
        """
        return judge(self)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a self-contained HTML report; requires the extra ``report``.

        :raises ReportError: a package is missing, or the file cannot be written
        """
        write_report(self, path)


def compare(
    ids: IdentifierSource | Store,
    layouts: Sequence[Layout | str],
    *,
    names: Sequence[str | None] | None = None,
    column: str | int | None = None,
    format: Literal["lines", "csv", "tsv", "jsonl", "parquet"] | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
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
    null: bool = False,
    progress: Progress | None = None,
) -> Comparison:
    """Compare layouts on the same identifiers.

    >>> import pressmark
    >>> from pressmark.compare import compare
    >>> ids = ["miun.aje1563.0001.001", "miun.aje1563.0002.001", "uc1.b1"]
    >>> found = compare(ids, [pressmark.layout("0012", delimiters=["."]), pressmark.layout("0003")])
    >>> [(one.name[:4], one.lengths.path_bytes.max, one.collisions.equal) for one in found.layouts]
    [('0012', 15, 2), ('0003', 39, 0)]

    :param ids: the identifiers: the path (:class:`os.PathLike`) or a binary stream of a file with one identifier per
        line or, with ``column``, of a table; an Arrow column, an iterable of ``str`` or ``bytes``, or a
        :class:`~pressmark.stores.Store`; read once
    :param layouts: one or more layouts, or their names: ``0003`` is the layout with default parameters
    :param names: a name for each layout; None for its official name. Equal names get a number
    :param column: the column of a table: its name, or its number from 1; for JSON lines, a key; of an Arrow table, the
        name of a field. Nulls are skipped
    :param format: the format of a file, :data:`None` decides by its suffix, as for :meth:`pressmark.Layout.map_file`
    :param header: the first row of CSV and TSV has the column names; required if ``column`` is a number
    :param delimiter: the separator of CSV; :data:`None` for a comma
    :param files_per_object: content files in an object, in all versions together
    :param versions: versions of an OCFL object
    :param profile: the systems to check paths against: ``unix``, ``windows``, ``azure``, ``s3`` or ``all``
    :param root_length: length of the path of the store, in bytes
    :param directory_limit: the most entries that a directory should have
    :param threads: number of threads; None or 0 for all cores
    :param memory: memory limit for sorting, in bytes; the rest goes to temporary files
    :param folder: directory for temporary files; None for the system's default
    :param probe: a directory on the file system of the future store. Samples of the trees are created there, timed and
        removed
    :param source: the name of the input, for display
    :param crlf: for a file of lines: ``strip`` removes a byte-order mark and carriage returns before line feeds,
        ``keep`` keeps them as part of the identifiers, None rejects a file that contains them
    :param null: for a file of lines: identifiers end with NUL instead of a line feed
    :param progress: identifiers and layouts done
    :raises TypeError: ``ids`` has an unsupported type
    :raises ValueError: a parameter is out of range
    :raises FormatError: the file has another format or lacks the column, or options of the file contradict each other
    :raises TableError: the file is malformed or damaged
    :raises SpillError: a temporary file cannot be written
    :raises OSError: the file of identifiers cannot be read, or ``probe`` is not a writable directory
    """
    chosen = [layout(one) if isinstance(one, str) else one for one in layouts]
    unique = unique_names(chosen, names)
    for name, number, least in (("files_per_object", files_per_object, 0), ("versions", versions, 1)):
        if number < least:
            raise ValueError(f"{name}={number}: expected {least} or more")
    if profile not in PROFILES:
        raise ValueError(f"profile={profile!r}: expected {', '.join(PROFILES)}")
    if directory_limit is not None and directory_limit < 1:
        raise ValueError(f"directory_limit={directory_limit}: expected 1 or more")
    if memory < 1:
        raise ValueError(f"memory={memory}: expected 1 or more (bytes)")
    begin = perf_counter()
    made = datetime.now(UTC).isoformat(timespec="seconds")
    workers = resolve_threads(threads)
    if not running().side_by_side:
        workers = 1
    report = progress or (lambda event: None)
    profiles = [name for name in PROFILES if name != "all"] if profile == "all" else [profile]
    temporary = None if folder is None else Path(folder)
    share = max(memory // (len(chosen) + 1), 1)
    with contextlib.ExitStack() as stack:
        distinct = stack.enter_context(DistinctIdentifiers(temporary, share))
        finder = stack.enter_context(RemarkFinder(temporary, share))
        # The steps of a block are independent; each needs the same step of the block before it.
        count = min(workers, len(chosen) + 1)
        pool = stack.enter_context(Threads(count, "pressmark-compare"))
        source_ids = _Source(ids)
        table: dict[str, Any] = {"column": column, "format": format, "header": header, "delimiter": delimiter}
        for block in identifier_blocks(source_ids.items, **table, crlf=crlf, null=null):
            lines = b"\n" + block.column.batch.to_lines(b"\n")
            steps = [partial(distinct.add, block, lines), partial(finder.screen, len(block.column), lines)]
            for _ in pool.map(_call, steps):
                pass
            report(ProgressEvent("read", items=distinct.items))
        distinct.find_repetitions()
        counters = [
            _LayoutCounter(
                name, layout, stack.enter_context(PathIndex(temporary, memory=share, tree=True)), profiles, root_length
            )
            for name, layout in zip(unique, chosen, strict=True)
        ]
        sample = _Sample(PROBED if probe is not None else 0)

        def mapping() -> Iterator[Callable[[], object]]:
            mapped = 0
            for block in distinct.blocks():
                yield from (partial(counter.add, block) for counter in counters)
                yield partial(finder.look, block)
                sample.add(block)
                mapped += block.identifiers
                report(ProgressEvent("map", items=mapped, of_items=len(distinct)))

        # So many calls are in flight that a step begins only after the same step of the block before.
        for _ in pool.map(_call, mapping(), ahead=(len(chosen) + 1) // count):
            pass

        def finish(counter: _LayoutCounter) -> LayoutResult:
            return counter.result(distinct.label, files_per_object, versions, directory_limit)

        results: list[LayoutResult] = []
        for result in pool.map(finish, counters, ahead=len(counters)):
            results.append(result)
            report(ProgressEvent("merge", items=len(results), of_items=len(counters)))
        if probe is not None:
            results = _probed(results, chosen, sample, Path(probe), report)
        remarks = finder.remarks(distinct.label, distinct.blank, distinct.first_blank)
        spilled = distinct.spilled + finder.spilled + sum(counter.index.spilled for counter in counters)
    return Comparison(
        identifiers=distinct.items,
        duplicates=distinct.duplicates,
        repeated=distinct.repeated,
        distinct=len(distinct),
        blank=distinct.blank,
        unreadable=source_ids.unreadable,
        remarks=remarks,
        layouts=tuple(results),
        profile=profile,
        directory_limit=directory_limit,
        source=source,
        seconds=perf_counter() - begin,
        spilled=spilled,
        threads=workers,
        machine=_describe_machine(),
        made=made,
    )


def _call(step: Callable[[], object]) -> object:
    return step()


def _describe_machine() -> dict[str, object]:
    """Return the properties of this machine and build that affect measurements."""
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


def unique_names(layouts: Sequence[Layout], names: Sequence[str | None] | None) -> list[str]:
    """Return a distinct name for each layout.

    :raises ValueError: ``layouts`` is empty, or the number of names differs
    """
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


class _Source:
    """The source of identifiers; for a store, the identifiers of its objects.

    :ivar unreadable: number of objects that were skipped because their identifiers cannot be read
    """

    def __init__(self, ids: IdentifierSource | Store) -> None:
        self.unreadable = 0
        # Recognised by its method: importing the stores would cost more than most comparisons.
        is_store = hasattr(ids, "objects")
        self.items = self._of_store(cast("Store", ids)) if is_store else cast("IdentifierSource", ids)

    def _of_store(self, store: Store) -> Iterator[str]:
        for found in store.objects():
            if found.id is None:
                self.unreadable += 1
            else:
                yield found.id


class _LayoutCounter:
    """The counters and the path index of one layout."""

    def __init__(self, name: str, layout: Layout, index: PathIndex, profiles: Sequence[str], root_length: int) -> None:
        self.index = index
        self._name = name
        self._layout = layout
        self._profiles = profiles
        self._root_length = root_length
        self._lengths = PathLengths()
        self._number = 0
        self._unmapped = self._mapped = self._advised = self._fallback = self._lost = 0
        self._first_unmapped: list[Example] = []
        self._refused: Counter[str] = Counter()
        self._first_refused: dict[str, list[Example]] = {profile: [] for profile in profiles}
        self._seconds = 0.0
        self._without_fallback = _without_fallback(layout)

    def add(self, block: Block) -> None:
        """Map the next block and count its paths."""
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
        left = FIRST - len(self._first_unmapped)
        if left <= 0:
            return
        named = [(index, error.reason) for index, error in list(block.faults.items())[:left]]
        named += [(failure[0], failure_reason(self._layout, block, failure)) for failure in mapped.failures[:left]]
        self._first_unmapped += [
            Example.of(self._number + index, block.text(index), "", reason) for index, reason in sorted(named)[:left]
        ]

    def _note_refused(self, block: Block, mapped: MappedBlock) -> None:
        if len(self._profiles) > 1 and not any(self._refused.values()):
            # Most layouts break no rule of any profile: one search instead of four.
            found = name_violations(mapped.paths, "all", root_length=self._root_length, first=0)
            if not found.count:
                self._advised += found.advised
                return
        for position, profile in enumerate(self._profiles):
            first = self._first_refused[profile]
            found = name_violations(mapped.paths, profile, root_length=self._root_length, first=FIRST - len(first))
            self._refused[profile] += found.count
            first += [
                Example.of(self._number + one.number, block.text(one.number), one.path, one.reason)
                for one in found.first
            ]
            # The same for every profile, so count it once.
            self._advised += found.advised if position == 0 else 0

    def _note_fallback(self, block: Block, mapped: MappedBlock) -> None:
        """Count paths in the fallback folder that would be different without length limits."""
        if self._without_fallback is None or not isinstance(self._layout, DirectClean):
            return
        folder = self._layout.fallback_folder.encode() + b"/"
        absent = set(mapped.paths.nulls)
        found = [index for index in starting_with(mapped.paths, folder) if index not in absent]
        whole = self._without_fallback.map_ids([block.column[index] for index in found], on_error="none")
        for index, path in zip(found, whole, strict=True):
            self._fallback += path is None or path.encode("utf-8", "surrogateescape") != mapped.paths[index]

    def _note_lost(self, block: Block, mapped: MappedBlock) -> None:
        """Count identifiers that 0011 cannot restore: digests, lost empty segments, lost bytes."""
        if not isinstance(self._layout, DirectClean) or not self._layout.reversible:
            return
        absent = set(mapped.paths.nulls)
        found = [index for index in range(len(mapped.paths)) if index not in absent]
        back = self._layout.unmap([mapped.paths[index] for index in found], on_error="none")
        for index, identifier in zip(found, back, strict=True):
            self._lost += identifier is None or identifier.encode("utf-8", "surrogateescape") != block.column[index]

    def result(self, label: Label, files: int, versions: int, limit: int | None) -> LayoutResult:
        """Merge the records and return the result.

        :param label: returns the identifier with a number
        """
        layout, index, mapped = self._layout, self.index, self._mapped
        collisions = _collisions(index, label)
        tree = index.tree()
        truncated = 0
        if isinstance(layout, HashAndIdNTuple):
            truncated = sum(times for length, times in self._lengths.last_bytes if length > _LONGEST_ENCODED)
        found = metrics.count_directories(tree, mapped)
        enough = self._seconds > 0.001
        return LayoutResult(
            name=self._name,
            layout=layout.name,
            config=layout.config(),
            mapped=mapped,
            unmapped=Occurrences(self._unmapped, tuple(self._first_unmapped)),
            collisions=collisions,
            nesting=isinstance(layout, (Pairtree, Vitro)),
            refused={
                profile: Occurrences(self._refused[profile], tuple(self._first_refused[profile]))
                for profile in self._profiles
            },
            advised=self._advised,
            truncated=truncated,
            fallback=self._fallback,
            lengths=metrics.measure_lengths(self._lengths),
            depth=metrics.measure_depth(self._lengths),
            directories=found,
            fan_out=metrics.measure_fan_out(tree, limit),
            first_segments=metrics.measure_first_segments(tree),
            costs=metrics.measure_costs(layout, found, mapped, files, versions),
            reversible=layout.reversible_when,
            irreversible=truncated + self._lost if layout.reversible else mapped,
            throughput=Throughput(self._seconds, mapped / self._seconds if enough else 0.0),
            growth=predict_growth(layout, tree, mapped),
        )


def _without_fallback(layout: Layout) -> DirectClean | None:
    """Return the same layout without length limits."""
    if not isinstance(layout, DirectClean):
        return None
    return replace(layout, max_path_segment_len=_LARGEST_LIMIT, max_pathname_len=_LARGEST_LIMIT)


def _collisions(index: PathIndex, label: Label) -> Collisions:
    first: dict[str, tuple[CollisionGroup, ...]] = dict.fromkeys(KINDS, ())
    for collision in index.collisions(first=FIRST, most=FIRST):
        first[collision.kind] += (_group(collision, label),)
    totals = index.totals()
    return Collisions(
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


def _group(collision: Collision, label: Label) -> CollisionGroup:
    members = tuple(Example.of(member.number, label(member.number), member.path) for member in collision.members)
    return CollisionGroup(collision.kind, collision.count, collision.exact, members)


# --- probing ------------------------------------------------------------------------------------------------------


class _Sample:
    """The first identifiers of the input, for a probe.

    Consecutive identifiers share directories as in the complete tree.
    """

    def __init__(self, limit: int) -> None:
        self.identifiers: list[str] = []
        self._limit = limit

    def add(self, block: Block) -> None:
        absent = set(block.column.nulls)
        for index in range(len(block.column)):
            if len(self.identifiers) >= self._limit:
                return
            if index not in absent:
                self.identifiers.append(block.text(index))


def _probed(
    results: Sequence[LayoutResult],
    layouts: Sequence[Layout],
    sample: _Sample,
    folder: Path,
    report: OnEvent,
) -> list[LayoutResult]:
    probed = []
    for done, (result, one) in enumerate(zip(results, layouts, strict=True), 1):
        paths = [path for path in one.map_ids(sample.identifiers, on_error="none") if path is not None]
        found: Probe = probe_tree(folder, paths)
        probed.append(replace(result, probe=found))
        report(ProgressEvent("probe", items=done, of_items=len(layouts)))
    return probed
