"""The native implementation: Cython over C, with the same functions and classes as ``pure``.

Everything that the extension modules export is part of it; ``pure`` lists the names that both have, with their types.
"""

from __future__ import annotations

import os

from pressmark._kernels.native._arrow import *  # noqa: F403
from pressmark._kernels.native._digests import *  # noqa: F403
from pressmark._kernels.native._digests import best_level, level, levels, use_level
from pressmark._kernels.native._mapping import *  # noqa: F403
from pressmark._kernels.native._paths import *  # noqa: F403
from pressmark._kernels.native._trees import *  # noqa: F403
from pressmark.errors import PressmarkError

NAME = "native"


def _choose_level() -> str:
    """Select the vector level from PRESSMARK_SIMD, by default the best of this machine, and return its name."""
    wanted = os.environ.get("PRESSMARK_SIMD", "")
    if wanted:
        runnable = levels()[: levels().index(best_level()) + 1]
        if wanted not in runnable:
            raise PressmarkError(f"PRESSMARK_SIMD={wanted}: this machine and build run {', '.join(runnable)}")
        use_level(wanted)
    return str(level())


LEVEL = _choose_level()
# Several threads can run these kernels at the same time.
RELEASES_GIL = True
