"""How many directories there will be: from the layout itself where that says it, otherwise from samples.

Trees of digests have a closed form: with ``B`` directories at most in one and ``N`` objects, the tuples of depth ``k``
are as many as there are different values among ``N`` draws from ``B^k``, on average ``B^k (1 - (1 - B^-k)^N)``.

Other trees grow as the identifiers do. Their interim directories are counted for nested samples of the identifiers,
each about half of the one before; models are fitted to the smaller samples, the larger are held out, and the model that
predicts those best is fitted to all. The error is that of the prediction of what was held out: four times as many
identifiers as the model had seen. Nothing proves it a thousand times further out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pressmark.compare.result import Growth
from pressmark.layouts import HashAndIdNTuple, HashedNTuple, Layout
from pressmark.paths import Tree

__all__ = ["growth", "hashed_directories"]

#: Up to so many objects.
FURTHEST = 10**12
# Samples below are too small to say anything.
SMALLEST_SAMPLE = 30
# The largest samples, which are held out: all identifiers, and half of them.
HELD_OUT = 2
# So many samples are fitted to at least, and at most: what is far away says little of what comes.
FEWEST, MOST = 3, 6


def hashed_directories(objects: float, fan: int, tuples: int) -> float:
    """Return how many interim directories a tree of digests has on average.

    >>> round(hashed_directories(177_214, 16**3, 3))
    357591
    >>> round(hashed_directories(10**12, 16**2, 2))
    65792

    :param objects: how many
    :param fan: directories in a directory at most: 16 to the power of the tuples' size
    :param tuples: their number
    """
    total = 0.0
    for depth in range(1, tuples + 1):
        places = float(fan**depth)
        # As written above, but nothing is lost where a place is one of very many.
        total -= places * math.expm1(objects * math.log1p(-1 / places))
    return total


def growth(layout: Layout, tree: Tree, mapped: int) -> Growth:
    """Return how the directories of a layout grow.

    :param tree: of the identifiers that there are
    :param mapped: how many they are
    """
    if not mapped:
        return Growth(note="no identifier has a path")
    own = min(tree.leaves, tree.directories) / mapped
    interim = tree.directories - min(tree.leaves, tree.directories)
    shared = (
        "" if own == 1 else f"{1 - own:.4%} of the identifiers have no path of their own, and it is taken to stay so"
    )
    if isinstance(layout, (HashAndIdNTuple, HashedNTuple)) and layout.number_of_tuples:
        fan, tuples = 16**layout.tuple_size, layout.number_of_tuples
        return _grown(
            "hashed",
            "sum over k = 1 .. n of B^k (1 - (1 - B^-k)^N)",
            {"B": float(fan), "n": float(tuples)},
            # Identifiers that share a path are one draw.
            lambda objects: hashed_directories(own * objects, fan, tuples),
            own,
            mapped,
            held_out=((mapped, interim),),
            note=shared,
        )
    if not interim:
        none = "no identifier here needs an interim directory"
        return _grown("exact", "0", {}, lambda _: 0.0, own, mapped, note=_both(none, shared))
    return _fitted(tree, mapped, own, shared)


def _grown(
    model: str,
    formula: str,
    coefficients: Mapping[str, float],
    predict: Callable[[int], float],
    own: float,
    mapped: int,
    *,
    held_out: Sequence[tuple[int, int]] = (),
    fitted_to: Sequence[tuple[int, int]] = (),
    trial: Callable[[int], float] | None = None,
    note: str = "",
) -> Growth:
    """Put together what is known of a model.

    :param predict: interim directories of so many objects
    :param own: different paths for each identifier
    :param trial: what predicts what is held out, where that is not the same
    """
    tried = [(objects, found, round((trial or predict)(objects))) for objects, found in held_out]
    error = max((abs(said - found) / max(found, 1) for _, found, said in tried), default=None)
    points = []
    for objects in sorted({mapped, *(step * 10**power for power in range(3, 12) for step in (1, 3)), FURTHEST}):
        interim = predict(objects)
        points.append((objects, round(interim), round(interim + own * objects)))
    return Growth(
        model=model,
        formula=formula,
        coefficients=dict(coefficients),
        fitted_to=tuple(fitted_to),
        held_out=tuple(tried),
        error=0.0 if model == "exact" else error,
        note=note,
        points=tuple(points),
    )


# --- models that are fitted ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Fit:
    """A model with its coefficients."""

    formula: str
    coefficients: Mapping[str, float]
    predict: Callable[[int], float]


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return intercept and slope of the line of least squares."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
    return mean_y - slope * mean_x, slope


def _power(samples: Sequence[tuple[int, int]]) -> _Fit:
    """Directories grow with a power of the objects (Heaps' law); never faster than they, from the last sample on."""
    logs = [(math.log(objects), math.log(found)) for objects, found in samples]
    _, slope = _line(logs)
    slope = min(max(slope, 0.0), 1.0)
    # Through the largest sample: what is known best.
    last, found = max(samples)
    factor = found / last**slope

    return _Fit("a N^b", {"a": factor, "b": slope}, lambda objects: factor * float(objects) ** slope)


def _bent(samples: Sequence[tuple[int, int]]) -> _Fit:
    """As before, with a power that changes as steadily as it did among the samples, for as long again."""
    ordered = sorted(samples)
    logs = [(math.log(objects), math.log(found)) for objects, found in ordered]
    slopes = [((x + u) / 2, (v - y) / (u - x)) for (x, y), (u, v) in pairwise(logs) if u > x]
    base, turn = _line(slopes)
    last_x, last_y = logs[-1]
    end = 2 * last_x - logs[0][0]

    def predict(objects: int) -> float:
        x = math.log(objects)
        steady = min(x, end)
        rest = (x - steady) * min(max(base + turn * end, 0.0), 1.0)
        return math.exp(last_y + _area(base, turn, last_x, steady) + rest)

    return _Fit(
        "exp(y + integral from x to log N of (b + c min(t, z)) dt), the power kept within 0 and 1",
        {"x": last_x, "y": last_y, "b": base, "c": turn, "z": end},
        predict,
    )


def _area(base: float, turn: float, start: float, stop: float) -> float:
    """Return the integral of ``base + turn * t``, kept within 0 and 1, from ``start`` to ``stop``."""
    if stop < start:
        return -_area(base, turn, stop, start)
    if turn == 0:
        return (stop - start) * min(max(base, 0.0), 1.0)
    marks = sorted({start, stop, *(t for t in (-base / turn, (1 - base) / turn) if start < t < stop)})
    total = 0.0
    for left, right in pairwise(marks):
        middle = base + turn * (left + right) / 2
        # Between two marks it is a line, or one of its bounds.
        total += (right - left) * min(max(middle, 0.0), 1.0)
    return total


def _straight(samples: Sequence[tuple[int, int]]) -> _Fit:
    """Every object brings as many directories, beside some that are there from the start."""
    _, slope = _line([(float(objects), float(found)) for objects, found in samples])
    slope = max(slope, 0.0)
    last, found = max(samples)
    start = max(found - slope * last, 0.0)
    return _Fit("a + b N", {"a": start, "b": slope}, lambda objects: start + slope * objects)


_MODELS = (_power, _bent, _straight)


def _fitted(tree: Tree, mapped: int, own: float, note: str) -> Growth:
    samples = [
        (members, directories - min(leaves, directories))
        for members, directories, leaves in tree.samples
        if members >= SMALLEST_SAMPLE and directories > leaves
    ]
    # Two samples of nearly the same size say nothing of growth.
    held_out, known = samples[:HELD_OUT], samples[HELD_OUT : HELD_OUT + MOST]
    if len(known) < FEWEST:
        interim = (tree.directories - min(tree.leaves, tree.directories)) / mapped
        few = "too few identifiers to fit a model to: interim directories are taken to grow with the objects"
        return _grown(
            "none", "b N", {"b": interim}, lambda objects: interim * objects, own, mapped, note=_both(few, note)
        )

    def error_of(model: Callable[[Sequence[tuple[int, int]]], _Fit]) -> float:
        predict = model(known).predict
        return max(abs(predict(objects) - found) / found for objects, found in held_out)

    best = min(_MODELS, key=error_of)
    fit = best(samples[:MOST])
    far = f"fitted to {mapped} identifiers; what is much further out is a continuation, not a measurement"
    return _grown(
        "fitted",
        fit.formula,
        fit.coefficients,
        fit.predict,
        own,
        mapped,
        fitted_to=samples[:MOST],
        held_out=held_out,
        trial=best(known).predict,
        note=_both(far, note),
    )


def _both(one: str, other: str) -> str:
    return "; ".join(filter(None, (one, other)))
