"""Predict the number of directories for more objects, from the layout if possible, otherwise from samples.

Hashed layouts have a closed form. If a directory has at most ``B`` subdirectories, the expected number of directories
at depth ``k`` is the expected number of distinct values among ``N`` draws from ``B^k``: ``B^k (1 - (1 - B^-k)^N)``.

The growth of other layouts depends on the identifiers. Their interim directories are counted for nested samples of the
identifiers, each about half as large as the one before. Models are fitted to the smaller samples; the two largest are
held out. The model with the best prediction for the held-out samples is then fitted to all samples. The reported error
is that of the prediction for the held-out samples, which have up to four times as many identifiers as the model had
seen. It is not reliable for a thousand times as many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pressmark.compare.result import Growth
from pressmark.layouts import HashAndIdNTuple, HashedNTuple, Layout
from pressmark.paths import Tree

__all__ = ["hashed_directories", "predict_growth"]

#: The largest number of objects to predict for.
FURTHEST = 10**12
# Smaller samples are ignored.
SMALLEST_SAMPLE = 30
# Number of held-out samples: all identifiers, and half of them.
HELD_OUT = 2
# Fewest and most samples to fit to; very small samples say little about large numbers.
FEWEST, MOST = 3, 6


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
    shared = "" if own == 1 else f"assuming that {1 - own:.4%} of the identifiers continue to share a path with another"
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
            held_out=((mapped, interim),),
            note=shared,
        )
    if not interim:
        none = "none of these identifiers needs an interim directory"
        return _grown("exact", "0", {}, lambda _: 0.0, own, mapped, note=_joined(none, shared))
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
    """Return the predictions and the error of a model.

    :param predict: returns the number of interim directories for a number of objects
    :param own: distinct paths per identifier
    :param trial: predicts the held-out samples; ``predict`` if None
    """
    predicted = [(objects, found, round((trial or predict)(objects))) for objects, found in held_out]
    error = max((abs(guess - found) / max(found, 1) for _, found, guess in predicted), default=None)
    points = []
    for objects in sorted({mapped, *(step * 10**power for power in range(3, 12) for step in (1, 3)), FURTHEST}):
        interim = predict(objects)
        points.append((objects, round(interim), round(interim + own * objects)))
    return Growth(
        model=model,
        formula=formula,
        coefficients=dict(coefficients),
        fitted_to=tuple(fitted_to),
        held_out=tuple(predicted),
        error=0.0 if model == "exact" else error,
        note=note,
        points=tuple(points),
    )


# --- fitted models ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Fit:
    formula: str
    coefficients: Mapping[str, float]
    predict: Callable[[int], float]


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return intercept and slope of a least-squares line."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
    return mean_y - slope * mean_x, slope


def _power(samples: Sequence[tuple[int, int]]) -> _Fit:
    """Fit a power law (Heaps' law) with an exponent between 0 and 1."""
    logs = [(math.log(objects), math.log(found)) for objects, found in samples]
    _, slope = _line(logs)
    slope = min(max(slope, 0.0), 1.0)
    # The curve passes through the largest sample, which is the most accurate.
    last, found = max(samples)
    factor = found / last**slope

    return _Fit("a N^b", {"a": factor, "b": slope}, lambda objects: factor * float(objects) ** slope)


def _bending_power(samples: Sequence[tuple[int, int]]) -> _Fit:
    """Fit a power law whose exponent is linear in log N up to twice the range of the samples, then constant."""
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
        "exp(y + integral from x to log N of (b + c min(t, z)) dt), the power limited to 0 … 1",
        {"x": last_x, "y": last_y, "b": base, "c": turn, "z": end},
        predict,
    )


def _area(base: float, turn: float, start: float, stop: float) -> float:
    """Return the integral of ``base + turn * t``, limited to 0 … 1, from ``start`` to ``stop``."""
    if stop < start:
        return -_area(base, turn, stop, start)
    if turn == 0:
        return (stop - start) * min(max(base, 0.0), 1.0)
    marks = sorted({start, stop, *(t for t in (-base / turn, (1 - base) / turn) if start < t < stop)})
    total = 0.0
    for left, right in pairwise(marks):
        middle = base + turn * (left + right) / 2
        # Between two marks the integrand is linear or constant.
        total += (right - left) * min(max(middle, 0.0), 1.0)
    return total


def _linear(samples: Sequence[tuple[int, int]]) -> _Fit:
    """Fit a line: a constant number of directories per object, plus an offset."""
    _, slope = _line([(float(objects), float(found)) for objects, found in samples])
    slope = max(slope, 0.0)
    last, found = max(samples)
    start = max(found - slope * last, 0.0)
    return _Fit("a + b N", {"a": start, "b": slope}, lambda objects: start + slope * objects)


_MODELS = (_power, _bending_power, _linear)


def _fitted(tree: Tree, mapped: int, own: float, note: str) -> Growth:
    samples = [
        (members, directories - min(leaves, directories))
        for members, directories, leaves in tree.samples
        if members >= SMALLEST_SAMPLE and directories > leaves
    ]
    held_out, known = samples[:HELD_OUT], samples[HELD_OUT : HELD_OUT + MOST]
    if len(known) < FEWEST:
        interim = (tree.directories - min(tree.leaves, tree.directories)) / mapped
        few = "too few identifiers to fit a model; the prediction assumes as many interim directories per object as now"
        return _grown(
            "none", "b N", {"b": interim}, lambda objects: interim * objects, own, mapped, note=_joined(few, note)
        )

    def error_of(model: Callable[[Sequence[tuple[int, int]]], _Fit]) -> float:
        predict = model(known).predict
        return max(abs(predict(objects) - found) / found for objects, found in held_out)

    best = min(_MODELS, key=error_of)
    fit = best(samples[:MOST])
    far = f"fitted to {mapped} identifiers; predictions for far larger numbers are extrapolations"
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
        note=_joined(far, note),
    )


def _joined(one: str, other: str) -> str:
    return "; ".join(filter(None, (one, other)))
