"""Walking a Pairtree: ratios to what else lists one, in the same run and over the same tree.

    python benchmarks/stores.py [COUNT] [--folder /dev/shm] [--runs 3] [--keep] [--pure] [--record] [--note TEXT]

Makes a Pairtree of COUNT (200,000) properly encapsulated objects of two small files, from HathiTrust's identifiers
where PRESSMARK_CORPORA has them and made ones, and lists it: with Pressmark on one thread and on all cores, with the
Python libraries ``pairtree`` and ``pypairtree`` (each in an environment of its own under build/peers), and with ``find
-type f``, which lists files and not objects, but is what people use. Every time is the best of several runs, ours and
theirs in turn, each in a process of its own whose start is not counted (but find's). The identifiers must be those put
in.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import corpora
import pressmark
from peers.environments import BUILD, Unavailable, python
from pressmark import stores
from report import Report

OBJECTS = 200_000

# Each prints seconds, identifiers and kilobytes of its largest size as JSON.
_LISTING = """
import json, sys, time
{begin}
start = time.perf_counter()
count = 0
for identifier in {listing}:
    count += 1
seconds = time.perf_counter() - start
# Not getrusage: what the parent process had before this program counts there.
largest = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(json.dumps([seconds, count, int(largest[0])]))
"""
PROGRAMS = {
    "pressmark, 1 thread": (
        "from pressmark import stores; store = stores.open(sys.argv[1])",
        "store.objects(threads=1)",
    ),
    "pressmark": ("from pressmark import stores; store = stores.open(sys.argv[1])", "store.objects()"),
    "pairtree": (
        "import logging; logging.disable(); from pairtree import PairtreeStorageFactory; "
        "store = PairtreeStorageFactory().get_store(store_dir=sys.argv[1], uri_base='')",
        "store.list_ids()",
    ),
    "pypairtree": (
        # What its listIDs prints.
        "import os; from pypairtree import pairtree; tree = sys.argv[1] + '/pairtree_root'",
        "(pairtree.deSanitizeString(os.path.split(path)[1]) for path in pairtree.findObjects(tree))",
    ),
}


def identifiers(count: int) -> list[str]:
    """Return so many different identifiers: real ones as far as they reach."""
    real = corpora.real_or_made("hathitrust")
    folder = os.environ.get("PRESSMARK_CORPORA")
    found: set[str] = set()
    if real.endswith("-real") and folder:
        found.update(Path(folder, "hathitrust-ids.txt").read_text(encoding="utf-8").splitlines()[:count])
    for name in ("ark", "hathitrust", "fedora-pid"):
        found.update(corpora.load(name, count, "drawn").ids[: count - len(found)])
    return sorted(found)[:count]


def make(folder: Path, ids: list[str]) -> None:
    """Write the tree as HathiTrust's are: a directory named by the cleaned identifier, two files."""
    store = stores.create("pairtree", folder)
    assert store.layout is not None
    root = folder / "pairtree_root"
    for identifier in ids:
        place = root / store.layout.object_path(identifier)  # type: ignore[attr-defined]
        place.mkdir(parents=True)
        for suffix in ("zip", "mets.xml"):
            (place / f"{place.name}.{suffix}").write_text(f"{suffix} of {identifier}\n", encoding="utf-8")
    # The peers want one, and an empty prefix is none of ours to write.
    (folder / "pairtree_prefix").write_bytes(b"")


def interpreter(peer: str) -> str:
    """Return the Python that has the peer, making its environment if need be."""
    if peer.startswith("pressmark"):
        return sys.executable
    python(peer)
    return str(BUILD / peer / ("Scripts" if os.name == "nt" else "bin") / "python")


def listed(program: str, folder: Path, pure: bool) -> tuple[float, int, int]:
    """Run one listing; return seconds, identifiers and megabytes."""
    begin, listing = PROGRAMS[program]
    environment = {**os.environ, **({"PRESSMARK_IMPLEMENTATION": "pure"} if pure else {})}
    code = _LISTING.format(begin=begin, listing=listing)
    done = subprocess.run(
        [interpreter(program), "-c", code, str(folder)], env=environment, stdout=subprocess.PIPE, check=True
    )
    seconds, count, kilobytes = json.loads(done.stdout)
    return seconds, count, kilobytes // 1024


def with_find(folder: Path) -> tuple[float, int, int]:
    """Run find; return seconds, files and nothing of its memory."""
    import time

    start = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        subprocess.run(["find", str(folder / "pairtree_root"), "-type", "f"], stdout=output, check=True)
        seconds = time.perf_counter() - start
        output.seek(0)
        return seconds, sum(block.count(b"\n") for block in iter(lambda: output.read(1 << 20), b"")), 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=OBJECTS)
    parser.add_argument("--folder", type=Path, default=None, help="where the tree is made; it is removed again")
    parser.add_argument("--tree", type=Path, default=None, help="a tree of an earlier run with --keep")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="leave the tree and say where it is")
    parser.add_argument("--pure", action="store_true", help="measure the pure twin")
    parser.add_argument("--record", action="store_true", help="keep the table under benchmarks/record/")
    parser.add_argument("--note", help="a remark for the record: was the machine quiet?")
    call = parser.parse_args()
    folder = call.tree or Path(tempfile.mkdtemp(prefix="pairtree-", dir=call.folder))
    try:
        ids = identifiers(call.count)
        if call.tree is None:
            make(folder / "store", ids)
        tree = folder / "store"
        found = {record.id for record in stores.open(tree).objects()}
        assert found == set(ids), "the walk does not give back what was put in"
        programs = [name for name in PROGRAMS if not _missing(name)]
        report = Report(f"Walking a Pairtree{' (pure)' if call.pure else ''}")
        if call.note:
            report.say(f"Note: {call.note}", "")
        best: dict[str, tuple[float, int, int]] = {}
        for _ in range(call.runs):
            for name in [*programs, "find -type f"]:
                if name == "find -type f":
                    if not shutil.which("find"):
                        continue
                    figures = with_find(tree)
                else:
                    figures = listed(name, tree, call.pure)
                best[name] = min(best.get(name, figures), figures)
        twin = "pure" if call.pure else pressmark.implementation
        report.say(f"pressmark {pressmark.__version__} ({twin}), {len(ids):,} objects, best of {call.runs}.", "")
        ours = best["pressmark"][0]
        rows = [
            (name, f"{s:.2f}", f"{count:,}", f"{len(ids) / s:,.0f}", str(megabytes or ""), f"{s / ours:.2f}")
            for name, (s, count, megabytes) in best.items()
        ]
        report.table(("", "s", "found", "objects/s", "MB", "times ours"), rows)
        report.finish()
        if call.record:
            print(f"kept in {report.keep()}")
    finally:
        if call.keep or call.tree:
            print(f"the tree is in {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder)


def _missing(name: str) -> bool:
    try:
        interpreter(name)
    except Unavailable as error:
        print(f"{name} is not at hand: {error}", file=sys.stderr)
        return True
    return False


if __name__ == "__main__":
    main()
