"""What a comparison found: plain numbers in the shape in which they are written as JSON.

Every class here is a frozen dataclass. :meth:`ComparisonData.record` gives all of it as dictionaries, lists, texts
and numbers: what ``pressmark compare --json`` writes and what a report holds. Texts may have lone surrogates, which
stand for octets that are not UTF-8.

A *directory* is one that must be made below the root of the store for all objects to have their paths; the root itself
is not counted. The last directory of a path is the object's own (*leaf*); the others are *interim*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

__all__ = [
    "FORMAT",
    "KINDS",
    "Clashes",
    "ComparisonData",
    "Costs",
    "Depth",
    "Directories",
    "Distribution",
    "FanOut",
    "FirstSegments",
    "Group",
    "Growth",
    "LargeDirectory",
    "LayoutResult",
    "Lengths",
    "Locality",
    "Named",
    "Probe",
    "ProbeTimes",
    "Refused",
    "Throughput",
    "from_record",
]

#: The version of the record's shape.
FORMAT = 1

Shape = TypeVar("Shape")

#: The kinds of clashes, in the order of the report.
KINDS = ("equal", "case", "normalization", "inside")


class _Recorded:
    """A dataclass that is written as JSON field by field."""

    def record(self) -> dict[str, Any]:
        """Return it as it stands in JSON."""
        return {one.name: _plain(getattr(self, one.name)) for one in fields(self)}  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value


def from_record(kind: type[Shape], record: Mapping[str, Any]) -> Shape:
    """Return what was written as JSON; keys that are not of the shape are passed over.

    :raises KeyError: something is missing
    """
    made: Shape = _made(kind, record)
    return made


@cache
def _shape(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _made(kind: Any, value: Any) -> Any:
    if value is None:
        return None
    if is_dataclass(kind) and isinstance(kind, type):
        return kind(**{name: _made(one, value[name]) for name, one in _shape(kind).items()})
    origin, inner = get_origin(kind), get_args(kind)
    if origin is tuple:
        each = [inner[0]] * len(value) if inner[1:] == (...,) else inner
        return tuple(map(_made, each, value))
    if origin is Mapping:
        return {key: _made(inner[1], one) for key, one in value.items()}
    if origin is UnionType:
        # Of what may be absent.
        return _made(inner[0], value)
    return value


@dataclass(frozen=True)
class Named(_Recorded):
    """One identifier that is named as an example.

    :ivar number: its place in the input, from 0
    :ivar identifier: as text; of a very long one the beginning, and ``…``
    :ivar path: where it goes, shown likewise; empty where it has no path
    :ivar reason: one line that says what is wrong; empty in a clash
    """

    number: int
    identifier: str
    path: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Group(_Recorded):
    """Identifiers that clash with each other.

    :ivar kind: ``equal``, ``case``, ``normalization`` or ``inside`` (the first holds the others)
    :ivar count: how many identifiers take part
    :ivar exact: whether they clash on a file system that tells case and normal forms apart
    :ivar members: the first of them
    """

    kind: str
    count: int
    exact: bool
    members: tuple[Named, ...]


@dataclass(frozen=True)
class Clashes(_Recorded):
    """Identifiers that cannot all be where they say. All counts are of identifiers that share with at least one other.

    :ivar equal: they have the same path, octet for octet
    :ivar case: the same once case is folded: one place to a file system that ignores case; those equal are among them
    :ivar normalization: the same under NFC; those equal are among them
    :ivar folded: the same once case and normal forms are folded; all of the above are among them
    :ivar inside: one is inside the other once both are folded
    :ivar inside_exact: one is inside the other as they are
    :ivar paths: how many different paths there are
    :ivar groups: how many groups there are of each kind of :class:`Group`
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
    first: Mapping[str, tuple[Group, ...]] = field(default_factory=lambda: dict.fromkeys(KINDS, ()))


@dataclass(frozen=True)
class Refused(_Recorded):
    """Paths that one kind of system refuses.

    :ivar count: how many
    :ivar first: the first of them, with reasons
    """

    count: int = 0
    first: tuple[Named, ...] = ()


@dataclass(frozen=True)
class Distribution(_Recorded):
    """How whole numbers are spread; all are 0 where there are none.

    :ivar count: how many numbers
    :ivar min: the least of them
    :ivar max: the greatest
    :ivar mean: their sum by their count
    :ivar p50: half of them are at most this
    :ivar p90: nine tenths are
    :ivar p99: ninety-nine hundredths are
    :ivar histogram: pairs of a number and how often it occurs, ascending; the empirical distribution, exactly
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
        """Return how many of the numbers are greater than ``limit``."""
        return sum(count for number, count in self.histogram if number > limit)

    def ecdf(self) -> list[tuple[int, float]]:
        """Return each number with the share of numbers that are at most as great, ascending."""
        points, so_far = [], 0
        for number, count in self.histogram:
            so_far += count
            points.append((number, so_far / self.count))
        return points


@dataclass(frozen=True)
class Lengths(_Recorded):
    """Lengths of paths, below the root and without a slash before them, and of their segments.

    :ivar path_octets: a path each, in octets
    :ivar path_units: a path each, in UTF-16 units
    :ivar segment_octets: a segment of a path each (interim directories as often as they occur in paths)
    :ivar segment_units: the same in UTF-16 units
    """

    path_octets: Distribution = Distribution()
    path_units: Distribution = Distribution()
    segment_octets: Distribution = Distribution()
    segment_units: Distribution = Distribution()


@dataclass(frozen=True)
class Depth(_Recorded):
    """How many segments paths have.

    :ivar min: of all paths
    :ivar mean: of all paths
    :ivar max: of all paths
    :ivar histogram: pairs of a depth and how many identifiers have it, ascending
    """

    min: int = 0
    mean: float = 0.0
    max: int = 0
    histogram: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Directories(_Recorded):
    """Directories below the root: what ``find ROOT -mindepth 1 -type d`` would list with every object empty.

    :ivar total: all of them
    :ivar interim: those that are no object's own
    :ivar leaf: those that are an object's own; as many as there are different paths
    :ivar per_object: total by identifiers that have a path
    :ivar levels: how many there are at each depth; the first are directly below the root
    """

    total: int = 0
    interim: int = 0
    leaf: int = 0
    per_object: float = 0.0
    levels: tuple[int, ...] = ()


@dataclass(frozen=True)
class LargeDirectory(_Recorded):
    """A directory with many others in it.

    :ivar path: below the root; empty for the root itself
    :ivar entries: how many directories are directly in it
    """

    path: str
    entries: int


@dataclass(frozen=True)
class FanOut(_Recorded):
    """How many directories are directly in a directory, of those (the root too) that have any.

    :ivar directories: how many have any
    :ivar mean: entries by directories
    :ivar p50: half of them have at most so many
    :ivar p90: nine tenths have
    :ivar p99: ninety-nine hundredths have
    :ivar max: the most
    :ivar histogram: one row a power of two: from, to (both included), how many directories; rows of none are there too
    :ivar largest: the largest directories, the largest first, by path where they are equal
    :ivar limit: the user's limit, if one was given
    :ivar over_limit: how many directories have more entries than that
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
    """How different paths are spread over the directories directly below the root; all are 0 where there are none.

    :ivar directories: how many there are
    :ivar mean: paths by directories
    :ivar p50: half of the directories hold at most so many paths
    :ivar max: the fullest holds so many
    :ivar max_share: of all paths (0.5 is half of them)
    :ivar half: half of all paths are in so many directories, the fullest
    :ivar histogram: pairs of a number of paths and how many directories hold so many, ascending
    """

    directories: int = 0
    mean: float = 0.0
    p50: int = 0
    max: int = 0
    max_share: float = 0.0
    half: int = 0
    histogram: tuple[tuple[int, int], ...] = ()

    def shares(self) -> list[tuple[float, float]]:
        """Return which share of all paths the fullest directories hold, as pairs: share of directories, of paths."""
        paths = sum(held * times for held, times in self.histogram)
        points, directories, so_far = [(0.0, 0.0)], 0, 0
        for held, times in reversed(self.histogram):
            directories += times
            so_far += held * times
            points.append((directories / self.directories, so_far / paths))
        return points


@dataclass(frozen=True)
class Costs(_Recorded):
    """What all objects take of a file system: inodes, and the space of directories. Counted of identifiers with a path.

    :ivar structure: what an object is made of: ``ocfl``, ``pairtree`` or ``vitro``
    :ivar files_per_object: files of content that were said to be in an object
    :ivar versions: versions that were said to be in an object; only OCFL has any
    :ivar object_files: files an object has, with those that its structure adds
    :ivar object_directories: directories an object has below its own
    :ivar interim_per_object: inodes of interim directories, for each object
    :ivar own_per_object: inodes of the object's own directory and those below it
    :ivar inodes_per_object: these two and its files together
    :ivar inodes: of all objects and interim directories
    :ivar directory_kib: KiB of all directories (with those in objects), at 4 KiB each
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
class Locality(_Recorded):
    """Whether identifiers that follow each other in the input lie near each other in the tree.

    :ivar shared_segments: how many leading segments the paths of neighbours have in common, on average
    :ivar last_directories_per_1000: how many different directories hold the objects of 1000 identifiers in a row
    """

    shared_segments: float = 0.0
    last_directories_per_1000: float = 0.0


@dataclass(frozen=True)
class Throughput(_Recorded):
    """How fast the layout mapped on this machine.

    :ivar seconds: of one core
    :ivar per_second: identifiers mapped a second by one core; 0.0 where there was too little to measure
    """

    seconds: float = 0.0
    per_second: float = 0.0


@dataclass(frozen=True)
class Growth(_Recorded):
    """How many directories there will be when there are more objects of the same kind.

    :ivar model: ``exact`` (it follows from the layout), ``hashed`` (closed form), ``fitted`` (from samples), ``none``
    :ivar formula: in words and symbols
    :ivar coefficients: what the formula's letters are
    :ivar fitted_to: pairs of a number of identifiers and of their directories that the model was fitted to
    :ivar held_out: pairs that it was not fitted to: identifiers, directories, what the model predicts
    :ivar error: the greatest deviation of the prediction for what was held out, relative (0.01 is 1 %); None where
        nothing could be held out
    :ivar note: what to know of it, one sentence; may be empty
    :ivar points: objects, interim directories, all directories predicted, ascending, up to 10^12 objects
    """

    model: str = "none"
    formula: str = ""
    coefficients: Mapping[str, float] = field(default_factory=dict)
    fitted_to: tuple[tuple[int, int], ...] = ()
    held_out: tuple[tuple[int, int, int], ...] = ()
    error: float | None = None
    note: str = ""
    points: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class ProbeTimes(_Recorded):
    """How long one thing took, for all directories of the sample.

    :ivar seconds: in all, or None where it could not be done
    :ivar per_directory: microseconds a directory, or None
    :ivar reason: why it could not be done, one line; empty where it was
    """

    seconds: float | None = None
    per_directory: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Probe(_Recorded):
    """What a sample of the tree cost on the user's own file system.

    :ivar folder: where it was made
    :ivar file_system: its type as the system names it (``ext4``); empty where that is unknown
    :ivar objects: how many of the identifiers were made
    :ivar directories: how many directories that were
    :ivar skipped: how many paths the file system refused
    :ivar kib: KiB that the directories took there (st_blocks), or None where the system does not say
    :ivar create: making all directories, with a file of no octets in each object's own
    :ivar stat: one stat of each file
    :ivar walk_warm: a walk of the whole tree, with caches as the last walk left them
    :ivar walk_cold: a walk after the caches were dropped
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
    """What one layout makes of the identifiers.

    :ivar name: what the user calls it; unlike all others of the comparison
    :ivar layout: the official name
    :ivar config: every parameter, as in ``config.json``
    :ivar mapped: how many identifiers have a path
    :ivar unmapped: those that have none; ``path`` of the named ones is empty
    :ivar clashes: paths that are not one object's alone
    :ivar nesting: whether one object may lie inside another's path: in a Pairtree, where each is in a directory of its
        own at the end of its path, and in Vitro, where it is a file there
    :ivar refused: by profile (``unix``, ``windows``, ``azure``, ``s3``), what systems refuse
    :ivar advised: how many paths have a segment that begins with ``-``, as options of commands do
    :ivar truncated: how many paths hold only a part of the identifier, because it was too long (0003, 0012)
    :ivar fallback: how many paths are a digest instead, because it was too long (0011)
    :ivar lengths: of paths and segments
    :ivar depth: segments of paths
    :ivar directories: how many must be made
    :ivar fan_out: how many are in one
    :ivar first_segments: how paths are spread over those directly below the root
    :ivar costs: inodes and space
    :ivar reversible: when identifiers can be told from paths, in words: ``always``, ``never``, ``unless truncated``, …
    :ivar irreversible: how many of these identifiers cannot be told from their paths: all where that is ``never``,
        otherwise those that were cut, replaced by a digest, or lost empty segments or octets that are not UTF-8 (0011)
    :ivar locality: of neighbours
    :ivar throughput: of mapping
    :ivar growth: to more objects
    :ivar probe: on the user's file system, if that was asked for
    """

    name: str
    layout: str
    config: Mapping[str, Any]
    mapped: int = 0
    unmapped: Refused = Refused()
    clashes: Clashes = Clashes()
    nesting: bool = False
    refused: Mapping[str, Refused] = field(default_factory=dict)
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
    locality: Locality = Locality()
    throughput: Throughput = Throughput()
    growth: Growth = Growth()
    probe: Probe | None = None

    @property
    def ok(self) -> bool:
        """Whether every identifier has a path of its own, which no other may not be inside of, on a POSIX system."""
        unix = self.refused.get("unix")
        inside = self.clashes.inside_exact and not self.nesting
        return not (self.unmapped.count or self.clashes.equal or inside or (unix is not None and unix.count))


@dataclass(frozen=True)
class ComparisonData(_Recorded):
    """Layouts beside each other, on the same identifiers.

    :ivar identifiers: how many there were
    :ivar duplicates: how many of them are the same octets as another one; they share a path under every layout
    :ivar layouts: in the order in which they were given
    :ivar profile: ``all``, or the one profile that paths were held against
    :ivar directory_limit: the user's, or None
    :ivar source: what the identifiers were read from, for people; may be empty
    :ivar seconds: what all took, with the sorting
    :ivar spilled: octets that went to temporary files
    :ivar threads: how many were at work
    :ivar machine: facts: ``system``, ``machine``, ``processor``, ``cores``, ``python``, ``pressmark``,
        ``implementation``, ``level``
    :ivar made: when it was, in UTC, as ISO 8601
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
    machine: Mapping[str, Any] = field(default_factory=dict)
    made: str = ""

    @property
    def ok(self) -> bool:
        """Whether at least one of the layouts gives every identifier a path of its own."""
        return any(one.ok for one in self.layouts)

    def record(self) -> dict[str, Any]:
        """Return all of it as it stands in JSON."""
        return {"format": FORMAT, **super().record(), "ok": self.ok}
