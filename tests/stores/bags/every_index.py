"""Every change of the disk while the index of a folder of bags is written, killed or refused by the system.

    python every_index.py FOLDER kill|ERRNO|-ERRNO

Run with disk_faults.c preloaded. For each way to write the index and each change of the disk in it, a child process
that fails at that change looks for a bag. It must find what is there. So must the next process, which writes the index.
"""

from __future__ import annotations

import shutil
import sys
from functools import partial
from itertools import count
from pathlib import Path

from pressmark.stores.bags.bag_folder import BagFolder
from stores.bags.test_bag_index import COUNT, bag, is_missing, look, names_in_work
from support.disk_faults import FAILED, FINISHED, DiskFault


def find(folder: Path) -> bool:
    """Look for bags, as one process."""
    store = BagFolder(folder)
    return not is_missing(store, "x:1") and not is_missing(store, "id:3") and is_missing(store, "none")


def prepare(folder: Path, way: str, index: bytes) -> None:
    """Restore the work directory before the index is written in one way."""
    work = folder / ".pressmark-work"
    shutil.rmtree(work, ignore_errors=True)
    if way != "created":
        work.mkdir()
        (work / "index").write_bytes(index if way == "updated" else index[: len(index) // 2])


def main() -> None:
    top, how = Path(sys.argv[1]), sys.argv[2]
    folder, fault, cases = top / "bags", DiskFault(how), 0
    for number in range(COUNT):
        bag(folder / f"bag-{number}", f"id:{number}")
    look(folder)
    index = (folder / ".pressmark-work" / "index").read_bytes()
    bag(folder / "foreign", "x:1")
    for way in ("created", "updated", "replaced"):
        for step in count(1):
            prepare(folder, way, index)
            ending = fault.run(step, partial(find, folder))
            where = f"{way}, change {step}, {ending}"
            assert ending.status != FAILED, where
            assert find(folder), where
            assert set(names_in_work(folder)) <= {"index", "lock"}, where
            assert not BagFolder(folder).check().problems, where
            if ending.status == FINISHED:
                break
            cases += 1
    print(cases)


if __name__ == "__main__":
    main()
