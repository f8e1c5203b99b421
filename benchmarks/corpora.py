"""Identifiers to measure with: seeded, of every shape that preservation stores hold, in any number.

    python benchmarks/corpora.py                   lists the corpora: where they come from, lengths, an example
    python benchmarks/corpora.py NAME COUNT        prints identifiers, one a line

The made ones are drawn by ``shapes.py`` and are the same on every machine. The real ones (``...-real``) are read from
the folder that ``PRESSMARK_CORPORA`` names; where it is not set, or lacks the file, they do not exist. Nothing is
written to disk; the last few corpora stay in memory.
"""

from __future__ import annotations

import functools
import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import shapes
from draw import Draw
from hostile import hostile

__all__ = ["HOSTILE_SHARE", "NAMES", "ORDERS", "Corpus", "available", "load", "real_or_made"]

ORDERS = ("sorted", "shuffled")
HOSTILE_SHARE = 0.01
_SEED = "2008-11-25"  # any fixed text; this is the date of the Pairtree draft
# More than so many are these with a counter appended, where the shape allows: ten million then take seconds to make.
_DISTINCT = 100_000


class Corpus(NamedTuple):
    """Identifiers, and what a measurement needs to know of them."""

    name: str
    ids: list[str]
    origin: str
    delimiter: str
    """What ends the prefix in this shape, for the layouts that remove one."""

    def octets(self) -> int:
        """Return how many bytes of UTF-8 the identifiers have together."""
        return sum(len(identifier.encode("utf-8", "surrogateescape")) for identifier in self.ids)


class _Source(NamedTuple):
    delimiter: str
    make: Callable[[Draw], str] | None = None
    file: str | None = None
    extensible: bool = True  # whether a counter at its end leaves an identifier's shape intact


_SOURCES = {
    "hathitrust": _Source(".", shapes.hathitrust),
    "hathitrust-real": _Source(".", file="hathitrust-ids.txt"),
    "ark": _Source("/", shapes.ark),
    "doi": _Source("/", shapes.doi),
    "doi-real": _Source("/", file="dois.txt"),
    "fedora-pid": _Source(":", shapes.fedora_pid),
    "druid": _Source(":", shapes.druid, extensible=False),
    "urn-nbn": _Source(":", shapes.urn_nbn),
    "handle": _Source("/", shapes.handle),
    "uuid": _Source(":", shapes.uuid, extensible=False),
    "vitro": _Source("/", shapes.vitro),
    "disk-path": _Source("/", shapes.disk_path),
}
NAMES = tuple(_SOURCES)


def _folder_file(name: str) -> Path | None:
    folder = os.environ.get("PRESSMARK_CORPORA")
    path = Path(folder, name) if folder else None
    return path if path is not None and path.is_file() else None


def available(name: str) -> bool:
    """Return whether the corpus can be had here: the made ones always, the real ones where their file is."""
    file = _SOURCES[name].file
    return file is None or _folder_file(file) is not None


def real_or_made(shape: str) -> str:
    """Return the name of the real corpus of ``shape`` where it is at hand, else of the made one."""
    return f"{shape}-real" if available(f"{shape}-real") else shape


@functools.lru_cache(maxsize=4)
def load(name: str, count: int, order: str = "sorted", hostile_share: float = 0.0) -> Corpus:
    """Return ``count`` identifiers.

    :param order: ``"sorted"`` by code points, ``"shuffled"``, or ``"drawn"``: as they come
    :param hostile_share: how many of them to replace by the hostile ones, at random places
    """
    source = _SOURCES[name]
    if source.make is None:
        path = _folder_file(source.file or "")
        if path is None:
            raise LookupError(f"corpus {name}: PRESSMARK_CORPORA names no folder with {source.file}")
        ids = _extended(path.read_text(encoding="utf-8").splitlines(), count, always=True)
        origin = f"real identifiers of {source.file}, made unique by a counter appended"
    else:
        draw = Draw(f"{_SEED} {name}")
        distinct = min(count, _DISTINCT) if source.extensible else count
        ids = _extended([source.make(draw) for _ in range(distinct)], count)
        origin = f"made in the shape {name}"
    draw = Draw(f"{_SEED} {name} {order} {hostile_share}")
    if hostile_share:
        ids = [hostile(draw) if draw.chance(hostile_share) else identifier for identifier in ids]
        origin += f", {hostile_share:.0%} hostile"
    if order == "sorted":
        ids.sort()
    elif order == "shuffled":
        # By drawn keys: how random.shuffle draws is not promised to stay.
        ids = [identifier for _, identifier in sorted([(draw.random(), identifier) for identifier in ids])]
    return Corpus(name, ids, f"{origin}, {order}", source.delimiter)


def _extended(base: list[str], count: int, always: bool = False) -> list[str]:
    """Return ``count`` of ``base``, again and again, told apart by a counter at the end."""
    if not always and count <= len(base):
        return base[:count]
    return [f"{base[number % len(base)]}{number}" for number in range(count)]


def main() -> None:
    """List the corpora, or print one."""
    if sys.argv[1:]:
        name, count = sys.argv[1], int(sys.argv[2])
        sys.stdout.writelines(f"{identifier}\n" for identifier in load(name, count, "drawn").ids)
        return
    print(f"{'corpus':16} {'bytes: p5':>9} {'p50':>4} {'p95':>4} {'max':>4}  example")
    for name in NAMES:
        if not available(name):
            print(f"{name:16} not at hand: PRESSMARK_CORPORA")
            continue
        ids = load(name, 10_000, "drawn").ids
        lengths = sorted(len(identifier.encode()) for identifier in ids)
        cuts = statistics.quantiles(lengths, n=20)
        print(f"{name:16} {cuts[0]:9.0f} {cuts[9]:4.0f} {cuts[18]:4.0f} {lengths[-1]:4}  {ids[0]}")


if __name__ == "__main__":
    main()
