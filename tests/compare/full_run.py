"""The long version of ``test_against_trees.py``: many identifiers, a real tree for each layout, and a record.

Requires an installed pressmark, Linux, and space for a few hundred thousand directories; ``/dev/shm`` is fastest. The
exit status is 1 if a number differs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from compare import samples, trees
from pressmark.compare import LayoutResult, compare
from pressmark.errors import IdentifierError
from pressmark.layouts import Layout


def identifiers(files: list[Path], count: int) -> tuple[list[bytes], dict[str, int]]:
    """Return the identifiers of files, filled up with generated ones to ``count``, and the number from each source."""
    ids: list[bytes] = []
    sources = {}
    for file in files:
        lines = file.read_bytes().splitlines()
        ids += lines
        sources[file.name] = len(lines)
    drawn = random.Random(8)
    sources["made"] = max(count - len(ids), 0)
    while len(ids) < count:
        digits = drawn.randrange(10**12)
        shapes = (f"mdp.39015{digits % 10**9:09d}", f"uiug.30112{digits % 10**9:09d}", f"uc2.ark:/13960/t{digits:010x}")
        ids.append(shapes[digits % 3].encode())
    return ids, sources


def path_of(layout: Layout, identifier: bytes) -> str | None:
    try:
        return layout.map_id(identifier)
    except IdentifierError:
        return None


def check(name: str, layout: Layout, result: LayoutResult, ids: list[bytes], folder: Path) -> dict[str, Any]:
    """Create, count and remove the tree of one layout; return a row for the record."""
    begin = time.perf_counter()
    paths = [path for one in ids if (path := path_of(layout, one)) is not None]
    root = os.fsencode(tempfile.mkdtemp(prefix="compare-trees-", dir=folder))
    try:
        trees.make(root, map(os.fsencode, paths))
        counted = trees.counted(root) | trees.counted_paths(paths)
    finally:
        shutil.rmtree(root)
    reported = trees.reported(result) | trees.reported_paths(result)
    differences = [key for key in counted if counted[key] != reported[key]]
    for key in differences:
        print(f"  {name}: {key}: reported {reported[key]}, counted {counted[key]}", file=sys.stderr)
    return {
        "layout": name,
        "config": result.config,
        "identifiers_with_a_path": len(paths),
        "unmapped": result.unmapped.count,
        "numbers_compared": len(counted),
        "differences": differences,
        "directories_said": reported["total"],
        "directories_found": counted["total"],
        "levels": counted["levels"],
        "largest_fan_out": counted["fan_max"],
        "identifiers_that_share_a_path": counted["equal"],
        "paths_that_many_share": counted["groups"],
        "identifiers_inside_or_around_another": counted["inside"],
        "longest_path": max((length for length, _ in counted["bytes"]), default=0),
        "growth": {"model": result.growth.model, "error": result.growth.error, "held_out": result.growth.held_out},
        "seconds": round(time.perf_counter() - begin, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="files of identifiers, one per line")
    parser.add_argument(
        "--count", type=int, default=100_000, help="total number of identifiers, filled up with generated ones"
    )
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="directory for the trees")
    parser.add_argument("--record", type=Path, help="write the record to this file, as JSON")
    options = parser.parse_args()
    ids, sources = identifiers(options.files, options.count)
    layouts = samples.layouts(".")
    comparison = compare(ids, list(layouts.values()), names=list(layouts), directory_limit=10)
    rows = []
    for (name, layout), result in zip(layouts.items(), comparison.layouts, strict=True):
        row = check(name, layout, result, ids, options.folder)
        rows.append(row)
        print(
            f"{name}: {row['directories_found']} directories, {row['identifiers_that_share_a_path']} share a path: "
            f"{len(row['differences'])} of {row['numbers_compared']} numbers differ ({row['seconds']} s)"
        )
    record = {
        "identifiers": comparison.identifiers,
        "sources": sources,
        "made": comparison.made,
        "machine": dict(comparison.machine),
        "comparison_seconds": round(comparison.seconds, 2),
        "layouts": rows,
        "equal": not any(row["differences"] for row in rows),
    }
    if options.record:
        options.record.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0 if record["equal"] else 1


if __name__ == "__main__":
    sys.exit(main())
