"""Identifiers to measure with: real ones where they are at hand, made ones of the same shape elsewhere."""

from __future__ import annotations

import os
import random
from pathlib import Path

__all__ = ["hathitrust"]

_SEED = 20081125  # any fixed number; this is the date of the Pairtree draft
_FOLDERS = (os.environ.get("PRESSMARK_CORPORA", ""), "../shared/corpora")


def _real(name: str) -> list[str] | None:
    for folder in filter(None, _FOLDERS):
        path = Path(folder, name)
        if path.exists():
            return path.read_text().splitlines()
    return None


def _made_like_hathitrust(count: int) -> list[str]:
    """Namespace, dot, and in the shares of the real ones: barcodes, ARKs, letters with digits, ``$b`` numbers."""
    chosen = random.Random(_SEED)
    ids = []
    for _ in range(count):
        kind = chosen.random()
        if kind < 0.67:
            ids.append(f"{chosen.choice(['mdp', 'uc1', 'nyp'])}.{chosen.randrange(10**13, 10**14)}")
        elif kind < 0.81:
            name = "".join(chosen.choices("0123456789bcdfghjkmnpqrstvwxz", k=8))
            ids.append(f"{chosen.choice(['uc2', 'aeu', 'loc'])}.ark:/13960/t{name}")
        elif kind < 0.94:
            ids.append(f"uva.x{chosen.randrange(10**9):09d}")
        else:
            ids.append(f"uc1.$b{chosen.randrange(10**6)}")
    return ids


def hathitrust(count: int) -> tuple[list[str], str]:
    """Return ``count`` identifiers, each made unique by a counter appended, and where they come from."""
    base, origin = _real("hathitrust-ids.txt"), "real HathiTrust identifiers"
    if base is None:
        base, origin = _made_like_hathitrust(90_000), "made in the shape of HathiTrust identifiers"
    return [f"{base[number % len(base)]}{number}" for number in range(count)], origin
