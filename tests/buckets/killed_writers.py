"""Processes that update objects of a storage root on a server, and are killed while they do."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from pressmark.buckets import s3
from pressmark.errors import ObjectError
from pressmark.stores.ocfl.root import OcflRoot

__all__ = ["ROOT", "USER", "check_killed_writers", "errors", "no_condition"]

ROOT = "s3://books/root"
USER = {"name": "A Curator", "address": "mailto:curator@example.org"}
IDS = [f"info:x/{number}" for number in range(6)]


def errors(root: OcflRoot) -> list[Any]:
    return [one for one in root.check(digests=True).problems if one.severity == "error"]


def no_condition(over: str) -> dict[str, str]:
    """Replace :func:`pressmark.buckets.s3._condition`, as if the server ignored conditions."""
    return {}


def check_killed_writers(folder: Path, count: int, kills: int, pauses: tuple[float, float], *, claims: bool) -> None:
    """Check that no update that was reported as done is lost, whoever is killed, and that a repair leaves no problem.

    :param folder: of the bucket, on the server
    :param count: number of processes
    :param pauses: the shortest and the longest time between two kills, in seconds
    :param claims: whether claims keep the writers apart, because the server receives no conditions
    """
    root = OcflRoot.create(ROOT, "0003", user=USER, claims=claims)
    for one in IDS:
        root.put(one, {"n": b"0"})
    outputs = [folder.parent / f"writer{number}" for number in range(count)]

    def start(writer: int) -> subprocess.Popen[bytes]:
        with outputs[writer].open("ab") as output:
            command = [sys.executable, __file__, str(writer), str(random.random()), "claims" if claims else ""]
            return subprocess.Popen(command, stdout=output, stderr=output)

    writers = [start(writer) for writer in range(count)]
    end = time.monotonic() + 120
    while not any(b"done" in output.read_bytes() for output in outputs) and time.monotonic() < end:
        time.sleep(0.1)  # on a slow machine, all would be killed before their first update
    for _ in range(kills):
        time.sleep(random.uniform(*pauses))
        chosen = random.randrange(count)
        writers[chosen].send_signal(signal.SIGKILL)
        writers[chosen].wait()
        writers[chosen] = start(chosen)
    for process in writers:
        process.kill()
        process.wait()
    lines = [line.split(" ", 1) for output in outputs for line in output.read_text().splitlines()]
    assert [line for line in lines if line[0] not in ("done", "changed", "exists")] == []
    done = Counter(one for word, one in lines if word == "done")
    assert done.total() > 0, lines
    root = OcflRoot(ROOT, claims=claims)
    root.repair(alone=True)
    assert errors(root) == []
    for one in IDS:
        # A writer may be killed between the decision and its report.
        assert done[one] <= len(root.versions(one)) - 1 <= done[one] + kills + count
    # The directory of the server is a storage root.
    assert errors(OcflRoot(folder / "root")) == []


def write(writer: str, seed: str, claims: str) -> None:
    """Update objects without end, and print what becomes of each update."""
    if claims:
        s3._condition = no_condition
    chance = random.Random(seed)
    root = OcflRoot(ROOT, user={"name": writer}, claims=bool(claims))
    number = 0
    while True:
        number += 1
        one = chance.choice(IDS)
        name = f"{writer}-{seed}-{number}"
        try:
            root.update(one, add={"n": name.encode(), name: os.urandom(chance.choice([10, 3000]))})
            print("done", one, flush=True)
        except ObjectError as error:
            print(error.kind, one, error, flush=True)


if __name__ == "__main__":
    write(*sys.argv[1:])
