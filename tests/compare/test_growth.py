"""Growth: the closed form, models that are fitted, and how far they may be believed."""

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
    """As the sum says for few; with nothing lost for very many; each of so many objects alone in its last directory."""
    for objects in (0, 1, 2, 17, 1000):
        naive = sum(16**depth * (1 - (1 - 16.0**-depth) ** objects) for depth in range(1, 4))
        assert hashed_directories(objects, 16, 3) == pytest.approx(naive, abs=1e-6)
    assert hashed_directories(10**12, 16, 3) == 16 + 256 + 4096
    # 2^96 places: nobody shares one, which the sum as it is written would give as none at all.
    assert hashed_directories(10**12, 16**24, 1) == pytest.approx(10**12, rel=1e-12)
    assert hashed_directories(10**12, 16**32, 4) == pytest.approx(4 * 10**12, rel=1e-12)


def test_what_was_counted_on_real_identifiers() -> None:
    """On 177,214 of HathiTrust, with the objects' own: 534,749 under 3x3, and 238,620 under 2x2 … 0.03 % off."""
    assert hashed_directories(177_214, 16**3, 3) + 177_214 == pytest.approx(534_749, rel=0.0003)
    assert hashed_directories(177_214, 16**2, 2) + 177_214 == pytest.approx(238_548, rel=0.0004)
    assert round(hashed_directories(18_000_000, 16**3, 3) / 1e6, 1) == 29.0
    assert round(hashed_directories(18_000_000, 16**2, 2) / 1e6, 2) == 0.07
    assert round(hashed_directories(18_000_000, 16**2, 3) / 1e6, 1) == 11.1


@pytest.mark.parametrize("name", ["0003 3x3", "0003 2x2", "0004", "0012"])
def test_hashed_trees_are_as_they_say(twins: tuple[Implementation, Implementation], name: str) -> None:
    """Within a tenth of a percent of what there is, for tens of thousands of identifiers."""
    with use(twins[0]):
        growth = growth_of([f"mdp.{number}" for number in range(60_000)], samples.layouts()[name])
    ((objects, found, said),) = growth.held_out
    assert (growth.model, objects) == ("hashed", 60_000)
    assert growth.error is not None
    assert growth.error < 0.001
    assert abs(said - found) / found == growth.error
    assert growth.coefficients == {"B": 16.0 ** (2 if "2x2" in name else 3), "n": 2.0 if "2x2" in name else 3.0}
    here = next(point for point in growth.points if point[0] == 60_000)
    assert here == (60_000, said, said + 60_000)


def test_flat_trees_do_not_grow(implementation: Implementation) -> None:
    """There are no interim directories, however many objects."""
    growth = growth_of([str(number) for number in range(500)], pressmark.layout("0002"))
    assert (growth.model, growth.error) == ("exact", 0.0)
    assert growth.points[-1] == (10**12, 0, 10**12)


def test_models_are_tried_on_what_they_have_not_seen(twins: tuple[Implementation, Implementation]) -> None:
    """The larger samples are held out; the error is that of four times as many identifiers as were fitted."""
    drawn = random.Random(4)
    ids = [f"mdp.3901500{drawn.randrange(10**7):07d}" for _ in range(50_000)]
    with use(twins[0]):
        growth = growth_of(ids, pressmark.layout("pairtree"))
        (result,) = compare(ids, [pressmark.layout("pairtree")]).layouts
    assert growth.model == "fitted"
    assert growth.held_out[0][0] == 50_000
    assert growth.held_out[0][1] == result.directories.interim
    assert growth.error == max(abs(said - found) / found for _, found, said in growth.held_out)
    assert growth.error < 0.1
    assert len(growth.fitted_to) >= 3
    # It goes through what there is, and never falls.
    here = next(point for point in growth.points if point[0] == 50_000)
    assert here[1] == result.directories.interim
    assert [interim for _, interim, _ in growth.points] == sorted(interim for _, interim, _ in growth.points)
    assert growth.points[-1][0] == 10**12


def test_too_few_to_fit(implementation: Implementation) -> None:
    """A handful says nothing, and that is said."""
    growth = growth_of([f"ab{number:04d}" for number in range(40)], pressmark.layout("pairtree"))
    assert (growth.model, growth.error) == ("none", None)
    assert "too few" in growth.note
