"""Migrated objects are valid for ocfl-py and bagit."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pressmark.migrate.entry import GOOD
from support.effort import LONG

from .samples import held, make, migrate, objects

pytestmark = [pytest.mark.long, pytest.mark.peers, pytest.mark.slow_under_sanitizers]

VALIDATE = Path(__file__).parents[1] / "stores" / "ocfl_validate.py"
OBJECTS = 2000 if LONG else 40

# Prints the invalid bags, and the number of valid ones.
_BAGS = """
import logging, os, sys
logging.disable()
import bagit
good = 0
for name in sorted(os.listdir(sys.argv[1])):
    if name.startswith("."):
        continue
    try:
        bagit.Bag(os.path.join(sys.argv[1], name)).validate()
        good += 1
    except bagit.BagError as error:
        print(name, error)
print(good)
"""


def needs(request: pytest.FixtureRequest, module: str, variable: str) -> str:
    """Return the Python with a peer installed."""
    python = os.environ.get(variable)
    if python is None and importlib.util.find_spec(module) is None:
        if request.config.getoption("--require-peers", default=False):
            pytest.fail(f"{module} is not installed")
        pytest.skip(f"{module} is not installed")
    return python or sys.executable


def said(python: str, *arguments: str | Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, *arguments], stdout=subprocess.PIPE, env=environment, timeout=600, check=True, text=True
    )
    return done.stdout


@pytest.mark.parametrize("kind", ["pairtree", "bags", "ocfl"])
def test_roots_are_valid_for_ocfl_py(tmp_path: Path, request: pytest.FixtureRequest, kind: str) -> None:
    """From every kind of store, with hostile identifiers and names, every object is valid and listed."""
    python = needs(request, "ocfl", "PRESSMARK_OCFL_PY")
    given = objects(OBJECTS)
    source = make(kind, tmp_path / "source", given, tmp_path / "given")
    rows, _ = migrate(source, "ocfl", tmp_path / "root", verify="reread")
    assert {row.status for row in rows.values()} <= GOOD
    found = json.loads(said(python, VALIDATE, tmp_path / "root"))
    assert (found["valid"], found["objects"], found["good"]) == (True, OBJECTS, OBJECTS), found["errors"]
    assert sorted(identifier for _path, identifier in found["found"]) == sorted(given)


@pytest.mark.parametrize("kind", ["pairtree", "ocfl"])
def test_bags_are_valid_for_bagit(tmp_path: Path, request: pytest.FixtureRequest, kind: str) -> None:
    """New bags, and bags that were objects of another store, are valid."""
    python = needs(request, "bagit", "PRESSMARK_BAGIT")
    # bagit strips blanks from the ends of names, keeps %25, and ends lines at U+2028.
    given = {
        identifier: {name.rstrip().replace("%", "_"): data for name, data in files.items()}
        for identifier, files in objects(OBJECTS).items()
        if "\u2028" not in identifier
    }
    if kind == "ocfl":
        bags = make("bags", tmp_path / "bags", given, tmp_path / "given")
        _, source = migrate(bags, "ocfl", tmp_path / "root")
    else:
        source = make(kind, tmp_path / "source", given, tmp_path / "given")
    rows, folder = migrate(source, "bags", tmp_path / "out")
    assert {row.status for row in rows.values()} <= GOOD
    assert held(folder) == given
    *bad, good = said(python, "-c", _BAGS, tmp_path / "out").splitlines()
    assert (bad, int(good)) == ([], len(given))
