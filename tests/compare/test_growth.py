"""Growth: the closed form, and today's number for each object."""

from __future__ import annotations

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
        (result,) = compare([f"mdp.{number}" for number in range(60_000)], [samples.layouts()[name]]).layouts
    growth = result.growth
    assert growth.model == "hashed"
    assert growth.coefficients == {"B": 16.0 ** (2 if "2x2" in name else 3), "n": 2.0 if "2x2" in name else 3.0}
    _, predicted, total = next(point for point in growth.points if point[0] == 60_000)
    assert predicted == pytest.approx(result.directories.interim, rel=0.001)
    assert total == predicted + 60_000


def test_flat_trees_do_not_grow(implementation: Implementation) -> None:
    """Flat layouts never have interim directories."""
    growth = growth_of([str(number) for number in range(500)], pressmark.layout("0002"))
    assert growth.model == "exact"
    assert growth.points[-1] == (10**12, 0, 10**12)


def test_other_trees_grow_as_now(implementation: Implementation) -> None:
    """Without a closed form, each object has as many interim directories as now."""
    ids = [f"ab{number:04d}" for number in range(400)]
    (result,) = compare(ids, [pressmark.layout("pairtree")]).layouts
    growth, interim = result.growth, result.directories.interim
    assert (growth.model, growth.formula, growth.coefficients) == ("count", "b N", {"b": interim / 400})
    assert growth.points[0] == (400, interim, result.directories.total)
    assert growth.points[-1] == (10**12, interim * 10**12 // 400, result.directories.total * 10**12 // 400)
    assert "as many interim directories per object as now" in growth.note


def test_shared_paths_are_assumed_to_stay(implementation: Implementation) -> None:
    """As many identifiers share a path as now, for each model."""
    ids = [f"{space}.{number}" for number in range(100) for space in "ab"]
    growth = growth_of(ids, samples.layouts()["0012"])
    assert (growth.model, growth.points[0][2] - growth.points[0][1]) == ("hashed", 100)
    assert "50.0000% of the identifiers continue to share a path" in growth.note
