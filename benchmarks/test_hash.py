"""Hash and verify files: small ones, of 1 MiB, and one large one; in memory and on a disk; beside hashlib and tools.

The yardstick is ``hashlib.file_digest`` (or the packages of BLAKE3 and XXH128) on a pool of as many threads, one pass
for each algorithm. A call of Pressmark is one of its API; ``test_command`` is the whole command, beside coreutils.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from benchmarks.conftest import Measure
from benchmarks.corpora.files import KIB, MIB, paths_of, warm, write_files
from benchmarks.peers.environments import Unavailable
from benchmarks.peers.hashing import b3sum_program, for_each_file, installed
from pressmark import fixity
from pressmark.fixity import ALGORITHMS

# Number and size of the files.
SHAPES = {"4 KiB": (2_000, 4 * KIB), "1 MiB": (48, MIB), "one of 128 MiB": (1, 128 * MIB)}
USUAL = ("sha512", "sha256", "md5", "sha1", "blake2b-512", "blake3", "xxh128")
SETS = ("sha512,md5", "sha512,sha256,md5")
CASES = [
    *((shape, algorithm) for shape in SHAPES for algorithm in ("sha512", "md5", "blake3", "xxh128")),
    *(("1 MiB", algorithm) for algorithm in (*USUAL, *SETS) if algorithm not in ("sha512", "md5", "blake3", "xxh128")),
]
TOOLS = {
    "sha512": ("sha512sum", "openssl dgst -sha512 -r", "rhash --sha512"),
    "sha256": ("sha256sum", "openssl dgst -sha256 -r", "hashdeep -c sha256", "rhash --sha256"),
    "md5": ("md5sum", "openssl dgst -md5 -r", "hashdeep -c md5", "rhash --md5"),
    "blake3": ("b3sum --num-threads 2",),
    "xxh128": ("xxhsum -H2",),
    "sha512,md5": ("rhash --sha512 --md5",),
}


@pytest.fixture(scope="session")
def files(places: Mapping[str, Path], scaled: Callable[[int], int]) -> Callable[[str, str], list[str]]:
    """Return the paths of the files of a shape, which are in the page cache."""

    @functools.cache
    def made(shape: str, place: str) -> list[str]:
        folder = places[place] / shape.replace(" ", "-")
        number, size = SHAPES[shape]
        write_files(folder, [size] * (number if number == 1 else scaled(number)))
        warm(folder)
        return paths_of(folder)

    return made


@functools.cache
def expected(paths: tuple[str, ...], names: tuple[str, ...]) -> list[dict[str, str]]:
    """Return the digests that hashlib and the packages compute."""
    return [{name: digest_of(path, name) for name in names} for path in paths]


def digest_of(path: str, name: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: ALGORITHMS[name].make(1)).hexdigest()


def hash_all(paths: Sequence[str], names: Sequence[str], threads: int) -> list[Any]:
    return [outcome.digests for outcome in fixity.hash_files(paths, names, threads)]


def with_hashlib(paths: Sequence[str], names: Sequence[str], threads: int) -> list[dict[str, str]]:
    found: list[dict[str, str]] = [{} for _path in paths]
    for name in names:
        with ThreadPoolExecutor(threads) as pool:
            for one, digest in zip(found, pool.map(functools.partial(digest_of, name=name), paths), strict=True):
                one[name] = digest
    return found


def measured(
    measure: Measure, subject: Callable[..., Any], paths: list[str], algorithms: str, threads: int, title: str
) -> None:
    names = fixity.algorithm_names(algorithms.split(","))
    wanted = expected(tuple(paths), tuple(names))

    def check(found: Any) -> None:
        assert found == wanted, f"{title}: wrong digests"

    action = functools.partial(subject, paths, names, threads)
    size = sum(map(os.path.getsize, paths)) / 1e6
    measure.call(title, action, check=check, files=len(paths), MB=size)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("shape", "algorithms"), CASES)
def test_hash(measure: Measure, files: Callable[..., list[str]], shape: str, algorithms: str, threads: int) -> None:
    measured(measure, hash_all, files(shape, "memory"), algorithms, threads, f"hash {shape}, {algorithms}")


@pytest.mark.yardstick
@pytest.mark.parametrize(("shape", "algorithms"), CASES)
def test_hashlib(measure: Measure, files: Callable[..., list[str]], shape: str, algorithms: str) -> None:
    measured(measure, with_hashlib, files(shape, "memory"), algorithms, 2, f"hash {shape}, {algorithms}")


@pytest.mark.parametrize("shape", SHAPES)
def test_disk(measure: Measure, files: Callable[..., list[str]], shape: str) -> None:
    measured(measure, hash_all, files(shape, "disk"), "sha512", 2, f"hash {shape} on a disk, sha512")


def test_pure(measure: Measure, files: Callable[..., list[str]], pure: None) -> None:
    measured(measure, hash_all, files("4 KiB", "memory"), "sha512", 1, "hash 4 KiB, sha512")


@pytest.mark.parametrize("again", [False, True], ids=["new", "again"])
def test_ledger(measure: Measure, files: Callable[..., list[str]], memory: Path, again: bool) -> None:
    """Hash with a ledger, and again with the same one."""
    paths, ledger = files("4 KiB", "memory"), memory / "ledger"
    wanted = expected(tuple(paths), ("sha512",))

    def run() -> list[Any]:
        with fixity.Ledger(ledger, ["sha512"], paths) as open_ledger:
            return [outcome.digests for outcome in fixity.hash_files(paths, ["sha512"], 2, ledger=open_ledger)]

    def before() -> None:
        if not again:
            ledger.unlink(missing_ok=True)

    def check(found: Any) -> None:
        assert found == wanted

    group = f"hash 4 KiB with a ledger{', again' if again else ''}, sha512"
    measure.once(group, run, before=before, check=check, files=len(paths))


def test_verify(measure: Measure, files: Callable[..., list[str]], memory: Path) -> None:
    paths = files("4 KiB", "memory")
    manifest = memory / "manifest"
    lines = [
        f"{found['sha512']}  {path}\n" for path, found in zip(paths, expected(tuple(paths), ("sha512",)), strict=True)
    ]
    manifest.write_text("".join(lines))

    def run() -> int:
        with manifest.open("rb") as file:
            entries = fixity.read_manifest(file, "manifest", "sha512")
            return sum(verdict.ok for verdict in fixity.verify(entries, threads=2))

    def check(found: int) -> None:
        assert found == len(paths)

    measure.call("verify 4 KiB, sha512", run, check=check, files=len(paths))


# --- whole commands ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["sha512", "md5", "blake3", "xxh128"])
@pytest.mark.parametrize("shape", ["4 KiB", "one of 128 MiB"])
def test_command(
    measure: Measure, files: Callable[..., list[str]], pressmark: tuple[str, ...], shape: str, algorithm: str
) -> None:
    paths = files(shape, "memory")
    folder = Path(paths[0]).parents[1]
    words = (*pressmark, "hash", folder, "-a", algorithm, "--no-progress")
    measure.command(command_title(shape, algorithm), *words, check=checker(paths, algorithm), files=len(paths))


@pytest.mark.peers
@pytest.mark.parametrize(("algorithm", "tool"), [(one, tool) for one, tools in TOOLS.items() for tool in tools])
@pytest.mark.parametrize("shape", ["4 KiB", "one of 128 MiB"])
def test_tool(measure: Measure, files: Callable[..., list[str]], shape: str, algorithm: str, tool: str) -> None:
    name, _, options = tool.partition(" ")
    try:
        program = b3sum_program() if name == "b3sum" else installed(name)
    except Unavailable as error:
        pytest.skip(f"not available: {error}")
    paths = files(shape, "memory")
    words = for_each_file(f"{shlex.quote(str(program))} {options}", Path(paths[0]).parents[1], processes=2)
    measure.command(command_title(shape, algorithm), *words, files=len(paths))


def command_title(shape: str, algorithm: str) -> str:
    return f"command hash {shape}, {algorithm}"


def checker(paths: list[str], algorithm: str) -> Callable[[str], None]:
    wanted = sorted(found[algorithm] for found in expected(tuple(paths), (algorithm,)))

    def check(output: str) -> None:
        assert sorted(line.split()[0] for line in output.splitlines()) == wanted

    return check
