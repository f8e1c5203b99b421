"""A queue in memory or in a file."""

from __future__ import annotations

import pytest

from pressmark.fs.disk_queue import DiskQueue


@pytest.mark.parametrize("in_memory", [10, 1 << 20])
def test_order(monkeypatch: pytest.MonkeyPatch, in_memory: int) -> None:
    """Items are returned in order, from memory or from a file."""
    monkeypatch.setattr("pressmark.fs.disk_queue.IN_MEMORY", in_memory)
    with DiskQueue[tuple[bytes, int | None]]() as queue:
        items = [(b"x" * number, number or None) for number in range(100)]
        for item in items:
            queue.add(item)
        assert list(queue) == items
    with DiskQueue[bytes]() as empty:
        assert list(empty) == []
