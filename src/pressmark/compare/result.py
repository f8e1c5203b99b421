"""The results of a comparison: frozen dataclasses with the structure of the JSON output.

:meth:`ComparisonData.record` returns the result as dictionaries, lists, strings and numbers. ``pressmark compare
--json`` prints this record, and an HTML report contains it. Strings may contain unpaired surrogates, which represent
bytes that are not UTF-8.

A *directory* is a directory that all objects together need below the root of the store; the root is not counted. The
last directory of a path is the object's *leaf* directory, the others are *interim* directories.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

__all__ = [
    "FORMAT",
    "KINDS",
    "CollisionGroup",
    "Collisions",
    "ComparisonData",
    "Costs",
    "Depth",
    "Directories",
    "Distribution",
    "Example",
    "FanOut",
    "FirstSegments",
    "Growth",
    "LargeDirectory",
    "LayoutResult",
    "Lengths",
    "Occurrences",
    "Probe",
    "ProbeTimes",
    "Remark",
    "Throughput",
]

#: The version of the JSON record.
FORMAT = 3

#: The kinds of collisions, in report order.
KINDS = ("equal", "case", "normalization", "inside")

#: Number of examples to list: identifiers, groups of each kind, members of a group.
FIRST = 20
_QUOTED_OR_NUMBER = re.compile(r"""'[^']*'|"[^"]*"|\d+""")
# Identifiers and paths in examples are cut at this number of characters.
_SHOWN = 1000


class _Recorded:
    """A dataclass that is written to JSON field by field."""

    def record(self) -> dict[str, object]:
        """Return the JSON representation."""
        return {one.name: _plain(getattr(self, one.name)) for one in fields(self)}  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value


@dataclass(frozen=True)
class Example(_Recorded):
    """An identifier listed as an example.

    :ivar number: index in the input, from 0
    :ivar id: the identifier, shortened with ``…`` if it is very long
    :ivar path: its path, shortened the same way; empty if the identifier has no path
    :ivar reason: the reason why the path is missing or not allowed, on one line; empty in a collision
    """

    number: int
    id: str
    path: str = ""
    reason: str = ""

    @classmethod
    def of(cls, number: int, id: str, path: str = "", reason: str = "") -> Example:
        """Return an example, shortened: identifiers can be a megabyte long, and there can be thousands of examples."""
        return cls(number, _shortened(id), _shortened(path), reason)


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


@dataclass(frozen=True)
class Remark(_Recorded):
    """Identifiers of the input that are doubtful under every layout.

    :ivar kind: ``blank``: empty. ``setting``: a first line ``sep=;``, as Excel writes. ``encoding``: not UTF-8.
        ``ends``: blanks at the beginning or end. ``invisible``: no-break, soft or zero-width characters. ``spelling``:
        DOIs or ARKs that other identifiers spell differently
    :ivar count: number of identifiers; for ``blank``, with repetitions
    :ivar first: the first of them; for ``spelling``, those of one name follow each other, with the name as their path
    :ivar groups: for ``spelling``, the number of different DOIs and ARKs
    :ivar detail: for ``encoding``, ``windows-1252`` if all of them look like it, and ``mixed`` if others are UTF-8
    """

    kind: str
    count: int
    first: tuple[Example, ...] = ()
    groups: int = 0
    detail: str = ""


@dataclass(frozen=True)
class CollisionGroup(_Recorded):
    """Identifiers whose paths collide with each other.

    :ivar kind: ``equal``, ``case``, ``normalization`` or ``inside`` (the path of the first member contains the others)
    :ivar count: number of identifiers in the group
    :ivar exact: whether the paths also collide on a file system that distinguishes case and Unicode normalization
    :ivar members: the first members of the group
    """

    kind: str
    count: int
    exact: bool
    members: tuple[Example, ...]


@dataclass(frozen=True)
class Collisions(_Recorded):
    """Path collisions. Each count is the number of identifiers that collide with at least one other identifier.

    An identifier that occurs more than once counts once.

    :ivar equal: identical paths, byte for byte
    :ivar case: identical paths after case folding, as on a file system that ignores case; includes ``equal``
    :ivar normalization: identical paths after Unicode normalization (NFC); includes ``equal``
    :ivar folded: identical paths after case folding and normalization; includes all of the above
    :ivar inside: one path is inside the other after case folding and normalization
    :ivar inside_exact: one path is inside the other, byte for byte
    :ivar paths: number of distinct paths
    :ivar groups: number of groups of each kind of :class:`CollisionGroup`
    :ivar first: the first groups of each kind
    """

    equal: int = 0
    case: int = 0
    normalization: int = 0
    folded: int = 0
    inside: int = 0
    inside_exact: int = 0
    paths: int = 0
    groups: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    first: Mapping[str, tuple[CollisionGroup, ...]] = field(default_factory=lambda: dict.fromkeys(KINDS, ()))


@dataclass(frozen=True)
class Occurrences(_Recorded):
    """Identifiers that a layout cannot map, or whose paths a system does not allow.

    :ivar count: number of identifiers
    :ivar first: the first of them, with reasons
    """

    count: int = 0
    first: tuple[Example, ...] = ()

    def different(self) -> tuple[Example, ...]:
        """Return the first two examples whose reasons differ in more than names and numbers."""
        found: dict[str, Example] = {}
        for example in self.first:
            found.setdefault(_QUOTED_OR_NUMBER.sub("", example.reason), example)
        return tuple(found.values())[:2]


@dataclass(frozen=True)
class Distribution(_Recorded):
    """The distribution of integers; without values, every field is 0.

    :ivar count: number of values
    :ivar min: minimum
    :ivar max: maximum
    :ivar mean: arithmetic mean
    :ivar p50: median
    :ivar p90: 90th percentile
    :ivar p99: 99th percentile
    :ivar histogram: pairs (value, occurrences), ascending by value; the exact empirical distribution
    """

    count: int = 0
    min: int = 0
    max: int = 0
    mean: float = 0.0
    p50: int = 0
    p90: int = 0
    p99: int = 0
    histogram: tuple[tuple[int, int], ...] = ()

    def above(self, limit: int) -> int:
        """Return the number of values greater than ``limit``."""
        return sum(count for number, count in self.histogram if number > limit)

    def ecdf(self) -> list[tuple[int, float]]:
        """Return pairs (value, share of values that are at most as large), ascending."""
        points, so_far = [], 0
        for number, count in self.histogram:
            so_far += count
            points.append((number, so_far / self.count))
        return points


@dataclass(frozen=True)
class Lengths(_Recorded):
    """Lengths of paths and of their segments. Paths are relative to the root, without a leading slash.

    :ivar path_bytes: path lengths in bytes
    :ivar path_units: path lengths in UTF-16 code units
    :ivar segment_bytes: segment lengths in bytes; an interim directory counts once for each path that contains it
    :ivar segment_units: segment lengths in UTF-16 code units
    """

    path_bytes: Distribution = Distribution()
    path_units: Distribution = Distribution()
    segment_bytes: Distribution = Distribution()
    segment_units: Distribution = Distribution()


@dataclass(frozen=True)
class Depth(_Recorded):
    """The number of segments in a path.

    :ivar min: minimum
    :ivar mean: arithmetic mean
    :ivar max: maximum
    :ivar histogram: pairs (depth, number of identifiers), ascending by depth
    """

    min: int = 0
    mean: float = 0.0
    max: int = 0
    histogram: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Directories(_Recorded):
    """Directories below the root: what ``find ROOT -mindepth 1 -type d`` lists if every object is empty.

    :ivar total: number of directories
    :ivar interim: directories above the objects
    :ivar leaf: object directories; one for each distinct path
    :ivar per_object: ``total`` divided by the number of identifiers with a path
    :ivar levels: number of directories at each depth, starting directly below the root
    """

    total: int = 0
    interim: int = 0
    leaf: int = 0
    per_object: float = 0.0
    levels: tuple[int, ...] = ()


@dataclass(frozen=True)
class LargeDirectory(_Recorded):
    """A directory with many subdirectories.

    :ivar path: path relative to the root; empty for the root itself
    :ivar entries: number of direct subdirectories
    """

    path: str
    entries: int


@dataclass(frozen=True)
class FanOut(_Recorded):
    """The number of direct subdirectories of a directory; directories without subdirectories are not counted; the root
    is counted.

    :ivar directories: number of directories with subdirectories
    :ivar mean: arithmetic mean
    :ivar p50: median
    :ivar p90: 90th percentile
    :ivar p99: 99th percentile
    :ivar max: maximum
    :ivar histogram: one row for each power of two: first, last (both included), number of directories
    :ivar largest: the largest directories, by size, then by path
    :ivar limit: the user's limit, or None
    :ivar over_limit: number of directories with more entries than the limit
    """

    directories: int = 0
    mean: float = 0.0
    p50: int = 0
    p90: int = 0
    p99: int = 0
    max: int = 0
    histogram: tuple[tuple[int, int, int], ...] = ()
    largest: tuple[LargeDirectory, ...] = ()
    limit: int | None = None
    over_limit: int = 0


@dataclass(frozen=True)
class FirstSegments(_Recorded):
    """How distinct paths are distributed over the top-level directories; without paths, every field is 0.

    :ivar directories: number of top-level directories
    :ivar mean: mean number of paths in a top-level directory
    :ivar p50: median
    :ivar max: number of paths in the fullest directory
    :ivar max_share: share of all paths that are in the fullest directory (0.5 is half)
    :ivar half: number of directories, fullest first, that contain half of all paths
    :ivar histogram: pairs (paths, number of directories with that many paths), ascending
    """

    directories: int = 0
    mean: float = 0.0
    p50: int = 0
    max: int = 0
    max_share: float = 0.0
    half: int = 0
    histogram: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Costs(_Recorded):
    """Inodes, and disk space of directories, for all identifiers with a path.

    :ivar structure: the object structure: ``ocfl``, ``pairtree`` or ``vitro``
    :ivar files_per_object: content files in an object, as given
    :ivar versions: versions of an object, as given; used for OCFL only
    :ivar object_files: files in an object, including those that its structure adds
    :ivar object_directories: directories below the object directory
    :ivar interim_per_object: interim directories for each object
    :ivar own_per_object: the object directory and the directories below it
    :ivar inodes_per_object: ``interim_per_object``, ``own_per_object`` and ``object_files`` together
    :ivar inodes: inodes of all objects and interim directories
    :ivar directory_kib: KiB of all directories, including those in objects, at 4 KiB each
    :ivar directory_kib_per_object: the same for each object
    """

    structure: str = "ocfl"
    files_per_object: int = 1
    versions: int = 1
    object_files: int = 0
    object_directories: int = 0
    interim_per_object: float = 0.0
    own_per_object: float = 0.0
    inodes_per_object: float = 0.0
    inodes: int = 0
    directory_kib: int = 0
    directory_kib_per_object: float = 0.0


@dataclass(frozen=True)
class Throughput(_Recorded):
    """Mapping speed on this machine.

    :ivar seconds: time on one core
    :ivar per_second: identifiers mapped per second by one core; 0.0 if there were too few to measure
    """

    seconds: float = 0.0
    per_second: float = 0.0


@dataclass(frozen=True)
class Growth(_Recorded):
    """Predicted number of directories for more objects of the same kind.

    :ivar model: ``exact`` (no interim directories), ``hashed`` (closed form) or ``count`` (as many per object as now)
    :ivar formula: the formula of the model
    :ivar coefficients: the values of the formula's letters
    :ivar note: a remark of one sentence, or empty
    :ivar points: predictions (objects, interim directories, all directories), ascending, up to 10^12 objects; empty if
        no identifier has a path
    """

    model: str = "count"
    formula: str = ""
    coefficients: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    points: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class ProbeTimes(_Recorded):
    """The time of one step of a probe.

    :ivar seconds: time for the whole sample, or None if it was not measured
    :ivar per_directory: microseconds per directory, or None
    :ivar reason: the reason why it was not measured, on one line; otherwise empty
    """

    seconds: float | None = None
    per_directory: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Probe(_Recorded):
    """The cost of a sample of the tree, measured on the user's file system.

    :ivar folder: the directory in which the sample was created
    :ivar file_system: the file system type, for example ``ext4``; empty if unknown
    :ivar objects: number of objects created
    :ivar directories: number of directories created
    :ivar skipped: number of paths that the file system rejected
    :ivar kib: KiB used by the directories (``st_blocks``), or None if the system does not report it
    :ivar create: creating all directories, and an empty file in each object directory
    :ivar stat: one ``stat`` call for each file
    :ivar walk_warm: walking the whole tree again directly after a walk
    :ivar walk_cold: walking the whole tree after dropping the caches
    """

    folder: str
    file_system: str = ""
    objects: int = 0
    directories: int = 0
    skipped: int = 0
    kib: int | None = None
    create: ProbeTimes = ProbeTimes()
    stat: ProbeTimes = ProbeTimes()
    walk_warm: ProbeTimes = ProbeTimes()
    walk_cold: ProbeTimes = ProbeTimes()


@dataclass(frozen=True)
class LayoutResult(_Recorded):
    """The result for one layout. All counts are over distinct identifiers.

    :ivar name: the name given by the user, unique in the comparison
    :ivar layout: the official name
    :ivar config: every parameter, as in ``config.json``
    :ivar mapped: number of identifiers with a path
    :ivar unmapped: identifiers without a path; the ``path`` of the examples is empty
    :ivar collisions: path collisions
    :ivar nesting: whether an object may be inside the path of another object. Pairtree and Vitro allow it: there, the
        end of a path is an encapsulating directory or a file
    :ivar refused: paths that systems do not allow, by profile (``unix``, ``windows``, ``azure``, ``s3``)
    :ivar advised: number of paths with a segment that starts with ``-``, which commands may read as an option
    :ivar truncated: number of paths with a truncated identifier (0003, 0012)
    :ivar fallback: number of paths in which a digest replaces an identifier that is too long (0011)
    :ivar lengths: lengths of paths and segments
    :ivar depth: number of segments in a path
    :ivar directories: number of directories
    :ivar fan_out: number of subdirectories in a directory
    :ivar first_segments: distribution of paths over the top-level directories
    :ivar costs: inodes and disk space
    :ivar reversible: when the layout is reversible: ``always``, ``never``, ``unless truncated``, …
    :ivar irreversible: number of identifiers that cannot be restored from their paths. All of them if ``reversible`` is
        ``never``; otherwise those that were truncated, replaced by a digest, or lost empty segments or bytes that are
        not UTF-8 (0011)
    :ivar throughput: mapping speed
    :ivar growth: predicted directories for more objects
    :ivar probe: measurements on the user's file system, if requested
    """

    name: str
    layout: str
    config: Mapping[str, object]
    mapped: int = 0
    unmapped: Occurrences = Occurrences()
    collisions: Collisions = Collisions()
    nesting: bool = False
    refused: Mapping[str, Occurrences] = field(default_factory=dict)
    advised: int = 0
    truncated: int = 0
    fallback: int = 0
    lengths: Lengths = Lengths()
    depth: Depth = Depth()
    directories: Directories = Directories()
    fan_out: FanOut = FanOut()
    first_segments: FirstSegments = FirstSegments()
    costs: Costs = Costs()
    reversible: str = "never"
    irreversible: int = 0
    throughput: Throughput = Throughput()
    growth: Growth = Growth()
    probe: Probe | None = None

    def __repr__(self) -> str:
        # All numbers would be pages of text.
        counts = {"mapped": self.mapped, "not mapped": self.unmapped.count, "collide": self.collisions.equal}
        shown = ", ".join(f"{count:,} {name}" for name, count in counts.items())
        return f"<LayoutResult {self.name}: {'safe' if self.ok else 'not safe'}, {shown}>"

    @property
    def ok(self) -> bool:
        """Whether every identifier has a unique path on a POSIX system, without disallowed nesting."""
        unix = self.refused.get("unix")
        inside = self.collisions.inside_exact and not self.nesting
        return not (self.unmapped.count or self.collisions.equal or inside or (unix is not None and unix.count))


@dataclass(frozen=True)
class ComparisonData(_Recorded):
    """Several layouts compared on the same identifiers.

    :ivar identifiers: number of identifiers in the input, with repetitions
    :ivar duplicates: number of identifiers that are in the input more than once, with all repetitions; without empty
        ones
    :ivar repeated: number of different identifiers among them
    :ivar distinct: number of different identifiers; all empty ones are one of them
    :ivar blank: number of empty identifiers, with repetitions
    :ivar unreadable: number of objects of a store that were skipped because their identifiers cannot be read
    :ivar remarks: what is doubtful about the identifiers, whatever the layout
    :ivar layouts: the results, in the order of the arguments
    :ivar profile: the profile that paths were checked against, or ``all``
    :ivar directory_limit: the user's limit, or None
    :ivar source: the name of the input, for display; may be empty
    :ivar seconds: total time, including sorting
    :ivar spilled: bytes written to temporary files
    :ivar threads: number of threads
    :ivar machine: ``system``, ``machine``, ``processor``, ``cores``, ``python``, ``pressmark``, ``implementation``,
        ``level``
    :ivar made: time of the comparison, UTC, ISO 8601
    """

    identifiers: int
    duplicates: int
    layouts: tuple[LayoutResult, ...]
    profile: str = "all"
    directory_limit: int | None = None
    source: str = ""
    seconds: float = 0.0
    spilled: int = 0
    threads: int = 1
    machine: Mapping[str, object] = field(default_factory=dict)
    made: str = ""
    repeated: int = 0
    distinct: int = 0
    blank: int = 0
    unreadable: int = 0
    remarks: tuple[Remark, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether at least one layout gives every identifier a unique path."""
        return any(one.ok for one in self.layouts)

    def record(self) -> dict[str, object]:
        """Return the JSON representation of the whole comparison."""
        return {"format": FORMAT, **super().record(), "ok": self.ok}
