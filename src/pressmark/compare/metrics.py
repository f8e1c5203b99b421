"""The metrics of a comparison, computed from counters: distributions, fan-out, inodes."""

from __future__ import annotations

from collections.abc import Sequence

from pressmark.compare.result import (
    Costs,
    Depth,
    Directories,
    Distribution,
    FanOut,
    FirstSegments,
    LargeDirectory,
    Lengths,
)
from pressmark.layouts import Layout, Pairtree, Vitro
from pressmark.paths import PathLengths, Tree

__all__ = [
    "count_directories",
    "describe_object",
    "measure_costs",
    "measure_depth",
    "measure_fan_out",
    "measure_first_segments",
    "measure_lengths",
    "percentile",
    "summarize",
]

Histogram = Sequence[tuple[int, int]]

#: The size of a small directory on nearly every file system.
DIRECTORY_KIB = 4


def percentile(histogram: Histogram, count: int, hundredths: int) -> int:
    """Return a percentile by the nearest-rank method."""
    # Integer arithmetic: floating point could be off by one rank.
    rank = -(-count * hundredths // 100)
    so_far = 0
    for number, times in histogram:
        so_far += times
        if so_far >= rank:
            return number
    return 0


def summarize(histogram: Histogram) -> Distribution:
    """Return the distribution of a histogram: pairs (value, occurrences), ascending by value."""
    count = sum(times for _, times in histogram)
    if not count:
        return Distribution()
    return Distribution(
        count=count,
        min=histogram[0][0],
        max=histogram[-1][0],
        mean=sum(number * times for number, times in histogram) / count,
        p50=percentile(histogram, count, 50),
        p90=percentile(histogram, count, 90),
        p99=percentile(histogram, count, 99),
        histogram=tuple(histogram),
    )


def measure_lengths(counted: PathLengths) -> Lengths:
    """Return the lengths of paths and segments."""
    return Lengths(
        path_bytes=summarize(counted.path_bytes),
        path_units=summarize(counted.path_units),
        segment_bytes=summarize(counted.segment_bytes),
        segment_units=summarize(counted.segment_units),
    )


def measure_depth(counted: PathLengths) -> Depth:
    """Return the distribution of the number of segments."""
    spread = summarize(counted.depth)
    return Depth(spread.min, spread.mean, spread.max, spread.histogram)


def count_directories(tree: Tree, mapped: int) -> Directories:
    """Return the number of directories for ``mapped`` identifiers."""
    # The root may be an object directory (a path without segments), but it is not counted.
    leaf = min(tree.leaves, tree.directories)
    return Directories(
        total=tree.directories,
        interim=tree.directories - leaf,
        leaf=leaf,
        per_object=tree.directories / mapped if mapped else 0.0,
        levels=tree.levels,
    )


def measure_fan_out(tree: Tree, limit: int | None) -> FanOut:
    """Return the distribution of the number of subdirectories.

    :param limit: the most entries that a directory should have
    """
    spread = summarize(tree.fan_out)
    rows = []
    low = 1
    while low <= spread.max:
        high = 2 * low - 1
        rows.append((low, high, sum(times for entries, times in tree.fan_out if low <= entries <= high)))
        low *= 2
    return FanOut(
        directories=spread.count,
        mean=spread.mean,
        p50=spread.p50,
        p90=spread.p90,
        p99=spread.p99,
        max=spread.max,
        histogram=tuple(rows),
        largest=tuple(LargeDirectory(path, entries) for path, entries in tree.largest),
        limit=limit,
        over_limit=0 if limit is None else spread.above(limit),
    )


def measure_first_segments(tree: Tree) -> FirstSegments:
    """Return how paths are distributed over the top-level directories."""
    spread = summarize(tree.top_level)
    paths = sum(held * times for held, times in tree.top_level)
    half = so_far = 0
    for held, times in reversed(tree.top_level):
        # Take only as many directories of this size as are needed to reach half of the paths.
        needed = min(times, -(-max(paths - 2 * so_far, 0) // (2 * held)))
        half += needed
        so_far += held * needed
        if 2 * so_far >= paths:
            break
    return FirstSegments(
        directories=spread.count,
        mean=spread.mean,
        p50=spread.p50,
        max=spread.max,
        max_share=spread.max / paths if paths else 0.0,
        half=half,
        histogram=spread.histogram,
    )


def describe_object(layout: Layout, files: int, versions: int) -> tuple[str, int, int]:
    """Return the structure of an object, its number of files, and the number of directories below the object directory.

    An OCFL object consists of a declaration, an inventory and its sidecar; for each version a directory, an inventory
    and its sidecar; and a ``content`` directory for each version that adds files: the first, and at most as many as
    there are files (OCFL 1.1, section 3). A Pairtree object is an encapsulating directory with its files. A Vitro
    object is a file.

    :param files: content files, in all versions together
    """
    if isinstance(layout, Pairtree):
        return "pairtree", files, 1
    if isinstance(layout, Vitro):
        return "vitro", files, 0
    return "ocfl", 3 + 2 * versions + files, versions + min(versions, max(files, 1))


def measure_costs(layout: Layout, found: Directories, mapped: int, files: int, versions: int) -> Costs:
    """Return the inodes and disk space of ``mapped`` objects.

    :param files: content files in an object
    :param versions: versions of an object
    """
    structure, object_files, inner = describe_object(layout, files, versions)
    # Colliding identifiers cannot both be stored. Count as if each had a path of its own.
    interim = found.interim / mapped if mapped else 0.0
    own = (1 + inner) if mapped else 0
    held = object_files if mapped else 0
    kib = DIRECTORY_KIB * (found.interim + mapped * own)
    return Costs(
        structure=structure,
        files_per_object=files,
        versions=versions,
        object_files=object_files,
        object_directories=inner,
        interim_per_object=interim,
        own_per_object=float(own),
        inodes_per_object=interim + own + held,
        inodes=found.interim + mapped * (own + held),
        directory_kib=kib,
        directory_kib_per_object=kib / mapped if mapped else 0.0,
    )
