"""The expected output of every case, as checksums of the pure twin's paths: ``checksums.json``.

    python benchmarks/checksums.py            says which checksums of the file are stale
    python benchmarks/checksums.py --write    makes the file anew

The pure twin makes them, so a benchmark of the native one checks it against the readable transcription.
"""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from typing import NamedTuple

import cases
from doors import DOORS, checksum
from pressmark import _kernels

__all__ = ["COUNT", "Expected", "expected", "twin"]

#: How many identifiers of each collection the committed checksums are of.
COUNT = 10_000
_FILE = Path(__file__).with_name("checksums.json")


class Expected(NamedTuple):
    """What a mapping must give: the checksum, how many failed, and how many bytes the paths have."""

    sha256: str
    failed: int
    octets: int


class twin:
    """Run with the implementation called ``name``: ``with twin("pure"): ...``."""

    def __init__(self, name: str) -> None:
        self.kernels = _kernels.load(name)

    def __enter__(self) -> None:
        self.before, _kernels.active = _kernels.active, self.kernels

    def __exit__(self, *_error: object) -> None:
        _kernels.active = self.before


def _compute(case: cases.Case, collection: cases.Collection, count: int) -> Expected:
    corpus = collection.load(count)
    with twin("pure"):
        door = DOORS["list"]
        paths = list(door.paths(door.run(case.make(corpus.delimiter), door.prepare(corpus.ids), 1)))
    return Expected(checksum(paths), paths.count(b""), sum(map(len, paths)))


@functools.cache
def _committed() -> dict[str, Expected]:
    return {key: Expected(*values) for key, values in json.loads(_FILE.read_text())["cases"].items()}


@functools.cache
def expected(case_name: str, collection: cases.Collection, count: int) -> Expected:
    """Return what the case must give: from the file, or for real corpora and other sizes from the pure twin now."""
    if count == COUNT and not collection.corpus.endswith("-real"):
        return _committed()[f"{case_name} {collection.name}"]
    return _compute(cases.CASES[case_name], collection, count)


def main() -> int:
    """Compare or write the file."""
    made = {
        f"{case.name} {collection.name}": _compute(case, collection, COUNT)
        for case, collection in cases.pairs()
        if not collection.corpus.endswith("-real")
    }
    if "--write" in sys.argv[1:]:
        lines = ",\n".join(f"    {json.dumps(key)}: {json.dumps(list(value))}" for key, value in sorted(made.items()))
        _FILE.write_text(
            f'{{\n  "count": {COUNT},\n  "fields": {json.dumps(Expected._fields)},\n  "cases": {{\n{lines}\n  }}\n}}\n'
        )
        return 0
    stale = sorted(key for key in made.keys() | _committed().keys() if made.get(key) != _committed().get(key))
    print(*(f"stale: {key}" for key in stale), f"{len(made)} checksums, {len(stale)} stale", sep="\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
