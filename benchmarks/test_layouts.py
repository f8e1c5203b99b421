"""Every layout by implementation by door by corpus, on one thread."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import corpora
from cases import Case, Collection, pairs
from doors import DOORS
from measure import measure

PAIRS = [
    pytest.param(case, collection, id=f"{case.name}-{collection.name}")
    for case, collection in pairs()
    if corpora.available(collection.corpus)
]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("case", "collection"), PAIRS)
def test_map(
    benchmark: BenchmarkFixture,
    case: Case,
    collection: Collection,
    door: str,
    implementation: str,
    request: pytest.FixtureRequest,
) -> None:
    """Map a batch; the paths must be the pure twin's."""
    measure(benchmark, case, collection, door, request.config.getoption("size"))
