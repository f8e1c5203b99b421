"""The creation of an empty store, killed or refused at every single step; run with disk_faults.c preloaded.

    python every_creation.py KIND FOLDER kill|ERRNO|-ERRNO

After each step, the store is absent or complete, and the same call creates or finds it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from pathlib import Path

import pressmark
from pressmark import stores
from pressmark.errors import StoreError
from pressmark.migrate.options import Options
from pressmark.reports import Problem
from pressmark.stores import Store


def wrong(store: Store) -> list[Problem]:
    """Return a store's problems except staged files, which the next change removes."""
    return [problem for problem in store.check().problems if problem.kind != "leftover"]


def main() -> None:
    kind, folder, how = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    library = ctypes.CDLL(None)
    kill, number = (1, 0) if how == "kill" else (0, int(how))
    layout = pressmark.layout("0003").config() if kind == "ocfl" else None
    given = {"pairtree": {"prefix": "ark:/13030/"}, "vitro": {"namespaces": ["urn:"]}}.get(kind, {})
    source, store = str(folder / "source"), str(folder / "store")
    options = Options(source, "pairtree", store, kind, layout=layout, destination_options=given)
    step = 0
    while True:
        step += 1
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        child = os.fork()
        if child == 0:
            code = 9
            try:
                library.disk_arm(kill, step, number)
                options.create_destination()
                code = 0 if library.disk_changes() < step else 4
            except StoreError as error:
                code = 3 if "\n" not in str(error) else 5
            finally:
                os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        where = f"{kind}, change {step}, ended {status}"
        assert status in ((0, -9) if kill else (0, 3, 4)), where
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
