"""Hash files on one core, by ``-m peers``: Pressmark beside other programs, and the limit of both.

20,000 files of 4 KiB and 300 of 1 MiB in memory; each program has one thread, and all its processes share one core. The
yardstick is the limit: the same bytes from memory, by the kernel that Pressmark uses. A case has the seconds of wall
time, and in ``extra_info`` those of processor time. The digests are compared before and after.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks import processes
from benchmarks.conftest import Measure
from benchmarks.corpora.files import KIB, MIB, paths_of, warm, write_files
from benchmarks.peers.hashing import PROGRAMS, Program, Words
from benchmarks.test_hash import digest_of
from benchmarks.test_stores import available
from native_lanes import lanes_library
from pressmark import _kernels, fixity
from pressmark.fixity import ALGORITHMS
from pressmark.fixity.scheduling import plan

pytestmark = pytest.mark.peers

# Number and size of the files.
SHAPES = {"4 KiB": (20_000, 4 * KIB), "1 MiB": (300, MIB)}
NAMES = ("sha512", "sha256", "sha1", "md5", "blake3", "xxh128")
CASES = [(shape, name) for shape in SHAPES for name in NAMES]


class Files(NamedTuple):
    """Files of one size.

    :ivar list: a file with their paths, one per line
    """

    folder: Path
    list: Path
    paths: list[str]
    size: int

    @property
    def amounts(self) -> dict[str, float]:
        return {"files": len(self.paths), "MB": len(self.paths) * self.size / 1e6}


@pytest.fixture(scope="session")
def files(memory: Path, scaled: Callable[[int], int]) -> Callable[[str], Files]:
    """Return the files of a shape."""

    @functools.cache
    def made(shape: str) -> Files:
        folder = memory / f"one-core-{shape.replace(' ', '-')}"
        number, size = SHAPES[shape]
        write_files(folder, [size] * scaled(number))
        warm(folder)
        found = Files(folder, folder.with_suffix(".txt"), paths_of(folder), size)
        found.list.write_text("".join(f"{path}\n" for path in found.paths))
        return found

    return made


@functools.cache
def expected(paths: tuple[str, ...], name: str) -> dict[str, str]:
    """Return the digest of each file by the name of the file."""
    return {os.path.basename(path): digest_of(path, name) for path in paths}


def check_lines(output: str, source: Files, name: str) -> None:
    """Compare the lines of a program, each with a digest and then a path."""
    digits = 2 * ALGORITHMS[name].size
    found = re.findall(rf"\b([0-9a-f]{{{digits}}})\b.*?([^/\s]+)$", output, re.MULTILINE)
    assert {file: digest for digest, file in found} == expected(tuple(source.paths), name), "wrong digests"


@contextmanager
def one_core() -> Iterator[None]:
    """Keep this process, and those that it starts, on one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def title(shape: str, name: str) -> str:
    return f"one core, hash {shape}, {name}"


def measure_call(
    measure: Measure, group: str, label: str, action: Callable[[], Any], check: Callable[[Any], object], source: Files
) -> None:
    """Measure a call in this process."""
    least = math.inf

    def run() -> Any:
        nonlocal least
        begin = time.process_time()
        answer = action()
        least = min(least, time.process_time() - begin)
        return answer

    check(action())
    with one_core():
        measure.once(group, run, check=check, **source.amounts)
    measure.note(**{"program": label, "processor s": least})


def measure_command(measure: Measure, group: str, label: str, words: Words, name: str, source: Files) -> None:
    """Measure a command."""
    check = functools.partial(check_lines, source=source, name=name)
    check(processes.run(words, processes.our_environment()).output)
    with one_core():
        measure.command(group, *words, check=check, rounds=5, **source.amounts)
    measure.note(program=label)


@pytest.mark.yardstick
@pytest.mark.parametrize(("shape", "name"), CASES)
def test_memory(measure: Measure, files: Callable[[str], Files], library: Any, shape: str, name: str) -> None:
    """Hash the bytes of the files from memory: the limit."""
    source = files(shape)
    data = b"".join(Path(path).read_bytes() for path in source.paths)
    wanted = list(expected(tuple(source.paths), name).values())
    size = ALGORITHMS[name].size
    if name in plan([name], 1).lanes:
        level = lanes_library.LEVELS.index(_kernels.active.lane_level())
        number, count = lanes_library.ALGORITHMS.index(name), len(source.paths)
        offsets = (lanes_library.Offset * (count + 1))(*range(0, len(data) + 1, source.size))
        out = ctypes.create_string_buffer(size * count)

        def action() -> bytes:
            library.pm_digest_column(level, number, data, offsets, ctypes.c_int64(count), out)
            return out.raw

        def check(digests: bytes) -> None:
            assert digests == bytes.fromhex("".join(wanted))

    else:
        digest = ALGORITHMS[name].one_shot()
        pieces = [memoryview(data)[at : at + source.size] for at in range(0, len(data), source.size)]

        def action() -> list[str]:
            return list(map(digest, pieces))

        def check(digests: list[str]) -> None:
            assert digests == wanted

    measure_call(measure, title(shape, name), "from memory", action, check, source)


@pytest.mark.parametrize(("shape", "name"), CASES)
def test_python(measure: Measure, files: Callable[[str], Files], shape: str, name: str) -> None:
    """Hash the files by the public iterator."""
    source = files(shape)

    wanted = list(expected(tuple(source.paths), name).values())

    def run() -> list[str]:
        return [outcome.digests[name] for outcome in fixity.hash_files(source.paths, [name], 1)]

    def check(found: list[str]) -> None:
        assert found == wanted

    measure_call(measure, title(shape, name), "Pressmark in Python", run, check, source)


@pytest.mark.parametrize(("shape", "name"), CASES)
def test_command(
    measure: Measure, files: Callable[[str], Files], pressmark: tuple[str, ...], shape: str, name: str
) -> None:
    source = files(shape)
    words = (*pressmark, "hash", source.folder, "-a", name, "--threads", "1", "--no-progress")
    measure_command(measure, title(shape, name), "pressmark hash", words, name, source)


@pytest.mark.parametrize(
    ("shape", "name", "program"),
    [(*case, program) for case in CASES for program in PROGRAMS if case[1] in program.algorithms],
    ids=lambda value: value.name if isinstance(value, Program) else value,
)
def test_program(measure: Measure, files: Callable[[str], Files], shape: str, name: str, program: Program) -> None:
    source = files(shape)
    words = available(lambda: program.command(name, source.folder, source.list))
    measure_command(measure, title(shape, name), f"{program.name} {program.version()}", words, name, source)
