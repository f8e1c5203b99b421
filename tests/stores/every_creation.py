"""The creation of an empty store, killed or refused at every single step; run with disk_faults.c preloaded.

    python every_creation.py KIND FOLDER kill|ERRNO|-ERRNO

After each step, the store is absent or complete, and the same call creates or finds it.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pressmark
from pressmark import stores
from pressmark.errors import StoreError
from pressmark.migrate.options import Options
from pressmark.reports import Problem
from pressmark.stores import Store
from support.disk_faults import DiskFault


def wrong(store: Store) -> list[Problem]:
    """Return a store's problems except staged files, which the next change removes."""
    return [problem for problem in store.check().problems if problem.kind != "leftover"]


def main() -> None:
    kind, folder, how = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    fault = DiskFault(how, StoreError)
    layout = pressmark.layout("0003").config() if kind == "ocfl" else None
    given = {"pairtree": {"prefix": "ark:/13030/"}, "vitro": {"namespaces": ["urn:"]}}.get(kind, {})
    source, store = str(folder / "source"), str(folder / "store")
    options = Options(source, "pairtree", store, kind, layout=layout, destination_options=given)
    step = 0
    while True:
        step += 1
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        status = fault.run(step, options.create_destination).status
        where = f"{kind}, change {step}, ended {status}"
        try:
            there = stores.open(folder / "store")
        except StoreError:
            there = None
        assert there is None or not wrong(there), (where, wrong(there))
        assert not wrong(options.create_destination()), where
        if status == 0:
            break
    print(step)


if __name__ == "__main__":
    main()
