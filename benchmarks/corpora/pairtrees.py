"""A Pairtree of many small objects to walk or to migrate."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks import corpora
from pressmark import stores

__all__ = ["identifiers", "make"]


def identifiers(count: int) -> list[str]:
    """Return different identifiers, sorted: the real ones, then generated ones if more are needed."""
    folder = os.environ.get("PRESSMARK_CORPORA")
    found: set[str] = set()
    if corpora.available("hathitrust-real") and folder:
        found.update(Path(folder, "hathitrust-ids.txt").read_text(encoding="utf-8").splitlines()[:count])
    for name in ("ark", "hathitrust", "fedora-pid"):
        found.update(corpora.load(name, count, "drawn").ids[: count - len(found)])
    return sorted(found)[:count]


def make(folder: Path, ids: list[str]) -> None:
    """Write a Pairtree in HathiTrust's form: directories named by the cleaned identifier, with two files each."""
    store = stores.create("pairtree", folder)
    assert store.layout is not None
    for identifier in ids:
        place = folder / "pairtree_root" / store.layout.object_path(identifier)  # type: ignore[attr-defined]
        place.mkdir(parents=True)
        for suffix in ("zip", "mets.xml"):
            (place / f"{place.name}.{suffix}").write_text(f"{suffix} of {identifier}\n", encoding="utf-8")
