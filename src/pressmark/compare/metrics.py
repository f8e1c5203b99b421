"""From what was counted to what is reported: distributions, fan-out, and what objects cost a file system."""

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
    Locality,
)
from pressmark.layouts import Layout, Pairtree, Vitro
from pressmark.paths import PathLengths, Tree

__all__ = [
    "costs",
    "depth",
    "directories",
    "distribution",
    "fan_out",
    "first_segments",
    "lengths",
    "locality",
    "object_parts",
    "percentile",
]

Histogram = Sequence[tuple[int, int]]

#: What a directory takes at least, nearly everywhere.
DIRECTORY_KIB = 4


def percentile(histogram: Histogram, count: int, hundredths: int) -> int:
    """Return the least number that so many hundredths of all are at most as great as (the nearest rank)."""
    # In whole numbers: a rank that is off by one is another answer.
    rank = -(-count * hundredths // 100)
    so_far = 0
    for number, times in histogram:
        so_far += times
        if so_far >= rank:
            return number
    return 0


def distribution(histogram: Histogram) -> Distribution:
    """Return how numbers are spread, from ascending pairs of a number and how often it occurs."""
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


def lengths(counted: PathLengths) -> Lengths:
    """Return the lengths of paths and segments."""
    return Lengths(
        path_octets=distribution(counted.path_bytes),
        path_units=distribution(counted.path_units),
        segment_octets=distribution(counted.segment_bytes),
        segment_units=distribution(counted.segment_units),
    )


def depth(counted: PathLengths) -> Depth:
    """Return how many segments paths have."""
    spread = distribution(counted.depth)
    return Depth(spread.min, spread.mean, spread.max, spread.histogram)


def locality(counted: PathLengths) -> Locality:
    """Return how near neighbours of the input are."""
    paths, shared, parents = counted.neighbours()
    return Locality(
        shared_segments=shared / (paths - 1) if paths > 1 else 0.0,
        last_directories_per_1000=1000 * parents / paths if paths else 0.0,
    )


def directories(tree: Tree, mapped: int) -> Directories:
    """Return how many directories must be made for so many identifiers."""
    # The path of no segments is the root, which is not counted, though it may be an object's.
    leaf = min(tree.leaves, tree.directories)
    return Directories(
        total=tree.directories,
        interim=tree.directories - leaf,
        leaf=leaf,
        per_object=tree.directories / mapped if mapped else 0.0,
        levels=tree.levels,
    )


def fan_out(tree: Tree, limit: int | None) -> FanOut:
    """Return how many directories are in a directory.

    :param limit: more than so many are over the limit
    """
    spread = distribution(tree.fan_out)
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


def first_segments(tree: Tree) -> FirstSegments:
    """Return how paths are spread over the directories directly below the root."""
    spread = distribution(tree.top_level)
    paths = sum(held * times for held, times in tree.top_level)
    half = so_far = 0
    for held, times in reversed(tree.top_level):
        # So many of these are enough, or all of them are not.
        wanted = min(times, -(-max(paths - 2 * so_far, 0) // (2 * held)))
        half += wanted
        so_far += held * wanted
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


def object_parts(layout: Layout, files: int, versions: int) -> tuple[str, int, int]:
    """Return the structure of a layout's objects, the files of one, and the directories below its own.

    An OCFL object has a declaration, an inventory and its sidecar; of each version a directory, an inventory and its
    sidecar; and a directory ``content`` of each version that brings files, here of as many versions as there are files,
    and of the first in any case (OCFL 1.1, section 3). A Pairtree object is a directory with its files at the end of
    its pairs. A Vitro object is a file at the end of its path.

    :param files: of content, in all versions together
    """
    if isinstance(layout, Pairtree):
        return "pairtree", files, 1
    if isinstance(layout, Vitro):
        return "vitro", files, 0
    return "ocfl", 3 + 2 * versions + files, versions + min(versions, max(files, 1))


def costs(layout: Layout, found: Directories, mapped: int, files: int, versions: int) -> Costs:
    """Return what so many objects take of a file system.

    :param files: of content, in an object
    :param versions: of an object
    """
    structure, object_files, inner = object_parts(layout, files, versions)
    # Identifiers that share a path cannot both be stored: what is counted is what there is when each has its own.
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
