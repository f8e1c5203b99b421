"""Real trees, counted with ``os.walk`` and ``find``, to compare the results with."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

from pressmark.compare import LayoutResult

# The kernels sort the slash before all other bytes.
SLASH_FIRST = bytes([*range(1, 0x30), 0, *range(0x30, 0x100)])
NAMED = 20


def make(root: bytes, paths: Iterable[bytes]) -> None:
    """Create the directory of every path."""
    known = {root}
    for path in paths:
        name = b"/".join((root, path))
        missing = []
        while name not in known:
            missing.append(name)
            name = os.path.dirname(name)
        for one in reversed(missing):
            os.mkdir(one)
            known.add(one)


def walked(root: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield path, depth and number of subdirectories of ``root`` and every directory below it."""
    for place, directories, files in os.walk(root):
        assert not files
        path = place[len(root) + 1 :]
        yield path, path.count(b"/") + 1 if path else 0, len(directories)


def found(root: bytes) -> int:
    """Return the number of directories below ``root``, counted by ``find``."""
    find = shutil.which("find")
    assert find is not None
    done = subprocess.run([find, root, "-mindepth", "1", "-type", "d", "-printf", "."], capture_output=True, check=True)
    return len(done.stdout)


def counted(root: bytes) -> dict[str, Any]:
    """Return the counts of a tree, with the keys of :func:`reported`."""
    levels: Counter[int] = Counter()
    fans: Counter[int] = Counter()
    held: list[tuple[int, bytes]] = []
    for path, depth, directories in walked(root):
        if depth:
            levels[depth] += 1
        if directories:
            fans[directories] += 1
            held.append((-directories, path))
    held.sort(key=lambda one: (one[0], one[1].translate(SLASH_FIRST)))
    bins: Counter[int] = Counter()
    for entries, times in fans.items():
        bins[entries.bit_length()] += times
    return {
        "total": found(root),
        "levels": [levels[depth] for depth in range(1, len(levels) + 1)],
        "fans": sum(fans.values()),
        "fan_max": max(fans, default=0),
        "fan_bins": {2 ** (bits - 1): times for bits, times in sorted(bins.items())},
        "fan_ranks": [rank(fans, hundredths) for hundredths in (50, 90, 99)],
        "over_10": sum(times for entries, times in fans.items() if entries > 10),
        "largest": [(os.fsdecode(path), -entries) for entries, path in held[:NAMED]],
    }


def rank(counts: Counter[int], hundredths: int) -> int:
    """Return the nearest-rank percentile."""
    numbers = sorted(counts.elements())
    return numbers[-(-len(numbers) * hundredths // 100) - 1] if numbers else 0


def reported(result: LayoutResult) -> dict[str, Any]:
    """Return the results of a comparison with ``directory_limit=10``."""
    fan = result.fan_out
    return {
        "total": result.directories.total,
        "levels": list(result.directories.levels),
        "fans": fan.directories,
        "fan_max": fan.max,
        "fan_bins": {low: times for low, _, times in fan.histogram if times},
        "fan_ranks": [fan.p50, fan.p90, fan.p99],
        "over_10": fan.over_limit,
        "largest": [(one.path, one.entries) for one in fan.largest],
    }


def units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def counted_paths(paths: list[str]) -> dict[str, Any]:
    """Return the counts that need no tree, with the keys of :func:`reported_paths`."""
    encoded = [os.fsencode(path) for path in paths]
    segments = [path.split("/") for path in paths]
    same = Counter(encoded)
    return {
        "paths": len(same),
        "equal": sum(times for times in same.values() if times > 1),
        "groups": sum(times > 1 for times in same.values()),
        "inside": inside(encoded),
        "firsts": sorted(Counter(Counter(path.split(b"/")[0] for path in same if path).values()).items()),
        "half": half([path.split(b"/")[0] for path in same if path]),
        "bytes": sorted(Counter(map(len, encoded)).items()),
        "units": sorted(Counter(map(units, paths)).items()),
        "segment_bytes": sorted(Counter(len(os.fsencode(one)) for each in segments for one in each).items()),
        "segment_units": sorted(Counter(units(one) for each in segments for one in each).items()),
        "depth": sorted(Counter(map(len, segments)).items()),
    }


def half(firsts: list[bytes]) -> int:
    """Return the number of top-level directories, fullest first, that contain half of all paths."""
    so_far = accumulate(times for _, times in Counter(firsts).most_common())
    return 1 + sum(2 * times < len(firsts) for times in so_far) if firsts else 0


def inside(paths: list[bytes]) -> int:
    """Return the number of paths that are inside another, or contain one."""
    there = set(paths)
    outer = set()
    inner = set()
    for path in there:
        above = os.path.dirname(path)
        while above:
            if above in there:
                outer.add(above)
                inner.add(path)
            above = os.path.dirname(above)
    return sum(path in outer or path in inner for path in paths)


def reported_paths(result: LayoutResult) -> dict[str, Any]:
    """Return the results of a comparison for paths."""
    return {
        "paths": result.collisions.paths,
        "equal": result.collisions.equal,
        "groups": result.collisions.groups["equal"],
        "inside": result.collisions.inside_exact,
        "firsts": list(result.first_segments.histogram),
        "half": result.first_segments.half,
        "bytes": list(result.lengths.path_bytes.histogram),
        "units": list(result.lengths.path_units.histogram),
        "segment_bytes": list(result.lengths.segment_bytes.histogram),
        "segment_units": list(result.lengths.segment_units.histogram),
        "depth": list(result.depth.histogram),
    }
