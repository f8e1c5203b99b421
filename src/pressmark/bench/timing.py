"""The best of some rounds: what work takes when nothing else is in the way."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Sequence

__all__ = ["best"]


def best(runs: Sequence[Callable[[], object]], seconds: float) -> list[float]:
    """Call ``runs`` in turn, again and again for about ``seconds``, and return the seconds of each one's quickest call.

    In turn, so that whatever else the machine does is in the way of all of them. Each is called twice at least, unless
    that takes far longer than ``seconds``.
    """
    clock = time.perf_counter
    least = [math.inf] * len(runs)
    collecting = gc.isenabled()
    # As timeit does: a collection that falls into a round is none of its work.
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
    # A clock may be too coarse for what was done.
    return [max(one, 1e-9) for one in least]
