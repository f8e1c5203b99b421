"""Identifiers for measurements: any number, of every shape found in preservation stores.

``shapes.py`` generates corpora from a fixed seed, the same on every machine. Real corpora (``...-real``) are read from
the directory in ``PRESSMARK_CORPORA``, if it contains their files. Nothing is written
to disk; the last few corpora stay in memory.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.corpora import shapes
from benchmarks.corpora.draw import Draw
from benchmarks.corpora.hostile import hostile

__all__ = ["HOSTILE_SHARE", "NAMES", "ORDERS", "Corpus", "available", "load", "real_or_made"]

ORDERS = ("sorted", "shuffled")
HOSTILE_SHARE = 0.01
_SEED = "2008-11-25"  # any fixed text; this is the date of the Pairtree draft
# Further identifiers are these with a counter appended, if the shape allows it: ten million take seconds to generate.
_DISTINCT = 100_000


class Corpus(NamedTuple):
    """Identifiers and their origin."""

    name: str
    ids: list[str]
    origin: str
    delimiter: str
    """The end of the prefix in this shape, for the layouts that remove one."""

    def octets(self) -> int:
        """Return the size of all identifiers in bytes of UTF-8."""
        return sum(len(identifier.encode("utf-8", "surrogateescape")) for identifier in self.ids)


class _Source(NamedTuple):
    delimiter: str
    make: Callable[[Draw], str] | None = None
    file: str | None = None
    extensible: bool = True  # an identifier keeps its shape with a counter appended


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
    """Return whether the corpus can be loaded: a generated one always, a real one if its file exists."""
    file = _SOURCES[name].file
    return file is None or _folder_file(file) is not None


def real_or_made(shape: str) -> str:
    """Return the name of the real corpus of ``shape`` if it is available, otherwise of the generated one."""
    return f"{shape}-real" if available(f"{shape}-real") else shape


@functools.lru_cache(maxsize=4)
def load(name: str, count: int, order: str = "sorted", hostile_share: float = 0.0) -> Corpus:
    """Return ``count`` identifiers.

    :param order: ``"sorted"`` by code points, ``"shuffled"``, or ``"drawn"``: in the order of drawing
    :param hostile_share: the share to replace with hostile identifiers, at random positions
    """
    source = _SOURCES[name]
    if source.make is None:
        path = _folder_file(source.file or "")
        if path is None:
            raise LookupError(f"corpus {name}: {source.file} not found in the directory PRESSMARK_CORPORA")
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
        # Sorted by random keys: Python does not promise that random.shuffle stays the same.
        ids = [identifier for _, identifier in sorted([(draw.random(), identifier) for identifier in ids])]
    return Corpus(name, ids, f"{origin}, {order}", source.delimiter)


def _extended(base: list[str], count: int, always: bool = False) -> list[str]:
    """Return ``count`` of ``base``, repeated with a counter appended."""
    if not always and count <= len(base):
        return base[:count]
    return [f"{base[number % len(base)]}{number}" for number in range(count)]
