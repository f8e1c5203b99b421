"""Time one operation of a tool on a bag, after the imports: the process of each run in ``test_bags.py``.

    python bag_runner.py TOOL OPERATION BAG ALGORITHM WORKERS [DESTINATION]

With the operation "create each" or "validate each", BAG is a folder of bags, one after another.

Prints JSON: the seconds, the number of payload files that the tool reports, and the tool's version. A bag that the tool
does not call valid or complete raises an exception.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import sys
import time
from collections.abc import Callable

# Returns the number of payload files; None if the tool does not report it.
Action = Callable[[], int | None]


def pressmark(operation: str, bag: str, algorithm: str, threads: int, destination: str | None) -> Action:
    from pressmark.bagit import Bag, create, validate

    def opened() -> int:
        return len(Bag.open(bag).payload)

    def checked() -> int:
        report = validate(bag, "full" if operation == "validate" else "complete", threads=threads)
        assert report.ok, report.summary()
        return int(report.counts["files"])

    def made() -> None:
        create(bag, destination, algorithms=algorithm, copy_mode="copy", threads=threads)

    return {"open": opened, "validate": checked, "complete": checked, "create": made}[operation]


def bagit(operation: str, path: str, algorithm: str, processes: int, destination: str | None) -> Action:
    import bagit

    def opened() -> int:
        return len(bagit.Bag(path).payload_entries())

    def checked() -> int:
        bag = bagit.Bag(path)
        bag.validate(processes=processes, completeness_only=operation == "complete")
        return len(bag.payload_entries())

    def made() -> None:
        # It works in place only, so a bag elsewhere needs a copy.
        if destination is not None:
            shutil.copytree(path, destination)
        bagit.make_bag(destination or path, processes=processes, checksums=[algorithm])

    return {"open": opened, "validate": checked, "complete": checked, "create": made}[operation]


def bdbag(operation: str, path: str, algorithm: str, _processes: int, _destination: str | None) -> Action:
    from bdbag import bdbag_api, bdbagit

    def opened() -> int:
        return len(bdbagit.BDBag(path).payload_entries())

    def checked() -> int:
        bag = bdbagit.BDBag(path)
        bag.validate(completeness_only=operation == "complete")
        return len(bag.payload_entries())

    def made() -> None:
        bdbag_api.make_bag(path, algs=[algorithm])

    return {"open": opened, "validate": checked, "complete": checked, "create": made}[operation]


def main() -> None:
    tool, operation, bag, algorithm, workers, *destination = sys.argv[1:]
    tools = {"pressmark": pressmark, "bagit": bagit, "bdbag": bdbag}
    bags = sorted(entry.path for entry in os.scandir(bag)) if operation.endswith(" each") else [bag]
    operation = operation.removesuffix(" each")
    actions = [tools[tool](operation, one, algorithm, int(workers), *(destination or [None])) for one in bags]
    begin = time.perf_counter()
    counts = [action() for action in actions]
    seconds = time.perf_counter() - begin
    files = None if None in counts else sum(filter(None, counts))
    version = sys.modules[tool].__version__ if tool == "pressmark" else importlib.metadata.version(tool)
    print(json.dumps({"seconds": seconds, "files": files, "version": version}))


if __name__ == "__main__":
    main()
