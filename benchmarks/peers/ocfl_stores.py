"""Programs of the OCFL peers that make, change and validate storage roots, for the tests.

    python -m benchmarks.peers.ocfl_stores [PEER…]      make them in build/peers; all by default
    python -m benchmarks.peers.ocfl_stores --found      print those that are made, with their commands, as JSON

rocfl is its own command line program. The others are libraries, with a short program each that reads a request from
each line of standard input and writes an answer to each line of standard output, both JSON objects.

============  ==========================================================================================================
``create``    make the root ``root`` with the configuration ``layout``, in the OCFL version ``version``
``put``       make the files of the directory ``source`` the next version of the object ``id``, with ``message``,
              ``user`` and ``fixity`` algorithms; a new object has ``algorithm``, ``content`` and ``padding``
``stage``     as ``put``, into a mutable HEAD (ocfl-java)
``commit``    commit the mutable HEAD of the object ``id`` (ocfl-java)
``validate``  return the ``errors`` and ``warnings`` of the objects at ``paths`` and with the identifiers ``ids``
============  ==========================================================================================================

The answer is ``{"answer": …}``, or ``{"error": …}``. ocfl-py is installed with the tests, which have a program for it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers import environments
from benchmarks.peers.environments import BUILD, HERE, Unavailable
from benchmarks.peers.registry import PEERS

__all__ = ["STORES", "Store", "found"]


class Store(NamedTuple):
    """A peer's program for storage roots.

    :ivar needs: what it is made with
    :ivar sources: the files that it is made from
    :ivar make: makes it; raises ``Unavailable``
    :ivar command: of the made program
    """

    name: str
    needs: str
    sources: str
    make: Callable[[Store], object]
    command: Callable[[Store], Sequence[str | Path]]

    @property
    def version(self) -> str:
        """The pinned version."""
        return next(peer.version for peer in PEERS if peer.name == self.name)

    @property
    def state(self) -> str:
        """A digest of all that the program is made from."""
        sources = sorted(HERE.glob(f"{self.name}/{self.sources}")) if self.sources else []
        content = [path.read_bytes() for path in sources if path.is_file()]
        return hashlib.sha256(b"\0".join([self.version.encode(), *content])).hexdigest()

    @property
    def stamp(self) -> Path:
        """The file with the state of the program that was made."""
        return BUILD / self.name / "store-made-from.txt"


STORES = (
    Store(
        "rocfl",
        "cargo",
        "",
        lambda store: environments.cargo_install(store.name, store.version, "--no-default-features"),
        lambda store: (BUILD / store.name / "bin" / store.name,),
    ),
    Store(
        "ocfl-java",
        "Java and Maven",
        "*",
        lambda store: environments.maven(store.name),
        lambda store: environments.java(store.name, "Stores"),
    ),
    Store(
        "ocfl-go",
        "go",
        "**/*",
        lambda store: environments.go(store.name, "./stores", "stores"),
        lambda store: (BUILD / store.name / "stores",),
    ),
)


def found() -> dict[str, list[str]]:
    """Return the commands of the programs that are made."""
    made = [store for store in STORES if store.stamp.exists() and store.stamp.read_text() == store.state]
    return {store.name: list(map(str, store.command(store))) for store in made}


def main() -> int:
    """Make programs, or list those that are made."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [store.name for store in STORES]
    parser.add_argument("peers", nargs="*", metavar="PEER", help=f"one of {', '.join(names)}")
    parser.add_argument("--found", action="store_true", help="print the programs that are made")
    given = parser.parse_args()
    if not set(given.peers) <= set(names):
        parser.error(f"unknown peer; use {', '.join(names)}")
    if given.found:
        print(json.dumps(found()))
        return 0
    failed = 0
    for store in STORES:
        if store.name not in (given.peers or names) or store.name in found():
            continue
        try:
            store.make(store)
        except Unavailable as error:
            print(f"{store.name} {store.version}: {error}; it is made with {store.needs}", file=sys.stderr)
            failed = 1
        else:
            store.stamp.write_text(store.state)
            print(f"{store.name} {store.version}: {' '.join(map(str, store.command(store)))}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
