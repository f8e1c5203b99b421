"""Change a store of any kind until killed, and log each operation: run by test_killed.py.

    python killing.py STORE GIVEN LOG SEED

Before each operation ``begin OPERATION IDENTIFIER`` is written to the log, after it ``end``.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

from pressmark import stores
from pressmark.errors import ObjectError

IDENTIFIERS = ("abc", "abcdef", "abcd", "x y:z", "http://example.org/n12", "abcdefg")
VERSIONS = ("one", "two", "three")


def source(kind: str, given: Path, version: str) -> Path:
    """Return the source of a put: for a Vitro object one file, named after the version."""
    return given / version / f"{version}.bin" if kind == "vitro" else given / version


def main() -> None:
    store = stores.open(sys.argv[1])
    given = Path(sys.argv[2])
    log = os.open(sys.argv[3], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    chosen = random.Random(int(sys.argv[4]))
    os.write(1, b"ready\n")
    while True:
        identifier = chosen.choice(IDENTIFIERS)
        operation = chosen.choice(("put", "put", *VERSIONS, "delete", "repair"))
        os.write(log, f"begin\t{operation}\t{identifier}\n".encode())
        try:
            if operation == "delete":
                store.delete(identifier)
            elif operation == "repair":
                store.repair()
            else:
                version = "one" if operation == "put" else operation
                store.put(identifier, source(store.kind, given, version), replace=operation != "put")
        except ObjectError as error:
            if error.kind not in ("exists", "missing"):
                raise
        os.write(log, b"end\n")


if __name__ == "__main__":
    main()
