"""Growth: the closed form, fitted models, and their errors."""

from __future__ import annotations

import random

import pytest

import pressmark
from pressmark.compare import compare, hashed_directories
from pressmark.compare.result import Growth
from pressmark.layouts import Layout
from support.implementations import Implementation, use

from . import samples


def growth_of(ids: list[str], layout: Layout) -> Growth:
    return compare(ids, [layout]).layouts[0].growth


def test_the_closed_form() -> None:
    """It equals the naive sum for few objects, and keeps its precision for very many."""
    for objects in (0, 1, 2, 17, 1000):
        naive = sum(16**depth * (1 - (1 - 16.0**-depth) ** objects) for depth in range(1, 4))
        assert hashed_directories(objects, 16, 3) == pytest.approx(naive, abs=1e-6)
    assert hashed_directories(10**12, 16, 3) == 16 + 256 + 4096
    # 2^96 directories: no two objects share one. The naive sum would be 0.
    assert hashed_directories(10**12, 16**24, 1) == pytest.approx(10**12, rel=1e-12)
    assert hashed_directories(10**12, 16**32, 4) == pytest.approx(4 * 10**12, rel=1e-12)


def test_real_identifiers() -> None:
    """177,214 identifiers of HathiTrust have 534,749 directories under 3x3 and 238,620 under 2x2."""
    assert hashed_directories(177_214, 16**3, 3) + 177_214 == pytest.approx(534_749, rel=0.0003)
    assert hashed_directories(177_214, 16**2, 2) + 177_214 == pytest.approx(238_548, rel=0.0004)
    assert round(hashed_directories(18_000_000, 16**3, 3) / 1e6, 1) == 29.0
    assert round(hashed_directories(18_000_000, 16**2, 2) / 1e6, 2) == 0.07
    assert round(hashed_directories(18_000_000, 16**2, 3) / 1e6, 1) == 11.1


@pytest.mark.parametrize("name", ["0003 3x3", "0003 2x2", "0004", "0012"])
def test_hashed_trees(pair: tuple[Implementation, Implementation], name: str) -> None:
    """The error is below 0.1 % for tens of thousands of identifiers."""
    with use(pair[0]):
        growth = growth_of([f"mdp.{number}" for number in range(60_000)], samples.layouts()[name])
    ((objects, found, predicted),) = growth.held_out
    assert (growth.model, objects) == ("hashed", 60_000)
    assert growth.error is not None
    assert growth.error < 0.001
    assert abs(predicted - found) / found == growth.error
    assert growth.coefficients == {"B": 16.0 ** (2 if "2x2" in name else 3), "n": 2.0 if "2x2" in name else 3.0}
    here = next(point for point in growth.points if point[0] == 60_000)
    assert here == (60_000, predicted, predicted + 60_000)


def test_flat_trees_do_not_grow(implementation: Implementation) -> None:
    """Flat layouts never have interim directories."""
    growth = growth_of([str(number) for number in range(500)], pressmark.layout("0002"))
    assert (growth.model, growth.error) == ("exact", 0.0)
    assert growth.points[-1] == (10**12, 0, 10**12)


def test_models_are_tested_on_held_out_samples(pair: tuple[Implementation, Implementation]) -> None:
    """The two largest samples are held out, and the error is that of their prediction."""
    drawn = random.Random(4)
    ids = [f"mdp.3901500{drawn.randrange(10**7):07d}" for _ in range(50_000)]
    with use(pair[0]):
        growth = growth_of(ids, pressmark.layout("pairtree"))
        (result,) = compare(ids, [pressmark.layout("pairtree")]).layouts
    assert growth.model == "fitted"
    assert growth.held_out[0][0] == 50_000
    assert growth.held_out[0][1] == result.directories.interim
    assert growth.error == max(abs(predicted - found) / found for _, found, predicted in growth.held_out)
    assert growth.error < 0.1
    assert len(growth.fitted_to) >= 3
    # The prediction matches the current number and is monotonic.
    here = next(point for point in growth.points if point[0] == 50_000)
    assert here[1] == result.directories.interim
    assert [interim for _, interim, _ in growth.points] == sorted(interim for _, interim, _ in growth.points)
    assert growth.points[-1][0] == 10**12


def test_too_few_to_fit(implementation: Implementation) -> None:
    """Without enough identifiers there is no model, and a note says so."""
    growth = growth_of([f"ab{number:04d}" for number in range(40)], pressmark.layout("pairtree"))
    assert (growth.model, growth.error) == ("none", None)
    assert "too few" in growth.note
