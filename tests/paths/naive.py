"""Collisions by comparing all pairs of paths, and name checks, both from the definitions alone."""

from __future__ import annotations

import unicodedata
from collections import Counter


def text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def nfd(path: str) -> str:
    return unicodedata.normalize("NFD", path)


def key(path: bytes) -> str:
    return nfd(nfd(text(path)).casefold())


def above(outer: str, inner: str) -> bool:
    """Whether one path is a proper ancestor of another, by segments; the empty path is an ancestor of all others."""
    if not outer:
        return bool(inner)
    segments = outer.split("/")
    return len(inner.split("/")) > len(segments) and inner.split("/")[: len(segments)] == segments


def totals(paths: list[bytes]) -> tuple[int, ...]:
    """Return the numbers of ``Totals``; spellings with different keys are not compared."""

    def sharing(of: list[object]) -> int:
        counts = Counter(of)
        return sum(count for count in counts.values() if count > 1)

    inside = exact = 0
    for path in paths:
        inside += any(above(key(path), key(other)) or above(key(other), key(path)) for other in paths)
        exact += any(above(text(path), text(other)) or above(text(other), text(path)) for other in paths)
    return (
        len(paths),
        sharing(list(paths)),
        sharing([(key(path), text(path).casefold()) for path in paths]),
        sharing([nfd(text(path)) for path in paths]),
        sharing([key(path) for path in paths]),
        inside,
        exact,
    )


def collisions(paths: list[bytes]) -> set[tuple[str, frozenset[int], bool]]:
    """Return kind, the numbers of all members, and whether it collides without folding."""
    found = set()
    for path in set(paths):
        same = frozenset(number for number, other in enumerate(paths) if other == path)
        if len(same) > 1:
            found.add(("equal", same, True))
    for one in {key(path) for path in paths}:
        same = frozenset(number for number, other in enumerate(paths) if key(other) == one)
        spelled = {paths[number] for number in same}
        if len(spelled) > 1:
            cases = {text(path).casefold() for path in spelled}
            found.add(("case" if len(cases) == 1 else "normalization", same, False))
        inner = frozenset(number for number, other in enumerate(paths) if above(one, key(other)))
        if inner:
            exact = any(above(text(paths[outer]), text(paths[number])) for outer in same for number in inner)
            found.add(("inside", same | inner, exact))
    return found
