"""The shortest of several rounds: the time that work takes when nothing else disturbs it."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Sequence

__all__ = ["best"]


def best(runs: Sequence[Callable[[], object]], seconds: float) -> list[float]:
    """Call ``runs`` in turn for about ``seconds``, and return the shortest time of each in seconds.

    They take turns, so other load on the machine affects all of them equally. Each is called at least twice, unless one
    round takes far longer than ``seconds``.
    """
    clock = time.perf_counter
    least = [math.inf] * len(runs)
    collecting = gc.isenabled()
    # As timeit does: a garbage collection during a round is not part of its work.
    gc.disable()
    try:
        begin = clock()
        rounds = 0
        while rounds == 0 or clock() - begin < (seconds if rounds > 1 else 2 * seconds):
            for number, run in enumerate(runs):
                start = clock()
                run()
                least[number] = min(least[number], clock() - start)
            rounds += 1
    finally:
        if collecting:
            gc.enable()
    # The clock may be too coarse for short work.
    return [max(one, 1e-9) for one in least]
