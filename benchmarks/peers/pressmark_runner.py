"""Time Pressmark as a peer in a process of its own: one kind of input, one thread.

    python -m benchmarks.peers.pressmark_runner INPUT CONFIG IDENTIFIERS PATHS ROUNDS

Like ``python/runner.py``, but with whole batches. ``PRESSMARK_IMPLEMENTATION`` selects the implementation.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pressmark
from benchmarks.inputs import INPUTS


def main() -> None:
    name, config, source, target, rounds = sys.argv[1:]
    kind = INPUTS[name]
    layout = pressmark.layout_from_config(config)
    ids = kind.prepare(Path(source).read_bytes().decode().split("\0")[:-1])
    times = []
    for _ in range(int(rounds)):
        start = time.perf_counter()
        result = kind.run(layout, ids, 1)
        times.append(time.perf_counter() - start)
    Path(target).write_bytes(b"".join(path + b"\0" for path in kind.paths(result)))
    print(json.dumps({"seconds": times, "runtime": f"Python {sys.version.split()[0]}"}))


if __name__ == "__main__":
    main()
