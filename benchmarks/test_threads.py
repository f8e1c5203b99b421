"""Every layout by implementation by threaded door, on one and on two threads."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from cases import CASES, Collection
from doors import DOORS, arrow_threads
from measure import measure


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("door", [door.name for door in DOORS.values() if door.threaded])
@pytest.mark.parametrize("case", CASES)
def test_threads(
    benchmark: BenchmarkFixture,
    case: str,
    door: str,
    threads: int,
    implementation: str,
    request: pytest.FixtureRequest,
) -> None:
    """Map a batch of several blocks; the order of the paths must be that of the identifiers."""
    if door == "arrow" and not arrow_threads():
        pytest.skip("the Arrow door takes no threads here")
    # The pure twin holds the interpreter, so threads gain nothing: enough identifiers to be spread, and no more.
    size = request.config.getoption("thread_size") // (4 if implementation == "pure" else 1)
    collection = Collection("druid" if case == "0010" else "hathitrust", "shuffled")
    measure(benchmark, CASES[case], collection, door, size, threads)
