"""Time Pressmark as a peer among its peers, in a process of its own: one door, one thread.

    python pressmark_peer.py DOOR CONFIG IDENTIFIERS PATHS ROUNDS

As ``peers/python/runner.py``, but a door takes the whole batch, as its users give it.
``PRESSMARK_IMPLEMENTATION`` chooses the twin.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import doors
import pressmark


def main() -> None:
    """Read, map in rounds, write."""
    name, config, source, target, rounds = sys.argv[1:]
    door = doors.DOORS[name]
    layout = pressmark.layout_from_config(config)
    ids = door.prepare(Path(source).read_bytes().decode().split("\0")[:-1])
    times = []
    for _ in range(int(rounds)):
        start = time.perf_counter()
        result = door.run(layout, ids, 1)
        times.append(time.perf_counter() - start)
    Path(target).write_bytes(b"".join(path + b"\0" for path in door.paths(result)))
    print(json.dumps({"seconds": times, "runtime": f"Python {sys.version.split()[0]}"}))


if __name__ == "__main__":
    main()
