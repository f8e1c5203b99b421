"""Migrate small objects from one kind of store to another, in memory and on a disk, and files of 1 MiB.

The yardstick is ``cp -r``, ``sync`` and ``sha512sum`` of the copy: common practice, without a layout or a check. A
Pairtree has the form of HathiTrust's, with identifiers of ``PRESSMARK_CORPORA`` if there are any. On a disk, the files
of all runs stay until the end: ext4 gives no new file the inode of one that was removed in the last 35 seconds.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Callable, Mapping
from itertools import count as numbers
from pathlib import Path
from typing import Any

import pytest

from benchmarks.conftest import Measure
from benchmarks.corpora.files import MIB, write_files
from benchmarks.corpora.pairtrees import identifiers, make
from pressmark import migrate, stores

OBJECTS, LARGE_FILES = 300, 90
PAIRS = {
    "pairtree to ocfl": {"to": "ocfl", "layout": "0003"},
    "pairtree to bags": {"to": "bags"},
    "ocfl to another layout": {"to": "ocfl", "layout": "0004"},
}
PLACES = ("memory", "disk")
_numbers = numbers()


@pytest.fixture(scope="session")
def source(places: Mapping[str, Path], scaled: Callable[[int], int]) -> Callable[[str, str], tuple[Path, int]]:
    """Return a store of small objects, and their number."""

    @functools.cache
    def made(kind: str, place: str) -> tuple[Path, int]:
        count = scaled(OBJECTS)
        path = places[place] / f"migrate-{kind}"
        if kind == "pairtree":
            make(path, identifiers(count))
        else:
            migrated(made("pairtree", place)[0], path, **PAIRS["pairtree to ocfl"])
        return path, count

    return made


def migrated(source: Path, destination: Path, **how: Any) -> dict[str, int]:
    plan = migrate.plan(source, destination, **how)
    return dict(migrate.run(plan, workers=2).by_status)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("pair", PAIRS)
def test_migrate(
    measure: Measure, source: Callable[..., tuple[Path, int]], places: Mapping[str, Path], pair: str, place: str
) -> None:
    path, count = source(pair.partition(" ")[0], place)
    run_migration(measure, f"migrate {pair}, in {place}", path, places[place], PAIRS[pair], count)


@pytest.fixture(scope="session")
def large(memory: Path, scaled: Callable[[int], int]) -> tuple[Path, int]:
    """A Pairtree of objects with three files of 1 MiB, and their number."""
    count, path = scaled(LARGE_FILES) // 3 or 1, memory / "migrate-large"
    store = stores.create("pairtree", path)
    for number in range(count):
        files = memory / "migrate-large-sources" / str(number)
        write_files(files, [MIB] * 3)
        store.put(f"object-{number:04}", files)
    return path, count


@pytest.mark.parametrize("pair", ["pairtree to ocfl", "pairtree to bags"])
def test_large_files(measure: Measure, large: tuple[Path, int], memory: Path, pair: str) -> None:
    path, count = large
    run_migration(measure, f"migrate {pair}, files of 1 MiB", path, memory, PAIRS[pair], count)


def run_migration(measure: Measure, group: str, path: Path, folder: Path, how: Mapping[str, Any], count: int) -> None:
    made: list[Path] = []

    def before() -> None:
        made.append(folder / f"migrated-{next(_numbers)}")

    def check(by_status: dict[str, int]) -> None:
        assert by_status == {"ok": count}
        assert sum(1 for _record in stores.open(made[-1]).objects()) == count

    measure.once(group, lambda: migrated(path, made[-1], **how), before=before, check=check, rounds=3, objects=count)


@pytest.mark.parametrize("pair", ["ocfl to another layout"])
def test_plan(measure: Measure, source: Callable[..., tuple[Path, int]], memory: Path, pair: str) -> None:
    path, count = source("ocfl", "memory")

    def check(plan: Any) -> None:
        assert plan.objects == count

    def run() -> Any:
        return migrate.plan(path, memory / f"planned-{next(_numbers)}", move=True, **PAIRS[pair])

    measure.once("migrate, plan of another layout", run, check=check, objects=count)


@pytest.mark.yardstick
def test_plan_by_parsing(measure: Measure, source: Callable[..., tuple[Path, int]]) -> None:
    """Parse all inventories."""
    path, count = source("ocfl", "memory")

    def run() -> int:
        found = 0
        for place, names, files in os.walk(path):
            if "inventory.json" in files:
                names.clear()
                with open(os.path.join(place, "inventory.json"), "rb") as file:
                    found += json.loads(file.read())["type"].startswith("http")
        return found

    def check(found: int) -> None:
        assert found == count

    measure.once("migrate, plan of another layout", run, check=check, objects=count)


@pytest.mark.yardstick
@pytest.mark.parametrize("pair", ["pairtree to ocfl", "pairtree to bags"])
def test_copy_large(measure: Measure, large: tuple[Path, int], memory: Path, pair: str) -> None:
    path, count = large
    run_copy(measure, f"migrate {pair}, files of 1 MiB", path, memory, 3 * count)


@pytest.mark.yardstick
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("pair", ["pairtree to ocfl", "pairtree to bags"])
def test_copy(
    measure: Measure, source: Callable[..., tuple[Path, int]], places: Mapping[str, Path], pair: str, place: str
) -> None:
    path, count = source("pairtree", place)
    run_copy(measure, f"migrate {pair}, in {place}", path, places[place], 2 * count)


def run_copy(measure: Measure, group: str, path: Path, folder: Path, files: int) -> None:
    made: list[Path] = []

    def before() -> None:
        made.append(folder / f"copied-{next(_numbers)}")

    def run() -> str:
        line = 'cp -r "$0" "$1" && sync -f "$1" && find "$1" -type f -print0 | xargs -0 -n 100 -P 2 sha512sum'
        return subprocess.run(["sh", "-c", line, path, made[-1]], stdout=subprocess.PIPE, text=True, check=True).stdout

    def check(output: str) -> None:
        assert output.count("\n") >= files

    measure.once(group, run, before=before, check=check, rounds=3)
