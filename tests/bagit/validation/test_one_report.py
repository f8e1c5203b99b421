"""One bag has one report: alone, among others, read from the disk, from an archive, by either implementation."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pressmark.bagit import validate, validate_many
from pressmark.bagit.problems import BagReport
from pressmark.bagit.validation.bag_check import LEVELS
from support.implementations import Implementation, use

from ..archive.packing import pack
from ..bags import from_disk
from .test_in_memory import PLAIN, UNUSUAL

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")

BAGS = PLAIN | UNUSUAL


def facts(report: object) -> dict[str, Any]:
    """Return all that a report tells, with its problems in any order."""
    assert isinstance(report, BagReport)
    return {**report.summary(), **report.counts, "level": report.level, "problems": sorted(report.problems, key=repr)}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", BAGS)
def test_one_report(name: str, level: str, tmp_path: Path, pair: tuple[Implementation, Implementation]) -> None:
    bag = BAGS[name].write(tmp_path / "bag")
    other = PLAIN["usual"].write(tmp_path / "other")
    archives = [pack(bag, tmp_path / f"bag.{ending}") for ending in ("tar", "zip")]
    expected = facts(from_disk(bag, level=level))
    for implementation in pair:
        with use(implementation):
            assert facts(validate(bag, level)) == expected
            among = list(validate_many([other, bag, other, bag], level))
            assert facts(among[1]) == facts(among[3]) == expected
            assert [facts(validate(archive, level)) for archive in archives] == [expected, expected]
