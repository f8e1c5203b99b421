"""The start of the program: commands with nearly nothing to do, beside the start of Python."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.conftest import Measure
from pressmark import bagit

GROUP = "start of the program"
ROUNDS = 5


def test_version(measure: Measure, pressmark: tuple[str, ...]) -> None:
    def check(output: str) -> None:
        assert output.startswith("pressmark ")

    measure.command(GROUP, *pressmark, "--version", check=check, rounds=ROUNDS)


def test_map_one(measure: Measure, pressmark: tuple[str, ...], memory: Path) -> None:
    one = memory / "one.txt"
    one.write_text("ark:/13030/xt12t3\n")

    def check(output: str) -> None:
        assert output == "ar/k+/=1/30/30/=x/t1/2t/3\n"

    measure.command(GROUP, *pressmark, "map", "pairtree", one, check=check, rounds=ROUNDS)


def test_validate_one(measure: Measure, pressmark: tuple[str, ...], memory: Path) -> None:
    (memory / "start-source").mkdir(exist_ok=True)
    (memory / "start-source" / "a").write_bytes(b"a")
    bag = memory / "start-bag"
    if not bag.exists():
        bagit.create(memory / "start-source", bag)
    measure.command(GROUP, *pressmark, "bag", "validate", bag, rounds=ROUNDS)


@pytest.mark.yardstick
def test_python(measure: Measure) -> None:
    measure.command(GROUP, sys.executable, "-c", "import json, re, click", rounds=ROUNDS)
