"""Walk a Pairtree, next to ``pairtree``, ``pypairtree`` and ``find``.

Creates a Pairtree of --count properly encapsulated objects of two small files, from HathiTrust identifiers if
PRESSMARK_CORPORA has them, and lists it: with Pressmark on one thread and on all cores, with the Python libraries (each
in an environment of its own in build/peers), and with ``find -type f``, which lists files and not objects. Each run has
a process of its own, whose start counts for find only. The identifiers must be those of the tree.
"""

from __future__ import annotations

import argparse
import functools
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pressmark
from benchmarks import processes
from benchmarks.corpora.pairtrees import identifiers, make
from benchmarks.peers.environments import Unavailable, interpreter
from benchmarks.report import Report
from benchmarks.timing import Cost, take_turns
from pressmark import stores

COUNT, RUNS = 200_000, 3

# Prints the seconds and the number of identifiers.
_LISTING = """
import json, sys, time
{begin}
start = time.perf_counter()
count = sum(1 for identifier in {listing})
print(json.dumps([time.perf_counter() - start, count]))
"""
_OURS = "from pressmark import stores; store = stores.open(sys.argv[1])"
PROGRAMS = {
    "pressmark, 1 thread": (_OURS, "store.objects(threads=1)"),
    "pressmark": (_OURS, "store.objects()"),
    "pairtree": (
        "import logging; logging.disable(); from pairtree import PairtreeStorageFactory; "
        "store = PairtreeStorageFactory().get_store(store_dir=sys.argv[1], uri_base='')",
        "store.list_ids()",
    ),
    "pypairtree": (
        # The output of its listIDs.
        "import os; from pypairtree import pairtree; tree = sys.argv[1] + '/pairtree_root'",
        "(pairtree.deSanitizeString(os.path.split(path)[1]) for path in pairtree.findObjects(tree))",
    ),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tree", type=Path, help="a Pairtree of an earlier run with --keep")
    parser.add_argument("--keep", action="store_true", help="keep the Pairtree")
    parser.add_argument("--pure", action="store_true", help="measure the pure implementation")


def run(options: argparse.Namespace, report: Report) -> dict[str, Any]:
    tree = options.tree or Path(tempfile.mkdtemp(prefix="pairtree-", dir=options.folder), "store")
    try:
        ids = identifiers(options.count)
        if options.tree is None:
            make(tree, ids)
            (tree / "pairtree_prefix").write_bytes(b"")  # the peers need one
        found = {record.id for record in stores.open(tree).objects()}
        if found != set(ids):
            report.fail("the walk does not return the identifiers of the tree")
        implementation = "pure" if options.pure else pressmark.implementation
        report.print(f"{len(ids):,} objects, {implementation} implementation, best of {options.runs}.", "")
        return measure(report, options, tree, len(ids))
    finally:
        if options.keep or options.tree:
            print(f"the Pairtree is {tree}", file=sys.stderr)
        else:
            shutil.rmtree(tree.parent)


def measure(report: Report, options: argparse.Namespace, tree: Path, count: int) -> dict[str, Any]:
    subjects = {}
    for name in PROGRAMS:
        try:
            python = sys.executable if name.startswith("pressmark") else str(interpreter(name))
        except Unavailable as error:
            report.print(f"- {name} is not available: {error}")
            continue
        subjects[name] = functools.partial(listed, name, python, tree, count, options.pure)
    if shutil.which("find"):
        subjects["find -type f"] = lambda: processes.run(["find", tree / "pairtree_root", "-type", "f"]).cost
    times = take_turns(subjects, options.runs)
    rows = []
    for name in times.runs:
        best = times.best(name)
        ratio = times.ratio(name, "pressmark")
        memory = f"{best.max_rss >> 20}" if name in PROGRAMS else ""
        rows.append((name, f"{best.seconds:.2f}", f"{count / best.seconds:,.0f}", memory, f"{ratio:.2f}"))
    report.table(("", "s", "objects/s", "MB", "time / ours"), rows)
    return times.facts()


def listed(name: str, python: str, tree: Path, count: int, pure: bool) -> Cost:
    """Run one listing in a process of its own."""
    begin, listing = PROGRAMS[name]
    environment = processes.our_environment() if name.startswith("pressmark") else dict(os.environ)
    environment |= {"PRESSMARK_IMPLEMENTATION": "pure"} if pure else {}
    measured = processes.run([python, "-c", _LISTING.format(begin=begin, listing=listing), tree], environment)
    seconds, found = measured.json()
    assert found == count, f"{name}: {found} objects instead of {count}"
    return measured.cost._replace(seconds=seconds)
