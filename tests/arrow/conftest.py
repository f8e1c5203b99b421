"""Fixtures that detect leaked Arrow exports."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from arrow.foreign import Arrays
from support.implementations import native_is_missing


def outstanding_exports() -> int:
    """Return the number of structures of the native implementation that are not released."""
    if native_is_missing():
        return 0
    from pressmark._kernels.native import _arrow

    count: int = _arrow.outstanding_exports()
    return count


@pytest.fixture(autouse=True)
def _everything_is_released() -> Iterator[None]:
    """After the test no export is outstanding, and each foreign structure was released once."""
    del Arrays.made[:]
    yield
    gc.collect()
    assert outstanding_exports() == 0
    for arrays in Arrays.made:
        assert arrays.given == arrays.released, arrays
    del Arrays.made[:]


@pytest.fixture
def _under(implementation: object) -> None:
    """The implementation, for tests that do not name it."""
