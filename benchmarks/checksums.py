"""The expected paths of every case, as checksums of the pure implementation's output: ``checksums.json``.

The native implementation is thus checked against the readable transcription of the specifications.
``python -m benchmarks.checksums`` writes the file.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.cases import CASES, Case, Collection, pairs
from benchmarks.inputs import INPUTS, checksum
from pressmark import _kernels

__all__ = ["COUNT", "Expected", "expected", "implementation", "stale", "write"]

#: The size of the collections in ``checksums.json``.
COUNT = 10_000
_FILE = Path(__file__).with_name("checksums.json")


class Expected(NamedTuple):
    """The expected output of a mapping: its checksum, the number of refused identifiers, the bytes of all paths."""

    sha256: str
    failed: int
    octets: int


@contextmanager
def implementation(name: str) -> Iterator[None]:
    """Run with the implementation called ``name``."""
    before, _kernels.active = _kernels.active, _kernels.load(name)
    try:
        yield
    finally:
        _kernels.active = before


def _compute(case: Case, collection: Collection, count: int) -> Expected:
    corpus = collection.load(count)
    with implementation("pure"):
        kind = INPUTS["list"]
        paths = list(kind.paths(kind.run(case.make(corpus.delimiter), kind.prepare(corpus.ids), 1)))
    return Expected(checksum(paths), paths.count(b""), sum(map(len, paths)))


@functools.cache
def _committed() -> dict[str, Expected]:
    return {key: Expected(*values) for key, values in json.loads(_FILE.read_text())["cases"].items()}


@functools.cache
def expected(case_name: str, collection: Collection, count: int) -> Expected:
    """Return the expected output: from the file, or computed for real corpora and other sizes."""
    if count == COUNT and not collection.corpus.endswith("-real"):
        return _committed()[f"{case_name} {collection.name}"]
    return _compute(CASES[case_name], collection, count)


def _computed() -> dict[str, Expected]:
    return {
        f"{case.name} {collection.name}": _compute(case, collection, COUNT)
        for case, collection in pairs()
        if not collection.corpus.endswith("-real")
    }


def stale() -> list[str]:
    """Return the entries of ``checksums.json`` that the pure implementation contradicts."""
    made, committed = _computed(), _committed()
    return sorted(key for key in made.keys() | committed.keys() if made.get(key) != committed.get(key))


def write() -> None:
    """Write ``checksums.json`` from the pure implementation's paths."""
    lines = ",\n".join(f"    {json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(_computed().items()))
    _FILE.write_text(
        f'{{\n  "count": {COUNT},\n  "fields": {json.dumps(Expected._fields)},\n  "cases": {{\n{lines}\n  }}\n}}\n'
    )


if __name__ == "__main__":
    write()
