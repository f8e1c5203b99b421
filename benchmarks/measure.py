"""One measurement: time a door, then assert the checksum of what it gave, and write down what the times mean."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from cases import Case, Collection
from checksums import expected
from doors import DOORS, checksum, has_arrow
from pressmark import _kernels

__all__ = ["measure"]

# Enough for the best to settle; the pure twin is slow and steady.
ROUNDS = {"native": 7, "pure": 3}


def measure(
    benchmark: BenchmarkFixture, case: Case, collection: Collection, door_name: str, count: int, threads: int = 1
) -> None:
    """Benchmark ``case`` on ``count`` identifiers of ``collection`` through a door, and check every path."""
    if door_name == "arrow" and not has_arrow():
        pytest.skip("no Arrow door here (pyarrow, or Layout.map_arrow)")
    door = DOORS[door_name]
    corpus = collection.load(count)
    layout = case.make(corpus.delimiter)
    prepared = door.prepare(corpus.ids)
    results: list[Any] = []

    def run() -> None:
        results[:] = [door.run(layout, prepared, threads)]

    implementation = _kernels.active.NAME
    benchmark.group = f"{case.name} {collection.name}"
    benchmark.pedantic(run, rounds=ROUNDS[implementation], warmup_rounds=1)

    wanted = expected(case.name, collection, count)
    assert checksum(door.paths(results[0])) == wanted.sha256
    benchmark.extra_info.update(
        identifiers=count,
        failed=wanted.failed,
        implementation=implementation,
        level=_kernels.active.LEVEL,
        door=door_name,
        threads=threads,
        origin=corpus.origin,
    )
    if benchmark.stats is not None:  # None under --benchmark-disable
        seconds = benchmark.stats.stats.min
        benchmark.extra_info.update(
            identifiers_per_second=round(count / seconds),
            input_megabytes_per_second=round(corpus.octets() / seconds / 1e6, 1),
            output_megabytes_per_second=round(wanted.octets / seconds / 1e6, 1),
        )
