"""What two commits are compared by."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.repository


@pytest.mark.parametrize(
    ("first", "second", "is_slower"),
    [
        # A slow process of A does not hide a slowdown, and a fast one of it does not look like one.
        ([1.00, 1.01, 1.20, 1.00, 1.02], [1.10, 1.10, 1.11, 1.12, 1.10], True),
        ([0.80, 1.01, 1.00, 1.00, 1.02], [1.01, 1.00, 1.02, 1.01, 1.00], False),
        ([1.00, 1.01, 1.00, 1.00, 1.02], [1.20, 1.00, 1.02, 1.01, 1.00], False),
        # Of ten, three at each end are left out.
        ([1.00, 1.01, 1.20, 1.00, 1.02, 1.15, 1.01, 1.20, 1.00, 1.02], [1.10] * 8 + [1.00, 1.01], True),
        ([0.80, 0.85, 0.82, 1.00, 1.02, 1.01, 1.01, 1.02, 1.00, 1.02], [1.02] * 5 + [1.00] * 5, False),
        # Times that vary more than they differ.
        ([1.00, 1.30, 0.90, 1.10, 1.20], [1.25, 1.10, 1.40, 1.00, 1.30], False),
    ],
)
def test_bounds_of_processes(first: list[float], second: list[float], is_slower: bool) -> None:
    side_by_side = pytest.importorskip("benchmarks.side_by_side")
    low, high = side_by_side.bounds_of_processes(first, second)
    assert low <= high
    assert (high < 0.95) == is_slower
