"""Killed at any moment: no file is lost, no partial bag counts as a bag, and the same call finishes."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from fixity.conftest import environment
from pressmark.bagit.bag import Bag, make_bag
from pressmark.errors import BagError
from support.effort import LONG, repeats
from support.implementations import Implementation

from .bags import tree
from .naive import flaws

KILLS = repeats(1)
STAGING = b".pressmark-bag/"

pytestmark = [pytest.mark.kill, pytest.mark.skipif(os.name != "posix", reason="needs signals")]

# Every run reports each stage, so that it can be killed in a short one.
BEGIN = f"""
import datetime, os, sys, time
sys.path.append({str(Path(__file__).parents[1])!r})
from pressmark.bagit.bag import create, make_bag
from pressmark.bagit.bag import make_bag, update
from pressmark.errors import BagError
from pressmark.progress_event import EventListener
from pressmark.reports import ProgressEvent
path = sys.argv[1]
day = datetime.date(2026, 11, 21)
from support.steps import observed
# Else everything is in its place before a signal comes.
steps = observed(lambda _base, _step: time.sleep(0.003))
steps.__enter__()
rename = os.rename
def slowly(*paths, **more):
    time.sleep(0.003)
    rename(*paths, **more)
os.rename = slowly
stage = ""
def say(event):
    global stage
    if isinstance(event, ProgressEvent) and event.stage != stage:
        stage = event.stage
        os.write(1, stage.encode() + b"\\n")
os.write(1, b"begin\\n")
"""
TERMS = "date=day, progress=EventListener(say))"
IN_PLACE = BEGIN + 'make_bag(path, algorithms=["sha512", "md5"], info={"X": "y"}, ' + TERMS
ELSEWHERE = BEGIN + 'create(path + "/s", path + "/t", algorithms=["sha512", "md5"], info={"X": "y"}, ' + TERMS
UPDATE = BEGIN + 'update(path, add="sha256", drop="md5", accept=["added", "removed", "changed"], ' + TERMS


def make_source(folder: Path) -> None:
    """Make a directory with so many names that moving them takes time."""
    draw = random.Random(7)
    folder.mkdir()
    for number in range(80):
        (folder / f"file {number}%\n").write_bytes(draw.randbytes(draw.choice([0, 10, 5000])))
    for number in range(8):
        (folder / f"folder {number}").mkdir()
        for other in range(4):
            (folder / f"folder {number}" / str(other)).write_bytes(draw.randbytes(draw.choice([10, 200_000])))
    (folder / "data").mkdir()
    (folder / "data" / "manifest-sha512.txt").write_bytes(b"x")
    (folder / "manifest-sha512.txt").write_bytes(b"y")


class Run(NamedTuple):
    """The result of a run.

    :ivar status: exit status of the process
    :ivar stage: the last reported stage, or the last line of a failed run
    :ivar times: seconds from the start to each stage, and to the end
    """

    status: int
    stage: str
    times: dict[str, float]


def run(code: str, folder: Path, implementation: Implementation, kill: tuple[str, float] | None = None) -> Run:
    """Run ``code``; optionally kill it this many seconds after a stage was reported."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(PRESSMARK_IMPLEMENTATION=str(implementation)),
    )
    assert process.stdout is not None
    stage = "start"
    begun = time.monotonic()
    times: dict[str, float] = {}
    for line in process.stdout:
        stage = line.decode().strip()
        if stage == "begin":
            begun = time.monotonic()
        times[stage] = time.monotonic() - begun
        if kill is not None and stage == kill[0]:
            time.sleep(kill[1])
            process.send_signal(signal.SIGKILL)
            kill = None
    times["end"] = time.monotonic() - begun
    _, stderr = process.communicate()
    if process.returncode not in (0, -signal.SIGKILL):
        stage = stderr.decode().strip().splitlines()[-1]
    return Run(process.returncode, stage, times)


def moment(draw: random.Random, times: dict[str, float]) -> tuple[str, float]:
    """Return when to kill: at any time, and equally often during the short stage of moves."""
    if draw.random() < 0.5:
        return "begin", draw.uniform(0, times["end"])
    return "move", draw.uniform(0, 1.2 * (times["end"] - times["move"]))


class Case(NamedTuple):
    """A command to be killed.

    :ivar code: the code to run; its argument is a folder
    :ivar make: writes that folder
    :ivar bag: path of the future bag below the folder
    :ivar lost: returns the reason why an intermediate state of the folder is wrong
    """

    code: str
    make: Callable[[Path], None]
    bag: str
    lost: Callable[[Path, Path], str | None]


def lost_in_place(folder: Path, pristine: Path) -> str | None:
    """Look for every payload file at its old place, its new place, and in between."""
    found = tree(folder)
    for path, data in tree(pristine).items():
        places = (path, b"data/" + path, STAGING + b"data/" + path)
        if data not in [found.get(place) for place in places]:
            return f"lost {path!r}"
    return None


def lost_elsewhere(folder: Path, pristine: Path) -> str | None:
    """The source is unchanged, and the destination complete or absent."""
    if tree(folder / "s") != tree(pristine / "s"):
        return "the source was changed"
    return "half of a destination" if (folder / "t").exists() and flaws(folder / "t") else None


def lost_in_update(folder: Path, pristine: Path) -> str | None:
    """The payload is unchanged, and old tag files are in place or moved away."""
    found, before = tree(folder), tree(pristine)
    for path, data in before.items():
        if path.startswith(b"data/") and found.get(path) != data:
            return f"lost {path!r}"
    if b"bagit.txt" in found and {path: data for path, data in found.items() if not path.startswith(STAGING)} != before:
        return None if not flaws(folder) else "half of an update"
    return None


def make_elsewhere(folder: Path) -> None:
    folder.mkdir()
    make_source(folder / "s")


def make_changed_bag(folder: Path) -> None:
    make_source(folder)
    make_bag(folder, algorithms=["sha512", "md5"])
    (folder / "data" / "new").write_bytes(b"new")
    (folder / "data" / "folder 3" / "3").unlink()
    (folder / "data" / "folder 4" / "3").write_bytes(b"changed")


CASES = {
    "create in place": Case(IN_PLACE, make_source, ".", lost_in_place),
    "create elsewhere": Case(ELSEWHERE, make_elsewhere, "t", lost_elsewhere),
    "update": Case(UPDATE, make_changed_bag, ".", lost_in_update),
}


def is_taken_for_a_bag(folder: Path) -> bool:
    """Return whether a directory can be opened as a bag."""
    try:
        Bag.open(folder)
    except BagError:
        return False
    return True


@pytest.mark.parametrize("name", CASES)
def test_killed_runs(
    implementation: Implementation, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kill a run, check the files, and run it again, with or without a kill, until it ends; many times."""
    case = CASES[name]
    pristine = tmp_path / "pristine"
    case.make(pristine)
    shutil.copytree(pristine, tmp_path / "whole")
    undisturbed = run(case.code, tmp_path / "whole", implementation)
    assert (undisturbed.status, undisturbed.stage) == (0, "move")
    whole = tree(tmp_path / "whole" / case.bag)
    assert flaws(tmp_path / "whole" / case.bag) == []
    seed = time.time_ns()
    draw = random.Random(seed)
    states: Counter[str] = Counter()
    stages: Counter[str] = Counter()
    rounds = kills = 0
    while kills < KILLS:
        rounds += 1
        folder = tmp_path / f"{rounds}"
        shutil.copytree(pristine, folder)
        while True:
            # Sometimes the run that finishes is killed as well.
            killing = kills < KILLS and draw.random() < 0.7
            found = run(case.code, folder, implementation, moment(draw, undisturbed.times) if killing else None)
            bag = folder / case.bag
            assert case.lost(folder, pristine) is None, (seed, rounds)
            if name != "update" and is_taken_for_a_bag(bag):
                assert flaws(bag) == [], (seed, rounds)
            if found.status == -signal.SIGKILL:
                kills += 1
                stages[found.stage] += 1
                states[state_of(folder, bag, whole)] += 1
                continue
            break
        if found.status != 0:
            # Killed when everything was done: the same call finds a bag.
            assert re.search("already a bag|already exists", found.stage), (seed, rounds, found)
        else:
            assert not [path for path in folder.iterdir() if path.name.startswith(".pressmark")]
        assert {path: data for path, data in tree(bag).items() if not path.startswith(STAGING)} == whole
        shutil.rmtree(folder)
    if LONG:
        parts = (f"{number} {what}" for counts in (stages, states) for what, number in counts.most_common())
        with capsys.disabled():
            print(f"\n{name}, {implementation}: {kills} kills in {rounds} rounds: {', '.join(parts)}")


def state_of(folder: Path, bag: Path, whole: dict[bytes, bytes]) -> str:
    """Describe the leftovers of a killed run."""
    if bag.exists() and {path: data for path, data in tree(bag).items() if not path.startswith(STAGING)} == whole:
        return "left it whole"
    if any((bag / ".pressmark-bag" / name).exists() for name in ("journal", "journal.undo")):
        return "left it to be finished"
    return "left it as it was"
