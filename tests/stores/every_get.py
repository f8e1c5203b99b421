"""A verified copy of an object, killed or refused at every single step; run with disk_faults.c preloaded.

    python every_get.py KIND FOLDER kill|ERRNO|-ERRNO

After each step, the destination is absent or whole, the store is unchanged, and the same command succeeds.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import sys
from pathlib import Path

from click.exceptions import ClickException

from pressmark.cli import main as pressmark
from pressmark.cli.common.console import Failure
from support.disk_faults import DiskFault
from support.trees import snapshot
from ways.stores import make_store

FILES = {"a.txt": b"alpha", "sub/b.txt": b"beta" * 10_000, "sub/deep/c.txt": b""}


def main() -> None:
    kind, folder, how = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    store = make_store(kind, folder / "store", {"x": FILES})
    before = snapshot(store)
    copy = folder / "copy"

    def get() -> bool:
        with contextlib.redirect_stderr(io.StringIO()):
            status = pressmark.main(["store", "get", str(store), "x", str(copy), "--quiet"], standalone_mode=False)
        return status in (0, None)

    get()
    whole = snapshot(copy)
    assert {name.decode(): data for name, data in whole.items() if data is not None}.items() <= FILES.items()
    shutil.rmtree(copy)
    fault = DiskFault(how, Failure, ClickException)
    step = 0
    while True:
        step += 1
        ending = fault.run(step, get)
        where = f"{kind}, change {step}, ended {ending}"
        assert not copy.exists() or snapshot(copy) == whole, where
        assert snapshot(store) == before, where
        shutil.rmtree(copy, ignore_errors=True)
        assert get(), where
        assert snapshot(copy) == whole, where
        assert not list(folder.glob(".pressmark-*")), where
        shutil.rmtree(copy)
        if ending.status == 0:
            break
    print(step)


if __name__ == "__main__":
    main()
