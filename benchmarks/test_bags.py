"""Create, validate, open, update, complete and pack bags: many small ones, and a large one, beside bagit-python.

Pressmark flushes a new bag to the disk, the other programs do not. Small bags are measured by whole commands with many
bags, and in one process; the answers are compared with digests that hashlib computed.
"""

from __future__ import annotations

import functools
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.calls import make_bag
from benchmarks.conftest import Measure
from benchmarks.corpora.files import KIB, LISTS, Shape, bag_of, long_manifest, verify_made, warm
from benchmarks.peers.bagging import TOOLS, Call, Tool, environment_of
from benchmarks.peers.environments import Unavailable
from benchmarks.processes import run
from pressmark import bagit

SMALL, SMALL_FILES = 200, {"one.txt": KIB, "two.bin": 10 * KIB}
LARGE = Shape("large", 300, 64 * KIB)
LINES = LISTS["listed"]._replace(count=50_000)
ALGORITHM = "sha512"
OPERATIONS = ("create", "create elsewhere", "validate", "open", "complete")
ARCHIVES = ("tar", "tar.gz", "zip")


def make_small(folder: Path, count: int) -> None:
    """Write the directories of small bags."""
    shutil.rmtree(folder, ignore_errors=True)
    for number in range(count):
        place = folder / f"{number:06}"
        place.mkdir(parents=True)
        for name, size in SMALL_FILES.items():
            (place / name).write_bytes(random.Random(number).randbytes(size))


@pytest.fixture(scope="session")
def small(memory: Path, scaled: Callable[[int], int]) -> Path:
    """A folder of valid small bags."""
    folder = memory / "small-bags"
    make_small(folder, scaled(SMALL))
    for place in folder.iterdir():
        make_bag(place)
    return folder


@pytest.fixture(scope="session")
def large(memory: Path, scaled: Callable[[int], int]) -> Path:
    bag = bag_of(LARGE._replace(count=scaled(LARGE.count)), ALGORITHM, memory / "large")
    warm(bag)
    return bag


@pytest.fixture(scope="session")
def lines(memory: Path, scaled: Callable[[int], int]) -> Path:
    """A bag with a long manifest, and no payload."""
    return long_manifest(LINES._replace(count=scaled(LINES.count)), ALGORITHM, memory / "large")


# --- many small bags --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["in place", "elsewhere"])
def test_create_small(
    measure: Measure, memory: Path, scaled: Callable[[int], int], implementation: str, way: str
) -> None:
    count = scaled(SMALL)
    source, target = memory / "new-small", memory / "made-small"

    def before() -> None:
        make_small(source, count)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()

    def create() -> int:
        made = [
            make_bag(one) if way == "in place" else bagit.create(one, target / one.name) for one in source.iterdir()
        ]
        return len(made)

    def check(found: int) -> None:
        made = source if way == "in place" else target
        assert found == count
        assert all(bagit.validate(one).ok for one in made.iterdir())

    measure.once(f"bag create small, {way}", create, before=before, check=check, rounds=3, bags=count)


def test_validate_small(measure: Measure, small: Path, implementation: str) -> None:
    bags = sorted(small.iterdir())

    def check(found: int) -> None:
        assert found == len(bags)

    measure.call("bag validate small", lambda: sum(bagit.validate(bag).ok for bag in bags), check=check, bags=len(bags))


@pytest.mark.parametrize("operation", ["create", "validate"])
def test_command_small(measure: Measure, small: Path, memory: Path, pressmark: tuple[str, ...], operation: str) -> None:
    count = len(list(small.iterdir()))
    folder = memory / "command-small" if operation == "create" else small
    bags = [folder / f"{number:06}" for number in range(count)]

    def before() -> None:
        if operation == "create":
            make_small(folder, count)

    def check(_output: str) -> None:
        assert all(bagit.validate(bag).ok for bag in bags)

    measure.command(
        f"command bag {operation}, many small",
        *pressmark,
        "bag",
        operation,
        *bags,
        before=before,
        check=check,
        bags=count,
    )


# --- a large bag ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2])
def test_validate_large(measure: Measure, large: Path, threads: int) -> None:
    def check(report: Any) -> None:
        assert report.ok

    measure.call("bag validate large", lambda: bagit.validate(large, threads=threads), check=check)


@pytest.mark.parametrize("way", ["in place", "elsewhere"])
def test_create_large(measure: Measure, large: Path, memory: Path, way: str) -> None:
    files = large / "data"
    new = memory / "new-large"

    def before() -> None:
        shutil.rmtree(new, ignore_errors=True)
        if way == "in place":
            shutil.copytree(files, new)

    def create() -> None:
        make_bag(new, algorithms=[ALGORITHM]) if way == "in place" else bagit.create(files, new, algorithms=[ALGORITHM])

    def check(_made: object) -> None:
        verify_made(new, ALGORITHM, large)

    measure.once(f"bag create large, {way}", create, before=before, check=check, rounds=3)


def test_open_large(measure: Measure, lines: Path) -> None:
    def check(bag: Any) -> None:
        assert bag.algorithms == (ALGORITHM,)

    measure.call("bag open, long manifest", lambda: bagit.open(lines), check=check)


def test_complete_large(measure: Measure, lines: Path) -> None:
    """Report every file as missing."""

    def check(report: Any) -> None:
        assert not report.ok

    measure.call("bag validate completeness, long manifest", lambda: bagit.validate(lines, "complete"), check=check)


def test_update_large(measure: Measure, large: Path, memory: Path) -> None:
    bag = memory / "updated-large"

    def before() -> None:
        shutil.rmtree(bag, ignore_errors=True)
        shutil.copytree(large, bag)
        (bag / "data" / "added").write_bytes(b"added")

    def check(_made: object) -> None:
        assert bagit.validate(bag).ok

    update = functools.partial(bagit.update, bag, accept=["added"])
    measure.once("bag update large", update, before=before, check=check, rounds=3)


@pytest.mark.parametrize("ending", ARCHIVES)
def test_pack(measure: Measure, large: Path, memory: Path, ending: str) -> None:
    file = memory / f"packed.{ending}"

    def check(_made: object) -> None:
        assert bagit.validate(file).ok

    pack = functools.partial(bagit.pack, large, file)
    measure.once(f"bag pack large, {ending}", pack, before=functools.partial(file.unlink, True), check=check, rounds=3)


@pytest.mark.yardstick
@pytest.mark.parametrize(("ending", "program"), [("tar", "cat"), ("tar.gz", "gzip")])
def test_tar(measure: Measure, large: Path, memory: Path, ending: str, program: str) -> None:
    """tar, a compressor and sha512sum of the same files."""
    file = memory / f"tar.{ending}"
    line = f'tar -cf - -C "$0" . | {program} > "$1" && find "$0" -type f -print0 | xargs -0 sha512sum > /dev/null'

    def run() -> int:
        return subprocess.run(["sh", "-c", line, large, file], check=True).returncode

    def check(_status: int) -> None:
        assert file.stat().st_size

    measure.once(f"bag pack large, {ending}", run, check=check, rounds=3)


@pytest.mark.yardstick
def test_copy_large(measure: Measure, large: Path, memory: Path) -> None:
    """cp and sha512sum of the same files."""
    new = memory / "copied-large"
    line = 'cp -r "$0" "$1" && find "$1" -type f -print0 | xargs -0 -n 100 -P 2 sha512sum'

    def run() -> str:
        return subprocess.run(["sh", "-c", line, large / "data", new], stdout=-1, text=True, check=True).stdout

    def check(output: str) -> None:
        assert output.count("\n") == len((large / f"manifest-{ALGORITHM}.txt").read_text().splitlines())

    remove = functools.partial(shutil.rmtree, new, ignore_errors=True)
    measure.once("bag create large, elsewhere", run, before=remove, check=check, rounds=3)


@pytest.mark.parametrize("ending", ARCHIVES)
def test_validate_archive(measure: Measure, large: Path, memory: Path, ending: str) -> None:
    file = memory / f"archive.{ending}"
    if not file.exists():
        bagit.pack(large, file)

    def check(report: Any) -> None:
        assert report.ok

    measure.call(f"bag validate archive, {ending}", lambda: bagit.validate(file), check=check)


# --- other programs ---------------------------------------------------------------------------------------------------


@pytest.mark.peers
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.label)
@pytest.mark.parametrize("operation", ["create each", "validate each"])
def test_tool_small(measure: Measure, memory: Path, scaled: Callable[[int], int], operation: str, tool: Tool) -> None:
    if tool.name not in ("pressmark", "bagit") or (tool.workers == 2 and tool.name == "bagit"):
        pytest.skip(f"{tool.label} has no call for many bags")
    command = made(tool)
    count = scaled(SMALL)
    folder = memory / "tool-small"

    def before() -> None:
        if operation == "create each" or not folder.exists():
            make_small(folder, count)
        if operation == "validate each" and not (folder / "000000" / "bagit.txt").exists():
            for one in folder.iterdir():
                make_bag(one)

    def timed() -> Any:
        return run(command(Call(operation, folder, ALGORITHM)), environment_of(tool)).json()

    def check(answer: Any) -> None:
        assert operation == "create each" or answer["files"] == len(SMALL_FILES) * count

    measure.once(f"process, bag {operation} of small", timed, before=before, check=check, rounds=3, bags=count)


@pytest.mark.peers
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.label)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_tool(measure: Measure, large: Path, lines: Path, memory: Path, operation: str, tool: Tool) -> None:
    """The same process for each program: its start, its imports, and one operation."""
    if operation not in tool.operations:
        pytest.skip(f"{tool.label} cannot {operation}")
    command = made(tool)
    wanted = lines if operation in ("open", "complete") else large
    new = memory / "tool-made"
    target = Call(operation, wanted, ALGORITHM)
    if operation.startswith("create"):
        target = Call(operation, new, ALGORITHM)
    if operation == "create elsewhere":
        target = Call(operation, wanted / "data", ALGORITHM, new)

    def before() -> None:
        shutil.rmtree(new, ignore_errors=True)
        if operation == "create":
            shutil.copytree(wanted / "data", new)

    def check(_output: object) -> None:
        if operation.startswith("create"):
            verify_made(new, ALGORITHM, wanted)

    def timed() -> str:
        return run(command(target), environment_of(tool)).output

    measure.once(f"process, bag {operation}", timed, before=before, check=check, rounds=3)


def made(tool: Tool) -> Callable[[Call], Any]:
    try:
        return tool.make(tool)
    except Unavailable as error:
        pytest.skip(f"{tool.name} is not available: {error}")
