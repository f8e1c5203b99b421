"""Migrations killed at random moments, or run twice at once: nothing is lost, incomplete or duplicated."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark import stores
from pressmark.migrate.entry import GOOD
from pressmark.stores import Store
from support.effort import LONG, repeats
from support.implementations import Implementation

from .samples import Files, held, make, migrate, objects, options, tree

pytestmark = [pytest.mark.kill, pytest.mark.slow_under_sanitizers]

KILLS = repeats(2)
OBJECTS = 60 if LONG else 30
# Leftovers of a killed run, which a repair removes.
LEFT = {"leftover", "empty", "unfinished", "directory-empty", "extensions-file"}

DIRECTIONS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "pairtree to OCFL": ("pairtree", "ocfl", {}),
    "relayout by copying": ("ocfl", "ocfl", {}),
    "relayout by renaming": ("ocfl", "ocfl", {"move": True}),
    "OCFL to pairtree": ("ocfl", "pairtree", {}),
    "pairtree to bags": ("pairtree", "bags", {}),
    "pairtree by renaming": ("pairtree", "pairtree", {"move": True}),
}


def started(file: Path, implementation: Implementation | None = None) -> subprocess.Popen[bytes]:
    tests = str(Path(__file__).parents[1])
    path = os.pathsep.join(
        filter(None, [str(Path(pressmark.__file__).parent.parent), tests, os.environ.get("PYTHONPATH")])
    )
    environment = {**os.environ, "PYTHONPATH": path}
    if implementation is not None:
        environment["PRESSMARK_IMPLEMENTATION"] = str(implementation)
    script = [sys.executable, str(Path(__file__).with_name("killing.py")), str(file)]
    process = subprocess.Popen(script, stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def problems_of(store: Store) -> set[str]:
    return {one.kind for one in store.check(digests=True).problems if one.severity == "error"}


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_killed_at_any_moment(tmp_path: Path, direction: str, implementations: list[Implementation]) -> None:
    """Every object in the destination is complete, the source is unharmed, and another run finishes."""
    kind, to, more = DIRECTIONS[direction]
    given = objects(OBJECTS)
    chosen = random.Random(direction)
    pristine = make(kind, tmp_path / "pristine", given, tmp_path / "given")
    source_path, destination_path = tmp_path / "source", tmp_path / "destination"
    file = tmp_path / "options.json"
    longest = 1.0
    rounds = 0
    for number in range(KILLS):
        if not rounds:
            for path in (source_path, destination_path):
                shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(tmp_path / "pristine", source_path)
            source = stores.open(source_path)
            settings = options(source, to, destination_path, **more)
            settings.create_destination()
            file.write_text(json.dumps(settings.record()))
        process = started(file, implementations[number % len(implementations)])
        begun = time.monotonic()
        time.sleep(chosen.uniform(0, longest))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if process.returncode == 0:
            longest = min(longest, time.monotonic() - begun)
        look(given, source, settings.open_destination(), moved=bool(more))
        # Sometimes it is killed again before it finishes.
        rounds = 0 if rounds == 2 or number == KILLS - 1 or process.returncode == 0 else rounds + 1
        if not rounds:
            finish(given, source, to, destination_path, more, pristine)


def look(given: dict[str, Files], source: Store, destination: Store, moved: bool) -> None:
    """Check both stores before any cleaning."""
    assert problems_of(destination) <= LEFT
    assert problems_of(source) <= LEFT
    there, here = held(destination), held(source)
    assert there.items() <= given.items()
    if moved:
        assert not there.keys() & here.keys()
        assert {**there, **here} == given
    else:
        assert here == given


def finish(
    given: dict[str, Files], source: Store, to: str, folder: Path, more: dict[str, Any], pristine: Store
) -> None:
    """Run to the end, with the result of an uninterrupted run."""
    before = tree(Path(source.root))
    rows, destination = migrate(source, to, folder, **more)
    assert {row.status for row in rows.values()} <= GOOD
    assert held(destination) == given
    for store in (source, destination):
        store.repair()
        assert problems_of(store) <= set()
    if not more:
        assert rows.keys() == given.keys()
        assert tree(Path(source.root)) == before == tree(Path(pristine.root))
    else:
        assert list(source.objects()) == []
    strangers = [name for name in os.listdir(folder) if "pressmark" in name and not name.endswith(".json")]
    if to == "bags" and strangers:
        # A folder of many bags keeps its index.
        assert strangers == [".pressmark-work"]
        strangers = [name for name in os.listdir(folder / ".pressmark-work") if not name.startswith("index")]
    assert not strangers


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_two_at_once(tmp_path: Path, direction: str) -> None:
    """If two processes run the same chunk, every object is stored once and complete."""
    kind, to, more = DIRECTIONS[direction]
    given = objects(OBJECTS)
    source = make(kind, tmp_path / "source", given, tmp_path / "given")
    settings = options(source, to, tmp_path / "destination", **more)
    settings.create_destination()
    file = tmp_path / "options.json"
    file.write_text(json.dumps(settings.record()))
    processes = [started(file) for _ in range(2)]
    for process in processes:
        process.communicate(timeout=120)
        assert process.returncode == 0
    destination = settings.open_destination()
    assert held(destination) == given
    assert problems_of(destination) == set()
    assert problems_of(stores.open(source.root)) == set()
