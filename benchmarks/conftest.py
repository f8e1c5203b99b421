"""Options and parameters of the benchmarks: ``python -m pytest benchmarks --help`` lists them under "pressmark"."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import checksums
from pressmark import _kernels


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("pressmark")
    group.addoption("--size", type=int, default=checksums.COUNT, help="identifiers in a batch (default %(default)s)")
    group.addoption(
        "--thread-size", type=int, default=200_000, help="identifiers where threads are measured (default %(default)s)"
    )


@pytest.fixture(params=_kernels.IMPLEMENTATIONS)
def implementation(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run with each twin."""
    try:
        switch = checksums.twin(request.param)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("pressmark._kernels.native."):
            raise
        pytest.skip("the native implementation is not built")
    with switch:
        yield request.param
