"""Predict the number of directories for more objects: by the layout's formula, or by the present number per object.

Hashed layouts have a closed form. If a directory has at most ``B`` subdirectories, the expected number of directories
at depth ``k`` is the expected number of distinct values among ``N`` draws from ``B^k``: ``B^k (1 - (1 - B^-k)^N)``.

The growth of other layouts depends on the identifiers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from pressmark.compare.result import Growth
from pressmark.layouts import HashAndIdNTuple, HashedNTuple, Layout
from pressmark.paths import Tree

__all__ = ["hashed_directories", "predict_growth"]

#: The largest number of objects to predict for.
FURTHEST = 10**12


def hashed_directories(objects: float, fan_out: int, tuples: int) -> float:
    """Return the expected number of interim directories in a hashed layout.

    >>> round(hashed_directories(177_214, 16**3, 3))
    357591
    >>> round(hashed_directories(10**12, 16**2, 2))
    65792

    :param objects: number of objects
    :param fan_out: most subdirectories of a directory: 16 to the power of the tuple size
    :param tuples: number of tuples
    """
    total = 0.0
    for depth in range(1, tuples + 1):
        places = float(fan_out**depth)
        # The closed form, without loss of precision for very small ``1 / places``.
        total -= places * math.expm1(objects * math.log1p(-1 / places))
    return total


def predict_growth(layout: Layout, tree: Tree, mapped: int) -> Growth:
    """Predict how the number of directories grows with the number of objects.

    :param tree: the tree of the identifiers
    :param mapped: number of identifiers with a path
    """
    if not mapped:
        return Growth(note="no identifier has a path")
    own = min(tree.leaves, tree.directories) / mapped
    interim = tree.directories - min(tree.leaves, tree.directories)
    notes = [f"assuming that {1 - own:.4%} of the identifiers continue to share a path with another"] if own < 1 else []
    if isinstance(layout, (HashAndIdNTuple, HashedNTuple)) and layout.number_of_tuples:
        fan_out, tuples = 16**layout.tuple_size, layout.number_of_tuples
        return _grown(
            "hashed",
            "sum over k = 1 .. n of B^k (1 - (1 - B^-k)^N)",
            {"B": float(fan_out), "n": float(tuples)},
            # Identifiers that share a path are one draw.
            lambda objects: hashed_directories(own * objects, fan_out, tuples),
            own,
            mapped,
            notes,
        )
    if not interim:
        notes.insert(0, "none of these identifiers needs an interim directory")
        return _grown("exact", "0", {}, lambda _: 0.0, own, mapped, notes)
    each = interim / mapped
    notes.insert(0, "assuming as many interim directories per object as now")
    return _grown("count", "b N", {"b": each}, lambda objects: each * objects, own, mapped, notes)


def _grown(
    model: str,
    formula: str,
    coefficients: Mapping[str, float],
    predict: Callable[[int], float],
    own: float,
    mapped: int,
    notes: list[str],
) -> Growth:
    """Return the predictions of a model.

    :param predict: returns the number of interim directories for a number of objects
    :param own: distinct paths per identifier
    """
    points = []
    for objects in sorted({mapped, *(step * 10**power for power in range(3, 12) for step in (1, 3)), FURTHEST}):
        interim = predict(objects)
        points.append((objects, round(interim), round(interim + own * objects)))
    return Growth(model, formula, dict(coefficients), "; ".join(notes), tuple(points))
