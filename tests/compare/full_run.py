"""The long form of ``test_against_trees.py``: many identifiers, one layout's tree after another, and a record of it.

Needs an installed pressmark, Linux, and a folder with room for a few hundred thousand directories; one in memory
(``/dev/shm``) is fastest. Ends with 1 where one number differs.
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
    """Return the identifiers of files, one a line, with made ones up to ``count``, and how many are whose."""
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
    """Make the tree of one layout, count it, remove it; return what is to be recorded."""
    begin = time.perf_counter()
    paths = [path for one in ids if (path := path_of(layout, one)) is not None]
    root = os.fsencode(tempfile.mkdtemp(prefix="compare-trees-", dir=folder))
    try:
        trees.make(root, map(os.fsencode, paths))
        counted = trees.counted(root) | trees.of_paths(paths)
    finally:
        shutil.rmtree(root)
    said = trees.said(result) | trees.said_of_paths(result)
    differences = [key for key in counted if counted[key] != said[key]]
    for key in differences:
        print(f"  {name}: {key}: said {said[key]}, counted {counted[key]}", file=sys.stderr)
    return {
        "layout": name,
        "config": result.config,
        "identifiers_with_a_path": len(paths),
        "unmapped": result.unmapped.count,
        "numbers_compared": len(counted),
        "differences": differences,
        "directories_said": said["total"],
        "directories_found": counted["total"],
        "levels": counted["levels"],
        "largest_fan_out": counted["fan_max"],
        "identifiers_that_share_a_path": counted["equal"],
        "paths_that_many_share": counted["groups"],
        "identifiers_inside_or_around_another": counted["inside"],
        "longest_path": counted["octets"][-1][0],
        "growth": {"model": result.growth.model, "error": result.growth.error, "held_out": result.growth.held_out},
        "seconds": round(time.perf_counter() - begin, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="of identifiers, one a line")
    parser.add_argument("--count", type=int, default=100_000, help="identifiers in all; made ones fill up")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where trees are made")
    parser.add_argument("--record", type=Path, help="a file to write what was found to, as JSON")
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
