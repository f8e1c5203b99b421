"""Calls of kernels that return early if they take too long."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TypeVar

from pressmark._kernels.pure.trees import TURN

T = TypeVar("T")


def in_one_turn(call: Callable[[], T]) -> T:
    """Return the result of a call that was complete; on a busy machine, one may take too long."""
    for _ in range(100):
        begin = monotonic()
        result = call()
        if monotonic() - begin < TURN:
            break
    return result
