"""Compare every path of every corpus, layout, implementation and input with ``checksums.json``, by ``-m scale``."""

from __future__ import annotations

import pytest

from benchmarks import checksums, corpora
from benchmarks.cases import Case, Collection, pairs
from benchmarks.inputs import INPUTS, checksum
from pressmark import _kernels

pytestmark = pytest.mark.scale


def test_checksums_are_those_of_the_pure_implementation() -> None:
    assert checksums.stale() == []


@pytest.mark.parametrize(("case", "collection"), pairs(), ids=lambda one: one.name)
def test_paths(case: Case, collection: Collection) -> None:
    if not corpora.available(collection.corpus):
        pytest.skip("this corpus is not here")
    corpus = collection.load(checksums.COUNT)
    layout = case.make(corpus.delimiter)
    wanted = checksums.expected(case.name, collection, checksums.COUNT)
    for name in _kernels.IMPLEMENTATIONS:
        for kind in INPUTS.values():
            for threads in (1, 2) if kind.threaded else (1,):
                with checksums.implementation(name):
                    made = kind.run(layout, kind.prepare(corpus.ids), threads)
                assert checksum(kind.paths(made)) == wanted.sha256, (name, kind.name, threads)
